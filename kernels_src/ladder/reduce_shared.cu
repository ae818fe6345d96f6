/* reduce_shared.cu -- sum of an array by one tree reduction in shared memory per block,
 * then one atomic addition per block. Each step of the tree reduction halves the number
 * of active threads (samples/README.md, row A9; Harris, Optimizing Parallel Reduction in
 * CUDA, 2007).
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a power of two
 *             and at most 1024.
 * Launch: one thread per element; the block size is KILN_BLOCK.
 * Result: the sum of x is added to *result. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_shared(const float *x, unsigned n, float *result)
{
  __shared__ float tile[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * KILN_BLOCK + t;

  /* Threads beyond the end add 0, which does not change the sum. */
  tile[t] = i < n ? x[i] : 0.0f;
#pragma unroll
  for (unsigned width = KILN_BLOCK / 2; width > 0; width /= 2) {
    __syncthreads();
    if (t < width)
      tile[t] += tile[t + width];
  }
  if (t == 0)
    atomicAdd(result, tile[0]);
}
