/* reduce_columns.cu -- reduce each column of a matrix.
 *
 * Idea: consecutive lanes read consecutive columns, so that every load is coalesced.
 * The rows are divided into chunks, one per block, and each chunk is divided among the
 * threads of its block. The other blocks publish their results in tile descriptors
 * (look_back.cuh), and the block of the last chunk combines these results.
 *
 * Parameters:
 *   KILN_KIND     0           kind of reduction (reduction_kind.cuh)
 *   KILN_OUT      type float  type of an element of out
 *   KILN_OUT2     type double  type of an element of out2
 *   KILN_BLOCK    256         threads per block, a power of two
 *   KILN_LANES    32          threads that read the same row, a power of two
 *   KILN_VECTOR   4           columns per thread, a power of two that divides all
 *                             widths and `leading`; KILN_LANES * KILN_VECTOR is at
 *                             most KILN_BLOCK
 *   KILN_ITEMS    4           rows in flight per thread
 *   KILN_THREADS  1024        minimum number of resident threads per SM, which limits
 *                             registers through __launch_bounds__
 *   KILN_ORDERED  0           1 if operands keep the order of the rows
 *   KILN_SMALL    0           1 if the matrix spans fewer than 2^31 elements
 * Generated code (user.cuh): acc and op for KILN_KIND 0.
 * Launch: the block size is KILN_BLOCK. Each block handles KILN_LANES * KILN_VECTOR
 *         columns, and grid.x covers all columns. grid.y is the number of chunks of
 *         rows.
 *         leading  distance in elements between the starts of two rows
 *         words    grid.y * columns tile descriptors; unused if grid.y is 1
 *         extra    for KILN_KIND 3, the variance is divided by rows - extra
 * Result: out[c] and out2[c] are the results of column c (reduction_kind.cuh). An index is
 *         the number of a row. For the same sizes and grid, the result has the same
 *         bits. */
#include <kiln/params/reduce_columns.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/ordered_reduce.cuh>
#include <kiln/reduction_kind.cuh>

static_assert(KILN_LANES * KILN_VECTOR <= KILN_BLOCK,
              "KILN_LANES * KILN_VECTOR: at most KILN_BLOCK");

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

enum : unsigned {
  threads_down =
      KILN_BLOCK / KILN_LANES,      /* number of threads that share columns */
  width = KILN_LANES * KILN_VECTOR, /* columns per block */
  takers = KILN_BLOCK / width, /* number of threads that combine one column */
  at_once =
      sizeof(reduced) > 8
          ? 4
          : 16 /* number of results that a thread polls at the same time */
};

/* Reduces the values of threads t, t + across, t + 2 across, ..., which belong to
 * the same columns. The operands keep the order of the threads. The threads
 * below `across` get the result. `storage` has one entry per thread and value. */
template <unsigned across, unsigned n>
static __device__ __forceinline__ void reduce_down(reduced (&value)[n],
                                                   reduced *storage, merge op)
{
  const unsigned row = threadIdx.x / across;

#pragma unroll
  for (unsigned e = 0; e < n; ++e)
    storage[e * KILN_BLOCK + threadIdx.x] = value[e];
#pragma unroll
  for (unsigned step = 1; step < KILN_BLOCK / across; step *= 2) {
    __syncthreads();
    if (row % (2 * step) == 0)
#pragma unroll
      for (unsigned e = 0; e < n; ++e) {
        reduced *const place = storage + e * KILN_BLOCK + threadIdx.x;

        value[e] = op(value[e], place[step * across]);
        *place = value[e];
      }
  }
}

/* Reduces KILN_VECTOR columns, of which `column` is the first, over the rows
 * begin, begin + stride, begin + 2 stride, ... that are below `end`. */
static __device__ __forceinline__ void
reduce_part(const user::args &in, count column, count begin, count stride,
            count end, count leading, const reduced (&identity)[KILN_VECTOR],
            reduced (&value)[KILN_VECTOR])
{
  const merge op = make_merge(in);
  const count reach = (KILN_ITEMS - 1) * stride;
  user::vector<KILN_VECTOR> p[KILN_ITEMS];
  count r = begin;

#pragma unroll 1
  for (; r + reach < end; r += KILN_ITEMS * stride) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      user::load_inputs(in, (r + k * stride) * leading + column, p[k]);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        value[e] = take_value(
            op, value[e],
            user::map_at(in, p[k], e, (r + k * stride) * leading + column),
            r + k * stride, identity[e]);
  }
  if (r >= end)
    return;
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (r + k * stride < end)
      user::load_inputs(in, (r + k * stride) * leading + column, p[k]);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (r + k * stride < end)
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        value[e] = take_value(
            op, value[e],
            user::map_at(in, p[k], e, (r + k * stride) * leading + column),
            r + k * stride, identity[e]);
}

/* Waits for the results that chunks `begin` to end - 1 publish for a column, and
 * returns their reduction in the order of the chunks. */
static __device__ __forceinline__ reduced take(const unsigned long long *words,
                                               count column, count columns,
                                               unsigned begin, unsigned end,
                                               unsigned epoch, merge op,
                                               reduced identity)
{
  reduced total = identity;

#pragma unroll 1
  for (unsigned first = begin; first < end; first += at_once) {
    reduced value[at_once];
    unsigned missing = 0;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k) {
      value[k] = identity;
      missing |= (first + k < end ? 1u : 0u) << k;
    }
    while (missing != 0)
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k) {
        reduced seen;

        if ((missing >> k & 1u) != 0 &&
            kiln::tile_peek(
                words,
                static_cast<unsigned long long>(first + k) * columns + column,
                epoch, &seen) != 0) {
          value[k] = seen;
          missing &= ~(1u << k);
        }
      }
#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      total = op(total, value[k]);
  }
  return total;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    reduce_columns(const user::args in, unsigned long long rows,
                   unsigned long long columns, unsigned long long leading,
                   unsigned long long *words, unsigned epoch, double extra,
                   KILN_OUT *out, KILN_OUT2 *out2)
{
  __shared__ reduced storage[KILN_BLOCK * KILN_VECTOR];
  const merge op = make_merge(in);
  const unsigned chunks = gridDim.y, chunk = blockIdx.y;
  const unsigned row = threadIdx.x / KILN_LANES;
  const count left = static_cast<count>(blockIdx.x) * width;
  const count column = left + threadIdx.x % KILN_LANES * KILN_VECTOR;
  const count each = static_cast<count>((rows + chunks - 1) / chunks);
  const count n_rows = static_cast<count>(rows);
  const count from = each * chunk < n_rows ? each * chunk : n_rows;
  const count to = from + each < n_rows ? from + each : n_rows;
  reduced value[KILN_VECTOR], identity[KILN_VECTOR], one[1];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    identity[e] = identity_of(in, rows > 0 && column < columns, column + e);
    value[e] = identity[e];
  }
  if (column < columns) {
#if KILN_ORDERED
    const count mine = (to - from + threads_down - 1) / threads_down;
    const count begin = from + mine * row < to ? from + mine * row : to;

    reduce_part(in, column, begin, 1, begin + mine < to ? begin + mine : to,
                static_cast<count>(leading), identity, value);
#else
    reduce_part(in, column, from + row, threads_down, to,
                static_cast<count>(leading), identity, value);
#endif
  }
  reduce_down<KILN_LANES>(value, storage, op);
  if (chunks == 1 || chunk + 1 < chunks) {
    if (row == 0 && column < columns)
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        if (chunks == 1)
          store_result(value[e], identity[e], column + e, 0, extra, out, out2);
        else
          kiln::tile_publish(
              words,
              static_cast<unsigned long long>(chunk) * columns + column + e,
              value[e], kiln::descriptor_tag(epoch, kiln::status_partial));
    return;
  }

  /* The block of the last chunk combines the results of all chunks. */
  {
    const unsigned taker = threadIdx.x / width;
    const unsigned c = threadIdx.x % width;
    const unsigned share = (chunks - 1 + takers - 1) / takers;
    const unsigned begin = taker * share;
    const unsigned end =
        begin + share < chunks - 1 ? begin + share : chunks - 1;
    const reduced empty =
        identity_of(in, rows > 0 && left + c < columns, left + c);
    reduced own = empty;

    __syncthreads();
    if (threadIdx.x < width)
      own = storage[c % KILN_VECTOR * KILN_BLOCK + c / KILN_VECTOR];
    one[0] = empty;
    if (left + c < columns && begin < end)
      one[0] = take(words, left + c, static_cast<count>(columns), begin, end,
                    epoch, op, empty);
    __syncthreads();
    reduce_down<width>(one, storage, op);
    if (threadIdx.x < width && left + c < columns)
      store_result(op(one[0], own), empty, left + c, 0, extra, out, out2);
  }
}

#include <kiln/user_texts.cuh>
