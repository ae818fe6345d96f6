/* bulk_reduce.c -- the reductions of cp.reduce.async.bulk and red.async: each
 * element of the destination is combined with an element of the source.
 *
 * The operations are those of the instruction red, except that additions of f32
 * keep subnormal numbers unless the type of the tensor has .ftz, and additions of
 * f64 return a NaN operand unchanged. Other host threads may update the same
 * global memory, so each element is updated by compare-and-swap. The order of the
 * updates is that of the copies. */
#include "bulk_reduce.h"

#include "../exec/float.h"
#include "../exec/nan.h"

/* Values of in->sub, which selects the operation; see modifiers.def. */
enum { MIN = 1, MAX, ADD, INC, DEC };

bool kiln__cpu_bulk_reduces(const kiln__cpu_insn *in)
{
  return in->boolop != KILN__BOOL_NONE || (in->sub >= MIN && in->sub <= DEC);
}

bool kiln__cpu_bulk_supports(const kiln__cpu_insn *in, kiln__cpu_ptx_type type)
{
  return !kiln__cpu_bulk_reduces(in) || type != KILN__S64 || in->sub == MIN ||
         in->sub == MAX;
}

static uint32_t sum_f32(uint32_t a, uint32_t b, bool ftz)
{
  float f;

  if (ftz)
    return kiln__cpu_to_ftz(kiln__cpu_from_ftz(a) + kiln__cpu_from_ftz(b));
  f = kiln__cpu_float_of_bits(a) + kiln__cpu_float_of_bits(b);
  return f != f ? KILN__NAN_F32 : kiln__cpu_bits_of_float(f);
}

static uint64_t sum(kiln__cpu_ptx_type type, bool ftz, uint64_t a, uint64_t b)
{
  const uint32_t x = (uint32_t)a, y = (uint32_t)b;
  double d;

  switch (type) {
  case KILN__F32:
    return sum_f32(x, y, ftz);
  case KILN__F64:
    if (kiln__cpu_is_nan_f64(a) || kiln__cpu_is_nan_f64(b))
      return kiln__cpu_is_nan_f64(b) ? b : a;
    d = kiln__cpu_double_of_bits(a) + kiln__cpu_double_of_bits(b);
    return d != d ? KILN__NAN_F64 : kiln__cpu_bits_of_double(d);
  case KILN__F16:
    return kiln__cpu_f16_of_float(kiln__cpu_float_of_f16(x) +
                                  kiln__cpu_float_of_f16(y));
  case KILN__BF16:
    return kiln__cpu_bf16_of_float(kiln__cpu_float_of_bf16(x) +
                                   kiln__cpu_float_of_bf16(y));
  default:
    return a + b;
  }
}

/* Returns the smaller or the larger of two 16-bit floats, whose infinity has
 * the bits `inf`. -0 is smaller than +0. A number is preferred to NaN. */
static uint64_t extreme16(uint32_t a, uint32_t b, uint32_t inf, bool max)
{
  const int32_t x = (a & 0x8000) != 0 ? -(int32_t)(a & 0x7fff) - 1 : (int32_t)a;
  const int32_t y = (b & 0x8000) != 0 ? -(int32_t)(b & 0x7fff) - 1 : (int32_t)b;

  if ((a & 0x7fff) > inf)
    return (b & 0x7fff) > inf ? 0x7fff : b;
  if ((b & 0x7fff) > inf)
    return a;
  return max ? (x < y ? b : a) : (y < x ? b : a);
}

static uint64_t extreme(kiln__cpu_ptx_type type, uint64_t a, uint64_t b,
                        bool max)
{
  bool less;

  switch (type) {
  case KILN__F16:
    return extreme16((uint32_t)a, (uint32_t)b, 0x7c00, max);
  case KILN__BF16:
    return extreme16((uint32_t)a, (uint32_t)b, 0x7f80, max);
  case KILN__S32:
    less = (int32_t)(uint32_t)a < (int32_t)(uint32_t)b;
    break;
  case KILN__S64:
    less = (int64_t)a < (int64_t)b;
    break;
  default:
    less = a < b;
    break;
  }
  return less == max ? b : a;
}

static uint64_t apply(const kiln__cpu_insn *in, kiln__cpu_ptx_type type,
                      bool ftz, uint64_t old, uint64_t b)
{
  switch (in->boolop) {
  case KILN__BOOL_AND:
    return old & b;
  case KILN__BOOL_OR:
    return old | b;
  case KILN__BOOL_XOR:
    return old ^ b;
  default:
    break;
  }
  switch (in->sub) {
  case MIN:
  case MAX:
    return extreme(type, old, b, in->sub == MAX);
  case INC:
    return old >= b ? 0 : old + 1;
  case DEC:
    return old == 0 || old > b ? b : old - 1;
  default:
    return sum(type, ftz, old, b);
  }
}

/* Defines the loop over the elements for one element size. */
#define REDUCE(name, T)                                                        \
  static void name(const kiln__cpu_insn *in, kiln__cpu_ptx_type type,          \
                   bool ftz, T *to, const uint8_t *from, uint32_t n)           \
  {                                                                            \
    for (uint32_t i = 0; i < n; i++) {                                         \
      T old = __atomic_load_n(&to[i], __ATOMIC_RELAXED), b;                    \
                                                                               \
      memcpy(&b, from + i * sizeof b, sizeof b);                               \
      while (!__atomic_compare_exchange_n(                                     \
          &to[i], &old, (T)apply(in, type, ftz, old, b), false,                \
          __ATOMIC_RELAXED, __ATOMIC_RELAXED))                                 \
        ;                                                                      \
    }                                                                          \
  }

REDUCE(reduce1, uint8_t)
REDUCE(reduce2, uint16_t)
REDUCE(reduce4, uint32_t)
REDUCE(reduce8, uint64_t)

void kiln__cpu_bulk_reduce(const kiln__cpu_insn *in, kiln__cpu_ptx_type type,
                           bool ftz, uint8_t *to, const uint8_t *from,
                           uint32_t n)
{
  void *const at = to;

  switch (kiln__cpu_ptx_type_bytes[type]) {
  case 1:
    reduce1(in, type, ftz, at, from, n);
    break;
  case 2:
    reduce2(in, type, ftz, at, from, n / 2);
    break;
  case 4:
    reduce4(in, type, ftz, at, from, n / 4);
    break;
  default:
    reduce8(in, type, ftz, at, from, n / 8);
    break;
  }
}
