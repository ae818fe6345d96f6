/* target.c -- read and write "sm_90a", "compute_75", "9.0". */
#include "arch.h"

#include <string.h>

/* Codes end here: 1,000 and more is no architecture but __CUDA_ARCH__. */
enum { FIRST_CC = 10, LAST_CC = 199, FIRST_A = 90, FIRST_F = 100 };

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* Reads "90", "120" or, if `dotted`, "9.0", "12.0". Returns what follows, NULL
 * if there is no capability. */
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

kiln_status kiln_target_parse(kiln_target *out, const char *text)
{
  kiln_target t = {0};
  const char *rest;
  bool dotted = false;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = t;
  if (text == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "text is NULL");
  if (kiln__starts_with(text, "sm_")) {
    rest = text + strlen("sm_");
  } else if (kiln__starts_with(text, "compute_")) {
    rest = text + strlen("compute_");
    t.ptx = true;
  } else {
    rest = text;
    dotted = true;
  }
  rest = read_cc(rest, dotted, &t.cc);
  if (rest != NULL && (*rest == 'a' || *rest == 'f'))
    t.suffix = *rest++;
  if (rest == NULL || *rest != '\0')
    return kiln__fail(KILN_EINVAL,
                      "write sm_90, compute_75, 9.0 or 90, with a or f behind "
                      "if needed",
                      "\"%s\" is no target", text);
  if ((t.suffix == 'a' && t.cc < FIRST_A) ||
      (t.suffix == 'f' && t.cc < FIRST_F))
    return kiln__fail(
        KILN_EINVAL, "leave the suffix away: a starts at 9.0, f at 10.0",
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
