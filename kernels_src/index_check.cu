/* index_check.cu -- check that every index is in the range of an array and, if required,
 * that the indices are non-decreasing.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_INDEX   type unsigned  type of an index, signed or unsigned
 *   KILN_RISING  0              1 if the indices must be non-decreasing
 * Launch: the block size is KILN_BLOCK. The grid has any size, since the blocks stride
 *         over the array.
 *         index    n elements
 *         target   number of elements of the indexed array
 *         first    all bits of *first are set before the launch
 * Result: *first is the smallest i such that index[i] is negative, is not below
 *         `target`, or (with KILN_RISING) is below index[i - 1]. If all indices are
 *         valid, all bits of *first stay set. */
#include <kiln/params/index_check.cuh>

#include <kiln/types.cuh>

typedef unsigned long long count;

/* Returns whether an index is out of range. The conversion to unsigned makes a
 * negative index larger than the size of any array. */
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
