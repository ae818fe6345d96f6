/* block_arrays.h -- arrays in blocks of random lengths, for the tests of distributed
 * operations. Every rank computes the whole array. */
#ifndef KILN_BLOCK_ARRAYS_H
#define KILN_BLOCK_ARRAYS_H

#include "rank_main.h"

#include <kiln/distributed.h>

/* The whole array of a trial, and this rank's block of it. */
typedef struct whole {
  kiln_comm *comm;
  kiln_stream *stream;
  uint64_t sizes[MOST_RANKS], first, n; /* of all blocks; of this rank's */
  uint64_t total;
  uint64_t seed;
} whole;

/* Chooses the lengths of the blocks. Some trials have only empty blocks. */
static inline whole blocks(kiln_comm *comm, kiln_stream *stream, uint64_t seed)
{
  static const uint64_t sizes[] = {0, 1, 5, 257, 2000, 3001};
  whole w = {.comm = comm, .stream = stream, .seed = seed};

  for (int r = 0; r < kiln_comm_size(comm); r++) {
    w.sizes[r] = sizes[mixed(seed, 11, (uint64_t)r) % 6];
    if (seed % 7 == 6)
      w.sizes[r] = 0;
    if (r == kiln_comm_rank(comm)) {
      w.first = w.total;
      w.n = w.sizes[r];
    }
    w.total += w.sizes[r];
  }
  return w;
}

static inline CUdeviceptr upload_block(const whole *w, const void *all,
                                       size_t size)
{
  return upload(w->comm, (const char *)all + w->first * size, w->n * size);
}

#endif
