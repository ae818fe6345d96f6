/* difference.c -- the host side of difference.cu, which computes the
 * difference between each element and its predecessor. In place, a block
 * must not overwrite an element that another block still reads. Therefore
 * blocks exchange the elements at tile boundaries through tile descriptors. */
#include "../scan/scan_common.h"
#include "kernel_params.h"

#include <kiln/scan.h>

static const char *const kernels[] = {"difference", NULL};
static const kiln__family family = {"difference", kernels,
                                    kiln__difference_params};

enum { THREADS = 256 };

/* The parameters of one launch of difference.cu. */
typedef struct plan {
  const kiln_adjacent_difference_desc *desc;
  kiln_array out;
  uint32_t vec, vecs;
  bool in_place;
  uint64_t tiles;
  kiln__need need;
} plan;

/* Returns the number of vectors per thread. Threads of a call in place load more
 * vectors if there are enough of them, so that fewer blocks exchange elements.
 * Otherwise warps depend on nothing, and one vector per thread is fastest: on an
 * H200, 2^28 elements took 511 us with one vector and 525 us with two or four. */
static uint32_t vecs_of(uint64_t vecs, bool in_place)
{
  return !in_place || vecs <= UINT64_C(1) << 17 ? 1
         : vecs <= UINT64_C(1) << 20            ? 2
                                                : 4;
}

static void make_plan(plan *p, const kiln_adjacent_difference_desc *desc)
{
  const size_t arrays = kiln__input_arrays(&desc->x);
  const kiln__dtype *value = kiln__dtype_of(kiln__input_type(&desc->x));

  *p = (plan){.desc = desc, .out = kiln__out_of(desc->out, &desc->x)};
  p->vec = (uint32_t)(16 / kiln__widest(&desc->x, kiln__size(p->out.type)));
  for (size_t k = 0; k < arrays; k++)
    p->in_place = p->in_place || desc->x.in[k].data == p->out.data;
  p->vecs = vecs_of(desc->n / p->vec, p->in_place);
  p->tiles = kiln__divide_up(desc->n, (uint64_t)THREADS * p->vec * p->vecs);
  if (p->in_place)
    p->need.descriptors = (size_t)p->tiles * (value->size == 8 ? 2 : 1);
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_adjacent_difference_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_adjacent_difference", stream, desc) !=
      KILN_OK)
    return c.st;
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_out(&c, kiln__out_of(desc->out, &desc->x), &desc->x, desc->n);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, desc);
  return c.st;
}

static void specify(kiln__spec *spec, const kiln_adjacent_difference_desc *desc,
                    const plan *p)
{
  spec->input = &desc->x;
  spec->code = &desc->code;
  spec->quick = kiln__quick(desc->n);
  spec->elements = desc->n;
  spec->value[DIFFERENCE_BLOCK] = THREADS;
  spec->value[DIFFERENCE_VECTOR] = p->vec;
  spec->value[DIFFERENCE_VECTORS] = p->vecs;
  spec->value[DIFFERENCE_T] = p->out.type;
  spec->value[DIFFERENCE_ALIGNED] = p->out.data % 16 == 0;
  spec->value[DIFFERENCE_RIGHT] = desc->right;
  spec->value[DIFFERENCE_IN_PLACE] = p->in_place;
  spec->function[0] = (kiln__function){
      "difference",
      "the difference",
      desc->expr != NULL ? desc->expr : "a - b",
      kiln__compute_name(p->out.type, "kiln::compute_t<KILN_T>"),
      "value",
      NULL};
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_adjacent_difference_desc *desc = p->desc;
  const kiln_launch_config config = kiln__grid(stream, p->tiles, THREADS);
  kiln__spec spec = {.family = &family};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (desc->n == 0)
    return KILN_OK;
  specify(&spec, desc, p);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, p->need));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(p->out.data),
                   KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_adjacent_difference, kiln_adjacent_difference_desc,
                       plan, prepare, run)
