/* convert_test.c -- tests conversions: every row of convert.def, in every build
 * of exec/, and with registers wider than the types. The reference rounds by
 * bisection in long double. */
#include "cpu_handler.h"
#include "cpu_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- References ---------------------------------------------------------- */

static long double whole(long double x, ref_round round)
{
  switch (round) {
  case REF_ZERO:
    return truncl(x);
  case REF_DOWN:
    return floorl(x);
  case REF_UP:
    return ceill(x);
  default:
    return rintl(x); /* the host processor rounds to nearest */
  }
}

static uint64_t to_integer(const char *type, const char *from, long double x)
{
  const unsigned bits = ref_bits(type);
  const ref_int top = (ref_int)1 << (bits - ref_is_signed(type));
  const ref_int high = top - 1, low = ref_is_signed(type) ? -top : 0;

  if (isnan(x)) {
    const bool wide = bits == 64 || strcmp(from, "f64") == 0;

    return wide ? UINT64_C(1) << (bits - 1) : 0;
  }
  x = whole(x, ref_rounding());
  if (x >= (long double)high)
    return ref_cut(type, high);
  return ref_cut(type, x <= (long double)low ? low : (ref_int)x);
}

/* Returns true if x is below 2^-126 after rounding to the 24 bits of f32. */
static bool is_tiny(long double x)
{
  const uint64_t scaled =
      ref_encode("f32", x * 0x1p64L, ref_rounding(), false) & 0x7fffffff;

  return fabsl(x) < 0x1p-126L && scaled < UINT64_C(65) << 23;
}

static uint64_t to_float(const char *type, long double x, bool rounds_whole)
{
  uint64_t r;

  if (rounds_whole && !isnan(x))
    x = copysignl(whole(x, ref_rounding()), x);
  if (ref_has("sat"))
    x = !(x > 0) ? 0 : x > 1 ? 1 : x;
  if (ref_has("relu") && signbit(x) && !isnan(x))
    x = 0;
  r = ref_encode(type, x, ref_rounding(), ref_has("satfinite"));
  if (ref_has("ftz") && strcmp(type, "f32") == 0 && is_tiny(x))
    r &= 0x80000000;
  return r;
}

/* Returns the NaN of a conversion from or to f64. The NaN keeps its sign and
 * the highest bits of its payload, and becomes quiet. */
static uint64_t nan_to(const char *to, const char *from, uint64_t raw)
{
  const ref_format *const f = ref_format_of(from), *const g = ref_format_of(to);
  const uint64_t sign = raw >> (f->exponent_bits + f->fraction_bits) & 1;
  const uint64_t fraction = raw << (64 - f->fraction_bits) | UINT64_C(1) << 63;

  if (ref_has("sat"))
    return 0;
  if (ref_has("ftz") && strcmp(from, "f32") == 0)
    return UINT64_C(0x7fffffffe0000000);
  return sign << (g->exponent_bits + g->fraction_bits) | g->infinity |
         fraction >> (64 - g->fraction_bits);
}

/* Converts to tf32 with .rna, which rounds finite values as integers and only
 * truncates special values. */
static uint64_t to_tf32_away(uint64_t raw)
{
  const bool special = (raw >> 23 & 255) == 255;
  uint64_t r = (special ? raw : raw + 0x1000) / 0x2000 * 0x2000;

  if (ref_has("satfinite") && (r >> 23 & 255) == 255)
    r -= 0x2000;
  return r & 0xffffffff;
}

/* Returns true if a conversion copies the bits, so that a NaN is preserved. */
static bool only_moves(const char *to, const char *from)
{
  const bool shifts =
      strcmp(to, "f32") == 0 && strcmp(from, "bf16") == 0 && !ref_has("ftz");

  return shifts ||
         (strcmp(to, from) == 0 && ref_op.n == 3 && strstr(to, "16") == NULL);
}

static uint64_t converted(const char *to, const char *from, uint64_t raw)
{
  const bool rounds_whole =
      ref_has("rni") || ref_has("rzi") || ref_has("rmi") || ref_has("rpi");
  ref_int value;

  if (ref_is_float(from)) {
    /* GPUs keep subnormals in conversions to f16. */
    const bool ftz =
        ref_has("ftz") && strcmp(from, "f32") == 0 && strcmp(to, "f16") != 0;
    const uint64_t mask = ref_cut(from, -1);
    const long double x = ref_decode(from, raw & mask, ftz);

    if (strcmp(to, "tf32") == 0 && ref_has("rna"))
      return to_tf32_away(raw & mask);
    if (isnan(x) && ref_is_float(to) && !only_moves(to, from) &&
        (strcmp(to, "f64") == 0 || strcmp(from, "f64") == 0))
      return nan_to(to, from, raw);
    if (only_moves(to, from))
      return (raw & mask) << (ref_bits(to) - ref_bits(from));
    return ref_is_float(to) ? to_float(to, x, rounds_whole)
                            : to_integer(to, from, x);
  }
  value = ref_value(from, raw);
  if (ref_is_float(to))
    return to_float(to, (long double)value, false);
  if (ref_has("sat")) {
    const ref_int top = (ref_int)1 << (ref_bits(to) - ref_is_signed(to));
    const ref_int low = ref_is_signed(to) ? -top : 0;

    value = value < low ? low : value > top - 1 ? top - 1 : value;
  }
  return ref_cut(to, value);
}

static void ref_cvt(const kiln__cpu_insn *in, cpu_lane *l)
{
  const char *const to = ref_last(1), *const from = ref_last(0);
  const uint64_t value = converted(to, from, l->a);
  const unsigned width = in->reg_bytes * 8u;

  l->d = ref_is_float(to) ? value : (uint64_t)ref_value(to, value);
  if (width < 64)
    l->d &= (UINT64_C(1) << width) - 1;
}

/* Converts a packed type name to its element type, for example "f16x2" to
 * "f16". */
static void single(const char *t, char out[8])
{
  snprintf(out, 8, "%.*s", (int)(strlen(t) - 2), t);
}

static void ref_two(const kiln__cpu_insn *in, cpu_lane *l)
{
  char to[8], from[8];
  unsigned shift;

  (void)in;
  single(ref_last(1), to);
  shift = ref_bits(to);
  if (strcmp(ref_last(0), "f32") == 0) {
    l->d = converted(to, "f32", l->b) | converted(to, "f32", l->a) << shift;
    return;
  }
  single(ref_last(0), from);
  l->d = converted(to, from, l->a) | converted(to, from, l->a >> ref_bits(from))
                                         << shift;
}

static void ref_pack(const kiln__cpu_insn *in, cpu_lane *l)
{
  const char *const to = ref_op.part[3];
  const unsigned n = ref_bits(to);

  (void)in;
  l->d = converted(to, "s32", l->b) | converted(to, "s32", l->a) << n;
  if (ref_op.n == 6)
    l->d |= l->c << 2 * n & 0xffffffff;
}

/* ---- Every row ----------------------------------------------------------- */

static cpu_reference *reference_of(void)
{
  const char *const to = ref_last(1);
  const size_t n = strlen(to);

  if (strcmp(ref_op.part[1], "pack") == 0)
    return ref_pack;
  return strcmp(to + n - 2, "x2") == 0 ? ref_two : ref_cvt;
}

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
  /* Bits above a narrow type must not affect the result. */
  for (size_t i = 0; i < n; i++)
    lanes[i].a |= a_bits < 64 ? lanes[i].e << a_bits : 0;
  cpu_case_check(c, lanes, n, reference_of());
  free(lanes);
}

/* Tests every register width that ptxas accepts: the width of the type or
 * more. */
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
      /* An 8-bit register occupies a slot like a 16-bit register. */
      c->d = widths[i] == 1 ? 2 : widths[i];
      c->a = widths[k] == 1 ? 2 : widths[k];
      run(c, 128);
    }
  }
}

static void run_row(kiln__cpu_op op)
{
  enum { MOST = 40 };
  char opcode[200];
  const size_t total = cpu_row_opcode(op, 0, opcode, sizeof opcode);
  const size_t step = total > MOST ? total / MOST | 1 : 1;

  for (size_t k = 0; k < total; k += step) {
    cpu_case c;

    cpu_row_opcode(op, k, opcode, sizeof opcode);
    cpu_case_init(&c, opcode);
    ref_parse(opcode);
    run(&c, 600);
    if (reference_of() == ref_cvt && strstr(opcode, "tf32") == NULL)
      run_widths(&c);
  }
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
    run_row(mine[i]);
}
END_TEST

/* ---- Exhaustive tests ---------------------------------------------------- */

static void check_values(const char *opcode, const cpu_lane *lanes, size_t n)
{
  cpu_case c;

  cpu_case_init(&c, opcode);
  ref_parse(opcode);
  cpu_case_check(&c, lanes, n, reference_of());
}

static const char *const from_16[] = {
    "cvt.f32.f16",      "cvt.f64.f16",      "cvt.rni.s32.f16",
    "cvt.rzi.u8.f16",   "cvt.rpi.s16.f16",  "cvt.rmi.u64.f16",
    "cvt.rni.f16.f16",  "cvt.sat.f16.f16",  "cvt.f32.bf16",
    "cvt.ftz.f32.bf16", "cvt.rzi.s32.bf16", "cvt.rz.f16.bf16",
    "cvt.rp.bf16.f16",  "cvt.f64.bf16",     "cvt.rpi.bf16.bf16",
    "cvt.rn.bf16.f16",  "cvt.rn.f16.bf16",  "cvt.rn.f16x2.e5m2x2",
    "cvt.rn.f16.s16",   "cvt.rm.bf16.u16",  "cvt.rn.relu.f16x2.e4m3x2"};

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

/* Creates the value of each result, the midpoints between consecutive results,
 * and the values next to these midpoints. */
static size_t boundaries(const char *type, uint64_t stride, cpu_lane *lanes)
{
  size_t n = 0;

  for (uint64_t k = 0; k < 65536; k += stride) {
    const long double x = ref_decode(type, k, false);
    const long double y = ref_decode(type, k + ((k & 0x7fff) != 0x7fff), false);
    /* The value above the largest result is also tested, because overflow
     * begins there. */
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
  for (int i = 0; i < N_MINE; i++) {
    char opcode[200];

    cpu_row_opcode(mine[i], 0, opcode, sizeof opcode);
    ck_assert_msg(cpu_seen(mine[i]), "%s was not run", opcode);
  }
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
  /* This test has to run last. */
  tcase_add_test(t, every_row_was_run);
  return kiln_test_run(s);
}
