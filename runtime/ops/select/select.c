/* select.c -- the host side of select.cu and select_staged.cu: select and
 * unique, in one launch that reads and writes each element once.
 *
 * A block ranks the selected elements of its tile. The number of selected
 * elements in preceding tiles is found by decoupled look-back (Merrill and
 * Garland, 2016). For large arrays of 4-byte or 8-byte elements, the tiles wait
 * in shared memory instead, while a leader block computes the prefix of every
 * tile. */
#include "compact.h"
#include "kernel_params.h"

#include <kiln/select.h>

static const char *const kernels[] = {"select_elements", NULL};
static const kiln__family family = {"select", kernels, kiln__select_params};

/* The staged kernel handles large arrays without map, indices or payload. */
static const char *const staged_kernels[] = {"select_staged", NULL};
static const kiln__family staged_family = {"select_staged", staged_kernels,
                                           kiln__select_staged_params};

/* The common form of kiln_select() and kiln_unique(). */
typedef struct request {
  const kiln_input *x; /* input of the caller */
  kiln_input input;    /* input of the kernel */
  kiln__function function;
  bool unique;
  uint64_t n;
  kiln_array out, out_index, payload, out_payload, count;
  const kiln_code *code;
} request;

/* The parameters of one launch. */
typedef struct plan {
  kiln__spec spec;
  kiln__tuning tuning;
  bool staged;
  uint64_t tiles, blocks;
  kiln__need need;
} plan;

/* ---- Checks ------------------------------------------------------------------- */

static void check_arrays(kiln__checker *c, const request *r)
{
  const uint64_t n = r->n;

  kiln__check_input(c, "x", r->x, n);
  if (r->out.type != KILN_DTYPE_NONE)
    kiln__check_elements(c, "out", r->out, r->x, n);
  if (r->out_index.type != KILN_DTYPE_NONE)
    kiln__check_count(c, "out_index", r->out_index, n, n);
  kiln__check_that(c, r->payload.type == r->out_payload.type,
                   "payload and out_payload have different types");
  if (r->payload.type != KILN_DTYPE_NONE) {
    kiln__check_read(c, "payload", r->payload, n);
    kiln__check_write(c, "out_payload", r->out_payload, n);
  }
  kiln__check_count(c, "count", r->count, 1, n);
}

static void request_flags(kiln__checker *c, request *r, kiln_array flags)
{
  kiln__check_that(
      c, (r->function.expr != NULL) != (flags.type != KILN_DTYPE_NONE),
      "give either a predicate or flags");
  if (flags.type == KILN_DTYPE_NONE)
    return;
  kiln__check_read(c, "flags", flags, r->n);
  r->function.expr = kiln__add_flags(&r->input, flags);
  kiln__check_that(c, r->function.expr != NULL,
                   "7 arrays at most beside flags");
}

static kiln_status request_select(request *r, const kiln_stream *stream,
                                  const kiln_select_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_select", stream, desc) != KILN_OK)
    return c.st;
  *r = (request){
      .x = &desc->x,
      .input = desc->x,
      .function = {"predicate", "the predicate", desc->predicate, "bool", NULL},
      .n = desc->n,
      .out = desc->out,
      .out_index = desc->out_index,
      .payload = desc->payload,
      .out_payload = desc->out_payload,
      .count = desc->count,
      .code = &desc->code};
  request_flags(&c, r, desc->flags);
  kiln__move_bits(&r->input, r->x);
  check_arrays(&c, r);
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

static kiln_status request_unique(request *r, const kiln_stream *stream,
                                  const kiln_unique_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_unique", stream, desc) != KILN_OK)
    return c.st;
  *r = (request){.x = &desc->x,
                 .input = desc->x,
                 .function = {"equal", "the equality",
                              desc->equal != NULL ? desc->equal : "a == b",
                              "bool", "value"},
                 .unique = true,
                 .n = desc->n,
                 .out = desc->out,
                 .out_index = desc->out_index,
                 .payload = desc->payload,
                 .out_payload = desc->out_payload,
                 .count = desc->count,
                 .code = &desc->code};
  check_arrays(&c, r);
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

/* ---- Plan ------------------------------------------------------------------------ */

/* Returns whether the staged kernel is used: staging is tuned for this size,
 * and the call moves only the elements of one array. */
static bool is_staged(const request *r, const kiln__tuning *t)
{
  const size_t size = kiln__size(r->x->in[0].type);

  return (t->extra & KILN__SELECT_STAGED) != 0 && r->input.map == NULL &&
         kiln__input_arrays(&r->input) == 1 &&
         kiln__input_type(&r->input) == r->input.in[0].type &&
         r->input.in[0].data % 16 == 0 && (size == 4 || size == 8) &&
         r->out.type != KILN_DTYPE_NONE &&
         r->out_index.type == KILN_DTYPE_NONE &&
         r->payload.type == KILN_DTYPE_NONE;
}

static void plan_staged(plan *p, const kiln_stream *stream, const request *r)
{
  const uint32_t size = (uint32_t)kiln__size(r->input.in[0].type);
  uint32_t items = p->tuning.items / 4u * 4u;
  uint32_t *const value = p->spec.value;

  while (items > 4 &&
         (items > 64 || items * size * p->tuning.block > KILN__TILE_SHARED))
    items -= 4;
  p->staged = true;
  p->spec.family = &staged_family;
  value[SELECT_STAGED_BLOCK] = p->tuning.block;
  value[SELECT_STAGED_ITEMS] = items > 4 ? items : 4;
  value[SELECT_STAGED_UNIQUE] = r->unique;
  value[SELECT_STAGED_COUNT] = r->count.type;
  value[SELECT_STAGED_WIDE] = r->n > UINT32_MAX;
  p->tiles = kiln__divide_up(r->n, (uint64_t)value[SELECT_STAGED_BLOCK] *
                                       value[SELECT_STAGED_ITEMS]);
  value[SELECT_STAGED_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &r->input, r->n, p->tiles);
  /* The additional leader block computes the prefixes. */
  p->blocks = p->tiles + 1;
  p->need.descriptors =
      kiln__leader_descriptors(p->tiles, value[SELECT_STAGED_WIDE] ? 8 : 4);
}

static void make_plan(plan *p, const kiln_stream *stream, const request *r)
{
  const unsigned vec = kiln__input_vec(&r->input);
  const bool values = r->out.type != KILN_DTYPE_NONE;
  const bool places = r->out_index.type != KILN_DTYPE_NONE ||
                      r->payload.type != KILN_DTYPE_NONE;
  /* cppcheck-suppress ctuuninitvar; takes an address, reads nothing of *p */
  uint32_t *const value = p->spec.value;

  *p = (plan){.spec = {.family = &family,
                       .input = &r->input,
                       .function = {r->function},
                       .code = r->code,
                       .quick = kiln__quick(r->n)}};
  p->tuning = kiln__tuned(stream->device, KILN__TUNED_SELECT, 16 / vec, r->n);
  if (is_staged(r, &p->tuning)) {
    plan_staged(p, stream, r);
    return;
  }
  if ((p->tuning.extra & KILN__SELECT_STAGED) != 0) {
    p->tuning.block = 128; /* block size of the kernel that keeps tiles in
                            * registers */
    p->tuning.items = 32;
    p->tuning.extra = 4;
  }
  value[SELECT_VECTOR] = vec;
  value[SELECT_ITEMS] =
      kiln__tile_items(&p->tuning, vec,
                       (values ? kiln__size(kiln__input_type(&r->input)) : 0) +
                           (places ? 2 : 0));
  value[SELECT_BLOCK] =
      p->tuning.block; /* kiln__tile_items() may have reduced the block size */
  value[SELECT_PER_SM] = p->tuning.per_sm;
  value[SELECT_WINDOW] = p->tuning.extra > 0 ? p->tuning.extra : 1;
  value[SELECT_UNIQUE] = r->unique;
  value[SELECT_VALUES] = values;
  value[SELECT_INDEX] = (uint32_t)kiln__size(r->out_index.type);
  value[SELECT_PAYLOAD] = (uint32_t)kiln__size(r->payload.type);
  value[SELECT_COUNT] = r->count.type;
  value[SELECT_WIDE] = r->n > UINT32_MAX;
  p->tiles = kiln__divide_up(r->n, (uint64_t)value[SELECT_BLOCK] *
                                       (uint64_t)value[SELECT_ITEMS]);
  value[SELECT_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &r->input, r->n, p->tiles);
  p->blocks = p->tiles;
  p->need.descriptors = p->tiles > 1 ? p->tiles << value[SELECT_WIDE] : 0;
}

static kiln_status launch(kiln_stream *stream, const request *r, const plan *p,
                          const kiln_workspace *workspace)
{
  const kiln_launch_config config = {.grid = {.x = (uint32_t)p->blocks},
                                     .block = {.x = p->tuning.block},
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
  if (p->staged)
    st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                     KILN_ARG(r->n), KILN_ARG(r->out.data),
                     KILN_ARG(r->count.data), KILN_ARG(storage.descriptors),
                     KILN_ARG(epoch));
  else
    st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                     KILN_ARG(r->n), KILN_ARG(r->out.data),
                     KILN_ARG(r->out_index.data), KILN_ARG(r->payload.data),
                     KILN_ARG(r->out_payload.data), KILN_ARG(r->count.data),
                     KILN_ARG(storage.descriptors), KILN_ARG(epoch));
  kiln__storage_close(&storage);

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  plan p;

  if (r->n == 0)
    return kiln__zero(stream, r->count, 1);
  make_plan(&p, stream, r);
  return launch(stream, r, &p, workspace);
}

static kiln__need need_of(kiln_stream *stream, const request *r)
{
  plan p;

  make_plan(&p, stream, r);
  return p.need;
}

/* ---- Calls ------------------------------------------------------------------------ */

kiln_status kiln_select(kiln_stream *stream, const kiln_select_desc *desc,
                        const kiln_workspace *workspace)
{
  request r;
  const kiln_status st = request_select(&r, stream, desc, workspace);

  return st == KILN_OK ? run(stream, &r, workspace) : st;
}

static kiln_status select_need(kiln__need *need, kiln_stream *stream,
                               const kiln_select_desc *desc)
{
  kiln_status st = KILN_OK;
  request r;

  KILN_TRY(request_select(&r, stream, desc, NULL));
  *need = need_of(stream, &r);

done:
  return st;
}

KILN__WORKSPACE(kiln_select, kiln_select_desc, select_need)

kiln_status kiln_unique(kiln_stream *stream, const kiln_unique_desc *desc,
                        const kiln_workspace *workspace)
{
  request r;
  const kiln_status st = request_unique(&r, stream, desc, workspace);

  return st == KILN_OK ? run(stream, &r, workspace) : st;
}

static kiln_status unique_need(kiln__need *need, kiln_stream *stream,
                               const kiln_unique_desc *desc)
{
  kiln_status st = KILN_OK;
  request r;

  KILN_TRY(request_unique(&r, stream, desc, NULL));
  *need = need_of(stream, &r);

done:
  return st;
}

KILN__WORKSPACE(kiln_unique, kiln_unique_desc, unique_need)
