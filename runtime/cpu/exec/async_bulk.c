/* async_bulk.c -- cp.async.bulk: copies of contiguous byte ranges.
 *
 * The bytes are copied immediately. The mbarrier that tracks the copy then
 * counts the bytes as arrived. This is correct, because PTX allows the copy to
 * complete at any time. */
#include "access.h"

/* Copies for each lane the number of bytes that register c states, 16 bytes at
 * a time. All lanes advance together until they have copied their bytes. */
static void copy(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                 kiln__cpu_space to_space, kiln__cpu_space from_space)
{
  const uint32_t *const size = KILN__SLOT(const uint32_t, in->c);
  const uint32_t mask = w->mask;
  bool ok = true;

  for (uint32_t m = mask; m != 0 && ok; m &= m - 1) {
    const int i = __builtin_ctz(m);

    ok = size[i] % 16 == 0;
    if (!ok)
      kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, i, size[i], 0);
  }
  for (uint64_t at = 0; ok && w->mask != 0; at += 16) {
    uint32_t left = 0;
    kiln__cpu_reach to, from;

    for (uint32_t m = w->mask; m != 0; m &= m - 1) {
      const int i = __builtin_ctz(m);

      left |= (uint32_t)(size[i] > at) << i;
    }
    w->mask = left;
    if (left == 0)
      break;
    ok = KILN__ISA_NAME(reach_at)(w, in, from_space, in->b,
                                  (in->flags & KILN__WIDE_B) != 0,
                                  (uint64_t)in->imm2 + at, 16,
                                  KILN__ACCESS_READ, KILN__COUNT_NONE, &from) &&
         KILN__ISA_NAME(reach_at)(w, in, to_space, in->a,
                                  (in->flags & KILN__WIDE_A) != 0,
                                  (uint64_t)in->imm + at, 16,
                                  KILN__ACCESS_WRITE, KILN__COUNT_NONE, &to);
    for (uint32_t m = left; m != 0 && ok; m &= m - 1) {
      const int i = __builtin_ctz(m);

      memmove((void *)to.host[i], (const void *)from.host[i], 16);
    }
  }
  w->mask = mask;
}

KILN__CALLS(cp_async_bulk, copy, KILN__SPACE_SHARED_CLUSTER, KILN__SPACE_GLOBAL)
KILN__CALLS(cp_async_bulk_out, copy, KILN__SPACE_GLOBAL, KILN__SPACE_SHARED)
