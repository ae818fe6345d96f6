/* handout.cuh -- single-pass prefix over very many tiles: block 0 holds no tile, it
 * reads the totals of the others as they publish them and hands each the fold of
 * those before it.
 *
 * A look-back (lookback.cuh) ends sooner after the tile before has published, but
 * while hundreds of tiles wait, each of them asks for a window of the others' words
 * again and again. Here a tile asks for one word of its own. On an H200 a select of
 * 2^28 elements in 32,768 tiles takes 432 us so, 485 with look-backs, 397 if it
 * waited for nothing; a scan 515 and 558 us.
 *
 * The words: what the tiles publish, then what they are handed; on 16 bytes, marks as
 * in lookback.cuh. Blocks start in the order of their index, so block 0 is there.
 *
 * One warp does it, 32 tiles at a time, a row: one scan of their totals, begun with
 * what the rows before come to. So the order is fixed, and the bits do not depend on
 * when tiles publish. The warp shares its multiprocessor with others that load and
 * store all the time; each request of its own waits in their queue. Few and whole
 * lines are best: more rows a look, two looks under way, several warps with a row
 * each or several tiles a lane were all slower (440 to 930 us). */
#ifndef KILN_HANDOUT_CUH
#define KILN_HANDOUT_CUH

#include <kiln/lookback.cuh>

namespace kiln
{

/* How far tiles have been served. */
template <class T, class Op> struct handout {
  /* Rows that are looked at together, about four lines. */
  enum : unsigned { rows = sizeof(T) > 4 ? 2 : 4 };

  unsigned long long *words;
  const unsigned long long tiles;
  const unsigned epoch;
  const Op op;
  const T neutral;
  unsigned long long first; /* tile of the row at hand */
  unsigned given; /* tiles of it that were served: the first so many */
  T before;       /* the fold over all rows before it */

  __device__ __forceinline__ void publish(unsigned long long tile, T value)
  {
    tile_publish(words + tiles * tile_words<T>::count, tile, value,
                 mark_of(epoch, mark_prefix));
  }

  /* Serves those of the row that are there, up to the first that is not. Returns
   * whether these are all; then the next row is at hand. */
  __device__ __forceinline__ bool serve(const tile_seen<T> &seen)
  {
    const unsigned long long tile = first + lane();
    T value = neutral, sum, left;
    const bool there = tile < tiles && tile_read(seen, epoch, &value) != 0;
    const unsigned missing = warp_ballot(tile < tiles && !there);
    const unsigned upto =
        missing == 0
            ? static_cast<unsigned>(warp_size)
            : static_cast<unsigned>(__ffs(static_cast<int>(missing))) - 1;

    if (upto == given)
      return false;
    sum = warp_scan_inclusive(there ? value : neutral, op);
    left = shuffle_up(sum, 1);
    if (there && lane() >= given && lane() < upto)
      publish(tile, lane() == 0 ? before : op(before, left));
    given = upto;
    if (missing != 0)
      return false;
    before = op(before, warp_broadcast(sum, warp_size - 1));
    first += warp_size;
    given = 0;
    return true;
  }

  __device__ __forceinline__ void look()
  {
    tile_seen<T> seen[rows];
    bool whole = true;

#pragma unroll
    for (unsigned k = 0; k < rows; ++k) {
      const unsigned long long tile = first + k * warp_size + lane();

      if (tile < tiles)
        words_load(words + tile * tile_words<T>::count, seen[k].word);
    }
#pragma unroll
    for (unsigned k = 0; k < rows; ++k)
      whole = whole && first < tiles && serve(seen[k]);
  }
};

/* By all threads of block 0. Folds begin with `start`. */
template <class T, class Op>
__device__ __forceinline__ void
tile_hand_out(unsigned long long *words, unsigned long long tiles,
              unsigned epoch, Op op, T neutral, T start)
{
  handout<T, Op> all = {words, tiles, epoch, op, neutral, 0, 0, start};

  if (warp() == 0)
    while (all.first < tiles)
      all.look();
}

/* What `tile` is handed; by one thread. */
template <class T>
__device__ __forceinline__ T tile_wait(const unsigned long long *words,
                                       unsigned long long tiles,
                                       unsigned long long tile, unsigned epoch)
{
  const unsigned long long *const from = words + tiles * tile_words<T>::count;
  T value;

  while (tile_peek(from, tile, epoch, &value) == 0)
    tile_pause();
  return value;
}

} // namespace kiln

#endif
