/* split.cu -- sort elements into buckets by a key, stably, without locks or atomics. The
 * steps are counting, a prefix scan and a scatter.
 *
 * Idea: each block handles a contiguous range of tiles. split_count counts the elements
 * of the range per bucket. split_scan replaces all counts by destinations. split_move
 * reads the range again and moves the elements (Satish, Harris and Garland, Designing
 * Efficient Sorting Algorithms for Manycore GPUs, 2009). split_move first sorts each tile
 * by bucket in shared memory, so that elements of one bucket are stored together.
 * A single tile needs only split_move. More than 256 buckets need two rounds, the first
 * by the low bits of the key and the second by the high bits.
 * Cost: two reads and one write per element and round.
 *
 * Parameters:
 *   KILN_BLOCK     256            threads per block, at least KILN_BINS
 *   KILN_ITEMS     (KILN_ARCH < 70 ? 8 : 16)  elements per thread; ranking by votes takes
 *                                 more registers
 *   KILN_BUCKETS   256            number of buckets, at most 65536; an element with a
 *                                 larger key belongs to the last bucket
 *   KILN_SHIFT     0              the round sorts by bin (key >> KILN_SHIFT) % KILN_BINS
 *   KILN_BINS      256            number of bins per round, at most 256; a power of two
 *                                 if KILN_SHIFT is 0 and the keys have more bits
 *   KILN_KEYS      0              1 writes the keys as well
 *   KILN_POSITION  type unsigned  type of an offset
 *   KILN_WIDE      0              1 if n is 2^32 or more
 * Generated code (user.cuh): the map computes the elements. `key` is a long long function
 * of the same inputs.
 * Launch: the block size is KILN_BLOCK. split_count and split_move have the same grid, with
 *         at most one block per tile and `each` tiles per block. The grid of split_scan
 *         has KILN_BINS blocks. After two rounds, split_offsets computes the offsets from
 *         the sorted keys, with KILN_BUCKETS + 1 threads.
 *         n          number of elements, at least 1
 *         table      one row per bin, with one count per block; then one total per bin.
 *                    split_scan replaces the counts by destinations. NULL if there is
 *                    only one tile
 *         out        receives n elements
 *         out_keys   receives n keys
 *         offsets    receives KILN_BUCKETS + 1 offsets; may be NULL
 * Result: the result is the same on every device. */
#include <kiln/params/split.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>

#ifndef KILN_MATCH
#define KILN_MATCH (KILN_HAS_MATCH && KILN_BINS > 16)
#endif

#if !KILN_GENERATED
namespace user
{
template <unsigned n>
static __device__ __forceinline__ long long
key_at(const args &, const vector<n> &p, unsigned e, index)
{
  return static_cast<long long>(p.x0[e]);
}
} // namespace user
#endif

static_assert(KILN_BINS <= KILN_BLOCK, "KILN_BINS: a thread each");
static_assert(KILN_BINS <= 256, "KILN_BINS: at most 256");

typedef kiln::tile_shape<KILN_BLOCK, KILN_ITEMS, 1> shape;

/* ---- Keys ---------------------------------------------------------------- */

struct tile {
  user::value value[KILN_ITEMS];
  unsigned short key[KILN_ITEMS];
};

template <bool values> struct taker {
  const user::args &in;
  tile &t;

  template <unsigned n>
  __device__ __forceinline__ void
  operator()(unsigned slot, const user::vector<n> &p, unsigned e, count i) const
  {
    const count key = static_cast<count>(user::key_at(in, p, e, i));

    if (values)
      t.value[slot] = user::map_at(in, p, e, i);
    t.key[slot] = static_cast<unsigned short>(
        key < KILN_BUCKETS ? key : static_cast<count>(KILN_BUCKETS - 1));
  }
};

static __device__ __forceinline__ unsigned bin_of(unsigned key)
{
  return KILN_BINS == KILN_BUCKETS ? key : (key >> KILN_SHIFT) % KILN_BINS;
}

static __device__ __forceinline__ unsigned elements_of(count tile, count n)
{
  const count first = tile * shape::size;

  return static_cast<unsigned>(n - first < shape::size ? n - first
                                                       : shape::size);
}

/* ---- Counters per warp --------------------------------------------------- */

/* Returns the mask of those lanes whose element exists and has the same bin as
 * the element of the calling lane. `exists` states whether the calling lane's
 * element exists. */
static __device__ __forceinline__ unsigned same_bin(unsigned bin, bool exists)
{
  unsigned same = kiln::warp_ballot(exists);

#if KILN_MATCH
  same &= kiln::warp_match(bin);
#else
#pragma unroll
  for (unsigned bit = 1; bit < KILN_BINS; bit *= 2) {
    const unsigned set = kiln::warp_ballot((bin & bit) != 0);

    same &= (bin & bit) != 0 ? set : ~set;
  }
#endif
  return same;
}

static __device__ __forceinline__ void warp_sync()
{
#if KILN_HAS_ITS
  __syncwarp();
#endif
}

/* The counters of a block, with one row of counters per warp. */
struct counters {
  unsigned bin[shape::warps][KILN_BINS];
};

static __device__ __forceinline__ void clear(counters &c)
{
  for (unsigned b = threadIdx.x; b < shape::warps * KILN_BINS; b += KILN_BLOCK)
    c.bin[b / KILN_BINS][b % KILN_BINS] = 0;
}

/* Counts one element per lane. Returns the number of elements of the same bin
 * that the warp has counted before the calling lane's element. */
static __device__ __forceinline__ unsigned take_rank(volatile unsigned *row,
                                                     unsigned bin, bool exists)
{
  const unsigned same = same_bin(bin, exists);
  const unsigned below =
      static_cast<unsigned>(__popc(same & ((1u << kiln::lane()) - 1)));
  const unsigned before = exists ? row[bin] : 0;

  warp_sync();
  if (exists && below == 0)
    row[bin] = before + static_cast<unsigned>(__popc(same));
  warp_sync();
  return before + below;
}

/* ---- Kernel split_count -------------------------------------------------- */

#if KILN_MAKES(split_count)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_count(const user::args in, unsigned long long n, unsigned each,
                position *table)
{
  __shared__ counters c;
  const count tiles = (n + shape::size - 1) / shape::size;
  const count begin = blockIdx.x * static_cast<count>(each);
  const count end = begin + each < tiles ? begin + each : tiles;

  clear(c);
  __syncthreads();
#pragma unroll 1
  for (count which = begin; which < end; ++which) {
    const unsigned valid = elements_of(which, n);
    tile t;

    kiln::tile_load<shape, KILN_ITEMS, 1>(in, which * shape::size, valid,
                                          taker<false>{in, t});
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      take_rank(c.bin[kiln::warp()], bin_of(t.key[k]), shape::place(k) < valid);
  }
  __syncthreads();
  if (threadIdx.x < KILN_BINS) {
    position sum = 0;

    for (unsigned w = 0; w < shape::warps; ++w)
      sum += c.bin[w][threadIdx.x];
    table[static_cast<count>(threadIdx.x) * gridDim.x + blockIdx.x] = sum;
  }
}
#endif

/* ---- Kernel split_scan --------------------------------------------------- */

/* In split_scan, block b replaces the row of bin b by its exclusive scan, and
 * stores the total of the row. */
#if KILN_MAKES(split_scan)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_scan(position *table, unsigned blocks)
{
  position *row = table + static_cast<count>(blockIdx.x) * blocks;
  position before = 0;

  for (unsigned first = 0; first < blocks; first += KILN_BLOCK) {
    const unsigned k = first + threadIdx.x;
    const position mine = k < blocks ? row[k] : 0;
    const position upto = kiln::block_scan_inclusive(mine, kiln::sum{});

    if (k < blocks)
      row[k] = before + upto - mine;
    before += kiln::block_broadcast(upto, KILN_BLOCK - 1);
  }
  if (threadIdx.x == 0)
    table[static_cast<count>(gridDim.x) * blocks + blockIdx.x] = before;
}
#endif

/* ---- Kernel split_move --------------------------------------------------- */

struct shared_storage {
  counters c;
  user::stored value[shape::size];
  unsigned short key[shape::size];
  position next[KILN_BINS]; /* destination of the next element of each bin */
  /* Destination of an element minus its position in the tile, for each bin. */
  position shift[KILN_BINS];
};

/* Computes the destination of the block's first element of each bin. All
 * threads of the block call this function. */
static __device__ __forceinline__ void
start(shared_storage &r, const position *table, count n, KILN_POSITION *offsets)
{
  const unsigned b = threadIdx.x;
  position total = 0, bin_start;

  if (table != 0 && b < KILN_BINS)
    total = table[static_cast<count>(KILN_BINS) * gridDim.x + b];
  bin_start = kiln::block_scan_exclusive(total, kiln::sum{}, position(0));
  if (b >= KILN_BINS)
    return;
  r.next[b] = bin_start;
  if (table == 0)
    return;
  r.next[b] += table[static_cast<count>(b) * gridDim.x + blockIdx.x];
  if (offsets == 0 || blockIdx.x != 0)
    return;
  offsets[b] = static_cast<KILN_POSITION>(bin_start);
  if (b == KILN_BINS - 1)
    offsets[KILN_BINS] = static_cast<KILN_POSITION>(n);
}

/* Replaces the counts of the warps by positions in the tile. All threads of the
 * block call this function. */
static __device__ __forceinline__ void
place_bins(shared_storage &r, bool only_tile, count n, KILN_POSITION *offsets)
{
  const unsigned b = threadIdx.x;
  unsigned sum = 0, start;

  if (b < KILN_BINS)
    for (unsigned w = 0; w < shape::warps; ++w)
      sum += r.c.bin[w][b];
  start = kiln::block_scan_exclusive(sum, kiln::sum{}, 0u);
  if (b >= KILN_BINS)
    return;
  if (only_tile) {
    r.next[b] = start;
    if (offsets != 0) {
      offsets[b] = static_cast<KILN_POSITION>(start);
      if (b == KILN_BINS - 1)
        offsets[KILN_BINS] = static_cast<KILN_POSITION>(n);
    }
  }
  r.shift[b] = r.next[b] - start;
  r.next[b] += sum;
  for (unsigned w = 0; w < shape::warps; ++w) {
    const unsigned mine = r.c.bin[w][b];

    r.c.bin[w][b] = start;
    start += mine;
  }
}

static __device__ __forceinline__ void
move_tile(shared_storage &r, const user::args &in, count n, count which,
          bool only_tile, user::stored *out, unsigned short *out_keys,
          KILN_POSITION *offsets)
{
  const unsigned valid = elements_of(which, n);
  unsigned short rank[KILN_ITEMS];
  tile t;

  kiln::tile_load<shape, KILN_ITEMS, 1>(in, which * shape::size, valid,
                                        taker<true>{in, t});
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    rank[k] = static_cast<unsigned short>(take_rank(
        r.c.bin[kiln::warp()], bin_of(t.key[k]), shape::place(k) < valid));
  __syncthreads();
  place_bins(r, only_tile, n, offsets);
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (shape::place(k) < valid) {
      const unsigned to = r.c.bin[kiln::warp()][bin_of(t.key[k])] + rank[k];

      r.value[to] = kiln::narrow<user::stored>(t.value[k]);
      r.key[to] = t.key[k];
    }
  __syncthreads();
  clear(r.c);
#pragma unroll 4
  for (unsigned j = threadIdx.x; j < valid; j += KILN_BLOCK) {
    const position to = r.shift[bin_of(r.key[j])] + j;

    out[to] = r.value[j];
#if KILN_KEYS
    out_keys[to] = r.key[j];
#endif
  }
  __syncthreads();
}

#if KILN_MAKES(split_move)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_move(const user::args in, unsigned long long n, unsigned each,
               const position *table, user::stored *out,
               unsigned short *out_keys, KILN_POSITION *offsets)
{
  __shared__ shared_storage r;
  const count tiles = (n + shape::size - 1) / shape::size;
  const count begin = blockIdx.x * static_cast<count>(each);
  const count end = begin + each < tiles ? begin + each : tiles;

  start(r, table, n, offsets);
  clear(r.c);
  __syncthreads();
#pragma unroll 1
  for (count which = begin; which < end; ++which)
    move_tile(r, in, n, which, table == 0, out, out_keys, offsets);
}
#endif

/* ---- Kernel split_offsets ------------------------------------------------ */

#if KILN_MAKES(split_offsets)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_offsets(const unsigned short *keys, unsigned long long n,
                  KILN_POSITION *offsets)
{
  const unsigned bucket = blockIdx.x * KILN_BLOCK + threadIdx.x;
  count low = 0,
        /* invariant: the first key that is at least `bucket` has an index from
         * `low` to `high` */
      high = n;

  if (bucket > KILN_BUCKETS)
    return;
  while (low < high) {
    const count middle = low + (high - low) / 2;

    if (keys[middle] < bucket)
      low = middle + 1;
    else
      high = middle;
  }
  offsets[bucket] = static_cast<KILN_POSITION>(low);
}
#endif

#include <kiln/user_texts.cuh>
