/* counting_sort.c -- the host side of counting_sort.cu.
 *
 * Keys without values: a histogram and its prefix sum give the position of the
 * run of each key, and a kernel writes the runs without a second read of the
 * input. Pairs of key and value: each block counts the digits of its elements,
 * one prefix sum over all blocks gives the destinations, and each block
 * scatters its elements. This order makes the sort stable. More than 256
 * possible keys take two passes, by the low digit and then by the high
 * digit. */
#include "../ops.h"
#include "kernel_params.h"

#include <kiln/histogram.h>

/* Indices of the kernels in `kernels`. */
enum { PREFIX, FILL, PREFIX_BLOCKS, DIGITS_COUNT, SCATTER };

static const char *const kernels[] = {"sort_prefix",        "sort_fill",
                                      "sort_prefix_blocks", "sort_count",
                                      "sort_scatter",       NULL};
static const kiln__family family = {"counting_sort", kernels,
                                    kiln__counting_sort_params};

enum {
  MOST_KEYS = 65536,
  DIGIT_KEYS = 256,
  BLOCK_SIZE = 256,
  PREFIX_BLOCK = 1024,
  BLOCKS_PER_SM = 4 /* number of scattering blocks per SM */
};

/* ---- The keys ------------------------------------------------------------ */

/* Returns the number of possible keys, or 0 if neither the call nor the key
 * type determines this number. */
static uint32_t range_of(const kiln_counting_sort_desc *desc)
{
  const size_t size = kiln__size(desc->keys.type);

  if (desc->range != 0)
    return desc->range;
  return size == 1 ? 256 : size == 2 ? 65536 : 0;
}

static int64_t lowest_of(const kiln_counting_sort_desc *desc)
{
  const kiln__dtype *type = kiln__dtype_of(desc->keys.type);

  if (desc->range != 0)
    return desc->lowest;
  return type->is_signed ? -(INT64_C(1) << (8 * type->size - 1)) : 0;
}

/* Returns whether the key type and double can represent all possible keys. */
static bool within_type(const kiln_counting_sort_desc *desc)
{
  const kiln__dtype *type = kiln__dtype_of(desc->keys.type);
  const unsigned bits = 8u * type->size - type->is_signed;
  const int64_t most = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
  const int64_t least = !type->is_signed ? 0
                        : bits == 63     ? INT64_MIN
                                         : -(INT64_C(1) << bits);
  const int64_t lowest = lowest_of(desc), exact = INT64_C(1) << 53;

  return lowest >= least && lowest <= most && lowest >= -exact &&
         lowest <= exact - MOST_KEYS &&
         (uint64_t)(range_of(desc) - 1) <= (uint64_t)most - (uint64_t)lowest;
}

/* ---- Checks -------------------------------------------------------------- */

static void check_outputs(kiln__checker *c, const kiln_counting_sort_desc *desc)
{
  const bool pairs = kiln__given(desc->values);

  kiln__check_that(c, desc->values.type == desc->values_out.type,
                   "values are %s, values_out %s",
                   kiln_dtype_name(desc->values.type),
                   kiln_dtype_name(desc->values_out.type));
  kiln__check_that(c, pairs || kiln__given(desc->keys_out),
                   "neither keys_out nor values_out is given");
  kiln__check_that(
      c, !kiln__given(desc->keys_out) || desc->keys.type == desc->keys_out.type,
      "keys are %s, keys_out %s", kiln_dtype_name(desc->keys.type),
      kiln_dtype_name(desc->keys_out.type));
  if (pairs) {
    kiln__check_read(c, "values", desc->values, desc->n);
    kiln__check_write(c, "values_out", desc->values_out, desc->n);
    if (kiln__given(desc->keys_out))
      kiln__check_write(c, "keys_out", desc->keys_out, desc->n);
  } else if (kiln__given(desc->keys_out)) {
    kiln__check_in_place(c, "keys_out", desc->keys_out, desc->n);
  }
  if (!kiln__given(desc->offsets))
    return;
  kiln__check_that(
      c,
      desc->offsets.type == KILN_U64 ||
          (desc->offsets.type == KILN_U32 && desc->n <= UINT32_MAX),
      "offsets are %s, must be u64, or u32 with n below 2^32",
      kiln_dtype_name(desc->offsets.type));
  kiln__check_write(c, "offsets", desc->offsets, (uint64_t)range_of(desc) + 1);
}

/* ---- Plan ---------------------------------------------------------------- */

/* The parameters of a call. Members of type size_t are offsets in temporary
 * memory. */
typedef struct plan {
  const kiln_counting_sort_desc *desc;
  uint32_t range;
  uint64_t lowest;
  /* True if the counts of keys and the starts of their runs are needed. */
  bool runs;
  bool pairs;
  uint32_t passes; /* number of passes, one per digit */
  uint32_t items;
  uint32_t blocks; /* number of blocks that scatter */
  uint64_t part;   /* number of elements per scattering block */
  kiln_histogram_desc histogram;
  size_t histogram_bytes;
  size_t counts, starts, histogram_temp;           /* used if `runs` is true */
  size_t block_counts, block_starts, keys, values; /* used if `pairs` is true */
  kiln__need need;
} plan;

/* Plans the histogram of the keys. The first bin is the lowest possible key. */
static kiln_status plan_runs(plan *p, kiln_stream *stream,
                             const kiln_counting_sort_desc *desc)
{
  const kiln_dtype type = desc->n <= UINT32_MAX ? KILN_U32 : KILN_U64;

  p->counts = kiln__need_temp(&p->need, p->range * kiln__size(type));
  p->starts = kiln__need_temp(&p->need, 8 * ((size_t)p->range + 1));
  p->histogram =
      (kiln_histogram_desc){.x = {.in = {desc->keys}},
                            .n = desc->n,
                            .bins = p->range,
                            .lower = (double)lowest_of(desc),
                            .upper = (double)lowest_of(desc) + p->range,
                            /* find_runs() sets the address of the counts when
                             * the memory is known */
                            .counts = {256, type}};
  return kiln_histogram_workspace(stream, &p->histogram, &p->histogram_bytes);
}

static void plan_pairs(plan *p, const kiln_device *device,
                       const kiln_counting_sort_desc *desc)
{
  const uint64_t tile = (uint64_t)BLOCK_SIZE * p->items;
  const uint64_t tiles = kiln__divide_up(desc->n, tile);
  const uint64_t most = (uint64_t)device->info.sm_count * BLOCKS_PER_SM;
  const uint64_t blocks = tiles < most ? tiles : most;

  p->passes = p->range > DIGIT_KEYS ? 2 : 1;
  p->part = blocks == 0 ? 0 : kiln__divide_up(tiles, blocks) * tile;
  p->blocks = p->part == 0 ? 0 : (uint32_t)kiln__divide_up(desc->n, p->part);
  p->block_counts =
      kiln__need_temp(&p->need, 4 * (size_t)DIGIT_KEYS * p->blocks);
  p->block_starts =
      kiln__need_temp(&p->need, 8 * ((size_t)DIGIT_KEYS * p->blocks + 1));
  if (p->passes == 1)
    return;
  p->keys = kiln__need_temp(&p->need, desc->n * kiln__size(desc->keys.type));
  p->values =
      kiln__need_temp(&p->need, desc->n * kiln__size(desc->values.type));
}

static kiln_status make_plan(plan *p, kiln_stream *stream,
                             const kiln_counting_sort_desc *desc)
{
  kiln_status st = KILN_OK;

  *p = (plan){.desc = desc,
              .range = range_of(desc),
              .lowest = (uint64_t)lowest_of(desc),
              .pairs = kiln__given(desc->values),
              .items = kiln__size(desc->keys.type) == 8 ? 8 : 12};
  p->runs = !p->pairs || kiln__given(desc->offsets);
  if (p->runs)
    KILN_TRY(plan_runs(p, stream, desc));
  p->histogram_temp = kiln__need_temp(&p->need, p->histogram_bytes);
  if (p->pairs)
    plan_pairs(p, stream->device, desc);

done:
  return st;
}

static kiln_status prepare(plan *p, kiln_stream *stream,
                           const kiln_counting_sort_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_counting_sort", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_that(&c, kiln__is_integer(desc->keys.type),
                   "keys are %s, must be integers",
                   kiln_dtype_name(desc->keys.type));
  if (c.st != KILN_OK)
    return c.st;
  kiln__check_that(&c, range_of(desc) > 0 && range_of(desc) <= MOST_KEYS,
                   "range is %u, must be 1 to %d for keys of %s", desc->range,
                   MOST_KEYS, kiln_dtype_name(desc->keys.type));
  if (c.st == KILN_OK)
    kiln__check_that(&c, within_type(desc),
                     "not all keys from lowest = %lld on are values of %s, and "
                     "below 2^53",
                     (long long)lowest_of(desc),
                     kiln_dtype_name(desc->keys.type));
  kiln__check_read(&c, "keys", desc->keys, desc->n);
  check_outputs(&c, desc);
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  if (desc->n > 0 || kiln__given(desc->offsets))
    return make_plan(p, stream, desc);
  *p = (plan){.desc = desc};
  return KILN_OK;
}

static void specify(kiln__spec *spec, const kiln_counting_sort_desc *desc,
                    const plan *p)
{
  spec->kernels = p->runs ? 1u << PREFIX : 0;
  if (desc->n > 0)
    spec->kernels |=
        p->pairs ? 1u << PREFIX_BLOCKS | 1u << DIGITS_COUNT | 1u << SCATTER
                 : 1u << FILL;
  spec->value[COUNTING_SORT_BLOCK] = BLOCK_SIZE;
  spec->value[COUNTING_SORT_ITEMS] = p->items;
  spec->value[COUNTING_SORT_ALIGNED] =
      p->pairs || desc->keys_out.data % 16 == 0;
  spec->value[COUNTING_SORT_T] = desc->keys.type;
  spec->value[COUNTING_SORT_V] = p->pairs ? desc->values.type : KILN_U32;
  spec->value[COUNTING_SORT_COUNT] =
      desc->n <= UINT32_MAX ? KILN_U32 : KILN_U64;
  spec->value[COUNTING_SORT_OFFSET] =
      kiln__given(desc->offsets) ? desc->offsets.type : KILN_U32;
}

/* ---- The call ------------------------------------------------------------ */

/* Queues the kernels that compute the counts of the keys and the starts of
 * their runs. */
static kiln_status find_runs(kiln_stream *stream,
                             const kiln_counting_sort_desc *desc, plan *p,
                             const kiln__kernel_set *set,
                             const kiln__storage *storage)
{
  const kiln_workspace inner = {
      p->histogram_bytes > 0 ? storage->temp + p->histogram_temp : 0,
      p->histogram_bytes};
  const CUdeviceptr counts = storage->temp + p->counts;
  const CUdeviceptr starts = storage->temp + p->starts;
  const kiln_launch_config config = {
      .grid = {1, 1, 1}, .block = {PREFIX_BLOCK, 1, 1}, .stream = stream};
  kiln_status st = KILN_OK;

  p->histogram.counts.data = counts;
  KILN_TRY(kiln_histogram(stream, &p->histogram, &inner));
  KILN_TRY(KILN_LAUNCH(set->kernel[PREFIX], &config, KILN_ARG(counts),
                       KILN_ARG(p->range), KILN_ARG(starts),
                       KILN_ARG(desc->offsets.data)));

done:
  return st;
}

static kiln_status fill(kiln_stream *stream,
                        const kiln_counting_sort_desc *desc, const plan *p,
                        const kiln__kernel_set *set,
                        const kiln__storage *storage)
{
  const CUdeviceptr starts = storage->temp + p->starts;
  kiln_launch_config config =
      kiln_launch_1d(kiln__divide_up(desc->n, p->items / 2), BLOCK_SIZE);

  config.stream = stream;
  return KILN_LAUNCH(set->kernel[FILL], &config, KILN_ARG(starts),
                     KILN_ARG(p->range), KILN_ARG(p->lowest),
                     KILN_ARG(desc->keys_out.data));
}

/* The arrays of one pass that moves pairs of key and value. */
typedef struct move {
  CUdeviceptr keys, values, keys_out, values_out;
  /* Device address of the number of elements; 0 means that the pass moves all
   * elements. */
  CUdeviceptr limit;
  uint32_t shift;
} move;

static kiln_status run_pass(kiln_stream *stream, uint64_t n, const plan *p,
                            const kiln__kernel_set *set,
                            const kiln__storage *storage, const move *m)
{
  const CUdeviceptr counts = storage->temp + p->block_counts;
  const CUdeviceptr starts = storage->temp + p->block_starts;
  const uint32_t n_counts = DIGIT_KEYS * p->blocks;
  const kiln_launch_config config = {
      .grid = {p->blocks, 1, 1}, .block = {BLOCK_SIZE, 1, 1}, .stream = stream};
  const kiln_launch_config one = {
      .grid = {1, 1, 1}, .block = {PREFIX_BLOCK, 1, 1}, .stream = stream};
  kiln_status st = KILN_OK;

  KILN_TRY(KILN_LAUNCH(set->kernel[DIGITS_COUNT], &config, KILN_ARG(m->keys),
                       KILN_ARG(n), KILN_ARG(m->limit), KILN_ARG(p->part),
                       KILN_ARG(p->lowest), KILN_ARG(p->range),
                       KILN_ARG(m->shift), KILN_ARG(counts)));
  KILN_TRY(KILN_LAUNCH(set->kernel[PREFIX_BLOCKS], &one, KILN_ARG(counts),
                       KILN_ARG(n_counts), KILN_ARG(starts)));
  KILN_TRY(KILN_LAUNCH(set->kernel[SCATTER], &config, KILN_ARG(m->keys),
                       KILN_ARG(m->values), KILN_ARG(n), KILN_ARG(m->limit),
                       KILN_ARG(p->part), KILN_ARG(p->lowest),
                       KILN_ARG(p->range), KILN_ARG(m->shift), KILN_ARG(starts),
                       KILN_ARG(m->keys_out), KILN_ARG(m->values_out)));

done:
  return st;
}

/* Queues the passes that move the pairs. The pass of the low digit drops keys
 * out of range, so the pass of the high digit has fewer pairs. The last start
 * that the first pass computes is the number of these pairs. The second pass
 * reads the number from there, and later overwrites it with the same value. */
static kiln_status move_pairs(kiln_stream *stream,
                              const kiln_counting_sort_desc *desc,
                              const plan *p, const kiln__kernel_set *set,
                              const kiln__storage *storage)
{
  const CUdeviceptr keys = storage->temp + p->keys;
  const CUdeviceptr values = storage->temp + p->values;
  const move whole = {desc->keys.data,
                      desc->values.data,
                      desc->keys_out.data,
                      desc->values_out.data,
                      0,
                      0};
  const move low = {desc->keys.data, desc->values.data, keys, values, 0, 0};
  const move high = {keys,
                     values,
                     desc->keys_out.data,
                     desc->values_out.data,
                     storage->temp + p->block_starts +
                         8 * (uint64_t)DIGIT_KEYS * p->blocks,
                     8};
  kiln_status st = KILN_OK;

  if (p->passes == 1)
    return run_pass(stream, desc->n, p, set, storage, &whole);
  KILN_TRY(run_pass(stream, desc->n, p, set, storage, &low));
  KILN_TRY(run_pass(stream, desc->n, p, set, storage, &high));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_counting_sort_desc *desc = p->desc;
  kiln__spec spec = {.family = &family}, histogram;
  const kiln__spec *const specs[] = {&spec, &histogram};
  const kiln__kernel_set *set[2];
  kiln_status st = KILN_OK;
  kiln__storage storage;

  if (desc->n == 0 && !kiln__given(desc->offsets))
    return KILN_OK;
  specify(&spec, desc, p);
  spec.quick = kiln__quick_on_9(stream, desc->n);
  if (p->runs)
    histogram = kiln__histogram_spec(stream, &p->histogram);
  KILN_TRY(kiln__specialise_all(set, stream->device, specs, p->runs ? 2 : 1));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, p->need));
  if (p->runs)
    st = find_runs(stream, desc, p, set[0], &storage);
  if (st == KILN_OK && desc->n > 0)
    st = p->pairs ? move_pairs(stream, desc, p, set[0], &storage)
                  : fill(stream, desc, p, set[0], &storage);
  kiln__storage_close(&storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_counting_sort, kiln_counting_sort_desc, plan,
                       prepare, run)
