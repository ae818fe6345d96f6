/* matrix_sums_test.c -- tests the rules of tensor_arithmetic.h against a
 * reference in double precision, which aligns, cuts and adds the terms of a sum
 * one by one.
 *
 * The reference states the rules again: fraction bits, and the number of terms
 * per step, for each generation and type. tests/golden/matrix.txt has results
 * of an H200 for sm_90. */
#include "cpu/tensor/tensor_arithmetic.h"
#include "support.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct format {
  unsigned width, fraction;
  int bias;
  bool infinite;
} format;

static const format formats[] = {
    [KILN__TENSOR_F16] = {16, 10, 15, true},
    [KILN__TENSOR_BF16] = {16, 7, 127, true},
    [KILN__TENSOR_TF32] = {32, 23, 127, true},
    [KILN__TENSOR_E4M3] = {8, 3, 7, false},
    [KILN__TENSOR_E5M2] = {8, 2, 15, true},
    [KILN__TENSOR_F32] = {32, 23, 127, true},
};

/* Returns the value of a number. *exponent receives the exponent of its
 * significand, where subnormal numbers have that of the smallest normal
 * number. */
static double value_of(kiln__tensor_type type, uint32_t bits, int *exponent)
{
  const format *f = &formats[type];
  const uint32_t fraction = bits & ((1U << f->fraction) - 1);
  const uint32_t top = (1U << (f->width - 1 - f->fraction)) - 1;
  const uint32_t field = bits >> f->fraction & top;
  double size = (double)fraction / (double)(1U << f->fraction);

  if (type == KILN__TENSOR_TF32)
    return value_of(KILN__TENSOR_F32, bits & 0xffffe000, exponent);
  *exponent = (field == 0 ? 1 : (int)field) - f->bias;
  if (f->infinite && field == top)
    size = fraction == 0 ? INFINITY : NAN;
  else if (!f->infinite && field == top && fraction == 7)
    size = NAN;
  else
    size = ldexp(size + (field != 0), *exponent);
  return (bits >> (f->width - 1) & 1) != 0 ? -size : size;
}

/* ---- The reference ------------------------------------------------------- */

typedef struct expected {
  int fraction, kept;
  unsigned step;
} expected;

/* The rules of arXiv 2511.10909. */
static expected rule_of(kiln__tensor_generation g, kiln__tensor_type a,
                        kiln__tensor_type d, unsigned k)
{
  const bool fp8 = a == KILN__TENSOR_E4M3 || a == KILN__TENSOR_E5M2;
  const bool halves = g == KILN__TENSOR_AMPERE || g == KILN__TENSOR_ADA;
  expected e = {24, d == KILN__TENSOR_F16 ? 10 : 23, k};

  if (g == KILN__TENSOR_VOLTA)
    e.fraction = 23;
  if (g >= KILN__TENSOR_HOPPER)
    e.fraction = 25;
  if (fp8 && (g == KILN__TENSOR_ADA || g == KILN__TENSOR_WGMMA)) {
    e.fraction = 13;
    e.kept = d == KILN__TENSOR_F16 ? 10 : 13;
  }
  if (g == KILN__TENSOR_VOLTA && k > 4)
    e.step = 4;
  if (g == KILN__TENSOR_TURING && k > 8)
    e.step = 8;
  if (halves && k * (fp8 ? 1 : a == KILN__TENSOR_TF32 ? 4 : 2) > 16)
    e.step = fp8 ? 16 : a == KILN__TENSOR_TF32 ? 4 : 8;
  return e;
}

static uint32_t bits_of_f16(double x)
{
  double size = fabs(x);
  int exponent = -14;
  double units;

  if (isnan(x))
    return 0x7fff;
  if (!isinf(x) && size >= ldexp(1, -14))
    exponent = ilogb(size);
  units = isinf(x) ? 65536 : nearbyint(ldexp(size, 10 - exponent));
  if (isinf(x) || ldexp(units, exponent - 10) >= 65536)
    return x < 0 ? 0xfc00 : 0x7c00;
  if (units == 0)
    return 0;
  return (x < 0 ? 0x8000U : 0) +
         (uint32_t)(((exponent + 14) << 10) + (int)units);
}

static uint32_t bits_of_f32(double x, int kept)
{
  float value;
  uint32_t bits;
  int exponent = -126;

  if (isnan(x))
    return 0x7fffffff;
  if (isinf(x) || fabs(x) >= ldexp(1, 128))
    return x < 0 ? 0xff800000 : 0x7f800000;
  if (fabs(x) >= ldexp(1, -126))
    exponent = ilogb(x);
  value = (float)ldexp(trunc(ldexp(x, kept - exponent)), exponent - kept);
  memcpy(&bits, &value, sizeof bits);
  return value == 0 ? 0 : bits;
}

/* Adds the terms of one step, aligned to the exponent `least` or a larger one.
 * All terms are exact doubles. */
static double add_terms(const double *terms, const int *exponents, unsigned n,
                        int fraction, int least)
{
  int top = least;
  double sum = 0, special = 0;

  for (unsigned i = 0; i < n; i++) {
    special += isfinite(terms[i]) ? 0 : terms[i];
    if (terms[i] != 0 && exponents[i] > top)
      top = exponents[i];
  }
  if (special != 0)
    return special;
  for (unsigned i = 0; i < n; i++)
    sum += trunc(ldexp(terms[i], fraction - top));
  return ldexp(sum, top - fraction);
}

static uint32_t reference(const expected *e, const kiln__tensor_rule *rule,
                          const uint32_t *a, const uint32_t *b, unsigned k,
                          uint32_t c)
{
  for (unsigned from = 0; from < k; from += e->step) {
    double terms[KILN__TENSOR_MAX_K + 1], sum;
    int exponents[KILN__TENSOR_MAX_K + 1];

    for (unsigned l = 0; l < e->step; l++) {
      int x, y;

      terms[l] = value_of(rule->a, a[from + l], &x) *
                 value_of(rule->b, b[from + l], &y);
      exponents[l] = x + y;
    }
    terms[e->step] = value_of(rule->d, c, &exponents[e->step]);
    sum = add_terms(terms, exponents, e->step + 1, e->fraction,
                    rule->d == KILN__TENSOR_F16 ? -21 : -133);
    c = rule->d == KILN__TENSOR_F16 ? bits_of_f16(sum)
                                    : bits_of_f32(sum, e->kept);
  }
  return c;
}

/* ---- Random products ----------------------------------------------------- */

static uint64_t state;

static uint32_t random_below(uint32_t n)
{
  return (uint32_t)((test_random(&state) >> 32) * n >> 32);
}

/* Returns a number whose exponent is within `spread` of that of 2^centre, and
 * now and then a zero, a subnormal number, an infinity or a NaN. */
static uint32_t random_number(kiln__tensor_type type, int centre, int spread)
{
  const format *f = &formats[type];
  const int top = (1 << (f->width - 1 - f->fraction)) - 1;
  int field =
      f->bias + centre + (int)random_below(2 * (uint32_t)spread + 1) - spread;
  const uint32_t fraction =
      (uint32_t)test_random(&state) & ((1U << f->fraction) - 1);
  const uint32_t kind = random_below(200);
  const uint32_t sign = random_below(2) << (f->width - 1);

  if (kind < 6)
    return sign;
  field = kind < 12 || field < 0 ? 0 : kind == 12 || field > top ? top : field;
  if (kind != 12 && field == top)
    field = top - 1;
  return sign | (uint32_t)field << f->fraction |
         (kind == 12 && random_below(2) == 0 ? 0 : fraction);
}

typedef struct row {
  kiln__tensor_type a, b, d;
  unsigned k;
} row;

static const row rows[] = {
    {KILN__TENSOR_F16, KILN__TENSOR_F16, KILN__TENSOR_F32, 8},
    {KILN__TENSOR_F16, KILN__TENSOR_F16, KILN__TENSOR_F32, 16},
    {KILN__TENSOR_F16, KILN__TENSOR_F16, KILN__TENSOR_F16, 16},
    {KILN__TENSOR_BF16, KILN__TENSOR_BF16, KILN__TENSOR_F32, 8},
    {KILN__TENSOR_BF16, KILN__TENSOR_BF16, KILN__TENSOR_F32, 16},
    {KILN__TENSOR_TF32, KILN__TENSOR_TF32, KILN__TENSOR_F32, 4},
    {KILN__TENSOR_TF32, KILN__TENSOR_TF32, KILN__TENSOR_F32, 8},
    {KILN__TENSOR_E4M3, KILN__TENSOR_E5M2, KILN__TENSOR_F32, 32},
    {KILN__TENSOR_E4M3, KILN__TENSOR_E4M3, KILN__TENSOR_F16, 32},
    {KILN__TENSOR_E5M2, KILN__TENSOR_E4M3, KILN__TENSOR_F32, 16},
};

static void check_one(kiln__tensor_generation g, const row *r)
{
  static const int spreads[] = {0, 2, 6, 14, 30, 130};
  const int spread = spreads[random_below(6)];
  const int centre = random_below(4) == 0 ? (int)random_below(60) - 30 : 0;
  const expected e = rule_of(g, r->a, r->d, r->k);
  uint32_t a[KILN__TENSOR_MAX_K], b[KILN__TENSOR_MAX_K], c, d;
  kiln__tensor_rule rule;
  kiln__tensor_tile tile = {.m = 1, .n = 1, .k = r->k, .k_b = r->k};

  for (unsigned l = 0; l < r->k; l++) {
    a[l] = random_number(r->a, centre, spread);
    b[l] = random_number(r->b, random_below(8) == 0 ? -centre : centre, spread);
  }
  c = random_number(r->d, 2 * centre, 2 * spread);
  kiln__tensor_rule_init(&rule, g, r->a, r->b, r->d, r->d, r->k);
  tile.a = a;
  tile.b = b;
  tile.c = &c;
  tile.d = &d;
  kiln__tensor_multiply(&rule, &tile);
  ck_assert_msg(d == reference(&e, &rule, a, b, r->k, c),
                "generation %d, types %d %d %d, k %u: %08x, want %08x", (int)g,
                (int)r->a, (int)r->b, (int)r->d, r->k, d,
                reference(&e, &rule, a, b, r->k, c));
}

START_TEST(sums_follow_the_rules)
{
  const row *r = &rows[_i];
  const bool fp8 = r->a == KILN__TENSOR_E4M3 || r->a == KILN__TENSOR_E5M2;

  state = (uint64_t)_i + 1;
  for (int g = KILN__TENSOR_VOLTA; g <= KILN__TENSOR_WGMMA; g++) {
    /* mma of fp8 on sm_90 consists of products of f16. */
    if (fp8 && (g < KILN__TENSOR_ADA || g == KILN__TENSOR_HOPPER))
      continue;
    for (int i = 0; i < test_rounds(40000); i++)
      check_one((kiln__tensor_generation)g, r);
  }
}
END_TEST

/* ---- Known values -------------------------------------------------------- */

typedef struct known {
  kiln__tensor_generation generation;
  kiln__tensor_type ab, d;
  unsigned k;
  uint32_t a[4], b[4], c, want; /* further factors are zero */
} known;

static const known knowns[] = {
    /* 1 + 2^-24 is cut to 24 fraction bits, then to 23. */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F32,
     16,
     {0x3c00, 0x0c00},
     {0x3c00, 0x0c00},
     0,
     0x3f800000},
    /* 2^24 - 1 from products and a small c that F bits still hold */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F32,
     16,
     {0x3c00},
     {0x3c00},
     0xb3000000 /* -2^-25 */,
     0x3f7fffff},
    {KILN__TENSOR_AMPERE,
     0,
     KILN__TENSOR_F32,
     16,
     {0x3c00},
     {0x3c00},
     0xb3000000,
     0x3f800000},
    {KILN__TENSOR_VOLTA,
     0,
     KILN__TENSOR_F32,
     8,
     {0x3c00},
     {0x3c00},
     0xb3800000 /* -2^-24 */,
     0x3f800000},
    /* infinities and NaNs */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F32,
     16,
     {0x7c00},
     {0x3c00},
     0,
     0x7f800000},
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F32,
     16,
     {0x7c00},
     {0x0000},
     0,
     0x7fffffff},
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F32,
     16,
     {0x7c00, 0xfc00},
     {0x3c00, 0x3c00},
     0,
     0x7fffffff},
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F16,
     16,
     {0x7e01},
     {0x3c00},
     0,
     0x7fff},
    /* overflow: f16 rounds to infinity, f32 of bf16 as well */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F16,
     16,
     {0x7bff},
     {0x4000},
     0,
     0x7c00},
    {KILN__TENSOR_HOPPER,
     KILN__TENSOR_BF16,
     KILN__TENSOR_F32,
     16,
     {0x7f00},
     {0xc080},
     0,
     0xff800000},
    /* a negative sum below half of the smallest f16 is +0 */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F16,
     16,
     {0x0001},
     {0x8001},
     0x8000,
     0},
    /* subnormal f16 are exact in f32 */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F32,
     16,
     {0x0001},
     {0x3c00},
     0,
     0x33800000},
    /* 1.5 * 2^-24 - 2^-47: terms of an f16 are cut at 2^-46, which leaves a tie,
     * but those of an f32 are not */
    {KILN__TENSOR_HOPPER,
     0,
     KILN__TENSOR_F16,
     16,
     {0x0c00, 0x0001},
     {0x0e00, 0x8002},
     0,
     0x0002},
    {KILN__TENSOR_WGMMA,
     0,
     KILN__TENSOR_F16,
     16,
     {0x0c00, 0x0001},
     {0x0e00, 0x8002},
     0,
     0x0002},
    {KILN__TENSOR_WGMMA,
     0,
     KILN__TENSOR_F32,
     16,
     {0x0c00, 0x0001},
     {0x0e00, 0x8002},
     0,
     0x33bfffff},
    /* 1.5 * 2^-24 - 2^-46: the same, but the last bit is not cut */
    {KILN__TENSOR_WGMMA,
     0,
     KILN__TENSOR_F16,
     16,
     {0x0c00, 0x0001},
     {0x0e00, 0x8004},
     0,
     0x0001},
    /* the lowest 13 bits of tf32 are ignored */
    {KILN__TENSOR_HOPPER,
     KILN__TENSOR_TF32,
     KILN__TENSOR_F32,
     8,
     {0x3f801fff},
     {0x3f800000},
     0,
     0x3f800000},
};

START_TEST(known_values)
{
  const known *v = &knowns[_i];
  uint32_t a[16] = {0}, b[16] = {0}, d;
  kiln__tensor_rule rule;
  kiln__tensor_tile tile = {.m = 1,
                            .n = 1,
                            .k = v->k,
                            .k_b = v->k,
                            .a = a,
                            .b = b,
                            .c = &v->c,
                            .d = &d};

  memcpy(a, v->a, sizeof v->a);
  memcpy(b, v->b, sizeof v->b);
  kiln__tensor_rule_init(&rule, v->generation, v->ab, v->ab, v->d, v->d, v->k);
  kiln__tensor_multiply(&rule, &tile);
  ck_assert_msg(d == v->want, "%08x, want %08x", d, v->want);
}
END_TEST

/* ---- Integers and f64 ---------------------------------------------------- */

START_TEST(integers_wrap_or_saturate)
{
  uint32_t a[32], b[32], c = 0x7fffff00, d;
  kiln__tensor_rule rule;
  kiln__tensor_tile tile = {
      .m = 1, .n = 1, .k = 32, .k_b = 32, .a = a, .b = b, .c = &c, .d = &d};

  for (unsigned l = 0; l < 32; l++) {
    a[l] = 0x80;
    b[l] = 0x80;
  }
  kiln__tensor_rule_init(&rule, KILN__TENSOR_HOPPER, KILN__TENSOR_S8,
                         KILN__TENSOR_S8, KILN__TENSOR_S32, KILN__TENSOR_S32,
                         32);
  kiln__tensor_multiply(&rule, &tile);
  ck_assert_uint_eq(d, 0x7fffff00U + 32 * 128 * 128);
  rule.saturate = true;
  kiln__tensor_multiply(&rule, &tile);
  ck_assert_uint_eq(d, INT32_MAX);
  rule.a = KILN__TENSOR_U8; /* 128 * -128 */
  c = 0x80000010;
  kiln__tensor_multiply(&rule, &tile);
  ck_assert_uint_eq(d, 0x80000000);
}
END_TEST

START_TEST(columns_are_selected)
{
  const uint32_t a[4] = {1, 2, 3, 4}, b[8] = {1, 10, 100, 15, 7, 50, 60, 9};
  const uint8_t select[4] = {1, 3, 4, 7};
  const uint32_t c = 5;
  uint32_t d;
  kiln__tensor_rule rule;
  const kiln__tensor_tile tile = {.m = 1,
                                  .n = 1,
                                  .k = 4,
                                  .k_b = 8,
                                  .a = a,
                                  .b = b,
                                  .select = select,
                                  .c = &c,
                                  .d = &d};

  kiln__tensor_rule_init(&rule, KILN__TENSOR_HOPPER, KILN__TENSOR_S8,
                         KILN__TENSOR_U8, KILN__TENSOR_S32, KILN__TENSOR_S32,
                         4);
  kiln__tensor_multiply(&rule, &tile);
  ck_assert_uint_eq(d, 5 + 10 + 30 + 21 + 36);
}
END_TEST

static uint64_t double_bits(double x)
{
  uint64_t bits;

  memcpy(&bits, &x, sizeof bits);
  return bits;
}

START_TEST(f64_is_a_chain_in_order)
{
  const uint64_t a[4] = {double_bits(1e16), double_bits(1), double_bits(-1e16),
                         double_bits(3)};
  const uint64_t b[4] = {double_bits(1), double_bits(1), double_bits(1),
                         double_bits(0.1)};
  const uint64_t c = double_bits(0.5);
  uint64_t d;

  kiln__tensor_multiply_f64(FE_TONEAREST, 1, 1, 4, a, b, &c, &d);
  ck_assert(d == double_bits(fma(3, 0.1, 0)));
  kiln__tensor_multiply_f64(FE_UPWARD, 1, 1, 4, a, b, &c, &d);
  ck_assert(d != double_bits(fma(3, 0.1, 0)));
  ck_assert_int_eq(fegetround(), FE_TONEAREST);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_matrix_sums");
  TCase *t =
      kiln_test_case(s, "tensor", 600, NULL, NULL,
                     TESTS(integers_wrap_or_saturate, columns_are_selected,
                           f64_is_a_chain_in_order));

  tcase_add_loop_test(t, sums_follow_the_rules, 0, ROWS(rows));
  tcase_add_loop_test(t, known_values, 0, ROWS(knowns));
  return kiln_test_run(s);
}
