#include "cpu_bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct format {
  int exponent_bits, fraction_bits;
  uint64_t nan;
} format;

static const format f64 = {11, 52, UINT64_C(0xfff8000000000000)};
static const format f32 = {8, 23, 0x7fffffff};
static const format f16 = {5, 10, 0x7fff};
static const format bf16 = {8, 7, 0x7fff};

static double decode(const format *f, uint64_t raw)
{
  const uint64_t ones = (UINT64_C(1) << f->exponent_bits) - 1;
  const uint64_t fraction = raw & ((UINT64_C(1) << f->fraction_bits) - 1);
  const uint64_t exponent = raw >> f->fraction_bits & ones;
  const int bias = (int)(ones >> 1);
  double value;

  if (exponent == ones)
    value = fraction != 0 ? (double)NAN : (double)INFINITY;
  else if (exponent == 0)
    value = ldexp((double)fraction, 1 - bias - f->fraction_bits);
  else
    value = ldexp((double)(fraction | UINT64_C(1) << f->fraction_bits),
                  (int)exponent - bias - f->fraction_bits);
  return raw >> (f->exponent_bits + f->fraction_bits) & 1 ? -value : value;
}

static double smallest_normal(const format *f)
{
  return ldexp(1, 2 - (1 << (f->exponent_bits - 1)));
}

static double largest(const format *f)
{
  return ldexp(2 - ldexp(1, -f->fraction_bits),
               (1 << (f->exponent_bits - 1)) - 1);
}

static double reciprocal(double x)
{
  return 1 / x;
}

static double reciprocal_root(double x)
{
  return (double)(1 / sqrtl((long double)x)); /* 1 / sqrt(-0): -infinity */
}

/* |got - exact| <= absolute + relative * |exact| for sources up to `last`. */
static const struct bound {
  const char *begins;
  const format *format;
  double (*exact)(double);
  double relative, absolute, last;
} bounds[] = {
    {"rcp.approx.ftz.f64", &f64, reciprocal, 0x1p-20, 0, INFINITY},
    {"rsqrt.approx.ftz.f64", &f64, reciprocal_root, 0x1p-20, 0, INFINITY},
    {"rsqrt.approx.f64", &f64, reciprocal_root, 0x1p-51, 0, INFINITY},
    {"ex2.approx.ftz.bf16", &bf16, exp2, 0x1p-7, 0, INFINITY},
    {"ex2.approx.f16", &f16, exp2, 0x1.12p-10, 0, INFINITY},
    {"tanh.approx.bf16", &bf16, tanh, 0, 0x1p-8, INFINITY},
    {"tanh.approx.f16", &f16, tanh, 0, 0x1.03p-11, INFINITY},
    {"rcp.approx", &f32, reciprocal, 0x1p-23, 0, INFINITY},
    {"sqrt.approx", &f32, sqrt, 0x1p-23, 0, INFINITY},
    {"rsqrt.approx", &f32, reciprocal_root, 0x1.125p-23, 0, INFINITY},
    {"ex2.approx", &f32, exp2, 0x1.6a1p-23, 0, INFINITY},
    {"lg2.approx", &f32, log2, 0x1p-22, 0, INFINITY},
    {"sin.approx", &f32, sin, 0, 0x1.6a1p-21, 0x1.921fb6p+1},
    {"cos.approx", &f32, cos, 0, 0x1.6a1p-21, 0x1.921fb6p+1},
    {"tanh.approx.f32", &f32, tanh, 0x1p-11, 0, INFINITY},
    {"div.approx", &f32, NULL, 0x1p-22, 0, INFINITY},
    {"div.full", &f32, NULL, 0x1p-22, 0, INFINITY}};

static double flushed(const format *f, bool ftz, double x)
{
  return ftz && fabs(x) < smallest_normal(f) ? copysign(0, x) : x;
}

static double compare(const struct bound *b, bool ftz, double exact,
                      uint64_t got, bool bounded)
{
  const format *const f = b->format;
  const double d = decode(f, got);
  const double smallest = smallest_normal(f);
  double bound = b->absolute + b->relative * fabs(exact);

  if (isnan(exact))
    return got == f->nan ? 0 : -1;
  if (isnan(d))
    return -1;
  if (exact == 0 || isinf(exact))
    return d == exact && signbit(d) == signbit(exact) ? 0 : -1;
  if (isinf(d) || fabs(exact) > largest(f))
    return fabs(exact) > largest(f) * (1 - b->relative) &&
                   (isinf(d) ||
                    fabs(d) >= largest(f) * (1 - 2 * b->relative)) &&
                   signbit(d) == signbit(exact)
               ? 0
               : -1;
  if (ftz && fabs(exact) < smallest * (1 + b->relative) &&
      (d == 0 || fabs(d) == smallest))
    return signbit(d) == signbit(exact) ? 0 : -1;
  if (ftz && d != 0 && fabs(d) < smallest)
    return -1;
  if (!bounded)
    return 0;
  if (bound < ldexp(smallest, -f->fraction_bits)) /* one unit of subnormals */
    bound = ldexp(smallest, -f->fraction_bits);
  if (f != &f32 && f != &f64) /* rounded to the format after the function */
    bound += 0.5 * fabs(exact) * ldexp(1, -f->fraction_bits);
  return fabs(d - exact) / bound;
}

static double error_of(const struct bound *b, const char *name,
                       const uint64_t *in, uint64_t got)
{
  const format *const f = b->format;
  const bool ftz = strstr(name, ".ftz") != NULL;
  const bool seed = f == &f64 && ftz; /* reads and writes the high word */
  const uint64_t high = UINT64_C(0xffffffff00000000);
  double x = flushed(f, ftz, decode(f, seed ? in[0] & high : in[0])), y;

  if (seed && isnan(decode(f, in[0])))
    x = NAN;
  if (seed && (got & ~high) != 0)
    return -1;
  if (b->exact != NULL)
    return compare(b, ftz, b->exact(x), got, fabs(x) <= b->last);
  y = flushed(f, ftz, decode(f, in[1]));
  if (strstr(name, ".approx") != NULL && fabs(y) > 0x1p126 && !isinf(y) &&
      !isnan(x)) /* the reciprocal is flushed */
    return compare(b, ftz, x * copysign(0, y), got, true);
  return compare(b, ftz, x / y, got, true);
}

double bounds_error(const opcode_case *c, const uint64_t *operands,
                    uint64_t got)
{
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
    const struct bound *const b = &bounds[i];
    const uint64_t upper[] = {operands[0] >> 16, 0};
    const uint64_t lower[] = {operands[0] & 0xffff, 0};
    double low, high;

    if (strncmp(c->name, b->begins, strlen(b->begins)) != 0)
      continue;
    if (b->format != &f16 && b->format != &bf16)
      return error_of(b, c->name, operands, got);
    low = error_of(b, c->name, lower, got & 0xffff);
    if (strstr(c->name, "16x2") == NULL)
      return low;
    high = error_of(b, c->name, upper, got >> 16 & 0xffff);
    return low < 0 ? low : high < 0 ? high : fmax(low, high);
  }
  return -1; /* no bound known */
}
