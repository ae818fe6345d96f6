/* arg_reduce.c -- kiln_arg_reduce(), which finds the least or greatest
 * element and its index by means of reduce_any.cu. */
#include "reduce.h"

static kiln_status prepare(kiln__reduction *f, const kiln_stream *stream,
                           const kiln_arg_reduce_desc *desc,
                           const kiln_workspace *workspace)
{
  const bool value = desc != NULL && kiln__given(desc->value);
  const bool index = desc != NULL && kiln__given(desc->index);
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_arg_reduce", stream, desc) != KILN_OK)
    return c.st;
  *f = (kiln__reduction){.kind = desc->op == KILN_MIN ? KILN__REDUCTION_ARG_MIN
                                                      : KILN__REDUCTION_ARG_MAX,
                         .x = &desc->x,
                         .n = desc->n,
                         .rows = 1,
                         .out = desc->value,
                         .out2 = desc->index,
                         .code = &desc->code};
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_that(&c, desc->op == KILN_MIN || desc->op == KILN_MAX,
                   "op must be KILN_MIN or KILN_MAX");
  kiln__check_that(&c, value || index, "neither value nor index has a type");
  if (value)
    kiln__check_write(&c, "value", desc->value, 1);
  else
    f->out.data = 0;
  if (index) {
    kiln__check_write(&c, "index", desc->index, 1);
    kiln__check_index_type(&c, "index", desc->index);
  } else {
    f->out2.data = 0;
  }
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    kiln__reduction_plan(f, stream);
  return c.st;
}

KILN__DEFINE_OPERATION(kiln_arg_reduce, kiln_arg_reduce_desc, kiln__reduction,
                       prepare, kiln__reduction_run)
