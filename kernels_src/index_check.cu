/* index_check.cu -- is every index one of the target's, and does none fall?
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_INDEX   type unsigned  type of an index, signed or not
 *   KILN_RISING  0              1: each is at least the one before, too
 * Launch:      block KILN_BLOCK, grid of any size: blocks stride over the array.
 *              index      n elements
 *              target     elements of the target
 *              first      all bits 1 before the launch
 * Result:      *first is the least i whose index is not in 0 <= index < target, or
 *              is below the one before; else it stays. */
#include <kiln/params/index_check.cuh>

#include <kiln/types.cuh>

typedef unsigned long long count;

/* Negative ones become large: no target has so many elements. */
static __device__ __forceinline__ bool outside(KILN_INDEX at, count target)
{
  return static_cast<count>(static_cast<long long>(at)) >= target;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    index_check(const KILN_INDEX *index, count n, count target, count *first)
{
  enum : unsigned { at_once = 4 };
  const count stride = static_cast<count>(gridDim.x) * KILN_BLOCK;

#pragma unroll 1
  for (count i = static_cast<count>(blockIdx.x) * KILN_BLOCK + threadIdx.x;
       i < n; i += at_once * stride) {
    count place[at_once];
    KILN_INDEX at[at_once], before[at_once];

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k) {
      place[k] = i + k * stride < n ? i + k * stride : i;
      at[k] = kiln::load(index + place[k]);
      before[k] = at[k];
#if KILN_RISING
      if (place[k] > 0)
        before[k] = kiln::load(index + place[k] - 1);
#endif
    }
#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      if (outside(at[k], target) || at[k] < before[k])
        atomicMin(first, place[k]);
  }
}
