/* merge_path.cuh -- divides the merge of sorted runs into independent parts.
 *
 * Problem: the first d outputs of a stable merge consist of the first at[r] elements of
 * each run r. Find these numbers without merging.
 * Idea for two runs in shared memory: one thread bisects along diagonal d (merge path:
 * Odeh, Green, Mwassi, Shmueli and Birk, Merge Path - Parallel Merging Made Simple, 2012).
 * Idea for two runs in memory: several lanes search the same diagonal, one position each
 * per step. Most tiles are searched between two tiles that were found before.
 * Idea for up to four runs in memory: half a warp selects among samples (multisequence
 * selection: Varman, Scheufler, Iyer and Ricard, Merging Multiple Lists on
 * Hierarchical-Memory Multiprocessors, 1991). The samples of stride s are the last
 * elements of consecutive groups of s elements. The first d outputs contain at least
 * d / s - 3 whole groups, rounded down. The half warp takes that many of the smallest
 * samples, with their groups, and then halves the stride.
 * Invariant: the taken samples are the smallest of their stride, and at[r] never exceeds
 * its final value. If a stride has m taken samples, then 2 m samples of half the stride
 * are taken at once. All of them are among the 2 m + 3 smallest, because each other run
 * contains at most one further sample below them. So at most four samples are missing
 * for the next target, and at most the next four samples of each run qualify.
 * Cost: 12 comparisons per lane and one round trip to memory per stride. */
#ifndef KILN_MERGE_PATH_CUH
#define KILN_MERGE_PATH_CUH

#include <kiln/stage.cuh>
#include <kiln/types.cuh>

namespace kiln
{

/* ---- Two runs in shared memory ------------------------------------------ */

/* Elements a to a_end - 1 of shared memory are one run, elements b to b_end - 1
 * the other run. */
struct path_runs {
  unsigned a, a_end, b, b_end;
};

/* Returns how many of the first d outputs come from run a; d is at most the
 * number of elements of both runs. at(i * at.unit) returns element i, and
 * less(x, y) is true if x must precede y. */
template <class At, class Less>
__device__ __forceinline__ unsigned path_split(path_runs p, unsigned d, At at,
                                               Less less)
{
  const unsigned n_a = p.a_end - p.a, n_b = p.b_end - p.b;
  unsigned low = d > n_b ? d - n_b : 0;
  unsigned high = d < n_a ? d : n_a;

  while (low < high) {
    const unsigned middle = (low + high) / 2;

    if (less(at((p.b + d - 1 - middle) * at.unit),
             at((p.a + middle) * at.unit)))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Position of a thread in the merge of two runs. i is the position of the next
 * element of run a, in units of at.unit, as `sum` minus i is that of run b. x and
 * y are these elements. Beyond the end of a run they are any elements, so at()
 * must accept the position behind the last element of both runs. */
template <class Item> struct path_cursor {
  unsigned i, sum, a_end, b_end;
  Item x, y;

  template <class At>
  __device__ __forceinline__ path_cursor(path_runs p, unsigned d,
                                         unsigned split, At at)
      : i((p.a + split) * at.unit), sum((p.a + p.b + d) * at.unit),
        a_end(p.a_end * at.unit), b_end(p.b_end * at.unit), x(at(i)),
        y(at(sum - i))
  {
  }

  /* Returns whether the next output is x. All three conditions are evaluated, so
   * that they need no branches. */
  template <class Less> __device__ __forceinline__ bool takes_a(Less less) const
  {
    const bool lower = less(y, x);
    const bool a_left = i < a_end, b_left = sum - i < b_end;

    return !b_left | (a_left & !lower);
  }

  /* Moves behind the output x, or y. The operands of the selections let one load
   * serve both cases. */
  template <class At>
  __device__ __forceinline__ void advance(bool took_a, At at)
  {
    sum += at.unit;
    i += took_a ? static_cast<unsigned>(at.unit) : 0;

    const Item next = at(took_a ? i : sum - i);

    x = took_a ? next : x;
    y = took_a ? y : next;
  }
};

/* Computes `items` consecutive outputs of the merge, from output d on, where d
 * is at most the number of elements. If fewer outputs are left, the remaining
 * values are any elements. */
template <unsigned items, class Item, class At, class Less>
__device__ __forceinline__ void path_merge(path_runs p, unsigned d, At at,
                                           Less less, Item (&out)[items])
{
  path_cursor<Item> c(p, d, path_split(p, d, at, less), at);

#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const bool first = c.takes_a(less);

    out[k] = first ? c.x : c.y;
    c.advance(first, at);
  }
}

/* Returns the lowest position in shared memory, from `least` on, to which
 * stage_run() copies elements from this address by vectors of 16 bytes. It is at
 * most `least` + 3. Elements of 1 or 2 bytes are not copied by vectors. */
template <class T>
__device__ __forceinline__ unsigned stage_place(const T *from, unsigned least)
{
  constexpr unsigned size = sizeof(T);
  constexpr unsigned per_vector = size == 4 || size == 8 ? 16 / size : 1;
  const unsigned place =
      static_cast<unsigned>(reinterpret_cast<size_t>(from) / sizeof(T));

  return least + ((place - least) & (per_vector - 1));
}

/* Copies n consecutive elements to shared memory by the whole block, by vectors
 * of 16 bytes if both addresses have the same remainder. The copies are complete
 * after stage_wait() and a barrier. */
template <unsigned block, class T>
__device__ __forceinline__ void stage_run(T *to, const T *from, unsigned n)
{
  typedef typename word<alignof(T)>::type bits;
  constexpr unsigned per_vector = 16 / sizeof(bits);
  bits *target = reinterpret_cast<bits *>(to);
  const bits *source = reinterpret_cast<const bits *>(from);
  const unsigned words = n * (sizeof(T) / sizeof(bits));
  const unsigned remainder =
      static_cast<unsigned>(reinterpret_cast<size_t>(from) % 16);
  const unsigned head =
      least(words, (16 - remainder) % 16 / static_cast<unsigned>(sizeof(bits)));
  const unsigned vectors = (words - head) / per_vector;
  const unsigned tail = head + vectors * per_vector;

  if (reinterpret_cast<size_t>(to) % 16 != remainder) {
#pragma unroll 1
    for (unsigned w = thread(); w < words; w += block)
      stage_bytes<sizeof(bits)>(target + w, source + w);
    return;
  }
  if (thread() < head)
    stage_bytes<sizeof(bits)>(target + thread(), source + thread());
  if (thread() < words - tail)
    stage_bytes<sizeof(bits)>(target + tail + thread(),
                              source + tail + thread());
#pragma unroll 2
  for (unsigned v = thread(); v < vectors; v += block)
    stage_async(target + head + v * per_vector, source + head + v * per_vector);
}

/* Clears elements `begin` to end - 1 of shared memory, which merges read beyond
 * the ends of runs, by the whole block. */
template <unsigned block, class T>
__device__ __forceinline__ void stage_zeros(T *to, unsigned begin, unsigned end)
{
#pragma unroll 1
  for (unsigned i = begin + thread(); i < end; i += block)
    to[i] = T();
}

/* ---- Two runs in memory --------------------------------------------------- */

/* Returns the first position from `low` on for which taken(position) is false, or
 * `high`. taken() is true for all positions before it. Each group of `lanes` lanes
 * of a warp searches its own range, and all lanes of the warp call the function. A
 * step tests one position per lane: more lanes need fewer steps and more memory
 * traffic. `Count` is an unsigned type. */
template <unsigned lanes, class Count, class Taken>
__device__ __forceinline__ Count group_search(Count low, Count high,
                                              Taken taken)
{
  constexpr unsigned group = lanes == warp_size ? ~0u : (1u << lanes % 32) - 1;
  const unsigned own = lane() % lanes, first = lane() - own;

  while (warp_any(low < high)) {
    const Count chunk = (high - low) / (lanes + 1) + 1;
    const Count at = low + (own + 1) * chunk - 1;
    const unsigned votes = warp_ballot(at < high && taken(at)) >> first & group;

    low += static_cast<unsigned>(__popc(static_cast<int>(votes))) * chunk;
    high = high < low + chunk - 1 ? high : low + chunk - 1;
  }
  return low;
}

/* Returns how many of the first d outputs of the merge of runs a and b come from
 * run a. d is at most the number of elements of both runs. All lanes of a warp
 * call this function with the same arguments. */
template <class T, class Less>
__device__ __forceinline__ index path_split_warp(const T *a, index n_a,
                                                 const T *b, index n_b, index d,
                                                 Less less)
{
  return group_search<warp_size>(
      d > n_b ? d - n_b : 0, d < n_a ? d : n_a,
      [&](index i) { return !less(b[d - 1 - i], a[i]); });
}

/* The lanes that search for the start of one tile in split_tiles(). Of 2 to 32
 * lanes, 4 are the fastest for 2^28 elements on an H200. */
enum : unsigned { split_lanes = 4 };

/* Computes how many of the elements before each tile of the merge of two runs of m
 * and n elements come from the first run. precedes(i, j) returns whether element
 * i of the first run comes before element j of the second run. split[k] is the
 * result for tile k, and the last one is m. Each block of the grid writes
 * block / split_lanes results: two warps search whole runs for the block's ends,
 * and groups of lanes search between them. */
template <unsigned block, class Precedes>
__device__ __forceinline__ void split_tiles(index m, index n, index tile_size,
                                            index *split, Precedes precedes)
{
  constexpr unsigned own = block / split_lanes;
  __shared__ index ends[2];
  const index tiles = (m + n + tile_size - 1) / tile_size;
  const index first = static_cast<index>(blockIdx.x) * own;
  const index last = first + own < tiles ? first + own : tiles;
  const index begin = first * tile_size;
  const index end = last < tiles ? last * tile_size : m + n;

  if (warp() < 2) {
    const index d = warp() == 0 ? begin : end;
    const index at =
        group_search<warp_size>(d > n ? d - n : 0, d < m ? d : m, [&](index i) {
          return precedes(i, d - 1 - i);
        });

    if (lane() == 0)
      ends[warp()] = at;
  }
  __syncthreads();

  const index tile = first + thread() / split_lanes;
  const index d = tile < last ? tile * tile_size : end;
  const index least_a = d > n ? d - n : 0, most_a = d < m ? d : m;
  const index ahead = ends[0] + (d - begin), behind = end - d;
  index low = ends[1] > behind ? ends[1] - behind : 0;
  index high = ahead < ends[1] ? ahead : ends[1];

  low = low > ends[0] ? low : ends[0];
  low = low > least_a ? low : least_a;
  high = high < most_a ? high : most_a;
  /* Runs that are not sorted can have an end below a begin. */
  high = low < high ? high : low;
  low = group_search<split_lanes>(
      low, high, [&](index i) { return precedes(i, d - 1 - i); });
  if (tile < last && thread() % split_lanes == 0)
    split[tile] = low;
  if (last == tiles && thread() == 0)
    split[tiles] = m;
}

/* ---- Up to four runs in memory ------------------------------------------ */

enum : unsigned { most_runs = 4, run_samples = 4 };

/* Sorted runs. Runs that do not exist have 0 elements. */
template <class T> struct sorted_runs {
  const T *from[most_runs];
  index n[most_runs];
};

/* Returns element r of an array without indexing registers. */
template <class V>
__device__ __forceinline__ V pick_run(const V (&of)[most_runs], unsigned r)
{
  const V lower = (r & 1u) == 0 ? of[0] : of[1];
  const V upper = (r & 1u) == 0 ? of[2] : of[3];

  return (r & 2u) == 0 ? lower : upper;
}

/* Takes the `wanted` smallest of the next four samples of every run, where
 * wanted is at most 4. Equal samples are taken in the order of their runs. */
template <class T, class Less>
__device__ __forceinline__ void take_samples(const sorted_runs<T> &runs,
                                             index stride, unsigned wanted,
                                             index (&at)[most_runs], Less less)
{
  const unsigned own = lane() % 16, run = own / run_samples;
  const index mine = pick_run(at, run) + (own % run_samples + 1) * stride - 1;
  const bool exists = mine < pick_run(runs.n, run);
  unsigned rank = own % run_samples, votes;
  T sample{};

  if (exists)
    sample = pick_run(runs.from, run)[mine];
#pragma unroll
  for (unsigned r = 0; r < most_runs; ++r)
#pragma unroll
    for (unsigned k = 1; k <= run_samples; ++k) {
      const index other = at[r] + k * stride - 1;

      if (exists && r != run && other < runs.n[r]) {
        const T value = runs.from[r][other];

        rank += r < run ? !less(sample, value) : less(value, sample);
      }
    }
  votes = warp_ballot(exists && rank < wanted) >> (lane() & 16u);
#pragma unroll
  for (unsigned r = 0; r < most_runs; ++r)
    at[r] += stride * static_cast<unsigned>(__popc(votes >> 4 * r & 15u));
}

/* Computes how many of the first d outputs come from each run. Each half of a
 * warp has its own runs and its own d, and all lanes of the warp call the
 * function. d is at most `most`, which is greater than 0 and the same in both
 * halves. */
template <class T, class Less>
__device__ __forceinline__ void split_runs(const sorted_runs<T> &runs, index d,
                                           index most, index (&at)[most_runs],
                                           Less less)
{
  /* d is less than 2^bits, so the first target, with the stride 2^(bits - 3),
   * is at most 4. */
  const int bits = 64 - __clzll(static_cast<long long>(most));
  index taken = 0;

#pragma unroll
  for (unsigned r = 0; r < most_runs; ++r)
    at[r] = 0;
    /* The step below stride 1 takes the last three elements. */
#pragma unroll 1
  for (int step = bits > 3 ? bits - 3 : 0; step >= -1; --step) {
    const int level = step < 0 ? 0 : step;
    const index groups = d >> level;
    const index target = step < 0 ? d : groups > 3 ? groups - 3 : 0;
    const unsigned wanted =
        static_cast<unsigned>(target - (step < 0 ? taken : 2 * taken));

    if (warp_any(wanted > 0))
      take_samples(runs, static_cast<index>(1) << level, wanted, at, less);
    taken = target;
  }
}

} // namespace kiln

#endif
