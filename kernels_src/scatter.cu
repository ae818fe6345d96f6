/* scatter.cu -- out[index[i]] = X[i]: write where an array says.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    2              packs that a thread has in flight
 *   KILN_VECTOR   4              elements of a pack, a power of two, at most 16
 *   KILN_INDEX    type unsigned  type of an index: unsigned or unsigned long
 *                                long
 *   KILN_OUT      type float     element of out
 *   KILN_ALIGNED  1              bit 0: index lies on 16 bytes
 *   KILN_SMALL    0              1: n is below 2^31
 *   KILN_WINDOWS  0              1: blocks of row y of the grid do what falls
 *                                into [y * window, (y + 1) * window), the last
 *                                row all that is above; rows start one after
 *                                the other, so the window of the moment stays
 *                                in the cache
 * Generated code (user.cuh): X: the input and its map
 * Launch:      block KILN_BLOCK; a block for each KILN_BLOCK * KILN_ITEMS packs,
 *              one at least; rows as said, else one.
 *              index      n elements
 *              out        the target
 *              window     elements of the target
 * Result:      where indices are equal, one of their values.
 *
 * Indices and values pass through the caches as what goes first: what they hold
 * is the target. */
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

/* A window leaves out packs of which it stores nothing. */
static __device__ __forceinline__ bool
any_of(const KILN_INDEX (&at)[KILN_VECTOR], const window_range &mine)
{
  bool any = false;

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    any = any || mine.has(at[e]);
  return any;
}

/* All loads of a thread are under way before its first store. Packs at `packs`
 * and above are not there. */
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
            unsigned long long n, unsigned long long window)
{
  const window_range mine = window_range_of(window, blockIdx.y, gridDim.y);
  const count vectors = static_cast<count>(n) / KILN_VECTOR;
  const unsigned rest = static_cast<unsigned>(n % KILN_VECTOR);
  const count begin =
      blockIdx.x * (static_cast<count>(KILN_BLOCK) * KILN_ITEMS);

  if (begin + KILN_BLOCK * KILN_ITEMS <= vectors)
    tile<true>(in, begin + threadIdx.x, vectors, index, out, mine);
  else
    tile<false>(in, begin + threadIdx.x, vectors, index, out, mine);
  if (blockIdx.x == 0 && threadIdx.x < rest)
    one(in, static_cast<count>(n) - rest + threadIdx.x, index, out, mine);
}

#include <kiln/user_texts.cuh>
