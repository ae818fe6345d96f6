/* block_order_test.c -- tests which kernels the CPU device may run on several
 * host threads without being asked: those whose results cannot depend on the
 * order of their blocks. */
#include "code_fixture.h"

/* Statements of a kernel, and whether the order of blocks can matter. */
static const struct {
  const char *text;
  bool ordered;
} cases[] = {
    {"st.global.u32 [%rd1], %r1;", false},
    {"ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1;", false},
    {"ld.global.nc.u32 %r1, [%rd1];", false},
    {"bar.sync 0; ld.shared.u32 %r1, [sh];", false},
    /* atomic operations on integers whose results nothing reads */
    {"red.global.add.u32 [%rd1], 1;", false},
    {"atom.global.add.u32 %r1, [%rd1], 1;", false},
    {"atom.global.add.u32 _, [%rd1], 1;", false},
    {"atom.add.u64 %rd2, [%rd1], 1;", false},
    {"red.global.max.s32 [%rd1], 1;", false},
    {"atom.global.min.u64 %rd2, [%rd1], 1;", false},
    {"red.global.or.b32 [%rd1], 1;", false},
    {"atom.relaxed.gpu.global.xor.b32 %r1, [%rd1], 1;", false},
    /* results that are read, also on another path or in the next round */
    {"atom.global.add.u32 %r1, [%rd1], 1; st.global.u32 [%rd1], %r1;", true},
    {"atom.global.add.u32 %r1, [%rd1], 1; bar.sync 0; @%p1 bra L; ret;\nL: "
     "st.global.u32 [%rd1], %r1;",
     true},
    {"L: st.global.u32 [%rd1], %r1; atom.global.add.u32 %r1, [%rd1], 1; @%p1 "
     "bra L;",
     true},
    /* compilers do not write a register twice, so this may be wrong */
    {"atom.global.add.u32 %r1, [%rd1], 1; mov.u32 %r1, 5; st.global.u32 "
     "[%rd1], %r1;",
     true},
    /* operations that do not commute */
    {"red.global.add.f32 [%rd1], 0f3f800000;", true},
    {"atom.global.add.f64 %fd1, [%rd1], 0d0000000000000000;", true},
    {"atom.global.exch.b32 %r1, [%rd1], 1;", true},
    {"atom.global.cas.b32 %r1, [%rd1], 1, 2;", true},
    {"atom.global.inc.u32 %r1, [%rd1], 7;", true},
    {"red.global.dec.u32 [%rd1], 7;", true},
    /* shared memory belongs to one block */
    {"atom.shared.add.u32 %r1, [sh], 1; st.global.u32 [%rd1], %r1;", false},
    {"atom.shared.add.f32 %f1, [sh], 0f3f800000; st.global.f32 [%rd1], %f1;",
     false},
    {"atom.shared.cas.b32 %r1, [sh], 1, 2;", false},
    {"ld.volatile.shared.u32 %r1, [sh];", false},
    {"atom.add.u32 %r1, [%rd1], 1; st.global.u32 [%rd1], %r1;", true},
    /* loads that wait for other blocks */
    {"ld.volatile.global.u32 %r1, [%rd1];", true},
    {"ld.acquire.gpu.global.u32 %r1, [%rd1];", true},
    {"ld.relaxed.gpu.u32 %r1, [%rd1];", true},
    {"ld.global.cv.u32 %r1, [%rd1];", true},
    {"ld.global.cg.u32 %r1, [%rd1];", false},
    {"st.volatile.global.u32 [%rd1], %r1;", false},
    {"st.release.gpu.global.u32 [%rd1], %r1; membar.gl;", false},
    /* clocks, functions of the device, calls */
    {"mov.u32 %r1, %clock; st.global.u32 [%rd1], %r1;", true},
    {"mov.u32 %r1, %ctaid.x; st.global.u32 [%rd1], %r1;", false},
    {"call.uni (%rd2), malloc, (%rd1);", true},
    {"call.uni sums, (%rd1);", true},
    {"call.uni counts, (%rd1);", false},
    {"mov.u64 %rd2, counts; call %rd2, (%rd1), P;", true},
};

START_TEST(kernels_that_observe_the_order)
{
  char text[2000];

  snprintf(text, sizeof text,
           HEAD_90
           ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
           ".shared .align 8 .b8 sh[8];\n"
           ".func sums (.reg .b64 a) { red.global.add.f32 [a], 0f3f800000; "
           "ret; }\n"
           ".func counts (.reg .b64 a) { red.global.add.u32 [a], 1; ret; }\n"
           ".visible .entry k (.param .u64 a) {\n"
           "P: .callprototype _ (.reg .b64 a);\n"
           ".reg .pred %%p<2>; .reg .b32 %%r<3>; .reg .b64 %%rd<3>;\n"
           ".reg .f32 %%f<2>; .reg .f64 %%fd<2>;\n"
           "ld.param.u64 %%rd1, [a]; mov.u32 %%r1, 0; setp.eq.u32 %%p1, %%r1, "
           "1;\n%s\nret; }\n",
           cases[_i].text);
  if (load(text) != KILN_OK)
    ck_abort_msg("%s: %s", cases[_i].text, kiln_last_error()->message);
  ck_assert_msg(kiln__cpu_program_entry(program, "k")->ordered ==
                    cases[_i].ordered,
                "%s", cases[_i].text);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("block_order");
  TCase *t = tcase_create("order");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, kernels_that_observe_the_order, 0,
                      sizeof cases / sizeof cases[0]);
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(make_suite)
