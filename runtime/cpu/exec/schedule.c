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
