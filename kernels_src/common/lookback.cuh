/* lookback.cuh -- single-pass prefix over tiles: each tile adds up what the tiles
 * before it have published, instead of waiting for a pass of its own (Merrill and
 * Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
 *
 * Two orders of adding up. tile_look_back() takes the nearest prefix there is:
 * for operations whose result does not depend on the order (integers, minimum,
 * maximum). tile_chain_before() has one fixed order for each tile, whatever was
 * published when: for floating point and for what the caller wrote.
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
  mark_prefix = 2,  /* the total of all tiles up to this one */
  mark_reset = 3    /* the tile's own total, and nothing before it matters: a
                       segment begins inside it */
};

/* Nanoseconds to sleep between two looks at words that are not there yet: a small
 * part of the way to them and back. */
#ifndef KILN_BACKOFF
#define KILN_BACKOFF 20
#endif

__device__ __forceinline__ void tile_pause()
{
#if KILN_BACKOFF > 0 && KILN_ARCH >= 70
  __nanosleep(KILN_BACKOFF);
#endif
}

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

/* A tile's words as they were found. */
template <class T> struct tile_seen {
  unsigned long long word[tile_words<T>::count];
};

template <class T>
__device__ __forceinline__ tile_seen<T>
tile_look(const unsigned long long *words, unsigned long long tile)
{
  constexpr unsigned n = tile_words<T>::count;
  tile_seen<T> seen;

#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    seen.word[k] = word_load(words + tile * n + k);
  return seen;
}

/* Their state, and the value if there is one. A value of several words counts
 * only when all carry the same mark. */
template <class T>
__device__ __forceinline__ unsigned tile_read(tile_seen<T> seen, unsigned epoch,
                                              T *value)
{
  constexpr unsigned n = tile_words<T>::count;
  const unsigned mark = static_cast<unsigned>(seen.word[0] >> 32);
  unsigned part[n];
  bool whole = true;

#pragma unroll
  for (unsigned k = 0; k < n; ++k) {
    part[k] = static_cast<unsigned>(seen.word[k]);
    whole = whole && seen.word[k] >> 32 == mark;
  }
  memcpy(value, part, sizeof *value);
  return whole && mark >> 2 == epoch ? mark & 3u : 0;
}

/* What a tile has published, at once. */
template <class T>
__device__ __forceinline__ unsigned tile_peek(const unsigned long long *words,
                                              unsigned long long tile,
                                              unsigned epoch, T *value)
{
  return tile_read(tile_look<T>(words, tile), epoch, value);
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

    for (;;) {
      if (state == 0)
        state = tile_peek(words, end - distance, epoch, &value);
      if (warp_all(state != 0))
        break;
      tile_pause();
    }
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

/* ---- The fixed order -------------------------------------------------------------
 * Tiles form groups of 32 * each. A group's total is one fold of its tiles: each
 * lane's own, then a tree over the lanes. The prefix at its start is the chain of
 * the totals before it, from the left, and a tile's prefix is its group's with
 * the fold of the group's tiles before it. Only the last tile of a group
 * publishes a prefix, the next group's; until it has, others get the same bits
 * from the totals.
 *
 * For one whole warp, which needs no part in the tiles themselves: what it looks
 * for does not depend on its own tile, so it may start before that is loaded.
 *
 *   each    tiles that a lane looks at at once: 1, 2, 4 or 8
 *   resets  whether tiles may publish mark_reset */
template <unsigned each, bool resets, class T, class Op> struct tile_chain {
  enum : unsigned { size = 32 * each }; /* tiles of a group */

  unsigned long long *words;
  unsigned epoch;
  Op op;
  T neutral;
  unsigned long long known; /* the group up to which `prefix` goes */
  T prefix;

  /* `start` is what everything begins with. */
  __device__ __forceinline__ tile_chain(unsigned long long *all,
                                        unsigned launch, Op fold, T nothing,
                                        T start)
      : words(all), epoch(launch), op(fold), neutral(nothing), known(0),
        prefix(start)
  {
  }

  /* The fold over the first n tiles of a group, as soon as they are there; or the
   * prefix behind the group (n is `size` then), if that is there first or
   * `only_prefix`. Tells which: mark_partial, mark_reset (from the last reset
   * on) or mark_prefix. */
  __device__ __forceinline__ unsigned row(unsigned long long group, unsigned n,
                                          bool only_prefix, T *out) const
  {
    const unsigned long long first = group * size + lane() * each;
    tile_seen<T> seen[each];
    unsigned state[each], heads = 0;
    T value[each], sum;
    bool reset = false;

#pragma unroll
    for (unsigned k = 0; k < each; ++k) {
      value[k] = neutral;
      state[k] =
          lane() * each + k < n ? 0u : static_cast<unsigned>(mark_partial);
    }
    for (;;) {
      bool ready = true;

#pragma unroll
      for (unsigned k = 0; k < each; ++k)
        if (state[k] == 0)
          seen[k] = tile_look<T>(words, first + k);
#pragma unroll
      for (unsigned k = 0; k < each; ++k)
        if (state[k] == 0)
          state[k] = tile_read(seen[k], epoch, &value[k]);
#pragma unroll
      for (unsigned k = 0; k < each; ++k)
        ready = ready && state[k] != 0;
      if (warp_ballot(state[each - 1] == mark_prefix) >> 31 != 0) {
        *out = warp_broadcast(value[each - 1], 31);
        return mark_prefix;
      }
      if (only_prefix && state[each - 1] == mark_partial)
        state[each - 1] = 0; /* look again */
      if (warp_all(ready) && !only_prefix)
        break;
      tile_pause();
    }
    sum = value[0];
    if (resets)
      reset = state[0] == mark_reset;
#pragma unroll
    for (unsigned k = 1; k < each; ++k) {
      const bool here = resets && state[k] == mark_reset;

      sum = here ? value[k] : op(sum, value[k]);
      reset = reset || here;
    }
    if (resets) {
      heads = warp_ballot(reset);
      if (heads != 0 && lane() < 31 - static_cast<unsigned>(__clz(heads)))
        sum = neutral;
    }
    *out = warp_reduce(sum, op);
    return heads != 0 ? mark_reset : mark_partial;
  }

  /* The fold over what everything starts with and all tiles before `tile`, in
   * every lane. Tiles must come in ascending order. For the last tile of a group
   * it waits for that tile's own total and publishes the next group's prefix:
   * whoever publishes the total must not wait for this. */
  __device__ __forceinline__ T before(unsigned long long tile)
  {
    const unsigned long long group = tile / size;
    const unsigned place = static_cast<unsigned>(tile % size);
    unsigned long long g = group;
    unsigned n_links = 0;
    T link = neutral; /* lane k: total of group (group - 1 - k) */
    T result = prefix, found;
    enum { links, part, whole } stage = g > known ? links : part;

    if (stage == part && place == 0)
      return result; /* size is 32 at least: a first tile is not a last */
    for (;;) {
      const unsigned n = stage == part ? place : static_cast<unsigned>(size);
      const unsigned what = row(stage == links ? --g : group, n,
                                stage == links && n_links == warp_size, &found);

      if (stage == whole) {
        if (lane() == 0 && what != mark_prefix)
          tile_publish(words, tile,
                       what == mark_reset ? found : op(prefix, found),
                       mark_of(epoch, mark_prefix));
        return result;
      }
      if (stage == part) {
        result = what == mark_reset ? found : op(prefix, found);
        if (place != size - 1)
          return result;
        stage = whole;
        continue;
      }
      if (what == mark_partial) {
        if (lane() == n_links)
          link = found;
        ++n_links;
        if (g > known)
          continue;
      } else {
        prefix = found;
      }
#pragma unroll 1
      while (n_links > 0)
        prefix = op(prefix, warp_broadcast(link, --n_links));
      known = group;
      result = prefix;
      if (place == 0)
        return result;
      stage = part;
    }
  }
};

/* ---- Tickets -------------------------------------------------------------------------
 * For blocks that take tiles one after the other: whoever has a ticket runs, so
 * tiles of lower tickets may be waited for. By one thread. */
__device__ __forceinline__ unsigned tile_ticket(unsigned long long *word,
                                                unsigned epoch)
{
  const unsigned long long none =
      static_cast<unsigned long long>(mark_of(epoch, mark_partial)) << 32;
  const unsigned long long seen = word_load(word);

  if (seen >> 34 != epoch && atomicCAS(word, seen, none + 1) == seen)
    return 0;
  return static_cast<unsigned>(atomicAdd(word, 1ull));
}

/* The same for a block that has had one. */
__device__ __forceinline__ unsigned tile_next_ticket(unsigned long long *word)
{
  return static_cast<unsigned>(atomicAdd(word, 1ull));
}

} // namespace kiln

#endif
