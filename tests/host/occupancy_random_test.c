/* occupancy_random_test.c -- compares kiln_occupancy() with a second
 * implementation, for 100,000 random settings per compute capability from 3.5 to
 * 12.1.
 *
 * The second implementation does not divide: it places blocks on a model of an
 * SM, one after another, until one of them does not fit. Its limits were typed
 * from the tables of the CUDA C++ Programming Guide ("Technical Specifications
 * per Compute Capability") and of the tuning guides, and not from traits.def. */
#include "support.h"

#include <kiln/arch.h>

#include <limits.h>
#include <math.h>

enum { SETTINGS = 100000 };

/* An SM: threads and blocks that can be resident, registers in Ki per SM and
 * per block, shared memory in KiB per SM and per block at most. */
static const struct sm {
  int cc, threads, blocks, registers, block_registers, shared, block_shared;
} sms[] = {
    {35, 2048, 16, 64, 64, 48, 48},    {37, 2048, 16, 128, 64, 112, 48},
    {50, 2048, 32, 64, 64, 64, 48},    {52, 2048, 32, 64, 64, 96, 48},
    {53, 2048, 32, 64, 32, 64, 48},    {60, 2048, 32, 64, 64, 64, 48},
    {61, 2048, 32, 64, 64, 96, 48},    {62, 2048, 32, 64, 32, 64, 48},
    {70, 2048, 32, 64, 64, 96, 96},    {72, 2048, 32, 64, 64, 96, 96},
    {75, 1024, 16, 64, 64, 64, 64},    {80, 2048, 32, 64, 64, 164, 163},
    {86, 1536, 16, 64, 64, 100, 99},   {87, 1536, 16, 64, 64, 164, 163},
    {88, 1536, 16, 64, 64, 100, 99},   {89, 1536, 24, 64, 64, 100, 99},
    {90, 2048, 32, 64, 64, 228, 227},  {100, 2048, 32, 64, 64, 228, 227},
    {101, 1536, 24, 64, 64, 228, 227}, {103, 2048, 32, 64, 64, 228, 227},
    {110, 1536, 24, 64, 64, 228, 227}, {120, 1536, 24, 64, 64, 100, 99},
    {121, 1536, 24, 64, 64, 100, 99},
};

enum { N_SMS = sizeof sms / sizeof sms[0] };

/* What is left of an SM. The register file has one part per scheduler, and a
 * warp takes its registers from one part. */
typedef struct state {
  int warps, blocks, register_warps, shared;
} state;

typedef struct setting {
  int threads, registers, config; /* `config` is in bytes */
  size_t shared;
} setting;

/* Returns the number of warps whose registers fit into `parts` equal parts of
 * the register file. A warp takes registers in units of 256. */
static int warps_of_registers(const struct sm *g, int parts, int registers)
{
  int left = g->registers * 1024 / parts, warps = 0, units = 0;

  while (units * 256 < registers * 32)
    units++;
  for (; units > 0 && left >= units * 256; left -= units * 256)
    warps++;
  return units == 0 ? INT_MAX : warps * parts;
}

/* Returns whether the registers of one block stay below the limit per block.
 * The warps of a block are spread over four parts of the register file, and
 * each part gives as many as the part that gives most. */
static bool block_may_have(const struct sm *g, int warps, int registers)
{
  const int unit = (registers * 32 + 255) / 256 * 256;
  int spread = warps;

  while (spread % (g->cc == 60 ? 2 : 4) != 0)
    spread++;
  if (spread * unit > g->block_registers * 1024)
    return false;
  /* 6.0 has two parts, but takes no block that four parts could not hold. */
  return g->cc != 60 ||
         warps_of_registers(g, 4, registers) >= (warps + 3) / 4 * 4;
}

static kiln_limiter missing(const state *left, int warps, int shared)
{
  return left->warps < warps            ? KILN_LIMIT_WARPS
         : left->blocks < 1             ? KILN_LIMIT_BLOCKS
         : left->register_warps < warps ? KILN_LIMIT_REGS
         : left->shared < shared        ? KILN_LIMIT_SMEM
                                        : KILN_LIMIT_NONE;
}

/* Places blocks until one does not fit. Returns their number; *why is what the
 * next block lacks. */
static int place(const struct sm *g, const setting *s, kiln_limiter *why)
{
  const int warps = (s->threads + 31) / 32;
  const int unit = g->cc < 80 ? 256 : 128, reserved = g->cc < 80 ? 0 : 1024;
  const int shared = ((int)s->shared + reserved + unit - 1) / unit * unit;
  state left = {g->threads / 32, g->blocks,
                warps_of_registers(g, g->cc == 60 ? 2 : 4, s->registers),
                s->config};
  int blocks = 0;

  if (s->registers > 0 && !block_may_have(g, warps, s->registers))
    left.register_warps = 0;
  if (s->shared > (size_t)g->block_shared * 1024)
    left.shared = -1;
  while ((*why = missing(&left, warps, shared)) == KILN_LIMIT_NONE) {
    left.warps -= warps;
    left.blocks--;
    left.register_warps -= s->registers > 0 ? warps : 0;
    left.shared -= shared;
    blocks++;
  }
  return blocks;
}

static setting random_setting(const struct sm *g, uint64_t *seed)
{
  const size_t most = (size_t)g->block_shared * 1024;
  setting s = {.threads = 1 + (int)(test_random(seed) % 1024),
               .registers = (int)(test_random(seed) % 256),
               .config = g->shared * 1024};

  if (test_random(seed) % 4 != 0)
    s.shared = (size_t)(test_random(seed) % (most + most / 16));
  /* An SM may be configured for less shared memory. */
  if (test_random(seed) % 4 == 0)
    s.config = 1024 * (1 + (int)(test_random(seed) % (unsigned)g->shared));
  return s;
}

START_TEST(blocks_fit_one_by_one)
{
  const struct sm *g = &sms[_i];
  uint64_t seed = 1000 + (uint64_t)g->cc;
  kiln_traits traits;

  ck_kiln_ok(kiln_arch_traits(g->cc, &traits));
  for (int i = 0; i < SETTINGS; i++) {
    const setting s = random_setting(g, &seed);
    kiln_limiter why;
    const int blocks = place(g, &s, &why);
    const int warps = blocks * ((s.threads + 31) / 32);
    kiln_occupancy_result r;

    traits.smem_per_sm = s.config;
    if (kiln_occupancy(&traits, s.threads, s.registers, s.shared, &r) !=
            KILN_OK ||
        r.blocks_per_sm != blocks || r.warps_per_sm != warps ||
        fabs(r.share - warps * 32.0 / g->threads) > 1e-12 || r.limiter != why)
      ck_abort_msg("%d: %d threads, %d registers, %zu of %d bytes: %d blocks, "
                   "%d warps, limiter %d; not %d, limiter %d",
                   g->cc, s.threads, s.registers, s.shared, s.config,
                   r.blocks_per_sm, r.warps_per_sm, (int)r.limiter, blocks,
                   (int)why);
  }
}
END_TEST

/* Every capability from 3.5 on has a row above, so that a new one cannot be
 * forgotten. */
START_TEST(every_capability_is_compared)
{
  size_t n;
  const int *list = kiln_arch_list(&n);

  for (size_t i = 0; i < n; i++) {
    bool found = list[i] < 35;

    for (size_t k = 0; k < N_SMS; k++)
      found = found || sms[k].cc == list[i];
    ck_assert_msg(found, "%d is missing", list[i]);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("occupancy of random settings");
  TCase *c = kiln_test_case(s, "random", 120, NULL, NULL,
                            TESTS(every_capability_is_compared));

  tcase_add_loop_test(c, blocks_fit_one_by_one, 0, N_SMS);
  return kiln_test_run(s);
}
