/* reduce_shared.cu -- a tree in shared memory, halving the active threads, then
 * one atomic a block (lecture row A9).
 *
 * Specialise:  KILN_BLOCK  256  threads a block: a power of two, <= 1024
 * Launch:      one thread an element, block KILN_BLOCK.
 * Result:      *result += the sum of x.
 */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_shared(const float *x, unsigned n, float *result)
{
  __shared__ float tile[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * KILN_BLOCK + t;

  tile[t] = i < n ? x[i] : 0.0f; /* past the end: what adds nothing */
#pragma unroll
  for (unsigned width = KILN_BLOCK / 2; width > 0; width /= 2) {
    __syncthreads();
    if (t < width)
      tile[t] += tile[t + width];
  }
  if (t == 0)
    atomicAdd(result, tile[0]);
}
