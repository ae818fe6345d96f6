/* rank_sort.cuh -- sort pairs of word and place in the shared memory of a block.
 *
 * Problem: order up to a few thousand pairs with little latency.
 * Idea: a bitonic sort (Batcher, Sorting networks and their applications, 1968). A warp
 * keeps 64 consecutive pairs in registers during all steps that compare pairs less than 64
 * apart, and exchanges them by shuffles. Only steps over larger distances use shared memory
 * and barriers: 10 of the 55 steps for 1,024 pairs.
 * Invariant: pairs are compared by word and then by place. Different pairs therefore have
 * one order, whatever their order was.
 * Cost: log2(n) * (log2(n) + 1) / 2 steps over n / 2 pairs. */
#ifndef KILN_RANK_SORT_CUH
#define KILN_RANK_SORT_CUH

#include <kiln/rank_select.cuh>

namespace kiln
{

template <unsigned most> struct rank_pairs {
  rank_key word[most];
  rank_place at[most];
};

struct rank_pair {
  rank_key word;
  rank_place at;

  __device__ __forceinline__ bool before(const rank_pair &b,
                                         bool by_place) const
  {
    if (sizeof word <= 4 && sizeof at == 4)
      return number(by_place) < b.number(by_place);
    return by_place || word == b.word ? at < b.at : word < b.word;
  }
  /* Returns word and place as one number. */
  __device__ __forceinline__ unsigned long long number(bool by_place) const
  {
    return static_cast<unsigned long long>(by_place ? 0 : word) << 32 |
           static_cast<unsigned>(at);
  }
};

/* Does the steps over distances from `step` down to 1 of a merge of `width` pairs. Lane l
 * has the pairs `index` and index + 32, and index is l plus a multiple of 64. */
__device__ __forceinline__ void rank_merge_warp(rank_pair (&mine)[2],
                                                unsigned index, unsigned width,
                                                unsigned step, bool by_place)
{
  if (step == warp_size) {
    if (mine[1].before(mine[0], by_place) == ((index & width) == 0)) {
      const rank_pair swap = mine[0];

      mine[0] = mine[1];
      mine[1] = swap;
    }
    step /= 2;
  }
#pragma unroll 1
  for (; step > 0; step /= 2)
#pragma unroll
    for (unsigned e = 0; e < 2; ++e) {
      const rank_pair other = {shuffle_xor(mine[e].word, step),
                               shuffle_xor(mine[e].at, step)};
      const bool up = ((index + e * warp_size) & width) == 0;

      if (other.before(mine[e], by_place) == (up == ((index & step) == 0)))
        mine[e] = other;
    }
}

/* Does the steps of a merge whose distances are below 64. If `width` is 64, the smaller
 * merges precede it. */
template <unsigned most>
__device__ __forceinline__ void rank_merge_chunks(rank_pairs<most> &p,
                                                  unsigned size, unsigned width,
                                                  bool by_place)
{
  enum : unsigned { chunk = 2 * warp_size };

#pragma unroll 1
  for (unsigned first = warp() * chunk; first < size;
       first += KILN_BLOCK / warp_size * chunk) {
    const unsigned i = first + lane(), j = i + warp_size;
    rank_pair mine[2] = {{p.word[i], p.at[i]}, {p.word[j], p.at[j]}};

#pragma unroll 1
    for (unsigned w = width == chunk ? 2 : width; w <= width; w *= 2)
      rank_merge_warp(mine, i, w, least(w / 2, warp_size), by_place);
    p.word[i] = mine[0].word;
    p.at[i] = mine[0].at;
    p.word[j] = mine[1].word;
    p.at[j] = mine[1].at;
  }
}

/* Does one step of a merge over a distance of 64 or more. */
template <unsigned most>
__device__ __forceinline__ void rank_merge_step(rank_pairs<most> &p,
                                                unsigned size, unsigned width,
                                                unsigned step, bool by_place)
{
#pragma unroll 1
  for (unsigned t = threadIdx.x; t < size / 2; t += KILN_BLOCK) {
    const unsigned i = 2 * (t & ~(step - 1)) | (t & (step - 1));
    const unsigned j = i + step;
    const rank_pair a = {p.word[i], p.at[i]}, b = {p.word[j], p.at[j]};

    if (b.before(a, by_place) == ((i & width) == 0)) {
      p.word[i] = b.word;
      p.at[i] = b.at;
      p.word[j] = a.word;
      p.at[j] = a.at;
    }
  }
}

/* Sorts the first n pairs by word and place, or by place only, and pads them to a power of
 * two of at least 64, which is at most `most`. All threads call this function after a
 * barrier. It ends with a barrier. */
template <unsigned most>
__device__ __forceinline__ void rank_sort(rank_pairs<most> &p, unsigned n,
                                          bool by_place)
{
  unsigned size = 2 * warp_size;

  static_assert((most & (most - 1)) == 0 && most >= 2 * warp_size,
                "most: a power of two, at least 64");
  while (size < n)
    size *= 2;
#pragma unroll 1
  for (unsigned i = n + threadIdx.x; i < size; i += KILN_BLOCK) {
    p.word[i] = static_cast<rank_key>(~rank_key(0));
    p.at[i] = static_cast<rank_place>(~rank_place(0));
  }
  __syncthreads();
#pragma unroll 1
  for (unsigned width = 2 * warp_size; width <= size; width *= 2) {
#pragma unroll 1
    for (unsigned step = width / 2; step > warp_size; step /= 2) {
      rank_merge_step(p, size, width, step, by_place);
      __syncthreads();
    }
    rank_merge_chunks(p, size, width, by_place);
    __syncthreads();
  }
}

} // namespace kiln

#endif
