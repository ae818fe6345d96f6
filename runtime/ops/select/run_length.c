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
  kiln__spec spec;
  uint64_t tiles;
  kiln__need need;
} plan;

static bool given(kiln_array a)
{
  return a.type != KILN_DTYPE_NONE;
}

static kiln_status check(const char *call, const kiln_stream *stream,
                         const kiln_run_length_desc *desc,
                         const kiln_workspace *workspace, bool only_long)
{
  kiln__checker c;
  uint64_t most;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  most = only_long ? desc->n / 2 : desc->n;
  kiln__check_input(&c, "x", &desc->x, desc->n);
  if (given(desc->values))
    kiln__check_elements(&c, "values", desc->values, &desc->x, most);
  if (given(desc->offsets))
    kiln__check_count(&c, "offsets", desc->offsets, most, desc->n);
  if (given(desc->lengths))
    kiln__check_count(&c, "lengths", desc->lengths, most, desc->n);
  kiln__check_count(&c, "count", desc->count, 1, desc->n);
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

static void make_plan(plan *p, const kiln_stream *stream,
                      const kiln_run_length_desc *desc, bool only_long)
{
  const unsigned vec = kiln__input_vec(&desc->x);
  kiln__tuning t =
      kiln__tuned(stream->device, KILN__TUNED_RUN_LENGTH, 16 / vec, desc->n);
  const char *equal = desc->equal != NULL ? desc->equal : "a == b";
  uint32_t *const value = p->spec.value;

  *p = (plan){
      .spec = {.family = &family,
               .input = &desc->x,
               .function = {{"equal", "the equality", equal, "bool", "value"}},
               .code = &desc->code,
               .quick = kiln__quick(desc->n)}};
  value[RUN_LENGTH_VECTOR] = vec;
  value[RUN_LENGTH_ITEMS] = kiln__tile_items(
      &t, vec,
      4 + (given(desc->values) ? kiln__size(kiln__input_type(&desc->x)) : 0));
  /* kiln__tile_items() may have reduced the block size */
  value[RUN_LENGTH_BLOCK] = t.block;
  value[RUN_LENGTH_LONG] = only_long;
  value[RUN_LENGTH_VALUES] = given(desc->values);
  value[RUN_LENGTH_OFFSET] =
      given(desc->offsets) ? desc->offsets.type : KILN_U32;
  value[RUN_LENGTH_OFFSETS] = given(desc->offsets);
  value[RUN_LENGTH_LENGTH] =
      given(desc->lengths) ? desc->lengths.type : KILN_U32;
  value[RUN_LENGTH_LENGTHS] = given(desc->lengths);
  value[RUN_LENGTH_COUNT] = desc->count.type;
  value[RUN_LENGTH_WIDE] = desc->n > UINT32_MAX;
  p->tiles =
      kiln__divide_up(desc->n, (uint64_t)t.block * value[RUN_LENGTH_ITEMS]);
  p->need.descriptors =
      p->tiles > 1 ? p->tiles << (1 + value[RUN_LENGTH_WIDE]) : 0;
}

static kiln_status launch(kiln_stream *stream, const kiln_run_length_desc *desc,
                          const plan *p, const kiln_workspace *workspace)
{
  const kiln_launch_config config = {
      .grid = {.x = (uint32_t)p->tiles},
      .block = {.x = p->spec.value[RUN_LENGTH_BLOCK]},
      .stream = stream};
  const kiln__kernel_set *set;
  kiln_status st = KILN_OK;
  kiln__storage storage;
  kiln__args args;
  uint32_t epoch;

  KILN_TRY(kiln__specialise(&set, stream->device, &p->spec));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, p->need));
  kiln__user_args(&args, &p->spec);
  epoch = kiln__storage_epoch(&storage);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(desc->n), KILN_ARG(desc->values.data),
                   KILN_ARG(desc->offsets.data), KILN_ARG(desc->lengths.data),
                   KILN_ARG(desc->count.data), KILN_ARG(storage.descriptors),
                   KILN_ARG(epoch));
  kiln__storage_close(&storage);

done:
  return st;
}

static kiln_status run(const char *call, kiln_stream *stream,
                       const kiln_run_length_desc *desc,
                       const kiln_workspace *workspace, bool only_long)
{
  kiln_status st = KILN_OK;
  plan p;

  KILN_TRY(check(call, stream, desc, workspace, only_long));
  if (desc->n == 0) {
    st = kiln__zero(stream, desc->count, 1);
    goto done;
  }
  make_plan(&p, stream, desc, only_long);
  st = launch(stream, desc, &p, workspace);

done:
  return st;
}

static kiln_status need_of(kiln__need *need, const char *call,
                           const kiln_stream *stream,
                           const kiln_run_length_desc *desc, bool only_long)
{
  kiln_status st = KILN_OK;
  plan p;

  KILN_TRY(check(call, stream, desc, NULL, only_long));
  make_plan(&p, stream, desc, only_long);
  *need = p.need;

done:
  return st;
}

kiln_status kiln_run_length_encode(kiln_stream *stream,
                                   const kiln_run_length_desc *desc,
                                   const kiln_workspace *workspace)
{
  return run("kiln_run_length_encode", stream, desc, workspace, false);
}

static kiln_status run_length_encode_need(kiln__need *need, kiln_stream *stream,
                                          const kiln_run_length_desc *desc)
{
  return need_of(need, "kiln_run_length_encode_workspace", stream, desc, false);
}

KILN__WORKSPACE(kiln_run_length_encode, kiln_run_length_desc,
                run_length_encode_need)

kiln_status kiln_run_length_non_trivial(kiln_stream *stream,
                                        const kiln_run_length_desc *desc,
                                        const kiln_workspace *workspace)
{
  return run("kiln_run_length_non_trivial", stream, desc, workspace, true);
}

static kiln_status run_length_non_trivial_need(kiln__need *need,
                                               kiln_stream *stream,
                                               const kiln_run_length_desc *desc)
{
  return need_of(need, "kiln_run_length_non_trivial_workspace", stream, desc,
                 true);
}

KILN__WORKSPACE(kiln_run_length_non_trivial, kiln_run_length_desc,
                run_length_non_trivial_need)
