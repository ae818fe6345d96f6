/* async.h -- declares the function that async_copy.c provides to
 * async_barrier.c. */
#ifndef KILN_CPU_ASYNC_H
#define KILN_CPU_ASYNC_H

#include "access.h"

/* Performs the pending asynchronous copies of the active lanes, except those of
 * the last `keep` groups that each lane committed. If `all` is true, copies
 * that the lane has not committed to a group yet are performed as well. */
void KILN__ISA_NAME(copies_wait)(kiln__cpu_warp *w, uint64_t keep, bool all);

#endif
