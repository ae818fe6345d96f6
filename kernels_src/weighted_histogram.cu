/* weighted_histogram.cu -- sum the weights of the samples of each bin.
 *
 * Problem: sums of floats depend on the order of their operands. Atomic additions would
 * give other bits in every run.
 * Idea: each block has KILN_COPIES copies of the sums in shared memory. Warp w adds to
 * copy w % KILN_COPIES, without atomics. Lanes of a warp whose samples have the same bin
 * first add their weights in pairs of neighbours, and the lowest of these lanes adds the
 * total to the copy. If there are fewer copies than warps, the warps of a copy take turns.
 * At the end, a block adds its copies and stores the sums. A second kernel adds the sums
 * of all blocks.
 * Invariant: every addition has a fixed place in a fixed order, which depends on n, the
 * grid and the specialisation only.
 * Cost: one read of the inputs, and two accesses to bins * blocks sums.
 * Source: Westphal, Voting and Shuffling to Optimize Atomic Operations, 2015.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_ITEMS   1              vectors in flight per thread
 *   KILN_VECTOR  4              samples per vector, a power of two
 *   KILN_COPIES  8              copies of the sums per block, a power of two, at most the
 *                               number of warps
 *   KILN_MODE    3              method that maps a sample to a bin, 0 to 4; see
 *                               histogram_bins.cuh
 *   KILN_PLAIN   0              1 if `lower` and `shift` are 0 in mode 0
 *   KILN_ALL     0              1 if every sample belongs to a bin of the slice
 *   KILN_WIDE    0              1 if sample - lower needs 64 bits
 *   KILN_SHARED  1              1 if the levels of mode 4 fit in shared memory
 *   KILN_KEEP    0              1 adds to the present contents of counts
 *   KILN_SMALL   0              1 if n is below 2^31
 *   KILN_COUNT   type float     type of a sum
 * Generated code (user.cuh): the samples. weight_at(s, p, e, i) returns the weight of
 * element e of vector p.
 * Launch: the block size of both kernels is KILN_BLOCK. For weighted_histogram, grid.x is
 *         the number of blocks that share the samples, and grid.y is the number of slices
 *         of the bins. Dynamic shared memory contains KILN_COPIES sums per bin of a slice,
 *         rounded up to a multiple of 16 bytes, and then the levels. If grid.x is above 1,
 *         weighted_histogram_sums follows with one block per 32 bins.
 *         n        number of samples
 *         to       the bounds of the bins
 *         levels   with mode 4, the bins + 1 bounds of the bins in increasing order
 *         counts   one sum per bin
 *         partial  space for grid.x * bins sums; not used if grid.x is 1
 *         workers  grid.x of weighted_histogram
 * Result: the result has the same bits in every run. */
#include <kiln/params/weighted_histogram.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/histogram_bins.cuh>

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;
typedef KILN_COUNT sum_type;

enum : unsigned {
  warps = KILN_BLOCK / 32,
  turns = warps / KILN_COPIES /* warps that share a copy */
};

static_assert(warps % KILN_COPIES == 0, "KILN_COPIES divides the warps");
static_assert(KILN_ITEMS * KILN_VECTOR <= 8 ||
                  KILN_ITEMS * KILN_VECTOR % 8 == 0,
              "KILN_ITEMS * KILN_VECTOR: at most 8, or a multiple of 8");

#if !KILN_GENERATED
namespace user
{
template <unsigned n>
static __device__ __forceinline__ sum_type weight_at(const args &,
                                                     const vector<n> &p,
                                                     unsigned e, index)
{
  return static_cast<sum_type>(p.x0[e]);
}
} // namespace user
#endif

extern __shared__ uint4 storage[];

/* What a thread knows about the bins of its block. */
struct slice {
  volatile sum_type *sums; /* the calling warp's copy */
  unsigned first, width;   /* first bin of the slice, and number of its bins */
  const user::stored *levels;
};

/* The bins and weights of one sample per row of a thread. */
template <unsigned rows> struct samples {
  unsigned bin[rows];
  sum_type weight[rows];
};

/* Adds the weights of the lanes that have the same bin. The lowest of these lanes gets
 * the sum, and all others get the bin `nowhere`. In each step, the remaining lanes of a
 * bin add the weight of the next one, and every second one leaves. */
static __device__ __forceinline__ void join_equal(unsigned &bin,
                                                  sum_type &weight)
{
  const unsigned lane = kiln::lane();
  const unsigned same = kiln::warp_match(bin);
  unsigned position = static_cast<unsigned>(
      __popc(static_cast<int>(same & ((1u << lane) - 1u))));
  const bool lowest = position == 0;
  unsigned above = bin == nowhere ? 0 : same & (0xfffffffeu << lane);

  while (kiln::warp_any(above != 0)) {
    const unsigned next =
        above == 0 ? lane
                   : static_cast<unsigned>(__ffs(static_cast<int>(above))) - 1u;
    const sum_type other = kiln::shuffle(weight, next);

    if (above != 0)
      weight += other;
    above &= kiln::warp_ballot(position % 2 == 0);
    position /= 2;
  }
  if (!lowest)
    bin = nowhere;
}

/* Adds the samples of the block's threads to the copies. All threads call it. */
template <unsigned rows>
static __device__ __forceinline__ void settle(const slice &t, samples<rows> &s)
{
#pragma unroll
  for (unsigned k = 0; k < rows; ++k)
    join_equal(s.bin[k], s.weight[k]);
#pragma unroll 1
  for (unsigned turn = 0; turn < turns; ++turn) {
    if (kiln::warp() / KILN_COPIES == turn) {
#pragma unroll
      for (unsigned k = 0; k < rows; ++k) {
        if (s.bin[k] != nowhere)
          t.sums[s.bin[k]] = t.sums[s.bin[k]] + s.weight[k];
        kiln::warp_sync();
      }
    }
    if (turns > 1)
      __syncthreads();
  }
}

/* Finds bin and weight of element e of a vector that starts at element i. */
template <unsigned n>
static __device__ __forceinline__ void
find(const slice &t, const user::args &in, const user::vector<n> &p, unsigned e,
     unsigned long long i, const bounds &to, unsigned &bin, sum_type &weight)
{
  const unsigned at =
      finder<KILN_MODE>::bin(user::map_at(in, p, e, i), to, t.levels) - t.first;

  bin = KILN_ALL || at < t.width ? at : nowhere;
  weight = user::weight_at(in, p, e, i);
}

/* Adds one tile, which begins at vector `begin`. All threads call it. All loads are
 * issued first. Then at most 8 samples per thread are added at a time, so that their
 * bins and weights take few registers. */
static __device__ __forceinline__ void add_tile(const slice &t,
                                                const user::args &in,
                                                count begin, count vectors,
                                                const bounds &to)
{
  typedef unsigned long long index;
  enum : unsigned { all = KILN_ITEMS * KILN_VECTOR, rows = all < 8 ? all : 8 };
  const count i = begin + threadIdx.x;
  user::vector<KILN_VECTOR> p[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (i + k * KILN_BLOCK < vectors)
      user::load_inputs(
          in, static_cast<index>(i + k * KILN_BLOCK) * KILN_VECTOR, p[k]);
#pragma unroll
  for (unsigned done = 0; done < all; done += rows) {
    samples<rows> s;

#pragma unroll
    for (unsigned row = 0; row < rows; ++row) {
      const unsigned k = (done + row) / KILN_VECTOR;
      const unsigned e = (done + row) % KILN_VECTOR;

      s.bin[row] = nowhere;
      s.weight[row] = 0;
      if (i + k * KILN_BLOCK < vectors)
        find(t, in, p[k], e,
             static_cast<index>(i + k * KILN_BLOCK) * KILN_VECTOR, to,
             s.bin[row], s.weight[row]);
    }
    settle(t, s);
  }
}

/* Adds the last elements, which fill no vector. All threads of block 0 call it. */
static __device__ __forceinline__ void add_rest(const slice &t,
                                                const user::args &in,
                                                unsigned long long n,
                                                unsigned rest, const bounds &to)
{
  const unsigned long long i = n - rest + threadIdx.x;
  samples<1> s = {{nowhere}, {0}};
  user::vector<1> p;

  if (threadIdx.x < rest) {
    user::load_inputs(in, i, p);
    find(t, in, p, 0, i, to, s.bin[0], s.weight[0]);
  }
  settle(t, s);
}

static __device__ __forceinline__ unsigned vectors_of_sums(unsigned width)
{
  return (width * KILN_COPIES * static_cast<unsigned>(sizeof(sum_type)) + 15) /
         16;
}

/* Clears the copies, and copies the levels to shared memory if they fit there.
 * Returns the address of the levels. */
static __device__ __forceinline__ const user::stored *
prepare(const user::stored *levels, unsigned width, unsigned bins)
{
  const unsigned wide = vectors_of_sums(width);

  for (unsigned k = threadIdx.x; k < wide; k += KILN_BLOCK)
    storage[k] = make_uint4(0, 0, 0, 0);
#if KILN_MODE == 4 && KILN_SHARED
  user::stored *const near = reinterpret_cast<user::stored *>(storage + wide);

  for (unsigned k = threadIdx.x; k <= bins; k += KILN_BLOCK)
    near[k] = levels[k];
  levels = near;
#else
  (void)bins;
#endif
  __syncthreads();
  return levels;
}

static __device__ __forceinline__ void put(KILN_COUNT *to, sum_type sum)
{
#if KILN_KEEP
  *to += sum;
#else
  *to = sum;
#endif
}

/* Adds the copies of each bin, and stores the sums of the block. */
static __device__ __forceinline__ void
deliver(const slice &t, unsigned bins, KILN_COUNT *counts, sum_type *partial)
{
  const sum_type *sums = reinterpret_cast<const sum_type *>(storage);
  const unsigned long long row =
      static_cast<unsigned long long>(blockIdx.x) * bins + t.first;

  for (unsigned bin = threadIdx.x; bin < t.width; bin += KILN_BLOCK) {
    sum_type sum = sums[bin];

#pragma unroll
    for (unsigned k = 1; k < KILN_COPIES; ++k)
      sum += sums[k * t.width + bin];
    if (gridDim.x == 1)
      put(counts + t.first + bin, sum);
    else
      partial[row + bin] = sum;
  }
}

/* With a minimum of one block per SM, the compiler spills no registers for the sake of
 * more resident blocks. */
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 1)
    weighted_histogram(const user::args in, unsigned long long n,
                       const bounds to, const user::stored *levels,
                       KILN_COUNT *counts, KILN_COUNT *partial)
{
  constexpr count tile = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const count vectors = static_cast<count>(n / KILN_VECTOR);
  const unsigned rest = static_cast<unsigned>(n % KILN_VECTOR);
  const unsigned first = blockIdx.y * to.slice;
  const unsigned width =
      to.bins - first < to.slice ? to.bins - first : to.slice;
  sum_type *const sums = reinterpret_cast<sum_type *>(storage);
  slice t = {sums + kiln::warp() % KILN_COPIES * width, first, width, levels};

  t.levels = prepare(levels, width, to.bins);
#pragma unroll 1
  for (count begin = blockIdx.x * tile; begin < vectors;
       begin += gridDim.x * tile)
    add_tile(t, in, begin, vectors, to);
  if (blockIdx.x == 0 && rest != 0)
    add_rest(t, in, n, rest, to);
  __syncthreads();
  deliver(t, to.bins, counts, partial);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    weighted_histogram_sums(KILN_COUNT *counts, const KILN_COUNT *partial,
                            unsigned bins, unsigned workers)
{
  __shared__ sum_type row[KILN_BLOCK];
  const unsigned bin = blockIdx.x * 32 + kiln::lane();
  sum_type sum = 0;

  if (bin < bins) {
#pragma unroll 4
    for (unsigned w = kiln::warp(); w < workers; w += warps)
      sum += partial[static_cast<unsigned long long>(w) * bins + bin];
  }
  row[threadIdx.x] = sum;
  __syncthreads();
  if (kiln::warp() != 0 || bin >= bins)
    return;
  for (unsigned w = 1; w < warps; ++w)
    sum += row[w * 32 + kiln::lane()];
  put(counts + bin, sum);
}

#include <kiln/user_texts.cuh>
