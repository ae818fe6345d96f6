/* bits.c -- logic operations, shifts, bit counting, bit fields and byte
 * permutation. */
#include "float.h"
#include "lanes.h"

/* ---- Logic --------------------------------------------------------------- */

KILN__OP2(and_32, uint32_t, uint32_t, A[i] & B[i])
KILN__OP2(and_64, uint64_t, uint64_t, A[i] & B[i])
KILN__OP2(and_pred, uint32_t, uint32_t, A[i] & B[i])
KILN__OP2(or_32, uint32_t, uint32_t, A[i] | B[i])
KILN__OP2(or_64, uint64_t, uint64_t, A[i] | B[i])
KILN__OP2(or_pred, uint32_t, uint32_t, A[i] | B[i])
KILN__OP2(xor_32, uint32_t, uint32_t, A[i] ^ B[i])
KILN__OP2(xor_64, uint64_t, uint64_t, A[i] ^ B[i])
KILN__OP2(xor_pred, uint32_t, uint32_t, A[i] ^ B[i])
KILN__OP1(not_16, uint32_t, uint32_t, ~A[i] & 0xffff)
KILN__OP1(not_32, uint32_t, uint32_t, ~A[i])
KILN__OP1(not_64, uint64_t, uint64_t, ~A[i])
KILN__OP1(not_pred, uint32_t, uint32_t, ~A[i])
KILN__OP1(cnot_32, uint32_t, uint32_t, A[i] == 0)
KILN__OP1(cnot_64, uint64_t, uint64_t, A[i] == 0)

/* Implements lop3: evaluates the truth table as a tree of selections by c, then
 * b, then a. */
static void lop3_lanes(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                       uint32_t out[KILN__WARP])
{
  KILN__SOURCES_3(uint32_t);
  uint32_t base[4], flip[4];

  for (unsigned k = 0; k < 4; k++) {
    const uint32_t no = (in->imm >> (2 * k) & 1) != 0 ? UINT32_MAX : 0;
    const uint32_t yes = (in->imm >> (2 * k + 1) & 1) != 0 ? UINT32_MAX : 0;

    base[k] = no;
    flip[k] = no ^ yes;
  }
  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t a = A[i], b = B[i], c = C[i];
    const uint32_t p0 = base[0] ^ (flip[0] & c), p1 = base[1] ^ (flip[1] & c);
    const uint32_t p2 = base[2] ^ (flip[2] & c), p3 = base[3] ^ (flip[3] & c);
    const uint32_t low = p0 ^ ((p0 ^ p1) & b), high = p2 ^ ((p2 ^ p3) & b);

    out[i] = low ^ ((low ^ high) & a);
  }
}

KILN__HANDLER(lop3)
{
  uint32_t result[KILN__WARP];

  lop3_lanes(w, in, result);
  KILN__LANES(uint32_t, result[i]);
}

KILN__HANDLER(lop3_bool)
{
  const uint32_t *const E = KILN__SLOT(const uint32_t, in->e);
  const uint32_t flip = (in->flags & KILN__NEGATE_B) != 0 ? UINT32_MAX : 0;
  uint32_t result[KILN__WARP], truth[KILN__WARP];

  lop3_lanes(w, in, result);
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t t = result[i] != 0 ? UINT32_MAX : 0;
    const uint32_t e = E[i] ^ flip;

    truth[i] = in->boolop == KILN__BOOL_AND ? t & e : t | e;
  }
  if (in->d >= 0)
    KILN__LANES(uint32_t, result[i]);
  if (in->d2 >= 0) {
    uint32_t *const P = KILN__SLOT(uint32_t, in->d2);

    for (int i = 0; i < KILN__WARP; i++)
      P[i] = w->lane[i] != 0 ? truth[i] : P[i];
  }
}

/* ---- Shifts -------------------------------------------------------------- */

/* These macros shift an N-bit value. A shift amount of N or more gives 0;
 * RIGHT_S, the signed right shift, then gives copies of the sign bit. */
#define LEFT(a, b, N) ((b) < (N) ? (a) << ((b) & ((N)-1)) : 0)
#define RIGHT(a, b, N) ((b) < (N) ? (a) >> ((b) & ((N)-1)) : 0)
#define RIGHT_S(a, b, N) ((a) >> ((b) < (N) ? (b) : (N)-1))

KILN__OP2(shl_16, uint32_t, uint32_t, LEFT(A[i], B[i], 32) & 0xffff)
KILN__OP2(shl_32, uint32_t, uint32_t, LEFT(A[i], B[i], 32))
KILN__OP2(shr_u16, uint32_t, uint32_t, RIGHT(A[i], B[i], 32))
KILN__OP2(shr_u32, uint32_t, uint32_t, RIGHT(A[i], B[i], 32))
KILN__OP2(shr_s16, uint32_t, uint32_t,
          (uint32_t)RIGHT_S((int32_t)(int16_t)A[i], B[i], 32) & 0xffff)
KILN__OP2(shr_s32, uint32_t, uint32_t, RIGHT_S((int32_t)A[i], B[i], 32))

/* Defines a 64-bit shift. The shift amount is a 32-bit register. */
#define SHIFT64(name, expression)                                              \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);               \
    const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);               \
    KILN__LANES(uint64_t, expression);                                         \
  }

SHIFT64(shl_64, LEFT(A[i], (uint64_t)B[i], 64))
SHIFT64(shr_u64, RIGHT(A[i], (uint64_t)B[i], 64))
SHIFT64(shr_s64, RIGHT_S((int64_t)A[i], (uint64_t)B[i], 64))

/* Defines a funnel shift (shf), which shifts the 64-bit value b:a. */
#define FUNNEL(name, expression)                                               \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_3(uint32_t);                                                 \
                                                                               \
    if (in->sub == WRAP) {                                                     \
      KILN__LANES(uint32_t, expression(A[i], B[i], C[i] & 31));                \
    } else {                                                                   \
      KILN__LANES(uint32_t, expression(A[i], B[i], (C[i] < 32 ? C[i] : 32)));  \
    }                                                                          \
  }

/* Values of in->sub for the modifiers .clamp and .wrap of shf; see
 * modifiers.def. */
enum { CLAMP = 1, WRAP = 2 };

#define BOTH(a, b) ((uint64_t)(b) << 32 | (a))
#define FUNNEL_LEFT(a, b, n) (BOTH(a, b) << (n) >> 32)
#define FUNNEL_RIGHT(a, b, n) (BOTH(a, b) >> (n))

FUNNEL(shf_l, FUNNEL_LEFT)
FUNNEL(shf_r, FUNNEL_RIGHT)

/* ---- Counting ------------------------------------------------------------ */

static inline uint32_t ones32(uint32_t x)
{
  x -= x >> 1 & 0x55555555;
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f;
  return x * 0x01010101 >> 24;
}

static inline uint32_t ones64(uint64_t x)
{
  return ones32((uint32_t)x) + ones32((uint32_t)(x >> 32));
}

/* Returns the number of zero bits above the highest set bit, from the exponent of
 * x as a float. The bit below the highest one is cleared, so that the conversion
 * does not round up to the next power of two. */
static inline uint32_t leading32(uint32_t x)
{
  const float power = (float)(int32_t)(x & ~(x >> 1) & 0x7fffffff);
  const uint32_t zeros = 158 - (kiln__cpu_bits_of_float(power) >> 23);

  return x >> 31 != 0 ? 0 : zeros < 32 ? zeros : 32;
}

static inline uint32_t leading64(uint64_t x)
{
  const uint32_t high = (uint32_t)(x >> 32), low = (uint32_t)x;

  return high != 0 ? leading32(high) : 32 + leading32(low);
}

static inline uint32_t reverse32(uint32_t x)
{
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  x = (x >> 8 & 0x00ff00ff) | (x & 0x00ff00ff) << 8;
  return x >> 16 | x << 16;
}

KILN__OP1(popc_32, uint32_t, uint32_t, ones32(A[i]))
KILN__OP1(popc_64, uint32_t, uint64_t, ones64(A[i]))
KILN__OP1(clz_32, uint32_t, uint32_t, leading32(A[i]))
KILN__OP1(clz_64, uint32_t, uint64_t, leading64(A[i]))
KILN__OP1(brev_32, uint32_t, uint32_t, reverse32(A[i]))
KILN__OP1(brev_64, uint64_t, uint64_t,
          (uint64_t)reverse32((uint32_t)A[i]) << 32 |
              reverse32((uint32_t)(A[i] >> 32)))

/* Implements bfind: returns the position of the highest set bit, or ~0 if no
 * bit is set. With .shiftamt, the position is counted from the highest bit. */
static inline uint32_t found(uint32_t leading, uint32_t bits, bool from_top)
{
  return leading == bits ? UINT32_MAX : from_top ? leading : bits - 1 - leading;
}

KILN__HANDLER(bfind_32)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  const uint32_t use = in->type == KILN__S32 ? UINT32_MAX : 0;
  const bool top = in->sub != 0;

  KILN__LANES(uint32_t,
              found(leading32(A[i] ^ ((0 - (A[i] >> 31)) & use)), 32, top));
}

KILN__HANDLER(bfind_64)
{
  const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);
  const uint64_t use = in->type == KILN__S64 ? UINT64_MAX : 0;
  const bool top = in->sub != 0;

  KILN__LANES(uint32_t,
              found(leading64(A[i] ^ ((0 - (A[i] >> 63)) & use)), 64, top));
}

/* Implements fns: finds the |offset|-th set bit of `mask`, counted upwards or
 * downwards from bit `base`. An offset of 0 returns `base` if bit `base` is
 * set. */
static uint32_t nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
  const int step = offset < 0 ? -1 : 1;
  int64_t count = offset < 0 ? -(int64_t)offset : offset;

  if (offset == INT32_MIN) /* GPUs return 0 for this offset */
    return 0;
  if (base > 31)
    return UINT32_MAX;
  if (offset == 0)
    return (mask >> base & 1) != 0 ? base : UINT32_MAX;
  for (int at = (int)base; at >= 0 && at < 32; at += step) {
    count -= (int64_t)(mask >> at & 1);
    if (count == 0)
      return (uint32_t)at;
  }
  return UINT32_MAX;
}

KILN__HANDLER(fns)
{
  KILN__SOURCES_2(uint32_t);
  const int32_t *const C = KILN__SLOT(const int32_t, in->c);

  KILN__ACTIVE_LANES(uint32_t, nth_set(A[i], B[i], C[i]));
}

/* ---- Bit fields ---------------------------------------------------------- */

static inline uint32_t low_ones32(uint32_t n)
{
  return n < 32 ? (1u << (n & 31)) - 1 : UINT32_MAX;
}

static inline uint64_t low_ones64(uint64_t n)
{
  return n < 64 ? (UINT64_C(1) << (n & 63)) - 1 : UINT64_MAX;
}

/* Implements bfe, the bit field extraction. The 32-bit forms use only the low
 * byte of the position and of the length. The 64-bit forms use the whole word,
 * as GPUs do. */
static inline uint32_t extract_u32(uint32_t a, uint32_t at, uint32_t length)
{
  return RIGHT(a, at & 0xff, 32) & low_ones32(length & 0xff);
}

static inline uint64_t extract_u64(uint64_t a, uint64_t at, uint64_t length)
{
  return RIGHT(a, at, 64) & low_ones64(length);
}

/* Implements the signed bfe. Bits above the operand are copies of its sign bit.
 * All bits above the field are copies of the highest bit of the field. */
static inline uint32_t extract_s32(uint32_t a, uint32_t at, uint32_t length)
{
  const uint32_t n = (length & 0xff) < 32 ? length & 0xff : 32;
  const uint32_t moved = (uint32_t)RIGHT_S((int32_t)a, at & 0xff, 32);
  const uint32_t up = (32 - n) & 31;

  return n == 0 ? 0 : (uint32_t)((int32_t)(moved << up) >> up);
}

static inline uint64_t extract_s64(uint64_t a, uint64_t at, uint64_t length)
{
  const uint64_t n = length < 64 ? length : 64;
  const uint64_t moved = (uint64_t)RIGHT_S((int64_t)a, at, 64);
  const uint64_t up = (64 - n) & 63;

  return n == 0 ? 0 : (uint64_t)((int64_t)(moved << up) >> up);
}

static inline uint32_t insert32(uint32_t a, uint32_t b, uint32_t at,
                                uint32_t length)
{
  const uint32_t field = LEFT(low_ones32(length & 0xff), at & 0xff, 32);

  return (b & ~field) | (LEFT(a, at & 0xff, 32) & field);
}

static inline uint64_t insert64(uint64_t a, uint64_t b, uint64_t at,
                                uint64_t length)
{
  const uint64_t field = LEFT(low_ones64(length), at, 64);

  return (b & ~field) | (LEFT(a, at, 64) & field);
}

#define FIELD(name, T, expression)                                             \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const T *const A = KILN__SLOT(const T, in->a);                             \
    const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);               \
    const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);               \
    KILN__LANES(T, expression(A[i], B[i], C[i]));                              \
  }
#define INSERT(name, T, expression)                                            \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_2(T);                                                        \
    const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);               \
    const uint32_t *const E = KILN__SLOT(const uint32_t, in->e);               \
    KILN__LANES(T, expression(A[i], B[i], C[i], E[i]));                        \
  }

FIELD(bfe_u32, uint32_t, extract_u32)
FIELD(bfe_s32, uint32_t, extract_s32)
FIELD(bfe_u64, uint64_t, extract_u64)
FIELD(bfe_s64, uint64_t, extract_s64)
INSERT(bfi_32, uint32_t, insert32)
INSERT(bfi_64, uint64_t, insert64)

KILN__HANDLER(bmsk)
{
  KILN__SOURCES_2(uint32_t);

  if (in->sub == WRAP)
    KILN__LANES(uint32_t, low_ones32(B[i] & 31) << (A[i] & 31));
  else
    KILN__LANES(uint32_t, LEFT(low_ones32(B[i]), A[i], 32));
}

KILN__HANDLER(szext)
{
  KILN__SOURCES_2(uint32_t);
  const uint32_t wrap = in->sub == WRAP ? 31 : UINT32_MAX;
  uint32_t result[KILN__WARP];

  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t n = (B[i] & wrap) < 32 ? B[i] & wrap : 32;

    result[i] =
        in->type == KILN__S32 ? extract_s32(A[i], 0, n) : A[i] & low_ones32(n);
  }
  KILN__LANES(uint32_t, result[i]);
}

/* ---- Bytes --------------------------------------------------------------- */

/* Returns the byte of the 64-bit value b:a that a prmt selector selects. If bit
 * 3 of the selector is set, all eight bits of the result are copies of the sign
 * bit of this byte. */
static inline uint32_t pick(uint64_t both, uint32_t selector)
{
  const uint32_t byte = (uint32_t)(both >> (selector & 7) * 8) & 0xff;
  const uint32_t sign = byte >> 7 != 0 ? 0xff : 0;

  return (selector & 8) != 0 ? sign : byte;
}

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors)
{
  const uint64_t both = BOTH(a, b);

  return pick(both, selectors) | pick(both, selectors >> 4) << 8 |
         pick(both, selectors >> 8) << 16 | pick(both, selectors >> 12) << 24;
}

KILN__OP3(prmt, uint32_t, uint32_t, permute(A[i], B[i], C[i]))

KILN__HANDLER(prmt_mode)
{
  /* The four byte selectors of each prmt mode, as one hexadecimal number. The
   * first index is the mode, which modifiers.def counts from 1. The second
   * index is c % 4. */
  static const uint16_t modes[6][4] = {
      /* .f4e (forward 4 extract): four bytes from byte c upwards */
      {0x3210, 0x4321, 0x5432, 0x6543},
      /* .b4e (backward 4 extract): four bytes from byte c downwards */
      {0x5670, 0x6701, 0x7012, 0x0123},
      /* .rc8 (replicate 8): byte c, replicated four times */
      {0x0000, 0x1111, 0x2222, 0x3333},
      /* .ecl (edge clamp left): byte i of the result is byte max(i, c) */
      {0x3210, 0x3211, 0x3222, 0x3333},
      /* .ecr (edge clamp right): byte i of the result is byte min(i, c) */
      {0x0000, 0x1110, 0x2210, 0x3210},
      /* .rc16 (replicate 16): half-word c, replicated twice */
      {0x1010, 0x3232, 0x1010, 0x3232},
  };
  const uint16_t *const mode = modes[(in->sub - 1u) % 6];
  KILN__SOURCES_3(uint32_t);

  KILN__LANES(uint32_t, permute(A[i], B[i], mode[C[i] & 3]));
}
