/* merge_sort.c -- the host side of merge_sort.cu, which sorts by the user's
 * comparison.
 *
 * One launch sorts tiles in shared memory. Each of the following passes merges
 * groups of four sorted runs, or of two in the first pass if the number of
 * doublings is odd. For few elements, passes merge two runs and find the tiles'
 * elements themselves, which saves a launch per pass. The passes write alternately to temporary memory and to the
 * output, such that the last pass writes the output. */
#include "kernel_params.h"
#include "sort.h"

#include <kiln/merge_sort.h>

/* Indices of the kernels in the array `kernels`. */
enum { SORT_TILES, FIND_SPLITS, MERGE_RUNS, JOIN_RUNS };

static const char *const kernels[] = {"merge_sort_tiles", "merge_sort_split",
                                      "merge_sort_pass", "merge_sort_join",
                                      NULL};
static const kiln__family family = {"merge_sort", kernels,
                                    kiln__merge_sort_params};

enum {
  /* Number of bytes that the kernel stores per tile: an index in each run. */
  SPLIT_BYTES = 4 * sizeof(uint64_t),
  /* Size up to which keys move through shared memory; see merge_sort.cu. */
  MOST_MOVED = 8,
  /* Shared memory of a tile in bytes. Two tiles of wide keys fit into the shared
   * memory of an SM from compute capability 8.0 on. */
  TILE_SHARED = 46 << 10,
  WIDE_TILE_SHARED = 72 << 10,
  /* Limit in bytes of the keys that a thread holds in registers. */
  HELD = 256,
  /* Size for which the parameters of all wider keys are looked up. */
  WIDEST_TUNED = 16,
  /* Number of elements of shared memory beside those of a tile. */
  SPARE = 16,
  /* Number of threads per tile in merge_sort_split. */
  SPLIT_THREADS = 16,
  /* Value of `extra` in a tuning row: passes merge two runs each. */
  PAIRWISE = 1
};

typedef struct plan {
  const kiln_merge_sort_desc *desc;
  uint32_t block, items, per_sm;
  bool pairwise; /* passes merge two runs, without a launch that splits them */
  uint64_t tiles;
  unsigned doublings; /* log2 of the number of tiles, rounded up */
  size_t smem;        /* shared memory per tile in bytes */
  size_t values;      /* offset of the values in temporary memory */
  size_t splits;      /* offset of the splits in temporary memory */
  kiln__need need;
} plan;

static bool has_values(const kiln_merge_sort_desc *desc)
{
  return kiln__given(desc->values_in) || kiln__given(desc->values_out);
}

/* ---- Plan ---------------------------------------------------------------- */

/* Returns the number of bytes of shared memory per element. */
static uint32_t element_bytes(const kiln_merge_sort_desc *desc)
{
  const uint32_t size = (uint32_t)kiln__size(desc->keys_in.type);
  const bool places = has_values(desc) || size > MOST_MOVED;

  return size + (places ? (uint32_t)sizeof(uint16_t) : 0);
}

/* Sets the number of elements per thread from the tuning row, limited by the
 * shared memory that a tile may use. */
static void plan_tile(plan *p, const kiln_device *device,
                      const kiln__tuning *tuned)
{
  const uint32_t each = element_bytes(p->desc);
  const size_t device_most = (size_t)device->traits.smem_per_block_optin;
  size_t most = TILE_SHARED;

  if (kiln__size(p->desc->keys_in.type) > MOST_MOVED &&
      device_most >= WIDE_TILE_SHARED)
    most = WIDE_TILE_SHARED;
  p->block = tuned->block;
  p->items = tuned->items;
  p->per_sm = tuned->per_sm;
  p->pairwise = tuned->extra == PAIRWISE;
  while (p->items > 1 && ((size_t)p->block * p->items * each > most ||
                          (each > MOST_MOVED + 2 && p->items * each > HELD)))
    p->items--;
  p->smem = ((size_t)p->block * p->items + SPARE) * each;
}

static void make_plan(plan *p, kiln_device *device,
                      const kiln_merge_sort_desc *desc)
{
  const size_t size = kiln__size(desc->keys_in.type);
  const kiln__tuning tuned = kiln__tuned(
      device, KILN__TUNED_MERGE_SORT,
      size > MOST_MOVED ? (unsigned)WIDEST_TUNED : (unsigned)size, desc->n);

  *p = (plan){.desc = desc};
  plan_tile(p, device, &tuned);
  p->tiles = kiln__divide_up(desc->n, (uint64_t)(p->block - 1) * p->items);
  while (p->doublings < 63 && UINT64_C(1) << p->doublings < p->tiles)
    p->doublings++;
  if (p->tiles <= 1)
    return;
  (void)kiln__need_temp(&p->need, size * desc->n);
  if (has_values(desc))
    p->values =
        kiln__need_temp(&p->need, kiln__size(desc->values_in.type) * desc->n);
  if (!p->pairwise)
    p->splits = kiln__need_temp(&p->need, SPLIT_BYTES * p->tiles);
}

static void specify(kiln__spec *spec, const plan *p)
{
  const kiln_merge_sort_desc *desc = p->desc;

  spec->kernels = 1u << SORT_TILES;
  if (p->tiles > 1)
    spec->kernels |=
        p->pairwise ? 1u << JOIN_RUNS : 1u << FIND_SPLITS | 1u << MERGE_RUNS;
  spec->code = &desc->code;
  spec->acc = desc->keys_in.type;
  spec->value[MERGE_SORT_BLOCK] = p->block;
  spec->value[MERGE_SORT_ITEMS] = p->items;
  spec->value[MERGE_SORT_PER_SM] = p->per_sm;
  spec->value[MERGE_SORT_T] = desc->keys_in.type;
  spec->value[MERGE_SORT_PAIRS] = has_values(desc);
  spec->value[MERGE_SORT_V] =
      has_values(desc) ? desc->values_in.type : KILN_U32;
  spec->function[0] = (kiln__function){
      "less", "the comparison", desc->less, "bool", "acc", NULL};
}

/* ---- Checks -------------------------------------------------------------- */

static void check_arrays(kiln__checker *c, const kiln_merge_sort_desc *desc)
{
  kiln__check_read(c, "keys_in", desc->keys_in, desc->n);
  kiln__check_in_place(c, "keys_out", desc->keys_out, desc->n);
  kiln__check_that(c, desc->keys_in.type == desc->keys_out.type,
                   "keys_in and keys_out differ in type");
  if (!has_values(desc))
    return;
  kiln__check_read(c, "values_in", desc->values_in, desc->n);
  kiln__check_in_place(c, "values_out", desc->values_out, desc->n);
  kiln__check_that(c, desc->values_in.type == desc->values_out.type,
                   "values_in and values_out differ in type");
  kiln__check_that(c,
                   desc->n == 0 ||
                       (desc->keys_out.data != desc->values_in.data &&
                        desc->values_out.data != desc->keys_in.data),
                   "keys and values overlap");
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_merge_sort_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_merge_sort", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  check_arrays(&c, desc);
  kiln__check_that(&c, desc->less != NULL,
                   "less is NULL; give an expression such as \"a < b\", or "
                   "call kiln_sort()");
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

/* ---- The call ------------------------------------------------------------ */

/* Arrays between which a pass moves the elements. */
typedef struct place {
  CUdeviceptr keys, values;
} place;

static kiln_status sort_tiles(const kiln__call *c, const plan *p, place to)
{
  const kiln_merge_sort_desc *desc = p->desc;
  const kiln_launch_config config =
      kiln__sort_launch(c->storage.stream, c->set->kernel[SORT_TILES], p->tiles,
                        p->block, p->smem);

  return KILN_LAUNCH(c->set->kernel[SORT_TILES], &config,
                     KILN__USER_ARG(c->args), KILN_ARG(desc->keys_in.data),
                     KILN_ARG(to.keys), KILN_ARG(desc->values_in.data),
                     KILN_ARG(to.values), KILN_ARG(desc->n));
}

/* Queues a pass that merges groups of 2^ways runs of 2^run tiles. */
static kiln_status merge_runs(const kiln__call *c, const plan *p, place from,
                              place to, uint32_t run, uint32_t ways)
{
  const CUdeviceptr splits = c->storage.temp + p->splits;
  const kiln_launch_config search = kiln__sort_launch(
      c->storage.stream, c->set->kernel[FIND_SPLITS],
      kiln__divide_up(p->tiles, p->block / SPLIT_THREADS), p->block, 0);
  const kiln_launch_config config =
      kiln__sort_launch(c->storage.stream, c->set->kernel[MERGE_RUNS], p->tiles,
                        p->block, p->smem);
  kiln_status st = KILN_OK;

  KILN_TRY(KILN_LAUNCH(c->set->kernel[FIND_SPLITS], &search,
                       KILN__USER_ARG(c->args), KILN_ARG(from.keys),
                       KILN_ARG(p->desc->n), KILN_ARG(run), KILN_ARG(ways),
                       KILN_ARG(splits)));
  KILN_TRY(KILN_LAUNCH(c->set->kernel[MERGE_RUNS], &config,
                       KILN__USER_ARG(c->args), KILN_ARG(from.keys),
                       KILN_ARG(to.keys), KILN_ARG(from.values),
                       KILN_ARG(to.values), KILN_ARG(p->desc->n), KILN_ARG(run),
                       KILN_ARG(ways), KILN_ARG(splits)));

done:
  return st;
}

/* Queues a pass that merges pairs of runs of 2^run tiles. */
static kiln_status join_runs(const kiln__call *c, const plan *p, place from,
                             place to, uint32_t run)
{
  const kiln_launch_config config =
      kiln__sort_launch(c->storage.stream, c->set->kernel[JOIN_RUNS], p->tiles,
                        p->block, p->smem);

  return KILN_LAUNCH(c->set->kernel[JOIN_RUNS], &config,
                     KILN__USER_ARG(c->args), KILN_ARG(from.keys),
                     KILN_ARG(to.keys), KILN_ARG(from.values),
                     KILN_ARG(to.values), KILN_ARG(p->desc->n), KILN_ARG(run));
}

static kiln_status queue(const kiln__call *c, const plan *p)
{
  const place out = {p->desc->keys_out.data, p->desc->values_out.data};
  const place temp = {c->storage.temp, c->storage.temp + p->values};
  const unsigned passes = p->pairwise ? p->doublings : (p->doublings + 1) / 2;
  bool in_temp = passes % 2 != 0;
  unsigned doubled = 0;
  kiln_status st = KILN_OK;

  KILN_TRY(sort_tiles(c, p, in_temp ? temp : out));
  while (doubled < p->doublings) {
    const bool two = p->pairwise || (p->doublings - doubled) % 2 != 0;
    const unsigned ways = two ? 1 : 2;
    const place from = in_temp ? temp : out, to = in_temp ? out : temp;

    KILN_TRY(p->pairwise ? join_runs(c, p, from, to, doubled)
                         : merge_runs(c, p, from, to, doubled, ways));
    doubled += ways;
    in_temp = !in_temp;
  }

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = &family};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (p->desc->n == 0)
    return KILN_OK;
  specify(&spec, p);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, p->need));
  st = queue(&c, p);
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_merge_sort, kiln_merge_sort_desc, plan, prepare,
                       run)
