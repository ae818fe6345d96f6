/* segmented_sort.cu -- sort the elements of each segment of an array.
 *
 * Idea: segments are classified by length. One warp sorts a short segment by a rank sort,
 * in which each lane counts how many keys precede its own keys. One block sorts a middle
 * segment by a radix sort in shared memory (radix.cuh). For long segments, these kernels
 * only write a list of segments and count the digits. Then radix_pass.cu sorts the long
 * segments tile by tile.
 * Atomic additions fill the lists, so the order of a list is arbitrary. The result does
 * not depend on this order.
 * Robustness: two consecutive offsets form no segment if they decrease or exceed n. For
 * any offsets, no kernel reads or writes outside of the arrays.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block, a multiple of 32, at least 256
 *   KILN_ITEMS   12             maximum number of keys per thread in middle segments
 *   KILN_SHORT   4              maximum number of keys per lane in short segments
 *   KILN_KEY     4              bytes per key: 1, 2, 4 or 8
 *   KILN_VALUE   0              bytes per value: 1, 2, 4 or 8; 0 if there are no values
 *   KILN_FLOAT   0              1 if keys are floats
 *   KILN_OFFSET  type unsigned  type of an offset
 *   KILN_TILE    4096           keys per tile of a long segment
 *   KILN_PASSES  4              digits per key
 * Launch: the caller clears counts[3] before the first launch. These are the numbers of
 * middle segments, of long segments and of tiles. The block size is KILN_BLOCK.
 *   segments_short   The grid has any size. If the grid has W warps, warp w sorts or
 *                    lists segments w, w + W, w + 2 W, ...
 *   segments_middle  The grid has any size. If the grid has B blocks, block b sorts
 *                    entries b, b + B, b + 2 B, ... of the list. The size of dynamic
 *                    shared memory is sizeof(struct shared_storage).
 *   segments_count   The grid has one block per tile; the number of tiles may be an
 *                    upper bound. */
#include <kiln/params/segmented_sort.cuh>

#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 0 /* the output array may be the input array */
#include <kiln/radix.cuh>

#define PAIRS (KILN_VALUE > 0)

typedef kiln::unsigned_of<KILN_KEY>::type key;
typedef kiln::unsigned_of<PAIRS ? KILN_VALUE : 1>::type value;
typedef unsigned long long count;

enum : unsigned {
  short_most = KILN_SHORT * kiln::warp_size,
  middle_most = KILN_BLOCK * KILN_ITEMS,
  warps = KILN_BLOCK / kiln::warp_size,
  counters = KILN_PASSES * kiln::radix_digits
};

static_assert(middle_most <= 65536, "indices have 16 bits");

enum : unsigned { n_middle, n_long, n_tiles };

/* A long segment; radix_pass.cu declares the same struct. */
struct segment {
  count begin;
  unsigned n, first_tile;
};

struct sort_args {
  const key *in;
  key *out;
  const value *values_in;
  value *values_out;
  const KILN_OFFSET *offsets; /* n_segments + 1 non-decreasing offsets */
  count n_segments, n;
  kiln::radix_order order;
  /* Mask of the key bits to sort by, after a right shift by begin_bit. */
  count mask;
  unsigned begin_bit, end_bit;
  unsigned *counts;
  count *middle; /* list of the indices of middle segments */
  segment *list; /* list of the long segments */
  /* tile[t] is the index in `list` of the segment that tile t belongs to. */
  unsigned *tile;
  /* Number of keys per [entry of list][pass][digit]. */
  unsigned *digits;
  /* Maximum numbers of entries of `middle`, `list` and `tile`. */
  unsigned most[3];
  unsigned reserved;
};

/* ---- Short segments: one warp per segment -------------------------------- */

/* Sorts a segment of at most `items` * 32 keys by one warp. Each lane counts, for
 * each of its keys, how many keys of the segment precede that key. */
template <unsigned items>
static __device__ __forceinline__ void sort_short(const sort_args &s,
                                                  count begin, unsigned n)
{
  const unsigned lane = kiln::lane();
  key raw[items], word[items];
  unsigned rank[items] = {};

#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = k * kiln::warp_size + lane;

    raw[k] = i < n ? s.in[begin + i] : key(0);
    word[k] = static_cast<key>(
        kiln::radix_encode<KILN_FLOAT != 0>(raw[k], s.order) >> s.begin_bit &
        s.mask);
  }
#pragma unroll
  for (unsigned from = 0; from < items; ++from) {
    const unsigned first = from * kiln::warp_size;

#pragma unroll 4
    for (unsigned l = 0; l < kiln::warp_size; ++l) {
      const key other = kiln::shuffle(word[from], l);

      if (first + l >= n)
        break;
#pragma unroll
      for (unsigned k = 0; k < items; ++k)
        rank[k] += other < word[k] || (other == word[k] &&
                                       first + l < k * kiln::warp_size + lane)
                       ? 1
                       : 0;
    }
  }
#if PAIRS
  value values[items];

#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    if (k * kiln::warp_size + lane < n)
      values[k] = s.values_in[begin + k * kiln::warp_size + lane];
#endif
  kiln::
      /* The sort may be in place, so all keys are read before any is stored. */
      warp_sync();
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    if (k * kiln::warp_size + lane < n) {
      s.out[begin + rank[k]] = raw[k];
#if PAIRS
      s.values_out[begin + rank[k]] = values[k];
#endif
    }
}

/* Adds a long segment to the lists for later launches. One whole warp calls
 * this function. */
static __device__ __forceinline__ void list_long(const sort_args &s,
                                                 count begin, unsigned n)
{
  const unsigned tiles = (n + KILN_TILE - 1) / KILN_TILE;
  unsigned own = 0, first = 0;

  if (kiln::lane() == 0)
    own = atomicAdd(&s.counts[n_long], 1u);
  own = kiln::warp_broadcast(own, 0);
  if (own >= s.most[n_long])
    return;
  if (kiln::lane() == 0) {
    first = atomicAdd(&s.counts[n_tiles], tiles);
    s.list[own] = {begin, n, first};
  }
  first = kiln::warp_broadcast(first, 0);
  for (unsigned k = kiln::lane(); k < tiles; k += kiln::warp_size)
    if (first + k < s.most[n_tiles])
      s.tile[first + k] = own;
  for (unsigned k = kiln::lane(); k < counters; k += kiln::warp_size)
    s.digits[static_cast<count>(own) * counters + k] = 0;
}

/* Adds a middle segment to the list for a later launch. One lane calls this
 * function. */
static __device__ __forceinline__ void list_middle(const sort_args &s, count i)
{
  const unsigned own = atomicAdd(&s.counts[n_middle], 1u);

  if (own < s.most[n_middle])
    s.middle[own] = i;
}

#if KILN_MAKES(segments_short)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    segments_short(const sort_args s)
{
  const count stride = static_cast<count>(gridDim.x) * warps;
  count i = static_cast<count>(blockIdx.x) * warps + kiln::warp();

  kiln::launch_wait();
  kiln::launch_next();
#pragma unroll 1
  for (; i < s.n_segments; i += stride) {
    const count begin = static_cast<count>(s.offsets[i]);
    const count end = static_cast<count>(s.offsets[i + 1]);
    const unsigned n =
        end > begin && end <= s.n ? static_cast<unsigned>(end - begin) : 0;

    if (n == 0)
      continue;
    if (n <= kiln::warp_size)
      sort_short<1>(s, begin, n);
    else if (n <= short_most)
      sort_short<KILN_SHORT>(s, begin, n);
    else if (n > middle_most)
      list_long(s, begin, n);
    else if (kiln::lane() == 0)
      list_middle(s, i);
  }
}
#endif

/* ---- Middle segments: one block per segment ------------------------------ */

extern __shared__ uint4 shared[];

struct alignas(16) shared_storage {
  kiln::radix_counters<KILN_BLOCK> counters;
  key keys[middle_most];
  unsigned short index[PAIRS ? middle_most : 1];
};

static __device__ __forceinline__ unsigned place_of(unsigned k)
{
  return kiln::warp() * (KILN_ITEMS * kiln::warp_size) + k * kiln::warp_size +
         kiln::lane();
}

static __device__ __forceinline__ void sort_middle(const sort_args &s,
                                                   count begin, unsigned n)
{
  shared_storage &r = *reinterpret_cast<shared_storage *>(shared);
  key keys[KILN_ITEMS];
  unsigned index[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    index[k] = place_of(k);
    keys[k] = index[k] < n ? kiln::radix_encode<KILN_FLOAT != 0>(
                                 s.in[begin + index[k]], s.order)
                           : static_cast<key>(~key(0));
  }
  kiln::radix_sort_block<KILN_BLOCK, KILN_ITEMS, PAIRS>(
      r.counters, r.keys, r.index, keys, index, s.begin_bit, s.end_bit);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (place_of(k) < n)
      s.out[begin + place_of(k)] =
          kiln::radix_decode<KILN_FLOAT != 0>(keys[k], s.order);
#if PAIRS
  value values[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (place_of(k) < n)
      values[k] = s.values_in[begin + index[k]];
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (place_of(k) < n)
      s.values_out[begin + place_of(k)] = values[k];
#endif
  __syncthreads();
}

#if KILN_MAKES(segments_middle)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    segments_middle(const sort_args s)
{
  kiln::launch_wait();
  kiln::launch_next();

  const unsigned n = kiln::least(s.counts[n_middle], s.most[n_middle]);

#pragma unroll 1
  for (unsigned k = blockIdx.x; k < n; k += gridDim.x) {
    const count i = s.middle[k];
    const count begin = static_cast<count>(s.offsets[i]);

    sort_middle(
        s, begin,
        static_cast<unsigned>(static_cast<count>(s.offsets[i + 1]) - begin));
  }
}
#endif

/* ---- Long segments: input of radix_pass.cu ------------------------------- */

#if KILN_MAKES(segments_count)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    segments_count(const sort_args s)
{
  __shared__ unsigned tally[counters];

  kiln::launch_wait();
  kiln::launch_next();
  if (blockIdx.x >= s.counts[n_tiles])
    return;

  const unsigned own = s.tile[blockIdx.x];
  const segment g = s.list[own];
  const unsigned first = (blockIdx.x - g.first_tile) * KILN_TILE;
  const unsigned end = kiln::least(g.n, first + KILN_TILE);

  for (unsigned k = threadIdx.x; k < counters; k += KILN_BLOCK)
    tally[k] = 0;
  __syncthreads();
#pragma unroll 4
  for (unsigned k = first + threadIdx.x; k < end; k += KILN_BLOCK) {
    const key word = static_cast<key>(
        kiln::radix_encode<KILN_FLOAT != 0>(s.in[g.begin + k], s.order) >>
            s.begin_bit &
        s.mask);

#pragma unroll
    for (unsigned p = 0; p < KILN_PASSES; ++p)
      atomicAdd(&tally[p * kiln::radix_digits +
                       kiln::radix_digit(word, p * kiln::radix_bits,
                                         kiln::radix_digits - 1)],
                1u);
  }
  __syncthreads();
  for (unsigned k = threadIdx.x; k < counters; k += KILN_BLOCK)
    if (tally[k] != 0)
      atomicAdd(&s.digits[static_cast<count>(own) * counters + k], tally[k]);
}
#endif
