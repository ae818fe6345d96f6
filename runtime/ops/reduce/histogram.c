/* histogram.c -- the host side of histogram.cu.
 *
 * Blocks count in shared memory. Each block has several copies of the bins if
 * these fit, so that lanes with equal samples seldom wait for each other. For
 * few bins, the counts of all blocks are added in the same launch. The blocks
 * store their counts in tile descriptors, and each additional block adds the
 * counts of a range of bins. For many bins, each block adds its counts to
 * global memory by atomics. If the bins exceed shared memory, they are counted
 * in slices.
 *
 * histogram_bins.c chooses the method that computes the bin of a sample. Calls
 * with weights continue in weighted_histogram.c. */
#include "histogram_bins.h"
#include "kernel_params.h"

static const char *const kernels[] = {"histogram", NULL};
static const kiln__family family = {"histogram", kernels,
                                    kiln__histogram_params};

enum {
  /* Maximum number of counts that blocks store in descriptors. */
  COMBINED_COUNTS = 1 << 18,
  /* Maximum number of blocks that sum the partial histograms. There is at
   * most one such block per two SMs. These blocks wait for the blocks that
   * count samples, which need SMs, too. */
  MOST_ADDERS = 32,
  /* With fewer copies of the bins than this, threads first count runs of
   * equal samples. Otherwise 32 lanes with equal samples would update one bin
   * one after the other. */
  LEAST_COPIES = 4
};

/* ---- Checks -------------------------------------------------------------- */

static kiln_status check(const kiln_stream *stream,
                         const kiln_histogram_desc *desc,
                         const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_histogram", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_that(&c, desc->bins > 0 && desc->bins <= KILN_MAX_BINS,
                   "bins is %u, must be 1 to %d", desc->bins, KILN_MAX_BINS);
  if (kiln__given(desc->levels)) {
    kiln__check_read(&c, "levels", desc->levels, (uint64_t)desc->bins + 1);
    kiln__check_that(&c, desc->levels.type == kiln__input_type(&desc->x),
                     "levels are %s, the samples are %s",
                     kiln_dtype_name(desc->levels.type),
                     kiln_dtype_name(kiln__input_type(&desc->x)));
  } else {
    kiln__check_bounds(&c, desc);
  }
  kiln__check_counts(&c, desc->counts.type, desc->weight != NULL);
  kiln__check_write(&c, "counts", desc->counts, desc->bins);
  return kiln__check_workspace(&c, workspace);
}

/* ---- Plan ---------------------------------------------------------------- */

typedef struct plan {
  uint32_t block, items, vec, copies;
  /* Number of slices (ranges of bins), and bins per slice. */
  uint32_t slices, slice;
  uint32_t workers, adders;
  uint32_t smem;
  bool shared; /* true if shared memory holds the levels (bounds of the bins) */
  bool combine;
} plan;

static uint32_t smem_of(uint32_t bins, uint32_t copies, uint32_t levels)
{
  return (4 * bins * copies + 15) / 16 * 16 + levels;
}

/* Plans the shared memory. A block has as many copies of the bins as its share
 * of the SM's memory can hold. If this share is too small for one copy, only
 * one block runs per SM. If the memory of the SM is still too small, the levels
 * (bounds of the bins) stay in global memory. As a last resort, the bins are
 * counted in slices. */
static void plan_memory(plan *p, kiln_device *device,
                        const kiln_histogram_desc *desc, const kiln__tuning *t)
{
  enum { RESERVE = 1024, LEAST_COPIES_SMEM = 16 << 10 };
  const kiln_traits *traits = &device->traits;
  const uint32_t most =
      (uint32_t)(traits->smem_per_block_optin > 0 ? traits->smem_per_block_optin
                                                  : traits->smem_per_block);
  const uint32_t per_sm = t->per_sm > 0 ? t->per_sm : 1;
  const uint32_t part = (uint32_t)traits->smem_per_sm / per_sm - RESERVE;
  const uint32_t storage = part < most ? part : most;
  uint32_t levels =
      !kiln__given(desc->levels)
          ? 0
          : (desc->bins + 1) * (uint32_t)kiln__size(desc->levels.type);

  p->copies = t->extra > 0 ? t->extra : 1;
  while (p->copies > 1 && smem_of(desc->bins, p->copies, levels) > storage)
    p->copies /= 2;
  p->shared = smem_of(desc->bins, 1, levels) <= most;
  if (!p->shared)
    levels = 0;
  p->slices = (uint32_t)kiln__divide_up(desc->bins, most / 4 - 4);
  p->slice = (uint32_t)kiln__divide_up(desc->bins, p->slices);
  p->smem = smem_of(p->slice, p->copies, levels);
  /* Only one block of this size fits on an SM. */
  if (p->smem > part && p->block <= 512)
    p->block *= 2;
  if (p->smem < 4 * p->block)
    p->smem = 4 * p->block;
}

/* Plans the number of counting blocks. It is the number of blocks that can be
 * resident at the same time. Small arrays use fewer blocks, so that each thread
 * has two vectors. Very large arrays use more blocks, so that no count exceeds
 * 32 bits. */
static void plan_blocks(plan *p, kiln_device *device, uint64_t n,
                        unsigned per_sm)
{
  const uint64_t most_counts = UINT64_C(1) << 31;
  const uint32_t fit = (uint32_t)device->traits.smem_per_sm / (p->smem + 1024);
  uint64_t resident = (uint64_t)device->info.sm_count *
                      (fit == 0       ? 1
                       : fit < per_sm ? fit
                       : per_sm == 0  ? 1
                                      : per_sm) /
                      (p->slices > 0 ? p->slices : 1);
  uint64_t workers = kiln__divide_up(n, 2 * (uint64_t)p->block * p->vec);

  if (resident == 0)
    resident = 1;
  if (workers > resident)
    workers = resident;
  if (workers < kiln__divide_up(n, most_counts))
    workers = kiln__divide_up(n, most_counts);
  p->workers = workers == 0 ? 1 : (uint32_t)workers;
}

static plan make_plan(kiln_device *device, const kiln_histogram_desc *desc)
{
  plan p = {.vec = kiln__input_vec(&desc->x)};
  const kiln__tuning t =
      kiln__tuned(device, KILN__TUNED_HISTOGRAM, 16 / p.vec, desc->n);
  const uint32_t half = (uint32_t)device->info.sm_count / 2;
  const uint32_t most_adders = half < MOST_ADDERS ? half : MOST_ADDERS;

  p.block = t.block;
  p.items = t.items;
  plan_memory(&p, device, desc, &t);
  plan_blocks(&p, device, desc->n, t.per_sm);
  p.combine =
      p.slices == 1 &&
      (p.workers == 1 || (most_adders > 0 &&
                          (uint64_t)p.workers * desc->bins <= COMBINED_COUNTS));
  if (p.combine && p.workers > 1) {
    p.adders = (uint32_t)kiln__divide_up(desc->bins, 32);
    if (p.adders > most_adders)
      p.adders = most_adders;
  }
  return p;
}

static kiln__need need_of(const plan *p, const kiln_histogram_desc *desc)
{
  return (kiln__need){.descriptors =
                          p->adders > 0 ? (size_t)p->workers * desc->bins : 0};
}

/* ---- The call ------------------------------------------------------------ */

static void specify(kiln__spec *spec, const kiln_histogram_desc *desc,
                    const plan *p, const kiln__bins *l)
{
  spec->input = &desc->x;
  spec->code = &desc->code;
  spec->quick = kiln__quick(desc->n);
  spec->elements = desc->n;
  spec->value[HISTOGRAM_BLOCK] = p->block;
  spec->value[HISTOGRAM_ITEMS] = p->items;
  spec->value[HISTOGRAM_VECTOR] = p->vec;
  spec->value[HISTOGRAM_COPIES] = p->copies;
  spec->value[HISTOGRAM_RUNS] = p->copies < LEAST_COPIES;
  spec->value[HISTOGRAM_MODE] = l->mode;
  spec->value[HISTOGRAM_PLAIN] = l->plain;
  spec->value[HISTOGRAM_ALL] = l->all && p->slices == 1;
  spec->value[HISTOGRAM_WIDE] = l->wide;
  spec->value[HISTOGRAM_SHARED] = l->mode == MODE_LEVELS && p->shared;
  spec->value[HISTOGRAM_ADDERS] = p->combine;
  spec->value[HISTOGRAM_KEEP] = p->combine && desc->accumulate;
  spec->value[HISTOGRAM_SMALL] = desc->n < UINT64_C(1) << 31;
  spec->value[HISTOGRAM_COUNT] = desc->counts.type;
}

kiln__spec kiln__histogram_spec(const kiln_stream *stream,
                                const kiln_histogram_desc *desc)
{
  const plan p = make_plan(stream->device, desc);
  const kiln__bins l = kiln__lay_out_bins(desc);
  kiln__spec spec = {.family = &family};

  specify(&spec, desc, &p, &l);
  return spec;
}

/* A call whose arguments have been checked, and its plan. */
typedef struct request {
  const kiln_histogram_desc *desc;
  plan plan;
  kiln__bins bins;
  kiln__weighted_plan weighted; /* the plan of a call with weights */
  kiln__need need;
} request;

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_histogram_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;

  KILN_TRY(check(stream, desc, workspace));
  *r = (request){.desc = desc, .bins = kiln__lay_out_bins(desc)};
  if (desc->weight != NULL) {
    r->weighted = kiln__plan_weighted(stream->device, desc);
    r->need = kiln__weighted_need(&r->weighted, desc);
  } else {
    r->plan = make_plan(stream->device, desc);
    r->need = need_of(&r->plan, desc);
  }

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln_histogram_desc *desc = r->desc;
  const plan *p = &r->plan;
  const kiln_launch_config config = {
      .grid = {p->workers + p->adders, p->slices, 1},
      .block = {p->block, 1, 1},
      .smem = p->smem,
      .stream = stream};
  kiln__spec spec = {.family = &family};
  kiln_status st = KILN_OK;
  kiln__bin_bounds to = r->bins.to;
  kiln__call c;

  if (desc->weight != NULL)
    return kiln__run_weighted(stream, desc, &r->weighted, workspace);
  to.slice = p->slice;
  specify(&spec, desc, p, &r->bins);
  st = kiln__call_open(&c, stream, &spec, workspace, r->need);
  if (st != KILN_OK)
    return st;
  if (!p->combine && !desc->accumulate)
    KILN_TRY(kiln__zero(stream, desc->counts, desc->bins));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(to), KILN_ARG(desc->levels.data),
                   KILN_ARG(desc->counts.data), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(c.epoch), KILN_ARG(p->workers));

done:
  kiln__storage_close(&c.storage);
  return st;
}

KILN__DEFINE_OPERATION(kiln_histogram, kiln_histogram_desc, request, prepare,
                       run)
