/* video.c -- video instructions: arithmetic on bytes and halves of 32-bit registers.
 *
 * Every instruction is computed in the same steps: the sources' parts are extended to wide
 * integers, the operation is applied, its result is saturated, and then combined with the
 * third source. The steps are those of the PTX ISA, chapter on video instructions.
 *
 * GPUs since Maxwell execute most of these instructions as sequences of others, whose
 * results sometimes differ from the manual. tests/golden/video.txt has results of an H200.
 * This file follows it for all instructions on several parts, for the selector .h1 of
 * results, and for vmad with a shift. It follows the manual where .sat, .min or .max of
 * instructions on one part give other results on the GPU. */
#include "lanes.h"

__extension__ typedef __int128 wide;

/* Returns `bits` bits of x, from bit `at` on, extended as the type requires. */
static inline int64_t part(uint32_t x, unsigned at, unsigned bits,
                           bool is_signed)
{
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  const uint64_t value = x >> at & mask, sign = UINT64_C(1) << (bits - 1);

  return is_signed ? (int64_t)((value ^ sign) - sign) : (int64_t)value;
}

static inline int64_t clamp(int64_t x, unsigned bits, bool is_signed)
{
  const int64_t span = INT64_C(1) << (is_signed ? bits - 1 : bits);
  const int64_t least = is_signed ? -span : 0;

  return x < least ? least : x >= span ? span - 1 : x;
}

static bool compare(int64_t a, int64_t b, unsigned how)
{
  switch (how) {
  case KILN__CMP_EQ:
    return a == b;
  case KILN__CMP_NE:
    return a != b;
  case KILN__CMP_LT:
    return a < b;
  case KILN__CMP_LE:
    return a <= b;
  case KILN__CMP_GT:
    return a > b;
  default:
    return a >= b;
  }
}

static int64_t shift(const kiln__cpu_video *v, int64_t a, int64_t b)
{
  const unsigned n = v->mode == KILN__VIDEO_CLAMP ? (b > 32 ? 32 : (unsigned)b)
                                                  : (unsigned)b & 31;

  return v->op == KILN__VIDEO_SHL ? (int64_t)((uint64_t)a << n) : a >> n;
}

static int64_t apply(const kiln__cpu_video *v, int64_t a, int64_t b)
{
  switch (v->op) {
  case KILN__VIDEO_ADD:
    return a + b;
  case KILN__VIDEO_SUB:
    return a - b;
  case KILN__VIDEO_ABSDIFF:
    return a > b ? a - b : b - a;
  case KILN__VIDEO_MIN:
    return a < b ? a : b;
  case KILN__VIDEO_MAX:
    return a > b ? a : b;
  case KILN__VIDEO_AVERAGE:
    return (a + b + (a + b >= 0)) >> 1;
  case KILN__VIDEO_SET:
    return compare(a, b, v->mode);
  default:
    return shift(v, a, b);
  }
}

static bool has(const kiln__cpu_video *v, unsigned flag)
{
  return (v->flags & flag) != 0;
}

/* ---- One part ------------------------------------------------------------ */

/* The product and c have the sign of the intermediate result, which is signed if a factor
 * is, or if the product is negated. A GPU takes all words as signed if it shifts and does
 * not saturate. */
static uint32_t multiply_add(const kiln__cpu_video *v, int64_t a, int64_t b,
                             uint32_t c)
{
  const bool saturates = has(v, KILN__VIDEO_SATURATE);
  const bool words = v->mode != 0 && !saturates;
  const bool inner = has(v, KILN__VIDEO_SIGNED_A | KILN__VIDEO_SIGNED_B |
                                KILN__VIDEO_NEGATE_PRODUCT);
  const bool outer = inner || has(v, KILN__VIDEO_NEGATE_C);
  const wide addend = inner || words ? (wide)(int32_t)c : (wide)c;
  wide sum = words ? (wide)(int32_t)a * (int32_t)b : (wide)a * b;

  if (has(v, KILN__VIDEO_NEGATE_PRODUCT))
    sum = -sum;
  sum += has(v, KILN__VIDEO_NEGATE_C) ? -addend : addend;
  sum += has(v, KILN__VIDEO_PLUS_ONE);
  sum >>= v->mode;
  if (saturates) {
    const wide most = outer ? INT32_MAX : UINT32_MAX;
    const wide least = outer ? INT32_MIN : 0;

    sum = sum > most ? most : sum < least ? least : sum;
  }
  return (uint32_t)sum;
}

/* Inserts a result into c. A GPU takes the upper half of the result for .h1. */
static uint32_t merge(uint32_t result, unsigned at, unsigned bits, uint32_t c)
{
  const uint32_t mask = ((1u << bits) - 1) << at;

  return ((bits == 16 ? result : result << at) & mask) | (c & ~mask);
}

static uint32_t second(const kiln__cpu_video *v, int64_t x, uint32_t c)
{
  const bool is_signed = has(v, KILN__VIDEO_SIGNED_D);
  const int64_t y = part(c, 0, 32, is_signed);

  x = part((uint32_t)x, 0, 32, is_signed);
  switch (v->second) {
  case KILN__VIDEO_SECOND_ADD:
    return (uint32_t)(x + y);
  case KILN__VIDEO_SECOND_MIN:
    return (uint32_t)(x < y ? x : y);
  case KILN__VIDEO_SECOND_MAX:
    return (uint32_t)(x > y ? x : y);
  default:
    return (uint32_t)x;
  }
}

static uint32_t scalar(const kiln__cpu_video *v, uint32_t a, uint32_t b,
                       uint32_t c)
{
  const unsigned at = v->d & 0xff, bits = v->d >> 8;
  const int64_t x =
      part(a, v->a & 0xff, v->a >> 8, has(v, KILN__VIDEO_SIGNED_A));
  const int64_t y =
      part(b, v->b & 0xff, v->b >> 8, has(v, KILN__VIDEO_SIGNED_B));
  int64_t result;

  if (v->op == KILN__VIDEO_MAD)
    return multiply_add(v, x, y, c);
  result = apply(v, x, y);
  if (has(v, KILN__VIDEO_SATURATE))
    result = clamp(result, bits, has(v, KILN__VIDEO_SIGNED_D));
  if (bits < 32)
    return merge((uint32_t)result, at, bits, c);
  return second(v, result, c);
}

KILN__HANDLER(video_scalar)
{
  KILN__SOURCES_3(uint32_t);
  const kiln__cpu_video v = kiln__cpu_video_of(in);

  KILN__LANES(uint32_t, scalar(&v, A[i], B[i], C[i]));
}

/* ---- Several parts ------------------------------------------------------- */

static int64_t chosen(const kiln__cpu_video *v, unsigned choice, uint32_t a,
                      uint32_t b, bool is_signed)
{
  const unsigned bits = 32u / v->parts;

  return part(choice < v->parts ? a : b, choice % v->parts * bits, bits,
              is_signed);
}

static uint32_t parts(const kiln__cpu_video *v, uint32_t a, uint32_t b,
                      uint32_t c)
{
  const unsigned bits = 32u / v->parts;
  const uint32_t mask = (1u << bits) - 1;
  uint32_t d = c;

  for (unsigned i = 0; i < v->parts; i++) {
    int64_t x =
        chosen(v, v->a >> (4 * i) & 15, a, b, has(v, KILN__VIDEO_SIGNED_A));

    if ((v->d >> i & 1) == 0)
      continue;
    x = apply(
        v, x,
        chosen(v, v->b >> (4 * i) & 15, a, b, has(v, KILN__VIDEO_SIGNED_B)));
    if (has(v, KILN__VIDEO_SATURATE))
      x = clamp(x, bits, has(v, KILN__VIDEO_SIGNED_D));
    if (v->second == KILN__VIDEO_SECOND_ADD)
      d += (uint32_t)x;
    else
      d = (d & ~(mask << (i * bits))) | ((uint32_t)x & mask) << (i * bits);
  }
  return d;
}

KILN__HANDLER(video_parts)
{
  KILN__SOURCES_3(uint32_t);
  const kiln__cpu_video v = kiln__cpu_video_of(in);

  KILN__LANES(uint32_t, parts(&v, A[i], B[i], C[i]));
}
