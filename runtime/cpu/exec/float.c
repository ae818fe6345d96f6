/* float.c -- f32 arithmetic rounded to nearest. Each frequent combination of
 * modifiers has its own loop. Rare combinations share general loops. */
#include "float.h"

#define X(v) kiln__cpu_float_of_bits(v[i])
#define Z(v) kiln__cpu_from_ftz(v[i])

KILN__F32_2(add_f32, kiln__cpu_to_f32(X(A) + X(B)))
KILN__F32_2(sub_f32, kiln__cpu_to_f32(X(A) - X(B)))
KILN__F32_2(mul_f32, kiln__cpu_to_f32(X(A) * X(B)))
KILN__F32_2(div_f32, kiln__cpu_to_f32(X(A) / X(B)))
KILN__F32_1(rcp_f32, kiln__cpu_to_f32(1 / X(A)))
KILN__F32_1(sqrt_f32, kiln__cpu_to_f32(sqrtf(X(A))))

KILN__F32_2(add_ftz_f32, kiln__cpu_to_ftz(Z(A) + Z(B)))
KILN__F32_2(sub_ftz_f32, kiln__cpu_to_ftz(Z(A) - Z(B)))
KILN__F32_2(mul_ftz_f32,
            kiln__cpu_to_ftz_scaled(Z(A) * Z(B), Z(A) * KILN__FTZ_SCALE * Z(B)))
KILN__F32_2(div_ftz_f32,
            kiln__cpu_to_ftz_scaled(Z(A) / Z(B), Z(A) * KILN__FTZ_SCALE / Z(B)))
KILN__F32_1(rcp_ftz_f32,
            kiln__cpu_to_ftz_scaled(1 / Z(A), KILN__FTZ_SCALE / Z(A)))
KILN__F32_1(sqrt_ftz_f32, kiln__cpu_to_ftz(sqrtf(Z(A))))

/* If the result of neg or abs is a NaN, it is the canonical NaN. */
KILN__F32_1(neg_f32, kiln__cpu_to_f32(-X(A)))
KILN__F32_1(neg_ftz_f32, kiln__cpu_to_ftz(-Z(A)))
KILN__F32_1(abs_f32, kiln__cpu_to_f32(fabsf(X(A))))
KILN__F32_1(abs_ftz_f32, kiln__cpu_to_ftz(fabsf(Z(A))))
KILN__F32_2(copysign_f32, (B[i] & ~KILN__F32_SIGN) | (A[i] & KILN__F32_SIGN))

/* ---- Fused multiply-add -------------------------------------------------- */

#if defined(__x86_64__) && !defined(__FMA__)
/* Returns non-zero if rounding the double s to the float r may differ from
 * rounding the exact sum once. This happens only if s lies halfway between two
 * floats or if r is subnormal. For .ftz, the smallest normal number counts as
 * subnormal. */
static inline uint32_t doubtful(double s, float r)
{
  const uint32_t low = (uint32_t)kiln__cpu_bits_of_double(s) & 0x1fffffff;
  const bool tiny = fabsf(r) <= 0x1p-126f && s != 0;

  return (low == 0x10000000 ? 1u : 0u) | (tiny ? 1u : 0u);
}

#define FUSED(name, from, to, exact)                                           \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_3(uint32_t);                                                 \
    _Alignas(64) float near[KILN__WARP];                                       \
    uint32_t doubt = 0;                                                        \
    KILN__VECTOR_LOOP                                                          \
    for (int i = 0; i < KILN__WARP; i++) {                                     \
      const double s = (double)from(A) * (double)from(B) + (double)from(C);    \
      near[i] = (float)s;                                                      \
      doubt |= doubtful(s, near[i]);                                           \
    }                                                                          \
    if (doubt == 0)                                                            \
      KILN__LANES(uint32_t, to(near[i]));                                      \
    else                                                                       \
      KILN__LANES(uint32_t, exact);                                            \
  }
#else
#define FUSED(name, from, to, exact) KILN__F32_3(name, exact)
#endif

/* Computes a * b + c, multiplied by KILN__FTZ_SCALE. If a scaled factor or
 * addend overflows, the unscaled result is not subnormal, because it is a
 * multiple of the last bits of the operands. */
static inline float fma_scaled(float a, float b, float c)
{
  return kiln__cpu_fma_f32(a * KILN__FTZ_SCALE, b, c * KILN__FTZ_SCALE);
}

#define FMA kiln__cpu_to_f32(kiln__cpu_fma_f32(X(A), X(B), X(C)))
#define FMA_FTZ                                                                \
  kiln__cpu_to_ftz_scaled(kiln__cpu_fma_f32(Z(A), Z(B), Z(C)),                 \
                          fma_scaled(Z(A), Z(B), Z(C)))

FUSED(fma_f32, X, kiln__cpu_to_f32, FMA)
FUSED(mad_f32, X, kiln__cpu_to_f32, FMA)
FUSED(fma_ftz_f32, Z, kiln__cpu_to_ftz, FMA_FTZ)
FUSED(mad_ftz_f32, Z, kiln__cpu_to_ftz, FMA_FTZ)

/* ---- General loops for combinations of modifiers ------------------------- */

/* These macros support any combination of .ftz and .sat. The variables ftz and
 * sat are masks that are ~0 if the instruction has the modifier, and 0
 * otherwise. */
#define M(v) kiln__cpu_float_of_bits(kiln__cpu_flush_if(v[i], ftz))
#define FINISH(x)                                                              \
  kiln__cpu_clamp_if(kiln__cpu_flush_if(kiln__cpu_to_f32(x), ftz), sat)
#define FINISH_SCALED(x, scaled)                                               \
  kiln__cpu_clamp_if(                                                          \
      kiln__cpu_flush_tiny_if(kiln__cpu_to_f32(x), scaled, ftz), sat)
#define MODES                                                                  \
  const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ);                     \
  const uint32_t sat = kiln__cpu_flag_mask(in, KILN__SAT)
#define MODIFIED(n, name, expression)                                          \
  KILN__LANE_OP(name, n, uint32_t, uint32_t, MODES, expression)
#define UP(v) (M(v) * KILN__FTZ_SCALE)
#define FMA_MODIFIED                                                           \
  FINISH_SCALED(kiln__cpu_fma_f32(M(A), M(B), M(C)),                           \
                fma_scaled(M(A), M(B), M(C)))

MODIFIED(2, add_sat_f32, FINISH(M(A) + M(B)))
MODIFIED(2, sub_sat_f32, FINISH(M(A) - M(B)))
MODIFIED(2, mul_sat_f32, FINISH_SCALED(M(A) * M(B), UP(A) * M(B)))
MODIFIED(3, fma_sat_f32, FMA_MODIFIED)
MODIFIED(3, mad_sat_f32, FMA_MODIFIED)
MODIFIED(2, div_full_f32, FINISH_SCALED(M(A) / M(B), UP(A) / M(B)))

/* Computes div.approx. The reciprocal of a number above 2^126 is subnormal and
 * counts as 0. */
static inline float div_approx(float a, float b)
{
  const bool huge = fabsf(b) > 0x1p126f && fabsf(b) < INFINITY;
  const float zero = copysignf(0, b);

  return huge ? a * zero : a / b;
}

MODIFIED(2, div_approx_f32,
         FINISH_SCALED(div_approx(M(A), M(B)), div_approx(UP(A), M(B))))

/* ---- Classes of numbers -------------------------------------------------- */

enum { FINITE = 1, INFINITE, NUMBER, NOTANUMBER, NORMAL, SUBNORMAL };

/* A class of numbers that the instruction testp tests. A number belongs to the
 * class if its magnitude lies in [first, last]. If first > last, the magnitude
 * must lie outside [last, first]. Zeros count as normal numbers. */
typedef struct range {
  uint64_t first, last;
  bool zero_too;
} range;

static range range_of(const kiln__cpu_insn *in, uint64_t least,
                      uint64_t infinity)
{
  switch (in->sub) {
  case FINITE:
    return (range){0, infinity - 1, true};
  case INFINITE:
    return (range){infinity, infinity, false};
  case NUMBER:
    return (range){0, infinity, true};
  case NOTANUMBER:
    return (range){infinity + 1, UINT64_MAX, false};
  case SUBNORMAL:
    return (range){1, least - 1, false};
  default:
    return (range){least, infinity - 1, true};
  }
}

static inline uint32_t in_range(range r, uint64_t magnitude)
{
  const bool is = (magnitude >= r.first && magnitude <= r.last) ||
                  (magnitude == 0 && r.zero_too);

  return is ? UINT32_MAX : 0;
}

KILN__HANDLER(testp_f32)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  const range r = range_of(in, 0x00800000, 0x7f800000);

  KILN__LANES(uint32_t, in_range(r, A[i] & 0x7fffffff));
}

/* The predicate that testp.f64 writes is narrower than operand a, so the two
 * never share a register slot. */
KILN__HANDLER(testp_f64)
{
  const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);
  const range r = range_of(in, 0x0010000000000000, 0x7ff0000000000000);

  KILN__LANES(uint32_t, in_range(r, A[i] & 0x7fffffffffffffff));
}

/* ---- Pairs of f32 values in 64-bit registers ----------------------------- */

#define LO(v) kiln__cpu_float_of_bits(kiln__cpu_flush_if((uint32_t)v[i], ftz))
#define HI(v)                                                                  \
  kiln__cpu_float_of_bits(kiln__cpu_flush_if((uint32_t)(v[i] >> 32), ftz))
#define END(x) kiln__cpu_flush_if(kiln__cpu_to_f32(x), ftz)
#define END_SCALED(x, scaled)                                                  \
  kiln__cpu_flush_tiny_if(kiln__cpu_to_f32(x), scaled, ftz)
#define PAIRS(n, name, low, high)                                              \
  KILN__LANE_OP(name, n, uint64_t, uint64_t,                                   \
                const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ),       \
                kiln__cpu_f32_pair(low, high))

PAIRS(2, add_f32x2, END(LO(A) + LO(B)), END(HI(A) + HI(B)))
PAIRS(2, sub_f32x2, END(LO(A) - LO(B)), END(HI(A) - HI(B)))
PAIRS(2, mul_f32x2, END_SCALED(LO(A) * LO(B), LO(A) * KILN__FTZ_SCALE * LO(B)),
      END_SCALED(HI(A) * HI(B), HI(A) * KILN__FTZ_SCALE * HI(B)))

PAIRS(3, fma_f32x2,
      END_SCALED(kiln__cpu_fma_f32(LO(A), LO(B), LO(C)),
                 fma_scaled(LO(A), LO(B), LO(C))),
      END_SCALED(kiln__cpu_fma_f32(HI(A), HI(B), HI(C)),
                 fma_scaled(HI(A), HI(B), HI(C))))

/* ---- f32 arithmetic with f16 or bf16 operands ---------------------------- */

#define MIXED_MODES                                                            \
  const uint32_t ftz = 0;                                                      \
  const uint32_t sat = kiln__cpu_flag_mask(in, KILN__SAT);                     \
  const bool bf16 = in->type == KILN__BF16
#define MIXED(n, name, expression)                                             \
  KILN__LANE_OP(name, n, uint32_t, uint32_t, MIXED_MODES, FINISH(expression))
#define WIDE(v)                                                                \
  (bf16 ? kiln__cpu_float_of_bf16(v[i]) : kiln__cpu_float_of_f16(v[i]))

MIXED(2, add_mixed, WIDE(A) + X(B))
MIXED(2, sub_mixed, WIDE(A) - X(B))
MIXED(3, fma_mixed, kiln__cpu_fma_f32(WIDE(A), WIDE(B), X(C)))
