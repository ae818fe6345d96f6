/* cli_message.c -- prints messages on stderr. A message says what happened,
 * which object is affected, why it happened, and what the user can do. Names in
 * messages may contain any byte, so control bytes are escaped. */
#include "tool/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints text escaped as by kiln__cli_shown(), but without allocating
 * memory, and keeps newlines. */
static void put_shown(const char *text)
{
  while (*text != '\0') {
    bool control;
    size_t n = kiln__cli_utf8(text, &control);

    control = control && *text != '\n' && *text != '\t';
    for (n = n == 0 ? 1 : n; n > 0; n--, text++)
      fprintf(stderr, control ? "\\x%02x" : "%c",
              (unsigned)(unsigned char)*text);
  }
}

static void print_message(const cli *c, const char *format, va_list args)
{
  char *text = NULL;

  fflush(stdout);
  if (vasprintf(&text, format, args) < 0)
    text = NULL;
  fprintf(stderr, "kiln%s%s: ", c->name != NULL ? " " : "",
          c->name != NULL ? c->name : "");
  put_shown(text != NULL ? text : format);
  fputc('\n', stderr);
  free(text);
}

void kiln__cli_message(const cli *c, const char *next, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message(c, format, args);
  va_end(args);
  if (next != NULL && next[0] != '\0')
    fprintf(stderr, "next: %s\n", next);
}

/* Returns the length of an error message without the list of files tried. */
static int headline_length(const char *message)
{
  const char *places = strstr(message, ": tried ");

  return (int)(places == NULL ? strlen(message) : (size_t)(places - message));
}

int kiln__cli_failure(const cli *c, const char *what)
{
  const kiln_error *e = kiln_last_error();
  const size_t n = strlen(e->log);
  /* Without a driver, the error message lists a dozen folders. */
  const bool cut =
      e->status == KILN_ENODRIVER && strstr(e->message, ": tried ") != NULL;

  kiln__cli_message(
      c, NULL, "%s%s%.*s%s", what != NULL ? what : "", what != NULL ? ": " : "",
      cut ? headline_length(e->message) : (int)strlen(e->message), e->message,
      cut ? "; `kiln doctor` lists the places tried" : "");
  if (n > 0)
    fprintf(stderr, "%s%s", e->log, e->log[n - 1] == '\n' ? "" : "\n");
  if (e->hint[0] != '\0')
    fprintf(stderr, "next: %s\n", e->hint);
  return CLI_FAILED;
}

const char *kiln__cli_headline(cli *c)
{
  const char *message = kiln_last_error()->message;

  return kiln__cli_text(c, "%.*s", headline_length(message), message);
}

int kiln__cli_usage(const cli *c, const char *format, ...)
{
  if (format != NULL && format[0] != '\0') {
    va_list args;

    va_start(args, format);
    print_message(c, format, args);
    va_end(args);
  }
  fprintf(stderr, "next: kiln %s%s--help\n", c->name != NULL ? c->name : "",
          c->name != NULL ? " " : "");
  return CLI_USAGE;
}

void kiln__cli_progress(const cli *c, const char *what, size_t done,
                        size_t total)
{
  if (!isatty(STDERR_FILENO) || total < 2)
    return;
  fprintf(stderr, "\rkiln %s: %s: %zu of %zu", c->name, what, done, total);
  if (done == total)
    fputs("\r\033[K", stderr);
}
