/* scatter_sort.c -- the host side of scatter_buckets.cu: a scatter of sorted
 * pairs.
 *
 * Problem: a random scatter writes single elements, and the memory moves a
 * whole sector for each element.
 *
 * Idea: sort the pairs of index and value by the high bits of the index. A
 * bucket is a range of the target that fits shared memory. After the sort, the
 * pairs of a bucket are consecutive. A block assembles the bucket in shared
 * memory and writes the bucket in whole cache lines. Flags record which
 * elements were written, so all other elements keep their values.
 *
 * Invariant: the sort is stable. Of several pairs with the same index, exactly
 * one is written.
 *
 * Cost: a radix sort with 8 bits per pass, then one read of the pairs and one
 * write of the target. The memory holds two or three copies of the pairs. */
#include "indexed.h"
#include "kernel_params.h"

/* Indices of the kernels in the array `kernels`. */
enum { MAKE_PAIRS, FIND_BOUNDS, WRITE };
enum { PLACES = 1, VALUES = 2 }; /* bits of the macro KILN_PAIRS */

static const char *const kernels[] = {"bucket_pairs", "bucket_bounds",
                                      "bucket_write", NULL};
static const kiln__family family = {"scatter_buckets", kernels,
                                    kiln__scatter_buckets_params};

/* ---- Buckets ------------------------------------------------------------- */

bool kiln__sort_fits(unsigned element_size, unsigned index_size,
                     uint64_t n_target)
{
  return (element_size == 1 || element_size == 2 || element_size == 4 ||
          element_size == 8) &&
         (index_size == 4 || (n_target != 0 && n_target <= UINT64_C(1) << 32));
}

/* Chooses the bits of the index by which the pairs are sorted, and so the size
 * of a bucket. A bucket and its flags take 18 to 24 KiB of shared memory, or 32
 * to 40 KiB if this saves a pass of the sort. Every GPU has 48 KiB. */
kiln__sort_bits kiln__sort_bits_of(uint64_t target, unsigned element_size)
{
  static const uint8_t usual[] = {14, 13, 12, 11}, most[] = {14, 13, 13, 12};
  const unsigned k = element_size >= 8   ? 3
                     : element_size >= 4 ? 2
                     : element_size >= 2 ? 1
                                         : 0;
  kiln__sort_bits b = {.shift = usual[k], .end = 1};

  while (b.end < 32 && (target - 1) >> b.end != 0)
    b.end++;
  if (b.end <= b.shift)
    b.end = b.shift + 1; /* a sort needs at least one bit */
  if ((b.end - b.shift - 1) / 8 != (b.end - most[k] - 1) / 8 && b.end > most[k])
    b.shift = most[k];
  b.passes = (b.end - b.shift + 7) / 8;
  return b;
}

/* ---- Memory -------------------------------------------------------------- */

static kiln__sort_call sort_of(const kiln__sorted *p)
{
  const bool in_place = p->in_place && p->pairs != 0;

  return (kiln__sort_call){
      .shape = {.n = p->n,
                .key_size = 4,
                .value_size = (unsigned)kiln__size(p->out.type),
                .begin_bit = p->bits.shift,
                .end_bit = p->bits.end,
                .in_place = in_place},
      .nothing_in_place = in_place && p->pairs == (PLACES | VALUES),
      .skippable = p->skippable,
      .order = kiln__sort_order_of(KILN_U32, false, false)};
}

static void lay_out(kiln__sorted *p)
{
  const size_t size = kiln__size(p->out.type);
  const size_t places = (size_t)p->n * 4, values = (size_t)p->n * size;

  p->need.descriptors = p->sort.need.descriptors;
  p->begin = kiln__need_temp(&p->need, 8 * ((size_t)p->buckets + 1));
  p->sorting = kiln__need_temp(&p->need, p->sort.need.temp);
  p->places = kiln__need_temp(&p->need, places);
  p->values = kiln__need_temp(&p->need, values);
  p->made_places = p->places;
  p->made_values = p->values;
  if (!p->in_place && (p->pairs & PLACES) != 0)
    p->made_places = kiln__need_temp(&p->need, places);
  if (!p->in_place && (p->pairs & VALUES) != 0)
    p->made_values = kiln__need_temp(&p->need, values);
}

void kiln__sorted_plan(kiln__sorted *p, kiln_device *device,
                       const kiln_input *x, kiln_array index, uint64_t n,
                       uint64_t n_target, kiln_array out)
{
  const uint64_t most = UINT64_C(1) << 32;
  const uint64_t target = n_target == 0 ? n : n_target;
  kiln__sort_facts facts;
  kiln__sort_call call;

  *p = (kiln__sorted){.n = n, .x = x, .index = index, .out = out};
  p->bits = kiln__sort_bits_of(target < most ? target : most,
                               (unsigned)kiln__size(out.type));
  p->mask = (UINT32_C(1) << (p->bits.end - p->bits.shift)) - 1;
  p->last = p->bits.end == 32 ? UINT32_MAX : (UINT32_C(1) << p->bits.end) - 1;
  p->buckets = p->mask + 1;
  if (n_target != 0 &&
      kiln__divide_up(n_target, UINT64_C(1) << p->bits.shift) < p->buckets)
    p->buckets =
        (uint32_t)kiln__divide_up(n_target, UINT64_C(1) << p->bits.shift);
  p->pairs = (kiln__size(index.type) == 8 ? PLACES : 0u) |
             (x->map != NULL || x->in[0].type != out.type ? VALUES : 0u);
  /* The pairs are sorted in place only if the number of passes is even. An odd
   * number of passes would need an additional copy. */
  p->in_place = p->bits.passes % 2 == 0;
  call = sort_of(p);
  facts = kiln__sort_facts_of(device, &call.shape);
  kiln__sort_plan_make(&p->sort, &call.shape, &facts);
  lay_out(p);
}

/* ---- Kernels ------------------------------------------------------------- */

enum { PAIRS_BLOCK = 256, IN_FLIGHT = 2 };

static uint32_t block_of(const kiln__sorted *p)
{
  return p->bits.shift > 12 ? 512 : 256;
}

static kiln__spec write_spec(const kiln__sorted *p)
{
  return (kiln__spec){
      .family = &family,
      .value = {[SCATTER_BUCKETS_BLOCK] = block_of(p),
                [SCATTER_BUCKETS_ITEMS] = IN_FLIGHT,
                [SCATTER_BUCKETS_SHIFT] = p->bits.shift,
                [SCATTER_BUCKETS_VALUE] =
                    kiln__raw_type((unsigned)kiln__size(p->out.type)),
                [SCATTER_BUCKETS_ALIGNED] = p->out.data % 16 == 0,
                [SCATTER_BUCKETS_INDEX] = KILN_U32},
      .kernels = 1u << FIND_BOUNDS | 1u << WRITE};
}

static kiln__spec pairs_spec(const kiln__sorted *p, const kiln_code *code)
{
  const bool values = (p->pairs & VALUES) != 0;

  return (kiln__spec){
      .family = &family,
      .value = {[SCATTER_BUCKETS_BLOCK] = PAIRS_BLOCK,
                [SCATTER_BUCKETS_ITEMS] = IN_FLIGHT,
                [SCATTER_BUCKETS_SHIFT] = 12,
                [SCATTER_BUCKETS_VALUE] = p->out.type,
                [SCATTER_BUCKETS_ALIGNED] = p->index.data % 16 == 0,
                [SCATTER_BUCKETS_INDEX] = p->index.type,
                [SCATTER_BUCKETS_PAIRS] = p->pairs},
      .kernels = 1u << MAKE_PAIRS,
      .input = values ? p->x : NULL,
      .code = values ? code : NULL};
}

kiln_status kiln__sorted_prepare(kiln__sorted *p, kiln_device *device,
                                 const kiln_code *code)
{
  const kiln__spec write = write_spec(p), pairs = pairs_spec(p, code);
  const kiln__kernel_set *set[4];
  const kiln__spec *specs[4];
  kiln_status st = KILN_OK;
  kiln__sort_call call = sort_of(p);
  kiln__spec sort[2];
  size_t n;

  if ((p->pairs & PLACES) == 0)
    call.in = p->index.data;
  n = kiln__sort_specs(sort, &call, &p->sort);
  for (size_t k = 0; k < n; k++)
    specs[k] = &sort[k];
  specs[n] = &write;
  specs[n + 1] = &pairs;
  KILN_TRY(kiln__specialise_all(set, device, specs,
                                n + 1 + (p->pairs != 0 ? 1 : 0)));
  kiln__user_args(&p->args, &pairs);
  for (size_t k = 0; k < n; k++)
    p->sort_kernels[k] = set[k];
  p->write = set[n];
  p->make = p->pairs != 0 ? set[n + 1] : NULL;

done:
  return st;
}

/* ---- Launches ------------------------------------------------------------ */

static kiln_status make_pairs(const kiln__sorted *p,
                              const kiln__storage *storage, CUdeviceptr skip)
{
  const CUdeviceptr places = storage->temp + p->made_places;
  const CUdeviceptr values = storage->temp + p->made_values;
  const kiln_launch_config config = kiln__grid(
      storage->stream, kiln__divide_up(p->n, PAIRS_BLOCK * IN_FLIGHT * 4),
      PAIRS_BLOCK);

  return KILN_LAUNCH(p->make->kernel[MAKE_PAIRS], &config,
                     KILN__USER_ARG(p->args), KILN_ARG(p->index.data),
                     KILN_ARG(places), KILN_ARG(values), KILN_ARG(p->n),
                     KILN_ARG(skip));
}

static kiln_status sort_pairs(const kiln__sorted *p, kiln__storage *storage,
                              CUdeviceptr skip)
{
  kiln__sort_call call = sort_of(p);

  call.in =
      (p->pairs & PLACES) != 0 ? storage->temp + p->made_places : p->index.data;
  call.values_in = (p->pairs & VALUES) != 0 ? storage->temp + p->made_values
                                            : p->x->in[0].data;
  call.out = storage->temp + p->places;
  call.values_out = storage->temp + p->values;
  call.skip = skip;
  return kiln__sort_queue(storage, p->sorting, p->sort_kernels, &call,
                          &p->sort);
}

/* A struct argument of the kernels in scatter_buckets.cu, with the members that
 * the kernels declare. */
typedef struct write_arrays {
  CUdeviceptr places, values, begin, out;
  uint64_t n;
  uint32_t buckets, mask, last, parts_each;
  CUdeviceptr skip;
} write_arrays;

static kiln_status write_buckets(const kiln__sorted *p,
                                 const kiln__storage *storage, CUdeviceptr skip)
{
  enum { BLOCKS_PER_SM = 8 }; /* of a launch that may be left out */
  const uint64_t tiles = kiln__divide_up(p->n, UINT64_C(2) << p->bits.shift);
  const uint64_t parts = tiles > p->buckets ? tiles : p->buckets;
  const uint32_t threads = block_of(p);
  const write_arrays a = {
      .places = storage->temp + p->places,
      .values = storage->temp + p->values,
      .begin = storage->temp + p->begin,
      .out = p->out.data,
      .n = p->n,
      .buckets = p->buckets,
      .mask = p->mask,
      .last = p->last,
      .parts_each =
          skip == 0 ? 1
                    : (uint32_t)kiln__divide_up(
                          parts, BLOCKS_PER_SM *
                                     kiln__sm_count(storage->stream->device)),
      .skip = skip};
  kiln_launch_config config = kiln__sort_launch(
      storage->stream, p->write->kernel[FIND_BOUNDS],
      kiln__divide_up((uint64_t)p->buckets + 1, threads), threads, 0);
  kiln_status st = KILN_OK;

  KILN_TRY(KILN_LAUNCH(p->write->kernel[FIND_BOUNDS], &config,
                       KILN_ARG(a.places), KILN_ARG(a.begin), KILN_ARG(p->n),
                       KILN_ARG(p->buckets), KILN_ARG(p->mask),
                       KILN_ARG(skip)));
  config = kiln__sort_launch(storage->stream, p->write->kernel[WRITE],
                             kiln__divide_up(parts, a.parts_each), threads, 0);
  st = KILN_LAUNCH(p->write->kernel[WRITE], &config, KILN_ARG(a));

done:
  return st;
}

kiln_status kiln__sorted_run(const kiln__sorted *p, kiln__storage *storage,
                             CUdeviceptr skip)
{
  kiln_status st = KILN_OK;

  if (p->pairs != 0)
    KILN_TRY(make_pairs(p, storage, skip));
  KILN_TRY(sort_pairs(p, storage, skip));
  st = write_buckets(p, storage, skip);

done:
  return st;
}
