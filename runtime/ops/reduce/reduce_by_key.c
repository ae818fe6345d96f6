/* reduce_by_key.c -- the host side of reduce_by_key.cu, which reduces each run of
 * equal consecutive keys. The place of a tile's results is the number of runs
 * in preceding tiles. On large arrays a leader block computes these numbers,
 * otherwise each tile finds its own by decoupled look-back. */
#include "../scan/scan_common.h"
#include "../select/compact.h"
#include "kernel_params.h"
#include "reduce.h"

static const char *const kernels[] = {"reduce_by_key", NULL};
static const kiln__family family = {"reduce_by_key", kernels,
                                    kiln__reduce_by_key_params};

/* Values of `extra` in a tuning row that select the leader block, and that load
 * the elements after the keys. The lower bits are the number of tile descriptors
 * that a lane reads at once. */
enum { LEADER = 16, LATE = 32 };

typedef struct request {
  const kiln_reduce_by_key_desc *desc;
  kiln_array out;
  kiln__spec spec;
  uint64_t tiles, blocks;
  size_t counts; /* index of the first tile descriptor for numbers of runs */
  kiln__need need;
} request;

/* ---- Plan ---------------------------------------------------------------- */

/* Returns the number of elements per thread: `vec` times a power of two. The
 * kernel holds 16 registers of elements with a map, has a mask of 32 bits per
 * thread, and stages one key and one result per element in shared memory, in the
 * types in which it computes. */
static uint32_t items_of(const request *r, kiln__tuning *t, unsigned vec,
                         size_t widest, bool plain)
{
  const unsigned held = widest == 8 ? 8 : 16;
  const size_t key = kiln__size(kiln__op_type(r->desc->keys.type));
  const size_t result = kiln__size(kiln__op_type(r->out.type));
  uint32_t vecs = 1, most;

  if (!plain && t->items > held)
    t->items = (uint16_t)held;
  most = kiln__tile_items(t, vec, key + (result > 4 ? result : 4)) / vec;
  while (2 * vecs <= most)
    vecs *= 2;
  return vecs * vec;
}

/* Returns the prefetch distance in tiles for the input and the keys. */
static uint32_t prefetch_of(const kiln_stream *stream, const request *r)
{
  kiln_input all = r->desc->x;
  const size_t k = kiln__input_arrays(&all);

  if (k < KILN_MAX_INPUTS)
    all.in[k] = r->desc->keys;
  return kiln__prefetch_tiles(stream->device, &all, r->desc->n, r->tiles);
}

static void set_values(request *r, const kiln__tuning *t, uint32_t vec,
                       uint32_t items, bool plain)
{
  const kiln_reduce_by_key_desc *desc = r->desc;
  uint32_t *const value = r->spec.value;

  value[REDUCE_BY_KEY_BLOCK] = t->block;
  value[REDUCE_BY_KEY_VECTOR] = vec;
  value[REDUCE_BY_KEY_VECTORS] = items / vec;
  value[REDUCE_BY_KEY_PER_SM] = plain ? t->per_sm : 0;
  value[REDUCE_BY_KEY_T] = r->out.type;
  value[REDUCE_BY_KEY_PLAIN] = plain;
  value[REDUCE_BY_KEY_IN_ALIGNED] = desc->x.in[0].data % 16 == 0;
  value[REDUCE_BY_KEY_WINDOW] = t->extra % LEADER;
  value[REDUCE_BY_KEY_LEADER] = (t->extra & LEADER) != 0;
  value[REDUCE_BY_KEY_LATE] = (t->extra & LATE) != 0;
  value[REDUCE_BY_KEY_KEY] = desc->keys.type;
  value[REDUCE_BY_KEY_KEY_ALIGNED] = desc->keys.data % 16 == 0;
  value[REDUCE_BY_KEY_KEYS] = kiln__given(desc->out_keys);
  value[REDUCE_BY_KEY_COUNT] = desc->count.type;
  value[REDUCE_BY_KEY_WIDE] = desc->n > UINT32_MAX;
}

static void plan_storage(request *r, bool leader)
{
  const size_t words = kiln__acc_words(r->out.type);
  const bool wide = r->desc->n > UINT32_MAX;

  /* A look-back reads the descriptors of up to eight tiles together. */
  r->counts = (size_t)(r->tiles / 8 * 8 + 8) * words;
  r->need.descriptors =
      r->counts + (leader ? kiln__leader_descriptors(r->tiles, wide ? 8 : 4)
                          : (size_t)r->tiles << wide);
}

static void make_plan(request *r, const kiln_stream *stream)
{
  const kiln_reduce_by_key_desc *desc = r->desc;
  const size_t least = kiln__size(r->out.type) > kiln__size(desc->keys.type)
                           ? kiln__size(r->out.type)
                           : kiln__size(desc->keys.type);
  const size_t widest = kiln__widest(&desc->x, least);
  const uint32_t vec = (uint32_t)(16 / widest);
  const bool plain = kiln__is_plain(&desc->x, &desc->op, r->out.type);
  kiln__tuning t = kiln__tuned(stream->device, KILN__TUNED_REDUCE_BY_KEY,
                               (unsigned)widest, desc->n);
  uint32_t items;

  r->spec =
      (kiln__spec){.family = &family,
                   .input = &desc->x,
                   .op = &desc->op,
                   .acc = r->out.type,
                   .function = {{"same", "the comparison of keys",
                                 desc->same != NULL ? desc->same : "a == b",
                                 "bool", "kiln::compute_t<KILN_KEY>", NULL}},
                   .code = &desc->code,
                   .quick = kiln__quick_on_9(stream, desc->n)};
  items = items_of(r, &t, vec, widest, plain);
  r->tiles = kiln__divide_up(desc->n, (uint64_t)(t.block - 32u) * items);
  set_values(r, &t, vec, items, plain);
  r->spec.value[REDUCE_BY_KEY_PREFETCH] = prefetch_of(stream, r);
  r->blocks = r->tiles + r->spec.value[REDUCE_BY_KEY_LEADER];
  plan_storage(r, r->spec.value[REDUCE_BY_KEY_LEADER] != 0);
}

/* ---- Call ---------------------------------------------------------------- */

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_reduce_by_key_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_reduce_by_key", stream, desc) != KILN_OK)
    return c.st;
  *r = (request){.desc = desc,
                 .out = kiln__or_type(desc->out, kiln__input_type(&desc->x))};
  kiln__check_read(&c, "keys", desc->keys, desc->n);
  kiln__check_input(&c, "x", &desc->x, desc->n);
  if (kiln__given(desc->out_keys)) {
    kiln__check_that(&c, desc->out_keys.type == desc->keys.type,
                     "out_keys is %s, but the keys are %s",
                     kiln_dtype_name(desc->out_keys.type),
                     kiln_dtype_name(desc->keys.type));
    kiln__check_write(&c, "out_keys", desc->out_keys, desc->n);
  }
  kiln__check_write(&c, "out", r->out, desc->n);
  kiln__check_count(&c, "count", desc->count, 1, desc->n);
  kiln__check_reduction_op(&c, &desc->op, r->out.type);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(r, stream);
  return c.st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln_reduce_by_key_desc *desc = r->desc;
  const kiln_launch_config config =
      kiln__grid(stream, r->blocks, r->spec.value[REDUCE_BY_KEY_BLOCK]);
  kiln_status st = KILN_OK;
  CUdeviceptr counts;
  kiln__call c;

  if (desc->n == 0)
    return kiln__zero(stream, desc->count, 1);
  KILN_TRY(kiln__call_open(&c, stream, &r->spec, workspace, r->need));
  counts = c.storage.descriptors + r->counts * sizeof(uint64_t);
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(desc->keys.data),
                   KILN_ARG(desc->out_keys.data), KILN_ARG(r->out.data),
                   KILN_ARG(desc->count.data), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(counts), KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_reduce_by_key, kiln_reduce_by_key_desc, request,
                       prepare, run)
