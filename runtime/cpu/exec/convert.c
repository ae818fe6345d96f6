/* convert.c -- conversions that vectorise: conversions between integers, and
 * the common conversions between integers and floating point.
 *
 * Registers may be wider than the types of their operands. Handlers for the
 * usual widths are loops over lanes. Unusual widths use the general routines,
 * and rare conversions use convert_exact.h. */
#include "convert_exact.h"
#include "half.h"

#include <math.h>

/* ---- Integers ------------------------------------------------------------ */

typedef uint64_t wide_lanes[KILN__WARP];

/* Loads operand a of all lanes and extends it from its type to 64 bits, with
 * sign or zeros. */
static void load(kiln__cpu_warp *w, const kiln__cpu_insn *in, wide_lanes out)
{
  const unsigned up = 64 - kiln__cpu_type_bits(in->type);

  if (in->src_reg_bytes == 8) {
    memcpy(out, KILN__SLOT(const uint64_t, in->a), sizeof(wide_lanes));
  } else {
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);

    for (int i = 0; i < KILN__WARP; i++)
      out[i] = A[i];
  }
  if (kiln__cpu_signed_type(in->type)) {
    for (int i = 0; i < KILN__WARP; i++)
      out[i] = (uint64_t)((int64_t)(out[i] << up) >> up);
  } else {
    for (int i = 0; i < KILN__WARP; i++)
      out[i] = out[i] << up >> up;
  }
}

/* Stores 64-bit values: truncates them to the destination type and then extends
 * them to the register width. */
static void store(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  wide_lanes values)
{
  const unsigned up = 64 - kiln__cpu_type_bits(in->type2);
  const uint32_t mask = in->reg_bytes == 1   ? 0xff
                        : in->reg_bytes == 2 ? 0xffff
                                             : UINT32_MAX;

  if (kiln__cpu_signed_type(in->type2)) {
    for (int i = 0; i < KILN__WARP; i++)
      values[i] = (uint64_t)((int64_t)(values[i] << up) >> up);
  } else {
    for (int i = 0; i < KILN__WARP; i++)
      values[i] = values[i] << up >> up;
  }
  if (in->reg_bytes == 8)
    KILN__LANES(uint64_t, values[i]);
  else
    KILN__LANES(uint32_t, (uint32_t)values[i] & mask);
}

/* Converts between integer types of at most 32 bits. The result is that of
 * load() and store(), at half the cost. */
static void narrow(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const unsigned up = 32 - kiln__cpu_type_bits(in->type);
  const unsigned down = 32 - kiln__cpu_type_bits(in->type2);
  const uint32_t mask = in->reg_bytes == 1   ? 0xff
                        : in->reg_bytes == 2 ? 0xffff
                                             : UINT32_MAX;
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  uint32_t values[KILN__WARP];

  if (kiln__cpu_signed_type(in->type)) {
    for (int i = 0; i < KILN__WARP; i++)
      values[i] = (uint32_t)((int32_t)(A[i] << up) >> up);
  } else {
    for (int i = 0; i < KILN__WARP; i++)
      values[i] = A[i] << up >> up;
  }
  if (kiln__cpu_signed_type(in->type2))
    KILN__LANES(uint32_t,
                (uint32_t)((int32_t)(values[i] << down) >> down) & mask);
  else
    KILN__LANES(uint32_t, (values[i] << down >> down) & mask);
}

KILN__HANDLER(cvt_int)
{
  wide_lanes values;

  if (in->src_reg_bytes != 8 && in->reg_bytes != 8 &&
      kiln__cpu_type_bits(in->type2) <= 32) {
    narrow(w, in);
    return;
  }

  load(w, in, values);
  store(w, in, values);
}

/* If the registers have unusual widths, this macro makes a handler call the
 * general integer conversion and return. */
#define OR_GENERAL(usual)                                                      \
  if (__builtin_expect(!(usual), 0)) {                                         \
    KILN__ISA_NAME(op_cvt_int)(w, in);                                         \
    return;                                                                    \
  }

KILN__HANDLER(cvt_64_u32)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);

  OR_GENERAL(in->src_reg_bytes == 4)
  KILN__LANES(uint64_t, A[i]);
}

KILN__HANDLER(cvt_64_s32)
{
  const int32_t *const A = KILN__SLOT(const int32_t, in->a);

  OR_GENERAL(in->src_reg_bytes == 4)
  KILN__LANES(uint64_t, (int64_t)A[i]);
}

KILN__HANDLER(cvt_32_64)
{
  const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);

  OR_GENERAL(in->reg_bytes == 4)
  KILN__LANES(uint32_t, A[i]);
}

static void clamp_signed(wide_lanes values, int64_t low, int64_t high)
{
  for (int i = 0; i < KILN__WARP; i++) {
    const int64_t x = (int64_t)values[i];
    const int64_t y = x < low ? low : x;

    values[i] = (uint64_t)(y > high ? high : y);
  }
}

static void clamp_unsigned(wide_lanes values, uint64_t high)
{
  for (int i = 0; i < KILN__WARP; i++)
    values[i] = values[i] > high ? high : values[i];
}

/* Converts integers with .sat: clamps each value to the range of the
 * destination type. */
KILN__HANDLER(cvt_sat)
{
  const uint64_t ones = kiln__cpu_low_bits(kiln__cpu_type_bits(in->type2));
  wide_lanes values;

  load(w, in, values);
  if (!kiln__cpu_signed_type(in->type)) {
    clamp_unsigned(values, kiln__cpu_signed_type(in->type2) ? ones >> 1 : ones);
  } else if (kiln__cpu_signed_type(in->type2)) {
    clamp_signed(values, -(int64_t)(ones >> 1) - 1, (int64_t)(ones >> 1));
  } else {
    clamp_signed(values, 0, INT64_MAX);
    clamp_unsigned(values, ones);
  }
  store(w, in, values);
}

/* ---- Conversions between registers as wide as their types ---------------- */

/* If the registers have unusual widths, this macro makes a handler call the
 * exact conversion and return. */
#define USUAL(result, source)                                                  \
  if (__builtin_expect(                                                        \
          in->reg_bytes != (result) || in->src_reg_bytes != (source), 0)) {    \
    KILN__ISA_NAME(op_cvt_exact)(w, in);                                       \
    return;                                                                    \
  }

#define NATIVE(name, TD, T, expression)                                        \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const T *const A = KILN__SLOT(const T, in->a);                             \
                                                                               \
    USUAL(sizeof(TD), sizeof(T))                                               \
    KILN__LANES(TD, expression);                                               \
  }

NATIVE(cvt_f32_s32, float, int32_t, (float)A[i])
NATIVE(cvt_f64_s32, double, int32_t, (double)A[i])

/* The two halves of the integer are converted separately. Both conversions are
 * exact, so only the sum is rounded. */
NATIVE(cvt_f32_u32, float, uint32_t,
       (float)((double)(int32_t)(A[i] >> 16) * 65536.0 +
               (double)(int32_t)(A[i] & 0xffff)))
NATIVE(cvt_f64_u32, double, uint32_t,
       (double)(int32_t)(A[i] >> 16) * 65536.0 +
           (double)(int32_t)(A[i] & 0xffff))

#define FROM_64(name, TD)                                                      \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    USUAL(sizeof(TD), 8)                                                       \
    if (in->type == KILN__S64) {                                               \
      const int64_t *const A = KILN__SLOT(const int64_t, in->a);               \
      KILN__LANES(TD, A[i]);                                                   \
    } else {                                                                   \
      const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);             \
      KILN__LANES(TD, A[i]);                                                   \
    }                                                                          \
  }

FROM_64(cvt_f32_64, float)
FROM_64(cvt_f64_64, double)

static inline float nan_f32(float x)
{
  return x == x ? x : kiln__cpu_float_of_bits(KILN__NAN_F32);
}

static inline double quiet_f64(double x)
{
  const uint64_t bits = kiln__cpu_bits_of_double(x);

  return x == x ? x : kiln__cpu_double_of_bits(bits | KILN__QUIET_F64);
}

/* Replaces a subnormal by a zero of the same sign. `least` is the smallest
 * normal number. */
static inline float flushed(float x, uint32_t least)
{
  const uint32_t bits = kiln__cpu_bits_of_float(x);

  return kiln__cpu_float_of_bits((bits & 0x7fffffff) < least ? bits & 0x80000000
                                                             : bits);
}

static inline uint32_t least_of(const kiln__cpu_insn *in)
{
  return (in->flags & KILN__FTZ) != 0 ? 0x00800000 : 0;
}

/* Converts f32 to f64. A NaN keeps its sign and payload and becomes quiet. */
static inline uint64_t widened(float x)
{
  const uint32_t bits = kiln__cpu_bits_of_float(x);
  const uint64_t payload = (uint64_t)(bits & 0x003fffff) << 29;
  const uint64_t sign = (uint64_t)(bits & 0x80000000) << 32;

  return x == x ? kiln__cpu_bits_of_double((double)x)
                : sign | 0x7ff8000000000000 | payload;
}

static inline uint32_t narrowed(double x)
{
  const uint64_t bits = kiln__cpu_bits_of_double(x);
  const uint32_t payload = (uint32_t)(bits >> 29) & 0x003fffff;
  const uint32_t sign = (uint32_t)(bits >> 32) & 0x80000000;

  return x == x ? kiln__cpu_bits_of_float((float)x)
                : sign | 0x7fc00000 | payload;
}

KILN__HANDLER(cvt_f64_f32)
{
  const float *const A = KILN__SLOT(const float, in->a);
  const uint32_t least = least_of(in);

  USUAL(8, 4)
  if (least == 0)
    KILN__LANES(uint64_t, widened(A[i]));
  else
    KILN__LANES(uint64_t, widened(nan_f32(flushed(A[i], least))));
}

KILN__HANDLER(cvt_f32_f64)
{
  const double *const A = KILN__SLOT(const double, in->a);

  USUAL(4, 8)
  if ((in->flags & KILN__FTZ) == 0)
    KILN__LANES(uint32_t, narrowed(A[i]));
  else
    KILN__LANES(uint32_t,
                narrowed(A[i]) &
                    (fabs(A[i]) < 0x1.ffffffp-127 ? 0x80000000 : UINT32_MAX));
}

/* Defines conversions from integers of up to 16 bits, which are exact in every
 * rounding mode. */
#define FROM_SMALL(name, TD)                                                   \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const unsigned bits = kiln__cpu_type_bits(in->type),                       \
                   up = (32 - bits) & 31;                                      \
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);               \
                                                                               \
    if (bits > 16 || in->reg_bytes != sizeof(TD) || in->src_reg_bytes == 8 ||  \
        (in->flags & KILN__SAT) != 0) {                                        \
      KILN__ISA_NAME(op_cvt_exact)(w, in);                                     \
    } else if (kiln__cpu_signed_type(in->type)) {                              \
      KILN__LANES(TD, (int32_t)(A[i] << up) >> up);                            \
    } else {                                                                   \
      KILN__LANES(TD, (int32_t)(A[i] << up >> up));                            \
    }                                                                          \
  }

FROM_SMALL(cvt_f32_int, float)
FROM_SMALL(cvt_f64_int, double)

KILN__HANDLER(cvt_f32_f16)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);

  USUAL(4, 2)
  KILN__LANES(float, nan_f32(kiln__cpu_float_of_f16(A[i])));
}

KILN__HANDLER(cvt_f16_f32)
{
  const float *const A = KILN__SLOT(const float, in->a);

  USUAL(2, 4)
  KILN__LANES(uint32_t, kiln__cpu_f16_of_float(A[i]));
}

/* Converts bf16 to f32. The bits move to the upper half, so a NaN keeps its
 * payload. */
KILN__HANDLER(cvt_f32_bf16)
{
  wide_lanes values;

  load(w, in, values);
  for (int i = 0; i < KILN__WARP; i++)
    values[i] <<= 16;
  store(w, in, values);
}

KILN__HANDLER(cvt_bf16_f32)
{
  const float *const A = KILN__SLOT(const float, in->a);

  USUAL(2, 4)
  KILN__LANES(uint32_t, kiln__cpu_bf16_of_float(A[i]));
}

/* A conversion to the same type copies the bits. */
KILN__HANDLER(cvt_same)
{
  if (in->type == KILN__F16 || in->type == KILN__BF16)
    KILN__ISA_NAME(op_cvt_exact)(w, in);
  else
    KILN__ISA_NAME(op_cvt_int)(w, in);
}

/* Clamps x to [0, 1] (.sat). A NaN compares false and gives 0. */
static inline float unit(float x)
{
  const float low = x > 0.0f ? x : 0.0f;

  return low < 1.0f ? low : 1.0f;
}

NATIVE(cvt_sat_f32, float, float, unit(A[i]))

/* ---- Rounding to integral values ----------------------------------------- */

/* Defines one loop per rounding direction. Each loop rounds the value x of
 * every lane to an integral value. */
#define DIRECTIONS(TD, RESULT, RINT, TRUNC, FLOOR, CEIL, x)                    \
  switch (in->round) {                                                         \
  case KILN__ROUND_NI:                                                         \
    KILN__LANES(TD, RESULT(RINT(x)));                                          \
    break;                                                                     \
  case KILN__ROUND_ZI:                                                         \
    KILN__LANES(TD, RESULT(TRUNC(x)));                                         \
    break;                                                                     \
  case KILN__ROUND_MI:                                                         \
    KILN__LANES(TD, RESULT(FLOOR(x)));                                         \
    break;                                                                     \
  default:                                                                     \
    KILN__LANES(TD, RESULT(CEIL(x)));                                          \
    break;                                                                     \
  }

#define DIRECTIONS_F32(TD, RESULT, x)                                          \
  DIRECTIONS(TD, RESULT, __builtin_rintf, __builtin_truncf, __builtin_floorf,  \
             __builtin_ceilf, x)
#define DIRECTIONS_F64(TD, RESULT, x)                                          \
  DIRECTIONS(TD, RESULT, __builtin_rint, __builtin_trunc, __builtin_floor,     \
             __builtin_ceil, x)

KILN__HANDLER(cvt_whole_f32)
{
  const float *const A = KILN__SLOT(const float, in->a);
  const uint32_t least = least_of(in);

  USUAL(4, 4)
  DIRECTIONS_F32(float, nan_f32, flushed(A[i], least))
}

KILN__HANDLER(cvt_whole_f64)
{
  const double *const A = KILN__SLOT(const double, in->a);

  USUAL(8, 8)
  DIRECTIONS_F64(double, quiet_f64, A[i])
}

/* Converts an integral f32 or f64 value to an integer and clamps the result. A
 * NaN gives 0 from an f32, and the highest bit from an f64. The C conversion is
 * applied only to values that fit. */
static inline int32_t s32_of_f32(float x)
{
  // cppcheck-suppress incorrectLogicOperator // cppcheck misreads hex floats
  const bool fits = x >= -0x1p31f && x < 0x1p31f;
  const int32_t r = (int32_t)(fits ? x : 0.0f);

  return x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : r;
}

static inline uint32_t u32_of_f32(float x)
{
  const bool high = x >= 0x1p31f;
  const float y = high ? x - 0x1p31f : x;
  const bool fits = y >= 0.0f && y < 0x1p31f;
  const uint32_t r = (uint32_t)(int32_t)(fits ? y : 0.0f);

  return x >= 0x1p32f ? UINT32_MAX : r + (high ? 0x80000000 : 0);
}

static inline int32_t s32_of_f64(double x)
{
  // cppcheck-suppress incorrectLogicOperator // cppcheck misreads hex floats
  const bool fits = x >= -0x1p31 && x < 0x1p31;
  const int32_t r = (int32_t)(fits ? x : 0.0);

  return x >= 0x1p31 ? INT32_MAX : x >= -0x1p31 ? r : INT32_MIN;
}

static inline uint32_t u32_of_f64(double x)
{
  const bool high = x >= 0x1p31;
  const double y = high ? x - 0x1p31 : x;
  const bool fits = y >= 0.0 && y < 0x1p31;
  const uint32_t r = (uint32_t)(int32_t)(fits ? y : 0.0);

  return x >= 0x1p32 ? UINT32_MAX
         : x == x    ? r + (high ? 0x80000000 : 0)
                     : 0x80000000;
}

#define WHOLE_F32(name, RESULT)                                                \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const float *const A = KILN__SLOT(const float, in->a);                     \
    const uint32_t least = least_of(in);                                       \
                                                                               \
    USUAL(4, 4)                                                                \
    DIRECTIONS_F32(uint32_t, RESULT, flushed(A[i], least))                     \
  }
#define WHOLE_F64(name, RESULT)                                                \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const double *const A = KILN__SLOT(const double, in->a);                   \
                                                                               \
    USUAL(4, 8)                                                                \
    DIRECTIONS_F64(uint32_t, RESULT, A[i])                                     \
  }

WHOLE_F32(cvt_s32_f32, s32_of_f32)
WHOLE_F32(cvt_u32_f32, u32_of_f32)
WHOLE_F64(cvt_s32_f64, s32_of_f64)
WHOLE_F64(cvt_u32_f64, u32_of_f64)

/* Converts a double to a signed 64-bit integer. A NaN gives the highest bit,
 * because all comparisons with a NaN are false. */
static inline uint64_t s64_of(double x)
{
  // cppcheck-suppress incorrectLogicOperator // cppcheck misreads hex floats
  const bool fits = x >= -0x1p63 && x < 0x1p63;
  const int64_t r = (int64_t)(fits ? x : 0.0);

  return x >= 0x1p63 ? INT64_MAX : fits ? (uint64_t)r : UINT64_C(1) << 63;
}

static inline uint64_t u64_of(double x)
{
  const bool high = x >= 0x1p63;
  const double y = high ? x - 0x1p63 : x;
  const bool fits = y >= 0.0 && y < 0x1p63;
  const uint64_t r = (uint64_t)(int64_t)(fits ? y : 0.0);
  const uint64_t top = UINT64_C(1) << 63;

  return x >= 0x1p64 ? UINT64_MAX : x == x ? r + (high ? top : 0) : top;
}

KILN__HANDLER(cvt_64_f32)
{
  const float *const A = KILN__SLOT(const float, in->a);
  const uint32_t least = least_of(in);

  USUAL(8, 4)
  if (in->type2 == KILN__S64)
    DIRECTIONS_F32(uint64_t, s64_of, flushed(A[i], least))
  else
    DIRECTIONS_F32(uint64_t, u64_of, flushed(A[i], least))
}

KILN__HANDLER(cvt_64_f64)
{
  const double *const A = KILN__SLOT(const double, in->a);

  USUAL(8, 8)
  if (in->type2 == KILN__S64)
    DIRECTIONS_F64(uint64_t, s64_of, A[i])
  else
    DIRECTIONS_F64(uint64_t, u64_of, A[i])
}
