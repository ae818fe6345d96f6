/* difference.cu -- combine each element with the preceding or the next element (adjacent
 * difference) in one launch that reads each element once.
 *
 * Idea: a lane gets the neighbour of its outermost element by a shuffle. At the edge of
 * a warp, the neighbour is loaded from global memory, where the adjacent warp has just
 * loaded it, so the caches hold it.
 * If the kernel works in place, another warp may already have overwritten that element.
 * Then the neighbour is exchanged in shared memory at the edge of a warp. Each block
 * publishes its edge element in a tile descriptor (look_back.cuh) before it writes
 * anything. The order of the tiles is such that a block waits only for a block that
 * starts earlier.
 *
 * Parameters:
 *   KILN_BLOCK     256         threads per block
 *   KILN_VECTOR    4           consecutive elements per vector, a power of two from 1
 *                              to 16
 *   KILN_VECTORS   4           vectors per thread
 *   KILN_T         type float  type of an element of out in memory
 *   KILN_ALIGNED   1           1 if out is aligned to 16 bytes
 *   KILN_RIGHT     0           0 if the neighbour of x[i] is x[i - 1]; 1 if it is
 *                              x[i + 1]
 *   KILN_IN_PLACE  0           1 if out is one of the inputs
 * Generated code (user.cuh): the input x, and difference(s, a, b) of an element a
 * and its neighbour b.
 * Launch: the block size is KILN_BLOCK. The grid has one block per tile of KILN_BLOCK *
 *         KILN_VECTOR * KILN_VECTORS elements. With KILN_RIGHT, block 0 handles the last
 *         tile.
 *         n       number of elements, at least 1
 *         out     n elements
 *         words   with KILN_IN_PLACE, one tile descriptor per tile (two words if
 *                 user::value has 8 bytes). No descriptor has the epoch of this launch.
 *         epoch   epoch of this launch
 * Result: out[i] is difference(x[i], neighbour), or x[i] if x[i] has no neighbour. */
#include <kiln/params/difference.cuh>

#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY (!KILN_IN_PLACE)
#include <kiln/look_back.cuh>
#include <kiln/user.cuh>

#if !KILN_GENERATED
namespace user
{
static __device__ __forceinline__ kiln::compute_t<KILN_T>
difference(const args &, value a, value b)
{
  return a - b;
}
} // namespace user
#endif

typedef unsigned long long count;
typedef user::value value;

enum : unsigned {
  warps = KILN_BLOCK / 32,
  row = 32 * KILN_VECTOR,         /* elements that a warp loads at a time */
  warp_tile = row * KILN_VECTORS, /* elements per warp */
  tile_size = warps * warp_tile
};

/* Loads the vectors of the calling thread. Elements from index n on are not
 * loaded, and their registers keep the value that they had. */
static __device__ __forceinline__ void
load_tile(const user::args &in, count first, count n,
          value (&x)[KILN_VECTORS][KILN_VECTOR])
{
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    const count i = first + r * row;

    if (i + KILN_VECTOR <= n) {
      user::load_vector<KILN_VECTOR>(in, i, x[r]);
    } else {
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        if (i + e < n)
          x[r][e] = user::load(in, i + e);
    }
  }
}

static __device__ __forceinline__ void
store_tile(KILN_T *out, count first, count n,
           const kiln::compute_t<KILN_T> (&y)[KILN_VECTOR])
{
  if (first + KILN_VECTOR <= n) {
    kiln::store_vector<KILN_VECTOR, KILN_ALIGNED != 0>(out + first, y);
    return;
  }
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    if (first + e < n)
      kiln::store(out + first + e, y[e]);
}

/* Vector and element of the calling thread that the next warp needs if the
 * thread is in lane `near_lane`. The outermost element of lane `far_lane` needs an
 * element of the preceding warp. */
enum : unsigned {
  near = KILN_RIGHT ? 0 : KILN_VECTOR - 1,
  near_row = KILN_RIGHT ? 0 : KILN_VECTORS - 1,
  near_lane = KILN_RIGHT ? 0 : 31,
  far_lane = 31 - near_lane
};

#if KILN_IN_PLACE
/* The edge element of each warp, which the next warp needs. It is the last
 * element of the warp, or with KILN_RIGHT the first element. */
struct edges {
  value at[warps];
};

/* Returns the element that lane far_lane needs, which another thread has
 * loaded. At the edge of the tile, waits until the block of the adjacent tile has
 * published the element. */
static __device__ __forceinline__ value
exchange(const value (&x)[KILN_VECTORS][KILN_VECTOR], count tile, count end,
         count n, unsigned long long *words, unsigned epoch)
{
  constexpr unsigned first_warp = KILN_RIGHT ? warps - 1 : 0;
  __shared__ edges edge;
  value beyond = {};

  if (kiln::lane() == near_lane) {
    edge.at[kiln::warp()] = x[near_row][near];
    if (kiln::warp() == warps - 1 - first_warp && (KILN_RIGHT || end < n))
      kiln::tile_publish(words, tile, x[near_row][near],
                         kiln::descriptor_tag(epoch, kiln::status_partial));
  }
  if (kiln::warp() == first_warp && kiln::lane() == far_lane &&
      (KILN_RIGHT ? end < n : tile > 0))
    while (kiln::tile_peek(words, KILN_RIGHT ? tile + 1 : tile - 1, epoch,
                           &beyond) == 0)
      kiln::tile_pause();
  __syncthreads();
  if (kiln::warp() != first_warp)
    beyond = edge.at[KILN_RIGHT ? kiln::warp() + 1 : kiln::warp() - 1];
  return beyond;
}
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    difference(const user::args in, unsigned long long n, KILN_T *out,
               unsigned long long *words, unsigned epoch)
{
  const count tiles = (n + (tile_size - 1)) / tile_size;
  const count tile = KILN_RIGHT ? tiles - 1 - blockIdx.x : blockIdx.x;
  const count begin = tile * tile_size + kiln::warp() * warp_tile;
  const count first = begin + kiln::lane() * KILN_VECTOR;
  value x[KILN_VECTORS][KILN_VECTOR] = {};
  /* In the lane at the far end of the warp, this is the neighbour of the lane's
   * outermost element. */
  value beyond = {};

  load_tile(in, first, n, x);
#if KILN_IN_PLACE
  beyond = exchange(x, tile, (tile + 1) * tile_size, n, words, epoch);
#else
  if (kiln::lane() == far_lane &&
      (KILN_RIGHT ? begin + warp_tile < n : begin > 0 && begin < n))
    beyond = user::load(in, KILN_RIGHT ? begin + warp_tile : begin - 1);
#endif
  /* The loop starts with the vector at the far end of the warp. In each
   * iteration, `beyond` becomes the neighbour that the next vector needs. */
#pragma unroll
  for (unsigned k = 0; k < KILN_VECTORS; ++k) {
    const unsigned r = KILN_RIGHT ? KILN_VECTORS - 1 - k : k;
    const count i = first + r * row;
    kiln::compute_t<KILN_T> y[KILN_VECTOR];
    value next = KILN_RIGHT ? kiln::shuffle_down(x[r][near], 1)
                            : kiln::shuffle_up(x[r][near], 1);

    if (kiln::lane() == far_lane)
      next = beyond;
    beyond = kiln::warp_broadcast(x[r][near], near_lane);
#pragma unroll
    for (unsigned m = 0; m < KILN_VECTOR; ++m) {
      const unsigned e = KILN_RIGHT ? KILN_VECTOR - 1 - m : m;
      const bool alone = KILN_RIGHT ? i + e + 1 == n : i + e == 0;

      y[e] = alone ? static_cast<kiln::compute_t<KILN_T>>(x[r][e])
                   : user::difference(in, x[r][e], next);
      next = x[r][e];
    }
    store_tile(out, i, n, y);
  }
}

#include <kiln/user_texts.cuh>
