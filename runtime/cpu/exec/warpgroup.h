/* warpgroup.h -- declares the functions of run/warpgroup.c that the handlers of
 * wgmma call. They do not depend on the instruction set of the host. */
#ifndef KILN_CPU_WARPGROUP_H
#define KILN_CPU_WARPGROUP_H

#include "../model/warp.h"

/* Execute wgmma.mma_async, wgmma.fence, wgmma.commit_group and wgmma.wait_group
 * for one warp of a warpgroup. */
void kiln__cpu_wgmma_issue(kiln__cpu_warp *w, const kiln__cpu_insn *in);
void kiln__cpu_wgmma_order(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* Executes setmaxnreg.inc (`more`) or setmaxnreg.dec. */
void kiln__cpu_set_registers(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                             bool more);
/* Checks an instruction that accesses registers of some wgmma. */
void kiln__cpu_wgmma_touch(kiln__cpu_warp *w, const kiln__cpu_insn *in);

#endif
