/* cpu_run_test.c -- running grids: blocks, barriers, calls, system functions,
 * what stops a launch, under both schedulers and several seeds. */
#include "cpu_ptx.h"

#include "base/os.h"
#include "cpu/watch/watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cpu_ptx p;

/* What every test of results runs under: schedule, seed, host threads. */
static const struct way {
  bool lock_step;
  uint64_t seed;
  unsigned threads;
} ways[] = {{false, 0, 1},  {true, 0, 1}, {false, 1, 1},
            {false, 77, 2}, {true, 5, 3}, {false, 9, 4}};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void use_way(int i)
{
  p.launch.lock_step = ways[i].lock_step;
  p.launch.seed = ways[i].seed;
  p.launch.threads = ways[i].threads;
}

static void sizes(uint32_t grid, uint32_t block)
{
  p.launch.grid_dim[0] = grid;
  p.launch.block_dim[0] = block;
}

/* ---- Blocks and special registers --------------------------------------------- */

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
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Divergence ------------------------------------------------------------------ */

/* Steps of 3x+1 for each thread; threads with x = 0 leave early. */
static const char collatz[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<10>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
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
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, collatz);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 700 * 4);
  sizes(7, 100);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 700 * 4);
  for (uint32_t i = 1; i < 700; i++) {
    uint32_t steps = 0;

    for (uint64_t x = i; x != 1; x = (x & 1) != 0 ? 3 * x + 1 : x / 2)
      steps++;
    ck_assert_uint_eq(got[i], steps);
  }
  ck_assert_uint_eq(got[0], 0);
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Barriers ---------------------------------------------------------------------- */

/* Tree sum of a block; threads from 150 on leave before the first barrier. */
static const char tree[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<12>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    ".shared .align 4 .b8 buf[1024];\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r9, buf;\n"
    "shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r9;\n"
    "mov.u32 %r3, 0; st.shared.u32 [%r2], %r3; \n"
    "bar.sync 0;\n"
    "setp.ge.u32 %q1, %r1, 150; @%q1 ret;\n"
    "mov.u32 %r8, %ctaid.x; add.u32 %r3, %r1, %r8; st.shared.u32 [%r2], %r3;\n"
    "mov.u32 %r4, 128;\n"
    "LOOP: bar.sync 0; setp.ge.u32 %q2, %r1, %r4; @%q2 bra SKIP;\n"
    "shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r2; ld.shared.u32 %r6, [%r5];\n"
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
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, tree);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 50 * 4);
  sizes(50, 256);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 50 * 4);
  for (uint32_t i = 0; i < 50; i++)
    ck_assert_uint_eq(got[i], 149 * 150 / 2 + 150 * i);
  cpu_ptx_free(&p);
}
END_TEST

/* popc, and, or over 100 threads; the same with a count of 64 in two warps. */
static const char votes[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<12>; .reg .b64 %a<4>; .reg .pred %q<6>;\n"
    "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 3; setp.eq.u32 %q1, %r2, 0;\n"
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
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, votes);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 100 * 4);
  sizes(1, 100);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 100 * 4);
  for (uint32_t i = 0; i < 100; i++)
    ck_assert_uint_eq(got[i],
                      34u | 66u << 8 | 3u << 16 | (i < 64 ? 22u << 24 : 0));
  cpu_ptx_free(&p);
}
END_TEST

/* Warp 0 produces, warp 1 consumes, through one word and two named barriers. */
static const char named[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<12>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    ".shared .align 4 .u32 cell[32];\n"
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
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, named);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 128);
  sizes(1, 64);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 128);
  for (uint32_t i = 0; i < 32; i++)
    ck_assert_uint_eq(got[i], 32 * 190 + 20 * i);
  cpu_ptx_free(&p);
}
END_TEST

/* 40 threads at a barrier of 64: the second warp counts as a whole. */
static const char partial[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; setp.eq.u32 %q1, %r1, 39; @%q1 exit;\n"
    "barrier.sync 1, 64; bar.sync 2, 64; ld.param.u64 %a1, [out];\n"
    "atom.global.add.u32 %r2, [%a1], 1; ret; }\n";

START_TEST(short_warps_count_as_whole)
{
  uint64_t out;

  cpu_ptx_load(&p, partial);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 4);
  sizes(2, 40);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  ck_assert_uint_eq(*(uint32_t *)cpu_ptx_at(&p, out, 4), 78);
  cpu_ptx_free(&p);
}
END_TEST

/* Half of a warp at a barrier of its own: independent lanes count as threads. */
static const char half[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; setp.lt.u32 %q1, %r1, 16; mov.u32 %r2, 1;\n"
    "@%q1 bra LOW; barrier.sync 0; mov.u32 %r2, 2; bra.uni END;\n"
    "LOW: barrier.sync 0; mov.u32 %r2, 3;\n"
    "END: ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
    "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r2; ret; }\n";

START_TEST(threads_count_one_by_one)
{
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, half);
  out = cpu_ptx_buffer(&p, NULL, 256);
  sizes(1, 48);
  cpu_ptx_ok(&p, "k", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 256);
  for (uint32_t i = 0; i < 48; i++)
    ck_assert_uint_eq(got[i], i < 16 ? 3 : 2);
  cpu_ptx_free(&p);
}
END_TEST

/* Each block of a cluster of 4 tells the next one its number through global
 * memory, before and after the cluster's barrier. */
static const char cluster[] =
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %r<12>; .reg .b64 %a<6>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, "
    "%cluster_ctarank;\n"
    "mov.u32 %r4, %clusterid.x; mov.u32 %r5, %cluster_nctarank;\n"
    "setp.ge.u32 %q1, %r1, 40; @%q1 exit;\n"
    "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r2, 4;\n"
    "add.u64 %a3, %a1, %a2; mov.u32 %r10, 0;\n"
    "LOOP: mad.lo.u32 %r6, %r10, 1000, %r2; setp.ne.u32 %q2, %r1, 33;\n"
    "@%q2 bra GO; st.global.u32 [%a3], %r6;\n"
    "GO: barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
    "add.u32 %r7, %r3, 1; rem.u32 %r7, %r7, %r5; mad.lo.u32 %r7, %r4, %r5, "
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
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Calls ------------------------------------------------------------------------- */

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
    ".global .u64 table[2] = {twice, square};\n"
    ".visible .entry recurse(.param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 13; mov.u32 %r3, 0;\n"
    "setp.eq.u32 %q1, %r2, 5; @%q1 bra SKIP;\n"
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\n"
    "call (b), fib, (a); ld.param.b32 %r3, [b]; }\n"
    "SKIP: ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
    "add.u64 %a3, %a1, %a2; st.global.u32 [%a3], %r3; ret; }\n"
    ".visible .entry indirect(.param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<9>;\n"
    "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; mul.wide.u32 %a1, %r2, 8;\n"
    "mov.u64 %a2, table; add.u64 %a1, %a1, %a2; ld.global.u64 %a3, [%a1];\n"
    "cvt.u64.u32 %a4, %r1;\n"
    "{ .param .b64 a; .param .b64 b; st.param.b64 [a], %a4;\n"
    "proto: .callprototype (.param .b64 _) _ (.param .b64 _);\n"
    "call (b), %a3, (a), proto; ld.param.b64 %a5, [b]; }\n"
    "ld.param.u64 %a6, [out]; mul.wide.u32 %a7, %r1, 8;\n"
    "add.u64 %a6, %a6, %a7; st.global.u64 [%a6], %a5; ret; }\n"
    ".visible .entry nowhere(.param .u64 f) {\n"
    ".reg .b64 %a<9>; ld.param.u64 %a3, [f];\n"
    "{ .param .b64 a; .param .b64 b; st.param.b64 [a], %a3;\n"
    "proto: .callprototype (.param .b64 _) _ (.param .b64 _);\n"
    "call (b), %a3, (a), proto; }\n"
    "ret; }\n";

START_TEST(calls_recurse_under_divergence)
{
  static const uint32_t fib[] = {0, 1, 1, 2, 3, 0, 8, 13, 21, 34, 55, 89, 144};
  uint32_t *got;
  uint64_t out;

  cpu_ptx_load(&p, calls);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 400);
  sizes(1, 100);
  cpu_ptx_ok(&p, "recurse", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 400);
  for (uint32_t i = 0; i < 100; i++)
    ck_assert_uint_eq(got[i], fib[i % 13]);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(calls_by_address)
{
  uint64_t out, *got;

  cpu_ptx_load(&p, calls);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 800);
  sizes(1, 100);
  cpu_ptx_ok(&p, "indirect", (uint64_t[]){out});
  got = cpu_ptx_at(&p, out, 800);
  for (uint64_t i = 0; i < 100; i++)
    ck_assert_uint_eq(got[i], (i & 1) != 0 ? i * i : 2 * i);
  cpu_ptx_free(&p);
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
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Forward progress ---------------------------------------------------------------- */

static const char spins[] =
    /* lane 0 waits for what lane 1 says, below it in the code */
    ".visible .entry flag(.param .u64 cell, .param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a1, [cell]; mov.u32 %r1, %tid.x; setp.eq.u32 %q1, %r1, 0;\n"
    "@%q1 bra WAIT;\n"
    "mov.u32 %r3, 7; st.volatile.global.u32 [%a1], %r3; bra.uni END;\n"
    "WAIT: ld.volatile.global.u32 %r2, [%a1]; setp.eq.u32 %q2, %r2, 0;\n"
    "@%q2 bra WAIT; ld.param.u64 %a2, [out]; st.global.u32 [%a2], %r2;\n"
    "END: ret; }\n"
    /* every thread takes one lock, lanes of a warp against each other */
    ".visible .entry lock(.param .u64 cell, .param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a1, [cell]; ld.param.u64 %a2, [out];\n"
    "TAKE: atom.global.cas.b32 %r1, [%a1], 0, 1; setp.ne.u32 %q1, %r1, 0;\n"
    "@%q1 bra TAKE;\n"
    "ld.volatile.global.u32 %r2, [%a2]; add.u32 %r2, %r2, 1;\n"
    "st.volatile.global.u32 [%a2], %r2; membar.gl;\n"
    "atom.global.exch.b32 %r1, [%a1], 0; ret; }\n"
    /* two sides of a branch wait for each other */
    ".visible .entry turns(.param .u64 cell, .param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a1, [cell]; ld.param.u64 %a2, [out];\n"
    "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 1; mov.u32 %r4, 0;\n"
    "setp.ne.u32 %q1, %r1, 0; @%q1 bra ODD;\n"
    "EVEN: ld.volatile.global.u32 %r2, [%a1]; and.b32 %r3, %r2, 1;\n"
    "setp.ne.u32 %q2, %r3, 0; @%q2 bra EVEN;\n"
    "add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a1], %r2;\n"
    "add.u32 %r4, %r4, 1; setp.lt.u32 %q2, %r4, 50; @%q2 bra EVEN;\n"
    "bra.uni END;\n"
    "ODD: ld.volatile.global.u32 %r2, [%a1]; and.b32 %r3, %r2, 1;\n"
    "setp.eq.u32 %q2, %r3, 0; @%q2 bra ODD;\n"
    "add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a1], %r2;\n"
    "add.u32 %r4, %r4, 1; setp.lt.u32 %q2, %r4, 50; @%q2 bra ODD;\n"
    "END: ret; }\n"
    /* nobody ever writes */
    ".visible .entry never(.param .u64 cell, .param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a1, [cell];\n"
    "WAIT: ld.global.u32 %r2, [%a1]; setp.eq.u32 %q2, %r2, 0;\n"
    "@%q2 bra WAIT; ret; }\n"
    /* the same, counting */
    ".visible .entry counting(.param .u64 cell, .param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a1, [cell]; mov.u32 %r3, 0;\n"
    "WAIT: ld.acquire.gpu.global.u32 %r2, [%a1]; setp.eq.u32 %q2, %r2, 0;\n"
    "add.u32 %r3, %r3, 1; @%q2 bra WAIT; st.global.u32 [%a1], %r3; ret; }\n"
    /* long, but it ends */
    ".visible .entry slow(.param .u64 cell, .param .u64 out) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a2, [out]; mov.u32 %r1, 0;\n"
    "LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %r1, 600000;\n"
    "@%q1 bra LOOP; st.global.u32 [%a2], %r1; ret; }\n";

static uint64_t cell, result;

static void load_spins(void)
{
  cpu_ptx_load(&p, spins);
  cell = cpu_ptx_buffer(&p, NULL, 4);
  result = cpu_ptx_buffer(&p, NULL, 4);
}

static uint32_t word(uint64_t address)
{
  return *(uint32_t *)cpu_ptx_at(&p, address, 4);
}

START_TEST(lanes_wait_for_lanes)
{
  static const uint64_t seeds[] = {0, 1, 2, 3, 4, 5, 6, 7};

  load_spins();
  p.launch.seed = seeds[_i];
  cpu_ptx_ok(&p, "flag", (uint64_t[]){cell, result});
  ck_assert_uint_eq(word(result), 7);
  *(uint32_t *)cpu_ptx_at(&p, cell, 4) = 0;
  *(uint32_t *)cpu_ptx_at(&p, result, 4) = 0;
  p.launch.threads = 1 + (unsigned)_i % 3;
  sizes(4, 96);
  cpu_ptx_ok(&p, "lock", (uint64_t[]){cell, result});
  ck_assert_uint_eq(word(result), 4 * 96);
  sizes(1, 2);
  cpu_ptx_ok(&p, "turns", (uint64_t[]){cell, result});
  ck_assert_uint_eq(word(cell), 100);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(lock_step_says_who_spins)
{
  static const char *const kernels[] = {"flag", "lock", "turns"};
  static const char *const words[] = {
      "deadlock", "spins",         "lock-step runs one side",
      "PTX line", "block (0,0,0)", NULL};

  load_spins();
  p.launch.lock_step = true;
  cpu_ptx_fails(&p, kernels[_i], (uint64_t[]){cell, result},
                KILN__FAULT_DEADLOCK, words);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(endless_waits_are_found)
{
  static const char *const words[] = {"deadlock", "never", "spins", NULL};

  load_spins();
  use_way(_i);
  sizes(6, 70);
  cpu_ptx_fails(&p, "never", (uint64_t[]){cell, result}, KILN__FAULT_DEADLOCK,
                words);
  sizes(1, 32);
  p.launch.threads = 1;
  cpu_ptx_fails(&p, "counting", (uint64_t[]){cell, result},
                KILN__FAULT_DEADLOCK, NULL);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(long_loops_are_no_deadlock)
{
  load_spins();
  sizes(2, 32);
  cpu_ptx_ok(&p, "slow", (uint64_t[]){cell, result});
  ck_assert_uint_eq(word(result), 600000);
  cpu_ptx_free(&p);
}
END_TEST

/* Block i waits for block i - 1, or with `back` for i + 1, before it ends; more
 * blocks than are resident. */
static const char chain[] =
    ".visible .entry k(.param .u64 cells, .param .u32 step) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<6>; .reg .pred %q<3>;\n"
    "ld.param.u64 %a1, [cells]; mov.u32 %r1, %ctaid.x; mov.u32 %r5, %tid.x;\n"
    "setp.ne.u32 %q1, %r5, 0; @%q1 bra END;\n"
    "mul.wide.u32 %a2, %r1, 4; add.u64 %a2, %a1, %a2;\n"
    "ld.param.u32 %r2, [step]; mul.wide.s32 %a3, %r2, 4;\n"
    "add.u64 %a3, %a2, %a3;\n"
    "WAIT: ld.acquire.gpu.global.u32 %r3, [%a3]; setp.eq.u32 %q2, %r3, 0;\n"
    "@%q2 bra WAIT; add.u32 %r3, %r3, 1;\n"
    "st.release.gpu.global.u32 [%a2], %r3;\n"
    "END: bar.sync 0; ret; }\n";

START_TEST(blocks_wait_for_blocks)
{
  enum { N = 100 };
  static const uint32_t one[1] = {1};
  uint64_t cells;
  uint32_t *c;

  cpu_ptx_load(&p, chain);
  use_way(_i);
  sizes(N, 64);
  /* With a seed, blocks start in any order: all must fit. */
  p.launch.max_resident = p.launch.seed != 0 ? N * 4 : 8;
  cells = cpu_ptx_buffer(&p, NULL, (N + 1) * 4);
  memcpy(cpu_ptx_at(&p, cells, 4), one, 4);
  cpu_ptx_ok(&p, "k", (uint64_t[]){cells + 4, UINT32_MAX});
  c = cpu_ptx_at(&p, cells, (N + 1) * 4);
  for (uint32_t i = 0; i <= N; i++)
    ck_assert_uint_eq(c[i], i + 1);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(blocks_that_do_not_fit_deadlock)
{
  static const char *const words[] = {"deadlock", "spins", "waits at barrier 0",
                                      NULL};
  uint64_t cells;

  cpu_ptx_load(&p, chain);
  sizes(40, 64);
  p.launch.max_resident = 16;
  p.launch.threads = (unsigned)_i;
  cells = cpu_ptx_buffer(&p, NULL, 41 * 4);
  *(uint32_t *)cpu_ptx_at(&p, cells + 160, 4) = 1;
  cpu_ptx_fails(&p, "k", (uint64_t[]){cells, 1}, KILN__FAULT_DEADLOCK, words);
  p.launch.cooperative = true; /* all at once: it works */
  cpu_ptx_ok(&p, "k", (uint64_t[]){cells, 1});
  ck_assert_uint_eq(word(cells), 41);
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Deadlocks without spinning -------------------------------------------------------- */

static const char stuck[] =
    ".visible .entry count(.param .u32 n) { bar.sync 3, 96; ret; }\n"
    ".visible .entry apart(.param .u32 n) {\n"
    ".reg .b32 %r<4>; .reg .pred %q;\n"
    "mov.u32 %r1, %tid.x; setp.lt.u32 %q, %r1, 8; @%q bra LOW;\n"
    "bar.sync 0; bra.uni END;\n"
    "LOW: bar.sync 1; END: ret; }\n"
    ".visible .entry member(.param .u32 n) {\n"
    ".reg .b32 %r<4>; .reg .pred %q;\n"
    "mov.u32 %r1, %tid.x; setp.lt.u32 %q, %r1, 8; @%q bra LOW;\n"
    "bar.sync 0; bra.uni END;\n"
    "LOW: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; bar.sync 0; END: ret; }\n";

START_TEST(waits_for_nobody_are_told)
{
  static const char *const count[] = {"kernel `count`",          "deadlock",
                                      "waits at barrier 3",      "PTX line 4",
                                      "warp 1 lanes 0xffffffff", NULL};
  static const char *const apart[] = {
      "waits at barrier 0", "waits at barrier 1", "lanes 0x000000ff",
      "lanes 0xffffff00",   "look at barriers",   NULL};
  static const char *const member[] = {"waits at barrier 0",
                                       "for lanes 0xffffff00", NULL};

  cpu_ptx_load(&p, stuck);
  sizes(3, 64);
  cpu_ptx_fails(&p, "count", (uint64_t[]){0}, KILN__FAULT_DEADLOCK, count);
  sizes(1, 32);
  cpu_ptx_fails(&p, "apart", (uint64_t[]){0}, KILN__FAULT_DEADLOCK, apart);
  cpu_ptx_fails(&p, "member", (uint64_t[]){0}, KILN__FAULT_DEADLOCK, member);
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Stops ------------------------------------------------------------------------------- */

static const char ends[] =
    ".global .u32 forever[1];\n"
    ".visible .entry loop(.param .u64 out) {\n"
    ".reg .b64 %a<3>; ld.param.u64 %a1, [out];\n"
    "LOOP: red.global.add.u32 [%a1], 1; bra.uni LOOP; }\n"
    ".visible .entry trap(.param .u64 out) {\n"
    ".reg .b32 %r<4>; .reg .pred %q; mov.u32 %r1, %tid.x; mov.u32 %r2, "
    "%ctaid.y;\n"
    "mad.lo.u32 %r1, %r2, 100, %r1; setp.eq.u32 %q, %r1, 145; @%q trap; ret; "
    "}\n"
    ".visible .entry far(.param .u64 out) {\n"
    ".reg .b32 %r<4>; .reg .b64 %a<4>; mov.u32 %r1, %tid.x;\n"
    "ld.param.u64 %a1, [out]; mul.wide.u32 %a2, %r1, 4;\n"
    "add.u64 %a1, %a1, %a2; st.global.u32 [%a1], %r1; ret; }\n";

START_TEST(a_budget_ends_loops)
{
  uint64_t out;

  cpu_ptx_load(&p, ends);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 4);
  p.launch.budget = 100000;
  sizes(5, 64);
  cpu_ptx_fails(&p, "loop", (uint64_t[]){out}, KILN__FAULT_BUDGET,
                (const char *const[]){"loop", "budget", NULL});
  ck_assert_uint_gt(word(out), 100000 / 2 * 32 - 5000); /* 2 a turn */
  ck_assert_uint_le(word(out), /* each host thread ends its share */
                    (100000 + (p.launch.threads - 1) * 16384) / 2 * 32);
  cpu_ptx_free(&p);
}
END_TEST

static void *cancel_soon(void *flag)
{
  kiln__sleep_ns(20 * 1000 * 1000);
  atomic_store((atomic_bool *)flag, true);
  return NULL;
}

START_TEST(another_thread_cancels)
{
  atomic_bool flag = false;
  pthread_t thread;
  uint64_t out;

  cpu_ptx_load(&p, ends);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 4);
  p.launch.cancel = &flag;
  sizes(5, 64);
  ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, &flag), 0);
  cpu_ptx_fails(&p, "loop", (uint64_t[]){out}, KILN__FAULT_BUDGET,
                (const char *const[]){"cancelled", NULL});
  pthread_join(thread, NULL);
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(faults_say_where)
{
  static const char *const trapped[] = {"kernel `trap`", "block (0,1,0)",
                                        "thread (45,0,0)", "PTX line", NULL};
  static const char *const wild[] = {"write of 4 bytes", "global",
                                     "past the end of",  "thread (30,0,0)",
                                     "block (0,0,0)",    NULL};
  uint64_t out;

  cpu_ptx_load(&p, ends);
  use_way(_i);
  p.launch.grid_dim[1] = 2;
  p.launch.block_dim[0] = 64;
  cpu_ptx_fails(&p, "trap", (uint64_t[]){0}, KILN__FAULT_TRAP, trapped);
  ck_assert_uint_eq(p.fault.thread[0], 45);
  p.launch.grid_dim[1] = 1;
  p.launch.block_dim[0] = 32;
  out = cpu_ptx_buffer(&p, NULL, 120);
  cpu_ptx_fails(&p, "far", (uint64_t[]){out}, KILN__FAULT_ADDRESS, wild);
  cpu_ptx_free(&p);
}
END_TEST

/* ---- System functions ---------------------------------------------------------------------- */

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
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(heaps)
{
  uint64_t out, size = 64;
  kiln__range range;

  cpu_ptx_load(&p, prints);
  use_way(_i);
  out = cpu_ptx_buffer(&p, NULL, 4);
  sizes(4, 64);
  cpu_ptx_ok(&p, "heap", (uint64_t[]){size, out});
  ck_assert_uint_eq(word(out), 4 * 64 * 63 / 2);
  *(uint32_t *)cpu_ptx_at(&p, out, 4) = 0;
  sizes(1, 1); /* more than there is */
  cpu_ptx_ok(&p, "heap", (uint64_t[]){p.launch.heap_limit + 1, out});
  ck_assert_uint_eq(word(out), 1000);
  cpu_ptx_fails(&p, "unfree", (uint64_t[]){out}, KILN__FAULT_ADDRESS, NULL);
  ck_assert(kiln__memory_find(p.memory, out, &range));
  cpu_ptx_free(&p);
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
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Grid-wide synchronisation ----------------------------------------------------------------- */

/* As the runtime headers do it: the workspace from %envreg1 and 2, the first
 * thread of each block counts, the top bit turns over. */
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
  p.launch.cooperative = false; /* no workspace then */
  cpu_ptx_fails(&p, "k", (uint64_t[]){cells, 9}, KILN__FAULT_TRAP, NULL);
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Misuse of synchronisation ------------------------------------------------------------------ */

static const char misused[] =
    /* lanes 16 and up go past the barrier */
    ".visible .entry past(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; setp.ge.u32 %q1, %r1, 16; @%q1 bra SKIP;\n"
    "bar.sync 0;\n"
    "SKIP: ld.param.u64 %a1, [out]; st.global.u32 [%a1], %r1; ret; }\n"
    /* two barriers, one for each half */
    ".visible .entry two(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; setp.ge.u32 %q1, %r1, 16; @%q1 bra HIGH;\n"
    "bar.sync 0; bra.uni END;\n"
    "HIGH: bar.sync 0;\n"
    "END: ld.param.u64 %a1, [out]; st.global.u32 [%a1], %r1; ret; }\n"
    /* members that do not name the lane itself, or one that left */
    ".visible .entry self(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffff;\n"
    "ret; }\n"
    ".visible .entry gone(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; setp.eq.u32 %q1, %r1, 3; @%q1 exit;\n"
    "bar.warp.sync -1; ret; }\n"
    /* right: some leave early; a loop is left at different times */
    ".visible .entry early(.param .u64 out) {\n"
    ".reg .b32 %r<6>; .reg .b64 %a<4>; .reg .pred %q<4>;\n"
    "mov.u32 %r1, %tid.x; setp.ge.u32 %q1, %r1, 45; @%q1 bra END;\n"
    "and.b32 %r2, %r1, 7;\n"
    "LOOP: setp.eq.u32 %q2, %r2, 0; @%q2 bra OUT; sub.u32 %r2, %r2, 1;\n"
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
  const char *kernel, *kind; /* NULL: nothing is wrong */
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
  ck_kiln_ok(kiln__watch_create(&p.launch.watch, &p.memory_of.alloc,
                                KILN_CPU_CHECK_SYNC, false, p.program,
                                kiln__program_entry(p.program, m->kernel)));
  cpu_ptx_ok(&p, m->kernel, (uint64_t[]){out});
  kiln__watch_findings(p.launch.watch, keep_finding, &all);
  kiln__watch_free(p.launch.watch);
  if (m->kind == NULL) {
    ck_assert_msg(all.n == 0, "%s", all.text);
  } else {
    ck_assert_uint_ge(all.n, 1);
    ck_assert_str_eq(all.kind, m->kind);
    ck_assert_msg(all.line == m->line || (lock_step && all.n > 0),
                  "line %u: %s", all.line, all.text);
  }
  cpu_ptx_free(&p);
}

START_TEST(misuse_is_found)
{
  check_misuse(&misuses[_i / 2], _i % 2 != 0);
}
END_TEST

/* Copies that nobody waits for go with their warp. */
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
  cpu_ptx_free(&p);
}
END_TEST

START_TEST(launches_are_checked)
{
  cpu_ptx_load(&p, ends);
  sizes(1, 1025);
  ck_kiln_is(cpu_ptx_run(&p, "trap", (uint64_t[]){0}), KILN_EINVAL);
  sizes(0, 32);
  ck_kiln_is(cpu_ptx_run(&p, "trap", (uint64_t[]){0}), KILN_EINVAL);
  sizes(3, 32);
  p.launch.cluster_dim[0] = 2;
  ck_kiln_is(cpu_ptx_run(&p, "trap", (uint64_t[]){0}), KILN_EINVAL);
  cpu_ptx_free(&p);
}
END_TEST

/* Every allocation of a launch fails once: an error, never a leak. */
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
  cpu_ptx_free(&p);
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("cpu run");
  TCase *blocks = tcase_create("blocks");
  TCase *barriers = tcase_create("barriers");
  TCase *called = tcase_create("calls");
  TCase *progress = tcase_create("progress");
  TCase *stops = tcase_create("stops");
  TCase *system = tcase_create("system");

  tcase_add_loop_test(blocks, every_thread_of_every_block, 0, N_WAYS);
  tcase_add_loop_test(blocks, threads_diverge_and_leave, 0, N_WAYS);
  tcase_add_test(blocks, launches_are_checked);
  tcase_add_loop_test(blocks, copies_in_flight_are_dropped, 0, N_WAYS);
  tcase_add_loop_test(barriers, misuse_is_found, 0,
                      2 * (int)(sizeof misuses / sizeof *misuses));
  tcase_add_loop_test(blocks, launches_survive_without_memory, 0, 2);
  suite_add_tcase(suite, blocks);
  tcase_add_loop_test(barriers, blocks_meet_at_barriers, 0, N_WAYS);
  tcase_add_loop_test(barriers, barriers_count_predicates, 0, N_WAYS);
  tcase_add_loop_test(barriers, named_barriers_hand_over, 0, N_WAYS);
  tcase_add_loop_test(barriers, short_warps_count_as_whole, 0, N_WAYS);
  tcase_add_test(barriers, threads_count_one_by_one);
  tcase_add_loop_test(barriers, clusters_meet, 0, N_WAYS);
  tcase_add_loop_test(barriers, grids_synchronise, 0, N_WAYS);
  suite_add_tcase(suite, barriers);
  tcase_add_loop_test(called, calls_recurse_under_divergence, 0, N_WAYS);
  tcase_add_loop_test(called, calls_by_address, 0, N_WAYS);
  tcase_add_loop_test(called, calls_that_go_wrong, 0, N_WAYS);
  suite_add_tcase(suite, called);
  tcase_set_timeout(progress, 120);
  tcase_add_loop_test(progress, lanes_wait_for_lanes, 0, 8);
  tcase_add_loop_test(progress, lock_step_says_who_spins, 0, 3);
  tcase_add_loop_test(progress, endless_waits_are_found, 0, N_WAYS);
  tcase_add_test(progress, long_loops_are_no_deadlock);
  tcase_add_loop_test(progress, blocks_wait_for_blocks, 0, N_WAYS);
  tcase_add_loop_test(progress, blocks_that_do_not_fit_deadlock, 1, 3);
  tcase_add_test(progress, waits_for_nobody_are_told);
  suite_add_tcase(suite, progress);
  tcase_add_loop_test(stops, a_budget_ends_loops, 0, N_WAYS);
  tcase_add_loop_test(stops, another_thread_cancels, 0, N_WAYS);
  tcase_add_loop_test(stops, faults_say_where, 0, 2);
  suite_add_tcase(suite, stops);
  tcase_add_test(system, printf_formats);
  tcase_add_loop_test(system, heaps, 0, N_WAYS);
  tcase_add_loop_test(system, assertions, 0, N_WAYS);
  suite_add_tcase(suite, system);
  return suite;
}

KILN_TEST_MAIN(make)
