/* window_range.cuh -- what gather.cu and scatter.cu share: the window of the target that
 * a launch, or a row of its grid, handles. */
#ifndef KILN_WINDOW_RANGE_CUH
#define KILN_WINDOW_RANGE_CUH

#include <kiln/user.cuh>

static_assert(KILN_BLOCK >= KILN_VECTOR, "KILN_BLOCK: a vector at least");

#if KILN_SMALL
typedef unsigned count;
#else
typedef unsigned long long count;
#endif

#if KILN_WINDOWS
/* The indices from begin to begin + last. */
struct window_range {
  KILN_INDEX begin, last;

  __device__ __forceinline__ bool has(KILN_INDEX at) const
  {
    return at - begin <= last;
  }
};

/* The last window has no upper end, so every index belongs to one window, even
 * one beyond the target. */
static __device__ __forceinline__ window_range
window_range_of(unsigned long long window, unsigned at, unsigned parts)
{
  const KILN_INDEX begin = static_cast<KILN_INDEX>(at * window);

  if (at + 1 == parts)
    return {begin,
            static_cast<KILN_INDEX>(~static_cast<KILN_INDEX>(0) - begin)};
  return {begin, static_cast<KILN_INDEX>(window - 1)};
}
#else
struct window_range {
  __device__ __forceinline__ bool has(KILN_INDEX) const
  {
    return true;
  }
};

static __device__ __forceinline__ window_range
window_range_of(unsigned long long, unsigned, unsigned)
{
  return {};
}
#endif

#endif
