/* warpgroup_matrix.c -- the handlers of wgmma, the matrix instructions of a
 * warpgroup. run/warpgroup.c implements them. */
#include "lanes.h"
#include "warpgroup.h"

KILN__HANDLER(wgmma)
{
  kiln__cpu_wgmma_issue(w, in);
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
