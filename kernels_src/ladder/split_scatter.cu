/* split_scatter.cu -- split, steps 4 and 5: each thread gathers its places and
 * writes its portion (lecture row B12).
 *
 * Specialise:  KILN_BUCKETS  2          partitions
 *              KILN_KEY(x) x % PARTS  the partition of an element
 * Launch:      as split_count.
 *              places  what split_prefix made of the counts; used up
 * Result:      out: partition 0, then 1, ...; each in the order of x.
 */
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
