/* run_length.c -- the host side of run_length.cu: run-length encoding, and
 * the search for runs of at least two elements, in one launch. Each tile
 * finds two values by decoupled look-back: the number of runs in preceding
 * tiles, and the start of the run that continues into the tile. */
#include "compact.h"
#include "kernel_params.h"

#include <kiln/select.h>

static const char *const kernels[] = {"run_length", NULL};
static const kiln__family family = {"run_length", kernels,
                                    kiln__run_length_params};

typedef struct plan {
  const kiln_run_length_desc *desc;
  kiln__spec spec;
  uint64_t tiles;
  kiln__need need;
} plan;

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
                       .quick = kiln__quick(desc->n)}};
  value[RUN_LENGTH_VECTOR] = vec;
  value[RUN_LENGTH_ITEMS] = kiln__tile_items(
      &t, vec,
      4 + (kiln__given(desc->values) ? kiln__size(kiln__input_type(&desc->x))
                                     : 0));
  /* kiln__tile_items() above may have reduced the block size. */
  value[RUN_LENGTH_BLOCK] = t.block;
  value[RUN_LENGTH_LONG] = only_long;
  value[RUN_LENGTH_VALUES] = kiln__given(desc->values);
  value[RUN_LENGTH_OFFSET] =
      kiln__given(desc->offsets) ? desc->offsets.type : KILN_U32;
  value[RUN_LENGTH_OFFSETS] = kiln__given(desc->offsets);
  value[RUN_LENGTH_LENGTH] =
      kiln__given(desc->lengths) ? desc->lengths.type : KILN_U32;
  value[RUN_LENGTH_LENGTHS] = kiln__given(desc->lengths);
  value[RUN_LENGTH_COUNT] = desc->count.type;
  value[RUN_LENGTH_WIDE] = desc->n > UINT32_MAX;
  p->tiles =
      kiln__divide_up(desc->n, (uint64_t)t.block * value[RUN_LENGTH_ITEMS]);
  p->need.descriptors =
      p->tiles > 1 ? p->tiles << (1 + value[RUN_LENGTH_WIDE]) : 0;
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
      .grid = {.x = (uint32_t)p->tiles},
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
