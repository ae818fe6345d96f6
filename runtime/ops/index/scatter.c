/* scatter.c -- kiln_scatter(), the host side of scatter.cu. A scatter uses
 * one pass, several passes that each handle a window of the target
 * (multi-pass scatter, He et al. 2007), a partition, or a sort of the pairs.
 * The cost model in scatter_model.c chooses the method. */
#include "indexed.h"
#include "kernel_params.h"

/* ---- One pass, or one pass per window ----------------------------------- */

static const char *const kernels[] = {"scatter", NULL};
static const kiln__family family = {"scatter", kernels, kiln__scatter_params};

/* A scatter whose arguments have been checked. */
typedef struct request {
  kiln_stream *stream;
  kiln_input x;
  const kiln_code *code;
  kiln_array index; /* array of indices with an unsigned type */
  kiln_array out;
  uint64_t n, n_target;
} request;

/* A scatter that is ready to launch. The user's expressions have been
 * compiled. */
typedef struct job {
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln__args args;
  uint64_t window;
} job;

static kiln_status prepare(job *j, const request *r, uint32_t windows)
{
  const kiln__tuning t = kiln__tuned(r->stream->device, KILN__TUNED_SCATTER,
                                     (unsigned)kiln__size(r->out.type), r->n);
  const uint32_t items = t.items / KILN__INDEX_VECTOR;
  const kiln__spec spec = {
      .family = &family,
      .value = {[SCATTER_BLOCK] = t.block,
                [SCATTER_ITEMS] = items > 0 ? items : 1,
                [SCATTER_VECTOR] = KILN__INDEX_VECTOR,
                [SCATTER_INDEX] = r->index.type,
                [SCATTER_OUT] = r->out.type,
                [SCATTER_ALIGNED] = r->index.data % 16 == 0,
                [SCATTER_SMALL] = (r->n < UINT32_C(1) << 31),
                [SCATTER_WINDOWS] = (windows > 1)},
      .input = &r->x,
      .code = r->code,
      .quick = true};
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&j->set, r->stream->device, &spec));
  kiln__user_args(&j->args, &spec);
  j->window = kiln__window(r->index, r->n_target, r->n, windows);
  j->config = kiln_launch_1d(
      kiln__divide_up(r->n, spec.value[SCATTER_ITEMS] * KILN__INDEX_VECTOR),
      t.block);
  j->config.grid.y = windows;
  j->config.stream = r->stream;

done:
  return st;
}

static kiln_status launch(const job *j, const request *r)
{
  return KILN_LAUNCH(j->set->kernel[0], &j->config, KILN__USER_ARG(j->args),
                     KILN_ARG(r->index.data), KILN_ARG(r->out.data),
                     KILN_ARG(r->n), KILN_ARG(j->window));
}

static kiln_status run(const request *r, uint32_t windows)
{
  kiln_status st = KILN_OK;
  job j;

  KILN_TRY(prepare(&j, r, windows));
  st = launch(&j, r);

done:
  return st;
}

/* ---- By partition ------------------------------------------------------------------- */

static kiln_status run_partition(const request *r, uint32_t parts,
                                 const kiln_workspace *workspace)
{
  static const kiln_code no_code = {0};
  request inner = {.stream = r->stream,
                   .code = &no_code,
                   .out = r->out,
                   .n = r->n,
                   .n_target = r->n_target};
  kiln_status st = KILN_OK;
  kiln__partition p;
  kiln__storage storage;
  job j;

  kiln__partition_plan(&p, r->index, r->n, r->n_target, r->out, parts, true);
  st = kiln__storage_open(&storage, r->stream, workspace, p.need);
  if (st != KILN_OK)
    return st;
  inner.index = (kiln_array){storage.temp + p.at, p.stored};
  inner.x.in[0] = (kiln_array){storage.temp + p.values, r->out.type};
  kiln__as_bits(&inner.x, &inner.out.type);
  KILN_TRY(kiln__partition_prepare(&p, r->stream->device, &r->x, r->code));
  KILN_TRY(prepare(&j, &inner, 1));
  KILN_TRY(kiln__partition_split(&p, &storage));
  KILN_TRY(launch(&j, &inner));

done:
  kiln__storage_close(&storage);
  return st;
}

/* ---- By sorting ----------------------------------------------------------------- */

static kiln_status run_sort(const request *r, const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;
  kiln__sorted p;
  kiln__storage storage;

  kiln__sorted_plan(&p, r->stream->device, &r->x, r->index, r->n, r->n_target,
                    r->out);
  st = kiln__storage_open(&storage, r->stream, workspace, p.need);
  if (st != KILN_OK)
    return st;
  KILN_TRY(kiln__sorted_prepare(&p, r->stream->device, r->code));
  st = kiln__sorted_run(&p, &storage);

done:
  kiln__storage_close(&storage);
  return st;
}

/* ---- The call ------------------------------------------------------------------- */

static kiln_status check(const kiln_stream *stream,
                         const kiln_scatter_desc *desc,
                         const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_scatter", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_index(&c, desc->index, desc->n);
  /* Without n_target the length of out is unknown here, so only element 0 is
 * checked. */
  kiln__check_write(&c, "out", desc->out,
                    desc->n == 0          ? 0
                    : desc->n_target == 0 ? 1
                                          : desc->n_target);
  kiln__check_method(&c, desc->method, desc->passes, desc->checked,
                     desc->n_target);
  kiln__check_that(&c,
                   desc->method != KILN_INDEX_SORT ||
                       kiln__sort_fits((unsigned)kiln__size(desc->out.type),
                                       (unsigned)kiln__size(desc->index.type),
                                       desc->n_target),
                   "KILN_INDEX_SORT with indices of 64 bits needs n_target, "
                   "2^32 at most");
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

static request request_of(kiln_stream *stream, const kiln_scatter_desc *desc)
{
  request r = {.stream = stream,
               .x = desc->x,
               .code = &desc->code,
               .index = {desc->index.data, kiln__raw_type((unsigned)kiln__size(
                                               desc->index.type))},
               .out = desc->out,
               .n = desc->n,
               .n_target = desc->n_target};

  kiln__as_bits(&r.x, &r.out.type);
  return r;
}

/* Returns the temporary storage that a method needs. */
static kiln__need need_of(const request *r, const kiln_index_plan *plan)
{
  kiln__partition parts;
  kiln__sorted sorted;

  if (plan->method == KILN_INDEX_PARTITION) {
    kiln__partition_plan(&parts, r->index, r->n, r->n_target, r->out,
                         plan->passes, true);
    return parts.need;
  }
  if (plan->method == KILN_INDEX_SORT) {
    kiln__sorted_plan(&sorted, r->stream->device, &r->x, r->index, r->n,
                      r->n_target, r->out);
    return sorted.need;
  }
  return (kiln__need){0};
}

static kiln_status plan(kiln_index_plan *p, const kiln_stream *stream,
                        const kiln_scatter_desc *desc)
{
  const kiln_index_shape shape = {
      .n = desc->n,
      .n_target = desc->n_target,
      .element_size = (unsigned)kiln__size(desc->out.type),
      .index_size = (unsigned)kiln__size(desc->index.type)};

  *p = (kiln_index_plan){.method = desc->method, .passes = desc->passes};
  if (p->method == KILN_INDEX_DIRECT || p->method == KILN_INDEX_SORT ||
      (p->method != KILN_INDEX_AUTO && p->passes != 0))
    return KILN_OK;
  return kiln_scatter_plan(&stream->device->info, &shape, p);
}

kiln_status kiln_scatter(kiln_stream *stream, const kiln_scatter_desc *desc,
                         const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;
  kiln_index_plan p;
  request r;

  KILN_TRY(check(stream, desc, workspace));
  if (desc->n == 0)
    goto done;
  KILN_TRY(plan(&p, stream, desc));
  if (desc->checked)
    KILN_TRY(kiln__in_range(stream,
                            &(kiln__range){"kiln_scatter", "index", desc->index,
                                           desc->n, desc->n_target, false},
                            workspace));
  r = request_of(stream, desc);
  if (p.method == KILN_INDEX_PARTITION || p.method == KILN_INDEX_SORT) {
    st = p.method == KILN_INDEX_SORT ? run_sort(&r, workspace)
                                     : run_partition(&r, p.passes, workspace);
    if (st != KILN_EDEVMEM || desc->method != KILN_INDEX_AUTO)
      goto done;
    p.method = KILN_INDEX_DIRECT;
  }
  st = run(&r, p.method == KILN_INDEX_WINDOWS ? p.passes : 1);

done:
  return st;
}

static kiln_status scatter_need(kiln__need *need, kiln_stream *stream,
                                const kiln_scatter_desc *desc)
{
  kiln_status st = KILN_OK;
  kiln_index_plan p;
  request r;

  KILN_TRY(check(stream, desc, NULL));
  if (desc->n == 0)
    goto done;
  KILN_TRY(plan(&p, stream, desc));
  r = request_of(stream, desc);
  *need = need_of(&r, &p);
  if (desc->checked && need->temp == 0)
    *need = kiln__range_need(); /* the range check runs before the scatter,
                                 * in the same memory */

done:
  return st;
}

KILN__WORKSPACE(kiln_scatter, kiln_scatter_desc, scatter_need)
