/* dropin.h -- declares what the files of the drop-in libcuda.so.1 share. */
#ifndef KILN_CPU_DROPIN_H
#define KILN_CPU_DROPIN_H

#include <kiln/cpu.h>

#include <stdio.h>

/* Loads and starts the library that CUDA_INJECTION64_PATH names, if any; see
 * dropin_observe.c. */
void kiln__dropin_inject(void);

/* ---- dropin_process.c ---------------------------------------------------- */

/* Returns the text that identifies this process in the report: its process id,
 * and the time at which the library was loaded. */
const char *kiln__dropin_run(void);

/* ---- dropin_report.c ----------------------------------------------------- */

/* Write one object of the report. `user` of the first function is a FILE. */
void kiln__dropin_finding(void *user, const kiln_cpu_finding *finding);
void kiln__dropin_message(FILE *out, const char *type, const char *what);
/* Writes what is missing so far. */
void kiln__dropin_missing(FILE *out);
/* Writes all of the report at the end of the process: what is missing, findings,
 * counters and sums. */
void kiln__dropin_totals(FILE *out, unsigned modules, uint64_t loading_ns,
                         bool checks);

/* ---- dropin_totals.c ----------------------------------------------------- */

/* The sums over all launches of one kernel in this process. */
typedef struct kiln__dropin_total {
  const char *kernel;         /* linkage name; valid until the process ends */
  uint64_t launches, checked; /* numbers of launches, and of checked ones */
  uint64_t warp_insns, ns;    /* executed warp instructions, and time */
  unsigned threads;           /* largest number of host threads of a launch */
} kiln__dropin_total;

/* Adds one launch to the sums of its kernel. A launch is not counted if there is
 * no memory. Thread-safe. */
void kiln__dropin_add(const kiln__dropin_total *launch);
/* Calls `each` for every kernel, in the order of the first launches. The
 * callback must not launch kernels. Thread-safe. */
void kiln__dropin_each_total(void (*each)(void *user,
                                          const kiln__dropin_total *total),
                             void *user);

#endif
