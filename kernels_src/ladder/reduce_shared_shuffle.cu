/* reduce_shared_shuffle.cu -- sum of an array by one tree reduction per block, then one
 * atomic addition per block. The tree reduction uses shared memory until 32 values are
 * left, which one warp reduces by shuffles (samples/README.md, row A9).
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a power of two
 *             from 64 to 1024.
 * Launch: one thread per element; the block size is KILN_BLOCK.
 * Result: the sum of x is added to *result. */
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
