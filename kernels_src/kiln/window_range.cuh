/* window_range.cuh -- index windows of gather.cu and scatter.cu. A launch, or one row of
 * its grid, accesses only the elements of the indexed array that are inside its window. */
#ifndef KILN_WINDOW_RANGE_CUH
#define KILN_WINDOW_RANGE_CUH

#include <kiln/user.cuh>

static_assert(KILN_BLOCK >= KILN_VECTOR, "KILN_BLOCK: a vector at least");

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

#if KILN_WINDOWS
/* A window, which contains the indices from begin to begin + last. */
struct window_range {
  KILN_INDEX begin, last;

  __device__ __forceinline__ bool has(KILN_INDEX at) const
  {
    return at - begin <= last;
  }
};

/* Returns window number `at` of `parts` windows with `window` elements each. The
 * last window has no upper limit, so that every index belongs to one window,
 * even an index that is out of range. */
static __device__ __forceinline__ window_range
window_range_of(unsigned long long window, unsigned at, unsigned parts)
{
  const KILN_INDEX begin = static_cast<KILN_INDEX>(at * window);

  if (at + 1 == parts)
    return {begin,
            static_cast<KILN_INDEX>(~static_cast<KILN_INDEX>(0) - begin)};
  return {begin, static_cast<KILN_INDEX>(window - 1)};
}

/* Returns the range of all indices. */
static __device__ __forceinline__ window_range whole_range()
{
  return {0, static_cast<KILN_INDEX>(~static_cast<KILN_INDEX>(0))};
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

static __device__ __forceinline__ window_range whole_range()
{
  return {};
}
#endif

#endif
