/* set_operation.c -- the host side of set_operation.cu and set_network.cu: union,
 * intersection and differences of two sorted sequences in one pass. A first
 * launch finds where each tile starts in both sequences. */
#include "../select/compact.h"
#include "kernel_params.h"

#include <kiln/sets.h>

/* Indices of the kernels in the array `kernels`. */
enum { SET_TILES, FIND_SPLITS };

static const char *const kernels[] = {"set_operation", "set_split", NULL};
static const kiln__family family = {"set_operation", kernels,
                                    kiln__set_operation_params};

static const char *const network_kernels[] = {"set_network",
                                              "set_network_split", NULL};
static const kiln__family network_family = {"set_network", network_kernels,
                                            kiln__set_network_params};

enum {
  BY_LEADER = 16,      /* `extra` of a tuning row: set_network.cu with a leader
                         block; 0: set_operation.cu */
  NETWORK_ITEMS = 32,  /* elements per thread in set_network.cu */
  NETWORK_BLOCK = 256, /* most threads per block there */
  SPLIT_LANES = 4      /* threads per tile in set_network_split */
};

enum {
  SPLIT_BYTES = 2 * sizeof(uint64_t), /* an index in each sequence */
  SPLIT_THREADS = 16,                 /* threads per tile in set_split */
  SPARE = 16, /* elements of shared memory beside those of a tile */
  HELD = 128  /* limit in bytes of a thread's wide elements in registers */
};

typedef struct plan {
  const kiln_set_desc *desc;
  kiln_input input; /* gives the kernel the type of the elements */
  uint64_t n;       /* number of elements of both sequences */
  uint32_t block, items, per_sm;
  uint64_t tiles;
  bool wide, network;
  uint32_t look; /* see KILN_LOOK in set_network.cu */
  kiln__need need;
} plan;

/* Returns the largest number of results. */
static uint64_t most_results(const kiln_set_desc *desc)
{
  switch (desc->kind) {
  case KILN_SET_INTERSECTION:
    return desc->n_a < desc->n_b ? desc->n_a : desc->n_b;
  case KILN_SET_DIFFERENCE:
    return desc->n_a;
  default:
    return desc->n_a + desc->n_b;
  }
}

/* Returns whether set_network.cu can compute the set: equal elements have equal
 * bits, and a register holds an element. */
static bool fits_network(const kiln_set_desc *desc)
{
  return desc->less == NULL && kiln__is_integer(desc->a.type) &&
         kiln__size(desc->a.type) == 4;
}

static void make_plan(plan *p, kiln_device *device, const kiln_set_desc *desc)
{
  const size_t size = kiln__size(desc->a.type);
  const uint64_t n = desc->n_a + desc->n_b;
  const kiln__tuning t = kiln__tuned_for(device, KILN__TUNED_SETS, size, n);
  const bool network = t.extra != 0 && fits_network(desc);

  *p = (plan){.desc = desc,
              .input = {.in = {desc->a}},
              .n = n,
              .block =
                  network && t.block > NETWORK_BLOCK ? NETWORK_BLOCK : t.block,
              .items = t.items < 32 ? t.items : 31,
              .per_sm = t.per_sm,
              .wide = n > INT32_MAX,
              .network = network,
              .look = t.extra == BY_LEADER ? 0 : t.extra};
  if (p->network)
    p->items = NETWORK_ITEMS;
  while (!p->network && p->items > 1 &&
         ((p->block * p->items + SPARE) * size > KILN__TILE_SHARED ||
          (size > 8 && p->items * size > HELD)))
    p->items--;
  p->tiles = kiln__divide_up(n, (uint64_t)p->block * p->items);
  (void)kiln__need_temp(&p->need, SPLIT_BYTES * (size_t)(p->tiles + 1));
  if (p->network && p->look == 0)
    p->need.descriptors = kiln__leader_descriptors(p->tiles, p->wide ? 8 : 4);
  else
    p->need.descriptors =
        p->network || p->tiles > 1 ? (size_t)p->tiles << p->wide : 0;
}

static void specify_network(kiln__spec *spec, const plan *p)
{
  spec->family = &network_family;
  spec->value[SET_NETWORK_BLOCK] = p->block;
  spec->value[SET_NETWORK_PER_SM] = p->per_sm;
  spec->value[SET_NETWORK_T] = p->desc->a.type;
  spec->value[SET_NETWORK_SET] = (uint32_t)p->desc->kind;
  spec->value[SET_NETWORK_LOOK] = p->look;
  spec->value[SET_NETWORK_COUNT] = p->desc->count.type;
  spec->value[SET_NETWORK_WIDE] = p->wide;
}

static void specify(kiln__spec *spec, const plan *p)
{
  const kiln_set_desc *desc = p->desc;

  spec->kernels = 1u << SET_TILES | 1u << FIND_SPLITS;
  spec->input = &p->input;
  spec->code = &desc->code;
  spec->acc = desc->a.type;
  if (p->network) {
    specify_network(spec, p);
    return;
  }
  spec->family = &family;
  spec->value[SET_OPERATION_BLOCK] = p->block;
  spec->value[SET_OPERATION_ITEMS] = p->items;
  spec->value[SET_OPERATION_T] = desc->a.type;
  spec->value[SET_OPERATION_SET] = (uint32_t)desc->kind;
  spec->value[SET_OPERATION_LESS] = desc->less != NULL;
  spec->value[SET_OPERATION_COUNT] = desc->count.type;
  spec->value[SET_OPERATION_WIDE] = p->wide;
  if (desc->less != NULL)
    spec->function[0] = (kiln__function){
        "less", "the comparison", desc->less, "bool", "acc", NULL};
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_set_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_set_operation", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_that(&c,
                   desc->kind >= KILN_SET_UNION &&
                       desc->kind <= KILN_SET_SYMMETRIC_DIFFERENCE,
                   "kind is %d; use one of kiln_set_kind", (int)desc->kind);
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
  kiln__check_write(&c, "out", desc->out, most_results(desc));
  kiln__check_count(&c, "count", desc->count, 1, desc->n_a + desc->n_b);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

/* ---- The call ------------------------------------------------------------ */

static kiln_status queue_splits(const kiln__call *c, const plan *p)
{
  const kiln_set_desc *desc = p->desc;
  kiln_launch_config config = {.block = {.x = p->block},
                               .stream = c->storage.stream};

  if (p->network) {
    config.grid.x = (uint32_t)kiln__divide_up(p->tiles, p->block / SPLIT_LANES);
    return KILN_LAUNCH(c->set->kernel[FIND_SPLITS], &config,
                       KILN_ARG(desc->a.data), KILN_ARG(desc->n_a),
                       KILN_ARG(desc->b.data), KILN_ARG(desc->n_b),
                       KILN_ARG(c->storage.temp));
  }
  config.grid.x = (uint32_t)kiln__divide_up(p->tiles, p->block / SPLIT_THREADS);
  return KILN_LAUNCH(c->set->kernel[FIND_SPLITS], &config,
                     KILN__USER_ARG(c->args), KILN_ARG(desc->a.data),
                     KILN_ARG(desc->n_a), KILN_ARG(desc->b.data),
                     KILN_ARG(desc->n_b), KILN_ARG(c->storage.temp));
}

static kiln_status queue(const kiln__call *c, const plan *p)
{
  const kiln_set_desc *desc = p->desc;
  const uint64_t most = most_results(desc);
  kiln_launch_config config = {.block = {.x = p->block},
                               .stream = c->storage.stream};
  kiln_status st = KILN_OK;

  KILN_TRY(queue_splits(c, p));
  config.grid.x = (uint32_t)p->tiles + (p->network && p->look == 0 ? 1 : 0);
  KILN_TRY(KILN_LAUNCH(
      c->set->kernel[SET_TILES], &config, KILN__USER_ARG(c->args),
      KILN_ARG(desc->a.data), KILN_ARG(desc->n_a), KILN_ARG(desc->b.data),
      KILN_ARG(desc->n_b), KILN_ARG(c->storage.temp), KILN_ARG(desc->out.data),
      KILN_ARG(most), KILN_ARG(desc->count.data),
      KILN_ARG(c->storage.descriptors), KILN_ARG(c->epoch)));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = NULL};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (p->n == 0)
    return kiln__zero(stream, p->desc->count, 1);
  specify(&spec, p);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, p->need));
  st = queue(&c, p);
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_set_operation, kiln_set_desc, plan, prepare, run)
