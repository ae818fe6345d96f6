/* indexed_call.c -- what kiln_gather() and kiln_scatter() share, the host side
 * of gather.cu and scatter.cu. A call uses one pass, several passes that each
 * handle a window of the target (multi-pass scatter, He et al. 2007), a
 * partition, or, for a scatter, a sort of the pairs. The cost model in
 * scatter_model.c chooses the method for random indices. If that is not one
 * direct pass, the device samples the indices (index_sample.cu). The launches of
 * both methods are queued, and those of one of them leave at once. */
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

static const char *const sample_kernels[] = {"index_sample", NULL};
static const kiln__family sample_family = {"index_sample", sample_kernels,
                                           kiln__index_sample_params};

/* ---- Plan ---------------------------------------------------------------- */

enum {
  /* Smaller calls are not sampled. A launch takes as long as they gain. */
  LEAST_SAMPLED = 1 << 16,
  /* Size of the words that index_sample.cu writes. The first one leaves out the
   * direct pass, and the second one the other method. */
  SAMPLE_BYTES = 12,
  SAMPLE_WORD = 4
};

static kiln_status choose_method(kiln__indexed *r, const kiln_stream *stream,
                                 const kiln_index_shape *shape)
{
  const kiln_index_method method = r->plan.method;

  if (method == KILN_INDEX_DIRECT ||
      (r->scatter && method == KILN_INDEX_SORT) ||
      (method != KILN_INDEX_AUTO && r->plan.passes != 0))
    return KILN_OK;
  return r->scatter ? kiln_scatter_plan(&stream->device->info, shape, &r->plan)
                    : kiln_gather_plan(&stream->device->info, shape, &r->plan);
}

/* Plans the choice between the method of the cost model, which assumes random
 * indices, and one direct pass, which is faster for local indices. */
static void plan_sampling(kiln__indexed *r, const kiln_stream *stream,
                          const kiln_index_shape *shape)
{
  if (!r->automatic || r->plan.method == KILN_INDEX_DIRECT ||
      r->n < LEAST_SAMPLED)
    return;
  r->sampled = true;
  r->sampling =
      kiln__sampling_of(&stream->device->info, shape, &r->plan, r->scatter);
  r->skip = kiln__need_temp(&r->need, SAMPLE_BYTES);
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

/* Returns the number of elements per vector of a scatter in one pass. If the
 * indices are runs, one access stores a vector. Where that is impossible, the
 * lanes handle consecutive elements, so that their stores fill whole sectors. */
static uint32_t run_vector(kiln_array out)
{
  const size_t size = kiln__size(out.type);

  if (size > 8 || (size & (size - 1)) != 0 || out.data % 16 != 0)
    return 1;
  return size == 8 ? 2 : KILN__INDEX_VECTOR;
}

kiln_status kiln__indexed_plan(kiln__indexed *r, const kiln_stream *stream,
                               unsigned element_size)
{
  const kiln_index_shape shape = {.n = r->n,
                                  .n_target = r->n_target,
                                  .element_size = element_size,
                                  .index_size =
                                      (unsigned)kiln__size(r->index.type)};
  kiln_status st = KILN_OK;

  if (r->n == 0)
    return KILN_OK;
  r->automatic = r->plan.method == KILN_INDEX_AUTO;
  if (kiln__is_narrow(r->index.type))
    r->plan.method = KILN_INDEX_DIRECT;
  KILN_TRY(choose_method(r, stream, &shape));
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
  plan_sampling(r, stream, &shape);

done:
  return st;
}

/* ---- One pass, or one pass per window ----------------------------------- */

/* Maximum number of tiles per block in a launch that may be left out. Blocks of a
 * gather with several tiles reuse what the first-level cache holds, but those of
 * a partition must follow the buckets closely. On an H200, a gather of 2.5e8 local
 * elements took 1,085, 865 and 816 us with 1, 2 and 4 tiles per block, and one of
 * random elements took 4.22, 4.31 and 4.38 ms. Blocks of a scatter with several
 * tiles were slower: 4.66 ms for local elements with 8 tiles, and 3.79 ms with
 * one. */
enum { WINDOW_TILES = 4, BUCKET_TILES = 2, SCATTER_TILES = 1 };

/* The arrays that one launch reads and writes. They are the arrays of the call,
 * or the reordered arrays of its partition. */
typedef struct move {
  const kiln_input *x;
  const kiln_code *code;
  kiln_array index, out;
  /* Another gather of the same launch, which takes place instead if the word
   * `skip` is not 0. An address of 0 as index, here or above, means no gather. */
  CUdeviceptr other_index, other_out;
  CUdeviceptr skip;    /* 0, or the word that leaves the move out */
  uint32_t most_tiles; /* maximum number of tiles per block */
  uint32_t vector;     /* elements per vector */
  bool
      overlaps; /* true if the launch may start before the preceding one ends */
} move;

/* A gather or scatter that is ready to launch. The user's expressions have been
 * compiled. */
typedef struct job {
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln__args args;
  uint64_t window;
  uint32_t tiles_each;
  uint32_t early; /* the argument of scatter.cu */
} job;

/* The argument `other` of gather.cu, with the members that the kernel declares. */
typedef struct alternative {
  CUdeviceptr chosen, index, out;
} alternative;

static bool aligned(CUdeviceptr a, CUdeviceptr b)
{
  return a % 16 == 0 && b % 16 == 0;
}

/* Returns the argument `early` of scatter.cu: about as many blocks as run while
 * index_sample.cu does, but not all blocks of the grid. */
static uint32_t early_blocks(const kiln_stream *stream, const job *j)
{
  const uint64_t most =
      3 * kiln__resident_blocks(stream, j->set->kernel[0], j->config.block.x);

  return (uint32_t)(most < j->config.grid.x ? most : j->config.grid.x - 1);
}

static kiln_status prepare(job *j, kiln_stream *stream, const kiln__indexed *r,
                           const move *m, uint32_t windows)
{
  const kiln__tuning t = kiln__tuned_for(
      stream->device, r->scatter ? KILN__TUNED_SCATTER : KILN__TUNED_GATHER,
      kiln__size(m->out.type), r->n);
  const uint32_t items = t.items / m->vector;
  const bool out_aligned = aligned(m->out.data, m->other_out);
  const kiln__spec spec = {
      .family = r->scatter ? &scatter_family : &gather_family,
      .value = {[GATHER_BLOCK] = t.block,
                [GATHER_ITEMS] = items > 0 ? items : 1,
                [GATHER_VECTOR] = m->vector,
                [GATHER_INDEX] = m->index.type,
                [GATHER_OUT] = m->out.type,
                [GATHER_ALIGNED] =
                    (uint32_t)aligned(m->index.data, m->other_index) |
                    (uint32_t)out_aligned << 1,
                [GATHER_SMALL] = (r->n < UINT32_C(1) << 31),
                [GATHER_WINDOWS] = (windows > 1)},
      .input = m->x,
      /* Gathers read single elements of x, at any alignment. */
      .unaligned = !r->scatter,
      .code = m->code,
      .quick = true};
  const uint64_t tiles = kiln__divide_up(
      r->n, (uint64_t)spec.value[GATHER_ITEMS] * m->vector * t.block);
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&j->set, stream->device, &spec));
  kiln__user_args(&j->args, &spec);
  j->window = kiln__window(m->index, r->n_target, r->n, windows);
  j->tiles_each = kiln__tiles_each(stream, tiles, m->most_tiles, m->skip);
  j->config =
      kiln__grid(stream, kiln__divide_up(tiles, j->tiles_each), t.block);
  j->early = 0;
  if (m->overlaps) {
    j->config = kiln__sort_launch(stream, j->set->kernel[0], j->config.grid.x,
                                  t.block, 0);
    j->early = early_blocks(stream, j);
  }

done:
  return st;
}

/* Queues a scatter as one launch with a row of the grid per window, or a gather
 * as one launch per window. The first launch of a gather does the other gather if
 * that one is chosen. */
static kiln_status launch(job *j, const kiln__indexed *r, const move *m,
                          uint32_t windows)
{
  kiln_status st = KILN_OK;

  if (r->scatter) {
    j->config.grid.y = windows;
    return KILN_LAUNCH(j->set->kernel[0], &j->config, KILN__USER_ARG(j->args),
                       KILN_ARG(m->index.data), KILN_ARG(m->out.data),
                       KILN_ARG(r->n), KILN_ARG(j->window),
                       KILN_ARG(j->tiles_each), KILN_ARG(j->early),
                       KILN_ARG(m->skip));
  }
  for (uint32_t turn = 0; turn < windows; turn++) {
    const alternative other = {m->skip, turn == 0 ? m->other_index : 0,
                               m->other_out};

    KILN_TRY(KILN_LAUNCH(j->set->kernel[0], &j->config, KILN__USER_ARG(j->args),
                         KILN_ARG(m->index.data), KILN_ARG(m->out.data),
                         KILN_ARG(r->n), KILN_ARG(j->window), KILN_ARG(turn),
                         KILN_ARG(windows), KILN_ARG(j->tiles_each),
                         KILN_ARG(other)));
  }

done:
  return st;
}

/* Returns the move of a call that is not reordered. */
static move move_of(const kiln__indexed *r, CUdeviceptr skip)
{
  return (move){.x = &r->x,
                .code = r->code,
                .index = r->raw_index,
                .out = r->out,
                .skip = skip,
                .most_tiles = r->scatter ? SCATTER_TILES : WINDOW_TILES,
                .vector = vector_of(r->out.type)};
}

static kiln_status run_move(kiln_stream *stream, const kiln__indexed *r,
                            const move *m, uint32_t windows)
{
  kiln_status st = KILN_OK;
  job j;

  KILN_TRY(prepare(&j, stream, r, m, windows));
  st = launch(&j, r, m, windows);

done:
  return st;
}

/* Queues the passes over windows. If the words `skip` say that the indices are
 * local, one of the passes handles all of them. */
static kiln_status run_windows(kiln_stream *stream, const kiln__indexed *r,
                               CUdeviceptr skip)
{
  move m = move_of(r, skip);

  if (r->scatter && r->plan.passes <= 1)
    m.vector = run_vector(m.out);
  if (skip != 0) {
    m.other_index = m.index.data;
    m.other_out = m.out.data;
  }
  return run_move(stream, r, &m, r->plan.passes);
}

/* ---- The other methods --------------------------------------------------- */

/* Queues the direct pass of a call whose other launches are left out if the word
 * `skip` is not 0. The word before it is the one of the direct pass. */
static kiln_status run_direct(kiln_stream *stream, const kiln__indexed *r,
                              CUdeviceptr skip)
{
  move m = move_of(r, r->scatter ? skip - SAMPLE_WORD : skip);

  if (!r->scatter) {
    m.other_index = m.index.data;
    m.other_out = m.out.data;
    m.index.data = 0;
  } else {
    m.vector = run_vector(m.out);
    m.overlaps = true;
  }
  return run_move(stream, r, &m, 1);
}

/* Returns whether one launch can do the direct pass and the gather in the order
 * of the buckets. */
static bool is_shared(const kiln__indexed *r)
{
  return !r->scatter && r->plan.method == KILN_INDEX_PARTITION &&
         r->by.partition.stored == r->raw_index.type;
}

static kiln_status run_partition(kiln__storage *storage, kiln__indexed *r,
                                 CUdeviceptr skip)
{
  static const kiln_code no_code = {0};
  kiln__partition *p = &r->by.partition;
  kiln_stream *stream = storage->stream;
  kiln_input moved = {.map = NULL};
  move m = move_of(r, skip);
  kiln_status st = KILN_OK;
  job j;

  m.most_tiles = r->scatter ? SCATTER_TILES : BUCKET_TILES;
  if (skip != 0 && is_shared(r)) {
    m.other_index = m.index.data;
    m.other_out = m.out.data;
  }
  m.index = (kiln_array){storage->temp + p->at, p->stored};
  if (r->scatter) {
    moved.in[0] = (kiln_array){storage->temp + p->values, r->out.type};
    m.x = &moved;
    m.code = &no_code;
    kiln__as_bits(&moved, &m.out);
  } else {
    m.out.data = storage->temp + p->values;
  }
  KILN_TRY(kiln__partition_prepare(p, stream->device, &r->x, r->code));
  KILN_TRY(prepare(&j, stream, r, &m, 1));
  KILN_TRY(kiln__partition_split(p, storage, skip));
  KILN_TRY(launch(&j, r, &m, 1));
  if (!r->scatter)
    KILN_TRY(kiln__partition_join(p, storage, skip));

done:
  return st;
}

static kiln_status run_sort(kiln__storage *storage, kiln__indexed *r,
                            CUdeviceptr skip)
{
  kiln__sorted *p = &r->by.sort;
  kiln_status st = KILN_OK;

  p->skippable = skip != 0;

  KILN_TRY(kiln__sorted_prepare(p, storage->stream->device, r->code));
  st = kiln__sorted_run(p, storage, skip);

done:
  return st;
}

/* Queues the kernel that chooses between the direct pass and the other method. */
static kiln_status run_sample(kiln__storage *storage, const kiln__indexed *r)
{
  const kiln__spec spec = {
      .family = &sample_family,
      .value = {[INDEX_SAMPLE_BLOCK] = 32 * KILN__SAMPLE_STRETCHES,
                [INDEX_SAMPLE_INDEX] = r->raw_index.type}};
  const CUdeviceptr skip = storage->temp + r->skip;
  const kiln__sampling *s = &r->sampling;
  const kiln_launch_config config =
      kiln__grid(storage->stream, 1, 32 * KILN__SAMPLE_STRETCHES);
  const kiln__kernel_set *set;
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&set, storage->stream->device, &spec));
  st = KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(r->index.data),
                   KILN_ARG(r->n), KILN_ARG(s->stretch), KILN_ARG(s->shift),
                   KILN_ARG(s->limit), KILN_ARG(s->skewed), KILN_ARG(skip));

done:
  return st;
}

static kiln_status run_planned(kiln_stream *stream, kiln__indexed *r,
                               const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;
  kiln__storage storage;
  CUdeviceptr skip = 0;

  st = kiln__storage_open(&storage, stream, workspace, r->need);
  if (st != KILN_OK)
    return st;
  if (r->sampled) {
    skip = storage.temp + r->skip + SAMPLE_WORD;
    KILN_TRY(run_sample(&storage, r));
    if (r->plan.method != KILN_INDEX_WINDOWS && !is_shared(r))
      KILN_TRY(run_direct(stream, r, skip));
  }
  if (r->plan.method == KILN_INDEX_SORT)
    st = run_sort(&storage, r, skip);
  else if (r->plan.method == KILN_INDEX_PARTITION)
    st = run_partition(&storage, r, skip);
  else
    st = run_windows(stream, r, skip);

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
  move m;

  if (r->n == 0)
    goto done;
  if (r->checked)
    KILN_TRY(kiln__in_range(stream, &range, workspace));
  if (r->sampled || r->plan.method == KILN_INDEX_PARTITION ||
      r->plan.method == KILN_INDEX_SORT) {
    st = run_planned(stream, r, workspace);
    if (st != KILN_EDEVMEM || !r->automatic)
      goto done;
    r->plan.method = KILN_INDEX_DIRECT;
  }
  if (r->plan.method == KILN_INDEX_WINDOWS) {
    st = run_windows(stream, r, 0);
  } else {
    m = move_of(r, 0);
    st = run_move(stream, r, &m, 1);
  }

done:
  return st;
}
