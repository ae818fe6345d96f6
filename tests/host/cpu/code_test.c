/* code_test.c -- tests the translation of PTX to code. The tests cover the rows
 * of ops.def and their pattern language, memory layout, calls and linking. For
 * each check there is a correct and an incorrect statement. A statement must be
 * accepted if and only if ptxas accepts it. */
#include "cpu_statements.h"
#include "support.h"

#include "cpu/code/code_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static test_allocator memory;
static kiln__cpu_program *program;

static void setup(void)
{
  test_allocator_init(&memory);
  program = NULL;
}

static void teardown(void)
{
  kiln__cpu_program_free(program);
  ck_assert_int_eq(memory.live, 0);
}

static kiln_status load(const char *text)
{
  kiln__cpu_ptx_module *module = NULL;
  kiln_status st;

  kiln__cpu_program_free(program);
  program = NULL;
  st = kiln__cpu_ptx_parse(&module, &memory.alloc, text, strlen(text));
  return st == KILN_OK ? kiln__cpu_program_make(&program, &memory.alloc, module)
                       : st;
}

#define HEAD(version, target)                                                  \
  ".version " version "\n.target " target "\n.address_size 64\n"
#define HEAD_90 HEAD("8.0", "sm_90")

/* Loads one statement in the module that cpu_statements.c creates. */
static kiln_status load_statement(const char *statement, unsigned version,
                                  unsigned target)
{
  kiln_allocator a = {0};
  kiln__buf text;
  kiln_status st;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  statements_head(&text, version, target);
  kiln__buf_format(&text, "%s\n", statement);
  statements_tail(&text);
  ck_assert(!text.failed);
  st = load(text.data);
  kiln__buf_free(&text);
  return st;
}

static kiln_status load_90(const char *statement)
{
  return load_statement(statement, 80, 90);
}

/* Checks that a module or statement was rejected, and that the log contains
 * `words`. */
static void refused(kiln_status st, const char *words)
{
  ck_kiln_is(st, KILN_ECOMPILE);
  ck_assert_msg(strstr(kiln_last_error()->log, words) != NULL, "%s",
                kiln_last_error()->log);
}

static const kiln__cpu_code *function(const char *name)
{
  for (uint32_t i = 0; i < program->n_functions; i++) {
    if (strcmp(program->functions[i].name, name) == 0)
      return &program->functions[i];
  }
  ck_abort_msg("no function %s", name);
  return NULL;
}

/* ---- Patterns and rows of ops.def ---------------------------------------- */

static const struct {
  const char *pattern, *text;
  bool matches;
} patterns[] = {
    {"add(.rn)?.f32", "add.f32", true},
    {"add(.rn)?.f32", "add.rn.f32", true},
    {"add(.rn)?.f32", "add.rn.f3", false},
    {"add(.rn)?.f32", "add.rn.f32x2", false},
    {"add(.rn)?.f32", "add.rn.rn.f32", false},
    {"add(.rn)?.f32", "add", false},
    {"add(.rn)?.f32", "addc.f32", false},
    {"ld(.a|.b|.c)(.d)?", "ld.b", true},
    {"ld(.a|.b|.c)(.d)?", "ld.c.d", true},
    {"ld(.a|.b|.c)(.d)?", "ld.d", false},
    {"ld(.a|.b|.c)(.d)?", "ld", false},
    {"x(.a|.a.b)(.c)?.b", "x.a.b", true},
    {"x(.a|.a.b)(.c)?.b", "x.a.b.b", true},
    {"x(.a|.a.b)(.c)?.b", "x.a.b.c.b", true},
    {"s(.shared|.shared::cta).b32", "s.shared::cta.b32", true},
    {"s(.shared).b32", "s.shared::cta.b32", false},
    {"ret", "ret", true},
    {"ret", "ret.uni", false},
    {"m(.x)?(.y)?(.z)?", "m.x.z", true},
    {"m(.x)?(.y)?(.z)?", "m.z.x", false},
};

START_TEST(pattern_matches)
{
  const char *text = patterns[_i].text;

  ck_assert_msg(kiln__cpu_pattern_matches(patterns[_i].pattern, text,
                                          strlen(text)) == patterns[_i].matches,
                "%s %s", patterns[_i].pattern, text);
}
END_TEST

START_TEST(row_language)
{
  static const char *const good[] = {
      /* Valid operand columns for results and sources. */
      "", "=f32 f32 f32", "=pred|P $1 $1 !pred?", "=b32||P", "=$W $2 w #u32",
      "[*] V+ u64@e", "=V4$2 [tex:a2d:$1] {grad:a2d} {list}",
      "=u64_ [*:shared] u32>=1/90?", "=b32!|P ~b32 &u64 #u32<=15 u32*32 u32^",
      /* Valid operand columns for vectors, addresses and lists. */
      "[surf:1d:u32] V+", "[surf] {4|8} u32<=B u64!", "{unpack} $1",
      "[shared] [global] {4|8|16} !pred@c", "=%b64 %b64"};
  static const char *const bad[] = {
      /* Words that are unknown or not terminated. */
      "f33", "[space]", "{what}", "f32@d", "=f32|Q", "#", "{3}", "{4|5}",
      /* Words that are incomplete, and too many words. */
      "u32<15", "u32>=", "[tex:4d:u32]", "[*:x]", "{grad:}", "u32*", "=",
      "f32 f32 f32 f32 f32 f32 f32 f32 f32"};
  kiln__cpu_row row;

  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    ck_assert_msg(kiln__cpu_row_read(&row, good[i]), "%s", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_msg(!kiln__cpu_row_read(&row, bad[i]), "%s", bad[i]);
}
END_TEST

static bool has_op(unsigned op)
{
  const kiln__cpu_code *k = function("k");

  for (uint32_t i = 0; i < k->n_insns; i++) {
    if (k->insns[i].op == op)
      return true;
  }
  return false;
}

/* Returns a statement written by hand for an instruction that depends on other
 * statements, or that needs a target with a suffix such as sm_90a. */
static const char *statement_by_hand(unsigned op)
{
  switch (op) {
  case KILN__OP_brx:
    return "ts: .branchtargets start, end;\nbrx.idx %uw1, ts;";
  case KILN__OP_call:
    return "call dv2;";
  default:
    return NULL;
  }
}

/* Checks that every row of ops.def is reachable: at least one opcode that its
 * pattern matches must select the row. */
START_TEST(every_row_is_reachable)
{
  static const char *const others[] = {
      /* These instructions need sm_90a or sm_100a. */
      "setmaxnreg", "redux_f32", "redux_abs_f32"};
  uint64_t random = 3;

  for (unsigned op = 0; op < KILN__N_OPS; op++) {
    bool found = kiln__cpu_op_pattern[op][0] == '@';

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      found |= strcmp(kiln__cpu_op_name[op], others[i]) == 0;
    if (op == KILN__OP_call)
      continue; /* Other tests cover call instructions. */
    for (int i = 0; i < 60 && !found; i++) {
      char text[512];
      unsigned ptx = 0, sm = 0;
      const char *by_hand = statement_by_hand(op);

      if (by_hand == NULL &&
          !statement_of_row(text, sizeof text, op, &random, &ptx, &sm))
        continue;
      if (by_hand == NULL && strstr(text, ".sync") == NULL &&
          (strncmp(text, "shfl.", 5) == 0 || strncmp(text, "vote.", 5) == 0))
        ck_kiln_ok(load_statement(text, 63, 62));
      else
        ck_kiln_ok(load_statement(by_hand != NULL ? by_hand : text, 90, 120));
      found = has_op(op);
    }
    ck_assert_msg(found, "%s: \"%s\"", kiln__cpu_op_name[op],
                  kiln__cpu_op_pattern[op]);
  }
}
END_TEST

START_TEST(rows_for_suffixed_targets)
{
  ck_kiln_ok(load(HEAD(
      "8.0",
      "sm_90a") ".entry k() { setmaxnreg.inc.sync.aligned.u32 32; ret; }"));
  ck_assert(has_op(KILN__OP_setmaxnreg));
  ck_kiln_is(
      load(HEAD_90 ".entry k() { setmaxnreg.inc.sync.aligned.u32 32; ret; }"),
      KILN_ECOMPILE);
  ck_kiln_ok(load(HEAD(
      "8.6",
      "sm_100a") ".entry k() { .reg .f32 f; .reg .b32 m;"
                 "redux.sync.min.f32 f, f, m; redux.sync.max.abs.f32 f, f, m;"
                 "ret; }"));
  ck_assert(has_op(KILN__OP_redux_f32));
  ck_assert(has_op(KILN__OP_redux_abs_f32));
}
END_TEST

/* Checks that every modifier in a pattern of ops.def has a meaning or is listed
 * in this test as a modifier without effect. */
START_TEST(modifiers_are_known_or_listed)
{
  kiln__cpu_insn in = {0};

  ck_assert(kiln__cpu_modifier_apply(&in, ".f32", 4));
  ck_assert_uint_eq(in.type, KILN__F32);
  ck_assert(kiln__cpu_modifier_apply(&in, ".s32", 4));
  ck_assert_uint_eq(in.type, KILN__S32);
  ck_assert_uint_eq(in.type2, KILN__F32);
  ck_assert(kiln__cpu_modifier_apply(&in, ".ftz", 4));
  ck_assert(kiln__cpu_modifier_apply(&in, ".rz", 3));
  ck_assert(kiln__cpu_modifier_apply(&in, ".shared::cta", 12));
  ck_assert_uint_eq(in.space, KILN__SPACE_SHARED);
  ck_assert_uint_eq(in.flags, KILN__FTZ);
  ck_assert_uint_eq(in.round, KILN__ROUND_Z);
  ck_assert(!kiln__cpu_modifier_apply(&in, ".nonsense", 9));
}
END_TEST

/* ---- Checks -------------------------------------------------------------- */

/* Pairs of an accepted and a rejected statement, for PTX 8.0 and sm_90, with
 * the registers that cpu_statements.c declares. */
static const struct {
  const char *good, *bad;
} checks[] = {
    /* test cases for opcodes */
    {"add.s32 %sw1, %sw2, %sw3;", "add.s33 %sw1, %sw2, %sw3;"},
    {"add.f32 %f1, %f2, %f3;", "plus.f32 %f1, %f2, %f3;"},
    {"add.rn.ftz.f32 %f1, %f2, %f3;", "add.rn.rz.f32 %f1, %f2, %f3;"},
    {"add.f32.ftz %f1, %f2, %f3;", "add.s32.ftz %sw1, %sw2, %sw3;"},
    {"cvt.f32.rn.s32 %f1, %sw1;", "cvt.s32.rn.f32 %f1, %sw1;"},
    {"mul.lo.s32 %sw1, %sw2, 3;", "mul.s32.lo %sw1, %sw2, 3;"},
    {"ld.volatile.global.u32 %uw1, [%ud1];",
     "ld.volatile.nc.u32 %uw1, [%ud1];"},
    {"ld.global.nc.u32 %uw1, [%ud1];", "ld.nc.u32 %uw1, [%ud1];"},
    /* test cases for counts and shapes */
    {"add.s32 %sw1, %sw2, %sw3;", "add.s32 %sw1, %sw2;"},
    {"neg.s32 %sw1, %sw2;", "neg.s32 %sw1, %sw2, %sw3;"},
    {"mov.u32 %uw1, 4;", "mov.u32 4, %uw1;"},
    {"ret;", "ret %uw1;"},
    {"ld.global.u32 %uw1, [%ud1];", "ld.global.u32 %uw1, %ud1;"},
    {"st.global.u32 [%ud1], %uw1;", "st.global.u32 %uw1, [%ud1];"},
    {"setp.eq.s32 %p1|%p2, %sw1, %sw2;", "add.s32 %sw1|%p2, %sw1, %sw2;"},
    {"shfl.sync.up.b32 %bw1|%p1, %bw2, 1, 0, -1;",
     "shfl.sync.up.b32 %bw1|%bw2, %bw2, 1, 0, -1;"},
    {"shfl.sync.up.b32 %bw1, %bw2, 1, 0, -1;",
     "shfl.sync.up.b32 %bw1, %bw2, 1, 0;"},
    {"elect.sync %bw1|%p1, -1;", "elect.sync %bw1, -1;"},
    {"bar.sync 0, 64;", "bar.sync 0, 64, 32;"},
    {"setp.lt.and.s32 %p1, %sw1, %sw2, !%p2;",
     "setp.lt.and.s32 %p1, %sw1, %sw2;"},
    {"setp.lt.s32 %p1, %sw1, %sw2;", "setp.lt.s32 %p1, %sw1, %sw2, %p2;"},
    {"ld.global.v2.u32 {%uw1, %uw2}, [%ud1];",
     "ld.global.v2.u32 {%uw1}, [%ud1];"},
    {"ld.global.v2.u32 {%uw1, _}, [%ud1];", "ld.global.v2.u32 {_, _}, [%ud1];"},
    {"st.global.v2.u32 [%ud1], {%uw1, 1};",
     "st.global.v2.u32 [%ud1], {%uw1, _};"},
    {"atom.global.add.u32 _, [%ud1], 1;", "add.u32 _, %uw1, 1;"},
    {"mbarrier.test_wait.shared.b64 %p1, [%uw1], %ud1;",
     "mbarrier.test_wait.shared.b64 _, [%uw1], %ud1;"},
    {"setp.eq.f32 _, %f1, %f2;", "shfl.sync.up.b32 _, %bw2, 1, 0, -1;"},
    /* register types that do not match the instruction type */
    {"add.s32 %sw1, %uw1, %bw1;", "add.s32 %sw1, %f1, %bw1;"},
    {"add.f32 %f1, %bw1, %f2;", "add.f32 %f1, %uw1, %f2;"},
    {"and.b32 %f1, %sw1, %bw2;", "and.b32 %bw1, %bd1, %bw2;"},
    {"add.f16 %h1, %bs1, %h2;", "add.f16 %h1, %us1, %h2;"},
    {"fma.rn.bf16 %bs1, %bs1, %bs2, %bs3;",
     "fma.rn.bf16 %bs1, %h1, %bs2, %bs3;"},
    {"add.f16x2 %hh1, %bw1, %hh2;", "add.f16x2 %hh1, %uw1, %hh2;"},
    {"mov.b32 %f1, %bw1;", "mov.u32 %f1, %uw1;"},
    {"selp.b32 %bw1, %bw2, %bw3, %p1;", "selp.b32 %bw1, %bw2, %bw3, %bw1;"},
    {"and.pred %p1, %p2, !%p3;", "and.pred %p1, %p2, %bw1;"},
    {"shl.b64 %bd1, %bd2, %uw1;", "shl.b64 %bd1, %bd2, %ud1;"},
    {"mul.wide.u32 %ud1, %uw1, %uw2;", "mul.wide.u32 %uw1, %uw1, %uw2;"},
    {"add.s32 %sw1, %sw2, %sw3;", "add.s32 %sw1, -%sw2, %sw3;"},
    {"@%p1 add.s32 %sw1, %sw2, %sw3;", "@%bw1 add.s32 %sw1, %sw2, %sw3;"},
    /* registers wider than the instruction type */
    {"ld.global.u8 %uw1, [%ud1];", "ld.global.u32 %us1, [%ud1];"},
    {"ld.global.b8 %f1, [%ud1];", "ld.global.u8 %f1, [%ud1];"},
    {"ld.global.f32 %bd1, [%ud1];", "ld.global.f32 %d1, [%ud1];"},
    {"st.global.u8 [%ud1], %ud1;", "st.global.u8 [%ud1], %f1;"},
    {"cvt.u16.u32 %uw1, %ud1;", "cvt.u32.u16 %us1, %us1;"},
    {"cvt.f32.f16 %f1, %bw1;", "cvt.f32.bf16 %f1, %bw1;"},
    {"ld.global.v2.u8 {%us1, %us2}, [%ud1];",
     "ld.global.v2.u8 {%us1, %uw2}, [%ud1];"},
    /* test cases for literals */
    {"add.f32 %f1, %f2, 1.0;", "add.f32 %f1, %f2, 1;"},
    {"add.f64 %d1, %d2, 0f3F800000;", "add.s32 %sw1, %sw2, 1.0;"},
    {"mov.b32 %bw1, 0f3F800000;", "mov.b32 %bw1, 1.0;"},
    {"mov.b64 %bd1, 1.0;", "mov.b64 %bd1, 0f3F800000;"},
    {"mov.u16 %us1, 70000;", "mov.b16 %bs1, 1.0;"},
    {"and.pred %p1, %p2, 1;", "and.pred %p1, %p2, 1.0;"},
    {"lop3.b32 %bw1, %bw1, %bw2, %bw3, 255;",
     "lop3.b32 %bw1, %bw1, %bw2, %bw3, %bw1;"},
    {"bfe.u32 %uw1, %uw2, 255, 1;", "bfe.u32 %uw1, %uw2, 256, 1;"},
    {"bar.sync 15;", "bar.sync 16;"},
    {"bar.sync 0, 64;", "bar.sync 0, 33;"},
    {"bar.arrive 0, 32;", "bar.arrive 0, 0;"},
    {"pmevent 15;", "pmevent 16;"},
    {"cp.async.ca.shared.global [%uw1], [%ud1], 8;",
     "cp.async.ca.shared.global [%uw1], [%ud1], 6;"},
    {"cp.async.ca.shared.global [%uw1], [%ud1], 8, 4;",
     "cp.async.ca.shared.global [%uw1], [%ud1], 8, 9;"},
    {"mbarrier.test_wait.parity.shared.b64 %p1, [%uw1], 1;",
     "mbarrier.test_wait.parity.shared.b64 %p1, [%uw1], 2;"},
    /* test cases for special registers and names */
    {"mov.u32 %uw1, %tid.x;", "add.u32 %uw1, %tid.x, 1;"},
    {"mov.u64 %ud1, %clock64;", "mov.u32 %uw1, %clock64;"},
    {"mov.u32 %uw1, %tid.x;", "mov.f32 %f1, %tid.x;"},
    {"mov.u64 %ud1, gv;", "add.u64 %ud1, %ud2, gv;"},
    {"mov.u64 %ud1, gv+8;", "mov.u32 %uw1, gv;"},
    {"mov.u64 %ud1, lv;", "mov.u64 %ud1, cp;"},
    {"mov.u64 %ud1, dv;", "mov.f64 %d1, dv;"},
    {"cvta.global.u64 %ud1, gv;", "cvta.shared.u64 %ud1, gv;"},
    {"mov.f32 %f1, %v.x;", "mov.f32 %f1, %v;"},
    {"ld.global.v4.f32 %v, [%ud1];", "ld.global.v2.f32 %v, [%ud1];"},
    {"mov.b64 {%bw1, _}, %bd1;", "mov.b64 {%bw1, %bs1}, %bd1;"},
    {"mov.b64 %bd1, {%bw1, %bw2};", "mov.u64 %ud1, {%uw1, %uw2};"},
    /* test cases for addresses */
    {"ld.shared.u32 %uw1, [%uw2];", "ld.global.u32 %uw1, [%uw2];"},
    {"ld.global.u32 %uw1, [%ud2];", "ld.global.u32 %uw1, [%d2];"},
    {"ld.global.u32 %uw1, [gv+4];", "ld.global.u32 %uw1, [sv+4];"},
    {"ld.u32 %uw1, [sv];", "ld.u32 %uw1, [cv];"},
    {"ld.const.u32 %uw1, [cv];", "st.const.u32 [cv], %uw1;"},
    {"ld.local.u32 %uw1, [16];", "ld.global.u32 %uw1, [16];"},
    {"ld.param.u32 %uw1, [pu];", "st.param.u32 [pu], %uw1;"},
    {"st.param.b32 [cp], %bw1;", "@%p1 st.param.b32 [cp], %bw1;"},
    {"ld.param.b32 %bw1, [cp];", "ld.local.b32 %bw1, [cp];"},
    {"atom.add.u32 %uw1, [sv], 1;", "atom.add.u32 %uw1, [cv], 1;"},
    /* test cases for textures */
    {"tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f0}, [%ud1, {%f1}];",
     "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f0}, [%ud1, {%f1, %f2}];"},
    {"tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f0}, [%ud1, {%sw1, %sw2}];",
     "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f0}, [%ud1, {%f1, %f2}];"},
    {"suld.b.2d.b32.trap {%bw1}, [%ud1, {%bw1, %bw2}];",
     "suld.b.2d.b32.trap {%bw1}, [gv, {%bw1, %bw2}];"},
    /* test cases for calls and branches */
    {"bra end;", "bra nowhere;"},
    {"bra.uni start;", "bra dv;"},
    {"call (cp), dv, (cp, cq);", "call (cp), dv, (cp);"},
    {"call (cp), dv, (cp, cq);", "call dv, (cp, cq);"},
    {"call (cp), dv, (cp, cq);", "call (cq), dv, (cp, cq);"},
    {"call (cp), dv, (cp, cq);", "call (cp), dv, (cq, cp);"},
    {"call (%bw1), dv, (%bw2, 7);", "call (%f1), dv, (%bw2, %bw1);"},
    {"call (cp), dv, (cp, cq);", "call k, (cp, cq);"},
    {"call (cp), dv, (cp, cq);", "call gv;"},
    {"pr: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\n"
     "call (cp), %ud1, (cp, cq), pr;",
     "call (cp), %ud1, (cp, cq);"},
    {"ts: .branchtargets start, end;\nbrx.idx %uw1, ts;",
     "ts: .branchtargets start, end;\nbrx.idx %f1, ts;"},
};

START_TEST(check)
{
  const kiln_status bad = load_90(checks[_i].bad);

  ck_assert_msg(bad == KILN_ECOMPILE, "accepted: %s", checks[_i].bad);
  ck_assert_msg(strstr(kiln_last_error()->log, "ptx line ") != NULL, "%s",
                kiln_last_error()->log);
  ck_kiln_ok(load_90(checks[_i].good));
}
END_TEST

/* The minimum PTX version and target that a statement requires. */
static const struct {
  const char *text;
  unsigned version, target; /* a version and a target that suffice */
  /* a version and a target of which one does not suffice */
  unsigned low_version, low_target;
} needs[] = {
    {"redux.sync.add.u32 %uw1, %uw2, -1;", 70, 80, 70, 75},
    {"ld.shared::cta.u32 %uw1, [%uw2];", 78, 80, 77, 80},
    {"ld.shared::cluster.u32 %uw1, [%uw2];", 78, 90, 78, 80},
    {"atom.cluster.global.add.u32 %uw1, [%ud2], 1;", 78, 90, 78, 80},
    {"st.param::func.b32 [cp], %bw1;", 83, 90, 82, 90},
    {"ld.global.v8.u32 {%uw0, %uw1, %uw2, %uw3, %uw0, %uw1, %uw2, %uw3}, "
     "[%ud1];",
     88, 100, 88, 90},
    {"activemask.b32 %bw1;", 62, 70, 61, 70},
};

START_TEST(need)
{
  ck_kiln_ok(
      load_statement(needs[_i].text, needs[_i].version, needs[_i].target));
  refused(load_statement(needs[_i].text, needs[_i].low_version,
                         needs[_i].low_target),
          "requires");
}
END_TEST

START_TEST(forms_without_sync_ended)
{
  ck_kiln_ok(load_statement("vote.all.pred %p1, %p2;", 63, 70));
  ck_kiln_ok(load_statement("vote.all.pred %p1, %p2;", 64, 62));
  ck_kiln_is(load_statement("vote.all.pred %p1, %p2;", 64, 70), KILN_ECOMPILE);
}
END_TEST

START_TEST(matrices_are_named_as_missing)
{
  refused(load_90("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
                  " {%f0,%f1,%f2,%f3}, {%bw0,%bw1,%bw2,%bw3},"
                  " {%bw0,%bw1}, {%f0,%f1,%f2,%f3};"),
          "matrix");
}
END_TEST

START_TEST(mistakes_are_listed_with_their_lines)
{
  refused(load(HEAD_90 ".entry k()\n{\n.reg .b32 r<4>;\n"
                       "foo.b32 r1, r2;\n"
                       "add.s32 r1, r2;\n"
                       "add.s32 r1, r2, r3;\n}\n"),
          "ptx line 7, column 1");
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "ptx line 8, column 1"));
  ck_assert_ptr_null(strstr(kiln_last_error()->log, "ptx line 9"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "foo.b32 r1, r2;"));
}
END_TEST

/* ---- Instructions -------------------------------------------------------- */

static const kiln__cpu_insn *insn(uint32_t i)
{
  ck_assert_uint_lt(i, function("k")->n_insns);
  return &function("k")->insns[i];
}

static const kiln__cpu_const *const_of(int32_t slot)
{
  const kiln__cpu_code *k = function("k");

  for (uint32_t i = 0; i < k->n_consts; i++) {
    if (k->consts[i].slot == slot)
      return &k->consts[i];
  }
  ck_abort_msg("slot %d is no constant", slot);
  return NULL;
}

static const kiln__cpu_insn *only(const char *statement)
{
  ck_kiln_ok(load_90(statement));
  return insn(0);
}

START_TEST(operands_become_slots_and_fields)
{
  const kiln__cpu_insn *in = only("@!%p1 sub.rz.ftz.f32 %f1, %f2, 1.5;");

  ck_assert_uint_eq(in->round, KILN__ROUND_Z);
  ck_assert((in->flags & KILN__FTZ) != 0);
  ck_assert((in->flags & KILN__GUARD_NOT) != 0);
  ck_assert_int_ge(in->guard, 0);
  ck_assert_uint_eq(const_of(in->b)->value, 0x3fc00000);
  ck_assert_uint_eq(const_of(in->b)->bytes, 4);
  in = only("setp.ge.s32 %p1|%p2, %sw1, -1;");
  ck_assert_int_ne(in->d, in->d2);
  ck_assert_uint_eq(const_of(in->b)->value, 0xffffffff);
  in = only("mov.u16 %us1, -2;");
  ck_assert_uint_eq(const_of(in->a)->value, 0xfffe);
  in = only("vote.sync.any.pred %p1, !%p2, 7;");
  ck_assert((in->flags & KILN__NEGATE_B) != 0);
  ck_assert_uint_eq(const_of(in->e)->value, 7);
  in = only("shfl.sync.bfly.b32 %bw1, %bw2, 4, 31, -1;");
  ck_assert_int_eq(in->d2, -1);
  ck_assert_uint_eq(const_of(in->b)->value, 4);
  ck_assert_uint_eq(const_of(in->c)->value, 31);
  ck_assert_uint_eq(const_of(in->e)->value, 0xffffffff);
  in = only("bar.red.popc.u32 %uw1, 3, !%p1;");
  ck_assert_uint_eq(in->sub, 2);
  ck_assert_int_eq(in->b, -1);
  ck_assert_int_ge(in->c, 0);
  ck_assert((in->flags & KILN__ALIGNED) != 0);
  ck_assert_uint_eq(function("k")->barriers, 4);
  in = only("cvt.s64.s8 %sd1, %sw1;");
  ck_assert_uint_eq(in->type2, KILN__S64);
  ck_assert_uint_eq(in->type, KILN__S8);
  ck_assert_uint_eq(in->reg_bytes, 8);
  ck_assert_uint_eq(in->src_reg_bytes, 4);
}
END_TEST

START_TEST(addresses_become_slots_and_offsets)
{
  const kiln__cpu_insn *in = only("ld.global.v2.u32 {%uw1, _}, [%ud1+-8];");

  ck_assert_uint_eq(in->klass, KILN__CLASS_GLOBAL_LOAD);
  ck_assert_int_eq(in->imm, -8);
  ck_assert((in->flags & KILN__WIDE_A) != 0);
  ck_assert_uint_eq(in->n_vec, 2);
  ck_assert_int_ge(in->vec[0], 0);
  ck_assert_int_eq(in->vec[1], -1);
  in = only("ld.shared.u32 %uw1, [%uw2+12];");
  ck_assert_uint_eq(in->klass, KILN__CLASS_SHARED_LOAD);
  ck_assert((in->flags & KILN__WIDE_A) == 0);
  ck_assert_int_eq(in->imm, 12);
  in = only("st.shared.u32 [sv+4], %uw1;");
  ck_assert_uint_eq(const_of(in->a)->kind, KILN__CONST_VALUE);
  ck_assert_uint_eq(const_of(in->a)->value, 0);
  ck_assert_int_eq(in->imm, 4);
  in = only("st.shared.u32 [dynamic+4], %uw1;");
  ck_assert_uint_eq(const_of(in->a)->kind, KILN__CONST_DYNAMIC);
  in = only("ld.global.u32 %uw1, [gv+8];");
  ck_assert_uint_eq(const_of(in->a)->kind, KILN__CONST_ADDRESS);
  ck_assert_str_eq(program->globals[const_of(in->a)->value].name, "gv");
  in = only("mov.u64 %ud1, gv+8;");
  ck_assert_int_eq(const_of(in->a)->addend, 8);
  in = only("ld.param.u64 %ud1, [pp];");
  ck_assert_int_eq(in->a, -1);
  ck_assert_int_eq(in->imm, 8);
  ck_assert_uint_eq(in->klass, KILN__CLASS_PARAM);
  in = only("ld.local.u32 %uw1, [lv+4];");
  ck_assert_int_eq(in->a, -1);
  ck_assert_int_eq(in->imm, 4);
  in = only("cp.async.ca.shared.global [%uw1+4], [%ud1+8], 16;");
  ck_assert_int_eq(in->imm, 4);
  ck_assert_int_eq(in->imm2, 8);
  ck_assert_uint_eq(in->bytes, 16);
  ck_assert((in->flags & KILN__WIDE_A) == 0);
  ck_assert((in->flags & KILN__WIDE_B) != 0);
}
END_TEST

START_TEST(moves_of_addresses_and_clocks)
{
  const kiln__cpu_insn *in = only("mov.u64 %ud1, lv+4;");

  ck_assert_uint_eq(in->op, KILN__OP_mov_local);
  ck_assert_int_eq(in->imm, 4);
  in = only("mov.u32 %uw1, %globaltimer_lo;");
  ck_assert_uint_eq(in->op, KILN__OP_mov_clock);
  ck_assert_uint_eq(in->sub, 4);
  in = only("mov.u32 %uw1, %ctaid.z;");
  ck_assert_uint_eq(const_of(in->a)->kind, KILN__CONST_SPECIAL);
  ck_assert_uint_eq(const_of(in->a)->value, KILN__SPECIAL_CTAID_Z);
  in = only("mov.u32 %uw1, %envreg7;");
  ck_assert_uint_eq(const_of(in->a)->kind, KILN__CONST_VALUE);
  in = only("mov.u64 %ud1, dv;");
  ck_assert_uint_eq(const_of(in->a)->kind, KILN__CONST_FUNCTION);
  ck_assert_str_eq(program->functions[const_of(in->a)->value].name, "dv");
  in = only("ld.u32 %uw1, [lv];");
  ck_assert_uint_eq(in->op, KILN__OP_mov_local);
  ck_assert_uint_eq(insn(1)->op, KILN__OP_cvta);
  ck_assert_int_eq(insn(2)->a, insn(1)->d);
  in = only("and.pred %p1, %p2, !%p3;");
  /* The `not` instruction must precede the `and` instruction. */
  ck_assert_int_eq(insn(1)->b, insn(0)->d);
}
END_TEST

START_TEST(constants_are_shared)
{
  ck_kiln_ok(load_90("add.s32 %sw1, %sw2, 77;\nadd.s32 %sw2, %sw1, 77;\n"
                     "add.s64 %sd1, %sd2, 77;"));
  ck_assert_int_eq(insn(0)->b, insn(1)->b);
  ck_assert_int_ne(insn(0)->b, insn(2)->b);
  ck_assert_uint_eq(function("k")->n_consts, 2);
}
END_TEST

START_TEST(branches_have_targets_and_joins)
{
  ck_kiln_ok(load(HEAD_90 ".entry k()\n{\n.reg .pred p;\n"
                          ".reg .b32 r<3>;\n"
                          "@p bra other;\nadd.s32 r1, r1, 1;\n"
                          "bra done;\n"
                          "other: add.s32 r1, r1, 2;\n"
                          "done: ret;\n}\n"));
  ck_assert_uint_eq(insn(0)->target, 3);
  ck_assert_uint_eq(insn(0)->join, 4);
  ck_assert((insn(4)->flags & KILN__JOIN) != 0);
  ck_assert_uint_eq(insn(4)->kind, KILN__KIND_EXIT);
  ck_assert_uint_eq(function("k")->lines[3].ptx, 11);
  /* One PTX statement here is translated to two instructions. */
  ck_kiln_ok(load_90("bra there;\nand.pred %p1, %p2, !%p3;\n"
                     "there: add.s32 %sw1, %sw1, 1;"));
  ck_assert_uint_eq(insn(0)->target, 3);
  ck_assert_uint_eq(insn(3)->op, KILN__OP_add_b32);
  ck_kiln_ok(load_90("ts: .branchtargets there, start;\n"
                     "brx.idx %uw1, ts;\nand.pred %p1, %p2, !%p3;\n"
                     "there: add.s32 %sw1, %sw1, 1;"));
  ck_assert_uint_eq(insn(0)->n_vec, 2);
  ck_assert_int_eq(insn(0)->vec[0], 3);
  ck_assert_int_eq(insn(0)->vec[1], 0);
}
END_TEST

/* ---- Layout -------------------------------------------------------------- */

START_TEST(parameters_are_laid_out)
{
  const kiln__cpu_code *k;

  ck_kiln_ok(load(
      HEAD_90 ".visible .entry k(.param .u8 a, .param .u64 b, .param .align "
              "16 .b8 c[20], .param .u16 d) .maxntid 8, 4, 2 { ret; }"));
  k = function("k");
  ck_assert_uint_eq(k->n_params, 4);
  ck_assert_uint_eq(k->params[1].offset, 8);
  ck_assert_uint_eq(k->params[2].offset, 16);
  ck_assert_uint_eq(k->params[3].offset, 36);
  ck_assert_uint_eq(k->params[2].size, 20);
  ck_assert_str_eq(k->params[3].name, "d");
  ck_assert_uint_eq(k->param_bytes, 38);
  ck_assert_uint_eq(k->max_threads, 64);
  ck_assert_ptr_eq(kiln__cpu_program_entry(program, "k"), k);
  ck_assert_ptr_null(kiln__cpu_program_entry(program, "j"));
}
END_TEST

#define SHARED_MODULE                                                          \
  HEAD_90                                                                      \
  ".shared .align 4 .b8 both[100];\n.shared .align 16 .b8 first[1000];\n"      \
  ".shared .align 8 .b8 second[40000];\n.shared .b8 unused[40000];\n"          \
  ".extern .shared .align 64 .b8 dyn[];\n"                                     \
  ".func f() { .reg .b32 r; ld.shared.b32 r, [both]; ret; }\n"                 \
  ".entry one() { .reg .b32 r; ld.shared.b32 r, [first]; call f; ret; }\n"     \
  ".entry two() { .reg .b32 r; ld.shared.b32 r, [second]; call f; "            \
  "ld.shared.b32 r, [dyn]; ret; }\n"                                           \
  ".entry three() { ret; }\n"

START_TEST(shared_memory_is_by_kernel)
{
  ck_kiln_ok(load(SHARED_MODULE));
  ck_assert_uint_eq(function("one")->static_shared, 112 + 1000);
  ck_assert_uint_eq(function("two")->static_shared, 104 + 40000);
  ck_assert_uint_eq(function("three")->static_shared, 0);
  ck_assert_uint_eq(function("two")->dynamic_align, 64);
  ck_assert_uint_eq(function("one")->dynamic_align, 16);
}
END_TEST

/* Limits that ptxas enforces. A driver also rejects such modules. */
static const struct {
  /* `message` is the expected error; NULL means that the module must load. */
  const char *version, *target, *body, *message;
} limits[] = {
    {"8.0", "sm_90",
     ".shared .b8 s[49152];\n.entry k() { .reg .b32 r; ld.shared.b32 r, [s]; }",
     NULL},
    {"8.0", "sm_90",
     ".shared .b8 s[49232];\n.entry k() { .reg .b32 r; ld.shared.b32 r, [s]; }",
     "Entry function 'k' uses too much shared data (0xc050 bytes, 0xc000 max)"},
    {"8.0", "sm_90",
     ".shared .b8 s[50000];\n.func f() { .reg .b32 r; ld.shared.b32 r, [s]; "
     "ret; }\n.entry k() { call f; ret; }",
     "Entry function 'k' uses too much shared data (0xc350 bytes, 0xc000 max)"},
    {"8.0", "sm_90", ".shared .b8 s[50000];\n.entry k() { ret; }", NULL},
    {"8.0", "sm_90", ".const .b8 c[65536];\n.entry k() { ret; }", NULL},
    {"8.0", "sm_90", ".const .b8 c[65537];\n.entry k() { ret; }",
     "File uses too much global constant data (0x10001 bytes, 0x10000 max)"},
    {"8.0", "sm_90",
     ".const .b8 a[1];\n.const .align 16 .b8 c[65520];\n.const .b8 d[15];\n"
     ".entry k() { ret; }",
     "File uses too much global constant data (0x1000f bytes, 0x10000 max)"},
    {"8.0", "sm_90", ".entry k() { .const .b8 c[65540]; ret; }",
     "File uses too much global constant data (0x10004 bytes, 0x10000 max)"},
    {"8.0", "sm_90", ".entry k(.param .b8 p[4352]) { ret; }", NULL},
    {"8.0", "sm_90", ".entry k(.param .b8 p[4352], .param .b8 q) { ret; }",
     "Entry function 'k' uses too much parameter space (0x1101 bytes, 0x1100 "
     "max)"},
    {"8.1", "sm_60", ".entry k(.param .b8 p[5000]) { ret; }",
     "parameter space (0x1388 bytes, 0x1100 max)"},
    {"8.1", "sm_70", ".entry k(.param .b8 p[32764]) { ret; }", NULL},
    {"8.1", "sm_90", ".entry k(.param .b8 p[32768]) { ret; }",
     "parameter space (0x8000 bytes, 0x7ffc max)"},
    {"8.0", "sm_90", ".entry k() { .local .b8 l[524289]; }", "local data"},
};

START_TEST(limits_of_ptxas_hold)
{
  char text[512];
  kiln_status st;

  snprintf(text, sizeof text, ".version %s\n.target %s\n.address_size 64\n%s",
           limits[_i].version, limits[_i].target, limits[_i].body);
  st = load(text);
  if (limits[_i].message == NULL) {
    ck_kiln_ok(st);
  } else {
    refused(st, limits[_i].message);
  }
}
END_TEST

#define CALLS                                                                  \
  HEAD_90                                                                      \
  ".func (.param .b64 r) g(.param .b32 a, .param .align 8 .b8 s[24]);\n"       \
  ".func (.param .b64 r) f(.param .b32 a, .param .align 8 .b8 s[24])\n"        \
  "{ .reg .b64 x; .local .align 8 .b8 l[40]; ld.param.b64 x, [s+8];\n"         \
  "st.param.b64 [r], x; ret; }\n"                                              \
  ".func (.param .b64 r) g(.param .b32 a, .param .align 8 .b8 s[24])\n"        \
  "{ { .param .b32 a1; .param .align 8 .b8 s1[24]; .param .b64 r1;\n"          \
  "call (r1), f, (a1, s1); }\n"                                                \
  "{ .param .b32 a2; .param .align 8 .b8 s2[24]; .param .b64 r2;\n"            \
  "call (r2), f, (a2, s2); } ret; }\n"                                         \
  ".entry k() { .param .b32 a1; .param .align 8 .b8 s1[24]; .param .b64 r1;\n" \
  "call (r1), g, (a1, s1); ret; }\n"

START_TEST(calls_copy_arguments_and_results)
{
  const kiln__cpu_code *f, *g;
  const kiln__cpu_call *call;

  ck_kiln_ok(load(CALLS));
  f = function("f");
  g = function("g");
  ck_assert_uint_eq(f->params[0].offset, 0);
  /* The offset is aligned for vector accesses. */
  ck_assert_uint_eq(f->params[1].offset, 16);
  ck_assert_uint_eq(f->returns[0].offset, 40);
  /* The function needs 48 bytes for parameters and 40 bytes for local
   * variables. */
  ck_assert_uint_eq(f->local_bytes, 96);
  ck_assert_uint_eq(g->n_calls, 2);
  call = &g->calls[g->insns[0].imm];
  ck_assert_uint_eq(call->callee, f->number);
  ck_assert_uint_eq(call->n_in, 2);
  ck_assert_uint_eq(call->n_out, 1);
  ck_assert_uint_eq(call->in[1].to, 16);
  ck_assert_uint_eq(call->in[1].size, 24);
  ck_assert_uint_eq(call->out[0].from, 40);
  /* The arguments lie after the parameters of function g. */
  ck_assert_uint_ge(call->in[0].from, 48);
  /* The second call reuses the argument memory of the first call. */
  ck_assert_uint_eq(g->calls[1].in[1].from, call->in[1].from);
  ck_assert_uint_eq(g->local_bytes, 96);
  ck_assert_uint_eq(f->insns[0].op, KILN__OP_ld_local_8);
  ck_assert_int_eq(f->insns[0].imm, 24);
  ck_assert_uint_eq(f->insns[1].op, KILN__OP_st_local_8);
  ck_assert_int_eq(f->insns[1].imm, 40);
  ck_assert_uint_eq(function("k")->reach_local,
                    function("k")->local_bytes + 96 + 96);
  ck_assert(!function("k")->recursive);
}
END_TEST

/* An indirect call copies its arguments to the offsets at which the callee
 * expects its parameters. */
START_TEST(indirect_calls_copy_to_the_same_places)
{
  const kiln__cpu_code *k;
  const kiln__cpu_call *call;

  ck_kiln_ok(load(
      HEAD_90 ".func (.param .b64 r) f(.param .b32 a, .param .b64 b, .param "
              ".b16 c) { ret; }\n"
              ".entry k() { .reg .b64 x; .param .b32 a; .param .b64 b;\n"
              ".param .b16 c; .param .b64 r; mov.u64 x, f;\n"
              "p: .callprototype (.param .b64 _) _ (.param .b32 _, .param "
              ".b64 _, .param .b16 _);\n"
              "call (r), x, (a, b, c), p; ret; }"));
  k = function("k");
  call = &k->calls[0];
  ck_assert_uint_eq(call->callee, UINT32_MAX);
  ck_assert_uint_eq(call->n_params, 3);
  for (int i = 0; i < 3; i++)
    ck_assert_uint_eq(call->in[i].to, function("f")->params[i].offset);
  ck_assert_uint_eq(call->in[1].to, 8);
  ck_assert_uint_eq(call->in[2].size, 2);
  ck_assert_uint_eq(call->out[0].from, function("f")->returns[0].offset);
  ck_assert_int_eq(k->insns[1].kind, KILN__KIND_CALL);
  ck_assert_int_ge(k->insns[1].a, 0);
}
END_TEST

START_TEST(recursion_and_indirect_calls_are_seen)
{
  ck_kiln_ok(load(HEAD_90 ".func a();\n.func b() { call a; ret; }\n"
                          ".func a() { call b; ret; }\n"
                          ".func c() { .local .b8 l[1000]; ret; }\n"
                          ".global .u64 table[1] = {c};\n"
                          ".entry k() { call a; ret; }\n"
                          ".entry i() { .reg .b64 x; p: .callprototype _ ();\n"
                          "call x, (), p; ret; }\n.entry n() { ret; }"));
  ck_assert(function("k")->recursive);
  ck_assert(function("i")->recursive);
  ck_assert(!function("n")->recursive);
  ck_assert_uint_ge(function("i")->reach_local, 1000);
  ck_assert_uint_eq(program->globals[0].n_patches, 1);
  ck_assert(program->globals[0].patches[0].function);
  ck_assert_uint_eq(program->globals[0].patches[0].number,
                    function("c")->number);
}
END_TEST

START_TEST(formal_parameters_are_no_arguments)
{
  static const char text[] =
      HEAD_90 ".func (.param .b32 r) g(.param .b32 p) { ret; }\n"
              ".func (.param .b32 r) f(.param .b32 p)\n"
              "{ .param .b32 x; .param .b32 y;\n"
              "call (%s), g, (%s); ret; }";
  static const char *const bad[][2] = {
      {"r", "y"}, {"x", "p"}, {"p", "y"}, {"x", "r"}};
  char buf[512];

  snprintf(buf, sizeof buf, text, "x", "y");
  ck_kiln_ok(load(buf));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(buf, sizeof buf, text, bad[i][0], bad[i][1]);
    refused(load(buf), "formal");
  }
}
END_TEST

START_TEST(system_functions_and_missing_ones)
{
  static const char text[] =
      HEAD_90 ".extern .func (.param .b32 r) %s(.param .b64 f, .param .b64 "
              "a);\n"
              ".entry k() { .param .b64 x; .param .b64 y; .param .b32 z;\n"
              "call (z), %s, (x, y); ret; }";
  char buf[512];

  snprintf(buf, sizeof buf, text, "vprintf", "vprintf");
  ck_kiln_ok(load(buf));
  ck_assert(!function("vprintf")->defined);
  ck_assert_uint_eq(function("vprintf")->params[1].offset, 8);
  snprintf(buf, sizeof buf, text, "nowhere", "nowhere");
  refused(load(buf), "nowhere");
}
END_TEST

/* ---- Linking ------------------------------------------------------------- */

static kiln_status link_two(const char *x, const char *y)
{
  kiln__cpu_ptx_module *parts[2] = {NULL, NULL};

  kiln__cpu_program_free(program);
  program = NULL;
  ck_kiln_ok(kiln__cpu_ptx_parse(&parts[0], &memory.alloc, x, strlen(x)));
  ck_kiln_ok(kiln__cpu_ptx_parse(&parts[1], &memory.alloc, y, strlen(y)));
  return kiln__cpu_program_link(&program, &memory.alloc, parts, 2);
}

START_TEST(parts_find_each_other)
{
  const kiln__cpu_code *k;

  ck_kiln_ok(link_two(
      HEAD_90 ".extern .func f(.param .b32 a);\n.extern .global .u32 g;\n"
              ".func own() { ret; }\n"
              ".entry k() { .reg .u32 r; .param .b32 a; ld.global.u32 r, [g];\n"
              "call f, (a); call own; ret; }",
      HEAD_90
      ".visible .func f(.param .b32 a) { ret; }\n.func own() { trap; }\n"
      ".visible .global .u32 g = 7;\n"));
  k = function("k");
  /* The program has `f` once and `own` twice. */
  ck_assert_uint_eq(program->n_functions, 4);
  ck_assert_uint_eq(program->n_globals, 1);
  ck_assert_uint_eq(program->globals[0].init_size, 4);
  ck_assert(!program->globals[0].external);
  ck_assert_str_eq(program->functions[k->calls[0].callee].name, "f");
  ck_assert(program->functions[k->calls[0].callee].defined);
  ck_assert_uint_eq(program->functions[k->calls[1].callee].insns[0].kind,
                    KILN__KIND_RETURN);
}
END_TEST

START_TEST(weak_common_and_double_definitions)
{
  static const char *const clashes[][2] = {
      {HEAD_90 ".visible .func f() { ret; }",
       HEAD_90 ".visible .func f() { ret; }"},
      {HEAD_90 ".visible .global .u32 g;", HEAD_90 ".visible .global .u32 g;"},
      {HEAD_90 ".visible .global .u32 f;",
       HEAD_90 ".visible .func f() { ret; }"},
      {HEAD_90 ".visible .func f(.param .b32 a) { ret; }",
       HEAD_90 ".extern .func f(.param .b64 a);"}};

  ck_kiln_ok(link_two(HEAD_90
                      ".weak .func f() { trap; }\n.common .global .b8 c[4];",
                      HEAD_90 ".visible .func f() { ret; }\n"
                              ".common .global .b8 c[16];"));
  ck_assert_uint_eq(program->n_functions, 1);
  ck_assert_uint_eq(function("f")->insns[0].kind, KILN__KIND_RETURN);
  ck_assert_uint_eq(program->globals[0].size, 16);
  for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++)
    ck_kiln_is(link_two(clashes[i][0], clashes[i][1]), KILN_ECOMPILE);
}
END_TEST

/* The constants of all linked modules must share one constant bank. */
START_TEST(constants_of_parts_add_up)
{
  ck_kiln_ok(link_two(HEAD_90 ".visible .const .b8 c[40000];",
                      HEAD_90 ".extern .const .b8 c[40000];\n"
                              ".const .b8 d[25536];"));
  ck_kiln_is(
      link_two(HEAD_90 ".const .b8 c[40000];", HEAD_90 ".const .b8 d[25537];"),
      KILN_ECOMPILE);
}
END_TEST

/* If a mov splits a clock value, an instruction that reads the clock must
 * precede it. */
START_TEST(clocks_are_taken_apart)
{
  const kiln__cpu_code *k;

  ck_kiln_ok(load_90("mov.b64 {%uw1, %uw2}, %clock64;"));
  k = function("k");
  ck_assert(has_op(KILN__OP_mov_clock));
  ck_assert(has_op(KILN__OP_mov_unpack));
  for (uint32_t i = 0; i < k->n_insns; i++) {
    if (k->insns[i].op == KILN__OP_mov_clock)
      ck_assert_int_ge(k->insns[i].d, 0);
  }
}
END_TEST

/* ---- Instructions as text, memory exhaustion, large modules -------------- */

START_TEST(instructions_as_text)
{
  char text[128];

  ck_kiln_ok(load(CALLS));
  kiln__cpu_insn_text(program, function("k"), 0, text, sizeof text);
  ck_assert_str_eq(text, "call g");
  (void)only("@%p1 add.s32 %sw1, %sw2, 5;");
  kiln__cpu_insn_text(program, function("k"), 0, text, sizeof text);
  ck_assert_ptr_nonnull(strstr(text, "add_b32 d="));
  ck_assert_int_eq(text[1], '@');
  kiln__cpu_insn_text(program, function("k"), 0, text, 8);
  ck_assert_uint_le(strlen(text), 7);
  for (int i = 0; i < KILN__N_OPS; i++) {
    ck_assert_uint_gt(strlen(kiln__cpu_op_name[i]), 0);
    ck_assert_uint_gt(strlen(kiln__cpu_op_pseudo[i]), 0);
  }
}
END_TEST

START_TEST(memory_may_run_out_anywhere)
{
  for (long at = 0;; at++) {
    kiln_status st;

    memory.calls = 0;
    memory.fail_at = at;
    st = load(CALLS);
    if (st == KILN_OK && memory.calls <= at)
      break;
    if (st != KILN_OK)
      ck_assert_int_eq(st, KILN_ENOMEM);
    memory.fail_at = -1;
  }
  memory.fail_at = -1;
}
END_TEST

/* A module must load quickly, even if it has 100,000 instructions with long
 * chains of dependences, loops and many registers. */
START_TEST(large_modules_load_quickly)
{
  kiln_allocator a = {0};
  kiln__buf text;
  clock_t begin;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  kiln__buf_text(&text, HEAD_90 ".entry k() {\n.reg .b32 r<50001>;"
                                "\n.reg .pred p;\n");
  for (unsigned i = 1; i <= 50000; i++) {
    kiln__buf_format(&text, "add.s32 r%u, r%u, %u;\n", i, i - 1, i);
    if (i % 100 == 0)
      kiln__buf_format(&text, "L%u:\nsetp.eq.s32 p, r%u, r%u;\n@p bra L%u;\n",
                       i, i, i - 99, i);
    else
      kiln__buf_format(&text, "mov.b32 r%u, r%u;\n", i, i / 2);
  }
  kiln__buf_text(&text, "}\n");
  begin = clock();
  ck_kiln_ok(load(text.data));
  ck_assert_uint_gt(function("k")->n_insns, 100000);
  ck_assert_int_lt((clock() - begin) / CLOCKS_PER_SEC, 5);
  kiln__buf_free(&text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_code");
  TCase *t = kiln_test_case(
      s, "code", 120, setup, teardown,
      TESTS(row_language, every_row_is_reachable, rows_for_suffixed_targets,
            modifiers_are_known_or_listed, forms_without_sync_ended,
            matrices_are_named_as_missing, mistakes_are_listed_with_their_lines,
            operands_become_slots_and_fields,
            addresses_become_slots_and_offsets, moves_of_addresses_and_clocks,
            constants_are_shared, branches_have_targets_and_joins,
            parameters_are_laid_out, shared_memory_is_by_kernel,
            clocks_are_taken_apart, calls_copy_arguments_and_results,
            indirect_calls_copy_to_the_same_places,
            recursion_and_indirect_calls_are_seen,
            formal_parameters_are_no_arguments,
            system_functions_and_missing_ones, parts_find_each_other,
            weak_common_and_double_definitions, constants_of_parts_add_up,
            instructions_as_text, memory_may_run_out_anywhere,
            large_modules_load_quickly));

  tcase_add_loop_test(t, pattern_matches, 0, ROWS(patterns));
  tcase_add_loop_test(t, check, 0, ROWS(checks));
  tcase_add_loop_test(t, need, 0, ROWS(needs));
  tcase_add_loop_test(t, limits_of_ptxas_hold, 0, ROWS(limits));
  return kiln_test_run(s);
}
