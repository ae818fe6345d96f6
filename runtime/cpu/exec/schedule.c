/* schedule.c -- functions that set the lane mask and read predicates, for
 * callers in run/. */
#include "schedule.h"

void KILN__ISA_NAME(set_mask)(kiln__cpu_warp *w, uint32_t mask)
{
  uint32_t *const lane = w->lane;

  w->mask = mask;
  w->full = mask == UINT32_MAX;
  KILN__VECTOR_LOOP
  for (uint32_t i = 0; i < KILN__WARP; i++)
    lane[i] = 0u - ((mask >> i) & 1u);
}

uint32_t KILN__ISA_NAME(predicate)(const kiln__cpu_warp *w, int32_t slot)
{
  return kiln__cpu_predicate_bits(KILN__SLOT(const uint32_t, slot));
}

void KILN__ISA_NAME(run_guarded)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 bool traced)
{
  const uint32_t keep = w->mask, mask = kiln__cpu_guard_mask(w, in);

  if (w->tally != NULL)
    w->tally[in->index].lanes -= (unsigned)__builtin_popcount(keep & ~mask);
  if (mask == 0)
    return;
  if (mask != keep)
    KILN__SET_MASK(w, mask);
  if (traced)
    KILN__ISA_NAME(traced)(w, in);
  else
    in->fn(w, in);
  if (mask != keep)
    KILN__SET_MASK(w, keep);
}
