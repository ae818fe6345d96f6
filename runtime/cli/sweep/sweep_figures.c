/* sweep_figures.c -- the pictures of a sweep.
 *
 * A sweep may have more axes than a picture. Time, instructions and occupancy
 * are drawn over the block size if it varies, with a line per register limit.
 * Registers and spills do not depend on how a kernel is launched, so they are
 * drawn over the axes of the compiler alone. If further axes vary, each of their
 * combinations has panels of its own as long as they are few. Otherwise, of all
 * settings that fall on one point, the picture shows the best. */
#include "cli/sweep/sweep.h"

#include <math.h>

enum {
  MOST_LINES = 12,
  MOST_CELLS = 4096, /* of a heat map */
  MOST_GROUPS = 6,   /* combinations of further axes with their own panels */
  MOST_PANELS = 3 * 6 * 2,
  NO_AXIS = SWEEP_MOST_AXES
};

#define ANY_VALUE SIZE_MAX

/* What a panel shows. */
typedef struct quantity {
  const char *title, *label;
  double (*of)(const sweep_row *);
  bool least;    /* the best is the least value */
  bool compiled; /* the value does not depend on how the kernel is launched */
  int base;
} quantity;

/* The axes of a panel, and the settings that belong to it: `fixed` is the index
 * of the value of each axis, or ANY_VALUE. */
typedef struct view {
  size_t across, lines; /* `lines` may be NO_AXIS */
  size_t fixed[SWEEP_MOST_AXES];
} view;

static double time_of(const sweep_row *row)
{
  return row->timed ? row->ms * 1e3 : NAN;
}

static double instructions_of(const sweep_row *row)
{
  return row->counted ? row->instructions : NAN;
}

static double occupancy_of(const sweep_row *row)
{
  return row->occupancy * 100;
}

static double registers_of(const sweep_row *row)
{
  return row->resources.registers;
}

static double spills_of(const sweep_row *row)
{
  return (double)row->resources.spill_stores + row->resources.spill_loads;
}

static const quantity quantities[] = {
    {"Time", "time (us)", time_of, true, false, 10},
    {"Instructions", "warp instructions", instructions_of, true, false, 10},
    {"Occupancy", "occupancy (%)", occupancy_of, false, false, 0},
    {"Registers", "registers per thread", registers_of, true, true, 0},
    {"Spills", "bytes stored and loaded per thread", spills_of, true, true, 0},
};

enum { N_QUANTITIES = sizeof quantities / sizeof quantities[0] };

/* Returns the value of a quantity in a row, or NaN if the setting failed. */
static double value_of(const quantity *q, const sweep_row *row)
{
  return row->reason == NULL && row->resources_known ? q->of(row) : NAN;
}

/* ---- Choosing axes ------------------------------------------------------ */

/* Returns whether all values of an axis are numbers. */
static bool is_numeric(const sweep *s, size_t axis)
{
  for (size_t i = 0; i < s->n_rows; i++)
    if (!isfinite(kiln__sweep_number(s, &s->rows[i], axis)))
      return false;
  return true;
}

/* Returns the first axis that varies and is not `other`: one of the given kind
 * if there is one. `compiled` admits only axes of the compiler. Returns NO_AXIS
 * if there is none. */
static size_t find_axis(const sweep *s, sweep_kind kind, size_t other,
                        bool numeric, bool compiled)
{
  size_t found = NO_AXIS;

  for (size_t i = s->n_axes; i > 0; i--) {
    const size_t axis = i - 1;

    if (axis == other || !kiln__sweep_varies(s, axis) ||
        (numeric && !is_numeric(s, axis)) ||
        (compiled && !kiln__sweep_compiled(s, axis)))
      continue;
    if (s->axes[axis].kind == kind)
      return axis;
    found = axis;
  }
  return found;
}

/* Returns the label of an axis, with its unit. */
static const char *label_of(const sweep_axis *axis)
{
  static const char *const labels[] = {
      [SWEEP_BLOCK] = "threads per block",
      [SWEEP_GRID] = "blocks per grid",
      [SWEEP_MAXREG] = "limit of registers per thread",
      [SWEEP_SMEM] = "dynamic shared memory per block (bytes)"};

  return axis->kind == SWEEP_DEFINE ? axis->name : labels[axis->kind];
}

/* ---- Data --------------------------------------------------------------- */

/* Returns whether a row belongs to a view. */
static bool is_seen(const sweep *s, const view *v, const sweep_row *row)
{
  for (size_t i = 0; i < s->n_axes; i++)
    if (v->fixed[i] != ANY_VALUE && v->fixed[i] != row->at[i])
      return false;
  return true;
}

/* Returns the best value of a quantity over the rows with the x-th value of the
 * horizontal axis and the y-th value of the axis of the lines. */
static double best_at(const sweep *s, const quantity *q, const view *v,
                      size_t x, size_t y)
{
  double best = NAN;

  for (size_t i = 0; i < s->n_done; i++) {
    const sweep_row *row = &s->rows[i];
    const double value = value_of(q, row);

    if (row->at[v->across] != x || !is_seen(s, v, row) ||
        (v->lines != NO_AXIS && row->at[v->lines] != y) || !isfinite(value))
      continue;
    if (!isfinite(best) || (q->least ? value < best : value > best))
      best = value;
  }
  return best;
}

/* Returns the number that the x-th value of an axis stands for. */
static double number_at(const sweep *s, size_t axis, size_t x)
{
  for (size_t i = 0; i < s->n_rows; i++)
    if (s->rows[i].at[axis] == x)
      return kiln__sweep_number(s, &s->rows[i], axis);
  return NAN;
}

/* Sorts the points of a line by their numbers. */
static void sort_points(double *xs, double *ys, size_t n)
{
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && xs[k] < xs[k - 1]; k--) {
      const double x = xs[k], y = ys[k];

      xs[k] = xs[k - 1];
      ys[k] = ys[k - 1];
      xs[k - 1] = x;
      ys[k - 1] = y;
    }
}

static void fill_line(const sweep *s, const quantity *q, const view *v,
                      size_t y, plot_series *out)
{
  const size_t n = s->axes[v->across].n;
  double *xs = kiln__cli_alloc(s->c, n, sizeof *xs);
  double *ys = kiln__cli_alloc(s->c, n, sizeof *ys);

  for (size_t i = 0; i < n; i++) {
    xs[i] = number_at(s, v->across, i);
    ys[i] = best_at(s, q, v, i, y);
  }
  sort_points(xs, ys, n);
  *out = (plot_series){.x = xs, .y = ys, .n = n, .color = (unsigned)y};
  if (v->lines != NO_AXIS)
    out->name = kiln__cli_text(s->c, "%s %s", s->axes[v->lines].name,
                               s->axes[v->lines].values[y]);
}

/* Returns whether the numbers of a line grow by factors rather than steps. */
static bool is_doubling(const plot_series *line)
{
  const size_t n = line->n;

  return n > 2 && line->x[0] > 0 && line->x[n - 1] >= 4 * line->x[0] &&
         line->x[1] >= 1.5 * line->x[0];
}

/* Returns the title of a panel: the quantity, and the values that are fixed. */
static const char *title_of(const sweep *s, const quantity *q, const view *v)
{
  const char *out = q->title, *comma = ": ";

  for (size_t i = 0; i < s->n_axes; i++)
    if (v->fixed[i] != ANY_VALUE) {
      out = kiln__cli_text(s->c, "%s%s%s %s", out, comma, s->axes[i].name,
                           s->axes[i].values[v->fixed[i]]);
      comma = ", ";
    }
  return out;
}

static void fill_curves(const sweep *s, const quantity *q, const view *v,
                        plot *out)
{
  const size_t n = v->lines == NO_AXIS                ? 1
                   : s->axes[v->lines].n < MOST_LINES ? s->axes[v->lines].n
                                                      : MOST_LINES;
  plot_series *series = kiln__cli_alloc(s->c, n, sizeof *series);

  for (size_t y = 0; y < n; y++)
    fill_line(s, q, v, y, &series[y]);
  *out = (plot){.kind = PLOT_CURVES,
                .title = title_of(s, q, v),
                .x = {.label = label_of(&s->axes[v->across]),
                      .base = is_doubling(&series[0]) ? 2 : 0,
                      .binary = true},
                .y = {.label = q->label, .base = q->base},
                .series = series,
                .n_series = n};
}

static void fill_heat(const sweep *s, const quantity *q, const view *v,
                      plot *out)
{
  const sweep_axis *x = &s->axes[v->across], *y = &s->axes[v->lines];
  double *cells = kiln__cli_alloc(s->c, x->n * y->n, sizeof *cells);

  for (size_t row = 0; row < y->n; row++)
    for (size_t i = 0; i < x->n; i++)
      cells[row * x->n + i] = best_at(s, q, v, i, row);
  *out =
      (plot){.kind = PLOT_HEAT,
             .title = title_of(s, q, v),
             .x = {.label = label_of(x), .names = x->values, .n_names = x->n},
             .y = {.label = y->name, .names = y->values, .n_names = y->n},
             .z = {.label = q->label, .base = q->base},
             .cells = cells};
}

/* Returns whether a quantity has anything to show. Registers and spills that are
 * the same for all settings are left to the table. */
static bool is_worth_showing(const sweep *s, const quantity *q)
{
  double first = NAN;

  for (size_t i = 0; i < s->n_done; i++) {
    const double value = value_of(q, &s->rows[i]);

    if (!isfinite(value))
      continue;
    if (!q->compiled || (isfinite(first) && fabs(value - first) > 1e-12))
      return true;
    first = value;
  }
  return false;
}

/* ---- Panels ------------------------------------------------------------- */

/* Chooses the axes of the panels of a quantity. @return false if none suits */
static bool choose_axes(const sweep *s, const quantity *q, view *v)
{
  v->across = find_axis(s, q->compiled ? SWEEP_MAXREG : SWEEP_BLOCK, NO_AXIS,
                        true, q->compiled);
  if (v->across == NO_AXIS)
    return false;
  v->lines = find_axis(s, q->compiled ? SWEEP_DEFINE : SWEEP_MAXREG, v->across,
                       false, q->compiled);
  return true;
}

/* Returns the number of combinations of the axes that the view leaves open, and
 * that matter to the quantity. */
static size_t groups_of(const sweep *s, const quantity *q, const view *v)
{
  size_t n = 1;

  for (size_t i = 0; i < s->n_axes; i++)
    if (i != v->across && i != v->lines &&
        (!q->compiled || kiln__sweep_compiled(s, i)))
      n *= s->axes[i].n;
  return n;
}

/* Fixes the open axes of a view at their combination with this number. */
static void fix_group(const sweep *s, const quantity *q, view *v, size_t number)
{
  for (size_t i = s->n_axes; i > 0; i--) {
    const size_t axis = i - 1;

    if (axis == v->across || axis == v->lines || !kiln__sweep_varies(s, axis) ||
        (q->compiled && !kiln__sweep_compiled(s, axis)))
      continue;
    v->fixed[axis] = number % s->axes[axis].n;
    number /= s->axes[axis].n;
  }
}

/* Returns whether a heat map of the view can be read. */
static bool has_cells(const sweep *s, const view *v)
{
  return v->lines != NO_AXIS &&
         s->axes[v->across].n * s->axes[v->lines].n <= MOST_CELLS;
}

/* Adds the panels of a quantity to a figure: curves, and a heat map of times or
 * instructions if two axes vary. */
static void add_panels(const sweep *s, const quantity *q, plot *plots,
                       plot_figure *figure)
{
  view v = {.lines = NO_AXIS};
  size_t groups;

  if (!choose_axes(s, q, &v))
    return;
  groups = groups_of(s, q, &v);
  for (size_t i = 0; i < (groups <= MOST_GROUPS ? groups : 1); i++) {
    for (size_t k = 0; k < s->n_axes; k++)
      v.fixed[k] = ANY_VALUE;
    if (groups <= MOST_GROUPS)
      fix_group(s, q, &v, i);
    if (q->base != 0 && has_cells(s, &v) && figure->n < MOST_PANELS)
      fill_heat(s, q, &v, &plots[figure->n++]);
    if (figure->n < MOST_PANELS)
      fill_curves(s, q, &v, &plots[figure->n++]);
  }
}

const plot_figure *kiln__sweep_figure(const sweep *s)
{
  plot_figure *figure = kiln__cli_alloc(s->c, 1, sizeof *figure);
  plot *plots = kiln__cli_alloc(s->c, MOST_PANELS, sizeof *plots);

  *figure = (plot_figure){
      .title = kiln__cli_text(s->c, "Sweep of %s", s->program.label),
      .note = kiln__cli_text(s->c,
                             "%zu settings%s%s; gaps are settings that "
                             "failed",
                             s->n_done, s->device_name != NULL ? " on " : "",
                             s->device_name != NULL ? s->device_name : ""),
      .plots = plots,
      .columns = 2};
  for (size_t i = 0; i < N_QUANTITIES; i++)
    if (is_worth_showing(s, &quantities[i]))
      add_panels(s, &quantities[i], plots, figure);
  return figure->n > 0 ? figure : NULL;
}
