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

/* Values of the macro KILN_HEADS: segments begin where the key changes, at
 * flags, or at offsets. */
enum { BY_KEYS, BY_FLAGS, BY_OFFSETS };

/* A call of kiln_scan_by_key() or kiln_segmented_scan() in a form that the
 * shared code handles. */
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
  kiln__scan_shape shape;
  kiln__need need;
} request;

/* ---- Checks -------------------------------------------------------------- */

/* Chooses the tile size and the other parameters of a launch. A thread has up
 * to 64 registers, of which some hold the positions of segment starts.
 * Therefore tiles are smaller than those of kiln_scan(). */
static void choose_shape(request *r, const kiln_stream *stream)
{
  const size_t widest = kiln__widest(r->x, kiln__size(r->out.type));
  kiln__scan_shape *out = &r->shape;
  kiln__tuning t =
      kiln__tuned(stream->device, KILN__TUNED_SCAN, (unsigned)widest, r->n);

  if (t.items > 32)
    t.items = 32;
  kiln__scan_shape_of(out, &t, widest, kiln__is_plain(r->x, r->op, r->out.type),
                      false, r->n);
  out->per_sm = out->block < 1024 ? 1024 / out->block : 1;
}

/* Ends the argument checks of kiln_scan_by_key() and kiln_segmented_scan(), and
 * chooses the parameters of the launch. */
static kiln_status finish(request *r, kiln__checker *c,
                          const kiln_stream *stream, const char *heads,
                          const kiln_workspace *workspace)
{
  kiln__check_read(c, heads, r->heads, r->n_heads);
  kiln__check_input(c, "x", r->x, r->n);
  kiln__check_out(c, r->out, r->x, r->n);
  kiln__check_that(c, r->n == 0 || r->out.data != r->heads.data,
                   "out and %s overlap", heads);
  kiln__check_op(c, r->op, r->out.type);
  if (kiln__check_workspace(c, workspace) != KILN_OK)
    return c->st;
  choose_shape(r, stream);
  r->need = kiln__scan_need(&r->shape, r->out.type);
  return KILN_OK;
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
  return finish(r, &c, stream, "keys", workspace);
}

static kiln_status by_segments(request *r, const kiln_stream *stream,
                               const kiln_segmented_scan_desc *desc,
                               const kiln_workspace *workspace)
{
  const bool flags = desc != NULL && kiln__given(desc->flags);
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
  kiln__check_that(&c, flags != kiln__given(desc->offsets),
                   "give either offsets or flags");
  kiln__check_that(&c, kiln__is_integer(r->heads.type), "%s are no integers",
                   flags ? "flags" : "offsets");
  kiln__check_that(&c, flags || kiln__size(r->heads.type) >= 4,
                   "offsets have 4 or 8 bytes");
  return finish(r, &c, stream, flags ? "flags" : "offsets", workspace);
}

static void specify(kiln__spec *spec, const kiln_stream *stream,
                    const request *r)
{
  const kiln__scan_shape *shape = &r->shape;

  spec->input = r->x;
  spec->op = r->op;
  spec->acc = r->out.type;
  spec->code = r->code;
  spec->quick = kiln__quick_on_9(stream, r->n);
  spec->elements = r->n;
  spec->value[SCAN_BY_KEY_BLOCK] = shape->block;
  spec->value[SCAN_BY_KEY_VECTOR] = shape->vec;
  spec->value[SCAN_BY_KEY_VECTORS] = shape->vecs;
  spec->value[SCAN_BY_KEY_PER_SM] = shape->per_sm;
  spec->value[SCAN_BY_KEY_T] = r->out.type;
  spec->value[SCAN_BY_KEY_PLAIN] = kiln__is_plain(r->x, r->op, r->out.type);
  spec->value[SCAN_BY_KEY_IN_ALIGNED] = r->x->in[0].data % 16 == 0;
  spec->value[SCAN_BY_KEY_ALIGNED] = r->out.data % 16 == 0;
  spec->value[SCAN_BY_KEY_EXCLUSIVE] = r->exclusive;
  spec->value[SCAN_BY_KEY_INIT] = r->init != NULL;
  spec->value[SCAN_BY_KEY_WINDOW] = shape->window;
  spec->value[SCAN_BY_KEY_HEADS] = r->by;
  spec->value[SCAN_BY_KEY_KEY] = r->heads.type;
  spec->value[SCAN_BY_KEY_KEY_ALIGNED] = r->heads.data % 16 == 0;
  if (r->by == BY_KEYS)
    spec->function[0] = (kiln__function){
        "same",
        "the comparison of keys",
        r->same,
        "bool",
        kiln__compute_name(r->heads.type, "kiln::compute_t<KILN_KEY>"),
        NULL};
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln__element init = kiln__element_of(r->init, r->out.type);
  const kiln_launch_config config =
      kiln__grid(stream, r->shape.tiles, r->shape.block);
  kiln__spec spec = {.family = &family};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (r->n == 0)
    return KILN_OK;
  specify(&spec, stream, r);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, r->need));
  st =
      KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                  KILN_ARG(r->n), KILN_ARG(r->heads.data), KILN_ARG(r->n_heads),
                  KILN_ARG(r->out.data), KILN__ELEMENT_ARG(init),
                  KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_scan_by_key, kiln_scan_by_key_desc, request, by_key,
                       run)
KILN__DEFINE_OPERATION(kiln_segmented_scan, kiln_segmented_scan_desc, request,
                       by_segments, run)
