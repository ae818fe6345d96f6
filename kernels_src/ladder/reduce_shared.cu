/* reduce_shared.cu -- a tree reduction in shared memory that halves the active threads
 * in each step, then one atomic addition per block (samples/README.md, row A9; Harris,
 * Optimizing Parallel Reduction in CUDA, 2007).
 *
 * Parameters: KILN_BLOCK, threads per block (256): a power of two, at most 1024.
 * Launch: one thread per element, block KILN_BLOCK.
 * Result: adds the sum of x to *result. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_shared(const float *x, unsigned n, float *result)
{
  __shared__ float tile[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * KILN_BLOCK + t;

  tile[t] = i < n ? x[i] : 0.0f; /* beyond the end: 0 does not change the sum */
#pragma unroll
  for (unsigned width = KILN_BLOCK / 2; width > 0; width /= 2) {
    __syncthreads();
    if (t < width)
      tile[t] += tile[t + width];
  }
  if (t == 0)
    atomicAdd(result, tile[0]);
}
