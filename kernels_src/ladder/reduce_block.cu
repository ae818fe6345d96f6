/* reduce_block.cu -- a tree reduction in global memory by one block
 * (samples/README.md, row C8).
 *
 * Launch: one block of any size.
 * Result: adds the sum of x to *result. The tree overwrites x. Elements at distance 1, 2, 4,
 *         ... are added, so the active threads are ever further apart. */
extern "C" __global__ void reduce_block(float *x, unsigned n, float *result)
{
  const unsigned long long size = n;

  for (unsigned long long d = 1; d < size; d *= 2) {
    for (unsigned long long i = 2 * d * threadIdx.x; i + d < size;
         i += 2 * d * blockDim.x)
      x[i] += x[i + d];
    __syncthreads();
  }
  if (threadIdx.x == 0 && n > 0)
    *result += x[0];
}
