/* run_test.c -- tests the execution of grids: blocks, barriers, calls, system
 * functions and wrong synchronisation, with two schedulers and several
 * seeds. */
#include "ways.h"

#include "cpu/watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Blocks and special registers ---------------------------------------- */

static const char ids[] =
    ".visible .entry k(.param .u64 out, .param .u32 n) {\n"
    ".reg .b32 %r<20>; .reg .b64 %a<4>; .reg .pred %q;\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
    "mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;\n"
    "mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1;\n"
    "mul.lo.u32 %r8, %r4, %r5; mul.lo.u32 %r8, %r8, %r6;\n"
    "mov.u32 %r9, %ctaid.x; mov.u32 %r10, %ctaid.y; mov.u32 %r11, %ctaid.z;\n"
    "mov.u32 %r12, %nctaid.x; mov.u32 %r13, %nctaid.y;\n"
    "mad.lo.u32 %r14, %r11, %r13, %r10; mad.lo.u32 %r14, %r14, %r12, %r9;\n"
    "mad.lo.u32 %r15, %r14, %r8, %r7;\n"
    "ld.param.u32 %r16, [n]; setp.ge.u32 %q, %r15, %r16; @%q bra END;\n"
    "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r15, 4;\n"
    "add.u64 %a3, %a1, %a2; mov.u32 %r17, %laneid;\n"
    "shl.b32 %r17, %r17, 24; or.b32 %r17, %r17, %r15;\n"
    "mov.u32 %r18, %warpid; shl.b32 %r18, %r18, 16;\n"
    "add.u32 %r17, %r17, %r18; st.global.u32 [%a3], %r17;\n"
    "END: ret; }\n";

START_TEST(every_thread_of_every_block)
{
  const uint32_t n = 7 * 3 * 2 * 45 - 3;
  uint64_t out;

  cpu_ptx_load(&p, ids);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, n * 4);
  p.launch.grid_dim[0] = 7;
  p.launch.grid_dim[1] = 3;
  p.launch.grid_dim[2] = 2;
  p.launch.block_dim[0] = 5;
  p.launch.block_dim[1] = 3;
  p.launch.block_dim[2] = 3;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out, n});
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t t = i % 45;

    ck_assert_uint_eq(((uint32_t *)cpu_ptx_at(&p, out, n * 4))[i],
                      ((t % 32) << 24 | i) + (t / 32 << 16));
  }
}
END_TEST

/* ---- Stores -------------------------------------------------------------- */

/* A cache policy in a register of 64 bits follows a value of 32 bits. */
static const char hinted[] =
    ENTRY("k") "mov.u32 %r1, %tid.x; ld.param.u64 %a1, [out]; mul.wide.u32 "
               "%a2, %r1, 8;\n"
               "add.u64 %a3, %a1, %a2; add.u32 %r2, %r1, 100; add.u32 %r3, "
               "%r1, 200;\n"
               "createpolicy.fractional.L2::evict_last.b64 %a4, 1.0;\n"
               "st.global.L2::cache_hint.u32 [%a3], %r2, %a4;\n"
               "st.global.L2::cache_hint.u32 [%a3+4], %r3, %a4; ret; }\n";

START_TEST(stores_with_cache_policies)
{
  const uint32_t *got = run_for(hinted, _i, "k", 1, 32, 32 * 8);

  for (uint32_t i = 0; i < 32; i++) {
    ck_assert_uint_eq(got[2 * i], i + 100);
    ck_assert_uint_eq(got[2 * i + 1], i + 200);
  }
}
END_TEST

/* ---- Divergence ---------------------------------------------------------- */

/* Each thread counts the steps of the 3x+1 iteration. Threads with x = 0 exit
 * early. */
static const char collatz[] = ENTRY(
    "k") "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
         "mad.lo.u32 %r1, %r2, %r3, %r1; mov.u32 %r4, %r1;\n"
         "setp.eq.u32 %q1, %r4, 0; @%q1 exit;\n"
         "mov.u32 %r5, 0;\n"
         "LOOP: setp.eq.u32 %q1, %r4, 1; @%q1 bra DONE;\n"
         "add.u32 %r5, %r5, 1; and.b32 %r6, %r4, 1; setp.eq.u32 %q2, %r6, 0;\n"
         "@%q2 bra EVEN; mad.lo.u32 %r4, %r4, 3, 1; bra.uni LOOP;\n"
         "EVEN: shr.u32 %r4, %r4, 1; bra.uni LOOP;\n"
         "DONE: ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
         "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r5; ret; }\n";

START_TEST(threads_diverge_and_leave)
{
  const uint32_t *got = run_for(collatz, _i, "k", 7, 100, 700 * 4);

  for (uint32_t i = 1; i < 700; i++) {
    uint32_t steps = 0;

    for (uint64_t x = i; x != 1; x = (x & 1) != 0 ? 3 * x + 1 : x / 2)
      steps++;
    ck_assert_uint_eq(got[i], steps);
  }
  ck_assert_uint_eq(got[0], 0);
}
END_TEST

/* ---- Barriers ------------------------------------------------------------ */

/* A kernel that computes a tree reduction over a block. Threads from number 150
 * on exit before the second barrier. */
static const char tree[] = ENTRY(
    "k") ".shared .align 4 .b8 buf[1024];\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r9, buf;\n"
         "shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r9;\n"
         "mov.u32 %r3, 0; st.shared.u32 [%r2], %r3; \n"
         "bar.sync 0;\n"
         "setp.ge.u32 %q1, %r1, 150; @%q1 ret;\n"
         "mov.u32 %r8, %ctaid.x; add.u32 %r3, %r1, %r8; st.shared.u32 [%r2], "
         "%r3;\n"
         "mov.u32 %r4, 128;\n"
         "LOOP: bar.sync 0; setp.ge.u32 %q2, %r1, %r4; @%q2 bra SKIP;\n"
         "shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r2; ld.shared.u32 %r6, "
         "[%r5];\n"
         "ld.shared.u32 %r7, [%r2]; add.u32 %r7, %r7, %r6;\n"
         "st.shared.u32 [%r2], %r7;\n"
         "SKIP: shr.u32 %r4, %r4, 1; setp.ne.u32 %q3, %r4, 0; @%q3 bra LOOP;\n"
         "setp.ne.u32 %q1, %r1, 0; @%q1 bra END;\n"
         "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r8, 4;\n"
         "add.u64 %a3, %a1, %a2; ld.shared.u32 %r7, [%r9];\n"
         "st.global.u32 [%a3], %r7;\n"
         "END: ret; }\n";

START_TEST(blocks_meet_at_barriers)
{
  const uint32_t *got = run_for(tree, _i, "k", 50, 256, 50 * 4);

  for (uint32_t i = 0; i < 50; i++)
    ck_assert_uint_eq(got[i], 149 * 150 / 2 + 150 * i);
}
END_TEST

/* A kernel that executes barrier.red with popc, and, and or over 100 threads.
 * It then uses a thread count of 64 in two of the warps. */
static const char votes[] = ENTRY(
    "k") "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; setp.eq.u32 %q1, %r2, 0;\n"
         "bar.red.popc.u32 %r3, 0, %q1;\n"
         "barrier.red.popc.u32 %r4, 1, !%q1;\n"
         "setp.lt.u32 %q2, %r1, 100;\n"
         "bar.red.and.pred %q3, 2, %q2; selp.u32 %r5, 1, 0, %q3;\n"
         "setp.eq.u32 %q2, %r1, 77;\n"
         "bar.red.or.pred %q4, 3, %q2; selp.u32 %r6, 2, 0, %q4;\n"
         "bar.red.and.pred %q5, 0, %q2; selp.u32 %r7, 4, 0, %q5;\n"
         "or.b32 %r5, %r5, %r6; or.b32 %r5, %r5, %r7;\n"
         "shl.b32 %r4, %r4, 8; shl.b32 %r5, %r5, 16; or.b32 %r3, %r3, %r4;\n"
         "or.b32 %r3, %r3, %r5;\n"
         "mov.u32 %r8, 0; setp.ge.u32 %q2, %r1, 64; @%q2 bra OUT;\n"
         "bar.red.popc.u32 %r8, 4, 64, %q1;\n"
         "OUT: shl.b32 %r8, %r8, 24; or.b32 %r3, %r3, %r8;\n"
         "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
         "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r3; ret; }\n";

START_TEST(barriers_count_predicates)
{
  const uint32_t *got = run_for(votes, _i, "k", 1, 100, 100 * 4);

  for (uint32_t i = 0; i < 100; i++)
    ck_assert_uint_eq(got[i],
                      34u | 66u << 8 | 3u << 16 | (i < 64 ? 22u << 24 : 0));
}
END_TEST

/* A kernel in which warp 0 sends values to warp 1, through one word and two
 * named barriers. */
static const char named[] = ENTRY(
    "k") ".shared .align 4 .u32 cell[32];\n"
         "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mov.u32 %r3, cell;\n"
         "shl.b32 %r4, %r2, 2; add.u32 %r4, %r4, %r3; mov.u32 %r5, 0;\n"
         "mov.u32 %r6, 0; setp.ge.u32 %q1, %r1, 32; @%q1 bra CONSUME;\n"
         "PRODUCE: mad.lo.u32 %r7, %r5, 32, %r2; st.shared.u32 [%r4], %r7;\n"
         "bar.arrive 1, 64; bar.sync 2, 64;\n"
         "add.u32 %r5, %r5, 1; setp.lt.u32 %q2, %r5, 20; @%q2 bra PRODUCE;\n"
         "bra.uni END;\n"
         "CONSUME: bar.sync 1, 64; ld.shared.u32 %r7, [%r4];\n"
         "add.u32 %r6, %r6, %r7; bar.arrive 2, 64;\n"
         "add.u32 %r5, %r5, 1; setp.lt.u32 %q2, %r5, 20; @%q2 bra CONSUME;\n"
         "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r2, 4;\n"
         "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r6;\n"
         "END: ret; }\n";

START_TEST(named_barriers_hand_over)
{
  const uint32_t *got = run_for(named, _i, "k", 1, 64, 128);

  for (uint32_t i = 0; i < 32; i++)
    ck_assert_uint_eq(got[i], 32 * 190 + 20 * i);
}
END_TEST

/* A kernel whose barriers expect 64 threads, although the block has only 40.
 * The second warp has 8 threads, but it counts as 32. */
static const char partial[] =
    ENTRY("k") "mov.u32 %r1, %tid.x; setp.eq.u32 %q1, %r1, 39; @%q1 exit;\n"
               "barrier.sync 1, 64; bar.sync 2, 64; ld.param.u64 %a1, [out];\n"
               "atom.global.add.u32 %r2, [%a1], 1; ret; }\n";

START_TEST(short_warps_count_as_whole)
{
  const uint32_t *got = run_for(partial, _i, "k", 2, 40, 4);

  ck_assert_uint_eq(got[0], 78);
}
END_TEST

/* A kernel in which the two halves of a warp arrive at different barrier
 * instructions. With independent thread scheduling, lanes count as single
 * threads. */
static const char half[] = ENTRY(
    "k") "mov.u32 %r1, %tid.x; setp.lt.u32 %q1, %r1, 16; mov.u32 %r2, 1;\n"
         "@%q1 bra LOW; barrier.sync 0; mov.u32 %r2, 2; bra.uni END;\n"
         "LOW: barrier.sync 0; mov.u32 %r2, 3;\n"
         "END: ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
         "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r2; ret; }\n";

START_TEST(threads_count_one_by_one)
{
  const uint32_t *got = run_for(half, 0, "k", 1, 48, 256);

  for (uint32_t i = 0; i < 48; i++)
    ck_assert_uint_eq(got[i], i < 16 ? 3 : 2);
}
END_TEST

/* A kernel in which each block of a cluster of 4 passes its number to the next
 * block. The number is in global memory, and a cluster barrier orders the
 * accesses. */
static const char cluster[] = ENTRY(
    "k") "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, "
         "%cluster_ctarank;\n"
         "mov.u32 %r4, %clusterid.x; mov.u32 %r5, %cluster_nctarank;\n"
         "setp.ge.u32 %q1, %r1, 40; @%q1 exit;\n"
         "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r2, 4;\n"
         "add.u64 %a3, %a1, %a2; mov.u32 %r10, 0;\n"
         "LOOP: mad.lo.u32 %r6, %r10, 1000, %r2; setp.ne.u32 %q2, %r1, 33;\n"
         "@%q2 bra GO; st.global.u32 [%a3], %r6;\n"
         "GO: barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
         "add.u32 %r7, %r3, 1; rem.u32 %r7, %r7, %r5; mad.lo.u32 %r7, %r4, "
         "%r5, "
         "%r7;\n"
         "mul.wide.u32 %a4, %r7, 4; add.u64 %a4, %a1, %a4; \n"
         "ld.global.u32 %r8, [%a4]; mad.lo.u32 %r9, %r10, 1000, %r7;\n"
         "setp.ne.u32 %q3, %r8, %r9; @%q3 trap;\n"
         "barrier.cluster.arrive; barrier.cluster.wait;\n"
         "add.u32 %r10, %r10, 1; setp.lt.u32 %q3, %r10, 5; @%q3 bra LOOP;\n"
         "ret; }\n";

START_TEST(clusters_meet)
{
  uint64_t out;

  cpu_ptx_load(&p, cluster);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 12 * 4);
  sizes(12, 64);
  p.launch.cluster_dim[0] = 4;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  ck_assert_uint_eq(((uint32_t *)cpu_ptx_at(&p, out, 48))[11], 4011);
}
END_TEST

/* Every thread executes the instruction between its arrival and its wait. */
static const char between[] = ENTRY(
    "k") "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
         "mad.lo.u32 %r1, %r2, %r3, %r1; ld.param.u64 %a1, [out];\n"
         "mul.wide.u32 %a2, %r1, 4; add.u64 %a3, %a1, %a2;\n"
         "barrier.cluster.arrive.relaxed.aligned; add.u32 %r1, %r1, 7;\n"
         "barrier.cluster.wait.aligned; st.global.u32 [%a3], %r1; ret; }\n";

START_TEST(arrivals_skip_nothing)
{
  uint64_t out;

  cpu_ptx_load(&p, between);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 256 * 4);
  sizes(4, 64);
  p.launch.cluster_dim[0] = 2;
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  for (uint32_t i = 0; i < 256; i++)
    ck_assert_uint_eq(((uint32_t *)cpu_ptx_at(&p, out, 1024))[i], i + 7);
}
END_TEST

/* ---- Calls --------------------------------------------------------------- */

static const char calls[] =
    ".func (.param .b32 ret) fib(.param .b32 n) {\n"
    ".reg .b32 %r<8>; .reg .pred %q;\n"
    "ld.param.u32 %r1, [n]; setp.ge.u32 %q, %r1, 2; @%q bra DEEP;\n"
    "st.param.b32 [ret], %r1; ret;\n"
    "DEEP: sub.u32 %r2, %r1, 1; sub.u32 %r3, %r1, 2;\n"
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\n"
    "call (b), fib, (a); ld.param.b32 %r4, [b]; }\n"
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3;\n"
    "call (b), fib, (a); ld.param.b32 %r5, [b]; }\n"
    "add.u32 %r4, %r4, %r5; st.param.b32 [ret], %r4; ret; }\n"
    ".func (.param .b64 ret) twice(.param .b64 x) { .reg .b64 %a<3>;\n"
    "ld.param.u64 %a1, [x]; add.u64 %a1, %a1, %a1;\n"
    "st.param.b64 [ret], %a1; ret; }\n"
    ".func (.param .b64 ret) square(.param .b64 x) { .reg .b64 %a<3>;\n"
    "ld.param.u64 %a1, [x]; mul.lo.u64 %a1, %a1, %a1;\n"
    "st.param.b64 [ret], %a1; ret; }\n"
    ".global .u64 table[2] = {twice, square};\n" ENTRY(
        "recurse") "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 13; mov.u32 %r3, "
                   "0;\n"
                   "setp.eq.u32 %q1, %r2, 5; @%q1 bra SKIP;\n"
                   "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\n"
                   "call (b), fib, (a); ld.param.b32 %r3, [b]; }\n"
                   "SKIP: ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
                   "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r3; ret; "
                   "}\n" ENTRY(
                       "indirect") "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; "
                                   "mul.wide.u32 %a1, %r2, 8;\n"
                                   "mov.u64 %a2, table; add.u64 %a1, %a1, %a2; "
                                   "ld.global.u64 %a3, [%a1];\n"
                                   "cvt.u64.u32 %a4, %r1;\n"
                                   "{ .param .b64 a; .param .b64 b; "
                                   "st.param.b64 [a], %a4;\n"
                                   "proto: .callprototype (.param .b64 _) _ "
                                   "(.param .b64 _);\n"
                                   "call (b), %a3, (a), proto; ld.param.b64 "
                                   "%a5, [b]; }\n"
                                   "ld.param.u64 %a6, [out]; mul.wide.u32 %a7, "
                                   "%r1, 8;\n"
                                   "add.u64 %a6, %a6, %a7; st.global.u64 "
                                   "[%a6], %a5; ret; }\n"
                                   ".visible .entry nowhere(.param .u64 f) {\n"
                                   ".reg .b64 %a<9>; ld.param.u64 %a3, [f];\n"
                                   "{ .param .b64 a; .param .b64 b; "
                                   "st.param.b64 [a], %a3;\n"
                                   "proto: .callprototype (.param .b64 _) _ "
                                   "(.param .b64 _);\n"
                                   "call (b), %a3, (a), proto; }\n"
                                   "ret; }\n";

START_TEST(calls_recurse_under_divergence)
{
  static const uint32_t fib[] = {0, 1, 1, 2, 3, 0, 8, 13, 21, 34, 55, 89, 144};
  const uint32_t *got = run_for(calls, _i, "recurse", 1, 100, 400);

  for (uint32_t i = 0; i < 100; i++)
    ck_assert_uint_eq(got[i], fib[i % 13]);
}
END_TEST

START_TEST(calls_by_address)
{
  const uint64_t *got = run_for(calls, _i, "indirect", 1, 100, 800);

  for (uint64_t i = 0; i < 100; i++)
    ck_assert_uint_eq(got[i], (i & 1) != 0 ? i * i : 2 * i);
}
END_TEST

START_TEST(calls_that_go_wrong)
{
  static const char *const pc[] = {"nowhere", "no function", "0x1234", NULL};
  static const char *const deep[] = {"recurse", "stack overflow",
                                     "function `fib`", NULL};
  uint64_t out;

  cpu_ptx_load(&p, calls);
  use_way(_i);
  cpu_ptx_fails(&p, "nowhere", (uint64_t[]){0x1234}, KILN__FAULT_PC, pc);
  out = cpu_ptx_buffer(&p, NULL, 128);
  p.launch.local_limit = 128;
  sizes(1, 32);
  cpu_ptx_fails(&p, "recurse", (uint64_t[]){out}, KILN__FAULT_STACK, deep);
}
END_TEST

/* ---- System functions ---------------------------------------------------- */

static const char prints[] =
    ".extern .func (.param .b32 ret) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 ret) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 n);\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l,\n"
    " .param .b64 g, .param .b64 s);\n"
    ".visible .global .align 1 .b8 format[200];\n"
    ".visible .global .align 1 .b8 text[16];\n"
    ".visible .entry say(.param .u64 args, .param .u64 out) {\n"
    ".reg .b32 %r<4>; .reg .b64 %a<5>; .reg .pred %q;\n"
    "mov.u64 %a1, format; ld.param.u64 %a2, [args];\n"
    "{ .param .b64 f; .param .b64 a; .param .b32 r;\n"
    "st.param.b64 [f], %a1; st.param.b64 [a], %a2;\n"
    "call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }\n"
    "ld.param.u64 %a3, [out]; st.global.u32 [%a3], %r1; ret; }\n"
    ".visible .entry heap(.param .u64 size, .param .u64 out) {\n"
    ".reg .b32 %r<4>; .reg .b64 %a<5>; .reg .pred %q;\n"
    "ld.param.u64 %a1, [size]; mov.u32 %r1, %tid.x;\n"
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], %a1;\n"
    "call (r), malloc, (n); ld.param.b64 %a2, [r]; }\n"
    "setp.eq.u64 %q, %a2, 0; @%q bra NONE; st.u32 [%a2], %r1; "
    "ld.u32 %r2, [%a2];\n"
    "{ .param .b64 n; st.param.b64 [n], %a2; call free, (n); }\n"
    "ld.param.u64 %a3, [out]; atom.global.add.u32 %r3, [%a3], %r2; ret;\n"
    "NONE: ld.param.u64 %a3, [out]; atom.global.add.u32 %r3, [%a3], 1000;\n"
    "ret; }\n"
    ".visible .entry unfree(.param .u64 what) { .reg .b64 %a<3>;\n"
    "ld.param.u64 %a1, [what];\n"
    "{ .param .b64 n; st.param.b64 [n], %a1; call free, (n); } ret; }\n"
    ".visible .entry assert(.param .u64 what) { .reg .b64 %a<3>;\n"
    ".reg .b32 %r<3>; .reg .pred %q; mov.u32 %r1, %tid.x;\n"
    "setp.ne.u32 %q, %r1, 33; @%q bra END; mov.u64 %a1, text;\n"
    "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g;\n"
    ".param .b64 s; st.param.b64 [m], %a1; st.param.b64 [f], %a1;\n"
    "st.param.b32 [l], 12; st.param.b64 [g], %a1; st.param.b64 [s], 1;\n"
    "call __assertfail, (m, f, l, g, s); }\n"
    "END: ret; }\n";

typedef struct arguments {
  uint8_t bytes[64];
  size_t size;
} arguments;

static void put(arguments *a, const void *value, size_t size)
{
  a->size = (a->size + size - 1) / size * size;
  memcpy(a->bytes + a->size, value, size);
  a->size += size;
}

static void say(const char *format, const arguments *a, const char *want,
                int count)
{
  const uint64_t args = cpu_ptx_buffer(&p, a->bytes, sizeof a->bytes);
  const uint64_t out = cpu_ptx_buffer(&p, NULL, 4);

  memcpy(cpu_ptx_at(&p, cpu_ptx_global(&p, "format"), strlen(format) + 1),
         format, strlen(format) + 1);
  free(p.output);
  p.output = NULL;
  p.output_size = 0;
  sizes(1, 1);
  cpu_ptx_ok(&p, "say", (uint64_t[]){args, out});
  ck_assert_str_eq(p.output != NULL ? p.output : "", want);
  ck_assert_int_eq((int)word(out), count);
}

START_TEST(printf_formats)
{
  const int minus = -7, width = 8, narrow = 0x12345;
  const long long wide = -5000000000;
  const double third = 1.0 / 3;
  const unsigned hex = 0xbeef;
  arguments a = {.size = 0};
  uint64_t text;

  cpu_ptx_load(&p, prints);
  text = cpu_ptx_global(&p, "text");
  memcpy(cpu_ptx_at(&p, text, 6), "hello", 6);
  say("plain 100%%\n", &a, "plain 100%\n", 0);
  put(&a, &minus, 4);
  put(&a, &wide, 8);
  put(&a, &third, 8);
  put(&a, &text, 8);
  put(&a, &hex, 4);
  say("%d|%lld|%.3f|%s|%#x", &a, "-7|-5000000000|0.333|hello|0xbeef", 5);
  a.size = 0;
  put(&a, &width, 4);
  put(&a, &minus, 4);
  put(&a, &minus, 4);
  put(&a, &third, 8);
  put(&a, &third, 8);
  put(&a, &text, 8);
  say("[%*d][%-6d][%10.2e][%g][%-7s]", &a,
      "[      -7][-7    ][  3.33e-01][0.333333][hello  ]", 6);
  a.size = 0;
  put(&a, &narrow, 4);
  put(&a, &narrow, 4);
  put(&a, &hex, 4);
  put(&a, &text, 8);
  put(&a, &text, 8);
  say("%hd %hhu %c [%8.2s] %s %q %", &a, "9029 69 \xef [      he] hello %q %",
      5);
  a.size = 0;
  put(&a, &hex, 4);
  put(&a, &third, 8);
  put(&a, &wide, 8);
  say("%05X %+.0f %p", &a, "0BEEF +0 0xfffffffed5fa0e00", 3);
}
END_TEST

START_TEST(heaps)
{
  uint64_t out, size = 64;
  kiln__cpu_range range;

  cpu_ptx_load(&p, prints);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 4);
  sizes(4, 64);
  cpu_ptx_ok(&p, "heap", (uint64_t[]){size, out});
  ck_assert_uint_eq(word(out), 4 * 64 * 63 / 2);
  *(uint32_t *)cpu_ptx_at(&p, out, 4) = 0;
  sizes(1, 1); /* The kernel requests more heap memory than the limit allows. */
  cpu_ptx_ok(&p, "heap", (uint64_t[]){p.launch.heap_limit + 1, out});
  ck_assert_uint_eq(word(out), 1000);
  cpu_ptx_fails(&p, "unfree", (uint64_t[]){out}, KILN__FAULT_ADDRESS, NULL);
  ck_assert(kiln__cpu_memory_find(p.memory, out, &range));
}
END_TEST

/* Compilers load {s[4], s[5], s[6]} of 28 bytes as one vector of 16 bytes. A
 * vector that begins past the end is out of bounds, and so is a word. */
START_TEST(vectors_may_cross_the_end)
{
#define TAIL(name, load)                                                       \
  ".visible .entry " name "(.param .u64 out)\n{\n\t.reg .b64 %d;\n"            \
  "\t.reg .b32 %r<4>;\n\tld.param.u64 %d, [out];\n"                            \
  "\tst.shared.u32 [s+24], 7;\n\t" load                                        \
  "\n\tst.global.u32 [%d], %r2;\n\tret;\n}\n"
  static const char text[] =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".extern .shared .align 16 .b8 s[];\n" TAIL(
          "tail", "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [s+16];")
          TAIL("past", "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [s+32];")
              TAIL("word", "ld.shared.u32 %r2, [s+28];");
#undef TAIL
  uint64_t out;

  cpu_ptx_load(&p, text);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 4);
  sizes(1, 1);
  p.launch.dynamic_shared = 28;
  cpu_ptx_ok(&p, "tail", (uint64_t[]){out});
  ck_assert_uint_eq(word(out), 7);
  cpu_ptx_fails(&p, "past", (uint64_t[]){out}, KILN__FAULT_ADDRESS, NULL);
  cpu_ptx_fails(&p, "word", (uint64_t[]){out}, KILN__FAULT_ADDRESS, NULL);
}
END_TEST

START_TEST(assertions)
{
  static const char line[] = "hello:12: hello: block: [0,0,0], thread: "
                             "[33,0,0] Assertion `hello` failed.";

  cpu_ptx_load(&p, prints);
  use_way(_i);
  memcpy(cpu_ptx_at(&p, cpu_ptx_global(&p, "text"), 6), "hello", 6);
  sizes(1, 64);
  cpu_ptx_fails(&p, "assert", (uint64_t[]){0}, KILN__FAULT_ASSERT,
                (const char *const[]){line, NULL});
  ck_assert_ptr_nonnull(p.output);
  ck_assert(strncmp(p.output, line, strlen(line)) == 0);
}
END_TEST

/* ---- Grid-wide synchronisation ------------------------------------------- */

/* A kernel that synchronises the grid as the CUDA headers do. The address of
 * the workspace is in %envreg1 and %envreg2. The first thread of each block
 * increments a counter, and the top bit of the counter flips when all blocks
 * have arrived. */
static const char grids[] =
    ".visible .entry k(.param .u64 cells, .param .u32 rounds) {\n"
    ".reg .b32 %r<20>; .reg .b64 %a<8>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; cvt.u64.u32 %a1, %r2;\n"
    "cvt.u64.u32 %a2, %r1; bfi.b64 %a1, %a2, %a1, 32, 32;\n"
    "setp.eq.u64 %q1, %a1, 0; @%q1 trap; add.u64 %a1, %a1, 4;\n"
    "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %tid.x;\n"
    "ld.param.u64 %a3, [cells]; ld.param.u32 %r6, [rounds];\n"
    "mul.wide.u32 %a4, %r3, 4; add.u64 %a4, %a3, %a4;\n"
    "add.u32 %r7, %r3, 1; rem.u32 %r7, %r7, %r4; mul.wide.u32 %a5, %r7, 4;\n"
    "add.u64 %a5, %a3, %a5; mov.u32 %r8, 0;\n"
    "ROUND: setp.ne.u32 %q1, %r5, 0;\n"
    "ld.global.u32 %r9, [%a5]; setp.ne.u32 %q2, %r9, %r8; @%q2 trap;\n"
    "mov.u32 %r15, 0;\n"
    "SYNC: barrier.sync 0; @%q1 bra HERE;\n"
    "sub.u32 %r10, %r4, 1; sub.u32 %r10, 0x80000000, %r10;\n"
    "setp.eq.u32 %q3, %r3, 0; selp.b32 %r11, %r10, 1, %q3;\n"
    "atom.add.release.gpu.u32 %r12, [%a1], %r11;\n"
    "POLL: ld.acquire.gpu.u32 %r13, [%a1]; xor.b32 %r14, %r13, %r12;\n"
    "setp.gt.s32 %q3, %r14, -1; @%q3 bra POLL;\n"
    "HERE: barrier.sync 0; setp.ne.u32 %q3, %r15, 0; @%q3 bra NEXT;\n"
    "mov.u32 %r15, 1; @%q1 bra SYNC;\n"
    "add.u32 %r16, %r8, 1; st.global.u32 [%a4], %r16; bra.uni SYNC;\n"
    "NEXT: add.u32 %r8, %r8, 1; setp.lt.u32 %q3, %r8, %r6; @%q3 bra ROUND;\n"
    "ret; }\n";

START_TEST(grids_synchronise)
{
  uint64_t cells;

  cpu_ptx_load(&p, grids);
  use_way(_i);
  sizes(40, 64);
  p.launch.cooperative = true;
  cells = cpu_ptx_buffer(&p, NULL, 160);
  cpu_ptx_ok(&p, "k", (uint64_t[]){cells, 9});
  for (uint32_t i = 0; i < 40; i++)
    ck_assert_uint_eq(word(cells + 4 * i), 9);
  /* A launch that is not cooperative has no workspace. */
  p.launch.cooperative = false;
  cpu_ptx_fails(&p, "k", (uint64_t[]){cells, 9}, KILN__FAULT_TRAP, NULL);
}
END_TEST

/* ---- Wrong uses of synchronisation --------------------------------------- */

static const char misused[] =
    /* In this kernel, lanes 16 and above skip the barrier. */
    ENTRY("past") "mov.u32 %r1, %tid.x; setp.ge.u32 %q1, %r1, 16; @%q1 bra "
                  "SKIP;\n"
                  "bar.sync 0;\n"
                  "SKIP: ld.param.u64 %a1, [out]; st.global.u32 [%a1], %r1; "
                  "ret; }\n"
    /* In this kernel, the two halves of the warp arrive at different
     * barriers. */
    ENTRY(
        "two") "mov.u32 %r1, %tid.x; setp.ge.u32 %q1, %r1, 16; @%q1 bra HIGH;\n"
               "bar.sync 0; bra.uni END;\n"
               "HIGH: bar.sync 0;\n"
               "END: ld.param.u64 %a1, [out]; st.global.u32 [%a1], %r1; ret; "
               "}\n"
    /* In these kernels, a member mask lacks the executing lane, or contains a
     * lane that has exited. */
    ENTRY("self") "mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2, %r1, 0, 31, "
                  "0xffff;\n"
                  "ret; }\n" ENTRY("gone") "mov.u32 %r1, %tid.x; setp.eq.u32 "
                                           "%q1, %r1, 3; @%q1 exit;\n"
                                           "bar.warp.sync -1; ret; }\n"
    /* This kernel is correct: some lanes exit early, and lanes leave a loop at
     * different times. */
    ENTRY("early") "mov.u32 %r1, %tid.x; setp.ge.u32 %q1, %r1, 45; @%q1 bra "
                   "END;\n"
                   "and.b32 %r2, %r1, 7;\n"
                   "LOOP: setp.eq.u32 %q2, %r2, 0; @%q2 bra OUT; sub.u32 %r2, "
                   "%r2, 1;\n"
                   "bra.uni LOOP; OUT: bar.sync 0;\n"
                   "ld.param.u64 %a1, [out]; st.global.u32 [%a1], %r1;\n"
                   "END: ret; }\n";

typedef struct found {
  unsigned n, line;
  char kind[40], text[2000];
} found;

static void keep_finding(void *user, const kiln_cpu_finding *f)
{
  found *const all = user;

  all->n++;
  all->line = f->ptx_line;
  snprintf(all->kind, sizeof all->kind, "%s", f->kind);
  snprintf(all->text, sizeof all->text, "%s", f->text);
}

static const struct misuse {
  /* `kind` is the expected finding; NULL means that none is expected. */
  const char *kernel, *kind;
  unsigned line;
} misuses[] = {{"past", "divergent barrier", 7},
               {"two", "divergent barrier", 12},
               {"self", "wrong mask", 17},
               {"gone", "wrong mask", 22},
               {"early", NULL, 0}};

static void check_misuse(const struct misuse *m, bool lock_step)
{
  found all = {0};
  uint64_t out;

  cpu_ptx_load(&p, misused);
  p.launch.lock_step = lock_step;
  out = cpu_ptx_buffer(&p, NULL, 4);
  sizes(1, m->kind == NULL ? 64 : 32);
  ck_kiln_ok(kiln__cpu_watch_create(
      &p.launch.watch, &p.memory_of.alloc, KILN_CPU_CHECK_SYNC, false,
      p.program, kiln__cpu_program_entry(p.program, m->kernel)));
  cpu_ptx_ok(&p, m->kernel, (uint64_t[]){out});
  kiln__cpu_watch_findings(p.launch.watch, keep_finding, &all);
  kiln__cpu_watch_free(p.launch.watch);
  if (m->kind == NULL) {
    ck_assert_msg(all.n == 0, "%s", all.text);
  } else {
    ck_assert_uint_ge(all.n, 1);
    ck_assert_str_eq(all.kind, m->kind);
    ck_assert_msg(all.line == m->line || (lock_step && all.n > 0),
                  "line %u: %s", all.line, all.text);
  }
}

START_TEST(misuse_is_found)
{
  check_misuse(&misuses[_i / 2], _i % 2 != 0);
}
END_TEST

/* If no lane waits for an asynchronous copy, the copy is dropped when its warp
 * ends. */
START_TEST(copies_in_flight_are_dropped)
{
  static const char text[] =
      ".visible .entry k(.param .u64 in) {\n"
      ".reg .b64 %a<4>; .shared .align 16 .b8 to[16];\n"
      "ld.param.u64 %a1, [in];\n"
      "cp.async.ca.shared.global [to], [%a1], 16; ret; }\n";
  uint64_t in;

  cpu_ptx_load(&p, text);
  use_way(_i);
  in = cpu_ptx_buffer(&p, NULL, 16);
  sizes(8, 64);
  cpu_ptx_ok(&p, "k", (uint64_t[]){in});
}
END_TEST

/* Makes each allocation of a launch fail in turn. The launch must return an
 * error and must not leak memory. */
START_TEST(launches_survive_without_memory)
{
  uint64_t out;
  kiln_status st = KILN_ENOMEM;

  cpu_ptx_load(&p, calls);
  use_way(_i);
  p.launch.threads = 1;
  out = cpu_ptx_buffer(&p, NULL, 400);
  sizes(1, 100);
  for (long n = 0; st != KILN_OK; n++) {
    const long live = p.memory_of.live;

    ck_assert_int_lt(n, 1000);
    p.memory_of.fail_at = p.memory_of.calls + n;
    st = cpu_ptx_run(&p, "recurse", (uint64_t[]){out});
    p.memory_of.fail_at = -1;
    ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM, "allocation %ld: %s", n,
                  kiln_status_name(st));
    ck_assert_int_eq(p.memory_of.live, live);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu run");
  TCase *t = kiln_test_case(s, "blocks", 0, NULL, unload, TESTS(NULL));

  kiln_test_loops(t, N_WAYS,
                  TESTS(every_thread_of_every_block, stores_with_cache_policies,
                        threads_diverge_and_leave,
                        copies_in_flight_are_dropped));
  tcase_add_loop_test(t, launches_survive_without_memory, 0, 2);
  t = kiln_test_case(s, "barriers", 0, NULL, unload,
                     TESTS(threads_count_one_by_one));
  tcase_add_loop_test(t, misuse_is_found, 0, 2 * ROWS(misuses));
  kiln_test_loops(t, N_WAYS,
                  TESTS(blocks_meet_at_barriers, barriers_count_predicates,
                        named_barriers_hand_over, short_warps_count_as_whole,
                        arrivals_skip_nothing, clusters_meet,
                        grids_synchronise));
  t = kiln_test_case(s, "calls", 0, NULL, unload, TESTS(NULL));
  kiln_test_loops(t, N_WAYS,
                  TESTS(vectors_may_cross_the_end,
                        calls_recurse_under_divergence, calls_by_address,
                        calls_that_go_wrong));
  t = kiln_test_case(s, "system", 0, NULL, unload, TESTS(printf_formats));
  kiln_test_loops(t, N_WAYS, TESTS(heaps, assertions));
  return kiln_test_run(s);
}
