/* tensor_arithmetic.c -- dot products as tensor cores compute them.
 *
 * Problem: tensor cores sum several products and the accumulator at once. The
 * result differs in its last bits from every order of IEEE additions.
 *
 * Idea: the hardware aligns all exact products and the accumulator to the
 * largest exponent of the terms, cuts each term to F fraction bits, adds the
 * terms exactly, and rounds once. That is a sum of integers. Each operand is
 * split into significand and exponent once per tile. A significand has 10
 * fraction bits in every format, so one loop serves all formats.
 *
 * Invariant: the exponent of a product is the sum of the exponents of its
 * factors, not that of the normalised product. Subnormal numbers have the
 * exponent of the smallest normal number. Terms of zero do not take part in
 * the alignment. The exponent to which terms are aligned is at least that of
 * the smallest normal number of the sum's type, less 7, as results of an H200
 * show; the sources below have -126 for terms of zero.
 *
 * Cost: about ten instructions per product. A row with an infinity or a NaN
 * takes a slower path.
 *
 * Source: Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores
 * and Matrix Cores" (arXiv 2511.10909), and Khattak and Mikaitis, "Accurate
 * Models of NVIDIA Tensor Cores" (arXiv 2512.07004). */
#include "tensor_arithmetic.h"

#include <math.h>
#include <string.h>

enum {
  LEAST_F32 = -133,  /* least exponent to which terms of an f32 are aligned */
  LEAST_F16 = -21,   /* the same for an f16 */
  NEVER = -400,      /* exponent of a zero factor: below both in any product */
  SIGNIFICAND = 10,  /* fraction bits of a decoded factor */
  ALIGNED = 25,      /* fraction bits of a term before it is cut */
  MANTISSA_F32 = 23, /* fraction bits of the encodings */
  MANTISSA_F16 = 10
};

/* The layout of a floating-point format of at most 32 bits. */
typedef struct layout {
  uint8_t width;    /* bits of the encoding */
  uint8_t fraction; /* bits of its fraction */
  uint8_t unused;   /* lowest bits of the fraction that are ignored */
  int16_t bias;
  bool infinite; /* the largest exponent encodes infinities and NaN */
} layout;

static const layout layouts[] = {
    [KILN__TENSOR_F16] = {16, 10, 0, 15, true},
    [KILN__TENSOR_BF16] = {16, 7, 0, 127, true},
    [KILN__TENSOR_TF32] = {32, 23, 13, 127, true},
    [KILN__TENSOR_E4M3] = {8, 3, 0, 7, false},
    [KILN__TENSOR_E5M2] = {8, 2, 0, 15, true},
    [KILN__TENSOR_F32] = {32, 23, 0, 127, true},
};

typedef enum term_kind { ORDINARY, INFINITE, NOT_A_NUMBER } term_kind;

/* A decoded number: significand * 2^(exponent - fraction bits). */
typedef struct term {
  int32_t
      significand; /* with sign; 1 for a positive infinity, -1 if negative */
  int16_t exponent;
  term_kind kind;
} term;

/* A row of A or a column of B. */
typedef struct line {
  int32_t significand[KILN__TENSOR_MAX_B];
  int16_t exponent[KILN__TENSOR_MAX_B];
  bool special; /* at least one element is an infinity or NaN */
  uint8_t kind[KILN__TENSOR_MAX_B]; /* term_kind; valid if `special` */
} line;

static bool is_float(kiln__tensor_type type)
{
  return type <= KILN__TENSOR_E5M2 || type == KILN__TENSOR_F32;
}

kiln__tensor_generation kiln__tensor_generation_of(int arch)
{
  return arch < 75    ? KILN__TENSOR_VOLTA
         : arch < 80  ? KILN__TENSOR_TURING
         : arch < 89  ? KILN__TENSOR_AMPERE
         : arch < 90  ? KILN__TENSOR_ADA
         : arch < 100 ? KILN__TENSOR_HOPPER
                      : KILN__TENSOR_BLACKWELL;
}

/* Returns the most products that one step of a generation sums at once. */
static uint32_t longest_step(kiln__tensor_generation generation,
                             kiln__tensor_type a)
{
  const bool fp8 = a == KILN__TENSOR_E4M3 || a == KILN__TENSOR_E5M2;

  switch (generation) {
  case KILN__TENSOR_VOLTA:
    return 4;
  case KILN__TENSOR_TURING:
    return 8;
  case KILN__TENSOR_AMPERE:
  case KILN__TENSOR_ADA:
    return fp8 ? 16 : a == KILN__TENSOR_TF32 ? 4 : 8;
  default:
    return KILN__TENSOR_MAX_K;
  }
}

/* The type of the sum of one step. If C or D is f32, sums are f32, and the last
 * is rounded to D. */
static kiln__tensor_type sum_type(const kiln__tensor_rule *rule)
{
  return rule->c == KILN__TENSOR_F32 ? KILN__TENSOR_F32 : rule->d;
}

void kiln__tensor_rule_init(kiln__tensor_rule *rule,
                            kiln__tensor_generation generation,
                            kiln__tensor_type a, kiln__tensor_type b,
                            kiln__tensor_type c, kiln__tensor_type d,
                            uint32_t k)
{
  static const uint8_t fractions[] = {
      [KILN__TENSOR_VOLTA] = 23,  [KILN__TENSOR_TURING] = 24,
      [KILN__TENSOR_AMPERE] = 24, [KILN__TENSOR_ADA] = 24,
      [KILN__TENSOR_HOPPER] = 25, [KILN__TENSOR_BLACKWELL] = 25,
      [KILN__TENSOR_WGMMA] = 25};
  const uint32_t step = longest_step(generation, a);
  const bool fp8 = a == KILN__TENSOR_E4M3 || a == KILN__TENSOR_E5M2;
  const bool short_sums = fp8 && (generation == KILN__TENSOR_ADA ||
                                  generation == KILN__TENSOR_WGMMA);

  *rule = (kiln__tensor_rule){.a = a, .b = b, .c = c, .d = d};
  rule->step = (uint8_t)(k < step ? k : step);
  rule->fraction = short_sums ? 13 : fractions[generation];
  rule->kept = sum_type(rule) == KILN__TENSOR_F16 ? MANTISSA_F16
               : short_sums                       ? 13
                                                  : MANTISSA_F32;
  if (fp8 && generation == KILN__TENSOR_HOPPER) {
    rule->step = (uint8_t)(k / 2);
    rule->deferred = true;
  }
  rule->chained = a == KILN__TENSOR_F16 && k == 4 &&
                  generation >= KILN__TENSOR_AMPERE &&
                  generation != KILN__TENSOR_WGMMA;
}

/* ---- Decoding ------------------------------------------------------------ */

/* Splits a number into significand and exponent. The significand has `digits`
 * fraction bits, which must be at least those of the format. */
static term decode(kiln__tensor_type type, uint32_t bits, unsigned digits)
{
  const layout *f = &layouts[type];
  const uint32_t magnitude = bits & (UINT32_C(0x7fffffff) >> (32 - f->width));
  const bool negative = (bits >> (f->width - 1) & 1) != 0;
  const uint32_t top = (UINT32_C(1) << (f->width - 1 - f->fraction)) - 1;
  const uint32_t field = magnitude >> f->fraction;
  uint32_t part = magnitude & ((UINT32_C(1) << f->fraction) - 1);
  term t = {.kind = ORDINARY};

  part = part >> f->unused;
  if (f->infinite ? field == top : magnitude == 0x7f) {
    t.kind = f->infinite && part == 0 ? INFINITE : NOT_A_NUMBER;
    t.significand = negative ? -1 : 1;
    return t;
  }
  if (field != 0)
    part |= UINT32_C(1) << (f->fraction - f->unused);
  t.exponent = (int16_t)((field != 0 ? (int)field : 1) - f->bias);
  part <<= digits - (f->fraction - f->unused);
  t.significand = negative ? -(int32_t)part : (int32_t)part;
  return t;
}

/* ---- Rounding ------------------------------------------------------------ */

static uint32_t infinity_of(kiln__tensor_type d, bool negative)
{
  return d == KILN__TENSOR_F16 ? 0x7c00U | (uint32_t)negative << 15
                               : 0x7f800000U | (uint32_t)negative << 31;
}

static uint32_t nan_of(kiln__tensor_type d)
{
  return d == KILN__TENSOR_F16 ? 0x7fffU : 0x7fffffffU;
}

/* Returns value >> n, rounded to nearest even. */
static uint64_t shift_to_even(uint64_t value, int n)
{
  const uint64_t half = UINT64_C(1) << (n - 1);
  const uint64_t rest = value & ((half << 1) - 1);
  const uint64_t whole = value >> n;

  return whole + (uint64_t)(rest > half || (rest == half && (whole & 1) != 0));
}

/* Encodes sum * 2^unit. f16 rounds to nearest even, f32 towards zero after
 * `kept` fraction bits. */
static uint32_t encode(kiln__tensor_type type, unsigned kept, int64_t sum,
                       int unit)
{
  const bool half = type == KILN__TENSOR_F16, negative = sum < 0;
  const int digits = half ? MANTISSA_F16 : MANTISSA_F32;
  const int bias = half ? 15 : 127;
  uint64_t size = negative ? (uint64_t)-sum : (uint64_t)sum, bits;
  const uint32_t sign = (uint32_t)negative << (half ? 15 : 31);
  int exponent, shift;

  if (size == 0)
    return 0;
  exponent = 63 - __builtin_clzll(size) + unit;
  if (exponent < 1 - bias)
    exponent = 1 - bias;
  shift = exponent - digits - unit;
  if (shift > 62)
    return 0;
  if (shift <= 0)
    bits = size << -shift;
  else
    bits = half ? shift_to_even(size, shift) : size >> shift;
  if (!half)
    bits = bits >> (digits - (int)kept) << (digits - (int)kept);
  /* The hidden bit of a normal number adds one to the exponent field. */
  bits += (uint64_t)(exponent + bias - 1) << digits;
  if (bits >> digits >= 2 * (uint64_t)bias + 1)
    return infinity_of(type, negative);
  return bits == 0 ? 0 : (uint32_t)bits | sign; /* never -0 */
}

/* Returns the value of a number of any floating-point type. */
static float float_of(kiln__tensor_type type, uint32_t bits)
{
  const term t = decode(type, bits, MANTISSA_F32);
  float value;

  if (type == KILN__TENSOR_F32)
    memcpy(&value, &bits, sizeof value);
  else if (t.kind == NOT_A_NUMBER)
    value = NAN;
  else if (t.kind == INFINITE)
    value = t.significand < 0 ? -INFINITY : INFINITY;
  else if (t.significand == 0)
    value = (bits >> (layouts[type].width - 1) & 1) != 0 ? -0.0F : 0.0F;
  else
    value = ldexpf((float)t.significand, t.exponent - MANTISSA_F32);
  return value;
}

/* Rounds to nearest even. */
static uint32_t bits_of(kiln__tensor_type type, float value)
{
  uint32_t bits;
  term t;

  memcpy(&bits, &value, sizeof bits);
  if (value != value)
    return nan_of(type);
  if (type == KILN__TENSOR_F32)
    return bits;
  t = decode(KILN__TENSOR_F32, bits, MANTISSA_F32);
  if (t.kind == INFINITE)
    return infinity_of(type, t.significand < 0);
  if (t.significand == 0)
    return bits >> 16;
  return (bits >> 16 & 0x8000) |
         encode(type, MANTISSA_F16, t.significand, t.exponent - MANTISSA_F32);
}

/* ---- Rows and columns ---------------------------------------------------- */

/* Decodes n elements. In a deferred sum, fp8 elements become f16 first, which
 * normalises subnormal numbers of e4m3. */
static void decode_line(line *out, const kiln__tensor_rule *rule,
                        kiln__tensor_type type, const uint32_t *elements,
                        uint32_t n)
{
  out->special = false;
  for (uint32_t l = 0; l < n; l++) {
    const term t =
        rule->deferred
            ? decode(KILN__TENSOR_F16,
                     bits_of(KILN__TENSOR_F16, float_of(type, elements[l])),
                     SIGNIFICAND)
            : decode(type, elements[l], SIGNIFICAND);

    out->significand[l] = t.significand;
    out->exponent[l] = t.significand == 0 ? NEVER : t.exponent;
    out->kind[l] = (uint8_t)t.kind;
    out->special |= t.kind != ORDINARY;
  }
}

/* Copies the elements of a column that a row of a sparse matrix selects. */
static void select_line(line *out, const line *from, const uint8_t *select,
                        uint32_t n)
{
  out->special = from->special;
  for (uint32_t l = 0; l < n; l++) {
    out->significand[l] = from->significand[select[l]];
    out->exponent[l] = from->exponent[select[l]];
    out->kind[l] = from->kind[select[l]];
  }
}

/* ---- Sums ---------------------------------------------------------------- */

/* Returns true if the terms of a step include an infinity or NaN, and the
 * result in *bits. */
static bool sum_specials(const kiln__tensor_rule *rule, const line *a,
                         const line *b, uint32_t from, term c, uint32_t *bits)
{
  bool positive = c.kind == INFINITE && c.significand > 0;
  bool negative = c.kind == INFINITE && c.significand < 0;
  bool nan = c.kind == NOT_A_NUMBER;

  for (uint32_t l = from; l < from + rule->step; l++) {
    const bool either = (a->kind[l] | b->kind[l]) != ORDINARY;
    const int32_t x = a->significand[l], y = b->significand[l];

    nan |= a->kind[l] == NOT_A_NUMBER || b->kind[l] == NOT_A_NUMBER;
    nan |= either && (x == 0 || y == 0);
    positive |= either && (x < 0) == (y < 0);
    negative |= either && (x < 0) != (y < 0);
  }
  if (!nan && !positive && !negative)
    return false;
  *bits = nan || (positive && negative) ? nan_of(sum_type(rule))
                                        : infinity_of(sum_type(rule), negative);
  return true;
}

/* Returns the largest exponent of the products of a step, or `largest` if that
 * is larger. */
static int largest_exponent(const int16_t *restrict a,
                            const int16_t *restrict b, uint32_t n, int largest)
{
  int16_t most = (int16_t)largest;

  for (uint32_t l = 0; l < n; l++) {
    const int16_t e = (int16_t)(a[l] + b[l]);

    most = e > most ? e : most;
  }
  return most;
}

/* Cuts a term with ALIGNED fraction bits after shifting it right. */
static int64_t cut(uint32_t size, bool negative, int shift)
{
  const int64_t whole = (int64_t)(size >> (shift < 31 ? shift : 31));

  return negative ? -whole : whole;
}

/* Adds `step` products, from product number `from` on, and c. */
static uint32_t sum_step(const kiln__tensor_rule *rule, const line *a,
                         const line *b, uint32_t from, term c)
{
  const int32_t *const x = a->significand + from, *const y =
                                                      b->significand + from;
  const int16_t *const ex = a->exponent + from, *const ey = b->exponent + from;
  const int least = sum_type(rule) == KILN__TENSOR_F16 ? LEAST_F16 : LEAST_F32;
  const int exponent_c = c.significand != 0 ? c.exponent : least;
  const int top = largest_exponent(ex, ey, rule->step, exponent_c);
  const int base = top + ALIGNED - rule->fraction;
  const uint32_t size_c =
      (uint32_t)(c.significand < 0 ? -c.significand : c.significand);
  int64_t sum = cut(size_c << (ALIGNED - MANTISSA_F32), c.significand < 0,
                    base - exponent_c);

  for (uint32_t l = 0; l < rule->step; l++) {
    const int32_t p = x[l] * y[l];

    sum += cut((uint32_t)(p < 0 ? -p : p) << (ALIGNED - 2 * SIGNIFICAND), p < 0,
               base - ex[l] - ey[l]);
  }
  return encode(sum_type(rule), rule->kept, sum, top - rule->fraction);
}

/* Sums four products as the code does that ptxas inserts for m8n8k4 from sm_80
 * on. */
static uint32_t sum_chain(const kiln__tensor_rule *rule, const uint32_t *a,
                          const uint32_t *b, uint32_t accumulator)
{
  const float c = float_of(rule->c, accumulator);
  float x[4], y[4];

  for (unsigned l = 0; l < 4; l++) {
    x[l] = float_of(rule->a, a[l]);
    y[l] = float_of(rule->b, b[l]);
  }
  if (rule->d == KILN__TENSOR_F16)
    return bits_of(rule->d, c + fmaf(x[1], y[1], x[0] * y[0]) +
                                fmaf(x[3], y[3], x[2] * y[2]));
  return bits_of(
      rule->d,
      c + fmaf(x[3], y[3],
               fmaf(x[2], y[2], fmaf(x[1], y[1], fmaf(x[0], y[0], 0)))));
}

static uint32_t sum_steps(const kiln__tensor_rule *rule, const line *a,
                          const line *b, uint32_t k, uint32_t c)
{
  const kiln__tensor_type type = sum_type(rule);

  for (uint32_t from = 0; from < k; from += rule->step) {
    const term t = decode(type, c, MANTISSA_F32);

    if ((!a->special && !b->special && t.kind == ORDINARY) ||
        !sum_specials(rule, a, b, from, t, &c))
      c = sum_step(rule, a, b, from, t);
  }
  return c;
}

static uint32_t sum_floats(const kiln__tensor_rule *rule, const line *a,
                           const line *b, uint32_t k, uint32_t c)
{
  const kiln__tensor_type type = sum_type(rule);
  uint32_t sum;

  /* An f16 accumulator becomes an f32 first, whose exponent is normalised. */
  if (rule->c != type)
    c = bits_of(type, float_of(rule->c, c));
  sum = sum_steps(rule, a, b, k, rule->deferred ? 0 : c);

  if (rule->deferred)
    return bits_of(rule->d, float_of(type, c) + float_of(type, sum));
  return type == rule->d ? sum : bits_of(rule->d, float_of(type, sum));
}

static void multiply_chained(const kiln__tensor_rule *rule,
                             const kiln__tensor_tile *tile)
{
  for (uint32_t i = 0; i < tile->m; i++)
    for (uint32_t j = 0; j < tile->n; j++) {
      const uint32_t at = i * tile->n + j;

      tile->d[at] = sum_chain(rule, tile->a + i * tile->k,
                              tile->b + j * tile->k_b, tile->c[at]);
    }
}

static void multiply_floats(const kiln__tensor_rule *rule,
                            const kiln__tensor_tile *tile)
{
  line rows[KILN__TENSOR_MAX_M], column, selected;

  for (uint32_t i = 0; i < tile->m; i++)
    decode_line(&rows[i], rule, rule->a, tile->a + i * tile->k, tile->k);
  for (uint32_t j = 0; j < tile->n; j++) {
    decode_line(&column, rule, rule->b, tile->b + j * tile->k_b, tile->k_b);
    for (uint32_t i = 0; i < tile->m; i++) {
      const uint32_t at = i * tile->n + j;
      const line *b = &column;

      if (tile->select != NULL) {
        select_line(&selected, &column, tile->select + i * tile->k, tile->k);
        b = &selected;
      }
      tile->d[at] = sum_floats(rule, &rows[i], b, tile->k, tile->c[at]);
    }
  }
}

/* ---- Integers and bits --------------------------------------------------- */

static int32_t integer_of(kiln__tensor_type type, uint32_t bits)
{
  switch (type) {
  case KILN__TENSOR_S8:
    return (int8_t)bits;
  case KILN__TENSOR_U8:
    return (uint8_t)bits;
  case KILN__TENSOR_S4:
    return (int8_t)(uint8_t)(bits << 4) / 16;
  default: /* KILN__TENSOR_U4 */
    return bits & 15;
  }
}

static int64_t sum_integers(const kiln__tensor_rule *rule, const uint32_t *a,
                            const uint32_t *b, const uint8_t *select,
                            uint32_t k)
{
  int64_t sum = 0;

  for (uint32_t l = 0; l < k; l++) {
    const uint32_t x = a[l], y = b[select != NULL ? select[l] : l];

    if (rule->a == KILN__TENSOR_B1)
      sum += __builtin_popcount(rule->conjunction ? x & y : x ^ y);
    else
      sum += integer_of(rule->a, x) * integer_of(rule->b, y);
  }
  return sum;
}

static void multiply_integers(const kiln__tensor_rule *rule,
                              const kiln__tensor_tile *tile)
{
  for (uint32_t i = 0; i < tile->m; i++)
    for (uint32_t j = 0; j < tile->n; j++) {
      const uint32_t at = i * tile->n + j;
      int64_t sum = (int32_t)tile->c[at];

      sum += sum_integers(
          rule, tile->a + i * tile->k, tile->b + j * tile->k_b,
          tile->select != NULL ? tile->select + i * tile->k : NULL, tile->k);
      if (rule->saturate)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      tile->d[at] = (uint32_t)sum;
    }
}

void kiln__tensor_multiply(const kiln__tensor_rule *rule,
                           const kiln__tensor_tile *tile)
{
  if (rule->chained)
    multiply_chained(rule, tile);
  else if (is_float(rule->a))
    multiply_floats(rule, tile);
  else
    multiply_integers(rule, tile);
}
