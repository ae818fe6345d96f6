/* scatter.c -- kiln_scatter(). It checks its arguments here, and indexed_call.c
 * plans and queues the call. */
#include "indexed.h"

static kiln_status prepare(kiln__indexed *r, const kiln_stream *stream,
                           const kiln_scatter_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_scatter", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_index(&c, desc->index, desc->n);
  /* Without n_target the length of out is unknown, so only the address of
   * element 0 is checked. */
  kiln__check_write(&c, "out", desc->out,
                    desc->n == 0          ? 0
                    : desc->n_target == 0 ? 1
                                          : desc->n_target);
  kiln__check_converts(&c, "out", kiln__input_type(&desc->x), desc->out.type);
  kiln__check_method(&c, desc->index.type, desc->method, desc->passes,
                     desc->checked, desc->n_target);
  kiln__check_that(&c,
                   desc->method != KILN_INDEX_SORT ||
                       kiln__sort_fits((unsigned)kiln__size(desc->out.type),
                                       (unsigned)kiln__size(desc->index.type),
                                       desc->n_target),
                   "KILN_INDEX_SORT with indices of 64 bits needs n_target, "
                   "2^32 at most");
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  *r =
      (kiln__indexed){.scatter = true,
                      .x = desc->x,
                      .code = &desc->code,
                      .index = desc->index,
                      .out = desc->out,
                      .n = desc->n,
                      .n_target = desc->n_target,
                      .checked = desc->checked,
                      .plan = {.method = desc->method, .passes = desc->passes}};
  return kiln__indexed_plan(r, stream, (unsigned)kiln__size(desc->out.type));
}

KILN__DEFINE_OPERATION(kiln_scatter, kiln_scatter_desc, kiln__indexed, prepare,
                       kiln__indexed_run)
