/* split_count.cu -- split, steps 1 and 2: each thread counts its own portion by
 * partition and writes the counts where the prefix sum wants them (lecture row B12).
 *
 * Specialise:  KILN_BUCKETS  2          partitions
 *              KILN_KEY(x) x % PARTS  the partition of an element
 * Launch:      any number of threads; each owns ceil(n / threads) neighbours.
 *              counts  KILN_BUCKETS rows of one number a thread
 * Result:      counts[part][thread], no two threads in the same word: no locks.
 */
#ifndef KILN_BUCKETS
#define KILN_BUCKETS 2
#endif
#ifndef KILN_KEY
#define KILN_KEY(x) ((x) % KILN_BUCKETS)
#endif

extern "C" __global__ void split_count(const unsigned *x, unsigned n,
                                       unsigned *counts)
{
  const unsigned threads = gridDim.x * blockDim.x;
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned each = (n + threads - 1) / threads;

  for (unsigned part = 0; part < KILN_BUCKETS; ++part)
    counts[part * threads + t] = 0;
  for (unsigned i = t * each; i < (t + 1) * each && i < n; ++i)
    ++counts[KILN_KEY(x[i]) * threads + t];
}
