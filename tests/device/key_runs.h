/* key_runs.h -- runs of equal keys of several lengths, for the tests of scans and
 * reductions by key. */
#ifndef KILN_KEY_RUNS_H
#define KILN_KEY_RUNS_H

#include "scan_values.h"

typedef enum layout { SHORT, LONG, ONE, EACH, MIXED, N_LAYOUTS } layout;

/* Draws the elements at which segments begin. */
static inline uint8_t *make_heads(layout how, size_t n, uint64_t *state)
{
  uint8_t *heads = room_for(n, 1);

  for (size_t i = 0; i < n; i++) {
    const uint64_t r = test_random(state);
    const uint64_t mean = how == SHORT ? 5 : how == LONG ? 6000 : 0;

    heads[i] = how == EACH    ? 1
               : how == ONE   ? 0
               : how == MIXED ? r % (i / 4096 % 2 == 0 ? 3 : 20000) == 0
                              : r % mean == 0;
  }
  return heads;
}

/* Makes keys that are equal inside segments only: 1, 2, 3, 1, 2, 3 and so
 * on. */
static inline void *make_keys(kiln_dtype type, const uint8_t *heads, size_t n)
{
  void *keys = room_for(n, 8);
  int64_t key = 1;

  for (size_t i = 0; i < n; i++) {
    if (heads[i])
      key = key % 3 + 1;
    set_whole(type, keys, i, key);
  }
  return keys;
}

#endif
