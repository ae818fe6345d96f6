/* reduce_atomic_shared.cu -- atomic additions within the block, then one per block
 * (samples/README.md, row A9).
 *
 * Launch: one thread per element.
 * Result: adds the sum of x to *result, in the order in which the atomics happen. */
extern "C" __global__ void reduce_atomic_shared(const float *x, unsigned n,
                                                float *result)
{
  __shared__ float block_sum;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (threadIdx.x == 0)
    block_sum = 0.0f;
  __syncthreads();

  if (i < n)
    atomicAdd(&block_sum, x[i]);
  __syncthreads();

  if (threadIdx.x == 0)
    atomicAdd(result, block_sum);
}
