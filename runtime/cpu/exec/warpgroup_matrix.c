/* warpgroup_matrix.c -- the handlers of wgmma, the matrix instructions of a
 * warpgroup, and of setmaxnreg. run/warpgroup.c and run/register_pool.c implement
 * them. */
#include "access.h"
#include "warpgroup.h"

/* Returns the multiply-adds that one of the four warps contributes. The stored
 * elements of a row of A fill 32 bytes. */
static uint64_t products_of(const kiln__cpu_insn *in)
{
  static const uint16_t k[] = {
      [KILN__WGMMA_F16] = 16,  [KILN__WGMMA_BF16] = 16, [KILN__WGMMA_TF32] = 8,
      [KILN__WGMMA_E4M3] = 32, [KILN__WGMMA_E5M2] = 32, [KILN__WGMMA_S8] = 32,
      [KILN__WGMMA_U8] = 32,   [KILN__WGMMA_B1] = 256};
  kiln__cpu_wgmma x;

  memcpy(&x, &in->imm, sizeof x);
  return UINT64_C(16) * 8 * x.columns * k[x.a];
}

KILN__HANDLER(wgmma)
{
  kiln__cpu_wgmma_issue(w, in);
  if (w->counted)
    kiln__cpu_tally_add(w, in, products_of(in));
}

KILN__HANDLER(wgmma_fence)
{
  kiln__cpu_wgmma_order(w, in);
}

KILN__HANDLER(wgmma_commit)
{
  kiln__cpu_wgmma_order(w, in);
}

KILN__HANDLER(wgmma_wait)
{
  kiln__cpu_wgmma_order(w, in);
}

KILN__HANDLER(setmaxnreg)
{
  enum { INC = 4 }; /* in->sub; see modifiers.def */

  kiln__cpu_set_registers(w, in, in->sub == INC);
}
