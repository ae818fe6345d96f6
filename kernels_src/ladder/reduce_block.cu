/* reduce_block.cu -- sum of an array by a tree reduction in global memory, with one block
 * (samples/README.md, row C8).
 *
 * Launch: one block of any size.
 * Result: the sum of x is added to *result. The tree reduction overwrites x. It adds
 *         elements at distances 1, 2, 4 and so on, so the distance between active threads
 *         doubles in each step. */
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
