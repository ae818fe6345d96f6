/* log.c -- converts the compiler's log to the form that users read.
 *
 * File names and line numbers are already correct, since the compiler receives
 * the program's name and a #line directive. This file replaces bytes that are
 * not UTF-8, and the source lines that the compiler generates to look up name
 * expressions. */
#include "compiler.h"

#include <string.h>

static const char name_map[] = "__nv_name_map(";

/* Returns the length of the valid UTF-8 sequence at `p`, or 0 if the sequence
 * is invalid. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
  const unsigned char c = p[0];
  const size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

  if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || n > left)
    return 0;
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  }
  if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ||
      (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f))
    return 0;
  return n;
}

static void add_clean(kiln__buf *out, const char *text, size_t size)
{
  const unsigned char *p = (const unsigned char *)text;

  for (size_t i = 0, run = 0; i <= size; i++) {
    const size_t n = i < size ? utf8_length(p + i, size - i) : 0;
    const bool good = n > 1 || (n == 1 && (p[i] >= ' ' || p[i] == '\t'));

    if (i < size && good) {
      i += n - 1;
      continue;
    }
    kiln__buf_add(out, text + run, i - run);
    /* NVRTC leaves a NUL byte between the parts of the log */
    if (i < size && text[i] != '\0')
      kiln__buf_text(out, "?");
    run = i + 1;
  }
}

static bool begins(const char *line, size_t size, const char *with)
{
  return size >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static bool holds(const char *line, size_t size, const char *what)
{
  return memmem(line, size, what, strlen(what)) != NULL;
}

/* Returns the index of the name expression that a message of the compiler
 * refers to, or -1 if the message refers to none. For "__nv_name_map(3): error:
 * ..." the index is 1. */
static long name_index(const char *line, size_t size, size_t *behind)
{
  size_t i = sizeof name_map - 1;
  long n = 0;

  if (!begins(line, size, name_map))
    return -1;
  for (; i < size && line[i] >= '0' && line[i] <= '9' && n < 1000000; i++)
    n = n * 10 + (line[i] - '0');
  if (i + 1 >= size || line[i] != ')' || line[i + 1] != ':')
    return -1;
  *behind = i + 2;
  return n < 2 ? 0 : n - 2;
}

static size_t line_length(const char *text, size_t size)
{
  const char *end = memchr(text, '\n', size);

  return end == NULL ? size : (size_t)(end - text);
}

static void add_line(kiln__buf *out, const char *line, size_t size,
                     const kiln__list *names)
{
  size_t behind = 0;
  const long index = name_index(line, size, &behind);

  if (index >= 0 && names != NULL && (size_t)index < names->n) {
    kiln__buf_text(out, "name expression \"");
    add_clean(out, names->items[index], strlen(names->items[index]));
    kiln__buf_text(out, "\":");
    line += behind;
    size -= behind;
  }
  add_clean(out, line, size);
  kiln__buf_text(out, "\n");
}

void kiln__log_map(kiln__buf *out, const char *raw, size_t size,
                   const kiln__list *names)
{
  static const char generated[] = "  #pragma nv_mangled_name ";
  bool caret = false;

  while (size > 0 && (raw[size - 1] == '\0' || raw[size - 1] == '\n' ||
                      raw[size - 1] == ' ' || raw[size - 1] == '\r'))
    size--;
  for (size_t at = 0; at < size;) {
    const char *line = raw + at;
    size_t n = line_length(line, size - at);

    at += n + 1;
    if (n > 0 && line[n - 1] == '\r')
      n--;
    if (begins(line, n, generated)) {
      caret = true; /* the next line has the caret for this line */
      continue;
    }
    if (!caret)
      add_line(out, line, n, names);
    caret = false;
  }
}

static bool is_error(const char *line, size_t size)
{
  return holds(line, size, "): error") ||
         holds(line, size, "): catastrophic error") ||
         begins(line, size, "nvrtc: error") ||
         begins(line, size, "ptxas error") ||
         begins(line, size, "ptxas fatal") ||
         begins(line, size, "name expression ") ||
         begins(line, size, "At end of source: error") ||
         begins(line, size, "error");
}

bool kiln__log_error(const char *log, size_t size, const char **line,
                     size_t *line_size)
{
  for (size_t at = 0; at < size;) {
    const char *text = log + at;
    size_t n = line_length(text, size - at);

    at += n + 1;
    if (n > 0 && text[0] == ' ' && (n < 2 || text[1] != ' ')) {
      text++; /* ptxas, the PTX assembler, indents its errors by one space */
      n--;
    } else if (n > 0 && text[0] == ' ') {
      continue; /* skip a line that quotes source code */
    }
    if (is_error(text, n)) {
      *line = text;
      *line_size = n;
      return true;
    }
  }
  return false;
}

long kiln__log_bad_name(const char *raw, size_t size, const kiln__list *names)
{
  long found = -1;

  for (size_t at = 0; at < size;) {
    const char *line = raw + at;
    const size_t n = line_length(line, size - at);
    size_t behind;
    const long index = name_index(line, n, &behind);

    at += n + 1;
    if (index >= 0 && (size_t)index < names->n) {
      if (found < 0)
        found = index;
    } else if (n > 0 && line[0] != ' ' && is_error(line, n)) {
      return -1;
    }
  }
  return found;
}
