/* rank_select.cu -- the part of top-k and of quantiles that reads long rows: find a
 * small set of candidates by one read of the keys, and select among them or among all
 * keys by digits.
 *
 * Problem: select the words of given ranks without sorting. A radix selection reads all
 * keys once per digit.
 *
 * Idea: one block takes a sample of the keys and derives bounds from it, so that very
 * probably the wanted words are between the bounds, and few other words. One read of the
 * keys lists the words between the bounds, the candidates. Counts prove whether the
 * candidates suffice. If they do not, a radix selection reads all keys instead
 * (rank_digits.cuh). It is one launch, whose blocks leave at once if they are not needed.
 * The host never waits.
 *
 * Bounds are pairs of word and place if the selection needs places, so that few different
 * values or sorted keys do not give more candidates than random keys do.
 *
 * Invariant: the selected words follow from the keys alone. The sample, the order of the
 * list of candidates and the number of blocks have no influence.
 *
 * Cost: one read of the keys, if the candidates suffice. Otherwise one read more per
 * digit that is needed, and one to collect the result.
 * Source: Floyd and Rivest, Expected time bounds for selection, 1975.
 *
 * Parameters:
 *   KILN_BLOCK    512  threads per block, a multiple of 32, at least 256
 *   KILN_ITEMS    2    vectors of 16 bytes in flight per thread, at most 2 * KILN_KEY
 *   KILN_PER_SM   0    minimum number of resident blocks per SM; 0 sets no limit
 *   KILN_KEY      4    bytes per key: 1, 2, 4 or 8
 *   KILN_FLOAT    0    1 if keys are floats
 *   KILN_ALIGNED  1    1 if all rows are aligned to 16 bytes
 *   KILN_PLACE    4    bytes per place, 4 or 8; 0 selects words only, and finds the
 *                      next greater word if it is needed
 * Launch: blockIdx.y is the selection: selection y is for row y / targets.n and for
 *         target y % targets.n.
 *         rank_sample  one block per selection; dynamic shared memory for `samples` keys,
 *                      unless the lowest sample of each thread suffices. If the
 *                      lowest sample of each warp suffices, there may be up to
 *                      KILN_BLOCK / 32 blocks per selection, with a tile descriptor
 *                      per warp. It also clears the state for the other kernels.
 *         rank_filter  any number of blocks per selection; not needed if samples is 0
 *         rank_digits  workers * (steps + 1) blocks per selection, if the cut is
 *                      needed
 * Result: the states, and lists of candidates and of selected words. */
#include <kiln/params/rank_select.cuh>

#include <kiln/look_back.cuh>
#include <kiln/rank_digits.cuh>
#include <kiln/rank_sort.cuh>

typedef kiln::rank_key key;
typedef kiln::rank_place place;

/* A minimum of one block per SM lets the compiler use all registers. */
#define KILN_RANK_BOUNDS                                                       \
  __launch_bounds__(KILN_BLOCK, KILN_PER_SM > 0 ? KILN_PER_SM : 1)

/* ---- Sample -------------------------------------------------------------- */

#if KILN_MAKES(rank_sample)
extern __shared__ uint4 shared[];

static __device__ __forceinline__ void clear_words(void *from, unsigned n)
{
  unsigned long long *words = static_cast<unsigned long long *>(from);

#pragma unroll 1
  for (unsigned i = threadIdx.x; i < n; i += KILN_BLOCK)
    words[i] = 0;
}

/* The first block clears the steps, and the last one the state. */
static __device__ __forceinline__ void clear_state(const kiln::rank_args &s,
                                                   kiln::rank_state *state)
{
  if (blockIdx.x == 0)
    clear_words(state + 1,
                s.steps * static_cast<unsigned>(sizeof(kiln::rank_step) / 8));
  if (blockIdx.x + 1 < gridDim.x)
    return;
  clear_words(state, sizeof(kiln::rank_state) / 8);
  __syncthreads();
  if (threadIdx.x == 0) {
    /* Without samples there are no candidates. */
    state->found = s.samples == 0 ? ~0ull : 0;
    state->next = ~0ull;
  }
}

/* Returns the place of a sample. Each of the `samples` strides of the row gives one key at
 * a pseudorandom place, so that periodic inputs are sampled well. */
static __device__ __forceinline__ unsigned long long
sample_place(const kiln::rank_args &s, unsigned j)
{
  unsigned hash = j * 0x9e3779b1u;

  hash = (hash ^ hash >> 15) * 0x85ebca77u;
  hash ^= hash >> 13;
  return j * s.stride +
         (static_cast<unsigned long long>(hash) * s.stride >> 32);
}

static __device__ __forceinline__ void take_all(const kiln::rank_args &s,
                                                key *sample)
{
  const key *in = kiln::rank_row(s);

#pragma unroll 8
  for (unsigned j = threadIdx.x; j < s.samples; j += KILN_BLOCK)
    sample[j] = kiln::rank_word(in[sample_place(s, j)], s.order);
}

/* Returns sample number `bound`, counted from 1, or a little more with places. *last
 * receives the bound of the places of words that are equal to it. */
static __device__ __forceinline__ unsigned long long
bound_word(kiln::rank_counters &r, const kiln::rank_args &s, const key *sample,
           unsigned bound, unsigned long long *last)
{
  const kiln::rank_cut<key> cut = kiln::rank_block<key>(
      r, s.samples, bound, KILN_PLACE > 0 ? bound + bound / 4 : 0,
      [&](unsigned i, key &w) {
        w = sample[i];
        return true;
      });

  *last = ~0ull;
#if KILN_PLACE > 0
  if (cut.shift == 0 && cut.want < cut.left)
    *last =
        kiln::rank_block<place>(r, s.samples, cut.want, 0,
                                [&](unsigned i, place &at) {
                                  at = static_cast<place>(sample_place(s, i));
                                  return cut.at(sample[i]);
                                })
            .prefix;
#endif
  return static_cast<unsigned long long>(cut.prefix) << cut.shift |
         ((1ull << cut.shift) - 1);
}

#if KILN_PLACE > 0
typedef kiln::rank_pairs<KILN_BLOCK> lowest;

enum : unsigned { sample_warps = KILN_BLOCK / kiln::warp_size };

/* Returns the lowest sample of the thread. */
static __device__ __forceinline__ kiln::rank_pair
lowest_sample(const kiln::rank_args &s)
{
  const key *in = kiln::rank_row(s);
  kiln::rank_pair least = {static_cast<key>(~key(0)),
                           static_cast<place>(~place(0))};

#pragma unroll 8
  for (unsigned j = blockIdx.x * KILN_BLOCK + threadIdx.x; j < s.samples;
       j += gridDim.x * KILN_BLOCK) {
    const unsigned long long i = sample_place(s, j);
    const kiln::rank_pair mine = {kiln::rank_word(in[i], s.order),
                                  static_cast<place>(i)};

    least = mine.before(least, false) ? mine : least;
  }
  return least;
}

/* Returns the lowest of the samples of `share` lanes, a power of two. */
static __device__ __forceinline__ kiln::rank_pair
lowest_of(kiln::rank_pair least, unsigned share)
{
#pragma unroll 1
  for (unsigned step = 1; step < share; step *= 2) {
    const kiln::rank_pair other = {kiln::shuffle_xor(least.word, step),
                                   kiln::shuffle_xor(least.at, step)};

    least = other.before(least, false) ? other : least;
  }
  return least;
}

/* Publishes the lowest sample of each warp. The last block waits for the others, and
 * stores these samples. */
static __device__ __forceinline__ void
collect_lowest(const kiln::rank_args &s, lowest &p, kiln::rank_pair least)
{
  const unsigned all = gridDim.x * sample_warps;
  unsigned long long *const words =
      s.descriptors + static_cast<unsigned long long>(blockIdx.y) * all *
                          kiln::descriptor_words<kiln::rank_pair>::count;

  if (kiln::lane() == 0)
    kiln::tile_publish(words, blockIdx.x * sample_warps + kiln::warp(), least,
                       kiln::descriptor_tag(s.epoch, kiln::status_partial));
  if (blockIdx.x + 1 < gridDim.x || threadIdx.x >= all)
    return;
  while (kiln::tile_peek(words, threadIdx.x, s.epoch, &least) == 0)
    kiln::tile_pause();
  p.word[threadIdx.x] = least.word;
  p.at[threadIdx.x] = least.at;
}

/* Takes the lowest sample of each warp if there are several blocks, of each 4 threads if
 * few samples matter, or of each thread. The last block sorts these. The first of them are
 * almost the lowest of all samples. They can only give a looser bound, which takes less
 * time. */
static __device__ __forceinline__ void take_lowest(const kiln::rank_args &s,
                                                   lowest &p, unsigned bound)
{
  const bool several = gridDim.x > 1;
  const unsigned share = several                    ? kiln::warp_size
                         : bound <= KILN_BLOCK / 32 ? 4
                                                    : 1;
  const kiln::rank_pair least = lowest_of(lowest_sample(s), share);

  if (several) {
    collect_lowest(s, p, least);
  } else if (threadIdx.x % share == 0) {
    p.word[threadIdx.x / share] = least.word;
    p.at[threadIdx.x / share] = least.at;
  }
  if (blockIdx.x + 1 < gridDim.x)
    return;
  __syncthreads();
  kiln::rank_sort(p, gridDim.x * KILN_BLOCK / share, false);
}
#else
struct lowest {
};
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    rank_sample(const kiln::rank_args s)
{
  __shared__ union {
    kiln::rank_counters counters;
    lowest pairs;
  } r;
  key *const sample = reinterpret_cast<key *>(shared);
  kiln::rank_state *const state = kiln::rank_state_of(s, blockIdx.y);
  const unsigned q = blockIdx.y % s.targets.n;
  const unsigned bound[2] = {s.targets.low[q], s.targets.high[q]};
  unsigned long long word[2] = {0, ~0ull}, last = ~0ull;

  kiln::launch_wait();
  kiln::launch_next();
  clear_state(s, state);
  if (s.samples == 0)
    return;
#if KILN_PLACE > 0
  if (bound[1] <= KILN_BLOCK / 8 && s.samples >= KILN_BLOCK) {
    take_lowest(s, r.pairs, bound[1]);
    if (threadIdx.x == 0 && blockIdx.x + 1 == gridDim.x) {
      state->high = r.pairs.word[bound[1] - 1];
      state->place = r.pairs.at[bound[1] - 1];
    }
    return;
  }
#endif
  take_all(s, sample);
  __syncthreads();
#pragma unroll 1
  for (unsigned b = KILN_PLACE > 0 ? 1 : 0; b < 2; ++b)
    if (bound[b] > 0 && bound[b] <= s.samples)
      word[b] = bound_word(r.counters, s, sample, bound[b], &last);
  if (threadIdx.x == 0) {
    state->low = word[0];
    state->high = word[1];
    state->place = last;
  }
}
#endif

/* ---- Filter -------------------------------------------------------------- */

#if KILN_MAKES(rank_filter)
#if KILN_PLACE > 0
/* A visitor that lists the pairs of word and place up to (high, last). */
struct filter {
  kiln::rank_appender append;
  const key *in;
  kiln::radix_order order;
  key high;
  unsigned long long last;

  /* Most batches have places beyond `last`, and need words below `high`. The places of
   * equal words are compared only for hits. Hits are rare, so their words are loaded
   * again, instead of one vote per slot. */
  __device__ __forceinline__ void batch(const key (&word)[kiln::rank_slots],
                                        unsigned mask, kiln::rank_batch places)
  {
    const bool ties = places.first <= last;
    const key most = static_cast<key>(ties ? high : high - 1);
    unsigned hits = 0;

#pragma unroll
    for (unsigned e = 0; e < kiln::rank_slots; ++e)
      if (word[e] <= most)
        hits |= 1u << e;
    hits = ties || high > 0 ? hits & mask : 0;
#pragma unroll 1
    for (; kiln::warp_any(hits != 0); hits &= hits - 1) {
      const unsigned long long at =
          places.of(hits == 0 ? 0 : static_cast<unsigned>(__ffs(hits)) - 1);

      single(hits != 0, hits != 0 ? kiln::rank_word(in[at], order) : key(0),
             static_cast<place>(at));
    }
  }
  __device__ __forceinline__ void single(bool valid, key word, place at)
  {
    append.push(valid && (word < high || (word == high && at <= last)), word,
                at);
  }
};
#else
/* A visitor that lists the words between the bounds, and counts the words at the bounds
 * and below. */
struct filter {
  kiln::rank_appender append;
  const key *in;
  kiln::radix_order order;
  key low, high;
  unsigned below, at_low, at_high;

  /* Counts a word, and returns whether it is between the bounds. */
  __device__ __forceinline__ bool count(bool valid, key w)
  {
    below += valid && w < low ? 1 : 0;
    at_low += valid && w == low ? 1 : 0;
    at_high += valid && w == high ? 1 : 0;
    return valid && w > low && w < high;
  }
  __device__ __forceinline__ void batch(const key (&word)[kiln::rank_slots],
                                        unsigned mask, kiln::rank_batch places)
  {
    unsigned hits = 0;

#pragma unroll
    for (unsigned e = 0; e < kiln::rank_slots; ++e)
      if (count((mask >> e & 1u) != 0, word[e]))
        hits |= 1u << e;
#pragma unroll 1
    for (; kiln::warp_any(hits != 0); hits &= hits - 1) {
      const unsigned long long at =
          places.of(hits == 0 ? 0 : static_cast<unsigned>(__ffs(hits)) - 1);

      append.push(hits != 0,
                  hits != 0 ? kiln::rank_word(in[at], order) : key(0), 0);
    }
  }
  __device__ __forceinline__ void single(bool valid, key word, place)
  {
    append.push(count(valid, word), word, 0);
  }
};

/* Adds a number that each thread has counted to a total of the selection. */
static __device__ __forceinline__ void add(unsigned long long *to,
                                           unsigned mine)
{
  const unsigned long long total =
      kiln::block_reduce(static_cast<unsigned long long>(mine), kiln::sum());

  if (threadIdx.x == 0 && total > 0)
    atomicAdd(to, total);
}
#endif

extern "C" __global__ void KILN_RANK_BOUNDS rank_filter(const kiln::rank_args s)
{
  __shared__ kiln::rank_queue queue[kiln::rank_warps];
  kiln::rank_state *const state = kiln::rank_state_of(s, blockIdx.y);
  const unsigned long long list = blockIdx.y * s.capacity;

  kiln::launch_wait();
  kiln::launch_next();
  {
    const kiln::rank_source from = {kiln::rank_row(s), nullptr, nullptr, s.n,
                                    s.order,           false};
    const kiln::rank_appender append = {queue[kiln::warp()], &state->found,
                                        s.words + list,      s.places + list,
                                        s.capacity,          0};
#if KILN_PLACE > 0
    filter f = {append, from.in, s.order, static_cast<key>(state->high),
                state->place};
#else
    filter f = {append,
                from.in,
                s.order,
                static_cast<key>(state->low),
                static_cast<key>(state->high),
                0,
                0,
                0};
#endif

    from.visit(0, s.n, blockIdx.x, gridDim.x, f);
    f.append.end();
#if KILN_PLACE == 0
    add(&state->below, f.below);
    add(&state->at_low, f.at_low);
    add(&state->at_high, f.low == f.high ? 0 : f.at_high);
#endif
  }
}
#endif

/* ---- Digits -------------------------------------------------------------- */

#if KILN_MAKES(rank_digits)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 1)
    rank_digits(const kiln::rank_args s)
{
  __shared__ kiln::rank_digit_storage r;
  kiln::rank_state *const state = kiln::rank_state_of(s, blockIdx.y);

  kiln::launch_wait();
  kiln::launch_next();
  kiln::rank_by_digits(r, s, state,
                       kiln::rank_listed(s, state, blockIdx.y % s.targets.n));
}
#endif
