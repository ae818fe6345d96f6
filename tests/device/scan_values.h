/* scan_values.h -- inputs of the scan tests with exact results, and the
 * expected results. */
#ifndef KILN_SCAN_VALUES_H
#define KILN_SCAN_VALUES_H

#include "operation_checks.h"
#include "reference_ops.h"

#include <kiln/scan.h>

/* Returns zeroed host memory for n elements, which teardown() frees. */
static inline void *room_for(size_t n, size_t width)
{
  return kept(calloc(n + 1, width));
}

/* Returns random numbers whose prefix sums stay within 50, so that all sums of
 * neighbours are exact in bf16 and f16 too. */
static inline int64_t *small_wholes(size_t n, uint64_t *state)
{
  int64_t *v = room_for(n, sizeof *v), sum = 0;

  for (size_t i = 0; i < n; i++) {
    v[i] = (int64_t)(test_random(state) % 41) - 20;
    if (sum + v[i] > 50 || sum + v[i] < -50)
      v[i] = -v[i];
    sum += v[i];
  }
  return v;
}

static inline void *elements(kiln_dtype type, const int64_t *v, size_t n)
{
  void *x = room_for(n, 8);

  for (size_t i = 0; i < n; i++)
    set_whole(type, x, i, v[i]);
  return x;
}

/* Returns the expected scan of x, which restarts at every head; NULL means a
 * single segment. Each segment starts from *init if it is given. Without it, an
 * exclusive scan starts from `identity`. */
static inline int64_t *scanned(const int64_t *x, const uint8_t *heads, size_t n,
                               kiln_op_name op, int64_t identity,
                               const int64_t *init, bool exclusive)
{
  int64_t *want = room_for(n, sizeof *want), sum = 0;
  bool begun = false;

  for (size_t i = 0; i < n; i++) {
    if (i == 0 || (heads != NULL && heads[i])) {
      begun = init != NULL || exclusive;
      sum = init != NULL ? *init : identity;
    }
    if (exclusive)
      want[i] = sum;
    sum = begun
              ? (int64_t)fold_words(op, KILN_I64, (uint64_t)sum, (uint64_t)x[i])
              : x[i];
    begun = true;
    if (!exclusive)
      want[i] = sum;
  }
  return want;
}

#endif
