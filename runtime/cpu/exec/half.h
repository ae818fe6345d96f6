/* half.h -- f16 and bf16 values as bits, and conversions between these formats,
 * float and double. Only files of exec/ include this header.
 *
 * All functions are inline and free of branches, so that the loops of the
 * handlers vectorise. A 16-bit value is stored in the low half of a uint32_t
 * whose upper half is zero. Widening is exact and keeps the payload of a NaN.
 * Narrowing rounds once and returns the canonical NaN. The rounding is to
 * nearest even unless stated otherwise. */
#ifndef KILN_CPU_HALF_H
#define KILN_CPU_HALF_H

#include "nan.h"

#include <stdint.h>
#include <string.h>

static inline uint32_t kiln__cpu_bits_of_float(float x)
{
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float kiln__cpu_float_of_bits(uint32_t bits)
{
  float x;

  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t kiln__cpu_bits_of_double(double x)
{
  uint64_t bits;

  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double kiln__cpu_double_of_bits(uint64_t bits)
{
  double x;

  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline float kiln__cpu_float_of_f16(uint32_t h)
{
  const uint32_t magnitude = h & 0x7fff;
  const uint32_t sign = (h & 0x8000) << 16;
  /* f16 subnormals are multiples of 2^-24 */
  const uint32_t small =
      kiln__cpu_bits_of_float((float)(int32_t)magnitude * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000;
  const uint32_t bits = magnitude < 0x400     ? small
                        : magnitude >= 0x7c00 ? special
                                              : normal;

  return kiln__cpu_float_of_bits(bits | sign);
}

static inline uint32_t kiln__cpu_f16_of_float(float x)
{
  const uint32_t bits = kiln__cpu_bits_of_float(x);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t sign = (bits >> 16) & 0x8000;
  /* For magnitudes below 2^-14, adding 0.5 rounds the value, because 0.5 has an
   * ulp of 2^-24. */
  const uint32_t tiny = magnitude < 0x38800000 ? magnitude : 0;
  const uint32_t small =
      kiln__cpu_bits_of_float(kiln__cpu_float_of_bits(tiny) + 0.5f) -
      0x3f000000;
  const uint32_t raw =
      (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t normal = magnitude >= 0x477ff000 ? 0x7c00 : raw;
  const uint32_t finite = magnitude < 0x38800000 ? small : normal;

  return magnitude > 0x7f800000 ? KILN__NAN_F16 : finite | sign;
}

static inline float kiln__cpu_float_of_bf16(uint32_t h)
{
  return kiln__cpu_float_of_bits(h << 16);
}

static inline uint32_t kiln__cpu_bf16_of_float(float x)
{
  const uint32_t bits = kiln__cpu_bits_of_float(x);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;

  return (bits & 0x7fffffff) > 0x7f800000 ? KILN__NAN_BF16 : rounded;
}

/* Computes a + b rounded to odd: the last bit of the result is set if the sum
 * is inexact. Rounding this result to fewer than 52 bits equals a single
 * rounding of the exact sum. Sums and products of f16 or bf16 values are far
 * from the overflow and underflow limits of double. */
static inline double kiln__cpu_sum_to_odd(double a, double b)
{
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const uint64_t bits = kiln__cpu_bits_of_double(sum);
  /* To set the last bit, the sum moves by one step: away from zero if the error
   * has the sign of the sum, and towards zero otherwise. */
  const uint64_t differ = (kiln__cpu_bits_of_double(error) ^ bits) >> 63;
  const uint64_t step = (1 - (differ << 1)) & ((bits & 1) - 1);
  /* If the sum is infinite or NaN, the error is a NaN, and both comparisons are
   * false. */
  const uint64_t inexact = error < 0 || error > 0 ? step : 0;

  return kiln__cpu_double_of_bits(bits + inexact);
}

/* Computes a + b in float, rounded to odd: the last bit is set if the sum is
 * inexact. The operands are f16 values or products of f16 values. */
static inline float kiln__cpu_sum_to_odd_f32(float a, float b)
{
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const uint32_t bits = kiln__cpu_bits_of_float(sum);
  const uint32_t differ = (kiln__cpu_bits_of_float(error) ^ bits) >> 31;
  const uint32_t step = (1 - (differ << 1)) & ((bits & 1) - 1);
  const uint32_t inexact = error < 0 || error > 0 ? step : 0;

  return kiln__cpu_float_of_bits(bits + inexact);
}

static inline uint64_t kiln__cpu_double_magnitude(uint64_t bits)
{
  return bits & 0x7fffffffffffffff;
}

/* Rounds x to a 16-bit format whose fraction is `drop` bits shorter than that
 * of double. Magnitudes below `least`, the smallest normal number, are rounded
 * by adding `unit`, whose ulp is that of the format's subnormals. `bias` is the
 * difference of the exponents' biases. Magnitudes from `most` on become
 * infinite. */
static inline uint32_t kiln__cpu_16_of_double(double x, unsigned drop,
                                              uint64_t least, double unit,
                                              uint64_t bias, uint64_t most,
                                              uint32_t infinity, uint32_t nan)
{
  const uint64_t bits = kiln__cpu_bits_of_double(x);
  const uint64_t magnitude = kiln__cpu_double_magnitude(bits);
  const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
  const uint64_t tiny = magnitude < least ? magnitude : 0;
  const uint32_t small = (uint32_t)(kiln__cpu_bits_of_double(
                                        kiln__cpu_double_of_bits(tiny) + unit) &
                                    0xffff);
  const uint64_t half = (UINT64_C(1) << (drop - 1)) - 1;
  const uint64_t raw =
      (magnitude - (bias << 52) + half + ((magnitude >> drop) & 1)) >> drop;
  const uint32_t normal = magnitude >= most ? infinity : (uint32_t)raw;
  const uint32_t finite = magnitude < least ? small : normal;

  return magnitude > 0x7ff0000000000000 ? nan : finite | sign;
}

static inline uint32_t kiln__cpu_f16_of_double(double x)
{
  return kiln__cpu_16_of_double(x, 42, 0x3f10000000000000, 0x1p28, 1008,
                                0x40effe0000000000, 0x7c00, KILN__NAN_F16);
}

static inline uint32_t kiln__cpu_bf16_of_double(double x)
{
  return kiln__cpu_16_of_double(x, 45, 0x3810000000000000, 0x1p-81, 896,
                                0x47eff00000000000, 0x7f80, KILN__NAN_BF16);
}

#endif
