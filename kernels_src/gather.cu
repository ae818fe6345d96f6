/* gather.cu -- gather elements of an array: out[i] = X[index[i]].
 *
 * Every thread issues all its loads before its first store. Indices and results are
 * accessed with an evict-first cache policy, so that the caches hold elements of X.
 * If X is larger than the cache, several launches can gather from X, one launch per
 * window of X. Then the cache holds the current window (multi-pass gather: He et al.,
 * Efficient Gather and Scatter Operations on Graphics Processors, 2007). The first
 * launch writes whole vectors, with 0 for the elements of other windows. A later launch
 * reads a vector, inserts the elements of its window and writes the vector back. So a
 * thread makes one access of 16 bytes instead of four accesses of 4 bytes.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    2              vectors in flight per thread
 *   KILN_VECTOR   4              elements per vector, a power of two, at most 16
 *   KILN_INDEX    type unsigned  type of an index: an unsigned type of 1 to 8 bytes
 *   KILN_OUT      type float     type of an element of out
 *   KILN_ALIGNED  3              bit 0 is set if index is aligned to 16 bytes, bit 1
 *                                if out is aligned to 16 bytes
 *   KILN_SMALL    0              1 if n is below 2^31
 *   KILN_WINDOWS  0              1 if this launch handles the indices of one window,
 *                                from turn * window to (turn + 1) * window - 1;
 *                                the last window has no upper limit
 * Generated code (user.cuh): the input X and its map.
 * Launch: the block size is KILN_BLOCK. A tile has KILN_BLOCK * KILN_ITEMS vectors. The
 *         grid has one block per `tiles_each` tiles, and at least one block.
 *         index   n elements
 *         out     n elements
 *         window  number of elements of X per window
 *         turn    index of this launch's window; `turns` is the number of windows
 *         other   another gather of the same type. If its word is not 0, the launch
 *                 gathers by its index to its out instead, in one window. An index of
 *                 NULL, here or above, means that the launch does nothing.
 * Result: out is complete after the last of the `turns` launches. */
#include <kiln/params/gather.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/warp_store.cuh>
#include <kiln/window_range.cuh>

struct arrays {
  const KILN_INDEX *index;
  KILN_OUT *out;
  /* True in the first launch, in which `out` is still uninitialised. */
  bool first;
};

/* A vector of elements of out in registers. */
struct vector {
  KILN_OUT at[KILN_VECTOR];
};

#if KILN_WINDOWS
static __device__ __forceinline__ bool
touched(const KILN_INDEX (&at)[KILN_VECTOR], const arrays &a,
        const window_range &mine)
{
  bool any = a.first;

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    any = any || mine.has(at[e]);
  return any;
}

/* Loads a vector of out if this launch inserts elements into the vector. The
 * load must not use the read-only data path, since the same launch writes out. */
static __device__ __forceinline__ vector
get(const KILN_OUT *from, const KILN_INDEX (&at)[KILN_VECTOR], const arrays &a,
    const window_range &mine)
{
  vector p = {};

  if (!a.first && touched(at, a, mine))
    kiln::load_raw<KILN_VECTOR, (KILN_ALIGNED & 2) != 0, kiln::cached::once>(
        from, p.at);
  return p;
}

template <bool whole>
static __device__ __forceinline__ void
put(KILN_OUT *to, vector p, const user::value (&value)[KILN_VECTOR],
    const KILN_INDEX (&at)[KILN_VECTOR], const arrays &a,
    const window_range &mine)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    if (mine.has(at[e]))
      p.at[e] = kiln::narrow<KILN_OUT>(value[e]);
  if (touched(at, a, mine))
    kiln::store_raw<KILN_VECTOR, (KILN_ALIGNED & 2) != 0, kiln::cached::once>(
        to, p.at);
}
#else
static __device__ __forceinline__ vector get(const KILN_OUT *,
                                             const KILN_INDEX (&)[KILN_VECTOR],
                                             const arrays &,
                                             const window_range &)
{
  return {};
}

template <bool whole>
static __device__ __forceinline__ void
put(KILN_OUT *to, const vector &, const user::value (&value)[KILN_VECTOR],
    const KILN_INDEX (&)[KILN_VECTOR], const arrays &, const window_range &)
{
  constexpr bool aligned = (KILN_ALIGNED & 2) != 0;

  kiln::vector_writer<
      whole && aligned && kiln::stores_by_warp<KILN_VECTOR, KILN_OUT>(),
      KILN_BLOCK / 32, KILN_VECTOR, aligned, kiln::cached::once>::write(to,
                                                                        value);
}
#endif

static __device__ __forceinline__ void
one(const user::args &in, count i, const arrays &a, const window_range &mine)
{
  const KILN_INDEX at = kiln::load(a.index + i);

  if (mine.has(at))
    kiln::store(a.out + i, user::load_as<kiln::cached::usual>(in, at));
}

/* Gathers KILN_ITEMS vectors per thread. All loads of a thread are issued before
 * its first store. `vectors` is the number of vectors of the array, and `whole`
 * states that all vectors of the tile exist. */
template <bool whole>
static __device__ __forceinline__ void tile(const user::args &in, count first,
                                            count vectors, const arrays &a,
                                            const window_range &mine)
{
  KILN_INDEX at[KILN_ITEMS][KILN_VECTOR];
  user::value value[KILN_ITEMS][KILN_VECTOR];
  vector p[KILN_ITEMS];
  KILN_OUT *const out = a.out + first * KILN_VECTOR;

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (whole || first + k * KILN_BLOCK < vectors)
      kiln::load_vector<KILN_VECTOR, (KILN_ALIGNED & 1) != 0,
                        kiln::cached::once>(
          a.index + (first + k * KILN_BLOCK) * KILN_VECTOR, at[k]);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (whole || first + k * KILN_BLOCK < vectors) {
      p[k] = get(out + k * KILN_BLOCK * KILN_VECTOR, at[k], a, mine);
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        if (mine.has(at[k][e]))
          value[k][e] = user::load_as<kiln::cached::usual>(in, at[k][e]);
    }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (whole || first + k * KILN_BLOCK < vectors)
      put<whole>(out + k * KILN_BLOCK * KILN_VECTOR, p[k], value[k], at[k], a,
                 mine);
}

/* Another gather of the launch: the launch gathers by `index` to `out` instead
 * if `chosen` is not NULL and its word is not 0. */
struct alternative {
  const unsigned *chosen;
  const KILN_INDEX *index;
  KILN_OUT *out;
};

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    gather(const user::args in, const KILN_INDEX *index, KILN_OUT *out,
           unsigned long long n, unsigned long long window, unsigned turn,
           unsigned turns, unsigned tiles_each, const alternative other)
{
  constexpr count step = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const bool changed = kiln::left_out(other.chosen);
  const arrays a = {changed ? other.index : index, changed ? other.out : out,
                    turn == 0};
  const window_range mine =
      changed ? whole_range() : window_range_of(window, turn, turns);
  const count vectors = static_cast<count>(n) / KILN_VECTOR;
  const unsigned rest = static_cast<unsigned>(n % KILN_VECTOR);
  count begin = blockIdx.x * (step * tiles_each);

  if (a.index == nullptr)
    return;
#pragma unroll 1
  for (unsigned k = 0; k < tiles_each && begin < vectors; ++k, begin += step)
    if (begin + step <= vectors)
      tile<true>(in, begin + threadIdx.x, vectors, a, mine);
    else
      tile<false>(in, begin + threadIdx.x, vectors, a, mine);
  if (blockIdx.x == 0 && threadIdx.x < rest)
    one(in, static_cast<count>(n) - rest + threadIdx.x, a, mine);
}

#include <kiln/user_texts.cuh>
