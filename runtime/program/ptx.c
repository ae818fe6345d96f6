/* ptx.c -- finds the entries of a PTX source and the sizes of their parameters.
 *
 * Launches check the number and sizes of the arguments. Drivers before 12.4
 * cannot report them, so they are read from the PTX in each cache entry. Only
 * the head of each .entry is parsed, and bodies are skipped, so the cost is one
 * pass over the PTX source. The PTX source need not be NUL-terminated. Every
 * access is bounded by its size, so damaged PTX gives no entries. Source: PTX
 * ISA, "Kernel and function directives". */
#include "program.h"

#include <string.h>

typedef struct cursor {
  const char *at, *end;
} cursor;

static bool is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

/* Skips a comment or a quoted string that starts at the cursor. */
static bool skip_opaque(cursor *c)
{
  const size_t left = (size_t)(c->end - c->at);
  const char *stop;

  if (left >= 2 && c->at[0] == '/' && c->at[1] == '/') {
    stop = memchr(c->at, '\n', left);
    c->at = stop == NULL ? c->end : stop + 1;
    return true;
  }
  if (left >= 2 && c->at[0] == '/' && c->at[1] == '*') {
    stop = memmem(c->at + 2, left - 2, "*/", 2);
    c->at = stop == NULL ? c->end : stop + 2;
    return true;
  }
  if (left >= 1 && c->at[0] == '"') {
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
      if (*c->at == '\\' && c->at + 1 < c->end)
        c->at++;
    }
    if (c->at < c->end)
      c->at++;
    return true;
  }
  return false;
}

static void skip_space(cursor *c)
{
  while (c->at < c->end && (is_space(*c->at) || skip_opaque(c))) {
    if (c->at < c->end && is_space(*c->at))
      c->at++;
  }
}

/* Reads the next PTX token: an identifier, a directive such as ".entry", or a
 * single other character. */
static bool next_token(cursor *c, const char **token, size_t *size)
{
  skip_space(c);
  if (c->at >= c->end)
    return false;
  *token = c->at++;
  if (is_word(**token) || **token == '.') {
    while (c->at < c->end && is_word(*c->at))
      c->at++;
  }
  *size = (size_t)(c->at - *token);
  return true;
}

static bool token_is(const char *token, size_t size, const char *text)
{
  return size == strlen(text) && memcmp(token, text, size) == 0;
}

/* Returns the size in bytes of a fundamental PTX type, or 0 if the token is not
 * a type. Opaque references such as .texref are 64-bit handles. */
static uint32_t type_bytes(const char *token, size_t size)
{
  static const struct {
    const char *name;
    uint32_t bytes;
  } types[] = {
      {".u64", 8},    {".b64", 8},        {".s64", 8},     {".f64", 8},
      {".u32", 4},    {".b32", 4},        {".s32", 4},     {".f32", 4},
      {".u16", 2},    {".b16", 2},        {".s16", 2},     {".f16", 2},
      {".bf16", 2},   {".u8", 1},         {".b8", 1},      {".s8", 1},
      {".f16x2", 4},  {".bf16x2", 4},     {".tf32", 4},    {".b128", 16},
      {".texref", 8}, {".samplerref", 8}, {".surfref", 8}, {".pred", 1},
  };

  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (token_is(token, size, types[i].name))
      return types[i].bytes;
  }
  return 0;
}

static uint32_t number(const char *token, size_t size)
{
  uint32_t value = 0;

  for (size_t i = 0; i < size; i++) {
    if (token[i] < '0' || token[i] > '9' || value > UINT32_MAX / 10 - 1)
      return 0;
    value = value * 10 + (uint32_t)(token[i] - '0');
  }
  return value;
}

/* Reads a parameter list "( .param ... , ... )". The cursor is after the
 * opening parenthesis. Sizes beyond the capacity are counted but not stored.
 * Returns false if the PTX source ends early. */
static bool read_params(cursor *c, uint32_t *sizes, size_t capacity, size_t *n)
{
  uint32_t bytes = 0;
  bool open = false;
  const char *token;
  size_t size;

  for (*n = 0; next_token(c, &token, &size);) {
    if (*token == ',' || *token == ')') {
      if (open && *n < capacity)
        sizes[*n] = bytes;
      *n += open;
      open = false;
      if (*token == ')')
        return true;
    } else if (token_is(token, size, ".param")) {
      open = true;
      bytes = 0;
    } else if (*token == '.') {
      if (bytes == 0)
        bytes = type_bytes(token, size);
    } else if (*token == '[') {
      if (next_token(c, &token, &size) && *token != ']')
        bytes *= number(token, size);
    }
  }
  return false;
}

/* Reads the directives between the parameters and the body, which contain the
 * launch bounds. */
static void read_bounds(cursor *c, int *max_threads)
{
  const char *token;
  size_t size;

  *max_threads = 0;
  while (next_token(c, &token, &size) && *token != '{' && *token != ';') {
    uint32_t product = 1;

    if (!token_is(token, size, ".maxntid") &&
        !token_is(token, size, ".reqntid"))
      continue;
    for (int axis = 0; axis < 3; axis++) {
      cursor before;

      if (!next_token(c, &token, &size))
        return;
      if (number(token, size) > 0 && product < 1u << 16)
        product *= number(token, size);
      before = *c;
      if (!next_token(c, &token, &size))
        break;
      if (*token != ',') { /* the directive has fewer than three dimensions */
        *c = before;
        break;
      }
    }
    *max_threads = (int)product;
  }
}

/* Moves the cursor past the next ".entry" directive. Kernel bodies do not
 * contain this directive. */
static bool find_entry(cursor *c)
{
  static const char word[] = ".entry";

  while (c->at < c->end) {
    if (skip_opaque(c))
      continue;
    if (*c->at == '.' && (size_t)(c->end - c->at) > sizeof word - 1 &&
        memcmp(c->at, word, sizeof word - 1) == 0 &&
        is_space(c->at[sizeof word - 1])) {
      c->at += sizeof word - 1;
      return true;
    }
    c->at++;
  }
  return false;
}

static bool read_entry(cursor *c, kiln__image_ptx_entry *out, uint32_t *sizes,
                       size_t capacity)
{
  cursor before;
  const char *token;
  size_t size;

  *out = (kiln__image_ptx_entry){0};
  if (!next_token(c, &token, &size) || !is_word(*token))
    return false;
  out->name = token;
  out->name_size = size;
  before = *c;
  if (next_token(c, &token, &size) && *token == '(') {
    if (!read_params(c, sizes, capacity, &out->n_params))
      return false;
  } else {
    *c = before;
  }
  read_bounds(c, &out->max_threads);
  return true;
}

bool kiln__image_ptx_next(const char *ptx, size_t size, size_t *at,
                          kiln__image_ptx_entry *out)
{
  cursor c = {ptx + *at, ptx + size};
  bool found = false;

  if (*at < size && find_entry(&c))
    found = read_entry(&c, out, NULL, 0);
  *at = found ? (size_t)(c.at - ptx) : size;
  return found;
}

bool kiln__image_ptx_params(const char *ptx, size_t size, const char *lowered,
                            uint32_t *sizes, size_t capacity, size_t *n)
{
  cursor c = {ptx, ptx + size};
  kiln__image_ptx_entry entry;

  *n = 0;
  while (find_entry(&c)) {
    if (!read_entry(&c, &entry, sizes, capacity))
      return false;
    if (token_is(entry.name, entry.name_size, lowered)) {
      *n = entry.n_params;
      return true;
    }
  }
  return false;
}
