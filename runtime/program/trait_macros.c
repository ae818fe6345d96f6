/* trait_macros.c -- the traits of a target as macros (KILN_ARCH, KILN_HAS_SHFL,
 * ...), which are defined for every program. */
#include "plan.h"

#include <string.h>

static const char *const names[KILN__MACROS] = {
    "KILN_ARCH",
    "KILN_WARP_SIZE",
    "KILN_HAS_SHFL",
    "KILN_HAS_ITS",
    "KILN_HAS_MATCH",
    "KILN_HAS_REDUX",
    "KILN_HAS_CP_ASYNC",
    "KILN_HAS_TMA",
    "KILN_HAS_CLUSTER",
    "KILN_HAS_WGMMA",
    "KILN_SMEM_PER_BLOCK",
    "KILN_REGS_PER_SM",
    "KILN_SMEM_PER_BLOCK_OPTIN",
};

bool kiln__macro_known(const char *name, size_t size)
{
  for (size_t i = 0; i < KILN__MACROS; i++) {
    if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
      return true;
  }
  return false;
}

/* Only sm_90a has the matrix instructions of warpgroups. The targets without
 * the suffix and those of later GPUs lack them. */
static bool has_wgmma(const kiln_target *target)
{
  return target->cc == 90 && target->suffix == 'a';
}

void kiln__macros(kiln__macro out[KILN__MACROS], const kiln_traits *traits,
                  const kiln_target *target)
{
  const kiln_traits *code = traits;
  kiln_traits lower;
  size_t n = 0;

  /* Code compiled for a lower compute capability than the GPU's may use only
   * the features of that capability. */
  if (target->cc != traits->cc &&
      kiln_arch_traits(target->cc, &lower) == KILN_OK)
    code = &lower;
  {
    const long values[KILN__MACROS] = {
        target->cc,
        traits->warp_size,
        code->has_shfl,
        code->has_its,
        code->has_match,
        code->has_redux,
        code->has_cp_async,
        code->has_tma,
        code->has_cluster,
        has_wgmma(target),
        traits->smem_per_block,
        traits->regs_per_sm,
        traits->smem_per_block_optin,
    };

    for (; n < KILN__MACROS; n++)
      out[n] = (kiln__macro){names[n], values[n]};
  }
}
