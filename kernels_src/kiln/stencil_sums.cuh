/* stencil_sums.cuh -- the sums of stencil.cu and stencil_rows.cu: a lane's columns of one
 * row of outputs after the other. Both kernels read rows in ascending order, and keep the
 * sums of the 2 * KILN_RY + 1 output rows to which the next row contributes.
 *
 * Place k of `sum` belongs to the output row k - KILN_RY rows after the row that was added
 * last. So place 0 is complete. A step moves every sum by one place; the first multiply-add
 * that adds to a sum also moves it. */
#ifndef KILN_STENCIL_SUMS_CUH
#define KILN_STENCIL_SUMS_CUH

#include <kiln/border.cuh>
#include <kiln/weighted.cuh>

typedef KILN_ACC sum_type;

enum : unsigned {
  warps = KILN_BLOCK / 32,
  strip = 32 * KILN_VECTOR, /* columns per warp */
  planes = 2 * KILN_RZ + 1,
  sums = 2 * KILN_RY + 1, /* sums under way per column */
  across = 2 * KILN_RX + 1,
  /* columns that a lane reads on each side of its own */
  side = (KILN_RX + KILN_VECTOR - 1) / KILN_VECTOR * KILN_VECTOR,
  window = KILN_VECTOR + 2 * side,
  n_weights = KILN_SEPARABLE ? across + sums : across * sums * planes
};

static_assert(KILN_VECTOR * sizeof(KILN_T) <= 16 &&
                  KILN_VECTOR * sizeof(KILN_OUT) <= 16,
              "KILN_VECTOR: at most 16 bytes");
static_assert(KILN_CHUNK >= sizeof(KILN_T) && KILN_CHUNK <= 16,
              "KILN_CHUNK: an element to 16 bytes");

typedef long long distance;
#if KILN_LINE
typedef long long coordinate;
#else
typedef int coordinate; /* every axis has less than 2^31 elements */
#endif

/* The shape of the arrays. Mirrored by the host. */
struct shape {
  distance in_row, in_plane; /* from row to row, and from plane to plane */
  distance out_row, out_plane;
  distance strips; /* number of strips of a row */
  coordinate width, height, depth;
  coordinate run; /* output rows per warp */
};

struct weights_of {
  const user::args &s;
  const sum_type *table; /* in shared memory, without KILN_BAKED */

  __device__ __forceinline__ sum_type operator[](unsigned t) const
  {
    return KILN_BAKED ? user::weight(s, t, 0) : table[t];
  }
};

typedef sum_type column_values[KILN_VECTOR];

/* Adds the products of one row's weights, which start at `first`, to the sums of
 * the lane's columns. */
static __device__ __forceinline__ void add_row(const weights_of &w,
                                               unsigned first,
                                               const sum_type (&x)[window],
                                               column_values &to)
{
#pragma unroll
  for (unsigned i = 0; i < across; ++i) {
    const sum_type factor = w[first + i];

    if (KILN_BAKED && factor == sum_type(0))
      continue;
#pragma unroll
    for (unsigned v = 0; v < KILN_VECTOR; ++v)
      to[v] = kiln::multiply_add(factor, x[v + i + side - KILN_RX], to[v]);
  }
}

/* The columns of one row of each plane that a lane needs. */
typedef sum_type row_window[window];

/* Moves the sums by one place and adds the planes' rows to them. read(p, x) reads the
 * lane's columns of plane p. */
template <class R>
static __device__ __forceinline__ void add_dense(const weights_of &w, R read,
                                                 column_values (&sum)[sums])
{
#pragma unroll
  for (unsigned p = 0; p < planes; ++p) {
    row_window x;

    read(p, x);
#pragma unroll
    for (unsigned k = 0; k < sums; ++k) {
      if (p == 0)
#pragma unroll
        for (unsigned v = 0; v < KILN_VECTOR; ++v)
          sum[k][v] =
              k + 1 < sums ? sum[k + 1 < sums ? k + 1 : 0][v] : sum_type(0);
      add_row(w, (p * sums + (sums - 1 - k)) * across, x, sum[k]);
    }
  }
}

/* Reduces the row to one value per column and adds it to the sums, which move by
 * one place. In a loop, the multiply-adds have to stay in their order, from place 0
 * on (in_order). Otherwise the compiler needs a second set of registers, and a copy
 * per sum and row. */
template <bool in_order, class R>
static __device__ __forceinline__ void
add_separable(const weights_of &w, R read, column_values (&sum)[sums])
{
  row_window x;
  column_values value = {};

  read(0, x);
  add_row(w, 0, x, value);
#pragma unroll
  for (unsigned k = 0; k < sums; ++k) {
    const sum_type factor = w[across + sums - 1 - k];

#pragma unroll
    for (unsigned v = 0; v < KILN_VECTOR; ++v) {
      const sum_type before =
          k + 1 < sums ? sum[k + 1 < sums ? k + 1 : 0][v] : sum_type(0);

      sum[k][v] = KILN_BAKED && factor == sum_type(0) ? before
                  : in_order
                      ? kiln::multiply_add_in_order(factor, value[v], before)
                      : kiln::multiply_add(factor, value[v], before);
    }
  }
}

/* Adds a row of each plane by the rule of the weights. */
template <bool in_order, class R>
static __device__ __forceinline__ void add_step(const weights_of &w, R read,
                                                column_values (&sum)[sums])
{
#if KILN_SEPARABLE
  add_separable<in_order>(w, read, sum);
#else
  add_dense(w, read, sum);
#endif
}

/* Copies weights from device memory to the table of a block. */
static __device__ __forceinline__ void load_weights(const KILN_W *weights,
                                                    sum_type *table)
{
#if KILN_BAKED
  (void)weights;
  (void)table;
#else
  for (unsigned t = kiln::thread(); t < n_weights; t += KILN_BLOCK)
    table[t] = kiln::as_weight<sum_type>(kiln::load(weights + t));
  __syncthreads();
#endif
}

/* The rows of one warp: the strip that starts at column x0, output rows y to y +
 * rows - 1 of plane z. */
struct task {
  coordinate x0, y, z;
  coordinate rows; /* 0 if there is no work for the warp */
};

static __device__ __forceinline__ task task_of(const shape &s)
{
  const unsigned id = blockIdx.x * warps + kiln::warp();
  task t = {};
#if KILN_LINE
  t.x0 = static_cast<coordinate>(blockIdx.x * static_cast<coordinate>(warps) +
                                 kiln::warp()) *
         strip;
  t.rows = t.x0 < s.width;
  (void)id;
#else
  const unsigned strips = static_cast<unsigned>(s.strips);
  const unsigned runs = static_cast<unsigned>((s.height - 1) / s.run + 1);
  const unsigned above = id / strips;
  coordinate rest;

  if (above / runs >= static_cast<unsigned>(s.depth))
    return t;
  t.z = static_cast<coordinate>(above / runs);
  t.x0 = static_cast<coordinate>(id % strips * strip);
  t.y = static_cast<coordinate>(above % runs) * s.run;
  rest = s.height - t.y;
  t.rows = rest < s.run ? rest : s.run;
#endif
  return t;
}

/* Writes the lane's columns with one store. The intrinsic keeps the compiler from
 * merging this store with the single stores at the end of a row. */
static __device__ __forceinline__ void
write_vector(KILN_OUT *to, const kiln::compute_t<KILN_OUT> (&y)[KILN_VECTOR])
{
  typedef typename kiln::word<KILN_VECTOR * sizeof(KILN_OUT)>::type bits;
  KILN_OUT raw[KILN_VECTOR];
  bits w;

#pragma unroll
  for (unsigned v = 0; v < KILN_VECTOR; ++v)
    raw[v] = kiln::narrow<KILN_OUT>(y[v]);
  memcpy(&w, raw, sizeof w);
  __stwb(reinterpret_cast<bits *>(to), w);
}

/* Writes the lane's columns of an output row, from column x on. */
static __device__ __forceinline__ void write(const user::args &s, KILN_OUT *row,
                                             const KILN_T *centre, coordinate x,
                                             coordinate width,
                                             const column_values &sum)
{
  kiln::compute_t<KILN_OUT> y[KILN_VECTOR];

#pragma unroll
  for (unsigned v = 0; v < KILN_VECTOR; ++v) {
    const coordinate i = x + static_cast<coordinate>(v);
    const sum_type b = KILN_CENTRE && i < width
                           ? static_cast<sum_type>(kiln::load(centre + i))
                           : sum_type(0);

    y[v] = user::finish(s, sum[v], b);
  }
  if (KILN_ALIGNED && x + static_cast<coordinate>(KILN_VECTOR) <= width) {
    write_vector(row + x, y);
    return;
  }
#pragma unroll
  for (unsigned v = 0; v < KILN_VECTOR; ++v)
    if (x + static_cast<coordinate>(v) < width)
      kiln::store(row + x + v, y[v]);
}

#endif
