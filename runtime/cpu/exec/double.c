/* double.c -- f64 arithmetic to nearest. */
#include "float.h"

#define X(v) kiln__double_of_bits(v[i])

KILN__F64_2(add_f64, kiln__to_f64(X(A) + X(B)))
KILN__F64_2(sub_f64, kiln__to_f64(X(A) - X(B)))
KILN__F64_2(mul_f64, kiln__to_f64(X(A) * X(B)))
KILN__F64_2(div_f64, kiln__to_f64(X(A) / X(B)))
KILN__F64_3(fma_f64, kiln__to_f64(fma(X(A), X(B), X(C))))
KILN__F64_3(mad_f64, kiln__to_f64(fma(X(A), X(B), X(C))))
KILN__F64_1(rcp_f64, kiln__to_f64(1 / X(A)))
KILN__F64_1(sqrt_f64, kiln__to_f64(sqrt(X(A))))

/* NaNs go through these as they are. */
KILN__F64_1(neg_f64, kiln__is_nan_f64(A[i]) ? A[i] : A[i] ^ KILN__F64_SIGN)
KILN__F64_1(abs_f64, kiln__is_nan_f64(A[i]) ? A[i] : A[i] & ~KILN__F64_SIGN)
KILN__F64_2(copysign_f64, (B[i] & ~KILN__F64_SIGN) | (A[i] & KILN__F64_SIGN))

KILN__F64_1(rsqrt_approx_f64, kiln__to_f64(1 / sqrt(X(A))))

/* ---- Seeds: high words in, high words out ------------------------------------ */

#define KILN__HIGH_WORD 0xffffffff00000000u

/* Subnormals of which only the high word counts are 0 here. */
static inline double seed_source(uint64_t bits)
{
  const uint64_t high = bits & KILN__HIGH_WORD;
  const uint64_t zero = bits & KILN__F64_SIGN;

  /* A NaN whose payload is all in the low word must stay one. */
  return kiln__double_of_bits(kiln__is_nan_f64(bits)              ? bits
                              : (bits & 0x7ff0000000000000u) == 0 ? zero
                                                                  : high);
}

static inline uint64_t seed_result(double x)
{
  const uint64_t bits = kiln__to_f64(x);
  const uint64_t rounded = (bits + 0x80000000u) & KILN__HIGH_WORD;
  const bool tiny = (rounded & 0x7ff0000000000000u) == 0;

  return kiln__is_nan_f64(bits) ? bits & KILN__HIGH_WORD
         : tiny                 ? bits & KILN__F64_SIGN
                                : rounded;
}

KILN__F64_1(rcp_approx_f64, seed_result(1 / seed_source(A[i])))
KILN__F64_1(rsqrt_approx_ftz_f64, seed_result(1 / sqrt(seed_source(A[i]))))
