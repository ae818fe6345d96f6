/* stencil_rows.cu -- weighted sums over the neighbourhood of each element of a line, an
 * image or a volume, in one pass, for small radii and for all lines.
 *
 * Idea: a warp computes KILN_ROWS rows of a strip of 32 * KILN_VECTOR columns. Each lane
 * reads its columns and their neighbours straight to registers, with loads of up to 16
 * bytes. Neighbours overlap, so most of these bytes come from the L1 cache. The loop over
 * the rows is unrolled, so all rows are under way at a time, and short-lived warps that
 * start in the order of the memory keep its pages open. On an H200, prototypes that made
 * these loads took 506 us for a line of 2^28 f32 with radius 1 (a copy 511 us), and with
 * shuffles for the neighbours 134 us for 8192 x 8192 f32 (a copy 132 us, stencil.cu 163
 * us). Larger radii repeat too many rows and columns; stencil.cu keeps them in shared
 * memory.
 * A warp at the border uses a loop over the rows instead, and computes the index of each
 * element. The sums are those of stencil.cu, in the same order.
 *
 * Parameters:
 *   KILN_BLOCK      128         threads per block
 *   KILN_VECTOR     4           columns per lane, at most 16 bytes of KILN_T and
 *                               of KILN_OUT
 *   KILN_ROWS       4           output rows per warp; 1 in a line
 *   KILN_CHUNK      16          bytes per load, at most; divides the addresses of
 *                               all rows
 *   KILN_ALIGNED    1           1 if vectors of out are aligned to their size
 *   KILN_RX         1           radius in the direction of the columns
 *   KILN_RY         1           radius in the direction of the rows
 *   KILN_RZ         0           radius in the direction of the planes
 *   KILN_LINE       0           1 if the array has one dimension
 *   KILN_SEPARABLE  0           1 if the weights are products of a weight per axis
 *   KILN_BAKED      1           1 if user::weight() returns constants; 0 reads
 *                               `weights`
 *   KILN_CENTRE     0           1 if user::finish() uses the element itself
 *   KILN_BORDER     0           rule beyond the ends (border.cuh)
 *   KILN_T          type float  type of an element of in
 *   KILN_OUT        type float  type of an element of out
 *   KILN_ACC        type float  type of the sum
 *   KILN_W          type float  type of an element of weights
 * Generated code (user.cuh): weight() and finish() as in stencil.cu.
 * Launch: as in stencil.cu, with a run of KILN_ROWS rows; in a line one warp per strip.
 * Result: that of stencil.cu, to the bit. */
#include <kiln/params/stencil_rows.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/stencil_sums.cuh>

static_assert(!KILN_LINE || (KILN_RY == 0 && KILN_RZ == 0 && KILN_ROWS == 1),
              "KILN_LINE: one row, no planes");

/* Reads the lane's columns and their neighbours, all inside of the row. `from` is
 * the first of them. */
static __device__ __forceinline__ void read_inside(const KILN_T *from,
                                                   row_window &x)
{
  constexpr unsigned bytes =
      kiln::least(KILN_CHUNK, KILN_VECTOR * sizeof(KILN_T));
  constexpr unsigned n = bytes / sizeof(KILN_T);

#pragma unroll
  for (unsigned k = 0; k < window; k += n) {
    KILN_T raw[n];

    kiln::load_raw<n, true>(from + k, raw);
#pragma unroll
    for (unsigned e = 0; e < n; ++e)
      x[k + e] = static_cast<sum_type>(kiln::widen(raw[e]));
  }
}

/* Reads the lane's columns and their neighbours around column c. `row` is NULL if
 * the row is outside of the array. Elements that no output needs are 0. */
static __device__ __forceinline__ void
read_border(const KILN_T *row, coordinate c, coordinate width, KILN_T outside,
            row_window &x)
{
#pragma unroll
  for (unsigned e = 0; e < window; ++e) {
    const coordinate i = kiln::border_index(
        c + static_cast<coordinate>(e) - static_cast<coordinate>(side), width);

    x[e] = sum_type(0);
    if (e + KILN_RX >= side && e + side < window + KILN_RX)
      x[e] = static_cast<sum_type>(
          row == nullptr || i < 0 ? kiln::widen(outside) : kiln::load(row + i));
  }
}

/* The arrays, and the place of a lane in them. */
struct place {
  const shape &s;
  const KILN_T *in;
  KILN_OUT *out;
  KILN_T outside;
  coordinate x;
};

static __device__ __forceinline__ void write_row(const user::args &args,
                                                 const place &at, coordinate y,
                                                 coordinate z,
                                                 const column_values &sum)
{
  write(args, at.out + z * at.s.out_plane + y * at.s.out_row,
        at.in + z * at.s.in_plane + y * at.s.in_row, at.x, at.s.width, sum);
}

/* Computes the rows of a warp whose neighbourhoods are inside of the array. */
static __device__ __forceinline__ void inside_rows(const user::args &args,
                                                   const weights_of &w,
                                                   const place &at,
                                                   const task &t)
{
  const KILN_T *from = at.in + (t.z - KILN_RZ) * at.s.in_plane +
                       (t.y - KILN_RY) * at.s.in_row +
                       (at.x - static_cast<coordinate>(side));
  column_values sum[sums] = {};

#pragma unroll
  for (int j = 0; j < KILN_ROWS + 2 * KILN_RY; ++j) {
    add_step<false>(
        w,
        [&](unsigned p, row_window &x) {
          read_inside(from + j * at.s.in_row + p * at.s.in_plane, x);
        },
        sum);
    if (j >= 2 * KILN_RY)
      write_row(args, at, t.y + j - 2 * KILN_RY, t.z, sum[0]);
  }
}

static __device__ __forceinline__ void border_rows(const user::args &args,
                                                   const weights_of &w,
                                                   const place &at,
                                                   const task &t)
{
  column_values sum[sums] = {};

#pragma unroll 1
  for (coordinate j = 0; j < t.rows + 2 * KILN_RY; ++j) {
    const coordinate row = kiln::border_index(t.y + j - KILN_RY, at.s.height);

    add_step<true>(
        w,
        [&](unsigned p, row_window &x) {
          const coordinate plane = kiln::border_index(
              t.z + static_cast<coordinate>(p) - KILN_RZ, at.s.depth);

          read_border(row < 0 || plane < 0
                          ? nullptr
                          : at.in + plane * at.s.in_plane + row * at.s.in_row,
                      at.x, at.s.width, at.outside, x);
        },
        sum);
    if (j >= 2 * KILN_RY)
      write_row(args, at, t.y + j - 2 * KILN_RY, t.z, sum[0]);
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    stencil_rows(const user::args args, const shape s, const KILN_T *in,
                 KILN_OUT *out, const KILN_W *weights, double outside)
{
  __shared__ sum_type table[KILN_BAKED ? 1 : n_weights];
  const weights_of w = {args, table};
  const task t = task_of(s);
  const place at = {
      s, in, out,
      kiln::narrow<KILN_T>(static_cast<kiln::compute_t<KILN_T>>(outside)),
      t.x0 + static_cast<coordinate>(kiln::lane() * KILN_VECTOR)};
  const bool inside = t.x0 >= static_cast<coordinate>(side) &&
                      t.x0 + static_cast<coordinate>(strip + side) <= s.width &&
                      t.y >= KILN_RY && t.y + KILN_ROWS + KILN_RY <= s.height &&
                      t.z >= KILN_RZ && t.z + KILN_RZ < s.depth;

  load_weights(weights, table);
  if (t.rows == 0)
    return;
  if (inside)
    inside_rows(args, w, at, t);
  else
    border_rows(args, w, at, t);
}

#include <kiln/user_texts.cuh>
