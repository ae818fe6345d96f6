/* text.c -- users' texts, looked at before they become part of a program: what
 * would reach beyond its own place there is refused with line and caret. */
#include "ops.h"

#include <string.h>

/* ---- Complaints, in the compiler's own shape -------------------------------------- */

/* The line that `at` is in, and a caret below it. */
static kiln_status complain(const char *what, const char *text, const char *at,
                            const char *why)
{
  const char *line = text, *end;
  char log[1024];
  unsigned number = 1;
  int column, size;

  for (const char *p = text; p < at; p++)
    if (*p == '\n') {
      line = p + 1;
      number++;
    }
  end = line + strcspn(line, "\r\n");
  size = (int)(end - line < 400 ? end - line : 400);
  column = (int)(at - line < 400 ? at - line : 400);
  kiln__fail(KILN_ECOMPILE, "mend the text; it must be one C++ expression",
             "%s does not compile: line %u: %s", what, number, why);
  kiln__format(log, sizeof log, "%s(%u): error: %s\n  %.*s\n  %*s^\n", what,
               number, why, size, line, column, "");
  kiln__error_log(log, strlen(log));
  return KILN_ECOMPILE;
}

/* ---- Walking over a text ------------------------------------------------------------- */

/* Past a string or character literal that starts at p; NULL: it does not end. */
static const char *past_quoted(const char *p)
{
  const char quote = *p++;

  for (; *p != '\0' && *p != '\n'; p++) {
    if (*p == '\\' && p[1] != '\0')
      p++;
    else if (*p == quote)
      return p + 1;
  }
  return NULL;
}

/* Past a comment, if there is one at p; NULL: it does not end. */
static const char *past_comment(const char *p)
{
  const char *end;

  if (p[0] != '/' || (p[1] != '/' && p[1] != '*'))
    return p;
  if (p[1] == '/')
    return p + strcspn(p, "\n");
  end = strstr(p + 2, "*/");
  return end == NULL ? NULL : end + 2;
}

static char closing(char open)
{
  return open == '(' ? ')' : open == '[' ? ']' : '}';
}

enum { MAX_DEPTH = 64 };

typedef struct brackets {
  const char *open[MAX_DEPTH];
  size_t depth;
} brackets;

/* What is wrong with the bracket at p, or NULL. */
static const char *bracket(brackets *b, const char *p)
{
  if (strchr("([{", *p) != NULL) {
    if (b->depth == MAX_DEPTH)
      return "brackets are nested too deeply";
    b->open[b->depth++] = p;
    return NULL;
  }
  if (b->depth == 0)
    return "this bracket closes nothing";
  b->depth--;
  return closing(*b->open[b->depth]) == *p ? NULL : "the wrong bracket";
}

/* Within braces statements may stand: the body of a lambda. */
static bool within_braces(const brackets *b)
{
  for (size_t i = 0; i < b->depth; i++)
    if (*b->open[i] == '{')
      return true;
  return false;
}

/* Something that the generated function around a text would not survive. */
static const char *stray(const brackets *b, const char *p)
{
  if (*p == '#')
    return "directives cannot stand in an expression";
  if (*p == '\\' && (p[1] == '\n' || p[1] == '\r' || p[1] == '\0'))
    return "lines are joined by themselves: leave the backslash out";
  if (*p == ';' && !within_braces(b))
    return "an expression has no semicolon";
  return NULL;
}

kiln_status kiln__check_text(const char *what, const char *text)
{
  brackets b = {.depth = 0};
  bool empty = true;

  for (const char *p = text; *p != '\0';) {
    const char *const start = p;
    const char *why = NULL;

    p = past_comment(p);
    if (p == NULL)
      return complain(what, text, start, "this comment does not end");
    if (p != start)
      continue;
    empty = empty && strchr(" \t\r\n\v\f", *p) != NULL;
    if (*p == '"' || *p == '\'') {
      p = past_quoted(p);
      if (p == NULL)
        return complain(what, text, start, "this quote does not end");
      continue;
    }
    why = strchr("()[]{}", *p) != NULL ? bracket(&b, p) : stray(&b, p);
    if (why != NULL)
      return complain(what, text, p, why);
    p++;
  }
  if (b.depth > 0)
    return complain(what, text, b.open[b.depth - 1],
                    "this bracket is not closed");
  return empty ? complain(what, text, text, "there is no expression") : KILN_OK;
}

/* ---- Parameters ---------------------------------------------------------------------------- */

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
  return is_letter(c) || (c >= '0' && c <= '9');
}

static bool is_identifier(const char *name)
{
  if (!is_letter(*name))
    return false;
  for (; *name != '\0'; name++)
    if (!is_name(*name))
      return false;
  return true;
}

/* Do the characters before `end` spell x, y, z, w or x0 ... x7? */
static bool names_array(const char *text, const char *end)
{
  const char *start = end;

  while (start > text && is_name(start[-1]))
    start--;
  if (end - start == 1)
    return strchr("xyzw", *start) != NULL;
  return end - start == 2 && start[0] == 'x' && start[1] >= '0' &&
         start[1] <= '7';
}

bool kiln__reads_neighbours(const char *text)
{
  static const char suffix[] = "_at";
  const char *p = text;

  if (text == NULL)
    return false;
  while ((p = strstr(p, suffix)) != NULL) {
    const char *const end = p + sizeof suffix - 1;

    if (!is_name(*end) && p > text && names_array(text, p))
      return true;
    p = end;
  }
  return false;
}

/* Names that texts have anyway. */
static bool is_taken(const char *name)
{
  static const char *const taken[] = {"a",  "b",  "i",  "x",  "y",  "z",
                                      "w",  "s",  "x0", "x1", "x2", "x3",
                                      "x4", "x5", "x6", "x7"};

  for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++)
    if (strcmp(name, taken[k]) == 0)
      return true;
  return kiln__reads_neighbours(name);
}

kiln_status kiln__check_code(const kiln_code *code)
{
  if (code->n_params > KILN__MAX_PARAMS ||
      (code->n_params > 0 && code->params == NULL))
    return kiln__fail(KILN_EINVAL, "give 16 parameters at most",
                      "code.params: %zu parameters, %s", code->n_params,
                      code->params == NULL ? "but no list" : "too many");
  for (size_t k = 0; k < code->n_params; k++) {
    const kiln_param *p = &code->params[k];

    if (p->name == NULL || !is_identifier(p->name))
      return kiln__fail(KILN_EINVAL, "give it a C identifier",
                        "code.params[%zu]: no usable name", k);
    if (is_taken(p->name))
      return kiln__fail(
          KILN_EINVAL, "choose another name",
          "code.params[%zu]: \"%s\" is a name that every text has", k, p->name);
    if (kiln__dtype_of(p->type) == NULL || p->value == NULL)
      return kiln__fail(
          KILN_EINVAL, "give it a type and the address of a value",
          "code.params[%zu], \"%s\": no type or no value", k, p->name);
  }
  return KILN_OK;
}
