/* split_scatter.cu -- split, steps 4 and 5: each thread reads its destinations and
 * moves its elements (samples/README.md, row B12).
 *
 * Parameters: KILN_BUCKETS, number of buckets (2). KILN_KEY(x), bucket of an element
 *             (x % KILN_BUCKETS).
 * Launch: as split_count.
 *         places  the output of split_prefix; the kernel overwrites it
 * Result: out holds bucket 0, then 1, and so on, each in the order of x. */
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
