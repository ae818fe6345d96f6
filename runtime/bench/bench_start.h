/* bench_start.h -- what `kiln bench start` and its child processes share. A child
 * prints a line "mark NANOSECONDS LABEL" for each step that it has finished; the
 * last step is "verified". */
#ifndef KILN_BENCH_BENCH_START_H
#define KILN_BENCH_BENCH_START_H

#include "bench/bench.h"

enum { START_ELEMENTS = 1 << 16 };

/* Note that a step is finished now. */
void kiln__bench_mark(const char *label);
void kiln__bench_print_marks(void);

/* The values that both programs compute on: x[i] = i, y[i] = 1. */
void kiln__bench_start_fill(float *x, float *y);
/* True if y[i] is 2 * x[i] + 1 for all elements, as both programs compute. */
bool kiln__bench_start_verify(const float *y);

/* The bare program: driver API only, a CUBIN from a file.
 * @return an exit code */
int kiln__bench_start_bare(const char *cubin, const char *kernel,
                           const char *driver);

#endif
