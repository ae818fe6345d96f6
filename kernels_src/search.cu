/* search.cu -- find the lower or upper bounds of needles in a sorted sequence.
 *
 * Idea: the sequence is an implicit search tree. The steps of the search are decreasing
 * powers of two. A needle advances by `step` elements if the last of these elements
 * precedes the needle. While `step` is at least `stride`, all probed elements are last
 * elements of whole strides. Each block copies these elements, the samples, to shared
 * memory, so only the lower levels of the tree read global memory. A thread advances
 * several needles together, so that their loads overlap.
 * The probes of a level are far apart, so each of them occupies a sector of the cache of
 * its own. search_table therefore copies the last element of each group of `pitch`
 * elements to a table. The middle levels probe the table, which fits into the L2 cache,
 * and only the levels within one group read the sequence, in one or two cache lines.
 * Cost: log2 m probes per needle, of which log2 stride probes read global memory, and
 * log2 pitch probes the sequence. The table takes m / pitch reads and writes.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    4              needles per thread that are searched together
 *   KILN_SAMPLES  4096           maximum number of samples in shared memory; 0 uses no
 *                                samples
 *   KILN_TABLE    0              1 probes the table
 *   KILN_UPPER    0              1 returns upper bounds, 0 returns lower bounds
 *   KILN_LESS     0              1 if user::less(s, a, b) defines the order
 *   KILN_WIDE     0              1 if the sequence has 2^31 elements or more
 *   KILN_INDEX    type unsigned  type of a result, unsigned or unsigned long long
 * Generated code (user.cuh): the needles, which have the type of the sequence.
 * Launch: the block size is KILN_BLOCK. The grids have any size, since the blocks stride
 *         over their work.
 *         sorted     the sequence of m elements
 *         stride     a power of two with m / stride <= KILN_SAMPLES
 *         table      with KILN_TABLE, m / pitch elements, which search_table writes
 *         pitch      a power of two
 *         n          number of needles
 *         out        receives n results
 * Result: out[i] is the number of elements that precede needle i. With KILN_UPPER,
 *         out[i] also counts the elements that are equal to needle i. */
#include <kiln/params/search.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/order.cuh>
#include <kiln/user.cuh>

typedef kiln::unsigned_of<KILN_WIDE ? 8 : 4>::type place;
typedef unsigned long long count;

static __device__ __forceinline__ bool precedes(const user::args &s,
                                                user::value a, user::value b)
{
#if KILN_LESS
  return user::less(s, a, b);
#else
  (void)s;
  return kiln::comes_before(a, b);
#endif
}

/* Returns whether this element precedes the bound of the needle. */
static __device__ __forceinline__ bool
is_behind(const user::args &s, user::value element, user::value needle)
{
  return KILN_UPPER ? !precedes(s, needle, element)
                    : precedes(s, element, needle);
}

#if KILN_MAKES(search_table)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    search_table(const user::stored *sorted, unsigned long long m,
                 unsigned long long pitch, user::stored *table)
{
  const count n = m / pitch,
              stride = static_cast<count>(gridDim.x) * KILN_BLOCK;

#pragma unroll 4
  for (count i = static_cast<count>(blockIdx.x) * KILN_BLOCK + threadIdx.x;
       i < n; i += stride)
    table[i] = sorted[(i + 1) * pitch - 1];
}
#endif

#if KILN_MAKES(search)
static __device__ __forceinline__ place top_step(place m)
{
#if KILN_WIDE
  return m == 0 ? 0 : 1ull << (63 - __clzll(static_cast<long long>(m)));
#else
  return m == 0 ? 0 : 1u << (31 - __clz(static_cast<int>(m)));
#endif
}

#if KILN_SAMPLES > 0
/* The samples. One entry stays unused after every 32 entries. Without that
 * padding, the probes of one level would share a bank, because their distances
 * are multiples of a power of two. */
__shared__ user::stored sample[KILN_SAMPLES + KILN_SAMPLES / 32];

static __device__ __forceinline__ unsigned slot(unsigned i)
{
  return i + i / 32;
}

static __device__ __forceinline__ void take_samples(const user::stored *sorted,
                                                    place m, place stride)
{
  const unsigned n = static_cast<unsigned>(m / stride);

#pragma unroll 4
  for (unsigned i = threadIdx.x; i < n; i += KILN_BLOCK)
    sample[slot(i)] = sorted[(i + static_cast<place>(1)) * stride - 1];
  __syncthreads();
}
#endif

/* The sequence and its table. */
struct sequence {
  const user::stored *sorted;
  place m, stride;
#if KILN_TABLE
  const user::stored *table;
  place pitch;
#endif
};

/* Finds the bounds of all needles of a thread together, so that their loads
 * overlap. */
static __device__ __forceinline__ void
find(const user::args &s, const sequence &q,
     const user::value (&needle)[KILN_ITEMS], place (&at)[KILN_ITEMS])
{
  const place m = q.m;
  place step = top_step(m);

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    at[k] = 0;
#if KILN_SAMPLES > 0
  const unsigned log2 = static_cast<unsigned>(__ffsll(q.stride)) - 1;

#pragma unroll 1
  for (; step >= q.stride && step > 0; step /= 2)
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (step <= m - at[k] &&
          is_behind(s,
                    kiln::widen(sample[slot(
                        static_cast<unsigned>((at[k] + step) >> log2) - 1)]),
                    needle[k]))
        at[k] += step;
#endif
#if KILN_TABLE
  const unsigned log2_pitch = static_cast<unsigned>(__ffsll(q.pitch)) - 1;

#pragma unroll 1
  for (; step >= q.pitch; step /= 2) {
    user::value element[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      element[k] = kiln::load(
          q.table +
          (((step <= m - at[k] ? at[k] + step : q.pitch) >> log2_pitch) - 1));
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (step <= m - at[k] && is_behind(s, element[k], needle[k]))
        at[k] += step;
  }
#endif
#pragma unroll 1
  for (; step > 0; step /= 2) {
    user::value element[KILN_ITEMS];

    /* The loads clamp their index, so no load is out of bounds. */
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      element[k] =
          kiln::load(q.sorted + (step <= m - at[k] ? at[k] + step - 1 : m - 1));
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (step <= m - at[k] && is_behind(s, element[k], needle[k]))
        at[k] += step;
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    search(const user::args s, const user::stored *sorted, unsigned long long m,
           unsigned long long stride, unsigned long long n, KILN_INDEX *out,
           const user::stored *table, unsigned long long pitch)
{
  constexpr count tile = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const sequence q = {
    sorted,
    static_cast<place>(m),
    static_cast<place>(stride),
#if KILN_TABLE
    table,
    static_cast<place>(pitch)
#endif
  };

  (void)table;
  (void)pitch;
#if KILN_SAMPLES > 0
  take_samples(sorted, q.m, q.stride);
#endif
#pragma unroll 1
  for (count first = blockIdx.x * tile; first < n; first += gridDim.x * tile) {
    user::value needle[KILN_ITEMS];
    place at[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const count i = first + k * KILN_BLOCK + threadIdx.x;

      needle[k] = user::load(s, i < n ? i : n - 1);
    }
    find(s, q, needle, at);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const count i = first + k * KILN_BLOCK + threadIdx.x;

      if (i < n)
        out[i] = static_cast<KILN_INDEX>(at[k]);
    }
  }
}
#endif

#include <kiln/user_texts.cuh>
