/* integer_test.c -- tests moves, comparisons and integer instructions: every
 * row of move.def and integer.def, for every instruction set that the CPU
 * device is built for. The references follow the PTX ISA bit by bit. */
#include "cpu_integer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Every row ----------------------------------------------------------- */

/* Returns a type with suitable edge values for an operand of `bytes` bytes. The
 * result is a float type if the last type in the opcode is a float type. */
static kiln__cpu_ptx_type edges_for(uint8_t bytes, const char *type)
{
  const kiln__cpu_ptx_type own = ref_type(type);

  switch (bytes) {
  case 0:
    return KILN__NONE;
  case 1:
    return KILN__PRED;
  case 2:
    return own == KILN__F16 || own == KILN__BF16 ? own : KILN__B16;
  case 8:
    return own == KILN__F64 ? own : KILN__B64;
  default:
    return own == KILN__F32 || own == KILN__F16X2 || own == KILN__BF16X2
               ? own
               : KILN__B32;
  }
}

static void run(cpu_case *c)
{
  const char *const type = ref_is("prmt") ? "b32" : ref_last(0);
  cpu_lane *lanes;
  size_t n;

  lanes = cpu_lanes_make(c, edges_for(c->a, type), edges_for(c->b, type),
                         edges_for(c->c, type), 256, &n);
  /* Makes some counts and positions small, and some operands equal. Shifts and
   * comparisons are most likely to fail for these values. */
  for (size_t i = 0; i < n; i += 3) {
    lanes[i].c %= i % 2 == 0 ? 70 : 1000000;
    lanes[i].e %= 70;
  }
  for (size_t i = n - 200; i < n; i += 5)
    lanes[i].b = lanes[i].a;
  for (size_t i = n - 199; i < n; i += 5)
    lanes[i].b %= 80;
  cpu_case_check(c, lanes, n, ref_integer());
  free(lanes);
}

/* Tests the optional operands: predicates that are negated or absent, and
 * results that are discarded with `_`. */
static void run_forms(cpu_case *c, size_t k)
{
  const uint8_t d = c->d, d2 = c->d2, pred = c->c;

  /* The immediate is the truth table of lop3. */
  c->in.imm = (int64_t)(0x96 + 0x1d * k);
  if (strstr(c->opcode, "setp") != NULL || strstr(c->opcode, "set.") != NULL) {
    if (!ref_has("and") && !ref_has("or") && !ref_has("xor"))
      c->c = 0;
  }
  run(c);
  if (c->c == 1 || c->e == 1 || strstr(c->opcode, "mov.pred") != NULL) {
    c->in.flags |= KILN__NEGATE_B;
    run(c);
  }
  if (d2 == 1) {
    if (strstr(c->opcode, "lop3") == NULL) {
      c->d2 = 0;
      run(c);
    }
    c->d2 = 1;
    if (k % 4 == 0) {
      c->d = 0;
      run(c);
    }
  }
  c->d = d;
  c->c = pred;
}

static bool special(kiln__cpu_op op)
{
  return op == KILN__OP_mov_pack || op == KILN__OP_mov_unpack ||
         op == KILN__OP_mov_local || op == KILN__OP_mov_clock;
}

static const kiln__cpu_op mine[] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  KILN__OP_##name,
#include "cpu/code/ops/integer.def"
#include "cpu/code/ops/move.def"
#undef KILN__OP
};
enum { N_MINE = sizeof mine / sizeof *mine };

START_TEST(rows_follow_the_reference)
{
  for (int i = _i; i < N_MINE; i += 8) {
    if (!special(mine[i]))
      ref_run_row(mine[i], 30, run_forms);
  }
}
END_TEST

/* Tests every truth table on random words. */
START_TEST(all_tables_of_lop3)
{
  cpu_case c;

  cpu_case_init(&c, "lop3 lop3.b32");
  ref_parse(c.opcode);
  for (c.in.imm = 0; c.in.imm < 256; c.in.imm++) {
    cpu_lane lanes[KILN__WARP] = {{0}};
    uint64_t seed = (uint64_t)c.in.imm + 1;

    for (int i = 0; i < KILN__WARP; i++) {
      lanes[i].a = test_random(&seed);
      lanes[i].b = test_random(&seed);
      lanes[i].c = test_random(&seed);
    }
    cpu_case_check(&c, lanes, KILN__WARP, ref_lop3);
  }
}
END_TEST

/* Tests quotients that are close to integers. An inexact division would give
 * wrong results for them. */
START_TEST(divisions_near_whole_quotients)
{
  static const char *const opcodes[] = {"div.u32", "rem.u32", "div.s32",
                                        "rem.s32"};
  enum { N = 60000 };
  cpu_lane *lanes = calloc(N, sizeof *lanes);
  uint64_t seed = 77;

  ck_assert_ptr_nonnull(lanes);
  for (size_t i = 0; i < N; i++) {
    const uint32_t b =
        (uint32_t)(test_random(&seed) >> (test_random(&seed) % 32));
    const uint32_t q = (uint32_t)(test_random(&seed) >> 32) / (b | 1);

    lanes[i].b = b;
    lanes[i].a = (uint32_t)(b * q + (uint32_t)(i % 3) - 1);
  }
  for (size_t k = 0; k < 4; k++) {
    cpu_case c;

    cpu_case_init(&c, opcodes[k]);
    ref_parse(opcodes[k]);
    cpu_case_check(&c, lanes, N, ref_integer());
  }
  free(lanes);
}
END_TEST

/* ---- Packing, unpacking, addresses, clocks ------------------------------- */

static void ref_pack(cpu_lane *l)
{
  l->d = 0;
  for (unsigned k = 0; k < l->in->n_vec; k++)
    l->d |= (l->vec[k] & ref_ones(l->in->bytes * 8)) << k * l->in->bytes * 8;
}

static void ref_unpack(cpu_lane *l)
{
  for (unsigned k = 0; k < l->in->n_vec; k++)
    l->vec[k] = l->a >> k * l->in->bytes * 8 & ref_ones(l->in->bytes * 8);
}

static const struct shape {
  const char *type;
  uint8_t bytes, n;
} shapes[] = {
    {"b16", 1, 2}, {"b32", 2, 2}, {"b32", 1, 4}, {"b64", 4, 2}, {"b64", 2, 4}};

static void random_lanes(cpu_lane *lanes, size_t n)
{
  uint64_t seed = 4711;

  for (size_t i = 0; i < n; i++) {
    lanes[i] = (cpu_lane){.a = test_random(&seed), .d = test_random(&seed)};
    for (int k = 0; k < CPU_MAX_VEC; k++)
      lanes[i].vec[k] = test_random(&seed);
  }
}

START_TEST(pack_and_unpack)
{
  const struct shape *const s = &shapes[_i];
  cpu_lane lanes[320];
  char opcode[32];
  cpu_case c;

  random_lanes(lanes, 320);
  snprintf(opcode, sizeof opcode, "mov_pack mov.%s", s->type);
  cpu_case_init(&c, opcode);
  /* If the elements have 8 bits, the upper bits of their registers are
   * arbitrary. */
  c.vec = s->bytes == 1 ? 4 : s->bytes;
  c.n_vec = s->n;
  c.in.bytes = s->bytes;
  c.in.n_vec = s->n;
  cpu_case_check(&c, lanes, 320, ref_pack);

  snprintf(opcode, sizeof opcode, "mov_unpack mov.%s", s->type);
  for (unsigned sinks = 0; sinks < 1u << s->n; sinks++) {
    cpu_case_init(&c, opcode);
    c.vec = s->bytes < 4 ? 2 : 4;
    c.n_vec = s->n;
    c.vec_written = true;
    c.vec_sinks = (uint8_t)sinks;
    c.in.bytes = s->bytes;
    c.in.n_vec = s->n;
    cpu_case_check(&c, lanes, 320, ref_unpack);
  }
}
END_TEST

static void at_1000(kiln__cpu_warp *w, void *user)
{
  (void)user;
  w->local_at = 1000;
}

static void ref_local(cpu_lane *l)
{
  l->d = 1000 + (uint64_t)l->in->imm;
}

START_TEST(addresses_of_local_variables)
{
  cpu_lane lanes[KILN__WARP] = {{0}};
  cpu_case c;

  cpu_case_init(&c, "mov_local @mov.local");
  c.prepare = at_1000;
  c.in.imm = 24;
  for (c.d = 4; c.d <= 8; c.d = (uint8_t)(c.d + 4)) {
    c.in.type = c.d == 8 ? KILN__B64 : KILN__B32;
    cpu_case_check(&c, lanes, KILN__WARP, ref_local);
  }
}
END_TEST

static uint64_t clock_now(uint8_t which, uint8_t bytes)
{
  cpu_lane lanes[KILN__WARP] = {{0}}, out[KILN__WARP];
  cpu_case c;

  cpu_case_init(&c, "mov_clock @mov.clock");
  c.d = bytes;
  c.in.type = bytes == 8 ? KILN__B64 : KILN__B32;
  c.in.sub = which;
  ck_assert(
      cpu_case_run(&c, cpu_isas[0], lanes, 0xff00ff0f, CPU_ALIAS_NONE, out));
  for (int i = 1; i < 4; i++)
    ck_assert_uint_eq(out[i].d, out[0].d);
  return out[0].d;
}

START_TEST(clocks_go_forward)
{
  cpu_isas_find();
  for (uint8_t k = 0; k < 3; k++) {
    /* Clock number 2 is clock64, and clock number 3 is globaltimer. */
    const uint8_t first = k < 2 ? 2 : 3;
    const uint64_t before = clock_now(first, 8);
    uint64_t after;

    do
      after = clock_now(first, 8);
    while (after == before);
    ck_assert_uint_gt(after, before);
    ck_assert_uint_lt(after - before, 10000000000);
  }
  /* A clock that returns half of a value must agree with the clock that returns
   * the whole value. The difference must be less than 4 seconds, unless the low
   * half has wrapped. */
  ck_assert_uint_le(clock_now(1, 4) - (clock_now(2, 8) >> 32) + 1, 1);
  ck_assert_uint_le(clock_now(5, 4) - (clock_now(3, 8) >> 32) + 1, 1);
  ck_assert_uint_lt((uint32_t)(clock_now(0, 4) - (uint32_t)clock_now(2, 8)) +
                        4000000000u,
                    4000000001u);
  ck_assert_uint_lt((uint32_t)(clock_now(4, 4) - (uint32_t)clock_now(3, 8)) +
                        4000000000u,
                    4000000001u);
}
END_TEST

START_TEST(every_row_was_run)
{
  ref_rows_were_run(mine, N_MINE);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu integer");
  TCase *t;

  cpu_seen_init();
  t = kiln_test_case(s, "integer", 300, NULL, NULL,
                     TESTS(all_tables_of_lop3, divisions_near_whole_quotients,
                           addresses_of_local_variables, clocks_go_forward));
  tcase_add_loop_test(t, rows_follow_the_reference, 0, 8);
  tcase_add_loop_test(t, pack_and_unpack, 0, ROWS(shapes));
  /* This test checks the coverage of the other tests, so it runs last. */
  tcase_add_test(t, every_row_was_run);
  return kiln_test_run(s);
}
