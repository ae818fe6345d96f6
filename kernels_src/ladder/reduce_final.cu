/* reduce_final.cu -- sum of an array with two loads per thread and shuffles within each
 * warp. Shared memory is used only between warps (samples/README.md, row A9, and one
 * further optimisation).
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a multiple of
 *             32 and at most 1024.
 * Launch: one thread per two elements; the block size is KILN_BLOCK.
 * Result: the sum of x is added to *result. */
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
