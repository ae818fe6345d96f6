/* stencil_at.cu -- any function of the neighbourhood of each element of a line, an image or
 * a volume.
 *
 * Each thread computes the elements of KILN_ITEMS rows and reads every neighbour through
 * the L1 cache, which the threads of a block share. A block is 32 columns wide (all its
 * threads in a line), so that a warp reads whole sectors. A block that is further from
 * the border than the radius reads without comparisons (neighbourhood.cuh).
 * The kernel serves the user's expressions, and weighted sums over too many elements for
 * stencil.cu. Such a sum is a chain of fused multiply-adds: rows, then planes, then
 * columns, all ascending, as in stencil.cu.
 * Cost: one read per output and neighbour from the L1 cache, one per element from memory.
 *
 * Parameters:
 *   KILN_BLOCK     256         threads per block
 *   KILN_ITEMS     4           rows per thread, in a line columns per thread
 *   KILN_RX        1           radius in the direction of the columns
 *   KILN_RY        1           radius in the direction of the rows
 *   KILN_RZ        0           radius in the direction of the planes
 *   KILN_LINE      0           1 if the array has one dimension
 *   KILN_WEIGHTED  0           1 for a sum with `weights`, 0 for user::stencil()
 *   KILN_BORDER    0           rule beyond the ends (border.cuh)
 *   KILN_T         type float  type of an element of in
 *   KILN_OUT       type float  type of an element of out
 *   KILN_ACC       type float  type of the sum
 *   KILN_W         type float  type of an element of weights
 * Generated code (user.cuh): stencil(s, at, x, column, row, plane) computes an output.
 * finish(s, a, b) computes the output from the sum a and the element b.
 * Launch: the block size is KILN_BLOCK. The grid has one block per tile of 32 columns and
 *         KILN_BLOCK / 32 * KILN_ITEMS rows, in a line of KILN_BLOCK * KILN_ITEMS columns.
 *         s        sizes and distances, in elements
 *         in, out  arrays that do not overlap
 *         weights  NULL without KILN_WEIGHTED
 *         outside  value of elements outside with border rule 3
 * Result: out[x, y, z] is computed from the neighbours of in[x, y, z]. */
#include <kiln/params/stencil_at.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/neighbourhood.cuh>
#include <kiln/user.cuh>
#include <kiln/weighted.cuh>

#if !KILN_GENERATED && !KILN_WEIGHTED
namespace user
{
static __device__ __forceinline__ kiln::compute_t<KILN_OUT>
stencil(const args &, const kiln::neighbourhood &at, kiln::compute_t<KILN_T> x,
        index, index, index)
{
  return at(-1) + at(1) + at(0, -1) + at(0, 1) - 4 * x;
}
} // namespace user
#endif

enum : unsigned {
  tile_width = KILN_LINE ? KILN_BLOCK * KILN_ITEMS : 32,
  tile_height = KILN_LINE ? 1 : KILN_BLOCK / 32 * KILN_ITEMS
};

/* The shape of the arrays. Mirrored by the host. */
struct extent {
  long long in_row, in_plane;
  long long out_row, out_plane;
  long long strips; /* number of tiles side by side */
  long long width, height, depth;
  long long stacks; /* number of tiles one above the other */
};

#if KILN_WEIGHTED
static __device__ __forceinline__ kiln::compute_t<KILN_OUT>
value_at(const user::args &args, const kiln::neighbourhood &at,
         const KILN_W *weights)
{
  constexpr int rx = KILN_RX, ry = KILN_RY, rz = KILN_RZ;
  KILN_ACC sum = 0;

#pragma unroll 1
  for (int j = -ry; j <= ry; ++j)
#pragma unroll 1
    for (int k = -rz; k <= rz; ++k) {
      const KILN_W *w =
          weights + ((k + rz) * (2 * ry + 1) + (j + ry)) * (2 * rx + 1);

#pragma unroll
      for (int i = -rx; i <= rx; ++i)
        sum = kiln::multiply_add(
            kiln::as_weight<KILN_ACC>(kiln::load(w + (i + rx))),
            static_cast<KILN_ACC>(at(i, j, k)), sum);
    }
  return user::finish(args, sum, static_cast<KILN_ACC>(at(0)));
}
#else
static __device__ __forceinline__ kiln::compute_t<KILN_OUT>
value_at(const user::args &args, const kiln::neighbourhood &at, const KILN_W *)
{
  return user::stencil(args, at, kiln::load(at.centre), at.x, at.y, at.z);
}
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    stencil_at(const user::args args, const extent s, const KILN_T *in,
               KILN_OUT *out, const KILN_W *weights, double outside)
{
  const kiln::grid g = {
      in,
      s.in_row,
      s.in_plane,
      s.width,
      s.height,
      s.depth,
      kiln::narrow<KILN_T>(static_cast<kiln::compute_t<KILN_T>>(outside))};
  const unsigned strips = static_cast<unsigned>(s.strips);
  const unsigned stacks = static_cast<unsigned>(s.stacks);
  const unsigned above = blockIdx.x / strips;
  const long long x0 = static_cast<long long>(blockIdx.x % strips) * tile_width;
  const long long y0 = static_cast<long long>(above % stacks) * tile_height;
  const long long z = above / stacks;
  const bool inside = x0 >= KILN_RX && x0 + tile_width + KILN_RX <= s.width &&
                      y0 >= KILN_RY && y0 + tile_height + KILN_RY <= s.height &&
                      z >= KILN_RZ && z + KILN_RZ < s.depth;

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned t = kiln::thread() + k * KILN_BLOCK;
    const long long x = x0 + (KILN_LINE ? t : t % 32);
    const long long y = y0 + (KILN_LINE ? 0 : t / 32);

    if (x < s.width && y < s.height) {
      const kiln::neighbourhood at = {
          g, x, y, z, in + (z * s.in_plane + y * s.in_row + x), inside};

      kiln::store(out + (z * s.out_plane + y * s.out_row + x),
                  value_at(args, at, weights));
    }
  }
}

#include <kiln/user_texts.cuh>
