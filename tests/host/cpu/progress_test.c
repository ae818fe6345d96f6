/* progress_test.c -- tests forward progress: waits that end, waits that never
 * end, and other reasons to stop a launch. */
#include "ways.h"

#include "base/os.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Forward progress ---------------------------------------------------- */

#define SPIN(name)                                                             \
  ".visible .entry " name "(.param .u64 cell, .param .u64 out) {\n"            \
  ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"

static const char spins[] =
    /* Lane 0 waits for a flag that lane 1 sets later in the program. */
    SPIN("flag") "ld.param.u64 %a1, [cell]; mov.u32 %r1, %tid.x; setp.eq.u32 "
                 "%q1, %r1, 0;\n"
                 "@%q1 bra WAIT;\n"
                 "mov.u32 %r3, 7; st.volatile.global.u32 [%a1], %r3; bra.uni "
                 "END;\n"
                 "WAIT: ld.volatile.global.u32 %r2, [%a1]; setp.eq.u32 %q2, "
                 "%r2, 0;\n"
                 "@%q2 bra WAIT; ld.param.u64 %a2, [out]; st.global.u32 [%a2], "
                 "%r2;\n"
                 "END: ret; }\n"
    /* All threads take one lock, so the lanes of a warp compete for it. */
    SPIN("lock") "ld.param.u64 %a1, [cell]; ld.param.u64 %a2, [out];\n"
                 "TAKE: atom.global.cas.b32 %r1, [%a1], 0, 1; setp.ne.u32 %q1, "
                 "%r1, 0;\n"
                 "@%q1 bra TAKE;\n"
                 "ld.volatile.global.u32 %r2, [%a2]; add.u32 %r2, %r2, 1;\n"
                 "st.volatile.global.u32 [%a2], %r2; membar.gl;\n"
                 "atom.global.exch.b32 %r1, [%a1], 0; ret; }\n"
    /* The threads on the two sides of a branch wait for each other. */
    SPIN("turns") "ld.param.u64 %a1, [cell]; ld.param.u64 %a2, [out];\n"
                  "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 1; mov.u32 %r4, 0;\n"
                  "setp.ne.u32 %q1, %r1, 0; @%q1 bra ODD;\n"
                  "EVEN: ld.volatile.global.u32 %r2, [%a1]; and.b32 %r3, %r2, "
                  "1;\n"
                  "setp.ne.u32 %q2, %r3, 0; @%q2 bra EVEN;\n"
                  "add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a1], %r2;\n"
                  "add.u32 %r4, %r4, 1; setp.lt.u32 %q2, %r4, 50; @%q2 bra "
                  "EVEN;\n"
                  "bra.uni END;\n"
                  "ODD: ld.volatile.global.u32 %r2, [%a1]; and.b32 %r3, %r2, "
                  "1;\n"
                  "setp.eq.u32 %q2, %r3, 0; @%q2 bra ODD;\n"
                  "add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a1], %r2;\n"
                  "add.u32 %r4, %r4, 1; setp.lt.u32 %q2, %r4, 50; @%q2 bra "
                  "ODD;\n"
                  "END: ret; }\n"
    /* A loop polls a word that no thread ever writes. */
    SPIN("never") "ld.param.u64 %a1, [cell];\n"
                  "WAIT: ld.global.u32 %r2, [%a1]; setp.eq.u32 %q2, %r2, 0;\n"
                  "@%q2 bra WAIT; ret; }\n"
    /* A loop polls a word that no thread writes, and counts its iterations. */
    SPIN("counting") "ld.param.u64 %a1, [cell]; mov.u32 %r3, 0;\n"
                     "WAIT: ld.acquire.gpu.global.u32 %r2, [%a1]; setp.eq.u32 "
                     "%q2, %r2, 0;\n"
                     "add.u32 %r3, %r3, 1; @%q2 bra WAIT; st.global.u32 [%a1], "
                     "%r3; ret; }\n"
    /* Warp 0 reads the clock 32 times, then stores what warp 1 has written. */
    SPIN("clocks") "ld.param.u64 %a1, [cell]; ld.param.u64 %a2, [out];\n"
                   "mov.u32 %r1, %tid.x; setp.lt.u32 %q1, %r1, 32; @%q1 bra "
                   "WAIT;\n"
                   "mov.u32 %r3, 9; st.volatile.global.u32 [%a1], %r3; ret;\n"
                   "WAIT: mov.u32 %r4, 0;\n"
                   "LOOP: mov.u32 %r2, %clock; add.u32 %r4, %r4, 1; "
                   "setp.lt.u32 %q2, %r4, 32;\n"
                   "@%q2 bra LOOP; ld.volatile.global.u32 %r2, [%a1];\n"
                   "st.global.u32 [%a2], %r2; ret; }\n"
    /* This loop is long but ends. */
    SPIN("slow") "ld.param.u64 %a2, [out]; mov.u32 %r1, 0;\n"
                 "LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %r1, 600000;\n"
                 "@%q1 bra LOOP; st.global.u32 [%a2], %r1; ret; }\n";

static uint64_t cell, result;

static void load_spins(void)
{
  cpu_ptx_load(&p, spins);
  cell = cpu_ptx_buffer(&p, NULL, 4);
  result = cpu_ptx_buffer(&p, NULL, 4);
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
}
END_TEST

/* A warp that waits for a time leaves the worker to the other warps meanwhile. */
START_TEST(clocks_end_time_slices)
{
  load_spins();
  sizes(1, 64);
  p.launch.lock_step = _i != 0;
  cpu_ptx_ok(&p, "clocks", (uint64_t[]){cell, result});
  ck_assert_uint_eq(word(result), 9);
}
END_TEST

/* ---- Reconvergence ------------------------------------------------------- */

#define REGISTERS                                                              \
  "(.param .u64 out) {\n"                                                      \
  ".reg .b32 %r<8>; .reg .b64 %a<4>; .reg .pred %q<3>;\n"                      \
  "ld.param.u64 %a1, [out]; mov.u32 %r1, %tid.x;\n"                            \
  "mad.wide.u32 %a1, %r1, 4, %a1; and.b32 %r2, %r1, 1;\n"                      \
  "setp.eq.u32 %q1, %r2, 0; mov.u32 %r3, 0;\n"

/* At the immediate post-dominator of a branch, each lane stores the mask of the
 * lanes that run together with it. */
static const char meetings[] =
    /* All lanes must meet after this loop, although some lanes leave it
     * thousands of iterations earlier than others. */
    ".visible .entry loop" REGISTERS
    "mul.lo.u32 %r2, %r1, 200; add.u32 %r2, %r2, 1;\n"
    "MORE: add.u32 %r3, %r3, 1; setp.lt.u32 %q2, %r3, %r2; @%q2 bra MORE;\n"
    "activemask.b32 %r4; st.global.u32 [%a1], %r4; ret; }\n"
    /* The code of one side of the branch follows the join. */
    ".visible .entry aside" REGISTERS "@%q1 bra ASIDE; add.u32 %r3, %r3, 1;\n"
    "BACK: activemask.b32 %r4; st.global.u32 [%a1], %r4; ret;\n"
    "ASIDE: add.u32 %r3, %r3, 2; bra.uni BACK; }\n"
    /* The code of both sides of the branch follows the join, and the join
     * precedes the branch. */
    ".visible .entry before" REGISTERS "bra.uni START;\n"
    "END: activemask.b32 %r4; st.global.u32 [%a1], %r4; ret;\n"
    "START: @%q1 bra OTHER; add.u32 %r3, %r3, 1; bra.uni END;\n"
    "OTHER: add.u32 %r3, %r3, 2; bra.uni END; }\n"
    /* Some lanes leave the loop from its middle, while other lanes execute
     * other parts of it. */
    ".visible .entry middle" REGISTERS
    "AGAIN: add.u32 %r3, %r3, 1; setp.gt.u32 %q2, %r3, %r1;\n"
    "@!%q2 bra REST;\n"
    "activemask.b32 %r4; st.global.u32 [%a1], %r4; ret;\n"
    "REST: @%q1 bra AGAIN; add.u32 %r5, %r3, 1; bra.uni AGAIN; }\n"
    /* Lanes that have exited never arrive at the join, so the other lanes must
     * not wait for them. */
    ".visible .entry gone" REGISTERS "@%q1 bra OUT; setp.eq.u32 %q2, %r1, 1;\n"
    "@%q2 exit;\n"
    "OUT: activemask.b32 %r4; st.global.u32 [%a1], %r4; ret; }\n";

START_TEST(lanes_meet_at_post_dominators)
{
  static const struct {
    const char *kernel;
    uint32_t mask;
  } cases[] = {{"loop", ~0u},
               {"aside", ~0u},
               {"before", ~0u},
               {"middle", ~0u},
               {"gone", ~2u}};
  uint64_t out;

  cpu_ptx_load(&p, meetings);
  out = cpu_ptx_buffer(&p, NULL, 32 * 4);
  sizes(1, 32);
  p.launch.lock_step = _i != 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cpu_ptx_ok(&p, cases[i].kernel, (uint64_t[]){out});
    for (uint32_t lane = 0; lane < 32; lane++) {
      if ((cases[i].mask >> lane & 1) != 0)
        ck_assert_msg(word(out + 4 * lane) == cases[i].mask,
                      "%s: lane %u is with %08x", cases[i].kernel, lane,
                      word(out + 4 * lane));
    }
  }
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
}
END_TEST

/* ---- Registers of a block ------------------------------------------------ */

/* Threads 0 to 127 decrease their registers per thread, the others increase
 * theirs. All meet at a barrier. */
static const struct {
  const char *bounds;
  unsigned threads, less, more;
  bool waits; /* forever, since the block has too few registers */
} register_cases[] = {
    {".maxntid 384 .minnctapersm 1", 384, 40, 232, false},
    {".maxntid 384 .minnctapersm 1", 384, 24, 240, false},
    {".maxntid 384 .minnctapersm 1", 384, 40, 240, true},
    {".reqntid 320 .minnctapersm 1", 320, 24, 240, false},
    {".maxntid 400 .minnctapersm 1", 384, 24, 240, true},
    {".maxntid 384 .minnctapersm 2", 384, 24, 104, false},
    {".maxntid 384 .minnctapersm 2", 384, 24, 112, true},
    {".maxnreg 168", 384, 40, 232, false},
    {".maxnreg 128", 256, 24, 232, false},
    {".maxnreg 128", 256, 32, 232, true},
    /* ptxas ignores setmaxnreg here */
    {".maxntid 384", 384, 40, 256, false},
    {"", 384, 40, 256, false},
};

START_TEST(setmaxnreg_waits_for_registers)
{
  static const char *const words[] = {"deadlock",
                                      "registers per thread are free", NULL};
  char text[1024];

  snprintf(text, sizeof text,
           ".version 8.0\n.target sm_90a\n.address_size 64\n"
           ".visible .entry k() %s\n{\n.reg .b32 t;\n.reg .pred p;\n"
           "mov.u32 t, %%tid.x;\nsetp.lt.u32 p, t, 128;\n@p bra less;\n"
           "setmaxnreg.inc.sync.aligned.u32 %u;\nbar.sync 0;\nret;\n"
           "less:\nsetmaxnreg.dec.sync.aligned.u32 %u;\nbar.sync 0;\nret;\n}\n",
           register_cases[_i].bounds, register_cases[_i].more,
           register_cases[_i].less);
  cpu_ptx_load(&p, text);
  use_way(_i % N_WAYS);
  sizes(2, register_cases[_i].threads);
  if (register_cases[_i].waits)
    cpu_ptx_fails(&p, "k", NULL, KILN__FAULT_DEADLOCK, words);
  else
    cpu_ptx_ok(&p, "k", NULL);
}
END_TEST

START_TEST(long_loops_are_no_deadlock)
{
  load_spins();
  sizes(2, 32);
  cpu_ptx_ok(&p, "slow", (uint64_t[]){cell, result});
  ck_assert_uint_eq(word(result), 600000);
}
END_TEST

/* Block i waits for block i - 1 (or for block i + 1 if `back` is set) before it
 * ends. The grid has more blocks than can be resident at once. */
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
  /* A seed only permutes the order of the 8 resident blocks. */
  p.launch.max_resident = 8;
  cells = cpu_ptx_buffer(&p, NULL, (N + 1) * 4);
  memcpy(cpu_ptx_at(&p, cells, 4), one, 4);
  cpu_ptx_ok(&p, "k", (uint64_t[]){cells + 4, UINT32_MAX});
  c = cpu_ptx_at(&p, cells, (N + 1) * 4);
  for (uint32_t i = 0; i <= N; i++)
    ck_assert_uint_eq(c[i], i + 1);
}
END_TEST

/* Block 0 stays resident. It waits for each later block in order and then
 * releases it. */
static const char served[] =
    ".visible .entry k(.param .u64 cells, .param .u32 n) {\n"
    ".reg .b32 %r<8>; .reg .b64 %a<6>; .reg .pred %q<4>;\n"
    "ld.param.u64 %a1, [cells]; ld.param.u32 %r2, [n];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r5, %tid.x; mov.u32 %r6, 2;\n"
    "setp.ne.u32 %q1, %r5, 0; @%q1 bra END;\n"
    "setp.eq.u32 %q2, %r1, 0; @%q2 bra SERVE;\n"
    "mul.wide.u32 %a2, %r1, 4; add.u64 %a2, %a1, %a2;\n"
    "mov.u32 %r3, 1; st.release.gpu.global.u32 [%a2], %r3;\n"
    "WAIT: ld.acquire.gpu.global.u32 %r3, [%a2]; setp.ne.u32 %q3, %r3, 2;\n"
    "@%q3 bra WAIT; bra.uni END;\n"
    "SERVE: add.u32 %r1, %r1, 1; setp.ge.u32 %q2, %r1, %r2; @%q2 bra END;\n"
    "mul.wide.u32 %a2, %r1, 4; add.u64 %a2, %a1, %a2;\n"
    "COME: ld.acquire.gpu.global.u32 %r3, [%a2]; setp.ne.u32 %q3, %r3, 1;\n"
    "@%q3 bra COME; st.release.gpu.global.u32 [%a2], %r6; bra.uni SERVE;\n"
    "END: ret; }\n";

START_TEST(a_block_serves_the_others)
{
  enum { N = 100 };
  uint64_t cells;

  cpu_ptx_load(&p, served);
  use_way(_i);
  for (unsigned seed = 0; seed < (ways[_i].seed == 0 ? 1 : 8); seed++) {
    p.launch.seed = ways[_i].seed + seed;
    sizes(N, 64);
    p.launch.max_resident = 16;
    cells = cpu_ptx_buffer(&p, NULL, N * 4);
    cpu_ptx_ok(&p, "k", (uint64_t[]){cells, N});
    for (uint32_t i = 1; i < N; i++)
      ck_assert_uint_eq(word(cells + 4 * i), 2);
  }
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
  /* All blocks are resident, so the grid can make progress. */
  p.launch.cooperative = true;
  cpu_ptx_ok(&p, "k", (uint64_t[]){cells, 1});
  ck_assert_uint_eq(word(cells), 41);
}
END_TEST

/* ---- Deadlocks in which no thread spins ---------------------------------- */

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
}
END_TEST

/* ---- Stopped launches ---------------------------------------------------- */

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
  /* Each iteration of the loop executes 2 instructions. */
  ck_assert_uint_gt(word(out), 100000 / 2 * 32 - 5000);
  /* Each host thread completes its time slice after the limit was reached. */
  ck_assert_uint_le(word(out),
                    (100000 + (p.launch.threads - 1) * 16384) / 2 * 32);
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
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu progress");
  TCase *t = kiln_test_case(
      s, "progress", 120, NULL, unload,
      TESTS(long_loops_are_no_deadlock, waits_for_nobody_are_told));

  tcase_add_loop_test(t, lanes_wait_for_lanes, 0, 8);
  tcase_add_loop_test(t, clocks_end_time_slices, 0, 2);
  tcase_add_loop_test(t, lanes_meet_at_post_dominators, 0, 2);
  tcase_add_loop_test(t, lock_step_says_who_spins, 0, 3);
  kiln_test_loops(t, N_WAYS,
                  TESTS(endless_waits_are_found, blocks_wait_for_blocks,
                        a_block_serves_the_others));
  tcase_add_loop_test(t, blocks_that_do_not_fit_deadlock, 1, 3);
  tcase_add_loop_test(t, setmaxnreg_waits_for_registers, 0,
                      ROWS(register_cases));
  t = kiln_test_case(s, "stops", 0, NULL, unload, TESTS(launches_are_checked));
  kiln_test_loops(t, N_WAYS,
                  TESTS(a_budget_ends_loops, another_thread_cancels));
  tcase_add_loop_test(t, faults_say_where, 0, 2);
  return kiln_test_run(s);
}
