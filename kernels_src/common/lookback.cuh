/* lookback.cuh -- single-pass prefix over tiles: each tile adds up what the tiles
 * before it have published, instead of waiting for a pass of its own (Merrill and
 * Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
 *
 * A tile's value travels in mark words, one for each 32 bits of it: the mark,
 * epoch and state, in the upper half, payload in the lower. A 64-bit word arrives
 * whole, so neither fences nor flags are needed. Words that hold another epoch
 * count as empty: nothing is cleared between launches. A tile waits for tiles of
 * a lower index only, and blocks start in the order of their index. */
#ifndef KILN_LOOKBACK_CUH
#define KILN_LOOKBACK_CUH

#ifdef __CUDACC_RTC__
#include <kiln/prelude.cuh>
#else
#include "prelude.cuh"
#endif

namespace kiln
{

enum : unsigned {
  mark_partial = 1, /* the tile's own total */
  mark_prefix = 2   /* the total of all tiles up to this one */
};

__device__ __forceinline__ unsigned mark_of(unsigned epoch, unsigned state)
{
  return epoch << 2 | state;
}

template <class T> struct tile_words {
  enum : unsigned { count = (sizeof(T) + 3) / 4 };
};

/* Publish a value; by one thread. `words` is the start of all tiles' words. */
template <class T>
__device__ __forceinline__ void tile_publish(unsigned long long *words,
                                             unsigned long long tile, T value,
                                             unsigned mark)
{
  constexpr unsigned n = tile_words<T>::count;
  unsigned part[n] = {};

  memcpy(part, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    word_store(words + tile * n + k,
               static_cast<unsigned long long>(mark) << 32 | part[k]);
}

/* What a tile has published: its state, and the value if there is one. A value
 * of several words counts only when all carry the same mark. */
template <class T>
__device__ __forceinline__ unsigned tile_peek(const unsigned long long *words,
                                              unsigned long long tile,
                                              unsigned epoch, T *value)
{
  constexpr unsigned n = tile_words<T>::count;
  unsigned long long seen[n];
  unsigned part[n];
  bool whole = true;

#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    seen[k] = word_load(words + tile * n + k);
#pragma unroll
  for (unsigned k = 0; k < n; ++k) {
    part[k] = static_cast<unsigned>(seen[k]);
    whole = whole && seen[k] >> 32 == seen[0] >> 32;
  }
  memcpy(value, part, sizeof *value);
  return whole && seen[0] >> 34 == epoch
             ? static_cast<unsigned>(seen[0] >> 32) & 3u
             : 0;
}

/* The fold over all tiles before `tile` (> 0), in every lane; by one whole warp.
 * Each turn looks at 32 tiles, the nearest in lane 31, so that the order of the
 * operands is kept. */
template <class T, class Op>
__device__ __forceinline__ T tile_look_back(const unsigned long long *words,
                                            unsigned long long tile,
                                            unsigned epoch, Op op, T identity)
{
  T before = identity;
  unsigned long long end = tile; /* tiles below it are still to be added */

  for (;;) {
    const unsigned long long distance = warp_size - lane();
    const bool exists = end >= distance;
    T value = identity;
    unsigned state = exists ? 0 : static_cast<unsigned>(mark_prefix);
    unsigned ready, first;

    do {
      if (state == 0)
        state = tile_peek(words, end - distance, epoch, &value);
    } while (!warp_all(state != 0));
    ready = warp_ballot(state == mark_prefix);
    first = ready == 0 ? 0 : 31 - static_cast<unsigned>(__clz(ready));
    if (!exists || lane() < first)
      value = identity;
    before = op(warp_reduce(value, op), before);
    if (ready != 0)
      return before;
    end -= warp_size;
  }
}

} // namespace kiln

#endif
