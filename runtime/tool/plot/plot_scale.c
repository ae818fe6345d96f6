/* plot_scale.c -- chooses the interval and the ticks of an axis.
 *
 * Ticks must stand at numbers that a reader can halve and add in the head. On a
 * linear axis they are multiples of 1, 2 or 5 times a power of ten, or of a
 * power of two for sizes that hardware counts by powers of two. On a
 * logarithmic axis they are powers of the base; a short axis of base 10 also
 * has 2 and 5 times each power. The step is the smallest that gives no more
 * ticks than wanted, and the axis ends at ticks, so that no curve touches a
 * corner without a label. */
#include "tool/plot/plot.h"

#include <math.h>

enum { SHORT = 4 /* a logarithmic axis shows at least this factor */ };

/* Returns the smallest round step that is not below `least`. */
static double round_step(double least, bool binary)
{
  static const double parts[] = {1, 2, 5, 10};
  double power;

  if (binary)
    return exp2(ceil(log2(least) - 1e-9));
  power = pow(10, floor(log10(least) + 1e-9));
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (parts[i] * power >= least * (1 - 1e-9))
      return parts[i] * power;
  return 10 * power;
}

static void add_tick(plot_scale *s, double value)
{
  if (s->n < PLOT_MOST_TICKS)
    s->ticks[s->n++] = fabs(value) > 0 ? value : 0; /* and not -0 */
}

static void linear(plot_scale *s, const plot_axis *axis, unsigned wanted)
{
  const bool given = axis->to > axis->from;
  const double span = s->to - s->from;
  const double step = round_step(span / wanted, axis->binary);
  int k;

  if (!given) {
    s->from = floor(s->from / step + 1e-9) * step;
    s->to = ceil(s->to / step - 1e-9) * step;
  }
  k = (int)ceil(s->from / step - 1e-9);
  for (; k * step <= s->to + step * 1e-6 && s->n < PLOT_MOST_TICKS; k++)
    add_tick(s, k * step);
}

/* Returns whether the scale shows the value. */
static bool shows(const plot_scale *s, double value)
{
  return value >= s->from * (1 - 1e-9) && value <= s->to * (1 + 1e-9);
}

/* Adds ticks at every `stride`-th power of the base. */
static void add_powers(plot_scale *s, int stride)
{
  const int low = (int)ceil(log(s->from) / log(s->base) - 1e-9);
  const int high = (int)floor(log(s->to) / log(s->base) + 1e-9);

  for (int k = low; k <= high; k++)
    if (k % stride == 0)
      add_tick(s, pow(s->base, k));
}

/* Adds ticks at 1, 2 and 5 times each power of ten. */
static void add_thirds(plot_scale *s)
{
  static const double parts[] = {1, 2, 5};

  for (int k = (int)floor(log10(s->from)); pow(10, k) <= s->to; k++)
    for (size_t i = 0; i < 3; i++)
      if (shows(s, parts[i] * pow(10, k)))
        add_tick(s, parts[i] * pow(10, k));
}

/* Moves a value of a logarithmic axis outwards to a round number. */
static double outwards(double value, int base, bool up)
{
  static const double parts[] = {1, 2, 5, 10};
  const double power =
      pow(base, floor(log(value) / log(base) + (up ? -1e-9 : 1e-9)));
  double best = power;

  if (base == 2)
    return up ? power * 2 : power;
  for (size_t i = 0; i < 4; i++) {
    const double here = parts[i] * power;

    if (up && here >= value * (1 - 1e-9))
      return here;
    if (!up && here <= value * (1 + 1e-9))
      best = here;
  }
  return up ? power * 10 : best;
}

static void logarithmic(plot_scale *s, const plot_axis *axis, unsigned wanted)
{
  double spans;
  int stride = 1;

  if (!(axis->to > axis->from)) {
    s->from = outwards(s->from, s->base, false);
    s->to = outwards(s->to, s->base, true);
  }
  spans = log(s->to / s->from) / log(s->base);
  while (spans / stride > wanted)
    stride++;
  if (s->base == 10 && spans * 3 <= wanted + 2)
    add_thirds(s);
  else
    add_powers(s, stride);
}

void kiln__plot_scale(plot_scale *out, const plot_axis *axis, double least,
                      double most, unsigned wanted)
{
  const bool given = axis->to > axis->from;
  *out = (plot_scale){.base = axis->base,
                      .from = given ? axis->from : least,
                      .to = given ? axis->to : most};
  if (!isfinite(out->from) || !isfinite(out->to) ||
      (out->base != 0 && out->from <= 0)) {
    out->from = 1;
    out->to = 10;
  }
  if (!(out->to > out->from))
    out->to = out->from > 0 ? out->from * 2 : out->from + 1;
  if (out->base != 0)
    logarithmic(out, axis, wanted);
  else
    linear(out, axis, wanted);
}

double kiln__plot_at(const plot_scale *s, double value)
{
  if (s->base == 0)
    return (value - s->from) / (s->to - s->from);
  return value > 0 ? log(value / s->from) / log(s->to / s->from) : NAN;
}

/* Formats an integer with commas between groups of three digits. */
static const char *grouped(cli *c, double value)
{
  const char *digits = kiln__cli_text(c, "%.0f", fabs(value));
  const char *out = value < 0 ? "-" : "";
  size_t left = 0;

  while (digits[left] != '\0')
    left++;
  for (; left > 0; left--, digits++)
    out = kiln__cli_text(c, "%s%c%s", out, *digits,
                         left % 3 == 1 && left > 1 ? "," : "");
  return out;
}

const char *kiln__plot_number(cli *c, double value, int base)
{
  static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti"};
  static const char *const decimal[] = {"", "k", "M", "G", "T"};
  const double unit = base == 2 ? 1024 : 1000;
  double rest = value;
  size_t i = 0;

  /* An axis without a base has exact numbers as long as they are short. */
  if (base == 0 && fabs(value) < 1e7)
    rest = 0;
  while (i < 4 && fabs(rest) >= unit * 0.9995 &&
         fabs(value) >= (base == 2 ? 16384 : 9999.5)) {
    rest /= unit;
    i++;
  }
  if (i > 0)
    return kiln__cli_text(c, "%.4g%s", rest,
                          base == 2 ? binary[i] : decimal[i]);
  if (fabs(value) >= 1000 && fabs(value - round(value)) < 1e-6)
    return grouped(c, value);
  return kiln__cli_text(c, "%.4g", value);
}

const char *kiln__plot_brief(cli *c, double value)
{
  const double size = fabs(value);
  double power;

  if (!isfinite(value) || size < 1000)
    return kiln__cli_text(c, "%.3g", value);
  power = pow(10, floor(log10(size)) - 2);
  return kiln__plot_number(c, round(value / power) * power, 10);
}

/* ---- The values of a panel ---------------------------------------------- */

typedef struct range {
  double least, most;
} range;

/* Returns the axis to use for values of a range. If values on an axis of base 10
 * differ little, the axis becomes linear. */
static plot_axis suited(const plot_axis *axis, const range *r)
{
  plot_axis out = *axis;

  if (axis->base == 10 && axis->to <= axis->from && r->least > 0 &&
      r->most < SHORT * r->least)
    out.base = 0;
  return out;
}

static void widen(range *r, double value, int base)
{
  if (!isfinite(value) || (base != 0 && value <= 0))
    return;
  r->least = fmin(r->least, value);
  r->most = fmax(r->most, value);
}

void kiln__plot_scales(const plot *p, plot_scale *x, plot_scale *y,
                       unsigned x_ticks, unsigned y_ticks)
{
  range across = {INFINITY, -INFINITY}, up = across;
  plot_axis y_axis;

  for (size_t i = 0; i < p->n_series; i++) {
    const plot_series *s = &p->series[i];

    for (size_t k = 0; k < s->n; k++) {
      if (!isfinite(s->y[k]))
        continue;
      widen(&across, s->x[k], p->x.base);
      widen(&up, s->y[k], p->y.base);
    }
  }
  y_axis = suited(&p->y, &up);
  /* A linear axis of amounts starts at 0: half the height is half the value. */
  if (y_axis.base == 0 && up.least > 0)
    up.least = 0;
  kiln__plot_scale(x, &p->x, across.least, across.most, x_ticks);
  kiln__plot_scale(y, &y_axis, up.least, up.most, y_ticks);
}

void kiln__plot_values(const plot *p, plot_scale *out, unsigned ticks)
{
  const plot_axis *axis = p->kind == PLOT_HEAT ? &p->z : &p->x;
  range r = {INFINITY, -INFINITY};
  plot_axis scaled;

  if (p->kind == PLOT_HEAT) {
    for (size_t i = 0; i < p->x.n_names * p->y.n_names; i++)
      widen(&r, p->cells[i], axis->base);
  } else {
    for (size_t i = 0; i < p->n_series; i++)
      for (size_t k = 0; k < p->series[i].n; k++)
        widen(&r, p->series[i].y[k], axis->base);
    if (axis->base == 0 && r.least > 0)
      r.least = 0;
  }
  scaled = suited(axis, &r);
  kiln__plot_scale(out, &scaled, r.least, r.most, ticks);
}
