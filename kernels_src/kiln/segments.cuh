/* segments.cuh -- merges elements and segment ends into one sequence. In this merged
 * sequence, the end of each segment follows the elements of that segment. Ranges of equal
 * length in the merged sequence are equal work for any lengths of the segments (Merrill
 * and Garland, Merge-based Parallel Sparse Matrix-Vector Multiplication, 2016).
 *
 * The end of segment i has position end(i) + i in the merged sequence. If s ends precede
 * position p, then p - s elements precede it, and the next element belongs to segment
 * s. */
#ifndef KILN_SEGMENTS_CUH
#define KILN_SEGMENTS_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

/* Segments whose starts and ends an array of offsets contains. The type `count`
 * must represent the length of the merged sequence. Starts and ends are
 * relative to the first element of segment 0. */
template <class Offset, class count> struct segments {
  const Offset *offsets; /* array of n + 1 offsets */
  count n, base;

  __device__ __forceinline__ segments(const Offset *all, count segments)
      : offsets(all), n(segments), base(static_cast<count>(__ldg(all)))
  {
  }
  __device__ __forceinline__ count end(count i) const
  {
    return static_cast<count>(__ldg(offsets + i + 1)) - base;
  }
  __device__ __forceinline__ count start(count i) const
  {
    return static_cast<count>(__ldg(offsets + i)) - base;
  }
  __device__ __forceinline__ count length() const
  {
    return n + start(n);
  }
};

/* Segments that all have the same length and therefore need no offsets. */
template <class count> struct equal_segments {
  count n, each;

  __device__ __forceinline__ count end(count i) const
  {
    return (i + 1) * each;
  }
  __device__ __forceinline__ count start(count i) const
  {
    return i * each;
  }
  __device__ __forceinline__ count length() const
  {
    return n + n * each;
  }
};

/* Returns the number of segment ends that precede position `place` of the merged
 * sequence. Each group of `lanes` consecutive lanes searches for its own
 * position. One step of the search divides the remaining range into lanes + 1
 * parts. Every lane of the warp calls the function. */
template <unsigned lanes, class Segments, class count>
__device__ __forceinline__ count ends_before(const Segments &all, count place)
{
  const unsigned mine = lane() % lanes, shift = lane() / lanes * lanes;
  const unsigned mask = static_cast<unsigned>(~0ull >> (64 - lanes));
  count low = 0, left = all.n;

  while (warp_any(left > 0)) {
    const count step = left / (lanes + 1) + 1;
    const count probe = low + (mine + 1) * step - 1;
    const bool before = probe - low < left && all.end(probe) + probe < place;
    const unsigned n =
        static_cast<unsigned>(__popc(warp_ballot(before) >> shift & mask));
    const count rest = left - n * step;

    low += n * step;
    left = rest < step - 1 ? rest : step - 1;
  }
  return low;
}

} // namespace kiln

#endif
