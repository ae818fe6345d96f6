/* occupancy_model.c -- computes the number of resident blocks per SM with the
 * method of NVIDIA's occupancy calculator.
 *
 * A block needs warps, a block slot, registers and shared memory. Each need is
 * rounded up to the hardware's allocation unit, and each resource limits how
 * many blocks fit on an SM. The smallest limit is the result. Tests compare the
 * result with the driver's answer.
 * Source: the CUDA Occupancy Calculator and its data for each compute
 * capability. */
#include "arch.h"

#include <limits.h>

static int round_up(int value, int unit)
{
  return (value + unit - 1) / unit * unit;
}

static int min_int(int a, int b)
{
  return a < b ? a : b;
}

/* A caller may change any field of the traits (hardware limits). These bounds
 * keep the arithmetic of this file within the range of int. */
static bool within(int value, int low, int high)
{
  return value >= low && value <= high;
}

static bool sane(const kiln_traits *t)
{
  const int many = 1 << 16, bytes = 1 << 29;

  return within(t->warp_size, 1, 64) &&
         within(t->max_threads_per_block, 1, many) &&
         within(t->max_warps_per_sm, 1, many) &&
         within(t->max_blocks_per_sm, 1, many) &&
         within(t->regs_per_sm, 1, bytes) &&
         within(t->regs_per_block, 1, bytes) &&
         within(t->max_regs_per_thread, 1, 1024) &&
         within(t->reg_alloc_unit, 1, many) &&
         within(t->warp_alloc_unit, 1, 64) &&
         within(t->smem_per_sm, 0, bytes) &&
         within(t->smem_per_block, 0, bytes) &&
         within(t->smem_per_block_optin, 0, bytes) &&
         within(t->smem_reserved_per_block, 0, bytes) &&
         within(t->smem_alloc_unit, 1, many);
}

/* Before capability 2.0, registers were allocated per block. */
static int blocks_by_regs_of_blocks(const kiln_traits *t, int warps, int regs)
{
  const int block =
      round_up(round_up(warps, t->warp_alloc_unit) * t->warp_size * regs,
               t->reg_alloc_unit);

  return block > t->regs_per_block ? 0 : t->regs_per_sm / block;
}

/* Since capability 2.0, registers are allocated per warp. A warp takes its
 * registers from the slice of the register file that belongs to its scheduler.
 * The number of warps is therefore rounded up to a multiple of the number of
 * slices. The hardware also compares the block's rounded register count with
 * the limit per block. */
static int blocks_by_slices(const kiln_traits *t, int warps, int warp_regs,
                            int slices)
{
  if (warp_regs * round_up(warps, slices) > t->regs_per_block)
    return 0;
  return t->regs_per_sm / warp_regs / slices * slices / warps;
}

static int blocks_by_regs(const kiln_traits *t, int warps, int regs)
{
  int warp_regs;

  if (regs > t->max_regs_per_thread)
    return 0;
  if (regs == 0)
    return INT_MAX;
  if (t->cc < 20)
    return blocks_by_regs_of_blocks(t, warps, regs);
  warp_regs = round_up(regs * t->warp_size, t->reg_alloc_unit);
  /* An SM of compute capability 6.0 has two slices. It still rejects blocks
   * that an SM with four slices cannot run. */
  if (t->cc == 60 && blocks_by_slices(t, warps, warp_regs, 4) == 0)
    return 0;
  return blocks_by_slices(t, warps, warp_regs, t->warp_alloc_unit);
}

static int blocks_by_smem(const kiln_traits *t, size_t smem)
{
  const int most = t->smem_per_block_optin > t->smem_per_block
                       ? t->smem_per_block_optin
                       : t->smem_per_block;
  int block;

  if (smem > (size_t)most)
    return 0;
  block = round_up((int)smem + t->smem_reserved_per_block, t->smem_alloc_unit);
  return block == 0 ? INT_MAX : t->smem_per_sm / block;
}

static kiln_limiter tightest(int blocks, int warps, int count, int regs)
{
  if (blocks == warps)
    return KILN_LIMIT_WARPS;
  if (blocks == count)
    return KILN_LIMIT_BLOCKS;
  return blocks == regs ? KILN_LIMIT_REGS : KILN_LIMIT_SMEM;
}

static void count(const kiln_traits *t, int block, int regs, size_t smem,
                  kiln_occupancy_result *out)
{
  const int warps = (block + t->warp_size - 1) / t->warp_size;
  const int by_warps = t->max_warps_per_sm / warps;
  const int by_count = t->max_blocks_per_sm;
  const int by_regs = blocks_by_regs(t, warps, regs);
  const int by_smem = blocks_by_smem(t, smem);
  const int blocks =
      min_int(min_int(by_warps, by_count), min_int(by_regs, by_smem));

  out->blocks_per_sm = blocks;
  out->warps_per_sm = blocks * warps;
  out->share = (double)out->warps_per_sm / t->max_warps_per_sm;
  out->limiter = tightest(blocks, by_warps, by_count, by_regs);
}

kiln_status kiln_occupancy(const kiln_traits *traits, int block, int regs,
                           size_t smem, kiln_occupancy_result *out)
{
  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = (kiln_occupancy_result){0};
  if (traits == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "traits is NULL");
  if (!sane(traits))
    return kiln__fail(KILN_EINVAL, "fill it with kiln_arch_traits()",
                      "traits holds limits that no GPU has");
  if (block < 1 || block > traits->max_threads_per_block)
    return kiln__fail(KILN_EINVAL, NULL,
                      "%d threads per block: this GPU takes 1 to %d", block,
                      traits->max_threads_per_block);
  if (regs < 0)
    return kiln__fail(KILN_EINVAL, NULL, "%d registers per thread", regs);
  count(traits, block, regs, smem, out);
  return KILN_OK;
}

int kiln_occupancy_best_block(const kiln_traits *traits, int regs, size_t smem,
                              int max_block)
{
  int best = 0, most = 0, limit, step;

  if (traits == NULL || !sane(traits) || regs < 0 || max_block < 0)
    return 0;
  step = traits->warp_size;
  limit = traits->max_threads_per_block;
  if (max_block > 0)
    limit = min_int(limit, max_block);
  for (int block = step; block <= limit; block += step) {
    kiln_occupancy_result r;

    count(traits, block, regs, smem, &r);
    if (r.warps_per_sm > 0 && r.warps_per_sm >= most) {
      most = r.warps_per_sm;
      best = block;
    }
  }
  return best;
}
