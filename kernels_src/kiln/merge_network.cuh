/* merge_network.cuh -- merges two sorted runs by one warp without data-dependent control
 * flow, for keys of 4 bytes.
 *
 * Problem: if each thread merges its part element by element, then every element costs a
 * chain of a comparison, two selections and a load from shared memory. The loads of a warp
 * hit random banks, and each thread first searches for its part.
 * Idea: a warp takes a window of 1,024 outputs of the merge. The elements of a, ascending,
 * followed by those of b, descending, are a bitonic sequence, which ten stages of minima
 * and maxima sort (bitonic merge: Batcher, Sorting Networks and Their Applications, 1968).
 * A lane first holds every 32nd element. In that layout five stages combine registers of
 * one lane. The warp then exchanges the elements through shared memory, so that each lane
 * has 32 consecutive ones for the other five stages.
 * Invariant: before the stage of distance s, every group of 2 s elements is bitonic, and
 * all of its elements belong to the same 2 s positions of the result.
 * Cost: 10 instructions per element for the stages, and one conflict-free write and read
 * of shared memory. Only windows need a search, not threads. */
#ifndef KILN_MERGE_NETWORK_CUH
#define KILN_MERGE_NETWORK_CUH

#include <kiln/merge_path.cuh>
#include <kiln/order.cuh>

namespace kiln
{

/* A window has 32 elements per lane. The distance between the elements of
 * consecutive lanes in shared memory is network_row, so that vectors of eight
 * lanes are in different banks. network_words is the size of a warp's shared memory. */
enum : unsigned {
  network_items = 32,
  network_size = warp_size * network_items,
  network_row = network_items + 4,
  network_words = warp_size * network_row
};

/* Four consecutive elements, which one access moves. */
template <class T> struct alignas(4 * sizeof(T)) network_vector {
  T at[4];
};

/* The order of keys of 4 bytes. ordinal() maps the bits of a key to an unsigned integer
 * such that integers compare in the order of the keys, and element() maps it back.
 * For NaNs, which are all equal, ordinals have no meaning. */
template <class T> struct network_order;

template <> struct network_order<unsigned> {
  static __device__ __forceinline__ unsigned ordinal(unsigned bits)
  {
    return bits;
  }

  static __device__ __forceinline__ unsigned element(unsigned ordinal)
  {
    return ordinal;
  }

  static __device__ __forceinline__ bool is_nan(unsigned)
  {
    return false;
  }
};

template <> struct network_order<int> {
  static __device__ __forceinline__ unsigned ordinal(unsigned bits)
  {
    return bits ^ 0x80000000u;
  }

  static __device__ __forceinline__ int element(unsigned ordinal)
  {
    return static_cast<int>(ordinal ^ 0x80000000u);
  }

  static __device__ __forceinline__ bool is_nan(int)
  {
    return false;
  }
};

template <> struct network_order<float> {
  /* Returns all ones if the highest bit is set, otherwise 0. */
  static __device__ __forceinline__ unsigned sign(unsigned bits)
  {
    return static_cast<unsigned>(static_cast<int>(bits) >> 31);
  }

  static __device__ __forceinline__ unsigned ordinal(unsigned bits)
  {
    return bits ^ (sign(bits) | 0x80000000u);
  }

  static __device__ __forceinline__ float element(unsigned ordinal)
  {
    return __uint_as_float(ordinal ^ (~sign(ordinal) | 0x80000000u));
  }

  static __device__ __forceinline__ bool is_nan(float x)
  {
    return x != x;
  }
};

/* The outputs of a warp: the first n_a elements from a on, and the first n_b
 * elements from b on, which both are in shared memory. */
template <class T> struct network_window {
  const T *a, *b;
  unsigned n_a, n_b;
};

/* Loads a word of shared memory without a branch, from address a if `at` is less
 * than `end`, otherwise from address b. Sets `term` to term_a or term_b likewise. */
__device__ __forceinline__ unsigned network_either(int at, int end, unsigned a,
                                                   unsigned b, unsigned term_a,
                                                   unsigned term_b,
                                                   unsigned &term)
{
  unsigned word;

  asm volatile("{\n"
               ".reg .pred p;\n"
               "setp.lt.s32 p, %2, %3;\n"
               "@p ld.shared.u32 %0, [%4];\n"
               "@!p ld.shared.u32 %0, [%5];\n"
               "selp.u32 %1, %6, %7, p;\n"
               "}"
               : "=r"(word), "=r"(term)
               : "r"(at), "r"(end), "r"(a), "r"(b), "r"(term_a), "r"(term_b)
               : "memory");
  return word;
}

/* Loads the bitonic sequence of a window of network_size elements: element r * 32 +
 * lane becomes v[r]. key(x, term) converts the bits of an element to a key, where
 * term is key.of_a for elements of a, and key.of_b for those of b. */
template <class T, class K, class Key>
__device__ __forceinline__ void network_load(const network_window<T> &w,
                                             Key key, K (&v)[network_items])
{
  const int end = static_cast<int>(w.n_a) - static_cast<int>(lane());
  const unsigned a =
      static_cast<unsigned>(__cvta_generic_to_shared(w.a + lane()));
  const unsigned b = static_cast<unsigned>(
      __cvta_generic_to_shared(w.b + (network_size - 1 - lane())));

#pragma unroll
  for (unsigned r = 0; r < network_items; ++r) {
    const unsigned at = r * warp_size;
    unsigned term;
    const unsigned x = network_either(static_cast<int>(at), end, a + 4 * at,
                                      b - 4 * at, key.of_a, key.of_b, term);

    v[r] = key(x, term);
  }
}

/* As network_load() for a window of any size. The keys `pad` are between those of
 * a and of b. */
template <class T, class K, class Key>
__device__ __forceinline__ void network_load_some(const network_window<T> &w,
                                                  K pad, Key key,
                                                  K (&v)[network_items])
{
#pragma unroll
  for (unsigned r = 0; r < network_items; ++r) {
    const unsigned at = r * warp_size + lane(), back = network_size - 1 - at;
    T x{};
    unsigned word;

    if (at < w.n_a)
      x = w.a[at];
    else if (back < w.n_b)
      x = w.b[back];
    memcpy(&word, &x, sizeof word);
    v[r] = at < w.n_a     ? key(word, key.of_a)
           : back < w.n_b ? key(word, key.of_b)
                          : pad;
  }
}

/* The five stages that compare registers of one lane. */
template <class K>
__device__ __forceinline__ void network_stages(K (&v)[network_items])
{
#pragma unroll
  for (unsigned step = network_items / 2; step > 0; step /= 2)
#pragma unroll
    for (unsigned r = 0; r < network_items; ++r)
      if ((r & step) == 0) {
        const K low = v[r], high = v[r + step];

        v[r] = high < low ? high : low;
        v[r + step] = high < low ? low : high;
      }
}

/* Element e of a window has this position in a warp's shared memory. */
__device__ __forceinline__ unsigned network_place(unsigned e)
{
  return e / network_items * network_row + e % network_items;
}

/* Reads the elements lane * 32 + r, which become v[r], after the writes of all
 * lanes of the warp. */
template <class K>
__device__ __forceinline__ void network_read(K (&v)[network_items],
                                             const K *words)
{
  const network_vector<K> *const row =
      reinterpret_cast<const network_vector<K> *>(words + network_row * lane());

  warp_sync();
#pragma unroll
  for (unsigned k = 0; k < network_items / 4; ++k) {
    const network_vector<K> four = row[k];

#pragma unroll
    for (unsigned e = 0; e < 4; ++e)
      v[4 * k + e] = four.at[e];
  }
}

/* Sorts a bitonic sequence in the layout of network_load(). Afterwards v[r] is
 * element lane * 32 + r. `words` has network_words elements of shared memory and
 * an alignment of 16 bytes; it belongs to the calling warp. */
template <class K>
__device__ __forceinline__ void network_sort(K (&v)[network_items], K *words)
{
  network_stages(v);
#pragma unroll
  for (unsigned r = 0; r < network_items; ++r)
    words[r * network_row + lane()] = v[r];
  network_read(v, words);
  network_stages(v);
}

/* Writes the elements lane * 32 + r, given as v[r]. All lanes can read them
 * afterwards. */
template <class K>
__device__ __forceinline__ void network_write(const K (&v)[network_items],
                                              K *words)
{
  network_vector<K> *const row =
      reinterpret_cast<network_vector<K> *>(words + lane() * network_row);

#pragma unroll
  for (unsigned k = 0; k < network_items / 4; ++k)
    row[k] = {{v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]}};
  warp_sync();
}

/* ---- Tiles and their windows --------------------------------------------- */

/* A tile of the merge: elements a to a + n_a - 1 of one sequence, and elements b
 * to b + n_b - 1 of the other one. near_a and near_b are their copies in shared
 * memory. */
template <class T> struct network_tile {
  index a, b;
  unsigned n_a, n_b;
  const T *near_a, *near_b;
};

/* Returns tile number `tile`. split[k] is the number of elements of a before tile k.
 * Splits that contradict each other, which needs sequences that are not sorted,
 * give another tile of the same size. */
template <unsigned tile_size, class T>
__device__ __forceinline__ network_tile<T>
network_find(unsigned tile, index m, index n, const index *split)
{
  const index first = static_cast<index>(tile) * tile_size;
  const index from = split[tile], to = split[tile + 1];
  const index left = m + n - first;
  const unsigned size =
      static_cast<unsigned>(left < tile_size ? left : tile_size);
  const index wanted = to > from ? to - from : 0;
  const unsigned n_a = static_cast<unsigned>(wanted < size ? wanted : size);

  return {from, first - from, n_a, size - n_a, nullptr, nullptr};
}

/* Copies n consecutive elements of 4 bytes to shared memory, by `threads` threads
 * with the numbers `own`. Both addresses have the same remainder modulo 16. */
template <unsigned threads, class T>
__device__ __forceinline__ void network_copy(T *to, const T *from, unsigned n,
                                             unsigned own)
{
  const unsigned place = static_cast<unsigned>(reinterpret_cast<size_t>(from));
  const unsigned head = least(n, (0u - place / 4) % 4);
  const unsigned vectors = (n - head) / 4, tail = head + 4 * vectors;

  if (own < head)
    stage_bytes<4>(to + own, from + own);
  if (own < n - tail)
    stage_bytes<4>(to + tail + own, from + tail + own);
#pragma unroll 2
  for (unsigned k = own; k < vectors; k += threads)
    stage_async(to + head + 4 * k, from + head + 4 * k);
}

/* Copies a tile to shared memory; one half of the block copies the elements of a,
 * the other half those of b. With `margin`, the elements of each sequence before
 * the tile and the element of b behind it are copied as well, if they exist.
 * `words` has space for the tile and 9 elements. */
template <unsigned block, bool margin, class T>
__device__ __forceinline__ void network_stage(network_tile<T> &t, const T *a,
                                              const T *b, index n, T *words)
{
  const unsigned before_a = margin && t.a > 0 ? 1 : 0;
  const unsigned before_b = margin && t.b > 0 ? 1 : 0;
  const unsigned after_b = margin && t.b + t.n_b < n ? 1 : 0;
  const unsigned n_a = before_a + t.n_a, n_b = before_b + t.n_b + after_b;
  const T *const from_a = a + t.a - before_a, *const from_b =
                                                  b + t.b - before_b;
  T *const to_a = words + stage_place(from_a, 0);
  T *const to_b =
      words + stage_place(from_b, static_cast<unsigned>(to_a - words) + n_a);
  const bool second = thread() >= block / 2;

  network_copy<block / 2>(second ? to_b : to_a, second ? from_b : from_a,
                          second ? n_b : n_a, thread() % (block / 2));
  t.near_a = to_a + before_a;
  t.near_b = to_b + before_b;
  stage_wait();
  __syncthreads();
}

/* Returns the window of the calling warp in a tile. All warps of the block call
 * the function. `first_a` is in shared memory, and has an element per warp and one
 * more. */
template <class T, unsigned ends>
__device__ __forceinline__ network_window<T>
network_part(const network_tile<T> &t, unsigned (&first_a)[ends])
{
  const unsigned size = t.n_a + t.n_b;
  const unsigned begin = least(warp() * network_size, size);
  const unsigned end = least(begin + network_size, size);
  const unsigned split = group_search<warp_size>(
      begin > t.n_b ? begin - t.n_b : 0, least(begin, t.n_a), [&](unsigned i) {
        return !comes_before(t.near_b[begin - 1 - i], t.near_a[i]);
      });
  unsigned next;

  if (lane() == 0) {
    first_a[warp()] = split;
    if (warp() == 0)
      first_a[ends - 1] = t.n_a;
  }
  __syncthreads();
  next = first_a[warp() + 1];
  next = next < split ? split : least(next, split + (end - begin));
  return {t.near_a + split, t.near_b + (begin - split), next - split,
          end - begin - (next - split)};
}

} // namespace kiln

#endif
