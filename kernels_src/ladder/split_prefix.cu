/* split_prefix.cu -- split, step 3: the exclusive prefix scan of all counts, row by
 * row, turns them into destinations (samples/README.md, row B12).
 *
 * Parameters: KILN_BLOCK, threads per block (256): a power of two, at most 1024.
 * Launch: one block of KILN_BLOCK threads.
 *         counts  m numbers, replaced by their sums */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    split_prefix(unsigned *counts, unsigned m)
{
  __shared__ unsigned sum[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  unsigned before = 0; /* sum over all rounds so far */

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
    __syncthreads(); /* before the next round overwrites the sums */
  }
}
