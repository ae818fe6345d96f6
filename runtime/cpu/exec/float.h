/* float.h -- functions that the f32 and f64 handlers share: flushing, clamping,
 * NaNs, and directed rounding of f32. Only files of exec/ include this header.
 *
 * Registers are always read and written as integers, so that no lane is
 * accessed through two types. */
#ifndef KILN_CPU_FLOAT_H
#define KILN_CPU_FLOAT_H

#include "half.h"
#include "lanes.h"

#include <math.h>

#define KILN__F32_SIGN 0x80000000u
#define KILN__F64_SIGN 0x8000000000000000u

/* These macros define handlers with one to three source registers. All sources
 * hold the bits of f32 values, or all hold the bits of f64 values. */
#define KILN__F32_1(name, expression)                                          \
  KILN__OP1(name, uint32_t, uint32_t, expression)
#define KILN__F32_2(name, expression)                                          \
  KILN__OP2(name, uint32_t, uint32_t, expression)
#define KILN__F32_3(name, expression)                                          \
  KILN__OP3(name, uint32_t, uint32_t, expression)
#define KILN__F64_1(name, expression)                                          \
  KILN__OP1(name, uint64_t, uint64_t, expression)
#define KILN__F64_2(name, expression)                                          \
  KILN__OP2(name, uint64_t, uint64_t, expression)
#define KILN__F64_3(name, expression)                                          \
  KILN__OP3(name, uint64_t, uint64_t, expression)

static inline bool kiln__cpu_is_nan_f32(uint32_t bits)
{
  return (bits & 0x7fffffff) > 0x7f800000;
}

static inline bool kiln__cpu_is_nan_f64(uint64_t bits)
{
  return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
}

/* Returns the bits of an f32 result. A NaN becomes the canonical NaN. */
static inline uint32_t kiln__cpu_to_f32(float x)
{
  return x != x ? KILN__NAN_F32 : kiln__cpu_bits_of_float(x);
}

/* Returns the bits of an f64 result x of one operand; the functions below
 * support two and three operands. If x is a NaN, the last operand that is a NaN
 * is returned, made quiet. */
static inline uint64_t kiln__cpu_to_f64_1(double x, uint64_t a)
{
  const double p = kiln__cpu_double_of_bits(a);
  const uint64_t nan = p != p ? a | KILN__QUIET_F64 : KILN__NAN_F64;

  return x != x ? nan : kiln__cpu_bits_of_double(x);
}

static inline uint64_t kiln__cpu_to_f64_2(double x, uint64_t a, uint64_t b)
{
  const double q = kiln__cpu_double_of_bits(b);

  return x != x && q != q ? b | KILN__QUIET_F64 : kiln__cpu_to_f64_1(x, a);
}

static inline uint64_t kiln__cpu_to_f64_3(double x, uint64_t a, uint64_t b,
                                          uint64_t c)
{
  const double q = kiln__cpu_double_of_bits(b);

  return x != x && q != q ? b | KILN__QUIET_F64 : kiln__cpu_to_f64_2(x, a, c);
}

/* Flushes an f32 subnormal to zero (.ftz) if the mask `all` is ~0. Changes
 * nothing if `all` is 0. */
static inline uint32_t kiln__cpu_flush_if(uint32_t bits, uint32_t all)
{
  const uint32_t drop = (bits & 0x7f800000) == 0 ? 0x7fffffff : 0;

  return bits & ~(drop & all);
}

static inline uint32_t kiln__cpu_flush(uint32_t bits)
{
  return kiln__cpu_flush_if(bits, UINT32_MAX);
}

/* These functions convert the sources and the results of f32 instructions with
 * .ftz. */
static inline float kiln__cpu_from_ftz(uint32_t bits)
{
  return kiln__cpu_float_of_bits(kiln__cpu_flush(bits));
}

static inline uint32_t kiln__cpu_to_ftz(float x)
{
  return kiln__cpu_flush(kiln__cpu_to_f32(x));
}

/* GPUs flush a result if it is below 2^-126 after rounding to 24 bits. Rounding
 * to the fewer bits of a subnormal would give other results: 2^-126 - 2^-150
 * becomes 0, although the nearest float is 2^-126. `scaled` is the result
 * multiplied by KILN__FTZ_SCALE, so it is rounded to 24 bits. Sums do not need
 * `scaled`, because tiny sums are exact. */
#define KILN__FTZ_SCALE 0x1p24f

static inline uint32_t kiln__cpu_flush_tiny_if(uint32_t bits, float scaled,
                                               uint32_t all)
{
  const bool tiny = fabsf(scaled) < 0x1p-126f * KILN__FTZ_SCALE;
  const uint32_t drop = tiny ? 0x7fffffff : 0;

  return bits & ~(drop & all);
}

static inline uint32_t kiln__cpu_to_ftz_scaled(float x, float scaled)
{
  return kiln__cpu_flush_tiny_if(kiln__cpu_to_f32(x), scaled, UINT32_MAX);
}

/* Clamps an f32 value to [+0, 1] (.sat) if the mask `all` is ~0. A NaN becomes
 * +0. Changes nothing if `all` is 0. */
static inline uint32_t kiln__cpu_clamp_if(uint32_t bits, uint32_t all)
{
  const float x = kiln__cpu_float_of_bits(bits);
  const float top = x < 1 ? x : 1;
  const uint32_t in = x > 0 ? kiln__cpu_bits_of_float(top) : 0;

  return (in & all) | (bits & ~all);
}

static inline uint32_t kiln__cpu_flag_mask(const kiln__cpu_insn *in,
                                           uint32_t flag)
{
  return (in->flags & flag) != 0 ? UINT32_MAX : 0;
}

/* Computes a * b + c with a single rounding. On processors without an FMA
 * instruction, fmaf() would call libm for every lane. The product of two floats
 * is exact in double, so only the addition has to be rounded with care. */
static inline float kiln__cpu_fma_f32(float a, float b, float c)
{
#if defined(__x86_64__) && !defined(__FMA__)
  return (float)kiln__cpu_sum_to_odd((double)a * (double)b, c);
#else
  return fmaf(a, b, c);
#endif
}

/* Returns two f32 values as one 64-bit register. */
static inline uint64_t kiln__cpu_f32_pair(uint32_t low, uint32_t high)
{
  return (uint64_t)high << 32 | low;
}

/* ---- Directed rounding of f32 -------------------------------------------- */

/* A rounding direction for f32 results, as masks that are ~0 or 0. */
typedef struct kiln__cpu_direction {
  /* mask that is ~0 if magnitudes are rounded down: element 0 for positive
   * values, element 1 for negative values */
  uint32_t down[2];
  uint32_t zero_sum; /* ~0 if x - x gives -0 in this direction */
} kiln__cpu_direction;

static inline kiln__cpu_direction
kiln__cpu_direction_of(const kiln__cpu_insn *in)
{
  const uint32_t up = in->round == KILN__ROUND_P ? UINT32_MAX : 0;
  const uint32_t down = in->round == KILN__ROUND_M ? UINT32_MAX : 0;

  return (kiln__cpu_direction){{~up, ~down}, down};
}

/* Rounds x to a float in a direction. x is an exact double, a double rounded to
 * odd, or a correctly rounded quotient or square root of floats. In each case,
 * x compares with every float as the exact result does. */
static inline uint32_t kiln__cpu_round_f32(double x, kiln__cpu_direction to)
{
  const float near = (float)x;
  const double back = (double)near;
  const uint32_t bits = kiln__cpu_bits_of_float(near);
  const uint32_t negative = 0 - (bits >> 31);
  const uint32_t down = (to.down[0] & ~negative) | (to.down[1] & negative);
  const bool above = fabs(back) > fabs(x), below = fabs(back) < fabs(x);
  const uint32_t less = above ? down & 1 : 0, more = below ? ~down & 1 : 0;

  return x != x ? KILN__NAN_F32 : bits - less + more;
}

/* Rounds like kiln__cpu_round_f32(). Also flushes the result (.ftz) if the mask
 * `all` is ~0; see kiln__cpu_flush_tiny_if(). */
static inline uint32_t kiln__cpu_round_ftz(double x, kiln__cpu_direction to,
                                           uint32_t all)
{
  const double size = fabs(x);
  const uint32_t negative = 0 - (uint32_t)(kiln__cpu_bits_of_double(x) >> 63);
  const uint32_t down = (to.down[0] & ~negative) | (to.down[1] & negative);
  const double limit = down != 0 ? 0x1p-126 : 0x1.fffffe0000001p-127;

  return kiln__cpu_round_f32(x, to) & ~((size < limit ? 0x7fffffff : 0) & all);
}

/* Computes a + b rounded to odd, so that kiln__cpu_round_f32() can round the
 * sum. The direction determines the sign of a sum that is zero. */
static inline double kiln__cpu_sum_directed(double a, double b,
                                            kiln__cpu_direction to)
{
  const double sum = kiln__cpu_sum_to_odd(a, b);
  const uint64_t sa = kiln__cpu_bits_of_double(a) >> 63;
  const uint64_t sb = kiln__cpu_bits_of_double(b) >> 63;
  const uint64_t sign = to.zero_sum != 0 ? sa | sb : sa & sb;

  return sum == 0 ? kiln__cpu_double_of_bits(sign << 63) : sum;
}

#endif
