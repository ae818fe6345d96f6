/* double.c -- f64 arithmetic rounded to nearest, and the approximate f64
 * reciprocal and reciprocal square root (.approx.ftz.f64). */
#include "float.h"

#define X(v) kiln__cpu_double_of_bits(v[i])

KILN__F64_2(add_f64, kiln__cpu_to_f64_2(X(A) + X(B), A[i], B[i]))
KILN__F64_2(sub_f64, kiln__cpu_to_f64_2(X(A) - X(B), A[i], B[i]))
KILN__F64_2(mul_f64, kiln__cpu_to_f64_2(X(A) * X(B), A[i], B[i]))
KILN__F64_2(div_f64, kiln__cpu_to_f64_2(X(A) / X(B), B[i], A[i]))
KILN__F64_3(fma_f64,
            kiln__cpu_to_f64_3(fma(X(A), X(B), X(C)), A[i], B[i], C[i]))
KILN__F64_3(mad_f64,
            kiln__cpu_to_f64_3(fma(X(A), X(B), X(C)), A[i], B[i], C[i]))
KILN__F64_1(rcp_f64, kiln__cpu_to_f64_1(1 / X(A), A[i]))
KILN__F64_1(sqrt_f64, kiln__cpu_to_f64_1(sqrt(X(A)), A[i]))

/* Returns `other`, which is `bits` with another sign. If `bits` is a NaN,
 * returns this NaN with its own sign, made quiet. */
static inline uint64_t with_sign(uint64_t bits, uint64_t other)
{
  return kiln__cpu_is_nan_f64(bits) ? bits | KILN__QUIET_F64 : other;
}

KILN__F64_1(neg_f64, with_sign(A[i], A[i] ^ KILN__F64_SIGN))
KILN__F64_1(abs_f64, with_sign(A[i], A[i] & ~KILN__F64_SIGN))
KILN__F64_2(copysign_f64, (B[i] & ~KILN__F64_SIGN) | (A[i] & KILN__F64_SIGN))

KILN__F64_1(rsqrt_approx_f64, kiln__cpu_to_f64_1(1 / sqrt(X(A)), A[i]))

/* ---- Approximate reciprocals from and to the upper 32 bits --------------- */

#define KILN__HIGH_WORD 0xffffffff00000000u

/* Returns the operand of an approximate reciprocal. Only the upper 32 bits are
 * used, even of a NaN. Subnormals count as 0. */
static inline double seed_source(uint64_t bits)
{
  const uint64_t high = bits & KILN__HIGH_WORD;
  const uint64_t zero = bits & KILN__F64_SIGN;

  return kiln__cpu_double_of_bits((bits & 0x7ff0000000000000u) == 0 ? zero
                                                                    : high);
}

static inline uint64_t seed_result(double x)
{
  const uint64_t bits = kiln__cpu_bits_of_double(x);
  const uint64_t rounded = (bits + 0x80000000u) & KILN__HIGH_WORD;
  const bool tiny = (rounded & 0x7ff0000000000000u) == 0;

  return x != x ? KILN__NAN_SEED : tiny ? bits & KILN__F64_SIGN : rounded;
}

KILN__F64_1(rcp_approx_f64, seed_result(1 / seed_source(A[i])))
KILN__F64_1(rsqrt_approx_ftz_f64, seed_result(1 / sqrt(seed_source(A[i]))))
