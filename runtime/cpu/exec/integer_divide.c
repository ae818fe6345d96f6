/* integer_divide.c -- quotients and remainders.
 *
 * As on GPUs, the quotient and the remainder of a division by zero have all
 * bits set. The smallest signed number divided by -1 gives the smallest number
 * with remainder 0. */
#include "lanes.h"

/* Divides integers of up to 32 bits in double, which vectorises. If the exact
 * quotient is not an integer, it differs from the next integer by at least 1 /
 * b. This difference exceeds the rounding error. */
static inline uint32_t quotient(uint32_t a, uint32_t b)
{
  /* The operand is converted in two halves, because processors convert only
   * signed integers quickly. */
  const double x = (double)(int32_t)(a >> 1) * 2.0 + (double)(int32_t)(a & 1);
  const double y = (double)(int32_t)(b >> 1) * 2.0 + (double)(int32_t)(b & 1);
  const double q = x / (b != 0 ? y : 1.0);
  const bool high = q >= 2147483648.0;
  const int32_t part = (int32_t)(high ? q - 2147483648.0 : q);

  return (uint32_t)part + (high ? 0x80000000 : 0);
}

static inline uint32_t magnitude(uint32_t x)
{
  return x >> 31 != 0 ? 0 - x : x;
}

static inline uint32_t with_sign(uint32_t x, uint32_t sign)
{
  return sign >> 31 != 0 ? 0 - x : x;
}

static inline uint32_t div_u(uint32_t a, uint32_t b)
{
  return b != 0 ? quotient(a, b) : UINT32_MAX;
}

static inline uint32_t rem_u(uint32_t a, uint32_t b)
{
  return b != 0 ? a - quotient(a, b) * b : UINT32_MAX;
}

static inline uint32_t div_s(uint32_t a, uint32_t b)
{
  const uint32_t q = quotient(magnitude(a), magnitude(b));

  return b != 0 ? with_sign(q, a ^ b) : UINT32_MAX;
}

static inline uint32_t rem_s(uint32_t a, uint32_t b)
{
  const uint32_t x = magnitude(a), y = magnitude(b);

  return b != 0 ? with_sign(x - quotient(x, y) * y, a) : UINT32_MAX;
}

static inline uint32_t extend16(uint32_t x)
{
  return (uint32_t)(int32_t)(int16_t)x;
}

KILN__OP2(div_u32, uint32_t, uint32_t, div_u(A[i], B[i]))
KILN__OP2(rem_u32, uint32_t, uint32_t, rem_u(A[i], B[i]))
KILN__OP2(div_s32, uint32_t, uint32_t, div_s(A[i], B[i]))
KILN__OP2(rem_s32, uint32_t, uint32_t, rem_s(A[i], B[i]))
KILN__OP2(div_u16, uint32_t, uint32_t, div_u(A[i], B[i]) & 0xffff)
KILN__OP2(rem_u16, uint32_t, uint32_t, rem_u(A[i], B[i]) & 0xffff)
KILN__OP2(div_s16, uint32_t, uint32_t,
          div_s(extend16(A[i]), extend16(B[i])) & 0xffff)
KILN__OP2(rem_s16, uint32_t, uint32_t,
          rem_s(extend16(A[i]), extend16(B[i])) & 0xffff)

/* ---- 64-bit division ----------------------------------------------------- */

static uint64_t magnitude64(uint64_t x)
{
  return x >> 63 != 0 ? 0 - x : x;
}

static uint64_t with_sign64(uint64_t x, uint64_t sign)
{
  return sign >> 63 != 0 ? 0 - x : x;
}

#define DIVIDE64(name, expression)                                             \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_2(uint64_t);                                                 \
    KILN__ACTIVE_LANES(uint64_t, B[i] == 0 ? UINT64_MAX : (expression));       \
  }

DIVIDE64(div_u64, A[i] / B[i])
DIVIDE64(rem_u64, A[i] % B[i])
DIVIDE64(div_s64,
         with_sign64(magnitude64(A[i]) / magnitude64(B[i]), A[i] ^ B[i]))
DIVIDE64(rem_s64, with_sign64(magnitude64(A[i]) % magnitude64(B[i]), A[i]))
