/* search.cu -- find the lower or upper bounds of needles in a sorted sequence.
 *
 * Idea: the sequence is an implicit search tree. The steps of the search are decreasing
 * powers of two. A needle advances by `step` elements if the last of these elements
 * precedes the needle. While `step` is at least `stride`, all probed elements are last
 * elements of whole strides. Each block copies these elements, the samples, to shared
 * memory, so only the lower levels of the tree read global memory. A thread advances
 * several needles together, so that their loads overlap.
 * The probes of a level are far apart, so each of them occupies a sector of the cache of
 * its own, and the number of sectors that an SM reads per cycle limits the search. For
 * many needles, search_tables therefore makes a tree with nodes of 8 elements: table k
 * holds the last element of each group of 8^k elements, so 8 consecutive elements of a
 * table are one node. A step of the search reads one node, which is one sector of
 * 4-byte elements, and selects one of 9 ranges (k-ary search: Schlegel, Gemulla and
 * Lehner, k-Ary Search on Modern Processors, 2009). The last step reads a node of the
 * sequence itself. The table with the fewest elements is the array of samples.
 * Cost: log2 m probes per needle, of which log2 stride probes read global memory. With
 * KILN_LEVELS, KILN_LEVELS nodes per needle; the tables take m / 7 elements and one read
 * of the sequence.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    4              needles per thread that are searched together
 *   KILN_SAMPLES  4096           maximum number of samples in shared memory; 0 uses no
 *                                samples
 *   KILN_LEVELS   0              number of tables, of which the last one is the array of
 *                                samples; 0 uses no tables
 *   KILN_ALIGNED  1              1 if the sequence is aligned to 16 bytes; used with
 *                                KILN_LEVELS
 *   KILN_UPPER    0              1 returns upper bounds, 0 returns lower bounds
 *   KILN_LESS     0              1 if user::less(s, a, b) defines the order
 *   KILN_WIDE     0              1 if the sequence has 2^31 elements or more
 *   KILN_INDEX    type unsigned  type of a result, unsigned or unsigned long long
 * Generated code (user.cuh): the needles, which have the type of the sequence.
 * Launch: the block size is KILN_BLOCK. The grids have any size, since the blocks stride
 *         over their work.
 *         sorted     the sequence of m elements
 *         stride     a power of two with m / stride <= KILN_SAMPLES; not used with
 *                    KILN_LEVELS
 *         tables     with KILN_LEVELS, the tables one after the other, each of them with
 *                    room for node_end() elements
 *         n          number of needles
 *         out        receives n results
 * Result: out[i] is the number of elements that precede needle i. With KILN_UPPER,
 *         out[i] also counts the elements that are equal to needle i. */
#include <kiln/params/search.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/order.cuh>
#include <kiln/overlap.cuh>
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

#if KILN_LEVELS > 0
enum : unsigned { fan = 8, log2_fan = 3 };

/* Returns the number of elements of table k. Table 0 is the sequence. */
static __device__ __forceinline__ count size_of(count m, unsigned k)
{
  return m >> k * log2_fan;
}

/* Returns the number of elements that a table of n elements has memory for. A
 * step may read the node that follows the last element. */
static __device__ __forceinline__ count node_end(count n)
{
  return n / fan * fan + fan;
}
#endif

#if KILN_MAKES(search_tables) && KILN_LEVELS > 0
/* Writes the memory behind the elements of each table. Its content does not
 * matter. */
static __device__ __forceinline__ void fill_ends(const user::stored *sorted,
                                                 count m, user::stored *table)
{
#pragma unroll
  for (unsigned k = 1; k <= KILN_LEVELS; ++k) {
    const count n = size_of(m, k), end = node_end(n);

    if (n + threadIdx.x < end)
      table[n + threadIdx.x] = sorted[0];
    table += end;
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    search_tables(const user::stored *sorted, unsigned long long m,
                  user::stored *tables)
{
  const count n = size_of(m, 1),
              stride = static_cast<count>(gridDim.x) * KILN_BLOCK;

  kiln::launch_next();
  if (blockIdx.x == 0 && threadIdx.x < fan)
    fill_ends(sorted, m, tables);
#pragma unroll 4
  for (count i = static_cast<count>(blockIdx.x) * KILN_BLOCK + threadIdx.x;
       i < n; i += stride) {
    const user::stored last = sorted[i * fan + (fan - 1)];
    user::stored *table = tables;

#pragma unroll
    for (unsigned k = 1; k <= KILN_LEVELS; ++k) {
      /* the number of groups of this table up to the element */
      const count groups = (i + 1) >> (k - 1) * log2_fan;

      if (groups << (k - 1) * log2_fan == i + 1)
        table[groups - 1] = last;
      table += node_end(size_of(m, k));
    }
  }
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

/* Copies n elements, `stride` elements apart, to shared memory. */
static __device__ __forceinline__ void take_samples(const user::stored *from,
                                                    unsigned n, place stride)
{
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < n; i += KILN_BLOCK)
    sample[slot(i)] = from[(i + static_cast<place>(1)) * stride - 1];
  __syncthreads();
}
#endif

#if KILN_LEVELS > 0
/* The tables. table[0] is the sequence, and the last table is the array of
 * samples. */
struct tree {
  const user::stored *table[KILN_LEVELS];
  place m;

  __device__ __forceinline__ tree(const user::stored *sorted, count n,
                                  const user::stored *tables)
      : m(static_cast<place>(n))
  {
    table[0] = sorted;
#pragma unroll
    for (unsigned k = 1; k < KILN_LEVELS; ++k) {
      table[k] = tables;
      tables += node_end(size_of(n, k));
    }
    samples = tables;
  }
  const user::stored *samples;

  __device__ __forceinline__ unsigned n_samples() const
  {
    return static_cast<unsigned>(size_of(m, KILN_LEVELS));
  }
};

/* Returns how many of the `fan` elements from `first` on exist and precede the
 * bound of the needle. `n` is the number of elements of the table. */
template <bool padded>
static __device__ __forceinline__ unsigned
behind_in_node(const user::args &s, const user::stored *table, place first,
               place n, user::value needle)
{
  user::value element[fan];
  unsigned behind = 0;

  if (padded || n - first >= fan) {
    kiln::load_vector<fan, padded || KILN_ALIGNED != 0>(table + first, element);
  } else {
#pragma unroll
    for (unsigned e = 0; e < fan; ++e)
      element[e] = kiln::widen(table[e < n - first ? first + e : n - 1]);
  }
#pragma unroll
  for (unsigned e = 0; e < fan; ++e)
    behind += e < n - first && is_behind(s, element[e], needle) ? 1u : 0u;
  return behind;
}

/* Finds the bounds of all needles of a thread. */
static __device__ __forceinline__ void
find(const user::args &s, const tree &q,
     const user::value (&needle)[KILN_ITEMS], place (&at)[KILN_ITEMS])
{
  const unsigned n = q.n_samples();

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    at[k] = 0;
#pragma unroll 1
  for (unsigned step = n == 0 ? 0 : 1u << (31 - __clz(static_cast<int>(n)));
       step > 0; step /= 2)
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (step <= n - at[k] &&
          is_behind(s,
                    kiln::widen(
                        sample[slot(static_cast<unsigned>(at[k]) + step - 1)]),
                    needle[k]))
        at[k] += step;
#pragma unroll
  for (unsigned level = KILN_LEVELS; level-- > 0;)
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const place first = at[k] * fan,
                  size = static_cast<place>(size_of(q.m, level));

      at[k] =
          first + (level > 0 ? behind_in_node<true>(s, q.table[level], first,
                                                    size, needle[k])
                             : behind_in_node<false>(s, q.table[level], first,
                                                     size, needle[k]));
    }
}
#else
/* The sequence. */
struct sequence {
  const user::stored *sorted;
  place m, stride;
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
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    search(const user::args s, const user::stored *sorted, unsigned long long m,
           unsigned long long stride, unsigned long long n, KILN_INDEX *out,
           const user::stored *tables)
{
  constexpr count tile = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
#if KILN_LEVELS > 0
  const tree q(sorted, m, tables);

  (void)stride;
  kiln::launch_wait();
  take_samples(q.samples, q.n_samples(), 1);
#else
  const sequence q = {sorted, static_cast<place>(m),
                      static_cast<place>(stride)};

  (void)tables;
#if KILN_SAMPLES > 0
  take_samples(sorted, static_cast<unsigned>(q.m / q.stride), q.stride);
#endif
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
