/* merge.c -- the host side of merge.cu and merge_network.cu, which merge two
 * sorted sequences by merge path (Odeh et al., Merge Path - Parallel Merging
 * Made Simple, 2012). Each block writes an equal part of the output. A binary
 * search along a diagonal finds the elements of both sequences that belong to
 * this part. */
#include "../ops.h"
#include "kernel_params.h"

#include <kiln/merge.h>

/* Indices of the kernels in the array `kernels`. */
enum { MERGE_TILES, FIND_SPLITS };

static const char *const kernels[] = {"merge", "merge_split", NULL};
static const kiln__family family = {"merge", kernels, kiln__merge_params};

static const char *const network_kernels[] = {"merge_network", "network_split",
                                              NULL};
static const kiln__family network_family = {"merge_network", network_kernels,
                                            kiln__merge_network_params};

enum {
  BY_NETWORK =
      1, /* bit in `extra` of a tuning row: merge_network.cu merges keys
                     that allow it */
  SPLIT_LANES =
      4 /* threads per tile in the launch that finds where tiles start */
};

/* Maximum number of elements for which each block searches for the start and
 * end of its own part. For more elements, a separate launch first finds the
 * boundaries of all parts. */
static const uint64_t most_unsplit = UINT64_C(1) << 21;

static bool has_values(const kiln_merge_desc *desc)
{
  return kiln__given(desc->out_values);
}

static void check_values(kiln__checker *c, const kiln_merge_desc *desc)
{
  const kiln_dtype type = desc->out_values.type;

  kiln__check_that(c,
                   desc->a_values.type == type && desc->b_values.type == type,
                   "a_values are %s, b_values %s, out_values %s; all three "
                   "must be one type, or none",
                   kiln_dtype_name(desc->a_values.type),
                   kiln_dtype_name(desc->b_values.type), kiln_dtype_name(type));
  if (!has_values(desc))
    return;
  kiln__check_read(c, "a_values", desc->a_values, desc->n_a);
  kiln__check_read(c, "b_values", desc->b_values, desc->n_b);
  kiln__check_write(c, "out_values", desc->out_values, desc->n_a + desc->n_b);
}

/* ---- Plan ---------------------------------------------------------------- */

/* Keys per thread, and most threads per block, in merge_network.cu. */
enum { NETWORK_ITEMS = 32, NETWORK_BLOCK = 256 };

typedef struct plan {
  const kiln_merge_desc *desc;
  uint32_t block, items, per_sm;
  uint64_t tiles;
  bool split, network;
  kiln__need need;
} plan;

/* Returns the number of elements per thread from the tuning row, limited by the
 * shared memory that a tile may use. Pairs need registers for the positions of
 * their values: with 7 elements, 2^28 pairs of u32 take 1.26 ms on an H200, with
 * 23 elements 1.79. */
static uint32_t items_of(const kiln_merge_desc *desc, const kiln__tuning *t)
{
  /* Limits in bytes of a tile in shared memory and of a thread's elements. */
  enum { MOST = 46 << 10, HELD = 128, PAIRS = 7 };
  const uint32_t each = (uint32_t)kiln__size(desc->a.type) +
                        (has_values(desc) ? (uint32_t)sizeof(uint16_t) : 0);
  uint32_t items = has_values(desc) && t->items > PAIRS ? PAIRS : t->items;

  while (items > 1 &&
         (t->block * items * each > MOST || (each > 10 && items * each > HELD)))
    items--;
  return items;
}

/* Returns whether merge_network.cu can merge the keys. Pairs do not gain: 2^28
 * pairs of u32 took 1.57 ms on an H200 by a network that sorted positions as well,
 * and 1.26 ms by merge.cu. */
static bool fits_network(const kiln_merge_desc *desc)
{
  const kiln_dtype type = desc->a.type;

  return desc->less == NULL && !has_values(desc) &&
         (type == KILN_F32 || type == KILN_I32 || type == KILN_U32);
}

static void make_plan(plan *p, kiln_device *device, const kiln_merge_desc *desc)
{
  const uint64_t n = desc->n_a + desc->n_b;
  const kiln__tuning t =
      kiln__tuned_for(device, KILN__TUNED_MERGE, kiln__size(desc->a.type), n);
  const bool network = (t.extra & BY_NETWORK) != 0 && fits_network(desc);
  const uint32_t block =
      network && t.block > NETWORK_BLOCK ? NETWORK_BLOCK : t.block;
  const uint32_t items = network ? NETWORK_ITEMS : items_of(desc, &t);

  *p = (plan){.desc = desc,
              .block = block,
              .items = items,
              .per_sm = has_values(desc) ? 0 : t.per_sm,
              .tiles = kiln__divide_up(n, (uint64_t)block * items),
              .split = network || n > most_unsplit,
              .network = network};
  p->need.temp = p->split ? 8 * (size_t)(p->tiles + 1) : 0;
}

static void specify_network(kiln__spec *spec, const plan *p)
{
  spec->family = &network_family;
  spec->kernels = 1u << MERGE_TILES | 1u << FIND_SPLITS;
  spec->code = &p->desc->code;
  spec->acc = p->desc->a.type;
  spec->value[MERGE_NETWORK_BLOCK] = p->block;
  spec->value[MERGE_NETWORK_PER_SM] = p->per_sm;
  spec->value[MERGE_NETWORK_T] = p->desc->a.type;
}

static void specify(kiln__spec *spec, const kiln_merge_desc *desc,
                    const plan *p)
{
  spec->family = &family;
  spec->kernels = 1u << MERGE_TILES | (p->split ? 1u << FIND_SPLITS : 0);
  spec->code = &desc->code;
  spec->acc = desc->a.type;
  spec->elements = desc->n_a + desc->n_b;
  spec->value[MERGE_BLOCK] = p->block;
  spec->value[MERGE_ITEMS] = p->items;
  spec->value[MERGE_PER_SM] = p->per_sm;
  spec->value[MERGE_PAIRS] = has_values(desc);
  spec->value[MERGE_LESS] = desc->less != NULL;
  spec->value[MERGE_SPLIT] = p->split;
  spec->value[MERGE_T] = desc->a.type;
  spec->value[MERGE_V] = has_values(desc) ? desc->out_values.type : KILN_U32;
  if (desc->less != NULL)
    spec->function[0] = (kiln__function){
        "less", "the comparison", desc->less, "bool", "acc", NULL};
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_merge_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_merge", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_that(&c, desc->n_a <= UINT64_MAX - desc->n_b,
                   "n_a + n_b does not fit 64 bits");
  kiln__check_that(
      &c, desc->a.type == desc->b.type && desc->a.type == desc->out.type,
      "a is %s, b %s, out %s; all three must be one type",
      kiln_dtype_name(desc->a.type), kiln_dtype_name(desc->b.type),
      kiln_dtype_name(desc->out.type));
  kiln__check_that(&c,
                   desc->less != NULL || !(kiln__is_record(desc->a.type) ||
                                           kiln__is_complex(desc->a.type)),
                   "elements of type %s have no default order; give less",
                   kiln_dtype_name(desc->a.type));
  kiln__check_read(&c, "a", desc->a, desc->n_a);
  kiln__check_read(&c, "b", desc->b, desc->n_b);
  kiln__check_write(&c, "out", desc->out, desc->n_a + desc->n_b);
  check_values(&c, desc);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

/* ---- The call ------------------------------------------------------------ */

static kiln_status queue_splits(const kiln__call *c, const plan *p)
{
  const kiln_merge_desc *desc = p->desc;
  const kiln_launch_config config = {
      .grid = {.x =
                   (uint32_t)kiln__divide_up(p->tiles, p->block / SPLIT_LANES)},
      .block = {.x = p->block},
      .stream = c->storage.stream};

  if (p->network)
    return KILN_LAUNCH(c->set->kernel[FIND_SPLITS], &config,
                       KILN_ARG(desc->a.data), KILN_ARG(desc->n_a),
                       KILN_ARG(desc->b.data), KILN_ARG(desc->n_b),
                       KILN_ARG(c->storage.temp));
  return KILN_LAUNCH(c->set->kernel[FIND_SPLITS], &config,
                     KILN__USER_ARG(c->args), KILN_ARG(desc->a.data),
                     KILN_ARG(desc->n_a), KILN_ARG(desc->b.data),
                     KILN_ARG(desc->n_b), KILN_ARG(c->storage.temp));
}

static kiln_status queue(const kiln__call *c, const plan *p)
{
  const kiln_merge_desc *desc = p->desc;
  const kiln_launch_config config = {.grid = {.x = (uint32_t)p->tiles},
                                     .block = {.x = p->block},
                                     .stream = c->storage.stream};
  kiln_status st = KILN_OK;

  if (p->split)
    KILN_TRY(queue_splits(c, p));
  if (p->network)
    return KILN_LAUNCH(c->set->kernel[MERGE_TILES], &config,
                       KILN_ARG(desc->a.data), KILN_ARG(desc->n_a),
                       KILN_ARG(desc->b.data), KILN_ARG(desc->n_b),
                       KILN_ARG(desc->out.data), KILN_ARG(c->storage.temp));
  st = KILN_LAUNCH(c->set->kernel[MERGE_TILES], &config,
                   KILN__USER_ARG(c->args), KILN_ARG(desc->a.data),
                   KILN_ARG(desc->n_a), KILN_ARG(desc->b.data),
                   KILN_ARG(desc->n_b), KILN_ARG(desc->out.data),
                   KILN_ARG(desc->a_values.data), KILN_ARG(desc->b_values.data),
                   KILN_ARG(desc->out_values.data), KILN_ARG(c->storage.temp));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = NULL};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (p->desc->n_a + p->desc->n_b == 0)
    return KILN_OK;
  if (p->network)
    specify_network(&spec, p);
  else
    specify(&spec, p->desc, p);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, p->need));
  st = queue(&c, p);
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_merge, kiln_merge_desc, plan, prepare, run)
