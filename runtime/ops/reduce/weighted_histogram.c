/* weighted_histogram.c -- the host side of weighted_histogram.cu, for calls of
 * kiln_histogram() with weights.
 *
 * A copy of the sums belongs to one warp, or to several warps that take turns.
 * A block has as many copies as a quarter of the SM's shared memory holds. If
 * this does not hold one copy, a single larger block runs per SM. If the memory
 * of an SM is still too small, the bins are summed in slices. */
#include "histogram_bins.h"
#include "kernel_params.h"

static const char *const kernels[] = {"weighted_histogram",
                                      "weighted_histogram_sums", NULL};
static const kiln__family family = {"weighted_histogram", kernels,
                                    kiln__weighted_histogram_params};

enum {
  BLOCK = 256,
  LONE_BLOCK = 512, /* threads of a block that has an SM for itself */
  PER_SM = 4,       /* blocks per SM that share its memory */
  SAMPLES = 8,      /* samples in flight per thread */
  /* Maximum size in bytes of the sums of all blocks. */
  MOST_PARTIAL = 64 << 20
};

/* ---- Plan ---------------------------------------------------------------- */

static uint32_t smem_of(uint32_t sums, size_t width, uint32_t levels)
{
  return (uint32_t)((sums * width + 15) / 16 * 16) + levels;
}

static void plan_memory(kiln__weighted_plan *p, const kiln_device *device,
                        const kiln_histogram_desc *desc)
{
  enum { RESERVE = 1024 };
  const kiln_traits *traits = &device->traits;
  const size_t width = kiln__size(desc->counts.type);
  const uint32_t most =
      (uint32_t)(traits->smem_per_block_optin > 0 ? traits->smem_per_block_optin
                                                  : traits->smem_per_block);
  const uint32_t part = (uint32_t)traits->smem_per_sm / PER_SM - RESERVE;
  uint32_t levels =
      !kiln__given(desc->levels)
          ? 0
          : (desc->bins + 1) * (uint32_t)kiln__size(desc->levels.type);

  p->block = smem_of(desc->bins, width, levels) <= part ? BLOCK : LONE_BLOCK;
  p->shared = smem_of(desc->bins, width, levels) <= most;
  if (!p->shared)
    levels = 0;
  p->slices =
      (uint32_t)kiln__divide_up(desc->bins, (most - 16) / (uint32_t)width);
  p->slice = (uint32_t)kiln__divide_up(desc->bins, p->slices);
  p->copies = p->block / 32;
  while (p->copies > 1 && smem_of(p->slice * p->copies, width, levels) >
                              (p->block == BLOCK ? part : most))
    p->copies /= 2;
  p->smem = smem_of(p->slice * p->copies, width, levels);
}

/* Plans the number of blocks. It is the number of blocks that can be resident
 * at the same time, unless each of them would have few samples per bin, or
 * their sums would take too much memory. */
static void plan_blocks(kiln__weighted_plan *p, const kiln_device *device,
                        const kiln_histogram_desc *desc)
{
  const size_t row = desc->bins * kiln__size(desc->counts.type);
  const uint32_t fit = (uint32_t)device->traits.smem_per_sm / (p->smem + 1024);
  const uint64_t limits[] = {
      kiln__sm_count(device) * (fit > PER_SM ? PER_SM : fit) / p->slices,
      kiln__divide_up(desc->n, (uint64_t)p->block * p->items * p->vec),
      2 * desc->n / desc->bins, MOST_PARTIAL / row};
  uint64_t workers = UINT32_MAX;

  for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++)
    if (limits[k] < workers)
      workers = limits[k];
  p->workers = workers == 0 ? 1 : (uint32_t)workers;
}

kiln__weighted_plan kiln__plan_weighted(const kiln_device *device,
                                        const kiln_histogram_desc *desc)
{
  kiln__weighted_plan p = {.vec = kiln__input_vec(&desc->x)};

  p.items = p.vec < SAMPLES ? SAMPLES / p.vec : 1;
  plan_memory(&p, device, desc);
  plan_blocks(&p, device, desc);
  return p;
}

kiln__need kiln__weighted_need(const kiln__weighted_plan *p,
                               const kiln_histogram_desc *desc)
{
  return (kiln__need){.temp = p->workers == 1
                                  ? 0
                                  : (size_t)p->workers * desc->bins *
                                        kiln__size(desc->counts.type)};
}

/* ---- The call ------------------------------------------------------------ */

static void specify(kiln__spec *spec, const kiln_histogram_desc *desc,
                    const kiln__weighted_plan *p, const kiln__bins *l)
{
  const kiln_dtype sum = desc->counts.type;
  uint32_t *const value = spec->value;

  *spec =
      (kiln__spec){.family = &family,
                   .input = &desc->x,
                   .function = {{"weight", "the weight", desc->weight,
                                 kiln__compute_name(sum, "value"), NULL, NULL}},
                   .code = &desc->code,
                   .elements = desc->n,
                   .quick = kiln__quick(desc->n)};
  value[WEIGHTED_HISTOGRAM_BLOCK] = p->block;
  value[WEIGHTED_HISTOGRAM_ITEMS] = p->items;
  value[WEIGHTED_HISTOGRAM_VECTOR] = p->vec;
  value[WEIGHTED_HISTOGRAM_COPIES] = p->copies;
  value[WEIGHTED_HISTOGRAM_MODE] = l->mode;
  value[WEIGHTED_HISTOGRAM_PLAIN] = l->plain;
  value[WEIGHTED_HISTOGRAM_ALL] = l->all && p->slices == 1;
  value[WEIGHTED_HISTOGRAM_WIDE] = l->wide;
  value[WEIGHTED_HISTOGRAM_SHARED] = l->mode == MODE_LEVELS && p->shared;
  value[WEIGHTED_HISTOGRAM_KEEP] = desc->accumulate;
  value[WEIGHTED_HISTOGRAM_SMALL] = desc->n < UINT64_C(1) << 31;
  value[WEIGHTED_HISTOGRAM_COUNT] = sum;
}

kiln_status kiln__run_weighted(kiln_stream *stream,
                               const kiln_histogram_desc *desc,
                               const kiln__weighted_plan *p,
                               const kiln_workspace *workspace)
{
  const kiln_launch_config config = {.grid = {p->workers, p->slices, 1},
                                     .block = {p->block, 1, 1},
                                     .smem = p->smem,
                                     .stream = stream};
  const kiln_launch_config sums =
      kiln__grid(stream, kiln__divide_up(desc->bins, 32), p->block);
  kiln__bins bins = kiln__lay_out_bins(desc);
  kiln_status st = KILN_OK;
  kiln__spec spec = {.family = &family};
  kiln__call c;

  bins.to.slice = p->slice;
  specify(&spec, desc, p, &bins);
  st = kiln__call_open(&c, stream, &spec, workspace,
                       kiln__weighted_need(p, desc));
  if (st != KILN_OK)
    return st;
  KILN_TRY(KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                       KILN_ARG(desc->n), KILN_ARG(bins.to),
                       KILN_ARG(desc->levels.data), KILN_ARG(desc->counts.data),
                       KILN_ARG(c.storage.temp)));
  if (p->workers > 1)
    st = KILN_LAUNCH(c.set->kernel[1], &sums, KILN_ARG(desc->counts.data),
                     KILN_ARG(c.storage.temp), KILN_ARG(desc->bins),
                     KILN_ARG(p->workers));

done:
  kiln__storage_close(&c.storage);
  return st;
}
