/* reduce_final.cu -- two loads a thread, shuffles within the warps, shared
 * memory only between them (lecture row A9, the step after its last).
 *
 * Specialise:  KILN_BLOCK  256  threads a block: a multiple of 32, <= 1024
 * Launch:      one thread for two elements, block KILN_BLOCK.
 * Result:      *result += the sum of x.
 */
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
