/* look_back.cuh -- single-pass prefix over tiles by decoupled look-back (Merrill and
 * Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
 *
 * Problem: each tile needs the reduction over all preceding tiles. A separate pass that
 * computes these prefixes would read the input twice.
 * Idea: each tile publishes its total. Then it combines the totals of the preceding
 * tiles, back to the nearest tile that has already published its prefix. Finally the
 * tile publishes its own prefix.
 *
 * A tile descriptor consists of 64-bit words, one per 32 bits of the value. The upper
 * half of a word is a tag, epoch << 2 | status, and the lower half is payload. A 64-bit
 * store is atomic, so neither fences nor flags are needed. A word with a different epoch
 * counts as empty, so no descriptor has to be cleared between launches.
 * Invariant: a tile waits only for tiles of a lower index, and blocks start in the
 * order of their index. So every tile that another tile waits for is running or done.
 *
 * There are two orders of combination. tile_look_back() combines with the nearest
 * published prefix. It is for operations whose result does not depend on the order, such
 * as integer sums, minimum and maximum. tile_chain has one fixed order per tile. It is
 * for floating-point sums and for the user's operations. */
#ifndef KILN_LOOK_BACK_CUH
#define KILN_LOOK_BACK_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

enum : unsigned {
  status_partial = 1, /* the value of the descriptor is the total of the tile */
  /* The value of the descriptor is the reduction over tiles 0 to this tile. */
  status_prefix = 2,
  /* A segment starts inside the tile. The value is the tile's total from that
   * start on, and the preceding tiles do not affect later tiles. */
  status_reset = 3
};

/* Nanoseconds between two polls of descriptors that are not published yet. The
 * default is a small part of the latency of a load from memory. */
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

/* Stores a value with the tag `mark` (epoch and status) in the descriptor of
 * `tile`. One thread calls this function. `words` points to the descriptor of
 * tile 0. */
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

/* The words of one tile descriptor, as one thread has read them. */
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

/* Returns the status of a descriptor, and its value in *value. Returns 0 if the
 * descriptor is empty, which leaves *value undefined. A descriptor of several
 * words counts as empty unless all words have the same tag. */
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

/* Reads the descriptor of `tile` once, without waiting. Returns the status, and
 * the value in *value, as descriptor_read() does. */
template <class T>
__device__ __forceinline__ unsigned tile_peek(const unsigned long long *words,
                                              unsigned long long tile,
                                              unsigned epoch, T *value)
{
  return descriptor_read(descriptor_load<T>(words, tile), epoch, value);
}

/* Waits for the tiles before `tile` and returns their reduction in every lane.
 * `tile` is greater than 0. One whole warp calls the function. Each step reads
 * 32 descriptors. Lane 31 reads the nearest tile, which keeps the operands in
 * order. */
template <class T, class Op>
__device__ __forceinline__ T tile_look_back(const unsigned long long *words,
                                            unsigned long long tile,
                                            unsigned epoch, Op op, T identity)
{
  T before = identity;
  /* The tiles below `end` are not part of `before` yet. */
  unsigned long long end = tile;

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

/* ---- Look-back in a fixed order -------------------------------------
 * `each` consecutive tiles form a group. The value of a group is the reduction
 * of the totals of its tiles, from left to right. The prefix of a group is the
 * reduction of the values of the preceding groups, from left to right. The last
 * tile of a group publishes the prefix of the next group.
 * Invariant: the bits of a prefix do not depend on the published prefix that a
 * look-back starts from. Every look-back combines the groups after that prefix
 * in the same order.
 * One whole warp calls before() after the total of its tile is published. An
 * earlier call would poll in vain, because preceding tiles publish at about the
 * same time, and polls load the memory system. The last lane reads the group
 * that contains the tile. Each other lane reads one preceding group, so a prefix
 * advances by 31 groups per step.
 * `each` is also the number of descriptors that a lane reads at a time. It is 1,
 * 2, 4 or 8. `resets` states whether tiles may publish status_reset. */

/* any_order<Op, T>::value states whether the result of operation Op on type T is
 * independent of the order of the operands. */
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

/* Loads n consecutive 64-bit words. If n is even, each access loads two words,
 * and `from` must be a multiple of 16. */
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

  unsigned long long *words; /* tile descriptors, aligned to 16 bytes */
  unsigned epoch;
  Op op;
  T identity, start; /* `start` is the initial value of the scan */

  __device__ __forceinline__ tile_chain(unsigned long long *all,
                                        unsigned launch, Op reduce_group,
                                        T nothing, T first)
      : words(all), epoch(launch), op(reduce_group), identity(nothing),
        start(first)
  {
  }

  /* The descriptors of one group of tiles, as one lane has read them. */
  struct view {
    unsigned state[each];
    T value[each];
    unsigned n; /* number of tiles of the group that precede the calling tile */

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

  /* Returns the reduction over the first v.n tiles of a group. If one of these
   * tiles is a reset, the reduction starts at the last reset, and *reset is
   * true. */
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

  /* Returns the reduction of x and of the values `mine` that lanes `first` to
   * own_lane - 1 pass, in the order of the lanes. */
  __device__ __forceinline__ T behind(T x, T mine, unsigned first) const
  {
    /* Number of shuffles that are in flight at the same time. */
    enum { batch = 4 };

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

  /* Waits until one lane's group has a known prefix and all later groups of the
   * warp are published. Returns the last lane whose group has a known prefix.
   * The prefix is known if it is published, if a tile of the group is a reset,
   * or if the group precedes tile 0. */
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

  /* Returns, in every lane, the reduction over `start` and all tiles before
   * `tile`. `own` is the total of `tile`. `own_reset` states whether the tile
   * has published its total as a reset. If `tile` is the last tile of a group,
   * the function also publishes the prefix of the next group. */
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
      /* The operands keep the order of the tiles. The group is reduced first,
       * and the result is then combined with the prefix of the group. */
      /* True if the prefix of the group is not needed, because a tile of the
       * group is a reset. */
      const bool alone = last == own_lane;

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
