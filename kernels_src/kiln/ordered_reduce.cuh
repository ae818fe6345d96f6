/* ordered_reduce.cuh -- reductions over groups of lanes and over blocks for values of any
 * size, and the combination of the results of several blocks within one launch.
 *
 * Every reduction keeps the order of its operands. The left operand comes from the lower
 * lane, warp or slot, so the operation need not commute.
 *
 * A block publishes its result in a tile descriptor (look_back.cuh). One block polls the
 * descriptors until all results are published, and combines the results. So neither a
 * second kernel nor a fence is needed. Descriptors of earlier launches count as empty. */
#ifndef KILN_ORDERED_REDUCE_CUH
#define KILN_ORDERED_REDUCE_CUH

#include <kiln/look_back.cuh>

namespace kiln
{

/* Returns the value of the lane whose number is higher by `distance`, for
 * values of any size. The last `distance` lanes of the warp get their own
 * value. */
template <class T>
__device__ __forceinline__ T lane_down(T value, unsigned distance)
{
  constexpr unsigned n = (sizeof(T) + 3) / 4;
  unsigned payload[n] = {};

  static_assert(__is_trivially_copyable(T), "values must be trivial");
  memcpy(payload, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    payload[k] = shuffle_word<move::down>(payload[k], distance);
  memcpy(&value, payload, sizeof value);
  return value;
}

template <unsigned lanes, bool whole, class T, class Op> struct group_reducer {
  static __device__ __forceinline__ T first(T value, Op op)
  {
#pragma unroll
    for (unsigned step = 1; step < lanes; step *= 2)
      value = op(value, lane_down(value, step));
    return value;
  }
};

/* Reductions of values of at most 16 bytes over whole warps use the functions of
 * prelude.cuh, which use the redux instruction where possible. */
template <unsigned lanes, class T, class Op>
struct group_reducer<lanes, true, T, Op> {
  static __device__ __forceinline__ T first(T value, Op op)
  {
    return warp_reducer<T, Op>::first(value, op);
  }
};

/* Returns the reduction over each group of `lanes` consecutive lanes in the
 * first lane of the group. The other lanes get an undefined value. `lanes` is a
 * power of two up to 32. Every lane of the warp calls the function. */
template <unsigned lanes, class T, class Op>
__device__ __forceinline__ T group_reduce(T value, Op op)
{
  return group_reducer < lanes, lanes == warp_size && sizeof(T) <= 16, T,
         Op > ::first(value, op);
}

#ifdef KILN_LINKED
/* Does what group_reduce() does, for whole warps and several values at a time. */
template <unsigned n, class T, class Op>
__device__ __forceinline__ void warp_reduce_each(T (&value)[n], Op op)
{
#pragma unroll
  for (unsigned step = 1; step < warp_size; step *= 2) {
    T other[n];

#pragma unroll
    for (unsigned k = 0; k < n; ++k)
      other[k] = lane_down(value[k], step);
    each(op, value, other, value);
  }
}
#endif

/* Returns the reduction over a block of `threads` threads, in thread 0. Contains
 * one barrier. The caller needs another barrier before the next collective that
 * uses block_scratch(). */
template <unsigned threads, class T, class Op>
__device__ __forceinline__ T block_reduce_wide(T value, Op op)
{
  constexpr unsigned warps = threads / warp_size;
  T *storage = block_scratch<T>();

  value = group_reduce<warp_size>(value, op);
  if (lane() == 0)
    storage[warp()] = value;
  __syncthreads();
  if (warp() != 0)
    return value;
  value = storage[lane() < warps ? lane() : 0];
#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    const T other = lane_down(value, step);

    if (lane() + step < warps)
      value = op(value, other);
  }
  return value;
}

/* Returns the number of results that a lane can poll at the same time without
 * register spills. The number is at most `wanted`. */
template <class T>
__device__ constexpr unsigned results_in_flight(unsigned wanted)
{
  return wanted * descriptor_words<T>::count <= 18 ? wanted
         : 18 / descriptor_words<T>::count > 0 ? 18 / descriptor_words<T>::count
                                               : 1;
}

template <class T>
__device__ __forceinline__ tile_descriptor<T> descriptor_of(T value,
                                                            unsigned tag)
{
  tile_descriptor<T> seen;
  unsigned payload[descriptor_words<T>::count] = {};

  memcpy(payload, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < descriptor_words<T>::count; ++k)
    seen.word[k] = static_cast<unsigned long long>(tag) << 32 | payload[k];
  return seen;
}

template <class T>
__device__ __forceinline__ bool result_ready(const tile_descriptor<T> &seen,
                                             unsigned tag)
{
  bool here = true;

#pragma unroll
  for (unsigned k = 0; k < descriptor_words<T>::count; ++k)
    here = here && static_cast<unsigned>(seen.word[k] >> 32) == tag;
  return here;
}

template <class T>
__device__ __forceinline__ T result_value(const tile_descriptor<T> &seen)
{
  unsigned payload[descriptor_words<T>::count];
  T value;

#pragma unroll
  for (unsigned k = 0; k < descriptor_words<T>::count; ++k)
    payload[k] = static_cast<unsigned>(seen.word[k]);
  memcpy(&value, payload, sizeof value);
  return value;
}

/* Publishes the result of a block, for which results_combine() waits. One
 * thread calls this function. */
template <class T>
__device__ __forceinline__ void result_publish(unsigned long long *words,
                                               unsigned long long slot, T value,
                                               unsigned epoch)
{
  tile_publish(words, slot, value, descriptor_tag(epoch, status_partial));
}

/* Waits for the results in slots 0 to n - 1 and returns their reduction in lane
 * 0. One whole warp calls the function. Each lane polls `at_once` results at a
 * time. If `ordered` is true, the operands are combined in the order of the
 * slots. Otherwise their order depends on n alone. The publishing blocks must
 * have a lower index than the calling block. */
template <unsigned at_once, bool ordered, class T, class Op>
__device__ __forceinline__ T results_combine(const unsigned long long *words,
                                             unsigned n, unsigned epoch, Op op,
                                             T identity)
{
  constexpr unsigned stride = ordered ? 1 : warp_size;
  const unsigned tag = descriptor_tag(epoch, status_partial);
  T total = identity;

#pragma unroll 1
  for (unsigned first = 0; first < n; first += at_once * warp_size) {
    const unsigned base = first + lane() * (ordered ? at_once : 1);
    tile_descriptor<T> seen[at_once];
    bool all_here;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      seen[k] = descriptor_of(identity, base + k * stride < n ? 0 : tag);
    do {
      all_here = true;
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (!result_ready(seen[k], tag))
          seen[k] = descriptor_load<T>(words, base + k * stride);
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        all_here = all_here && result_ready(seen[k], tag);
      /* All lanes leave the loop in the same iteration. */
    } while (!warp_all(all_here));
    if (ordered) {
      T mine = result_value(seen[0]);

#pragma unroll
      for (unsigned k = 1; k < at_once; ++k)
        mine = op(mine, result_value(seen[k]));
      total = op(total, group_reduce<warp_size>(mine, op));
    } else {
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        total = op(total, result_value(seen[k]));
    }
  }
  return ordered ? total : group_reduce<warp_size>(total, op);
}

} // namespace kiln

#endif
