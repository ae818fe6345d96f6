/* reduce_atomic_shared.cu -- sum of an array by atomic additions in shared memory, then
 * one atomic addition in global memory per block (samples/README.md, row A9).
 *
 * Launch: one thread per element.
 * Result: the sum of x is added to *result, in the order in which the atomics execute. */
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
