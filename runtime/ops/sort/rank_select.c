/* rank_select.c -- the host side of rank_select.cu: bounds for the sample, the
 * sizes of lists, and the launches.
 *
 * Problem: choose bounds from a sample so that the words between them almost
 * certainly contain the wanted words, and are few.
 *
 * Idea: of S samples of n keys, m = S * rank / n are expected among the `rank`
 * lowest words, with a standard deviation of at most sqrt(m). Sample number m +
 * 5 sqrt(m) + 4 is therefore an upper bound that fails less than once in a
 * million calls. About n / S keys are expected per sample below the bound.
 *
 * Invariant: the result does not depend on the quality of the bounds. The
 * kernels read all keys if the bounds fail or the list overflows.
 *
 * Source: Floyd and Rivest, Expected time bounds for selection, 1975. */
#include "rank_select.h"
#include "kernel_params.h"

#include <math.h>

enum { SAMPLE, FILTER, DIGITS };
enum {
  SAMPLE_BLOCK = 1024,
  /* Threads per block for radix selections. A block of compute capability 5.3 or
   * 6.2 has half as many registers as others. */
  THREADS = 1024,
  FEW_THREADS = 512,
  FULL_REGISTERS = 65536,
  /* Samples of short, of longer and of long rows. */
  FEWEST_SAMPLES = 4096,
  FEW_SAMPLES = 8192,
  MANY_SAMPLES = 32768,
  SHORTEST_ROW = 1 << 20,
  SHORT_ROW = 1 << 25,
  /* Samples of very long rows, if only the lowest samples matter. On an H200,
   * 1,024 samples take 0.5 us. */
  MOST_SAMPLES = 65536,
  LONG_ROW = 1 << 27,
  /* If the upper bound is at most this sample, the kernel keeps the lowest
   * sample of each thread, and no sample in shared memory. */
  LOWEST = SAMPLE_BLOCK / 8,
  /* If the upper bound is at most this sample, and there are few selections,
   * several blocks take the sample, because one SM needs 5 us for 8,192 random
   * accesses. Each warp keeps its lowest sample in a tile descriptor of up to
   * PAIR_WORDS words. */
  LOWEST_OF_WARPS = SAMPLE_BLOCK / 32,
  SAMPLERS = 8,
  FEW_SELECTIONS = 4,
  PAIR_WORDS = 4,
  STATIC_SMEM = 20 << 10, /* shared memory of rank_sample without the sample */
  MOST_SELECTIONS = 256
};

/* Temporary memory that a launch for several selections may take in bytes. */
#define MOST_MEMORY (UINT64_C(64) << 20)

static const char *const kernels[] = {"rank_sample", "rank_filter",
                                      "rank_digits", NULL};
static const kiln__family family = {"rank_select", kernels,
                                    kiln__rank_select_params};

kiln__sort_order kiln__rank_order(const kiln__rank_shape *shape)
{
  return kiln__sort_order_of(shape->keys.type, shape->descending, true);
}

static unsigned key_size(const kiln__rank_plan *p)
{
  return (unsigned)kiln__size(p->shape.keys.type);
}

/* ---- Samples ------------------------------------------------------------- */

/* Returns the number of samples, or 0 if a sample would not help. */
static uint32_t samples_of(const kiln__rank_plan *p, size_t smem)
{
  const unsigned size = key_size(p);
  const uint64_t n = p->shape.n;
  uint32_t samples = n <= SHORTEST_ROW && p->shape.place_size > 0
                         ? FEWEST_SAMPLES
                     : n <= SHORT_ROW ? FEW_SAMPLES
                                      : MANY_SAMPLES;

  if (n < 4 * FEW_SAMPLES)
    return 0;
  while (samples > 1024 && (size_t)samples * size + STATIC_SMEM > smem)
    samples /= 2;
  return samples;
}

/* Returns the largest number of keys that `count` samples stand for. */
static uint64_t most_keys(const kiln__rank_args *a, double count)
{
  const double keys =
      (count + 6 * sqrt(count) + 16) * (double)a->n / a->samples;

  return keys < (double)a->n ? (uint64_t)keys : a->n;
}

/* Computes the bounds of one selection, and the number of candidates that it
 * may have. */
static uint64_t bound(kiln__rank_args *a, uint32_t q, bool bounded)
{
  kiln__rank_targets *t = &a->targets;
  const double part = (double)t->rank[q] / (double)a->n;
  const double m = part * a->samples;
  const double spread = 5 * sqrt(bounded ? m * (1 - part) : m) + 4;
  const double low = bounded && m > spread ? floor(m - spread) : 0;
  const double high = ceil(m + spread);

  t->low[q] = (uint32_t)low;
  t->high[q] = high > a->samples ? a->samples + 1 : (uint32_t)high;
  return most_keys(a, t->high[q] - low);
}

/* Returns whether the kernel needs only the lowest samples. */
static bool takes_lowest(const kiln__rank_plan *p)
{
  return p->shape.place_size > 0 && p->args.targets.high[0] <= LOWEST &&
         p->args.samples >= SAMPLE_BLOCK;
}

/* Computes the bounds and the capacity of the lists for a number of samples. */
static void use_samples(kiln__rank_args *a, uint32_t samples, bool bounded)
{
  a->samples = samples;
  a->stride = a->n / samples;
  a->capacity = 0;
  for (uint32_t q = 0; q < a->targets.n; q++) {
    const uint64_t most = bound(a, q, bounded);

    if (most > a->capacity)
      a->capacity = most;
  }
}

/* Chooses the sample, and the capacity of the lists of candidates. Lists that
 * would contain a quarter of the keys are not worth their memory. */
static void plan_samples(kiln__rank_plan *p, size_t smem, bool bounded)
{
  const uint32_t samples = samples_of(p, smem);
  kiln__rank_args *a = &p->args;

  if (samples == 0)
    return;
  if (a->n > LONG_ROW)
    use_samples(a, MOST_SAMPLES, bounded);
  if (!takes_lowest(p))
    use_samples(a, samples, bounded);
  if (a->capacity > a->n / 4)
    a->samples = 0;
  if (a->samples == 0)
    a->capacity = 0;
}

/* ---- Memory -------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

static void plan_memory(kiln__rank_plan *p, kiln__need *need)
{
  const kiln__rank_args *a = &p->args;
  const uint64_t pair = key_size(p) + p->shape.place_size;
  const uint64_t state =
      KILN__RANK_STATE + (uint64_t)a->steps * KILN__RANK_STEP;
  const uint64_t each = state + (a->capacity + a->kept) * pair;
  const uint64_t targets = a->targets.n;
  uint64_t rows = least(p->shape.rows, MOST_SELECTIONS / targets);

  rows = least(rows, MOST_MEMORY / (each * targets) + 1);
  p->chunk = rows * targets;
  p->states = kiln__need_temp(need, p->chunk * state);
  p->words = kiln__need_temp(need, p->chunk * a->capacity * key_size(p));
  p->places =
      kiln__need_temp(need, p->chunk * a->capacity * p->shape.place_size);
  p->chosen_words = kiln__need_temp(need, p->chunk * a->kept * key_size(p));
  p->chosen_places =
      kiln__need_temp(need, p->chunk * a->kept * p->shape.place_size);
}

/* ---- Plan ---------------------------------------------------------------- */

static uint32_t steps_of(const kiln__rank_plan *p)
{
  uint32_t steps = key_size(p);

  if (p->shape.place_size > 0)
    for (uint64_t last = p->shape.n - 1; last > 0; last >>= KILN__RADIX_BITS)
      steps++;
  return steps;
}

/* Chooses the number of blocks that take the sample of a selection. */
static void plan_samplers(kiln__rank_plan *p, kiln__need *need)
{
  const bool several = takes_lowest(p) && p->chunk <= FEW_SELECTIONS &&
                       p->args.targets.high[0] <= LOWEST_OF_WARPS;
  const size_t words =
      p->chunk * (SAMPLERS * SAMPLE_BLOCK / 32) * (size_t)PAIR_WORDS;

  p->samplers = several ? SAMPLERS : 1;
  if (several && need->descriptors < words)
    need->descriptors = words;
}

/* Returns how many blocks per selection a launch has, for `tiles` tiles. */
static uint32_t share(uint64_t blocks, uint64_t tiles, uint64_t selections)
{
  const uint64_t each = kiln__divide_up(blocks, selections);

  return (uint32_t)(each < tiles ? each : tiles == 0 ? 1 : tiles);
}

unsigned kiln__rank_digit_items(const kiln__rank_plan *p)
{
  return key_size(p) == 1 ? 1 : 2;
}

/* Returns the number of blocks per digit, for 64 KiB or more per block. Two
 * blocks per SM read long rows. Fewer blocks leave sooner if they are not
 * needed. */
static uint32_t workers_of(const kiln__rank_plan *p)
{
  const uint64_t bytes = p->shape.n * key_size(p);
  const uint64_t per_sm = bytes >> 28 > 0 ? 2 : 1;

  return share(per_sm * p->sm_count, kiln__divide_up(bytes, 64 << 10),
               p->chunk);
}

void kiln__rank_plan_make(kiln__rank_plan *p, kiln__need *need,
                          kiln_device *device, const kiln__rank_shape *shape,
                          const kiln__rank_targets *targets, bool bounded)
{
  const unsigned size = (unsigned)kiln__size(shape->keys.type);
  const uint64_t vector = 16 / size;

  *p = (kiln__rank_plan){
      .shape = *shape,
      .sm_count = (unsigned)kiln__sm_count(device),
      .block = device->traits.regs_per_block < FULL_REGISTERS ? FEW_THREADS
                                                              : THREADS,
      .quick = kiln__quick(shape->n) && device->traits.cc >= 90,
      .tuning = kiln__tuned(device, KILN__TUNED_TOP_K, size, shape->n)};
  p->args = (kiln__rank_args){.n = shape->n,
                              .kept = shape->kept,
                              .order = kiln__rank_order(shape),
                              .targets = *targets};
  if (p->tuning.items > 2 * size)
    p->tuning.items = (uint16_t)(2 * size);
  p->filter_tile = (uint64_t)p->tuning.block * p->tuning.items * vector;
  p->args.steps = steps_of(p);
  plan_samples(p, (size_t)device->traits.smem_per_block_optin, bounded);
  plan_memory(p, need);
  plan_samplers(p, need);
  p->args.workers = workers_of(p);
}

/* ---- Launches ------------------------------------------------------------ */

bool kiln__rank_aligned(const kiln__rank_shape *s)
{
  return s->keys.data % 16 == 0 &&
         (s->rows == 1 || s->n * kiln__size(s->keys.type) % 16 == 0);
}

static kiln__spec spec_of(const kiln__rank_plan *p)
{
  kiln__spec spec = {.family = &family};

  spec.quick = p->quick;
  spec.value[RANK_SELECT_BLOCK] = p->block;
  spec.value[RANK_SELECT_ITEMS] = kiln__rank_digit_items(p);
  spec.value[RANK_SELECT_KEY] = key_size(p);
  spec.value[RANK_SELECT_FLOAT] = kiln__dtype_of(p->shape.keys.type)->is_float;
  spec.value[RANK_SELECT_ALIGNED] = kiln__rank_aligned(&p->shape);
  spec.value[RANK_SELECT_PLACE] = p->shape.place_size;
  return spec;
}

size_t kiln__rank_specs(kiln__spec spec[3], const kiln__rank_plan *p)
{
  size_t n = 0;

  spec[0] = spec[1] = spec[2] = spec_of(p);
  spec[n].kernels = 1u << SAMPLE;
  spec[n++].value[RANK_SELECT_BLOCK] = SAMPLE_BLOCK;
  if (p->args.samples > 0) {
    spec[n].kernels = 1u << FILTER;
    spec[n].value[RANK_SELECT_BLOCK] = p->tuning.block;
    spec[n].value[RANK_SELECT_ITEMS] = p->tuning.items;
    spec[n++].value[RANK_SELECT_PER_SM] = p->tuning.per_sm;
  }
  if (!p->shape.own_digits)
    spec[n++].kernels = 1u << DIGITS;
  return n;
}

static kiln_status launch(const kiln__storage *storage,
                          const kiln_kernel *kernel, uint64_t blocks,
                          unsigned threads, size_t smem, uint64_t selections,
                          const kiln__rank_args *args)
{
  kiln_launch_config config =
      kiln__sort_launch(storage->stream, kernel, blocks, threads, smem);

  config.grid.y = (uint32_t)selections;
  return KILN_LAUNCH((kiln_kernel *)kernel, &config, KILN_ARG(*args));
}

kiln_status kiln__rank_queue(kiln__rank_args *args, kiln__storage *storage,
                             const kiln__kernel_set *const set[],
                             const kiln__rank_plan *p, uint64_t row,
                             uint64_t rows)
{
  const uint64_t selections = rows * p->args.targets.n;
  const uint64_t tiles = kiln__divide_up(p->shape.n, p->filter_tile);
  const uint64_t resident = (uint64_t)p->tuning.extra * p->sm_count;
  kiln_status st = KILN_OK;

  *args = p->args;
  args->in = p->shape.keys.data + row * p->shape.n * key_size(p);
  args->states = storage->temp + p->states;
  args->words = storage->temp + p->words;
  args->places = storage->temp + p->places;
  args->chosen_words = storage->temp + p->chosen_words;
  args->chosen_places = storage->temp + p->chosen_places;
  args->descriptors = storage->descriptors;
  args->epoch = p->samplers > 1 ? kiln__storage_epoch(storage) : 0;
  KILN_TRY(launch(storage, (*set++)->kernel[SAMPLE], p->samplers, SAMPLE_BLOCK,
                  takes_lowest(p) ? 0 : (size_t)args->samples * key_size(p),
                  selections, args));
  if (args->samples > 0)
    KILN_TRY(launch(storage, (*set++)->kernel[FILTER],
                    share(resident == 0 ? tiles : resident, tiles, selections),
                    p->tuning.block, 0, selections, args));
  if (!p->shape.own_digits)
    st = launch(storage, (*set)->kernel[DIGITS], kiln__rank_blocks(args),
                p->block, 0, selections, args);

done:
  return st;
}
