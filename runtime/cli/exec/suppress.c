/* suppress.c -- reads suppression files, and marks the findings that they match.
 *
 * Each line of the file has terms KEY=VALUE. The keys are kind, kernel, file,
 * line and reason. A finding is suppressed if all terms of a line match it.
 * Values with blanks are in quotation marks. kind, kernel and file are patterns
 * with *, ? and [ ], as in a shell. `kernel` is compared with the readable name
 * and with the linkage name, `file` with the path and with its last component.
 * `line` is a number or a range such as 10-20. Text after # is a comment. */
#include "cli/exec/exec_report.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading -------------------------------------------------------------- */

static int wrong(const cli *c, const char *path, unsigned at, const char *what,
                 const char *term)
{
  kiln__cli_message(c,
                    "write terms such as kind=race kernel=sum* file=*.cu "
                    "line=10-20 reason=\"...\"",
                    "%s:%u: %s '%s'", path, at, what, term);
  return CLI_USAGE;
}

static bool set_lines(exec_suppression *s, const char *value)
{
  char *end;
  unsigned long least = strtoul(value, &end, 10), most = least;

  if (end != value && *end == '-') {
    value = end + 1;
    most = strtoul(value, &end, 10);
  }
  if (end == value || *end != '\0' || least == 0 || most < least ||
      most > UINT_MAX)
    return false;
  s->least = (unsigned)least;
  s->most = (unsigned)most;
  return true;
}

/* Stores one term. Returns false if the key is unknown or the value is wrong. */
static bool set_term(exec_suppression *s, const char *key, const char *value)
{
  const struct {
    const char *key, **to;
  } texts[] = {{"kind", &s->kind},
               {"kernel", &s->kernel},
               {"file", &s->file},
               {"reason", &s->reason}};

  if (strcmp(key, "line") == 0)
    return set_lines(s, value);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    if (strcmp(key, texts[i].key) == 0) {
      *texts[i].to = value;
      return true;
    }
  }
  return false;
}

/* Cuts the next value: text in quotation marks, or up to a blank. Advances *rest
 * behind it. Returns NULL if the closing mark is missing. */
static char *cut_value(char **rest)
{
  char *value = *rest, *end;

  if (*value == '"') {
    end = strchr(++value, '"');
    if (end == NULL)
      return NULL;
  } else {
    end = value + strcspn(value, " \t");
  }
  *rest = *end == '\0' ? end : end + 1;
  *end = '\0';
  return value;
}

/* Reads the terms of one line. */
static int read_line(exec_suppression *s, cli *c, const char *path, char *line)
{
  for (line += strspn(line, " \t"); *line != '\0' && *line != '#';
       line += strspn(line, " \t")) {
    char *key = line, *equals = line + strcspn(line, "= \t"), *value;

    if (*equals != '=')
      return wrong(c, path, s->at, "there is no value for", key);
    *equals = '\0';
    line = equals + 1;
    value = cut_value(&line);
    if (value == NULL)
      return wrong(c, path, s->at, "a closing quotation mark is missing after",
                   key);
    if (!set_term(s, key, value))
      return wrong(c, path, s->at, "this term is not understood:",
                   kiln__cli_text(c, "%s=%s", key, value));
  }
  return CLI_OK;
}

int kiln__exec_suppressions(exec_suppressions *s, cli *c, const char *path)
{
  size_t size, capacity = 0;
  unsigned at = 0;
  char *text, *next;

  *s = (exec_suppressions){.path = path};
  if (path == NULL)
    return CLI_OK;
  text = kiln__cli_read(c, path, CLI_MOST_TEXT, &size);
  for (; text != NULL && *text != '\0'; text = next) {
    exec_suppression one = {.reason = "", .most = UINT_MAX};

    one.at = ++at;
    next = text + strcspn(text, "\r\n");
    if (next[0] == '\r' && next[1] == '\n')
      *next++ = '\0';
    if (*next != '\0')
      *next++ = '\0';
    if (text[strspn(text, " \t")] == '\0' || text[strspn(text, " \t")] == '#')
      continue;
    if (read_line(&one, c, path, text) != CLI_OK)
      return CLI_USAGE;
    s->items = kiln__cli_grow(c, s->items, s->n, &capacity, sizeof *s->items);
    s->items[s->n++] = one;
  }
  return text == NULL ? CLI_USAGE : CLI_OK;
}

/* ---- Matching ------------------------------------------------------------- */

static bool fits(const char *pattern, const char *text)
{
  return pattern == NULL || fnmatch(pattern, text, 0) == 0;
}

static bool matches_place(const exec_suppression *s, exec_place place)
{
  const char *slash = strrchr(place.file, '/');

  return (fits(s->file, place.file) ||
          (slash != NULL && fits(s->file, slash + 1))) &&
         place.line >= s->least && place.line <= s->most;
}

static bool matches(const exec_suppression *s, const cJSON *f)
{
  const exec_place inner = {exec_text(f, "file"), exec_number(f, "line")};

  return fits(s->kind, exec_text(f, "kind")) &&
         (fits(s->kernel, exec_text(f, "name")) ||
          fits(s->kernel, exec_text(f, "kernel"))) &&
         (matches_place(s, inner) || matches_place(s, kiln__exec_place(f)));
}

void kiln__exec_suppress(exec_report *r, exec_suppressions *s)
{
  for (size_t i = 0; i < r->findings.n; i++) {
    exec_item *f = &r->findings.items[i];

    for (size_t k = 0; k < s->n && f->suppression == NULL; k++) {
      if (matches(&s->items[k], f->json)) {
        f->suppression = &s->items[k];
        s->items[k].uses++;
      }
    }
  }
}
