/* memory_store.c -- the store instruction st. If several lanes write the same
 * bytes, the last of these lanes in lane order wins. */
#include "access.h"

/* ---- Moving elements from registers -------------------------------------- */

/* These macros define functions that store the low sizeof(T) bytes of each
 * active lane. The destinations are `step` bytes apart or scattered. */
#define SPILLS(T, TS, name)                                                    \
  KILN__INLINE void row_##name(const kiln__cpu_warp *w, uint8_t *to,           \
                               unsigned step, const TS *from)                  \
  {                                                                            \
    if (__builtin_expect(w->full, 1)) {                                        \
      if (sizeof(T) == sizeof(TS) && step == sizeof(T)) {                      \
        memcpy(to, from, KILN__WARP * sizeof(T));                              \
        return;                                                                \
      }                                                                        \
      for (unsigned i = 0; i < KILN__WARP; i++) {                              \
        const T x = (T)from[i];                                                \
        memcpy(to + (size_t)i * step, &x, sizeof x);                           \
      }                                                                        \
      return;                                                                  \
    }                                                                          \
    for (uint32_t m = w->mask, f = (uint32_t)__builtin_ctz(m); m != 0;         \
         m &= m - 1) {                                                         \
      const unsigned i = (unsigned)__builtin_ctz(m);                           \
      const T x = (T)from[i];                                                  \
      memcpy(to + (size_t)(i - f) * step, &x, sizeof x);                       \
    }                                                                          \
  }                                                                            \
                                                                               \
  KILN__INLINE void any_##name(const kiln__cpu_warp *w, const uintptr_t *to,   \
                               unsigned offset, const TS *from)                \
  {                                                                            \
    if (__builtin_expect(w->full, 1)) {                                        \
      for (unsigned i = 0; i < KILN__WARP; i++) {                              \
        const T x = (T)from[i];                                                \
        memcpy((void *)(to[i] + offset), &x, sizeof x);                        \
      }                                                                        \
      return;                                                                  \
    }                                                                          \
    for (uint32_t m = w->mask; m != 0; m &= m - 1) {                           \
      const unsigned i = (unsigned)__builtin_ctz(m);                           \
      const T x = (T)from[i];                                                  \
      memcpy((void *)(to[i] + offset), &x, sizeof x);                          \
    }                                                                          \
  }

SPILLS(uint8_t, uint32_t, 1)
SPILLS(uint16_t, uint32_t, 2)
SPILLS(uint32_t, uint32_t, 4)
SPILLS(uint64_t, uint64_t, 8)

/* Implements a store in which all lanes use one address. The value of the last
 * active lane is stored. */
KILN__INLINE void spill_one(const kiln__cpu_warp *w, unsigned bytes,
                            uint8_t *to, const void *from)
{
  const unsigned last = 31 - (unsigned)__builtin_clz(w->mask);
  const uint64_t wide = bytes == 8 ? ((const uint64_t *)from)[last] : 0;
  const uint32_t x = bytes == 8 ? 0 : ((const uint32_t *)from)[last];
  const uint16_t two = (uint16_t)x;

  switch (bytes) {
  case 1:
    *to = (uint8_t)x;
    break;
  case 2:
    memcpy(to, &two, 2);
    break;
  case 4:
    memcpy(to, &x, 4);
    break;
  default:
    memcpy(to, &wide, 8);
  }
}

KILN__INLINE void spill(const kiln__cpu_warp *w, unsigned bytes, unsigned k,
                        unsigned n, kiln__cpu_pattern p, uint8_t *low,
                        const uintptr_t *host, const void *from)
{
  if (p == KILN__AT_ONE) {
    spill_one(w, bytes, low + (size_t)k * bytes, from);
    return;
  }
#define SPILL(size)                                                            \
  case size:                                                                   \
    if (p == KILN__IN_A_ROW)                                                   \
      row_##size(w, low + (size_t)k * bytes, n * bytes, from);                 \
    else                                                                       \
      any_##size(w, host, k *bytes, from);                                     \
    break;
  switch (bytes) {
    SPILL(1)
    SPILL(2)
    SPILL(4)
    SPILL(8)
  }
#undef SPILL
}

/* ---- One store instruction ----------------------------------------------- */

/* Returns the values to store as 32-bit or 64-bit elements for spill(). A
 * register may be wider than the stored element. */
KILN__INLINE const void *values(const kiln__cpu_warp *w,
                                const kiln__cpu_insn *in, unsigned bytes,
                                int32_t slot, uint32_t narrow[KILN__WARP])
{
  if (__builtin_expect(bytes == 8 || in->src_reg_bytes <= 4, 1))
    return w->regs + slot;
  for (int i = 0; i < KILN__WARP; i++)
    narrow[i] = (uint32_t)KILN__SLOT(const uint64_t, slot)[i];
  return narrow;
}

KILN__INLINE void elements(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           unsigned bytes, unsigned n, kiln__cpu_pattern p,
                           uint8_t *low, const uintptr_t *host)
{
  for (unsigned k = 0; k < n; k++) {
    uint32_t narrow[KILN__WARP];

    spill(w, bytes, k, n, p, low, host,
          values(w, in, bytes, n == 1 ? in->b : in->vec[k], narrow));
  }
}

/* Stores one lane after the other, in the order that the random seed of the
 * launch determines. */
static void in_order(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     unsigned bytes, unsigned n, const uintptr_t *host)
{
  const unsigned order = kiln__cpu_lane_order(w, in);

  for (unsigned j = 0; j < KILN__WARP; j++) {
    const unsigned i = j ^ order;

    if ((w->mask >> i & 1) == 0)
      continue;
    for (unsigned k = 0; k < n; k++) {
      uint32_t narrow[KILN__WARP];
      const uint8_t *from =
          values(w, in, bytes, n == 1 ? in->b : in->vec[k], narrow);
      uint64_t x = 0;

      /* Values are copied through variables of their size, so the low bytes are
       * stored on hosts of either byte order. */
      if (bytes == 8) {
        memcpy(&x, from + 8 * (size_t)i, 8);
        memcpy((void *)(host[i] + (uintptr_t)k * 8), &x, 8);
      } else {
        uint32_t y;
        uint16_t two;
        uint8_t one;

        memcpy(&y, from + 4 * (size_t)i, 4);
        two = (uint16_t)y;
        one = (uint8_t)y;
        memcpy((void *)(host[i] + (uintptr_t)k * bytes),
               bytes == 4   ? (const void *)&y
               : bytes == 2 ? (const void *)&two
                            : (const void *)&one,
               bytes);
      }
    }
  }
}

static __attribute__((noinline)) void
slowly(kiln__cpu_warp *w, const kiln__cpu_insn *in, unsigned bytes, unsigned n)
{
  kiln__cpu_reach r;

  if (!kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, bytes * n,
                         KILN__ACCESS_WRITE, KILN__COUNT_MEMORY, &r))
    return;
  in_order(w, in, bytes, n, r.host);
}

#define STORES 1
#include "memory_path.h"

/* ---- Handlers ------------------------------------------------------------ */

MOVES(st_global, move_global)
MOVES(st_shared, move_shared)
MOVES(st_local, move_local)
ANY_SIZE(st_l1, st_global)

KILN__HANDLER(st_wt_local)
{
  slowly(w, in, in->bytes, in->n_vec > 1 ? in->n_vec : 1);
}

/* ---- Strong stores ------------------------------------------------------- */

/* Finds the elements of a strong store. Returns false if the access faulted. */
static bool reach_strong(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         uint32_t bytes, kiln__cpu_reach *r)
{
  const bool own = in->space == KILN__SPACE_SHARED;
  bool near = own || in->space == KILN__SPACE_GLOBAL ||
              in->space == KILN__SPACE_GENERIC;
  bool shared;

  if (near && w->counted)
    near = !w->watched && (own ? kiln__cpu_all_shared(w, in, bytes, r)
                               : kiln__cpu_all_global(w, in, bytes, r));
  else
    near = near && kiln__cpu_reach_near(w, in, bytes, &shared, r);
  return near || kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, bytes,
                                   KILN__ACCESS_WRITE, KILN__COUNT_MEMORY, r);
}

KILN__HANDLER(st_volatile)
{
  const unsigned n = in->n_vec > 1 ? in->n_vec : 1, bytes = in->bytes;
  const unsigned order = kiln__cpu_lane_order(w, in);
  kiln__cpu_reach r;

  if (!reach_strong(w, in, bytes * n, &r))
    return;
  for (uint32_t m = kiln__cpu_positions(w, order); m != 0; m &= m - 1) {
    const unsigned i = (unsigned)__builtin_ctz(m) ^ order;

    for (unsigned k = 0; k < n; k++) {
      const int32_t slot = n == 1 ? in->b : in->vec[k];

      /* The element is stored with a single access, which follows all earlier
       * writes of this thread. */
      kiln__cpu_atomic_store(r.host[i] + (uintptr_t)k * bytes, bytes,
                             bytes == 8 || in->src_reg_bytes > 4
                                 ? KILN__SLOT(const uint64_t, slot)[i]
                                 : KILN__SLOT(const uint32_t, slot)[i],
                             __ATOMIC_RELEASE);
    }
  }
}

/* PTX allows a store with a cache hint to write through. */
KILN__HANDLER(st_hint)
{
  if (in->sem != KILN__SEM_WEAK)
    KILN__ISA_NAME(op_st_volatile)(w, in);
  else
    KILN__ISA_NAME(op_st_l1)(w, in);
}
