/* reduce_grid_local.cu -- sum of an array by one tree reduction in shared memory per
 * block, then one atomic addition per block (samples/README.md, row C8, where shared
 * memory is called local memory). In contrast to reduce_grid_atomic, x is not changed.
 *
 * Parameters: KILN_BLOCK (default 1024) is the number of threads per block, a power of
 *             two and at most 1024.
 * Launch: one thread per two elements; the block size is KILN_BLOCK.
 * Result: the sum of x is added to *result. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 1024
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_grid_local(const float *x, unsigned n, float *result)
{
  __shared__ float tile[2 * KILN_BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned offset = blockIdx.x * (2 * KILN_BLOCK);

  tile[t] = offset + t < n ? x[offset + t] : 0.0f;
  tile[t + KILN_BLOCK] =
      offset + KILN_BLOCK + t < n ? x[offset + KILN_BLOCK + t] : 0.0f;
  for (unsigned d = 1; d < 2 * KILN_BLOCK; d *= 2) {
    const unsigned i = 2 * d * t;

    __syncthreads();
    if (i + d < 2 * KILN_BLOCK)
      tile[i] += tile[i + d];
  }
  if (t == 0)
    atomicAdd(result, tile[0]);
}
