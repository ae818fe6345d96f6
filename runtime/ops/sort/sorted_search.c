/* sorted_search.c -- kiln_search(), the host side of search.cu, which does a
 * binary search per needle. For many needles, blocks keep samples of the
 * array, at a constant stride, in shared memory for the upper levels of the
 * search. */
#include "../ops.h"
#include "kernel_params.h"

#include <kiln/search.h>

static const char *const kernels[] = {"search", NULL};
static const kiln__family family = {"search", kernels, kiln__search_params};

enum {
  SAMPLE_BYTES = 16 << 10, /* bytes of shared memory for the samples */
  /* Samples are used if there are at least this many needles per sample. */
  NEEDLES_A_SAMPLE = 2
};

typedef struct plan {
  const kiln_search_desc *desc;
  kiln__need need; /* always empty */
  uint32_t block, items, samples, grid;
  uint64_t stride;
} plan;

/* Plans a launch. Each block searches several tiles of needles, so that the
 * block loads its samples only once. */
static void make_plan(plan *p, kiln_device *device,
                      const kiln_search_desc *desc)
{
  const unsigned size = (unsigned)kiln__size(desc->sorted.type);
  const kiln__tuning t = kiln__tuned(device, KILN__TUNED_SEARCH, size, desc->n);
  const uint64_t tiles = kiln__divide_up(desc->n, (uint64_t)t.block * t.items);
  const uint64_t resident = (uint64_t)device->info.sm_count *
                            (uint64_t)device->traits.max_threads_per_sm /
                            t.block;
  const uint64_t grid = tiles < resident ? tiles : resident;

  *p = (plan){.desc = desc,
              .block = t.block,
              .items = t.items,
              .grid = (uint32_t)grid,
              .samples = SAMPLE_BYTES / (size < 4 ? 4 : size),
              .stride = 1};
  while (desc->m / p->stride > p->samples)
    p->stride *= 2;
  if (desc->m == 0 || desc->n / (grid == 0 ? 1 : grid) <
                          NEEDLES_A_SAMPLE * (desc->m / p->stride))
    p->samples = 0;
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_search_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  (void)workspace;
  if (kiln__check_begin(&c, "kiln_search", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_read(&c, "sorted", desc->sorted, desc->m);
  kiln__check_input(&c, "needles", &desc->needles, desc->n);
  kiln__check_that(&c, desc->sorted.type == kiln__input_type(&desc->needles),
                   "sorted is %s, the needles are %s",
                   kiln_dtype_name(desc->sorted.type),
                   kiln_dtype_name(kiln__input_type(&desc->needles)));
  kiln__check_that(&c, desc->out.type == KILN_U32 || desc->out.type == KILN_U64,
                   "out is %s, must be u32 or u64",
                   kiln_dtype_name(desc->out.type));
  kiln__check_that(&c, desc->out.type == KILN_U64 || desc->m <= UINT32_MAX,
                   "places up to m = %llu do not fit u32",
                   (unsigned long long)desc->m);
  kiln__check_write(&c, "out", desc->out, desc->n);
  if (kiln__check_end(&c) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

static void specify(kiln__spec *spec, const kiln_search_desc *desc,
                    const plan *p)
{
  spec->input = &desc->needles;
  /* The kernel reads needles one by one, so one program can handle any
   * alignment. */
  spec->unaligned = true;
  spec->code = &desc->code;
  spec->acc = desc->sorted.type;
  spec->value[SEARCH_BLOCK] = p->block;
  spec->value[SEARCH_ITEMS] = p->items;
  spec->value[SEARCH_SAMPLES] = p->samples;
  spec->value[SEARCH_UPPER] = desc->upper;
  spec->value[SEARCH_LESS] = desc->less != NULL;
  spec->value[SEARCH_WIDE] = desc->m >= UINT64_C(1) << 31;
  spec->value[SEARCH_INDEX] = desc->out.type;
  if (desc->less != NULL)
    spec->function[0] = (kiln__function){
        "less", "the comparison", desc->less, "bool", "acc", NULL};
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_search_desc *desc = p->desc;
  const kiln_launch_config config = {
      .grid = {p->grid, 1, 1}, .block = {p->block, 1, 1}, .stream = stream};
  kiln__spec spec = {.family = &family};
  const kiln__kernel_set *set;
  kiln_status st = KILN_OK;
  kiln__args args;

  (void)workspace;
  if (desc->n == 0)
    return KILN_OK;
  specify(&spec, desc, p);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  kiln__user_args(&args, &spec);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(desc->sorted.data), KILN_ARG(desc->m),
                   KILN_ARG(p->stride), KILN_ARG(desc->n),
                   KILN_ARG(desc->out.data));

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_search, kiln_search_desc, plan, prepare, run)
