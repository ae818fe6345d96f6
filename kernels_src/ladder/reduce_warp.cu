/* reduce_warp.cu -- sum of an array in which each warp reduces its elements in registers.
 * Then the first warp of the block reduces the results of all warps, and the block makes
 * one atomic addition (samples/README.md, row C8).
 *
 * Parameters: KILN_BLOCK (default 512) is the number of threads per block, a multiple of
 *             32 and at most 1024.
 * Launch: one thread per element; the block size is KILN_BLOCK.
 * Result: the sum of x is added to *result. */
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
