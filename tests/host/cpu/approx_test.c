/* approx_test.c -- tests the .approx and .full handlers of f32 and f64. Over
 * dense samples, the results have to stay within the error bounds of the PTX
 * manual. Results that the manual tabulates have to be exact. */
#include "cpu_soft.h"

#include <math.h>
#include <stdio.h>

static const soft_row all_rows[] = {
#define KILN__OP SOFT_ROW
#include "cpu/code/ops/float.def"
#undef KILN__OP
};
enum { N_ROWS = sizeof all_rows / sizeof *all_rows };

static float f32(uint64_t bits)
{
  const uint32_t low = (uint32_t)bits;
  float x;

  memcpy(&x, &low, sizeof x);
  return x;
}

static uint32_t bits32(float x)
{
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static double f64(uint64_t bits)
{
  double x;

  memcpy(&x, &bits, sizeof x);
  return x;
}

/* ---- Functions of one f32 operand ---------------------------------------- */

typedef long double exact_function(long double x);

static long double reciprocal(long double x)
{
  return 1 / x;
}

static long double reciprocal_root(long double x)
{
  return 1 / sqrtl(x);
}

/* The error bound of an approximate function. For sources whose magnitude is at
 * most `last`, the result must satisfy
 * |got - exact| <= absolute + relative * |exact|. The of_... members are the
 * results of special sources. */
typedef struct function {
  const char *what;
  exact_function *exact;
  double absolute, relative, last;
  float of_plus_0, of_minus_0, of_plus_infinity, of_minus_infinity;
} function;

#define INF INFINITY
static const function functions[] = {
    {"rcp", reciprocal, 0, 0x1p-23, INF, INF, -INF, 0.0f, -0.0f},
    {"sqrt", sqrtl, 0, 0x1p-23, INF, 0.0f, -0.0f, INF, NAN},
    {"rsqrt", reciprocal_root, 0, 0x1.125p-23, INF, INF, -INF, 0.0f, NAN},
    {"ex2", exp2l, 0, 0x1.6a0p-23, INF, 1, 1, INF, 0.0f},
    {"lg2", log2l, 0, 0x1p-22, INF, -INF, -INF, INF, NAN},
    {"sin", sinl, 0x1.6a0p-21, 0, 0x1.921fb6p+2, 0.0f, -0.0f, NAN, NAN},
    {"cos", cosl, 0x1.6a0p-21, 0, 0x1.921fb6p+2, 1, 1, NAN, NAN},
    {"tanh", tanhl, 0, 0x1p-11, INF, 0.0f, -0.0f, 1, -1}};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct worst {
  double error; /* error of the result, divided by the error bound */
  uint32_t at, got;
  const char *isa;
} worst;

static uint32_t flush32(bool ftz, uint32_t bits)
{
  return (uint32_t)(ftz ? soft_flush(&soft_f32, bits) : bits);
}

/* Returns the angle as GPUs reduce it: in full turns, with 24 bits. The test
 * uses it outside the range of the error bound. */
static long double angle_of(float x)
{
  const long double turns = (long double)x * 0x1.45f306p-3L;
  int exponent;
  const long double m = frexpl(turns, &exponent);

  return fmodl(ldexpl(truncl(m * 0x1p24L), exponent - 24), 1) *
         0x1.921fb54442d1846ap+2L;
}

/* Returns the distance between `got` and the exact result, divided by the error
 * bound. */
static double error32(const function *f, bool ftz, uint32_t a, uint32_t got)
{
  const uint32_t in = flush32(ftz, a);
  const float x = f32(in);
  long double exact, bound, tiny = 0x1p-149L;

  if (isnan(x))
    return got == 0x7fffffff ? 0 : INFINITY;
  if (x == 0 || isinf(x)) {
    const float want =
        x == 0 ? (signbit(x) ? f->of_minus_0 : f->of_plus_0)
               : (x < 0 ? f->of_minus_infinity : f->of_plus_infinity);

    return got == (isnan(want) ? 0x7fffffff : bits32(want)) ? 0 : INFINITY;
  }
  exact = f->exact((long double)x);
  if (isnan((double)exact))
    return got == 0x7fffffff ? 0 : INFINITY;
  if (isnan(f32(got)))
    return INFINITY;
  if (ftz && soft_is_subnormal(&soft_f32, got))
    return INFINITY;
  if (fabsl(exact) > 0x1.ffffffp+127L)
    return f32(got) == (exact > 0 ? INFINITY : -INFINITY) ? 0 : INFINITY;
  if (ftz && fabsl(exact) < 0x1p-126L)
    return fabsf(f32(got)) <= 0x1p-126f &&
                   (signbit(f32(got)) != 0) == (exact < 0)
               ? 0
               : INFINITY;
  bound = f->absolute + f->relative * fabsl(exact);
  if (fabsf(x) > f->last) {
    exact = f->exact(angle_of(x));
    bound = 0x1p-23L * fabsl(exact) + 0x1p-50L;
  }
  if (bound < tiny)
    bound = tiny;
  return (double)(fabsl((long double)f32(got) - exact) / bound);
}

static void run_warp(const cpu_case *c, const function *f, bool ftz,
                     const cpu_lane in[KILN__WARP], unsigned n_isas,
                     worst *most)
{
  for (unsigned k = 0; k < n_isas; k++) {
    cpu_lane out[KILN__WARP];

    cpu_case_run(c, cpu_isas[k], in, UINT32_MAX, CPU_ALIAS_NONE, out);
    for (int i = 0; i < KILN__WARP; i++) {
      const double error =
          error32(f, ftz, (uint32_t)in[i].a, (uint32_t)out[i].d);

      if (error > most->error)
        *most = (worst){error, (uint32_t)in[i].a, (uint32_t)out[i].d,
                        cpu_isas[k]->name};
    }
  }
}

/* Returns the i-th source of a sample. The sample covers all exponents, zeros
 * and subnormals. It covers the range of the error bound a second time. The two
 * parts run in separate warps, because handlers use another algorithm for warps
 * with large values. */
static uint32_t sample(const function *f, uint32_t i, uint32_t n)
{
  const float range = f->last < INFINITY ? (float)f->last : 4;

  if (i < cpu_n_edges(KILN__F32)) {
    uint64_t seed = 1;

    return (uint32_t)cpu_value(KILN__F32, i, &seed);
  }
  if (i < n / 2)
    return i * (UINT32_MAX / (n / 2)) + i % 127;
  if (i % 16 == 0)
    return (i & 16) << 27 | (i % 64 < 32 ? 0 : i);
  return bits32(range * ((float)i / (float)n * 4 - 3));
}

START_TEST(function_is_within_its_bound)
{
  const function *const f = &functions[_i / 2];
  const bool ftz = _i % 2 != 0;
  enum { N = 1 << 16 };
  const unsigned n_isas = cpu_isas_find();
  worst most = {-1, 0, 0, ""};
  char opcode[40];
  cpu_case c;

  snprintf(opcode, sizeof opcode, "%s.approx%s.f32", f->what,
           ftz ? ".ftz" : "");
  if (!cpu_case_find(&c, opcode)) {
    /* PTX has no such instruction, so it must not load. */
    ck_assert_str_eq(opcode, "tanh.approx.ftz.f32");
    return;
  }
  for (uint32_t i = 0; i < N; i += KILN__WARP) {
    cpu_lane in[KILN__WARP] = {{0}};

    for (uint32_t k = 0; k < KILN__WARP; k++)
      in[k].a = sample(f, i + k, N);
    run_warp(&c, f, ftz, in, n_isas, &most);
  }
  ck_assert_msg(most.error <= 1,
                "%s (%s) of %a (%08x) gives %a (%08x): %.3f times the bound",
                opcode, most.isa, (double)f32(most.at), most.at,
                (double)f32(most.got), most.got, most.error);
  printf("%s: at most %.3f of its bound, at %08x\n", opcode, most.error,
         most.at);
}
END_TEST

/* ---- Partial masks, and destinations that are sources -------------------- */

static const function *current;
static bool current_ftz;

static void never(cpu_lane *l)
{
  /* No result has this value, so the function `same` decides. */
  l->d = UINT64_MAX;
}

static bool same32(const kiln__cpu_insn *in, const cpu_lane *src,
                   const cpu_lane *got, const cpu_lane *want)
{
  (void)in;
  (void)want;
  return error32(current, current_ftz, (uint32_t)src->a, (uint32_t)got->d) <= 1;
}

START_TEST(function_keeps_to_its_lanes)
{
  cpu_lane *lanes;
  char opcode[40];
  cpu_case c;
  size_t n;

  current = &functions[_i / 2];
  current_ftz = _i % 2 != 0;
  snprintf(opcode, sizeof opcode, "%s.approx%s.f32", current->what,
           current_ftz ? ".ftz" : "");
  if (!cpu_case_find(&c, opcode))
    return;
  c.same = same32;
  lanes = soft_lanes(KILN__F32, KILN__NONE, KILN__NONE, 4000, &n);
  cpu_case_check(&c, lanes, n, never);
  free(lanes);
}
END_TEST

/* ---- div.approx, div.full ------------------------------------------------ */

static bool full;

/* Returns true if the quotient is within two units in the last place.
 * div.approx treats reciprocals below 2^-126 as 0. */
static bool same_quotient(const kiln__cpu_insn *in, const cpu_lane *src,
                          const cpu_lane *got, const cpu_lane *want)
{
  const bool ftz = (in->flags & KILN__FTZ) != 0;
  const float a = f32(flush32(ftz, (uint32_t)src->a));
  const float b = f32(flush32(ftz, (uint32_t)src->b));
  const uint32_t d = (uint32_t)got->d;
  const uint32_t sign = (bits32(a) ^ bits32(b)) & 0x80000000;
  const double exact = (double)a / (double)b;

  (void)want;
  if (isnan(a) || isnan(b) || isnan(exact))
    return d == 0x7fffffff;
  if (!full && fabsf(b) > 0x1p126f && !isinf(b))
    return isinf(a) ? d == 0x7fffffff : d == sign;
  if ((d & 0x80000000) != sign || isnan(f32(d)) ||
      (ftz && soft_is_subnormal(&soft_f32, d)))
    return false;
  if (a == 0 || isinf(b))
    return f32(d) == 0;
  if (b == 0 || isinf(a) || fabs(exact) > 0x1.ffffffp+127)
    return isinf(f32(d));
  if (ftz && fabs(exact) < 0x1p-126)
    return fabsf(f32(d)) <= 0x1p-126f;
  return fabs((double)f32(d) - exact) <= fmax(0x1p-22 * fabs(exact), 0x1p-148);
}

START_TEST(quotient_is_within_two_units)
{
  static const char *const opcodes[] = {"div.approx.f32", "div.approx.ftz.f32",
                                        "div.full.f32", "div.full.ftz.f32"};
  cpu_lane *lanes;
  cpu_case c;
  size_t n;

  cpu_case_init(&c, opcodes[_i]);
  c.same = same_quotient;
  full = _i >= 2;
  lanes = soft_lanes(KILN__F32, KILN__F32, KILN__NONE, 100000, &n);
  cpu_case_check(&c, lanes, n, never);
  free(lanes);
}
END_TEST

/* ---- f64 reciprocal seeds of libdevice, and rsqrt ------------------------ */

static double seed_bound;
static bool root, seeds;

static bool same64(const kiln__cpu_insn *in, const cpu_lane *src,
                   const cpu_lane *got, const cpu_lane *want)
{
  const uint64_t high = UINT64_C(0xffffffff00000000);
  const bool tiny = soft_is_subnormal(&soft_f64, src->a);
  const uint64_t used = !seeds ? src->a
                        : tiny ? src->a & soft_sign(&soft_f64)
                               : src->a & high;
  const long double x = (long double)f64(used);
  const long double exact = root ? 1 / sqrtl(x) : 1 / x;
  const double d = f64(got->d);

  (void)in;
  (void)want;
  if (seeds && (got->d & ~high) != 0)
    return false;
  if (isnan(x) || isnan(exact))
    return got->d == (seeds      ? UINT64_C(0x7fffffff00000000)
                      : isnan(x) ? src->a | UINT64_C(1) << 51
                                 : UINT64_C(0xfff8000000000000));
  if (x == 0) /* The result for a zero is an infinity of the same sign. */
    return isinf(d) && (signbit(d) != 0) == (signbit(f64(used)) != 0);
  if (isinf(x))
    return d == 0 && (signbit(d) != 0) == (x < 0);
  /* A tiny result is flushed to zero or is the smallest normal number. */
  if (seeds && fabsl(exact) < 0x1p-1022L)
    return (d == 0 || fabs(d) == 0x1p-1022) && (signbit(d) != 0) == (exact < 0);
  if (fabsl(exact) > 0x1.fffffffffffffp+1023L)
    return isinf(d) && (signbit(d) != 0) == (exact < 0);
  return fabsl((long double)d - exact) <=
         fmaxl(seed_bound * fabsl(exact), 0x1p-1074L);
}

START_TEST(double_is_within_its_bound)
{
  static const struct {
    const char *opcode;
    double bound;
    bool root, seeds;
  } cases[] = {{"rcp.approx.ftz.f64", 0x1p-20, false, true},
               {"rsqrt.approx.ftz.f64", 0x1p-20, true, true},
               {"rsqrt.approx.f64", 0x1p-51, true, false}};
  cpu_lane *lanes;
  cpu_case c;
  size_t n;

  cpu_case_init(&c, cases[_i].opcode);
  c.same = same64;
  seed_bound = cases[_i].bound;
  root = cases[_i].root;
  seeds = cases[_i].seeds;
  lanes = soft_lanes(KILN__F64, KILN__NONE, KILN__NONE, 100000, &n);
  for (size_t i = 0; i < n; i += 2)
    /* Half of the arguments are made positive, because only positive numbers
     * have a square root. */
    lanes[i].a &= INT64_MAX;
  cpu_case_check(&c, lanes, n, never);
  free(lanes);
}
END_TEST

/* ---- Completeness -------------------------------------------------------- */

START_TEST(every_approximate_row_was_run)
{
  for (size_t i = 0; i < N_ROWS; i++) {
    if (strstr(all_rows[i].pattern, ".approx") == NULL &&
        strstr(all_rows[i].pattern, ".full") == NULL)
      continue;
    ck_assert_msg(cpu_seen(all_rows[i].op), "%s", all_rows[i].name);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_approx");
  TCase *t;

  cpu_seen_init();
  t = kiln_test_case(s, "functions", 0, NULL, NULL, TESTS(NULL));
  kiln_test_loops(
      t, 2 * N_FUNCTIONS,
      TESTS(function_is_within_its_bound, function_keeps_to_its_lanes));
  tcase_add_loop_test(t, quotient_is_within_two_units, 0, 4);
  tcase_add_loop_test(t, double_is_within_its_bound, 0, 3);
  /* This test checks the coverage of the other tests, so it runs last. */
  tcase_add_test(t, every_approximate_row_was_run);
  return kiln_test_run(s);
}
