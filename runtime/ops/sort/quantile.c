/* quantile.c -- kiln_quantile(), the host side of quantile.cu: positions of the
 * quantiles, and groups of quantiles that one launch handles. */
#include "kernel_params.h"
#include "rank_select.h"

#include <kiln/top_k.h>

#include <math.h>

enum { ROW, EMIT };
enum { BLOCK = 256 };

/* Temporary memory that a group of quantiles of one row may take in bytes. */
#define MOST_MEMORY (UINT64_C(128) << 20)

static const char *const kernels[] = {"quantile_row", "quantile_emit", NULL};
static const kiln__family family = {"quantile", kernels, kiln__quantile_params};

/* The argument `outputs` of the kernels. */
typedef struct outputs {
  CUdeviceptr out;
  uint64_t pitch;
  double weight[KILN__RANK_TARGETS];
} outputs;

typedef struct request {
  const kiln_quantile_desc *desc;
  uint64_t rows, n_q;
  bool direct; /* one block per quantile reads the keys */
  kiln__need need;
} request;

/* ---- Positions ----------------------------------------------------------- */

/* Quantile number k is between the keys `index` and index + 1 of the sorted
 * row. */
typedef struct position {
  uint64_t index;
  double weight; /* weight of the second key */
} position;

static double quantile_of(const kiln_quantile_desc *desc, uint64_t k)
{
  const double q = desc->q == NULL ? 0.5 : desc->q[k];

  return desc->q != NULL && desc->percent ? q / 100 : q;
}

static position position_of(const kiln_quantile_desc *desc, uint64_t k)
{
  const double last = desc->n == 0 ? 0 : (double)(desc->n - 1);
  const double at = quantile_of(desc, k) * last;
  double lower = floor(at), weight = at - lower;

  switch (desc->rule) {
  case KILN_QUANTILE_NEAREST:
    lower = rint(at);
    weight = 0;
    break;
  case KILN_QUANTILE_LOWER:
    weight = 0;
    break;
  case KILN_QUANTILE_HIGHER:
    lower = ceil(at);
    weight = 0;
    break;
  case KILN_QUANTILE_MIDPOINT:
    weight = weight > 0 ? 0.5 : 0;
    break;
  case KILN_QUANTILE_LINEAR:
    break;
  }
  return (position){(uint64_t)lower, weight};
}

/* ---- Groups -------------------------------------------------------------- */

/* Quantiles that one launch handles. */
typedef struct group {
  uint64_t first;
  kiln__rank_targets targets;
  double weight[KILN__RANK_TARGETS];
} group;

/* Returns the largest number of quantiles per group. Each needs a list of up to
 * a tenth of the keys. */
static uint64_t group_size(const request *r)
{
  const uint64_t row = r->desc->n * kiln__size(r->desc->keys.type) / 10 + 1;
  const uint64_t most = MOST_MEMORY / row + 1;

  return r->direct || most > KILN__RANK_TARGETS ? KILN__RANK_TARGETS : most;
}

static group group_at(const request *r, uint64_t first)
{
  const uint64_t most = group_size(r), rest = r->n_q - first;
  group g = {.first = first};

  g.targets.n = (uint32_t)(rest < most ? rest : most);
  for (uint32_t q = 0; q < g.targets.n; q++) {
    const position p = position_of(r->desc, first + q);

    g.targets.rank[q] = p.index + 1;
    g.targets.more |= (p.weight > 0 ? 1u : 0u) << q;
    g.weight[q] = p.weight;
  }
  return g;
}

static kiln__rank_shape shape_of(const request *r)
{
  return (kiln__rank_shape){
      .keys = r->desc->keys, .n = r->desc->n, .rows = r->rows};
}

static void make_plan(request *r, kiln_device *device)
{
  const kiln__rank_shape shape = shape_of(r);

  r->direct = r->desc->n <= KILN__RANK_DIRECT;
  if (r->direct)
    return;
  for (uint64_t k = 0; k < r->n_q; k += group_size(r)) {
    const group g = group_at(r, k);
    kiln__need need = {0, 0};
    kiln__rank_plan plan;

    kiln__rank_plan_make(&plan, &need, device, &shape, &g.targets, true);
    if (need.temp > r->need.temp)
      r->need = need;
  }
}

/* ---- Launches ------------------------------------------------------------ */

static kiln__spec own_spec(const request *r)
{
  const kiln_quantile_desc *desc = r->desc;
  kiln__spec spec = {.family = &family};

  spec.quick = kiln__quick(desc->n);
  spec.kernels = r->direct && desc->n > 0 ? 1u << ROW : 1u << EMIT;
  spec.value[QUANTILE_BLOCK] = BLOCK;
  spec.value[QUANTILE_KEY] = (uint32_t)kiln__size(desc->keys.type);
  spec.value[QUANTILE_FLOAT] = kiln__dtype_of(desc->keys.type)->is_float;
  spec.value[QUANTILE_T] = desc->keys.type;
  spec.value[QUANTILE_OUT] = desc->out.type;
  return spec;
}

static outputs outputs_of(const request *r, const group *g, uint64_t row)
{
  outputs to = {.out = r->desc->out.data + (row * r->n_q + g->first) *
                                               kiln__size(r->desc->out.type),
                .pitch = r->n_q};

  for (uint32_t q = 0; q < g->targets.n; q++)
    to.weight[q] = g->weight[q];
  return to;
}

static kiln_status launch_rows(kiln_stream *stream, const request *r,
                               const kiln__kernel_set *own,
                               const kiln__rank_args *args, const group *g)
{
  const outputs to = outputs_of(r, g, 0);
  const kiln_launch_config config = kiln__sort_launch(
      stream, own->kernel[ROW], r->rows * g->targets.n, BLOCK, 0);

  return KILN_LAUNCH(own->kernel[ROW], &config, KILN_ARG(*args), KILN_ARG(to));
}

static kiln_status launch_emit(kiln_stream *stream, const request *r,
                               const kiln__kernel_set *own,
                               const kiln__rank_args *args, const group *g,
                               uint64_t row, uint64_t rows)
{
  const outputs to = outputs_of(r, g, row);
  const uint32_t selections = (uint32_t)(rows * g->targets.n);
  const kiln_launch_config config = kiln__sort_launch(
      stream, own->kernel[EMIT], kiln__divide_up(selections, BLOCK), BLOCK, 0);

  return KILN_LAUNCH(own->kernel[EMIT], &config, KILN_ARG(*args), KILN_ARG(to),
                     KILN_ARG(selections));
}

/* Computes a group of quantiles of short rows, or of no keys. */
static kiln_status run_short(kiln_stream *stream, const request *r,
                             const group *g)
{
  const kiln__rank_shape shape = shape_of(r);
  const kiln__rank_args args = {.in = r->desc->keys.data,
                                .n = r->desc->n,
                                .order = kiln__rank_order(&shape),
                                .targets = g->targets};
  const kiln__spec spec = own_spec(r);
  const kiln__kernel_set *own;
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&own, stream->device, &spec));
  st = r->desc->n > 0 ? launch_rows(stream, r, own, &args, g)
                      : launch_emit(stream, r, own, &args, g, 0, r->rows);

done:
  return st;
}

/* Computes a group of quantiles of long rows. */
static kiln_status run_long(kiln__storage *storage, const request *r,
                            const group *g)
{
  const kiln__rank_shape shape = shape_of(r);
  const kiln__kernel_set *set[4];
  const kiln__spec *specs[4];
  kiln__need need = {0, 0};
  kiln_status st = KILN_OK;
  kiln__rank_plan plan;
  kiln__rank_args args;
  kiln__spec spec[4];
  uint64_t chunk;
  size_t n;

  kiln__rank_plan_make(&plan, &need, storage->stream->device, &shape,
                       &g->targets, true);
  chunk = plan.chunk / g->targets.n;
  spec[0] = own_spec(r);
  n = 1 + kiln__rank_specs(spec + 1, &plan);
  for (size_t k = 0; k < n; k++)
    specs[k] = &spec[k];
  KILN_TRY(kiln__specialise_all(set, storage->stream->device, specs, n));
  for (uint64_t row = 0; row < r->rows; row += chunk) {
    const uint64_t rest = r->rows - row, rows = rest < chunk ? rest : chunk;

    KILN_TRY(kiln__rank_queue(&args, storage, set + 1, &plan, row, rows));
    KILN_TRY(launch_emit(storage->stream, r, set[0], &args, g, row, rows));
  }

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;
  kiln__storage storage;

  if (!r->direct)
    KILN_TRY(kiln__storage_open(&storage, stream, workspace, r->need));
  for (uint64_t k = 0; st == KILN_OK && k < r->n_q; k += group_size(r)) {
    const group g = group_at(r, k);

    st = r->direct ? run_short(stream, r, &g) : run_long(&storage, r, &g);
  }
  if (!r->direct)
    kiln__storage_close(&storage);

done:
  return st;
}

/* ---- Checks -------------------------------------------------------------- */

static void check_quantiles(kiln__checker *c, const kiln_quantile_desc *desc)
{
  kiln__check_that(c, desc->n_q <= KILN_QUANTILE_MOST,
                   "n_q is %llu; at most %d", (unsigned long long)desc->n_q,
                   KILN_QUANTILE_MOST);
  kiln__check_that(c, desc->q != NULL || desc->n_q == 0,
                   "q is NULL, but n_q is %llu", (unsigned long long)desc->n_q);
  if (c->st != KILN_OK || desc->q == NULL)
    return;
  for (uint64_t k = 0; k < desc->n_q; k++) {
    const double q = quantile_of(desc, k);

    kiln__check_that(c, q >= 0 && q <= 1, "q[%llu] is %g; must be 0 to %d",
                     (unsigned long long)k, desc->q[k],
                     desc->percent ? 100 : 1);
  }
}

static void check_output(kiln__checker *c, const kiln_quantile_desc *desc,
                         uint64_t n)
{
  const kiln__dtype *type = kiln__dtype_of(desc->out.type);
  const bool is_float = type != NULL && type->is_float;

  kiln__check_write(c, "out", desc->out, n);
  kiln__check_that(c,
                   desc->rule >= KILN_QUANTILE_LINEAR &&
                       desc->rule <= KILN_QUANTILE_MIDPOINT,
                   "rule is %d, no rule of kiln_quantile_rule",
                   (int)desc->rule);
  kiln__check_that(c, is_float || desc->out.type == desc->keys.type,
                   "out is %s; must be %s or a float type",
                   kiln_dtype_name(desc->out.type),
                   kiln_dtype_name(desc->keys.type));
  kiln__check_that(c,
                   is_float || (desc->rule != KILN_QUANTILE_LINEAR &&
                                desc->rule != KILN_QUANTILE_MIDPOINT),
                   "out is %s, and the rule interpolates; out must be a float "
                   "type, or the rule one that selects a key",
                   kiln_dtype_name(desc->out.type));
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_quantile_desc *desc,
                           const kiln_workspace *workspace)
{
  const uint64_t most = UINT64_C(1) << 48;
  uint64_t rows, n_q;
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_quantile", stream, desc) != KILN_OK)
    return c.st;
  rows = desc->rows == 0 ? 1 : desc->rows;
  n_q = desc->q == NULL ? 1 : desc->n_q;
  check_quantiles(&c, desc);
  kiln__check_that(&c,
                   desc->n <= most && rows <= INT32_MAX / KILN__RANK_TARGETS &&
                       (desc->n == 0 || rows <= most / desc->n),
                   "too many rows or keys: rows * n is above 2^48, or rows is "
                   "2^27 or more");
  if (c.st != KILN_OK)
    return c.st;
  kiln__check_read(&c, "keys", desc->keys, rows * desc->n);
  check_output(&c, desc, rows * n_q);
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  *r = (request){.desc = desc, .rows = rows, .n_q = n_q};
  if (n_q > 0)
    make_plan(r, stream->device);
  return KILN_OK;
}

KILN__DEFINE_OPERATION(kiln_quantile, kiln_quantile_desc, request, prepare, run)
