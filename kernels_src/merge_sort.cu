/* merge_sort.cu -- a stable sort of keys, or keys with values, in the order that the
 * user's comparison defines.
 *
 * Problem: only comparisons are known of the keys, so every pass over the array merges
 * sorted runs, and its time is that of one read and one write of the array.
 * Idea: a block sorts a tile in shared memory. Then each pass merges four runs into one,
 * which takes half as many passes as merging two. A pass divides its output into tiles.
 * The kernel merge_sort_split finds which elements of the four runs belong to each tile
 * (merge_path.cuh). A block of merge_sort_pass loads these elements, merges runs 0 and 1
 * and runs 2 and 3, and then merges the two results, all in shared memory. In each of
 * these merges, a thread bisects along the diagonal of its first output, and then merges
 * KILN_ITEMS outputs in registers.
 * Keys of at most 8 bytes move through shared memory. Wider keys stay where they were
 * loaded, and their 16-bit places move instead, so a comparison reads only the members
 * that it uses. With values, the places move with the keys, and a block reads the values
 * at these places when the tile is sorted.
 * Invariant: an element of a lower run, or before it in its run, precedes equal ones. So
 * the sort is stable.
 * Few elements are in the second-level cache, and the latency of the searches decides.
 * Then merge_sort_join merges two runs per pass, and two warps of each block find the
 * block's elements, so a pass is one launch.
 * Cost: 1 + log4(n / tile) passes, each with one read and one write per key and value.
 * If log2(n / tile), rounded up, is odd, one pass merges two runs. Few elements take
 * 1 + log2(n / tile) passes.
 * Source: Green, McColl and Bader, GPU Merge Path, 2012; Odeh et al. as in merge_path.cuh.
 *
 * Parameters:
 *   KILN_BLOCK    256         threads per block, a power of two
 *   KILN_ITEMS    11          elements per thread; odd numbers avoid bank conflicts
 *   KILN_PER_SM   0           resident blocks per SM, which limits registers; 0 sets no
 *                             limit
 *   KILN_T        type float  type of a key
 *   KILN_PAIRS    0           1 if keys have values
 *   KILN_V        type float  type of a value
 * Generated code (user.cuh): less(s, a, b) is true if key a must precede key b.
 * Launch: a tile has (KILN_BLOCK - 1) * KILN_ITEMS elements. All kernels have KILN_BLOCK
 *         threads per block. merge_sort_tiles, merge_sort_pass and merge_sort_join have one
 *         block per tile and dynamic shared memory for KILN_BLOCK * KILN_ITEMS + 16 keys and, if places
 *         move, as many 16-bit places. merge_sort_split has 16 threads per tile.
 *         in, out    the keys; only merge_sort_tiles works in place
 *         n          number of keys
 *         log_run    log2 of the number of tiles per sorted run
 *         log_ways   log2 of the number of runs that a pass merges: 1 or 2
 *         split      for each tile, four numbers of elements that precede the tile in the
 *                    four runs of its group
 * Result: the same on every device. If the comparison is not a strict weak order, the
 *         output consists of elements of the input, but some may be missing and others
 *         repeated. */
#include <kiln/params/merge_sort.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/merge_path.cuh>
#include <kiln/radix.cuh>
#include <kiln/user.cuh>

#if !KILN_GENERATED
namespace user
{
static __device__ __forceinline__ bool less(const args &, acc a, acc b)
{
  return a < b;
}
} // namespace user
#endif

static_assert((KILN_BLOCK & (KILN_BLOCK - 1)) == 0 && KILN_BLOCK >= 32,
              "KILN_BLOCK: a power of two");
static_assert(KILN_BLOCK * KILN_ITEMS < 65520, "places of a tile: 16 bits");

#if KILN_PER_SM > 0
#define KILN_BOUNDS __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
#else
#define KILN_BOUNDS __launch_bounds__(KILN_BLOCK)
#endif

typedef unsigned long long count;
typedef KILN_T element;

enum : unsigned {
  all_items = KILN_BLOCK * KILN_ITEMS,
  tile_size = (KILN_BLOCK - 1) * KILN_ITEMS,
  spare = 16,
  key_words = sizeof(KILN_T) / alignof(KILN_T),
  value_words = sizeof(KILN_V) / alignof(KILN_V)
};

typedef kiln::word<alignof(KILN_T)>::type key_word;
typedef kiln::word<alignof(KILN_V)>::type value_word;

static constexpr bool keys_move = sizeof(KILN_T) <= 8;
static constexpr bool places_move = KILN_PAIRS || !keys_move;

extern __shared__ uint4 memory[];

/* ---- A tile in shared memory -------------------------------------------- */

/* A key, and its place in the tile before the tile is sorted or merged. */
struct item {
  element key;
  unsigned place;
};

static __device__ __forceinline__ element *tile_keys()
{
  return reinterpret_cast<element *>(memory);
}

/* There are a few more places and keys than elements: windows start where they
 * are copied by vectors, and merges read one element behind the last. */
static __device__ __forceinline__ unsigned short *tile_places()
{
  return reinterpret_cast<unsigned short *>(tile_keys() + all_items + spare);
}

static __device__ __forceinline__ unsigned place_of(unsigned i)
{
  return places_move ? tile_places()[i] : i;
}

/* Loads an item. Positions are byte offsets, so that a load needs no further
 * address arithmetic. */
struct at_offset {
  enum : unsigned { unit = places_move ? 2 : sizeof(element) };

  __device__ __forceinline__ item operator()(unsigned offset) const
  {
    const unsigned place =
        places_move
            ? *reinterpret_cast<const unsigned short *>(
                  reinterpret_cast<const char *>(tile_places()) + offset)
            : 0;

    if (!places_move)
      return {*reinterpret_cast<const element *>(
                  reinterpret_cast<const char *>(memory) + offset),
              0};
    return {tile_keys()[keys_move ? offset / unit : place], place};
  }
};

struct precedes {
  const user::args &s;

  __device__ __forceinline__ bool operator()(const element &a,
                                             const element &b) const
  {
    return user::less(s, kiln::widen(a), kiln::widen(b));
  }
  __device__ __forceinline__ bool operator()(const item &a, const item &b) const
  {
    return (*this)(a.key, b.key);
  }
};

/* Gives the calling thread elements that may be stored and moved, but that are
 * no part of the result. */
static __device__ __forceinline__ void clear(item (&v)[KILN_ITEMS])
{
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    v[k] = {element(), 0};
}

/* Stores the calling thread's elements at their places in the tile, and makes
 * the whole tile visible to the block. */
static __device__ __forceinline__ void put_mine(const item (&v)[KILN_ITEMS])
{
  const unsigned mine = threadIdx.x * KILN_ITEMS;

  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    if (keys_move)
      tile_keys()[mine + k] = v[k].key;
    if (places_move)
      tile_places()[mine + k] = static_cast<unsigned short>(v[k].place);
  }
  __syncthreads();
}

/* The elements of a tile in memory, up to four windows. Positions start[r] to end[r] - 1 of shared
 * memory hold elements of run r. The element at position i is element
 * from[r] + i of the array. */
struct sources {
  count from[kiln::most_runs];
  unsigned start[kiln::most_runs], end[kiln::most_runs];
};

#if KILN_PAIRS
static __device__ __forceinline__ count source_of(const sources &s, unsigned i)
{
  const count lower = i < s.start[1] ? s.from[0] : s.from[1];
  const count upper = i < s.start[3] ? s.from[2] : s.from[3];

  return (i < s.start[2] ? lower : upper) + i;
}
#endif

/* Calls f(w, i) for each word w of the n elements of a tile, where i is the
 * element that contains the word. Consecutive threads get consecutive words. */
template <unsigned per_item, class F>
static __device__ __forceinline__ void for_words(unsigned n, F f)
{
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS * per_item; ++k) {
    const unsigned w = k * KILN_BLOCK + threadIdx.x;

    if (w / per_item < n)
      f(k, w, w / per_item);
  }
}

#if KILN_PAIRS
/* Moves the values of a sorted tile. All values are loaded before any of them
 * is stored, so a tile works in place. */
template <class Source>
static __device__ __forceinline__ void
write_values(const KILN_V *from, KILN_V *to, unsigned n, Source source)
{
  const value_word *in = reinterpret_cast<const value_word *>(from);
  value_word *out = reinterpret_cast<value_word *>(to);
  value_word value[KILN_ITEMS * value_words];

  for_words<value_words>(n, [&](unsigned k, unsigned w, unsigned i) {
    value[k] = in[source(place_of(i)) * value_words + w % value_words];
  });
  __syncthreads();
  for_words<value_words>(
      n, [&](unsigned k, unsigned w, unsigned) { out[w] = value[k]; });
}
#endif

static __device__ __forceinline__ void write_keys(element *to, unsigned n)
{
  const key_word *sorted = reinterpret_cast<const key_word *>(tile_keys());
  key_word *out = reinterpret_cast<key_word *>(to);

  for_words<key_words>(n, [&](unsigned, unsigned w, unsigned i) {
    const unsigned at = keys_move ? i : place_of(i);

    out[w] = sorted[at * key_words + w % key_words];
  });
}

/* Gives each element of the tile its position as its place, clears the elements
 * from `end` on, and waits for the others. */
static __device__ __forceinline__ void finish_loads(unsigned end)
{
  if (places_move)
    for (unsigned i = threadIdx.x; i < all_items + spare; i += KILN_BLOCK)
      tile_places()[i] = static_cast<unsigned short>(i);
  kiln::stage_zeros<KILN_BLOCK>(tile_keys(), end, all_items + spare);
  kiln::stage_wait();
  __syncthreads();
}

/* ---- Sorting a tile ------------------------------------------------------ */

#if KILN_MAKES(merge_sort_tiles)
/* Sorts the elements of the calling thread by odd-even transposition. */
static __device__ __forceinline__ void sort_mine(item (&v)[KILN_ITEMS],
                                                 precedes less)
{
#pragma unroll 1
  for (unsigned round = 0; round < (KILN_ITEMS + 1) / 2; ++round)
#pragma unroll
    for (unsigned odd = 0; odd < 2; ++odd)
#pragma unroll
      for (unsigned k = odd; k + 1 < KILN_ITEMS; k += 2) {
        const item a = v[k], b = v[k + 1];
        const bool swap = less(b, a);

        v[k] = swap ? b : a;
        v[k + 1] = swap ? a : b;
      }
}

/* Loads the calling thread's elements from the tile, of which `valid` elements
 * exist, from position `start` on. Missing elements become copies of the last element in order, so they
 * stay behind the others. */
static __device__ __forceinline__ void take_mine(item (&v)[KILN_ITEMS],
                                                 unsigned start, unsigned mine,
                                                 unsigned valid, precedes less)
{
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    v[k] = at_offset()((start + (mine + k < valid ? mine + k : mine)) *
                       at_offset::unit);
  if (mine + KILN_ITEMS > valid) {
    item last = v[0];

#pragma unroll
    for (unsigned k = 1; k < KILN_ITEMS; ++k)
      if (mine + k >= valid)
        v[k] = last;
      else if (!less(v[k], last))
        last = v[k];
  }
}

/* Merges pairs of runs of `width` elements in shared memory. The calling
 * thread's outputs replace its elements. */
static __device__ __forceinline__ void merge_pairs(item (&v)[KILN_ITEMS],
                                                   unsigned width,
                                                   unsigned valid,
                                                   precedes less)
{
  const unsigned mine = threadIdx.x * KILN_ITEMS;
  const unsigned first = mine / (2 * width) * (2 * width);
  const unsigned middle = kiln::least(first + width, valid);
  const unsigned end = kiln::least(first + 2 * width, valid);

  if (mine < valid)
    kiln::path_merge(kiln::path_runs{first, middle, middle, end}, mine - first,
                     at_offset(), less, v);
}

extern "C" __global__ void KILN_BOUNDS merge_sort_tiles(
    const user::args s, const element *in, element *out,
    const KILN_V *values_in, KILN_V *values_out, unsigned long long n)
{
  const count first = static_cast<count>(blockIdx.x) * tile_size;
  const unsigned valid =
      static_cast<unsigned>(n - first < tile_size ? n - first : tile_size);
  const unsigned mine = threadIdx.x * KILN_ITEMS;
  const unsigned start = kiln::stage_place(in + first, 0);
  const precedes less{s};
  item v[KILN_ITEMS];

  kiln::launch_wait();
  kiln::launch_next();
  kiln::stage_run<KILN_BLOCK>(tile_keys() + start, in + first, valid);
  kiln::stage_zeros<KILN_BLOCK>(tile_keys(), 0, start);
  finish_loads(start + valid);
  clear(v);
  if (mine < valid) {
    take_mine(v, start, mine, valid, less);
    sort_mine(v, less);
  }
  put_mine(v);
#pragma unroll 1
  for (unsigned width = KILN_ITEMS; width < valid; width *= 2) {
    merge_pairs(v, width, valid, less);
    put_mine(v);
  }
#if KILN_PAIRS
  write_values(values_in + first, values_out + first, valid,
               [&](unsigned place) { return place - start; });
#else
  (void)values_in;
  (void)values_out;
#endif
  write_keys(out + first, valid);
}
#endif

/* ---- Passes -------------------------------------------------------------- */

/* The group of runs that a tile belongs to. */
struct group {
  count first; /* index of the first element of the group */
  count d;     /* number of elements of the group before the tile */
  count run;   /* elements per run, of which the last runs may have fewer */
};

static __device__ __forceinline__ group group_of(count tile, unsigned log_run,
                                                 unsigned log_ways)
{
  const count index = tile >> (log_run + log_ways);
  const count first = index << (log_run + log_ways);

  return {first * tile_size, (tile - first) * tile_size,
          static_cast<count>(tile_size) << log_run};
}

/* Returns the number of elements of run r of a group. */
static __device__ __forceinline__ count run_length(const group &g, unsigned r,
                                                   unsigned log_ways, count n)
{
  const count first = g.first + r * g.run;

  if (r >= 1u << log_ways || first >= n)
    return 0;
  return n - first < g.run ? n - first : g.run;
}

#if KILN_MAKES(merge_sort_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    merge_sort_split(const user::args s, const element *in,
                     unsigned long long n, unsigned log_run, unsigned log_ways,
                     unsigned long long *split)
{
  const count tiles = (n + tile_size - 1) / tile_size;
  const count tile =
      static_cast<count>(blockIdx.x) * (KILN_BLOCK / 16) + threadIdx.x / 16;
  const group g = group_of(tile < tiles ? tile : tiles - 1, log_run, log_ways);
  kiln::sorted_runs<element> runs;
  count at[kiln::most_runs];

  kiln::launch_next();
  kiln::launch_wait();
#pragma unroll
  for (unsigned r = 0; r < kiln::most_runs; ++r) {
    runs.from[r] = in + g.first + r * g.run;
    runs.n[r] = run_length(g, r, log_ways, n);
  }
  kiln::split_runs(runs, g.d, g.run << log_ways, at, precedes{s});
  if (threadIdx.x % 16 < kiln::most_runs && tile < tiles)
    split[tile * kiln::most_runs + threadIdx.x % 16] =
        kiln::pick_run(at, threadIdx.x % 16);
}
#endif

#if KILN_MAKES(merge_sort_pass) || KILN_MAKES(merge_sort_join)
/* Merges the runs of the tile in shared memory, first in pairs if there are four,
 * and returns the number of elements of the tile. The outputs of the second pair
 * start at the first element of a thread, so no thread belongs to both pairs. */
static __device__ __forceinline__ unsigned merge_tile(const sources &from,
                                                      bool four, precedes less)
{
  const unsigned mine = threadIdx.x * KILN_ITEMS;
  const unsigned n_low =
      from.end[0] - from.start[0] + from.end[1] - from.start[1];
  const unsigned n_high =
      from.end[2] - from.start[2] + from.end[3] - from.start[3];
  const unsigned middle = (n_low + KILN_ITEMS - 1) / KILN_ITEMS * KILN_ITEMS;
  const bool upper = four && mine >= middle;
  kiln::path_runs p = {from.start[0], from.end[0], from.start[1], from.end[1]};
  unsigned d = mine, n = n_low;

  if (upper) {
    p = {from.start[2], from.end[2], from.start[3], from.end[3]};
    d = mine - middle;
    n = n_high;
  }
#pragma unroll 1
  for (unsigned level = four ? 0 : 1; level < 2; ++level) {
    item v[KILN_ITEMS];

    if (four && level == 1) {
      p = {0, n_low, middle, middle + n_high};
      d = mine;
      n = n_low + n_high;
    }
    clear(v);
    if (d < n)
      kiln::path_merge(p, d, at_offset(), less, v);
    put_mine(v);
  }
  return n;
}

/* The arrays between which a pass moves elements. */
struct arrays {
  const element *in;
  element *out;
  const KILN_V *values_in;
  KILN_V *values_out;
  count n;
};

/* Copies elements `begin` to end - 1 of the arrays. */
static __device__ __forceinline__ void copy_elements(const arrays &a,
                                                     count begin, count end)
{
  for (count i = begin + threadIdx.x; i < end; i += KILN_BLOCK) {
    a.out[i] = a.in[i];
    if (KILN_PAIRS)
      a.values_out[i] = a.values_in[i];
  }
}

/* Loads the windows of the tile, merges them, and writes the tile. `shared` is
 * in shared memory. All threads call this function after a barrier. */
static __device__ __forceinline__ void merge_windows(const user::args &s,
                                                     const arrays &a,
                                                     const sources &shared,
                                                     unsigned runs, bool four)
{
  const count first = static_cast<count>(blockIdx.x) * tile_size;
  const unsigned valid =
      static_cast<unsigned>(a.n - first < tile_size ? a.n - first : tile_size);
  const sources from = shared;
  unsigned found;

#pragma unroll 1
  for (unsigned r = 0; r < runs; ++r)
    kiln::stage_run<KILN_BLOCK>(tile_keys() + shared.start[r],
                                a.in + shared.from[r] + shared.start[r],
                                shared.end[r] - shared.start[r]);
#pragma unroll 1
  for (unsigned r = 0; r < runs; ++r)
    kiln::stage_zeros<KILN_BLOCK>(tile_keys(), r == 0 ? 0 : shared.end[r - 1],
                                  shared.start[r]);
  finish_loads(from.end[runs - 1]);
  found = kiln::least(valid, merge_tile(from, four, precedes{s}));
#if KILN_PAIRS
  write_values(a.values_in, a.values_out + first, found,
               [&](unsigned place) { return source_of(from, place); });
#endif
  write_keys(a.out + first, found);
  if (found < valid) /* only if the order contradicts itself */
    copy_elements(a, first + found, first + valid);
}
#endif

#if KILN_MAKES(merge_sort_pass)
/* Returns the index of the first element that the block's tile takes from run r of
 * its group, and sets *taken to the number of these elements. Splits that contradict
 * each other, which requires an invalid order, give fewer elements. */
static __device__ __forceinline__ count
find_window(unsigned r, count n, unsigned log_run, unsigned log_ways,
            const unsigned long long *split, unsigned *taken)
{
  const count tile = blockIdx.x;
  const group g = group_of(tile, log_run, log_ways);
  const count group_tiles = static_cast<count>(1) << (log_run + log_ways);
  const count length = run_length(g, r, log_ways, n);
  count from = split[tile * kiln::most_runs + r], to = length;

  if ((tile + 1) % group_tiles != 0 && tile + 1 < gridDim.x)
    to = split[(tile + 1) * kiln::most_runs + r];
  to = to < length ? to : length;
  from = from < to ? from : to;
  *taken = static_cast<unsigned>(to - from < tile_size ? to - from : tile_size);
  return g.first + r * g.run + from;
}

/* Arranges the windows of the four runs in shared memory, such that they are
 * copied by vectors. The first warp calls this function. */
static __device__ __forceinline__ void arrange(sources &s, const element *in,
                                               count n, unsigned log_run,
                                               unsigned log_ways,
                                               const unsigned long long *split)
{
  const unsigned own = kiln::lane() % kiln::most_runs;
  unsigned mine, end = 0, left = tile_size;
  const count from = find_window(own, n, log_run, log_ways, split, &mine);

#pragma unroll
  for (unsigned r = 0; r < kiln::most_runs; ++r) {
    const unsigned taken = kiln::least(kiln::shuffle(mine, r), left);
    const unsigned begin = kiln::stage_place(in + kiln::shuffle(from, r), end);

    left -= taken;
    end = begin + taken;
    if (kiln::lane() == r) {
      s.start[r] = begin;
      s.end[r] = end;
      s.from[r] = from - begin;
    }
  }
}

extern "C" __global__ void KILN_BOUNDS merge_sort_pass(
    const user::args s, const element *in, element *out,
    const KILN_V *values_in, KILN_V *values_out, unsigned long long n,
    unsigned log_run, unsigned log_ways, const unsigned long long *split)
{
  __shared__ sources shared;

  kiln::launch_next();
  kiln::launch_wait();
  if (kiln::warp() == 0)
    arrange(shared, in, n, log_run, log_ways, split);
  __syncthreads();
  merge_windows(s, {in, out, values_in, values_out, n}, shared, kiln::most_runs,
                log_ways == 2);
}
#endif

#if KILN_MAKES(merge_sort_join)
/* Arranges the windows of the two runs of group g in shared memory. cut[0] and
 * cut[1] are the numbers of elements of run 0 before the tile and up to its end,
 * and d the number of elements of both runs up to its end. Cuts that contradict
 * each other, which requires an invalid order, give fewer elements. */
static __device__ __forceinline__ void arrange_two(sources &s,
                                                   const element *in,
                                                   const group &g, count d,
                                                   const count (&cut)[2])
{
  const count low[2] = {cut[0], g.d - cut[0]};
  const count high[2] = {cut[1], d - cut[1]};
  unsigned end = 0, left = static_cast<unsigned>(d - g.d);

#pragma unroll
  for (unsigned r = 0; r < 2; ++r) {
    const count from = g.first + r * g.run + low[r];
    const count most = high[r] > low[r] ? high[r] - low[r] : 0;
    const unsigned taken = most < left ? static_cast<unsigned>(most) : left;
    const unsigned begin = kiln::stage_place(in + from, end);

    left -= taken;
    end = begin + taken;
    s.start[r] = begin;
    s.end[r] = end;
    s.from[r] = from - begin;
    s.start[r + 2] = s.end[r + 2] = all_items + spare;
    s.from[r + 2] = 0;
  }
}

extern "C" __global__ void KILN_BOUNDS
merge_sort_join(const user::args s, const element *in, element *out,
                const KILN_V *values_in, KILN_V *values_out,
                unsigned long long n, unsigned log_run)
{
  __shared__ sources shared;
  __shared__ count cut[2];
  const group g = group_of(blockIdx.x, log_run, 1);
  const count n_a = run_length(g, 0, 1, n), n_b = run_length(g, 1, 1, n);
  const count end = n_a + n_b - g.d < tile_size ? n_a + n_b : g.d + tile_size;

  kiln::launch_wait();
  kiln::launch_next();
  for (unsigned k = kiln::warp(); k < 2; k += KILN_BLOCK / kiln::warp_size) {
    const count at =
        kiln::path_split_warp(in + g.first, n_a, in + g.first + g.run, n_b,
                              k == 0 ? g.d : end, precedes{s});

    if (kiln::lane() == 0)
      cut[k] = at;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    arrange_two(shared, in, g, end, cut);
  __syncthreads();
  merge_windows(s, {in, out, values_in, values_out, n}, shared, 2, false);
}
#endif

#include <kiln/user_texts.cuh>
