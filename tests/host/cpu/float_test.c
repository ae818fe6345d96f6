/* float_test.c -- tests f32 and f64 handlers against a reference that computes
 * floating-point results with integers. */
#include "cpu_soft.h"

#include <fenv.h>
#include <stdio.h>

static const soft_row rows[] = {
#define KILN__OP SOFT_ROW
#include "cpu/code/ops/float.def"
#undef KILN__OP
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* The name of the operation that the reference computes. It comes from the
 * opcode, so it does not depend on the names of handlers. */
static char what[16];
static const soft_format *narrow, *wide;
static bool pairs, three;

/* ---- References ---------------------------------------------------------- */

static void arithmetic(cpu_lane *l)
{
  if (!pairs) {
    l->d = soft_arithmetic(l->in, what, narrow, wide, l->a, l->b, l->c);
    return;
  }
  l->d = soft_arithmetic(l->in, what, wide, wide, (uint32_t)l->a,
                         (uint32_t)l->b, (uint32_t)l->c) |
         soft_arithmetic(l->in, what, wide, wide, l->a >> 32, l->b >> 32,
                         l->c >> 32)
             << 32;
}

static void sign(cpu_lane *l)
{
  l->d = soft_signed(l->in, what, wide, l->a);
}

static void copy_sign(cpu_lane *l)
{
  l->d = (l->b | soft_sign(wide)) ^ (soft_sign(wide) & ~l->a);
}

static bool magnitudes;

static void extreme(cpu_lane *l)
{
  l->d = soft_extreme(l->in, what, wide, magnitudes, l->a, l->b);
  if (three)
    l->d = soft_extreme(l->in, what, wide, magnitudes, l->d, l->c);
}

static void kind(cpu_lane *l)
{
  const soft x = soft_from(wide, l->a);
  const bool subnormal = soft_is_subnormal(wide, l->a);
  const bool is[] = {false,
                     x.kind == SOFT_FINITE,
                     x.kind == SOFT_INFINITE,
                     x.kind != SOFT_NAN,
                     x.kind == SOFT_NAN,
                     x.kind == SOFT_FINITE && !subnormal,
                     subnormal};

  if (l->in->sub == 0 || l->in->sub >= sizeof is / sizeof *is)
    ck_abort_msg("testp of kind %d", l->in->sub);
  l->d = is[l->in->sub];
}

/* ---- Every opcode of every row of ops.def -------------------------------- */

static cpu_reference *reference_of(const char *opcode)
{
  static const struct {
    const char *what;
    cpu_reference *reference;
  } list[] = {{"add", arithmetic}, {"sub", arithmetic},     {"mul", arithmetic},
              {"fma", arithmetic}, {"mad", arithmetic},     {"div", arithmetic},
              {"rcp", arithmetic}, {"sqrt", arithmetic},    {"neg", sign},
              {"abs", sign},       {"copysign", copy_sign}, {"min", extreme},
              {"max", extreme},    {"testp", kind}};

  if (strstr(opcode, ".approx") != NULL || strstr(opcode, ".full") != NULL)
    return NULL; /* approx_test.c tests the approximate opcodes. */
  soft_mnemonic(opcode, what);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (strcmp(list[i].what, what) == 0)
      return list[i].reference;
  }
  ck_abort_msg("%s has no reference", opcode);
}

static kiln__cpu_ptx_type type_of(const char *operand)
{
  return strcmp(operand, "f16") == 0    ? KILN__F16
         : strcmp(operand, "bf16") == 0 ? KILN__BF16
         : strcmp(operand, "f64") == 0  ? KILN__F64
         : strcmp(operand, "b64") == 0  ? KILN__F32X2
                                        : KILN__F32;
}

/* Determines the source types of an opcode from the operand column of its
 * row. */
static void types_of(const soft_row *row, const char *opcode,
                     kiln__cpu_ptx_type types[3])
{
  char text[64];
  char *save = NULL, *part;
  int n = -1;

  types[0] = types[1] = types[2] = KILN__NONE;
  snprintf(text, sizeof text, "%s", row->operands);
  for (part = strtok_r(text, " ", &save); part != NULL;
       part = strtok_r(NULL, " ", &save), n++) {
    part += strspn(part, "=%");
    if (n >= 0)
      types[n] =
          type_of(strcmp(part, "$1") == 0 ? strrchr(opcode, '.') + 1 : part);
  }
}

static void run_opcode(const soft_row *row, const char *opcode)
{
  cpu_reference *const reference = reference_of(opcode);
  const bool plain =
      strchr(row->pattern, '(') == NULL ||
      (strstr(opcode, ".r") == NULL && strstr(opcode, "tz") == NULL &&
       strstr(opcode, ".sat") == NULL);
  kiln__cpu_ptx_type types[3];
  cpu_lane *lanes;
  cpu_case c;
  size_t n;

  if (reference == NULL)
    return;
  types_of(row, opcode, types);
  cpu_case_init(&c, opcode);
  c.in.op = (uint16_t)row->op;
  wide = types[0] == KILN__F64 ? &soft_f64 : &soft_f32;
  narrow = types[0] == KILN__F32X2 ? &soft_f32 : soft_format_of(types[0]);
  pairs = types[0] == KILN__F32X2;
  magnitudes = strstr(opcode, ".abs") != NULL;
  three = reference == extreme && types[2] != KILN__NONE;
  if (three)
    /* The opcode also exists with three sources, which the test selects. */
    c.c = 4;
  lanes = soft_lanes(types[0], types[1], types[2], plain ? 100000 : 6000, &n);
  cpu_case_check(&c, lanes, n, reference);
  free(lanes);
}

START_TEST(row_is_as_computed_with_integers)
{
  char opcode[96];

  ck_assert_uint_gt(
      soft_expand(&rows[_i], rows[_i].pattern, opcode, 0, run_opcode), 0);
}
END_TEST

/* A handler must not change the rounding mode of its caller. */
START_TEST(rounding_mode_of_the_caller_stays)
{
  static const char *const opcodes[] = {"add.rp.f64", "fma.rz.f64",
                                        "sqrt.rm.f64", "div.rp.f32"};
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                              FE_TOWARDZERO};
  const unsigned n_isas = cpu_isas_find();

  for (unsigned k = 0; k < n_isas; k++) {
    const cpu_lane in[KILN__WARP] = {{0}};
    cpu_lane out[KILN__WARP];
    int after;
    cpu_case c;

    cpu_case_init(&c, opcodes[_i]);
    for (unsigned m = 0; m < sizeof modes / sizeof *modes; m++) {
      fesetround(modes[m]);
      cpu_case_run(&c, cpu_isas[k], in, UINT32_MAX, CPU_ALIAS_NONE, out);
      after = fegetround();
      fesetround(FE_TONEAREST);
      ck_assert_int_eq(after, modes[m]);
    }
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_float");
  TCase *t = kiln_test_case(s, "rows", 0, NULL, NULL, TESTS(NULL));

  tcase_add_loop_test(t, row_is_as_computed_with_integers, 0, N_ROWS);
  tcase_add_loop_test(t, rounding_mode_of_the_caller_stays, 0, 4);
  return kiln_test_run(s);
}
