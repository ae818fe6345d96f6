/* bench_start.h -- what `bench start` and its children share. */
#ifndef KILN_CLI_BENCH_START_H
#define KILN_CLI_BENCH_START_H

#include <stddef.h>

/* Children print a line "LABEL NANOSECONDS" for each step when it is done, by
 * CLOCK_MONOTONIC, which all processes share; the last one is "verified". */
enum { START_ELEMENTS = 1 << 16 };

double kiln__cli_now_ns(void);

/* The bare program: driver API only.
 *   CUBIN FILE, KERNEL NAME, libcuda */
int kiln__cli_bare_child(const char *cubin, const char *kernel,
                         const char *driver);

/* Record and print steps. */
void kiln__cli_mark(const char *label);
void kiln__cli_print_marks(void);

/* 1.0 where y[i] == 2 * x[i] + 1 with x[i] = i, as both programs compute. */
int kiln__cli_verify(const float *y, size_t n);

#endif
