/* plot_svg.c -- draws figures as SVG.
 *
 * A panel is laid out from the outside inwards: title and y label above, ticks
 * and x label below, tick labels to the left, the legend to the right. What is
 * left is the frame of the data, so nothing can cover the data. Widths of texts
 * are estimates, since nobody knows the reader's font; they are generous.
 *
 * Colours are classes of a style sheet and not attributes. A reader's dark
 * setting, or a page around the picture, can therefore change them. The eight
 * colours of series differ in lightness as well as in hue (after Okabe and Ito,
 * "Color Universal Design", 2008), and those of heat maps grow lighter from low
 * to high, so that both work without full colour vision and in print. */
#include "tool/plot/plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
  N_COLORS = 8,
  CHAR = 7,            /* estimated width of a character, in pixels */
  GAP = 28,            /* distance of panels */
  TITLE = 26,          /* height of the title of a panel */
  ABOVE = 24,          /* height of the label of the y axis */
  BELOW = 44,          /* height of the ticks and the label of the x axis */
  LINE = 19,           /* height of a line of the legend */
  SWATCH = 30,         /* width of a line's sample in the legend */
  BAR = 14,            /* height of a bar */
  RAMP = 12,           /* width of the colour scale of a heat map */
  MOST_TOOLTIPS = 4000 /* points of a panel with a text of their own */
};

/* Colours of one theme: background, text, weaker text, grid, axis, series. */
typedef struct palette {
  const char *back, *text, *weak, *grid, *axis;
  const char *series[N_COLORS];
} palette;

static const palette palettes[] = {
    {"#ffffff",
     "#1f2328",
     "#59636e",
     "#e4e7eb",
     "#9aa3ad",
     {"#0072b2", "#d55e00", "#009e73", "#b6508f", "#b37d00", "#3d9bd6",
      "#6b5ca5", "#6e7781"}},
    {"#14181d",
     "#e6e9ed",
     "#9da7b1",
     "#2a3138",
     "#67717b",
     {"#4aa8e0", "#ff8a4c", "#2cc79b", "#e39cc4", "#f2b84b", "#9bd4f5",
      "#a99be0", "#b0b8c0"}},
};

typedef struct drawing {
  cli *c;
  FILE *out;
} drawing;

/* The frame of the data of one panel, in pixels, and its scales. */
typedef struct frame {
  double left, top, width, height;
  plot_scale x, y;
} frame;

/* ---- Text --------------------------------------------------------------- */

void kiln__plot_escape(FILE *out, const char *text)
{
  while (*text != '\0') {
    bool control = false;
    const size_t n = kiln__cli_utf8(text, &control);

    if (n == 0 || control)
      fputs("\xef\xbf\xbd", out);
    else if (*text == '&')
      fputs("&amp;", out);
    else if (*text == '<')
      fputs("&lt;", out);
    else if (*text == '>')
      fputs("&gt;", out);
    else if (*text == '"')
      fputs("&quot;", out);
    else
      fwrite(text, 1, n, out);
    text += n == 0 ? 1 : n;
  }
}

/* Writes a text element. `anchor` is "start", "middle" or "end". */
static void put_text(const drawing *d, const char *class, double x, double y,
                     const char *anchor, const char *text)
{
  fprintf(d->out,
          "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class,
          x, y, anchor);
  kiln__plot_escape(d->out, text);
  fputs("</text>\n", d->out);
}

static void put_line(const drawing *d, const char *class, double x1, double y1,
                     double x2, double y2)
{
  fprintf(d->out,
          "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
          "y2=\"%.1f\"/>\n",
          class, x1, y1, x2, y2);
}

static double width_of(const char *text)
{
  return text == NULL ? 0 : (double)kiln__cli_columns(text) * CHAR;
}

/* Returns the text, cut with an ellipsis if it is wider than `width` pixels. */
static const char *fit(cli *c, const char *text, double width)
{
  const size_t most = (size_t)fmax(width / CHAR, 4);
  const char *end = text;
  bool control;

  if (kiln__cli_columns(text) <= most)
    return text;
  for (size_t i = 0; i + 1 < most && *end != '\0'; i++) {
    const size_t n = kiln__cli_utf8(end, &control);

    end += n == 0 ? 1 : n;
  }
  return kiln__cli_text(c, "%.*s\xe2\x80\xa6", (int)(end - text), text);
}

/* ---- Style -------------------------------------------------------------- */

static void put_palette(FILE *out, const palette *p)
{
  fprintf(out,
          ".kp-back{fill:%s}.kp text{fill:%s}.kp .kp-weak{fill:%s}"
          ".kp-grid{stroke:%s}.kp-axis{stroke:%s}.kp-none{fill:%s}\n",
          p->back, p->text, p->weak, p->grid, p->axis, p->grid);
  for (unsigned i = 0; i < N_COLORS; i++)
    fprintf(out, ".kp-s%u{stroke:%s}.kp-f%u{fill:%s}", i, p->series[i], i,
            p->series[i]);
  fprintf(out, "\n.kp-mark{fill:%s;stroke:%s;stroke-width:2.5}\n", p->back,
          p->series[1]);
}

void kiln__plot_css(FILE *out, plot_theme theme)
{
  fputs(".kp text{font:12px system-ui,-apple-system,\"Segoe UI\","
        "\"DejaVu Sans\",sans-serif}\n"
        ".kp .kp-title{font-size:14px;font-weight:600}\n"
        ".kp .kp-head{font-size:17px;font-weight:600}\n"
        ".kp .kp-cell{font-size:11px}\n"
        ".kp .kp-cell-dark{fill:#000}.kp .kp-cell-light{fill:#fff}\n"
        ".kp-line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
        ".kp-dash{stroke-dasharray:6 4}\n"
        ".kp-ceiling{stroke-dasharray:2 3;stroke-width:1.5}\n"
        ".kp-grid,.kp-axis{stroke-width:1;fill:none}\n",
        out);
  put_palette(out, &palettes[theme == PLOT_DARK ? 1 : 0]);
  if (theme == PLOT_AUTO) {
    fputs("@media screen and (prefers-color-scheme:dark){\n", out);
    put_palette(out, &palettes[1]);
    fputs("}\n", out);
  }
}

/* ---- Layout ------------------------------------------------------------- */

static double panel_width(const plot_figure *f)
{
  return f->columns <= 1 ? 900 : f->columns == 2 ? 596 : 388;
}

static double panel_height(const plot_figure *f, const plot *p)
{
  const double extra = TITLE + ABOVE + BELOW;
  double rows = 0;

  if (p->kind == PLOT_HEAT)
    return extra + fmax(4, (double)p->y.n_names) * 26;
  if (p->kind == PLOT_BARS)
    return extra + (double)p->y.n_names *
                       ((double)p->n_series * BAR + (p->n_series > 1 ? 12 : 8));
  for (size_t i = 0; i < p->n_series; i++)
    rows += p->series[i].name != NULL ? 1 : 0;
  return fmax(f->columns <= 1 ? 440 : 310, extra + (rows + 1) * LINE);
}

static double row_height(const plot_figure *f, size_t first)
{
  const size_t columns = f->columns == 0 ? 1 : f->columns;
  double most = 0;

  for (size_t i = first; i < f->n && i < first + columns; i++)
    most = fmax(most, panel_height(f, &f->plots[i]));
  return most;
}

/* Returns the width of the legend, at most a third of the panel. */
static double legend_width(const plot *p, double panel)
{
  double most = 0;

  for (size_t i = 0; i < p->n_series; i++)
    if (p->series[i].name != NULL)
      most = fmax(most, width_of(p->series[i].name) + SWATCH + 14);
  return fmin(most, panel / 3);
}

/* Returns the width of the widest tick label. */
static double ticks_width(const drawing *d, const plot_scale *s)
{
  double most = 0;

  for (size_t i = 0; i < s->n; i++)
    most = fmax(most, width_of(kiln__plot_number(d->c, s->ticks[i], s->base)));
  return most;
}

/* Returns the width of the widest name of an axis, at most `limit`. */
static double names_width(const plot_axis *axis, double limit)
{
  double most = 0;

  for (size_t i = 0; i < axis->n_names; i++)
    most = fmax(most, width_of(axis->names[i]));
  return fmin(most, limit);
}

/* ---- Axes --------------------------------------------------------------- */

static void put_x_axis(const drawing *d, const frame *f, const plot_axis *axis)
{
  const double bottom = f->top + f->height;

  for (size_t i = 0; i < f->x.n; i++) {
    const double x = f->left + kiln__plot_at(&f->x, f->x.ticks[i]) * f->width;

    put_line(d, "kp-grid", x, f->top, x, bottom);
    put_text(d, "kp-weak", x, bottom + 16, "middle",
             kiln__plot_number(d->c, f->x.ticks[i], f->x.base));
  }
  put_line(d, "kp-axis", f->left, bottom, f->left + f->width, bottom);
  if (axis->label != NULL)
    put_text(d, "kp-weak", f->left + f->width / 2, bottom + 35, "middle",
             axis->label);
}

static void put_y_axis(const drawing *d, const frame *f, const plot_axis *axis)
{
  for (size_t i = 0; i < f->y.n; i++) {
    const double y =
        f->top + (1 - kiln__plot_at(&f->y, f->y.ticks[i])) * f->height;

    put_line(d, "kp-grid", f->left, y, f->left + f->width, y);
    put_text(d, "kp-weak", f->left - 7, y + 4, "end",
             kiln__plot_number(d->c, f->y.ticks[i], f->y.base));
  }
  if (axis->label != NULL)
    put_text(d, "kp-weak", f->left, f->top - 9, "start", axis->label);
}

/* ---- Curves ------------------------------------------------------------- */

/* A point in pixels relative to the frame. Returns false if it has no place. */
static bool place(const frame *f, const plot_series *s, size_t i, double *x,
                  double *y)
{
  *x = kiln__plot_at(&f->x, s->x[i]) * f->width;
  *y = (1 - kiln__plot_at(&f->y, s->y[i])) * f->height;
  return isfinite(*x) && isfinite(*y);
}

static const char *line_class(plot_line line)
{
  return line == PLOT_DASHED    ? " kp-dash"
         : line == PLOT_CEILING ? " kp-ceiling"
                                : "";
}

static void put_path(const drawing *d, const frame *f, const plot_series *s)
{
  bool drawing_line = false;
  double before = 0;

  fprintf(d->out, "<path class=\"kp-line kp-s%u%s\" d=\"", s->color % N_COLORS,
          line_class(s->line));
  for (size_t i = 0; i < s->n; i++) {
    double x, y;

    if (!place(f, s, i, &x, &y)) {
      drawing_line = false;
      continue;
    }
    if (drawing_line && s->line == PLOT_STEPS && fabs(y - before) > 0.01)
      fprintf(d->out, "L%.1f %.1f", x, before);
    fprintf(d->out, "%c%.1f %.1f", drawing_line ? 'L' : 'M', x, y);
    before = y;
    drawing_line = true;
  }
  fputs("\"/>\n", d->out);
}

/* Draws the dot of a point. The shape tells apart series of one colour. */
static void put_dot(const drawing *d, const plot_series *s, double x, double y,
                    const char *text)
{
  const unsigned color = s->color % N_COLORS;
  const bool square = s->color / N_COLORS % 2 == 1;

  if (square)
    fprintf(d->out,
            "<rect class=\"kp-f%u\" x=\"%.1f\" y=\"%.1f\" width=\"7\" "
            "height=\"7\">",
            color, x - 3.5, y - 3.5);
  else
    fprintf(d->out,
            "<circle class=\"kp-f%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", color,
            x, y, s->line == PLOT_DASHED ? "2.5" : "3.5");
  if (text != NULL) {
    fputs("<title>", d->out);
    kiln__plot_escape(d->out, text);
    fputs("</title>", d->out);
  }
  fputs(square ? "</rect>\n" : "</circle>\n", d->out);
}

static void put_dots(const drawing *d, const frame *f, const plot_series *s)
{
  if (s->line == PLOT_STEPS || s->line == PLOT_CEILING)
    return;
  for (size_t i = 0; i < s->n; i++) {
    double x, y;

    if (place(f, s, i, &x, &y))
      put_dot(d, s, x, y,
              s->n > MOST_TOOLTIPS
                  ? NULL
                  : kiln__cli_text(
                        d->c, "%s%s%s: %.4g", s->name != NULL ? s->name : "",
                        s->name != NULL ? ", " : "",
                        kiln__plot_number(d->c, s->x[i], f->x.base), s->y[i]));
  }
}

static void put_legend(const drawing *d, const plot *p, double width, double x,
                       double y)
{
  for (size_t i = 0; i < p->n_series; i++) {
    const plot_series *s = &p->series[i];

    if (s->name == NULL)
      continue;
    if (p->kind == PLOT_BARS) {
      fprintf(d->out,
              "<rect class=\"kp-f%u\" x=\"%.1f\" y=\"%.1f\" width=\"12\" "
              "height=\"12\"/>\n",
              s->color % N_COLORS, x + 8, y - 6);
    } else {
      fprintf(d->out,
              "<path class=\"kp-line kp-s%u%s\" d=\"M%.1f %.1fh%d\"/>\n",
              s->color % N_COLORS, line_class(s->line), x, y, SWATCH - 6);
      if (s->line != PLOT_STEPS && s->line != PLOT_CEILING)
        put_dot(d, s, x + (SWATCH - 6) / 2.0, y, NULL);
    }
    put_text(d, "kp-name", x + SWATCH, y + 4, "start",
             fit(d->c, s->name, width - SWATCH));
    y += LINE;
  }
}

/* Draws curves inside an element of their own, which clips them. */
static void put_curves(const drawing *d, const plot *p, const frame *f)
{
  const double pad = 8;

  put_x_axis(d, f, &p->x);
  put_y_axis(d, f, &p->y);
  fprintf(d->out,
          "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
          "viewBox=\"%.1f %.1f %.1f %.1f\">\n",
          f->left - pad, f->top - pad, f->width + 2 * pad, f->height + 2 * pad,
          -pad, -pad, f->width + 2 * pad, f->height + 2 * pad);
  for (size_t i = 0; i < p->n_series; i++)
    put_path(d, f, &p->series[i]);
  for (size_t i = 0; i < p->n_series; i++)
    put_dots(d, f, &p->series[i]);
  if (p->marked) {
    const plot_series at = {.x = &p->mark_x, .y = &p->mark_y, .n = 1};
    double x, y;

    if (place(f, &at, 0, &x, &y))
      fprintf(d->out,
              "<circle class=\"kp-mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\"/>\n",
              x, y);
  }
  fputs("</svg>\n", d->out);
}

static void draw_curves(const drawing *d, const plot *p, frame *f)
{
  const double legend = legend_width(p, f->width), right = f->left + f->width;
  double labels;

  kiln__plot_scales(p, &f->x, &f->y, (unsigned)((f->width - legend) / 70),
                    (unsigned)(f->height / 38));
  labels = ticks_width(d, &f->y) + 10;
  f->left += labels;
  f->width = right - f->left - (legend > 0 ? legend + 18 : 14);
  put_curves(d, p, f);
  put_legend(d, p, legend, right - legend, f->top + 8);
}

/* ---- Bars --------------------------------------------------------------- */

static void put_bar(const drawing *d, const frame *f, const plot_series *s,
                    size_t i, double y)
{
  const double value = s->y[i];
  const double at = kiln__plot_at(&f->x, value);

  if (!isfinite(at)) {
    put_text(d, "kp-weak", f->left + 4, y + BAR - 3, "start", "-");
    return;
  }
  fprintf(d->out,
          "<rect class=\"kp-f%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
          "height=\"%d\"/>\n",
          s->color % N_COLORS, f->left, y, fmax(at, 0) * f->width, BAR - 2);
  put_text(d, "kp-cell", f->left + fmax(at, 0) * f->width + 5, y + BAR - 4,
           "start", kiln__plot_brief(d->c, value));
}

static void draw_bars(const drawing *d, const plot *p, frame *f)
{
  const double legend = legend_width(p, f->width), right = f->left + f->width;
  const double names = names_width(&p->y, f->width * 0.4);
  const double labels = names + 14;
  const double group = f->height / (double)p->y.n_names;

  f->left += labels;
  f->width = right - f->left - (legend > 0 ? legend + 18 : 14);
  kiln__plot_values(p, &f->x, (unsigned)(f->width / 80));
  f->width -= 40; /* room for the number behind the longest bar */
  put_x_axis(d, f, &p->x);
  for (size_t i = 0; i < p->y.n_names; i++) {
    const double top = f->top + (double)i * group;
    const double block = (double)p->n_series * BAR;

    put_text(d, "kp-name", f->left - 8, top + group / 2 + 4, "end",
             fit(d->c, p->y.names[i], names));
    for (size_t k = 0; k < p->n_series; k++)
      if (i < p->series[k].n)
        put_bar(d, f, &p->series[k], i,
                top + (group - block) / 2 + (double)k * BAR);
  }
  put_line(d, "kp-axis", f->left, f->top, f->left, f->top + f->height);
  put_legend(d, p, legend, right - legend, f->top + 8);
}

/* ---- Heat maps ---------------------------------------------------------- */

/* Nine colours from dark to light whose lightness grows evenly. */
static const unsigned heat_colors[] = {0x440154, 0x472d7b, 0x3b528b,
                                       0x2c728e, 0x21918c, 0x28ae80,
                                       0x5ec962, 0xaddc30, 0xfde725};

enum { N_HEAT = sizeof heat_colors / sizeof heat_colors[0] };

unsigned kiln__plot_heat(double at)
{
  const double last = N_HEAT - 1;
  const double place = fmin(fmax(at, 0), 1) * last;
  const size_t i = (size_t)fmin(floor(place), last - 1);
  const double part = place - (double)i;
  unsigned out = 0;

  for (int shift = 16; shift >= 0; shift -= 8) {
    const double a = (heat_colors[i] >> shift) & 255;
    const double b = (heat_colors[i + 1] >> shift) & 255;

    out |= (unsigned)(a + (b - a) * part + 0.5) << shift;
  }
  return out;
}

static void put_ramp(const drawing *d, const plot *p, const plot_scale *z,
                     const frame *f)
{
  enum { PARTS = 32 };
  const double x = f->left + f->width + 22, part = f->height / PARTS;

  for (int i = 0; i < PARTS; i++)
    fprintf(d->out,
            "<rect x=\"%.1f\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
            "fill=\"#%06x\"/>\n",
            x, f->top + f->height - (i + 1) * part, RAMP, part + 0.5,
            kiln__plot_heat((i + 0.5) / PARTS));
  for (size_t i = 0; i < z->n; i++)
    put_text(d, "kp-weak", x + RAMP + 6,
             f->top + (1 - kiln__plot_at(z, z->ticks[i])) * f->height + 4,
             "start", kiln__plot_number(d->c, z->ticks[i], z->base));
  if (p->z.label != NULL)
    put_text(d, "kp-weak", x + RAMP, f->top - 9, "end", p->z.label);
}

static void put_cell(const drawing *d, const plot_scale *z, double value,
                     double x, double y, double w, double h)
{
  const double at = kiln__plot_at(z, value);
  const char *text = kiln__plot_brief(d->c, value);

  if (!isfinite(value) || !isfinite(at)) {
    fprintf(d->out,
            "<rect class=\"kp-none\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            x, y, w, h);
    return;
  }
  fprintf(d->out,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
          "fill=\"#%06x\"><title>%s</title></rect>\n",
          x, y, w, h, kiln__plot_heat(at), text);
  if (width_of(text) < w)
    put_text(d, at > 0.55 ? "kp-cell kp-cell-dark" : "kp-cell kp-cell-light",
             x + w / 2, y + h / 2 + 4, "middle", text);
}

/* Prints the names of the columns, leaving out names that do not fit. */
static void put_columns(const drawing *d, const plot *p, const frame *f)
{
  const double cell = f->width / (double)p->x.n_names;
  const double names = names_width(&p->x, f->width / 4);
  const size_t every = (size_t)fmax(1, ceil((names + 6) / cell));

  for (size_t i = 0; i < p->x.n_names; i += every)
    put_text(d, "kp-weak", f->left + ((double)i + 0.5) * cell,
             f->top + f->height + 16, "middle",
             fit(d->c, p->x.names[i], names));
  if (p->x.label != NULL)
    put_text(d, "kp-weak", f->left + f->width / 2, f->top + f->height + 35,
             "middle", p->x.label);
}

static void draw_heat(const drawing *d, const plot *p, frame *f)
{
  const double names = names_width(&p->y, f->width * 0.4);
  const double labels = names + 14;
  const double cell_h = f->height / (double)p->y.n_names;
  plot_scale z;

  kiln__plot_values(p, &z, (unsigned)fmax(3, f->height / 40));
  f->left += labels;
  f->width -= labels + ticks_width(d, &z) + RAMP + 40;
  for (size_t row = 0; row < p->y.n_names; row++) {
    const double cell_w = f->width / (double)p->x.n_names;
    const double y = f->top + (double)row * cell_h;

    put_text(d, "kp-weak", f->left - 8, y + cell_h / 2 + 4, "end",
             fit(d->c, p->y.names[row], names));
    for (size_t i = 0; i < p->x.n_names; i++)
      put_cell(d, &z, p->cells[row * p->x.n_names + i],
               f->left + (double)i * cell_w, y, cell_w - 1, cell_h - 1);
  }
  if (p->y.label != NULL)
    put_text(d, "kp-weak", f->left - labels, f->top - 9, "start", p->y.label);
  put_columns(d, p, f);
  put_ramp(d, p, &z, f);
}

/* ---- The figure --------------------------------------------------------- */

/* Returns the height of a panel in a row of panels. The cells of a heat map grow
 * to the height of their neighbours, within reason. */
static double height_in_row(const plot_figure *f, const plot *p, double row)
{
  const double own = panel_height(f, p);

  if (p->kind != PLOT_HEAT)
    return own;
  return fmax(own,
              fmin(row, TITLE + ABOVE + BELOW + 56.0 * (double)p->y.n_names));
}

static void draw_panel(const drawing *d, const plot_figure *figure,
                       const plot *p, double x, double y, double row)
{
  frame f = {.left = x,
             .top = y + TITLE + ABOVE,
             .width = panel_width(figure),
             .height = height_in_row(figure, p, row) - TITLE - ABOVE - BELOW};

  if (p->title != NULL)
    put_text(d, "kp-title", x, y + 15, "start",
             fit(d->c, p->title, f.width * 0.72));
  if (p->kind == PLOT_CURVES)
    draw_curves(d, p, &f);
  else if (p->y.n_names == 0)
    return;
  else if (p->kind == PLOT_BARS)
    draw_bars(d, p, &f);
  else
    draw_heat(d, p, &f);
}

static void draw_panels(const drawing *d, const plot_figure *f, double top)
{
  const size_t columns = f->columns == 0 ? 1 : f->columns;

  for (size_t i = 0; i < f->n; i += columns) {
    for (size_t k = 0; k < columns && i + k < f->n; k++)
      draw_panel(d, f, &f->plots[i + k],
                 GAP + (double)k * (panel_width(f) + GAP), top,
                 row_height(f, i));
    top += row_height(f, i) + GAP / 2.0;
  }
}

static void open_svg(const drawing *d, const plot_figure *f, int theme,
                     double width, double height)
{
  fprintf(d->out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"kp\" "
          "role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
          "%.0f\">\n",
          width, height, width, height);
  if (f->title != NULL) {
    fputs("<title>", d->out);
    kiln__plot_escape(d->out, f->title);
    fputs("</title>\n", d->out);
  }
  if (theme == PLOT_INLINE)
    return;
  fputs("<style>\n", d->out);
  kiln__plot_css(d->out, (plot_theme)theme);
  fputs("</style>\n<rect class=\"kp-back\" width=\"100%\" height=\"100%\"/>\n",
        d->out);
}

char *kiln__plot_svg(cli *c, const plot_figure *figure, int theme, size_t *size)
{
  const size_t columns = figure->columns == 0 ? 1 : figure->columns;
  /* The heading of a page stands for that of an element. */
  const bool titled = figure->title != NULL && theme != PLOT_INLINE;
  const double head = !titled ? GAP / 2.0 : figure->note == NULL ? 48 : 68;
  const double width = GAP + (double)columns * (panel_width(figure) + GAP);
  double height = head;
  char *text = NULL;
  drawing d = {.c = c};

  for (size_t i = 0; i < figure->n; i += columns)
    height += row_height(figure, i) + GAP / 2.0;
  d.out = open_memstream(&text, size);
  if (d.out == NULL) {
    kiln__cli_message(c, NULL, "there is no memory for a picture");
    return NULL;
  }
  open_svg(&d, figure, theme, width, height);
  if (titled)
    put_text(&d, "kp-head", GAP, 30, "start",
             fit(c, figure->title, width * 0.6));
  if (titled && figure->note != NULL)
    put_text(&d, "kp-weak", GAP, 51, "start",
             fit(c, figure->note, width * 0.85));
  draw_panels(&d, figure, head);
  fputs("</svg>\n", d.out);
  if (fclose(d.out) == 0)
    return text;
  free(text);
  kiln__cli_message(c, NULL, "there is no memory for a picture");
  return NULL;
}
