/* stencil.cu -- weighted sums over the neighbourhood of each element of an image or a
 * volume, in one pass, for larger radii; stencil_rows.cu is for small ones.
 *
 * Problem: with radius r, each element contributes to 2r + 1 outputs per axis. It should
 * be read from memory once and be converted to the type of the sum once.
 *
 * Idea: a warp owns a strip of 32 * KILN_VECTOR columns and moves down the rows. A ring
 * of rows in shared memory, filled ahead by asynchronous copies, holds the strip and its
 * halo. Each lane reads its columns of a row with their neighbours into registers and
 * adds the row's contribution to the 2 * KILN_RY + 1 sums under way per column. The sums
 * move by one place per row, and the multiply-add that adds to a sum also moves it: it
 * reads place k + 1 and writes place k. With separable weights, the row is first reduced
 * to one value per column, which then contributes to every sum. Baked weights are
 * immediate operands, and a weight of 0 costs nothing.
 * For a volume, a row step reads the rows of 2 * KILN_RZ + 1 planes.
 *
 * Invariant: after the source row j, place k holds the sum of the rows up to j for output
 * row j + k - KILN_RY. So place 0 is complete. Every sum is a chain of fused
 * multiply-adds in a fixed order: rows, then planes, then columns, all ascending. The
 * result does not depend on the launch.
 *
 * Cost: one read and one write per element, plus the halos: KILN_RX columns on each side
 * of a strip, and 2 * KILN_RY rows per run of rows, which the L2 cache mostly serves.
 * Multiply-adds per output: the number of weights, or their number per axis if they are
 * separable.
 *
 * Source: marching through the slowest axis with the partial sums in registers is 2.5-D
 * blocking (Nguyen et al., 3.5-D Blocking Optimization for Stencil Computations on Modern
 * CPUs and GPUs, 2010); the shifted sums are the transposed form of a digital filter.
 *
 * Parameters:
 *   KILN_BLOCK      128         threads per block
 *   KILN_VECTOR     4           columns per lane, at most 16 bytes of KILN_T and
 *                               of KILN_OUT
 *   KILN_STAGES     6           rows in the ring, at least 2
 *   KILN_CHUNK      16          bytes per copy; divides the addresses of all rows
 *   KILN_ALIGNED    1           1 if vectors of out are aligned to their size
 *   KILN_RX         1           radius in the direction of the columns
 *   KILN_RY         1           radius in the direction of the rows
 *   KILN_RZ         0           radius in the direction of the planes
 *   KILN_SEPARABLE  0           1 if the weights are products of a weight per axis
 *   KILN_BAKED      1           1 if user::weight() returns constants; 0 reads
 *                               `weights`
 *   KILN_CENTRE     0           1 if user::finish() uses the element itself
 *   KILN_BORDER     0           rule beyond the ends (border.cuh)
 *   KILN_BEYOND     0           1: the first of two passes writes the sum of a plane
 *                               outside of the array behind its output; 2: the second
 *                               pass uses that value for such planes
 *   KILN_T          type float  type of an element of in
 *   KILN_OUT        type float  type of an element of out
 *   KILN_ACC        type float  type of the sum
 *   KILN_W          type float  type of an element of weights
 * Generated code (user.cuh): weight(s, t, 0) returns weight t, with columns fastest, then
 * rows, then planes; separable weights are the KILN_RX weights followed by those of
 * KILN_RY. finish(s, a, b) computes the output from the sum a and the element b.
 * Launch: the block size is KILN_BLOCK. The grid has one warp per strip and run of rows.
 *         shape    sizes and distances, in elements
 *         in, out  arrays that do not overlap
 *         weights  NULL with KILN_BAKED
 *         outside  value of elements outside with border rule 3
 * Result: out[x, y, z] is finish(sum of weight(i, j, k) * in[x + i, y + j, z + k]). */
#include <kiln/params/stencil.cuh>

#define KILN_FLAT_BLOCK 1
#define KILN_LINE 0
#include <kiln/stage.cuh>
#include <kiln/stencil_sums.cuh>

enum : unsigned {
  grain = 16 / sizeof(KILN_T),
  /* columns of a row in shared memory on each side of the strip */
  margin = (KILN_RX + grain - 1) / grain * grain,
  row_size = strip + 2 * margin,
  chunk = KILN_CHUNK / sizeof(KILN_T) /* elements per copy */
};

static_assert(KILN_BEYOND != 1 || KILN_SEPARABLE,
              "KILN_BEYOND: only the first pass of a separable sum writes");

/* ---- Rows in shared memory ------------------------------------------------ */

struct source {
  const KILN_T *in;
  KILN_T outside;
};

/* Writes the chunk of a row that starts at column x, where some columns lie
 * outside of the array. `row` is NULL if the whole row does. */
static __device__ __noinline__ void copy_border(KILN_T *to, const KILN_T *row,
                                                coordinate x, coordinate width,
                                                KILN_T outside)
{
  for (unsigned e = 0; e < chunk; ++e) {
    const coordinate i =
        row == nullptr
            ? -1
            : kiln::border_index(x + static_cast<coordinate>(e), width);

    if (i < 0)
      to[e] = outside;
    else
      kiln::stage_bytes<sizeof(KILN_T)>(to + e, row + i);
  }
}

/* Starts the copy of a row, from column x0 - margin on. */
static __device__ __forceinline__ void copy_row(KILN_T *to, const KILN_T *row,
                                                coordinate x0, coordinate width,
                                                KILN_T outside)
{
  constexpr unsigned chunks = row_size / chunk;

#pragma unroll
  for (unsigned k = 0; k < chunks; k += 32) {
    const unsigned c = k + kiln::lane();
    const coordinate x = x0 + static_cast<coordinate>(c * chunk) -
                         static_cast<coordinate>(margin);

    if (k + 32 > chunks && c >= chunks)
      break;
    if (row != nullptr && x >= 0 && x + static_cast<coordinate>(chunk) <= width)
      kiln::stage_bytes<KILN_CHUNK>(to + c * chunk, row + x);
    else
      copy_border(to + c * chunk, row, x, width, outside);
  }
}

/* Starts the copies of row y of the planes around plane z, as one group. */
static __device__ __forceinline__ void copy_rows(KILN_T (&to)[planes][row_size],
                                                 const source &from,
                                                 const shape &s, coordinate x0,
                                                 coordinate y, coordinate z)
{
  const coordinate row = KILN_RY > 0 ? kiln::border_index(y, s.height) : y;

#pragma unroll
  for (unsigned p = 0; p < planes; ++p) {
    const coordinate plane =
        KILN_RZ > 0 ? kiln::border_index(
                          z + static_cast<coordinate>(p) - KILN_RZ, s.depth)
                    : z;
    const KILN_T *at = from.in + plane * s.in_plane + row * s.in_row;

    copy_row(to[p], row < 0 || plane < 0 ? nullptr : at, x0, s.width,
             from.outside);
  }
}

/* Reads the calling lane's columns and their neighbours. */
static __device__ __forceinline__ void read_window(const KILN_T *row,
                                                   row_window &x)
{
  typedef typename kiln::word<KILN_VECTOR * sizeof(KILN_T)>::type bits;
  const KILN_T *from = row + (margin - side) + kiln::lane() * KILN_VECTOR;

#pragma unroll
  for (unsigned k = 0; k < window; k += KILN_VECTOR) {
    const bits w = *reinterpret_cast<const bits *>(from + k);
    KILN_T raw[KILN_VECTOR];

    memcpy(raw, &w, sizeof raw);
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      x[k + e] = static_cast<sum_type>(kiln::widen(raw[e]));
  }
}

/* ---- The kernel ----------------------------------------------------------- */

#if KILN_BEYOND == 1
/* Writes the separable sum of a neighbourhood whose elements are all outside. */
static __device__ __forceinline__ void
write_beyond(const weights_of &w, KILN_T outside, KILN_OUT *to)
{
  const sum_type x = static_cast<sum_type>(kiln::widen(outside));
  sum_type row = 0, sum = 0;

#pragma unroll
  for (unsigned i = 0; i < across; ++i)
    if (!KILN_BAKED || w[i] != sum_type(0))
      row = kiln::multiply_add(w[i], x, row);
#pragma unroll
  for (unsigned k = 0; k < sums; ++k)
    if (!KILN_BAKED || w[across + k] != sum_type(0))
      sum = kiln::multiply_add(w[across + k], row, sum);
  kiln::store(to, sum);
}
#endif

/* Starts the copies of step j of a task, which reads row y + j - KILN_RY. */
static __device__ __forceinline__ void
start_step(KILN_T (&to)[planes][row_size], const source &from, const shape &s,
           const task &t, coordinate j)
{
  if (j < t.rows + 2 * KILN_RY)
    copy_rows(to, from, s, t.x0, t.y + j - KILN_RY, t.z);
  kiln::stage_commit();
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    stencil(const user::args args, const shape s, const KILN_T *in,
            KILN_OUT *out, const KILN_W *weights, double outside)
{
  __shared__ alignas(16) KILN_T ring[warps][KILN_STAGES][planes][row_size];
  __shared__ sum_type table[KILN_BAKED ? 1 : n_weights];
  const weights_of w = {args, table};
  const source from = {
      in, KILN_BEYOND == 2
              ? in[s.in_row * s.height]
              : kiln::narrow<KILN_T>(
                    static_cast<kiln::compute_t<KILN_T>>(outside))};
  const task t = task_of(s);
  const coordinate x =
      t.x0 + static_cast<coordinate>(kiln::lane() * KILN_VECTOR);
  const coordinate steps = t.rows > 0 ? t.rows + 2 * KILN_RY : 0;
  KILN_T(&rows)[KILN_STAGES][planes][row_size] = ring[kiln::warp()];
  column_values sum[sums] = {};
  unsigned slot = 0, ahead = KILN_STAGES - 1;

  load_weights(weights, table);
#if KILN_BEYOND == 1
  if (blockIdx.x == 0 && kiln::thread() == 0)
    write_beyond(w, from.outside, out + s.depth * s.out_plane);
#endif
  if (steps == 0)
    return;
#pragma unroll 1
  for (unsigned j = 0; j < KILN_STAGES - 1; ++j)
    start_step(rows[j], from, s, t, static_cast<coordinate>(j));
#pragma unroll 1
  for (coordinate j = 0; j < steps; ++j) {
    const coordinate y = t.y + j - 2 * KILN_RY;

    kiln::stage_wait_but<KILN_STAGES - 2>();
    kiln::warp_sync();
    /* All lanes have read the row of the step before, so its place in the ring
     * is free. */
    start_step(rows[ahead], from, s, t, j + KILN_STAGES - 1);
    add_step<true>(
        w, [&](unsigned p, row_window &v) { read_window(rows[slot][p], v); },
        sum);
    if (j >= 2 * KILN_RY)
      write(args, out + t.z * s.out_plane + y * s.out_row,
            in + t.z * s.in_plane + y * s.in_row, x, s.width, sum[0]);
    ahead = slot;
    slot = slot + 1 == KILN_STAGES ? 0 : slot + 1;
  }
}

#include <kiln/user_texts.cuh>
