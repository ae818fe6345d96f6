/* compact.cuh -- stream compaction, on which select, partition and run_length are
 * built: a tile's elements in registers, their ranks among the kept ones, the counts
 * of the tiles before, and coalesced stores from shared memory.
 *
 * A tile has block * vectors * width elements. Each warp owns one contiguous stretch
 * of it and reads vectors of `width` elements side by side: element e of vector k of
 * a lane is at place (k * 32 + lane) * width + e of the stretch. The elements of a
 * thread have slots k * width + e, at most 32 of them, so a mask has one bit each.
 *
 * Ranking costs one warp scan per word and not per element: the number of kept
 * elements of a vector needs few bits, so one word holds those of several vectors. */
#ifndef KILN_COMPACT_CUH
#define KILN_COMPACT_CUH

#include <kiln/look_back.cuh>
#include <kiln/user.cuh>

namespace kiln
{

/* ---- A tile -------------------------------------------------------------- */

template <unsigned block, unsigned vectors, unsigned width> struct tile_shape {
  enum : unsigned {
    items = vectors * width,
    warps = block / warp_size,
    size = block * items
  };
  static_assert(items <= 32, "a thread has 32 elements at most");

  /* Place in the tile of the first element of vector k. */
  static __device__ __forceinline__ unsigned place(unsigned k)
  {
    return warp() * (warp_size * items) + (k * warp_size + lane()) * width;
  }
};

/* Calls take(slot, p, e, i) for each of the thread's elements that exist:
 * element e of p is the one, and element 0 of p is element i of the input. In a
 * whole tile, all loads are in flight before the first call. `valid` is the
 * number of elements from `first` on, at least 1. */
template <class Shape, unsigned vectors, unsigned width, class F>
__device__ __forceinline__ void tile_load(const user::args &in, index first,
                                          unsigned valid, F take)
{
  if (valid >= Shape::size) {
    user::vector<width> p[vectors];

#pragma unroll
    for (unsigned k = 0; k < vectors; ++k)
      user::load_inputs(in, first + Shape::place(k), p[k]);
#pragma unroll
    for (unsigned k = 0; k < vectors; ++k)
#pragma unroll
      for (unsigned e = 0; e < width; ++e)
        take(k * width + e, p[k], e, first + Shape::place(k));
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < vectors; ++k)
#pragma unroll
    for (unsigned e = 0; e < width; ++e)
      if (Shape::place(k) + e < valid) {
        user::vector<1> one;

        user::load_inputs(in, first + Shape::place(k) + e, one);
        take(k * width + e, one, 0, first + Shape::place(k) + e);
      }
}

/* The bit of a slot in a mask, or 0. */
__device__ __forceinline__ unsigned slot_bit(unsigned slot, bool set)
{
  return set ? 1u << slot : 0u;
}

/* ---- Ranks --------------------------------------------------------------- */

__device__ constexpr unsigned bits_for(unsigned most)
{
  return most == 0 ? 0 : 1 + bits_for(most / 2);
}

/* Ranks marked elements, given a mask with one bit per slot. before[k] becomes
 * the number of marked elements of the warp's stretch before this lane's vector
 * k. Returns the number in the whole stretch, in every lane. */
template <unsigned vectors, unsigned width>
__device__ __forceinline__ unsigned warp_ranks(unsigned mask,
                                               unsigned (&before)[vectors])
{
  constexpr unsigned bits = bits_for(warp_size * width);
  constexpr unsigned per_word = 32 / bits;
  constexpr unsigned words = (vectors + per_word - 1) / per_word;
  constexpr unsigned field = (1u << bits) - 1, vector_field = (1u << width) - 1;
  unsigned total = 0;

#pragma unroll
  for (unsigned w = 0; w < words; ++w) {
    unsigned mine = 0, upto, all;

#pragma unroll
    for (unsigned f = 0; f < per_word; ++f)
      if (w * per_word + f < vectors)
        mine |= static_cast<unsigned>(
                    __popc(mask >> (w * per_word + f) * width & vector_field))
                << f * bits;
    upto = warp_scan_inclusive(mine, sum{});
    all = warp_broadcast(upto, warp_size - 1);
    upto -= mine;
#pragma unroll
    for (unsigned f = 0; f < per_word; ++f)
      if (w * per_word + f < vectors) {
        before[w * per_word + f] = total + (upto >> f * bits & field);
        total += all >> f * bits & field;
      }
  }
  return total;
}

/* Given one count per warp, returns the sum over the warps before this one and
 * sets `total` to the sum over all. Contains one barrier. `storage` is in
 * shared memory; reusing it needs another barrier. */
template <unsigned warps>
__device__ __forceinline__ unsigned
warps_before(unsigned count, unsigned (&storage)[warps], unsigned &total)
{
  unsigned other;

  if (lane() == 0)
    storage[warp()] = count;
  __syncthreads();
  other = lane() < warps ? storage[lane()] : 0;
  total = warp_reduce(other, sum{});
  return warp_reduce(lane() < warp() ? other : 0u, sum{});
}

/* ---- Counts of the tiles before ------------------------------------------ */

/* Returns the sum over all tiles before `tile` (> 0), in every lane. One whole
 * warp calls it. T is any type with operator+ for which T{} is 0. Each step
 * reads window * 32 descriptors at once, the nearest one in lane 0, and waits
 * only for those up to the first one that holds a prefix. */
template <unsigned window, class T>
__device__ __forceinline__ T count_look_back(const unsigned long long *words,
                                             index tile, unsigned epoch)
{
  T before{};

  for (index end = tile;; end -= window * warp_size) {
    unsigned state[window];
    T value[window];

#pragma unroll
    for (unsigned w = 0; w < window; ++w) {
      const index distance = w * warp_size + lane() + 1;

      value[w] = T{};
      state[w] = end < distance
                     ? static_cast<unsigned>(status_prefix)
                     : tile_peek(words, end - distance, epoch, &value[w]);
    }
#pragma unroll
    for (unsigned w = 0; w < window; ++w) {
      unsigned known, wanted;

      for (;;) {
        known = warp_ballot(state[w] == status_prefix);
        /* The lanes up to the lowest set bit; all lanes if none is set. */
        wanted = known ^ (known - 1);
        if ((warp_ballot(state[w] == 0) & wanted) == 0)
          break;
        tile_pause();
        if (state[w] == 0)
          state[w] = tile_peek(words, end - (w * warp_size + lane() + 1), epoch,
                               &value[w]);
      }
      before =
          before +
          warp_reduce((wanted >> lane() & 1u) != 0 ? value[w] : T{}, sum{});
      if (known != 0)
        return before;
    }
  }
}

/* Returns the reduction over what n blocks have published, in every lane. One
 * whole warp calls it. op must commute. */
template <class T, class Op>
__device__ __forceinline__ T count_gather(const unsigned long long *words,
                                          index from, unsigned n,
                                          unsigned epoch, Op op, T identity)
{
  T total = identity;

  for (unsigned first = 0; first < n; first += warp_size) {
    const unsigned k = first + lane();
    unsigned state = k < n ? 0 : static_cast<unsigned>(status_prefix);
    T value = identity;

    for (;;) {
      if (state == 0)
        state = tile_peek(words, from + k, epoch, &value);
      if (warp_all(state != 0)) /* all lanes leave the loop together */
        break;
      tile_pause();
    }
    total = op(total, value);
  }
  return warp_reduce(total, op);
}

/* Two counts that are added together. */
template <class T> struct count_pair {
  T first, second;

  __device__ __forceinline__ count_pair operator+(const count_pair &b) const
  {
    return {static_cast<T>(first + b.first), static_cast<T>(second + b.second)};
  }
};

/* ---- Stores -------------------------------------------------------------- */

/* Calls f(j) for j < n, spread over the block such that each warp writes whole
 * lines of 128 bytes if element 0 is at `to`. */
template <unsigned block, class T, class F>
__device__ __forceinline__ void along_lines(const T *to, unsigned n, F f)
{
  const unsigned skew =
      static_cast<unsigned>(reinterpret_cast<size_t>(to) / sizeof(T)) %
      (128 / sizeof(T));

#pragma unroll 4
  for (unsigned j = thread(); j < n + skew; j += block)
    if (j >= skew)
      f(j - skew);
}

/* Copies n elements from shared memory. It may read bytes before them in the
 * same 4-byte word. Small elements are moved in words of 4 bytes. */
template <unsigned block, unsigned size> struct run_copier {
  template <class T>
  static __device__ __forceinline__ void copy(T *to, const T *from, unsigned n)
  {
    const unsigned past =
        static_cast<unsigned>(reinterpret_cast<size_t>(to) % 4);
    unsigned *words = reinterpret_cast<unsigned *>(
        reinterpret_cast<unsigned char *>(to) - past);
    const unsigned skip =
        static_cast<unsigned>(reinterpret_cast<size_t>(from) % 4);
    const unsigned *source = reinterpret_cast<const unsigned *>(
        reinterpret_cast<const unsigned char *>(from) - skip);
    const unsigned end = past + n * size; /* bytes from `words` on */

    along_lines<block>(words, (end + 3) / 4, [&](unsigned w) {
      const unsigned at = w * 4 - past + skip; /* its first byte in source */

      if (w * 4 >= past && w * 4 + 4 <= end &&
          (at % 4 == 0 || (at | 3u) + 5 <= skip + n * size)) {
        words[w] = at % 4 == 0
                       ? source[at / 4]
                       : __funnelshift_r(source[at / 4], source[at / 4 + 1],
                                         at % 4 * 8);
        return;
      }
      for (unsigned b = w * 4; b < w * 4 + 4; b += size)
        if (b >= past && b < end)
          to[(b - past) / size] = from[(b - past) / size];
    });
  }
};

template <unsigned block> struct run_copier<block, 4> {
  template <class T>
  static __device__ __forceinline__ void copy(T *to, const T *from, unsigned n)
  {
    along_lines<block>(to, n, [&](unsigned j) { to[j] = from[j]; });
  }
};

template <unsigned block> struct run_copier<block, 8> {
  template <class T>
  static __device__ __forceinline__ void copy(T *to, const T *from, unsigned n)
  {
    along_lines<block>(to, n, [&](unsigned j) { to[j] = from[j]; });
  }
};

template <unsigned block, class T>
__device__ __forceinline__ void copy_run(T *to, const T *from, unsigned n)
{
  run_copier<block, sizeof(T)>::copy(to, from, n);
}

} // namespace kiln

#endif
