/* occupancy_test.c -- compares the number of resident blocks per SM with
 * results computed by hand, and with NVIDIA's own header if it is installed. */
#include "support.h"

#include <kiln/arch.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#if defined(__has_include)
#if __has_include(<cuda_occupancy.h>)
#define HAVE_CUDA_OCCUPANCY
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#endif
#endif

static const struct sheet {
  const char *what;
  /* compute capability; shared memory per SM in bytes, 0 = maximum */
  int cc, carveout;
  int block, regs, smem;
  int blocks, warps;
  double share;
  kiln_limiter limiter;
} sheets[] = {
    {"the lecture's sheet", 70, 32 * 1024, 128, 32, 4096, 8, 32, 0.5,
     KILN_LIMIT_SMEM},
    /* 96 KiB of shared memory hold 24 such blocks, but the limit of 64 warps
     * allows only 16. */
    {"the same, most shared memory", 70, 0, 128, 32, 4096, 16, 64, 1.0,
     KILN_LIMIT_WARPS},
    {"ten registers fill the first GPUs", 10, 0, 256, 10, 0, 3, 24, 1.0,
     KILN_LIMIT_WARPS},
    {"the eleventh costs a block", 10, 0, 256, 11, 0, 2, 16, 16.0 / 24,
     KILN_LIMIT_REGS},
    {"registers by block, unit 512", 13, 0, 256, 16, 0, 4, 32, 1.0,
     KILN_LIMIT_WARPS},
    /* The block's 3 warps are rounded up to 4, which need 4 * 32 * 20 = 2,560
     * registers. 16,384 / 2,560 = 6 blocks fit. */
    {"odd warps before 2.0", 13, 0, 96, 20, 0, 6, 18, 18.0 / 32,
     KILN_LIMIT_REGS},
    /* A warp needs 21 * 32 = 672 registers, rounded up to 704. 32,768 / 704 =
     * 46 warps fit, which are 7 blocks of 6 warps. */
    {"registers by warp, unit 64", 20, 0, 192, 21, 0, 7, 42, 42.0 / 48,
     KILN_LIMIT_REGS},
    {"too many registers for 2.0", 20, 0, 64, 64, 0, 0, 0, 0, KILN_LIMIT_REGS},
    {"the large register file of 3.7", 37, 0, 256, 64, 0, 8, 64, 1.0,
     KILN_LIMIT_WARPS},
    {"half of it in 3.5", 35, 0, 256, 64, 0, 4, 32, 0.5, KILN_LIMIT_REGS},
    /* A warp needs 104 * 32 = 3,328 registers, so 65,536 / 3,328 = 19 warps
     * would fit. With two register slices 18 warps fit, and with four slices 16
     * warps. */
    {"two register slices in 6.0", 60, 0, 64, 104, 0, 9, 18, 18.0 / 64,
     KILN_LIMIT_REGS},
    {"four in 6.1", 61, 0, 64, 104, 0, 8, 16, 0.25, KILN_LIMIT_REGS},
    {"what 6.1 cannot run", 60, 0, 518, 105, 0, 0, 0, 0, KILN_LIMIT_REGS},
    {"32 Ki registers per block in 5.3", 53, 0, 1024, 32, 0, 2, 64, 1.0,
     KILN_LIMIT_WARPS},
    {"and no more", 53, 0, 1024, 40, 0, 0, 0, 0, KILN_LIMIT_REGS},
    /* The 19,600 bytes are rounded up to 19,712, a multiple of 256. 4 blocks
     * fit; without rounding, 5 would fit. */
    {"unit of shared memory", 70, 0, 64, 16, 19600, 4, 8, 0.125,
     KILN_LIMIT_SMEM},
    {"a quarter of 7.5", 75, 0, 256, 32, 32768, 2, 16, 0.5, KILN_LIMIT_SMEM},
    {"most by opting in, 8.0", 80, 0, 256, 32, 163 * 1024, 1, 8, 0.125,
     KILN_LIMIT_SMEM},
    {"one byte more", 80, 0, 256, 32, 163 * 1024 + 1, 0, 0, 0, KILN_LIMIT_SMEM},
    {"no opting in before 7.0", 61, 0, 64, 16, 48 * 1024 + 1, 0, 0, 0,
     KILN_LIMIT_SMEM},
    /* Each block needs 9 KiB plus 1 KiB of reserved shared memory. 10 blocks
     * fit in 100 KiB; without the reserved memory, 11 would fit. */
    {"reserved shared memory", 86, 0, 64, 16, 9 * 1024, 10, 20, 20.0 / 48,
     KILN_LIMIT_SMEM},
    {"40 registers in 8.6", 86, 0, 256, 40, 0, 6, 48, 1.0, KILN_LIMIT_WARPS},
    {"16 blocks in 8.6", 86, 0, 32, 16, 0, 16, 16, 16.0 / 48,
     KILN_LIMIT_BLOCKS},
    {"24 blocks in 8.9", 89, 0, 32, 16, 0, 24, 24, 0.5, KILN_LIMIT_BLOCKS},
    {"24 blocks in 12.0", 120, 0, 32, 16, 0, 24, 24, 0.5, KILN_LIMIT_BLOCKS},
    {"24 blocks in 11.0", 110, 0, 32, 16, 0, 24, 24, 0.5, KILN_LIMIT_BLOCKS},
    {"32 blocks in 10.3", 103, 0, 32, 16, 0, 32, 32, 0.5, KILN_LIMIT_BLOCKS},
    {"64 registers halve 9.0", 90, 0, 1024, 64, 0, 1, 32, 0.5, KILN_LIMIT_REGS},
    {"65 do not fit", 90, 0, 1024, 65, 0, 0, 0, 0, KILN_LIMIT_REGS},
    {"255 registers", 90, 0, 256, 255, 0, 1, 8, 0.125, KILN_LIMIT_REGS},
    {"256 registers", 90, 0, 32, 256, 0, 0, 0, 0, KILN_LIMIT_REGS},
    {"227 KiB in 9.0", 90, 0, 1024, 32, 227 * 1024, 1, 32, 0.5,
     KILN_LIMIT_SMEM},
    {"one thread is one warp", 90, 0, 1, 16, 0, 32, 32, 0.5, KILN_LIMIT_BLOCKS},
    {"33 threads are two", 75, 0, 33, 16, 0, 16, 32, 1.0, KILN_LIMIT_WARPS},
    {"no registers at all", 80, 0, 1024, 0, 0, 2, 64, 1.0, KILN_LIMIT_WARPS},
    {"a carve-out below the block", 70, 8 * 1024, 64, 16, 9 * 1024, 0, 0, 0,
     KILN_LIMIT_SMEM},
};

START_TEST(sheets_agree)
{
  const struct sheet *s = &sheets[_i];
  kiln_occupancy_result r;
  kiln_traits t;

  ck_kiln_ok(kiln_arch_traits(s->cc, &t));
  if (s->carveout != 0)
    t.smem_per_sm = s->carveout;
  ck_kiln_ok(kiln_occupancy(&t, s->block, s->regs, (size_t)s->smem, &r));
  ck_assert_msg(r.blocks_per_sm == s->blocks && r.warps_per_sm == s->warps &&
                    fabs(r.share - s->share) < 1e-12 && r.limiter == s->limiter,
                "%s: %d blocks, %d warps, %g, limiter %d", s->what,
                r.blocks_per_sm, r.warps_per_sm, r.share, (int)r.limiter);
}
END_TEST

START_TEST(nonsense_is_refused)
{
  kiln_occupancy_result r = {9, 9, 9, KILN_LIMIT_REGS};
  kiln_traits t, broken;

  ck_kiln_ok(kiln_arch_traits(90, &t));
  ck_kiln_is(kiln_occupancy(&t, 0, 32, 0, &r), KILN_EINVAL);
  ck_assert_int_eq(r.blocks_per_sm, 0);
  ck_kiln_is(kiln_occupancy(&t, -32, 32, 0, &r), KILN_EINVAL);
  ck_kiln_is(kiln_occupancy(&t, 1025, 32, 0, &r), KILN_EINVAL);
  ck_kiln_is(kiln_occupancy(&t, 32, -1, 0, &r), KILN_EINVAL);
  ck_kiln_is(kiln_occupancy(NULL, 32, 32, 0, &r), KILN_EINVAL);
  ck_kiln_is(kiln_occupancy(&t, 32, 32, 0, NULL), KILN_EINVAL);
  broken = (kiln_traits){0};
  ck_kiln_is(kiln_occupancy(&broken, 32, 32, 0, &r), KILN_EINVAL);
  broken = t;
  broken.reg_alloc_unit = 0;
  ck_kiln_is(kiln_occupancy(&broken, 32, 32, 0, &r), KILN_EINVAL);
  broken = t;
  broken.max_regs_per_thread = INT_MAX;
  ck_kiln_is(kiln_occupancy(&broken, 32, INT_MAX, 0, &r), KILN_EINVAL);
  broken = t;
  broken.smem_per_block_optin = INT_MAX;
  ck_kiln_is(kiln_occupancy(&broken, 32, 32, INT_MAX, &r), KILN_EINVAL);
  /* For a block that exceeds every GPU's limits, the result is 0 blocks and not
   * an error. */
  ck_kiln_ok(kiln_occupancy(&t, 32, INT_MAX, 0, &r));
  ck_assert_int_eq(r.blocks_per_sm, 0);
  ck_kiln_ok(kiln_occupancy(&t, 32, 32, SIZE_MAX, &r));
  ck_assert_int_eq(r.blocks_per_sm, 0);
  ck_assert_int_eq(r.limiter, KILN_LIMIT_SMEM);
}
END_TEST

static const struct {
  int cc, regs, smem, max_block, want;
} best[] = {
    {70, 32, 0, 0, 1024}, {86, 32, 0, 0, 768},           {86, 32, 0, 200, 192},
    {90, 64, 0, 0, 1024}, {80, 32, 100 * 1024, 0, 1024}, {10, 10, 0, 0, 384},
    {90, 256, 0, 0, 0},   {80, 32, 200 * 1024, 0, 0},    {90, 32, 0, 31, 0},
    {90, 32, 0, 32, 32},  {75, 32, 0, 100000, 1024},
};

START_TEST(best_blocks)
{
  kiln_traits t;

  ck_kiln_ok(kiln_arch_traits(best[_i].cc, &t));
  ck_assert_int_eq(kiln_occupancy_best_block(&t, best[_i].regs,
                                             (size_t)best[_i].smem,
                                             best[_i].max_block),
                   best[_i].want);
}
END_TEST

START_TEST(best_block_corner_cases)
{
  kiln_traits t;

  ck_kiln_ok(kiln_arch_traits(90, &t));
  ck_assert_int_eq(kiln_occupancy_best_block(NULL, 32, 0, 0), 0);
  ck_assert_int_eq(kiln_occupancy_best_block(&t, -1, 0, 0), 0);
  ck_assert_int_eq(kiln_occupancy_best_block(&t, 32, 0, -1), 0);
}
END_TEST

/* Returns the number of resident blocks without Check's ck_ macros. Check
 * records each assertion that it evaluates, and this test makes millions of
 * them. */
static int blocks(const kiln_traits *t, int block, int regs, size_t smem)
{
  kiln_occupancy_result r;

  if (kiln_occupancy(t, block, regs, smem, &r) != KILN_OK ||
      r.blocks_per_sm > t->max_blocks_per_sm ||
      r.warps_per_sm > t->max_warps_per_sm || r.share < 0 || r.share > 1 ||
      r.limiter == KILN_LIMIT_NONE)
    ck_abort_msg("%d: %d threads, %d registers, %zu bytes: %d blocks", t->cc,
                 block, regs, smem, r.blocks_per_sm);
  return r.blocks_per_sm;
}

/* More registers or more shared memory never give more resident blocks. No
 * block size has a higher occupancy than the suggested block size. */
START_TEST(more_needs_never_help)
{
  size_t n;
  const int cc = kiln_arch_list(&n)[_i];
  kiln_traits t;

  ck_kiln_ok(kiln_arch_traits(cc, &t));
  for (int block = 1; block <= t.max_threads_per_block; block += 31) {
    int before = INT_MAX;

    for (int regs = 0; regs <= 256; regs += 3) {
      const int now = blocks(&t, block, regs, 1000);

      ck_assert_int_le(now, before);
      before = now;
    }
    before = INT_MAX;
    for (size_t smem = 0; smem < 240 * 1024; smem += 1500) {
      const int now = blocks(&t, block, 24, smem);

      ck_assert_int_le(now, before);
      before = now;
    }
  }
  for (int regs = 8; regs <= 255; regs += 13) {
    const int top = kiln_occupancy_best_block(&t, regs, 4096, 0);
    const int most =
        top == 0 ? 0 : blocks(&t, top, regs, 4096) * ((top + 31) / 32);

    for (int block = 32; block <= t.max_threads_per_block; block += 32) {
      const int warps = blocks(&t, block, regs, 4096) * (block / 32);

      ck_assert_int_le(warps, most);
      if (warps == most && most > 0)
        ck_assert_int_le(block, top);
    }
  }
}
END_TEST

#ifdef HAVE_CUDA_OCCUPANCY
static int nvidia_blocks(const kiln_traits *t, int block, int regs, size_t smem)
{
  const cudaOccDeviceProp prop = {
      .computeMajor = t->cc / 10,
      .computeMinor = t->cc % 10,
      .maxThreadsPerBlock = t->max_threads_per_block,
      .maxThreadsPerMultiprocessor = t->max_threads_per_sm,
      .regsPerBlock = t->regs_per_block,
      .regsPerMultiprocessor = t->regs_per_sm,
      .warpSize = t->warp_size,
      .sharedMemPerBlock = (size_t)t->smem_per_block,
      .sharedMemPerMultiprocessor = (size_t)t->smem_per_sm,
      .numSms = 1,
      .sharedMemPerBlockOptin = (size_t)t->smem_per_block_optin,
      .reservedSharedMemPerBlock = (size_t)t->smem_reserved_per_block,
  };
  const cudaOccFuncAttributes kernel = {
      .maxThreadsPerBlock = INT_MAX,
      .numRegs = regs,
      .partitionedGCConfig = PARTITIONED_GC_OFF,
      .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
      .maxDynamicSharedSizeBytes = smem,
      .numBlockBarriers = 1,
  };
  const cudaOccDeviceState state = {.carveoutConfig =
                                        SHAREDMEM_CARVEOUT_MAX_SHARED};
  cudaOccResult result;

  if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &prop, &kernel, &state,
                                              block, smem) != CUDA_OCC_SUCCESS)
    ck_abort_msg("NVIDIA's header does not know %d", t->cc);
  return result.activeBlocksPerMultiprocessor;
}
#endif

START_TEST(nvidia_counts_the_same)
{
#ifdef HAVE_CUDA_OCCUPANCY
  size_t n;
  const int *list = kiln_arch_list(&n);
  uint64_t seed = 7;

  for (size_t i = 0; i < n; i++) {
    kiln_traits t;

    ck_kiln_ok(kiln_arch_traits(list[i], &t));
    if (t.cc < 30)
      continue; /* NVIDIA's header supports only Kepler and later GPUs. */
    for (int k = 0; k < 4000; k++) {
      const int block = 1 + (int)(test_random(&seed) % 1024);
      const int regs =
          (int)(test_random(&seed) % ((unsigned)t.max_regs_per_thread + 1));
      const size_t smem =
          k % 3 == 0
              ? 0
              : test_random(&seed) % ((size_t)t.smem_per_block_optin * 11 / 10);
      const int want = nvidia_blocks(&t, block, regs, smem);
      const int got = blocks(&t, block, regs, smem);

      if (got != want)
        ck_abort_msg("%d: %d threads, %d registers, %zu bytes: %d, not %d",
                     t.cc, block, regs, smem, got, want);
    }
  }
#else
  puts("no cuda_occupancy.h: not compared with NVIDIA's header");
#endif
}
END_TEST

#define N(array) (int)(sizeof(array) / sizeof(array)[0])

int main(void)
{
  Suite *s = suite_create("occupancy");
  TCase *c = kiln_test_case(s, "occupancy", 120, NULL, NULL,
                            TESTS(nonsense_is_refused, best_block_corner_cases,
                                  nvidia_counts_the_same));
  size_t n;

  kiln_arch_list(&n);
  tcase_add_loop_test(c, sheets_agree, 0, N(sheets));
  tcase_add_loop_test(c, best_blocks, 0, N(best));
  tcase_add_loop_test(c, more_needs_never_help, 0, (int)n);
  return kiln_test_run(s);
}
