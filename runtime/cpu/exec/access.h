/* access.h -- how memory instructions get from addresses to bytes. Included
 * only by exec/.
 *
 * Problem: looking up each of 32 addresses would cost far more than the
 * instruction itself.
 *
 * Idea: most warps access consecutive elements, or all the same element.
 * survey() recognises both patterns in one pass over the address register, and
 * one bounds check then serves the whole warp. Scattered accesses that fall
 * into one range take a second fast path. Everything else, and everything that
 * is checked or counted in detail, goes through reach_at(), which finds the
 * bytes of each lane.
 *
 * Ranges that a warp used before are found in its own small cache, which is
 * valid as long as the epoch of the memory stays the same. */
#ifndef KILN_CPU_ACCESS_H
#define KILN_CPU_ACCESS_H

#include "../memory/address_space.h"
#include "../watch/watch.h"
#include "lanes.h"

#define KILN__INLINE static inline __attribute__((always_inline))

/* How an access is counted. */
typedef enum kiln__cpu_counted {
  KILN__COUNT_NONE,
  /* requests, and sectors or passes, by the state space of the lanes */
  KILN__COUNT_MEMORY,
  KILN__COUNT_ATOMIC /* warp instructions, and lanes that share a word */
} kiln__cpu_counted;

typedef struct kiln__cpu_reach {
  /* as the instruction computed them */
  _Alignas(64) uint64_t address[KILN__WARP];
  uintptr_t host[KILN__WARP]; /* where the bytes of active lanes lie */
} kiln__cpu_reach;

/* ---- Addresses ----------------------------------------------------------- */

KILN__INLINE void kiln__cpu_addresses(const kiln__cpu_warp *w, int32_t slot,
                                      bool wide, uint64_t offset,
                                      uint64_t at[KILN__WARP])
{
  if (slot < 0) {
    for (int i = 0; i < KILN__WARP; i++)
      at[i] = offset;
  } else if (wide) {
    const uint64_t *const a = KILN__SLOT(const uint64_t, slot);

    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++)
      at[i] = a[i] + offset;
  } else { /* 32-bit addresses wrap at 2^32 */
    const uint32_t *const a = KILN__SLOT(const uint32_t, slot);

    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++)
      at[i] = a[i] + (uint32_t)offset;
  }
}

typedef enum kiln__cpu_pattern {
  KILN__ANYWHERE,
  KILN__IN_A_ROW, /* lane i at first + i * bytes */
  KILN__AT_ONE    /* every lane at first */
} kiln__cpu_pattern;

/* survey() for registers of 64 and of 32 bits. A full warp compares each address
 * with the step of the first two; otherwise inactive lanes are masked out. Both
 * loops have no exit, so that they vectorise. */
#define KILN__SURVEY(name, T, TS)                                              \
  KILN__INLINE kiln__cpu_pattern name(const kiln__cpu_warp *w, const T *a,     \
                                      uint32_t n, T *first)                    \
  {                                                                            \
    T off_row = 0, off_one = 0, row, one;                                      \
                                                                               \
    if (__builtin_expect(w->full, 1)) {                                        \
      const T step = a[1] - a[0];                                              \
                                                                               \
      *first = one = a[0];                                                     \
      if (step != n && step != 0)                                              \
        return KILN__ANYWHERE;                                                 \
      for (unsigned i = 0; i < KILN__WARP; i++)                                \
        off_row |= a[i] ^ (one + i * step);                                    \
      return off_row != 0 ? KILN__ANYWHERE                                     \
             : step == 0  ? KILN__AT_ONE                                       \
                          : KILN__IN_A_ROW;                                     \
    }                                                                          \
    one = a[__builtin_ctz(w->mask)];                                           \
    row = one - (T)n * (unsigned)__builtin_ctz(w->mask);                       \
    for (unsigned i = 0; i < KILN__WARP; i++) {                                \
      const T on = (T)(TS)(int32_t)w->lane[i];                                 \
                                                                               \
      off_row |= (a[i] ^ (row + i * n)) & on;                                  \
      off_one |= (a[i] ^ one) & on;                                            \
    }                                                                          \
    *first = off_row == 0 ? row : one;                                         \
    return off_row == 0   ? KILN__IN_A_ROW                                     \
           : off_one == 0 ? KILN__AT_ONE                                       \
                          : KILN__ANYWHERE;                                    \
  }

KILN__SURVEY(kiln__cpu_survey_wide, uint64_t, int64_t)
KILN__SURVEY(kiln__cpu_survey_narrow, uint32_t, int32_t)

/* The pattern of the first address operand for elements of n bytes. For
 * KILN__IN_A_ROW, *first is the address that lane 0 has or would have. */
KILN__INLINE kiln__cpu_pattern kiln__cpu_survey(const kiln__cpu_warp *w,
                                                const kiln__cpu_insn *in,
                                                uint32_t n, uint64_t *first)
{
  kiln__cpu_pattern p = KILN__AT_ONE;
  uint32_t narrow;

  if (in->a < 0) {
    *first = (uint64_t)in->imm;
  } else if ((in->flags & KILN__WIDE_A) != 0) {
    p = kiln__cpu_survey_wide(w, KILN__SLOT(const uint64_t, in->a), n, first);
    *first += (uint64_t)in->imm;
  } else {
    p = kiln__cpu_survey_narrow(w, KILN__SLOT(const uint32_t, in->a), n,
                                &narrow);
    *first = (uint32_t)(narrow + (uint32_t)in->imm);
  }
  return p;
}

/* Size of the byte range [*low, *low + result) that the active lanes of a
 * pattern access. */
KILN__INLINE uint64_t kiln__cpu_extent(const kiln__cpu_warp *w,
                                       kiln__cpu_pattern p, uint64_t first,
                                       uint32_t n, uint64_t *low)
{
  unsigned from, to;

  *low = first;
  if (p == KILN__AT_ONE)
    return n;
  if (w->full)
    return (uint64_t)KILN__WARP * n;
  from = (unsigned)__builtin_ctz(w->mask);
  to = 31 - (unsigned)__builtin_clz(w->mask);
  *low = first + (uint64_t)from * n;
  return (uint64_t)(to - from + 1) * n;
}

/* ---- Bytes --------------------------------------------------------------- */

/* Find the range that holds [address, address + n) and keep a copy in the warp.
 * NULL: none does. */
const kiln__cpu_range *KILN__ISA_NAME(range_of)(kiln__cpu_warp *w,
                                                uint64_t address, uint64_t n);

KILN__INLINE const kiln__cpu_range *
kiln__cpu_range_of(kiln__cpu_warp *w, uint64_t address, uint64_t n)
{
  if (__builtin_expect(
          w->cached_epoch == kiln__cpu_memory_epoch(w->grid->memory), 1)) {
    for (int k = 0; k < KILN__N_CACHED; k++) {
      const kiln__cpu_range *r = &w->cached[k];

      if (address - r->first < r->last - r->first && n <= r->last - address)
        return r;
    }
  }
  return KILN__ISA_NAME(range_of)(w, address, n);
}

/* Whether a generic address lies in a window of another space than global. */
KILN__INLINE bool kiln__cpu_in_window(uint64_t address)
{
  return address - KILN__WINDOW_SHARED <
         KILN__WINDOW_CODE + KILN__WINDOW_BYTES - KILN__WINDOW_SHARED;
}

KILN__INLINE bool kiln__cpu_in_space(uint64_t address, uint64_t window)
{
  return address - window < KILN__WINDOW_BYTES;
}

/* Where n bytes at an offset of this block's shared memory lie; NULL: out of
 * bounds. */
KILN__INLINE uint8_t *kiln__cpu_shared(const kiln__cpu_warp *w, uint64_t offset,
                                       uint64_t n)
{
  const kiln__cpu_block *b = w->block;

  return offset < b->shared_size && n <= b->shared_size - offset
             ? b->shared + offset
             : NULL;
}

/* Where n bytes of global memory lie, or of shared memory if a generic address
 * says so (*shared). NULL: the general path has to decide. */
KILN__INLINE uint8_t *kiln__cpu_span(kiln__cpu_warp *w, kiln__cpu_space space,
                                     uint64_t address, uint64_t n, bool *shared)
{
  const kiln__cpu_range *r;

  *shared = false;
  if (space == KILN__SPACE_GENERIC && kiln__cpu_in_window(address)) {
    *shared = kiln__cpu_in_space(address, KILN__WINDOW_SHARED);
    return *shared ? kiln__cpu_shared(w, address - KILN__WINDOW_SHARED, n)
                   : NULL;
  }
  r = kiln__cpu_range_of(w, address, n);
  return r != NULL ? r->host + (address - r->first) : NULL;
}

/* Where n bytes at one offset of every lane's stack lie. False: misaligned or
 * out of bounds. */
KILN__INLINE bool kiln__cpu_local_row(const kiln__cpu_warp *w, uint32_t n,
                                      uint64_t offset,
                                      uintptr_t host[KILN__WARP])
{
  const uintptr_t base = (uintptr_t)w->local - w->local_at;

  if ((offset & (n - 1)) != 0 || offset >= w->local_size ||
      n > w->local_size - offset)
    return false;
  for (unsigned i = 0; i < KILN__WARP; i++)
    host[i] = base + offset + (uintptr_t)i * w->local_stride;
  return true;
}

/* Find the bytes that each active lane accesses, n per lane; check alignment
 * and bounds, count, and report to the checks. `slot`, `wide` and `offset`
 * describe the address operand. False: it faulted, and the instruction must not
 * write anything. */
bool KILN__ISA_NAME(reach_at)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                              kiln__cpu_space space, int32_t slot, bool wide,
                              uint64_t offset, uint32_t n,
                              kiln__cpu_access access,
                              kiln__cpu_counted counted, kiln__cpu_reach *r);

/* reach_at() for the first address operand of `in`. */
KILN__INLINE bool kiln__cpu_reach_a(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                    kiln__cpu_space space, uint32_t n,
                                    kiln__cpu_access access,
                                    kiln__cpu_counted counted,
                                    kiln__cpu_reach *r)
{
  return KILN__ISA_NAME(reach_at)(w, in, space, in->a,
                                  (in->flags & KILN__WIDE_A) != 0,
                                  (uint64_t)in->imm, n, access, counted, r);
}

/* The state space that a generic address lies in. */
kiln__cpu_space KILN__ISA_NAME(space_of)(const kiln__cpu_warp *w,
                                         uint64_t address);

/* The order of lanes in operations that only one lane can do at a time: lane (k
 * ^ order) for k = 0, 1, ...; ascending unless the launch has a seed. */
KILN__INLINE unsigned kiln__cpu_lane_order(const kiln__cpu_warp *w,
                                           const kiln__cpu_insn *in)
{
  uint64_t x = w->grid->seed;

  if (x == 0)
    return 0;
  x ^= w->block->number * UINT64_C(0x9e3779b97f4a7c15);
  x ^= ((uint64_t)w->index << 32 | in->index) * UINT64_C(0xd6e8feb86659fd93);
  x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
  x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return (unsigned)(x >> 59);
}

/* ---- Counters ------------------------------------------------------------ */

/* Number of distinct 32-byte sectors of aligned accesses of n <= 32 bytes. */
uint32_t KILN__ISA_NAME(sectors)(const uint64_t *address, uint32_t mask,
                                 uint32_t n);
/* Passes that shared memory with 32 banks of 4 bytes takes for n bytes per
 * lane. */
uint32_t KILN__ISA_NAME(passes)(const uint64_t *address, uint32_t mask,
                                uint32_t n);
/* Sectors of local memory: the hardware interleaves the lanes' words. */
uint32_t KILN__ISA_NAME(local_sectors)(const uint64_t *address, uint32_t mask,
                                       uint32_t n);
/* Number of lanes that access the same word as another lane. */
uint32_t KILN__ISA_NAME(crowded)(const uint64_t *address, uint32_t mask,
                                 uint32_t n);

KILN__INLINE void kiln__cpu_tally_add(kiln__cpu_warp *w,
                                      const kiln__cpu_insn *in, uint64_t cost)
{
  kiln__cpu_tally *t = &w->tally[in->index];

  t->events++;
  t->cost += cost;
}

/* Sectors or passes of a pattern for which the lanes have to be examined. */
uint32_t KILN__ISA_NAME(pattern_cost)(const kiln__cpu_warp *w,
                                      kiln__cpu_pattern p, uint64_t first,
                                      uint32_t n, bool shared);

/* Count an access of all lanes at one offset of their stacks. */
KILN__INLINE void kiln__cpu_count_local(kiln__cpu_warp *w,
                                        const kiln__cpu_insn *in, uint32_t n)
{
  const uint32_t m = w->mask;
  const uint32_t octets = (uint32_t)((m & 0xff) != 0) + ((m & 0xff00) != 0) +
                          ((m & 0xff0000) != 0) + ((m & 0xff000000) != 0);

  if (w->counted)
    kiln__cpu_tally_add(w, in, octets * (n <= 4 ? 1 : n / 4));
}

KILN__INLINE bool kiln__cpu_has_holes(uint32_t mask)
{
  const uint32_t low = mask & -mask;

  return (mask & (mask + low)) != 0;
}

KILN__INLINE void kiln__cpu_count_pattern(kiln__cpu_warp *w,
                                          const kiln__cpu_insn *in,
                                          kiln__cpu_pattern p, uint64_t first,
                                          uint32_t n, bool shared)
{
  uint64_t low = first;
  uint32_t cost;

  if (!w->counted)
    return;
  if (shared ? n <= 4 : p == KILN__AT_ONE)
    cost = 1;
  else if (!w->full && !shared && !kiln__cpu_has_holes(w->mask))
    cost =
        (uint32_t)(((low + kiln__cpu_extent(w, p, first, n, &low) - 1) >> 5) -
                   (low >> 5) + 1);
  else if (!w->full)
    cost = KILN__ISA_NAME(pattern_cost)(w, p, first, n, shared);
  else if (!shared)
    cost = (uint32_t)(((first + KILN__WARP * n - 1) >> 5) - (first >> 5) + 1);
  else /* see passes() */
    cost = p == KILN__IN_A_ROW ? n / 4 : n / 8;
  kiln__cpu_tally_add(w, in, cost);
}

/* ---- Scattered lanes ----------------------------------------------------- */

/* Whether the accesses of all active lanes are aligned and lie within `size`
 * bytes from address `first`. Sets the host address of each lane; `host` is
 * that of `first`. */
KILN__INLINE bool kiln__cpu_all_within(const kiln__cpu_warp *w, uint32_t n,
                                       uint64_t first, uint64_t size,
                                       uintptr_t host, kiln__cpu_reach *r)
{
  const uint64_t limit = size - n;
  uint64_t stray = 0;

  for (int i = 0; i < KILN__WARP; i++) {
    const uint64_t at = r->address[i] - first;
    const uint64_t off = (uint64_t)(at > limit) | (r->address[i] & (n - 1));

    r->host[i] = host + at;
    stray |= w->lane[i] != 0 ? off : 0;
  }
  return stray == 0;
}

/* Find and count the bytes of all lanes if one range of global memory holds
 * them all. */
KILN__INLINE bool kiln__cpu_all_global(kiln__cpu_warp *w,
                                       const kiln__cpu_insn *in, uint32_t n,
                                       kiln__cpu_reach *r)
{
  const kiln__cpu_range *range;
  uint64_t first;

  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, r->address);
  first = r->address[__builtin_ctz(w->mask)];
  if (in->space == KILN__SPACE_GENERIC && kiln__cpu_in_window(first))
    return false;
  range = kiln__cpu_range_of(w, first, n);
  if (range == NULL ||
      !kiln__cpu_all_within(w, n, range->first, range->last - range->first,
                            (uintptr_t)range->host, r))
    return false;
  if (w->counted)
    kiln__cpu_tally_add(w, in, KILN__ISA_NAME(sectors)(r->address, w->mask, n));
  return true;
}

/* all_global() for this block's shared memory. */
KILN__INLINE bool kiln__cpu_all_shared(kiln__cpu_warp *w,
                                       const kiln__cpu_insn *in, uint32_t n,
                                       kiln__cpu_reach *r)
{
  const kiln__cpu_block *b = w->block;

  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, r->address);
  if (b->shared_size < n ||
      !kiln__cpu_all_within(w, n, 0, b->shared_size, (uintptr_t)b->shared, r))
    return false;
  if (w->counted)
    kiln__cpu_tally_add(w, in, KILN__ISA_NAME(passes)(r->address, w->mask, n));
  return true;
}

#endif
