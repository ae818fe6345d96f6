/* scatter_model.c -- the cost model of gather and scatter, and a cache model
 * that counts the misses of a multi-pass scatter. All functions are pure.
 *
 * Problem: random accesses to a target larger than the cache are slow. The
 * target is the array that the indices point into. Windows (ranges of the
 * target, with one pass per range), a partition or a sort avoid random accesses
 * at the price of more streaming traffic. The fastest method depends on the
 * sizes and on the GPU, and must be known before the call.
 *
 * Idea: each method is a sequence of passes. A pass has streaming traffic,
 * cache misses for some elements, and single-element accesses through the
 * cache. The time of a pass is the larger of memory time and access time, plus
 * the latency of a launch. The method with the smallest total time is chosen if
 * its gain exceeds the error of the model.
 *
 * Source: He et al., Efficient Gather and Scatter Operations on Graphics
 * Processors, 2007, whose model of passes this file extends.
 *
 * The constants come from a random permutation of f32 on an H200 (4.33 TB/s of
 * streaming bandwidth, 132 SMs at 1.98 GHz, 60 MB of L2 cache):
 * - One pass of a gather took 25.4 ps per element at 2^28 elements, 15.4 ps at
 *   2^24 and 8.2 ps at 2^20. One pass of a scatter took 62.4, 47.9 and 13.3 ps
 *   per element. The target fits the cache at 2^20.
 * - Windows cost 3.7 ps per element of a gather and 15 ps per element of a
 *   scatter in addition to the streaming traffic (`window`). A gather of 2^24
 *   elements took 203, 213, 251 and 366 us in 2, 3, 4 and 6 windows, and 258 us
 *   in one pass.
 * - A partition is fastest if a bucket takes at most an eighth of the cache. A
 *   gather of 2^26 elements took 1,658, 1,381, 1,215, 1,158 and 1,217 us with
 *   buckets of 32, 16, 8, 4 and 2 MB.
 * - A sort of pairs by 16 bits uses two passes. With two 4-byte elements per
 *   pair, the sort took 3.93 ms at 2^28 pairs, 0.27 ms at 2^24 and 0.042 ms at
 *   2^20. A scatter of 2^24 elements took 0.319 ms by sorting and 0.348 ms in
 *   two windows. */
#include "indexed.h"

#include <string.h>

enum {
  SECTOR = 32, /* minimum number of bytes that one cache access moves */
  BURST = 64,  /* minimum number of bytes that one memory access moves */
  MAX_WINDOWS = 65535
};

/* Constants of the cost model that differ between gather and scatter. */
typedef struct kind {
  double share; /* fraction of the cache that holds the target */
  /* Cost of a cache miss, in bytes of streaming traffic that take the same
   * time. */
  double miss;
  /* Number of element accesses through the cache per SM and cycle. */
  double rate;
  double window; /* additional cost per element and window, in cache accesses */
  double windowed; /* fraction of the cache that holds a window of the target */
  double partial;  /* bytes moved for a partly written sector */
  /* Cost per element of the kernels of a partition, in cache accesses. */
  double count, split, join;
  /* Costs of a sort of pairs. `sorted` is the additional cost per byte moved,
   * in bytes of streaming traffic. `step` is the part of the time of a pass
   * that does not overlap with other work, in ms. */
  double sorted, step;
  /* Cost of writing a sorted bucket to `out`, in cache accesses per element of
   * `out`. */
  double piece;
  bool scatter;
} kind;

static const kind gather_kind = {.share = 0.48,
                                 .miss = 101,
                                 .rate = 0.47,
                                 .window = 0.45,
                                 .windowed = 0.48,
                                 .partial = SECTOR,
                                 .count = 0.1,
                                 .split = 0.5,
                                 .join = 0.43,
                                 .scatter = false};
static const kind scatter_kind = {
    .share = 0.28,
    .miss = 270,
    .rate = 0.29,
    .window = 1.19,
    .windowed = 0.55,
    /* A partly written sector is read first and then
                              * written. */
    .partial = 2 * SECTOR,
    .count = 0.06,
    .split = 0.9,
    .join = 0,
    .sorted = 0.78,
    .step = 4e-3,
    .piece = 0.08,
    .scatter = true};

typedef struct rates {
  double bandwidth; /* streaming bandwidth in bytes per second */
  double accesses;  /* element accesses through the cache per second */
  double cache;     /* bytes of the target that the cache holds */
  double window;    /* size in bytes of a window that the cache holds */
  double piece;     /* size in bytes of a bucket of a partition */
} rates;

static double or_guess(double value, double guess)
{
  return value > 0 ? value : guess;
}

static rates rates_of(const kiln_device_info *gpu, const kind *k)
{
  const double peak =
      2e3 * gpu->memory_clock_khz * (gpu->memory_bus_bits / 8.0);
  const double cycles =
      1e3 * or_guess(gpu->clock_khz, 1.5e6) * or_guess(gpu->sm_count, 16);

  return (rates){.bandwidth = 0.88 * or_guess(peak, 300e9),
                 .accesses = k->rate * cycles,
                 .cache = k->share * or_guess(gpu->l2_bytes, 4 << 20),
                 .window = k->windowed * or_guess(gpu->l2_bytes, 4 << 20),
                 .piece = 0.15 * or_guess(gpu->l2_bytes, 4 << 20)};
}

/* The properties of a call that the cost of every method depends on. */
typedef struct call {
  const kind *k;
  rates r;
  double n, target; /* number of elements */
  /* Bytes per element, per index, and per index in temporary memory. */
  double element, index, stored;
  bool sorts;     /* true if the call can use a sort */
  double touched; /* bytes of the target that every method moves once */
} call;

static double target_bytes(const call *c)
{
  return c->target * c->element;
}

/* Returns 1 - exp(-x) for x >= 0, to three digits. The library does not link
 * libm. */
static double one_minus_exp(double x)
{
  double y;

  if (x > 20)
    return 1;
  x /= 1024;
  y = 1 - x + x * x / 2;
  for (int i = 0; i < 10; i++)
    y *= y;
  return 1 - y;
}

/* Returns the cost of all sectors of the target that n random indices touch. A
 * sector with one touched element costs a cache miss. A sector in which all
 * elements are written costs only its bytes. */
static double touched_bytes(const call *c)
{
  const double all = target_bytes(c) / SECTOR;
  const double sectors = all > 1 ? all : 1;
  const double each = c->n / sectors;
  const double touched = sectors * one_minus_exp(each);

  if (each < 1)
    return touched * c->k->miss;
  return touched * (each * c->element < SECTOR ? c->k->partial : SECTOR);
}

static call call_of(const kind *k, const kiln_device_info *gpu,
                    const kiln_index_shape *shape)
{
  call c = {.k = k,
            .r = rates_of(gpu, k),
            .n = (double)shape->n,
            .target =
                (double)(shape->n_target != 0 ? shape->n_target : shape->n),
            .element = shape->element_size,
            .index = shape->index_size};

  c.stored = shape->n_target <= UINT64_C(1) << 32 ? 4 : c.index;
  c.touched = touched_bytes(&c);
  c.sorts = k->scatter && kiln__sort_fits(shape->element_size,
                                          shape->index_size, shape->n_target);
  return c;
}

/* ---- Methods ------------------------------------------------------------- */

static void add_pass(kiln_index_plan *p, const call *c, double stream,
                     double missed, double accesses)
{
  const double memory = (stream + missed) / c->r.bandwidth;
  const double cache = accesses / c->r.accesses;

  p->stream_bytes += stream;
  p->missed_bytes += missed;
  p->cached_accesses += accesses;
  p->ms += 2.5e-3 + 1e3 * (memory > cache ? memory : cache);
}

/* Returns the cost of cache misses, in bytes of streaming traffic, if the
 * target is handled in pieces of `piece` bytes. */
static double missed_in(const call *c, double piece, double cache)
{
  const double held = piece <= cache ? 1 : cache / piece;

  return c->n * (1 - held) * c->k->miss + held * c->touched;
}

/* In a multi-pass method, the memory transfers the array beside the target
 * several times. In each pass, it transfers only those units of `bytes` bytes
 * that contain an element of the pass. Returns the number of transfers, as the
 * sum over all passes of the fraction of units that the pass touches. */
static double passes_over(const call *c, double passes, double bytes)
{
  const int elements = (int)(bytes / c->element);
  double untouched = 1;

  for (int i = 0; i < elements; i++)
    untouched *= 1 - 1 / passes;
  return passes * (1 - untouched);
}

static void rate_direct(kiln_index_plan *p, const call *c)
{
  /* A target that is not larger than a window needs no windows. */
  const double cache =
      target_bytes(c) <= c->r.window ? c->r.window : c->r.cache;

  p->passes = 1;
  add_pass(p, c, c->n * (c->index + c->element),
           missed_in(c, target_bytes(c), cache), c->n);
}

static void rate_windows(kiln_index_plan *p, const call *c)
{
  const double passes = p->passes;
  const bool scatters = c->k->scatter;
  /* The first pass of a gather writes the whole output. Each further pass reads
   * and writes only parts of the output. */
  const double others =
      scatters ? passes_over(c, passes, SECTOR)
               : 1 + 2 * (passes - 1) / passes * passes_over(c, passes, BURST);

  add_pass(p, c, c->n * (passes * c->index + others * c->element),
           missed_in(c, target_bytes(c) / passes, c->r.window),
           scatters ? 0 : c->n);
  if (!scatters) /* a gather needs one launch per window */
    p->ms += 2.5e-3 * (passes - 1);
  /* In a pass over a window, most lanes are idle. Too few cache accesses are
   * then in flight to overlap with the DRAM traffic, so the time of the cache
   * accesses is added to the time of the DRAM traffic. */
  p->cached_accesses += c->n * c->k->window;
  p->ms += 1e3 * c->n * c->k->window / c->r.accesses;
}

static void rate_partition(kiln_index_plan *p, const call *c)
{
  const kind *k = c->k;
  const double moved =
      c->index + c->stored + (k->scatter ? 2 * c->element : 2 /* slot */);

  add_pass(p, c, 0, 0, 0); /* this launch clears the counters */
  add_pass(p, c, c->n * c->index, 0, k->count * c->n);
  /* This launch searches for the starts of the buckets. */
  add_pass(p, c, 0, 0, 0);
  add_pass(p, c, c->n * moved, 0, k->split * c->n);
  add_pass(p, c, c->n * (c->stored + c->element),
           missed_in(c, target_bytes(c) / p->passes, c->r.cache), c->n);
  if (!k->scatter)
    add_pass(p, c, c->n * (2 * c->element + 2), 0, k->join * c->n);
}

/* Returns the time of the binary search for the start of a bucket. Each access
 * of the search depends on the access before it. */
static double search_ms(uint64_t n)
{
  double ms = 0;

  for (; n > 1; n = (n + 1) / 2)
    ms += 0.5e-3;
  return ms;
}

static void rate_sort(kiln_index_plan *p, const call *c)
{
  const double most = 4294967296.0, pair = 4 + c->element;
  const kiln__sort_bits bits =
      kiln__sort_bits_of((uint64_t)(c->target < 1      ? 1
                                    : c->target > most ? most
                                                       : c->target),
                         (unsigned)c->element);

  p->passes = 1;
  if (c->index > 4)
    add_pass(p, c, c->n * (c->index + 4), 0, 0);
  add_pass(p, c, 0, 0, 0); /* this launch clears the tile descriptors */
  add_pass(p, c, c->n * 4, 0, 0);
  for (unsigned k = 0; k < bits.passes; k++) {
    add_pass(p, c, c->n * 2 * pair, c->n * 2 * pair * c->k->sorted, 0);
    p->ms += c->k->step;
  }
  /* This launch searches for the starts of the buckets. */
  add_pass(p, c, 0, 0, 0);
  p->ms += search_ms((uint64_t)c->n);
  add_pass(p, c, c->n * pair, c->touched, c->k->piece * c->target);
}

static void rate(kiln_index_plan *p, const call *c)
{
  p->stream_bytes = p->missed_bytes = p->cached_accesses = p->ms = 0;
  if (p->method == KILN_INDEX_WINDOWS)
    rate_windows(p, c);
  else if (p->method == KILN_INDEX_PARTITION)
    rate_partition(p, c);
  else if (p->method == KILN_INDEX_SORT)
    rate_sort(p, c);
  else
    rate_direct(p, c);
}

/* ---- Choices ------------------------------------------------------------- */

/* Returns the number of buckets with which a partition is fastest. The number
 * is a power of two. It is limited by the number of counters that fit in shared
 * memory. */
static uint32_t parts_for(const call *c)
{
  uint32_t parts = 1;

  while (parts < KILN__MAX_BUCKETS && target_bytes(c) / parts > c->r.piece)
    parts *= 2;
  return parts;
}

static void try_plan(kiln_index_plan *best, const call *c,
                     kiln_index_method method, uint32_t passes)
{
  kiln_index_plan p = {.method = method, .passes = passes};

  rate(&p, c);
  if (best->method == KILN_INDEX_AUTO || p.ms < best->ms)
    *best = p;
}

static void best_windows(kiln_index_plan *best, const call *c)
{
  static const uint16_t passes[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

  for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++)
    try_plan(best, c, KILN_INDEX_WINDOWS, passes[i]);
}

/* Chooses a method. Any method other than a single direct pass must have a
 * predicted gain above the error of the model. */
static void choose(kiln_index_plan *plan, const call *c)
{
  kiln_index_plan direct = {0}, other = {0}, sorted = {0};

  try_plan(&direct, c, KILN_INDEX_DIRECT, 1);
  *plan = direct;
  if (target_bytes(c) <= c->r.cache)
    return; /* the cache holds the whole target, so one direct pass is enough */
  best_windows(&other, c);
  try_plan(&other, c, KILN_INDEX_PARTITION, parts_for(c));
  if (c->sorts) {
    try_plan(&sorted, c, KILN_INDEX_SORT, 1);
    /* A sort takes the most memory, so it is chosen only if it is clearly
     * faster. */
    if (sorted.ms < 0.95 * other.ms)
      other = sorted;
  }
  if (other.ms < 0.85 * direct.ms)
    *plan = other;
}

static kiln_status plan_for(const kind *k, const kiln_device_info *gpu,
                            const kiln_index_shape *shape,
                            kiln_index_plan *plan)
{
  call c;

  if (gpu == NULL || shape == NULL || plan == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "gpu, shape or plan is NULL");
  if (shape->element_size == 0 ||
      (shape->index_size != 4 && shape->index_size != 8))
    return kiln__fail(KILN_EINVAL, NULL,
                      "elements of %u bytes and indices of %u bytes",
                      shape->element_size, shape->index_size);
  if ((unsigned)plan->method > KILN_INDEX_SORT)
    return kiln__fail(KILN_EINVAL, NULL, "method %d is no kiln_index_method",
                      (int)plan->method);
  if (plan->method == KILN_INDEX_WINDOWS && plan->passes > MAX_WINDOWS)
    return kiln__fail(KILN_EINVAL, NULL, "%u passes; the maximum is 65,535",
                      plan->passes);
  if (plan->method == KILN_INDEX_PARTITION && plan->passes > KILN__MAX_BUCKETS)
    return kiln__fail(KILN_EINVAL, NULL, "%u buckets; the maximum is 1,024",
                      plan->passes);
  c = call_of(k, gpu, shape);
  if (plan->method == KILN_INDEX_SORT && !c.sorts)
    return kiln__fail(KILN_EINVAL,
                      "kiln_scatter() supports this method for elements of 1, "
                      "2, 4 or 8 bytes; indices of 64 bits need an n_target "
                      "of at most 2^32",
                      "KILN_INDEX_SORT is not possible for this call");
  if (plan->method == KILN_INDEX_AUTO) {
    choose(plan, &c);
  } else if (plan->method == KILN_INDEX_WINDOWS && plan->passes == 0) {
    *plan = (kiln_index_plan){0};
    best_windows(plan, &c);
  } else {
    uint32_t parts = 1;

    while (parts < plan->passes)
      parts *= 2;
    if (plan->method == KILN_INDEX_PARTITION)
      plan->passes = plan->passes == 0 ? parts_for(&c) : parts;
    rate(plan, &c);
  }
  return KILN_OK;
}

kiln_status kiln_scatter_plan(const kiln_device_info *gpu,
                              const kiln_index_shape *shape,
                              kiln_index_plan *plan)
{
  return plan_for(&scatter_kind, gpu, shape, plan);
}

kiln_status kiln_gather_plan(const kiln_device_info *gpu,
                             const kiln_index_shape *shape,
                             kiln_index_plan *plan)
{
  return plan_for(&gather_kind, gpu, shape, plan);
}

/* ---- Choice on the device ------------------------------------------------ */

/* Returns the number of bytes of the target in use at a time up to which a
 * direct pass is at least as fast as another method that takes `ms`. */
static double local_bytes(const call *c, double ms)
{
  const double streamed = c->n * (c->index + c->element);
  const double allowed = 1e-3 * ms * c->r.bandwidth - streamed;
  const double missed = c->n * c->k->miss;
  /* The cache must hold this share of the target. */
  const double held = missed > c->touched && missed > allowed
                          ? (missed - allowed) / (missed - c->touched)
                          : 0;

  return held > 1e-3 ? c->r.cache / held : 1e3 * c->r.cache;
}

/* Returns the expected number of distinct regions among `samples` random
 * accesses to `regions` regions. */
static double distinct(double samples, double regions)
{
  return regions * one_minus_exp(samples / regions);
}

/* Returns the number of repeated sectors from which on the indices are skewed:
 * at least one in six samples, and more than random indices into a quarter of
 * the cache repeat. Of indices with the frequencies 1, 1/2, 1/3, ... of a million
 * elements, one in four repeats, and the cache serves nearly all accesses. */
static uint32_t skewed_from(const call *c)
{
  const double samples = (double)KILN__SAMPLE_STRETCHES * KILN__SAMPLES;
  const double sectors = c->r.cache / (4 * 8 * c->element);
  const double repeats = samples - distinct(samples, sectors);

  return (uint32_t)(repeats > samples / 6 ? repeats : samples / 6);
}

kiln__sampling kiln__sampling_of(const kiln_device_info *gpu,
                                 const kiln_index_shape *shape,
                                 const kiln_index_plan *plan, bool scatter)
{
  const call c = call_of(scatter ? &scatter_kind : &gather_kind, gpu, shape);
  kiln__sampling s = {.stretch = KILN__SAMPLES};
  double regions;

  /* Sequential indices of a stretch use at most a quarter of the cache. */
  while (2.0 * (double)s.stretch * c.element <= c.r.cache / 4 &&
         2 * s.stretch <= shape->n / KILN__SAMPLE_STRETCHES)
    s.stretch *= 2;
  while (s.shift < 31 &&
         (double)(UINT64_C(2) << s.shift) * c.element <= c.r.cache / 16)
    s.shift++;
  regions = local_bytes(&c, plan->ms) /
            ((double)(UINT64_C(1) << s.shift) * c.element);
  s.limit =
      (uint32_t)(KILN__SAMPLE_STRETCHES * distinct(KILN__SAMPLES, regions));
  s.skewed = skewed_from(&c);
  return s;
}

/* ---- A model of a small cache ------------------------------------------- */

enum { MOST = 64 };

typedef struct cache {
  uint64_t line[MOST]; /* cache lines, most recently used first */
  size_t used, size;
} cache;

/* Returns whether the cache holds the line, and makes it the most recently used
 * line. */
static bool touch(cache *c, uint64_t line)
{
  for (size_t i = 0; i < c->used; i++)
    if (c->line[i] == line) {
      memmove(c->line + 1, c->line, i * sizeof c->line[0]);
      c->line[0] = line;
      return true;
    }
  return false;
}

static void bring(cache *c, uint64_t line)
{
  if (c->used < c->size)
    c->used++;
  memmove(c->line + 1, c->line, (c->used - 1) * sizeof c->line[0]);
  c->line[0] = line;
}

/* Simulates simultaneous accesses to the cache. Cache hits are served first,
 * then misses in the order of their cache lines. A missing line is fetched once
 * for all accesses to that line. Returns the number of lines fetched. */
static uint64_t access_lines(cache *c, uint64_t *line, size_t n)
{
  uint64_t misses = 0;
  size_t rest = 0;

  for (size_t i = 0; i < n; i++)
    if (!touch(c, line[i]))
      line[rest++] = line[i];
  for (size_t i = 1; i < rest; i++)
    for (size_t k = i; k > 0 && line[k - 1] > line[k]; k--) {
      const uint64_t swap = line[k];

      line[k] = line[k - 1];
      line[k - 1] = swap;
    }
  for (size_t i = 0; i < rest; i++)
    if (i == 0 || line[i] != line[i - 1]) {
      bring(c, line[i]);
      misses++;
    }
  return misses;
}

kiln_status kiln_scatter_misses(const kiln_cache_model *model,
                                const uint32_t *index, size_t n,
                                uint64_t n_target, uint32_t passes,
                                uint64_t *misses)
{
  cache c = {.used = 0};
  uint64_t window;

  if (misses == NULL || model == NULL || (index == NULL && n > 0))
    return kiln__fail(KILN_EINVAL, NULL, "cache, index or misses is NULL");
  *misses = 0;
  if (model->line == 0 || model->lines == 0 || model->lines > MOST ||
      model->threads == 0 || model->threads > MOST || passes == 0)
    return kiln__fail(KILN_EINVAL,
                      "set elements per line, lines and threads (1 to 64 each) "
                      "and passes",
                      "the cache model is incomplete or out of range");
  c.size = model->lines;
  window = kiln__divide_up(n_target, passes);
  for (uint32_t pass = 0; pass < passes; pass++)
    for (size_t i = 0; i < n; i += model->threads) {
      uint64_t line[MOST];
      size_t here = 0;

      for (size_t k = i; k < n && k < i + model->threads; k++)
        if (window == 0 || index[k] / window == pass)
          line[here++] = index[k] / model->line;
      *misses += access_lines(&c, line, here);
    }
  return KILN_OK;
}
