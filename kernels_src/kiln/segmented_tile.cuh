/* segmented_tile.cuh -- common code of the kernels that reduce runs of elements of a tile
 * (scan_by_key.cu and reduce_by_key.cu). A run, or segment, starts at elements that a mask
 * marks.
 *
 * Problem: the reduction over the elements of a run crosses lanes, warps and tiles.
 * Idea: the pairs (does a segment start, value) form a semigroup. Each level combines
 * these pairs, and the tile publishes the last one (Schwartz 1980; Blelloch, Prefix Sums
 * and Their Applications, 1990).
 * Invariant: the operands keep their order.
 *
 * A program includes this file after scan_tile.cuh and defines KILN_KEY_ALIGNED. */
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
