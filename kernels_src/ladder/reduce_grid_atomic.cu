/* reduce_grid_atomic.cu -- sum of an array by one tree reduction in global memory per
 * block, then one atomic addition per block (samples/README.md, row C8).
 *
 * Launch: one thread per two elements.
 * Result: the sum of x is added to *result. The tree reductions overwrite x. */
extern "C" __global__ void reduce_grid_atomic(float *x, unsigned n,
                                              float *result)
{
  const unsigned elements = 2 * blockDim.x;
  const unsigned offset = blockIdx.x * elements;

  for (unsigned d = 1; d < elements; d *= 2) {
    const unsigned i = 2 * d * threadIdx.x;

    __syncthreads();
    if (i < elements && offset + i + d < n)
      x[offset + i] += x[offset + i + d];
  }
  if (threadIdx.x == 0 && offset < n)
    atomicAdd(result, x[offset]);
}
