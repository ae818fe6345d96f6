/* find.c -- the host side of find.cu: find, count, any and all. Each block
 * stores its result in a tile descriptor, and one additional block combines
 * the results. kiln_find() stops early if a preceding block has found an
 * element. */
#include "compact.h"
#include "kernel_params.h"

#include <kiln/select.h>

typedef enum what { FIND, COUNT, ANY, ALL } what;

static const char *const kernels[] = {"find", NULL};
static const kiln__family family = {"find", kernels, kiln__find_params};

typedef struct plan {
  const kiln_find_desc *desc;
  what which;
  kiln__spec spec;
  kiln_input input;
  uint32_t blocks;
  kiln__need need;
} plan;

/* Returns the number of blocks. A single tile takes one block. For more tiles,
 * the number is that of the blocks that can be resident at the same time, plus
 * one block that combines the results. */
static uint32_t blocks_for(const kiln_stream *stream, const kiln__tuning *t,
                           uint64_t tiles)
{
  const uint64_t resident =
      kiln__sm_count(stream->device) * (t->extra > 0 ? t->extra : 4);

  if (tiles <= 1)
    return 1;
  return (uint32_t)(tiles < resident ? tiles : resident) + 1;
}

static void make_plan(plan *p, const kiln_stream *stream,
                      const kiln_find_desc *desc, what which)
{
  const unsigned vec = kiln__input_vec(&desc->x);
  const kiln__tuning t =
      kiln__tuned(stream->device, KILN__TUNED_FIND, 16 / vec, desc->n);
  const unsigned vecs = t.items * vec > 32 ? 32 / vec : t.items;
  uint32_t *const value = p->spec.value;

  *p = (plan){
      .desc = desc,
      .which = which,
      .spec = {.family = &family,
               .function = {{"predicate", "the predicate",
                             desc->predicate != NULL ? desc->predicate : "x0",
                             "bool", NULL, NULL}},
               .code = &desc->code,
               .elements = desc->n,
               .quick = kiln__quick(desc->n)},
      .input = desc->x};
  p->input.map = kiln__input_arrays(&desc->x) == 0 ? "0" : NULL;
  p->input.type =
      kiln__input_arrays(&desc->x) == 0 ? KILN_U32 : KILN_DTYPE_NONE;
  p->spec.input = &p->input;
  value[FIND_BLOCK] = t.block;
  value[FIND_VECTOR] = vec;
  value[FIND_ITEMS] = vecs * vec;
  value[FIND_QUERY] = (uint32_t)which;
  value[FIND_OUT] = desc->out.type;
  value[FIND_WIDE] = desc->n > UINT32_MAX;
  p->blocks = blocks_for(
      stream, &t,
      kiln__divide_up(desc->n, (uint64_t)t.block * value[FIND_ITEMS]));
  p->need.descriptors =
      p->blocks > 1 ? 1 + ((size_t)p->blocks << value[FIND_WIDE]) : 0;
}

static kiln_status prepare(plan *p, const char *call, what which,
                           const kiln_stream *stream,
                           const kiln_find_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  kiln__check_that(&c,
                   desc->predicate != NULL || kiln__input_arrays(&desc->x) > 0,
                   "neither an array nor a predicate");
  for (size_t k = 0; k < kiln__input_arrays(&desc->x); k++)
    kiln__check_read(&c, "x", desc->x.in[k], desc->n);
  if (which == FIND || which == COUNT) {
    kiln__check_count(&c, "out", desc->out, 1, desc->n);
  } else {
    kiln__check_that(&c, kiln__is_integer(desc->out.type), "out is no integer");
    kiln__check_write(&c, "out", desc->out, 1);
  }
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream, desc, which);
  return c.st;
}

/* Writes the result for n = 0: find returns n, count returns 0, any returns
 * false, and all returns true. */
static kiln_status empty(kiln_stream *stream, const kiln_find_desc *desc,
                         what which)
{
  const size_t size = kiln__size(desc->out.type);
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__zero(stream, desc->out, 1));
  /* kiln_all() returns 1, so the low bytes of the result are set to 1. */
  if (which == ALL)
    st =
        kiln_fill_async(stream, desc->out.data, 1, size < 4 ? (int)size : 4, 1);

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_find_desc *desc = p->desc;
  const kiln_launch_config config = {.grid = {.x = p->blocks},
                                     .block = {.x = p->spec.value[FIND_BLOCK]},
                                     .stream = stream};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (desc->n == 0)
    return empty(stream, desc, p->which);
  KILN_TRY(kiln__call_open(&c, stream, &p->spec, workspace, p->need));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(desc->out.data),
                   KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_VARIANT(kiln_find, kiln_find_desc, FIND, prepare, run)
KILN__DEFINE_VARIANT(kiln_count, kiln_find_desc, COUNT, prepare, run)
KILN__DEFINE_VARIANT(kiln_any, kiln_find_desc, ANY, prepare, run)
KILN__DEFINE_VARIANT(kiln_all, kiln_find_desc, ALL, prepare, run)
