/* bench_start.c -- `kiln bench start`, which measures the time from process
 * start to a verified saxpy. Three programs are compared: a bare program on
 * the driver API, Kiln with a warm disk cache, and Kiln with a compilation.
 * The parent process never uses CUDA; each run is a new child process. */
#include "bench/bench_start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { STEPS = 12 };

typedef enum kind { BARE, WARM, COLD, WARM_STEPS, COLD_STEPS, KINDS } kind;

static const char *const kind_keys[] = {"bare", "warm", "cold", "warm_steps",
                                        "cold_steps"};

/* The times of all runs of one kind of program, in milliseconds. */
typedef struct series {
  size_t n_steps;
  char label[STEPS][32];
  double step_ms[STEPS][BENCH_MOST_REPEATS];
  double total_ms[BENCH_MOST_REPEATS];
  double compile_ms[BENCH_MOST_REPEATS];
} series;

typedef struct start {
  cli *c;
  int runs;
  char *folder, *cubin, *kernel, *driver, *device;
  double front_ms, both_ms;
  /* Number of runs with a warm cache in which NVRTC was loaded. */
  size_t mapped;
  series *of; /* array of series, one per kind of run */
} start;

/* ---- Children ----------------------------------------------------------- */

/* Runs `kiln bench start --child ...` and returns the output, which the caller
 * frees. *begun receives the time at which the child process was started.
 * Returns NULL having reported the failure. */
static char *run_child(start *s, char *const words[], double *begun)
{
  char *argv[12] = {"/proc/self/exe", "bench", "start", "--child"};
  char *text;
  int status = -1;

  for (size_t i = 0; words[i] != NULL; i++)
    argv[4 + i] = words[i];
  *begun = kiln__cli_now_ns();
  text = kiln__cli_output_of(argv, &status);
  if (text == NULL)
    kiln__cli_message(s->c, NULL, "cannot start a child process: %s",
                      strerror(errno));
  else if (status == 0)
    return text;
  else if (WIFSIGNALED(status))
    kiln__cli_message(s->c, NULL, "a child process was ended by signal %d",
                      WTERMSIG(status));
  free(text);
  return NULL;
}

/* Finds the output line "KEY VALUE" and returns a copy of the value, or "" if
 * there is no such line. */
static char *value_of(cli *c, const char *text, const char *key)
{
  const size_t n = strlen(key);
  const char *line = text;

  while (line != NULL && *line != '\0') {
    if (strncmp(line, key, n) == 0 && line[n] == ' ')
      return kiln__cli_text(c, "%.*s", (int)strcspn(line + n + 1, "\n"),
                            line + n + 1);
    line = strchr(line, '\n');
    line += line != NULL ? 1 : 0;
  }
  return kiln__cli_text(c, "%s", "");
}

/* Computes the time of each step as the difference between two time stamps that
 * the child printed. The first step counts from `begun`. */
static void read_marks(series *of, size_t run, const char *text, double begun)
{
  const char *line = text;
  double before = begun, at;
  char label[32];
  size_t k = 0;

  while (line != NULL && k < STEPS &&
         sscanf(line, "mark %lf %31[^\n]", &at, label) == 2) {
    memcpy(of->label[k], label, sizeof label);
    of->step_ms[k++][run] = (at - before) / 1e6;
    before = at;
    line = strchr(line, '\n');
    line += line != NULL ? 1 : 0;
  }
  of->n_steps = k;
  of->total_ms[run] = (before - begun) / 1e6;
}

/* ---- One run ------------------------------------------------------------ */

static void set_cache(start *s, const char *name)
{
  setenv("KILN_CACHE_DIR", kiln__cli_text(s->c, "%s/%s", s->folder, name), 1);
}

/* Runs one measurement in a child process. A cold run, which compiles, gets a
 * new cache folder. A warm run must find its code on disk, otherwise the
 * measured time would be wrong. */
static int run_kind(start *s, kind k, int run)
{
  char *bare[] = {"bare", s->cubin, s->kernel, s->driver, NULL};
  char *whole[] = {"kiln", NULL}, *steps[] = {"steps", NULL};
  char *const *argv = k == BARE ? bare : k <= COLD ? whole : steps;
  series *of = &s->of[k];
  /* a negative run number means an untimed warm-up run */
  const size_t slot = run < 0 ? 0 : (size_t)run;
  double begun;
  char *text;

  if (k == COLD || k == COLD_STEPS)
    set_cache(s, kiln__cli_text(s->c, "cold-%d-%d", (int)k, run));
  else
    set_cache(s, "warm");
  text = run_child(s, argv, &begun);
  if (text == NULL)
    return CLI_FAILED;
  read_marks(of, slot, text, begun);
  of->compile_ms[slot] = atof(value_of(s->c, text, "compile_ms"));
  if ((k == WARM || k == WARM_STEPS) && run >= 0) {
    s->mapped += atoi(value_of(s->c, text, "nvrtc_mapped")) != 0 ? 1 : 0;
    if (strcmp(value_of(s->c, text, "origin"), "disk") != 0) {
      kiln__cli_message(s->c, "check the free space of TMPDIR",
                        "a warm start did not find its code in the disk cache");
      free(text);
      return CLI_FAILED;
    }
  }
  free(text);
  return CLI_OK;
}

/* Fills the cache for the warm runs, writes the CUBIN for the bare program, and
 * reads the names and the compiler's times. */
static int prepare(start *s)
{
  char *argv[] = {"prepare", s->cubin, NULL};
  double begun;
  char *text;

  set_cache(s, "warm");
  text = run_child(s, argv, &begun);
  if (text == NULL)
    return CLI_FAILED;
  s->kernel = value_of(s->c, text, "kernel");
  s->driver = value_of(s->c, text, "driver");
  s->device = value_of(s->c, text, "device");
  s->front_ms = atof(value_of(s->c, text, "front_ms"));
  s->both_ms = atof(value_of(s->c, text, "both_ms"));
  free(text);
  return CLI_OK;
}

static int run_all(start *s)
{
  const size_t total = ((size_t)s->runs + 1) * KINDS;
  size_t done = 0;
  int rc = prepare(s);

  /* The first round of runs warms up and is not recorded. */
  for (int run = -1; rc == CLI_OK && run < s->runs; run++)
    for (int k = 0; rc == CLI_OK && k < KINDS; k++) {
      kiln__cli_progress(s->c, "run", done++, total);
      /* Odd rounds run in reverse order, so that no kind of program always
       * follows the same other kind. */
      rc = run_kind(s, (kind)(run % 2 == 0 ? k : KINDS - 1 - k), run);
    }
  kiln__cli_progress(s->c, "run", total, total);
  return rc;
}

/* ---- Report ------------------------------------------------------------- */

static double median_of(start *s, const double *values)
{
  double *copy = kiln__cli_alloc(s->c, BENCH_MOST_REPEATS, sizeof *copy);

  memcpy(copy, values, (size_t)s->runs * sizeof *copy);
  return kiln__cli_median(copy, (size_t)s->runs);
}

static void print_totals(start *s)
{
  static const char *const heads[] = {"process start to verified saxpy", ">ms",
                                      ">to bare", ">above bare", NULL};
  static const char *const labels[] = {"bare driver API, CUBIN from a file",
                                       "Kiln, warm disk cache",
                                       "Kiln, empty cache: compiles"};
  const double bare = median_of(s, s->of[BARE].total_ms);
  cli_table t;

  kiln__cli_table(&t, s->c, heads);
  for (int k = BARE; k <= COLD; k++) {
    const double ms = median_of(s, s->of[k].total_ms);

    kiln__cli_cells(&t, "%s\t%.1f\t%.3f", labels[k], ms, ms / bare);
    if (k == BARE)
      kiln__cli_dashes(&t, 1);
    else
      kiln__cli_cell(&t, "%+.1f ms", ms - bare);
  }
  kiln__cli_table_print(&t, 0);
}

static void add_step(start *s, cli_table *t, const series *of,
                     const char *label)
{
  for (size_t i = 0; i < of->n_steps; i++)
    if (strcmp(of->label[i], label) == 0) {
      kiln__cli_cell(t, "%.2f", median_of(s, of->step_ms[i]));
      return;
    }
  kiln__cli_dashes(t, 1);
}

static void print_steps(start *s)
{
  static const char *const heads[] = {"one step after the other, ms", ">bare",
                                      ">warm", ">cold", NULL};
  const series *warm = &s->of[WARM_STEPS];
  cli_table t;

  kiln__cli_table(&t, s->c, heads);
  for (size_t i = 0; i < warm->n_steps; i++) {
    kiln__cli_cell(&t, "%s", warm->label[i]);
    add_step(s, &t, &s->of[BARE], warm->label[i]);
    add_step(s, &t, warm, warm->label[i]);
    add_step(s, &t, &s->of[COLD_STEPS], warm->label[i]);
  }
  kiln__cli_table_print(&t, 0);
  printf("\ncompiler in a fresh process %.1f ms; once it is loaded front end "
         "%.1f ms\n(CUDA C++ to PTX) and back end %.1f ms (PTX to machine "
         "code)\n",
         median_of(s, s->of[COLD].compile_ms), s->front_ms,
         s->both_ms - s->front_ms);
}

static void add_series(start *s, const series *of, cJSON *o)
{
  cJSON *steps;

  JSON_NUMBER(o, "total_ms", median_of(s, of->total_ms));
  cJSON_AddItemToObject(o, "runs_ms",
                        cJSON_CreateDoubleArray(of->total_ms, s->runs));
  steps = cJSON_AddObjectToObject(o, "steps_ms");
  for (size_t i = 0; i < of->n_steps; i++)
    JSON_NUMBER(steps, of->label[i], median_of(s, of->step_ms[i]));
}

static int write_json(start *s, const bench_options *options)
{
  const double bare = median_of(s, s->of[BARE].total_ms);
  const double warm = median_of(s, s->of[WARM].total_ms);
  const double cold = median_of(s, s->of[COLD].total_ms);
  cJSON *o = cJSON_CreateObject(), *rows;

  JSON_TEXT(o, "device", s->device);
  JSON_NUMBER(o, "runs", s->runs);
  JSON_NUMBER(o, "warm_to_bare", warm / bare);
  JSON_NUMBER(o, "cold_above_bare_ms", cold - bare);
  JSON_NUMBER(o, "compile_ms", median_of(s, s->of[COLD].compile_ms));
  JSON_NUMBER(o, "front_end_ms", s->front_ms);
  JSON_NUMBER(o, "back_end_ms", s->both_ms - s->front_ms);
  JSON_FLAG(o, "warm_maps_nvrtc", s->mapped > 0);
  for (size_t k = 0; k < KINDS; k++)
    add_series(s, &s->of[k], cJSON_AddObjectToObject(o, kind_keys[k]));
  rows = cJSON_AddArrayToObject(o, "starts");
  for (size_t k = 0; k < KINDS; k++) {
    cJSON *row = kiln__cli_json_item(rows);

    JSON_TEXT(row, "start", kind_keys[k]);
    JSON_NUMBER(row, "total_ms", median_of(s, s->of[k].total_ms));
  }
  return kiln__bench_end(s->c, options, CLI_OK, o);
}

static int report(start *s, const bench_options *o)
{
  printf("%s: medians of %d runs each, interleaved\n\n", s->device, s->runs);
  print_totals(s);
  putchar('\n');
  print_steps(s);
  if (write_json(s, o) != CLI_OK)
    return CLI_FAILED;
  if (s->mapped > 0) {
    kiln__cli_message(s->c, NULL,
                      "libnvrtc was mapped in %zu of %d warm starts", s->mapped,
                      2 * s->runs);
    return CLI_FAILED;
  }
  puts("libnvrtc was mapped in no warm start");
  return CLI_OK;
}

/* ---- The command -------------------------------------------------------- */

static int run_bench(start *s, const bench_options *o)
{
  int rc;

  s->folder = kiln__cli_make_folder(s->c, "kiln-start");
  if (s->folder == NULL)
    return CLI_FAILED;
  s->cubin = kiln__cli_text(s->c, "%s/saxpy.cubin", s->folder);
  s->of = kiln__cli_alloc(s->c, KINDS, sizeof *s->of);
  if (s->c->driver != NULL)
    setenv("KILN_DRIVER", s->c->driver, 1);
  if (s->c->nvrtc != NULL)
    setenv("KILN_NVRTC", s->c->nvrtc, 1);
  /* KILN_PACKS is removed, since a cold start must compile. */
  unsetenv("KILN_PACKS");
  rc = run_all(s);
  kiln__cli_remove_folder(s->folder);
  return rc == CLI_OK ? report(s, o) : rc;
}

int kiln__bench_start(cli *c, int argc, char **argv)
{
  bench_options o = {.json = NULL};
  start s = {.c = c, .runs = 15};
  const cli_option options[] = {
      CLI_OPTION_NUMBER("runs", &s.runs, 1, BENCH_MOST_REPEATS,
                        "runs of each kind; default 15"),
      BENCH_OPTION_OUTPUT(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench start [options]\n",
      .about =
          "Measures the time from process start to a verified saxpy: of a "
          "bare program on the driver API that loads a CUBIN file, of Kiln "
          "with a warm disk cache, and of Kiln that compiles. Each run is "
          "a fresh process; the three take turns. Then it prints the time "
          "of each step.",
      .options = options,
      .example = "kiln bench start --runs 5"};
  cli_words words;
  const int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  return rc == CLI_OK ? run_bench(&s, &o) : rc;
}
