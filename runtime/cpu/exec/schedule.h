/* schedule.h -- the two inner loops, built for each instruction set. */
#ifndef KILN_CPU_SCHEDULE_H
#define KILN_CPU_SCHEDULE_H

#include "lanes.h"

int KILN__ISA_NAME(run_its)(kiln__warp *w, uint64_t *left);
int KILN__ISA_NAME(run_lock_step)(kiln__warp *w, uint64_t *left);
void KILN__ISA_NAME(set_mask)(kiln__warp *w, uint32_t mask);
uint32_t KILN__ISA_NAME(predicate)(const kiln__warp *w, int32_t slot);

#endif
