/* warpgroup_check.h -- the checks of the order of wgmma. Only files of run/
 * include this header. */
#ifndef KILN_CPU_WARPGROUP_CHECK_H
#define KILN_CPU_WARPGROUP_CHECK_H

#include "../watch/watch.h"

/* Report the steps of a warp. kiln__cpu_matrices_issue() returns the id of the
 * asynchronous accesses to shared memory, or 0 if they are not checked. `key` is
 * a value that must be equal in all four warps of the warpgroup. `accumulate` is
 * scale-d. */
kiln__cpu_async kiln__cpu_matrices_issue(kiln__cpu_warp *w,
                                         const kiln__cpu_insn *in, uint64_t key,
                                         bool accumulate);
void kiln__cpu_matrices_order(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* Checks that the warps of each warpgroup of a block that ended have executed
 * the same wgmma, and forgets their state. */
void kiln__cpu_matrices_end(kiln__cpu_block *block);
void kiln__cpu_matrices_free(kiln__cpu_warp *w);

#endif
