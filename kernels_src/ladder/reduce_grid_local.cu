/* reduce_grid_local.cu -- the trees of reduce_grid_atomic in the block's shared memory
 * (samples/README.md, row C8, where it is called local memory). x is not changed.
 *
 * Parameters: KILN_BLOCK, threads per block (1024): a power of two, at most 1024.
 * Launch: one thread per two elements, block KILN_BLOCK.
 * Result: adds the sum of x to *result. */
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
