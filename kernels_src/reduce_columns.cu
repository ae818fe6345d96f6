/* reduce_columns.cu -- fold each column of a matrix. Neighbouring lanes read
 * neighbouring columns; rows are divided among the threads of a block, and among
 * blocks, whose results the last of them combines.
 *
 * Specialise:  KILN_OUT     float  element of out
 *              KILN_BLOCK   256  threads a block, a power of two
 *              KILN_LANES   32   threads side by side, a power of two
 *              KILN_PACK    4    columns of a thread, a power of two; all widths
 *                                and `leading` are multiples of it.
 *                                KILN_LANES * KILN_PACK <= KILN_BLOCK
 *              KILN_ITEMS   4    rows that a thread has in flight
 *              KILN_THREADS 1024 threads to keep resident on an SM
 *              KILN_ORDERED 0    1: operands keep the order of the rows
 *              KILN_SMALL   0    1: fewer than 2^31 elements from first to last
 *              user.cuh          acc and op
 * Launch:      block KILN_BLOCK; grid.x of KILN_LANES * KILN_PACK columns each,
 *              grid.y parts of the rows.
 *              words    grid.y * columns results; mark words (lookback.cuh).
 *                       Not used if grid.y is 1
 * Result:      out[c], the fold of column c; same bits for same sizes and grid. */
#ifndef KILN_OUT
#define KILN_OUT float
#endif
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif
#ifndef KILN_LANES
#define KILN_LANES 32
#endif
#ifndef KILN_PACK
#define KILN_PACK 4
#endif
#ifndef KILN_ITEMS
#define KILN_ITEMS 4
#endif
#ifndef KILN_THREADS
#define KILN_THREADS 1024
#endif
#ifndef KILN_ORDERED
#define KILN_ORDERED 0
#endif
#ifndef KILN_SMALL
#define KILN_SMALL 0
#endif

#define KILN_FLAT_BLOCK 1
#include <kiln/fold.cuh>
#include <kiln/user.cuh>

static_assert(KILN_LANES * KILN_PACK <= KILN_BLOCK,
              "KILN_LANES * KILN_PACK: at most KILN_BLOCK");

#if KILN_SMALL
typedef unsigned count;
#else
typedef unsigned long long count;
#endif

typedef user::acc folded;

enum : unsigned {
  threads_down = KILN_BLOCK / KILN_LANES, /* that share columns */
  width = KILN_LANES * KILN_PACK,         /* columns of a block */
  takers = KILN_BLOCK / width,            /* threads that combine a column */
  at_once = 4                             /* results a thread looks for */
};

/* Threads t, t + across, ... hold values of the same columns: their fold, upper
 * threads last, in those below `across`. One place a thread and value. */
template <unsigned across, unsigned n>
static __device__ __forceinline__ void fold_down(folded (&value)[n],
                                                 folded *room, user::op op)
{
  const unsigned row = threadIdx.x / across;

#pragma unroll
  for (unsigned e = 0; e < n; ++e)
    room[e * KILN_BLOCK + threadIdx.x] = value[e];
#pragma unroll
  for (unsigned step = 1; step < KILN_BLOCK / across; step *= 2) {
    __syncthreads();
    if (row % (2 * step) == 0)
#pragma unroll
      for (unsigned e = 0; e < n; ++e) {
        folded *const place = room + e * KILN_BLOCK + threadIdx.x;

        value[e] = op(value[e], place[step * across]);
        *place = value[e];
      }
  }
}

/* Rows begin, begin + stride, ... below end, of a pack of columns. */
static __device__ __forceinline__ void
fold_part(const user::args &in, count column, count begin, count stride,
          count end, count leading, folded (&value)[KILN_PACK])
{
  const user::op op = user::make_op(in);
  const count reach = (KILN_ITEMS - 1) * stride;
  user::pack<KILN_PACK> p[KILN_ITEMS];
  count r = begin;

#pragma unroll 1
  for (; r + reach < end; r += KILN_ITEMS * stride) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      user::load_inputs(in, (r + k * stride) * leading + column, p[k]);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
#pragma unroll
      for (unsigned e = 0; e < KILN_PACK; ++e)
        value[e] = op(value[e],
                      static_cast<folded>(user::map_at(
                          in, p[k], e, (r + k * stride) * leading + column)));
  }
#pragma unroll 1
  for (; r < end; r += stride) {
    user::load_inputs(in, r * leading + column, p[0]);
#pragma unroll
    for (unsigned e = 0; e < KILN_PACK; ++e)
      value[e] = op(value[e], static_cast<folded>(user::map_at(
                                  in, p[0], e, r * leading + column)));
  }
}

/* What parts begin to end - 1 have published for a column, in order. */
static __device__ __forceinline__ folded take(const unsigned long long *words,
                                              count column, count columns,
                                              unsigned begin, unsigned end,
                                              unsigned epoch, user::op op,
                                              folded neutral)
{
  folded total = neutral;

#pragma unroll 1
  for (unsigned first = begin; first < end; first += at_once) {
    folded value[at_once];
    unsigned missing = 0;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k) {
      value[k] = neutral;
      missing |= (first + k < end ? 1u : 0u) << k;
    }
    while (missing != 0)
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k) {
        folded seen;

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
                   unsigned long long *words, unsigned epoch, KILN_OUT *out)
{
  __shared__ folded room[KILN_BLOCK * KILN_PACK];
  const user::op op = user::make_op(in);
  const folded neutral = user::identity(in);
  const unsigned parts = gridDim.y, part = blockIdx.y;
  const unsigned row = threadIdx.x / KILN_LANES;
  const count left = static_cast<count>(blockIdx.x) * width;
  const count column = left + threadIdx.x % KILN_LANES * KILN_PACK;
  const count each = static_cast<count>((rows + parts - 1) / parts);
  const count n_rows = static_cast<count>(rows);
  const count from = each * part < n_rows ? each * part : n_rows;
  const count to = from + each < n_rows ? from + each : n_rows;
  folded value[KILN_PACK], one[1];

#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e)
    value[e] = neutral;
  if (column < columns) {
#if KILN_ORDERED
    const count mine = (to - from + threads_down - 1) / threads_down;
    const count begin = from + mine * row < to ? from + mine * row : to;

    fold_part(in, column, begin, 1, begin + mine < to ? begin + mine : to,
              static_cast<count>(leading), value);
#else
    fold_part(in, column, from + row, threads_down, to,
              static_cast<count>(leading), value);
#endif
  }
  fold_down<KILN_LANES>(value, room, op);
  if (parts == 1 || part + 1 < parts) {
    if (row == 0 && column < columns)
#pragma unroll
      for (unsigned e = 0; e < KILN_PACK; ++e)
        if (parts == 1)
          kiln::store(out + column + e, value[e]);
        else
          kiln::tile_publish(
              words,
              static_cast<unsigned long long>(part) * columns + column + e,
              value[e], kiln::mark_of(epoch, kiln::mark_partial));
    return;
  }

  /* The last part: what the others found, then its own. */
  {
    const unsigned taker = threadIdx.x / width;
    const unsigned c = threadIdx.x % width;
    const unsigned share = (parts - 1 + takers - 1) / takers;
    const unsigned begin = taker * share;
    const unsigned end = begin + share < parts - 1 ? begin + share : parts - 1;
    folded own = neutral;

    __syncthreads();
    if (threadIdx.x < width)
      own = room[c % KILN_PACK * KILN_BLOCK + c / KILN_PACK];
    one[0] = neutral;
    if (left + c < columns && begin < end)
      one[0] = take(words, left + c, static_cast<count>(columns), begin, end,
                    epoch, op, neutral);
    __syncthreads();
    fold_down<width>(one, room, op);
    if (threadIdx.x < width && left + c < columns)
      kiln::store(out + left + c, op(one[0], own));
  }
}
