/* reduce_rows.cu -- reduce each row of a matrix, with a group of lanes per row.
 *
 * Problem: one block per row would leave most of its threads idle if rows are short.
 * Idea: a group of 1 to 32 lanes reduces a row, and each group of lanes has KILN_DEPTH
 * rows in flight. No block waits for another block. reduce_any.cu reduces long rows.
 *
 * Parameters:
 *   KILN_KIND     0           kind of reduction (reduction_kind.cuh)
 *   KILN_OUT      type float  type of an element of out
 *   KILN_OUT2     type double  type of an element of out2
 *   KILN_BLOCK    256         threads per block
 *   KILN_GROUP    4           lanes per row, a power of two up to 32
 *   KILN_VECTOR   4           elements per vector, a power of two
 *   KILN_ITEMS    1           vectors of a row in flight per lane
 *   KILN_DEPTH    4           rows in flight per group of lanes; 1 if a row has more
 *                             than KILN_GROUP * KILN_ITEMS vectors
 *   KILN_THREADS  1024        minimum number of resident threads per SM, which limits
 *                             registers through __launch_bounds__
 *   KILN_EXACT    1           1 if a row has exactly KILN_GROUP * KILN_ITEMS vectors
 *   KILN_HEAD     0           1 if rows start or end inside vectors; requires
 *                             KILN_GROUP 32, KILN_DEPTH 1 and KILN_EXACT 0
 *   KILN_ORDERED  0           1 if operands keep the order of the elements
 *   KILN_KEEP     0           size, in units of 2^12 vectors, of the front of the matrix
 *                             that has the usual priority in the L2 cache, as in
 *                             reduce_any.cu; 0 gives it to the whole matrix. Only for
 *                             kinds other than 0
 *   KILN_SMALL    0           1 if the matrix spans fewer than 2^31 elements
 * Generated code (user.cuh): acc and op for KILN_KIND 0.
 * Launch: the block size is KILN_BLOCK. The grid has any size, since the blocks stride
 *         over tiles of KILN_BLOCK / KILN_GROUP * KILN_DEPTH rows.
 *         n        number of elements per row, a multiple of KILN_VECTOR unless
 *                  KILN_HEAD is 1
 *         rows     number of rows
 *         leading  distance in elements between the starts of two rows
 *         phase    with KILN_HEAD, number of elements between the last vector boundary
 *                  and element 0
 *         extra    for KILN_KIND 3, the variance is divided by n - extra
 * Result: out[r] and out2[r] are the results of row r (reduction_kind.cuh). An index is
 *         relative to the start of the row. */
#include <kiln/params/reduce_rows.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/ordered_reduce.cuh>
#include <kiln/reduction_kind.cuh>

static_assert(!KILN_HEAD || (KILN_GROUP == 32 && KILN_DEPTH == 1 &&
                             !KILN_EXACT && KILN_VECTOR <= 32),
              "KILN_HEAD: for a warp a row");

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

static_assert(KILN_KIND == 0 || !KILN_ORDERED, "KILN_ORDERED: for KILN_KIND 0");

typedef user::vector<KILN_VECTOR> vector;

enum : unsigned { groups = KILN_BLOCK / KILN_GROUP };

/* The whole vectors of a row, and the number of elements before and after these
 * vectors. */
struct extent {
  count first, vectors;
  unsigned head, tail;
};

static __device__ __forceinline__ extent extent_of(count origin, count n,
                                                   unsigned phase)
{
#if KILN_HEAD
  const unsigned past = static_cast<unsigned>((origin + phase) % KILN_VECTOR);
  const count to_boundary = past == 0 ? 0 : KILN_VECTOR - past;
  const count head = to_boundary < n ? to_boundary : n;

  return {origin + head, (n - head) / KILN_VECTOR, static_cast<unsigned>(head),
          static_cast<unsigned>((n - head) % KILN_VECTOR)};
#else
  (void)phase;
  return {origin, n / KILN_VECTOR, 0, 0};
#endif
}

#if KILN_HEAD
static __device__ __forceinline__ reduced edge_of(const user::args &in,
                                                  count first, unsigned n,
                                                  reduced identity)
{
  if (kiln::lane() >= n)
    return identity;
  return accumulator_of<count, KILN_VECTOR>::single(
      user::load(in, first + kiln::lane()), first + kiln::lane(), identity);
}
#endif

/* Finds the vectors of rows start + d * groups + g for all d < KILN_DEPTH, where g is
 * the calling thread's group of lanes. A row beyond the last row is read as a copy of
 * row `start`. This avoids a branch between a load and its use, so the compiler keeps
 * the loaded elements packed in registers. */
static __device__ __forceinline__ void find_rows(count start, count rows,
                                                 count n, count leading,
                                                 unsigned phase,
                                                 extent (&x)[KILN_DEPTH])
{
#pragma unroll
  for (unsigned d = 0; d < KILN_DEPTH; ++d) {
    const count row = start + threadIdx.x / KILN_GROUP + d * groups;

    x[d] = extent_of((row < rows ? row : start) * leading, n, phase);
  }
}

template <kiln::cached how = kiln::cached::usual>
static __device__ __forceinline__ void load_vectors(const user::args &in,
                                                    const extent &x, count base,
                                                    vector (&p)[KILN_ITEMS])
{
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count at = base + k * KILN_GROUP;

    user::load_inputs<KILN_VECTOR, how>(
        in, x.first + (KILN_EXACT || at < x.vectors ? at : 0) * KILN_VECTOR,
        p[k]);
  }
}

#if KILN_KIND == 0
static __device__ __forceinline__ reduced reduce_vector(const user::args &in,
                                                        const vector &p,
                                                        count i, user::op op)
{
  reduced v[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    v[e] = static_cast<reduced>(user::map_at(in, p, e, i));
  return kiln::reduce_array(v, op);
}

/* Combines `value` with the result `step` of one vector per lane. Each lane
 * combines its own values. With KILN_ORDERED, the first lane of each group
 * combines the reduction over the group of lanes instead. */
static __device__ __forceinline__ reduced add(reduced value, reduced step,
                                              user::op op)
{
#if KILN_ORDERED
  step = kiln::group_reduce<KILN_GROUP>(step, op);
#endif
  return op(value, step);
}

/* Reduces the rows x. Every lane of the warp runs the same number of iterations,
 * also for rows beyond the last row. */
static __device__ __forceinline__ void
reduce_tile_rows(const user::args &in, const extent (&x)[KILN_DEPTH], count n,
                 const reduced (&identities)[KILN_DEPTH],
                 reduced (&value)[KILN_DEPTH])
{
  const user::op op = user::make_op(in);
  const reduced identity = identities[0];
  const unsigned lane = threadIdx.x % KILN_GROUP;
  const count most = n / KILN_VECTOR;
  vector p[KILN_DEPTH][KILN_ITEMS];

#pragma unroll
  for (unsigned d = 0; d < KILN_DEPTH; ++d)
    value[d] = identity;
#if KILN_HEAD
  value[0] = add(identity,
                 edge_of(in, x[0].first - x[0].head, x[0].head, identity), op);
#endif
#if KILN_EXACT
  (void)most;
  {
    const count base = lane;
#else
#pragma unroll 1
  for (count base = lane; base - lane < most; base += KILN_GROUP * KILN_ITEMS) {
#endif
#pragma unroll
    for (unsigned d = 0; d < KILN_DEPTH; ++d)
      load_vectors(in, x[d], base, p[d]);
#pragma unroll
    for (unsigned d = 0; d < KILN_DEPTH; ++d)
#pragma unroll
      for (unsigned k = 0; k < KILN_ITEMS; ++k) {
        const count at = base + k * KILN_GROUP;
        reduced step = identity;

        if (KILN_EXACT || at < x[d].vectors)
          step = reduce_vector(in, p[d][k], x[d].first + at * KILN_VECTOR, op);
        value[d] = add(value[d], step, op);
      }
  }
#if KILN_HEAD
  value[0] = add(
      value[0],
      edge_of(in, x[0].first + x[0].vectors * KILN_VECTOR, x[0].tail, identity),
      op);
#endif
#if !KILN_ORDERED
#pragma unroll
  for (unsigned d = 0; d < KILN_DEPTH; ++d)
    value[d] = kiln::group_reduce<KILN_GROUP>(value[d], op);
#endif
}

#else
typedef accumulator_of<count, KILN_VECTOR> accumulator;

/* Loads vectors of a row with the priority of its part of the matrix. */
static __device__ __forceinline__ void load_ranked(const user::args &in,
                                                   const extent &x, count base,
                                                   vector (&p)[KILN_ITEMS])
{
#if KILN_KEEP > 0
  if (x.first < (static_cast<count>(KILN_KEEP) << 12) * KILN_VECTOR)
    load_vectors<kiln::cached::kept>(in, x, base, p);
  else
    load_vectors<kiln::cached::swept>(in, x, base, p);
#else
  load_vectors(in, x, base, p);
#endif
}

static __device__ __forceinline__ void take_vectors(const user::args &in,
                                                    const extent &x, count base,
                                                    vector (&p)[KILN_ITEMS],
                                                    accumulator &f)
{
  if (KILN_KIND == 3 && base < x.vectors)
    f.look(user::map_at(in, p[0], 0, x.first + base * KILN_VECTOR));
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count at = base + k * KILN_GROUP;

    if (KILN_EXACT || at < x.vectors)
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        f.take(user::map_at(in, p[k], e, x.first + at * KILN_VECTOR), e, at);
  }
}

/* Reduces the rows x by accumulators. The first vectors of all rows are loaded
 * before the first one is used. */
static __device__ __forceinline__ void
reduce_tile_rows(const user::args &in, const extent (&x)[KILN_DEPTH], count n,
                 const reduced (&identities)[KILN_DEPTH],
                 reduced (&value)[KILN_DEPTH])
{
  const unsigned lane = threadIdx.x % KILN_GROUP;
  const count most = n / KILN_VECTOR;
  const merge op = make_merge(in);
  vector p[KILN_DEPTH][KILN_ITEMS];

#pragma unroll
  for (unsigned d = 0; d < KILN_DEPTH; ++d)
    if (most > 0)
      load_ranked(in, x[d], lane, p[d]);
#pragma unroll
  for (unsigned d = 0; d < KILN_DEPTH; ++d) {
    accumulator f(op, identities[d]);

    f.begin(lane, lane < x[d].vectors);
    take_vectors(in, x[d], lane, p[d], f);
    if (KILN_DEPTH == 1 && !KILN_EXACT)
#pragma unroll 1
      for (count base = lane + KILN_GROUP * KILN_ITEMS; base - lane < most;
           base += KILN_GROUP * KILN_ITEMS) {
        load_ranked(in, x[0], base, p[0]);
        take_vectors(in, x[0], base, p[0], f);
      }
    value[d] = f.close(x[d].first);
#if KILN_HEAD
    value[d] = op(value[d], edge_of(in, x[d].first - x[d].head, x[d].head,
                                    identities[d]));
    value[d] = op(value[d], edge_of(in, x[d].first + x[d].vectors * KILN_VECTOR,
                                    x[d].tail, identities[d]));
#endif
    value[d] = kiln::group_reduce<KILN_GROUP>(value[d], op);
  }
}
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    reduce_rows(const user::args in, unsigned long long n,
                unsigned long long rows, unsigned long long leading,
                unsigned phase, double extra, KILN_OUT *out, KILN_OUT2 *out2)
{
  constexpr count tile = groups * KILN_DEPTH;
  const unsigned group = threadIdx.x / KILN_GROUP;

#pragma unroll 1
  for (count start = blockIdx.x * tile; start < rows;
       start += gridDim.x * tile) {
    const count first = start + group;
    reduced value[KILN_DEPTH], identity[KILN_DEPTH];
    extent x[KILN_DEPTH];

    find_rows(start, static_cast<count>(rows), static_cast<count>(n),
              static_cast<count>(leading), phase, x);
#pragma unroll
    for (unsigned d = 0; d < KILN_DEPTH; ++d)
      identity[d] = identity_of(in, n > 0, x[d].first - x[d].head);
    reduce_tile_rows(in, x, static_cast<count>(n), identity, value);
#pragma unroll
    for (unsigned d = 0; d < KILN_DEPTH; ++d)
      if (threadIdx.x % KILN_GROUP == 0 && first + d * groups < rows)
        store_result(value[d], identity[d], first + d * groups,
                     x[d].first - x[d].head, extra, out, out2);
  }
}

#include <kiln/user_texts.cuh>
