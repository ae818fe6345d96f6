/* plot.h -- pictures of numbers: curves, bars and heat maps, as SVG, as PNG and
 * in the terminal.
 *
 * A caller describes a figure by data alone: panels, axes and series. The
 * functions below choose scales, ticks and colours, so that a figure looks the
 * same wherever it is drawn. README.md explains why Kiln draws pictures
 * itself. */
#ifndef KILN_TOOL_PLOT_H
#define KILN_TOOL_PLOT_H

#include "tool/cli.h"

typedef enum plot_kind {
  PLOT_CURVES, /* lines over two axes of numbers */
  PLOT_BARS,   /* horizontal bars, one group per name of the y axis */
  PLOT_HEAT /* coloured cells, one per name of the x axis and of the y axis */
} plot_kind;

typedef enum plot_line {
  PLOT_SOLID,  /* a line with a dot at each point */
  PLOT_DASHED, /* the same, dashed: what something is compared with */
  PLOT_STEPS,  /* a staircase without dots, for values at every integer */
  PLOT_CEILING /* a thin dotted line without dots: a limit */
} plot_line;

/* One line of a panel of curves, or the bars of one colour. Points that are
 * not finite are left out. */
typedef struct plot_series {
  const char *name; /* name in the legend, or NULL */
  const double *x;  /* unused for bars */
  const double *y;  /* for bars: one value per name of the y axis */
  size_t n;
  plot_line line;
  /* Index of the colour. A line and its peer have the same index. */
  unsigned color;
} plot_series;

typedef struct plot_axis {
  const char *label; /* what the axis shows, with its unit: "time (us)" */
  /* Base of a logarithmic axis, 2 or 10; 0 for a linear axis. An axis of base 10
   * whose values differ by less than a factor of 4 is drawn linearly. */
  int base;
  bool binary; /* ticks of a linear axis are multiples of powers of two */
  /* Limits of the axis. The data choose them if `to` is not above `from`. */
  double from, to;
  const char *const *names; /* categories of bars and heat maps */
  size_t n_names;
} plot_axis;

/* One panel of a figure. */
typedef struct plot {
  plot_kind kind;
  const char *title; /* text above the panel, or NULL */
  plot_axis x, y;
  const plot_series *series;
  size_t n_series;
  /* Values of a heat map by rows, y.n_names * x.n_names numbers. A value that
   * is not finite leaves its cell empty. */
  const double *cells;
  plot_axis z; /* label and scale of a heat map's colours */
  /* A point of the curves that is emphasised, if `marked` is true. */
  bool marked;
  double mark_x, mark_y;
} plot;

/* Panels that belong together, drawn row by row from left to right. */
typedef struct plot_figure {
  const char *title; /* text above all panels, or NULL */
  const char *note;  /* smaller text below the title, or NULL */
  const plot *plots;
  size_t n;
  unsigned columns; /* number of panels in a row; 0 means 1 */
} plot_figure;

/* The colours of an SVG picture. */
typedef enum plot_theme {
  PLOT_AUTO, /* light, or dark where the viewer's settings ask for it */
  PLOT_LIGHT,
  PLOT_DARK
} plot_theme;

/* ---- plot_scale.c: scales and ticks ------------------------------------- */

enum { PLOT_MOST_TICKS = 24 };

/* The scale of an axis: the interval that it shows, and the values of its
 * labelled ticks in ascending order. */
typedef struct plot_scale {
  int base;
  double from, to;
  double ticks[PLOT_MOST_TICKS];
  size_t n;
} plot_scale;

/* Chooses the scale of an axis for values from `least` to `most`, with at most
 * `wanted` ticks at round numbers. */
void kiln__plot_scale(plot_scale *out, const plot_axis *axis, double least,
                      double most, unsigned wanted);
/* Returns the position of a value on the scale, 0 at `from` and 1 at `to`. A
 * value that a logarithmic axis cannot show gives NaN. */
double kiln__plot_at(const plot_scale *s, double value);
/* Formats a number for a tick or a label: "0.5", "1,024", "64Ki" if `base` is
 * 2, "20k". */
const char *kiln__plot_number(cli *c, double value, int base);
/* Formats a measured value with three digits: "0.123", "22.3k". */
const char *kiln__plot_brief(cli *c, double value);
/* Returns the scales of a panel of curves. */
void kiln__plot_scales(const plot *p, plot_scale *x, plot_scale *y,
                       unsigned x_ticks, unsigned y_ticks);
/* Returns the scale of the values of a panel of bars or of a heat map. */
void kiln__plot_values(const plot *p, plot_scale *out, unsigned ticks);

/* ---- plot_svg.c --------------------------------------------------------- */

/* Draws a figure as an SVG document of its own, or, if `theme` is negative, as
 * an SVG element for a page that contains kiln__plot_css(). The text needs no
 * network and no particular font.
 * @return the text, which the caller frees; NULL having reported that memory is
 *        exhausted */
char *kiln__plot_svg(cli *c, const plot_figure *figure, int theme,
                     size_t *size);
enum { PLOT_INLINE = -1 };
/* Writes the style sheet of pictures that are drawn with PLOT_INLINE. */
void kiln__plot_css(FILE *out, plot_theme theme);
/* Writes text with the characters of markup escaped. Control bytes, and bytes
 * that are not UTF-8, become U+FFFD. */
void kiln__plot_escape(FILE *out, const char *text);
/* Returns the colour of a place from 0 to 1 of a heat map's scale as 0xRRGGBB. */
unsigned kiln__plot_heat(double at);

/* ---- plot_file.c: pictures as files ------------------------------------- */

/* Writes a figure to the file `svg` and to the file `png`; both may be NULL.
 * `dark` chooses the dark colours for the PNG file. @return CLI_OK, or
 * CLI_FAILED having reported why */
int kiln__plot_write(cli *c, const plot_figure *figure, const char *svg,
                     const char *png, bool dark);

/* ---- plot_terminal.c ---------------------------------------------------- */

/* Prints a figure to standard output, with Braille characters and blocks if the
 * locale has UTF-8 and with ASCII otherwise. */
void kiln__plot_print(cli *c, const plot_figure *figure);

/* ---- plot_page.c: reports ----------------------------------------------- */

/* A report: one HTML file without references to other files. */
typedef struct plot_page {
  const char *title;
  const char *note; /* text below the title, or NULL */
  const plot_figure *figures;
  size_t n;
  /* Measured values: an object whose arrays of objects become tables, and whose
   * other members become a list. May be NULL. */
  const cJSON *data;
} plot_page;

/* Writes a report. @return CLI_OK, or CLI_FAILED having reported why */
int kiln__plot_page(cli *c, const plot_page *page, const char *path);

#endif
