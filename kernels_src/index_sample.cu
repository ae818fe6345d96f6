/* index_sample.cu -- decide whether the indices of a gather or scatter are local or
 * skewed, so that one direct pass over the indices is the fastest method.
 *
 * Problem: the fastest method depends on the order of the indices. If an index is close
 * to its neighbours, the cache serves most accesses of a direct pass. Random indices
 * need a method with more streaming traffic. The host cannot wait for the indices.
 * Idea: a stretch is a range of consecutive indices that the GPU handles at about the
 * same time. A region is a range of the target of about a sixteenth of the cache. The
 * kernel samples indices of several stretches and counts the distinct regions to which
 * the samples of a stretch refer. It also counts the samples whose sector of the target
 * another sample has used: if these are many, few sectors get most accesses, and stay
 * in the cache. The launches of both methods follow, and each of them reads a word that
 * this kernel writes. The launches of the method that was not chosen return at once.
 * Invariant: exactly one of the two words is 0. The words depend on the indices alone.
 * Cost: 256 loads per stretch by one block, which are in flight together.
 *
 * Parameters:
 *   KILN_BLOCK  512            threads per block, one warp per stretch, at least 64
 *   KILN_INDEX  type unsigned  type of an index, unsigned or unsigned long long
 * Launch: the block size is KILN_BLOCK. The grid has one block.
 *         index    n elements
 *         stretch  number of indices per stretch, a power of two, at least 256 and at
 *                  most n
 *         shift    log2 of the number of elements of the target per region
 *         limit    the indices are local if the stretches have at most this number of
 *                  distinct regions, summed over all stretches
 *         skewed   the indices are skewed if at least this number of samples is in a
 *                  sector of another sample
 *         skip     receives three words: skip[0] is 0 if one direct pass is to run, and
 *                  skip[1] is 0 if the other method is; skip[2] is 0 (overlap.cuh) */
#include <kiln/params/index_sample.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/overlap.cuh>
#include <kiln/types.cuh>

typedef unsigned long long count;

enum : unsigned {
  stretches = KILN_BLOCK / 32,
  loads = 8, /* samples per lane */
  samples = loads * 32,
  /* Number of regions that a stretch distinguishes. Regions of larger targets
   * share a bit. */
  regions = 1024,
  /* log2 of the elements per sector, and of the sectors that are distinguished.
   * Of random indices, about 3 % share a bit by chance. */
  sector_bits = 3,
  sectors_log2 = 16
};

static_assert(KILN_BLOCK % 32 == 0 && stretches >= 2,
              "KILN_BLOCK: at least two warps");

/* Returns a pseudo-random number below `part`, a power of two. It keeps samples
 * of strided indices from falling into few regions. */
static __device__ __forceinline__ count jitter(unsigned sample, count part)
{
  unsigned v = (kiln::warp() * samples + sample) * 2654435761u;

  v = (v ^ v >> 15) * 2246822519u;
  return (v ^ v >> 13) & (part - 1);
}

/* Marks the sector of an index, and returns 1 if it was marked before. */
static __device__ __forceinline__ unsigned repeats_sector(count at,
                                                          unsigned *used)
{
  const unsigned sector =
      static_cast<unsigned>(at >> sector_bits) * 2654435761u >>
      (32 - sectors_log2);
  const unsigned bit = 1u << sector % 32;

  return (atomicOr(&used[sector / 32], bit) & bit) != 0;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    index_sample(const KILN_INDEX *index, count n, count stretch,
                 unsigned shift, unsigned limit, unsigned skewed,
                 unsigned *skip)
{
  __shared__ unsigned seen[stretches][regions / 32];
  __shared__ unsigned used[(1 << sectors_log2) / 32];
  const count part = stretch / samples;
  const KILN_INDEX *from =
      index + (n - stretch) / (stretches - 1) * kiln::warp();
  KILN_INDEX at[loads];
  unsigned fresh = 0, repeats = 0;

  kiln::launch_next();
#pragma unroll
  for (unsigned k = 0; k < loads; ++k) {
    const unsigned sample = k * 32 + kiln::lane();

    at[k] = kiln::load(from + (sample * part + jitter(sample, part)));
  }
  seen[kiln::warp()][kiln::lane()] = 0;
  for (unsigned i = threadIdx.x; i < (1 << sectors_log2) / 32; i += KILN_BLOCK)
    used[i] = 0;
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < loads; ++k) {
    const unsigned region = static_cast<unsigned>(at[k] >> shift) % regions;
    const unsigned bit = 1u << region % 32;

    if ((atomicOr(&seen[kiln::warp()][region / 32], bit) & bit) == 0)
      ++fresh;
    repeats += repeats_sector(at[k], used);
  }
  /* Both counts fit into 16 bits. */
  fresh = kiln::block_reduce(fresh | repeats << 16, kiln::sum());
  if (threadIdx.x == 0) {
    const bool direct = (fresh & 0xffff) <= limit || fresh >> 16 >= skewed;

    skip[0] = direct ? 0 : 1;
    skip[1] = direct ? 1 : 0;
    skip[2] = 0;
  }
}
