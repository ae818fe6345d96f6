/* half_test.c -- tests f16 and bf16 handlers against a reference that computes
 * floating-point results with integers. Instructions with one source are tested
 * for every source value. */
#include "cpu_soft.h"

#include "cpu/exec/half.h"

#include <math.h>
#include <stdio.h>

static const soft_row rows[] = {
#define KILN__OP SOFT_ROW
#include "cpu/code/ops/half.def"
#undef KILN__OP
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static char what[16];
static const soft_format *format;
static bool pairs;
/* The largest error of an approximate result, divided by the error bound. */
static double worst;

/* ---- Instructions with one source ---------------------------------------- */

/* Returns the value of a 16-bit float that is not a NaN. */
static double number(uint64_t bits)
{
  const soft x = soft_from(format, bits);
  const double m =
      x.kind == SOFT_INFINITE ? INFINITY : ldexp((double)(uint64_t)x.m, x.e);

  return x.negative ? -m : m;
}

static uint64_t of_one(const kiln__cpu_insn *in, uint64_t a, uint64_t b,
                       uint64_t c)
{
  if (soft_is(what, " neg abs "))
    return soft_signed(in, what, format, a);
  if (soft_is(what, " min max "))
    return soft_extreme(in, what, format, (in->flags & KILN__XORSIGN) != 0, a,
                        b);
  return soft_arithmetic(in, what, format, format, a, b, c);
}

static void reference(cpu_lane *l)
{
  l->d = of_one(l->in, l->a & 0xffff, l->b & 0xffff, l->c & 0xffff);
  if (pairs)
    l->d |= of_one(l->in, l->a >> 16, l->b >> 16, l->c >> 16) << 16;
}

/* ---- Approximations ------------------------------------------------------ */

/* Returns the error divided by the error bound of the PTX manual. The bound is
 * relative for ex2 and absolute for tanh. A result below the smallest normal
 * number may differ by one unit in the last place. */
static double error_of(uint64_t a, uint64_t got)
{
  const bool f16 = format == &soft_f16, ex2 = what[0] == 'e';
  const double x = number(!f16 && ex2 ? soft_flush(format, a) : a);
  const double exact = ex2 ? exp2(x) : tanh(x);
  const double bound =
      ex2 ? (f16 ? 0x1.12p-10 : 0x1p-7) * exact : (f16 ? 0x1.02p-11 : 0x1p-8);
  const double least = ldexp(1, f16 ? -14 : -126);

  if (exact >= ldexp(1, f16 ? 16 : 128))
    return got == soft_infinity(format) ? 0 : INFINITY;
  if (exact >= 0 && exact < least)
    return fabs(number(got) - exact) <= (f16 ? 0x1p-24 : least) ? 0 : INFINITY;
  return fabs(number(got) - exact) / bound;
}

static bool near_enough(uint64_t a, uint64_t got)
{
  double error;

  if (soft_is_nan(format, a))
    return got == 0x7fff;
  if (soft_is_nan(format, got))
    return false;
  /* Zeros and infinities are exact and have the sign of tanh. */
  if ((a & 0x7fff) == 0 || (a & 0x7fff) == soft_infinity(format)) {
    const uint64_t unit = (uint64_t)soft_bias(format) << format->fraction;

    if (what[0] == 'e' && (a & 0x7fff) == 0)
      return got == unit;
    if (what[0] == 'e')
      return got == (a < 0x8000 ? a : 0);
    return got == ((a & 0x7fff) == 0 ? a : unit | (a & 0x8000));
  }
  error = error_of(a, got);
  worst = error > worst ? error : worst;
  return error <= 1;
}

static bool same(const kiln__cpu_insn *in, const cpu_lane *src,
                 const cpu_lane *got, const cpu_lane *want)
{
  (void)in;
  (void)want;
  return near_enough(src->a & 0xffff, got->d & 0xffff) &&
         (!pairs || near_enough(src->a >> 16, got->d >> 16));
}

static void never(cpu_lane *l)
{
  /* No result has this value, so the function `same` decides. */
  l->d = UINT64_MAX;
}

/* ---- Every opcode of every row of ops.def -------------------------------- */

static cpu_lane *all_halves(size_t *n)
{
  cpu_lane *lanes = calloc(65536, sizeof *lanes);

  if (lanes == NULL)
    ck_abort_msg("no memory");
  for (uint64_t i = 0; i < 65536; i++) {
    lanes[i].a = i | (i * 40503 & 0xffff) << 16;
    lanes[i].d = i * 2654435761;
  }
  *n = 65536;
  return lanes;
}

static void run_opcode(const soft_row *row, const char *opcode)
{
  const bool approximate = strstr(opcode, ".approx") != NULL;
  const bool plain = strstr(opcode, "tz") == NULL &&
                     strstr(opcode, ".sat") == NULL &&
                     strstr(opcode, ".x") == NULL && opcode[1] != 'a';
  const kiln__cpu_ptx_type type =
      strstr(opcode, ".bf16x2") != NULL  ? KILN__BF16X2
      : strstr(opcode, ".bf16") != NULL  ? KILN__BF16
      : strstr(opcode, ".f16x2") != NULL ? KILN__F16X2
                                         : KILN__F16;
  cpu_lane *lanes;
  cpu_case c;
  size_t n;

  cpu_case_init(&c, opcode);
  c.in.op = (uint16_t)row->op;
  soft_mnemonic(opcode, what);
  format = soft_format_of(type);
  pairs = type == KILN__F16X2 || type == KILN__BF16X2;
  lanes = c.b == 0 ? all_halves(&n)
                   : soft_lanes(type, type, c.c != 0 ? type : KILN__NONE,
                                plain ? 50000 : 6000, &n);
  if (approximate)
    c.same = same;
  cpu_case_check(&c, lanes, n, approximate ? never : reference);
  free(lanes);
}

START_TEST(row_is_as_computed_with_integers)
{
  char opcode[96];

  ck_assert_uint_gt(
      soft_expand(&rows[_i], rows[_i].pattern, opcode, 0, run_opcode), 0);
  if (worst > 0)
    printf("%s: %.3f of its bound\n", rows[_i].name, worst);
}
END_TEST

/* ---- Conversions in half.h ----------------------------------------------- */

START_TEST(halves_widen_exactly)
{
  for (uint32_t h = 0; h < 65536; h++) {
    for (int k = 0; k < 2; k++) {
      const soft_format *f = k == 0 ? &soft_f16 : &soft_bf16;
      const uint32_t got = kiln__cpu_bits_of_float(
          k == 0 ? kiln__cpu_float_of_f16(h) : kiln__cpu_float_of_bf16(h));

      if (soft_is_nan(f, h)
              ? !soft_is_nan(&soft_f32, got)
              : got != soft_to(&soft_f32, soft_from(f, h), SOFT_N))
        ck_abort_msg("%s %04x: got %08x", k == 0 ? "f16" : "bf16", h, got);
    }
  }
}
END_TEST

static void check_narrow(double x, bool is_float)
{
  const soft s = soft_from(&soft_f64, kiln__cpu_bits_of_double(x));
  const uint32_t f16 = (uint32_t)soft_to(&soft_f16, s, SOFT_N);
  const uint32_t bf16 = (uint32_t)soft_to(&soft_bf16, s, SOFT_N);

  if (kiln__cpu_f16_of_double(x) != f16)
    ck_abort_msg("%a: f16 %04x, want %04x", x, kiln__cpu_f16_of_double(x), f16);
  if (kiln__cpu_bf16_of_double(x) != bf16)
    ck_abort_msg("%a: bf16 %04x, want %04x", x, kiln__cpu_bf16_of_double(x),
                 bf16);
  if (is_float && kiln__cpu_f16_of_float((float)x) != f16)
    ck_abort_msg("%a: float to f16, want %04x", x, f16);
  if (is_float && kiln__cpu_bf16_of_float((float)x) != bf16)
    ck_abort_msg("%a: float to bf16, want %04x", x, bf16);
}

/* Tests the values of all 16-bit floats, the midpoints between neighbouring
 * values, and the numbers next to these midpoints. */
START_TEST(narrowing_rounds_once)
{
  for (uint32_t h = 0; h < 65536; h++) {
    for (int k = 0; k < 2; k++) {
      const soft_format *f = k == 0 ? &soft_f16 : &soft_bf16;
      const uint64_t next = h + 1;
      double low, high;

      format = f;
      if ((h & 0x7fff) >= soft_infinity(f) - 1)
        continue;
      low = number(h);
      high = number(next);
      check_narrow(low, true);
      check_narrow((low + high) / 2, true);
      check_narrow(nextafter((low + high) / 2, INFINITY), false);
      check_narrow(nextafter((low + high) / 2, -INFINITY), false);
    }
  }
  for (int e = -300; e < 300; e++) {
    check_narrow(ldexp(1, e), e >= -149 && e < 128);
    check_narrow(-ldexp(0x1.fffffffffffffp+0, e), false);
  }
  check_narrow(INFINITY, true);
  check_narrow(-INFINITY, true);
  check_narrow(-0.0, true);
  check_narrow(65520, true);
  check_narrow(nextafter(65520, 0), false);
  check_narrow(NAN, true);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_half");
  TCase *t = kiln_test_case(s, "rows", 0, NULL, NULL,
                            TESTS(halves_widen_exactly, narrowing_rounds_once));

  tcase_add_loop_test(t, row_is_as_computed_with_integers, 0, N_ROWS);
  return kiln_test_run(s);
}
