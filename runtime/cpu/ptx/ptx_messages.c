/* ptx_messages.c -- collects error messages about a PTX module in the form that
 * assemblers use: the position, the mistake, the source line and a caret. The
 * parser and the checks in code/ use the same functions. At most 20 messages
 * are kept, but all messages are counted. */
#include "parse.h"

#include <stdio.h>

enum { MOST_MESSAGES = 20, WIDTH = 160 };

void kiln__cpu_ptx_messages_init(kiln__cpu_ptx_messages *m,
                                 const kiln_allocator *a,
                                 const kiln__cpu_ptx_module *module)
{
  *m = (kiln__cpu_ptx_messages){0};
  kiln__buf_init(&m->text, a);
  m->source = kiln__cpu_ptx_source(module, &m->source_size);
}

/* Returns the source line with number `wanted`, without the newline. */
static kiln__cpu_slice line_of(const kiln__cpu_ptx_messages *m, uint32_t wanted)
{
  const char *at = m->source, *const end = at + m->source_size;
  const char *stop;

  for (uint32_t line = 1; line < wanted; line++) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at == NULL)
      return (kiln__cpu_slice){"", 0};
    at++;
  }
  stop = memchr(at, '\n', (size_t)(end - at));
  if (stop == NULL)
    stop = end;
  if (stop > at && stop[-1] == '\r')
    stop--;
  return (kiln__cpu_slice){at, (uint32_t)(stop - at)};
}

static char shown(char c)
{
  return c >= ' ' && c < 0x7f ? c : c == '\t' ? ' ' : '?';
}

/* Appends the source line with a caret below the column. If the line is long,
 * only the part around the column is shown. */
static void show(kiln__cpu_ptx_messages *m, kiln__cpu_ptx_pos pos)
{
  const kiln__cpu_slice line = line_of(m, pos.line);
  const uint32_t at = pos.column > 0 ? pos.column - 1 : 0;
  const uint32_t first = at > WIDTH / 2 ? at - WIDTH / 2 : 0;
  char text[WIDTH + 1];
  uint32_t n = 0;

  while (n < WIDTH && first + n < line.size) {
    text[n] = shown(line.data[first + n]);
    n++;
  }
  text[n] = '\0';
  kiln__buf_format(&m->text, "  %s\n  %*s^\n", text, (int)(at - first), "");
}

static void add_message(kiln__cpu_ptx_messages *m, kiln__cpu_ptx_pos pos,
                        const char *format, va_list list)
{
  char text[400];

  if (m->n < UINT32_MAX)
    m->n++;
  if (m->n > MOST_MESSAGES)
    return;
  vsnprintf(text, sizeof text, format, list);
  for (char *c = text; *c != '\0'; c++)
    *c = shown(*c);
  kiln__buf_format(&m->text, "ptx line %u, column %u: %s\n", pos.line,
                   pos.column, text);
  show(m, pos);
}

void kiln__cpu_ptx_complain(kiln__cpu_ptx_messages *m, kiln__cpu_ptx_pos pos,
                            const char *format, ...)
{
  va_list list;

  va_start(list, format);
  add_message(m, pos, format, list);
  va_end(list);
}

#undef kiln__cpu_wrong

bool kiln__cpu_wrong(kiln__cpu_parser *p, kiln__cpu_ptx_pos pos,
                     const char *format, ...)
{
  va_list list;

  va_start(list, format);
  add_message(&p->messages, pos, format, list);
  va_end(list);
  return false;
}

kiln_status kiln__cpu_ptx_messages_end(kiln__cpu_ptx_messages *m,
                                       const char *what)
{
  kiln_status st = KILN_OK;

  if (m->n > MOST_MESSAGES)
    kiln__buf_format(&m->text, "and %u more\n", m->n - MOST_MESSAGES);
  if (m->text.failed) {
    st = kiln__fail_memory(what);
  } else if (m->n > 0) {
    const char *end = strchr(m->text.data, '\n');
    const int size = end == NULL ? 0 : (int)(end - m->text.data);

    st = kiln__fail(KILN_ECOMPILE, "the log shows each mistake with its line",
                    "%s: %.*s", what, size, m->text.data);
    kiln__error_log(m->text.data, m->text.size);
  }
  kiln__buf_free(&m->text);
  return st;
}
