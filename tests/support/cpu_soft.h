/* cpu_soft.h -- floating-point arithmetic on integers, which is the reference
 * for the tests of float and half handlers.
 *
 * The functions support any format up to f64 and all four rounding directions.
 * A value is m * 2^e, where m has 128 bits. The last bit of m is set if any
 * bits were lost ("jamming"), so that a later rounding is still correct. */
#ifndef KILN_TEST_CPU_SOFT_H
#define KILN_TEST_CPU_SOFT_H

#include "cpu_handler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

typedef struct soft_format {
  /* number of bits of the encoding, and number of bits of the fraction */
  int bits, fraction;
  /* encoding of the NaN that arithmetic instructions return */
  uint64_t nan;
} soft_format;

static const soft_format soft_f16 = {16, 10, 0x7fff};
static const soft_format soft_bf16 = {16, 7, 0x7fff};
static const soft_format soft_f32 = {32, 23, 0x7fffffff};
static const soft_format soft_f64 = {64, 52, UINT64_C(0xfff8000000000000)};

typedef enum soft_kind { SOFT_FINITE, SOFT_INFINITE, SOFT_NAN } soft_kind;
typedef struct soft {
  soft_kind kind;
  bool negative;
  u128 m; /* significand; the value is zero if the significand is zero */
  int e;
} soft;

typedef enum soft_mode { SOFT_N, SOFT_Z, SOFT_M, SOFT_P } soft_mode;

static inline int soft_bias(const soft_format *f)
{
  return (1 << (f->bits - f->fraction - 2)) - 1;
}

static inline uint64_t soft_infinity(const soft_format *f)
{
  return ((UINT64_C(1) << (f->bits - f->fraction - 1)) - 1) << f->fraction;
}

static inline uint64_t soft_sign(const soft_format *f)
{
  return UINT64_C(1) << (f->bits - 1);
}

static inline bool soft_is_subnormal(const soft_format *f, uint64_t bits)
{
  const uint64_t magnitude = bits & (soft_sign(f) - 1);

  return magnitude != 0 && magnitude < UINT64_C(1) << f->fraction;
}

static inline bool soft_is_nan(const soft_format *f, uint64_t bits)
{
  return (bits & (soft_sign(f) - 1)) > soft_infinity(f);
}

static inline uint64_t soft_flush(const soft_format *f, uint64_t bits)
{
  return soft_is_subnormal(f, bits) ? bits & soft_sign(f) : bits;
}

static inline soft soft_from(const soft_format *f, uint64_t bits)
{
  const uint64_t magnitude = bits & (soft_sign(f) - 1);
  const uint64_t hidden = UINT64_C(1) << f->fraction;
  const int exponent = (int)(magnitude >> f->fraction);
  soft x = {SOFT_FINITE, (bits & soft_sign(f)) != 0, 0, 0};

  if (magnitude >= soft_infinity(f)) {
    x.kind = magnitude > soft_infinity(f) ? SOFT_NAN : SOFT_INFINITE;
  } else {
    x.m = exponent == 0 ? magnitude : (magnitude & (hidden - 1)) | hidden;
    x.e = (exponent == 0 ? 1 : exponent) - soft_bias(f) - f->fraction;
  }
  return x;
}

/* Shifts x right by n bits and jams the lost bits into the last bit. */
static inline u128 soft_jam(u128 m, int n)
{
  if (n <= 0)
    return m;
  if (n > 127)
    return m != 0;
  return (m >> n) | ((m << (128 - n)) != 0);
}

/* returns the position of the highest set bit */
static inline int soft_top(u128 m)
{
  int n = -1;

  while (m != 0) {
    m >>= 1;
    n++;
  }
  return n;
}

static inline bool soft_up(soft_mode mode, bool negative, bool odd, int rest)
{
  /* `rest` describes the lost bits: 0 for none, 1 for less than half a unit, 2
   * for exactly half, 3 for more than half. */
  switch (mode) {
  case SOFT_N:
    return rest == 3 || (rest == 2 && odd);
  case SOFT_M:
    return negative && rest != 0;
  case SOFT_P:
    return !negative && rest != 0;
  default:
    return false;
  }
}

static inline uint64_t soft_to(const soft_format *f, soft x, soft_mode mode)
{
  const uint64_t sign = x.negative ? soft_sign(f) : 0;
  /* exponent of the lowest fraction bit */
  const int least = 1 - soft_bias(f) - f->fraction;
  uint64_t bits;
  int exponent, rest = 0;

  if (x.kind == SOFT_NAN)
    return f->nan;
  if (x.kind == SOFT_INFINITE)
    return sign | soft_infinity(f);
  if (x.m == 0)
    return sign;
  exponent = x.e + soft_top(x.m) - f->fraction;
  if (exponent < least)
    exponent = least;
  if (exponent > x.e) {
    /* `kept` has two more bits than the result, and the last bit is set if any
     * lower bits were lost. */
    const u128 kept = exponent - x.e > 2 ? soft_jam(x.m, exponent - x.e - 2)
                                         : x.m << (2 - (exponent - x.e));

    rest = (int)(kept & 3);
    bits = (uint64_t)(kept >> 2);
  } else {
    bits = (uint64_t)(x.m << (x.e - exponent));
  }
  if (soft_up(mode, x.negative, (bits & 1) != 0, rest))
    bits++;
  /* If rounding carries into the exponent field, the exponent is
   * incremented. */
  if (bits >> f->fraction != 0)
    bits += (uint64_t)(exponent - least) << f->fraction;
  if (bits >= soft_infinity(f)) {
    const bool away = mode == SOFT_N || (mode == SOFT_M && x.negative) ||
                      (mode == SOFT_P && !x.negative);

    bits = away ? soft_infinity(f) : soft_infinity(f) - 1;
  }
  return sign | bits;
}

static inline soft soft_nan(void)
{
  return (soft){SOFT_NAN, false, 0, 0};
}

static inline soft soft_mul(soft a, soft b)
{
  const bool negative = a.negative != b.negative;

  if (a.kind == SOFT_NAN || b.kind == SOFT_NAN)
    return soft_nan();
  if (a.kind == SOFT_INFINITE || b.kind == SOFT_INFINITE) {
    if ((a.kind == SOFT_FINITE && a.m == 0) ||
        (b.kind == SOFT_FINITE && b.m == 0))
      return soft_nan();
    return (soft){SOFT_INFINITE, negative, 0, 0};
  }
  return (soft){SOFT_FINITE, negative, a.m * b.m, a.e + b.e};
}

/* Shifts m so that its highest set bit is at position 125. */
static inline void soft_normalise(soft *x)
{
  const int n = 125 - soft_top(x->m);

  x->m <<= n;
  x->e -= n;
}

static inline soft soft_add(soft a, soft b, soft_mode mode)
{
  if (a.kind == SOFT_NAN || b.kind == SOFT_NAN)
    return soft_nan();
  if (a.kind == SOFT_INFINITE || b.kind == SOFT_INFINITE) {
    if (a.kind == b.kind && a.negative != b.negative)
      return soft_nan();
    return a.kind == SOFT_INFINITE ? a : b;
  }
  if (a.m == 0 && b.m == 0) {
    a.negative = a.negative == b.negative ? a.negative : mode == SOFT_M;
    return a;
  }
  if (a.m == 0)
    return b;
  if (b.m == 0)
    return a;
  soft_normalise(&a);
  soft_normalise(&b);
  if (a.e < b.e || (a.e == b.e && a.m < b.m)) {
    const soft other = a;

    a = b;
    b = other;
  }
  b.m = soft_jam(b.m, a.e - b.e);
  if (a.negative == b.negative) {
    a.m += b.m;
  } else {
    a.m -= b.m;
    if (a.m == 0)
      a.negative = mode == SOFT_M;
  }
  return a;
}

static inline soft soft_div(soft a, soft b)
{
  soft q = {SOFT_FINITE, a.negative != b.negative, 0, 0};

  if (a.kind == SOFT_NAN || b.kind == SOFT_NAN ||
      (a.kind == SOFT_INFINITE && b.kind == SOFT_INFINITE))
    return soft_nan();
  if (a.kind == SOFT_INFINITE) {
    q.kind = SOFT_INFINITE;
    return q;
  }
  if (b.kind == SOFT_INFINITE)
    return q;
  if (b.m == 0) {
    q.kind = a.m == 0 ? SOFT_NAN : SOFT_INFINITE;
    return q;
  }
  if (a.m == 0)
    return q;
  soft_normalise(&a);
  /* The divisor has at most 53 bits, so the quotient has at least 72 bits. Its
   * last bit is set if the remainder is not zero. */
  q.m = (a.m / b.m) << 1 | (a.m % b.m != 0);
  q.e = a.e - b.e - 1;
  return q;
}

static inline soft soft_sqrt(soft a)
{
  u128 root = 0;

  if (a.kind == SOFT_NAN || (a.negative && (a.kind != SOFT_FINITE || a.m != 0)))
    return soft_nan();
  if (a.kind == SOFT_INFINITE || a.m == 0)
    return a;
  soft_normalise(&a);
  if (a.e % 2 != 0) {
    a.m <<= 1;
    a.e--;
  }
  for (int bit = 63; bit >= 0; bit--) {
    const u128 next = root | (u128)1 << bit;

    if (next * next <= a.m)
      root = next;
  }
  a.m = root << 1 | (root * root != a.m);
  a.e = a.e / 2 - 1;
  return a;
}

static inline soft_mode soft_mode_of(const kiln__cpu_insn *in)
{
  switch (in->round) {
  case KILN__ROUND_Z:
    return SOFT_Z;
  case KILN__ROUND_M:
    return SOFT_M;
  case KILN__ROUND_P:
    return SOFT_P;
  default:
    return SOFT_N;
  }
}

/* ---- References for arithmetic with modifiers ---------------------------- */

/* Returns a source operand. With .ftz, subnormals become zeros. */
static inline uint64_t soft_source(const kiln__cpu_insn *in,
                                   const soft_format *f, uint64_t bits)
{
  return (in->flags & KILN__FTZ) != 0 ? soft_flush(f, bits) : bits;
}

static inline bool soft_is(const char *what, const char *list)
{
  char name[24];

  snprintf(name, sizeof name, " %s ", what);
  return strstr(list, name) != NULL;
}

/* Returns the f64 result for NaN operands: the first NaN operand in the order
 * of GPUs, made quiet. */
static inline uint64_t soft_nan_of(const char *what, uint64_t a, uint64_t b,
                                   uint64_t c)
{
  const bool one = soft_is(what, " rcp sqrt neg abs ");
  const bool three = soft_is(what, " fma mad ");
  const bool div = soft_is(what, " div ");
  const uint64_t order[] = {div ? a : one ? a : b, three ? c : a, div ? b : a};

  for (int i = 0; i < 3; i++) {
    if (soft_is_nan(&soft_f64, order[i]))
      return order[i] | UINT64_C(1) << 51;
  }
  return soft_f64.nan;
}

/* Returns true if x is tiny as IEEE 754 defines it after rounding: x is rounded
 * as if exponents were unbounded, and the result is smaller than the smallest
 * normal number. */
static inline bool soft_is_tiny(const soft_format *f, soft x, soft_mode mode)
{
  /* The factor is large enough to make the scaled value normal. */
  const int up = f->fraction + 8;
  const soft scaled = {x.kind, x.negative, x.m, x.e + up};

  if (x.kind != SOFT_FINITE || x.m == 0 ||
      soft_top(x.m) + x.e >= 1 - soft_bias(f))
    return false;
  if (soft_top(x.m) + x.e < 1 - soft_bias(f) - 8)
    return true;
  return (soft_to(f, scaled, mode) & (soft_sign(f) - 1)) < (uint64_t)(up + 1)
                                                               << f->fraction;
}

/* Computes one operation on encoded values. `wide` is the format of the addend
 * and the result; `narrow` is the format of the other sources. The two formats
 * differ only for mixed-precision instructions. */
static inline uint64_t soft_arithmetic(const kiln__cpu_insn *in,
                                       const char *what,
                                       const soft_format *narrow,
                                       const soft_format *wide, uint64_t a,
                                       uint64_t b, uint64_t c)
{
  const soft_mode mode = soft_mode_of(in);
  const bool two = strcmp(what, "add") == 0 || strcmp(what, "sub") == 0;
  const soft_format *const second = two ? wide : narrow;
  const soft x = soft_from(narrow, soft_source(in, narrow, a));
  const soft z = soft_from(wide, soft_source(in, wide, c));
  soft y = soft_from(second, soft_source(in, second, b)), r;
  uint64_t bits;

  if (strcmp(what, "add") == 0) {
    r = soft_add(x, y, mode);
  } else if (strcmp(what, "sub") == 0) {
    y.negative = !y.negative;
    r = soft_add(x, y, mode);
  } else if (strcmp(what, "mul") == 0) {
    r = soft_mul(x, y);
  } else if (strcmp(what, "div") == 0) {
    r = soft_div(x, y);
  } else if (strcmp(what, "rcp") == 0) {
    r = soft_div((soft){SOFT_FINITE, false, 1, 0}, x);
  } else if (strcmp(what, "sqrt") == 0) {
    r = soft_sqrt(x);
  } else {
    r = soft_add(soft_mul(x, y), z, mode);
  }
  bits = soft_to(wide, r, mode);
  if (wide == &soft_f64 && r.kind == SOFT_NAN)
    return soft_nan_of(what, a, b, c);
  if ((in->flags & KILN__FTZ) != 0 && soft_is_tiny(wide, r, mode))
    bits &= soft_sign(wide);
  if ((in->flags & KILN__OOB) != 0 &&
      ((a & 0x7fff) == 0x7ff7 || (b & 0x7fff) == 0x7ff7))
    bits = 0;
  if ((in->flags & (KILN__SAT | KILN__RELU)) != 0) {
    const bool nan = soft_is_nan(wide, bits);
    const uint64_t unit = (uint64_t)soft_bias(wide) << wide->fraction;

    if (!nan && (bits & soft_sign(wide)) != 0)
      bits = 0;
    if ((in->flags & KILN__SAT) != 0)
      bits = nan ? 0 : bits > unit ? unit : bits;
  }
  return bits;
}

/* Computes neg and abs. An f64 NaN keeps its bits and becomes quiet. */
static inline uint64_t soft_signed(const kiln__cpu_insn *in, const char *what,
                                   const soft_format *f, uint64_t bits)
{
  const uint64_t a = soft_source(in, f, bits);

  if (soft_is_nan(f, a))
    return f == &soft_f64 ? soft_nan_of(what, a, 0, 0) : f->nan;
  return strcmp(what, "neg") == 0 ? a ^ soft_sign(f) : a & (soft_sign(f) - 1);
}

/* Returns true if a < b, where -0 is less than +0. Neither operand may be a
 * NaN. */
static inline bool soft_less(const soft_format *f, uint64_t a, uint64_t b)
{
  const bool a_minus = (a & soft_sign(f)) != 0;
  const bool b_minus = (b & soft_sign(f)) != 0;

  if (a_minus != b_minus)
    return a_minus;
  return a_minus ? a > b : a < b;
}

/* Computes min or max. With `magnitudes`, the absolute values are compared. */
static inline uint64_t soft_extreme(const kiln__cpu_insn *in, const char *what,
                                    const soft_format *f, bool magnitudes,
                                    uint64_t a, uint64_t b)
{
  const uint64_t keep = magnitudes ? soft_sign(f) - 1 : UINT64_MAX;
  const uint64_t x = soft_source(in, f, a) & keep;
  const uint64_t y = soft_source(in, f, b) & keep;
  const bool x_nan = soft_is_nan(f, x), y_nan = soft_is_nan(f, y);
  uint64_t d;

  if ((x_nan && y_nan) || ((x_nan || y_nan) && (in->flags & KILN__NAN) != 0))
    return f == &soft_f64 ? soft_nan_of(what, x, y, 0) : f->nan;
  if (x_nan || y_nan)
    d = x_nan ? y : x;
  else
    d = soft_less(f, x, y) == (strcmp(what, "min") == 0) ? x : y;
  return (in->flags & KILN__XORSIGN) != 0 ? d | ((a ^ b) & soft_sign(f)) : d;
}

/* ---- Operands ------------------------------------------------------------ */

/* Returns random bits of a format. The value often has few fraction bits, so
 * that results are halfway cases. The exponents of consecutive values are often
 * similar. */
static inline uint64_t soft_random(const soft_format *f, uint64_t *seed)
{
  const uint64_t r = test_random(seed) >> 3, how = test_random(seed) >> 7;
  const uint64_t fraction = (UINT64_C(1) << f->fraction) - 1;
  const uint64_t sign = (how & 1) != 0 ? soft_sign(f) : 0;
  const int wide = 1 << (f->bits - f->fraction - 1);
  const int near = soft_bias(f) + (int)(how >> 16 & 31) - 16;
  int exponent = (how & 6) != 0 ? near : (int)(how >> 16) & (wide - 1);
  uint64_t m = r & fraction;

  if (exponent < 0 || exponent >= wide)
    exponent = soft_bias(f);
  if ((how >> 4 & 3) == 0) /* The value is subnormal or nearly subnormal. */
    exponent = (int)(how >> 6 & 1);
  if ((how >> 8 & 1) != 0)
    m &= fraction << ((how >> 24) % (unsigned)f->fraction);
  if ((how >> 9 & 7) == 0)
    m |= fraction >> ((how >> 24) % (unsigned)f->fraction);
  return sign | (uint64_t)exponent << f->fraction | m;
}

static inline const soft_format *soft_format_of(kiln__cpu_ptx_type type)
{
  switch (type) {
  case KILN__F16:
  case KILN__F16X2:
    return &soft_f16;
  case KILN__BF16:
  case KILN__BF16X2:
    return &soft_bf16;
  case KILN__F64:
    return &soft_f64;
  default:
    return &soft_f32;
  }
}

/* Returns the i-th edge value of a type, or a random value if i exceeds the
 * number of edge values. A packed type combines two values. */
static inline uint64_t soft_value(kiln__cpu_ptx_type type, size_t i,
                                  uint64_t *seed)
{
  const bool pair =
      type == KILN__F16X2 || type == KILN__BF16X2 || type == KILN__F32X2;
  const kiln__cpu_ptx_type part = type == KILN__F16X2    ? KILN__F16
                                  : type == KILN__BF16X2 ? KILN__BF16
                                  : type == KILN__F32X2  ? KILN__F32
                                                         : type;
  const soft_format *f = soft_format_of(type);
  const size_t n = cpu_n_edges(part);
  const uint64_t v = i < n ? cpu_value(part, i, seed) : soft_random(f, seed);
  uint64_t other;

  if (!pair)
    return v;
  other = test_random(seed) % 4 == 0
              ? cpu_value(part, (size_t)(test_random(seed) % n), seed)
              : soft_random(f, seed);
  return test_random(seed) % 2 == 0 ? v | other << f->bits
                                    : other | v << f->bits;
}

/* Creates lanes with all pairs of edge values of a and b, followed by n_random
 * random lanes. The type NONE means that there is no such operand. One third of
 * the values of c are near -a * b, to test cancellation. */
static inline cpu_lane *soft_lanes(kiln__cpu_ptx_type ta, kiln__cpu_ptx_type tb,
                                   kiln__cpu_ptx_type tc, size_t n_random,
                                   size_t *n)
{
  const size_t na = cpu_n_edges(ta),
               nb = tb != KILN__NONE ? cpu_n_edges(tb) : 1;
  uint64_t seed = 0x9e3779b97f4a7c15;
  cpu_lane *lanes;

  *n = na * nb + n_random;
  lanes = calloc(*n, sizeof *lanes);
  ck_assert_ptr_nonnull(lanes);
  for (size_t i = 0; i < *n; i++) {
    const bool edge = i < na * nb;
    cpu_lane *l = &lanes[i];

    l->d = test_random(&seed);
    l->a = soft_value(ta, edge ? i % na : SIZE_MAX, &seed);
    if (tb != KILN__NONE)
      l->b = soft_value(tb, edge ? i / na : SIZE_MAX, &seed);
    if (tc == KILN__NONE)
      continue;
    if (ta == tb && ta == tc && test_random(&seed) % 3 == 0) {
      const soft_format *f = soft_format_of(ta);
      const uint64_t low = f->bits == 64 ? UINT64_MAX : soft_sign(f) * 2 - 1;
      const soft p =
          soft_mul(soft_from(f, l->a & low), soft_from(f, l->b & low));

      l->c =
          (soft_to(f, p, SOFT_N) ^ soft_sign(f)) + test_random(&seed) % 3 - 1;
      if (f->bits < 64)
        l->c = (l->c & low) | (soft_value(ta, SIZE_MAX, &seed) & ~low);
    } else {
      l->c = soft_value(tc, (size_t)(test_random(&seed) % 100), &seed);
    }
  }
  return lanes;
}

/* ---- Rows of ops.def ----------------------------------------------------- */

/* One row of ops.def. The tests run every opcode that the row describes. */
typedef struct soft_row {
  kiln__cpu_op op;
  const char *name, *pattern, *operands;
} soft_row;

#define SOFT_ROW(name, pattern, operands, kind, klass, ptx, sm, text)          \
  {KILN__OP_##name, #name, pattern, operands},

typedef void soft_visit(const soft_row *row, const char *opcode);

/* Calls `visit` for each opcode of the row. Returns the number of opcodes. */
static inline unsigned soft_expand(const soft_row *row, const char *pattern,
                                   char *opcode, size_t n, soft_visit *visit)
{
  const char *end, *rest;
  unsigned count = 0;

  while (*pattern != 0 && *pattern != '(')
    opcode[n++] = *pattern++;
  opcode[n] = 0;
  if (*pattern == 0) {
    visit(row, opcode);
    return 1;
  }
  end = strchr(pattern, ')');
  rest = end + 1 + (end[1] == '?');
  if (end[1] == '?')
    count += soft_expand(row, rest, opcode, n, visit);
  for (const char *one = pattern + 1; one < end;) {
    const size_t size = strcspn(one, "|)");

    memcpy(opcode + n, one, size);
    count += soft_expand(row, rest, opcode, n + size, visit);
    one += size + 1;
  }
  return count;
}

static inline bool soft_begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* Extracts the mnemonic of an opcode, which is its first part. */
static inline void soft_mnemonic(const char *opcode, char what[16])
{
  const size_t n = strcspn(opcode, ".");

  ck_assert_uint_lt(n, 16);
  memcpy(what, opcode, n);
  what[n] = 0;
}

#endif
