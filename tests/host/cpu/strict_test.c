/* strict_test.c -- regression tests for bugs that mutated PTX sources revealed.
 * Some tests pair a module that ptxas rejects with a similar module that it
 * accepts. Other tests run valid modules that used to compute wrong values. */
#include "cpu_ptx.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

static kiln_status link_parts(const char *const *texts, size_t n)
{
  kiln__cpu_ptx_module *parts[2] = {NULL, NULL};

  kiln__cpu_program_free(program);
  program = NULL;
  for (size_t i = 0; i < n; i++) {
    const kiln_status st = kiln__cpu_ptx_parse(&parts[i], &memory.alloc,
                                               texts[i], strlen(texts[i]));

    if (st != KILN_OK)
      return st;
  }
  return kiln__cpu_program_link(&program, &memory.alloc, parts, n);
}

static kiln_status load(const char *body, unsigned version, unsigned target)
{
  char text[2048];
  const char *const part = text;

  /* sm_90a has the instructions of warpgroups as well, from PTX 8.0 on. */
  snprintf(text, sizeof text,
           ".version %u.%u\n.target sm_%u%s\n.address_size 64\n%s",
           version / 10, version % 10, target,
           target == 90 && version >= 80 ? "a" : "", body);
  return link_parts(&part, 1);
}

/* ---- Rejected and accepted modules --------------------------------------- */

#define G ".func g(.param .b32 q) { ret; }\n"
#define R ".func (.param .b32 q) g() { ret; }\n"
#define ENTRY(body)                                                            \
  ".entry k(.param .u64 pp) { .reg .pred %p<4>; .reg .b32 %r<4>;\n"            \
  ".reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .f64 %fd<4>;\n" body " ret; }"

#define WGMMA_SP(metadata, scale)                                              \
  ENTRY(".reg .s32 %s<4>; wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.u8.u8 " \
        "{%s0, %s1, %s2, %s3}, %rd1, %rd2, " metadata ", 0, " scale ";")
#define MAP_COPY(spaces)                                                       \
  ".global .align 128 .b8 to[128]; .shared .align 128 .b8 from[128];\n" ENTRY( \
      "tensormap.cp_fenceproxy" spaces                                         \
      ".tensormap::generic.release.gpu.sync.aligned [to], [from], 128;")

#define MMA_S8(a, b, c)                                                        \
  ENTRY("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 "           \
        "{%r0, %r1, %r2, %r3}, " a ", " b ", " c ";")
#define MMA_F16(a, c)                                                          \
  ENTRY("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "                   \
        "{%f0, %f1, %f2, %f3}, " a ", {%r0, %r1}, " c ";")
#define WMMA_S8(a, b)                                                          \
  ENTRY(".reg .u32 %u<8>; wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8."  \
        "s32 {%u0, %u1, %u2, %u3, %u4, %u5, %u6, %u7}, " a ", " b              \
        ", {1, 2, 3, 4, 5, 6, 7, 8};")
#define R4 "{%r0, %r1, %r2, %r3}"
#define F4 "{%f0, %f1, %f2, %f3}"

static const struct {
  const char *good, *bad;
} pairs[] = {
    /* Literals of a product's factors have the type of registers beside them. */
    {MMA_S8(R4, "{%r0, 2}", R4), MMA_S8(R4, "{1, 2}", R4)},
    {MMA_S8("{1, 2, 3, %r3}", "{%r0, %r1}", "{1, 2, 3, 4}"),
     MMA_S8("{1, 2, 3, 4}", "{%r0, %r1}", "{1, 2, 3, 4}")},
    {MMA_F16(R4, "{0f3f800000, 0f00000000, 0f00000000, 0f00000000}"),
     MMA_F16("{1, 2, 3, 4}", F4)},
    {MMA_F16(R4, "{1.0, %f1, %f2, %f3}"), MMA_F16(R4, "{1.0, 1.0, 1.0, 1.0}")},
    {WMMA_S8("{%u0, 2}", "{%u1, %u2}"), WMMA_S8("{%u0, %u1}", "{%u1, 2}")},
    /* A function must not write to its parameters, even if another variable
     * hides their names. */
    {G ".func f(.param .b32 a) { .reg .b32 x; { .param .b32 b;\n"
       "st.param.b32 [b], x; call g, (b); } ret; }",
     G ".func f(.param .b32 a) { .reg .b32 x; { .param .b32 a;\n"
       "st.param.b32 [a], x; call g, (a); } ret; }"},
    {G ".func (.param .b32 a) f() { .reg .b32 x; { .param .b32 a;\n"
       "st.param.b32 [a], x; call g, (a); } ret; }",
     G ".entry f(.param .b32 a) { .reg .b32 x; { .param .b32 a;\n"
       "st.param.b32 [a], x; call g, (a); } ret; }"},
    /* The result of a call must be read after the call, and by all threads. */
    {R ".func f(.param .b32 a) { .reg .b32 x; .reg .pred p; { .param .b32 b;\n"
       "call (b), g; ld.param.b32 x, [b]; } @p ld.param.b32 x, [a]; ret; }",
     R ".func f(.param .b32 a) { .reg .b32 x; .reg .pred p; { .param .b32 b;\n"
       "call (b), g; @p ld.param.b32 x, [b]; } ret; }"},
    {".func (.param .b32 a) f(.param .b32 b) { .reg .b32 x;\n"
     "ld.param.b32 x, [b]; st.param.b32 [a], x; ret; }",
     ".func (.param .b32 a) f(.param .b32 b) { .reg .b32 x;\n"
     "ld.param.b32 x, [a]; st.param.b32 [a], x; ret; }"},
    /* An argument of a call has no address, whatever uses it. */
    {G ENTRY("{ .param .b32 cp; st.param.b32 [cp], %r1;\n"
             "prefetch.param.tensormap [pp]; call g, (cp); }"),
     G ENTRY("{ .param .b32 cp; st.param.b32 [cp], %r1;\n"
             "prefetch.param.tensormap [cp]; call g, (cp); }")},
    /* The metadata of a sparse product are a register of 32 bits, not a predicate. */
    {WGMMA_SP("%r1", "%p1"), WGMMA_SP("!%p1", "%p1")},
    {WGMMA_SP("%r1", "!%p1"), WGMMA_SP("%r1", "%r2")},
    /* The first state space of a copy of a tensor map is that of its target. */
    {MAP_COPY(".global.shared::cta"), MAP_COPY(".shared::cta.global")},
    /* The address of a function may be used only if this module or another
     * module defines the function. */
    {".extern .func f();\n" ENTRY("mov.u64 %rd1, f;"),
     ".func f();\n" ENTRY("mov.u64 %rd1, f;")},
    {".func f();\n.global .u64 t[1] = {f};\n.func f() { ret; }\n" ENTRY(""),
     ".func f();\n.global .u64 t[1] = {f};\n" ENTRY("")},
    /* Some results may be discarded with `_`. */
    {ENTRY("shfl.sync.up.b32 %r1|_, %r2, 1, 0, -1;"),
     ENTRY("shfl.sync.up.b32 _|%p1, %r2, 1, 0, -1;")},
    {ENTRY("elect.sync _|%p1, -1;"), ENTRY("elect.sync %r1|_, -1;")},
    {ENTRY("setp.eq.u32 _|%p1, %r1, 3;"), ENTRY("setp.eq.u32 _|_, %r1, 3;")},
    {ENTRY("match.all.sync.b32 _|%p1, %r1, -1;"),
     ENTRY("match.all.sync.b32 _|_, %r1, -1;")},
    /* For conversions to a narrower type, the modifiers determine whether the
     * result may be in a wider register. */
    {ENTRY("cvt.rz.ftz.f32.f64 %f1, %fd2;"),
     ENTRY("cvt.rz.ftz.f32.f64 %rd1, %fd2;")},
    {ENTRY("cvt.rp.f32.f64 %rd1, %fd2;"),
     ENTRY("cvt.rp.sat.ftz.f32.f64 %rd1, %fd2;")},
    {ENTRY("cvt.rn.ftz.f32.f64 %rd1, %fd2;"),
     ENTRY("cvt.ftz.rm.f32.f64 %rd1, %fd2;")},
};

START_TEST(right_and_wrong)
{
  ck_kiln_ok(load(pairs[_i].good, 83, 90));
  ck_assert_msg(load(pairs[_i].bad, 83, 90) == KILN_ECOMPILE, "accepted: %s",
                pairs[_i].bad);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "ptx line "));
}
END_TEST

START_TEST(needs_of_modifiers_in_any_order)
{
  static const char text[] = ENTRY("cvt.relu.rn.tf32.f32 %r1, %f2;");
  static const char away[] = ENTRY("cvt.rna.tf32.f32 %r1, %f2;");

  ck_kiln_is(load(text, 70, 80), KILN_ECOMPILE);
  ck_kiln_ok(load(away, 70, 80));
  ck_kiln_ok(load(text, 78, 90));
}
END_TEST

/* ---- Linked modules ------------------------------------------------------ */

static const kiln__cpu_const *only_const(const char *function)
{
  for (uint32_t i = 0; i < program->n_functions; i++) {
    if (strcmp(program->functions[i].name, function) == 0) {
      ck_assert_uint_eq(program->functions[i].n_consts, 1);
      return program->functions[i].consts;
    }
  }
  ck_abort_msg("no function %s", function);
  return NULL;
}

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define USES(name, what)                                                       \
  ".visible .func " name "() { .reg .b32 r; mov.u32 r, " what "; ret; }\n"

/* All .shared variables with the same name are one variable. Its size and
 * alignment are the largest that any module declares. */
START_TEST(shared_variables_are_one)
{
  static const char *const sized[] = {
      HEAD ".extern .shared .align 4 .b8 s[64];\n.extern .func f();\n"
           ".extern .func h();\n" USES("g", "s") ".entry k() { call f; call g; "
                                                 "call h; ret; }",
      HEAD ".shared .align 4 .b8 pad[24];\n.visible .shared .align 16 .b8 "
           "s[64];\n" USES("f", "s") USES("h", "pad")};
  static const char *const dynamic[] = {
      HEAD ".extern .shared .align 4 .b8 s[];\n.extern .func f();\n" USES(
          "g", "s") ".entry k() { call f; call g; ret; }",
      HEAD ".extern .shared .align 64 .b8 s[];\n" USES("f", "s")};
  const kiln__cpu_code *k;

  ck_kiln_ok(link_parts(sized, 2));
  ck_assert_uint_eq(only_const("f")->value, only_const("g")->value);
  ck_assert_uint_ne(only_const("f")->value, only_const("h")->value);
  ck_assert_uint_eq(only_const("f")->value % 16, 0);
  k = kiln__cpu_program_entry(program, "k");
  ck_assert_ptr_nonnull(k);
  ck_assert_uint_le(k->static_shared, 64 + 24 + 8);
  ck_kiln_ok(link_parts(dynamic, 2));
  ck_assert_int_eq(only_const("g")->kind, KILN__CONST_DYNAMIC);
  ck_assert_uint_eq(kiln__cpu_program_entry(program, "k")->dynamic_align, 64);
}
END_TEST

/* ---- Values -------------------------------------------------------------- */

enum { LANES = 32 };

/* Tests vector stores of a literal and a register that is wider than the stored
 * element. */
START_TEST(literals_beside_wide_registers)
{
  static const char text[] =
      ".visible .entry k(.param .u64 out)\n{\n.reg .b64 o, w;\n"
      ".reg .b32 v;\n.reg .b16 h;\nmov.u32 v, %tid.x;\n"
      "ld.param.u64 o, [out];\nmad.wide.u32 o, v, 64, o;\n"
      "mov.u64 w, 0x1122334455667788;\nmov.u32 v, 0xaabbccdd;\n"
      "mov.u16 h, 0x1234;\n"
      "st.global.v2.u32 [o], {w, 5};\nst.global.v2.u32 [o+8], {6, w};\n"
      "st.global.v4.u16 [o+16], {w, -2, 3, w};\n"
      "st.global.v4.u8 [o+24], {v, 0x1ff, v, 9};\n"
      "st.global.v4.u8 [o+28], {1, 2, 3, h};\n"
      "st.volatile.global.v2.u32 [o+32], {7, w};\n"
      "st.global.v2.u64 [o+48], {w, 8};\n"
      "st.global.v2.f32 [o+40], {v, 1.0};\nret;\n}\n";
  static const uint32_t want[16] = {
      0x55667788, 5,          6, 0x55667788, 0xfffe7788, 0x77880003,
      0x09ddffdd, 0x34030201, 7, 0x55667788, 0xaabbccdd, 0x3f800000,
      0x55667788, 0x11223344, 8, 0};
  const uint32_t *got;
  cpu_ptx p;
  uint64_t out;

  cpu_ptx_load(&p, text);
  out = cpu_ptx_buffer(&p, NULL, LANES * sizeof want);
  p.launch.block_dim[0] = LANES;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, LANES * sizeof want);
  for (int i = 0; i < LANES * 16; i++)
    ck_assert_msg(got[i] == want[i % 16], "lane %d, word %d: 0x%x, not 0x%x",
                  i / 16, i % 16, got[i], want[i % 16]);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(memory_functions_of_the_device)
{
  static const char text[] =
      ".extern .func (.param .b64 r) memcpy(.param .b64 d, .param .b64 s, "
      ".param .b64 n);\n"
      ".extern .func (.param .b64 r) memset(.param .b64 d, .param .b32 c, "
      ".param .b64 n);\n"
      ".visible .entry k(.param .u64 to, .param .u64 from)\n{\n"
      ".reg .b64 t, f, r;\nld.param.u64 t, [to];\nld.param.u64 f, [from];\n"
      "call (r), memcpy, (t, f, 5);\nadd.u64 r, r, 8;\n"
      "call (r), memset, (r, 0x1ee, 3);\nret;\n}\n";
  static const uint8_t from[16] = "abcdefghijklmno";
  static const uint8_t want[16] = {'a', 'b', 'c',  'd',  'e', 0,
                                   0,   0,   0xee, 0xee, 0xee};
  cpu_ptx p;
  uint64_t out, in;

  cpu_ptx_load(&p, text);
  out = cpu_ptx_buffer(&p, NULL, sizeof want);
  in = cpu_ptx_buffer(&p, from, sizeof from);
  p.launch.block_dim[0] = 1;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out, in});
  ck_assert_mem_eq(cpu_ptx_at(&p, out, sizeof want), want, sizeof want);
  cpu_ptx_free(&p);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_strict");
  TCase *t = kiln_test_case(
      s, "texts", 0, setup, teardown,
      TESTS(needs_of_modifiers_in_any_order, shared_variables_are_one));

  tcase_add_loop_test(t, right_and_wrong, 0, ROWS(pairs));
  kiln_test_case(
      s, "values", 0, NULL, NULL,
      TESTS(literals_beside_wide_registers, memory_functions_of_the_device));
  return kiln_test_run(s);
}
