/* lex_number.c -- computes the values of numeric tokens: 64-bit integers in
 * base 2, 8, 10 and 16, decimal floats, and floats that are written as bit
 * patterns (0f, 0d). */
#include "parse.h"

#include <math.h>
#include <stdlib.h>

static int digit_of(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return 99;
}

/* Parses the characters in [from, end) as digits in base `base`. Returns false
 * if there are no digits, if one of the characters is not a digit, or if the
 * value needs more than 64 bits. */
static bool read_integer(const char *from, const char *end, unsigned base,
                         uint64_t *out)
{
  uint64_t value = 0;

  if (from == end)
    return false;
  for (; from < end; from++) {
    const unsigned digit = (unsigned)digit_of(*from);

    if (digit >= base || value > (UINT64_MAX - digit) / base)
      return false;
    value = value * base + digit;
  }
  *out = value;
  return true;
}

static bool read_exact(kiln__cpu_token *tok, int kind, size_t digits)
{
  tok->kind = kind;
  return tok->text.size == digits + 2 &&
         read_integer(tok->text.data + 2, tok->text.data + tok->text.size, 16,
                      &tok->bits);
}

/* Converts a decimal float with strtod(). The decimal point of strtod() depends
 * on the locale, but an integer with an exponent does not. Therefore 1.5e3 is
 * first rewritten as 15e2. */
static bool read_float(kiln__cpu_token *tok)
{
  enum { LONGEST = 1000 };
  char text[LONGEST + 32];
  const char *c = tok->text.data, *const end = c + tok->text.size;
  size_t n = 0;
  long exponent = 0, written = 0;
  bool point = false, minus = false;
  double value;

  for (; c < end && *c != 'e' && *c != 'E'; c++) {
    if (*c == '.' && !point) {
      point = true;
    } else if (*c >= '0' && *c <= '9' && n < LONGEST) {
      text[n++] = *c;
      exponent -= point;
    } else {
      return false;
    }
  }
  if (n == 0)
    return false;
  if (c < end) {
    c++;
    minus = c < end && *c == '-';
    if (c < end && (*c == '-' || *c == '+'))
      c++;
    if (c == end || end - c > 6)
      return false;
    for (; c < end; c++) {
      if (*c < '0' || *c > '9')
        return false;
      written = written * 10 + (*c - '0');
    }
  }
  exponent += minus ? -written : written;
  kiln__format(text + n, sizeof text - n, "e%ld", exponent);
  value = strtod(text, NULL);
  memcpy(&tok->bits, &value, sizeof value);
  tok->kind = KILN__TOKEN_FLOAT;
  return isfinite(value);
}

bool kiln__cpu_ptx_read_number(kiln__cpu_token *tok)
{
  const char *from = tok->text.data, *end = from + tok->text.size;
  const char second = tok->text.size > 1 ? (char)(from[1] | 0x20) : '\0';
  const bool zero = from[0] == '0';
  unsigned base = 10;

  if (zero && second == 'f')
    return read_exact(tok, KILN__TOKEN_FLOAT32, 8);
  if (zero && second == 'd')
    return read_exact(tok, KILN__TOKEN_FLOAT64, 16);
  if (zero && second == 'x') {
    base = 16;
    from += 2;
  } else if (zero && second == 'b') {
    base = 2;
    from += 2;
  } else if (memchr(from, '.', tok->text.size) != NULL ||
             memchr(from, 'e', tok->text.size) != NULL ||
             memchr(from, 'E', tok->text.size) != NULL) {
    return read_float(tok);
  } else if (zero) {
    base = 8;
  }
  tok->kind = KILN__TOKEN_INTEGER;
  if (end > from && end[-1] == 'U') {
    tok->is_unsigned = true;
    end--;
  }
  if (!read_integer(from, end, base, &tok->bits))
    return false;
  tok->is_unsigned |= tok->bits > INT64_MAX;
  return true;
}
