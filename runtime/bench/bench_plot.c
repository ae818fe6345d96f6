/* bench_plot.c -- draws the results of every benchmark.
 *
 * A benchmark describes its results only once, as the JSON document that --json
 * writes. The table `charts` says what to draw from such a document: an array of
 * rows, the members that name a panel and a line, and the members that are
 * drawn. Documents that were written on another machine can therefore be drawn
 * as well (`kiln bench draw`). */
#include "bench/bench.h"

#include "tool/plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_PANELS = 64,
  MOST_LINES = 64, /* lines of one panel, without their peers */
  MOST_KEYS = 3,
  MOST_PEERS = 2
};

/* What a line is compared with: a time of the same row. */
typedef struct chart_peer {
  const char *key;  /* member with the time in milliseconds; NULL for none */
  const char *name; /* name in the legend; "@key" takes it from the row */
  plot_line line;
} chart_peer;

/* How to draw one kind of results. */
typedef struct chart {
  const char *rows;  /* array of the document; NULL for all its objects */
  const char *title; /* title of the panels, before the panel's own name */
  const char *panels[MOST_KEYS]; /* members that name a panel */
  const char *lines[MOST_KEYS];  /* members that name a line */
  const char *x, *x_label;       /* NULL: bars instead of curves */
  const char *y, *y_label;
  bool rate; /* `y` is a rate: that of a peer follows from the ratio of times */
  const char *own; /* name of what is measured; NULL means "Kiln" */
  chart_peer peers[MOST_PEERS];
  const char *ceiling; /* member of the document with a limit of `y`, or NULL */
  const char *ceiling_name;
} chart;

static const chart charts[] = {
    {.rows = "cases",
     .panels = {"family"},
     .lines = {"case", "type"},
     .x = "n",
     .x_label = "elements",
     .y = "gb_per_s",
     .y_label = "GB/s, bytes that must be moved",
     .rate = true,
     .peers = {{"peer_ms", "@peer", PLOT_DASHED}},
     .ceiling = "peak_gb_per_s",
     .ceiling_name = "memory's peak"},
    {.rows = "ladder",
     .title = "Steps to a fast sum, many elements",
     .lines = {"step"},
     .y = "gb_per_s",
     .y_label = "GB/s",
     .rate = true},
    {.rows = "ladder_1024x1024",
     .title = "Steps to a fast sum, 2^20 elements",
     .lines = {"step"},
     .y = "gb_per_s",
     .y_label = "GB/s",
     .rate = true},
    {.rows = "library",
     .title = "kiln_reduce",
     .x = "n",
     .x_label = "elements",
     .y = "ms",
     .y_label = "time (ms)",
     .peers = {{"cub_ms", "CUB", PLOT_DASHED}}},
    {.rows = "calls",
     .title = "Later calls",
     .lines = {"call"},
     .y = "call_us",
     .y_label = "host time per call (us)",
     .peers = {{"bare_us", "bare launches", PLOT_DASHED}}},
    {.rows = "calls",
     .title = "First calls",
     .lines = {"call"},
     .y = "cold_ms",
     .y_label = "time (ms)",
     .own = "compiled",
     .peers = {{"disk_ms", "from the disk cache", PLOT_DASHED}}},
    {.rows = "gemm",
     .title = "Matrix products",
     .panels = {"type"},
     .lines = {"shape"},
     .y = "tflops",
     .y_label = "TFLOP/s",
     .rate = true,
     .peers = {{"peer_ms", "cuBLAS", PLOT_DASHED}}},
    {.rows = "passes",
     .panels = {"call"},
     .lines = {"way", "passes"},
     .x = "n",
     .x_label = "elements",
     .y = "ms",
     .y_label = "time (ms)",
     .peers = {{"model_ms", "model", PLOT_DASHED}}},
    {.rows = "stencil",
     .title = "Stencils",
     .lines = {"case", "n"},
     .y = "ms",
     .y_label = "time (ms)",
     .peers = {{"naive_ms", "straightforward kernel", PLOT_DASHED},
               {"copy_ms", "a copy", PLOT_DASHED}}},
    {.rows = "julia",
     .title = "Julia set",
     .x = "side",
     .x_label = "pixels per side",
     .y = "ms",
     .y_label = "time (ms)",
     .peers = {{"naive_ms", "straightforward kernel", PLOT_DASHED}}},
    {.rows = "nbody",
     .title = "Forces between all pairs",
     .lines = {"variant"},
     .x = "n",
     .x_label = "bodies",
     .y = "ms",
     .y_label = "time (ms)",
     .peers = {{"peer_ms", "kernel of GPU Gems 3", PLOT_DASHED}}},
    {.rows = "collectives",
     .panels = {"call"},
     .lines = {"engine", "ranks"},
     .x = "bytes",
     .x_label = "bytes per rank",
     .y = "ms",
     .y_label = "time (ms)",
     .peers = {{"nccl_ms", "NCCL", PLOT_DASHED}}},
    {.rows = "scaling",
     .title = "Work per time relative to one rank",
     .lines = {"operation"},
     .x = "ranks",
     .x_label = "ranks",
     .y = "speedup",
     .y_label = "speed-up"},
    {.rows = "launch",
     .title = "Host time of a launch",
     .lines = {"way"},
     .y = "ns",
     .y_label = "time (ns)"},
    {.rows = "starts",
     .title = "Process start to a verified result",
     .lines = {"start"},
     .y = "total_ms",
     .y_label = "time (ms)"},
    {.rows = "rates",
     .title = "CPU device",
     .panels = {"setting"},
     .lines = {"kernel"},
     .y = "rate",
     .y_label = "10^9 thread instructions per second"},
};

enum { N_CHARTS = sizeof charts / sizeof charts[0] };

/* ---- Rows --------------------------------------------------------------- */

static double number(const cJSON *row, const char *key)
{
  const cJSON *v = key == NULL ? NULL : cJSON_GetObjectItem(row, key);

  return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

/* Returns the values of some members of a row as text, separated by blanks. */
static const char *name_of(cli *c, const cJSON *row,
                           const char *const keys[MOST_KEYS])
{
  const char *out = "";

  for (int i = 0; i < MOST_KEYS && keys[i] != NULL; i++) {
    const cJSON *v = cJSON_GetObjectItem(row, keys[i]);
    const char *text = cJSON_IsString(v) ? v->valuestring
                       : cJSON_IsNumber(v)
                           ? kiln__plot_number(c, v->valuedouble, 2)
                           : "";

    out = kiln__cli_text(c, "%s%s%s", out, i > 0 && text[0] != '\0' ? " " : "",
                         text);
  }
  return out;
}

/* A panel in the making: the rows that belong to it, by line. */
typedef struct panel {
  cli *c;
  const chart *how;
  const cJSON *rows;
  const char *name;              /* of the panel */
  const char *lines[MOST_LINES]; /* names of its lines */
  size_t n_lines;
  double ceiling; /* NaN for none */
} panel;

static bool belongs(const panel *p, const cJSON *row)
{
  return strcmp(name_of(p->c, row, p->how->panels), p->name) == 0;
}

static void list_lines(panel *p)
{
  const cJSON *row;

  cJSON_ArrayForEach(row, p->rows)
  {
    const char *name = name_of(p->c, row, p->how->lines);
    size_t i = 0;

    if (!belongs(p, row))
      continue;
    while (i < p->n_lines && strcmp(p->lines[i], name) != 0)
      i++;
    if (i == p->n_lines && i < MOST_LINES)
      p->lines[p->n_lines++] = name;
  }
}

/* Returns the drawn value of a row, or that of its peer `peer` from 1 on. */
static double value_of(const chart *how, const cJSON *row, int peer)
{
  const double own = number(row, how->y);
  const char *key = peer > 0 ? how->peers[peer - 1].key : NULL;

  if (peer == 0 || !how->rate)
    return peer == 0 ? own : number(row, key);
  return own * number(row, "ms") / number(row, key);
}

/* Returns whether any row of the panel has this peer. *name becomes the name of
 * the peer. */
static bool has_peer(const panel *p, int peer, const char **name)
{
  const cJSON *row;
  const char *text = p->how->peers[peer - 1].name;

  if (p->how->peers[peer - 1].key == NULL)
    return false;
  cJSON_ArrayForEach(row, p->rows)
  {
    if (!belongs(p, row) || !isfinite(value_of(p->how, row, peer)))
      continue;
    if (text[0] == '@') {
      const char *const keys[MOST_KEYS] = {text + 1};

      text = name_of(p->c, row, keys);
    }
    *name = text;
    return true;
  }
  return false;
}

/* ---- Curves ------------------------------------------------------------- */

/* Fills the points of a line or of its peer, sorted by x. */
static void fill_line(const panel *p, size_t line, int peer, plot_series *out)
{
  const size_t capacity = (size_t)cJSON_GetArraySize(p->rows);
  double *x = kiln__cli_alloc(p->c, capacity + 1, sizeof *x);
  double *y = kiln__cli_alloc(p->c, capacity + 1, sizeof *y);
  const cJSON *row;
  size_t n = 0;

  cJSON_ArrayForEach(row, p->rows)
  {
    const double at = number(row, p->how->x);
    size_t k = n;

    if (!belongs(p, row) ||
        strcmp(name_of(p->c, row, p->how->lines), p->lines[line]) != 0)
      continue;
    for (; k > 0 && x[k - 1] > at; k--) {
      x[k] = x[k - 1];
      y[k] = y[k - 1];
    }
    x[k] = at;
    y[k] = value_of(p->how, row, peer);
    n++;
  }
  *out = (plot_series){.x = x, .y = y, .n = n, .color = (unsigned)line};
}

static bool has_points(const plot_series *s)
{
  for (size_t i = 0; i < s->n; i++)
    if (isfinite(s->y[i]))
      return true;
  return false;
}

/* Returns the ends of the x axis over all lines. */
static void ends_of(const plot_series *series, size_t n, double ends[2])
{
  ends[0] = INFINITY;
  ends[1] = -INFINITY;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < series[i].n; k++) {
      ends[0] = fmin(ends[0], series[i].x[k]);
      ends[1] = fmax(ends[1], series[i].x[k]);
    }
}

/* Adds a horizontal line for the document's ceiling. */
static void add_ceiling(const panel *p, plot_series *series, size_t *n)
{
  double *x, *y;

  if (!isfinite(p->ceiling))
    return;
  x = kiln__cli_alloc(p->c, 2, sizeof *x);
  y = kiln__cli_alloc(p->c, 2, sizeof *y);
  ends_of(series, *n, x);
  y[0] = y[1] = p->ceiling;
  series[*n] = (plot_series){.name = p->how->ceiling_name,
                             .x = x,
                             .y = y,
                             .n = 2,
                             .line = PLOT_CEILING,
                             .color = 7};
  ++*n;
}

static const char *title_of(const panel *p)
{
  if (p->how->title == NULL || p->name[0] == '\0')
    return p->how->title != NULL ? p->how->title : p->name;
  return kiln__cli_text(p->c, "%s, %s", p->how->title, p->name);
}

static void draw_curves(const panel *p, plot *out)
{
  plot_series *series =
      kiln__cli_alloc(p->c, p->n_lines * (MOST_PEERS + 1) + 1, sizeof *series);
  const char *peer_name = "";
  size_t n = 0;

  for (size_t i = 0; i < p->n_lines; i++)
    for (int peer = 0; peer <= MOST_PEERS; peer++) {
      if (peer > 0 && !has_peer(p, peer, &peer_name))
        continue;
      fill_line(p, i, peer, &series[n]);
      if (!has_points(&series[n]))
        continue;
      series[n].name = peer > 0                 ? peer_name
                       : p->lines[i][0] != '\0' ? p->lines[i]
                                                : "Kiln";
      series[n].line = peer > 0 ? p->how->peers[peer - 1].line : PLOT_SOLID;
      /* Two peers of one line cannot share its colour. */
      series[n].color += peer > 1 ? (unsigned)p->n_lines : 0;
      n++;
    }
  add_ceiling(p, series, &n);
  *out = (plot){.kind = PLOT_CURVES,
                .title = title_of(p),
                .x = {.label = p->how->x_label, .base = 2},
                .y = {.label = p->how->y_label, .base = 10},
                .series = series,
                .n_series = n};
}

/* ---- Bars --------------------------------------------------------------- */

/* Returns the first row of a line. */
static const cJSON *row_of(const panel *p, const char *line)
{
  const cJSON *row;

  cJSON_ArrayForEach(row, p->rows)
  {
    if (belongs(p, row) && strcmp(name_of(p->c, row, p->how->lines), line) == 0)
      return row;
  }
  return NULL;
}

static void draw_bars(const panel *p, plot *out)
{
  plot_series *series = kiln__cli_alloc(p->c, MOST_PEERS + 1, sizeof *series);
  const char **names = kiln__cli_alloc(p->c, p->n_lines, sizeof *names);
  const char *name = p->how->own != NULL ? p->how->own : "Kiln";
  size_t n = 0;

  for (int peer = 0; peer <= MOST_PEERS; peer++) {
    double *y;

    if (peer > 0 && !has_peer(p, peer, &name))
      continue;
    y = kiln__cli_alloc(p->c, p->n_lines, sizeof *y);
    for (size_t i = 0; i < p->n_lines; i++) {
      names[i] = p->lines[i];
      y[i] = value_of(p->how, row_of(p, p->lines[i]), peer);
    }
    series[n] = (plot_series){
        .name = name, .y = y, .n = p->n_lines, .color = (unsigned)peer};
    n++;
  }
  if (n == 1)
    series[0].name = NULL; /* one colour needs no legend */
  *out = (plot){.kind = PLOT_BARS,
                .title = title_of(p),
                .x = {.label = p->how->y_label},
                .y = {.names = names, .n_names = p->n_lines},
                .series = series,
                .n_series = n};
}

/* ---- Figures ------------------------------------------------------------ */

/* Returns whether the panel has rows with two different values of x. */
static bool has_sizes(const panel *p)
{
  double first = NAN;
  const cJSON *row;

  cJSON_ArrayForEach(row, p->rows)
  {
    const double x = number(row, p->how->x);

    if (!belongs(p, row) || !isfinite(x))
      continue;
    if (isfinite(first) && fabs(x - first) > 0)
      return true;
    first = x;
  }
  return false;
}

/* Draws the panels of one chart, one per name of a panel. */
static void draw_chart(cli *c, const chart *how, const cJSON *json, plot *plots,
                       size_t *n)
{
  const cJSON *rows = cJSON_GetObjectItem(json, how->rows), *row;
  const size_t first = *n;
  const char *seen[MOST_PANELS] = {NULL};

  if (!cJSON_IsArray(rows))
    return;
  cJSON_ArrayForEach(row, rows)
  {
    panel p = {.c = c,
               .how = how,
               .rows = rows,
               .name = name_of(c, row, how->panels),
               .ceiling = number(json, how->ceiling)};
    size_t i = 0;

    while (i < *n - first && strcmp(seen[i], p.name) != 0)
      i++;
    if (i < *n - first || *n == MOST_PANELS)
      continue;
    seen[i] = p.name;
    list_lines(&p);
    if (how->x != NULL && has_sizes(&p))
      draw_curves(&p, &plots[(*n)++]);
    else
      draw_bars(&p, &plots[(*n)++]);
  }
}

static const plot_figure *figure_of(cli *c, const cJSON *json,
                                    const char *title)
{
  const cJSON *device = cJSON_GetObjectItem(json, "device");
  plot_figure *figure = kiln__cli_alloc(c, 1, sizeof *figure);
  plot *plots = kiln__cli_alloc(c, MOST_PANELS, sizeof *plots);

  for (size_t i = 0; i < N_CHARTS; i++)
    draw_chart(c, &charts[i], json, plots, &figure->n);
  figure->title = title;
  figure->note = cJSON_IsString(device) ? device->valuestring : NULL;
  figure->plots = plots;
  figure->columns = 1;
  return figure->n > 0 ? figure : NULL;
}

static int draw(cli *c, const bench_options *o, const cJSON *json,
                const char *title)
{
  const plot_figure *figure = figure_of(c, json, title);
  plot_page page = {.title = title, .n = 1, .data = json};

  if (figure == NULL) {
    kiln__cli_message(c, NULL, "there is nothing to plot: no case ran");
    return CLI_FAILED;
  }
  page.figures = figure;
  page.note = figure->note;
  if (o->html != NULL && kiln__plot_page(c, &page, o->html) != CLI_OK)
    return CLI_FAILED;
  return kiln__plot_write(c, figure, o->plot, NULL, false);
}

/* Returns whether a document has any measured row. */
static bool has_rows(const cJSON *json)
{
  const cJSON *member;

  cJSON_ArrayForEach(member, json)
  {
    if (cJSON_IsArray(member) && cJSON_GetArraySize(member) > 0)
      return true;
  }
  return false;
}

int kiln__bench_end(cli *c, const bench_options *o, int rc, cJSON *json)
{
  const bool write = o->json != NULL && (rc == CLI_OK || has_rows(json));
  int drawn = CLI_OK;

  if (rc == CLI_OK && (o->plot != NULL || o->html != NULL))
    drawn = draw(c, o, json, kiln__cli_text(c, "kiln %s", c->name));
  if (write && kiln__cli_json(c, json, o->json) != CLI_OK)
    return CLI_FAILED;
  if (!write)
    cJSON_Delete(json);
  return rc == CLI_OK ? drawn : rc;
}

int kiln__bench_draw(cli *c, int argc, char **argv)
{
  bench_options o = {0};
  const cli_option options[] = {BENCH_OPTION_PICTURES(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench draw RESULTS.json --plot FILE|--html FILE\n",
      .about = "Draws results that a benchmark wrote with --json, here or on "
               "another machine.",
      .options = options,
      .example = "kiln bench draw scan.json --plot scan.svg --html scan.html",
      .least = 1,
      .most = 1,
      .missing = "name one file that --json wrote"};
  cli_words words;
  cJSON *json;
  char *text;
  size_t size;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if (o.plot == NULL && o.html == NULL)
    return kiln__cli_usage(c, "name a picture with --plot or --html");
  text = kiln__cli_read(c, words.at[0], CLI_MOST_TEXT, &size);
  if (text == NULL)
    return CLI_FAILED;
  json = cJSON_Parse(text);
  if (!cJSON_IsObject(json)) {
    kiln__cli_message(c, "write one with kiln bench ... --json FILE",
                      "'%s' holds no results", words.at[0]);
    rc = CLI_FAILED;
  } else {
    rc = draw(c, &o, json, words.at[0]);
  }
  cJSON_Delete(json);
  return rc;
}
