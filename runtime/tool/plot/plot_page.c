/* plot_page.c -- writes reports: one HTML file with pictures and tables, which
 * needs neither a network nor a script. */
#include "tool/plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 40 };

static const char page_css[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1f2328;--weak:#59636e;"
    "--grid:#e4e7eb}\n"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--back:#14181d;--text:#e6e9ed;"
    "--weak:#9da7b1;--grid:#2a3138}}\n"
    "body{margin:24px auto;max-width:1280px;padding:0 16px;"
    "background:var(--back);color:var(--text);"
    "font:14px/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\","
    "sans-serif}\n"
    "h1{font-size:22px;margin:0}h2{font-size:17px;margin:28px 0 8px}\n"
    "p.note,th,dt{color:var(--weak)}\n"
    ".wide{overflow-x:auto}svg.kp{max-width:100%;height:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:3px 12px 3px 0;text-align:left;"
    "border-bottom:1px solid var(--grid);white-space:nowrap}\n"
    "th.n,td.n{text-align:right}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px}"
    "dd{margin:0}\n"
    "@media print{body{margin:0;max-width:none}.wide{overflow:visible}}\n";

static void put_escaped(FILE *out, const char *before, const char *text,
                        const char *after)
{
  fputs(before, out);
  kiln__plot_escape(out, text);
  fputs(after, out);
}

/* Writes a JSON value as the text of a table's cell. */
static void put_value(cli *c, FILE *out, const cJSON *value)
{
  if (cJSON_IsString(value))
    kiln__plot_escape(out, value->valuestring);
  else if (cJSON_IsNumber(value) &&
           fabs(value->valuedouble - round(value->valuedouble)) < 1e-12 &&
           fabs(value->valuedouble) < 1e15)
    fprintf(out, "%.0f", value->valuedouble);
  else if (cJSON_IsNumber(value))
    kiln__plot_escape(out, kiln__cli_text(c, "%.5g", value->valuedouble));
  else if (cJSON_IsBool(value))
    fputs(cJSON_IsTrue(value) ? "yes" : "no", out);
  else
    fputs("-", out);
}

/* Collects the keys of all rows of an array, in the order of appearance.
 * @return their number */
static size_t columns_of(const cJSON *rows, const char *keys[MOST_COLUMNS])
{
  const cJSON *row, *member;
  size_t n = 0;

  cJSON_ArrayForEach(row, rows)
  {
    cJSON_ArrayForEach(member, row)
    {
      size_t i = 0;

      while (i < n && strcmp(keys[i], member->string) != 0)
        i++;
      if (i == n && n < MOST_COLUMNS && !cJSON_IsArray(member) &&
          !cJSON_IsObject(member))
        keys[n++] = member->string;
    }
  }
  return n;
}

static void put_table(cli *c, FILE *out, const cJSON *rows)
{
  const char *keys[MOST_COLUMNS];
  const size_t n = columns_of(rows, keys);
  const cJSON *row;

  if (n == 0)
    return;
  put_escaped(out, "<h2>", rows->string, "</h2>\n<div class=wide><table><tr>");
  for (size_t i = 0; i < n; i++)
    put_escaped(out,
                cJSON_IsNumber(cJSON_GetObjectItem(rows->child, keys[i]))
                    ? "<th class=n>"
                    : "<th>",
                keys[i], "</th>");
  fputs("</tr>\n", out);
  cJSON_ArrayForEach(row, rows)
  {
    fputs("<tr>", out);
    for (size_t i = 0; i < n; i++) {
      const cJSON *value = cJSON_GetObjectItem(row, keys[i]);

      fputs(cJSON_IsNumber(value) ? "<td class=n>" : "<td>", out);
      put_value(c, out, value);
      fputs("</td>", out);
    }
    fputs("</tr>\n", out);
  }
  fputs("</table></div>\n", out);
}

/* Writes the members of an object that are plain values as a list. */
static void put_list(cli *c, FILE *out, const cJSON *object)
{
  const cJSON *member;

  if (object->string != NULL)
    put_escaped(out, "<h2>", object->string, "</h2>\n");
  fputs("<dl>\n", out);
  cJSON_ArrayForEach(member, object)
  {
    if (member->string == NULL || cJSON_IsArray(member) ||
        cJSON_IsObject(member))
      continue;
    put_escaped(out, "<dt>", member->string, "</dt><dd>");
    put_value(c, out, member);
    fputs("</dd>\n", out);
  }
  fputs("</dl>\n", out);
}

static void put_data(cli *c, FILE *out, const cJSON *data)
{
  const cJSON *member;

  put_list(c, out, data);
  cJSON_ArrayForEach(member, data)
  {
    if (cJSON_IsArray(member) && cJSON_IsObject(member->child))
      put_table(c, out, member);
    else if (cJSON_IsObject(member))
      put_list(c, out, member);
  }
}

static bool put_page(cli *c, FILE *out, const plot_page *page)
{
  put_escaped(out,
              "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
              "<meta name=viewport content=\"width=device-width\">\n<title>",
              page->title, "</title>\n<style>\n");
  fputs(page_css, out);
  kiln__plot_css(out, PLOT_AUTO);
  put_escaped(out, "</style></head><body>\n<h1>", page->title, "</h1>\n");
  if (page->note != NULL)
    put_escaped(out, "<p class=note>", page->note, "</p>\n");
  for (size_t i = 0; i < page->n; i++) {
    size_t size;
    char *svg = kiln__plot_svg(c, &page->figures[i], PLOT_INLINE, &size);

    if (svg == NULL)
      return false;
    fprintf(out, "<div class=wide>%s</div>\n", svg);
    free(svg);
  }
  if (page->data != NULL)
    put_data(c, out, page->data);
  fputs("</body></html>\n", out);
  return true;
}

int kiln__plot_page(cli *c, const plot_page *page, const char *path)
{
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  bool good = out != NULL && put_page(c, out, page);
  int rc;

  if (out != NULL)
    good = fclose(out) == 0 && good;
  if (!good)
    kiln__cli_message(c, NULL, "there is no memory for the report");
  rc = good ? kiln__cli_write(c, path, text, size) : CLI_FAILED;
  free(text);
  return rc;
}
