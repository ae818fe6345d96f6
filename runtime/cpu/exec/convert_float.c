/* convert_float.c -- floating-point conversions on the exact path: directed
 * rounding, saturation, 8-bit floats, tf32 and packed results. See
 * convert_exact.h. */
#include "convert_exact.h"
#include "half.h"

/* ---- One value ----------------------------------------------------------- */

/* Flushes f32 operands for .ftz. If the result is f16, GPUs keep subnormals,
 * and a NaN loses its payload. */
static uint64_t flushed(const kiln__cpu_insn *in, uint64_t raw)
{
  const uint64_t size = raw & 0x7fffffff;

  if (size < 0x00800000 && in->type2 != KILN__F16)
    return raw & 0x80000000;
  return size > 0x7f800000 ? KILN__NAN_F32 : raw;
}

static bool to_integral(uint8_t round)
{
  return round == KILN__ROUND_NI || round == KILN__ROUND_ZI ||
         round == KILN__ROUND_MI || round == KILN__ROUND_PI;
}

static uint64_t to_float(const kiln__cpu_insn *in, kiln__cpu_number x)
{
  const kiln__cpu_encoding *const f = kiln__cpu_encoding_of(in->type2);
  const kiln__cpu_round round = kiln__cpu_direction(in->round);
  const bool finite = (in->flags & KILN__SATFINITE) != 0;
  const bool ftz = (in->flags & KILN__FTZ) != 0 && in->type2 == KILN__F32;

  if (to_integral(in->round))
    x = kiln__cpu_to_whole(x, round);
  if ((in->flags & KILN__SAT) != 0)
    x = kiln__cpu_saturated(x);
  if ((in->flags & KILN__RELU) != 0)
    x = kiln__cpu_rectified(x);
  if (x.kind == KILN__NOT_A_NUMBER &&
      (in->type == KILN__F64 || in->type2 == KILN__F64))
    return kiln__cpu_same_nan(x, f);
  if (ftz && kiln__cpu_is_tiny(x, f, round))
    return x.negative ? 0x80000000 : 0;
  return kiln__cpu_to_float(x, f, round, finite);
}

/* Converts to tf32 with .rna. A GPU adds half of the lowest kept bit and then
 * truncates the lowest 13 bits. An infinity or NaN is only truncated. With
 * .satfinite, an infinite result becomes the largest finite number. */
static uint64_t to_tf32_away(const kiln__cpu_insn *in, uint32_t bits)
{
  const uint32_t special = 0x7f800000, step = 0x2000;
  const bool finite = (bits & special) != special;
  const uint32_t r = (finite ? bits + step / 2 : bits) & ~(step - 1);
  const bool back =
      (in->flags & KILN__SATFINITE) != 0 && (r & special) == special;

  return back ? r - step : r;
}

static uint64_t convert(const kiln__cpu_insn *in, uint64_t raw)
{
  const kiln__cpu_encoding *const from = kiln__cpu_encoding_of(in->type);
  kiln__cpu_number x;

  if (in->type2 == KILN__TF32 && in->round == KILN__ROUND_NA)
    return to_tf32_away(in, (uint32_t)raw);
  if ((in->flags & KILN__FTZ) != 0 && in->type == KILN__F32)
    raw = flushed(in, raw);
  x = from != NULL ? kiln__cpu_number_of_float(from, raw)
                   : kiln__cpu_number_of_integer(in->type, raw);
  if (kiln__cpu_encoding_of(in->type2) != NULL)
    return to_float(in, x);
  return kiln__cpu_to_integer(x, in->type2, kiln__cpu_direction(in->round),
                              in->type == KILN__F64);
}

/* Extends a value from its type to the width of its register. Signed integers
 * are sign-extended. */
static uint64_t extend(uint8_t type, uint8_t reg_bytes, uint64_t value)
{
  const unsigned up = 64 - kiln__cpu_type_bits(type);
  const uint64_t wide = kiln__cpu_signed_type(type)
                            ? (uint64_t)((int64_t)(value << up) >> up)
                            : value;

  return wide & kiln__cpu_low_bits(reg_bytes >= 4 ? 64 : reg_bytes * 8u);
}

/* Converts the source register from in->type to in->type2, lane by lane. The
 * source and destination registers may have different widths. */
KILN__HANDLER(cvt_exact)
{
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const uint64_t raw = in->src_reg_bytes == 8
                             ? KILN__SLOT(const uint64_t, in->a)[i]
                             : KILN__SLOT(const uint32_t, in->a)[i];
    const uint64_t r = extend(in->type2, in->reg_bytes, convert(in, raw));

    if (in->reg_bytes == 8)
      KILN__SLOT(uint64_t, in->d)[i] = r;
    else
      KILN__SLOT(uint32_t, in->d)[i] = (uint32_t)r;
  }
}

/* ---- Two values ---------------------------------------------------------- */

static uint32_t to_part(const kiln__cpu_insn *in,
                        const kiln__cpu_encoding *from, uint64_t raw,
                        const kiln__cpu_encoding *to)
{
  kiln__cpu_number x = kiln__cpu_number_of_float(from, raw);

  if ((in->flags & KILN__RELU) != 0)
    x = kiln__cpu_rectified(x);
  return (uint32_t)kiln__cpu_to_float(x, to, kiln__cpu_direction(in->round),
                                      (in->flags & KILN__SATFINITE) != 0);
}

static const kiln__cpu_encoding *eight_bits(const kiln__cpu_insn *in)
{
  return in->sub == 1 ? &kiln__cpu_encoding_e4m3 : &kiln__cpu_encoding_e5m2;
}

static void pack_nearest(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  KILN__SOURCES_2(float);

  if (in->type2 == KILN__F16X2)
    KILN__LANES(uint32_t, kiln__cpu_f16_of_float(B[i]) |
                              kiln__cpu_f16_of_float(A[i]) << 16);
  else
    KILN__LANES(uint32_t, kiln__cpu_bf16_of_float(B[i]) |
                              kiln__cpu_bf16_of_float(A[i]) << 16);
}

/* Operand a provides the upper half of the packed result. */
KILN__HANDLER(cvt_f16x2)
{
  KILN__SOURCES_2(uint32_t);
  const kiln__cpu_encoding *const f32 = &kiln__cpu_encoding_f32;
  const kiln__cpu_encoding *const to = kiln__cpu_encoding_of(in->type2);

  if (in->round == KILN__ROUND_N &&
      (in->flags & (KILN__RELU | KILN__SATFINITE)) == 0) {
    pack_nearest(w, in);
    return;
  }
  KILN__ACTIVE_LANES(uint32_t, to_part(in, f32, B[i], to) |
                                   to_part(in, f32, A[i], to) << 16);
}

KILN__HANDLER(cvt_f8x2_f32)
{
  KILN__SOURCES_2(uint32_t);
  const kiln__cpu_encoding *const f32 = &kiln__cpu_encoding_f32;
  const kiln__cpu_encoding *const to = eight_bits(in);

  KILN__ACTIVE_LANES(uint32_t, to_part(in, f32, B[i], to) |
                                   to_part(in, f32, A[i], to) << 8);
}

KILN__HANDLER(cvt_f8x2_f16x2)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  const kiln__cpu_encoding *const f16 = &kiln__cpu_encoding_f16;
  const kiln__cpu_encoding *const to = eight_bits(in);

  KILN__ACTIVE_LANES(uint32_t, to_part(in, f16, A[i], to) |
                                   to_part(in, f16, A[i] >> 16, to) << 8);
}

KILN__HANDLER(cvt_f16x2_f8x2)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  const kiln__cpu_encoding *const from = eight_bits(in);
  const kiln__cpu_encoding *const f16 = &kiln__cpu_encoding_f16;

  KILN__ACTIVE_LANES(uint32_t, to_part(in, from, A[i], f16) |
                                   to_part(in, from, A[i] >> 8, f16) << 16);
}

/* ---- cvt.pack ------------------------------------------------------------ */

/* Clamps x to [low, high], the range of the destination type. Returns only the
 * bits that this type has. */
static inline uint32_t clamp(int32_t x, int32_t low, int32_t high)
{
  const int32_t y = x < low ? low : x > high ? high : x;

  return (uint32_t)y & ((uint32_t)high - (uint32_t)low);
}

/* Implements cvt.pack. [low, high] is the range of the destination type, so
 * high - low is the bit mask of this type. */
static void pack(kiln__cpu_warp *w, const kiln__cpu_insn *in, unsigned bits,
                 int32_t low, int32_t high)
{
  KILN__SOURCES_2(int32_t);

  if (in->c < 0) {
    KILN__LANES(uint32_t, clamp(B[i], low, high) | clamp(A[i], low, high)
                                                       << bits);
  } else {
    const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);

    KILN__LANES(uint32_t, clamp(B[i], low, high) |
                              clamp(A[i], low, high) << bits |
                              C[i] << (2 * bits));
  }
}

KILN__CALLS(cvt_pack_u16, pack, 16, 0, 0xffff)
KILN__CALLS(cvt_pack_s16, pack, 16, -0x8000, 0x7fff)
KILN__CALLS(cvt_pack_u8, pack, 8, 0, 0xff)
KILN__CALLS(cvt_pack_s8, pack, 8, -0x80, 0x7f)
KILN__CALLS(cvt_pack_u4, pack, 4, 0, 15)
KILN__CALLS(cvt_pack_s4, pack, 4, -8, 7)
KILN__CALLS(cvt_pack_u2, pack, 2, 0, 3)
KILN__CALLS(cvt_pack_s2, pack, 2, -2, 1)
