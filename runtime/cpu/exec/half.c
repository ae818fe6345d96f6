/* half.c -- f16 and bf16 arithmetic on single values and on pairs.
 *
 * Results are computed in float where float is exact. Float is also used where
 * double rounding is harmless, because a float has more than twice the bits of
 * a half. Otherwise the intermediate result is rounded to odd, which records
 * lost bits in the last bit. The final result is rounded to 16 bits once. */
#include "approx.h"

static inline uint32_t flush_f16(uint32_t h, uint32_t flags)
{
  return (flags & KILN__FTZ) != 0 && (h & 0x7c00) == 0 ? h & 0x8000 : h;
}

/* Rounds x to f16 and applies .ftz, .sat and .relu. Results that are below
 * 2^-14 after rounding to 11 bits are flushed, by the same rule as for f32 (see
 * float.h). */
static inline uint32_t finish_f16(float x, uint32_t flags)
{
  const bool tiny = (flags & KILN__FTZ) != 0 && fabsf(x) < 0x1.ffep-15f;
  const uint32_t h = kiln__cpu_f16_of_float(x);
  uint32_t r = tiny ? h & 0x8000 : h;

  if ((flags & KILN__RELU) != 0)
    r = (r & 0x8000) != 0 ? 0 : r;
  if ((flags & KILN__SAT) != 0)
    r = (r & 0x8000) != 0 || r > 0x7c00 ? 0 : r > 0x3c00 ? 0x3c00 : r;
  return r;
}

static inline float wide_f16(uint32_t h, uint32_t flags)
{
  return kiln__cpu_float_of_f16(flush_f16(h, flags));
}

/* Defines an arithmetic operation for f16 and for bf16 values. Products of bf16
 * values have 16 significant bits, so they are exact in float even if they are
 * subnormal. */
#define ARITHMETIC(name, operator)                                             \
  static inline uint32_t name##_f16(uint32_t a, uint32_t b, uint32_t flags)    \
  {                                                                            \
    return finish_f16(wide_f16(a, flags) operator wide_f16(b, flags), flags);  \
  }                                                                            \
                                                                               \
  static inline uint32_t name##_bf16(uint32_t a, uint32_t b, uint32_t flags)   \
  {                                                                            \
    (void)flags;                                                               \
    return kiln__cpu_bf16_of_float(                                            \
        kiln__cpu_float_of_bf16(a) operator kiln__cpu_float_of_bf16(b));       \
  }

ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)

static inline uint32_t fma_f16(uint32_t a, uint32_t b, uint32_t c,
                               uint32_t flags)
{
  const float product = wide_f16(a, flags) * wide_f16(b, flags);
  const float sum = kiln__cpu_sum_to_odd_f32(product, wide_f16(c, flags));

  return finish_f16(sum, flags);
}

/* Implements .oob: a special NaN marks elements outside the bounds of a tensor,
 * and the result for such an element is 0. */
static inline bool out_of_bounds(uint32_t a, uint32_t b)
{
  return (a & 0x7fff) == 0x7ff7 || (b & 0x7fff) == 0x7ff7;
}

static inline uint32_t fma_oob_f16(uint32_t a, uint32_t b, uint32_t c,
                                   uint32_t flags)
{
  return out_of_bounds(a, b) ? 0 : fma_f16(a, b, c, flags);
}

static inline uint32_t neg_f16(uint32_t a, uint32_t flags)
{
  return (a & 0x7fff) > 0x7c00 ? KILN__NAN_F16 : flush_f16(a, flags) ^ 0x8000;
}

static inline uint32_t abs_f16(uint32_t a, uint32_t flags)
{
  return (a & 0x7fff) > 0x7c00 ? KILN__NAN_F16 : flush_f16(a, flags) & 0x7fff;
}

static inline uint32_t ex2_f16(uint32_t a, uint32_t flags)
{
  return kiln__cpu_f16_of_double(kiln__cpu_exp2((double)wide_f16(a, flags)));
}

static inline uint32_t tanh_f16(uint32_t a, uint32_t flags)
{
  return kiln__cpu_f16_of_double(kiln__cpu_tanh((double)wide_f16(a, flags)));
}

static inline uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c,
                                uint32_t flags)
{
  const double product =
      (double)kiln__cpu_float_of_bf16(a) * (double)kiln__cpu_float_of_bf16(b);
  const double sum =
      kiln__cpu_sum_to_odd(product, (double)kiln__cpu_float_of_bf16(c));
  const uint32_t r = kiln__cpu_bf16_of_double(sum);

  return (flags & KILN__RELU) != 0 && (r & 0x8000) != 0 ? 0 : r;
}

static inline uint32_t fma_oob_bf16(uint32_t a, uint32_t b, uint32_t c,
                                    uint32_t flags)
{
  return out_of_bounds(a, b) ? 0 : fma_bf16(a, b, c, flags);
}

static inline uint32_t neg_bf16(uint32_t a, uint32_t flags)
{
  (void)flags;
  return (a & 0x7fff) > 0x7f80 ? KILN__NAN_BF16 : a ^ 0x8000;
}

static inline uint32_t abs_bf16(uint32_t a, uint32_t flags)
{
  (void)flags;
  return (a & 0x7fff) > 0x7f80 ? KILN__NAN_BF16 : a & 0x7fff;
}

static inline uint32_t flush_bf16(uint32_t h)
{
  return (h & 0x7f80) == 0 ? h & 0x8000 : h;
}

/* Computes ex2 of a bf16 value, which PTX defines only with .ftz. */
static inline uint32_t ex2_bf16(uint32_t a, uint32_t flags)
{
  const double x = (double)kiln__cpu_float_of_bf16(flush_bf16(a));

  (void)flags;
  return flush_bf16(kiln__cpu_bf16_of_double(kiln__cpu_exp2(x)));
}

static inline uint32_t tanh_bf16(uint32_t a, uint32_t flags)
{
  (void)flags;
  return kiln__cpu_bf16_of_double(
      kiln__cpu_tanh((double)kiln__cpu_float_of_bf16(a)));
}

/* ---- Minimum and maximum; see minmax.c ----------------------------------- */

/* Returns an integer that sorts like the value. -0 sorts below +0. */
static inline uint32_t key(uint32_t h)
{
  const uint32_t negative = 0 - (h >> 15);

  return h ^ ((negative & 0xffff) | 0x8000);
}

/* Returns the minimum or maximum of two f16 or bf16 values. `infinity` is the
 * infinity of their format. */
static inline uint32_t best(uint32_t a, uint32_t b, uint32_t infinity, bool max,
                            uint32_t flags)
{
  const uint32_t strict = (flags & KILN__NAN) != 0 ? UINT32_MAX : 0;
  const uint32_t a_nan = (a & 0x7fff) > infinity ? UINT32_MAX : 0;
  const uint32_t b_nan = (b & 0x7fff) > infinity ? UINT32_MAX : 0;
  const uint32_t low = key(a) < key(b) ? a : b;
  const uint32_t number = max ? a ^ b ^ low : low;
  const uint32_t other =
      (number & ~(a_nan | b_nan)) | (b & a_nan) | (a & b_nan & ~a_nan);
  const uint32_t nan = (a_nan & b_nan) | ((a_nan | b_nan) & strict);

  return nan != 0 ? 0x7fff : other;
}

static inline uint32_t best_xorsign(uint32_t a, uint32_t b, uint32_t infinity,
                                    bool max, uint32_t flags)
{
  const uint32_t r = best(a & 0x7fff, b & 0x7fff, infinity, max, flags);

  return r > infinity ? r : r | ((a ^ b) & 0x8000);
}

#define BEST(name, kind, flush, infinity, is_max)                              \
  static inline uint32_t name(uint32_t a, uint32_t b, uint32_t flags)          \
  {                                                                            \
    return kind(flush, infinity, is_max, flags);                               \
  }
#define FLUSHED flush_f16(a, flags), flush_f16(b, flags)
#define PLAIN a, b
BEST(min_f16, best, FLUSHED, 0x7c00, false)
BEST(max_f16, best, FLUSHED, 0x7c00, true)
BEST(min_xorsign_f16, best_xorsign, FLUSHED, 0x7c00, false)
BEST(max_xorsign_f16, best_xorsign, FLUSHED, 0x7c00, true)
BEST(min_bf16, best, PLAIN, 0x7f80, false)
BEST(max_bf16, best, PLAIN, 0x7f80, true)
BEST(min_xorsign_bf16, best_xorsign, PLAIN, 0x7f80, false)
BEST(max_xorsign_bf16, best_xorsign, PLAIN, 0x7f80, true)

/* ---- Handlers ------------------------------------------------------------ */

#define LOW(v) ((v)[i] & 0xffff)
#define HIGH(v) ((v)[i] >> 16)

#define LOWS_1 LOW(A)
#define LOWS_2 LOWS_1, LOW(B)
#define LOWS_3 LOWS_2, LOW(C)
#define HIGHS_1 HIGH(A)
#define HIGHS_2 HIGHS_1, HIGH(B)
#define HIGHS_3 HIGHS_2, HIGH(C)

/* Defines two handlers from a function of n operands: one handler for single
 * values and one for pairs. `with` is the mask of the modifier flags that
 * the handlers obey. */
#define HALF(n, name, function, with)                                          \
  KILN__LANE_OP(name, n, uint32_t, uint32_t,                                   \
                const uint32_t f = in->flags & (with), function(LOWS_##n, f))  \
  KILN__LANE_OP(name##x2, n, uint32_t, uint32_t,                               \
                const uint32_t f = in->flags & (with),                         \
                function(LOWS_##n, f) | function(HIGHS_##n, f) << 16)

HALF(2, add_f16, add_f16, 0)
HALF(2, sub_f16, sub_f16, 0)
HALF(2, mul_f16, mul_f16, 0)
HALF(3, fma_f16, fma_f16, 0)
HALF(2, add_mod_f16, add_f16, KILN__FTZ | KILN__SAT)
HALF(2, sub_mod_f16, sub_f16, KILN__FTZ | KILN__SAT)
HALF(2, mul_mod_f16, mul_f16, KILN__FTZ | KILN__SAT)
HALF(3, fma_mod_f16, fma_f16, KILN__FTZ | KILN__SAT)
HALF(3, fma_relu_f16, fma_f16, KILN__FTZ | KILN__RELU)
HALF(3, fma_oob_f16, fma_oob_f16, KILN__RELU)
HALF(1, neg_f16, neg_f16, KILN__FTZ)
HALF(1, abs_f16, abs_f16, KILN__FTZ)
HALF(2, min_f16, min_f16, KILN__FTZ | KILN__NAN)
HALF(2, max_f16, max_f16, KILN__FTZ | KILN__NAN)
HALF(2, min_xorsign_f16, min_xorsign_f16, KILN__FTZ | KILN__NAN)
HALF(2, max_xorsign_f16, max_xorsign_f16, KILN__FTZ | KILN__NAN)
HALF(1, ex2_f16, ex2_f16, 0)
HALF(1, tanh_f16, tanh_f16, 0)

HALF(2, add_bf16, add_bf16, 0)
HALF(2, sub_bf16, sub_bf16, 0)
HALF(2, mul_bf16, mul_bf16, 0)
HALF(3, fma_bf16, fma_bf16, KILN__RELU)
HALF(3, fma_oob_bf16, fma_oob_bf16, KILN__RELU)
HALF(1, neg_bf16, neg_bf16, 0)
HALF(1, abs_bf16, abs_bf16, 0)
HALF(2, min_bf16, min_bf16, KILN__NAN)
HALF(2, max_bf16, max_bf16, KILN__NAN)
HALF(2, min_xorsign_bf16, min_xorsign_bf16, KILN__NAN)
HALF(2, max_xorsign_bf16, max_xorsign_bf16, KILN__NAN)
HALF(1, ex2_bf16, ex2_bf16, 0)
HALF(1, tanh_bf16, tanh_bf16, 0)
