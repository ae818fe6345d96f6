/* address.c -- cvta, isspacep, mapa, getctarank and fences. The file also
 * contains the cache hints prefetch, discard and applypriority, which have no
 * effect in the interpreter. */
#include "access.h"

/* ---- State spaces -------------------------------------------------------- */

static bool is_in(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  uint64_t address)
{
  const uint64_t offset = address - KILN__WINDOW_SHARED;
  const uint64_t rank = offset >> KILN__CLUSTER_SHIFT;
  const kiln__cpu_space space = KILN__ISA_NAME(space_of)(w, address);

  if (in->space != KILN__SPACE_SHARED || space != KILN__SPACE_SHARED)
    return in->space == KILN__SPACE_SHARED_CLUSTER
               ? space == KILN__SPACE_SHARED
               : space == (kiln__cpu_space)in->space;
  return rank == 0 || rank == w->block->cluster_rank + UINT64_C(1);
}

KILN__HANDLER(isspacep)
{
  uint64_t at[KILN__WARP];

  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0, 0, at);
  KILN__ACTIVE_LANES(uint32_t, is_in(w, in, at[i]) ? UINT32_MAX : 0);
}

/* ---- Clusters ------------------------------------------------------------ */

#define WITHIN ((UINT32_C(1) << KILN__CLUSTER_SHIFT) - 1)

/* Converts an offset in the shared memory of any block of the cluster to an
 * offset in the shared memory of block `rank`. */
static uint32_t mapped(uint32_t offset, uint32_t rank)
{
  return (offset & WITHIN) | (rank + 1) << KILN__CLUSTER_SHIFT;
}

static uint32_t rank_of(const kiln__cpu_warp *w, uint32_t offset)
{
  const uint32_t rank = offset >> KILN__CLUSTER_SHIFT;

  return rank == 0 ? w->block->cluster_rank : rank - 1;
}

KILN__OP2(mapa_u32, uint32_t, uint32_t, mapped(A[i], B[i]))

KILN__HANDLER(mapa_u64)
{
  const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);
  const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);

  KILN__LANES(uint64_t, mapped((uint32_t)A[i], B[i]));
}

KILN__HANDLER(mapa_generic)
{
  const uint64_t *const A = KILN__SLOT(const uint64_t, in->a);
  const uint32_t *const B = KILN__SLOT(const uint32_t, in->b);

  KILN__LANES(uint64_t,
              KILN__WINDOW_SHARED +
                  mapped((uint32_t)(A[i] - KILN__WINDOW_SHARED), B[i]));
}

KILN__OP1(getctarank_u32, uint32_t, uint32_t, rank_of(w, A[i]))

KILN__OP1(getctarank_u64, uint32_t, uint64_t, rank_of(w, (uint32_t)A[i]))

KILN__OP1(getctarank_generic, uint32_t, uint64_t,
          rank_of(w, (uint32_t)(A[i] - KILN__WINDOW_SHARED)))

/* ---- Fences -------------------------------------------------------------- */

/* Executes a fence. Blocks may run on several host threads, so the handler also
 * executes a fence of the host processor. Within a block, only the race check
 * needs the fence. */
KILN__HANDLER(fence)
{
  if (in->scope != KILN__SCOPE_CTA)
    atomic_thread_fence(memory_order_seq_cst);
  if (w->watched)
    kiln__cpu_watch_fence(w, in);
}

/* ---- Hints --------------------------------------------------------------- */

/* The handler of instructions that have no effect in the interpreter, or whose
 * effect the scheduler alone implements. */
KILN__HANDLER(nothing)
{
  (void)w;
  (void)in;
}

KILN__HANDLER(createpolicy)
{
  KILN__LANES(uint64_t, 0);
}
