/* lex.c -- splits PTX source into tokens.
 *
 * The parser has one current token, p->tok, and calls kiln__cpu_ptx_next() to
 * advance to the next one. Tokens are slices of the module's copy of the
 * source, so the lexer copies no text. A PTX modifier is a word with a leading
 * dot, but a dot may also begin a number: `.5` is a number and `.2d` is a
 * modifier. The lexer skips comments, line ends, and line markers of a
 * preprocessor.
 *
 * The source is NUL-terminated, so the lexer may always read one character
 * ahead. The running time is linear in the size of the source. */
#include "parse.h"

bool kiln__cpu_slice_is(kiln__cpu_slice s, const char *text)
{
  return strlen(text) == s.size && memcmp(s.data, text, s.size) == 0;
}

bool kiln__cpu_slice_equal(kiln__cpu_slice a, kiln__cpu_slice b)
{
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

bool kiln__cpu_ptx_may_continue(const kiln__cpu_parser *p)
{
  return !p->no_memory && p->messages.n < KILN__PTX_MAX_ERRORS;
}

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
  return is_alpha(c) || is_digit(c) || c == '_' || c == '$';
}

static kiln__cpu_ptx_pos here(const kiln__cpu_parser *p)
{
  return (kiln__cpu_ptx_pos){p->line, (uint32_t)(p->at - p->line_start) + 1};
}

static void new_line(kiln__cpu_parser *p)
{
  p->line++;
  p->line_start = p->at;
  p->line_has_token = false;
}

/* Skips to the end of a comment. The start of the comment has already been
 * consumed. */
static bool skip_comment(kiln__cpu_parser *p, kiln__cpu_ptx_pos from)
{
  while (p->at < p->end) {
    const char c = *p->at++;

    if (c == '\n')
      new_line(p);
    if (c == '*' && *p->at == '/') {
      p->at++;
      return true;
    }
  }
  return kiln__cpu_wrong(p, from, "the comment has no end");
}

static void skip_line(kiln__cpu_parser *p)
{
  const char *end = memchr(p->at, '\n', (size_t)(p->end - p->at));

  p->at = end == NULL ? p->end : end;
}

/* Skips the line markers that a preprocessor writes: `# 12 "file"` and `#line
 * 12 "file"`. */
static bool skip_line_marker(kiln__cpu_parser *p)
{
  const char *c = p->at + 1;

  while (*c == ' ' || *c == '\t')
    c++;
  if (strncmp(c, "line", 4) == 0)
    c += 4;
  while (*c == ' ' || *c == '\t')
    c++;
  if (p->line_has_token || !is_digit(*c))
    return false;
  skip_line(p);
  return true;
}

/* Skips white space, comments and line markers. Returns false after it reports
 * an unterminated comment. */
static bool skip_space(kiln__cpu_parser *p)
{
  while (p->at < p->end) {
    const char c = *p->at;

    if (c == '\n') {
      p->at++;
      new_line(p);
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      p->at++;
    } else if (c == '/' && p->at[1] == '/') {
      skip_line(p);
    } else if (c == '/' && p->at[1] == '*') {
      const kiln__cpu_ptx_pos from = here(p);

      p->at += 2;
      if (!skip_comment(p, from))
        return false;
    } else if (c != '#' || !skip_line_marker(p)) {
      break;
    }
  }
  return true;
}

static void lex_string(kiln__cpu_parser *p)
{
  const char *from = ++p->at;

  while (p->at < p->end && *p->at != '"') {
    if (*p->at++ == '\n')
      new_line(p);
  }
  p->tok.text = (kiln__cpu_slice){from, (uint32_t)(p->at - from)};
  if (p->at < p->end) {
    p->at++;
    p->tok.kind = KILN__TOKEN_STRING;
  } else {
    kiln__cpu_wrong(p, p->tok.pos, "the string has no end");
    p->tok.kind = KILN__TOKEN_BAD;
  }
}

/* Reads the longest sequence of characters that may be a number, such as 12U,
 * 0x1f, 1.5e-3 or .5. */
static void lex_number(kiln__cpu_parser *p)
{
  const char *from = p->at;
  const bool prefixed =
      from[0] == '0' && is_alpha(from[1]) && from[1] != 'e' && from[1] != 'E';

  while (is_word(*p->at) || (*p->at == '.' && !prefixed)) {
    const char c = *p->at++;

    if (!prefixed && (c == 'e' || c == 'E') && (*p->at == '+' || *p->at == '-'))
      p->at++;
  }
  p->tok.text = (kiln__cpu_slice){from, (uint32_t)(p->at - from)};
  if (!kiln__cpu_ptx_read_number(&p->tok)) {
    kiln__cpu_wrong(p, p->tok.pos, "malformed number '%.*s'",
                    (int)p->tok.text.size, from);
    p->tok.kind = KILN__TOKEN_BAD;
  }
}

/* Returns whether a dot begins a number, such as `.5` or `.5e3`, and not a
 * modifier, such as `.2d` or `.16x64b`. */
static bool dot_is_number(const char *c)
{
  if (!is_digit(*++c))
    return false;
  while (is_digit(*c))
    c++;
  if ((*c == 'e' || *c == 'E') &&
      (is_digit(c[1]) || ((c[1] == '+' || c[1] == '-') && is_digit(c[2])))) {
    for (c += 2; is_digit(*c);)
      c++;
  }
  return !is_word(*c);
}

static void lex_dot(kiln__cpu_parser *p)
{
  const char *from = p->at++;

  while (is_word(*p->at) ||
         (*p->at == ':' && p->at[1] == ':' && is_word(p->at[2])))
    p->at += *p->at == ':' ? 2 : 1;
  p->tok.text = (kiln__cpu_slice){from, (uint32_t)(p->at - from)};
  p->tok.kind = p->tok.text.size > 1 ? KILN__TOKEN_DOT : '.';
}

static void lex_name(kiln__cpu_parser *p)
{
  const char *from = p->at++;

  while (is_word(*p->at))
    p->at++;
  p->tok.text = (kiln__cpu_slice){from, (uint32_t)(p->at - from)};
  p->tok.kind = kiln__cpu_slice_is(p->tok.text, "function_name") ||
                        kiln__cpu_slice_is(p->tok.text, "inlined_at")
                    ? KILN__TOKEN_WORD
                    : KILN__TOKEN_NAME;
  /* A name that begins with _, $ or % has at least two characters. */
  if (p->tok.text.size == 1 && !is_alpha(*from))
    p->tok.kind = (unsigned char)*from;
}

static const struct {
  char text[3];
  int kind;
} pairs[] = {{"<<", KILN__TOKEN_SHL}, {">>", KILN__TOKEN_SHR},
             {"<=", KILN__TOKEN_LE},  {">=", KILN__TOKEN_GE},
             {"==", KILN__TOKEN_EQ},  {"!=", KILN__TOKEN_NE},
             {"&&", KILN__TOKEN_AND}, {"||", KILN__TOKEN_OR}};

static void lex_mark(kiln__cpu_parser *p)
{
  const char *from = p->at++;

  p->tok.kind = (unsigned char)*from;
  p->tok.text = (kiln__cpu_slice){from, 1};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (from[0] == pairs[i].text[0] && from[1] == pairs[i].text[1]) {
      p->at++;
      p->tok.kind = pairs[i].kind;
      p->tok.text.size = 2;
      return;
    }
  }
  if (*from <= ' ' || *from == 0x7f || strchr("`'\"\\#?", *from) != NULL) {
    if (*from == '?')
      return;
    kiln__cpu_wrong(p, p->tok.pos, "unexpected character of code %u",
                    (unsigned)(unsigned char)*from);
    p->tok.kind = KILN__TOKEN_BAD;
  }
}

void kiln__cpu_ptx_next(kiln__cpu_parser *p)
{
  const bool space = skip_space(p);
  char c;

  p->tok = (kiln__cpu_token){
      .pos = here(p), .text = {p->at, 0}, .first = !p->line_has_token};
  if (!space) {
    p->tok.kind = KILN__TOKEN_BAD;
    return;
  }
  if (p->at >= p->end)
    return;
  p->line_has_token = true;
  c = *p->at;
  if (is_alpha(c) || c == '_' || c == '$' || c == '%')
    lex_name(p);
  else if (is_digit(c) || (c == '.' && dot_is_number(p->at)))
    lex_number(p);
  else if (c == '.')
    lex_dot(p);
  else if (c == '"')
    lex_string(p);
  else
    lex_mark(p);
}

kiln__cpu_place kiln__cpu_ptx_place(const kiln__cpu_parser *p)
{
  return (kiln__cpu_place){p->at, p->line_start, p->line, p->line_has_token,
                           p->tok};
}

void kiln__cpu_ptx_rewind(kiln__cpu_parser *p, const kiln__cpu_place *place)
{
  p->at = place->at;
  p->line_start = place->line_start;
  p->line = place->line;
  p->line_has_token = place->line_has_token;
  p->tok = place->tok;
}

bool kiln__cpu_ptx_is(const kiln__cpu_parser *p, const char *text)
{
  return (p->tok.kind == KILN__TOKEN_NAME || p->tok.kind == KILN__TOKEN_WORD ||
          p->tok.kind == KILN__TOKEN_DOT) &&
         kiln__cpu_slice_is(p->tok.text, text);
}

bool kiln__cpu_ptx_accept(kiln__cpu_parser *p, int kind)
{
  if (p->tok.kind != kind)
    return false;
  kiln__cpu_ptx_next(p);
  return true;
}

bool kiln__cpu_ptx_accept_word(kiln__cpu_parser *p, const char *text)
{
  if (!kiln__cpu_ptx_is(p, text))
    return false;
  kiln__cpu_ptx_next(p);
  return true;
}

bool kiln__cpu_ptx_unexpected(kiln__cpu_parser *p, const char *what)
{
  const int size = p->tok.text.size > 60 ? 60 : (int)p->tok.text.size;

  if (p->tok.kind == KILN__TOKEN_BAD)
    return false;
  if (p->tok.kind == KILN__TOKEN_END)
    return kiln__cpu_wrong(p, p->tok.pos,
                           "unexpected end of the text, expected %s", what);
  return kiln__cpu_wrong(p, p->tok.pos, "unexpected '%.*s', expected %s", size,
                         p->tok.text.data, what);
}

bool kiln__cpu_ptx_expect(kiln__cpu_parser *p, int kind)
{
  const char mark[] = {'\'', (char)kind, '\'', '\0'};

  if (kiln__cpu_ptx_accept(p, kind))
    return true;
  return kiln__cpu_ptx_unexpected(p, kind == KILN__TOKEN_NAME     ? "a name"
                                     : kind == KILN__TOKEN_STRING ? "a string"
                                                                  : mark);
}

bool kiln__cpu_ptx_number(kiln__cpu_parser *p, uint64_t *value)
{
  *value = p->tok.bits;
  if (kiln__cpu_ptx_accept(p, KILN__TOKEN_INTEGER))
    return true;
  *value = 0;
  return kiln__cpu_ptx_unexpected(p, "a number");
}
