/* histogram_copies.cu -- histogram with 32 counters per bin in shared memory, one per
 * lane. The lanes of a warp always access different banks.
 *
 * Launch: any grid, with 128 bytes of dynamic shared memory per bin. The caller clears
 *         counts before the launch.
 * Result: counts[b] is the number of samples x[i] equal to b, for all b < bins. */
extern "C" __global__ void histogram_copies(const unsigned *x, unsigned n,
                                            unsigned *counts, unsigned bins)
{
  extern __shared__ unsigned mine[];
  const unsigned stride = gridDim.x * blockDim.x, lane = threadIdx.x % 32;

  for (unsigned k = threadIdx.x; k < 32 * bins; k += blockDim.x)
    mine[k] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    if (x[i] < bins)
      atomicAdd(&mine[x[i] * 32 + lane], 1u);
  __syncthreads();
  for (unsigned k = threadIdx.x; k < bins; k += blockDim.x) {
    unsigned sum = 0;

    for (unsigned copy = 0; copy < 32; ++copy)
      sum += mine[k * 32 + (lane + copy) % 32];
    if (sum != 0)
      atomicAdd(&counts[k], sum);
  }
}
