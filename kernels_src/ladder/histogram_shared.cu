/* histogram_shared.cu -- histogram in which each block counts in shared memory. At the
 * end, each block adds its counts to the counts in global memory.
 *
 * Launch: any grid, with 4 bytes of dynamic shared memory per bin. The caller clears
 *         counts before the launch.
 * Result: counts[b] is the number of samples x[i] equal to b, for all b < bins. */
extern "C" __global__ void histogram_shared(const unsigned *x, unsigned n,
                                            unsigned *counts, unsigned bins)
{
  extern __shared__ unsigned mine[];
  const unsigned stride = gridDim.x * blockDim.x;

  for (unsigned k = threadIdx.x; k < bins; k += blockDim.x)
    mine[k] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    if (x[i] < bins)
      atomicAdd(&mine[x[i]], 1u);
  __syncthreads();
  for (unsigned k = threadIdx.x; k < bins; k += blockDim.x)
    if (mine[k] != 0)
      atomicAdd(&counts[k], mine[k]);
}
