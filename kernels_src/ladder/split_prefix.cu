/* split_prefix.cu -- step 3 of a split into buckets. The exclusive prefix scan of all
 * counts, row by row, replaces the counts by destinations (samples/README.md, row B12).
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a power of two
 *             and at most 1024.
 * Launch: one block of KILN_BLOCK threads.
 *         counts  m counts, which the kernel replaces by their exclusive scan */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_prefix(unsigned *counts, unsigned m)
{
  __shared__ unsigned sum[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  unsigned before = 0; /* sum of the counts of all previous iterations */

  for (unsigned first = 0; first < m; first += KILN_BLOCK) {
    const unsigned mine = first + t < m ? counts[first + t] : 0;

    sum[t] = mine;
    __syncthreads();
    for (unsigned step = 1; step < KILN_BLOCK; step *= 2) {
      const unsigned left = t >= step ? sum[t - step] : 0;

      __syncthreads();
      sum[t] += left;
      __syncthreads();
    }
    if (first + t < m)
      counts[first + t] = before + sum[t] - mine;
    before += sum[KILN_BLOCK - 1];
    /* The barrier is needed because the next iteration overwrites the sums. */
    __syncthreads();
  }
}
