/* measure.h -- the clock and the median that commands and benchmarks share. */
#ifndef KILN_TOOL_MEASURE_H
#define KILN_TOOL_MEASURE_H

#include <stddef.h>

/* Nanoseconds of CLOCK_MONOTONIC, which all processes of the machine share. */
double kiln__cli_now_ns(void);

/* Sorts values[0] to values[n - 1] in ascending order.
 * @return the median, or 0 if n is 0 */
double kiln__cli_median(double *values, size_t n);

#endif
