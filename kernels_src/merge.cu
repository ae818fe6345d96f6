/* merge.cu -- merge two sorted sequences a and b into one sorted sequence, stably.
 *
 * Problem: divide a merge into independent parts of equal size.
 * Idea: for exactly one i, the first d outputs consist of the first i elements of a and
 * the first d - i elements of b. A binary search along diagonal d finds i (merge path:
 * Odeh, Green, Mwassi, Shmueli and Birk, Merge Path - Parallel Merging Made Simple,
 * 2012). A block merges one tile of outputs, and a thread merges KILN_ITEMS outputs of
 * the tile. Both find their inputs by such searches.
 * Cost: one read and one write per element, and one search per tile and thread.
 *
 * Parameters:
 *   KILN_BLOCK  256         threads per block, at least 64
 *   KILN_ITEMS  15          outputs per thread; an odd number avoids bank conflicts
 *                           of 4-byte keys
 *   KILN_PER_SM  0          minimum number of resident blocks per SM, which limits
 *                           registers through __launch_bounds__; 0 sets no limit
 *   KILN_T      type float  type of a key
 *   KILN_PAIRS  0           1 if keys have values
 *   KILN_V      type float  type of a value
 *   KILN_LESS   0           1 if user::less(s, a, b) defines the order
 *   KILN_SPLIT  0           1 if merge_split has computed where the tiles start; 0 if
 *                           each block searches for its own start and end
 * Launch: the block size is KILN_BLOCK for both kernels. The grid of merge_split has 4
 *         threads per tile. The grid of merge has one block per tile.
 *         a, b    the sequences; a has m keys and b has n keys
 *         split   for each boundary, the number of preceding outputs that come from a;
 *                 NULL without KILN_SPLIT
 * Result: out receives m + n keys. Equal keys of a precede equal keys of b. */
#include <kiln/params/merge.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/merge_path.cuh>
#include <kiln/order.cuh>
#include <kiln/user.cuh>

static_assert(KILN_BLOCK >= 64, "KILN_BLOCK: a warp for each end of the tile");
static_assert(KILN_BLOCK * KILN_ITEMS <= 65536, "places of a tile: 16 bits");

typedef unsigned long long count;
typedef KILN_T stored;
typedef kiln::compute_t<stored> key;

enum : unsigned { tile_size = KILN_BLOCK * KILN_ITEMS };

static __device__ __forceinline__ bool precedes(const user::args &s, key a,
                                                key b)
{
#if KILN_LESS
  return user::less(s, a, b);
#else
  (void)s;
  return kiln::comes_before(a, b);
#endif
}

static __device__ __forceinline__ count least(count a, count b)
{
  return a < b ? a : b;
}

/* Returns whether element i of a comes before element j of b. */
struct a_precedes {
  const user::args &s;
  const KILN_T *a, *b;

  __device__ __forceinline__ bool operator()(count i, count j) const
  {
    return !precedes(s, kiln::load(b + j), kiln::load(a + i));
  }
};

#if KILN_MAKES(merge_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    merge_split(const user::args s, const KILN_T *a, unsigned long long m,
                const KILN_T *b, unsigned long long n,
                unsigned long long *split)
{
  kiln::split_tiles<KILN_BLOCK>(m, n, tile_size, split, a_precedes{s, a, b});
}
#endif

/* The input elements of one tile. Shared memory first holds the elements of a,
 * then the elements of b. */
struct chunk {
  /* Index in a, and index in b, of the chunk's first element. */
  count a, b;
  /* Number of elements from a, and number of elements from b. */
  unsigned of_a, of_b;
};

static __device__ __forceinline__ chunk find_chunk(const user::args &s,
                                                   const KILN_T *a, count m,
                                                   const KILN_T *b, count n,
                                                   const count *split)
{
  const count first = static_cast<count>(blockIdx.x) * tile_size;
  const count end = least(first + tile_size, m + n);
  count from, to;

#if KILN_SPLIT
  from = split[blockIdx.x];
  to = split[blockIdx.x + 1];
#else
  __shared__ count found[2];

  (void)split;
  if (kiln::warp() < 2) {
    const count d = kiln::warp() == 0 ? first : end;
    const a_precedes before = {s, a, b};
    const count at = kiln::group_search<kiln::warp_size>(
        d > n ? d - n : 0, least(d, m),
        [&](count i) { return before(i, d - 1 - i); });

    if (kiln::lane() == 0)
      found[kiln::warp()] = at;
  }
  __syncthreads();
  from = found[0];
  to = found[1];
#endif
  /* Sequences that are not sorted have splits that contradict each other. */
  to = to < from ? from : least(to, from + (end - first));
  return {from, first - from, static_cast<unsigned>(to - from),
          static_cast<unsigned>(end - first - (to - from))};
}

/* The entry after the last element is read when all elements of b are merged, but
 * its value has no effect. */
__shared__ KILN_T keys[tile_size + 1];
#if KILN_PAIRS
/* places[k] is the position of merged key k in the tile before the merge. */
__shared__ unsigned short places[tile_size];
#endif

/* Size of a key if cp.async can copy it, or 0. */
enum : unsigned {
  copied = sizeof(stored) >= 4 && sizeof(stored) <= 16 &&
                   sizeof(stored) == alignof(stored)
               ? sizeof(stored)
               : 0
};

/* Copies the elements of the tile to shared memory. `whole` states that the tile
 * has tile_size elements. */
template <bool whole>
static __device__ __forceinline__ void
load_tile(const KILN_T *a, const KILN_T *b, const chunk &p)
{
  const unsigned n = p.of_a + p.of_b;
  const KILN_T *const from_a = a + p.a, *const from_b = b + p.b - p.of_a;

  if (threadIdx.x == 0)
    keys[n] = stored();

#if KILN_ARCH >= 80
  if (copied > 0) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const unsigned i = k * KILN_BLOCK + threadIdx.x;

      if (whole || i < n)
        kiln::stage_bytes<copied == 0 ? 4 : copied>(
            keys + i, (i < p.of_a ? from_a : from_b) + i);
    }
    kiln::stage_wait();
    __syncthreads();
    return;
  }
#endif
  KILN_T loaded[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = k * KILN_BLOCK + threadIdx.x;

    if (whole || i < n)
      loaded[k] = (i < p.of_a ? from_a : from_b)[i];
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = k * KILN_BLOCK + threadIdx.x;

    if (whole || i < n)
      keys[i] = loaded[k];
  }
  __syncthreads();
}

/* Returns how many of the first d outputs of the tile come from a. One thread
 * calls this function. */
static __device__ __forceinline__ unsigned
split_tile(const user::args &s, const chunk &p, unsigned d)
{
  unsigned low = d > p.of_b ? d - p.of_b : 0;
  unsigned high = d < p.of_a ? d : p.of_a;

  while (low < high) {
    const unsigned middle = (low + high) / 2;

    if (precedes(s, kiln::widen(keys[p.of_a + d - 1 - middle]),
                 kiln::widen(keys[middle])))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Returns the key at an offset in bytes in shared memory. With offsets, a load
 * needs no multiplication. */
static __device__ __forceinline__ KILN_T key_at(unsigned offset)
{
  return *reinterpret_cast<const KILN_T *>(
      reinterpret_cast<const unsigned char *>(keys) + offset);
}

/* Computes the outputs d to d + KILN_ITEMS - 1 of the tile in registers. from[k]
 * is the position in the tile of output k before the merge. Outputs beyond the
 * last element have no meaning. */
template <bool whole>
static __device__ __forceinline__ void
merge_mine(const user::args &s, const chunk &p, unsigned d,
           KILN_T (&merged)[KILN_ITEMS], unsigned short (&from)[KILN_ITEMS])
{
  constexpr unsigned size = sizeof(KILN_T);
  const unsigned n = p.of_a + p.of_b, begin = whole || d < n ? d : n;
  const unsigned first = split_tile(s, p, begin);
  const unsigned end_a = p.of_a * size, end = n * size;
  /* Offsets in bytes of the next element of a and of b. */
  unsigned i = first * size, j = (p.of_a + begin - first) * size;
  KILN_T x = key_at(i), y = key_at(j);

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const bool of_a =
        j >= end || (i < end_a && !precedes(s, kiln::widen(y), kiln::widen(x)));
    KILN_T next;

    merged[k] = of_a ? x : y;
    from[k] = static_cast<unsigned short>((of_a ? i : j) / size);
    i = of_a ? i + size : i;
    j = of_a ? j : j + size;
    /* In a whole tile, no offset is beyond the additional entry. */
    next = key_at(of_a ? (whole || i < end ? i : 0) : j);
    x = of_a ? next : x;
    y = of_a ? y : next;
  }
}

struct outputs {
  KILN_T *keys;
  const KILN_V *a_values, *b_values;
  KILN_V *values;
};

template <bool whole>
static __device__ __forceinline__ void store_tile(const chunk &p,
                                                  const outputs &to)
{
  const unsigned n = p.of_a + p.of_b;

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = k * KILN_BLOCK + threadIdx.x;

    if (whole || i < n) {
      to.keys[i] = keys[i];
#if KILN_PAIRS
      to.values[i] = places[i] < p.of_a
                         ? to.a_values[p.a + places[i]]
                         : to.b_values[p.b + (places[i] - p.of_a)];
#endif
    }
  }
}

template <bool whole>
static __device__ __forceinline__ void
merge_tile(const user::args &s, const KILN_T *a, const KILN_T *b,
           const chunk &p, const outputs &to)
{
  const unsigned mine = threadIdx.x * KILN_ITEMS;
  KILN_T merged[KILN_ITEMS];
  unsigned short from[KILN_ITEMS];

  load_tile<whole>(a, b, p);
  merge_mine<whole>(s, p, mine, merged, from);
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    keys[mine + k] = merged[k];
#if KILN_PAIRS
    places[mine + k] = from[k];
#endif
  }
  __syncthreads();
  store_tile<whole>(p, to);
}

#if KILN_MAKES(merge)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    merge(const user::args s, const KILN_T *a, unsigned long long m,
          const KILN_T *b, unsigned long long n, KILN_T *out,
          const KILN_V *a_values, const KILN_V *b_values, KILN_V *out_values,
          const unsigned long long *split)
{
  const chunk p = find_chunk(s, a, m, b, n, split);
  const count first = static_cast<count>(blockIdx.x) * tile_size;
  const outputs to = {out + first, a_values, b_values, out_values + first};

  if (p.of_a + p.of_b == tile_size)
    merge_tile<true>(s, a, b, p, to);
  else
    merge_tile<false>(s, a, b, p, to);
}
#endif

#include <kiln/user_texts.cuh>
