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

static kiln_status check(const kiln_stream *stream, const kiln_scan_desc *desc,
                         const kiln_workspace *workspace)
{
  kiln__checker c;
  kiln_array out;

  if (kiln__check_begin(&c, "kiln_scan", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_input(&c, "x", &desc->x, desc->n);
  out = kiln__out_of(desc->out, &desc->x);
  kiln__check_out(&c, out, &desc->x, desc->n);
  kiln__check_op(&c, &desc->op, out.type);
  if (desc->total != 0)
    kiln__check_write(&c, "total", (kiln_array){desc->total, out.type}, 1);
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

/* Returns whether a tile can wait in shared memory, in the result's type and
 * in vectors of 16 bytes. Mapped values of f16 and bf16 are floats and would
 * lose digits. */
static bool is_stageable(const kiln_scan_desc *desc, kiln_dtype acc,
                         size_t widest)
{
  return desc->out.data % 16 == 0 && kiln__size(acc) == widest &&
         (desc->x.map == NULL || (acc != KILN_F16 && acc != KILN_BF16));
}

/* Returns whether threads can hold elements in their memory format, and the
 * operation's identity, too. A user-defined identity for f16 and bf16 is a
 * float. */
static bool is_plain(const kiln_scan_desc *desc, kiln_dtype acc)
{
  return desc->x.map == NULL && desc->x.in[0].type == acc &&
         (desc->op.expr == NULL || (acc != KILN_F16 && acc != KILN_BF16));
}

static void shape_of(kiln__scan_shape *out, const kiln_stream *stream,
                     const kiln_scan_desc *desc, kiln_dtype acc)
{
  const size_t widest = kiln__widest(&desc->x, kiln__size(acc));
  const kiln__tuning t =
      kiln__tuned(stream->device, KILN__TUNED_SCAN, (unsigned)widest, desc->n);

  kiln__scan_shape_of(out, &t, widest, is_plain(desc, acc),
                      is_stageable(desc, acc, widest), desc->n);
}

static void specify(kiln__spec *spec, const kiln_stream *stream,
                    const kiln_scan_desc *desc, const kiln__scan_shape *shape)
{
  spec->input = &desc->x;
  spec->op = &desc->op;
  spec->code = &desc->code;
  spec->quick = kiln__quick(desc->n) ||
                kiln__widest(&desc->x, kiln__size(spec->acc)) >= 4;
  spec->value[SCAN_BLOCK] = shape->block;
  spec->value[SCAN_VECTOR] = shape->vec;
  spec->value[SCAN_VECTORS] = shape->vecs;
  spec->value[SCAN_PER_SM] = shape->per_sm;
  spec->value[SCAN_T] = spec->acc;
  spec->value[SCAN_PLAIN] = is_plain(desc, spec->acc);
  spec->value[SCAN_IN_ALIGNED] = desc->x.in[0].data % 16 == 0;
  spec->value[SCAN_ALIGNED] = desc->out.data % 16 == 0;
  spec->value[SCAN_EXCLUSIVE] = desc->exclusive;
  spec->value[SCAN_INIT] = desc->init != NULL;
  spec->value[SCAN_STAGED] = shape->staged;
  spec->value[SCAN_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &desc->x, desc->n, shape->tiles);
  spec->value[SCAN_WINDOW] = shape->window;
}

kiln_status kiln_scan(kiln_stream *stream, const kiln_scan_desc *desc,
                      const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = &family};
  kiln__storage storage = {.stream = stream};
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln__scan_shape shape;
  kiln_status st = KILN_OK;
  kiln__args args;
  uint64_t init;
  uint32_t epoch;

  KILN_TRY(check(stream, desc, workspace));
  if (desc->n == 0 && desc->total == 0)
    goto done;
  spec.acc = kiln__out_of(desc->out, &desc->x).type;
  shape_of(&shape, stream, desc, spec.acc);
  specify(&spec, stream, desc, &shape);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace,
                              kiln__scan_need(&shape, spec.acc)));
  kiln__user_args(&args, &spec);
  init = kiln__element_bits(desc->init, spec.acc);
  epoch = kiln__storage_epoch(&storage);
  config = kiln_launch_1d(shape.tiles + shape.staged, 1);
  config.block.x = shape.block;
  config.stream = stream;
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(desc->n), KILN_ARG(desc->out.data),
                   KILN_ARG(desc->total), KILN_ARG(init),
                   KILN_ARG(storage.descriptors), KILN_ARG(epoch));

done:
  kiln__storage_close(&storage);
  return st;
}

static kiln_status scan_need(kiln__need *need, kiln_stream *stream,
                             const kiln_scan_desc *desc)
{
  kiln__scan_shape shape;
  kiln_status st = KILN_OK;
  kiln_dtype acc;

  KILN_TRY(check(stream, desc, NULL));
  acc = kiln__out_of(desc->out, &desc->x).type;
  shape_of(&shape, stream, desc, acc);
  *need = kiln__scan_need(&shape, acc);

done:
  return st;
}

KILN__WORKSPACE(kiln_scan, kiln_scan_desc, scan_need)
