/* reduce_warp.cu -- warps fold in registers, the first warp folds the warps, one
 * atomic a block (lecture row C8).
 *
 * Specialise:  KILN_BLOCK  512  threads a block: a multiple of 32, <= 1024
 * Launch:      one thread an element, block KILN_BLOCK.
 * Result:      *result += the sum of x.
 */
#ifndef KILN_BLOCK
#define KILN_BLOCK 512
#endif

#define KILN_FLAT_BLOCK 1
#include <kiln/prelude.cuh>

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_warp(const float *x, unsigned n, float *result)
{
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;
  const float mine = i < n ? x[i] : 0.0f;
  const float value = kiln::block_reduce(mine, kiln::sum());

  if (threadIdx.x == 0)
    atomicAdd(result, value);
}
