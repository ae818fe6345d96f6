/* scan.c -- the host side of scan.cu, which computes prefix sums in one launch
 * that reads and writes each element once.
 *
 * A block scans one tile. For small arrays, the block finds the prefix of the
 * preceding tiles by decoupled look-back (Merrill and Garland, Single-pass
 * Parallel Prefix Scan with Decoupled Look-back, 2016). For large arrays, a
 * leader block computes the prefix of every tile while the tiles wait in shared
 * memory. */
#include "kernel_params.h"
#include "scan_common.h"

#include <kiln/scan.h>

static const char *const kernels[] = {"scan", NULL};
static const kiln__family family = {"scan", kernels, kiln__scan_params};

/* The parameters of one call of kiln_scan(). */
typedef struct plan {
  const kiln_scan_desc *desc;
  kiln__spec spec;
  kiln__scan_shape shape;
  kiln__need need;
} plan;

/* Returns whether a tile can be staged in shared memory while it waits for its
 * prefix. The tile is staged in the result's type and in vectors of 16 bytes.
 * Mapped values of f16 and bf16 are floats and would lose digits. */
static bool is_stageable(const kiln_scan_desc *desc, kiln_dtype acc,
                         size_t widest)
{
  return desc->out.data % 16 == 0 && kiln__size(acc) == widest &&
         kiln__vector_of(widest) * widest == 16 &&
         (desc->x.map == NULL || !kiln__is_half(acc));
}

static void specify(plan *p, const kiln_stream *stream)
{
  const kiln_scan_desc *desc = p->desc;
  const kiln__scan_shape *shape = &p->shape;
  kiln__spec *spec = &p->spec;

  spec->family = &family;
  spec->input = &desc->x;
  spec->op = &desc->op;
  spec->code = &desc->code;
  spec->elements = desc->n;
  spec->quick = kiln__quick(desc->n) ||
                kiln__widest(&desc->x, kiln__size(spec->acc)) >= 4;
  spec->value[SCAN_BLOCK] = shape->block;
  spec->value[SCAN_VECTOR] = shape->vec;
  spec->value[SCAN_VECTORS] = shape->vecs;
  spec->value[SCAN_PER_SM] = shape->per_sm;
  spec->value[SCAN_T] = spec->acc;
  spec->value[SCAN_PLAIN] = kiln__is_plain(&desc->x, &desc->op, spec->acc);
  spec->value[SCAN_IN_ALIGNED] = desc->x.in[0].data % 16 == 0;
  spec->value[SCAN_ALIGNED] = desc->out.data % 16 == 0;
  spec->value[SCAN_EXCLUSIVE] = desc->exclusive;
  spec->value[SCAN_INIT] = desc->init != NULL;
  spec->value[SCAN_STAGED] = shape->staged;
  spec->value[SCAN_LEADER] = shape->leader;
  spec->value[SCAN_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &desc->x, desc->n, shape->tiles);
  spec->value[SCAN_WINDOW] = shape->window;
}

/* Chooses the tile size and the other parameters of the launch. */
static void make_plan(plan *p, const kiln_stream *stream,
                      const kiln_scan_desc *desc)
{
  const kiln_dtype acc = kiln__out_of(desc->out, &desc->x).type;
  const size_t widest = kiln__widest(&desc->x, kiln__size(acc));
  const kiln__tuning t =
      kiln__tuned_for(stream->device, KILN__TUNED_SCAN, widest, desc->n);

  *p = (plan){.desc = desc, .spec.acc = acc};
  kiln__scan_shape_of(&p->shape, &t, widest,
                      kiln__is_plain(&desc->x, &desc->op, acc),
                      is_stageable(desc, acc, widest), desc->n);
  p->need = kiln__scan_need(&p->shape, acc);
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_scan_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;
  kiln_array out;

  if (kiln__check_begin(&c, "kiln_scan", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_input(&c, "x", &desc->x, desc->n);
  out = kiln__out_of(desc->out, &desc->x);
  kiln__check_converts(&c, "out", kiln__input_type(&desc->x), out.type);
  kiln__check_out(&c, out, &desc->x, desc->n);
  kiln__check_op(&c, &desc->op, out.type);
  if (desc->total != 0)
    kiln__check_write(&c, "total", (kiln_array){desc->total, out.type}, 1);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream, desc);
  return c.st;
}

static kiln_status run(kiln_stream *stream, plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_scan_desc *desc = p->desc;
  const kiln__element init = kiln__element_of(desc->init, p->spec.acc);
  const kiln_launch_config config =
      kiln__grid(stream, p->shape.tiles + p->shape.leader, p->shape.block);
  kiln_status st = KILN_OK;
  kiln__call c;

  if (desc->n == 0 && desc->total == 0)
    return KILN_OK;
  specify(p, stream);
  KILN_TRY(kiln__call_open(&c, stream, &p->spec, workspace, p->need));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(desc->out.data),
                   KILN_ARG(desc->total), KILN__ELEMENT_ARG(init),
                   KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_scan, kiln_scan_desc, plan, prepare, run)
