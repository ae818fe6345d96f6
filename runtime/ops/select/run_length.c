/* run_length.c -- the host side of run_length.cu and run_length_staged.cu:
 * run-length encoding, and the search for runs of at least two elements, in one
 * launch. Each tile finds two values: the number of runs in preceding tiles, and
 * the start of the run that continues into the tile. */
#include "compact.h"
#include "kernel_params.h"

#include <kiln/select.h>

static const char *const kernels[] = {"run_length", NULL};
static const kiln__family family = {"run_length", kernels,
                                    kiln__run_length_params};

/* The kernel of run_length_staged.cu, which stages tiles in shared memory. It
 * handles large arrays without a map. */
static const char *const staged_kernels[] = {"run_length_staged", NULL};
static const kiln__family staged_family = {"run_length_staged", staged_kernels,
                                           kiln__run_length_staged_params};

typedef struct plan {
  const kiln_run_length_desc *desc;
  kiln__spec spec;
  uint64_t tiles, blocks;
  kiln__need need;
} plan;

_Static_assert((int)RUN_LENGTH_BLOCK == (int)RUN_LENGTH_STAGED_BLOCK,
               "run() reads the block size of both kernels");

/* Returns whether the kernel of run_length_staged.cu is used. It is used if the
 * tuning row for this size demands it, and if it can handle the call. */
static bool is_staged(const kiln_run_length_desc *desc, bool only_long,
                      const kiln__tuning *t)
{
  const kiln_input *x = &desc->x;
  const size_t size = kiln__size(x->in[0].type);

  return (t->extra & KILN__SELECT_STAGED) != 0 && !only_long &&
         x->map == NULL && kiln__input_arrays(x) == 1 &&
         kiln__input_type(x) == x->in[0].type && x->in[0].data % 16 == 0 &&
         (size == 4 || size == 8) && !kiln__is_record(x->in[0].type) &&
         !kiln__is_complex(x->in[0].type) && desc->n <= UINT32_MAX;
}

static kiln_dtype or_u32(kiln_array a)
{
  return kiln__given(a) ? a.type : KILN_U32;
}

static void plan_staged(plan *p, const kiln_stream *stream,
                        const kiln__tuning *t)
{
  const kiln_run_length_desc *desc = p->desc;
  const size_t bytes = kiln__size(desc->x.in[0].type) + sizeof(uint16_t);
  uint32_t items = t->items / 4u * 4u;
  uint32_t *const value = p->spec.value;

  while (items > 4 &&
         (items > 64 || items * bytes * t->block > KILN__TILE_SHARED))
    items -= 4;
  p->spec.family = &staged_family;
  value[RUN_LENGTH_STAGED_BLOCK] = t->block;
  value[RUN_LENGTH_STAGED_ITEMS] = items > 4 ? items : 4;
  value[RUN_LENGTH_STAGED_VALUES] = kiln__given(desc->values);
  value[RUN_LENGTH_STAGED_OFFSET] = or_u32(desc->offsets);
  value[RUN_LENGTH_STAGED_OFFSETS] = kiln__given(desc->offsets);
  value[RUN_LENGTH_STAGED_LENGTH] = or_u32(desc->lengths);
  value[RUN_LENGTH_STAGED_LENGTHS] = kiln__given(desc->lengths);
  value[RUN_LENGTH_STAGED_COUNT] = desc->count.type;
  p->tiles = kiln__divide_up(desc->n, (uint64_t)t->block *
                                          value[RUN_LENGTH_STAGED_ITEMS]);
  value[RUN_LENGTH_STAGED_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &desc->x, desc->n, p->tiles);
  /* One more block, the leader block, computes the prefixes of all tiles. */
  p->blocks = p->tiles + 1;
  p->need.descriptors =
      kiln__leader_descriptors(p->tiles, 4) + (size_t)p->tiles;
}

static void make_plan(plan *p, const kiln_stream *stream,
                      const kiln_run_length_desc *desc, bool only_long)
{
  const unsigned vec = kiln__input_vec(&desc->x);
  kiln__tuning t = kiln__tuned_for(stream->device, KILN__TUNED_RUN_LENGTH,
                                   kiln__input_widest(&desc->x), desc->n);
  const char *equal = desc->equal != NULL ? desc->equal : "a == b";
  uint32_t *const value = p->spec.value;

  *p = (plan){.desc = desc,
              .spec = {.family = &family,
                       .input = &desc->x,
                       .function = {{"equal", "the equality", equal, "bool",
                                     "value", NULL}},
                       .code = &desc->code,
                       .elements = desc->n,
                       .quick = kiln__quick(desc->n)}};
  if (is_staged(desc, only_long, &t)) {
    plan_staged(p, stream, &t);
    return;
  }
  if ((t.extra & KILN__SELECT_STAGED) != 0) {
    /* This is the tile of run_length.cu, which keeps elements in registers. */
    t.block = 256;
    t.items = (uint16_t)(4 * vec);
  }
  value[RUN_LENGTH_VECTOR] = vec;
  value[RUN_LENGTH_ITEMS] = kiln__tile_items(
      &t, vec,
      4 + (kiln__given(desc->values) ? kiln__size(kiln__input_type(&desc->x))
                                     : 0));
  /* kiln__tile_items() above may have reduced the block size. */
  value[RUN_LENGTH_BLOCK] = t.block;
  value[RUN_LENGTH_LONG] = only_long;
  value[RUN_LENGTH_VALUES] = kiln__given(desc->values);
  value[RUN_LENGTH_OFFSET] = or_u32(desc->offsets);
  value[RUN_LENGTH_OFFSETS] = kiln__given(desc->offsets);
  value[RUN_LENGTH_LENGTH] = or_u32(desc->lengths);
  value[RUN_LENGTH_LENGTHS] = kiln__given(desc->lengths);
  value[RUN_LENGTH_COUNT] = desc->count.type;
  value[RUN_LENGTH_WIDE] = desc->n > UINT32_MAX;
  p->tiles =
      kiln__divide_up(desc->n, (uint64_t)t.block * value[RUN_LENGTH_ITEMS]);
  p->need.descriptors =
      p->tiles > 1 ? p->tiles << (1 + value[RUN_LENGTH_WIDE]) : 0;
  p->blocks = p->tiles;
}

static kiln_status prepare(plan *p, const char *call, bool only_long,
                           const kiln_stream *stream,
                           const kiln_run_length_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;
  uint64_t most;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  most = only_long ? desc->n / 2 : desc->n;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_input(&c, "x", &desc->x, desc->n);
  if (kiln__given(desc->values))
    kiln__check_elements(&c, "values", desc->values, &desc->x, most);
  if (kiln__given(desc->offsets))
    kiln__check_count(&c, "offsets", desc->offsets, most, desc->n);
  if (kiln__given(desc->lengths))
    kiln__check_count(&c, "lengths", desc->lengths, most, desc->n);
  kiln__check_count(&c, "count", desc->count, 1, desc->n);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream, desc, only_long);
  return c.st;
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_run_length_desc *desc = p->desc;
  const kiln_launch_config config = {
      .grid = {.x = (uint32_t)p->blocks},
      .block = {.x = p->spec.value[RUN_LENGTH_BLOCK]},
      .stream = stream};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (desc->n == 0)
    return kiln__zero(stream, desc->count, 1);
  KILN_TRY(kiln__call_open(&c, stream, &p->spec, workspace, p->need));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(desc->values.data),
                   KILN_ARG(desc->offsets.data), KILN_ARG(desc->lengths.data),
                   KILN_ARG(desc->count.data), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_VARIANT(kiln_run_length_encode, kiln_run_length_desc, false,
                     prepare, run)
KILN__DEFINE_VARIANT(kiln_run_length_non_trivial, kiln_run_length_desc, true,
                     prepare, run)
