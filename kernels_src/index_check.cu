/* index_check.cu -- check that every index lies in the target and, if required,
 * that no index is smaller than the one before it.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_INDEX   type unsigned  type of an index, signed or unsigned
 *   KILN_RISING  0              1: the indices must not descend
 * Launch: block KILN_BLOCK, any grid: blocks stride over the array.
 *         index    n elements
 *         target   number of elements of the target
 *         first    has all bits set before the launch
 * Result: *first is the smallest i whose index is negative, not below `target`, or
 *         (with KILN_RISING) below its predecessor. It keeps all bits set if there
 *         is none. */
#include <kiln/params/index_check.cuh>

#include <kiln/types.cuh>

typedef unsigned long long count;

/* Negative indices become large numbers: no target has so many elements. */
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
