/* split_scatter.cu -- steps 4 and 5 of a split into buckets. Each thread reads its
 * destinations and moves its elements (samples/README.md, row B12).
 *
 * Parameters: KILN_BUCKETS (default 2) is the number of buckets. KILN_KEY(x) (default
 *             x % KILN_BUCKETS) is the bucket of element x.
 * Launch: the grid and the block size of split_count.
 *         places  the output of split_prefix, which the kernel overwrites
 * Result: out contains the elements of bucket 0, then of bucket 1, and so on. Each bucket
 *         keeps the order of x. */
#ifndef KILN_BUCKETS
#define KILN_BUCKETS 2
#endif
#ifndef KILN_KEY
#define KILN_KEY(x) ((x) % KILN_BUCKETS)
#endif

extern "C" __global__ void split_scatter(const unsigned *x, unsigned n,
                                         unsigned *places, unsigned *out)
{
  const unsigned threads = gridDim.x * blockDim.x;
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned each = (n + threads - 1) / threads;

  for (unsigned i = t * each; i < (t + 1) * each && i < n; ++i)
    out[places[KILN_KEY(x[i]) * threads + t]++] = x[i];
}
