/* reduce_final.cu -- two loads per thread, shuffles within the warps, and shared
 * memory only between the warps (samples/README.md, row A9, one step further).
 *
 * Parameters: KILN_BLOCK, threads per block (256): a multiple of 32, at most 1024.
 * Launch: one thread per two elements, block KILN_BLOCK.
 * Result: adds the sum of x to *result. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

#define KILN_FLAT_BLOCK 1
#include <kiln/prelude.cuh>

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    reduce_final(const float *x, unsigned n, float *result)
{
  const unsigned i = blockIdx.x * (2 * KILN_BLOCK) + threadIdx.x;
  const float first = i < n ? x[i] : 0.0f;
  const float second =
      n > KILN_BLOCK && i < n - KILN_BLOCK ? x[i + KILN_BLOCK] : 0.0f;
  const float value = kiln::block_reduce(first + second, kiln::sum());

  if (threadIdx.x == 0)
    atomicAdd(result, value);
}
