/* leader_prefix.cuh -- single-pass prefix over very many tiles. Block 0, the leader
 * block, holds no tile. It reads the totals that the other blocks publish, and publishes
 * for each tile the exclusive prefix over the preceding tiles.
 *
 * Problem: with a decoupled look-back (look_back.cuh), hundreds of tiles wait at the same
 * time. Each of them reads a window of descriptors of other tiles again and again.
 * Idea: a waiting tile polls only its own prefix descriptor, and only the leader block
 * reads all totals. A look-back has lower latency, but leader prefixes need less memory
 * traffic. On an H200, a select of 2^28 elements in 32,768 tiles takes 432 us with leader
 * prefixes and 485 us with look-backs. It would take 397 us if no tile had to wait. A scan
 * takes 515 us with leader prefixes and 558 us with look-backs.
 * Invariant: one warp combines rows of 32 tiles. It scans each row and starts with the
 * total of the preceding rows. The order is fixed, so the bits of the result do not
 * depend on when tiles publish. Blocks start in the order of their index, so block 0
 * is running.
 * Cost: the leader reads few cache lines, and reads them whole, because its requests
 * queue with the requests of the other blocks on its SM. More rows per poll, two polls in
 * flight, several warps with a row each, and several tiles per lane were all slower (440
 * to 930 us).
 *
 * The descriptors are aligned to 16 bytes. The first `tiles` descriptors hold the totals,
 * and the next `tiles` descriptors hold the prefixes. Tags are those of look_back.cuh. */
#ifndef KILN_LEADER_PREFIX_CUH
#define KILN_LEADER_PREFIX_CUH

#include <kiln/look_back.cuh>

namespace kiln
{

/* The state of the warp that publishes all prefixes. */
template <class T, class Op> struct leader_prefix {
  /* Number of rows of 32 tiles that the leader reads per poll. These rows take
   * about four cache lines. */
  enum : unsigned { batch = sizeof(T) > 8 ? 1 : sizeof(T) > 4 ? 2 : 4 };

  unsigned long long *words;
  const unsigned long long tiles;
  const unsigned epoch;
  const Op op;
  const T identity;
  unsigned long long first; /* index of the first tile of the current row */
  unsigned served; /* number of published prefixes in the current row */
  T before;        /* reduction over the tiles of all preceding rows */

  __device__ __forceinline__ void publish(unsigned long long tile, T value)
  {
    tile_publish(words + tiles * descriptor_words<T>::count, tile, value,
                 descriptor_tag(epoch, status_prefix));
  }

  /* Publishes the prefixes of the tiles of the current row, up to the first tile
   * whose total is not published yet. If the row is complete, advances to the
   * next row and returns true. */
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

/* Publishes the prefix of every tile. All threads of block 0 call this
 * function. Every prefix includes the initial value `start`. */
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

/* Waits until the prefix of `tile` is published, and returns it. One thread
 * calls this function. */
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
