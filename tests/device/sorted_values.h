/* sorted_values.h -- values in Kiln's default order for the tests of merge and
 * search. */
#ifndef KILN_SORTED_VALUES_H
#define KILN_SORTED_VALUES_H

#include "operation_checks.h"

/* Kiln's default order: -0 comes before +0, and NaN comes last. The tests'
 * 64-bit integers are small enough for a double. */
static inline bool comes_before(double a, double b)
{
  if (isnan(a) || isnan(b))
    return !isnan(a) && isnan(b);
  return a < b || (a <= b && signbit(a) && !signbit(b));
}

static inline int compare_values(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return comes_before(x, y) ? -1 : comes_before(y, x);
}

/* Makes n sorted whole numbers, of `few` distinct values from `least` on.
 * teardown() frees them. */
static inline double *sorted_values(size_t n, int64_t least, int64_t few,
                                    uint64_t *state)
{
  double *v = kept(malloc((n + 1) * sizeof *v));

  for (size_t i = 0; i < n; i++)
    v[i] = (double)(least + (int64_t)(test_random(state) % (uint64_t)few));
  qsort(v, n, sizeof *v, compare_values);
  return v;
}

/* Converts the numbers to elements of a type. teardown() frees these. */
static inline void *as_elements(kiln_dtype type, const double *v, size_t n)
{
  void *out = kept(malloc(n * 8 + 1));

  for (size_t i = 0; i < n; i++)
    if (type == KILN_F64)
      ((double *)out)[i] = v[i];
    else if (type == KILN_F32)
      ((float *)out)[i] = (float)v[i];
    else
      set_whole(type, out, i, (int64_t)v[i]);
  return out;
}

#endif
