/* missing.h -- records calls of driver functions that the CPU device does not
 * implement. */
#ifndef KILN_CPU_MISSING_H
#define KILN_CPU_MISSING_H

/* Type of a callback that receives the symbol of an unimplemented function and
 * the number of its calls. */
typedef void (*kiln__cpu_missing_fn)(void *user, const char *symbol,
                                     unsigned calls);

/* Calls `each` for every unimplemented function that the process has called, in
 * the order of entry_points.def. Thread-safe. Calls that other threads make at
 * the same time may or may not be counted. */
void kiln__cpu_each_missing(kiln__cpu_missing_fn each, void *user);

#endif
