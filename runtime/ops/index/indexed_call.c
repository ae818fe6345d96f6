/* indexed_call.c -- what kiln_gather() and kiln_scatter() share, the host side
 * of gather.cu and scatter.cu. A call uses one pass, several passes that each
 * handle a window of the target (multi-pass scatter, He et al. 2007), a
 * partition, or, for a scatter, a sort of the pairs. The cost model in
 * scatter_model.c chooses the method. */
#include "indexed.h"
#include "kernel_params.h"

static const char *const gather_kernels[] = {"gather", NULL};
static const kiln__family gather_family = {"gather", gather_kernels,
                                           kiln__gather_params};
static const char *const scatter_kernels[] = {"scatter", NULL};
static const kiln__family scatter_family = {"scatter", scatter_kernels,
                                            kiln__scatter_params};

/* gather.cu and scatter.cu have the same macros in the same order. */
_Static_assert((int)GATHER_BLOCK == (int)SCATTER_BLOCK &&
                   (int)GATHER_ITEMS == (int)SCATTER_ITEMS &&
                   (int)GATHER_VECTOR == (int)SCATTER_VECTOR &&
                   (int)GATHER_INDEX == (int)SCATTER_INDEX &&
                   (int)GATHER_OUT == (int)SCATTER_OUT &&
                   (int)GATHER_ALIGNED == (int)SCATTER_ALIGNED &&
                   (int)GATHER_SMALL == (int)SCATTER_SMALL &&
                   (int)GATHER_WINDOWS == (int)SCATTER_WINDOWS,
               "gather.cu and scatter.cu have different macros");

/* ---- Plan ---------------------------------------------------------------- */

static kiln_status choose_method(kiln__indexed *r, const kiln_stream *stream,
                                 unsigned element_size)
{
  const kiln_index_shape shape = {.n = r->n,
                                  .n_target = r->n_target,
                                  .element_size = element_size,
                                  .index_size =
                                      (unsigned)kiln__size(r->index.type)};
  const kiln_index_method method = r->plan.method;

  if (method == KILN_INDEX_DIRECT ||
      (r->scatter && method == KILN_INDEX_SORT) ||
      (method != KILN_INDEX_AUTO && r->plan.passes != 0))
    return KILN_OK;
  return r->scatter ? kiln_scatter_plan(&stream->device->info, &shape, &r->plan)
                    : kiln_gather_plan(&stream->device->info, &shape, &r->plan);
}

/* The methods by buckets and by sorting move elements that are integers for
 * them. Other elements take one pass if the cost model chose such a method. */
static kiln_status check_movable(kiln__indexed *r)
{
  const kiln_dtype type = r->out.type;

  if (r->plan.method != KILN_INDEX_PARTITION &&
      r->plan.method != KILN_INDEX_SORT)
    return KILN_OK;
  if (!kiln__is_record(type) && !kiln__is_complex(type))
    return KILN_OK;
  if (!r->automatic)
    return kiln__fail(
        KILN_EINVAL, "use KILN_INDEX_DIRECT or KILN_INDEX_WINDOWS",
        "%s: this method does not support elements of type %s",
        r->scatter ? "kiln_scatter" : "kiln_gather", kiln_dtype_name(type));
  r->plan.method = KILN_INDEX_DIRECT;
  return KILN_OK;
}

/* Returns the number of elements per vector in gather.cu and scatter.cu, so that
 * a vector of wide elements does not take many registers. */
static uint32_t vector_of(kiln_dtype type)
{
  const size_t size = kiln__size(type);

  return size <= 8 ? KILN__INDEX_VECTOR : size <= 16 ? 2 : 1;
}

kiln_status kiln__indexed_plan(kiln__indexed *r, const kiln_stream *stream,
                               unsigned element_size)
{
  kiln_status st = KILN_OK;

  if (r->n == 0)
    return KILN_OK;
  r->automatic = r->plan.method == KILN_INDEX_AUTO;
  KILN_TRY(choose_method(r, stream, element_size));
  r->raw_index = (kiln_array){
      r->index.data, kiln__raw_type((unsigned)kiln__size(r->index.type))};
  kiln__as_bits(&r->x, &r->out);
  KILN_TRY(check_movable(r));
  if (r->plan.method == KILN_INDEX_PARTITION) {
    kiln__partition_plan(&r->by.partition, r->raw_index, r->n, r->n_target,
                         r->out, r->plan.passes, r->scatter);
    r->need = r->by.partition.need;
  } else if (r->plan.method == KILN_INDEX_SORT) {
    kiln__sorted_plan(&r->by.sort, stream->device, &r->x, r->raw_index, r->n,
                      r->n_target, r->out);
    r->need = r->by.sort.need;
  } else if (r->checked) {
    /* In a partition or a sort, the range check runs first and uses their
     * temporary memory. All other methods need temporary memory only for the
     * check. */
    r->need = kiln__range_need();
  }

done:
  return st;
}

/* ---- One pass, or one pass per window ----------------------------------- */

/* The arrays that one launch reads and writes. They are the arrays of the call,
 * or the reordered arrays of its partition. */
typedef struct move {
  const kiln_input *x;
  const kiln_code *code;
  kiln_array index, out;
} move;

/* A gather or scatter that is ready to launch. The user's expressions have been
 * compiled. */
typedef struct job {
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln__args args;
  uint64_t window;
} job;

static kiln_status prepare(job *j, kiln_stream *stream, const kiln__indexed *r,
                           const move *m, uint32_t windows)
{
  const kiln__tuning t = kiln__tuned_for(
      stream->device, r->scatter ? KILN__TUNED_SCATTER : KILN__TUNED_GATHER,
      kiln__size(m->out.type), r->n);
  const uint32_t vec = vector_of(m->out.type);
  const uint32_t items = t.items / vec;
  const bool out_aligned = !r->scatter && m->out.data % 16 == 0;
  const kiln__spec spec = {
      .family = r->scatter ? &scatter_family : &gather_family,
      .value = {[GATHER_BLOCK] = t.block,
                [GATHER_ITEMS] = items > 0 ? items : 1,
                [GATHER_VECTOR] = vec,
                [GATHER_INDEX] = m->index.type,
                [GATHER_OUT] = m->out.type,
                [GATHER_ALIGNED] =
                    (m->index.data % 16 == 0) | (uint32_t)out_aligned << 1,
                [GATHER_SMALL] = (r->n < UINT32_C(1) << 31),
                [GATHER_WINDOWS] = (windows > 1)},
      .input = m->x,
      /* Gathers read single elements of x, at any alignment. */
      .unaligned = !r->scatter,
      .code = m->code,
      .quick = true};
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&j->set, stream->device, &spec));
  kiln__user_args(&j->args, &spec);
  j->window = kiln__window(m->index, r->n_target, r->n, windows);
  j->config = kiln_launch_1d(
      kiln__divide_up(r->n, (uint64_t)spec.value[GATHER_ITEMS] * vec), t.block);
  j->config.stream = stream;

done:
  return st;
}

/* Queues a scatter as one launch with a row of the grid per window, or a gather
 * as one launch per window. */
static kiln_status launch(job *j, const kiln__indexed *r, const move *m,
                          uint32_t windows)
{
  kiln_status st = KILN_OK;

  if (r->scatter) {
    j->config.grid.y = windows;
    return KILN_LAUNCH(j->set->kernel[0], &j->config, KILN__USER_ARG(j->args),
                       KILN_ARG(m->index.data), KILN_ARG(m->out.data),
                       KILN_ARG(r->n), KILN_ARG(j->window));
  }
  for (uint32_t turn = 0; turn < windows; turn++)
    KILN_TRY(KILN_LAUNCH(j->set->kernel[0], &j->config, KILN__USER_ARG(j->args),
                         KILN_ARG(m->index.data), KILN_ARG(m->out.data),
                         KILN_ARG(r->n), KILN_ARG(j->window), KILN_ARG(turn),
                         KILN_ARG(windows)));

done:
  return st;
}

static kiln_status run_passes(kiln_stream *stream, const kiln__indexed *r)
{
  const move m = {&r->x, r->code, r->raw_index, r->out};
  const uint32_t windows =
      r->plan.method == KILN_INDEX_WINDOWS ? r->plan.passes : 1;
  kiln_status st = KILN_OK;
  job j;

  KILN_TRY(prepare(&j, stream, r, &m, windows));
  st = launch(&j, r, &m, windows);

done:
  return st;
}

/* ---- The other methods --------------------------------------------------- */

static kiln_status run_partition(kiln_stream *stream, kiln__indexed *r,
                                 const kiln_workspace *workspace)
{
  static const kiln_code no_code = {0};
  kiln__partition *p = &r->by.partition;
  kiln_input moved = {.map = NULL};
  move m = {&r->x, r->code, r->raw_index, r->out};
  kiln_status st = KILN_OK;
  kiln__storage storage;
  job j;

  st = kiln__storage_open(&storage, stream, workspace, p->need);
  if (st != KILN_OK)
    return st;
  m.index = (kiln_array){storage.temp + p->at, p->stored};
  if (r->scatter) {
    moved.in[0] = (kiln_array){storage.temp + p->values, r->out.type};
    m.x = &moved;
    m.code = &no_code;
    kiln__as_bits(&moved, &m.out);
  } else {
    m.out.data = storage.temp + p->values;
  }
  KILN_TRY(kiln__partition_prepare(p, stream->device, &r->x, r->code));
  KILN_TRY(prepare(&j, stream, r, &m, 1));
  KILN_TRY(kiln__partition_split(p, &storage));
  KILN_TRY(launch(&j, r, &m, 1));
  if (!r->scatter)
    KILN_TRY(kiln__partition_join(p, &storage));

done:
  kiln__storage_close(&storage);
  return st;
}

static kiln_status run_sort(kiln_stream *stream, kiln__indexed *r,
                            const kiln_workspace *workspace)
{
  kiln__sorted *p = &r->by.sort;
  kiln_status st = KILN_OK;
  kiln__storage storage;

  st = kiln__storage_open(&storage, stream, workspace, p->need);
  if (st != KILN_OK)
    return st;
  KILN_TRY(kiln__sorted_prepare(p, stream->device, r->code));
  st = kiln__sorted_run(p, &storage);

done:
  kiln__storage_close(&storage);
  return st;
}

kiln_status kiln__indexed_run(kiln_stream *stream, kiln__indexed *r,
                              const kiln_workspace *workspace)
{
  const kiln__range range = {r->scatter ? "kiln_scatter" : "kiln_gather",
                             "index",
                             r->index,
                             r->n,
                             r->n_target,
                             false};
  kiln_status st = KILN_OK;

  if (r->n == 0)
    goto done;
  if (r->checked)
    KILN_TRY(kiln__in_range(stream, &range, workspace));
  if (r->plan.method == KILN_INDEX_PARTITION ||
      r->plan.method == KILN_INDEX_SORT) {
    st = r->plan.method == KILN_INDEX_SORT
             ? run_sort(stream, r, workspace)
             : run_partition(stream, r, workspace);
    if (st != KILN_EDEVMEM || !r->automatic)
      goto done;
    r->plan.method = KILN_INDEX_DIRECT;
  }
  st = run_passes(stream, r);

done:
  return st;
}
