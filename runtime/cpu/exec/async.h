/* async.h -- what async_copy.c and async_barrier.c share. */
#ifndef KILN_CPU_ASYNC_H
#define KILN_CPU_ASYNC_H

#include "access.h"

/* Perform the pending copies of the active lanes except those of their last
 * `keep` groups; with `all`, also copies in no group yet. */
void KILN__ISA_NAME(copies_wait)(kiln__cpu_warp *w, uint64_t keep, bool all);

#endif
