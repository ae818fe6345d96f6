/* histogram.cu -- count the samples of each bin.
 *
 * Problem: atomic additions to the same bin serialise, and many inputs have a few bins
 * with most of the samples.
 * Idea: each block counts in shared memory, with KILN_COPIES counters per bin. The lane
 * number modulo KILN_COPIES selects the counter. With 32 copies, the lanes of a warp
 * always access different banks. At the end, the block sums the copies.
 * There are two methods to add the counts of all blocks. In the first method, each block
 * adds its counts by atomics in global memory. In the second method, each block
 * publishes its counts in tile descriptors (look_back.cuh), and further blocks of the
 * same launch sum them. The second method needs no cleared counts and suits small
 * numbers of bins and blocks.
 * Cost: one read of the samples, and bins * blocks counts.
 *
 * Parameters:
 *   KILN_BLOCK   (KILN_ARCH < 80 ? 256 : 1024)  threads per block; compute capability
 *                               5.3 has half as many registers
 *   KILN_ITEMS   4              vectors in flight per thread
 *   KILN_VECTOR  4              samples per vector, a power of two
 *   KILN_COPIES  32             counters per bin, a power of two, at most 32
 *   KILN_RUNS    0              1 if a thread combines consecutive samples of the same
 *                               bin before it counts them, which is faster with few
 *                               copies
 *   KILN_MODE    3              method that maps a sample to a bin, 0 to 4; see
 *                               mode_shift to mode_levels
 *   KILN_PLAIN   0              1 if `lower` and `shift` are 0 in mode 0
 *   KILN_ALL     0              1 if every sample belongs to a bin
 *   KILN_WIDE    0              1 if sample - lower needs 64 bits
 *   KILN_SHARED  1              1 if the levels of mode 4 fit in shared memory
 *   KILN_ADDERS  0              1 if blocks publish their counts and adding blocks sum
 *                               them; 0 if atomics add to cleared counts
 *   KILN_KEEP    0              1 adds to the present contents of counts
 *   KILN_SMALL   0              1 if n is below 2^31
 *   KILN_COUNT   type unsigned  type of a count, unsigned or unsigned long long
 * Generated code (user.cuh): the samples.
 * Launch: the block size is KILN_BLOCK. grid.x is `workers`, the number of blocks that
 *         count. With KILN_ADDERS and more than one worker, any number of adding blocks
 *         follows the workers. grid.y is the number of slices of the bins, which is 1
 *         with KILN_ADDERS. A block counts at most 2^32 - 1 samples. Dynamic shared
 *         memory contains 4 bytes per counter of a slice, rounded up to a multiple of 16
 *         bytes, and then the levels. It has at least 4 bytes per thread.
 *         n        number of samples
 *         to       the bounds of the bins
 *         levels   with mode 4, the bins + 1 bounds of the bins in increasing order
 *         counts   one count per bin
 *         words    with KILN_ADDERS, workers * bins tile descriptors */
#include <kiln/params/histogram.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/histogram_bins.cuh>
#include <kiln/look_back.cuh>

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

/* ---- Counting in shared memory ------------------------------------------- */

extern __shared__ uint4 storage[];

/* The state of one thread that counts samples. */
struct tally {
  /* Shared-memory address of the calling lane's copy of the first counter. */
  unsigned mine;
  unsigned first, width; /* first bin of the slice, and number of its bins */
  const user::stored *levels;
  /* `run` consecutive samples of bin `bin` have not been counted yet. */
  unsigned bin, run;

  /* Adds `times` to the counter of bin `at`, unless this bin is outside of the
   * slice. The inline PTX uses a predicate for this test, where the compiler
   * would generate a branch per sample. */
  __device__ __forceinline__ void count_them(unsigned at, unsigned times)
  {
    const unsigned to = mine + at * (4 * KILN_COPIES);

#if KILN_ALL
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(to), "r"(times)
                 : "memory");
#else
    asm volatile("{\n\t.reg .pred inside;\n\t"
                 "setp.lt.u32 inside, %0, %1;\n\t"
                 "@inside red.shared.add.u32 [%2], %3;\n\t}" ::"r"(at),
                 "r"(width), "r"(to), "r"(times)
                 : "memory");
#endif
  }

  __device__ __forceinline__ void add(user::value sample, const bounds &to)
  {
    const unsigned at =
        finder<KILN_MODE>::bin(sample, to, levels) - (KILN_ALL ? 0 : first);

#if KILN_RUNS
    if (at != bin) {
      if (run != 0)
        count_them(bin, run);
      run = 0;
    }
    bin = at;
    ++run;
#else
    count_them(at, 1);
#endif
  }

  __device__ __forceinline__ void end()
  {
#if KILN_RUNS
    if (run != 0)
      count_them(bin, run);
#endif
  }
};

static __device__ __forceinline__ void
add_vector(tally &t, const user::args &in, const user::vector<KILN_VECTOR> &p,
           unsigned long long i, const bounds &to)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    t.add(user::map_at(in, p, e, i), to);
}

/* Counts the samples of the calling thread's vectors. All blocks together
 * advance through the array. In each round, all loads are issued before the
 * first sample is counted. */
static __device__ __forceinline__ void
count_share(tally &t, const user::args &in, count vectors, unsigned workers,
            const bounds &to)
{
  typedef unsigned long long index;
  const count stride = static_cast<count>(workers) * KILN_BLOCK;
  count i = static_cast<count>(blockIdx.x) * KILN_BLOCK + threadIdx.x;
  user::vector<KILN_VECTOR> p[KILN_ITEMS];

#pragma unroll 1
  for (; i + (KILN_ITEMS - 1) * stride < vectors; i += KILN_ITEMS * stride) {
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      user::load_inputs(in, static_cast<index>(i + k * stride) * KILN_VECTOR,
                        p[k]);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      add_vector(t, in, p[k], static_cast<index>(i + k * stride) * KILN_VECTOR,
                 to);
  }
#pragma unroll
  for (unsigned k = 0; k + 1 < KILN_ITEMS; ++k)
    if (i + k * stride < vectors)
      user::load_inputs(in, static_cast<index>(i + k * stride) * KILN_VECTOR,
                        p[k]);
#pragma unroll
  for (unsigned k = 0; k + 1 < KILN_ITEMS; ++k)
    if (i + k * stride < vectors)
      add_vector(t, in, p[k], static_cast<index>(i + k * stride) * KILN_VECTOR,
                 to);
}

static __device__ __forceinline__ KILN_MAY_BE_UNUSED user::stored *
storage_for_levels(unsigned width)
{
  return reinterpret_cast<user::stored *>(storage +
                                          (width * KILN_COPIES + 3) / 4);
}

/* Clears the counters, copies the levels to shared memory if they fit there, and
 * returns the address of the levels. */
static __device__ __forceinline__ const user::stored *
prepare(const user::stored *levels, unsigned width, unsigned bins)
{
  const unsigned wide = (width * KILN_COPIES + 3) / 4;

  for (unsigned k = threadIdx.x; k < wide; k += KILN_BLOCK)
    storage[k] = make_uint4(0, 0, 0, 0);
#if KILN_MODE == 4 && KILN_SHARED
  for (unsigned k = threadIdx.x; k <= bins; k += KILN_BLOCK)
    storage_for_levels(width)[k] = levels[k];
  levels = storage_for_levels(width);
#endif
  __syncthreads();
  return levels;
}

/* Returns the sum of the copies of a bin's counter. Consecutive threads start at
 * different copies to avoid bank conflicts. */
static __device__ __forceinline__ unsigned sum_of_copies(unsigned bin)
{
  const unsigned *counters = reinterpret_cast<const unsigned *>(storage);
  unsigned sum = 0;

#pragma unroll
  for (unsigned k = 0; k < KILN_COPIES; ++k)
    sum += counters[bin * KILN_COPIES + (threadIdx.x + k) % KILN_COPIES];
  return sum;
}

/* ---- Combining the counts of all blocks ---------------------------------- */

static __device__ __forceinline__ void put(KILN_COUNT *to, KILN_COUNT sum)
{
#if KILN_KEEP
  *to += sum;
#else
  *to = sum;
#endif
}

/* Returns the sum of the counts of `bin` over those workers that the calling warp
 * handles. Each lane passes its own bin. The warps of the block share the
 * workers. */
static __device__ __forceinline__ KILN_COUNT
gather_row(const unsigned long long *words, unsigned bin, unsigned bins,
           unsigned workers, unsigned tag)
{
  enum : unsigned { warps = KILN_BLOCK / 32, at_once = 4 };
  KILN_COUNT sum = 0;

#pragma unroll 1
  for (unsigned w = kiln::warp(); w < workers; w += at_once * warps) {
    unsigned long long seen[at_once];
    bool all_here;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      seen[k] = bin < bins && w + k * warps < workers
                    ? 0
                    : static_cast<unsigned long long>(tag) << 32;
    do { /* all lanes leave the loop in the same iteration */
      all_here = true;
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (static_cast<unsigned>(seen[k] >> 32) != tag)
          seen[k] = kiln::word_load(
              words + static_cast<unsigned long long>(w + k * warps) * bins +
              bin);
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        all_here = all_here && static_cast<unsigned>(seen[k] >> 32) == tag;
    } while (!kiln::warp_all(all_here));
#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      sum += static_cast<unsigned>(seen[k]);
  }
  return sum;
}

/* Sums the counts of all workers. Each adding block handles rows of 32 bins, and
 * waits only for workers, which have a lower block index. */
static __device__ __forceinline__ KILN_MAY_BE_UNUSED void
add_up(KILN_COUNT *counts, const unsigned long long *words, unsigned bins,
       unsigned workers, unsigned tag)
{
  __shared__ KILN_COUNT row[KILN_BLOCK];
  const unsigned adders = gridDim.x - workers;

  for (unsigned first = (blockIdx.x - workers) * 32; first < bins;
       first += adders * 32) {
    const unsigned bin = first + kiln::lane();
    KILN_COUNT sum = gather_row(words, bin, bins, workers, tag);

    row[threadIdx.x] = sum;
    __syncthreads();
    if (kiln::warp() == 0 && bin < bins) {
      for (unsigned w = 1; w < KILN_BLOCK / 32; ++w)
        sum += row[w * 32 + kiln::lane()];
      put(counts + bin, sum);
    }
    __syncthreads();
  }
}

static __device__ __forceinline__ void deliver(KILN_COUNT *counts,
                                               unsigned long long *words,
                                               const tally &t, unsigned bins,
                                               unsigned tag)
{
  for (unsigned bin = threadIdx.x; bin < t.width; bin += KILN_BLOCK) {
    const unsigned sum = sum_of_copies(bin);

#if KILN_ADDERS
    if (gridDim.x == 1)
      put(counts + bin, sum);
    else
      kiln::word_store(
          words + static_cast<unsigned long long>(blockIdx.x) * bins + bin,
          static_cast<unsigned long long>(tag) << 32 | sum);
#else
    if (sum != 0)
      atomicAdd(counts + t.first + bin, static_cast<KILN_COUNT>(sum));
#endif
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    histogram(const user::args in, unsigned long long n, const bounds to,
              const user::stored *levels, KILN_COUNT *counts,
              unsigned long long *words, unsigned epoch, unsigned workers)
{
  const unsigned tag = kiln::descriptor_tag(epoch, kiln::status_partial);
  const count vectors = static_cast<count>(n / KILN_VECTOR);
  const unsigned rest = static_cast<unsigned>(n % KILN_VECTOR);
  const unsigned first = blockIdx.y * to.slice;
  const unsigned width =
      to.bins - first < to.slice ? to.bins - first : to.slice;
  tally t = {static_cast<unsigned>(__cvta_generic_to_shared(storage)) +
                 threadIdx.x % KILN_COPIES * 4,
             first,
             width,
             levels,
             nowhere,
             0};

#if KILN_ADDERS
  if (blockIdx.x >= workers) {
    add_up(counts, words, to.bins, workers, tag);
    return;
  }
#endif
  t.levels = prepare(levels, width, to.bins);
  count_share(t, in, vectors, workers, to);
  if (blockIdx.x == 0 && threadIdx.x < rest)
    t.add(user::load(in, n - rest + threadIdx.x), to);
  t.end();
  __syncthreads();
  deliver(counts, words, t, to.bins, tag);
}

#include <kiln/user_texts.cuh>
