/* integer.c -- integer arithmetic without carry and without division. All
 * results are computed in unsigned types, which wrap. 16-bit results are
 * truncated to 16 bits. */
#include "lanes.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

#define LOW16(x) ((uint32_t)(x)&0xffff)
#define S16(x) ((int32_t)(int16_t)(x))

/* ---- Addition and subtraction -------------------------------------------- */

KILN__OP2(add_b16, uint32_t, uint32_t, LOW16(A[i] + B[i]))
KILN__OP2(add_b32, uint32_t, uint32_t, A[i] + B[i])
KILN__OP2(add_b64, uint64_t, uint64_t, A[i] + B[i])
KILN__OP2(sub_b16, uint32_t, uint32_t, LOW16(A[i] - B[i]))
KILN__OP2(sub_b32, uint32_t, uint32_t, A[i] - B[i])
KILN__OP2(sub_b64, uint64_t, uint64_t, A[i] - B[i])
KILN__OP2(add_16x2, uint32_t, uint32_t,
          LOW16(A[i] + B[i]) | ((A[i] & 0xffff0000) + (B[i] & 0xffff0000)))

static inline uint32_t clamp_s32(int64_t x)
{
  const int64_t low = x < INT32_MIN ? INT32_MIN : x;

  return (uint32_t)(low > INT32_MAX ? INT32_MAX : low);
}

KILN__OP2(add_sat, uint32_t, int32_t, clamp_s32((int64_t)A[i] + B[i]))
KILN__OP2(sub_sat, uint32_t, int32_t, clamp_s32((int64_t)A[i] - B[i]))

KILN__HANDLER(neg_int)
{
  if (in->type == KILN__S64) {
    const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);

    KILN__LANES(uint64_t, 0 - A[i]);
  } else {
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
    const uint32_t mask = in->type == KILN__S16 ? 0xffff : UINT32_MAX;

    KILN__LANES(uint32_t, (0 - A[i]) & mask);
  }
}

KILN__HANDLER(abs_int)
{
  if (in->type == KILN__S64) {
    const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);

    KILN__LANES(uint64_t, A[i] >> 63 != 0 ? 0 - A[i] : A[i]);
  } else {
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
    const unsigned sign = in->type == KILN__S16 ? 15 : 31;
    const uint32_t mask = in->type == KILN__S16 ? 0xffff : UINT32_MAX;

    KILN__LANES(uint32_t, (A[i] >> sign != 0 ? 0 - A[i] : A[i]) & mask);
  }
}

/* Implements sad: c + |a - b|. An exclusive or with `flip` maps the signed
 * order to the unsigned order. */
KILN__HANDLER(sad)
{
  const bool is_signed =
      in->type == KILN__S16 || in->type == KILN__S32 || in->type == KILN__S64;

  if (in->type == KILN__U64 || in->type == KILN__S64) {
    const uint64_t flip = is_signed ? UINT64_C(1) << 63 : 0;
    KILN__SOURCES_3(uint64_t);

    KILN__LANES(uint64_t, C[i] + ((A[i] ^ flip) < (B[i] ^ flip) ? B[i] - A[i]
                                                                : A[i] - B[i]));
  } else {
    const bool half = in->type == KILN__U16 || in->type == KILN__S16;
    const uint32_t flip = is_signed ? (half ? 0x8000 : 0x80000000) : 0;
    const uint32_t mask = half ? 0xffff : UINT32_MAX;
    KILN__SOURCES_3(uint32_t);

    KILN__LANES(
        uint32_t,
        (C[i] + ((A[i] ^ flip) < (B[i] ^ flip) ? B[i] - A[i] : A[i] - B[i])) &
            mask);
  }
}

/* ---- Products ------------------------------------------------------------ */

#define WIDE_U32(a, b) ((uint64_t)(a) * (b))
#define WIDE_S32(a, b) ((uint64_t)((int64_t)(int32_t)(a) * (int32_t)(b)))
#define PRODUCT_S16(a, b) ((uint32_t)(S16(a) * S16(b)))
#define HIGH_U64(a, b) ((uint64_t)((u128)(a) * (b) >> 64))
#define HIGH_S64(a, b) ((uint64_t)((s128)(a) * (b) >> 64))

KILN__OP2(mul_lo_16, uint32_t, uint32_t, LOW16(A[i] * B[i]))
KILN__OP2(mul_lo_32, uint32_t, uint32_t, A[i] * B[i])
KILN__OP2(mul_lo_64, uint64_t, uint64_t, A[i] * B[i])
KILN__OP2(mul_hi_u16, uint32_t, uint32_t, (A[i] * B[i]) >> 16)
KILN__OP2(mul_hi_s16, uint32_t, uint32_t, PRODUCT_S16(A[i], B[i]) >> 16)
KILN__OP2(mul_hi_u32, uint32_t, uint32_t, WIDE_U32(A[i], B[i]) >> 32)
KILN__OP2(mul_hi_s32, uint32_t, uint32_t, WIDE_S32(A[i], B[i]) >> 32)
KILN__OP2(mul_hi_u64, uint64_t, uint64_t, HIGH_U64(A[i], B[i]))
KILN__OP2(mul_hi_s64, uint64_t, int64_t, HIGH_S64(A[i], B[i]))
KILN__OP2(mul_wide_u16, uint32_t, uint32_t, A[i] * B[i])
KILN__OP2(mul_wide_s16, uint32_t, uint32_t, PRODUCT_S16(A[i], B[i]))
KILN__OP2(mul_wide_u32, uint64_t, uint32_t, WIDE_U32(A[i], B[i]))
KILN__OP2(mul_wide_s32, uint64_t, uint32_t, WIDE_S32(A[i], B[i]))

KILN__OP3(mad_lo_16, uint32_t, uint32_t, LOW16(A[i] * B[i] + C[i]))
KILN__OP3(mad_lo_32, uint32_t, uint32_t, A[i] * B[i] + C[i])
KILN__OP3(mad_lo_64, uint64_t, uint64_t, A[i] * B[i] + C[i])
KILN__OP3(mad_hi_u16, uint32_t, uint32_t, LOW16((A[i] * B[i] >> 16) + C[i]))
KILN__OP3(mad_hi_s16, uint32_t, uint32_t,
          LOW16((PRODUCT_S16(A[i], B[i]) >> 16) + C[i]))
KILN__OP3(mad_hi_u32, uint32_t, uint32_t, (WIDE_U32(A[i], B[i]) >> 32) + C[i])
KILN__OP3(mad_hi_s32, uint32_t, uint32_t, (WIDE_S32(A[i], B[i]) >> 32) + C[i])
KILN__OP3(mad_hi_u64, uint64_t, uint64_t, HIGH_U64(A[i], B[i]) + C[i])
KILN__OP3(mad_hi_s64, uint64_t, int64_t, HIGH_S64(A[i], B[i]) + (uint64_t)C[i])
KILN__OP3(mad_hi_sat, uint32_t, int32_t,
          clamp_s32((int64_t)(int32_t)(WIDE_S32(A[i], B[i]) >> 32) + C[i]))
KILN__OP3(mad_wide_u16, uint32_t, uint32_t, A[i] * B[i] + C[i])
KILN__OP3(mad_wide_s16, uint32_t, uint32_t, PRODUCT_S16(A[i], B[i]) + C[i])

#define MAD_WIDE(name, product)                                                \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_2(uint32_t);                                                 \
    const uint64_t *const C = KILN__SLOT(const uint64_t, in->c);               \
    KILN__LANES(uint64_t, product(A[i], B[i]) + C[i]);                         \
  }

MAD_WIDE(mad_wide_u32, WIDE_U32)
MAD_WIDE(mad_wide_s32, WIDE_S32)

/* Implements mul24: the product of the low 24 bits of a and b, starting at bit
 * `shift`. */
static void products24(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                       uint32_t out[KILN__WARP])
{
  KILN__SOURCES_2(uint32_t);
  const uint32_t sign = in->type == KILN__S32 ? 0x800000 : 0;
  const unsigned shift = in->cmp == KILN__CMP_HI ? 16 : 0;

  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t a = ((A[i] & 0xffffff) ^ sign) - sign;
    const uint32_t b = ((B[i] & 0xffffff) ^ sign) - sign;
    const uint64_t product = sign != 0 ? WIDE_S32(a, b) : WIDE_U32(a, b);

    out[i] = (uint32_t)(product >> shift);
  }
}

KILN__HANDLER(mul24)
{
  uint32_t product[KILN__WARP];

  products24(w, in, product);
  KILN__LANES(uint32_t, product[i]);
}

KILN__HANDLER(mad24)
{
  const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);
  uint32_t product[KILN__WARP];

  products24(w, in, product);
  KILN__LANES(uint32_t, product[i] + C[i]);
}

KILN__HANDLER(mad24_sat)
{
  const int32_t *const C = KILN__SLOT(const int32_t, in->c);
  uint32_t product[KILN__WARP];

  products24(w, in, product);
  KILN__LANES(uint32_t, clamp_s32((int64_t)(int32_t)product[i] + C[i]));
}

/* Returns byte or half-word number k of x, extended to 32 bits as its type
 * requires. */
static inline uint32_t part(uint32_t x, unsigned k, unsigned bits,
                            uint32_t sign)
{
  const uint32_t mask = (1u << bits) - 1;

  return ((x >> (k * bits) & mask) ^ sign) - sign;
}

KILN__HANDLER(dp4a)
{
  KILN__SOURCES_3(uint32_t);
  const uint32_t sa = in->type2 == KILN__S32 ? 0x80 : 0;
  const uint32_t sb = in->type == KILN__S32 ? 0x80 : 0;

  KILN__LANES(uint32_t, C[i] + part(A[i], 0, 8, sa) * part(B[i], 0, 8, sb) +
                            part(A[i], 1, 8, sa) * part(B[i], 1, 8, sb) +
                            part(A[i], 2, 8, sa) * part(B[i], 2, 8, sb) +
                            part(A[i], 3, 8, sa) * part(B[i], 3, 8, sb));
}

KILN__HANDLER(dp2a)
{
  KILN__SOURCES_3(uint32_t);
  const uint32_t sa = in->type2 == KILN__S32 ? 0x8000 : 0;
  const uint32_t sb = in->type == KILN__S32 ? 0x80 : 0;
  const unsigned first = in->cmp == KILN__CMP_HI ? 2 : 0;

  KILN__LANES(uint32_t,
              C[i] + part(A[i], 0, 16, sa) * part(B[i], first, 8, sb) +
                  part(A[i], 1, 16, sa) * part(B[i], first + 1, 8, sb));
}

/* Returns the absolute difference of the k-th elements of a and b. */
static inline uint32_t apart(uint32_t a, uint32_t b, unsigned k, unsigned bits)
{
  const uint32_t x = part(a, k, bits, 0), y = part(b, k, bits, 0);

  return x > y ? x - y : y - x;
}

KILN__OP2(vabsdiff2, uint32_t, uint32_t,
          apart(A[i], B[i], 0, 16) | apart(A[i], B[i], 1, 16) << 16)

KILN__OP3(vabsdiff2_add, uint32_t, uint32_t,
          C[i] + apart(A[i], B[i], 0, 16) + apart(A[i], B[i], 1, 16))

KILN__OP2(vabsdiff4, uint32_t, uint32_t,
          apart(A[i], B[i], 0, 8) | apart(A[i], B[i], 1, 8) << 8 |
              apart(A[i], B[i], 2, 8) << 16 | apart(A[i], B[i], 3, 8) << 24)

KILN__OP3(vabsdiff4_add, uint32_t, uint32_t,
          C[i] + apart(A[i], B[i], 0, 8) + apart(A[i], B[i], 1, 8) +
              apart(A[i], B[i], 2, 8) + apart(A[i], B[i], 3, 8))

/* ---- Minimum and maximum ------------------------------------------------- */

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

KILN__OP2(min_u32, uint32_t, uint32_t, MIN(A[i], B[i]))
KILN__OP2(max_u32, uint32_t, uint32_t, MAX(A[i], B[i]))
KILN__OP2(min_s32, int32_t, int32_t, MIN(A[i], B[i]))
KILN__OP2(max_s32, int32_t, int32_t, MAX(A[i], B[i]))
KILN__OP2(min_u64, uint64_t, uint64_t, MIN(A[i], B[i]))
KILN__OP2(max_u64, uint64_t, uint64_t, MAX(A[i], B[i]))
KILN__OP2(min_s64, int64_t, int64_t, MIN(A[i], B[i]))
KILN__OP2(max_s64, int64_t, int64_t, MAX(A[i], B[i]))
KILN__OP2(min_s16, uint32_t, uint32_t, LOW16(MIN(S16(A[i]), S16(B[i]))))
KILN__OP2(max_s16, uint32_t, uint32_t, LOW16(MAX(S16(A[i]), S16(B[i]))))
KILN__OP2(min_relu_s32, int32_t, int32_t, MAX(MIN(A[i], B[i]), 0))
KILN__OP2(max_relu_s32, int32_t, int32_t, MAX(MAX(A[i], B[i]), 0))

#define HIGH(x) ((x) >> 16)
KILN__OP2(min_u16x2, uint32_t, uint32_t,
          MIN(LOW16(A[i]), LOW16(B[i])) | MIN(HIGH(A[i]), HIGH(B[i])) << 16)
KILN__OP2(max_u16x2, uint32_t, uint32_t,
          MAX(LOW16(A[i]), LOW16(B[i])) | MAX(HIGH(A[i]), HIGH(B[i])) << 16)

/* Defines the minimum or maximum of pairs of s16 values. With .relu, the
 * smallest possible result is 0. */
#define S16X2(name, CHOOSE)                                                    \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_2(uint32_t);                                                 \
    const int32_t least = (in->flags & KILN__RELU) != 0 ? 0 : INT16_MIN;       \
    uint32_t low[KILN__WARP], high[KILN__WARP];                                \
                                                                               \
    for (int i = 0; i < KILN__WARP; i++) {                                     \
      const int32_t l = CHOOSE(S16(A[i]), S16(B[i]));                          \
      const int32_t h = CHOOSE(S16(HIGH(A[i])), S16(HIGH(B[i])));              \
                                                                               \
      low[i] = LOW16(MAX(l, least));                                           \
      high[i] = LOW16(MAX(h, least));                                          \
    }                                                                          \
    KILN__LANES(uint32_t, low[i] | high[i] << 16);                             \
  }

S16X2(min_s16x2, MIN)
S16X2(max_s16x2, MAX)
