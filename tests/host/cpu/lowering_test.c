/* lowering_test.c -- tests the code that PTX becomes on the CPU device:
 * instructions and their slots, memory layout, calls and linking. */
#include "code_fixture.h"

#include <time.h>

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

/* As NVIDIA's linker, which removes functions that no kernel reaches first. ptxas, which
 * compiles single modules, reports their undefined functions as well. */
START_TEST(only_reached_functions_must_be_complete)
{
#define LOST                                                                   \
  ".extern .func missing(); .visible .func lost() { call missing; ret; }\n"
#define TABLE ".visible .global .align 8 .u64 t[1] = { lost };\n"
  static const char *const other = HEAD_90 ".entry other() { ret; }";

  refused(load(HEAD_90 LOST ".entry k() { ret; }"), "missing");
  ck_kiln_ok(link_two(HEAD_90 LOST ".func more() { call lost; ret; }"
                                   ".entry k() { ret; }",
                      other));
  ck_assert(!function("lost")->defined);
  ck_assert(function("k")->defined);
  refused(link_two(HEAD_90 LOST ".entry k() { call lost; ret; }", other),
          "missing");
  refused(link_two(HEAD_90 LOST ".entry k() { .reg .u64 d; mov.u64 d, lost; "
                                "ret; }",
                   other),
          "missing");
  refused(link_two(HEAD_90 LOST TABLE ".entry k() { ret; }", other), "missing");
}
END_TEST

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
  Suite *s = suite_create("cpu_lowering");
  TCase *t = kiln_test_case(
      s, "lowering", 120, setup, teardown,
      TESTS(
          operands_become_slots_and_fields, addresses_become_slots_and_offsets,
          moves_of_addresses_and_clocks, constants_are_shared,
          branches_have_targets_and_joins, parameters_are_laid_out,
          shared_memory_is_by_kernel, calls_copy_arguments_and_results,
          indirect_calls_copy_to_the_same_places,
          recursion_and_indirect_calls_are_seen,
          formal_parameters_are_no_arguments, system_functions_and_missing_ones,
          only_reached_functions_must_be_complete, parts_find_each_other,
          weak_common_and_double_definitions, constants_of_parts_add_up,
          clocks_are_taken_apart, instructions_as_text,
          memory_may_run_out_anywhere, large_modules_load_quickly));

  tcase_add_loop_test(t, limits_of_ptxas_hold, 0, ROWS(limits));
  return kiln_test_run(s);
}
