/* double_round.c -- f64 arithmetic with .rz, .rm and .rp.
 *
 * No wider type is available for an exact intermediate result. The handlers
 * therefore change the rounding mode of the host processor for the loop and
 * restore the mode afterwards. This file is compiled with -frounding-math.
 * Without this option the compiler may move arithmetic across the change of the
 * rounding mode. */
#include "float.h"

#include <fenv.h>

#define X(v) kiln__cpu_double_of_bits(v[i])

static int mode_of(const kiln__cpu_insn *in)
{
  switch (in->round) {
  case KILN__ROUND_Z:
    return FE_TOWARDZERO;
  case KILN__ROUND_M:
    return FE_DOWNWARD;
  case KILN__ROUND_P:
    return FE_UPWARD;
  default:
    return FE_TONEAREST;
  }
}

/* Evaluates an expression for all lanes with the rounding mode of the
 * instruction. The lanes are read after the mode was set and written before the
 * old mode is restored. The calls that set the mode might access the same
 * memory, so the compiler cannot move the accesses across these calls. */
#define ROUNDED(expression)                                                    \
  do {                                                                         \
    const int old = fegetround();                                              \
    fesetround(mode_of(in));                                                   \
    KILN__LANES(uint64_t, expression);                                         \
    fesetround(old);                                                           \
  } while (0)
#define ROUNDED_OP(n, name, expression)                                        \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_##n(uint64_t);                                               \
    ROUNDED(expression);                                                       \
  }

ROUNDED_OP(2, add_round_f64, kiln__cpu_to_f64_2(X(A) + X(B), A[i], B[i]))
ROUNDED_OP(2, sub_round_f64, kiln__cpu_to_f64_2(X(A) - X(B), A[i], B[i]))
ROUNDED_OP(2, mul_round_f64, kiln__cpu_to_f64_2(X(A) * X(B), A[i], B[i]))
ROUNDED_OP(2, div_round_f64, kiln__cpu_to_f64_2(X(A) / X(B), B[i], A[i]))
ROUNDED_OP(3, fma_round_f64,
           kiln__cpu_to_f64_3(fma(X(A), X(B), X(C)), A[i], B[i], C[i]))
ROUNDED_OP(3, mad_round_f64,
           kiln__cpu_to_f64_3(fma(X(A), X(B), X(C)), A[i], B[i], C[i]))
ROUNDED_OP(1, rcp_round_f64, kiln__cpu_to_f64_1(1 / X(A), A[i]))
ROUNDED_OP(1, sqrt_round_f64, kiln__cpu_to_f64_1(sqrt(X(A)), A[i]))
