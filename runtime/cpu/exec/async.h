/* async.h -- what the files of asynchronous copies share. */
#ifndef KILN_CPU_ASYNC_H
#define KILN_CPU_ASYNC_H

#include "access.h"

/* Do the active lanes' copies but those of their last `keep` groups; with `all`
 * those that are in no group, too. */
void KILN__ISA_NAME(copies_wait)(kiln__cpu_warp *w, uint64_t keep, bool all);

#endif
