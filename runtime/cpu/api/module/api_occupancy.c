/* api_occupancy.c -- computes the number of resident blocks per multiprocessor.
 *
 * The limits and the allocation rules are those of NVIDIA's occupancy
 * calculator. A test compares the results with those of the calculator. */
#include "api_module.h"

#include <limits.h>

/* Limits per compute capability. The table counts shared memory in KiB and
 * registers in units of 1,024. */
static const kiln__cpu_limits all_limits[] = {
#define KILN_TRAITS(cc, family, tegra, block_threads, sm_threads, sm_blocks,   \
                    sm_regs, block_regs, thread_regs, reg_unit, warp_unit,     \
                    sm_smem, block_smem, optin, reserved, smem_unit)           \
  {cc,           family,          block_threads,     sm_threads,               \
   sm_blocks,    (sm_regs)*1024,  (block_regs)*1024, thread_regs,              \
   reg_unit,     warp_unit,       (sm_smem)*1024,    (block_smem)*1024,        \
   (optin)*1024, (reserved)*1024, smem_unit},
#include "../../../arch/traits.def"
};

const kiln__cpu_limits *kiln__cpu_limits_of(int arch)
{
  for (size_t i = 0; i < sizeof all_limits / sizeof all_limits[0]; i++) {
    if (all_limits[i].arch == arch)
      return &all_limits[i];
  }
  return NULL;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
  return (value + unit - 1) / unit * unit;
}

static uint64_t least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

/* Returns the number of resident blocks that the registers allow. A warp
 * allocates registers in whole units, from the slice of the register file that
 * belongs to the warp's scheduler. A block may hold at most block_registers
 * registers. */
static uint64_t blocks_by_registers(const kiln__cpu_limits *l, uint64_t warps,
                                    uint64_t registers)
{
  const uint64_t slices = (uint64_t)l->warp_unit;
  const uint64_t each =
      round_up(registers * KILN__WARP, (uint64_t)l->register_unit);

  if (registers == 0)
    return UINT64_MAX;
  if (registers > (uint64_t)l->thread_registers ||
      each * round_up(warps, slices) > (uint64_t)l->block_registers)
    return 0;
  /* Compute capability 6.0 has two register file slices, but rejects blocks
   * that 6.1, which has four slices, cannot run. */
  if (l->arch == 60 &&
      (each * round_up(warps, 4) > (uint64_t)l->block_registers ||
       (uint64_t)l->sm_registers / 4 / each * 4 < warps))
    return 0;
  return (uint64_t)l->sm_registers / slices / each * slices / warps;
}

/* Returns the number of resident blocks that shared memory allows. A block
 * allocates shared memory in whole units, plus a part that the system reserves
 * per block. */
static uint64_t blocks_by_shared(const kiln__cpu_limits *l, uint64_t shared)
{
  const uint64_t each =
      round_up(shared + (uint64_t)l->reserved_shared, (uint64_t)l->shared_unit);

  if (shared > (uint64_t)l->block_shared_optin)
    return 0;
  return each == 0 ? UINT64_MAX : (uint64_t)l->sm_shared / each;
}

int kiln__cpu_resident_blocks(const kiln__cpu_limits *limits,
                              const kiln__cpu_code *code, uint64_t threads,
                              uint64_t dynamic_shared)
{
  const uint64_t warps = (threads + KILN__WARP - 1) / KILN__WARP;
  uint64_t n;

  if (threads == 0 || threads > (uint64_t)limits->block_threads ||
      dynamic_shared > (uint64_t)INT_MAX)
    return 0;
  n = least((uint64_t)limits->sm_threads / KILN__WARP / warps,
            (uint64_t)limits->sm_blocks);
  n = least(n, blocks_by_registers(
                   limits, warps,
                   (uint64_t)kiln__cpu_function_registers(code, limits)));
  n = least(n, blocks_by_shared(limits, code->static_shared + dynamic_shared));
  return (int)n;
}

/* ---- The driver's functions ---------------------------------------------- */

/* The checked arguments of an occupancy function. */
typedef struct asked {
  CUfunction function;
  const kiln__cpu_code *code;
  const kiln__cpu_limits *limits;
  int max_threads; /* maximum number of threads per block of this function */
} asked;

static CUresult ask(asked *out, CUfunction function)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_function_of(function, context, &out->function));
  out->code = out->function->code;
  out->limits = kiln__cpu_limits_of(machine()->opts.arch);
  out->max_threads =
      kiln__cpu_function_max_threads(out->code, out->limits->arch);
  return CUDA_SUCCESS;
}

static int blocks_of(const asked *q, int block, size_t smem)
{
  if (block > q->max_threads)
    return 0;
  return kiln__cpu_resident_blocks(q->limits, q->code, (uint64_t)block, smem);
}

CUresult kiln__cpu_occupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int block, size_t smem,
    unsigned int flags)
{
  asked q;

  CU_TRY(ask(&q, function));
  CU_TRY(
      valid(blocks != NULL && block > 0 &&
            (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == 0));
  *blocks = blocks_of(&q, block, smem);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_occupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int block, size_t smem)
{
  return kiln__cpu_occupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, block, smem, 0);
}

/* Tries every block size that is a multiple of the warp size. Of the sizes with
 * the most resident threads, the function returns the largest. */
CUresult kiln__cpu_occupancyMaxPotentialBlockSizeWithFlags(
    int *least_grid, int *block, CUfunction function,
    CUoccupancyB2DSize smem_of_block, size_t smem, int limit,
    unsigned int flags)
{
  asked q;
  int best = 0, best_blocks = 0, most;

  CU_TRY(ask(&q, function));
  CU_TRY(
      valid(least_grid != NULL && block != NULL && limit >= 0 &&
            (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == 0));
  most = limit == 0 || limit > q.max_threads ? q.max_threads : limit;
  for (int top = (most + KILN__WARP - 1) / KILN__WARP * KILN__WARP; top > 0;
       top -= KILN__WARP) {
    const int size = top < most ? top : most;
    const int n =
        blocks_of(&q, size, smem_of_block == NULL ? smem : smem_of_block(size));

    if (n * size > best * best_blocks) {
      best = size;
      best_blocks = n;
    }
  }
  *block = best;
  *least_grid = best_blocks * KILN__SM_COUNT;
  return valid(best != 0);
}

CUresult kiln__cpu_occupancyMaxPotentialBlockSize(
    int *least_grid, int *block, CUfunction function,
    CUoccupancyB2DSize smem_of_block, size_t smem, int limit)
{
  return kiln__cpu_occupancyMaxPotentialBlockSizeWithFlags(
      least_grid, block, function, smem_of_block, smem, limit, 0);
}

CUresult kiln__cpu_occupancyAvailableDynamicSMemPerBlock(size_t *bytes,
                                                         CUfunction function,
                                                         int blocks, int block)
{
  asked q;
  int64_t each;

  CU_TRY(ask(&q, function));
  CU_TRY(valid(bytes != NULL && blocks > 0 && block > 0 &&
               blocks_of(&q, block, 0) >= blocks));
  each = q.limits->sm_shared / blocks / q.limits->shared_unit *
         q.limits->shared_unit;
  if (each > q.limits->block_shared_optin)
    each = q.limits->block_shared_optin;
  each -= q.code->static_shared;
  /* The driver of an H200 does not leave room for the shared memory that it
   * reserves per block, but observes the kernel's own limit. */
  if (each > atomic_load(&q.function->max_dynamic_shared))
    each = atomic_load(&q.function->max_dynamic_shared);
  *bytes = each < 0 ? 0 : (size_t)each;
  return CUDA_SUCCESS;
}

/* ---- Clusters ------------------------------------------------------------ */

static const CUlaunchAttribute *attribute_of(const CUlaunchConfig *config,
                                             CUlaunchAttributeID id)
{
  for (unsigned i = 0; config->attrs != NULL && i < config->numAttrs; i++) {
    if (config->attrs[i].id == id)
      return &config->attrs[i];
  }
  return NULL;
}

static uint64_t cluster_blocks(const asked *q, const CUlaunchConfig *config)
{
  const CUlaunchAttribute *a =
      attribute_of(config, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);

  if (a != NULL)
    return (uint64_t)a->value.clusterDim.x * a->value.clusterDim.y *
           a->value.clusterDim.z;
  if (q->code->cluster[0] != 0)
    return (uint64_t)q->code->cluster[0] * q->code->cluster[1] *
           q->code->cluster[2];
  return 1;
}

static CUresult ask_cluster(asked *q, CUfunction function,
                            const CUlaunchConfig *config, int *resident)
{
  uint64_t threads;

  CU_TRY(ask(q, function));
  CU_TRY(valid(config != NULL));
  threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
  CU_TRY(valid(threads != 0 && threads <= (uint64_t)q->max_threads));
  if (q->limits->arch < 90)
    return CUDA_ERROR_NOT_SUPPORTED;
  *resident = kiln__cpu_resident_blocks(q->limits, q->code, threads,
                                        config->sharedMemBytes);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_occupancyMaxActiveClusters(int *clusters,
                                              CUfunction function,
                                              const CUlaunchConfig *config)
{
  asked q;
  int resident;
  uint64_t blocks;

  CU_TRY(ask_cluster(&q, function, config, &resident));
  blocks = cluster_blocks(&q, config);
  CU_TRY(valid(clusters != NULL && blocks != 0));
  *clusters = (int)((uint64_t)resident * KILN__SM_COUNT / blocks);
  return CUDA_SUCCESS;
}

CUresult
kiln__cpu_occupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                           const CUlaunchConfig *config)
{
  asked q;
  int resident;
  const int portable = 8;

  CU_TRY(ask_cluster(&q, function, config, &resident));
  return CU_STORE(size, resident == 0                           ? 0
                        : q.function->non_portable_cluster != 0 ? 16
                                                                : portable);
}
