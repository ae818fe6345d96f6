/* cpu_convert.c -- reference implementations of conversions, which round by
 * bisection in long double. */
#include "cpu_convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static long double whole(long double x, ref_round round)
{
  switch (round) {
  case REF_ZERO:
    return truncl(x);
  case REF_DOWN:
    return floorl(x);
  case REF_UP:
    return ceill(x);
  default:
    /* The reference expects that the host processor rounds to nearest. */
    return rintl(x);
  }
}

static uint64_t to_integer(const char *type, const char *from, long double x)
{
  const unsigned bits = ref_bits(type);
  const ref_int top = (ref_int)1 << (bits - ref_is_signed(type));
  const ref_int high = top - 1, low = ref_is_signed(type) ? -top : 0;

  if (isnan(x)) {
    const bool wide = bits == 64 || strcmp(from, "f64") == 0;

    return wide ? UINT64_C(1) << (bits - 1) : 0;
  }
  x = whole(x, ref_rounding());
  if (x >= (long double)high)
    return ref_cut(type, high);
  return ref_cut(type, x <= (long double)low ? low : (ref_int)x);
}

/* Returns true if x is below 2^-126 after rounding to the 24 bits of f32. */
static bool is_tiny(long double x)
{
  const uint64_t scaled =
      ref_encode("f32", x * 0x1p64L, ref_rounding(), false) & 0x7fffffff;

  return fabsl(x) < 0x1p-126L && scaled < UINT64_C(65) << 23;
}

static uint64_t to_float(const char *type, long double x, bool rounds_whole)
{
  uint64_t r;

  if (rounds_whole && !isnan(x))
    x = copysignl(whole(x, ref_rounding()), x);
  if (ref_has("sat"))
    x = !(x > 0) ? 0 : x > 1 ? 1 : x;
  if (ref_has("relu") && signbit(x) && !isnan(x))
    x = 0;
  r = ref_encode(type, x, ref_rounding(), ref_has("satfinite"));
  if (ref_has("ftz") && strcmp(type, "f32") == 0 && is_tiny(x))
    r &= 0x80000000;
  return r;
}

/* Returns the NaN of a conversion from or to f64. The NaN keeps its sign and
 * the highest bits of its payload, and becomes quiet. */
static uint64_t nan_to(const char *to, const char *from, uint64_t raw)
{
  const ref_format *const f = ref_format_of(from), *const g = ref_format_of(to);
  const uint64_t sign = raw >> (f->exponent_bits + f->fraction_bits) & 1;
  const uint64_t fraction = raw << (64 - f->fraction_bits) | UINT64_C(1) << 63;

  if (ref_has("sat"))
    return 0;
  if (ref_has("ftz") && strcmp(from, "f32") == 0)
    return UINT64_C(0x7fffffffe0000000);
  return sign << (g->exponent_bits + g->fraction_bits) | g->infinity |
         fraction >> (64 - g->fraction_bits);
}

/* Converts to tf32 with .rna, which rounds finite values as integers and only
 * truncates special values. */
static uint64_t to_tf32_away(uint64_t raw)
{
  const bool special = (raw >> 23 & 255) == 255;
  uint64_t r = (special ? raw : raw + 0x1000) / 0x2000 * 0x2000;

  if (ref_has("satfinite") && (r >> 23 & 255) == 255)
    r -= 0x2000;
  return r & 0xffffffff;
}

/* Returns true if a conversion copies the bits, so that a NaN is preserved. */
static bool only_moves(const char *to, const char *from)
{
  const bool shifts =
      strcmp(to, "f32") == 0 && strcmp(from, "bf16") == 0 && !ref_has("ftz");

  return shifts ||
         (strcmp(to, from) == 0 && ref_op.n == 3 && strstr(to, "16") == NULL);
}

static uint64_t converted(const char *to, const char *from, uint64_t raw)
{
  const bool rounds_whole =
      ref_has("rni") || ref_has("rzi") || ref_has("rmi") || ref_has("rpi");
  ref_int value;

  if (ref_is_float(from)) {
    /* GPUs keep subnormals in conversions to f16. */
    const bool ftz =
        ref_has("ftz") && strcmp(from, "f32") == 0 && strcmp(to, "f16") != 0;
    const uint64_t mask = ref_cut(from, -1);
    const long double x = ref_decode(from, raw & mask, ftz);

    if (strcmp(to, "tf32") == 0 && ref_has("rna"))
      return to_tf32_away(raw & mask);
    if (isnan(x) && ref_is_float(to) && !only_moves(to, from) &&
        (strcmp(to, "f64") == 0 || strcmp(from, "f64") == 0))
      return nan_to(to, from, raw);
    if (only_moves(to, from))
      return (raw & mask) << (ref_bits(to) - ref_bits(from));
    return ref_is_float(to) ? to_float(to, x, rounds_whole)
                            : to_integer(to, from, x);
  }
  value = ref_value(from, raw);
  if (ref_is_float(to))
    return to_float(to, (long double)value, false);
  if (ref_has("sat")) {
    const ref_int top = (ref_int)1 << (ref_bits(to) - ref_is_signed(to));
    const ref_int low = ref_is_signed(to) ? -top : 0;

    value = value < low ? low : value > top - 1 ? top - 1 : value;
  }
  return ref_cut(to, value);
}

void ref_cvt(cpu_lane *l)
{
  const char *const to = ref_last(1), *const from = ref_last(0);
  const uint64_t value = converted(to, from, l->a);
  const unsigned width = l->in->reg_bytes * 8u;

  l->d = ref_is_float(to) ? value : (uint64_t)ref_value(to, value);
  if (width < 64)
    l->d &= (UINT64_C(1) << width) - 1;
}

/* Converts a packed type name to its element type, for example "f16x2" to
 * "f16". */
static void single(const char *t, char out[8])
{
  snprintf(out, 8, "%.*s", (int)(strlen(t) - 2), t);
}

static void ref_two(cpu_lane *l)
{
  char to[8], from[8];
  unsigned shift;

  single(ref_last(1), to);
  shift = ref_bits(to);
  if (strcmp(ref_last(0), "f32") == 0) {
    l->d = converted(to, "f32", l->b) | converted(to, "f32", l->a) << shift;
    return;
  }
  single(ref_last(0), from);
  l->d = converted(to, from, l->a) | converted(to, from, l->a >> ref_bits(from))
                                         << shift;
}

static void ref_pack(cpu_lane *l)
{
  const char *const to = ref_op.part[3];
  const unsigned n = ref_bits(to);

  l->d = converted(to, "s32", l->b) | converted(to, "s32", l->a) << n;
  if (ref_op.n == 6)
    l->d |= l->c << 2 * n & 0xffffffff;
}

cpu_reference *ref_conversion(void)
{
  const char *const to = ref_last(1);
  const size_t n = strlen(to);

  if (strcmp(ref_op.part[1], "pack") == 0)
    return ref_pack;
  return strcmp(to + n - 2, "x2") == 0 ? ref_two : ref_cvt;
}
