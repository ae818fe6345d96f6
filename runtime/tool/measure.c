/* measure.c -- the clock and the median of repeated measurements. */
#include "tool/measure.h"

#include <stdlib.h>
#include <time.h>

double kiln__cli_now_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

double kiln__cli_median(double *values, size_t n)
{
  if (n == 0)
    return 0;
  qsort(values, n, sizeof *values, by_value);
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
