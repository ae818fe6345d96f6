/* border.cuh -- elements beyond the ends of an axis.
 *
 * KILN_BORDER selects the rule: 0 repeats the last element (clamp), 1 continues at the
 * other end (wrap), 2 mirrors the array at its last element without repeating it, and
 * 3 makes every element outside equal to a constant. */
#ifndef KILN_BORDER_CUH
#define KILN_BORDER_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

enum : unsigned { border_clamp, border_wrap, border_mirror, border_constant };

/* Returns the index of the element that stands for element i of an axis of n
 * elements, n >= 1, or -1 if the constant does. i may have any value. */
template <class I> __device__ __forceinline__ I border_index(I i, I n)
{
  if (i >= 0 && i < n)
    return i;
  if (KILN_BORDER == border_clamp)
    return i < 0 ? 0 : n - 1;
  if (KILN_BORDER == border_wrap) {
    i %= n;
    return i < 0 ? i + n : i;
  }
  if (KILN_BORDER == border_mirror) {
    const I period = 2 * n - 2;

    if (n == 1)
      return 0;
    i %= period;
    i = i < 0 ? i + period : i;
    return i < n ? i : period - i;
  }
  return -1;
}

} // namespace kiln

#endif
