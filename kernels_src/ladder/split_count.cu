/* split_count.cu -- steps 1 and 2 of a split into buckets. Each thread counts its own
 * elements per bucket, and stores the counts in the order of the prefix scan
 * (samples/README.md, row B12).
 *
 * Parameters: KILN_BUCKETS (default 2) is the number of buckets. KILN_KEY(x) (default
 *             x % KILN_BUCKETS) is the bucket of element x.
 * Launch: any number of threads. Each thread handles ceil(n / threads) consecutive
 *         elements.
 *         counts  KILN_BUCKETS rows with one count per thread
 * Result: counts[bucket][thread] is the number of elements of the thread in the bucket.
 *         No two threads write the same word, so no locks are needed. */
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
