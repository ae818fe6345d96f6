/* scatter_buckets.cu -- scatter pairs of place and value that are already sorted by the
 * upper bits of the place. A place is an index of an element of the array out.
 *
 * Idea: a bucket is a range of out that fits into shared memory. The pairs of one bucket
 * are contiguous and form a run. A block assembles its bucket in shared memory and
 * stores the bucket by 16-byte accesses, so out is written sequentially.
 * Load balance: a run with very many pairs would occupy one block for too long.
 * Therefore each block whose tile starts inside of such a long run scatters the pairs of
 * its tile directly.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    2              vectors of 4 elements in flight per thread
 *   KILN_SHIFT    12             log2 of the number of elements per bucket
 *   KILN_VALUE    type unsigned  type of an element of out. An unsigned type of the same
 *                                size is enough if no element is converted
 *   KILN_ALIGNED  1              bit 0 is set if index (bucket_pairs) or out
 *                                (bucket_write) is aligned to 16 bytes
 *   KILN_INDEX    type unsigned  type of an index that bucket_pairs reads, unsigned or
 *                                unsigned long long
 *   KILN_PAIRS    3              outputs of bucket_pairs: bit 0 is set for places, bit 1
 *                                for values
 * Generated code (user.cuh): for bucket_pairs, the values and their map.
 * Launch: the block size is KILN_BLOCK. The bucket of a place is
 *         place >> KILN_SHIFT & mask; the pairs are sorted by the bits in `mask`.
 *   bucket_pairs   The grid has one block per KILN_BLOCK * KILN_ITEMS vectors. Writes
 *                  the places and values of the n elements as input of a sort. Both
 *                  arrays are aligned to 16 bytes.
 *   bucket_bounds  The grid has `buckets` + 1 threads or more. begin[b] receives the
 *                  number of pairs in buckets below b.
 *   bucket_write   A part is a bucket and 2^(KILN_SHIFT + 1) pairs. The grid has one
 *                  block per `parts_each` parts, as many parts as there are buckets,
 *                  or more if the pairs need more. Reads the sorted places and values, which
 *                  are aligned to 16 bytes. Pairs with a place above `last` are stored
 *                  one by one, because `mask` assigns them to a wrong bucket.
 *   The kernels do nothing if `skip` is not NULL and its word is not 0. bucket_bounds and
 *   bucket_write end a chain of launches that radix_histogram begins; see overlap.cuh.
 * Result: out[places[i]] = values[i]. If several places are equal, the element is one of
 *         their values. Other elements of out are not written. */
#include <kiln/params/scatter_buckets.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/overlap.cuh>
#include <kiln/user.cuh>

typedef unsigned long long count;

enum : unsigned {
  vector_size = 4,
  /* Number of elements that a block handles per step. */
  step_size = KILN_BLOCK * KILN_ITEMS * vector_size,
  bucket_size = 1u << KILN_SHIFT,
  tile_size = 2 * bucket_size,
  wide_size = 16 / sizeof(KILN_VALUE), /* number of elements in 16 bytes */
  /* Number of elements that one store writes. */
  line_size = (KILN_ALIGNED & 1) != 0 ? wide_size : 1,
  line_words = line_size < 4 ? 1 : line_size / 4
};

static_assert(KILN_SHIFT >= 4 && KILN_SHIFT <= 14,
              "KILN_SHIFT: a bucket has whole lines and fits shared memory");

/* ---- Pairs --------------------------------------------------------------- */

#if KILN_MAKES(bucket_pairs)
#if (KILN_PAIRS & 1) != 0
static __device__ __forceinline__ void make_places(const KILN_INDEX *index,
                                                   unsigned *places,
                                                   count first, bool whole,
                                                   unsigned rest)
{
  KILN_INDEX at[vector_size];
  unsigned place[vector_size];

  if (whole) {
    kiln::load_vector<vector_size, (KILN_ALIGNED & 1) != 0, kiln::cached::once>(
        index + first, at);
#pragma unroll
    for (unsigned e = 0; e < vector_size; ++e)
      place[e] = static_cast<unsigned>(at[e]);
    kiln::store_vector<vector_size, true>(places + first, place);
  } else {
    for (unsigned e = 0; e < rest; ++e)
      places[first + e] = static_cast<unsigned>(kiln::load(index + first + e));
  }
}
#endif

#if (KILN_PAIRS & 2) != 0
static __device__ __forceinline__ void make_values(const user::args &in,
                                                   KILN_VALUE *values,
                                                   count first, bool whole,
                                                   unsigned rest)
{
  user::value value[vector_size];

  if (whole) {
    user::load_vector<vector_size, kiln::cached::once>(in, first, value);
    kiln::store_vector<vector_size, true>(values + first, value);
  } else {
    for (unsigned e = 0; e < rest; ++e)
      kiln::store(values + first + e, user::load(in, first + e));
  }
}
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_pairs(const user::args in, const KILN_INDEX *index, unsigned *places,
                 KILN_VALUE *values, count n, const unsigned *skip)
{
  const count begin = static_cast<count>(blockIdx.x) * step_size;

  if (kiln::left_out(skip))
    return;
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count first = begin + (k * KILN_BLOCK + threadIdx.x) *
                                    static_cast<count>(vector_size);
    const bool whole = first + vector_size <= n;
    const unsigned rest =
        whole || first >= n ? 0 : static_cast<unsigned>(n - first);

#if (KILN_PAIRS & 1) != 0
    make_places(index, places, first, whole, rest);
#endif
#if (KILN_PAIRS & 2) != 0
    make_values(in, values, first, whole, rest);
#endif
  }
  (void)in;
  (void)index;
  (void)places;
  (void)values;
}
#endif

/* ---- Bounds -------------------------------------------------------------- */

static __device__ __forceinline__ unsigned bucket_of(unsigned place,
                                                     unsigned mask)
{
  return place >> KILN_SHIFT & mask;
}

#if KILN_MAKES(bucket_bounds)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_bounds(const unsigned *places, count *begin, count n,
                  unsigned buckets, unsigned mask, unsigned *skip)
{
  const unsigned b = blockIdx.x * KILN_BLOCK + threadIdx.x;
  count low = 0, high = n;

  if (kiln::chain_left_out<kiln::link::inner>(skip))
    return;
  kiln::launch_wait();
  if (b > buckets)
    return;
  if (b == buckets)
    low = n;
#pragma unroll 1
  while (low < high) {
    const count middle = low + (high - low) / 2;

    if (bucket_of(kiln::load(places + middle), mask) < b)
      low = middle + 1;
    else
      high = middle;
  }
  begin[b] = low;
}
#endif

/* ---- Write --------------------------------------------------------------- */

#if KILN_MAKES(bucket_write)
struct bucket_tile {
  alignas(16) KILN_VALUE value[bucket_size];
  /* named[i] is 1 if element i of the bucket has received a value. */
  alignas(16) unsigned char named[bucket_size];
};

struct arrays {
  const unsigned *places;
  const KILN_VALUE *values;
  const count *begin;
  KILN_VALUE *out;
  count n;
  unsigned buckets, mask, last, parts_each;
  unsigned *skip;
};

struct run {
  count begin, end;
};

/* Returns whether a run is long. The blocks whose tiles start inside of a long
 * run scatter its pairs. The block of the bucket handles only the pairs before
 * the first of these tiles. So equal places, or many pairs in few buckets, do
 * not occupy one block for too long. */
static __device__ __forceinline__ bool is_long(const run &r)
{
  return r.end - r.begin > 2 * tile_size;
}

static __device__ __forceinline__ void put(const arrays &a, bucket_tile &s,
                                           unsigned place, KILN_VALUE value)
{
  if (place <= a.last) {
    s.value[place % bucket_size] = value;
    s.named[place % bucket_size] = 1;
  } else {
    a.out[place] = value;
  }
}

/* Handles a whole step of step_size pairs, all of which belong to the run. All
 * vectors are loaded before the first vector is used. */
static __device__ __forceinline__ void put_step(const arrays &a, bucket_tile &s,
                                                count first)
{
  unsigned place[KILN_ITEMS][vector_size];
  KILN_VALUE value[KILN_ITEMS][vector_size];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count i = first + (k * KILN_BLOCK + threadIdx.x) * vector_size;

    kiln::load_vector<vector_size, true, kiln::cached::once>(a.places + i,
                                                             place[k]);
    kiln::load_vector<vector_size, true, kiln::cached::once>(a.values + i,
                                                             value[k]);
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
    for (unsigned e = 0; e < vector_size; ++e)
      put(a, s, place[k][e], value[k][e]);
}

/* Handles those pairs of a step of step_size pairs that belong to the run r. */
static __device__ __forceinline__ void put_rest(const arrays &a, bucket_tile &s,
                                                const run &r, count first)
{
#pragma unroll 4
  for (unsigned k = 0; k < KILN_ITEMS * vector_size; ++k) {
    const count i = first + k * KILN_BLOCK + threadIdx.x;

    if (i >= r.begin && i < r.end)
      put(a, s, kiln::load(a.places + i), kiln::load(a.values + i));
  }
}

/* Returns how many of the line_size elements of line p have a value. */
static __device__ __forceinline__ unsigned named_in(const bucket_tile &s,
                                                    unsigned p)
{
  if (line_size == 1)
    return s.named[p];
  if (line_size == 2)
    return static_cast<unsigned>(
        __popc(reinterpret_cast<const unsigned short *>(s.named)[p]));
  else {
    const unsigned *const words =
        reinterpret_cast<const unsigned *>(s.named) + p * line_words;
    unsigned sum = 0;

#pragma unroll
    for (unsigned k = 0; k < line_words; ++k)
      sum += static_cast<unsigned>(__popc(words[k]));
    return sum;
  }
}

static __device__ __forceinline__ void write_bucket(const bucket_tile &s,
                                                    KILN_VALUE *out)
{
#pragma unroll 4
  for (unsigned p = threadIdx.x; p < bucket_size / line_size; p += KILN_BLOCK) {
    const unsigned named = named_in(s, p);
    const unsigned first = p * line_size;

    if (named == line_size) {
      typedef typename kiln::word<line_size * sizeof(KILN_VALUE)>::type bits;

      kiln::store_word<kiln::cached::once>(
          reinterpret_cast<bits *>(out + first),
          *reinterpret_cast<const bits *>(s.value + first));
    } else if (named != 0) {
#pragma unroll
      for (unsigned e = 0; e < line_size; ++e)
        if (s.named[first + e] != 0)
          out[first + e] = s.value[first + e];
    }
  }
}

static __device__ __forceinline__ void
write_run(const arrays &a, bucket_tile &s, const run &r, count bucket)
{
  unsigned *const words = reinterpret_cast<unsigned *>(s.named);

#pragma unroll
  for (unsigned k = threadIdx.x; k < bucket_size / 4; k += KILN_BLOCK)
    words[k] = 0;
  __syncthreads();
#pragma unroll 1
  for (count first = r.begin / vector_size * vector_size; first < r.end;
       first += step_size)
    if (first >= r.begin && first + step_size <= r.end)
      put_step(a, s, first);
    else
      put_rest(a, s, r, first);
  __syncthreads();
  write_bucket(s, a.out + bucket * bucket_size);
}

/* Writes bucket number `which`, and the pairs of tile number `which` if the tile
 * starts inside of a long run. */
static __device__ __forceinline__ void write_part(const arrays &a,
                                                  bucket_tile &s, count which)
{
  const count tile = which * tile_size;
  const unsigned valid = tile < a.n ? kiln::load(a.places + tile) : 0;

  if (which < a.buckets) {
    run own = {a.begin[which], a.begin[which + 1]};

    if (is_long(own))
      own.end = (own.begin + tile_size - 1) / tile_size * tile_size;
    if (own.begin < own.end)
      write_run(a, s, own, which);
  }
  if (tile < a.n) {
    const unsigned b = bucket_of(valid, a.mask);
    const run around = {a.begin[b], a.begin[b + 1]};
    const count end =
        tile + tile_size < around.end ? tile + tile_size : around.end;

    if (is_long(around))
#pragma unroll 4
      for (count i = tile + threadIdx.x; i < end; i += KILN_BLOCK)
        a.out[kiln::load(a.places + i)] = kiln::load(a.values + i);
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    bucket_write(const arrays a)
{
  __shared__ bucket_tile s;
  const count tiles = (a.n + tile_size - 1) / tile_size;
  const count parts = tiles > a.buckets ? tiles : a.buckets;

  if (kiln::chain_left_out<kiln::link::last>(a.skip))
    return;
  kiln::launch_wait();
#pragma unroll 1
  for (unsigned k = 0; k < a.parts_each; ++k) {
    const count which = static_cast<count>(blockIdx.x) * a.parts_each + k;

    if (which >= parts)
      return;
    if (k > 0)
      __syncthreads(); /* the part before used the same shared memory */
    write_part(a, s, which);
  }
}
#endif

#include <kiln/user_texts.cuh>
