/* cpu_bounds.c -- the error bounds of approximate opcodes from the PTX ISA
 * manual, and the exact functions that results are compared with. */
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
  /* The result for -0 is 1 / sqrt(-0), which is -infinity. */
  return (double)(1 / sqrtl((long double)x));
}

/* An error bound. A result is correct if |got - exact| <= absolute + relative *
 * |exact|, or if it is at most `steps` representable numbers away from the
 * correctly rounded result. If all members are 0, there is no bound. The values
 * are from the PTX ISA manual. */
typedef struct bound {
  double relative, absolute;
  int steps;
} bound;

static const struct function {
  const char *begins;
  const format *format;
  double (*exact)(double);
  bound bound;
} functions[] = {
    {"rcp.approx.ftz.f64", &f64, reciprocal, {0x1p-20, 0, 0}},
    {"rsqrt.approx.ftz.f64", &f64, reciprocal_root, {0x1p-20, 0, 0}},
    {"rsqrt.approx.f64", &f64, reciprocal_root, {0x1p-51, 0, 0}},
    {"ex2.approx.ftz.bf16", &bf16, exp2, {0x1p-7, 0, 0}},
    {"ex2.approx.f16", &f16, exp2, {0x1.12p-10, 0, 0}},
    {"tanh.approx.bf16", &bf16, tanh, {0, 0x1p-8, 0}},
    {"tanh.approx.f16", &f16, tanh, {0, 0x1.03p-11, 0}},
    {"rcp.approx", &f32, reciprocal, {0x1p-23, 0, 0}},
    {"sqrt.approx", &f32, sqrt, {0x1p-23, 0, 0}},
    {"rsqrt.approx", &f32, reciprocal_root, {0x1.125p-23, 0, 0}},
    {"ex2.approx", &f32, exp2, {0, 0, 2}},
    {"lg2.approx", &f32, log2, {0x1p-22, 0, 0}},
    {"sin.approx", &f32, sin, {0, 0x1.6a09p-21, 0}},
    {"cos.approx", &f32, cos, {0, 0x1.6a09p-21, 0}},
    {"tanh.approx.f32", &f32, tanh, {0x1p-11, 0, 0}},
    {"div.approx", &f32, NULL, {0x1p-22, 0, 0}},
    {"div.full", &f32, NULL, {0x1p-22, 0, 0}}};

static bound bound_at(const struct function *of, double x)
{
  const double pi = 0x1.921fb54442d18p+1;

  if (of->exact == log2 && x > 0.5 && x < 2)
    return (bound){.absolute = 0x1p-22};
  if ((of->exact != sin && of->exact != cos) || fabs(x) <= 2 * pi)
    return of->bound;
  if (fabs(x) <= 100 * pi)
    /* The PTX ISA allows an absolute error of up to 2^-14.7. */
    return (bound){.absolute = 0x1.3b2p-15};
  return (bound){0};
}

static double flushed(const format *f, bool ftz, double x)
{
  return ftz && fabs(x) < smallest_normal(f) ? copysign(0, x) : x;
}

/* Returns the number of representable f32 values between a result and the
 * correctly rounded result. */
static double steps_off(double exact, double got)
{
  const float x = (float)exact, y = (float)got;
  uint32_t a, b;

  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  return fabs((double)a - (double)b);
}

/* Compares a result with the exact value. `nan` is the only correct NaN, and
 * `x` is the source operand. */
static double compare(const struct function *of, bool ftz, double exact,
                      uint64_t got, uint64_t nan, double x)
{
  const format *const f = of->format;
  const bound b = bound_at(of, x);
  const double d = decode(f, got);
  const double smallest = smallest_normal(f), slack = b.relative + 0x1p-21;
  double limit = b.absolute + b.relative * fabs(exact);

  if (isnan(exact))
    return got == nan ? 0 : -1;
  if (isnan(d))
    return -1;
  if (exact == 0 || isinf(exact))
    return d == exact && signbit(d) == signbit(exact) ? 0 : -1;
  if (isinf(d) || fabs(exact) > largest(f))
    return fabs(exact) > largest(f) * (1 - slack) &&
                   (isinf(d) || fabs(d) >= largest(f) * (1 - 2 * slack)) &&
                   signbit(d) == signbit(exact)
               ? 0
               : -1;
  if (ftz && fabs(exact) < smallest * (1 + slack) &&
      (d == 0 || fabs(d) == smallest))
    return signbit(d) == signbit(exact) ? 0 : -1;
  if (ftz && d != 0 && fabs(d) < smallest)
    return -1;
  if (b.steps > 0)
    return steps_off(exact, d) / b.steps;
  if (limit == 0)
    return 0;
  /* A result may always differ by the distance between two subnormals. */
  if (limit < ldexp(smallest, -f->fraction_bits))
    limit = ldexp(smallest, -f->fraction_bits);
  /* Rounding the result to its format adds half a unit in the last place. */
  if (f != &f32 && f != &f64)
    limit += 0.5 * fabs(exact) * ldexp(1, -f->fraction_bits);
  return fabs(d - exact) / limit;
}

/* Returns the error of a result. The approximate f64 opcodes read and write
 * only the upper 32 bits. A NaN whose upper 32 bits have a zero fraction
 * therefore counts as infinity. */
static double error_of(const struct function *of, const char *name,
                       const uint64_t *in, uint64_t got)
{
  const format *const f = of->format;
  const bool ftz = strstr(name, ".ftz") != NULL;
  const bool seed = f == &f64 && ftz;
  const uint64_t high = UINT64_C(0xffffffff00000000);
  const double x = flushed(f, ftz, decode(f, seed ? in[0] & high : in[0]));
  const uint64_t nan = seed                    ? UINT64_C(0x7fffffff00000000)
                       : f == &f64 && isnan(x) ? in[0] | UINT64_C(1) << 51
                                               : f->nan;
  double y;

  if (seed && (got & ~high) != 0)
    return -1;
  if (of->exact != NULL)
    return compare(of, ftz, of->exact(x), got, nan, x);
  y = flushed(f, ftz, decode(f, in[1]));
  if (strstr(name, ".approx") != NULL && fabs(y) > 0x1p126 && !isinf(y) &&
      !isnan(x)) /* The reciprocal of the divisor is flushed to zero. */
    return compare(of, ftz, x * copysign(0, y), got, nan, x);
  return compare(of, ftz, x / y, got, nan, x);
}

static const struct function *function_of(const opcode_case *c)
{
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strncmp(c->name, functions[i].begins, strlen(functions[i].begins)) == 0)
      return &functions[i];
  }
  return NULL;
}

double bounds_error(const opcode_case *c, const uint64_t *operands,
                    uint64_t got)
{
  const struct function *const of = function_of(c);
  const uint64_t upper[] = {operands[0] >> 16, 0};
  const uint64_t lower[] = {operands[0] & 0xffff, 0};
  double low, high;

  if (of == NULL)
    return -1;
  if (of->format != &f16 && of->format != &bf16)
    return error_of(of, c->name, operands, got);
  low = error_of(of, c->name, lower, got & 0xffff);
  if (strstr(c->name, "16x2") == NULL)
    return low;
  high = error_of(of, c->name, upper, got >> 16 & 0xffff);
  return low < 0 ? low : high < 0 ? high : fmax(low, high);
}

bool bounds_near(const opcode_case *c, uint64_t a, uint64_t b)
{
  const struct function *const of = function_of(c);
  double x, y, most;

  if (of == NULL || of->format != &f32)
    return false;
  x = decode(&f32, a);
  y = decode(&f32, b);
  most = of->exact == log2 ? 0x1p-22 : of->bound.absolute;
  return fabs(x - y) <= 2 * most;
}
