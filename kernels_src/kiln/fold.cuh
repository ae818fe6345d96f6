/* fold.cuh -- folds of lanes, groups of lanes and blocks for values of any size,
 * and results on their way from block to block within one launch.
 *
 * Every fold keeps the order: lower lanes, warps and slots are on the left.
 *
 * A block's result travels in mark words (lookback.cuh): whoever combines them
 * looks for the words until all are there, so neither a second kernel nor a fence
 * is needed, and words of former launches count as empty. */
#ifndef KILN_FOLD_CUH
#define KILN_FOLD_CUH

#include <kiln/lookback.cuh>

namespace kiln
{

/* The value of lane() + distance, of any size; the own one at the upper end. */
template <class T>
__device__ __forceinline__ T lane_down(T value, unsigned distance)
{
  constexpr unsigned n = (sizeof(T) + 3) / 4;
  unsigned part[n] = {};

  static_assert(__is_trivially_copyable(T), "values must be trivial");
  memcpy(part, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    part[k] = shuffle_word<move::down>(part[k], distance);
  memcpy(&value, part, sizeof value);
  return value;
}

template <unsigned lanes, bool whole, class T, class Op> struct group_folder {
  static __device__ __forceinline__ T first(T value, Op op)
  {
#pragma unroll
    for (unsigned step = 1; step < lanes; step *= 2)
      value = op(value, lane_down(value, step));
    return value;
  }
};

/* A whole warp of small values: the prelude's, which knows single instructions. */
template <unsigned lanes, class T, class Op>
struct group_folder<lanes, true, T, Op> {
  static __device__ __forceinline__ T first(T value, Op op)
  {
    return warp_folder<T, Op>::first(value, op);
  }
};

/* The fold over each group of `lanes` neighbours (a power of two up to 32), in its
 * first lane; what the others get is lost. By every lane of the warp. */
template <unsigned lanes, class T, class Op>
__device__ __forceinline__ T group_fold(T value, Op op)
{
  return group_folder < lanes, lanes == warp_size && sizeof(T) <= 16, T,
         Op > ::first(value, op);
}

/* The fold over a block of `threads`, in thread 0; one barrier. Before the next
 * collective that uses the block's scratch the caller needs one, too. */
template <unsigned threads, class T, class Op>
__device__ __forceinline__ T fold_block(T value, Op op)
{
  constexpr unsigned warps = threads / warp_size;
  T *room = block_scratch<T>();

  static_assert(warps * sizeof(T) <= 32 * 16, "too many warps for the scratch");
  value = group_fold<warp_size>(value, op);
  if (lane() == 0)
    room[warp()] = value;
  __syncthreads();
  if (warp() != 0)
    return value;
  value = room[lane() < warps ? lane() : 0];
#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    const T other = lane_down(value, step);

    if (lane() + step < warps)
      value = op(value, other);
  }
  return value;
}

/* Most results that a lane may look for at once without running out of registers:
 * of those wanted. */
template <class T>
__device__ constexpr unsigned results_at_once(unsigned wanted)
{
  return wanted * tile_words<T>::count <= 18 ? wanted
         : 18 / tile_words<T>::count > 0     ? 18 / tile_words<T>::count
                                             : 1;
}

template <class T>
__device__ __forceinline__ tile_seen<T> result_words(T value, unsigned mark)
{
  tile_seen<T> seen;
  unsigned part[tile_words<T>::count] = {};

  memcpy(part, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < tile_words<T>::count; ++k)
    seen.word[k] = static_cast<unsigned long long>(mark) << 32 | part[k];
  return seen;
}

template <class T>
__device__ __forceinline__ bool result_is_here(const tile_seen<T> &seen,
                                               unsigned mark)
{
  bool here = true;

#pragma unroll
  for (unsigned k = 0; k < tile_words<T>::count; ++k)
    here = here && static_cast<unsigned>(seen.word[k] >> 32) == mark;
  return here;
}

template <class T>
__device__ __forceinline__ T result_value(const tile_seen<T> &seen)
{
  unsigned part[tile_words<T>::count];
  T value;

#pragma unroll
  for (unsigned k = 0; k < tile_words<T>::count; ++k)
    part[k] = static_cast<unsigned>(seen.word[k]);
  memcpy(&value, part, sizeof value);
  return value;
}

/* For one thread: a block's result, for results_take(). */
template <class T>
__device__ __forceinline__ void result_post(unsigned long long *words,
                                            unsigned long long slot, T value,
                                            unsigned epoch)
{
  tile_publish(words, slot, value, mark_of(epoch, mark_partial));
}

/* The fold over results 0 to n - 1, in lane 0; by one whole warp. Each lane looks
 * for `at_once` of them, again and again, before any is needed. The order of the
 * operands is that of the slots if `ordered`, else it depends on n alone. Those
 * who post must be blocks of a lower index. */
template <unsigned at_once, bool ordered, class T, class Op>
__device__ __forceinline__ T results_take(const unsigned long long *words,
                                          unsigned n, unsigned epoch, Op op,
                                          T identity)
{
  constexpr unsigned stride = ordered ? 1 : warp_size;
  const unsigned mark = mark_of(epoch, mark_partial);
  T total = identity;

#pragma unroll 1
  for (unsigned first = 0; first < n; first += at_once * warp_size) {
    const unsigned base = first + lane() * (ordered ? at_once : 1);
    tile_seen<T> seen[at_once];
    bool all_here;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      seen[k] = result_words(identity, base + k * stride < n ? 0 : mark);
    do {
      all_here = true;
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (!result_is_here(seen[k], mark))
          seen[k] = tile_look<T>(words, base + k * stride);
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        all_here = all_here && result_is_here(seen[k], mark);
    } while (!warp_all(all_here)); /* lanes leave together */
    if (ordered) {
      T mine = result_value(seen[0]);

#pragma unroll
      for (unsigned k = 1; k < at_once; ++k)
        mine = op(mine, result_value(seen[k]));
      total = op(total, group_fold<warp_size>(mine, op));
    } else {
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        total = op(total, result_value(seen[k]));
    }
  }
  return ordered ? total : group_fold<warp_size>(total, op);
}

} // namespace kiln

#endif
