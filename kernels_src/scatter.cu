/* scatter.cu -- scatter elements to an array: out[index[i]] = X[i].
 *
 * Every thread issues all its loads before its first store. Indices and values are
 * loaded with an evict-first cache policy, so that the caches hold elements of out.
 * If out is larger than the cache, the kernel can scatter window by window. The rows of
 * the grid start one after the other, and row y stores only elements of window y
 * (multi-pass scatter: He et al., Efficient Gather and Scatter Operations on Graphics
 * Processors, 2007).
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    2              vectors in flight per thread
 *   KILN_VECTOR   4              elements per vector, a power of two, at most 16
 *   KILN_INDEX    type unsigned  type of an index: an unsigned type of 1 to 8 bytes
 *   KILN_OUT      type float     type of an element of out
 *   KILN_ALIGNED  1              bit 0 is set if index is aligned to 16 bytes
 *   KILN_SMALL    0              1 if n is below 2^31
 *   KILN_WINDOWS  0              1 if row y of the grid stores only to indices from
 *                                y * window to (y + 1) * window - 1; the last row
 *                                has no upper limit
 * Generated code (user.cuh): the input X and its map.
 * Launch: the block size is KILN_BLOCK. A tile has KILN_BLOCK * KILN_ITEMS vectors.
 *         grid.x is one block per `tiles_each` tiles, and at least one. grid.y is the
 *         number of windows, or 1.
 *         index      n elements
 *         out        the array that receives the elements
 *         window     number of elements of out per window
 *         skip       NULL, or a word. If the word is not 0, the launch does nothing.
 *                    With KILN_WINDOWS, row 0 then scatters all elements
 * Result: if several indices are equal, the element of out is one of their values. */
#include <kiln/params/scatter.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/window_range.cuh>

static __device__ __forceinline__ void one(const user::args &in, count i,
                                           const KILN_INDEX *index,
                                           KILN_OUT *out,
                                           const window_range &mine)
{
  const KILN_INDEX at = kiln::load(index + i);

  if (mine.has(at))
    kiln::store(out + at, user::load(in, i));
}

/* Returns whether the window contains at least one index of a vector. */
static __device__ __forceinline__ bool
any_of(const KILN_INDEX (&at)[KILN_VECTOR], const window_range &mine)
{
  bool any = false;

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    any = any || mine.has(at[e]);
  return any;
}

/* Scatters KILN_ITEMS vectors per thread. All loads of a thread are issued
 * before its first store. `vectors` is the number of vectors of the array, and
 * `whole` states that all vectors of the tile exist. */
template <bool whole>
static __device__ __forceinline__ void
tile(const user::args &in, count first, count vectors, const KILN_INDEX *index,
     KILN_OUT *out, const window_range &mine)
{
  KILN_INDEX at[KILN_ITEMS][KILN_VECTOR];
  user::value value[KILN_ITEMS][KILN_VECTOR];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (whole || first + k * KILN_BLOCK < vectors)
      kiln::load_vector<KILN_VECTOR, (KILN_ALIGNED & 1) != 0,
                        kiln::cached::once>(
          index + (first + k * KILN_BLOCK) * KILN_VECTOR, at[k]);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if ((whole || first + k * KILN_BLOCK < vectors) && any_of(at[k], mine))
      user::load_vector<KILN_VECTOR, kiln::cached::once>(
          in, (first + k * KILN_BLOCK) * KILN_VECTOR, value[k]);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (whole || first + k * KILN_BLOCK < vectors)
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        if (mine.has(at[k][e]))
          kiln::store(out + at[k][e], value[k][e]);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    scatter(const user::args in, const KILN_INDEX *index, KILN_OUT *out,
            unsigned long long n, unsigned long long window,
            unsigned tiles_each, const unsigned *skip)
{
  constexpr count step = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const bool skipped = kiln::left_out(skip);
  const window_range mine =
      skipped ? whole_range() : window_range_of(window, blockIdx.y, gridDim.y);
  const count vectors = static_cast<count>(n) / KILN_VECTOR;
  const unsigned rest = static_cast<unsigned>(n % KILN_VECTOR);
  count begin = blockIdx.x * (step * tiles_each);

  if (skipped && (!KILN_WINDOWS || blockIdx.y != 0))
    return;
#pragma unroll 1
  for (unsigned k = 0; k < tiles_each && begin < vectors; ++k, begin += step)
    if (begin + step <= vectors)
      tile<true>(in, begin + threadIdx.x, vectors, index, out, mine);
    else
      tile<false>(in, begin + threadIdx.x, vectors, index, out, mine);
  if (blockIdx.x == 0 && threadIdx.x < rest)
    one(in, static_cast<count>(n) - rest + threadIdx.x, index, out, mine);
}

#include <kiln/user_texts.cuh>
