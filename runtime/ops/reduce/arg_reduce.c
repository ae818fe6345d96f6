/* arg_reduce.c -- kiln_arg_reduce(), which finds the least or greatest element
 * and its index, and kiln_minmax(), which finds the least and the greatest
 * element, by means of reduce_any.cu. */
#include "reduce.h"

static kiln_status prepare(kiln__reduction *f, const kiln_stream *stream,
                           const kiln_arg_reduce_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_arg_reduce", stream, desc) != KILN_OK)
    return c.st;
  *f = (kiln__reduction){.kind = kiln__extremum_kind(desc->op),
                         .x = &desc->x,
                         .n = desc->n,
                         .rows = 1,
                         .out = desc->value,
                         .out2 = desc->index,
                         .code = &desc->code};
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_extremum(&c, desc->op, &f->out, &f->out2, 1);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    kiln__reduction_plan(f, stream);
  return c.st;
}

KILN__DEFINE_OPERATION(kiln_arg_reduce, kiln_arg_reduce_desc, kiln__reduction,
                       prepare, kiln__reduction_run)

static kiln_status prepare_both(kiln__reduction *f, const kiln_stream *stream,
                                const kiln_minmax_desc *desc,
                                const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_minmax", stream, desc) != KILN_OK)
    return c.st;
  *f = (kiln__reduction){
      .kind = KILN__REDUCTION_EXTREMES,
      .x = &desc->x,
      .n = desc->n,
      .rows = 1,
      .out = kiln__or_type(desc->min, kiln__input_type(&desc->x)),
      .out2 = kiln__or_type(desc->max, kiln__input_type(&desc->x)),
      .code = &desc->code};
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_write(&c, "min", f->out, 1);
  kiln__check_write(&c, "max", f->out2, 1);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    kiln__reduction_plan(f, stream);
  return c.st;
}

KILN__DEFINE_OPERATION(kiln_minmax, kiln_minmax_desc, kiln__reduction,
                       prepare_both, kiln__reduction_run)
