/* reduce_shared_shuffle.cu -- the tree reduction in shared memory down to one warp,
 * which continues in registers (samples/README.md, row A9).
 *
 * Parameters: KILN_BLOCK, threads per block (256): a power of two, 64 to 1024.
 * Launch: one thread per element, block KILN_BLOCK.
 * Result: adds the sum of x to *result. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

#define KILN_FLAT_BLOCK 1
#include <kiln/prelude.cuh>

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_shared_shuffle(const float *x, unsigned n, float *result)
{
  __shared__ float tile[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * KILN_BLOCK + t;
  float value = i < n ? x[i] : 0.0f;

  tile[t] = value;
#pragma unroll
  for (unsigned width = KILN_BLOCK / 2; width >= kiln::warp_size; width /= 2) {
    __syncthreads();
    if (t < width) {
      value += tile[t + width];
      tile[t] = value;
    }
  }
  if (t < kiln::warp_size) {
    value = kiln::warp_reduce(value, kiln::sum());
    if (t == 0)
      atomicAdd(result, value);
  }
}
