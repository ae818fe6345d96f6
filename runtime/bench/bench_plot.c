/* bench_plot.c -- draws the rates of a family of operations by size, by means
 * of gnuplot. */
#include "bench/bench_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const styles[] = {"#4e79a7", "#f28e2b", "#e15759",
                                     "#76b7b2", "#59a14f", "#edc948",
                                     "#b07aa1", "#9c755f"};

enum { N_STYLES = sizeof styles / sizeof styles[0] };

static double number(const cJSON *row, const char *key)
{
  const cJSON *v = cJSON_GetObjectItem(row, key);

  return v == NULL ? 0 : v->valuedouble;
}

static const char *text(const cJSON *row, const char *key)
{
  const cJSON *v = cJSON_GetObjectItem(row, key);

  return v == NULL ? "" : v->valuestring;
}

/* Returns whether two rows have the same case and type, and so belong to the
 * same line of the plot. */
static bool same_line(const cJSON *a, const cJSON *b)
{
  return strcmp(text(a, "family"), text(b, "family")) == 0 &&
         strcmp(text(a, "case"), text(b, "case")) == 0 &&
         strcmp(text(a, "type"), text(b, "type")) == 0;
}

/* Returns whether the table row is the first row of its line of the plot. */
static bool is_first(const cJSON *cases, const cJSON *row)
{
  const cJSON *other;

  cJSON_ArrayForEach(other, cases)
  {
    if (other == row)
      return true;
    if (same_line(other, row))
      return false;
  }
  return true;
}

/* Returns the rate of the comparison library in GB/s: Kiln's rate scaled by the
 * ratio of the two times. */
static double peer_rate(const cJSON *row)
{
  const double peer = number(row, "peer_ms");

  return peer > 0 ? number(row, "gb_per_s") * number(row, "ms") / peer : 0;
}

/* Writes the points of a line of the plot in gnuplot's inline form. */
static void put_points(FILE *out, const cJSON *cases, const cJSON *line,
                       bool peer)
{
  const cJSON *row;

  cJSON_ArrayForEach(row, cases)
  {
    const double rate = peer ? peer_rate(row) : number(row, "gb_per_s");

    if (same_line(row, line) && rate > 0)
      fprintf(out, "%.17g %.17g\n", number(row, "n"), rate);
  }
  fputs("e\n", out);
}

static bool has_peer(const cJSON *cases, const cJSON *line)
{
  const cJSON *row;

  cJSON_ArrayForEach(row, cases)
  {
    if (same_line(row, line) && peer_rate(row) > 0)
      return true;
  }
  return false;
}

static void put_lines(FILE *out, const cJSON *cases)
{
  const char *comma = "plot ";
  const cJSON *row;
  unsigned k = 0;

  cJSON_ArrayForEach(row, cases)
  {
    const char *color = styles[k % N_STYLES];

    if (!is_first(cases, row))
      continue;
    fprintf(out, "%s'-' with linespoints lc rgb '%s' lw 2 pt 7 title \"%s %s\"",
            comma, color, text(row, "case"), text(row, "type"));
    if (has_peer(cases, row))
      fprintf(out, ", '-' with linespoints lc rgb '%s' dt 2 pt 6 title \"%s\"",
              color, text(row, "peer"));
    comma = ", ";
    k++;
  }
  fputs("\n", out);
  cJSON_ArrayForEach(row, cases)
  {
    if (!is_first(cases, row))
      continue;
    put_points(out, cases, row, false);
    if (has_peer(cases, row))
      put_points(out, cases, row, true);
  }
}

static void put_script(FILE *out, const cJSON *json, const char *path)
{
  const cJSON *cases = cJSON_GetObjectItem(json, "cases");

  fprintf(out,
          "set terminal svg size 900,560 font 'sans,12' background '#ffffff'\n"
          "set output '%s'\n"
          "set title \"%s\"\n"
          "set logscale x 2\nset format x '2^{%%L}'\n"
          "set logscale y 10\n"
          "set xlabel 'elements'\nset ylabel 'GB/s, bytes that must be moved'\n"
          "set grid\nset key outside right\n",
          path, text(json, "device"));
  put_lines(out, cases);
}

/* The script is written to a pipe, so that only the picture remains as a
 * file. */
int kiln__bench_plot(cli *c, const cJSON *json, const char *path)
{
  FILE *pipe;
  int status;

  if (strpbrk(path, "'\\\n") != NULL)
    return kiln__cli_usage(
        c, "--plot \"%s\": a path without quotes, backslashes and newlines",
        path);
  if (cJSON_GetArraySize(cJSON_GetObjectItem(json, "cases")) == 0) {
    kiln__cli_message(c, NULL, "there is nothing to plot: no case ran");
    return CLI_FAILED;
  }
  pipe = popen("gnuplot 2>/dev/null", "w");
  if (pipe == NULL) {
    kiln__cli_message(c, NULL, "cannot start gnuplot: %s", strerror(errno));
    return CLI_FAILED;
  }
  put_script(pipe, json, path);
  status = pclose(pipe);
  if (status == 0)
    return CLI_OK;
  kiln__cli_message(c,
                    "install gnuplot-nox, or use --json and draw it yourself",
                    "gnuplot did not draw %s", path);
  return CLI_FAILED;
}
