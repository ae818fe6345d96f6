/* fold.c -- reductions of elements in host memory.
 *
 * Elements of f16 and bf16 have accumulators of type float, so that a reduction
 * over many ranks rounds once. Integers wrap. Minimum and maximum return NaN if
 * an operand is NaN, and treat -0 as less than +0, as the operations on the
 * device do. */
#include "group.h"

#include <math.h>
#include <string.h>

bool kiln__comm_foldable(kiln_dtype type, kiln_op_name op)
{
  if (type >= KILN_I8 && type <= KILN_U64)
    return op >= KILN_SUM && op <= KILN_XOR;
  if (type >= KILN_F16 && type <= KILN_F64)
    return op >= KILN_SUM && op <= KILN_MAX;
  return (type == KILN_C64 || type == KILN_C128) &&
         (op == KILN_SUM || op == KILN_PROD);
}

/* ---- 16-bit floating-point numbers --------------------------------------- */

static float bits_float(uint32_t bits)
{
  float value;

  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t float_bits(float value)
{
  uint32_t bits;

  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float from_f16(uint16_t h)
{
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  const uint32_t magnitude = h & 0x7fff;

  if (magnitude >= 0x7c00) /* infinity or NaN */
    return bits_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400)
    return bits_float(sign | ((magnitude << 13) + ((127 - 15) << 23)));
  return copysignf((float)magnitude * 0x1p-24f, bits_float(sign | 0x3f800000));
}

/* Rounds to nearest, ties to even. */
static uint16_t to_f16(float value)
{
  const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffff;
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

  if (magnitude > 0x7f800000)
    return (uint16_t)(sign | 0x7fff);
  if (magnitude >= 0x477ff000) /* 65,520, which rounds to infinity */
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) /* below 2^-14: a multiple of 2^-24 */
    return (uint16_t)(sign | (uint16_t)lrintf(bits_float(magnitude) * 0x1p24f));
  return (uint16_t)(sign | (magnitude - ((127 - 15) << 23) + 0xfff +
                            (magnitude >> 13 & 1)) >>
                               13);
}

static float from_bf16(uint16_t h)
{
  return bits_float((uint32_t)h << 16);
}

static uint16_t to_bf16(float value)
{
  const uint32_t bits = float_bits(value);

  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void kiln__comm_widen(kiln_dtype type, void *acc, const void *x, size_t n)
{
  const uint16_t *const in = x;
  float *const out = acc;

  if (type != KILN_F16 && type != KILN_BF16) {
    memcpy(acc, x, n * kiln_dtype_size(type));
    return;
  }
  for (size_t i = 0; i < n; i++)
    out[i] = type == KILN_F16 ? from_f16(in[i]) : from_bf16(in[i]);
}

void kiln__comm_narrow(kiln_dtype type, void *x, const void *acc, size_t n)
{
  const float *const in = acc;
  uint16_t *const out = x;

  if (type != KILN_F16 && type != KILN_BF16) {
    memcpy(x, acc, n * kiln_dtype_size(type));
    return;
  }
  for (size_t i = 0; i < n; i++)
    out[i] = type == KILN_F16 ? to_f16(in[i]) : to_bf16(in[i]);
}

/* ---- Folds --------------------------------------------------------------- */

static double least(double a, double b)
{
  if (isnan(a) || isnan(b))
    return NAN;
  return a < b || (a == b && signbit(a)) ? a : b;
}

static double greatest(double a, double b)
{
  if (isnan(a) || isnan(b))
    return NAN;
  return a > b || (a == b && !signbit(a)) ? a : b;
}

/* A loop over n elements of type T, for one operation. */
#define EACH(expression)                                                       \
  for (size_t i = 0; i < n; i++)                                               \
    a[i] = (expression);                                                       \
  break

/* Integers compute in the unsigned type W, where sums and products wrap. */
#define INTEGERS(name, T, W)                                                   \
  static void fold_##name(kiln_op_name op, T *a, const T *b, size_t n)         \
  {                                                                            \
    switch (op) {                                                              \
    case KILN_SUM:                                                             \
      EACH((T)((W)a[i] + (W)b[i]));                                            \
    case KILN_PROD:                                                            \
      EACH((T)((W)a[i] * (W)b[i]));                                            \
    case KILN_MIN:                                                             \
      EACH(b[i] < a[i] ? b[i] : a[i]);                                         \
    case KILN_MAX:                                                             \
      EACH(b[i] > a[i] ? b[i] : a[i]);                                         \
    case KILN_AND:                                                             \
      EACH((T)(a[i] & b[i]));                                                  \
    case KILN_OR:                                                              \
      EACH((T)(a[i] | b[i]));                                                  \
    case KILN_XOR:                                                             \
      EACH((T)(a[i] ^ b[i]));                                                  \
    }                                                                          \
  }
INTEGERS(i8, int8_t, uint32_t)
INTEGERS(u8, uint8_t, uint32_t)
INTEGERS(i16, int16_t, uint32_t)
INTEGERS(u16, uint16_t, uint32_t)
INTEGERS(i32, int32_t, uint32_t)
INTEGERS(u32, uint32_t, uint32_t)
INTEGERS(i64, int64_t, uint64_t)
INTEGERS(u64, uint64_t, uint64_t)

/* LOAD(i) is element i of the operand b. */
#define FLOATS(name, T, B, LOAD)                                               \
  static void fold_##name(kiln_op_name op, T *a, const B *b, size_t n)         \
  {                                                                            \
    switch (op) {                                                              \
    case KILN_SUM:                                                             \
      EACH(a[i] + LOAD(b[i]));                                                 \
    case KILN_PROD:                                                            \
      EACH(a[i] * LOAD(b[i]));                                                 \
    case KILN_MIN:                                                             \
      EACH((T)least((double)a[i], (double)LOAD(b[i])));                        \
    default:                                                                   \
      EACH((T)greatest((double)a[i], (double)LOAD(b[i])));                     \
    }                                                                          \
  }
FLOATS(f16, float, uint16_t, from_f16)
FLOATS(bf16, float, uint16_t, from_bf16)
FLOATS(f32, float, float, )
FLOATS(f64, double, double, )

#define COMPLEX(name, T)                                                       \
  static void fold_##name(kiln_op_name op, T *a, const T *b, size_t n)         \
  {                                                                            \
    for (size_t i = 0; i < 2 * n; i += 2) {                                    \
      const T re = a[i], im = a[i + 1];                                        \
                                                                               \
      a[i] = op == KILN_SUM ? re + b[i] : re * b[i] - im * b[i + 1];           \
      a[i + 1] = op == KILN_SUM ? im + b[i + 1] : re * b[i + 1] + im * b[i];   \
    }                                                                          \
  }
COMPLEX(c64, float)
COMPLEX(c128, double)

void kiln__comm_fold(kiln_dtype type, kiln_op_name op, void *acc, const void *x,
                     size_t n)
{
  switch (type) {
#define FOLD_CASE(name, function)                                              \
  case KILN_##name:                                                            \
    function(op, acc, x, n);                                                   \
    break;
    FOLD_CASE(I8, fold_i8)
    FOLD_CASE(U8, fold_u8)
    FOLD_CASE(I16, fold_i16)
    FOLD_CASE(U16, fold_u16)
    FOLD_CASE(I32, fold_i32)
    FOLD_CASE(U32, fold_u32)
    FOLD_CASE(I64, fold_i64)
    FOLD_CASE(U64, fold_u64)
    FOLD_CASE(F16, fold_f16)
    FOLD_CASE(BF16, fold_bf16)
    FOLD_CASE(F32, fold_f32)
    FOLD_CASE(F64, fold_f64)
    FOLD_CASE(C64, fold_c64)
    FOLD_CASE(C128, fold_c128)
#undef FOLD_CASE
  default:
    break;
  }
}
