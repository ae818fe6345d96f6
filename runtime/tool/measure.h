/* measure.h -- the clock and the median that the commands and the benchmarks
 * share. */
#ifndef KILN_TOOL_MEASURE_H
#define KILN_TOOL_MEASURE_H

#include <stddef.h>

/* Returns the time of CLOCK_MONOTONIC in nanoseconds. All processes on the
 * machine share this clock. */
double kiln__cli_now_ns(void);

/* Sorts values[0] to values[n - 1] in ascending order, and returns their
 * median, or 0 if n is 0. */
double kiln__cli_median(double *values, size_t n);

#endif
