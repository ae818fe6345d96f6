/* code_test.c -- tests which PTX statements the CPU device accepts: the rows of
 * ops.def and their pattern language. For each check there is a correct and an
 * incorrect statement. A statement must be accepted if and only if ptxas
 * accepts it. lowering_test.c tests the code that the statements become. */
#include "code_fixture.h"

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
    found |= strncmp(kiln__cpu_op_pattern[op], "tensormap.replace", 17) == 0;
    if (op == KILN__OP_call)
      continue; /* Other tests cover call instructions. */
    for (int i = 0; i < 60 && !found; i++) {
      char text[2048];
      unsigned ptx = 0, sm = 0;
      const char *by_hand = statement_by_hand(op);

      if (by_hand == NULL &&
          !statement_of_row(text, sizeof text, op, &random, &ptx, &sm))
        continue;
      if (by_hand == NULL && strstr(text, ".sync") == NULL &&
          (strncmp(text, "shfl.", 5) == 0 || strncmp(text, "vote.", 5) == 0))
        ck_kiln_ok(load_statement(text, 63, 62));
      else
        ck_kiln_ok(load_statement(by_hand != NULL ? by_hand : text, 92,
                                  sm < STATEMENT_SPECIFIC ? 120 : sm));
      found = has_op(op);
    }
    ck_assert_msg(found, "%s: \"%s\"", kiln__cpu_op_name[op],
                  kiln__cpu_op_pattern[op]);
  }
}
END_TEST

/* wgmma with four registers of D, and its other operands. */
#define WGMMA(d, operands)                                                     \
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " d ", " operands ";"
#define WGMMA_D "{%f0, %f1, %f2, %f3}"

static const char *const wrong_wgmma[] = {
    WGMMA(WGMMA_D, "_, %bd1, %p1, 1, 1, 0, 0"),
    WGMMA(WGMMA_D, "%p1|%p2, %bd1, %p1, 1, 1, 0, 0"),
    WGMMA(WGMMA_D, "%bd0, [%ud1], %p1, 1, 1, 0, 0"),
    WGMMA(WGMMA_D, "%bd0, %bw1, %p1, 1, 1, 0, 0"),
    WGMMA(WGMMA_D, "%bd0, %bd1, 2, 1, 1, 0, 0"),
    WGMMA(WGMMA_D, "%bd0, %bd1, %p1, 1, 0, 0, 0"),
    WGMMA(WGMMA_D, "%bd0, %bd1, %p1, 1, 1, 0, 2"),
    WGMMA(WGMMA_D, "%bd0, %bd1, %p1, 1, 1, 0"),
    WGMMA(WGMMA_D, "{%bw0, %bw1, %bw2, %bw3}, %bd1, %p1, 1, 1, 0, 0"),
    WGMMA(WGMMA_D, "{%f0, %f1, %f2, %f3}, %bd1, %p1, 1, 1, 0"),
    WGMMA("{%f0, %f1, %f2}", "%bd0, %bd1, %p1, 1, 1, 0, 0"),
    WGMMA("{%f0, _, %f2, %f3}", "%bd0, %bd1, %p1, 1, 1, 0, 0"),
    WGMMA("{%uw0, %uw1, %uw2, %uw3}", "%bd0, %bd1, %p1, 1, 1, 0, 0"),
    "wgmma.wait_group.sync.aligned -1;",
};

START_TEST(mistakes_in_wgmma_are_refused)
{
  static const char right[] = WGMMA(WGMMA_D, "%bd0, %bd1, %p1, 1, -1, 0, 1");

  ck_kiln_ok(load_statement(right, 80, STATEMENT_SPECIFIC + 90));
  ck_kiln_is(load_statement(right, 78, STATEMENT_SPECIFIC + 90), KILN_ECOMPILE);
  ck_kiln_is(load_statement(right, 80, 90), KILN_ECOMPILE);
  ck_kiln_is(load_statement(right, 88, STATEMENT_SPECIFIC + 100),
             KILN_ECOMPILE);
  for (int i = 0; i < ROWS(wrong_wgmma); i++)
    ck_kiln_is(load_statement(wrong_wgmma[i], 80, STATEMENT_SPECIFIC + 90),
               KILN_ECOMPILE);
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
      "8.3",
      "sm_90a") ".entry k() { .reg .b64 m; .reg .b32 r;\n"
                "tensormap.replace.tile.global_address.b1024.b64 [m], m;\n"
                "tensormap.replace.tile.rank.global.b1024.b32 [m], 3;\n"
                "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [r], 1, "
                "r;"
                "\ntensormap.replace.tile.global_dim.b1024.b32 [m], 4, r;\n"
                "tensormap.replace.tile.global_stride.b1024.b64 [m], 3, m;\n"
                "tensormap.replace.tile.element_stride.b1024.b32 [m], 0, r;\n"
                "tensormap.replace.tile.elemtype.b1024.b32 [m], 6;\n"
                "tensormap.replace.tile.interleave_layout.b1024.b32 [m], 0;\n"
                "tensormap.replace.tile.swizzle_mode.b1024.b32 [m], 3;\n"
                "tensormap.replace.tile.fill_mode.b1024.b32 [m], 1; ret; }"));
  for (unsigned op = KILN__OP_map_address; op <= KILN__OP_map_fill; op++)
    ck_assert(has_op(op));
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
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob "
     "[%uw2], [%ud1], 32, 3, 0, [%uw3];",
     92, 90, 90, 90},
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
  refused(load_90("tcgen05.wait::ld.sync.aligned;"), "matrix");
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

int main(void)
{
  Suite *s = suite_create("cpu_code");
  TCase *t = kiln_test_case(
      s, "code", 120, setup, teardown,
      TESTS(row_language, every_row_is_reachable, rows_for_suffixed_targets,
            mistakes_in_wgmma_are_refused, modifiers_are_known_or_listed,
            forms_without_sync_ended, matrices_are_named_as_missing,
            mistakes_are_listed_with_their_lines));

  tcase_add_loop_test(t, pattern_matches, 0, ROWS(patterns));
  tcase_add_loop_test(t, check, 0, ROWS(checks));
  tcase_add_loop_test(t, need, 0, ROWS(needs));
  return kiln_test_run(s);
}
