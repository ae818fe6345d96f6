/* approx.h -- elementary functions in double precision, written as
 * straight-line code that vectorises. Only files of exec/ include this header.
 *
 * Calls of libm cannot be vectorised, and their results differ between versions
 * of libm. The functions here reduce the argument, evaluate a polynomial and
 * reassemble the result with bit operations. Their relative error is below
 * 2^-32. A result narrowed to f32 or a smaller format is therefore nearly
 * always correctly rounded. The PTX manual allows much larger errors for
 * .approx. */
#ifndef KILN_CPU_APPROX_H
#define KILN_CPU_APPROX_H

#include "float.h"

/* Adding this constant to a double rounds the double to an integer, which the
 * low bits of the sum then contain. */
#define KILN__TO_INTEGER 0x1.8p52

/* Computes 2^x. x is clamped to [-300, 300]; beyond that range the result is 0
 * or infinity in f32. */
static inline double kiln__cpu_exp2(double x)
{
  const double low = x < -300 ? -300 : x;
  const double in = low > 300 ? 300 : low;
  const double shifted = in + KILN__TO_INTEGER;
  const double z = (in - (shifted - KILN__TO_INTEGER)) * 0x1.62e42fefa39efp-1;
  /* The exponent field of the scale factor is (integer modulo 4096) + bias. */
  const uint64_t scale =
      (kiln__cpu_bits_of_double(shifted) << 52) + ((uint64_t)1023 << 52);
  double p = 1.0 / 40320;

  p = p * z + 1.0 / 5040;
  p = p * z + 1.0 / 720;
  p = p * z + 1.0 / 120;
  p = p * z + 1.0 / 24;
  p = p * z + 1.0 / 6;
  p = p * z + 0.5;
  p = p * z + 1;
  p = p * z + 1;
  return p * kiln__cpu_double_of_bits(scale);
}

/* Computes log2(x) for x that is a normal double. */
static inline double kiln__cpu_log2(double x)
{
  const uint64_t bits = kiln__cpu_bits_of_double(x);
  /* Normalise the mantissa to [sqrt(1/2), sqrt(2)). */
  const uint32_t above = (uint32_t)(bits >> 32) - 0x3fe6a09e;
  const int32_t exponent =
      (int32_t)(above >> 20) - (above >> 31 != 0 ? 4096 : 0);
  const double m =
      kiln__cpu_double_of_bits(bits - ((uint64_t)(int64_t)exponent << 52));
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 15;

  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1;
  return (double)exponent + p * s * 0x1.71547652b82fep+1;
}

/* Computes sin(r) for r in [-pi/4, pi/4]. */
static inline double kiln__cpu_sin_near(double r)
{
  const double z = r * r;
  double p = -1.0 / 39916800;

  p = p * z + 1.0 / 362880;
  p = p * z - 1.0 / 5040;
  p = p * z + 1.0 / 120;
  p = p * z - 1.0 / 6;
  return r * (1 + z * p); /* the product keeps the sign if r is zero */
}

static inline double kiln__cpu_cos_near(double r)
{
  const double z = r * r;
  double p = 1.0 / 479001600;

  p = p * z - 1.0 / 3628800;
  p = p * z + 1.0 / 40320;
  p = p * z - 1.0 / 720;
  p = p * z + 1.0 / 24;
  p = p * z - 0.5;
  return 1 + z * p;
}

/* Computes x / (2 pi) as a GPU does: x times the f32 constant 1 / (2 pi),
 * truncated to f32. The angle therefore has a relative error of up to 2^-22.5.
 * For |x| of at least 2^25.7, the angle is wrong by whole turns. The caller
 * handles the sign of x. */
static inline double kiln__cpu_turns(double x)
{
  const uint64_t product = kiln__cpu_bits_of_double(fabs(x) * 0x1.45f306p-3);
  const double turns = kiln__cpu_double_of_bits(product & 0xffffffffe0000000);

  /* Finite angles of 2^23 turns or more become 0. Infinities and NaNs become
   * NaN. */
  return turns < 0x1p23 ? turns : turns - turns;
}

/* Computes the sine of an angle of (turns + quarters / 4) full turns, for
 * `turns` from 0 to 2^23. */
static inline double kiln__cpu_sin_turns(double turns, uint64_t quarters)
{
  const double shifted = turns * 4 + KILN__TO_INTEGER;
  const double n = shifted - KILN__TO_INTEGER;
  const double r = (turns * 4 - n) * 0x1.921fb54442d18p+0;
  const uint64_t quadrant = kiln__cpu_bits_of_double(shifted) + quarters;
  const double value =
      (quadrant & 1) != 0 ? kiln__cpu_cos_near(r) : kiln__cpu_sin_near(r);

  return kiln__cpu_double_of_bits(kiln__cpu_bits_of_double(value) ^
                                  ((quadrant & 2) << 62));
}

static inline double kiln__cpu_tanh(double x)
{
  const double power = kiln__cpu_exp2(x * 0x1.71547652b82fep+1);
  const double big = 1 - 2 / (power + 1);

  /* For |x| < 2^-12, the term x^3 / 3 of the power series of tanh(x) is smaller
   * than the last bit of f32. */
  return fabs(x) < 0x1p-12 ? x : big;
}

#endif
