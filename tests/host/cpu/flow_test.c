/* flow_test.c -- tests the analysis of control flow and the assignment of
 * registers to slots. The joins of branches are compared with a simple search
 * for paths. A program with slots is compared with a machine that gives every
 * register its own storage. */
#include "support.h"

#include "cpu/code/code_build.h"

#include <stdlib.h>
#include <string.h>

static const char head[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
static kiln_allocator heap;
static kiln__cpu_ptx_module *arena;
static kiln__cpu_matcher matcher;

static void setup(void)
{
  kiln__allocator_default(&heap);
  ck_kiln_ok(kiln__cpu_ptx_parse(&arena, &heap, head, sizeof head - 1));
  ck_kiln_ok(kiln__cpu_matcher_init(&matcher, arena));
}

static void teardown(void)
{
  kiln__cpu_ptx_free(arena);
}

static unsigned below(uint64_t *random, unsigned n)
{
  return (unsigned)(test_random(random) >> 33) % n;
}

static kiln__cpu_insn make(kiln__cpu_op op)
{
  return (kiln__cpu_insn){.op = (uint16_t)op,
                          .kind = matcher.rows[op].kind,
                          .klass = matcher.rows[op].klass,
                          .d = -1,
                          .d2 = -1,
                          .a = -1,
                          .b = -1,
                          .c = -1,
                          .e = -1,
                          .guard = -1,
                          .join = UINT32_MAX};
}

/* ---- Joins --------------------------------------------------------------- */

enum { MOST = 24 };

/* A control-flow graph whose blocks have one instruction each. */
typedef struct graph {
  kiln__cpu_insn insns[MOST];
  kiln__cpu_place places[MOST];
  uint32_t n;
} graph;

static graph random_graph(uint64_t *random)
{
  graph g = {.n = 3 + below(random, MOST - 3)};

  for (uint32_t i = 0; i < g.n; i++) {
    const unsigned kind = below(random, 12);

    g.insns[i] = make(KILN__OP_add_b32);
    if (kind < 6) {
      g.insns[i] = make(KILN__OP_bra);
      g.insns[i].target = below(random, g.n);
      g.insns[i].guard = kind < 5 ? 0 : -1;
    } else if (kind == 6) {
      g.insns[i] = make(KILN__OP_exit);
      g.insns[i].guard = below(random, 2) == 0 ? 0 : -1;
    } else if (kind == 7 && below(random, 2) == 0) {
      g.insns[i] = make(KILN__OP_trap);
    }
  }
  g.insns[g.n - 1] = make(KILN__OP_exit);
  return g;
}

/* Finds the successors of instruction i. UINT32_MAX means that there is no
 * successor. */
static void next_of(const graph *g, uint32_t i, uint32_t next[2])
{
  const kiln__cpu_insn *in = &g->insns[i];
  const bool through = in->guard >= 0 || in->kind == KILN__KIND_SIMPLE;

  next[0] = in->kind == KILN__KIND_BRANCH ? in->target : UINT32_MAX;
  next[1] = through && i + 1 < g->n ? i + 1 : UINT32_MAX;
}

/* Returns true if a path leads from `from` to an instruction of the given kind
 * without passing `without`. */
static bool reaches(const graph *g, uint32_t from, uint32_t without,
                    kiln__cpu_kind end)
{
  bool seen[MOST] = {false};
  uint32_t stack[2 * MOST + 1], n = 0;

  if (from == without)
    return false;
  stack[n++] = from;
  while (n > 0) {
    const uint32_t at = stack[--n];
    uint32_t next[2];

    if (seen[at])
      continue;
    seen[at] = true;
    if (g->insns[at].kind == end && g->insns[at].guard < 0)
      return true;
    next_of(g, at, next);
    for (int k = 0; k < 2; k++) {
      if (next[k] != UINT32_MAX && next[k] != without)
        stack[n++] = next[k];
    }
  }
  return false;
}

/* Returns the first instruction that all paths from `branch` to an exit
 * contain. */
static uint32_t join_of(const graph *g, uint32_t branch)
{
  for (uint32_t x = 0; x < g->n; x++) {
    bool nearest = true;

    if (x == branch || reaches(g, branch, x, KILN__KIND_EXIT))
      continue;
    if (!reaches(g, x, UINT32_MAX, KILN__KIND_EXIT))
      continue;
    for (uint32_t y = 0; y < g->n && nearest; y++) {
      if (y != x && y != branch && reaches(g, y, UINT32_MAX, KILN__KIND_EXIT) &&
          !reaches(g, branch, y, KILN__KIND_EXIT))
        /* Every path from x to an exit contains y. */
        nearest = !reaches(g, x, y, KILN__KIND_EXIT);
    }
    if (nearest)
      return x;
  }
  return UINT32_MAX;
}

static uint32_t first_of_block(const kiln__cpu_blocks *b, uint32_t insn)
{
  for (uint32_t i = 0; i < b->n; i++) {
    if (insn >= b->first[i] && insn < b->first[i + 1])
      return b->first[i];
  }
  return UINT32_MAX;
}

/* Checks the nesting depths of instructions. Instructions between a branch and
 * its join must be deeper than the join. Instructions that cannot reach an exit
 * must be deeper than all other instructions. */
static void check_depths(const graph *g, uint32_t branch)
{
  const uint32_t join = g->insns[branch].join;
  bool seen[MOST] = {false};
  uint32_t stack[2 * MOST + 1], n = 0;

  stack[n++] = branch;
  while (n > 0) {
    const uint32_t at = stack[--n];
    uint32_t next[2];

    if (seen[at] || at == join)
      continue;
    seen[at] = true;
    ck_assert_msg(g->places[at].depth > g->places[join].depth,
                  "%u between %u and its join %u is not deeper", at, branch,
                  join);
    next_of(g, at, next);
    for (int k = 0; k < 2; k++) {
      if (next[k] != UINT32_MAX &&
          (reaches(g, next[k], UINT32_MAX, KILN__KIND_EXIT) ||
           reaches(g, next[k], UINT32_MAX, KILN__KIND_TRAP)))
        stack[n++] = next[k];
    }
  }
}

static void check_places(const graph *g)
{
  for (uint32_t i = 0; i < g->n; i++) {
    uint32_t next[2], at = i, rise = UINT32_MAX;

    for (next_of(g, at, next); next[1] != UINT32_MAX && rise == UINT32_MAX;
         next_of(g, at, next)) {
      at = next[1];
      if (g->places[at].depth < g->places[i].depth)
        rise = at;
    }
    ck_assert_uint_eq(g->places[i].rise, rise);
    if (g->insns[i].kind == KILN__KIND_BRANCH &&
        g->insns[i].join != UINT32_MAX &&
        reaches(g, i, UINT32_MAX, KILN__KIND_EXIT))
      check_depths(g, i);
  }
}

static void check_graph(graph *g)
{
  kiln__cpu_blocks b;

  ck_kiln_ok(kiln__cpu_blocks_make(&b, &heap, g->insns, g->n));
  ck_kiln_ok(kiln__cpu_flow_join(&b, &heap, g->insns, g->places));
  for (uint32_t i = 0; i < g->n; i++) {
    const kiln__cpu_insn *in = &g->insns[i];
    uint32_t want, next[2];

    if (in->kind != KILN__KIND_BRANCH)
      continue;
    next_of(g, i, next);
    if (next[0] == UINT32_MAX || next[1] == UINT32_MAX ||
        !reaches(g, i, UINT32_MAX, KILN__KIND_EXIT))
      continue;
    want = join_of(g, i);
    ck_assert_msg(in->join == want || (want != UINT32_MAX &&
                                       in->join == first_of_block(&b, want)),
                  "branch %u joins at %u, not %u", i, in->join, want);
    if (in->join != UINT32_MAX)
      ck_assert((g->insns[in->join].flags & KILN__JOIN) != 0);
  }
  check_places(g);
  kiln__cpu_blocks_free(&b, &heap);
}

START_TEST(joins_are_nearest_post_dominators)
{
  uint64_t random = 0x9e3779b97f4a7c15u;

  for (int i = 0; i < 5000; i++) {
    graph g = random_graph(&random);

    check_graph(&g);
  }
}
END_TEST

/* Analyses a program of four instructions and returns the join of its first
 * instruction. */
static uint32_t join_of_first(kiln__cpu_insn insns[4])
{
  kiln__cpu_place places[4];
  kiln__cpu_blocks b;

  ck_kiln_ok(kiln__cpu_blocks_make(&b, &heap, insns, 4));
  ck_kiln_ok(kiln__cpu_flow_join(&b, &heap, insns, places));
  kiln__cpu_blocks_free(&b, &heap);
  return insns[0].join;
}

/* Returns the join of instruction 0 in this program:
 * 0: guarded bra 3; 1: trap or bra 1; 2: add; 3: exit. */
static uint32_t join_beside(kiln__cpu_op op)
{
  kiln__cpu_insn insns[4] = {make(KILN__OP_bra), make(op),
                             make(KILN__OP_add_b32), make(KILN__OP_exit)};

  insns[0].target = 3;
  insns[0].guard = 0;
  insns[1].target = 1;
  return join_of_first(insns);
}

START_TEST(paths_that_never_end_move_no_join)
{
  ck_assert_uint_eq(join_beside(KILN__OP_add_b32), 3);
  ck_assert_uint_eq(join_beside(KILN__OP_trap), 3);
  ck_assert_uint_eq(join_beside(KILN__OP_bra), 3);
}
END_TEST

START_TEST(branches_within_endless_loops_join)
{
  /* The program is 0: @p bra 2; 1: add; 2: bra 0; 3: exit. The exit is
   * unreachable. */
  kiln__cpu_insn insns[4] = {make(KILN__OP_bra), make(KILN__OP_add_b32),
                             make(KILN__OP_bra), make(KILN__OP_exit)};

  insns[0].target = 2;
  insns[0].guard = 0;
  insns[2].target = 0;
  ck_assert_uint_eq(join_of_first(insns), 2);
}
END_TEST

/* ---- Register slots ------------------------------------------------------ */

enum { LENGTH = 60, REGISTERS = 24, STEPS = 400 };

/* A random function: its instructions with registers, and with the slots that
 * were assigned to the registers. */
typedef struct function {
  kiln__cpu_insn before[LENGTH], after[LENGTH];
  int32_t vec[LENGTH][4], kept[LENGTH][4];
  uint8_t widths[REGISTERS];
  uint32_t n, frame;
} function;

/* Returns a random register with the requested width. */
static int32_t pick(uint64_t *random, const function *f, uint8_t width)
{
  int32_t r;

  do
    r = (int32_t)below(random, REGISTERS);
  while (f->widths[r] != width);
  return r;
}

static void random_insn(uint64_t *random, function *f, uint32_t i)
{
  kiln__cpu_insn *in = &f->before[i];

  switch (below(random, 9)) {
  case 0:
  case 1:
    *in = make(KILN__OP_bra);
    in->target = below(random, f->n);
    in->guard = pick(random, f, 4);
    return;
  case 2:
    *in = make(KILN__OP_mul_wide_u32);
    in->d = pick(random, f, 8);
    in->a = pick(random, f, 4);
    in->b = pick(random, f, 4);
    break;
  case 3:
    *in = make(KILN__OP_shfl_sync);
    in->d = pick(random, f, 4);
    in->d2 = pick(random, f, 4);
    in->a = pick(random, f, 4);
    in->b = pick(random, f, 4);
    in->c = pick(random, f, 4);
    in->e = pick(random, f, 4);
    if (in->d2 == in->d)
      in->d2 = -1;
    break;
  case 4:
    *in = make(KILN__OP_mov_unpack);
    in->a = pick(random, f, 8);
    in->n_vec = 2;
    in->vec = f->vec[i];
    f->vec[i][0] = pick(random, f, 4);
    do
      f->vec[i][1] = pick(random, f, 4);
    while (f->vec[i][1] == f->vec[i][0]);
    break;
  case 5:
    *in = make(KILN__OP_mov_pack);
    in->d = pick(random, f, 8);
    in->n_vec = 2;
    in->vec = f->vec[i];
    f->vec[i][0] = pick(random, f, 4);
    f->vec[i][1] = pick(random, f, 4);
    break;
  default:
    *in = make(KILN__OP_add_b32);
    in->d = pick(random, f, 4);
    in->a = pick(random, f, 4);
    in->b = pick(random, f, 4);
    break;
  }
  if (below(random, 6) == 0)
    in->guard = pick(random, f, 4);
}

/* Assigns slots to the registers of a function. */
static void assign_slots(kiln__cpu_insn *insns, uint32_t n,
                         const uint8_t *widths, uint32_t n_regs,
                         kiln__cpu_const *consts, uint32_t n_consts,
                         uint32_t *frame, uint32_t *pressure)
{
  kiln__cpu_blocks b;

  ck_kiln_ok(kiln__cpu_blocks_make(&b, &heap, insns, n));
  ck_kiln_ok(kiln__cpu_slots_assign(&heap, matcher.rows, &b, insns, n, widths,
                                    n_regs, consts, n_consts, frame, pressure));
  kiln__cpu_blocks_free(&b, &heap);
}

static void random_function(uint64_t *random, function *f)
{
  uint32_t pressure;

  memset(f, 0, sizeof *f);
  f->n = 8 + below(random, LENGTH - 8);
  for (int r = 0; r < REGISTERS; r++)
    f->widths[r] = r < 2 ? (uint8_t)(4 + 4 * r) : below(random, 3) == 0 ? 8 : 4;
  for (uint32_t i = 0; i + 1 < f->n; i++)
    random_insn(random, f, i);
  f->before[f->n - 1] = make(KILN__OP_exit);
  memcpy(f->after, f->before, sizeof f->after);
  memcpy(f->kept, f->vec, sizeof f->kept);
  assign_slots(f->after, f->n, f->widths, REGISTERS, NULL, 0, &f->frame,
               &pressure);
}

/* Lists the registers and the slots of the operands of instruction i. */
static uint32_t operands(const function *f, uint32_t i, int32_t regs[16],
                         int32_t slots[16], uint32_t *n_reads)
{
  kiln__cpu_insn before = f->before[i], after = f->after[i];
  kiln__cpu_touched x = {0}, y = {0};
  uint32_t n;

  before.vec = f->kept[i];
  after.vec = f->vec[i];
  ck_kiln_ok(kiln__cpu_touch(&x, &heap, &matcher.rows[before.op], &before));
  ck_kiln_ok(kiln__cpu_touch(&y, &heap, &matcher.rows[after.op], &after));
  ck_assert_uint_eq(x.n, y.n);
  ck_assert_uint_le(x.n, 16);
  n = x.n;
  *n_reads = x.n_reads;
  for (uint32_t k = 0; k < n; k++) {
    regs[k] = *x.at[k];
    slots[k] = *y.at[k];
  }
  kiln__free(&heap, x.at);
  kiln__free(&heap, y.at);
  return n;
}

/* Executes a random path through the function. A read from a slot must return
 * the last value that was written to the register. The test uses the storage of
 * one lane. */
static void walk(uint64_t *random, const function *f)
{
  uint64_t value[REGISTERS] = {0}, written[REGISTERS] = {0}, next = 1;
  uint64_t *frame = calloc(f->frame / 4 + 2, sizeof *frame);
  uint32_t at = 0;

  ck_assert_ptr_nonnull(frame);
  for (int step = 0; step < STEPS && at < f->n; step++) {
    const kiln__cpu_insn *in = &f->before[at];
    const bool skip = in->guard >= 0 && below(random, 2) == 0;
    int32_t regs[16], slots[16];
    uint32_t n_reads;
    const uint32_t n = operands(f, at, regs, slots, &n_reads);

    for (uint32_t k = 0; k < n_reads; k++) {
      if (written[regs[k]])
        ck_assert_uint_eq(frame[slots[k] / 128], value[regs[k]]);
    }
    for (uint32_t k = n_reads; k < n && !skip; k++) {
      value[regs[k]] = next;
      written[regs[k]] = 1;
      frame[slots[k] / 128] = next;
      if (f->widths[regs[k]] == 8)
        frame[slots[k] / 128 + 1] = ~next;
      next++;
    }
    if (in->kind == KILN__KIND_EXIT)
      break;
    at = in->kind == KILN__KIND_BRANCH && !skip ? in->target : at + 1;
  }
  free(frame);
}

/* If an instruction does not work lane by lane, its results must not overlap
 * its source operands. */
static void check_overlap(const function *f)
{
  for (uint32_t i = 0; i < f->n; i++) {
    const bool simple = f->before[i].op == KILN__OP_add_b32;
    int32_t regs[16], slots[16];
    uint32_t n_reads;
    const uint32_t n = operands(f, i, regs, slots, &n_reads);

    for (uint32_t k = 0; k < n; k++) {
      ck_assert_int_eq(slots[k] % 128, 0);
      ck_assert_int_ge(slots[k], 0);
      ck_assert_int_le(slots[k] + (f->widths[regs[k]] == 8 ? 256 : 128),
                       (int)f->frame);
      for (uint32_t m = n_reads; m < n; m++) {
        if (regs[m] != regs[k] && !(simple && k < n_reads))
          ck_assert_int_ne(slots[m], slots[k]);
      }
    }
  }
}

START_TEST(slots_keep_what_registers_held)
{
  static function f;
  uint64_t random = 77;

  for (int i = 0; i < 800; i++) {
    random_function(&random, &f);
    check_overlap(&f);
    for (int k = 0; k < 4; k++)
      walk(&random, &f);
  }
}
END_TEST

START_TEST(dead_values_give_their_slots_back)
{
  enum { N = 1000 };
  static kiln__cpu_insn insns[N + 1];
  static uint8_t widths[N + 1];
  uint32_t frame, pressure;

  memset(widths, 4, sizeof widths);
  for (int i = 0; i < N; i++) {
    insns[i] = make(KILN__OP_add_b32);
    insns[i].d = i + 1;
    insns[i].a = i;
    insns[i].b = i;
  }
  insns[N] = make(KILN__OP_exit);
  assign_slots(insns, N + 1, widths, N + 1, NULL, 0, &frame, &pressure);
  ck_assert_uint_eq(frame, 128);
  ck_assert_uint_eq(pressure, 1);
}
END_TEST

START_TEST(constants_have_slots_of_their_own)
{
  kiln__cpu_insn insns[3] = {make(KILN__OP_add_b32), make(KILN__OP_add_b32),
                             make(KILN__OP_exit)};
  kiln__cpu_const consts[2] = {{.bytes = 4, .value = 1},
                               {.bytes = 8, .value = 2}};
  const uint8_t widths[2] = {4, 4};
  uint32_t frame, pressure;

  insns[0].d = 0;
  insns[0].a = KILN__IS_CONST;
  insns[0].b = KILN__IS_CONST | 1;
  insns[1].d = 1;
  insns[1].a = 0;
  insns[1].b = KILN__IS_CONST;
  assign_slots(insns, 3, widths, 2, consts, 2, &frame, &pressure);
  ck_assert_uint_eq(frame, 128 + 128 + 256);
  ck_assert_int_eq(insns[0].a, consts[0].slot);
  ck_assert_int_eq(insns[0].b, consts[1].slot);
  ck_assert_int_eq(insns[1].b, consts[0].slot);
  ck_assert_int_ne(insns[0].d, consts[0].slot);
  ck_assert_int_ne(insns[0].d, consts[1].slot);
  ck_assert_int_eq(consts[1].slot % 64, 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_flow");

  kiln_test_case(s, "flow and slots", 120, setup, teardown,
                 TESTS(joins_are_nearest_post_dominators,
                       paths_that_never_end_move_no_join,
                       branches_within_endless_loops_join,
                       slots_keep_what_registers_held,
                       dead_values_give_their_slots_back,
                       constants_have_slots_of_their_own));
  return kiln_test_run(s);
}
