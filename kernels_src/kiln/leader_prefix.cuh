/* leader_prefix.cuh -- single-pass prefix over very many tiles: block 0 holds no tile, it
 * reads the totals of the others as they publish them and hands each the fold of
 * those before it.
 *
 * A look-back (look_back.cuh) ends sooner after the tile before has published, but
 * while hundreds of tiles wait, each of them asks for a window of the others' words
 * again and again. Here a tile asks for one word of its own. On an H200 a select of
 * 2^28 elements in 32,768 tiles takes 432 us so, 485 with look-backs, 397 if it
 * waited for nothing; a scan 515 and 558 us.
 *
 * The words: what the tiles publish, then what they are handed; on 16 bytes, marks as
 * in look_back.cuh. Blocks start in the order of their index, so block 0 is there.
 *
 * One warp does it, 32 tiles at a time, a row: one scan of their totals, begun with
 * what the rows before come to. So the order is fixed, and the bits do not depend on
 * when tiles publish. The warp shares its multiprocessor with others that load and
 * store all the time; each request of its own waits in their queue. Few and whole
 * lines are best: more rows a look, two looks under way, several warps with a row
 * each or several tiles a lane were all slower (440 to 930 us). */
#ifndef KILN_LEADER_PREFIX_CUH
#define KILN_LEADER_PREFIX_CUH

#include <kiln/look_back.cuh>

namespace kiln
{

/* How far tiles have been served. */
template <class T, class Op> struct leader_prefix {
  /* Rows that are looked at together, about four lines. */
  enum : unsigned { batch = sizeof(T) > 4 ? 2 : 4 };

  unsigned long long *words;
  const unsigned long long tiles;
  const unsigned epoch;
  const Op op;
  const T identity;
  unsigned long long first; /* tile of the row at hand */
  unsigned served; /* tiles of it that were served: the first so many */
  T before;        /* the fold over all rows before it */

  __device__ __forceinline__ void publish(unsigned long long tile, T value)
  {
    tile_publish(words + tiles * descriptor_words<T>::count, tile, value,
                 descriptor_tag(epoch, status_prefix));
  }

  /* Serves those of the row that are there, up to the first that is not. Returns
   * whether these are all; then the next row is at hand. */
  __device__ __forceinline__ bool serve(const tile_descriptor<T> &seen)
  {
    const unsigned long long tile = first + lane();
    T value = identity, sum, left;
    const bool valid =
        tile < tiles && descriptor_read(seen, epoch, &value) != 0;
    const unsigned missing = warp_ballot(tile < tiles && !valid);
    const unsigned upto =
        missing == 0
            ? static_cast<unsigned>(warp_size)
            : static_cast<unsigned>(__ffs(static_cast<int>(missing))) - 1;

    if (upto == served)
      return false;
    sum = warp_scan_inclusive(valid ? value : identity, op);
    left = shuffle_up(sum, 1);
    if (valid && lane() >= served && lane() < upto)
      publish(tile, lane() == 0 ? before : op(before, left));
    served = upto;
    if (missing != 0)
      return false;
    before = op(before, warp_broadcast(sum, warp_size - 1));
    first += warp_size;
    served = 0;
    return true;
  }

  __device__ __forceinline__ void poll()
  {
    tile_descriptor<T> seen[batch];
    bool whole = true;

#pragma unroll
    for (unsigned k = 0; k < batch; ++k) {
      const unsigned long long tile = first + k * warp_size + lane();

      if (tile < tiles)
        words_load(words + tile * descriptor_words<T>::count, seen[k].word);
    }
#pragma unroll
    for (unsigned k = 0; k < batch; ++k)
      whole = whole && first < tiles && serve(seen[k]);
  }
};

/* By all threads of block 0. Folds begin with `start`. */
template <class T, class Op>
__device__ __forceinline__ void
leader_publish_prefixes(unsigned long long *words, unsigned long long tiles,
                        unsigned epoch, Op op, T identity, T start)
{
  leader_prefix<T, Op> all = {words, tiles, epoch, op, identity, 0, 0, start};

  if (warp() == 0)
    while (all.first < tiles)
      all.poll();
}

/* What `tile` is handed; by one thread. */
template <class T>
__device__ __forceinline__ T leader_wait(const unsigned long long *words,
                                         unsigned long long tiles,
                                         unsigned long long tile,
                                         unsigned epoch)
{
  const unsigned long long *const from =
      words + tiles * descriptor_words<T>::count;
  T value;

  while (tile_peek(from, tile, epoch, &value) == 0)
    tile_pause();
  return value;
}

} // namespace kiln

#endif
