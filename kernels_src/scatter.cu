/* scatter.cu -- scatter elements to an array: out[index[i]] = X[i].
 *
 * Every thread issues all its loads before its first store. Indices and values are
 * loaded with an evict-first cache policy, so that the caches hold elements of out.
 * If the indices of a warp are runs, one store writes a vector; see store_runs().
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
 *   KILN_ALIGNED  3              bit 0 is set if index is aligned to 16 bytes, bit 1
 *                                if out is
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
 *         early      number of blocks, less than the grid, that do not wait for the
 *                    launch that writes `skip` before they need it; 0 with KILN_WINDOWS
 *         skip       NULL, or a word. If the word is not 0, the launch does nothing.
 *                    With KILN_WINDOWS, row 0 then scatters all elements
 * Result: if several indices are equal, the element of out is one of their values. */
#include <kiln/params/scatter.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/overlap.cuh>
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

/* ---- Runs ---------------------------------------------------------------- */

/* Stores of a warp to an ascending or descending sequence of indices are fast
 * only if each store instruction fills whole sectors. Lanes hold vectors of
 * consecutive elements, so single stores would write every KILN_VECTOR-th
 * element. There are three cases:
 * - The indices of each vector are a run that fills an aligned vector of out.
 *   One access stores the vector.
 * - The indices of a vector are consecutive, but not so aligned. The warp
 *   exchanges its elements through shared memory, after which the lanes hold
 *   consecutive elements.
 * - Otherwise each lane stores its own elements. */

enum : unsigned {
  vector_bytes = KILN_VECTOR * sizeof(KILN_OUT),
  /* True if one access can store a vector. */
  has_runs = KILN_VECTOR > 1 && KILN_WINDOWS == 0 && (KILN_ALIGNED & 2) != 0 &&
             vector_bytes <= 16 && (vector_bytes & (vector_bytes - 1)) == 0
};

/* Returns whether the indices ascend (step 1) or descend (step -1) by one. */
template <int step>
static __device__ __forceinline__ bool
is_run(const KILN_INDEX (&at)[KILN_VECTOR])
{
  bool run = true;

#pragma unroll
  for (unsigned e = 1; e < KILN_VECTOR; ++e)
    run = run &&
          at[e] ==
              static_cast<KILN_INDEX>(
                  at[0] + static_cast<KILN_INDEX>(step * static_cast<int>(e)));
  return run;
}

/* Stores vectors whose indices are runs. Returns false, and stores nothing, if
 * the warp contains any other vector. `exists` is false for lanes without a
 * vector. */
static __device__ __forceinline__ bool
store_runs(bool exists, const KILN_INDEX (&at)[KILN_VECTOR],
           const user::value (&value)[KILN_VECTOR], KILN_OUT *out)
{
  const bool up = is_run<1>(at) && at[0] % KILN_VECTOR == 0;
  const bool down = is_run<-1>(at) && at[KILN_VECTOR - 1] % KILN_VECTOR == 0;
  user::value turned[KILN_VECTOR];

  if (!kiln::warp_all(!exists || up || down))
    return false;
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    turned[e] = up ? value[e] : value[KILN_VECTOR - 1 - e];
  if (exists)
    kiln::store_vector<KILN_VECTOR, true>(
        out + (up ? at[0] : at[KILN_VECTOR - 1]), turned);
  return true;
}

/* The elements of one vector per lane of the warps. */
struct exchange {
  alignas(16) KILN_INDEX at[KILN_BLOCK * KILN_VECTOR];
  alignas(16) user::value value[KILN_BLOCK * KILN_VECTOR];
};

/* Stores the elements of whole vectors such that consecutive lanes store
 * consecutive elements. */
static __device__ __forceinline__ void
store_exchanged(const KILN_INDEX (&at)[KILN_VECTOR],
                const user::value (&value)[KILN_VECTOR], KILN_OUT *out)
{
  __shared__ exchange all;
  const unsigned own = (threadIdx.x - kiln::lane()) * KILN_VECTOR;

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    all.at[own + kiln::lane() * KILN_VECTOR + e] = at[e];
    all.value[own + kiln::lane() * KILN_VECTOR + e] = value[e];
  }
  kiln::warp_sync();
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    const unsigned i = own + e * kiln::warp_size + kiln::lane();

    kiln::store(out + all.at[i], all.value[i]);
  }
  kiln::warp_sync();
}

static __device__ __forceinline__ void
store_each(const KILN_INDEX (&at)[KILN_VECTOR],
           const user::value (&value)[KILN_VECTOR], KILN_OUT *out,
           const window_range &mine)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    if (mine.has(at[e]))
      kiln::store(out + at[e], value[e]);
}

/* Stores vectors of which some are no runs. All lanes of a warp call this
 * function. */
template <bool whole>
static __device__ __forceinline__ void
store_others(bool exists, const KILN_INDEX (&at)[KILN_VECTOR],
             const user::value (&value)[KILN_VECTOR], KILN_OUT *out,
             const window_range &mine)
{
  if (has_runs && whole && kiln::warp_any(is_run<1>(at) || is_run<-1>(at)))
    store_exchanged(at, value, out);
  else if (exists)
    store_each(at, value, out, mine);
}

/* ---- Tiles --------------------------------------------------------------- */

/* Returns whether the launch has work, which the preceding launch decides. */
static __device__ __forceinline__ bool is_chosen(const unsigned *skip)
{
  kiln::launch_wait();
  kiln::launch_next();
  return !kiln::left_out(skip);
}

/* Scatters KILN_ITEMS vectors per thread. All loads of a thread are issued
 * before its first store. `vectors` is the number of vectors of the array, and
 * `whole` states that all vectors of the tile exist. Before the first store of
 * elements that are no runs, the function calls go(), and returns if the result
 * is false. */
template <bool whole, class Go>
static __device__ __forceinline__ void
tile(const user::args &in, count first, count vectors, const KILN_INDEX *index,
     KILN_OUT *out, const window_range &mine, Go go)
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
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const bool exists = whole || first + k * KILN_BLOCK < vectors;

    if (has_runs && store_runs(exists, at[k], value[k], out))
      continue;
    if (!go())
      return;
    store_others<whole>(exists, at[k], value[k], out, mine);
  }
}

/* Scatters the tiles of a block, as tile() does, and the elements behind the
 * last whole vector. */
template <class Go>
static __device__ __forceinline__ void
tiles(const user::args &in, count n, unsigned tiles_each,
      const KILN_INDEX *index, KILN_OUT *out, const window_range &mine, Go go)
{
  constexpr count step = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const count vectors = n / KILN_VECTOR;
  const unsigned rest = static_cast<unsigned>(n % KILN_VECTOR);
  count begin = blockIdx.x * (step * tiles_each);

#pragma unroll 1
  for (unsigned k = 0; k < tiles_each && begin < vectors; ++k, begin += step)
    if (begin + step <= vectors)
      tile<true>(in, begin + threadIdx.x, vectors, index, out, mine, go);
    else
      tile<false>(in, begin + threadIdx.x, vectors, index, out, mine, go);
  if (blockIdx.x == 0 && threadIdx.x < rest && go())
    one(in, n - rest + threadIdx.x, index, out, mine);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    scatter(const user::args in, const KILN_INDEX *index, KILN_OUT *out,
            unsigned long long n, unsigned long long window,
            unsigned tiles_each, unsigned early, const unsigned *skip)
{
  /* These blocks load elements, and store runs, before it is known whether the
   * launch has work. Runs are stored so quickly that this does no harm. */
  const bool waits = blockIdx.x < early;
  const bool chosen = waits || is_chosen(skip);

  if (!chosen && (!KILN_WINDOWS || blockIdx.y != 0))
    return;
  tiles(in, static_cast<count>(n), tiles_each, index, out,
        chosen ? window_range_of(window, blockIdx.y, gridDim.y) : whole_range(),
        [=] { return !waits || is_chosen(skip); });
}

#include <kiln/user_texts.cuh>
