/* cli_table.c -- prints tables for people. Each column is as wide as its
 * widest cell, and numbers are aligned to the right. Cells are stored as
 * text until the table is printed. */
#include "tool/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
  LEAST_LAST = 24 /* minimum width of a last column with wrapped text */
};

void kiln__cli_table(cli_table *t, cli *c, const char *const *heads)
{
  *t = (cli_table){.c = c, .heads = heads};
  while (heads[t->columns] != NULL)
    t->columns++;
}

void kiln__cli_sheet(cli_table *t, cli *c)
{
  static const char *const heads[] = {"", "", NULL};

  kiln__cli_table(t, c, heads);
}

static void add_text(cli_table *t, const char *text)
{
  t->cells =
      kiln__cli_grow(t->c, t->cells, t->n, &t->capacity, sizeof *t->cells);
  t->cells[t->n++] = kiln__cli_shown(t->c, kiln__cli_text(t->c, "%s", text));
}

static void add_cell(cli_table *t, const char *format, va_list args)
{
  char *text = NULL;

  if (vasprintf(&text, format, args) < 0)
    text = NULL;
  add_text(t, text != NULL ? text : "");
  free(text);
}

void kiln__cli_cell(cli_table *t, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  add_cell(t, format, args);
  va_end(args);
}

void kiln__cli_cells(cli_table *t, const char *format, ...)
{
  char *text = NULL, *cell;
  va_list args;

  va_start(args, format);
  if (vasprintf(&text, format, args) < 0)
    text = NULL;
  va_end(args);
  for (char *rest = text; (cell = strsep(&rest, "\t")) != NULL;)
    add_text(t, cell);
  free(text);
}

void kiln__cli_dashes(cli_table *t, size_t n)
{
  while (n-- > 0)
    kiln__cli_cell(t, "-");
}

void kiln__cli_row(cli_table *t, const char *label, const char *format, ...)
{
  va_list args;

  kiln__cli_cell(t, "%s", label);
  va_start(args, format);
  add_cell(t, format, args);
  va_end(args);
}

/* Returns the width of the terminal in columns. Returns no limit if the
 * output is not a terminal, since programs that read the output expect one
 * line per row. */
static size_t terminal_width(void)
{
  struct winsize size = {0};

  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return 0;
  return size.ws_col;
}

/* Returns the number of cells of a table row up to the last cell with text, so
 * that no line ends in blanks. */
static size_t used_cells(const cli_table *t, const char *const *cells)
{
  size_t n = t->columns;

  while (n > 1 && cells[n - 1][0] == '\0')
    n--;
  return n;
}

static bool is_right(const cli_table *t, size_t column)
{
  return t->heads[column][0] == '>';
}

static void print_row(const cli_table *t, const char *const *cells,
                      const size_t *width, size_t indent)
{
  const size_t n = used_cells(t, cells), capacity = terminal_width();
  size_t column = indent;

  printf("%*s", (int)indent, "");
  for (size_t i = 0; i < n; i++) {
    const bool right = is_right(t, i), last = i + 1 == n;
    const char *cell = cells[i] + (cells == t->heads && right ? 1 : 0);
    const int gap = (int)(width[i] - kiln__cli_columns(cell));

    if (last && !right) {
      kiln__cli_wrap(cell, column,
                     capacity < column + LEAST_LAST ? SIZE_MAX : capacity - 1);
      return;
    }
    printf("%*s%s%*s%s", right ? gap : 0, "", cell, right ? 0 : gap, "",
           last ? "\n" : "  ");
    column += width[i] + 2;
  }
}

void kiln__cli_table_print(const cli_table *t, int indent)
{
  size_t *width = kiln__cli_alloc(t->c, t->columns, sizeof *width);
  bool named = false;

  for (size_t i = 0; i < t->columns; i++) {
    width[i] = kiln__cli_columns(t->heads[i]) - (is_right(t, i) ? 1 : 0);
    named = named || width[i] > 0;
  }
  for (size_t i = 0; i < t->n; i++) {
    const size_t n = kiln__cli_columns(t->cells[i]);

    if (n > width[i % t->columns])
      width[i % t->columns] = n;
  }
  if (named)
    print_row(t, t->heads, width, (size_t)indent);
  for (size_t i = 0; i + t->columns <= t->n; i += t->columns)
    print_row(t, t->cells + i, width, (size_t)indent);
}
