/* reduce_any.cu -- reduce an array of any type and with any map to one value, or each
 * row of a matrix to one value, in one launch. The reduction is a binary operation, the
 * index of an extreme value, minimum and maximum, mean and variance, or the Euclidean
 * norm.
 *
 * Idea: the algorithm is that of reduce.cu. Each thread adds elements to an accumulator
 * (accumulators.cuh). The blocks publish their results in tile descriptors. The last
 * block polls the descriptors and combines the results (results_combine() in
 * ordered_reduce.cuh).
 * With KILN_ORDERED, the operands keep the order of the elements. A warp reads a row of
 * 32 consecutive vectors and reduces the row over its lanes.
 * With KILN_CHUNKS, the order of the operands depends only on n, the chunk size and the
 * types. So the result depends neither on the grid nor on the GPU.
 *
 * Parameters:
 *   KILN_KIND     0            kind of reduction (reduction_kind.cuh)
 *   KILN_OUT      type float   type of an element of out
 *   KILN_OUT2     type double  type of an element of out2 
 *   KILN_BLOCK    512          threads per block
 *   KILN_VECTOR   4            elements per vector, a power of two: 16 bytes of the
 *                              widest array
 *   KILN_ITEMS    4            vectors in flight per thread
 *   KILN_THREADS  1024         minimum number of resident threads per SM, which limits
 *                              registers through __launch_bounds__
 *   KILN_KEEP     0            size, in units of 2^12 vectors, of the front of the input
 *                              that has the usual priority in the L2 cache. The rest is
 *                              evicted first, so that an array larger than the cache
 *                              does not evict all of its front. With 0, the whole input
 *                              has the usual priority
 *   KILN_RESULTS  9            maximum number of results that each lane of the combining
 *                              warp polls at the same time
 *   KILN_ORDERED  0            1 if operands keep the order of the elements, where each
 *                              block and warp reads one contiguous range
 *   KILN_CHUNKS   0            1 if the order of operands does not depend on the grid
 *   KILN_HEAD     0            1 if vectors start `head` elements after element 0
 *   KILN_ROWS     0            1 if there is one result per row
 *   KILN_SMALL    0            1 if there are fewer than 2^31 elements in all rows
 * Generated code (user.cuh): acc and op for KILN_KIND 0.
 * Launch: the block size is KILN_BLOCK. If grid.x is greater than 1, the last block of
 *         each row only combines. grid.y is 1 without KILN_ROWS. With KILN_ROWS, grid.y
 *         is the number of rows, or any number if grid.x is 1.
 *         n        number of elements, or number of elements per row
 *         rows     number of rows; 1 without KILN_ROWS
 *         leading  distance in elements between the starts of two rows
 *         head     number of elements before the first vector; with KILN_ROWS, number
 *                  of elements between the last vector boundary and element 0
 *         chunk    number of vectors per chunk (KILN_CHUNKS)
 *         words    tile descriptors. Each row has one descriptor per block except the
 *                  last block, or with KILN_CHUNKS one descriptor per chunk
 *         extra    for KILN_KIND 3, the variance is divided by n - extra
 *         out, out2   receive the results (reduction_kind.cuh), one per row. An index is
 *                  relative to the start of its row
 * Result: the result has the same bits for the same n, specialisation and grid. */
#include <kiln/params/reduce_any.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/ordered_reduce.cuh>
#include <kiln/reduction_kind.cuh>

static_assert(KILN_BLOCK % 32 == 0 && KILN_BLOCK <= 1024,
              "KILN_BLOCK: a multiple of 32, at most 1024");
static_assert(KILN_ITEMS >= 1, "KILN_ITEMS: at least 1");

/* Type of an index of a vector. The index may exceed the number of vectors by
 * one round of loads. */
typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

typedef accumulator_of<count, KILN_VECTOR> accumulator;

/* The row that a block reduces. */
struct job {
  user::index first;    /* index of the first element of vector 0 */
  count vectors;        /* number of whole vectors */
  user::index origin;   /* index of the first element of the row */
  unsigned long long n; /* number of elements of the row */
  reduced identity;
  unsigned head, tail; /* number of elements before and after the vectors */
};

/* Returns the number of blocks that reduce elements. The last block of several
 * only combines results. */
static __device__ __forceinline__ unsigned workers()
{
  return gridDim.x == 1 ? 1 : gridDim.x - 1;
}

/* The vectors that one thread or warp reads. Their indices are begin, begin +
 * stride, begin + 2 stride and so on, as long as the index is below `end`. */
struct share {
  count begin, end, stride;
};

static __device__ __forceinline__ user::index element_of(const job &j, count i)
{
  return j.first + static_cast<user::index>(i) * KILN_VECTOR;
}

#if !KILN_ORDERED
/* ---- Operands in any order ------------------------------------------
 * All loads of a round are issued before the first value is used. */

template <kiln::cached how>
static __device__ __forceinline__ void whole_round(const user::args &in,
                                                   const job &j, count i,
                                                   count stride, accumulator &f)
{
  user::vector<KILN_VECTOR> p[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    user::load_inputs<KILN_VECTOR, how>(in, element_of(j, i + k * stride),
                                        p[k]);
  if (KILN_KIND == 3)
    f.look(user::map_at(in, p[0], 0, element_of(j, i)));
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      f.take(user::map_at(in, p[k], e, element_of(j, i + k * stride)), e,
             i + k * stride);
}

/* Adds the vectors of the last round, some of which do not exist. A vector
 * beyond the end is read as a copy of vector i. This avoids a branch between a
 * load and its use, so the compiler keeps the loaded elements packed in
 * registers. */
template <kiln::cached how>
static __device__ __forceinline__ void
last_round(const user::args &in, const job &j, count i, const share &s,
           accumulator &f)
{
  user::vector<KILN_VECTOR> p[KILN_ITEMS];

  if (KILN_ITEMS == 1 || i >= s.end)
    return;
#pragma unroll
  for (unsigned k = 0; k + 1 < KILN_ITEMS; ++k) {
    const count at = i + k * s.stride;

    user::load_inputs<KILN_VECTOR, how>(in, element_of(j, at < s.end ? at : i),
                                        p[k]);
  }
  if (KILN_KIND == 3)
    f.look(user::map_at(in, p[0], 0, element_of(j, i)));
#pragma unroll
  for (unsigned k = 0; k + 1 < KILN_ITEMS; ++k)
    if (i + k * s.stride < s.end) {
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        f.take(user::map_at(in, p[k], e, element_of(j, i + k * s.stride)), e,
               i + k * s.stride);
    }
}

static __device__ __forceinline__ reduced reduce_share(const user::args &in,
                                                       const job &j,
                                                       const share &s)
{
  const count reach = (KILN_ITEMS - 1) * s.stride;
  accumulator f(make_merge(in), j.identity);
  count i = s.begin;

  f.begin(i, i < s.end);
#if KILN_KEEP > 0
  constexpr count kept = static_cast<count>(KILN_KEEP) << 12;
  const count usual_end = s.end < kept ? s.end : kept;

#pragma unroll 1
  for (; i + reach < usual_end; i += KILN_ITEMS * s.stride)
    whole_round<kiln::cached::kept>(in, j, i, s.stride, f);
#pragma unroll 1
  for (; i + reach < s.end; i += KILN_ITEMS * s.stride)
    whole_round<kiln::cached::swept>(in, j, i, s.stride, f);
  last_round<kiln::cached::swept>(in, j, i, s, f);
#else
#pragma unroll 1
  for (; i + reach < s.end; i += KILN_ITEMS * s.stride)
    whole_round<kiln::cached::usual>(in, j, i, s.stride, f);
  last_round<kiln::cached::usual>(in, j, i, s, f);
#endif
  return f.close(j.first);
}

#else
/* ---- Operands in the order of the elements --------------------------
 * A warp reads rows of 32 vectors, with several rows in flight. Each row is
 * reduced over the lanes before the next row is added. Lane 0 gets the
 * result. */

static __device__ __forceinline__ reduced reduce_vector(
    const user::args &in, const job &j, user::vector<KILN_VECTOR> &p, count i)
{
  reduced v[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    v[e] = accumulator::single(user::map_at(in, p, e, element_of(j, i)),
                               element_of(j, i) + e, j.identity);
  return kiln::reduce_array(v, make_merge(in));
}

#ifdef KILN_LINKED
/* Reduces several vectors at a time, since a call of the operation serves several
 * pairs. Vectors beyond the end are copies of other vectors, and their result is the
 * identity. */
static __device__ __forceinline__ void
reduce_vectors(const user::args &in, const job &j,
               user::vector<KILN_VECTOR> (&p)[KILN_ITEMS], count i, count end,
               reduced (&row)[KILN_ITEMS])
{
  reduced v[KILN_ITEMS][KILN_VECTOR];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const user::index first = element_of(j, i + k * kiln::warp_size);

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      v[k][e] = accumulator::single(user::map_at(in, p[k], e, first), first + e,
                                    j.identity);
  }
  kiln::reduce_arrays(v, make_merge(in));
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    row[k] = i + k * kiln::warp_size < end ? v[k][0] : j.identity;
}
#endif

static __device__ __forceinline__ reduced reduce_in_order(const user::args &in,
                                                          const job &j,
                                                          const share &s)
{
  const merge op = make_merge(in);
  reduced total = j.identity;

#pragma unroll 1
  for (count base = s.begin; base < s.end;
       base += KILN_ITEMS * kiln::warp_size) {
    const count i = base + kiln::lane();
    user::vector<KILN_VECTOR> p[KILN_ITEMS];
    reduced row[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const count at = i + k * kiln::warp_size;

      user::load_inputs(in, element_of(j, at < s.end ? at : base), p[k]);
    }
#ifdef KILN_LINKED
    reduce_vectors(in, j, p, i, s.end, row);
    kiln::warp_reduce_each(row, op);
#else
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      row[k] = j.identity;
      if (i + k * kiln::warp_size < s.end)
        row[k] = reduce_vector(in, j, p[k], i + k * kiln::warp_size);
    }
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      row[k] = kiln::group_reduce<kiln::warp_size>(row[k], op);
#endif
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      total = op(total, row[k]);
  }
  return total;
}

#endif

/* ---- Distribution of the vectors over blocks, warps and threads ---------- */

#if KILN_ORDERED || KILN_CHUNKS
static __device__ __forceinline__ count at_most(count a, count b)
{
  return a < b ? a : b;
}
#endif

#if KILN_ORDERED
static __device__ __forceinline__ count share_size(count n, count parts,
                                                   count unit)
{
  return ((n + unit - 1) / unit + parts - 1) / parts * unit;
}

/* Divides the contiguous vectors from `begin` to end - 1 among the warps of the
 * block, and returns the part of the calling warp. */
static __device__ __forceinline__ share warp_share(count begin, count end)
{
  constexpr unsigned warps = KILN_BLOCK / kiln::warp_size;
  const count each = share_size(end - begin, warps, kiln::warp_size);
  const count from = at_most(begin + each * kiln::warp(), end);

  return {from, at_most(from + each, end), kiln::warp_size};
}

#endif

/* Returns the vectors of a unit that the calling thread reads. A unit is a chunk
 * with KILN_CHUNKS, and otherwise the part of the input that a block reduces. */
static __device__ __forceinline__ share unit_share(const job &j, count unit,
                                                   count chunk)
{
#if KILN_CHUNKS
  const count begin = unit * chunk, end = at_most(begin + chunk, j.vectors);
#if KILN_ORDERED
  return warp_share(begin, end);
#else
  return {begin + threadIdx.x, end, KILN_BLOCK};
#endif
#elif KILN_ORDERED
  const count each = share_size(j.vectors, workers(), KILN_BLOCK);
  const count begin = at_most(unit * each, j.vectors);

  (void)chunk;
  return warp_share(begin, at_most(begin + each, j.vectors));
#else
  (void)chunk;
  return {unit * KILN_BLOCK + threadIdx.x, j.vectors,
          static_cast<count>(workers()) * KILN_BLOCK};
#endif
}

/* ---- Reduction of one unit ----------------------------------------------- */

static __device__ __forceinline__ reduced edge_of(const user::args &in,
                                                  const job &j, unsigned which,
                                                  unsigned n, user::index from)
{
  if (which >= n)
    return j.identity;
  return accumulator::single(user::load(in, from + which), from + which,
                             j.identity);
}

/* Reduces one unit and returns the result in thread 0. The first unit also
 * includes the elements before the first vector. The last unit also includes the
 * elements after the last vector. */
static __device__ __forceinline__ reduced reduce_unit(const user::args &in,
                                                      const job &j, count unit,
                                                      count last, count chunk)
{
  const merge op = make_merge(in);
  const user::index behind = j.origin + (j.n - j.tail);
  reduced value, head = j.identity, tail = j.identity;

  /* Elements before the first vector and after the last vector are loaded first
   * and used last. */
  if (KILN_HEAD && unit == 0)
    head = edge_of(in, j, threadIdx.x, j.head, j.origin);
  if (unit == last)
    tail = edge_of(in, j, threadIdx.x, j.tail, behind);
#if KILN_ORDERED
  value = reduce_in_order(in, j, unit_share(j, unit, chunk));
  if (kiln::lane() != 0)
    value = j.identity;
  value = kiln::block_reduce_wide<KILN_BLOCK>(value, op);
  if (kiln::warp() == 0) {
    if (KILN_HEAD)
      value = op(kiln::group_reduce<kiln::warp_size>(head, op), value);
    value = op(value, kiln::group_reduce<kiln::warp_size>(tail, op));
  }
  return value;
#else
  value = reduce_share(in, j, unit_share(j, unit, chunk));
  if (KILN_HEAD)
    value = op(value, head);
  return kiln::block_reduce_wide<KILN_BLOCK>(op(value, tail), op);
#endif
}

/* ---- The kernel ---------------------------------------------------------- */

static __device__ __forceinline__ job job_of(const user::args &in,
                                             unsigned long long n,
                                             user::index origin, unsigned head)
{
  job j;

  j.identity = identity_of(in, n > 0, origin);
  j.origin = origin;
  j.n = n;
#if !KILN_HEAD
  j.head = 0;
#elif KILN_ROWS
  j.head = static_cast<unsigned>((head + origin) % KILN_VECTOR);
  j.head = j.head == 0 ? 0 : KILN_VECTOR - j.head;
#else
  j.head = head;
#endif
  if (j.head > n)
    j.head = static_cast<unsigned>(n);
  j.first = origin + j.head;
  j.vectors = static_cast<count>(n - j.head) / KILN_VECTOR;
  j.tail = static_cast<unsigned>(n - j.head) % KILN_VECTOR;
  return j;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    reduce_any(const user::args in, unsigned long long n, unsigned rows,
               unsigned head, unsigned long long leading,
               unsigned long long chunk, unsigned long long *words,
               unsigned epoch, double extra, KILN_OUT *out, KILN_OUT2 *out2)
{
  const merge op = make_merge(in);

#if KILN_ROWS
#pragma unroll 1
  for (unsigned row = blockIdx.y; row < rows; row += gridDim.y) {
#else
  const unsigned row = 0;
  {
#endif
    const job j = job_of(in, n, row * leading, head);
#if KILN_CHUNKS
    const count size = static_cast<count>(chunk);
    const unsigned units = static_cast<unsigned>(
        j.vectors == 0 ? 1 : (j.vectors + size - 1) / size);
#else
    const count size = 0;
    const unsigned units = workers();
#endif
    unsigned long long *slots =
        words + row * kiln::descriptor_words<reduced>::count *
                    static_cast<unsigned long long>(units);
    reduced value;

    /* The last block only combines. It starts last, so all blocks that it waits
     * for are running or done. One warp starts to poll immediately, so its
     * latency overlaps with the work of the other blocks. */
    if (gridDim.x > 1 && blockIdx.x == gridDim.x - 1) {
      if (kiln::warp() != 0)
        return;
      value =
          kiln::results_combine<kiln::results_in_flight<reduced>(KILN_RESULTS),
                                KILN_ORDERED != 0>(slots, units, epoch, op,
                                                   j.identity);
      if (threadIdx.x == 0)
        store_result(value, j.identity, row, j.origin, extra, out, out2);
      return;
    }

#if KILN_CHUNKS
#pragma unroll 1
    for (unsigned unit = blockIdx.x; unit < units; unit += workers()) {
#else
    {
      const unsigned unit = blockIdx.x;
#endif
      value = reduce_unit(in, j, unit, units - 1, size);
      if (threadIdx.x == 0) {
        if (gridDim.x == 1 && units == 1)
          store_result(value, j.identity, row, j.origin, extra, out, out2);
        else
          kiln::result_publish(slots, unit, value, epoch);
      }
#if KILN_CHUNKS || KILN_ROWS
      /* The barrier is needed because the next reduction overwrites
       * block_scratch(). */
      __syncthreads();
#endif
    }
  }
  (void)leading, (void)chunk, (void)rows, (void)head;
}

#include <kiln/user_texts.cuh>
