/* convert_test.c -- tests conversions: every row of convert.def, for every
 * instruction set that the CPU device is built for, and with registers that are
 * wider than their values. The reference rounds by bisection in long double. */
#include "cpu_convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Every row ----------------------------------------------------------- */

static kiln__cpu_ptx_type source_type(void)
{
  const char *const t = ref_last(0);

  if (strcmp(ref_op.part[1], "pack") == 0)
    return KILN__S32;
  if (t[0] == 'e')
    return KILN__B16;
  return ref_type(t);
}

static void run(cpu_case *c, size_t n_random)
{
  const kiln__cpu_ptx_type a = source_type();
  const kiln__cpu_ptx_type b = c->b != 0 ? a : KILN__NONE;
  const unsigned a_bits = kiln__cpu_ptx_type_bytes[a] * 8u;
  cpu_lane *lanes;
  size_t n;

  lanes =
      cpu_lanes_make(c, a, b, c->c != 0 ? KILN__B32 : KILN__NONE, n_random, &n);
  /* Register bits above a narrow source value must not affect the result. */
  for (size_t i = 0; i < n; i++)
    lanes[i].a |= a_bits < 64 ? lanes[i].e << a_bits : 0;
  cpu_case_check(c, lanes, n, ref_conversion());
  free(lanes);
}

/* Tests every register width that ptxas accepts. A register may be wider than
 * its type. */
static void run_widths(cpu_case *c)
{
  static const uint8_t widths[] = {1, 2, 4, 8};
  const unsigned to = ref_bits(ref_last(1)), from = ref_bits(ref_last(0));

  c->brief = true;
  for (size_t i = 0; i < 4; i++) {
    for (size_t k = 0; k < 4; k++) {
      if (widths[i] * 8u < to || widths[k] * 8u < from)
        continue;
      c->in.reg_bytes = widths[i];
      c->in.src_reg_bytes = widths[k];
      /* An 8-bit value is stored like a 16-bit register. */
      c->d = widths[i] == 1 ? 2 : widths[i];
      c->a = widths[k] == 1 ? 2 : widths[k];
      run(c, 128);
    }
  }
}

static void run_opcode(cpu_case *c, size_t k)
{
  (void)k;
  run(c, 600);
  if (ref_conversion() == ref_cvt && strstr(c->opcode, "tf32") == NULL)
    run_widths(c);
}

static const kiln__cpu_op mine[] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  KILN__OP_##name,
#include "cpu/code/ops/convert.def"
#undef KILN__OP
};
enum { N_MINE = sizeof mine / sizeof *mine };

START_TEST(rows_follow_the_reference)
{
  for (int i = _i; i < N_MINE; i += 8)
    ref_run_row(mine[i], 40, run_opcode);
}
END_TEST

/* ---- Exhaustive tests ---------------------------------------------------- */

static void check_values(const char *opcode, const cpu_lane *lanes, size_t n)
{
  cpu_case c;

  cpu_case_init(&c, opcode);
  ref_parse(opcode);
  cpu_case_check(&c, lanes, n, ref_conversion());
}

static const char *const from_16[] = {
    "cvt.f32.f16",         "cvt.f64.f16",
    "cvt.rni.s32.f16",     "cvt.rzi.u8.f16",
    "cvt.rzi.s8.bf16",     "cvt.rpi.s16.f16",
    "cvt.rmi.u64.f16",     "cvt.rni.f16.f16",
    "cvt.sat.f16.f16",     "cvt.f32.bf16",
    "cvt.ftz.f32.bf16",    "cvt.rzi.s32.bf16",
    "cvt.rz.f16.bf16",     "cvt.rp.bf16.f16",
    "cvt.f64.bf16",        "cvt.rpi.bf16.bf16",
    "cvt.rn.bf16.f16",     "cvt.rn.f16.bf16",
    "cvt.rn.f16x2.e5m2x2", "cvt.rn.f16.s16",
    "cvt.rm.bf16.u16",     "cvt.rn.relu.f16x2.e4m3x2"};

START_TEST(all_values_of_16_bits)
{
  cpu_lane *lanes = calloc(65536, sizeof *lanes);

  ck_assert_ptr_nonnull(lanes);
  for (size_t i = 0; i < 65536; i++)
    lanes[i].a = i;
  check_values(from_16[_i], lanes, 65536);
  free(lanes);
}
END_TEST

/* Creates test sources: every representable result, the midpoints between
 * neighbouring results, and the numbers next to these midpoints. */
static size_t boundaries(const char *type, uint64_t stride, cpu_lane *lanes)
{
  size_t n = 0;

  for (uint64_t k = 0; k < 65536; k += stride) {
    const long double x = ref_decode(type, k, false);
    const long double y = ref_decode(type, k + ((k & 0x7fff) != 0x7fff), false);
    /* The first number above the largest result is also tested, because
     * overflow begins there. */
    const long double next =
        isinf(y) && !isinf(x) ? 2 * x - ref_decode(type, k - 1, false) : y;
    const long double middle = (x + next) / 2;
    const uint64_t at = isnan(middle) || isinf(middle)
                            ? 0x7f800001
                            : ref_encode("f32", middle, REF_NEAREST, false);

    lanes[n++].a =
        isnan(x) ? 0xffffffff : ref_encode("f32", x, REF_NEAREST, false);
    lanes[n++].a = at;
    lanes[n++].a = at + 1;
    lanes[n++].a = at - ((at & 0x7fffffff) != 0);
  }
  return n;
}

static const struct {
  const char *opcode, *type;
  uint64_t stride;
} to_16[] = {
    {"cvt.rn.f16.f32", "f16", 1},
    {"cvt.rn.bf16.f32", "bf16", 1},
    {"cvt.rz.f16.f32", "f16", 3},
    {"cvt.rp.f16.f32", "f16", 5},
    {"cvt.rm.f16.f32", "f16", 7},
    {"cvt.rz.bf16.f32", "bf16", 3},
    {"cvt.rp.bf16.f32", "bf16", 5},
    {"cvt.rn.relu.f16.f32", "f16", 9},
    {"cvt.rn.satfinite.f16.f32", "f16", 9},
    {"cvt.rn.satfinite.relu.bf16.f32", "bf16", 9},
};

START_TEST(boundaries_of_16_bits)
{
  cpu_lane *lanes = calloc(4 * 65536, sizeof *lanes);
  size_t n;

  ck_assert_ptr_nonnull(lanes);
  n = boundaries(to_16[_i].type, to_16[_i].stride, lanes);
  check_values(to_16[_i].opcode, lanes, n);
  free(lanes);
}
END_TEST

/* Packed conversions have separate rounding code. */
START_TEST(boundaries_of_packed_halves)
{
  static const char *const types[] = {"f16", "bf16"};
  cpu_lane *lanes = calloc(4 * 65536, sizeof *lanes);

  ck_assert_ptr_nonnull(lanes);
  for (int k = 0; k < 2; k++) {
    const size_t n = boundaries(types[k], 6, lanes);
    char opcode[32];

    for (size_t i = 0; i < n; i++)
      lanes[i].b = lanes[n - 1 - i].a;
    snprintf(opcode, sizeof opcode, "cvt.rn.%sx2.f32", types[k]);
    check_values(opcode, lanes, n);
    snprintf(opcode, sizeof opcode, "cvt.rz.relu.%sx2.f32", types[k]);
    check_values(opcode, lanes, n);
  }
  free(lanes);
}
END_TEST

/* Tests doubles that differ from a midpoint of two halves only in the last bit.
 * Rounding such a double twice would give the wrong half. */
START_TEST(doubles_round_once)
{
  static const char *const opcodes[] = {"cvt.rn.f16.f64", "cvt.rn.bf16.f64"};
  static const char *const types[] = {"f16", "bf16"};
  enum { N = 3 * 4096 };
  cpu_lane *lanes = calloc(N, sizeof *lanes);

  ck_assert_ptr_nonnull(lanes);
  for (int k = 0; k < 2; k++) {
    for (uint64_t i = 0; i < 4096; i++) {
      const uint64_t h = i * 15 % 0x7b00;
      const long double middle = (ref_decode(types[k], h, false) +
                                  ref_decode(types[k], h + 1, false)) /
                                 2;
      const uint64_t at = ref_encode("f64", middle, REF_NEAREST, false);

      lanes[3 * i].a = at;
      lanes[3 * i + 1].a = at + 1;
      lanes[3 * i + 2].a = at - 1;
    }
    check_values(opcodes[k], lanes, N);
  }
  free(lanes);
}
END_TEST

START_TEST(every_row_was_run)
{
  ref_rows_were_run(mine, N_MINE);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu convert");
  TCase *t;

  cpu_seen_init();
  t = kiln_test_case(s, "convert", 300, NULL, NULL,
                     TESTS(boundaries_of_packed_halves, doubles_round_once));
  tcase_add_loop_test(t, rows_follow_the_reference, 0, 8);
  tcase_add_loop_test(t, all_values_of_16_bits, 0, ROWS(from_16));
  tcase_add_loop_test(t, boundaries_of_16_bits, 0, ROWS(to_16));
  /* This test checks the coverage of the other tests, so it runs last. */
  tcase_add_test(t, every_row_was_run);
  return kiln_test_run(s);
}
