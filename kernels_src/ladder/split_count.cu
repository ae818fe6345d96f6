/* split_count.cu -- split, steps 1 and 2: each thread counts its own contiguous
 * elements by bucket and stores the counts in the order of the prefix scan
 * (samples/README.md, row B12).
 *
 * Parameters: KILN_BUCKETS, number of buckets (2). KILN_KEY(x), bucket of an element
 *             (x % KILN_BUCKETS).
 * Launch: any number of threads; each owns ceil(n / threads) contiguous elements.
 *         counts  KILN_BUCKETS rows of one number per thread
 * Result: counts[bucket][thread]. No two threads write the same word, so no locks are
 *         needed. */
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
