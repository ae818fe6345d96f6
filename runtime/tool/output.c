/* output.c -- memory, text, tables, errors and JSON of the command. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct cli_block {
  struct cli_block *next;
  max_align_t data[];
};

void *kiln__cli_alloc(cli *c, size_t n, size_t size)
{
  struct cli_block *block = NULL;

  if (size == 0 || n < SIZE_MAX / 2 / size)
    block = calloc(1, sizeof *block + n * size);
  if (block == NULL) {
    fputs("kiln: out of memory\n", stderr);
    exit(CLI_FAILED);
  }
  block->next = c->pool;
  c->pool = block;
  return block->data;
}

void kiln__cli_free_all(cli *c)
{
  while (c->pool != NULL) {
    struct cli_block *next = c->pool->next;

    free(c->pool);
    c->pool = next;
  }
  free(c->warnings);
  c->warnings = NULL;
}

static char *text_list(cli *c, const char *format, va_list args)
{
  va_list copy;
  int n;
  char *text;

  va_copy(copy, args);
  n = vsnprintf(NULL, 0, format, copy);
  va_end(copy);
  if (n < 0)
    n = 0;
  text = kiln__cli_alloc(c, (size_t)n + 1, 1);
  vsnprintf(text, (size_t)n + 1, format, args);
  return text;
}

char *kiln__cli_text(cli *c, const char *format, ...)
{
  va_list args;
  char *text;

  va_start(args, format);
  text = text_list(c, format, args);
  va_end(args);
  return text;
}

const char *kiln__cli_bytes(cli *c, uint64_t bytes)
{
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes / 1024;
  size_t unit = 0;

  if (bytes < 1024)
    return kiln__cli_text(c, "%d B", (int)bytes);
  while (value >= 1023.95 && unit < 3) {
    value /= 1024;
    unit++;
  }
  /* Limits of a GPU are whole numbers: no ".0" on them. */
  if (value == (double)(uint64_t)value)
    return kiln__cli_text(c, "%d %s", (int)value, units[unit]);
  return kiln__cli_text(c, "%.1f %s", value, units[unit]);
}

const char *kiln__cli_version(cli *c, int version)
{
  return kiln__cli_text(c, "%d.%d", version / 1000, version % 1000 / 10);
}

const char *kiln__cli_cc(cli *c, int cc)
{
  return kiln__cli_text(c, "%d.%d", cc / 10, cc % 10);
}

const char *kiln__cli_cc_list(cli *c, const int *archs, size_t n)
{
  const char *text = "";

  for (size_t i = 0; i < n; i++)
    text = kiln__cli_text(c, "%s%s%d.%d", text, i > 0 ? " " : "", archs[i] / 10,
                          archs[i] % 10);
  return text;
}

const char *kiln__cli_plain_name(cli *c, const char *lowered)
{
  const char *p = lowered;
  const char *out = "";
  bool nested;

  if (strncmp(p, "_Z", 2) != 0)
    return lowered;
  p += 2;
  nested = *p == 'N';
  if (nested)
    p++;
  do {
    char *end;
    const unsigned long n = strtoul(p, &end, 10);

    if (end == p || n == 0 || n > strlen(end))
      break;
    out = kiln__cli_text(c, "%s%s%.*s", out, *out != '\0' ? "::" : "", (int)n,
                         end);
    p = end + n;
  } while (nested);
  if (*out == '\0')
    return lowered;
  return *p == 'I' ? kiln__cli_text(c, "%s<>", out) : out;
}

bool kiln__cli_parse_version(const char *text, int major, int minor, int *out)
{
  char *end;
  unsigned long a, b = 0;

  a = strtoul(text, &end, 10);
  if (end == text || text[0] == '-' || text[0] == '+')
    return false;
  if (*end == '.') {
    const char *rest = end + 1;

    b = strtoul(rest, &end, 10);
    if (end == rest)
      return false;
  }
  if (*end != '\0' || a > 1000 || b > 99)
    return false;
  *out = (int)a * major + (int)b * minor;
  return true;
}

bool kiln__cli_parse_bytes(const char *text, uint64_t *out)
{
  static const char units[] = "KMGT";
  char *end;
  unsigned long long value;
  int shift = 0;

  errno = 0;
  value = strtoull(text, &end, 10);
  if (end == text || text[0] == '-' || errno != 0)
    return false;
  if (*end != '\0') {
    const char *unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);

    if (unit == NULL)
      return false;
    shift = 10 * (int)(unit - units + 1);
    end++;
    if (strcmp(end, "iB") == 0 || strcmp(end, "B") == 0)
      end += strlen(end);
  }
  if (*end != '\0' || value > UINT64_MAX >> shift)
    return false;
  *out = (uint64_t)value << shift;
  return true;
}

/* ---- Tables ------------------------------------------------------------- */

void kiln__cli_table(cli_table *t, cli *c, const char *const *heads)
{
  *t = (cli_table){.c = c, .heads = heads};
  while (heads[t->columns] != NULL)
    t->columns++;
}

void kiln__cli_cell(cli_table *t, const char *format, ...)
{
  va_list args;

  if (t->n == t->room) {
    const size_t room = t->room == 0 ? 64 : 2 * t->room;
    const char **cells = kiln__cli_alloc(t->c, room, sizeof *cells);

    if (t->n > 0)
      memcpy(cells, t->cells, t->n * sizeof *cells);
    t->cells = cells;
    t->room = room;
  }
  va_start(args, format);
  t->cells[t->n++] = text_list(t->c, format, args);
  va_end(args);
}

/* Columns of the terminal, or 0 where the output goes elsewhere: programs that
 * read it want one line a row. */
static size_t terminal_width(void)
{
  struct winsize size = {0};

  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    return 0;
  return size.ws_col;
}

/* The last column breaks between words and goes on below itself. */
static void print_last(const char *text, size_t column, size_t width)
{
  if (width < column + 24) {
    puts(text);
    return;
  }
  for (;;) {
    const size_t room = width - column - 1;
    size_t n = strlen(text);

    if (n <= room) {
      puts(text);
      return;
    }
    n = room;
    while (n > 0 && text[n] != ' ')
      n--;
    if (n == 0) /* words stay whole: they may be copied */
      n = strcspn(text, " ");
    if (text[n] == '\0') {
      puts(text);
      return;
    }
    printf("%.*s\n%*s", (int)n, text, (int)column, "");
    text += n;
    while (*text == ' ')
      text++;
  }
}

/* Cells of the row up to the last one with text: no blanks end a line. */
static size_t used_cells(const cli_table *t, const char *const *cells)
{
  size_t n = t->columns;

  while (n > 1 && cells[n - 1][0] == '\0')
    n--;
  return n;
}

static void print_row(const cli_table *t, const char *const *cells,
                      const size_t *width, int indent)
{
  const size_t n = used_cells(t, cells);
  size_t column = (size_t)indent;

  printf("%*s", indent, "");
  for (size_t i = 0; i < n; i++) {
    const bool right = t->heads[i][0] == '>';
    const char *cell =
        cells[i][0] == '>' && cells == t->heads ? cells[i] + 1 : cells[i];

    if (i + 1 == n && !right) {
      print_last(cell, column, terminal_width());
      return;
    }
    printf(right ? "%*s%s" : "%-*s%s", (int)width[i], cell,
           i + 1 == n ? "" : "  ");
    column += width[i] + 2;
  }
  putchar('\n');
}

void kiln__cli_table_print(const cli_table *t, int indent)
{
  size_t *width = kiln__cli_alloc(t->c, t->columns, sizeof *width);
  bool named = false;

  for (size_t i = 0; i < t->columns; i++) {
    width[i] = strlen(t->heads[i]) - (t->heads[i][0] == '>' ? 1 : 0);
    named = named || width[i] > 0;
  }
  for (size_t i = 0, k = 0; i < t->n; i++, k = k + 1 < t->columns ? k + 1 : 0) {
    const size_t n = strlen(t->cells[i]);

    if (n > width[k])
      width[k] = n;
  }
  if (named)
    print_row(t, t->heads, width, indent);
  for (size_t i = 0; i + t->columns <= t->n; i += t->columns)
    print_row(t, t->cells + i, width, indent);
}

/* ---- Errors ------------------------------------------------------------- */

static void say_list(const cli *c, const char *format, va_list args)
{
  fflush(stdout);
  fprintf(stderr, "kiln%s%s: ", c->name != NULL ? " " : "",
          c->name != NULL ? c->name : "");
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
}

void kiln__cli_say(const cli *c, const char *next, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  say_list(c, format, args);
  va_end(args);
  if (next != NULL && next[0] != '\0')
    fprintf(stderr, "next: %s\n", next);
}

int kiln__cli_failure(const cli *c, const char *what)
{
  const kiln_error *e = kiln_last_error();
  const size_t n = strlen(e->log);
  const char *places =
      e->status == KILN_ENODRIVER ? strstr(e->message, ": tried ") : NULL;

  /* Without a driver the message names a dozen folders. */
  kiln__cli_say(c, NULL, "%s%s%.*s%s", what != NULL ? what : "",
                what != NULL ? ": " : "",
                (int)(places == NULL ? strlen(e->message)
                                     : (size_t)(places - e->message)),
                e->message,
                places == NULL ? "" : "; `kiln doctor` lists the places tried");
  if (n > 0)
    fprintf(stderr, "%s%s", e->log, e->log[n - 1] == '\n' ? "" : "\n");
  if (e->hint[0] != '\0')
    fprintf(stderr, "next: %s\n", e->hint);
  return CLI_FAILED;
}

const char *kiln__cli_headline(cli *c)
{
  const char *message = kiln_last_error()->message;
  const char *places = strstr(message, ": tried ");

  return kiln__cli_text(
      c, "%.*s",
      (int)(places == NULL ? strlen(message) : (size_t)(places - message)),
      message);
}

int kiln__cli_usage(const cli *c, const char *format, ...)
{
  if (format != NULL && format[0] != '\0') {
    va_list args;

    va_start(args, format);
    say_list(c, format, args);
    va_end(args);
  }
  fprintf(stderr, "next: kiln %s%s--help\n", c->name != NULL ? c->name : "",
          c->name != NULL ? " " : "");
  return CLI_USAGE;
}

/* ---- Files and JSON ----------------------------------------------------- */

int kiln__cli_json(const cli *c, cJSON *json, const char *path)
{
  char *text = cJSON_Print(json);
  int rc = CLI_OK;

  cJSON_Delete(json);
  if (text == NULL) {
    kiln__cli_say(c, NULL, "out of memory while writing JSON");
    return CLI_FAILED;
  }
  if (path == NULL || strcmp(path, "-") == 0) {
    puts(text);
  } else {
    rc = kiln__cli_write(c, path, text, strlen(text));
  }
  cJSON_free(text);
  return rc;
}

void kiln__cli_json_flag(cJSON *object, const char *key, bool value)
{
  cJSON_AddItemToObject(object, key, cJSON_CreateBool(value));
}

int kiln__cli_write(const cli *c, const char *path, const void *data,
                    size_t size)
{
  FILE *f = fopen(path, "wbe");
  bool good = f != NULL;

  if (good)
    good = fwrite(data, 1, size, f) == size;
  if (f != NULL && fclose(f) != 0)
    good = false;
  if (good)
    return CLI_OK;
  kiln__cli_say(c, "check the folder, its permissions and its free space",
                "cannot write %s: %s", path, strerror(errno));
  return CLI_FAILED;
}

char *kiln__cli_read(cli *c, const char *path, size_t *size)
{
  const bool standard = strcmp(path, "-") == 0;
  FILE *f = standard ? stdin : fopen(path, "rbe");
  size_t room = 1 << 16;
  char *text;

  *size = 0;
  if (f == NULL) {
    kiln__cli_say(c, NULL, "cannot read %s: %s", path, strerror(errno));
    return NULL;
  }
  text = kiln__cli_alloc(c, room, 1);
  for (;;) {
    const size_t n = fread(text + *size, 1, room - 1 - *size, f);

    if (n == 0)
      break;
    *size += n;
    if (*size == room - 1) {
      char *more = kiln__cli_alloc(c, 2 * room, 1);

      memcpy(more, text, *size);
      text = more;
      room *= 2;
    }
  }
  if (ferror(f)) {
    kiln__cli_say(c, NULL, "cannot read %s: %s", path, strerror(errno));
    text = NULL;
  }
  if (!standard)
    fclose(f);
  return text;
}

void kiln__cli_progress(const cli *c, const char *what, size_t done,
                        size_t total)
{
  if (!isatty(STDERR_FILENO) || total < 2)
    return;
  fprintf(stderr, "\rkiln %s: %s %zu of %zu", c->name, what, done, total);
  if (done == total)
    fputs("\r\033[K", stderr);
}
