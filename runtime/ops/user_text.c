/* user_text.c -- checks the user's expressions before they become part of a
 * program.
 *
 * An expression that ends within a bracket, a quote or a comment would absorb
 * the code after it. The compiler would then report errors in code that the
 * user has never seen. The checks here refuse such expressions, and parameter
 * names that cannot be declared. The message shows the user's line and a
 * caret. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

/* ---- Errors in the compiler's own format --------------------------------- */

/* Makes the call fail with a log that shows the source line of `at` and a caret
 * below the character at that address. */
static kiln_status fail_at(const char *what, const char *text, const char *at,
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
  kiln__fail(KILN_ECOMPILE, "write one complete C++ expression",
             "%s does not compile: line %u: %s", what, number, why);
  kiln__format(log, sizeof log, "%s(%u): error: %s\n  %.*s\n  %*s^\n", what,
               number, why, size, line, column, "");
  kiln__error_log(log, strlen(log));
  return KILN_ECOMPILE;
}

/* Returns the line number within the expression `what` to which this line of a
 * compiler log refers. Returns 0 if the line refers to something else. */
static unsigned line_number(const char *line, const char *what)
{
  const size_t length = strlen(what);

  if (strncmp(line, what, length) != 0 || line[length] != '(')
    return 0;
  return (unsigned)strtoul(line + length + 1, NULL, 10);
}

/* Finds the last line of a text that is not blank. Returns the line, its size
 * and its number. */
static const char *last_line(const char *text, size_t *size, unsigned *number)
{
  static const char blanks[] = " \t\r\n\v\f";
  size_t length = strlen(text);
  const char *line = text;

  while (length > 0 && strchr(blanks, text[length - 1]) != NULL)
    length--;
  *number = 1;
  for (const char *p = text; p < text + length; p++)
    if (*p == '\n') {
      line = p + 1;
      ++*number;
    }
  *size = (size_t)(text + length - line);
  return line;
}

void kiln__point_into_text(kiln__buf *out, const char *log, const char *what,
                           const char *text)
{
  unsigned last, lines = 1;
  size_t size;
  const char *const line = last_line(text, &size, &last);

  for (const char *p = text; *p != '\0'; p++)
    lines += *p == '\n';
  while (*log != '\0') {
    const char *end = log + strcspn(log, "\n");

    if (line_number(log, what) <= lines) {
      kiln__buf_add(out, log, (size_t)(end - log) + (*end == '\n'));
      log = end + (*end == '\n');
      continue;
    }
    log += strcspn(log, ")");
    kiln__buf_format(out, "%s(%u%.*s\n  %.*s\n  %*s^\n", what, last,
                     (int)(end - log), log, (int)size, line, (int)size, "");
    for (log = end; log[0] == '\n' && log[1] == ' ';)
      /* Skip the source line that the compiler quotes below its message. */
      log += 1 + strcspn(log + 1, "\n");
    log += *log == '\n';
  }
}

/* ---- Scanning an expression --------------------------------------------- */

/* Returns the address after a string or character literal that starts at p,
 * or NULL if the literal does not end. */
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

/* If a comment starts at p, returns the address after the comment, or NULL if
 * the comment does not end. If no comment starts at p, returns p. */
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
  bool statements; /* the text consists of statements */
} brackets;

/* Returns a message if the bracket at p does not match the brackets before it,
 * or NULL if it does. */
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

/* Returns whether the scanned character is within braces. Braces enclose the
 * body of a lambda, in which statements are allowed. */
static bool within_braces(const brackets *b)
{
  for (size_t i = 0; i < b->depth; i++)
    if (*b->open[i] == '{')
      return true;
  return false;
}

/* Returns the reason why the character at p would break the function that Kiln
 * generates around the expression, or NULL if the character is valid. */
static const char *stray(const brackets *b, const char *p)
{
  if (*p == '#')
    return "directives cannot stand in an expression";
  if (*p == '\\' && (p[1] == '\n' || p[1] == '\r' || p[1] == '\0'))
    return "an expression may span lines: leave the backslash out";
  if (*p == ';' && !b->statements && !within_braces(b))
    return "an expression has no semicolon";
  return NULL;
}

static kiln_status check(const char *what, const char *text, bool statements)
{
  brackets b = {.statements = statements};
  bool empty = true;

  for (const char *p = text; *p != '\0';) {
    const char *const start = p;
    const char *why = NULL;

    p = past_comment(p);
    if (p == NULL)
      return fail_at(what, text, start, "this comment does not end");
    if (p != start)
      continue;
    empty = empty && strchr(" \t\r\n\v\f", *p) != NULL;
    if (*p == '"' || *p == '\'') {
      p = past_quoted(p);
      if (p == NULL)
        return fail_at(what, text, start, "this quote does not end");
      continue;
    }
    why = strchr("()[]{}", *p) != NULL ? bracket(&b, p) : stray(&b, p);
    if (why != NULL)
      return fail_at(what, text, p, why);
    p++;
  }
  if (b.depth > 0)
    return fail_at(what, text, b.open[b.depth - 1],
                   "this bracket is not closed");
  return empty ? fail_at(what, text, text, "there is no expression") : KILN_OK;
}

kiln_status kiln__check_text(const char *what, const char *text)
{
  return check(what, text, false);
}

kiln_status kiln__check_statements(const char *what, const char *text)
{
  return check(what, text, true);
}

/* ---- Preambles ----------------------------------------------------------- */

/* Returns the name of the preprocessor directive on a source line, or "" if the
 * line is no directive. */
static const char *directive(const char *line)
{
  line += strspn(line, " \t");
  return *line == '#' ? line + 1 + strspn(line + 1, " \t") : "";
}

/* Returns the start of the next source line. A comment over several lines
 * belongs to the line on which it starts. */
static const char *next_line(const char *p)
{
  while (*p != '\0' && *p != '\n') {
    const char *const start = p;

    p = past_comment(p);
    if (p == start && *p == '"')
      p = past_quoted(p);
    if (p == NULL)
      return start + strlen(start);
    if (p == start)
      p++;
  }
  return *p == '\n' ? p + 1 : p;
}

const char *kiln__after_includes(const char *preamble)
{
  const char *after = preamble;
  bool included = false;
  int depth = 0; /* nesting depth of #if directives */

  for (const char *p = preamble; *p != '\0';) {
    const char *const word = directive(p);

    included = included || kiln__starts_with(word, "include");
    depth += kiln__starts_with(word, "if");
    depth -= kiln__starts_with(word, "endif");
    p = next_line(p);
    if (included && depth <= 0) {
      after = p;
      included = false;
    }
  }
  return after;
}

/* ---- Parameters ---------------------------------------------------------- */

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

/* Returns whether the characters before `end` spell the name of an array: x, y,
 * z, w or x0 to x7. */
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

/* Returns whether an identifier is one of the words of a list. In the list,
 * each word has blanks around it. */
static bool is_listed(const char *name, const char *list)
{
  const size_t n = strlen(name);

  for (const char *p = list; (p = strstr(p, name)) != NULL; p++)
    if (p[-1] == ' ' && p[n] == ' ')
      return true;
  return false;
}

/* Returns the reason why a parameter cannot have this name, or NULL if the
 * name is valid. */
static const char *name_conflict(const char *name)
{
  static const char taken[] =
      " a b i x y z w x0 x1 x2 x3 x4 x5 x6 x7 INFINITY NAN ";
  static const char keywords[] =
      " alignas alignof and and_eq asm auto bitand bitor bool break case "
      "catch char char8_t char16_t char32_t class compl concept const "
      "const_cast consteval constexpr constinit continue co_await "
      "co_return co_yield decltype default delete do double dynamic_cast "
      "else enum explicit export extern false float for friend goto if "
      "inline int long mutable namespace new noexcept not not_eq nullptr "
      "operator or or_eq private protected public register "
      "reinterpret_cast requires restrict return short signed sizeof "
      "static static_assert static_cast struct switch template this "
      "thread_local throw true try typedef typeid typename union "
      "unsigned using virtual void volatile wchar_t while xor xor_eq ";

  if (is_listed(name, taken) || kiln__reads_neighbours(name))
    return "is a name that every text has";
  if (is_listed(name, keywords))
    return "is a keyword of C++";
  if (kiln__starts_with(name, "__") || kiln__starts_with(name, "kiln__") ||
      kiln__starts_with(name, "KILN_"))
    return "begins as the names of the compiler and of Kiln do";
  return NULL;
}

/* Checks type and value of a parameter. A parameter of a struct has no value,
 * and no other parameter has the same type. */
static kiln_status check_value(const kiln_code *code, size_t k)
{
  const kiln_param *p = &code->params[k];

  if (kiln__dtype_of(p->type) == NULL ||
      (p->value == NULL && !kiln__is_record(p->type)))
    return kiln__fail(KILN_EINVAL, "give it a type and the address of a value",
                      "code.params[%zu], \"%s\": no type or no value", k,
                      p->name);
  if (p->type == KILN_C128 || (kiln__is_record(p->type) && p->value != NULL))
    return kiln__fail(KILN_EINVAL,
                      "pass its members as parameters of their own",
                      "code.params[%zu], \"%s\": values of type %s are not "
                      "supported",
                      k, p->name, kiln_dtype_name(p->type));
  for (size_t i = 0; i < k && kiln__is_record(p->type); i++)
    if (code->params[i].type == p->type)
      return kiln__fail(KILN_EINVAL,
                        "give them different numbers by KILN_STRUCT_OF()",
                        "code.params[%zu] and code.params[%zu] name the same "
                        "type, \"%s\" and \"%s\"",
                        i, k, code->params[i].name, p->name);
  return KILN_OK;
}

static kiln_status check_param(const kiln_code *code, size_t k)
{
  const kiln_param *p = &code->params[k];
  const char *why;

  if (p->name == NULL || !is_identifier(p->name))
    return kiln__fail(KILN_EINVAL, "give it a C identifier",
                      "code.params[%zu] has no valid name", k);
  why = name_conflict(p->name);
  if (why != NULL)
    return kiln__fail(KILN_EINVAL, "choose another name",
                      "code.params[%zu]: \"%s\" %s", k, p->name, why);
  for (size_t i = 0; i < k; i++)
    if (strcmp(code->params[i].name, p->name) == 0)
      return kiln__fail(KILN_EINVAL, "give each parameter a name of its own",
                        "code.params[%zu] and code.params[%zu] are both named "
                        "\"%s\"",
                        i, k, p->name);
  return check_value(code, k);
}

kiln_status kiln__check_code(const kiln_code *code)
{
  kiln_status st = KILN_OK;

  if (code->n_params > KILN__MAX_PARAMS ||
      (code->n_params > 0 && code->params == NULL))
    return kiln__fail(KILN_EINVAL, "give 16 parameters at most",
                      "code.params: %zu parameters, %s", code->n_params,
                      code->params == NULL ? "but no list" : "too many");
  for (size_t k = 0; k < code->n_params; k++)
    KILN_TRY(check_param(code, k));

done:
  return st;
}

void kiln__check_names(kiln__checker *c, const kiln_code *code,
                       const char *taken)
{
  for (size_t k = 0; k < code->n_params && code->params != NULL; k++)
    kiln__check_that(c,
                     code->params[k].name == NULL ||
                         !is_listed(code->params[k].name, taken),
                     "code.params[%zu]: \"%s\" is a name that the expressions "
                     "of this call have",
                     k, code->params[k].name);
}
