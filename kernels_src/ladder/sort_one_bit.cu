/* sort_one_bit.cu -- radix sort by one bit per pass (samples/README.md, row B14;
 * Blelloch, Prefix Sums and Their Applications, 1990). Each pass is a stable split: the
 * keys in which the bit is 0 precede the keys in which the bit is 1. The destinations
 * follow from these formulas, where i is the index of a key, b its bit and e = 1 - b:
 *   f            = exclusive scan of e: destination of a key with b = 0
 *   total_falses = sum of e
 *   t            = i - f + total_falses: destination of a key with b = 1
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a multiple of
 *             32 and at most 1024.
 * Launch: the block size is KILN_BLOCK. There are three launches per bit:
 *         split_count    one thread per key; sets counts[block] to the number of keys of
 *                        the block with b = 0
 *         split_scan     one block; replaces the counts by their exclusive scan, and sets
 *                        counts[blocks] to the sum
 *         split_scatter  one thread per key; copies the keys of `from` to their
 *                        destinations in `to`
 *         A further kernel, split_show, stores the intermediate values. One block of at
 *         least n threads writes rows of n words with b, e, f, t and d = b ? t : f, and
 *         then total_falses.
 * Result: the keys are sorted after the passes of bits 0 to 31. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

#define KILN_FLAT_BLOCK 1
#include <kiln/prelude.cuh>

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_count(const unsigned *from, unsigned n, unsigned bit,
                unsigned *counts)
{
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;
  const bool e = i < n && (from[i] >> bit & 1) == 0;
  const unsigned falses = kiln::block_count(e);

  if (threadIdx.x == 0)
    counts[blockIdx.x] = falses;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_scan(unsigned *counts, unsigned blocks)
{
  unsigned before = 0;

  for (unsigned first = 0; first < blocks; first += KILN_BLOCK) {
    const unsigned i = first + threadIdx.x;
    const unsigned mine = i < blocks ? counts[i] : 0;
    const unsigned up_to = kiln::block_scan_inclusive(mine, kiln::sum());

    if (i < blocks)
      counts[i] = before + up_to - mine;
    before += kiln::block_broadcast(up_to, KILN_BLOCK - 1);
  }
  if (threadIdx.x == 0)
    counts[blocks] = before;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_scatter(const unsigned *from, unsigned *to, unsigned n, unsigned bit,
                  const unsigned *counts)
{
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;
  const unsigned key = i < n ? from[i] : 0;
  const unsigned b = key >> bit & 1;
  const unsigned e = i < n ? 1 - b : 0;
  const unsigned f =
      counts[blockIdx.x] + kiln::block_scan_exclusive(e, kiln::sum(), 0u);
  const unsigned total_falses = counts[gridDim.x];

  if (i < n)
    to[b != 0 ? i - f + total_falses : f] = key;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_show(const unsigned *keys, unsigned n, unsigned bit, unsigned *rows)
{
  const unsigned i = threadIdx.x;
  const unsigned b = i < n ? keys[i] >> bit & 1 : 1;
  const unsigned e = 1 - b;
  const unsigned f = kiln::block_scan_exclusive(e, kiln::sum(), 0u);
  const unsigned total_falses = kiln::block_count(e != 0);
  const unsigned t = i - f + total_falses;

  if (i < n) {
    rows[i] = b;
    rows[n + i] = e;
    rows[2 * n + i] = f;
    rows[3 * n + i] = t;
    rows[4 * n + i] = b != 0 ? t : f;
  }
  if (i == 0)
    rows[5 * n] = total_falses;
}
