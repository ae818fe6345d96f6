/* memory_path.h -- the code paths that loads and stores share. Only
 * memory_load.c and memory_store.c include this header.
 *
 * The including file defines, before it includes this header:
 * STORES             1 for stores, 0 for loads
 * elements()         moves the elements of a pattern, or of scattered lanes
 * slowly()           the general path, which checks and counts lane by lane
 *
 * Every path tries the cheapest method first. A pattern needs one bounds check.
 * Otherwise scattered lanes may lie within one memory range. All other accesses
 * take slowly(). Each handler below is a copy of its path with a constant
 * element size and vector length, so that the compiler unrolls the loops. */
#ifndef KILN_CPU_MEMORY_PATH_H
#define KILN_CPU_MEMORY_PATH_H

/* Moves the elements of lanes whose addresses follow no pattern. Returns false
 * unless all accesses lie in one range of global memory or in the shared memory
 * of the warp's block. If several lanes store to the same address, the random
 * seed of the launch decides which store wins. Stores of a launch with a seed
 * therefore take the general path. */
KILN__INLINE bool scattered(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            unsigned bytes, unsigned n, bool shared)
{
  kiln__cpu_reach r;

  if (STORES && w->grid->seed != 0)
    return false;
  if (shared ? !kiln__cpu_all_shared(w, in, bytes * n, &r)
             : !kiln__cpu_all_global(w, in, bytes * n, &r))
    return false;
  elements(w, in, bytes, n, KILN__ANYWHERE, NULL, r.host);
  return true;
}

/* Moves the elements of a local-memory access in which all lanes use the same
 * stack offset. Returns false if the offset is misaligned or out of bounds. */
KILN__INLINE bool move_local_at(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                unsigned bytes, unsigned n, uint64_t offset)
{
  uintptr_t host[KILN__WARP];

  if (!kiln__cpu_local_row(w, bytes * n, offset, host))
    return false;
  kiln__cpu_count_local(w, in, bytes * n);
  elements(w, in, bytes, n, KILN__ANYWHERE, NULL, host);
  return true;
}

/* Moves elements at global or generic addresses. If `own` is true, the
 * addresses are instead offsets in the shared memory of the warp's block. */
KILN__INLINE void move_at(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                          unsigned bytes, unsigned n, bool own)
{
  uint64_t first, low, size;
  kiln__cpu_pattern p;
  uint8_t *host = NULL;
  bool shared = own;

  if (__builtin_expect(w->watched, 0)) {
    slowly(w, in, bytes, n);
    return;
  }
  p = kiln__cpu_survey(w, in, bytes * n, &first);
  if (p == KILN__ANYWHERE) {
    if (!scattered(w, in, bytes, n, own))
      slowly(w, in, bytes, n);
    return;
  }
  size = kiln__cpu_extent(w, p, first, bytes * n, &low);
  if ((low & (bytes * n - 1)) == 0 &&
      !(STORES && p == KILN__AT_ONE && w->grid->seed != 0))
    host =
        own ? kiln__cpu_shared(w, low, size)
            : kiln__cpu_span(w, (kiln__cpu_space)in->space, low, size, &shared);
  if (host != NULL) {
    kiln__cpu_count_pattern(w, in, p, first, bytes * n, shared);
    elements(w, in, bytes, n, p, host, NULL);
  } else if (own || in->space != KILN__SPACE_GENERIC || p != KILN__AT_ONE ||
             !kiln__cpu_in_space(low, KILN__WINDOW_LOCAL) ||
             !move_local_at(w, in, bytes, n, low - KILN__WINDOW_LOCAL)) {
    slowly(w, in, bytes, n);
  }
}

KILN__INLINE void move_global(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                              unsigned bytes, unsigned n)
{
  move_at(w, in, bytes, n, false);
}

KILN__INLINE void move_shared(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                              unsigned bytes, unsigned n)
{
  move_at(w, in, bytes, n, true);
}

KILN__INLINE void move_local(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                             unsigned bytes, unsigned n)
{
  uint64_t first;

  if (in->a < 0)
    first = w->local_at + (uint64_t)in->imm;
  else if (kiln__cpu_survey(w, in, 0, &first) == KILN__ANYWHERE)
    first = UINT64_MAX;
  if (w->watched || !move_local_at(w, in, bytes, n, first))
    slowly(w, in, bytes, n);
}

/* Defines the handlers of one memory path from the function `move`: one handler
 * per element size, and one handler for vectors (suffix _v). The common sizes
 * and vector lengths are constants in the generated code. */
#define MOVES(prefix, move)                                                    \
  KILN__CALLS(prefix##_1, move, 1, 1)                                          \
  KILN__CALLS(prefix##_2, move, 2, 1)                                          \
  KILN__CALLS(prefix##_4, move, 4, 1)                                          \
  KILN__CALLS(prefix##_8, move, 8, 1)                                          \
  KILN__HANDLER(prefix##_v)                                                    \
  {                                                                            \
    if (in->bytes == 4 && in->n_vec == 2)                                      \
      move(w, in, 4, 2);                                                       \
    else if (in->bytes == 4 && in->n_vec == 4)                                 \
      move(w, in, 4, 4);                                                       \
    else if (in->bytes == 8 && in->n_vec == 2)                                 \
      move(w, in, 8, 2);                                                       \
    else                                                                       \
      slowly(w, in, in->bytes, in->n_vec);                                     \
  }

/* Defines a handler for any element size and vector length. Only weak global
 * and generic accesses use such handlers. */
#define ANY_SIZE(name, prefix)                                                 \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    if (in->n_vec > 1)                                                         \
      KILN__ISA_NAME(op_##prefix##_v)(w, in);                                  \
    else if (in->bytes == 4)                                                   \
      KILN__ISA_NAME(op_##prefix##_4)(w, in);                                  \
    else if (in->bytes == 8)                                                   \
      KILN__ISA_NAME(op_##prefix##_8)(w, in);                                  \
    else                                                                       \
      slowly(w, in, in->bytes, 1);                                             \
  }

#endif
