/* minmax.c -- min and max of f32 and f64. -0 is less than +0. If one operand is
 * a NaN, the result is the other operand. With .NaN, the result is a NaN. */
#include "float.h"

/* Returns a signed integer that sorts like the float. */
static inline int64_t key_f64(uint64_t bits)
{
  const uint64_t negative = 0 - (bits >> 63);

  return (int64_t)(bits ^ (negative >> 1));
}

/* Returns the result of min or max for operands that may be NaNs. `best` is the
 * result for numbers, and b if an operand is a NaN. The mask `nan` is ~0 with
 * the modifier .NaN, and 0 otherwise. */
static inline uint32_t number_f32(uint32_t a, uint32_t b, uint32_t best,
                                  uint32_t nan)
{
  const uint32_t number = kiln__cpu_is_nan_f32(b) ? a : best;
  const uint32_t kept = kiln__cpu_is_nan_f32(number) ? KILN__NAN_F32 : number;
  const uint32_t a_nan = kiln__cpu_is_nan_f32(a) ? nan : 0;
  const uint32_t b_nan = kiln__cpu_is_nan_f32(b) ? nan : 0;

  return (a_nan | b_nan) != 0 ? KILN__NAN_F32 : kept;
}

/* Equal values differ at most in the sign of a zero. */
static inline uint32_t min_f32(uint32_t a, uint32_t b, uint32_t nan)
{
  const float x = kiln__cpu_float_of_bits(a), y = kiln__cpu_float_of_bits(b);
  const uint32_t smaller = x < y ? a : b;

  return number_f32(a, b, x == y ? a | b : smaller, nan);
}

static inline uint32_t max_f32(uint32_t a, uint32_t b, uint32_t nan)
{
  const float x = kiln__cpu_float_of_bits(a), y = kiln__cpu_float_of_bits(b);
  const uint32_t larger = x > y ? a : b;

  return number_f32(a, b, x == y ? a & b : larger, nan);
}

KILN__F32_2(min_f32, min_f32(A[i], B[i], 0))
KILN__F32_2(max_f32, max_f32(A[i], B[i], 0))
KILN__F32_2(min_ftz_f32,
            min_f32(kiln__cpu_flush(A[i]), kiln__cpu_flush(B[i]), 0))
KILN__F32_2(max_ftz_f32,
            max_f32(kiln__cpu_flush(A[i]), kiln__cpu_flush(B[i]), 0))

#define Z(v) kiln__cpu_flush_if(v[i], ftz)
#define MAGNITUDE(v) (Z(v) & ~KILN__F32_SIGN)
#define MODES                                                                  \
  const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ);                     \
  const uint32_t nan = kiln__cpu_flag_mask(in, KILN__NAN)
#define MODIFIED(n, name, expression)                                          \
  KILN__LANE_OP(name, n, uint32_t, uint32_t, MODES, expression)

/* Applies .xorsign: the sign of the result is the exclusive or of both signs,
 * even if the result is zero. A NaN keeps no sign. */
static inline uint32_t signed_f32(uint32_t a, uint32_t b, uint32_t magnitude)
{
  return kiln__cpu_is_nan_f32(magnitude)
             ? magnitude
             : magnitude | ((a ^ b) & KILN__F32_SIGN);
}

MODIFIED(2, min_nan_f32, min_f32(Z(A), Z(B), nan))
MODIFIED(2, max_nan_f32, max_f32(Z(A), Z(B), nan))
MODIFIED(2, min_xorsign_f32,
         signed_f32(A[i], B[i], min_f32(MAGNITUDE(A), MAGNITUDE(B), nan)))
MODIFIED(2, max_xorsign_f32,
         signed_f32(A[i], B[i], max_f32(MAGNITUDE(A), MAGNITUDE(B), nan)))
/* A NaN that results from the first two operands becomes an operand of the
 * second operation. */
MODIFIED(3, min3_f32, min_f32(min_f32(Z(A), Z(B), nan), Z(C), nan))
MODIFIED(3, max3_f32, max_f32(max_f32(Z(A), Z(B), nan), Z(C), nan))
MODIFIED(3, min3_abs_f32,
         min_f32(min_f32(MAGNITUDE(A), MAGNITUDE(B), nan), MAGNITUDE(C), nan))
MODIFIED(3, max3_abs_f32,
         max_f32(max_f32(MAGNITUDE(A), MAGNITUDE(B), nan), MAGNITUDE(C), nan))

static inline uint64_t number_f64(uint64_t a, uint64_t b, uint64_t best)
{
  const uint64_t other = kiln__cpu_is_nan_f64(a)   ? b
                         : kiln__cpu_is_nan_f64(b) ? a
                                                   : best;

  return kiln__cpu_is_nan_f64(other) ? other | KILN__QUIET_F64 : other;
}

KILN__F64_2(min_f64,
            number_f64(A[i], B[i], key_f64(A[i]) < key_f64(B[i]) ? A[i] : B[i]))
KILN__F64_2(max_f64,
            number_f64(A[i], B[i], key_f64(A[i]) > key_f64(B[i]) ? A[i] : B[i]))
