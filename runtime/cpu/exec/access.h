/* access.h -- translates the addresses of memory instructions to host pointers.
 * Only files of exec/ include this header.
 *
 * Problem: looking up each of 32 addresses would cost far more than the
 * instruction itself.
 *
 * Idea: in most warps the lanes access consecutive elements, or all lanes
 * access the same element. survey() recognises both patterns in one pass over
 * the address register. One bounds check then serves the whole warp. Scattered
 * accesses that all lie in one memory range take a second fast path. All other
 * accesses go through reach_at(), which finds the bytes of each lane. So do all
 * accesses that are checked or counted in detail.
 *
 * Each warp caches the memory ranges that it used last. The device memory has
 * an epoch, a counter that changes when allocations change. The cached ranges
 * are valid as long as the epoch stays the same. */
#ifndef KILN_CPU_ACCESS_H
#define KILN_CPU_ACCESS_H

#include "../memory/address_space.h"
#include "../watch/watch.h"
#include "lanes.h"

#define KILN__INLINE static inline __attribute__((always_inline))

/* How the performance counters record a memory access. */
typedef enum kiln__cpu_counted {
  KILN__COUNT_NONE,
  /* The counters record the number of requests, and the number of sectors or
   * shared-memory passes that the requests take. */
  KILN__COUNT_MEMORY,
  /* The counters record the number of warp instructions, and the number of
   * lanes that access the same word as another lane. */
  KILN__COUNT_ATOMIC
} kiln__cpu_counted;

typedef struct kiln__cpu_reach {
  /* address of each lane, as the instruction computed it */
  _Alignas(64) uint64_t address[KILN__WARP];
  /* host address of the bytes of each active lane */
  uintptr_t host[KILN__WARP];
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
  KILN__IN_A_ROW, /* lane i accesses address first + i * bytes */
  KILN__AT_ONE    /* every lane accesses address `first` */
} kiln__cpu_pattern;

/* Defines survey() for one width of address registers. In a full warp, the
 * addresses are compared with the arithmetic sequence that the addresses of the
 * first two lanes start. In a partial warp, inactive lanes are masked out. The
 * loops do not exit early, so the compiler can vectorise them. */
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

/* Returns the access pattern that the addresses of the first address operand
 * form for elements of n bytes. For consecutive elements (KILN__IN_A_ROW),
 * *first receives the address of lane 0, even if lane 0 is inactive. */
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

/* Returns the size in bytes of the address range that the active lanes access
 * if their addresses follow pattern p. *low receives the lowest address of the
 * range. */
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

/* Finds the allocated memory range that contains [address, address + n) and
 * caches it in the warp. Returns NULL if no range contains all n bytes. The grid may read
 * and write the range. The second function finds ranges that it may only read. It stores
 * a copy in *copy and returns `copy`. */
const kiln__cpu_range *KILN__ISA_NAME(range_of)(kiln__cpu_warp *w,
                                                uint64_t address, uint64_t n);
const kiln__cpu_range *
    KILN__ISA_NAME(read_only_range_of)(kiln__cpu_warp *w, uint64_t address,
                                       uint64_t n, kiln__cpu_range *copy);

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

/* Returns true if a generic address lies in the address window of a state space
 * other than global memory. */
KILN__INLINE bool kiln__cpu_in_window(uint64_t address)
{
  return address - KILN__WINDOW_SHARED <
         KILN__WINDOW_CODE + KILN__WINDOW_BYTES - KILN__WINDOW_SHARED;
}

KILN__INLINE bool kiln__cpu_in_space(uint64_t address, uint64_t window)
{
  return address - window < KILN__WINDOW_BYTES;
}

/* Returns whether n bytes at an offset are in the shared memory of a block. An
 * aligned vector of 16 bytes needs to begin inside only: compilers widen
 * loads up to the alignment of an array, and a GPU allocates shared memory in
 * larger units than that. The host memory has these bytes as well. */
KILN__INLINE bool kiln__cpu_in_shared(const kiln__cpu_block *b, uint64_t offset,
                                      uint64_t n)
{
  return offset < b->shared_size &&
         (n <= b->shared_size - offset || (n == 16 && offset % n == 0));
}

/* Returns the host address of n bytes at an offset in the shared memory of the
 * warp's block. Returns NULL if the bytes are out of bounds. */
KILN__INLINE uint8_t *kiln__cpu_shared(const kiln__cpu_warp *w, uint64_t offset,
                                       uint64_t n)
{
  const kiln__cpu_block *b = w->block;

  return kiln__cpu_in_shared(b, offset, n) ? b->shared + offset : NULL;
}

/* Returns the host address of n consecutive bytes of global memory. If a
 * generic address refers to shared memory, the function sets *shared and
 * returns the host address of the shared memory. It returns NULL if the general
 * path, reach_at(), has to handle the access. */
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

/* Computes the host address of n bytes at the same offset in the stack of every
 * lane. Returns false if the offset is misaligned or out of bounds. */
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

/* Finds the n bytes that each active lane accesses. Checks alignment and
 * bounds, counts the access, and reports it to the memory checks. `slot`,
 * `wide` and `offset` describe the address operand. Returns false if the access
 * faulted; the instruction must then write nothing. */
bool KILN__ISA_NAME(reach_at)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                              kiln__cpu_space space, int32_t slot, bool wide,
                              uint64_t offset, uint32_t n,
                              kiln__cpu_access access,
                              kiln__cpu_counted counted, kiln__cpu_reach *r);

/* Does what reach_at() does, for the addresses in r->address. */
bool KILN__ISA_NAME(reach_listed)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  kiln__cpu_space space, uint32_t n,
                                  kiln__cpu_access access,
                                  kiln__cpu_counted counted,
                                  kiln__cpu_reach *r);

/* Does what reach_at() does, for the first address operand of `in`. */
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

/* Returns the state space in which a generic address lies. */
kiln__cpu_space KILN__ISA_NAME(space_of)(const kiln__cpu_warp *w,
                                         uint64_t address);

/* Returns the order in which the lanes execute an operation that is performed
 * one lane at a time. Lane (k ^ order) is the k-th lane. The order is ascending
 * unless the launch has a random seed. */
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

/* Returns the number of distinct 32-byte sectors in the accesses of all active
 * lanes. Each access is aligned and has n <= 32 bytes. */
uint32_t KILN__ISA_NAME(sectors)(const uint64_t *address, uint32_t mask,
                                 uint32_t n);
/* Returns the number of passes that a shared-memory access of n bytes per lane
 * takes. Shared memory has 32 banks of 4 bytes. */
uint32_t KILN__ISA_NAME(passes)(const uint64_t *address, uint32_t mask,
                                uint32_t n);
/* Returns the number of sectors of a local-memory access. The hardware
 * interleaves the 4-byte words of the lanes. */
uint32_t KILN__ISA_NAME(local_sectors)(const uint64_t *address, uint32_t mask,
                                       uint32_t n);
/* Returns the number of lanes that access the same word as another lane. */
uint32_t KILN__ISA_NAME(crowded)(const uint64_t *address, uint32_t mask,
                                 uint32_t n);

KILN__INLINE void kiln__cpu_tally_add(kiln__cpu_warp *w,
                                      const kiln__cpu_insn *in, uint64_t cost)
{
  kiln__cpu_tally *t = &w->tally[in->index];

  t->events++;
  t->cost += cost;
}

/* Returns the number of sectors or passes of an access pattern whose cost
 * depends on the addresses of the individual lanes. */
uint32_t KILN__ISA_NAME(pattern_cost)(const kiln__cpu_warp *w,
                                      kiln__cpu_pattern p, uint64_t first,
                                      uint32_t n, bool shared);

/* Counts a local-memory access in which all active lanes use the same stack
 * offset. */
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
  else if (!w->full && !shared && !kiln__cpu_has_holes(w->mask)) {
    const uint64_t bytes = kiln__cpu_extent(w, p, first, n, &low);

    cost = (uint32_t)(((low + bytes - 1) >> 5) - (low >> 5) + 1);
  } else if (!w->full)
    cost = KILN__ISA_NAME(pattern_cost)(w, p, first, n, shared);
  else if (!shared)
    cost = (uint32_t)(((first + KILN__WARP * n - 1) >> 5) - (first >> 5) + 1);
  else /* a full warp accesses shared memory; see passes() */
    cost = p == KILN__IN_A_ROW ? n / 4 : n / 8;
  kiln__cpu_tally_add(w, in, cost);
}

/* ---- Scattered lanes ----------------------------------------------------- */

/* Returns true if the accesses of all active lanes are aligned and lie within
 * `size` bytes from address `first`. Computes the host address of each lane,
 * where `host` is the host address of `first`. */
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

/* Returns true if the shared memory of the warp's block contains the accesses in
 * r->address of all active lanes. `window` is the address of the first byte of
 * this memory. Computes the host address of each lane. */
KILN__INLINE bool kiln__cpu_all_own(const kiln__cpu_warp *w, uint32_t n,
                                    uint64_t window, kiln__cpu_reach *r)
{
  const kiln__cpu_block *b = w->block;

  return b->shared_size >= n &&
         kiln__cpu_all_within(w, n, window, b->shared_size,
                              (uintptr_t)b->shared, r);
}

/* Returns true if the accesses in r->address of all active lanes lie in a single
 * range of global memory, or if they are generic and lie in the shared memory of
 * the warp's block. Computes the host address of each lane. *shared receives
 * which of the two is the case. */
KILN__INLINE bool kiln__cpu_all_near(kiln__cpu_warp *w,
                                     const kiln__cpu_insn *in, uint32_t n,
                                     bool *shared, kiln__cpu_reach *r)
{
  const uint64_t first = r->address[__builtin_ctz(w->mask)];
  const kiln__cpu_range *range;

  *shared = in->space == KILN__SPACE_GENERIC && kiln__cpu_in_window(first);
  if (*shared)
    return kiln__cpu_in_space(first, KILN__WINDOW_SHARED) &&
           kiln__cpu_all_own(w, n, KILN__WINDOW_SHARED, r);
  range = kiln__cpu_range_of(w, first, n);
  return range != NULL &&
         kiln__cpu_all_within(w, n, range->first, range->last - range->first,
                              (uintptr_t)range->host, r);
}

/* Does what kiln__cpu_all_near() does for the addresses of the first address
 * operand, and counts the access. */
KILN__INLINE bool kiln__cpu_all_global(kiln__cpu_warp *w,
                                       const kiln__cpu_insn *in, uint32_t n,
                                       kiln__cpu_reach *r)
{
  bool shared;

  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, r->address);
  if (!kiln__cpu_all_near(w, in, n, &shared, r))
    return false;
  if (w->counted)
    kiln__cpu_tally_add(w, in,
                        shared
                            ? KILN__ISA_NAME(passes)(r->address, w->mask, n)
                            : KILN__ISA_NAME(sectors)(r->address, w->mask, n));
  return true;
}

/* Returns true if the shared memory of the warp's block contains the accesses
 * of all active lanes. In this case, the function also stores the host address
 * of each lane in *r and counts the access. */
KILN__INLINE bool kiln__cpu_all_shared(kiln__cpu_warp *w,
                                       const kiln__cpu_insn *in, uint32_t n,
                                       kiln__cpu_reach *r)
{
  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, r->address);
  if (!kiln__cpu_all_own(w, n, 0, r))
    return false;
  if (w->counted)
    kiln__cpu_tally_add(w, in, KILN__ISA_NAME(passes)(r->address, w->mask, n));
  return true;
}

/* Computes the address of the first address operand in one lane. */
KILN__INLINE uint64_t kiln__cpu_address_of(const kiln__cpu_warp *w,
                                           const kiln__cpu_insn *in, int lane)
{
  const uint64_t offset = (uint64_t)in->imm;

  if (in->a < 0)
    return offset;
  if ((in->flags & KILN__WIDE_A) != 0)
    return KILN__SLOT(const uint64_t, in->a)[lane] + offset;
  return (uint32_t)(KILN__SLOT(const uint32_t, in->a)[lane] + (uint32_t)offset);
}

/* Finds the words of n bytes, a power of two, that the active lanes access
 * through the first address operand. Counts nothing, and computes addresses of
 * inactive lanes only if several lanes are active. Returns false if the general
 * path has to handle the access: if the words lie in different places, if the
 * access is checked, or if it is invalid. *shared receives whether the words are
 * in the shared memory of the warp's block. */
KILN__INLINE bool kiln__cpu_reach_near(kiln__cpu_warp *w,
                                       const kiln__cpu_insn *in, uint32_t n,
                                       bool *shared, kiln__cpu_reach *r)
{
  const bool own = in->space == KILN__SPACE_SHARED ||
                   in->space == KILN__SPACE_SHARED_CLUSTER;
  const int lane = __builtin_ctz(w->mask);
  uint8_t *host;

  if (w->watched)
    return false;
  if ((w->mask & (w->mask - 1)) == 0) {
    const uint64_t at = r->address[lane] = kiln__cpu_address_of(w, in, lane);

    *shared = own;
    host = (at & (n - 1)) != 0 ? NULL
           : own               ? kiln__cpu_shared(w, at, n)
                 : kiln__cpu_span(w, (kiln__cpu_space)in->space, at, n, shared);
    r->host[lane] = (uintptr_t)host;
    return host != NULL;
  }
  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, r->address);
  if (!own)
    return kiln__cpu_all_near(w, in, n, shared, r);
  *shared = true;
  return kiln__cpu_all_own(w, n, 0, r);
}

/* Returns the active lanes as positions in the given lane order: bit k stands
 * for lane (k ^ order). See kiln__cpu_lane_order(). */
KILN__INLINE uint32_t kiln__cpu_positions(const kiln__cpu_warp *w,
                                          unsigned order)
{
  uint32_t m = w->mask;

  if (__builtin_expect(order == 0, 1))
    return m;
  m = (order & 1) != 0 ? (m & 0x55555555) << 1 | (m >> 1 & 0x55555555) : m;
  m = (order & 2) != 0 ? (m & 0x33333333) << 2 | (m >> 2 & 0x33333333) : m;
  m = (order & 4) != 0 ? (m & 0x0f0f0f0f) << 4 | (m >> 4 & 0x0f0f0f0f) : m;
  m = (order & 8) != 0 ? (m & 0x00ff00ff) << 8 | (m >> 8 & 0x00ff00ff) : m;
  return (order & 16) != 0 ? m << 16 | m >> 16 : m;
}

/* ---- Memory accesses that are single atomic operations ------------------- */

/* These functions load or store a word of 1, 2, 4 or 8 bytes in a single access
 * with the given memory order. The order must be a compile-time constant. */
KILN__INLINE uint64_t kiln__cpu_atomic_load(uintptr_t from, unsigned bytes,
                                            int order)
{
  switch (bytes) {
  case 1:
    return __atomic_load_n((const uint8_t *)from, order);
  case 2:
    return __atomic_load_n((const uint16_t *)from, order);
  case 4:
    return __atomic_load_n((const uint32_t *)from, order);
  default:
    return __atomic_load_n((const uint64_t *)from, order);
  }
}

KILN__INLINE void kiln__cpu_atomic_store(uintptr_t to, unsigned bytes,
                                         uint64_t x, int order)
{
  switch (bytes) {
  case 1:
    __atomic_store_n((uint8_t *)to, (uint8_t)x, order);
    break;
  case 2:
    __atomic_store_n((uint16_t *)to, (uint16_t)x, order);
    break;
  case 4:
    __atomic_store_n((uint32_t *)to, (uint32_t)x, order);
    break;
  default:
    __atomic_store_n((uint64_t *)to, x, order);
  }
}

#endif
