/* missing.h -- calls of functions that the CPU device does not implement. */
#ifndef KILN_CPU_MISSING_H
#define KILN_CPU_MISSING_H

/* Receives the symbol of a missing function and how often it was called. */
typedef void (*kiln__cpu_missing_fn)(void *user, const char *symbol,
                                     unsigned calls);

/* Calls `each` for every missing function that the process has called, in the
 * order of the table. Safe from any thread; calls that are made meanwhile may
 * or may not be counted. */
void kiln__cpu_each_missing(kiln__cpu_missing_fn each, void *user);

#endif
