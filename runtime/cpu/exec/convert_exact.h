/* convert_exact.h -- converts numbers between any two PTX types with a single
 * rounding. Only files of exec/ include this header.
 *
 * Problem: PTX has hundreds of conversions with directed rounding, saturation,
 * flushing and formats that no host processor supports. Chaining the
 * conversions of the host processor would round twice.
 *
 * Idea: split a value into its sign, 64 significant bits and an exponent.
 * Assemble the result with a single rounding in integer arithmetic. The
 * rounding mode of the host processor does not matter.
 *
 * Invariant: the highest of the 64 bits of a finite number is set, so every
 * format fits without loss.
 *
 * Cost: tens of instructions per lane. Common conversions have faster handlers
 * in convert.c. All other conversions use the functions of this header. */
#ifndef KILN_CPU_CONVERT_EXACT_H
#define KILN_CPU_CONVERT_EXACT_H

#include "lanes.h"
#include "nan.h"

typedef enum kiln__cpu_number_kind {
  KILN__ZERO,
  KILN__FINITE,
  KILN__INFINITE,
  KILN__NOT_A_NUMBER
} kiln__cpu_number_kind;

/* A number of any format. A finite number equals bits * 2^exponent, and the
 * highest of the 64 bits is set. A NaN stores its fraction in the highest
 * bits. */
typedef struct kiln__cpu_number {
  uint64_t bits;
  int exponent;
  kiln__cpu_number_kind kind;
  bool negative;
} kiln__cpu_number;

/* The layout and limits of a floating-point format. */
typedef struct kiln__cpu_encoding {
  int precision;     /* number of significand bits, including the hidden bit */
  int least;         /* exponent of the smallest normal number */
  uint32_t width;    /* total number of bits */
  uint64_t largest;  /* encoding of the largest finite number */
  uint64_t infinity; /* encoding of infinity; 0 if the format has no infinity */
  uint64_t nan;
  unsigned low; /* number of unused bits below the fraction */
} kiln__cpu_encoding;

static const kiln__cpu_encoding kiln__cpu_encoding_f16 = {
    11, -14, 16, 0x7bff, 0x7c00, KILN__NAN_F16, 0};
static const kiln__cpu_encoding kiln__cpu_encoding_bf16 = {
    8, -126, 16, 0x7f7f, 0x7f80, KILN__NAN_BF16, 0};
static const kiln__cpu_encoding kiln__cpu_encoding_f32 = {
    24, -126, 32, 0x7f7fffff, 0x7f800000, KILN__NAN_F32, 0};
static const kiln__cpu_encoding kiln__cpu_encoding_f64 = {
    53, -1022, 64, 0x7fefffffffffffff, 0x7ff0000000000000, KILN__NAN_F64, 0};
/* tf32 is an f32 whose lowest 13 bits are zero. */
static const kiln__cpu_encoding kiln__cpu_encoding_tf32 = {
    11, -126, 19, 0x3fbff, 0x3fc00, 0x3ffff, 13};
static const kiln__cpu_encoding kiln__cpu_encoding_e4m3 = {4, -6,   8, 0x7e,
                                                           0, 0x7f, 0};
static const kiln__cpu_encoding kiln__cpu_encoding_e5m2 = {3,    -14,  8, 0x7b,
                                                           0x7c, 0x7f, 0};

/* Returns the format of a type, or NULL if the type is not a floating-point
 * type. */
static inline const kiln__cpu_encoding *kiln__cpu_encoding_of(uint8_t type)
{
  switch (type) {
  case KILN__F16:
  case KILN__F16X2:
    return &kiln__cpu_encoding_f16;
  case KILN__BF16:
  case KILN__BF16X2:
    return &kiln__cpu_encoding_bf16;
  case KILN__F32:
    return &kiln__cpu_encoding_f32;
  case KILN__F64:
    return &kiln__cpu_encoding_f64;
  case KILN__TF32:
    return &kiln__cpu_encoding_tf32;
  default:
    return NULL;
  }
}

static inline bool kiln__cpu_signed_type(uint8_t type)
{
  return type == KILN__S8 || type == KILN__S16 || type == KILN__S32 ||
         type == KILN__S64;
}

static inline unsigned kiln__cpu_type_bits(uint8_t type)
{
  return 8u * kiln__cpu_ptx_type_bytes[type];
}

/* Returns a mask of the lowest n bits, for n from 1 to 64. */
static inline uint64_t kiln__cpu_low_bits(unsigned n)
{
  return UINT64_MAX >> (64 - n);
}

static inline kiln__cpu_number kiln__cpu_number_of(bool negative, uint64_t bits,
                                                   int exponent)
{
  kiln__cpu_number x = {0, 0, KILN__ZERO, negative};
  int shift;

  if (bits == 0)
    return x;
  shift = __builtin_clzll(bits);
  x.kind = KILN__FINITE;
  x.bits = bits << shift;
  x.exponent = exponent - shift;
  return x;
}

static inline kiln__cpu_number
kiln__cpu_number_of_float(const kiln__cpu_encoding *f, uint64_t raw)
{
  const uint64_t value =
      (raw & kiln__cpu_low_bits(f->width + f->low)) >> f->low;
  const uint64_t magnitude = value & kiln__cpu_low_bits(f->width - 1);
  const bool negative = value >> (f->width - 1) != 0;
  const int fraction_bits = f->precision - 1;
  const uint64_t fraction =
      magnitude & kiln__cpu_low_bits((unsigned)fraction_bits);
  const int exponent = (int)(magnitude >> fraction_bits);
  kiln__cpu_number x = {0, 0, KILN__NOT_A_NUMBER, negative};

  if (f->infinity != 0 && magnitude == f->infinity)
    x.kind = KILN__INFINITE;
  else if (magnitude > f->largest)
    x.bits = fraction << (64 - fraction_bits);
  else
    x = exponent == 0
            ? kiln__cpu_number_of(negative, fraction, f->least - fraction_bits)
            : kiln__cpu_number_of(negative,
                                  fraction | UINT64_C(1) << fraction_bits,
                                  f->least - fraction_bits + exponent - 1);
  return x;
}

static inline kiln__cpu_number kiln__cpu_number_of_integer(uint8_t type,
                                                           uint64_t raw)
{
  const unsigned bits = kiln__cpu_type_bits(type);
  const uint64_t value = raw & kiln__cpu_low_bits(bits);
  const bool negative = kiln__cpu_signed_type(type) && value >> (bits - 1) != 0;

  return kiln__cpu_number_of(
      negative, negative ? (0 - value) & kiln__cpu_low_bits(bits) : value, 0);
}

/* Returns the rounding direction. The modes that round to an integral value
 * (.rni, .rzi, .rmi, .rpi) are mapped to .rn, .rz, .rm and .rp. */
static inline kiln__cpu_round kiln__cpu_direction(uint8_t round)
{
  switch (round) {
  case KILN__ROUND_ZI:
    return KILN__ROUND_Z;
  case KILN__ROUND_MI:
    return KILN__ROUND_M;
  case KILN__ROUND_PI:
    return KILN__ROUND_P;
  case KILN__ROUND_NI:
  case KILN__ROUND_NONE:
    return KILN__ROUND_N;
  default:
    return (kiln__cpu_round)round;
  }
}

/* Returns bits / 2^shift, rounded to an integer in the given direction. The
 * shift must be greater than 0. */
static inline uint64_t kiln__cpu_shift_rounded(uint64_t bits, int shift,
                                               bool negative,
                                               kiln__cpu_round round)
{
  const uint64_t kept = shift < 64 ? bits >> shift : 0;
  /* `lost` is the discarded part as a fraction of 2^64. For shifts beyond 64
   * bits, 1 stands for any non-zero fraction. */
  const uint64_t lost = shift < 64    ? bits << (64 - shift)
                        : shift == 64 ? bits
                                      : 1;
  const uint64_t half = UINT64_C(1) << 63;
  bool up = false;

  if (round == KILN__ROUND_N)
    up = lost > half || (lost == half && (kept & 1) != 0);
  else if (round == KILN__ROUND_NA)
    up = lost >= half;
  else if (round == KILN__ROUND_M)
    up = negative && lost != 0;
  else if (round == KILN__ROUND_P)
    up = !negative && lost != 0;
  return kept + up;
}

/* Rounds a finite number to an integral value. The result has the same unpacked
 * representation. */
static inline kiln__cpu_number kiln__cpu_to_whole(kiln__cpu_number x,
                                                  kiln__cpu_round round)
{
  if (x.kind != KILN__FINITE || x.exponent >= 0)
    return x;
  return kiln__cpu_number_of(
      x.negative,
      kiln__cpu_shift_rounded(x.bits, -x.exponent, x.negative, round), 0);
}

/* Rounds a number and clamps it to an integer type. A NaN becomes 0. If the
 * source (`wide`) or the result has 64 bits, a NaN becomes the value with only
 * the highest bit set. */
static inline uint64_t kiln__cpu_to_integer(kiln__cpu_number x, uint8_t type,
                                            kiln__cpu_round round, bool wide)
{
  const unsigned bits = kiln__cpu_type_bits(type);
  const bool is_signed = kiln__cpu_signed_type(type);
  const uint64_t top = UINT64_C(1) << (bits - 1);
  const uint64_t limit = !is_signed
                             ? (x.negative ? 0 : kiln__cpu_low_bits(bits))
                         : x.negative ? top
                                      : top - 1;
  uint64_t magnitude;

  if (x.kind == KILN__NOT_A_NUMBER)
    return wide || bits == 64 ? top : 0;
  if (x.kind == KILN__ZERO)
    return 0;
  if (x.kind == KILN__INFINITE || x.exponent > 0)
    magnitude = limit;
  else if (x.exponent == 0)
    magnitude = x.bits;
  else
    magnitude = kiln__cpu_shift_rounded(x.bits, -x.exponent, x.negative, round);
  if (magnitude > limit)
    magnitude = limit;
  return (x.negative ? 0 - magnitude : magnitude) & kiln__cpu_low_bits(bits);
}

/* Returns the encoding of a number whose magnitude is too large for format f.
 * The encoding is infinity or the largest finite number, depending on the
 * rounding direction. */
static inline uint64_t kiln__cpu_overflow(const kiln__cpu_encoding *f,
                                          bool negative, kiln__cpu_round round,
                                          bool finite)
{
  const bool towards_zero = round == KILN__ROUND_Z ||
                            (round == KILN__ROUND_M && !negative) ||
                            (round == KILN__ROUND_P && negative);

  return finite || towards_zero || f->infinity == 0 ? f->largest : f->infinity;
}

/* Returns the encoding of a NaN that is converted from or to f64. The NaN keeps
 * its sign and the highest bits of its payload. */
static inline uint64_t kiln__cpu_same_nan(kiln__cpu_number x,
                                          const kiln__cpu_encoding *f)
{
  const uint64_t sign = x.negative ? UINT64_C(1) << (f->width - 1) : 0;
  const uint64_t quiet = UINT64_C(1) << 63;

  return sign | f->infinity | (x.bits | quiet) >> (65 - f->precision);
}

/* Returns true if x, rounded to full precision, is smaller than the smallest
 * normal number of format f. The .ftz modifier flushes such results to zero. */
static inline bool kiln__cpu_is_tiny(kiln__cpu_number x,
                                     const kiln__cpu_encoding *f,
                                     kiln__cpu_round round)
{
  const int top = x.exponent + 63;
  const uint64_t carried = UINT64_C(1) << f->precision;

  if (x.kind != KILN__FINITE || top >= f->least)
    return false;
  return top < f->least - 1 ||
         kiln__cpu_shift_rounded(x.bits, 64 - f->precision, x.negative,
                                 round) != carried;
}

/* Encodes a number in format f with a single rounding. If `finite` is true
 * (.satfinite), overflow gives the largest finite number instead of
 * infinity. */
static inline uint64_t kiln__cpu_to_float(kiln__cpu_number x,
                                          const kiln__cpu_encoding *f,
                                          kiln__cpu_round round, bool finite)
{
  const uint64_t sign = x.negative ? UINT64_C(1) << (f->width - 1) : 0;
  const int lowest = f->least - (f->precision - 1);
  const int wanted = x.exponent + 64 - f->precision;
  const int unit = wanted > lowest ? wanted : lowest;
  uint64_t encoded;

  if (x.kind == KILN__NOT_A_NUMBER)
    return f->nan << f->low;
  if (x.kind == KILN__ZERO)
    return sign << f->low;
  if (x.kind == KILN__INFINITE) {
    encoded = finite ? f->largest : f->infinity;
  } else if (unit - lowest > 4096) {
    encoded = kiln__cpu_overflow(f, x.negative, round, finite);
  } else {
    /* The hidden bit of the significand adds one to the exponent field, and so
     * does a carry of the rounding. */
    encoded =
        ((uint64_t)(unit - lowest) << (f->precision - 1)) +
        kiln__cpu_shift_rounded(x.bits, unit - x.exponent, x.negative, round);
    if (encoded > f->largest)
      encoded = kiln__cpu_overflow(f, x.negative, round, finite);
  }
  return (encoded | sign) << f->low;
}

/* Clamps a number to [0, 1] (.sat). A NaN becomes 0. */
static inline kiln__cpu_number kiln__cpu_saturated(kiln__cpu_number x)
{
  const kiln__cpu_number zero = {0, 0, KILN__ZERO, false};
  const kiln__cpu_number one = {UINT64_C(1) << 63, -63, KILN__FINITE, false};

  if (x.negative || x.kind == KILN__NOT_A_NUMBER || x.kind == KILN__ZERO)
    return zero;
  return x.kind == KILN__INFINITE || x.exponent >= -63 ? one : x;
}

/* Replaces negative numbers by 0 (.relu). */
static inline kiln__cpu_number kiln__cpu_rectified(kiln__cpu_number x)
{
  const kiln__cpu_number zero = {0, 0, KILN__ZERO, false};

  return x.negative && x.kind != KILN__NOT_A_NUMBER ? zero : x;
}

#endif
