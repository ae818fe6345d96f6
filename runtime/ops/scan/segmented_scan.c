/* segmented_scan.c -- the host side of scan_by_key.cu, which computes scans
 * that restart in each segment. Segments are runs of equal keys, or begin at
 * offsets or flags. The prefix of a tile is found by decoupled look-back, as
 * in scan.c. A tile in which a segment begins publishes that its result does
 * not depend on preceding tiles. */
#include "kernel_params.h"
#include "scan_common.h"

#include <kiln/scan.h>

static const char *const kernels[] = {"scan_by_key", NULL};
static const kiln__family family = {"scan_by_key", kernels,
                                    kiln__scan_by_key_params};

/* values of the macro KILN_HEADS */
enum { BY_KEYS, BY_FLAGS, BY_OFFSETS };

/* The common form of kiln_scan_by_key() and kiln_segmented_scan(). */
typedef struct request {
  const kiln_input *x;
  uint64_t n;
  const kiln_op *op;
  kiln_array out;
  bool exclusive;
  const void *init;
  const kiln_code *code;
  kiln_array heads;
  uint64_t n_heads;
  uint32_t by;
  const char *same;
} request;

/* ---- Checks ---------------------------------------------------------------------- */

static kiln_status check(kiln__checker *c, const request *r, const char *heads,
                         const kiln_workspace *workspace)
{
  kiln__check_read(c, heads, r->heads, r->n_heads);
  kiln__check_input(c, "x", r->x, r->n);
  kiln__check_out(c, r->out, r->x, r->n);
  kiln__check_that(c, r->n == 0 || r->out.data != r->heads.data,
                   "out and %s overlap", heads);
  kiln__check_op(c, r->op, r->out.type);
  kiln__check_workspace(c, workspace);
  return kiln__check_end(c);
}

static kiln_status by_key(request *r, const kiln_stream *stream,
                          const kiln_scan_by_key_desc *desc,
                          const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_scan_by_key", stream, desc) != KILN_OK)
    return c.st;
  *r = (request){.x = &desc->x,
                 .n = desc->n,
                 .op = &desc->op,
                 .out = kiln__out_of(desc->out, &desc->x),
                 .exclusive = desc->exclusive,
                 .init = desc->init,
                 .code = &desc->code,
                 .heads = desc->keys,
                 .n_heads = desc->n,
                 .by = BY_KEYS,
                 .same = desc->same != NULL ? desc->same : "a == b"};
  return check(&c, r, "keys", workspace);
}

static bool is_integer(kiln_dtype type)
{
  const kiln__dtype *t = kiln__dtype_of(type);

  return t != NULL && !t->is_float;
}

static kiln_status by_segments(request *r, const kiln_stream *stream,
                               const kiln_segmented_scan_desc *desc,
                               const kiln_workspace *workspace)
{
  const bool flags = desc != NULL && desc->flags.type != KILN_DTYPE_NONE;
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_segmented_scan", stream, desc) != KILN_OK)
    return c.st;
  *r = (request){.x = &desc->x,
                 .n = desc->n,
                 .op = &desc->op,
                 .out = kiln__out_of(desc->out, &desc->x),
                 .exclusive = desc->exclusive,
                 .init = desc->init,
                 .code = &desc->code,
                 .heads = flags ? desc->flags : desc->offsets,
                 .n_heads = flags ? desc->n : desc->n_segments,
                 .by = flags ? BY_FLAGS : BY_OFFSETS};
  kiln__check_that(&c, flags != (desc->offsets.type != KILN_DTYPE_NONE),
                   "give either offsets or flags");
  kiln__check_that(&c, is_integer(r->heads.type), "%s are no integers",
                   flags ? "flags" : "offsets");
  kiln__check_that(&c, flags || kiln__size(r->heads.type) >= 4,
                   "offsets have 4 or 8 bytes");
  return check(&c, r, flags ? "flags" : "offsets", workspace);
}

/* ---- Common functions --------------------------------------------------- */

static bool is_plain(const request *r)
{
  const kiln_dtype acc = r->out.type;

  return r->x->map == NULL && r->x->in[0].type == acc &&
         (r->op->expr == NULL || (acc != KILN_F16 && acc != KILN_BF16));
}

/* Chooses the shape of a launch. A thread has up to 64 registers, of which
 * some hold the positions of segment starts. Therefore tiles are smaller
 * than those of kiln_scan(). */
static void shape_of(kiln__scan_shape *out, const kiln_stream *stream,
                     const request *r)
{
  const size_t widest = kiln__widest(r->x, kiln__size(r->out.type));
  kiln__tuning t =
      kiln__tuned(stream->device, KILN__TUNED_SCAN, (unsigned)widest, r->n);

  if (t.items > 32)
    t.items = 32;
  kiln__scan_shape_of(out, &t, widest, is_plain(r), false, r->n);
  out->per_sm = out->block < 1024 ? 1024 / out->block : 1;
}

static void specify(kiln__spec *spec, const kiln_stream *stream,
                    const request *r, const kiln__scan_shape *shape)
{
  spec->input = r->x;
  spec->op = r->op;
  spec->acc = r->out.type;
  spec->code = r->code;
  spec->quick = kiln__quick_on_9(stream, r->n);
  spec->value[SCAN_BY_KEY_BLOCK] = shape->block;
  spec->value[SCAN_BY_KEY_VECTOR] = shape->vec;
  spec->value[SCAN_BY_KEY_VECTORS] = shape->vecs;
  spec->value[SCAN_BY_KEY_PER_SM] = shape->per_sm;
  spec->value[SCAN_BY_KEY_T] = r->out.type;
  spec->value[SCAN_BY_KEY_PLAIN] = is_plain(r);
  spec->value[SCAN_BY_KEY_IN_ALIGNED] = r->x->in[0].data % 16 == 0;
  spec->value[SCAN_BY_KEY_ALIGNED] = r->out.data % 16 == 0;
  spec->value[SCAN_BY_KEY_EXCLUSIVE] = r->exclusive;
  spec->value[SCAN_BY_KEY_INIT] = r->init != NULL;
  spec->value[SCAN_BY_KEY_WINDOW] = shape->window;
  spec->value[SCAN_BY_KEY_HEADS] = r->by;
  spec->value[SCAN_BY_KEY_KEY] = r->heads.type;
  spec->value[SCAN_BY_KEY_KEY_ALIGNED] = r->heads.data % 16 == 0;
  if (r->by == BY_KEYS)
    spec->function[0] =
        (kiln__function){"same", "the comparison of keys", r->same, "bool",
                         "kiln::compute_t<KILN_KEY>"};
}

static kiln_status run(kiln_stream *stream, const request *r,
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

  if (r->n == 0)
    goto done;
  shape_of(&shape, stream, r);
  specify(&spec, stream, r, &shape);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace,
                              kiln__scan_need(&shape, spec.acc)));
  kiln__user_args(&args, &spec);
  init = kiln__element_bits(r->init, spec.acc);
  epoch = kiln__storage_epoch(&storage);
  config = kiln_launch_1d(shape.tiles, 1);
  config.block.x = shape.block;
  config.stream = stream;
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(r->n), KILN_ARG(r->heads.data),
                   KILN_ARG(r->n_heads), KILN_ARG(r->out.data), KILN_ARG(init),
                   KILN_ARG(storage.descriptors), KILN_ARG(epoch));

done:
  kiln__storage_close(&storage);
  return st;
}

static kiln__need need_of(const kiln_stream *stream, const request *r)
{
  kiln__scan_shape shape;

  shape_of(&shape, stream, r);
  return kiln__scan_need(&shape, r->out.type);
}

/* ---- The calls --------------------------------------------------------------------------- */

kiln_status kiln_scan_by_key(kiln_stream *stream,
                             const kiln_scan_by_key_desc *desc,
                             const kiln_workspace *workspace)
{
  kiln_status st;
  request r;

  st = by_key(&r, stream, desc, workspace);
  return st != KILN_OK ? st : run(stream, &r, workspace);
}

static kiln_status scan_by_key_need(kiln__need *need, kiln_stream *stream,
                                    const kiln_scan_by_key_desc *desc)
{
  kiln_status st;
  request r;

  st = by_key(&r, stream, desc, NULL);
  if (st == KILN_OK)
    *need = need_of(stream, &r);
  return st;
}

KILN__WORKSPACE(kiln_scan_by_key, kiln_scan_by_key_desc, scan_by_key_need)

kiln_status kiln_segmented_scan(kiln_stream *stream,
                                const kiln_segmented_scan_desc *desc,
                                const kiln_workspace *workspace)
{
  kiln_status st;
  request r;

  st = by_segments(&r, stream, desc, workspace);
  return st != KILN_OK ? st : run(stream, &r, workspace);
}

static kiln_status segmented_scan_need(kiln__need *need, kiln_stream *stream,
                                       const kiln_segmented_scan_desc *desc)
{
  kiln_status st;
  request r;

  st = by_segments(&r, stream, desc, NULL);
  if (st == KILN_OK)
    *need = need_of(stream, &r);
  return st;
}

KILN__WORKSPACE(kiln_segmented_scan, kiln_segmented_scan_desc,
                segmented_scan_need)
