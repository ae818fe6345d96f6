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

#define DIRECTED1(name, expression)                                            \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);               \
    MODES;                                                                     \
    KILN__LANES(uint32_t, FINISH(expression));                                 \
  }
#define DIRECTED2(name, expression)                                            \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);               \
    const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);               \
    MODES;                                                                     \
    KILN__LANES(uint32_t, FINISH(expression));                                 \
  }
#define DIRECTED3(name, expression)                                            \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);               \
    const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);               \
    const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);               \
    MODES;                                                                     \
    KILN__LANES(uint32_t, FINISH(expression));                                 \
  }

DIRECTED2(add_round_f32, kiln__cpu_sum_directed(M(A), M(B), to))
DIRECTED2(sub_round_f32, kiln__cpu_sum_directed(M(A), -M(B), to))
DIRECTED2(mul_round_f32, M(A) * M(B))
DIRECTED3(fma_round_f32, kiln__cpu_sum_directed(M(A) * M(B), M(C), to))
DIRECTED3(mad_round_f32, kiln__cpu_sum_directed(M(A) * M(B), M(C), to))
DIRECTED2(div_round_f32, M(A) / M(B))
DIRECTED1(rcp_round_f32, 1 / M(A))
DIRECTED1(sqrt_round_f32, sqrt(M(A)))

/* ---- Pairs of f32 in 64 bits --------------------------------------------- */

static inline uint64_t pair(uint32_t low, uint32_t high)
{
  return (uint64_t)high << 32 | low;
}

#define LO(v)                                                                  \
  ((double)kiln__cpu_float_of_bits(kiln__cpu_flush_if((uint32_t)v[i], ftz)))
#define HI(v)                                                                  \
  ((double)kiln__cpu_float_of_bits(                                            \
      kiln__cpu_flush_if((uint32_t)(v[i] >> 32), ftz)))
#define END(x) kiln__cpu_round_ftz(x, to, ftz)
#define PAIRS2(name, low, high)                                                \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);               \
    const uint64_t *const B = KILN__SLOT(const uint64_t, in->b);               \
    const kiln__cpu_direction to = kiln__cpu_direction_of(in);                 \
    const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ);                   \
    KILN__LANES(uint64_t, pair(END(low), END(high)));                          \
  }

PAIRS2(add_round_f32x2, kiln__cpu_sum_directed(LO(A), LO(B), to),
       kiln__cpu_sum_directed(HI(A), HI(B), to))
PAIRS2(sub_round_f32x2, kiln__cpu_sum_directed(LO(A), -LO(B), to),
       kiln__cpu_sum_directed(HI(A), -HI(B), to))
PAIRS2(mul_round_f32x2, LO(A) * LO(B), HI(A) * HI(B))

KILN__HANDLER(fma_round_f32x2)
{
  const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);
  const uint64_t *const B = KILN__SLOT(const uint64_t, in->b);
  const uint64_t *const C = KILN__SLOT(const uint64_t, in->c);
  const kiln__cpu_direction to = kiln__cpu_direction_of(in);
  const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ);

  KILN__LANES(uint64_t,
              pair(END(kiln__cpu_sum_directed(LO(A) * LO(B), LO(C), to)),
                   END(kiln__cpu_sum_directed(HI(A) * HI(B), HI(C), to))));
}

/* ---- Mixed f16 or bf16 and f32 ------------------------------------------- */

#define WIDE(v)                                                                \
  ((double)(bf16 ? kiln__cpu_float_of_bf16(v[i])                               \
                 : kiln__cpu_float_of_f16(v[i])))
#define X(v) ((double)kiln__cpu_float_of_bits(v[i]))
#define MIXED2(name, expression)                                               \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);               \
    const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);               \
    const bool bf16 = in->type == KILN__BF16;                                  \
    MODES;                                                                     \
    KILN__LANES(uint32_t, FINISH(expression));                                 \
  }

MIXED2(add_round_mixed, kiln__cpu_sum_directed(WIDE(A), X(B), to))
MIXED2(sub_round_mixed, kiln__cpu_sum_directed(WIDE(A), -X(B), to))

KILN__HANDLER(fma_round_mixed)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);
  const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);
  const bool bf16 = in->type == KILN__BF16;
  MODES;

  KILN__LANES(uint32_t,
              FINISH(kiln__cpu_sum_directed(WIDE(A) * WIDE(B), X(C), to)));
}
