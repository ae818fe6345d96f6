/* segmented_tile.cuh -- common code of the kernels that reduce runs of elements of a tile
 * in registers (scan_by_key.cu and reduce_by_key.cu). A run, or segment, starts at
 * elements that a mask marks.
 *
 * Problem: the reduction over the elements of a run crosses lanes, warps and tiles.
 * Idea: the pairs (does a segment start, value) form a semigroup. Each level (vector,
 * row of 32 vectors, warp, block) combines these pairs, and the tile publishes the last
 * one (Schwartz 1980; Blelloch, Prefix Sums and Their Applications, 1990).
 * Invariant: the operands keep their order.
 * Cost: per row of 32 vectors one ballot and five shuffles.
 *
 * A program includes this file after scan_tile.cuh. KILN_INIT, KILN_EXCLUSIVE and
 * KILN_HEADS are defined as in scan_by_key.cu, which also describes same(). */
#ifndef KILN_SEGMENTED_TILE_CUH
#define KILN_SEGMENTED_TILE_CUH

#include <kiln/scan_tile.cuh>

/* ---- Keys ---------------------------------------------------------------- */

/* Loads the keys of a tile. Keys beyond the end of the array have arbitrary
 * values, on which only results beyond the end depend. */
template <class Stored, class Key>
static __device__ __forceinline__ void
load_keys(const Stored *from, const tile_view &v,
          Key (&k)[KILN_VECTORS][KILN_VECTOR])
{
  Key tail[KILN_VECTOR] = {};

#pragma unroll
  for (unsigned e = 0; e + 1 < KILN_VECTOR; ++e)
    if (v.has_tail() && v.tail + e < v.size)
      tail[e] = kiln::load(from + v.first + v.tail + e);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      k[r][e] = tail[e];
    if (v.has(r))
      kiln::load_vector<KILN_VECTOR, KILN_KEY_ALIGNED != 0>(from + v.at(r),
                                                            k[r]);
  }
}

#if KILN_HEADS == 0
/* Sets bit e of heads[r] if the key of element e of vector r of the calling thread
 * differs from the key of the preceding element, and for element 0 of the array. */
template <class Stored, class Key>
static __device__ __forceinline__ void
mark_heads(const source &s, const Stored *keys, const tile_view &v,
           const Key (&k)[KILN_VECTORS][KILN_VECTOR],
           unsigned (&heads)[KILN_VECTORS])
{
  /* key of the element that precedes the warp's first element */
  Key last = {};

  if (kiln::lane() == 0 && v.at(0) > 0 && v.at(0) <= s.n)
    last = kiln::load(keys + v.at(0) - 1);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    const Key below = kiln::shuffle_up(k[r][KILN_VECTOR - 1], 1);
    Key previous = kiln::lane() == 0 ? last : below;

    heads[r] = 0;
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      if (!user::same(s.in, previous, k[r][e]))
        heads[r] |= 1u << e;
      previous = k[r][e];
    }
    last = kiln::warp_broadcast(k[r][KILN_VECTOR - 1], 31);
  }
  if (v.at(0) == 0)
    heads[0] |= 1u;
}
#endif

/* ---- Reducing ------------------------------------------------------------ */

/* Returns the mask of the lanes below the calling lane. */
static __device__ __forceinline__ unsigned lanes_below()
{
  return (1u << kiln::lane()) - 1;
}

/* Returns the last lane, up to the calling lane, in which a segment starts.
 * Returns 0 if there is no such lane. `begins` has one bit per lane. */
static __device__ __forceinline__ unsigned segment_lane(unsigned begins)
{
  const unsigned mine = begins & (lanes_below() << 1 | 1u);

  return mine == 0 ? 0 : 31 - static_cast<unsigned>(__clz(mine));
}

/* Returns the reduction over v, the first element of a segment. The reduction
 * includes the initial value if there is one. */
static __device__ __forceinline__ acc first_value(const source &s, acc start,
                                                  acc v)
{
  return KILN_INIT || KILN_EXCLUSIVE ? s.op(start, v) : v;
}

/* Reduces the warp's elements since the last start of a segment. before[r]
 * becomes the reduction over those elements that precede vector r of the calling
 * lane. Bit r of *cut is set if a segment starts in the warp before that vector.
 * Returns the reduction over the warp. *begins is set if a segment starts in the
 * warp. */
static __device__ __forceinline__ acc
reduce_warp(const source &s, acc start, const held (&h)[KILN_VECTORS],
            const unsigned (&heads)[KILN_VECTORS], acc (&before)[KILN_VECTORS],
            unsigned *cut, bool *begins)
{
  unsigned lanes[KILN_VECTORS];
  acc sum[KILN_VECTORS], chain = s.identity;
  bool any = false;

#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    lanes[r] = kiln::warp_ballot(heads[r] != 0);
    sum[r] = s.identity;
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      const acc v = at(h[r], e);

      sum[r] = heads[r] >> e & 1u ? first_value(s, start, v)
               : e == 0           ? v
                                  : s.op(sum[r], v);
    }
  }
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      before[r] = kiln::shuffle_up(sum[r], step);
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      if (kiln::lane() >= step + segment_lane(lanes[r]))
        sum[r] = s.op(before[r], sum[r]);
  }
  *cut = 0;
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    const acc whole = kiln::warp_broadcast(sum[r], 31);
    const bool below = (lanes[r] & lanes_below()) != 0;

    before[r] = kiln::shuffle_up(sum[r], 1);
    if (kiln::lane() == 0)
      before[r] = s.identity;
    if (r > 0 && !below)
      before[r] = s.op(chain, before[r]);
    if (any || below)
      *cut |= 1u << r;
    chain = r == 0 || lanes[r] != 0 ? whole : s.op(chain, whole);
    any = any || lanes[r] != 0;
  }
  *begins = any;
  return chain;
}

/* ---- Totals of warps and tiles ------------------------------------------- */

/* The shared memory through which the warps of a block exchange totals. */
struct segment_storage {
  /* totals of the warps; publish_total() replaces them by the warps' prefixes */
  acc warp[warps];
  /* cut[w] states whether a segment starts in warp w. publish_total() replaces
   * it by whether a segment starts in a lower warp. */
  bool cut[warps];
  bool resets; /* whether a segment starts in the tile */
  /* The value is always 0, but the compiler cannot prove that. */
  unsigned nothing;
};

/* Replaces the totals of the warps by their prefixes. Publishes the total of
 * the tile, and returns the total in every lane. The warp without elements
 * calls this function. */
static __device__ __forceinline__ acc publish_total(segment_storage &storage,
                                                    const source &s,
                                                    unsigned long long *words,
                                                    count tile, unsigned epoch)
{
  const unsigned lane = kiln::lane();
  const unsigned begins = kiln::warp_ballot(lane < warps && storage.cut[lane]);
  acc sum = lane < warps ? storage.warp[lane] : s.identity, before;

#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    before = kiln::shuffle_up(sum, step);
    if (lane >= step + segment_lane(begins))
      sum = s.op(before, sum);
  }
  if (lane == 0)
    storage.nothing = 0;
  if (lane == warps - 1) {
    kiln::tile_publish(words, tile, sum,
                       kiln::descriptor_tag(epoch, begins != 0
                                                       ? kiln::status_reset
                                                       : kiln::status_partial));
    storage.resets = begins != 0;
  }
  before = kiln::shuffle_up(sum, 1);
  if (lane < warps) {
    storage.warp[lane] = lane == 0 ? s.identity : before;
    storage.cut[lane] = (begins & lanes_below()) != 0;
  }
  __syncwarp();
  return kiln::warp_broadcast(sum, warps - 1);
}

#endif
