/* bench_start.h -- the interface between `kiln bench start` and its child
 * processes. A child prints a line "mark NANOSECONDS LABEL" for each step
 * that has finished; the last step is "verified". */
#ifndef KILN_BENCH_BENCH_START_H
#define KILN_BENCH_BENCH_START_H

#include "bench/bench.h"

enum { START_ELEMENTS = 1 << 16 };

/* Prints the current time and the label of the step that has finished. */
void kiln__bench_mark(const char *label);
void kiln__bench_print_marks(void);

/* Fills the input of both compared programs: x[i] = i, y[i] = 1. */
void kiln__bench_start_fill(float *x, float *y);
/* Returns true if y[i] is 2 * x[i] + 1 for all elements, which is the correct
 * result. */
bool kiln__bench_start_verify(const float *y);

/* Runs the bare program, which uses only the driver API and a CUBIN from a
 * file.
 * @return an exit code */
int kiln__bench_start_bare(const char *cubin, const char *kernel,
                           const char *driver);

#endif
