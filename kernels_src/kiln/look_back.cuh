/* look_back.cuh -- single-pass prefix over tiles: each tile adds up what the tiles
 * before it have published, instead of waiting for a pass of its own (Merrill and
 * Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
 *
 * Two orders of adding up. tile_look_back() takes the nearest prefix there is
 * and what was published behind it as it comes: for operations whose result does
 * not depend on the order (integers, minimum, maximum). tile_chain has one fixed
 * order for each tile: for floating point and for what the caller wrote.
 *
 * A tile's value travels in mark words, one for each 32 bits of it: the mark,
 * epoch and state, in the upper half, payload in the lower. A 64-bit word arrives
 * whole, so neither fences nor flags are needed. Words that hold another epoch
 * count as empty: nothing is cleared between launches. A tile waits for tiles of
 * a lower index only, and blocks start in the order of their index. */
#ifndef KILN_LOOK_BACK_CUH
#define KILN_LOOK_BACK_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

enum : unsigned {
  status_partial = 1, /* the tile's own total */
  status_prefix = 2,  /* the total of all tiles up to this one */
  status_reset = 3    /* the tile's own total, and nothing before it matters: a
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

__device__ __forceinline__ unsigned descriptor_tag(unsigned epoch,
                                                   unsigned state)
{
  return epoch << 2 | state;
}

template <class T> struct descriptor_words {
  enum : unsigned { count = (sizeof(T) + 3) / 4 };
};

/* Publish a value; by one thread. `words` is the start of all tiles' words. */
template <class T>
__device__ __forceinline__ void tile_publish(unsigned long long *words,
                                             unsigned long long tile, T value,
                                             unsigned mark)
{
  constexpr unsigned n = descriptor_words<T>::count;
  unsigned payload[n] = {};

  memcpy(payload, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    word_store(words + tile * n + k,
               static_cast<unsigned long long>(mark) << 32 | payload[k]);
}

/* A tile's words as they were found. */
template <class T> struct tile_descriptor {
  unsigned long long word[descriptor_words<T>::count];
};

template <class T>
__device__ __forceinline__ tile_descriptor<T>
descriptor_load(const unsigned long long *words, unsigned long long tile)
{
  constexpr unsigned n = descriptor_words<T>::count;
  tile_descriptor<T> seen;

#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    seen.word[k] = word_load(words + tile * n + k);
  return seen;
}

/* Their state, and the value if there is one. A value of several words counts
 * only when all carry the same mark. */
template <class T>
__device__ __forceinline__ unsigned descriptor_read(tile_descriptor<T> seen,
                                                    unsigned epoch, T *value)
{
  constexpr unsigned n = descriptor_words<T>::count;
  const unsigned mark = static_cast<unsigned>(seen.word[0] >> 32);
  unsigned payload[n];
  bool whole = true;

#pragma unroll
  for (unsigned k = 0; k < n; ++k) {
    payload[k] = static_cast<unsigned>(seen.word[k]);
    whole = whole && seen.word[k] >> 32 == mark;
  }
  memcpy(value, payload, sizeof *value);
  return whole && mark >> 2 == epoch ? mark & 3u : 0;
}

/* What a tile has published, at once. */
template <class T>
__device__ __forceinline__ unsigned tile_peek(const unsigned long long *words,
                                              unsigned long long tile,
                                              unsigned epoch, T *value)
{
  return descriptor_read(descriptor_load<T>(words, tile), epoch, value);
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
    unsigned state = exists ? 0 : static_cast<unsigned>(status_prefix);
    unsigned ready, first;

    for (;;) {
      if (state == 0)
        state = tile_peek(words, end - distance, epoch, &value);
      if (warp_all(state != 0))
        break;
      tile_pause();
    }
    ready = warp_ballot(state == status_prefix);
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
 * Tiles form groups of `each`. What is published of a group is its fold from the
 * left; what comes before a group is the fold of the groups before it from the
 * left. The last tile of a group publishes that, as the prefix of the next one.
 * So it does not matter which prefix is found: the groups behind it are added up
 * in the same order as its owner did, to the same bits.
 *
 * For one whole warp, once its own tile's total is published: before that the
 * tiles before it are not there either, and looks at what is not there take the
 * memory system's time. The last lane looks at the tile's own group, the others
 * at one each before it: prefixes go 31 groups at a step, as fast as a word is
 * written and seen.
 *
 *   each    tiles that a lane looks at at once: 1, 2, 4 or 8
 *   resets  whether tiles may publish status_reset */

/* Operations whose result does not depend on the order of the operands. */
template <class Op, class T> struct any_order {
  enum : bool { value = false };
};
#define KILN_ANY_ORDER(T)                                                      \
  template <> struct any_order<sum, T> {                                       \
    enum : bool { value = true };                                              \
  };                                                                           \
  template <> struct any_order<min, T> {                                       \
    enum : bool { value = true };                                              \
  };                                                                           \
  template <> struct any_order<max, T> {                                       \
    enum : bool { value = true };                                              \
  };
KILN_ANY_ORDER(int)
KILN_ANY_ORDER(unsigned)
KILN_ANY_ORDER(long long)
KILN_ANY_ORDER(unsigned long long)
#undef KILN_ANY_ORDER

/* n neighbours, two at a time if n is even: `from` lies on n words then. */
template <unsigned n>
__device__ __forceinline__ void words_load(const unsigned long long *from,
                                           unsigned long long (&to)[n])
{
#if KILN_ARCH >= 70
  enum { pairs = n / 2 * 2 * (n % 2 == 0) };
#else
  enum { pairs = 0 };
#endif

#pragma unroll
  for (unsigned k = 0; k < n; k += 2)
    if (k < pairs)
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(to[k]), "=l"(to[(k + 1) % n])
                   : "l"(__cvta_generic_to_global(from + k))
                   : "memory");
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    if (k >= pairs)
      to[k] = word_load(from + k);
}

template <unsigned each, bool resets, class T, class Op> struct tile_chain {
  enum : unsigned {
    own_lane = warp_size - 1,
    n_words = descriptor_words<T>::count
  };

  unsigned long long *words; /* on 16 bytes */
  unsigned epoch;
  Op op;
  T identity, start; /* `start` is what everything begins with */

  __device__ __forceinline__ tile_chain(unsigned long long *all,
                                        unsigned launch, Op reduce_group,
                                        T nothing, T first)
      : words(all), epoch(launch), op(reduce_group), identity(nothing),
        start(first)
  {
  }

  /* A lane's group as far as it is known. */
  struct view {
    unsigned state[each];
    T value[each];
    unsigned n; /* tiles of it that count: those before mine */

    __device__ __forceinline__ bool is_prefix() const
    {
      return state[each - 1] == status_prefix;
    }
    __device__ __forceinline__ bool is_there() const
    {
      bool valid = true;

#pragma unroll
      for (unsigned k = 0; k < each; ++k)
        valid = valid && state[k] != 0;
      return valid || is_prefix();
    }
  };

  /* The fold over the tiles that count, from the last reset on if there is one. */
  __device__ __forceinline__ T reduce_group(const view &v, bool *reset) const
  {
    T all = v.value[0];

    *reset = resets && v.n > 0 && v.state[0] == status_reset;
#pragma unroll
    for (unsigned k = 1; k < each; ++k)
      if (k < v.n) {
        const bool here = resets && v.state[k] == status_reset;

        all = here ? v.value[k] : op(all, v.value[k]);
        *reset = *reset || here;
      }
    return all;
  }

  /* `x`, then lanes from `first` up to the one before my own group's. */
  __device__ __forceinline__ T behind(T x, T mine, unsigned first) const
  {
    enum { batch = 4 }; /* shuffles on their way at once */

    if (any_order<Op, T>::value) {
      const bool counts = lane() >= first && lane() < own_lane;

      return op(x, warp_reduce(counts ? mine : identity, op));
    }
#pragma unroll 1
    for (unsigned i = first; i < own_lane; i += batch) {
      T value[batch];

#pragma unroll
      for (unsigned k = 0; k < batch; ++k)
        value[k] = warp_broadcast(mine, (i + k) % warp_size);
#pragma unroll
      for (unsigned k = 0; k < batch; ++k)
        if (i + k < own_lane)
          x = op(x, value[k]);
    }
    return x;
  }

  __device__ __forceinline__ void load(view &v, unsigned long long first) const
  {
    unsigned long long word[each * n_words];

    words_load(words + first * n_words, word);
#pragma unroll
    for (unsigned k = 0; k < each; ++k) {
      tile_descriptor<T> seen;

#pragma unroll
      for (unsigned i = 0; i < n_words; ++i)
        seen.word[i] = word[k * n_words + i];
      if (k < v.n)
        v.state[k] = descriptor_read(seen, epoch, &v.value[k]);
    }
  }

  /* Waits for what is needed of the groups in sight. Returns the last lane that
   * knows all before or at its group. */
  __device__ __forceinline__ unsigned look(view &v, long long group) const
  {
    unsigned known = 0;

#pragma unroll
    for (unsigned k = 0; k < each; ++k) {
      v.value[k] = identity;
      v.state[k] = k < v.n ? 0u : static_cast<unsigned>(status_partial);
    }
    for (;;) {
      bool reset = false;

      if (v.n > 0 &&
          (!v.is_there() || (known == 0 && v.n == each && !v.is_prefix())))
        load(v, static_cast<unsigned long long>(group) * each);
      if (resets)
#pragma unroll
        for (unsigned k = 0; k < each; ++k)
          reset = reset || (k < v.n && v.state[k] == status_reset);
      known =
          warp_ballot(group == -1 || v.is_prefix() || (reset && v.is_there()));
      if (known != 0) {
        const unsigned last = 31 - static_cast<unsigned>(__clz(known));

        if (warp_all(lane() < last || v.is_there()))
          return last;
      }
      tile_pause();
    }
  }

  /* The fold over what everything starts with and all tiles before `tile`, in
   * every lane; `own` is the total of `tile`, `own_reset` whether it was published
   * as a reset. For the last tile of a group it publishes the next one's prefix. */
  __device__ __forceinline__ T before(unsigned long long tile, T own,
                                      bool own_reset) const
  {
    const unsigned place = static_cast<unsigned>(tile % each);
    const long long group =
        static_cast<long long>(tile / each) - own_lane + lane();
    unsigned last;
    bool reset;
    T mine, x;
    view v;

    v.n = group < 0 ? 0 : lane() == own_lane ? place : each;
    last = look(v, group);
    mine = reduce_group(v, &reset);
    x = warp_broadcast(group == -1     ? start
                       : v.is_prefix() ? v.value[each - 1]
                                       : mine,
                       last);
    x = behind(x, mine, last + 1);
    if (lane() == own_lane) {
      /* as others add up my group: first by itself, then to what is before it */
      const bool alone = last == own_lane; /* begins with a reset of its own */

      if (place == each - 1) {
        const T group_total = own_reset || v.n == 0 ? own : op(mine, own);

        tile_publish(words, tile,
                     own_reset || alone ? group_total : op(x, group_total),
                     descriptor_tag(epoch, status_prefix));
      }
      if (v.n > 0 && !alone)
        x = op(x, mine);
    }
    return warp_broadcast(x, own_lane);
  }
};

} // namespace kiln

#endif
