/* reduce_rows.cu -- reduce each row of a matrix, with a group of lanes per row.
 *
 * Short rows leave most of a block idle, so a group of 1 to 32 lanes takes a row,
 * and each group has KILN_DEPTH rows in flight. No block waits for another one.
 * Long rows are the case of reduce_any.cu.
 *
 * Parameters:
 *   KILN_OUT      type float  type of an element of out
 *   KILN_BLOCK    256         threads per block
 *   KILN_GROUP    4           lanes per row: a power of two up to 32
 *   KILN_VECTOR   4           elements per vector: a power of two
 *   KILN_ITEMS    1           vectors of a row in flight per lane
 *   KILN_DEPTH    4           rows in flight per group
 *   KILN_THREADS  1024        resident threads per SM to limit registers for
 *   KILN_EXACT    1           1: a row has exactly KILN_GROUP * KILN_ITEMS vectors
 *   KILN_HEAD     0           1: rows start and end inside vectors (needs KILN_GROUP
 *                             32, KILN_DEPTH 1 and KILN_EXACT 0)
 *   KILN_ORDERED  0           1: operands keep the order of the elements
 *   KILN_SMALL    0           1: fewer than 2^31 elements from first to last
 * Generated code (user.cuh): acc and op.
 * Launch: block KILN_BLOCK, any grid: blocks stride over tiles of KILN_BLOCK /
 *         KILN_GROUP * KILN_DEPTH rows.
 *         n        elements per row; whole vectors unless KILN_HEAD is 1
 *         rows     number of rows, `leading` elements apart
 *         phase    elements from a vector's boundary to element 0 (KILN_HEAD)
 * Result: out[r] is the reduction of row r. */
#include <kiln/params/reduce_rows.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/accumulators.cuh>
#include <kiln/ordered_reduce.cuh>
#include <kiln/user.cuh>

static_assert(!KILN_HEAD || (KILN_GROUP == 32 && KILN_DEPTH == 1 &&
                             !KILN_EXACT && KILN_VECTOR <= 32),
              "KILN_HEAD: for a warp a row");

#if KILN_SMALL
typedef unsigned count;
#else
typedef unsigned long long count;
#endif

typedef user::acc reduced;
typedef user::vector<KILN_VECTOR> vector;

enum : unsigned { groups = KILN_BLOCK / KILN_GROUP };

/* The vectors of a row, and the number of elements before and after them. */
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

/* Combines `value` with one step of all lanes: in each lane, or, if ordered, in
 * the group's first lane. */
static __device__ __forceinline__ reduced add(reduced value, reduced step,
                                              user::op op)
{
#if KILN_ORDERED
  step = kiln::group_reduce<KILN_GROUP>(step, op);
#endif
  return op(value, step);
}

#if KILN_HEAD
static __device__ __forceinline__ reduced edge_of(const user::args &in,
                                                  count first, unsigned n,
                                                  reduced identity)
{
  if (kiln::lane() >= n)
    return identity;
  return static_cast<reduced>(user::load(in, first + kiln::lane()));
}
#endif

/* Reduces rows start + d * groups + g, where g is this thread's group. Every
 * lane of the warp makes the same rounds, also for rows that do not exist. */
static __device__ __forceinline__ void
reduce_tile_rows(const user::args &in, count start, count rows, count n,
                 count leading, unsigned phase, reduced (&value)[KILN_DEPTH])
{
  const user::op op = user::make_op(in);
  const reduced identity = user::identity(in);
  const unsigned lane = threadIdx.x % KILN_GROUP;
  const count most = n / KILN_VECTOR;
  vector p[KILN_DEPTH][KILN_ITEMS];
  extent x[KILN_DEPTH];

#pragma unroll
  for (unsigned d = 0; d < KILN_DEPTH; ++d) {
    const count row = start + threadIdx.x / KILN_GROUP + d * groups;

    /* Rows that do not exist are read as copies of the first one. Without a
     * branch between a load and its use, the compiler keeps loaded elements
     * packed. */
    x[d] = extent_of((row < rows ? row : start) * leading, n, phase);
    value[d] = identity;
  }
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
#pragma unroll
      for (unsigned k = 0; k < KILN_ITEMS; ++k) {
        const count at = base + k * KILN_GROUP;

        user::load_inputs(in,
                          x[d].first +
                              (KILN_EXACT || at < x[d].vectors ? at : 0) *
                                  KILN_VECTOR,
                          p[d][k]);
      }
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

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    reduce_rows(const user::args in, unsigned long long n,
                unsigned long long rows, unsigned long long leading,
                unsigned phase, KILN_OUT *out)
{
  constexpr count tile = groups * KILN_DEPTH;
  const unsigned group = threadIdx.x / KILN_GROUP;

#pragma unroll 1
  for (count start = blockIdx.x * tile; start < rows;
       start += gridDim.x * tile) {
    const count first = start + group;
    reduced value[KILN_DEPTH];

    reduce_tile_rows(in, start, static_cast<count>(rows), static_cast<count>(n),
                     static_cast<count>(leading), phase, value);
#pragma unroll
    for (unsigned d = 0; d < KILN_DEPTH; ++d)
      if (threadIdx.x % KILN_GROUP == 0 && first + d * groups < rows)
        kiln::store(out + (first + d * groups), value[d]);
  }
}

#include <kiln/user_texts.cuh>
