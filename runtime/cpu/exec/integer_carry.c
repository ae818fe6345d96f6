/* integer_carry.c -- additions, subtractions and products that read or write
 * the carry flag.
 *
 * Each lane has its own carry flag, which is 0 or 1. As on GPUs, a subtraction
 * adds the complement, so a flag of 1 means that there was no borrow. */
#include "lanes.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* Computes d = x + y + carry in the unsigned type T. If `write` is set, the
 * carry flag receives the carry out of the highest bit. */
#define ADD(T, x, y, with, write)                                              \
  do {                                                                         \
    T *const D = KILN__SLOT(T, in->d);                                         \
    const uint32_t use = (with) ? UINT32_MAX : 0;                              \
                                                                               \
    KILN__VECTOR_LOOP                                                          \
    for (int i = 0; i < KILN__WARP; i++) {                                     \
      const T a = (x), b = (y), c = w->carry[i] & use;                         \
      const T half = a + b, sum = half + c;                                    \
      const uint32_t flag = (uint32_t)((half < a) | (sum < half));             \
                                                                               \
      D[i] = w->lane[i] != 0 ? sum : D[i];                                     \
      if (write)                                                               \
        w->carry[i] = w->lane[i] != 0 ? flag : w->carry[i];                    \
    }                                                                          \
  } while (0)

#define SUBTRACT(T, x, y, with, write)                                         \
  do {                                                                         \
    T *const D = KILN__SLOT(T, in->d);                                         \
    const uint32_t use = (with) ? 1 : 0;                                       \
                                                                               \
    KILN__VECTOR_LOOP                                                          \
    for (int i = 0; i < KILN__WARP; i++) {                                     \
      const T a = (x), b = (y), c = (w->carry[i] ^ 1) & use;                   \
      const T half = a - b, rest = half - c;                                   \
      const uint32_t flag = (uint32_t)((a >= b) & (half >= c));                \
                                                                               \
      D[i] = w->lane[i] != 0 ? rest : D[i];                                    \
      if (write)                                                               \
        w->carry[i] = w->lane[i] != 0 ? flag : w->carry[i];                    \
    }                                                                          \
  } while (0)

#define CARRY_OP(name, T, DO, with, write)                                     \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_2(T);                                                        \
    DO(T, A[i], B[i], with, write);                                            \
  }

#define WRITES ((in->flags & KILN__CARRY) != 0)

CARRY_OP(add_cc_32, uint32_t, ADD, false, true)
CARRY_OP(add_cc_64, uint64_t, ADD, false, true)
CARRY_OP(addc_32, uint32_t, ADD, true, WRITES)
CARRY_OP(addc_64, uint64_t, ADD, true, WRITES)
CARRY_OP(sub_cc_32, uint32_t, SUBTRACT, false, true)
CARRY_OP(sub_cc_64, uint64_t, SUBTRACT, false, true)
CARRY_OP(subc_32, uint32_t, SUBTRACT, true, WRITES)
CARRY_OP(subc_64, uint64_t, SUBTRACT, true, WRITES)

KILN__OP2(addc_16, uint32_t, uint32_t, (A[i] + B[i] + w->carry[i]) & 0xffff)
KILN__OP2(subc_16, uint32_t, uint32_t,
          (A[i] - B[i] - (w->carry[i] ^ 1)) & 0xffff)

/* ---- Multiply-add -------------------------------------------------------- */

/* Defines mad with carry: the low or the high half of the product a * b, plus
 * c. U2 and S2 are types twice as wide as the operand types U and S. */
#define MAD(name, bits, U, S, U2, S2, signed_type)                             \
  static void name(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool with)     \
  {                                                                            \
    KILN__SOURCES_3(U);                                                        \
    const bool out = WRITES;                                                   \
    U product[KILN__WARP];                                                     \
                                                                               \
    for (int i = 0; i < KILN__WARP; i++) {                                     \
      const S2 wide = (S2)(S)A[i] * (S)B[i];                                   \
                                                                               \
      product[i] = in->cmp != KILN__CMP_HI   ? A[i] * B[i]                     \
                   : in->type == signed_type ? (U)((U2)wide >> bits)           \
                                             : (U)((U2)A[i] * B[i] >> bits);   \
    }                                                                          \
    ADD(U, product[i], C[i], with, out);                                       \
  }

MAD(mad_32, 32, uint32_t, int32_t, uint64_t, int64_t, KILN__S32)
MAD(mad_64, 64, uint64_t, int64_t, u128, s128, KILN__S64)

KILN__CALLS(mad_cc_32, mad_32, false)
KILN__CALLS(mad_cc_64, mad_64, false)
KILN__CALLS(madc_32, mad_32, true)
KILN__CALLS(madc_64, mad_64, true)

/* Implements madc with 16-bit operands. For .hi, GPUs compute a 64-bit product
 * and return its upper 32 bits, which contain only the sign of the 16-bit
 * product. */
KILN__HANDLER(madc_16)
{
  KILN__SOURCES_3(uint32_t);
  const uint32_t sign = in->type == KILN__S16 ? 0x8000 : 0;

  if (in->cmp != KILN__CMP_HI)
    KILN__LANES(uint32_t, (A[i] * B[i] + C[i] + w->carry[i]) & 0xffff);
  else
    KILN__LANES(uint32_t, (((A[i] ^ B[i]) & sign) != 0 && A[i] != 0 && B[i] != 0
                               ? C[i] + w->carry[i] - 1
                               : C[i] + w->carry[i]) &
                              0xffff);
}
