/* sorted_search.c -- kiln_search(), the host side of search.cu, which does a
 * binary search per needle. For many needles, blocks keep samples of the
 * array, at a constant stride, in shared memory for the upper levels of the
 * search. For very many needles, tables in temporary memory make the array a tree
 * whose nodes have 8 elements. */
#include "../ops.h"
#include "kernel_params.h"
#include "sort.h"

#include <kiln/search.h>

/* Indices of the kernels in the array `kernels`. */
enum { SEARCH, MAKE_TABLES };

static const char *const kernels[] = {"search", "search_tables", NULL};
static const kiln__family family = {"search", kernels, kiln__search_params};

enum {
  SAMPLE_BYTES = 16 << 10, /* bytes of shared memory for the samples */
  /* A block takes at most this number of samples per needle, and no samples if
   * they would be fewer than LEAST_SAMPLES. */
  SAMPLES_A_NEEDLE = 2,
  LEAST_SAMPLES = 64,
  TREE_BYTES = 32 << 10, /* bytes of shared memory for the samples of a tree */
  /* Least numbers of needles per SM, and of elements, for a tree. */
  LEAST_NEEDLES = 768,
  LEAST_ELEMENTS = 20000,
  FAN = 8 /* elements per node of a tree */
};

typedef struct plan {
  const kiln_search_desc *desc;
  kiln__need need;
  uint32_t block, items, samples;
  uint32_t levels; /* number of tables; 0 if there is no tree */
  uint64_t tiles, stride;
} plan;

/* Returns the number of elements for which a table of n elements has memory, as
 * node_end() in search.cu does. */
static uint64_t node_end(uint64_t n)
{
  return n / FAN * FAN + FAN;
}

/* Plans the tables. They are not worth their launch for a short array or few
 * needles: on an H200, 2^16 needles in as many elements take 7.0 us without and
 * 10.1 us with tables, and 2^20 needles 72 and 32 us. */
static void plan_tables(plan *p, const kiln_device *device)
{
  const kiln_search_desc *desc = p->desc;
  const uint64_t size = kiln__size(desc->sorted.type);
  uint64_t n = desc->m, all = 0;

  if (size > 8 || kiln__is_record(desc->sorted.type) ||
      desc->n < LEAST_NEEDLES * kiln__sm_count(device) ||
      desc->m < LEAST_ELEMENTS || desc->n < desc->m / 16)
    return;
  p->samples = TREE_BYTES / (size < 4 ? 4 : (uint32_t)size);
  for (; n > p->samples; n /= FAN) {
    all += node_end(n / FAN);
    p->levels++;
  }
  kiln__need_temp(&p->need, (size_t)(all * size));
}

/* Plans the launches. Each block searches several tiles of needles, so that the
 * block loads its samples only once. */
static void make_plan(plan *p, kiln_device *device,
                      const kiln_search_desc *desc)
{
  const unsigned size = (unsigned)kiln__size(desc->sorted.type);
  const kiln__tuning t = kiln__tuned(device, KILN__TUNED_SEARCH, size, desc->n);
  const uint64_t tiles = kiln__divide_up(desc->n, (uint64_t)t.block * t.items);
  const uint64_t resident = kiln__sm_count(device) *
                            (uint64_t)device->traits.max_threads_per_sm /
                            t.block;
  const uint64_t blocks = tiles < resident ? tiles : resident;
  /* the number of needles per block */
  const uint64_t each = desc->n / (blocks > 0 ? blocks : 1);

  *p = (plan){.desc = desc,
              .block = t.block,
              .items = t.items,
              .tiles = tiles,
              .samples = SAMPLE_BYTES / (size < 4 ? 4 : size),
              .stride = 1};
  while (desc->m / p->stride > p->samples ||
         desc->m / p->stride > SAMPLES_A_NEEDLE * each)
    p->stride *= 2;
  if (desc->m / p->stride < LEAST_SAMPLES)
    p->samples = 0;
  plan_tables(p, device);
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_search_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

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
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

static void specify(kiln__spec *spec, const kiln_search_desc *desc,
                    const plan *p)
{
  spec->kernels = 1u << SEARCH | (p->levels > 0 ? 1u << MAKE_TABLES : 0);
  spec->input = &desc->needles;
  /* The kernel reads needles one by one, so one program can handle any
   * alignment. */
  spec->unaligned = true;
  spec->code = &desc->code;
  spec->acc = desc->sorted.type;
  spec->elements = desc->n;
  spec->value[SEARCH_BLOCK] = p->block;
  spec->value[SEARCH_ITEMS] = p->items;
  spec->value[SEARCH_SAMPLES] = p->samples;
  spec->value[SEARCH_LEVELS] = p->levels;
  spec->value[SEARCH_ALIGNED] = desc->sorted.data % 16 == 0;
  spec->value[SEARCH_UPPER] = desc->upper;
  spec->value[SEARCH_LESS] = desc->less != NULL;
  spec->value[SEARCH_WIDE] = desc->m >= UINT64_C(1) << 31;
  spec->value[SEARCH_INDEX] = desc->out.type;
  if (desc->less != NULL)
    spec->function[0] = (kiln__function){
        "less", "the comparison", desc->less, "bool", "acc", NULL};
}

/* Returns the grid of the search. Its blocks are resident at the same time, and
 * all of them search about the same number of tiles. */
static kiln_launch_config grid_of(kiln_stream *stream, const plan *p,
                                  const kiln_kernel *kernel)
{
  const uint64_t resident = kiln__resident_blocks(stream, kernel, p->block);
  const uint64_t rounds = kiln__divide_up(p->tiles, resident);

  return kiln__sort_launch(stream, kernel, kiln__divide_up(p->tiles, rounds),
                           p->block, 0);
}

static kiln_status make_tables(kiln_stream *stream, const plan *p,
                               const kiln__call *c)
{
  const kiln_search_desc *desc = p->desc;
  const kiln_launch_config config = kiln__grid(
      stream, kiln__divide_up(desc->m / FAN, UINT64_C(4) * p->block), p->block);

  return KILN_LAUNCH(c->set->kernel[MAKE_TABLES], &config,
                     KILN_ARG(desc->sorted.data), KILN_ARG(desc->m),
                     KILN_ARG(c->storage.temp));
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_search_desc *desc = p->desc;
  kiln__spec spec = {.family = &family};
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  kiln__call c;

  if (desc->n == 0)
    return KILN_OK;
  specify(&spec, desc, p);
  st = kiln__call_open(&c, stream, &spec, workspace, p->need);
  if (st != KILN_OK)
    return st;
  if (p->levels > 0)
    KILN_TRY(make_tables(stream, p, &c));
  config = grid_of(stream, p, c.set->kernel[SEARCH]);
  st = KILN_LAUNCH(c.set->kernel[SEARCH], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->sorted.data), KILN_ARG(desc->m),
                   KILN_ARG(p->stride), KILN_ARG(desc->n),
                   KILN_ARG(desc->out.data), KILN_ARG(c.storage.temp));

done:
  kiln__storage_close(&c.storage);
  return st;
}

KILN__DEFINE_OPERATION(kiln_search, kiln_search_desc, plan, prepare, run)
