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

/* The kernel of select_staged.cu, which stages tiles in shared memory. It
 * handles large arrays without map, indices or payload. */
static const char *const staged_kernels[] = {"select_staged", NULL};
static const kiln__family staged_family = {"select_staged", staged_kernels,
                                           kiln__select_staged_params};

/* A call of kiln_select() or kiln_unique() in a form that the shared code
 * handles. */
typedef struct request {
  const kiln_input *x; /* the input of the caller */
  /* The input of the kernel: the caller's input and, if the caller gives an
   * array of flags, that array. */
  kiln_input input;
  kiln__function function;
  bool unique;
  uint64_t n;
  kiln_array out, out_index, payload, out_payload, count;
  const kiln_code *code;
  /* The parameters of the launch, which make_plan() sets. */
  kiln__spec spec;
  kiln__tuning tuning;
  bool staged;
  uint64_t tiles, blocks;
  kiln__need need;
} request;

/* ---- Checks -------------------------------------------------------------- */

static void check_arrays(kiln__checker *c, const request *r)
{
  const uint64_t n = r->n;

  kiln__check_allow(c, KILN__ALLOW_ALL);
  kiln__check_input(c, "x", r->x, n);
  if (kiln__given(r->out))
    kiln__check_elements(c, "out", r->out, r->x, n);
  if (kiln__given(r->out_index))
    kiln__check_count(c, "out_index", r->out_index, n, n);
  kiln__check_that(c, r->payload.type == r->out_payload.type,
                   "payload and out_payload have different types");
  if (kiln__given(r->payload)) {
    kiln__check_read(c, "payload", r->payload, n);
    kiln__check_write(c, "out_payload", r->out_payload, n);
  }
  kiln__check_count(c, "count", r->count, 1, n);
}

static void request_flags(kiln__checker *c, request *r, kiln_array flags)
{
  kiln__check_that(c, (r->function.expr != NULL) != kiln__given(flags),
                   "give either a predicate or flags");
  if (!kiln__given(flags))
    return;
  kiln__check_read(c, "flags", flags, r->n);
  r->function.expr = kiln__add_flags(&r->input, flags);
  kiln__check_that(c, r->function.expr != NULL,
                   "7 arrays at most beside flags");
}

/* ---- Plan ---------------------------------------------------------------- */

/* Returns whether the kernel of select_staged.cu is used. It is used if the
 * tuning row for this size demands it, and if the call only moves the elements
 * of one array. */
static bool is_staged(const request *r, const kiln__tuning *t)
{
  const size_t size = kiln__size(r->x->in[0].type);

  return (t->extra & KILN__SELECT_STAGED) != 0 && r->input.map == NULL &&
         kiln__input_arrays(&r->input) == 1 &&
         kiln__input_type(&r->input) == r->input.in[0].type &&
         r->input.in[0].data % 16 == 0 && (size == 4 || size == 8) &&
         kiln__given(r->out) && !kiln__given(r->out_index) &&
         !kiln__given(r->payload);
}

static void plan_staged(request *r, const kiln_stream *stream)
{
  const uint32_t size = (uint32_t)kiln__size(r->input.in[0].type);
  uint32_t items = r->tuning.items / 4u * 4u;
  uint32_t *const value = r->spec.value;

  while (items > 4 &&
         (items > 64 || items * size * r->tuning.block > KILN__TILE_SHARED))
    items -= 4;
  r->staged = true;
  r->spec.family = &staged_family;
  value[SELECT_STAGED_BLOCK] = r->tuning.block;
  value[SELECT_STAGED_ITEMS] = items > 4 ? items : 4;
  value[SELECT_STAGED_UNIQUE] = r->unique;
  value[SELECT_STAGED_COUNT] = r->count.type;
  value[SELECT_STAGED_WIDE] = r->n > UINT32_MAX;
  r->tiles = kiln__divide_up(r->n, (uint64_t)value[SELECT_STAGED_BLOCK] *
                                       value[SELECT_STAGED_ITEMS]);
  value[SELECT_STAGED_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &r->input, r->n, r->tiles);
  /* One more block, the leader block, computes the prefixes of all tiles. */
  r->blocks = r->tiles + 1;
  r->need.descriptors =
      kiln__leader_descriptors(r->tiles, value[SELECT_STAGED_WIDE] ? 8 : 4);
}

static void make_plan(request *r, const kiln_stream *stream)
{
  const unsigned vec = kiln__input_vec(&r->input);
  const bool values = kiln__given(r->out);
  const bool places = kiln__given(r->out_index) || kiln__given(r->payload);
  /* cppcheck-suppress ctuuninitvar; only the address of *r is used */
  uint32_t *const value = r->spec.value;

  r->spec = (kiln__spec){.family = &family,
                         .input = &r->input,
                         .function = {r->function},
                         .code = r->code,
                         .elements = r->n,
                         .quick = kiln__quick(r->n)};
  r->tuning = kiln__tuned_for(stream->device, KILN__TUNED_SELECT,
                              kiln__input_widest(&r->input), r->n);
  if (is_staged(r, &r->tuning)) {
    plan_staged(r, stream);
    return;
  }
  if ((r->tuning.extra & KILN__SELECT_STAGED) != 0) {
    /* This is the block size of select.cu, which keeps tiles in registers. */
    r->tuning.block = 128;
    r->tuning.items = 32;
    r->tuning.extra = 4;
  }
  value[SELECT_VECTOR] = vec;
  value[SELECT_ITEMS] =
      kiln__tile_items(&r->tuning, vec,
                       (values ? kiln__size(kiln__input_type(&r->input)) : 0) +
                           (places ? 2 : 0));
  /* kiln__tile_items() above may have reduced the block size. */
  value[SELECT_BLOCK] = r->tuning.block;
  value[SELECT_PER_SM] = r->tuning.per_sm;
  value[SELECT_WINDOW] = r->tuning.extra > 0 ? r->tuning.extra : 1;
  value[SELECT_UNIQUE] = r->unique;
  value[SELECT_VALUES] = values;
  value[SELECT_INDEX] = (uint32_t)kiln__size(r->out_index.type);
  value[SELECT_PAYLOAD] = (uint32_t)kiln__size(r->payload.type);
  value[SELECT_PAYLOAD_ALIGN] =
      places ? (uint32_t)kiln__align(r->payload.type) : 1;
  value[SELECT_COUNT] = r->count.type;
  value[SELECT_WIDE] = r->n > UINT32_MAX;
  r->tiles = kiln__divide_up(r->n, (uint64_t)value[SELECT_BLOCK] *
                                       (uint64_t)value[SELECT_ITEMS]);
  value[SELECT_PREFETCH] =
      kiln__prefetch_tiles(stream->device, &r->input, r->n, r->tiles);
  r->blocks = r->tiles;
  r->need.descriptors = r->tiles > 1 ? r->tiles << value[SELECT_WIDE] : 0;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln_launch_config config = {.grid = {.x = (uint32_t)r->blocks},
                                     .block = {.x = r->tuning.block},
                                     .stream = stream};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (r->n == 0)
    return kiln__zero(stream, r->count, 1);
  KILN_TRY(kiln__call_open(&c, stream, &r->spec, workspace, r->need));
  if (r->staged)
    st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                     KILN_ARG(r->n), KILN_ARG(r->out.data),
                     KILN_ARG(r->count.data), KILN_ARG(c.storage.descriptors),
                     KILN_ARG(c.epoch));
  else
    st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                     KILN_ARG(r->n), KILN_ARG(r->out.data),
                     KILN_ARG(r->out_index.data), KILN_ARG(r->payload.data),
                     KILN_ARG(r->out_payload.data), KILN_ARG(r->count.data),
                     KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

/* ---- Calls --------------------------------------------------------------- */

/* Ends the argument checks of kiln_select() and kiln_unique(), and makes the
 * plan. */
static kiln_status finish(request *r, kiln__checker *c,
                          const kiln_stream *stream,
                          const kiln_workspace *workspace)
{
  check_arrays(c, r);
  if (kiln__check_workspace(c, workspace) == KILN_OK)
    make_plan(r, stream);
  return c->st;
}

static kiln_status request_select(request *r, const kiln_stream *stream,
                                  const kiln_select_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_select", stream, desc) != KILN_OK)
    return c.st;
  *r = (request){.x = &desc->x,
                 .input = desc->x,
                 .function = {"predicate", "the predicate", desc->predicate,
                              "bool", NULL, NULL},
                 .n = desc->n,
                 .out = desc->out,
                 .out_index = desc->out_index,
                 .payload = desc->payload,
                 .out_payload = desc->out_payload,
                 .count = desc->count,
                 .code = &desc->code};
  request_flags(&c, r, desc->flags);
  kiln__move_bits(&r->input, r->x);
  return finish(r, &c, stream, workspace);
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
                              "bool", "value", NULL},
                 .unique = true,
                 .n = desc->n,
                 .out = desc->out,
                 .out_index = desc->out_index,
                 .payload = desc->payload,
                 .out_payload = desc->out_payload,
                 .count = desc->count,
                 .code = &desc->code};
  return finish(r, &c, stream, workspace);
}

KILN__DEFINE_OPERATION(kiln_select, kiln_select_desc, request, request_select,
                       run)
KILN__DEFINE_OPERATION(kiln_unique, kiln_unique_desc, request, request_unique,
                       run)
