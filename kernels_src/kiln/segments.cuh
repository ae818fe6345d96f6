/* segments.cuh -- segments and their elements as one merged sequence, in which the end
 * of each segment follows its elements. Equal parts of that sequence are equal work,
 * whatever the lengths of the segments (Merrill and Garland, Merge-based Parallel Sparse
 * Matrix-Vector Multiplication, 2016).
 *
 * End i is at place end(i) + i. A place p with s ends before it has p - s elements
 * before it, and the next element belongs to segment s. */
#ifndef KILN_SEGMENTS_CUH
#define KILN_SEGMENTS_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

/* Segments given by offsets. The type `count` must hold the length of the
 * merged sequence. Ends count from the first element of segment 0. */
template <class Offset, class count> struct segments {
  const Offset *offsets; /* n + 1 offsets */
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

/* Segments of equal length, without offsets. */
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

/* Returns the number of ends before `place`. Groups of `lanes` adjacent lanes
 * search for a place each, with lanes + 1 parts per step. Every lane of the
 * warp calls it. */
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
