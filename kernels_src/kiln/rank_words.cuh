/* rank_words.cuh -- how blocks read the words of a selection: the keys of a row, or a list
 * of words. Visitors count words or list them.
 *
 * The file of the kernel defines the macros of rank_select.cuh, and also:
 *   KILN_ITEMS    vectors of 16 bytes in flight per thread, at most 2 * KILN_KEY
 *   KILN_ALIGNED  1 if all rows are aligned to 16 bytes */
#ifndef KILN_RANK_WORDS_CUH
#define KILN_RANK_WORDS_CUH

#include <kiln/rank_select.cuh>

namespace kiln
{

enum : unsigned {
  rank_vector = 16 / KILN_KEY, /* keys per vector */
  rank_slots = KILN_ITEMS * rank_vector,
  rank_tile = KILN_BLOCK * KILN_ITEMS, /* vectors per tile */
  rank_warps = KILN_BLOCK / warp_size
};

static_assert(rank_slots <= 32, "KILN_ITEMS: at most 2 * KILN_KEY");

/* The places of the words that a thread loads at a time. */
struct rank_batch {
  unsigned long long first; /* place of slot 0 */

  __device__ __forceinline__ unsigned long long of(unsigned slot) const
  {
    return first +
           static_cast<unsigned long long>(slot / rank_vector) *
               (KILN_BLOCK * rank_vector) +
           slot % rank_vector;
  }
};

/* Passes the words of the keys from `begin` to end - 1 to a visitor, except up to
 * rank_vector - 1 keys at the end, and returns the index of the first of these. Worker w
 * of W handles the tiles w, w + W, w + 2 W and so on. All lanes of a warp call
 * visitor.batch(word, mask, places), where the mask contains the valid slots. */
template <class Visitor>
__device__ __forceinline__ unsigned long long
rank_visit_vectors(const rank_key *in, unsigned long long begin,
                   unsigned long long end, radix_order order, unsigned worker,
                   unsigned workers, Visitor &visitor)
{
  const unsigned long long vectors = (end - begin) / rank_vector;
  const unsigned each = (1u << rank_vector) - 1;
  unsigned long long tile = static_cast<unsigned long long>(worker) * rank_tile;

#pragma unroll 1
  for (; tile < vectors;
       tile += static_cast<unsigned long long>(workers) * rank_tile) {
    const unsigned long long first = tile + threadIdx.x;
    rank_key words[KILN_ITEMS][rank_vector], word[rank_slots];
    unsigned mask = 0;

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (first + k * KILN_BLOCK < vectors) {
        load_raw<rank_vector, KILN_ALIGNED != 0>(
            in + begin + (first + k * KILN_BLOCK) * rank_vector, words[k]);
        mask |= each << k * rank_vector;
      }
#pragma unroll
    for (unsigned e = 0; e < rank_slots; ++e)
      word[e] = rank_word(words[e / rank_vector][e % rank_vector], order);
    visitor.batch(word, mask, rank_batch{begin + first * rank_vector});
  }
  return begin + vectors * rank_vector;
}

/* Passes n single words to a visitor. load(i, word, place) gets word number i. All lanes
 * of a warp call visitor.single(valid, word, place). */
template <class Visitor, class Load>
__device__ __forceinline__ void
rank_visit_singles(unsigned long long n, unsigned worker, unsigned workers,
                   Visitor &visitor, Load load)
{
  enum : unsigned { items = 4 };
  unsigned long long tile =
      static_cast<unsigned long long>(worker) * (items * KILN_BLOCK);

#pragma unroll 1
  for (; tile < n; tile += static_cast<unsigned long long>(workers) *
                           (items * KILN_BLOCK)) {
    rank_key word[items] = {};
    rank_place at[items] = {};

#pragma unroll
    for (unsigned e = 0; e < items; ++e)
      if (tile + e * KILN_BLOCK + threadIdx.x < n)
        load(tile + e * KILN_BLOCK + threadIdx.x, word[e], at[e]);
#pragma unroll
    for (unsigned e = 0; e < items; ++e)
      visitor.single(tile + e * KILN_BLOCK + threadIdx.x < n, word[e], at[e]);
  }
}

/* The words that a selection examines: the keys of its row, or its candidates. */
struct rank_source {
  const rank_key *in, *words;
  const rank_place *places;
  unsigned long long n;
  radix_order order;
  bool listed;

  /* Passes all words to a visitor; of the keys of a row, only those from `begin` to
   * end - 1. */
  template <class Visitor>
  __device__ __forceinline__ void
  visit(unsigned long long begin, unsigned long long end, unsigned worker,
        unsigned workers, Visitor &visitor) const
  {
    const unsigned long long rest =
        listed ? 0
               : rank_visit_vectors(in, begin, end, order, worker, workers,
                                    visitor);

    rank_visit_singles(
        (listed ? n : end) - rest, worker, workers, visitor,
        [&](unsigned long long i, rank_key &word, rank_place &at) {
          word = listed ? words[i] : rank_word(in[rest + i], order);
#if KILN_PLACE > 0
          at = listed ? places[i] : static_cast<rank_place>(rest + i);
#else
          at = 0;
#endif
        });
  }
};

/* A visitor that lists the words for which test(word, place) is true. */
template <class Test> struct rank_lister {
  Test test;
  rank_appender append;
  const rank_key *in;
  radix_order order;

  /* Hits are rare, so their words are loaded again, instead of one vote per slot. */
  __device__ __forceinline__ void batch(const rank_key (&word)[rank_slots],
                                        unsigned mask, rank_batch places)
  {
    unsigned hits = 0;

#pragma unroll
    for (unsigned e = 0; e < rank_slots; ++e)
      if (test(word[e], places.of(e)))
        hits |= 1u << e;
    hits &= mask;
#pragma unroll 1
    for (; warp_any(hits != 0); hits &= hits - 1) {
      const unsigned long long at =
          places.of(hits == 0 ? 0 : static_cast<unsigned>(__ffs(hits)) - 1);

      append.push(hits != 0, hits != 0 ? rank_word(in[at], order) : rank_key(0),
                  static_cast<rank_place>(at));
    }
  }
  __device__ __forceinline__ void single(bool valid, rank_key word,
                                         rank_place at)
  {
    append.push(valid && test(word, at), word, at);
  }
};

__device__ __forceinline__ const rank_key *rank_row(const rank_args &s)
{
  return s.in + blockIdx.y / s.targets.n * s.n;
}

} // namespace kiln

#endif
