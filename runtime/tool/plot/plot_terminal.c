/* plot_terminal.c -- prints figures to the terminal.
 *
 * A character cell is too coarse for a curve. A Braille character has two by
 * four dots, so a panel of 60 by 10 characters has 120 by 40 dots. Lines are
 * drawn as dots; a letter marks the points of each series if there are several
 * of them, since colours are missing in a file or a pipe. If the locale has no
 * UTF-8, a cell is one dot, which is drawn as an asterisk. */
#include "tool/plot/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
  ROWS = 10,        /* character rows of a panel of curves */
  MOST_WIDTH = 100, /* columns of a figure on a wide terminal */
  LEAST_WIDTH = 40,
  WIDTH = 78,     /* columns if standard output is no terminal */
  STRAIGHT = 400, /* steps in which a line between two points is drawn */
  NO_COLOR = 255
};

/* Colours of series in the palette of 256 colours of terminals, chosen like
 * those of plot_svg.c. */
static const unsigned char colors[] = {32, 202, 36, 169, 172, 74, 98, 245};

enum { N_COLORS = sizeof colors };

/* One character of a panel: Braille dots, or a letter. */
typedef struct cell {
  unsigned char dots, letter, color;
} cell;

typedef struct canvas {
  cli *c;
  bool utf8, color;
  unsigned width, height; /* in characters */
  cell *cells;
  plot_scale x, y;
} canvas;

/* Returns whether the locale's encoding is UTF-8, by the variables that a C
 * program would take it from. */
static bool has_utf8(void)
{
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

  for (size_t i = 0; i < 3; i++) {
    const char *value = getenv(names[i]);

    if (value != NULL && value[0] != '\0')
      return strcasestr(value, "utf-8") != NULL ||
             strcasestr(value, "utf8") != NULL;
  }
  return false;
}

static bool has_color(void)
{
  const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

  return isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0') &&
         term != NULL && strcmp(term, "dumb") != 0;
}

static unsigned terminal_width(void)
{
  struct winsize size = {0};

  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return WIDTH;
  return size.ws_col < LEAST_WIDTH  ? LEAST_WIDTH
         : size.ws_col > MOST_WIDTH ? MOST_WIDTH
                                    : size.ws_col;
}

static void set_color(const canvas *v, unsigned color)
{
  if (v->color && color == NO_COLOR)
    fputs("\033[0m", stdout);
  else if (v->color)
    printf("\033[38;5;%um", colors[color % N_COLORS]);
}

/* ---- Curves ------------------------------------------------------------- */

/* Sets the dot at a place, both coordinates from 0 to 1. */
static void set_dot(canvas *v, double x, double y, unsigned color)
{
  static const unsigned char bits[2][4] = {{0x01, 0x02, 0x04, 0x40},
                                           {0x08, 0x10, 0x20, 0x80}};
  const double across = x * (v->width * 2 - 1),
               down = (1 - y) * (v->height * 4 - 1);
  unsigned column, row;
  cell *at;

  if (!(x >= -1e-9 && x <= 1 + 1e-9 && y >= -1e-9 && y <= 1 + 1e-9))
    return;
  column = (unsigned)(fmax(across, 0) + 0.5);
  row = (unsigned)(fmax(down, 0) + 0.5);
  at = &v->cells[row / 4 * v->width + column / 2];
  at->dots |= bits[column % 2][row % 4];
  at->color = (unsigned char)color;
}

static void set_letter(canvas *v, double x, double y, unsigned char letter,
                       unsigned color)
{
  const double column = x * (v->width - 1), row = (1 - y) * (v->height - 1);
  cell *at;

  if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1))
    return;
  at = &v->cells[(unsigned)(row + 0.5) * v->width + (unsigned)(column + 0.5)];
  at->letter = letter;
  at->color = (unsigned char)color;
}

static void set_line(canvas *v, const double from[2], const double to[2],
                     const plot_series *s)
{
  for (unsigned k = 0; k <= STRAIGHT; k++) {
    const double part = (double)k / STRAIGHT;
    const double x = from[0] + (to[0] - from[0]) * part;
    const double y = from[1] + (to[1] - from[1]) * part;

    if (s->line == PLOT_CEILING && k / 8 % 2 == 1)
      continue;
    set_dot(v, x, y, s->color);
  }
}

/* Joins two points, by a staircase if the series is one. */
static void set_step(canvas *v, const double from[2], const double to[2],
                     const plot_series *s)
{
  const double corner[2] = {to[0], from[1]};

  if (s->line != PLOT_STEPS) {
    set_line(v, from, to, s);
    return;
  }
  set_line(v, from, corner, s);
  set_line(v, corner, to, s);
}

static void set_series(canvas *v, const plot_series *s, unsigned char letter)
{
  double before[2] = {NAN, NAN};

  for (size_t i = 0; i < s->n; i++) {
    const double now[2] = {kiln__plot_at(&v->x, s->x[i]),
                           kiln__plot_at(&v->y, s->y[i])};
    const bool good = isfinite(now[0]) && isfinite(now[1]);

    if (good && isfinite(before[0]))
      set_step(v, before, now, s);
    else if (good)
      set_dot(v, now[0], now[1], s->color);
    before[0] = good ? now[0] : NAN;
    before[1] = now[1];
  }
  for (size_t i = 0; i < s->n && letter != 0; i++)
    set_letter(v, kiln__plot_at(&v->x, s->x[i]), kiln__plot_at(&v->y, s->y[i]),
               letter, s->color);
}

/* Prints a character. *color is the colour that the terminal has. */
static void print_cell(const canvas *v, const cell *at, unsigned *color)
{
  const bool empty = at->dots == 0 && at->letter == 0;
  const unsigned wanted = empty ? *color : at->color;

  if (wanted != *color)
    set_color(v, wanted);
  *color = wanted;
  if (empty || at->letter != 0)
    putchar(empty ? ' ' : at->letter);
  else if (!v->utf8)
    putchar('*');
  else
    printf("\xe2%c%c", 0xa0 | at->dots >> 6, 0x80 | (at->dots & 63));
}

/* Returns the label of the tick that stands in a row, or "". */
static const char *tick_at(const canvas *v, unsigned row)
{
  for (size_t i = 0; i < v->y.n; i++) {
    const double at =
        (1 - kiln__plot_at(&v->y, v->y.ticks[i])) * (v->height - 1);

    if ((unsigned)(at + 0.5) == row)
      return kiln__plot_number(v->c, v->y.ticks[i], v->y.base);
  }
  return "";
}

/* Prints the labels of the x axis, each centred below its tick. */
static void print_x_ticks(const canvas *v, int margin)
{
  unsigned column = 0;

  printf("  %*s ", margin, "");
  for (size_t i = 0; i < v->x.n; i++) {
    const char *text = kiln__plot_number(v->c, v->x.ticks[i], v->x.base);
    const unsigned n = (unsigned)strlen(text);
    const double at = kiln__plot_at(&v->x, v->x.ticks[i]) * (v->width - 1);
    const unsigned middle = (unsigned)(at + 0.5);
    const unsigned start = middle < n / 2 ? 0 : middle - n / 2;

    if (i > 0 && start <= column)
      continue;
    printf("%*s%s", (int)(start - column), "", text);
    column = start + n;
  }
  putchar('\n');
}

static void print_legend(const canvas *v, const plot *p, int margin)
{
  for (size_t i = 0; i < p->n_series; i++) {
    if (p->series[i].name == NULL)
      continue;
    printf("  %*s ", margin, "");
    set_color(v, p->series[i].color);
    printf("%c", p->n_series > 1 ? (int)('a' + i % 26) : '*');
    set_color(v, NO_COLOR);
    printf(" %s\n", kiln__cli_shown(v->c, p->series[i].name));
  }
}

static int widest_tick(const canvas *v)
{
  int most = 0;

  for (size_t i = 0; i < v->y.n; i++) {
    const int n =
        (int)strlen(kiln__plot_number(v->c, v->y.ticks[i], v->y.base));

    most = n > most ? n : most;
  }
  return most;
}

static void print_frame(const canvas *v, const plot *p, int margin)
{
  if (p->y.label != NULL)
    printf("  %*s%s\n", margin, "", p->y.label);
  for (unsigned row = 0; row < v->height; row++) {
    const char *label = tick_at(v, row);
    unsigned color = NO_COLOR;

    printf("  %*s%s", margin, label,
           !v->utf8           ? "|"
           : label[0] != '\0' ? "\xe2\x94\xa4"
                              : "\xe2\x94\x82");
    for (unsigned k = 0; k < v->width; k++)
      print_cell(v, &v->cells[row * v->width + k], &color);
    if (color != NO_COLOR)
      set_color(v, NO_COLOR);
    putchar('\n');
  }
  printf("  %*s%s", margin, "", v->utf8 ? "\xe2\x94\x94" : "+");
  for (unsigned k = 0; k < v->width; k++)
    fputs(v->utf8 ? "\xe2\x94\x80" : "-", stdout);
  putchar('\n');
  print_x_ticks(v, margin);
  if (p->x.label != NULL)
    printf("  %*s %s\n", margin + (int)(v->width - strlen(p->x.label)) / 2, "",
           p->x.label);
  print_legend(v, p, margin);
}

static void print_curves(canvas *v, const plot *p)
{
  int margin;

  kiln__plot_scales(p, &v->x, &v->y, v->width / 9, 5);
  margin = widest_tick(v);
  v->height = ROWS;
  v->width -= (unsigned)margin + 4;
  v->cells =
      kiln__cli_alloc(v->c, (size_t)v->width * v->height, sizeof *v->cells);
  for (size_t i = 0; i < p->n_series; i++)
    set_series(v, &p->series[i],
               p->n_series > 1 ? (unsigned char)('a' + i % 26) : 0);
  if (p->marked)
    set_letter(v, kiln__plot_at(&v->x, p->mark_x),
               kiln__plot_at(&v->y, p->mark_y), 'O', 1);
  print_frame(v, p, margin);
}

/* ---- Bars and heat maps ------------------------------------------------- */

static int widest_name(const plot_axis *axis)
{
  size_t most = 0;

  for (size_t i = 0; i < axis->n_names; i++) {
    const size_t n = kiln__cli_columns(axis->names[i]);

    most = n > most ? n : most;
  }
  return (int)most;
}

/* Prints text in a field of `width` columns, to the right. */
static void print_right(cli *c, const char *text, int width)
{
  const char *shown = kiln__cli_shown(c, text);

  printf("%*s%s", width - (int)kiln__cli_columns(shown), "", shown);
}

static void print_bar(const canvas *v, const plot_series *s, double at,
                      double value, unsigned width)
{
  const unsigned n = isfinite(at) ? (unsigned)(fmax(at, 0) * width + 0.5) : 0;

  set_color(v, s->color);
  for (unsigned k = 0; k < n; k++)
    fputs(v->utf8 ? "\xe2\x96\x88" : "#", stdout);
  set_color(v, NO_COLOR);
  if (isfinite(value))
    printf(" %s\n", kiln__plot_brief(v->c, value));
  else
    puts("-");
}

static void print_bars(const canvas *v, const plot *p)
{
  const int margin = widest_name(&p->y);
  const unsigned used = (unsigned)margin + 14;
  plot_scale scale;

  kiln__plot_values(p, &scale, 5);
  for (size_t i = 0; i < p->y.n_names; i++)
    for (size_t k = 0; k < p->n_series; k++) {
      if (i >= p->series[k].n)
        continue;
      printf("  ");
      print_right(v->c, k == 0 ? p->y.names[i] : "", margin);
      putchar(' ');
      print_bar(v, &p->series[k], kiln__plot_at(&scale, p->series[k].y[i]),
                p->series[k].y[i], v->width > used ? v->width - used : 10);
    }
  if (p->x.label != NULL)
    printf("  %*s %s\n", margin, "", p->x.label);
  if (p->n_series > 1)
    print_legend(v, p, margin);
}

/* Prints a number on its heat map's colour, or behind a block that grows
 * lighter with the number. */
static void print_heat_cell(const canvas *v, double value, double at)
{
  static const char *const shades[] = {"\xe2\x96\x88", "\xe2\x96\x93",
                                       "\xe2\x96\x92", "\xe2\x96\x91"};
  const unsigned color = isfinite(at) ? kiln__plot_heat(at) : 0;
  const char *text = kiln__plot_brief(v->c, value);

  if (!isfinite(value) || !isfinite(at)) {
    printf("%9s", "-");
    return;
  }
  if (v->color)
    printf("\033[48;2;%u;%u;%um\033[38;5;%um%8s\033[0m ", color >> 16,
           color >> 8 & 255, color & 255, at > 0.55 ? 16u : 231u, text);
  else
    printf("%s%8s", v->utf8 ? shades[(unsigned)fmin(fmax(at, 0) * 4, 3)] : " ",
           text);
}

static void print_heat(const canvas *v, const plot *p)
{
  const int margin = widest_name(&p->y);
  plot_scale z;

  kiln__plot_values(p, &z, 5);
  printf("  %*s", margin, "");
  for (size_t i = 0; i < p->x.n_names; i++)
    print_right(v->c, p->x.names[i], 9);
  printf("  %s\n", p->x.label != NULL ? p->x.label : "");
  for (size_t row = 0; row < p->y.n_names; row++) {
    printf("  ");
    print_right(v->c, p->y.names[row], margin);
    for (size_t i = 0; i < p->x.n_names; i++) {
      const double value = p->cells[row * p->x.n_names + i];

      print_heat_cell(v, value, kiln__plot_at(&z, value));
    }
    putchar('\n');
  }
}

void kiln__plot_print(cli *c, const plot_figure *figure)
{
  const canvas start = {.c = c,
                        .utf8 = has_utf8(),
                        .color = has_color(),
                        .width = terminal_width()};

  for (size_t i = 0; i < figure->n; i++) {
    const plot *p = &figure->plots[i];
    canvas v = start;

    if (p->title != NULL)
      printf("\n%s\n", kiln__cli_shown(c, p->title));
    if (p->kind == PLOT_CURVES)
      print_curves(&v, p);
    else if (p->kind == PLOT_BARS)
      print_bars(&v, p);
    else
      print_heat(&v, p);
  }
}
