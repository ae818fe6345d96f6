/* buckets.cu -- sort elements into buckets by the upper bits of their index. A bucket is
 * a contiguous range of the target, which is the array that a scatter writes or a gather
 * reads. Then a scatter or a gather can access the target bucket by bucket, and the
 * cache holds one bucket.
 *
 * Problem: a random access to a target larger than the cache transfers a whole sector of
 * memory for one element.
 * Idea: bucket_count counts the elements per bucket. bucket_begin replaces the counts by
 * the starts of the buckets. bucket_split moves the elements to their buckets. Then the
 * target is accessed bucket by bucket (multi-pass scatter and gather: He et al.,
 * Efficient Gather and Scatter Operations on Graphics Processors, 2007).
 * Invariant: the order within a bucket is arbitrary. Atomic additions assign the
 * destinations, in shared memory within a tile and in global memory for whole tiles. So
 * no block waits for another block. Each tile is first sorted by bucket in shared memory.
 * A run consists of the elements of a tile that have the same bucket, and each run is
 * stored contiguously.
 * Cost: one additional read and one additional write of each index and element.
 *
 * Parameters:
 *   KILN_BLOCK        256            threads per block
 *   KILN_ITEMS        4              vectors of 4 elements in flight per thread
 *   KILN_BUCKETS      128            number of buckets, a power of two, at most 1024
 *   KILN_INDEX        type unsigned  type of an index, unsigned or unsigned
 *                                    long long
 *   KILN_STORED       type unsigned  type of an index in the output of bucket_split
 *   KILN_DESTINATION  type unsigned  type that can represent n
 *   KILN_VALUE        type unsigned  type of an element of out. An unsigned type of the
 *                                    same size is enough if no element is converted
 *   KILN_SCATTER      1              1 if bucket_split moves values together with the
 *                                    indices; 0 if bucket_split records the destination
 *                                    of each element for bucket_join
 *   KILN_ALIGNED      3              bit 0 is set if index is aligned to 16 bytes, bit
 *                                    1 if out of bucket_join is aligned to 16 bytes
 * Generated code (user.cuh): for a scatter, the values and their map.
 * Launch: the block size is KILN_BLOCK. A tile has KILN_BLOCK * KILN_ITEMS * 4 elements.
 *   bucket_count  The grid has any size. Adds to counts[KILN_BUCKETS], which the caller
 *                 has cleared. The bucket of an index is index >> shift, or the last
 *                 bucket if index >> shift is too large.
 *   bucket_begin  The grid has one block. Replaces the counts by the starts of the
 *                 buckets.
 *   bucket_split  The grid has one block per `tiles_each` tiles. Writes `stored` in bucket order, and
 *                 for a scatter also `values`. For a gather, writes slot[i], which is the
 *                 position of element i in its sorted tile. For each run of a tile,
 *                 begin[] then receives the position in the tile at which the run
 *                 starts. delta[] receives the difference between the position of the
 *                 run in `stored` and its position in the tile.
 *   bucket_join   The grid is that of bucket_split. Sets out[i] to the entry of `values` at the
 *                 destination of element i.
 *   The kernels do nothing if `skip` is not NULL and its word is not 0. */
#include <kiln/params/buckets.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/user.cuh>

typedef unsigned long long count;

enum : unsigned {
  vector_size = 4,
  each = KILN_ITEMS * vector_size, /* elements per thread */
  tile_size = KILN_BLOCK * each,
  buckets_each = (KILN_BUCKETS + KILN_BLOCK - 1) / KILN_BLOCK
};

static_assert(KILN_BUCKETS <= 1024, "KILN_BUCKETS: at most 1024");
static_assert((KILN_BUCKETS & (KILN_BUCKETS - 1)) == 0,
              "KILN_BUCKETS: a power of two");
static_assert(tile_size <= 65536, "a slot has 16 bits");

static __device__ __forceinline__ unsigned bucket_of(KILN_STORED at,
                                                     unsigned shift)
{
  const KILN_STORED bucket = at >> shift;

  return bucket < KILN_BUCKETS ? static_cast<unsigned>(bucket)
                               : KILN_BUCKETS - 1;
}

/* Returns the position within the tile of element e of the calling thread's
 * vector k. */
static __device__ __forceinline__ unsigned element(unsigned k, unsigned e)
{
  return (k * KILN_BLOCK + threadIdx.x) * vector_size + e;
}

/* Loads the indices of a tile that has `here` elements. Positions beyond the
 * last element get copies of the last index. */
static __device__ __forceinline__ void
load_indices(const KILN_INDEX *index, unsigned here,
             KILN_STORED (&at)[KILN_ITEMS][vector_size])
{
  KILN_INDEX wide[KILN_ITEMS][vector_size];

  if (here == tile_size) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      kiln::load_vector<vector_size, (KILN_ALIGNED & 1) != 0,
                        kiln::cached::once>(index + element(k, 0), wide[k]);
  } else {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
      for (unsigned e = 0; e < vector_size; ++e)
        wide[k][e] = kiln::load(index + kiln::least(element(k, e), here - 1));
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
    for (unsigned e = 0; e < vector_size; ++e)
      at[k][e] = static_cast<KILN_STORED>(wide[k][e]);
}

/* Returns the bucket of element e of vector k. `at` is the element's index into
 * the target. Elements beyond the last element get the additional bucket
 * KILN_BUCKETS. */
static __device__ __forceinline__ unsigned
bucket_in_tile(KILN_STORED at, unsigned shift, unsigned k, unsigned e,
               unsigned here)
{
  return element(k, e) < here ? bucket_of(at, shift)
                              : static_cast<unsigned>(KILN_BUCKETS);
}

/* ---- Kernel bucket_count ------------------------------------------------- */

#if KILN_MAKES(bucket_count)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_count(const KILN_INDEX *index, count n, unsigned shift,
                 count *counts, const unsigned *skip)
{
  __shared__ unsigned seen[KILN_BUCKETS];
  const count stride = static_cast<count>(gridDim.x) * tile_size;

  if (kiln::left_out(skip))
    return;
  for (unsigned b = threadIdx.x; b < KILN_BUCKETS; b += KILN_BLOCK)
    seen[b] = 0;
  __syncthreads();
#pragma unroll 1
  for (count first = static_cast<count>(blockIdx.x) * tile_size; first < n;
       first += stride) {
    const unsigned here =
        n - first < tile_size ? static_cast<unsigned>(n - first) : tile_size;
    KILN_STORED at[KILN_ITEMS][vector_size];

    load_indices(index + first, here, at);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
      for (unsigned e = 0; e < vector_size; ++e)
        if (element(k, e) < here)
          atomicAdd(seen + bucket_of(at[k][e], shift), 1u);
  }
  __syncthreads();
  for (unsigned b = threadIdx.x; b < KILN_BUCKETS; b += KILN_BLOCK)
    if (seen[b] != 0)
      atomicAdd(counts + b, static_cast<count>(seen[b]));
}
#endif

/* ---- Kernel bucket_begin ------------------------------------------------- */

/* Replaces the counts by their exclusive scan over the buckets. Each thread
 * passes the counts of buckets_each consecutive buckets. All threads of the
 * block call this function. */
template <class T>
static __device__ __forceinline__ void scan_buckets(T (&here)[buckets_each])
{
  T total = 0, before;

#pragma unroll
  for (unsigned k = 0; k < buckets_each; ++k)
    total += here[k];
  before = kiln::block_scan_exclusive(total, kiln::sum{}, static_cast<T>(0));
#pragma unroll
  for (unsigned k = 0; k < buckets_each; ++k) {
    const T own = here[k];

    here[k] = before;
    before += own;
  }
}

#if KILN_MAKES(bucket_begin)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_begin(count *counts, const unsigned *skip)
{
  const unsigned first = threadIdx.x * buckets_each;
  count here[buckets_each];

  if (kiln::left_out(skip))
    return;
#pragma unroll
  for (unsigned k = 0; k < buckets_each; ++k)
    here[k] = first + k < KILN_BUCKETS ? counts[first + k] : 0;
  scan_buckets(here);
#pragma unroll
  for (unsigned k = 0; k < buckets_each; ++k)
    if (first + k < KILN_BUCKETS)
      counts[first + k] = here[k];
}
#endif

/* ---- Kernel bucket_split ------------------------------------------------- */

/* The indices and values of a tile, in the order of their buckets. */
struct sorted_tile {
  KILN_STORED at[tile_size];
#if KILN_SCATTER
  KILN_VALUE value[tile_size];
#endif
};

struct shared_tables {
  /* number of elements per bucket, which place_runs() replaces by the starts of
   * the runs in the tile */
  unsigned begin[KILN_BUCKETS + 1];
  KILN_DESTINATION delta[KILN_BUCKETS];
};

/* Computes the start of each run in the tile, and the destination of each run by
 * an atomic addition to the cursor of its bucket. */
static __device__ __forceinline__ void place_runs(shared_tables &t,
                                                  unsigned here, count *cursor)
{
  const unsigned first = threadIdx.x * buckets_each;
  unsigned own[buckets_each], begin[buckets_each];

#pragma unroll
  for (unsigned k = 0; k < buckets_each; ++k)
    begin[k] = own[k] = first + k < KILN_BUCKETS ? t.begin[first + k] : 0;
  scan_buckets(begin);
#pragma unroll
  for (unsigned k = 0; k < buckets_each; ++k)
    if (first + k < KILN_BUCKETS) {
      count base = 0;

      if (own[k] != 0)
        base = atomicAdd(cursor + first + k, static_cast<count>(own[k]));
      t.begin[first + k] = begin[k];
      t.delta[first + k] = static_cast<KILN_DESTINATION>(base - begin[k]);
    }
  if (threadIdx.x == 0)
    t.begin[KILN_BUCKETS] = here;
}

struct split_arrays {
  const KILN_INDEX *index;
  count *cursor;
  KILN_STORED *stored;
#if KILN_SCATTER
  KILN_VALUE *values;
#else
  unsigned short *slot, *begin;
  KILN_DESTINATION *delta;
#endif
};

/* Stores the sorted tile to global memory, each run to its destination. */
static __device__ __forceinline__ void store_tile(const split_arrays &a,
                                                  const sorted_tile &r,
                                                  const shared_tables &t,
                                                  unsigned here, unsigned shift)
{
#pragma unroll
  for (unsigned k = 0; k < each; ++k) {
    const unsigned p = k * KILN_BLOCK + threadIdx.x;

    if (p < here) {
      const KILN_STORED at = r.at[p];
      const KILN_DESTINATION place = t.delta[bucket_of(at, shift)] + p;

      a.stored[place] = at;
#if KILN_SCATTER
      a.values[place] = r.value[p];
#endif
    }
  }
}

#if KILN_SCATTER
static __device__ __forceinline__ void
load_values(const user::args &in, count first, unsigned here,
            KILN_VALUE (&value)[KILN_ITEMS][vector_size])
{
  user::value wide[KILN_ITEMS][vector_size];

  if (here == tile_size) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      user::load_vector<vector_size, kiln::cached::once>(
          in, first + element(k, 0), wide[k]);
  } else {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
      for (unsigned e = 0; e < vector_size; ++e)
        wide[k][e] =
            user::load(in, first + kiln::least(element(k, e), here - 1));
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
    for (unsigned e = 0; e < vector_size; ++e)
      value[k][e] = kiln::narrow<KILN_VALUE>(wide[k][e]);
}
#else
static __device__ __forceinline__ void
store_slots(const split_arrays &a, count first, unsigned here,
            const shared_tables &t,
            const unsigned (&slot)[KILN_ITEMS][vector_size])
{
  const count row = first / tile_size * KILN_BUCKETS;

  /* The array `slot` has space for whole tiles. */
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (element(k, 0) < here)
      kiln::store_vector<vector_size, true, kiln::cached::once>(
          a.slot + first + element(k, 0), slot[k]);
  for (unsigned b = threadIdx.x; b < KILN_BUCKETS; b += KILN_BLOCK) {
    a.begin[row + b] = static_cast<unsigned short>(t.begin[b]);
    a.delta[row + b] = t.delta[b];
  }
}
#endif

#if KILN_MAKES(bucket_split)
/* Splits the tile whose first element is `first`. */
static __device__ __forceinline__ void
split_tile(const user::args &in, const split_arrays &a, sorted_tile &r,
           shared_tables &t, count first, count n, unsigned shift)
{
  const unsigned here =
      n - first < tile_size ? static_cast<unsigned>(n - first) : tile_size;
  KILN_STORED at[KILN_ITEMS][vector_size];
  unsigned slot[KILN_ITEMS][vector_size];
#if KILN_SCATTER
  KILN_VALUE value[KILN_ITEMS][vector_size];
#endif

  load_indices(a.index + first, here, at);
#if KILN_SCATTER
  load_values(in, first, here, value);
#else
  (void)in;
#endif
  for (unsigned b = threadIdx.x; b <= KILN_BUCKETS; b += KILN_BLOCK)
    t.begin[b] = 0;
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
    for (unsigned e = 0; e < vector_size; ++e)
      slot[k][e] =
          atomicAdd(t.begin + bucket_in_tile(at[k][e], shift, k, e, here), 1u);
  __syncthreads();
  place_runs(t, here, a.cursor);
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
    for (unsigned e = 0; e < vector_size; ++e) {
      slot[k][e] += t.begin[bucket_in_tile(at[k][e], shift, k, e, here)];
      r.at[slot[k][e]] = at[k][e];
#if KILN_SCATTER
      r.value[slot[k][e]] = value[k][e];
#endif
    }
  __syncthreads();
  store_tile(a, r, t, here, shift);
#if !KILN_SCATTER
  store_slots(a, first, here, t, slot);
#endif
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_split(const user::args in, const split_arrays a, count n,
                 unsigned shift, unsigned tiles_each, const unsigned *skip)
{
  __shared__ sorted_tile r;
  __shared__ shared_tables t;
  count first = static_cast<count>(blockIdx.x) * tiles_each * tile_size;

  if (kiln::left_out(skip))
    return;
#pragma unroll 1
  for (unsigned k = 0; k < tiles_each && first < n; ++k, first += tile_size) {
    if (k > 0)
      __syncthreads(); /* the tile before used the same shared memory */
    split_tile(in, a, r, t, first, n, shift);
  }
}
#endif

/* ---- Kernel bucket_join -------------------------------------------------- */

#if !KILN_SCATTER
/* Number of threads that load a run together. It is about the average number of
 * elements per run. */
enum : unsigned {
  run_size = tile_size / KILN_BUCKETS,
  team = run_size >= 32  ? 32
         : run_size >= 4 ? run_size
                         : 4
};

static __device__ __forceinline__ void
fetch_runs(const KILN_VALUE *values, const unsigned short *begins,
           const KILN_DESTINATION *deltas, unsigned here, KILN_VALUE *sorted)
{
  const unsigned lane = threadIdx.x % team;

#pragma unroll 2
  for (unsigned b = threadIdx.x / team; b < KILN_BUCKETS;
       b += KILN_BLOCK / team) {
    const unsigned begin = begins[b];
    const unsigned end = b + 1 < KILN_BUCKETS ? begins[b + 1] : here;
    const KILN_VALUE *const from =
        values + static_cast<KILN_DESTINATION>(deltas[b] + begin);

#pragma unroll 1
    for (unsigned j = lane; j < end - begin; j += team)
      sorted[begin + j] = kiln::load_as<kiln::cached::once>(from + j);
  }
}

#if KILN_MAKES(bucket_join)
/* Writes the `here` elements of a tile in the order of the call. `slot` and `out`
 * are those of the tile. */
static __device__ __forceinline__ void put_back(const KILN_VALUE *sorted,
                                                const unsigned short *slot,
                                                KILN_VALUE *out, unsigned here)
{
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = element(k, 0);
    unsigned short from[vector_size];
    KILN_VALUE value[vector_size];

    if (i + vector_size <= here) {
      kiln::load_vector<vector_size, true, kiln::cached::once>(slot + i, from);
#pragma unroll
      for (unsigned e = 0; e < vector_size; ++e)
        value[e] = sorted[from[e]];
      kiln::store_vector<vector_size, (KILN_ALIGNED & 2) != 0,
                         kiln::cached::once>(out + i, value);
    } else {
      for (unsigned e = 0; i + e < here; ++e)
        out[i + e] = sorted[slot[i + e]];
    }
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_join(const KILN_VALUE *values, const unsigned short *slot,
                const unsigned short *begin, const KILN_DESTINATION *delta,
                KILN_VALUE *out, count n, unsigned tiles_each,
                const unsigned *skip)
{
  __shared__ KILN_VALUE sorted[tile_size];
  count first = static_cast<count>(blockIdx.x) * tiles_each * tile_size;

  if (kiln::left_out(skip))
    return;
#pragma unroll 1
  for (unsigned k = 0; k < tiles_each && first < n; ++k, first += tile_size) {
    const count row = first / tile_size * KILN_BUCKETS;
    const unsigned here =
        n - first < tile_size ? static_cast<unsigned>(n - first) : tile_size;

    if (k > 0)
      __syncthreads(); /* the tile before used the same shared memory */
    fetch_runs(values, begin + row, delta + row, here, sorted);
    __syncthreads();
    put_back(sorted, slot + first, out + first, here);
  }
}
#endif
#endif

#include <kiln/user_texts.cuh>
