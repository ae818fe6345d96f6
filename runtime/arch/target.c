/* target.c -- parses and formats compile targets: "sm_90a", "compute_75",
 * "9.0", "90". */
#include "arch.h"

#include <string.h>

/* A number of at least 1,000 is a value of the macro __CUDA_ARCH__, not a
 * compute capability. */
enum { FIRST_CC = 10, LAST_CC = 199, FIRST_A = 90, FIRST_F = 100 };

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* Parses a compute capability: "90" or "120", or "9.0" or "12.0" if `dotted` is
 * true. Returns a pointer to the rest of the text, or NULL if the text does not
 * begin with a capability. */
static const char *read_cc(const char *text, bool dotted, int *out)
{
  const char *c = text;
  int value = 0;

  if (*c == '0')
    return NULL;
  for (; is_digit(*c) && c - text < 3; c++)
    value = value * 10 + (*c - '0');
  if (dotted && *c == '.' && c - text >= 1 && c - text <= 2) {
    if (!is_digit(c[1]))
      return NULL;
    value = value * 10 + (c[1] - '0');
    c += 2;
  }
  if (is_digit(*c) || value < FIRST_CC || value > LAST_CC)
    return NULL;
  *out = value;
  return c;
}

/* Returns true if no GPU of this compute capability supports this target
 * suffix. */
static bool wrong_suffix(const kiln_target *t)
{
  return (t->suffix == 'a' && t->cc < FIRST_A) ||
         (t->suffix == 'f' && t->cc < FIRST_F);
}

/* Returns true if the text has the form of a compile target, with any
 * suffix. */
static bool read_target(const char *text, kiln_target *out)
{
  const char *rest = text;

  *out = (kiln_target){0};
  if (kiln__starts_with(text, "sm_")) {
    rest += strlen("sm_");
  } else if (kiln__starts_with(text, "compute_")) {
    rest += strlen("compute_");
    out->ptx = true;
  }
  rest = read_cc(rest, rest == text, &out->cc);
  if (rest != NULL && (*rest == 'a' || *rest == 'f'))
    out->suffix = *rest++;
  return rest != NULL && *rest == '\0';
}

bool kiln__target_read(const char *text, kiln_target *out)
{
  return read_target(text, out) && !wrong_suffix(out);
}

kiln_status kiln_target_parse(kiln_target *out, const char *text)
{
  kiln_target t;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = (kiln_target){0};
  if (text == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "text is NULL");
  if (!read_target(text, &t))
    return kiln__fail(KILN_EINVAL,
                      "write sm_90, compute_75, 9.0 or 90, followed by a or f "
                      "if needed",
                      "\"%s\" is no target", text);
  if (wrong_suffix(&t))
    return kiln__fail(
        KILN_EINVAL, "omit the suffix: a starts at 9.0, f at 10.0",
        "\"%s\": no GPU of that capability has suffix %c", text, t.suffix);
  *out = t;
  return KILN_OK;
}

char *kiln_target_text(const kiln_target *target, char buf[24])
{
  if (target == NULL || target->cc == 0) {
    kiln__copy_text(buf, 24, "none");
    return buf;
  }
  kiln__format(buf, 24, "%s_%d%.1s", target->ptx ? "compute" : "sm", target->cc,
               target->suffix == 'a'   ? "a"
               : target->suffix == 'f' ? "f"
                                       : "");
  return buf;
}
