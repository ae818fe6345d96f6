/* histogram_global.cu -- histogram with one atomic addition in global memory per
 * sample.
 *
 * Launch: any grid. The caller clears counts before the launch.
 * Result: counts[b] is the number of samples x[i] equal to b, for all b < bins. */
extern "C" __global__ void histogram_global(const unsigned *x, unsigned n,
                                            unsigned *counts, unsigned bins)
{
  const unsigned stride = gridDim.x * blockDim.x;

  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    if (x[i] < bins)
      atomicAdd(&counts[x[i]], 1u);
}
