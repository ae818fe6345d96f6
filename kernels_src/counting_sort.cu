/* counting_sort.cu -- sort integer keys that have few different values, by counting the
 * keys (counting sort: Seward 1954; Knuth, volume 3, section 5.2).
 *
 * Without values, no key has to be moved. sort_prefix replaces the counts of
 * histogram.cu by the start of the run of each key, and sort_fill writes the runs.
 * With values, the kernels make one stable pass per digit of 8 bits, from the lowest
 * digit to the highest. sort_count counts the digits in the chunk of each block.
 * sort_prefix_blocks scans these counts in the order of digits, then of blocks.
 * sort_scatter moves the elements, and keeps their order within each digit.
 * Cost: without values, keys are read once and written once. With values, each pass
 * reads the keys twice and moves keys and values once.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block, at least 256
 *   KILN_ITEMS    12             elements per thread and tile
 *   KILN_T        type unsigned  type of a key
 *   KILN_V        type unsigned  type of a value
 *   KILN_COUNT    type unsigned  type of a count, unsigned or unsigned long long
 *   KILN_OFFSET   type unsigned  type of the offsets that the caller receives
 *   KILN_ALIGNED  1              1 if the keys that sort_fill writes are aligned to
 *                                16 bytes
 * Launch: sort_prefix and sort_prefix_blocks run in one block of 1,024 threads. The
 *         block size of the other kernels is KILN_BLOCK. The grid of sort_fill has any
 *         size. sort_count and sort_scatter have the same grid, in which each block
 *         handles `each` elements, a multiple of KILN_BLOCK * KILN_ITEMS.
 *         lowest  lowest possible key
 *         range   number of possible keys, which are lowest to lowest + range - 1
 *         n       number of elements. If limit is not NULL and *limit is less than n,
 *                 *limit is the number of elements
 *         shift   number of the lowest bit of the digit in key - lowest */
#include <kiln/params/counting_sort.cuh>

#define KILN_READ_ONLY 0    /* the output array may be the input array */
#define KILN_MAX_BLOCK 1024 /* block size of sort_prefix */
#include <kiln/types.cuh>

static_assert(KILN_BLOCK >= 256, "KILN_BLOCK: a thread for each digit");

typedef unsigned long long count;

enum : unsigned {
  digits = 256,
  none = digits, /* the digit that stands for every key out of range */
  tile_size = KILN_BLOCK * KILN_ITEMS,
  warps = KILN_BLOCK / 32,
  vector_size = 16 / sizeof(KILN_T),
  /* number of keys that a block of sort_fill writes per iteration */
  fill_size = KILN_BLOCK * 4 * vector_size,
  nearby_size = 1024
};

/* ---- Prefix sums by one block -------------------------------------------- */

/* Sets start[k] to counts[0] + ... + counts[k - 1] for all k <= n. Sets also[k]
 * to the same value unless `also` is NULL. */
template <class C>
static __device__ __forceinline__ void add_up(const C *counts, unsigned n,
                                              count *start, KILN_OFFSET *also)
{
  const unsigned each = (n + blockDim.x - 1) / blockDim.x;
  const unsigned first = threadIdx.x * each;
  const unsigned end = first + each < n ? first + each : n;
  count sum = 0;

  for (unsigned k = first; k < end; ++k)
    sum += counts[k];
  sum = kiln::block_scan_exclusive(sum, kiln::sum(), static_cast<count>(0));
  for (unsigned k = first; k < end; ++k) {
    start[k] = sum;
    if (also != nullptr)
      also[k] = static_cast<KILN_OFFSET>(sum);
    sum += counts[k];
  }
  if (threadIdx.x == blockDim.x - 1) {
    start[n] = sum;
    if (also != nullptr)
      also[n] = static_cast<KILN_OFFSET>(sum);
  }
}

#if KILN_MAKES(sort_prefix)
extern "C" __global__ void __launch_bounds__(1024)
    sort_prefix(const KILN_COUNT *counts, unsigned range,
                unsigned long long *start, KILN_OFFSET *also)
{
  add_up(counts, range, start, also);
}
#endif

#if KILN_MAKES(sort_prefix_blocks)
extern "C" __global__ void __launch_bounds__(1024)
    sort_prefix_blocks(const unsigned *counts, unsigned n,
                       unsigned long long *start)
{
  add_up(counts, n, start, static_cast<KILN_OFFSET *>(nullptr));
}
#endif

/* ---- Keys without values ------------------------------------------------- */

/* Returns the last key k from `low` to `high` whose run starts at or before
 * element i, that is, start[k] <= i. The caller ensures that start[low] <= i. */
template <class P>
static __device__ __forceinline__ unsigned key_of(P start, unsigned low,
                                                  unsigned high, count i)
{
  while (low < high) {
    const unsigned middle = low + (high - low + 1) / 2;

    if (start[middle] <= i)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* Returns the last key k from 0 to `high` whose run starts at or before element
 * i, that is, start[k] <= i. One whole warp calls this function. Each step
 * makes 32 probes, because the latency of memory dominates the time of a step. */
static __device__ __forceinline__ unsigned warp_key_of(const count *start,
                                                       unsigned high, count i)
{
  unsigned low = 0;

  while (low < high) {
    const unsigned chunk = (high - low + 31) / 32;
    const unsigned at = low + (kiln::lane() + 1) * chunk;
    const bool before = at <= high && start[at] <= i;
    const unsigned chunks =
        static_cast<unsigned>(__popc(kiln::warp_ballot(before)));

    low += chunks * chunk;
    high = low + chunk - 1 < high ? low + chunk - 1 : high;
  }
  return low;
}

/* Writes one vector of keys, which starts at element i. The key of element i is
 * in the range from `low` to `high`. */
template <class P>
static __device__ __forceinline__ void fill_vector(KILN_T *out, count i,
                                                   P start, unsigned low,
                                                   unsigned high, count lowest)
{
  unsigned k = key_of(start, low, high, i);
  count next = start[k + 1];
  KILN_T value[vector_size];

#pragma unroll
  for (unsigned e = 0; e < vector_size; ++e) {
    while (i + e >= next)
      next = start[++k + 1];
    value[e] = static_cast<KILN_T>(lowest + k);
  }
  kiln::store_vector<vector_size, KILN_ALIGNED != 0>(out + i, value);
}

#if KILN_MAKES(sort_fill)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 4)
    sort_fill(const unsigned long long *start, unsigned range,
              unsigned long long lowest, KILN_T *out)
{
  __shared__ count nearby[nearby_size];
  __shared__ unsigned ends[2];
  const count total = start[range];

  for (count first = static_cast<count>(blockIdx.x) * fill_size; first < total;
       first += static_cast<count>(gridDim.x) * fill_size) {
    const count past = first + fill_size < total ? first + fill_size : total;
    unsigned low, high;

    if (kiln::warp() < 2) {
      const unsigned k =
          warp_key_of(start, range - 1, kiln::warp() == 0 ? first : past - 1);

      if (kiln::lane() == 0)
        ends[kiln::warp()] = k;
    }
    __syncthreads();
    low = ends[0];
    high = ends[1];
    if (high - low + 2 <= nearby_size)
      for (unsigned k = threadIdx.x; k < high - low + 2; k += KILN_BLOCK)
        nearby[k] = start[low + k];
    __syncthreads();
#pragma unroll 1
    for (count i = first + threadIdx.x * vector_size; i < past;
         i += KILN_BLOCK * vector_size) {
      if (i + vector_size > past) {
        for (; i < past; ++i)
          out[i] = static_cast<KILN_T>(lowest + key_of(start, low, high, i));
      } else if (high - low + 2 <= nearby_size) {
        fill_vector(out, i, nearby, 0, high - low, lowest + low);
      } else {
        fill_vector(out, i, start, low, high, lowest);
      }
    }
    /* The barrier is needed because the next iteration overwrites `ends`. */
    __syncthreads();
  }
}
#endif

/* ---- Keys with values ---------------------------------------------------- */

/* The range of elements that a block handles, from `first` to end - 1. */
struct chunk {
  count first, end;
};

static __device__ __forceinline__ chunk chunk_of(count n, const count *limit,
                                                 count each)
{
  const count all = limit != nullptr && *limit < n ? *limit : n;
  const count first = blockIdx.x * each;

  return {first < all ? first : all, first + each < all ? first + each : all};
}

static __device__ __forceinline__ unsigned
digit_of(KILN_T key, count lowest, unsigned range, unsigned shift)
{
  const count distance = static_cast<count>(key) - lowest;

  return distance < range
             ? static_cast<unsigned>(distance) >> shift & (digits - 1)
             : static_cast<unsigned>(none);
}

#if KILN_MAKES(sort_count)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    sort_count(const KILN_T *keys, unsigned long long n,
               const unsigned long long *limit, unsigned long long each,
               unsigned long long lowest, unsigned range, unsigned shift,
               unsigned *counts)
{
  __shared__ unsigned tally[digits];
  const chunk p = chunk_of(n, limit, each);

  if (threadIdx.x < digits)
    tally[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 4
  for (count i = p.first + threadIdx.x; i < p.end; i += KILN_BLOCK) {
    const unsigned digit = digit_of(keys[i], lowest, range, shift);

    if (digit != none)
      atomicAdd(&tally[digit], 1u);
  }
  __syncthreads();
  if (threadIdx.x < digits)
    counts[threadIdx.x * gridDim.x + blockIdx.x] = tally[threadIdx.x];
}
#endif

/* Number of elements that each warp has counted in the current tile, per digit.
 * add_warps() replaces these numbers by their sums over the lower warps. */
__shared__ unsigned seen[warps][digits];
/* Destination of the tile's first element with each digit. */
__shared__ count place[digits];

/* Counts one element per lane in the array `seen`. Returns how many preceding
 * elements of the warp have the same digit. Element 32 k + l of the warp is
 * item k of lane l. */
static __device__ __forceinline__ unsigned rank_item(unsigned digit)
{
  const unsigned same = kiln::warp_match(digit);
  const unsigned lower = same & ((1u << kiln::lane()) - 1);
  unsigned before = 0;

  if (digit != none)
    before = seen[kiln::warp()][digit];
  __syncwarp();
  if (digit != none && lower == 0)
    seen[kiln::warp()][digit] = before + static_cast<unsigned>(__popc(same));
  __syncwarp();
  return before + static_cast<unsigned>(__popc(lower));
}

/* Replaces the counts of one digit by their exclusive scan over the warps, and
 * returns the count of the digit in the tile. */
static __device__ __forceinline__ unsigned add_warps(unsigned digit)
{
  unsigned sum = 0;

#pragma unroll
  for (unsigned w = 0; w < warps; ++w) {
    const unsigned here = seen[w][digit];

    seen[w][digit] = sum;
    sum += here;
  }
  return sum;
}

/* sort_scatter limits registers for three resident blocks per SM, except on
 * devices on which ranking needs more registers. */
#if KILN_MAKES(sort_scatter)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_ARCH >= 80 ? 3 : 1)
    sort_scatter(const KILN_T *keys, const KILN_V *values, unsigned long long n,
                 const unsigned long long *limit, unsigned long long each,
                 unsigned long long lowest, unsigned range, unsigned shift,
                 const unsigned long long *start, KILN_T *keys_out,
                 KILN_V *values_out)
{
  const chunk p = chunk_of(n, limit, each);
  /* Destination of the next element whose digit is threadIdx.x. */
  count next = 0;

  if (threadIdx.x < digits)
    next = start[threadIdx.x * gridDim.x + blockIdx.x];
#pragma unroll 1
  for (count first = p.first; first < p.end; first += tile_size) {
    const count mine = first + kiln::warp() * (32 * KILN_ITEMS) + kiln::lane();
    KILN_T key[KILN_ITEMS];
    /* Rank of each element. Bits 16 and above hold the digit of the element. */
    unsigned rank[KILN_ITEMS];

    for (unsigned d = threadIdx.x; d < warps * digits; d += KILN_BLOCK)
      (&seen[0][0])[d] = 0;
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      key[k] =
          mine + k * 32 < p.end ? keys[mine + k * 32] : static_cast<KILN_T>(0);
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const unsigned digit = mine + k * 32 < p.end
                                 ? digit_of(key[k], lowest, range, shift)
                                 : static_cast<unsigned>(none);

      rank[k] = digit << 16 | rank_item(digit);
    }
    __syncthreads();
    if (threadIdx.x < digits) {
      place[threadIdx.x] = next;
      next += add_warps(threadIdx.x);
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const unsigned digit = rank[k] >> 16;

      if (digit != none) {
        const count to =
            place[digit] + seen[kiln::warp()][digit] + (rank[k] & 0xffffu);

        if (keys_out != nullptr)
          keys_out[to] = key[k];
        values_out[to] = values[mine + k * 32];
      }
    }
    /* The barrier is needed because the next iteration clears the counts. */
    __syncthreads();
  }
}
#endif
