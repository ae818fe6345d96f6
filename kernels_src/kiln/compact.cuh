/* compact.cuh -- stream compaction, the common code of select, partition, run_length and
 * reduce_by_key. It loads the elements of a tile, ranks the kept elements, adds the counts
 * of the preceding tiles, and stores from shared memory with coalesced accesses.
 *
 * A tile has block * vectors * width elements. Each warp reads one contiguous range of
 * the tile in vectors of `width` elements. Element e of vector k of a lane has index
 * (k * 32 + lane) * width + e in the warp's range. The elements of a thread are numbered
 * by slots, k * width + e. There are at most 32 slots, so a 32-bit mask has one bit per
 * slot.
 *
 * Ranking needs one warp scan per several vectors, not one per element. The number of
 * kept elements of a vector needs few bits, so one 32-bit word contains the numbers of
 * several vectors. */
#ifndef KILN_COMPACT_CUH
#define KILN_COMPACT_CUH

#include <kiln/look_back.cuh>
#include <kiln/user.cuh>

/* `count` is the type of the number of elements. `position` is the type of
 * counts and indices in tile descriptors. */
typedef unsigned long long count;
typedef kiln::unsigned_of<KILN_WIDE ? 8 : 4>::type position;

/* Launch bounds of a kernel. They limit its registers such that KILN_PER_SM
 * blocks are resident per SM. */
#if defined KILN_PER_SM && KILN_PER_SM > 0
#define KILN_BOUNDS __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
#else
#define KILN_BOUNDS __launch_bounds__(KILN_BLOCK)
#endif

/* Default definitions of the user's functions that select, find and run_length
 * call, so that these kernels can be compiled on their own. */
#if !KILN_GENERATED
namespace user
{
template <unsigned n>
static __device__ __forceinline__ bool
predicate_at(const args &, const vector<n> &p, unsigned e, index)
{
  return p.x0[e] > 0;
}

__device__ __forceinline__ bool equal(const args &, value a, value b)
{
  return a == b;
}
} // namespace user
#endif

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

  /* Returns the position in the tile of the first element of vector k. */
  static __device__ __forceinline__ unsigned place(unsigned k)
  {
    return warp() * (warp_size * items) + (k * warp_size + lane()) * width;
  }
};

/* Calls take(slot, p, e, i) for each existing element of the calling thread.
 * `slot` is the number of the element in the thread. The element is element e
 * of vector p, and element 0 of p is element i of the input. In a whole tile,
 * all loads are issued before the first call. `valid` is the number of input
 * elements from `first` on, at least 1. */
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

/* Returns a mask in which only the bit number `slot` is set, or 0 if `set` is
 * false. */
__device__ __forceinline__ unsigned slot_bit(unsigned slot, bool set)
{
  return set ? 1u << slot : 0u;
}

/* ---- Ranks --------------------------------------------------------------- */

__device__ constexpr unsigned bits_for(unsigned most)
{
  return most == 0 ? 0 : 1 + bits_for(most / 2);
}

/* Ranks the elements that `mask` marks. The mask has one bit per element of the
 * calling thread. before[k] becomes the number of marked elements of the warp
 * that precede vector k of the calling lane. Returns, in every lane, the number
 * of marked elements of the warp. */
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

/* Returns the sum of the counts of the warps below the calling warp, and sets
 * `total` to the sum over all warps of the block. Each warp passes one count.
 * Contains one barrier. `storage` is in shared memory. The caller needs another
 * barrier before it uses `storage` again. */
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

/* ---- Counts of the preceding tiles --------------------------------------- */

/* Returns, in every lane, the sum over all tiles before `tile`, which is greater
 * than 0. One whole warp calls the function. T is any type with operator+ for
 * which T{} is 0. Each step reads window * 32 descriptors; lane 0 reads the
 * nearest tile. A step waits only for the tiles between the nearest published
 * prefix and `tile`. */
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
        /* The mask contains the lanes up to the lowest lane that has read a
         * prefix. If no lane has read a prefix, the mask contains all lanes. */
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

/* Waits for the values that n blocks publish in n consecutive descriptors, the
 * first of which is `from`. Returns the reduction of the values in every lane.
 * One whole warp calls this function. The operation `op` must be commutative. */
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
      /* All lanes leave the loop in the same iteration. */
      if (warp_all(state != 0))
        break;
      tile_pause();
    }
    total = op(total, value);
  }
  return warp_reduce(total, op);
}

/* A pair of counts. The operators work member by member. */
template <class T> struct count_pair {
  T first, second;

  __device__ __forceinline__ count_pair operator+(const count_pair &b) const
  {
    return {static_cast<T>(first + b.first), static_cast<T>(second + b.second)};
  }
  __device__ __forceinline__ count_pair operator-(const count_pair &b) const
  {
    return {static_cast<T>(first - b.first), static_cast<T>(second - b.second)};
  }
};

/* ---- Stores -------------------------------------------------------------- */

/* Calls f(j) once for each j < n, where `threads` threads share the calls and `mine` is
 * the number of the calling thread. If f(j) writes element j of `to`, each warp writes
 * whole cache lines of 128 bytes. */
template <unsigned threads, class T, class F>
__device__ __forceinline__ void share_lines(const T *to, unsigned n,
                                            unsigned mine, F f)
{
  const unsigned skew =
      static_cast<unsigned>(reinterpret_cast<size_t>(to) / sizeof(T)) %
      (128 / sizeof(T));

#pragma unroll 4
  for (unsigned j = mine; j < n + skew; j += threads)
    if (j >= skew)
      f(j - skew);
}

/* Distributes the calls f(j) over the threads of the block. */
template <unsigned block, class T, class F>
__device__ __forceinline__ void along_lines(const T *to, unsigned n, F f)
{
  share_lines<block>(to, n, thread(), f);
}

/* Distributes the calls f(j) over the lanes of the warp. */
template <class T, class F>
__device__ __forceinline__ void warp_along_lines(const T *to, unsigned n, F f)
{
  share_lines<warp_size>(to, n, lane(), f);
}

/* Copies n elements from shared memory to global memory. Elements of 1 or 2
 * bytes are copied in words of 4 bytes. The copy may read bytes that precede the
 * first element in the same 4-byte word. */
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
    /* End of the destination `to`, as a byte offset from `words`. */
    const unsigned end = past + n * size;

    along_lines<block>(words, (end + 3) / 4, [&](unsigned w) {
      const unsigned at = w * 4 - past + skip; /* byte offset in `source` */

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

template <unsigned block> struct run_copier<block, 16> {
  template <class T>
  static __device__ __forceinline__ void copy(T *to, const T *from, unsigned n)
  {
    along_lines<block>(to, n, [&](unsigned j) { to[j] = from[j]; });
  }
};

/* The type in which copy_run() copies elements: the elements themselves if one
 * access moves an element, otherwise words that one access moves. */
template <class T, bool whole> struct copied_as {
  typedef T type;
};
template <class T> struct copied_as<T, false> {
  typedef typename word<element_access<T>()>::type type;
};

template <unsigned block, class T>
__device__ __forceinline__ void copy_run(T *to, const T *from, unsigned n)
{
  typedef typename copied_as<T, element_access<T>() == sizeof(T)>::type part;

  run_copier<block, sizeof(part)>::copy(
      reinterpret_cast<part *>(to), reinterpret_cast<const part *>(from),
      n * static_cast<unsigned>(sizeof(T) / sizeof(part)));
}

} // namespace kiln

#endif
