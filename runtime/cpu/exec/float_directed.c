/* float_directed.c -- f32 arithmetic with .rz, .rm and .rp.
 *
 * The result is computed in double, either exactly or rounded to odd. Rounding
 * to odd sets the last bit if the result is inexact. The double is then rounded
 * to f32 with integer operations. Rounding a value that was rounded to odd
 * equals rounding the exact value, as long as two spare bits remain (Boldo and
 * Melquiond, 2008). The code does not depend on the rounding mode of the host
 * processor. */
#include "float.h"

#define M(v) ((double)kiln__cpu_float_of_bits(kiln__cpu_flush_if(v[i], ftz)))
#define FINISH(x) kiln__cpu_clamp_if(kiln__cpu_round_ftz(x, to, ftz), sat)
#define MODES                                                                  \
  const kiln__cpu_direction to = kiln__cpu_direction_of(in);                   \
  const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ);                     \
  const uint32_t sat = kiln__cpu_flag_mask(in, KILN__SAT)

#define DIRECTED(n, name, expression)                                          \
  KILN__LANE_OP(name, n, uint32_t, uint32_t, MODES, FINISH(expression))

DIRECTED(2, add_round_f32, kiln__cpu_sum_directed(M(A), M(B), to))
DIRECTED(2, sub_round_f32, kiln__cpu_sum_directed(M(A), -M(B), to))
DIRECTED(2, mul_round_f32, M(A) * M(B))
DIRECTED(3, fma_round_f32, kiln__cpu_sum_directed(M(A) * M(B), M(C), to))
DIRECTED(3, mad_round_f32, kiln__cpu_sum_directed(M(A) * M(B), M(C), to))
DIRECTED(2, div_round_f32, M(A) / M(B))
DIRECTED(1, rcp_round_f32, 1 / M(A))
DIRECTED(1, sqrt_round_f32, sqrt(M(A)))

/* ---- Pairs of f32 values in 64-bit registers ----------------------------- */

#define LO(v)                                                                  \
  ((double)kiln__cpu_float_of_bits(kiln__cpu_flush_if((uint32_t)v[i], ftz)))
#define HI(v)                                                                  \
  ((double)kiln__cpu_float_of_bits(                                            \
      kiln__cpu_flush_if((uint32_t)(v[i] >> 32), ftz)))
#define END(x) kiln__cpu_round_ftz(x, to, ftz)
#define PAIR_MODES                                                             \
  const kiln__cpu_direction to = kiln__cpu_direction_of(in);                   \
  const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ)
#define PAIRS(n, name, low, high)                                              \
  KILN__LANE_OP(name, n, uint64_t, uint64_t, PAIR_MODES,                       \
                kiln__cpu_f32_pair(END(low), END(high)))

PAIRS(2, add_round_f32x2, kiln__cpu_sum_directed(LO(A), LO(B), to),
      kiln__cpu_sum_directed(HI(A), HI(B), to))
PAIRS(2, sub_round_f32x2, kiln__cpu_sum_directed(LO(A), -LO(B), to),
      kiln__cpu_sum_directed(HI(A), -HI(B), to))
PAIRS(2, mul_round_f32x2, LO(A) * LO(B), HI(A) * HI(B))

PAIRS(3, fma_round_f32x2, kiln__cpu_sum_directed(LO(A) * LO(B), LO(C), to),
      kiln__cpu_sum_directed(HI(A) * HI(B), HI(C), to))

/* ---- f32 arithmetic with f16 or bf16 operands ---------------------------- */

#define WIDE(v)                                                                \
  ((double)(bf16 ? kiln__cpu_float_of_bf16(v[i])                               \
                 : kiln__cpu_float_of_f16(v[i])))
#define X(v) ((double)kiln__cpu_float_of_bits(v[i]))
#define MIXED(n, name, expression)                                             \
  KILN__LANE_OP(name, n, uint32_t, uint32_t, MODES;                            \
                const bool bf16 = in->type == KILN__BF16, FINISH(expression))

MIXED(2, add_round_mixed, kiln__cpu_sum_directed(WIDE(A), X(B), to))
MIXED(2, sub_round_mixed, kiln__cpu_sum_directed(WIDE(A), -X(B), to))
MIXED(3, fma_round_mixed, kiln__cpu_sum_directed(WIDE(A) * WIDE(B), X(C), to))
