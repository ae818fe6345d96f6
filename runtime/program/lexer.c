/* lexer.c -- finds include directives in C++ source without preprocessing it.
 *
 * Problem: the cache key needs every file that a program can include, but only
 * a full preprocessor can determine which #if groups are taken.
 * Idea: recognise just enough of C++ to find a directive exactly where the
 * compiler would. The lexer therefore handles spliced lines, comments, literals
 * (including raw literals) and digit separators. #if groups are not evaluated,
 * so all includes are reported.
 * Invariant: every include that the compiler processes is reported. An include
 * that the compiler would skip may also be reported, which costs at most a
 * needless compile.
 * Cost: one pass over the source text. Source: C++17 [lex.phases]. */
#include "lexer.h"

#include <string.h>

enum { END = -1, WORD_SIZE = 24 };

/* Skips backslash-newline pairs, which the compiler removes in its first
 * translation phases. */
static void skip_splices(kiln__lexer *x)
{
  while (x->end - x->at >= 2 && x->at[0] == '\\' &&
         (x->at[1] == '\n' ||
          (x->at[1] == '\r' && x->end - x->at >= 3 && x->at[2] == '\n')))
    x->at += x->at[1] == '\n' ? 2 : 3;
}

static int peek(kiln__lexer *x)
{
  skip_splices(x);
  return x->at < x->end ? (unsigned char)*x->at : END;
}

static int take(kiln__lexer *x)
{
  const int c = peek(x);

  if (c != END)
    x->at++;
  return c;
}

static bool accept(kiln__lexer *x, const char *text)
{
  const char *const start = x->at;

  for (; *text != '\0'; text++) {
    if (take(x) != *text) {
      x->at = start;
      return false;
    }
  }
  return true;
}

static bool is_name_char(int c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c >= 0x80;
}

static bool skip_comment(kiln__lexer *x)
{
  if (accept(x, "//")) {
    while (peek(x) != '\n' && peek(x) != END)
      take(x);
    return true;
  }
  if (accept(x, "/*")) {
    while (peek(x) != END && !accept(x, "*/"))
      take(x);
    return true;
  }
  return false;
}

/* Skips white space up to the end of the line. */
static void skip_blanks(kiln__lexer *x)
{
  for (;;) {
    const int c = peek(x);

    if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f')
      take(x);
    else if (!skip_comment(x))
      return;
  }
}

/* Skips a literal. A literal never spans lines, so a stray quote affects at
 * most one line. */
static void skip_literal(kiln__lexer *x)
{
  const int quote = take(x);

  for (int c = peek(x); c != END && c != '\n'; c = peek(x)) {
    take(x);
    if (c == quote)
      return;
    if (c == '\\' && peek(x) != '\n')
      take(x);
  }
}

/* Skips a raw string literal R"tag( ... )tag", which has no line splices and no
 * escapes. */
static void skip_raw(kiln__lexer *x)
{
  char stop[20] = ")";
  size_t n = 1;

  x->at++; /* skip the opening quote of the literal */
  while (x->at < x->end && *x->at != '(' && n < 17)
    stop[n++] = *x->at++;
  stop[n++] = '"';
  while (x->at < x->end &&
         ((size_t)(x->end - x->at) < n || memcmp(x->at, stop, n) != 0))
    x->at++;
  if (x->at < x->end)
    x->at += n;
}

/* Reads an identifier, truncated to the buffer. No identifier that the lexer
 * looks for is longer than the buffer. */
static void take_word(kiln__lexer *x, char word[WORD_SIZE])
{
  size_t n = 0;

  while (is_name_char(peek(x))) {
    const int c = take(x);

    if (n + 1 < WORD_SIZE)
      word[n++] = (char)c;
  }
  word[n] = '\0';
}

static bool is_one_of(const char *word, const char *const *list)
{
  for (; *list != NULL; list++) {
    if (strcmp(word, *list) == 0)
      return true;
  }
  return false;
}

/* Reads the operand of an include directive: "name", <name> or a macro name.
 * Returns false if the operand cannot be included. */
static bool take_operand(kiln__lexer *x, kiln__include *out)
{
  size_t n = 0;
  int c, stop;

  skip_blanks(x);
  c = peek(x);
  if (c == '"' || c == '<') {
    take(x);
    out->form = c == '"' ? KILN__QUOTED : KILN__ANGLED;
    stop = c == '"' ? '"' : '>';
  } else if (is_name_char(c)) {
    out->form = KILN__COMPUTED;
    stop = '\n';
  } else {
    return false;
  }
  while ((c = peek(x)) != END && c != '\n' && c != stop &&
         (out->form != KILN__COMPUTED || is_name_char(c))) {
    take(x);
    if (n + 1 < sizeof out->name)
      out->name[n++] = (char)c;
  }
  out->name[n] = '\0';
  if (c == stop && stop != '\n')
    take(x);
  return n > 0;
}

static bool take_directive(kiln__lexer *x, kiln__include *out)
{
  static const char *const words[] = {"include", "include_next", "import",
                                      NULL};
  char word[WORD_SIZE];

  skip_blanks(x);
  if (!is_name_char(peek(x)))
    return false;
  take_word(x, word);
  return is_one_of(word, words) && take_operand(x, out);
}

/* Handles an identifier outside directives: __has_include(), or the prefix of a
 * raw literal. */
static bool take_special(kiln__lexer *x, const char *word, kiln__include *out)
{
  static const char *const tests[] = {"__has_include", "__has_include_next",
                                      NULL};
  static const char *const raw[] = {"R", "LR", "uR", "UR", "u8R", NULL};

  if (peek(x) == '"' && is_one_of(word, raw)) {
    skip_raw(x);
    return false;
  }
  if (!is_one_of(word, tests))
    return false;
  skip_blanks(x);
  return accept(x, "(") && take_operand(x, out);
}

void kiln__lexer_init(kiln__lexer *lexer, const char *text, size_t size)
{
  *lexer = (kiln__lexer){text, text + size, true};
}

bool kiln__lexer_next(kiln__lexer *x, kiln__include *out)
{
  char word[WORD_SIZE];
  int c;

  while ((c = peek(x)) != END) {
    const bool first = x->line_start;

    if (c == '\n') {
      take(x);
      x->line_start = true;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
      take(x);
      continue;
    }
    if (skip_comment(x))
      continue;
    x->line_start = false;
    if (first && (accept(x, "#") || accept(x, "%:") || accept(x, "?\?="))) {
      if (take_directive(x, out))
        return true;
    } else if (is_name_char(c)) {
      take_word(x, word);
      if (peek(x) == '\'' && word[0] >= '0' && word[0] <= '9')
        /* the quote is a digit separator, not the start of a character literal
         */
        take(x);
      else if (take_special(x, word, out))
        return true;
    } else if (c == '"' || c == '\'') {
      skip_literal(x);
    } else {
      take(x);
    }
  }
  return false;
}
