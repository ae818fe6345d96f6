/* reduce_warp.cu -- warps reduce in registers, the first warp reduces their results,
 * and each block makes one atomic addition (samples/README.md, row C8).
 *
 * Parameters: KILN_BLOCK, threads per block (512): a multiple of 32, at most 1024.
 * Launch: one thread per element, block KILN_BLOCK.
 * Result: adds the sum of x to *result. */
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
