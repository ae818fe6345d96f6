/* radix_pass.cu -- one pass of a radix sort. The pass sorts keys, with or without
 * values, stably by one digit of up to 8 bits. It reads and writes each key and each
 * value once (Adinets and Merrill, Onesweep: A Faster Least Significant Digit Radix Sort
 * for GPUs, 2022).
 *
 * Idea: radix_histogram.cu has computed where the keys of each digit start. Each block
 * ranks the keys of its tile by digit and publishes 256 counts. One decoupled look-back
 * per digit (radix.cuh) computes the counts of the preceding tiles. The block sorts the
 * tile in shared memory, so that keys of one digit have consecutive destinations.
 * A pass in which all keys have the same digit is skipped. The first active pass reads
 * `in`. Later passes alternate between `out` and `other` such that the last active pass
 * writes `out`. If this would make a pass overwrite its own input, one of the skipped
 * passes copies the data instead.
 *
 * Parameters:
 *   KILN_BLOCK      384  threads per block, a multiple of 32, at least 256
 *   KILN_ITEMS      16   keys per thread
 *   KILN_PER_SM     0    minimum number of resident blocks per SM, which limits
 *                        registers through __launch_bounds__; 0 sets no limit
 *   KILN_KEY        4    bytes per key: 1, 2, 4 or 8
 *   KILN_VALUE      0    bytes per value: 1, 2, 4 or 8; 0 if there are no values
 *   KILN_FLOAT      0    1 if keys are floats
 *   KILN_WIDE       0    1 if there are more than 2^31 keys
 *   KILN_WINDOW     4    descriptors that a thread reads at a time in a look-back
 *   KILN_SEGMENTED  0    1 sorts each segment of a list of segments; a table contains
 *                        the segment of each tile (segmented_sort.cu)
 *   KILN_TICKETS    0    1 takes the number of each tile from a counter in memory, so that
 *                        a block sorts several tiles and the grid has any size. A launch
 *                        that does nothing then has few blocks to start
 * Launch: the block size is KILN_BLOCK. A launch handles a portion of at most 2^31 keys,
 *         with one block per tile of KILN_BLOCK * KILN_ITEMS keys. Dynamic shared memory
 *         contains struct shared_storage and then the tile. */
#include <kiln/params/radix_pass.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/overlap.cuh>
#include <kiln/radix.cuh>

#define PAIRS (KILN_VALUE > 0)

typedef kiln::unsigned_of<KILN_KEY>::type key;
typedef kiln::unsigned_of<PAIRS ? KILN_VALUE : 1>::type value;
typedef unsigned long long count;
typedef kiln::unsigned_of<KILN_WIDE ? 8 : 4>::type place;

enum : unsigned {
  tile_size = KILN_BLOCK * KILN_ITEMS,
  item_bytes = KILN_KEY > KILN_VALUE ? KILN_KEY : KILN_VALUE
};

/* The flags of a sort. sort_args::flags contains several of them. */
enum : unsigned {
  /* The output array of the keys or of the values is also the input array. An
   * odd number of passes would overwrite input before it is read. */
  in_place = 1,
  /* The first pass generates the values: the value of a key is its index. */
  make_index = 2,
  no_keys = 4, /* the last pass writes only values, not keys */
  /* Keys or values must reach another array, so at least one pass must write. */
  must_write = 8
};

#if KILN_SEGMENTED
/* A segment that is too long for one tile. */
struct segment {
  count begin;
  unsigned n, first_tile;
};

struct segments {
  const segment *list;
  /* tile[t] is the index in `list` of the segment that tile t belongs to. */
  const unsigned *tile;
  const unsigned *n_tiles;
  /* Number of keys per [segment][pass][digit]. */
  const unsigned *counts;
  unsigned passes, reserved;
};
#endif

struct sort_args {
  const key *in;
  key *out, *other;
  const value *values_in;
  value *values_out, *values_other;
  const count *base; /* destination of the first key of each digit */
  /* The array that receives the destinations for the next portion of keys, or
   * NULL. */
  count *next_base;
  /* One flag per step. The flag is 1 if all keys have the same digit in that
   * step. */
  const unsigned *single;
  count *words; /* 256 tile descriptors per tile */
  count n;      /* total number of keys */
  count first;  /* index of the first key of this portion */
  kiln::radix_order order;
  unsigned epoch;
  unsigned step, steps;
  unsigned shift, mask; /* bit number and mask of the digit in a key */
  unsigned flags;
  /* NULL, or a word; the launch does nothing if the word is not 0. */
  unsigned *skip;
  unsigned *ticket; /* with KILN_TICKETS, the counter, which is 0 at first */
  count tiles;      /* number of tiles of this portion */
};

/* What one pass does. `nothing` means that the pass is skipped, and `copy` that
 * it copies without sorting. `first` and `last` mark the first and last of the
 * active passes. `to_other` selects the destination `other` instead of `out`. */
struct task {
  bool nothing, copy, first, last, to_other;
};

static __device__ __forceinline__ task task_of(const sort_args &s)
{
#if KILN_SEGMENTED /* no pass is skipped unless all segments can skip it */
  const unsigned left_out = s.single == nullptr ? 0 : 1u << (s.steps - 1);
#else
  const unsigned lane = kiln::lane();
  const unsigned left_out =
      kiln::warp_ballot(lane < s.steps && s.single[lane] != 0);
#endif
  unsigned active = ~left_out & ((1u << s.steps) - 1);
  const unsigned n = static_cast<unsigned>(__popc(active));
  unsigned later;

  if (n == 0 ? (s.flags & must_write) != 0
             : n % 2 != 0 && (s.flags & in_place) != 0)
    active |= 0x80000000u >> __clz(left_out);
  later = static_cast<unsigned>(__popc(active >> s.step >> 1));
  return {(active >> s.step & 1) == 0, (left_out >> s.step & 1) != 0,
          (active & ((1u << s.step) - 1)) == 0, later == 0, later % 2 != 0};
}

/* The first part of dynamic shared memory, which holds the counters and the
 * destination of each digit. The second part is the tile. */
struct alignas(16) shared_storage {
  kiln::radix_counters<KILN_BLOCK> counters;
  /* Per digit, the destination of a key minus its position in the tile. */
  place to[kiln::radix_digits];
};

extern __shared__ uint4 shared[];

template <class T> static __device__ __forceinline__ T *tile_storage()
{
  return reinterpret_cast<T *>(shared + (sizeof(shared_storage) + 15) / 16);
}

/* The keys of the tile that a block sorts. */
struct span {
  count begin;
  unsigned n;      /* number of keys */
  unsigned index;  /* index of the tile in the portion or the segment */
  count end;       /* index after the last key of the portion or segment */
  unsigned number; /* index of the tile in the launch */
};

/* Returns whether a destination is inside of the segment. Without segments, the
 * result is always true. Overlapping segments overwrite each other's counts, so
 * their destinations may be wrong; this test keeps stores in bounds. */
static __device__ __forceinline__ bool inside(place to, const span &tile)
{
  return !KILN_SEGMENTED || to < tile.end;
}

#if !KILN_SEGMENTED
static __device__ __forceinline__ span tile_of(const sort_args &s,
                                               unsigned number)
{
  const count begin = s.first + static_cast<count>(number) * tile_size;
  const count rest = s.n - begin;

  return {begin, rest < tile_size ? static_cast<unsigned>(rest) : tile_size,
          number, s.n, number};
}
#else
static __device__ __forceinline__ span tile_of(const segments &g)
{
  const segment own = g.list[g.tile[blockIdx.x]];
  const unsigned index = blockIdx.x - own.first_tile;
  const unsigned rest = own.n - index * tile_size;

  return {own.begin + static_cast<count>(index) * tile_size,
          rest < tile_size ? rest : tile_size, index, own.begin + own.n,
          blockIdx.x};
}
#endif

/* Returns the index of the calling thread's first element in a warp-striped
 * tile. */
static __device__ __forceinline__ unsigned own_first()
{
  return kiln::warp() * (KILN_ITEMS * kiln::warp_size) + kiln::lane();
}

/* Loads a warp-striped tile. Elements from index n on become `fill`. */
template <class T>
static __device__ __forceinline__ void load_tile(const T *from, unsigned n,
                                                 T fill, T (&to)[KILN_ITEMS])
{
  const unsigned own = own_first();

  from += own;
  if (n == tile_size) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      to[k] = from[k * kiln::warp_size];
  } else {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      to[k] = own + k * kiln::warp_size < n ? from[k * kiln::warp_size] : fill;
  }
}

static __device__ __forceinline__ void load_keys(const sort_args &s,
                                                 const task &t,
                                                 const span &tile,
                                                 key (&keys)[KILN_ITEMS])
{
  const key *from = t.first ? s.in : t.to_other ? s.out : s.other;
  const unsigned own = own_first();

  load_tile(from + tile.begin, tile.n, static_cast<key>(~key(0)), keys);
  /* Positions from tile.n on keep the largest word, so that they are sorted to
   * the end. */
  if (t.first) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (tile.n == tile_size || own + k * kiln::warp_size < tile.n)
        keys[k] = kiln::radix_encode<KILN_FLOAT != 0>(keys[k], s.order);
  }
}

#if PAIRS
static __device__ __forceinline__ void load_values(const sort_args &s,
                                                   const task &t,
                                                   const span &tile,
                                                   value (&values)[KILN_ITEMS])
{
  const value *from = t.first      ? s.values_in
                      : t.to_other ? s.values_out
                                   : s.values_other;

  if (t.first && (s.flags & make_index) != 0) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      values[k] =
          static_cast<value>(tile.begin + own_first() + k * kiln::warp_size);
  } else {
    load_tile(from + tile.begin, tile.n, value(0), values);
  }
}
#endif

/* Copies keys and values without changing their order. */
static __device__ __forceinline__ void
copy_tile(const sort_args &s, const task &t, const span &tile)
{
  const key *from = t.first ? s.in : t.to_other ? s.out : s.other;
  key *to = t.to_other ? s.other : s.out;
#if PAIRS
  const value *values_from = t.first      ? s.values_in
                             : t.to_other ? s.values_out
                                          : s.values_other;
  value *values_to = t.to_other ? s.values_other : s.values_out;
#endif

#pragma unroll 1
  for (unsigned k = threadIdx.x; k < tile.n; k += KILN_BLOCK) {
    const count i = tile.begin + k;

    if (!t.last || (s.flags & no_keys) == 0) {
      key word = from[i];

      if (t.first)
        word = kiln::radix_encode<KILN_FLOAT != 0>(word, s.order);
      if (t.last)
        word = kiln::radix_decode<KILN_FLOAT != 0>(word, s.order);
      to[i] = word;
    }
#if PAIRS
    values_to[i] = t.first && (s.flags & make_index) != 0
                       ? static_cast<value>(i)
                       : values_from[i];
#endif
  }
}

/* Computes the destination of the tile's keys whose digit is thread(). These
 * keys follow all keys with lower digits, and the keys with the same digit in
 * earlier tiles. */
static __device__ __forceinline__ void
find_places(const sort_args &s, shared_storage &r, const span &tile,
            unsigned start, unsigned total, count base)
{
  const unsigned d = kiln::thread();
  unsigned before = 0;

  if (tile.index > 0) {
    count *own =
        s.words + static_cast<count>(tile.number) * kiln::radix_digits + d;

    before = kiln::radix_look_back<KILN_WINDOW>(
        own - static_cast<count>(tile.index) * kiln::radix_digits, tile.index,
        s.epoch);
    kiln::word_store(
        own,
        static_cast<count>(kiln::descriptor_tag(s.epoch, kiln::status_prefix))
                << 32 |
            (before + total));
  }
  r.to[d] = static_cast<place>(base + before - start);
  if (s.next_base != nullptr &&
      tile.number == (KILN_TICKETS ? s.tiles : gridDim.x) - 1)
    s.next_base[d] = base + before + total;
}

/* Stores the sorted tile from shared memory. Keys of one digit have consecutive
 * destinations. Four keys per thread are in flight at a time. */
static __device__ __forceinline__ void
store_keys(const sort_args &s, const task &t, const shared_storage &r,
           const span &in, unsigned (&digits)[(KILN_ITEMS + 3) / 4])
{
  const key *tile = tile_storage<key>();
  key *to = t.to_other ? s.other : s.out;
  const unsigned stored = t.last && (s.flags & no_keys) != 0
                              ? 0
                              : in.n; /* number of keys to store */

#pragma unroll
  for (unsigned g = 0; g < KILN_ITEMS; g += 4) {
    constexpr unsigned most = 4;
    key word[most];
    place where[most];

    if (PAIRS)
      digits[g / 4] = 0;
#pragma unroll
    for (unsigned e = 0; e < most && g + e < KILN_ITEMS; ++e) {
      const unsigned i = (g + e) * KILN_BLOCK + threadIdx.x;
      unsigned digit;

      word[e] = tile[i];
      digit = kiln::radix_digit(word[e], s.shift, s.mask);
      if (PAIRS)
        digits[g / 4] |= digit << e * 8;
      where[e] = static_cast<place>(r.to[digit] + i);
    }
    if (t.last) {
#pragma unroll
      for (unsigned e = 0; e < most && g + e < KILN_ITEMS; ++e)
        word[e] = kiln::radix_decode<KILN_FLOAT != 0>(word[e], s.order);
    }
#pragma unroll
    for (unsigned e = 0; e < most && g + e < KILN_ITEMS; ++e)
      if ((g + e) * KILN_BLOCK + threadIdx.x < stored && inside(where[e], in))
        to[where[e]] = word[e];
  }
}

#if PAIRS
static __device__ __forceinline__ void
store_values(const sort_args &s, const task &t, const shared_storage &r,
             const span &in, const unsigned (&digits)[(KILN_ITEMS + 3) / 4])
{
  const value *tile = tile_storage<value>();
  value *to = t.to_other ? s.values_other : s.values_out;

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = k * KILN_BLOCK + threadIdx.x;
    const unsigned digit = digits[k / 4] >> k % 4 * 8 & 255u;

    const place where = static_cast<place>(r.to[digit] + i);

    if (i < in.n && inside(where, in))
      to[where] = tile[i];
  }
}
#endif

/* Takes the number of the next tile. Only the result in thread 0 matters. The
 * tiles are started in the order of their numbers, so a look-back waits only for
 * blocks that run. */
static __device__ __forceinline__ unsigned take_ticket(const sort_args &s)
{
  return KILN_TICKETS && threadIdx.x == 0 ? atomicAdd(s.ticket, 1u) : 0u;
}

/* Returns the ticket for the next tile, which is taken as soon as the
 * destinations of this tile are known. */
static __device__ __forceinline__ unsigned
sort_tile(const sort_args &s, const task &t, const span &tile, count base)
{
  shared_storage &r = *reinterpret_cast<shared_storage *>(shared);
  key keys[KILN_ITEMS];
  unsigned rank[KILN_ITEMS];
  unsigned digits[(KILN_ITEMS + 3) / 4];
  unsigned start, total;
  unsigned shift = s.shift;

  load_keys(s, t, tile, keys);

  const auto digit_of = [&](unsigned k) {
    return kiln::radix_digit(keys[k], shift, s.mask);
  };

  kiln::radix_rank_warp(r.counters.row[kiln::warp()], digit_of, rank);
  __syncthreads();
  start = r.counters.places(total, [&](unsigned own) {
    const unsigned state =
        tile.index == 0 ? kiln::status_prefix : kiln::status_partial;

    kiln::word_store(
        s.words + static_cast<count>(tile.number) * kiln::radix_digits +
            kiln::thread(),
        static_cast<count>(kiln::descriptor_tag(s.epoch, state)) << 32 | own);
  });
  __syncthreads();
  /* The empty asm statement makes the compiler recompute the digits, which saves
   * registers. */
  asm volatile("" : "+r"(shift));
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    rank[k] += r.counters.row[kiln::warp()][digit_of(k)];
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    tile_storage<key>()[rank[k]] = keys[k];
#if PAIRS
  value values[KILN_ITEMS];

  load_values(s, t, tile, values);
#endif
  if (kiln::thread() < kiln::radix_digits)
    find_places(s, r, tile, start, total, base);
  __syncthreads();

  const unsigned next = take_ticket(s);

  store_keys(s, t, r, tile, digits);
#if PAIRS
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    tile_storage<value>()[rank[k]] = values[k];
  __syncthreads();
  store_values(s, t, r, tile, digits);
#endif
  return next;
}

#if KILN_TICKETS
/* Sorts tiles until all of them are taken. */
static __device__ __forceinline__ void sort_tiles(const sort_args &s)
{
  __shared__ unsigned number;
  const task t = task_of(s);
  unsigned next = take_ticket(s);
  count base = 0;

  if (t.nothing)
    return;
  if (kiln::thread() < kiln::radix_digits)
    base = s.base[kiln::thread()];
#pragma unroll 1
  for (;;) {
    if (threadIdx.x == 0)
      number = next;
    reinterpret_cast<shared_storage *>(shared)->counters.clear();
    __syncthreads();
    if (number >= s.tiles)
      return;
    if (t.copy) {
      copy_tile(s, t, tile_of(s, number));
      next = take_ticket(s);
    } else {
      next = sort_tile(s, t, tile_of(s, number), base);
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    radix_pass(const sort_args s)
{
  if (kiln::chain_left_out<kiln::link::inner>(s.skip))
    return;
  kiln::launch_wait();
  sort_tiles(s);
}
#elif !KILN_SEGMENTED
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    radix_pass(const sort_args s)
{
  reinterpret_cast<shared_storage *>(shared)->counters.clear();
  kiln::launch_wait();
  kiln::launch_next();

  const task t = task_of(s);
  count base = 0;

  if (t.nothing)
    return;
  if (t.copy) {
    copy_tile(s, t, tile_of(s, blockIdx.x));
    return;
  }
  /* The load is early, which hides its latency. */
  if (kiln::thread() < kiln::radix_digits)
    base = s.base[kiln::thread()];
  sort_tile(s, t, tile_of(s, blockIdx.x), base);
}
#else
/* Returns the destination of the segment's first key whose digit is thread(). */
static __device__ __forceinline__ count segment_base(const sort_args &s,
                                                     const segments &g)
{
  const unsigned own = g.tile[blockIdx.x];
  const unsigned d = kiln::thread();
  const unsigned n =
      d < kiln::radix_digits
          ? g.counts[(static_cast<count>(own) * g.passes + s.step) *
                         kiln::radix_digits +
                     d]
          : 0;

  return g.list[own].begin + kiln::block_scan_exclusive(n, kiln::sum(), 0u);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    radix_pass(const sort_args s, const segments g)
{
  reinterpret_cast<shared_storage *>(shared)->counters.clear();
  kiln::launch_wait();
  kiln::launch_next();

  const task t = task_of(s);

  if (blockIdx.x >= *g.n_tiles || t.nothing)
    return;
  if (t.copy)
    copy_tile(s, t, tile_of(g));
  else
    sort_tile(s, t, tile_of(g), segment_base(s, g));
}
#endif
