/* warpgroup_check.c -- checks the order of wgmma: fences, groups, registers in
 * flight, and the warps of a warpgroup.
 *
 * Problem: this device computes a wgmma when it is issued, so a kernel that
 * misses a wgmma.fence or a wgmma.wait_group runs here but not on a GPU.
 *
 * Idea: a warp counts its fences and groups. Each register that some wgmma uses
 * (track_registers.c numbers them) remembers the last group that accumulates in
 * it, the last group that reads it as a fragment of A, and the number of fences
 * at the last write by another instruction. A group is in flight until
 * wgmma.wait_group completes it. A mov between registers moves this state,
 * since compilers copy accumulators between two wgmma.
 *
 * Only the kernel itself is checked, not the functions that it calls. Each warp
 * also keeps a hash of its wgmma. At the end of the block, the four warps of a
 * warpgroup must have the same hash.
 *
 * Source: the rules are those of the PTX ISA for wgmma.fence, wgmma.mma_async
 * and wgmma.wait_group. */
#include "warpgroup_check.h"

#include "../exec/warpgroup.h"
#include "grid_job.h"

enum { GROUP_WARPS = 4 };

/* The state of a register. Groups are counted from 1, so 0 means never. */
typedef struct reg_state {
  uint32_t d_group; /* last group that has the register as accumulator */
  uint32_t a_group; /* last group that reads the register as part of A */
  /* 1 + the number of fences before the last write by another instruction */
  uint32_t written;
  uint32_t shape; /* shape and type of the accumulator */
} reg_state;

/* The asynchronous accesses of one wgmma. */
typedef struct pending {
  kiln__cpu_async id;
  uint32_t group;
} pending;

/* The state of one warp; w->matrices points to it. */
enum { N_RECENT = 64 };

typedef struct matrices {
  const kiln__cpu_code *code; /* the kernel */
  reg_state *regs;            /* code->n_tracked elements */
  pending *pending;
  uint32_t n_pending, capacity;
  uint32_t fences;
  uint32_t open; /* the group that the next wgmma belongs to */
  uint32_t done; /* all groups up to this one are complete */
  uint64_t hash;
  uint32_t issued;
  const kiln__cpu_insn *last; /* last wgmma */
  /* ids of the last products; product number n has element n % N_RECENT */
  kiln__cpu_async recent[N_RECENT];
} matrices;

static bool is_checked(const kiln__cpu_warp *w)
{
  return w->watched || kiln__cpu_schedule_of(w)->check_sync;
}

/* Returns the state of the warp, which is made at the first use. Returns NULL if
 * memory is exhausted; the warp is then not checked. */
static matrices *state_of(kiln__cpu_warp *w)
{
  const kiln_allocator *a = &w->grid->alloc;
  const kiln__cpu_code *code = w->grid->code;
  matrices *m = w->matrices;

  if (m != NULL)
    return m;
  m = kiln__calloc(a, 1, sizeof *m);
  if (m == NULL)
    return NULL;
  m->regs = kiln__calloc(a, code->n_tracked + 1u, sizeof *m->regs);
  if (m->regs == NULL) {
    kiln__free(a, m);
    return NULL;
  }
  m->code = code;
  m->open = 1;
  w->matrices = m;
  return m;
}

void kiln__cpu_matrices_free(kiln__cpu_warp *w)
{
  matrices *m = w->matrices;

  if (m == NULL)
    return;
  kiln__free(&w->grid->alloc, m->regs);
  kiln__free(&w->grid->alloc, m->pending);
  kiln__free(&w->grid->alloc, m);
  w->matrices = NULL;
}

static bool in_flight(const matrices *m, uint32_t group)
{
  return group > m->done;
}

/* Returns whether the accesses of the running frame are listed in m->code. */
static bool in_kernel(const kiln__cpu_warp *w, const matrices *m)
{
  const kiln__cpu_frame *f = kiln__cpu_schedule_of(w)->frame;

  return m->code->tracked != NULL && f->parent == NULL && f->code == m->code;
}

/* ---- Registers ----------------------------------------------------------- */

static const char wait_advice[] =
    "the order: wgmma.wait_group must precede it. A compiler may have moved "
    "the "
    "access; name the registers as \"+f\" operands of an empty asm volatile "
    "after the wait";
static const char fence_advice[] =
    "the order: wgmma.fence must follow the write and precede the wgmma";

/* Moves the state of a register that mov copies. */
static void copy(matrices *m, const kiln__cpu_tracked *items, uint32_t n)
{
  const kiln__cpu_tracked *from = NULL, *to = NULL;

  for (uint32_t i = 0; i < n; i++) {
    if (items[i].written)
      to = &items[i];
    else
      from = &items[i];
  }
  if (to != NULL)
    m->regs[to->reg] = from != NULL ? m->regs[from->reg] : (reg_state){0};
  if (from != NULL && to != NULL && from->reg != to->reg)
    m->regs[from->reg] = (reg_state){0};
}

void kiln__cpu_wgmma_touch(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  matrices *m = w->matrices;
  const kiln__cpu_tracked *items;
  uint32_t n;

  if (!is_checked(w) || w->grid->code->tracked == NULL)
    return;
  m = state_of(w);
  if (m == NULL || !in_kernel(w, m))
    return;
  items = &m->code->tracked[m->code->tracked_at[in->index]];
  n = m->code->tracked_at[in->index + 1] - m->code->tracked_at[in->index];
  if (in->op == KILN__OP_mov_b32) {
    copy(m, items, n);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    reg_state *r = &m->regs[items[i].reg];

    if (in_flight(m, r->d_group))
      kiln__cpu_watch_wgmma_misuse(
          w, in,
          items[i].written ? "writes an accumulator of a wgmma in flight"
                           : "reads an accumulator of a wgmma in flight",
          wait_advice);
    else if (items[i].written && in_flight(m, r->a_group))
      kiln__cpu_watch_wgmma_misuse(
          w, in, "writes a register that a wgmma in flight reads as A",
          wait_advice);
    if (items[i].written)
      *r = (reg_state){.written = 1 + m->fences};
  }
}

/* Checks the registers of a wgmma, and records that it uses them. */
static void use_registers(kiln__cpu_warp *w, matrices *m,
                          const kiln__cpu_insn *in, bool accumulate)
{
  const uint32_t from = m->code->tracked_at[in->index];
  const uint32_t to = m->code->tracked_at[in->index + 1];
  const uint32_t shape = (uint32_t)in->imm; /* columns and types */
  const bool sparse = (kiln__cpu_wgmma_of(in).flags & KILN__WGMMA_SPARSE) != 0;
  const uint32_t n_sources = to - from - 2u * in->n_vec;
  bool unfenced = false, mixed = false;

  /* The sources come first: the registers of A, the metadata, and d. Then d
   * follows as the destination. */
  for (uint32_t i = from; i < to; i++) {
    reg_state *r = &m->regs[m->code->tracked[i].reg];
    const bool is_a = i - from < n_sources;

    if (sparse && i - from == n_sources - 1) /* the metadata */
      continue;

    if (m->code->tracked[i].written) {
      *r = (reg_state){.d_group = m->open, .shape = shape};
      continue;
    }
    unfenced |= r->written > m->fences && (is_a || accumulate);
    mixed |= is_a ? in_flight(m, r->d_group)
                  : in_flight(m, r->a_group) ||
                        (in_flight(m, r->d_group) && r->shape != shape);
    if (is_a)
      r->a_group = m->open;
  }
  if (mixed)
    kiln__cpu_watch_wgmma_misuse(
        w, in, "uses a register of a wgmma in flight in another role or shape",
        wait_advice);
  if (unfenced)
    kiln__cpu_watch_wgmma_misuse(
        w, in, "uses registers that were written after the last wgmma.fence",
        fence_advice);
}

/* ---- Issue, fence, commit and wait --------------------------------------- */

/* Returns the id of the product that the warp executes. The four warps of a
 * warpgroup share the id of a product, because a thread of one warp may report
 * the completion for all. */
static kiln__cpu_async id_of_product(kiln__cpu_warp *w, matrices *m)
{
  const uint32_t first = w->index / 4 * 4, n = m->issued;
  kiln__cpu_async id = 0;

  for (uint32_t i = first; i < first + 4 && i < w->block->n_warps; i++) {
    const matrices *const other = w->block->warps[i].matrices;

    if (other != NULL && other != m && other->issued >= n &&
        other->issued - n < N_RECENT)
      id = other->recent[n % N_RECENT];
  }
  if (id == 0)
    id = kiln__cpu_watch_async_begin(w);
  m->recent[n % N_RECENT] = id;
  return id;
}

static kiln__cpu_async begin(kiln__cpu_warp *w, matrices *m)
{
  pending *more;
  kiln__cpu_async id;

  if (m->n_pending == m->capacity) {
    more = kiln__resize(&w->grid->alloc, m->pending,
                        (2 * m->capacity + 16) * sizeof *more);
    if (more == NULL)
      return 0;
    m->pending = more;
    m->capacity = 2 * m->capacity + 16;
  }
  id = id_of_product(w, m);
  if (id != 0)
    m->pending[m->n_pending++] = (pending){id, m->open};
  return id;
}

kiln__cpu_async kiln__cpu_matrices_issue(kiln__cpu_warp *w,
                                         const kiln__cpu_insn *in, uint64_t key,
                                         bool accumulate)
{
  matrices *m = is_checked(w) ? state_of(w) : NULL;

  if (m == NULL)
    return 0;
  m->issued++;
  m->hash = (m->hash ^ key ^ in->index) * UINT64_C(0x9e3779b97f4a7c15);
  m->last = in;
  if (m->fences == 0)
    kiln__cpu_watch_wgmma_misuse(
        w, in, "executes the first wgmma without a wgmma.fence before it",
        fence_advice);
  else if (in_kernel(w, m))
    use_registers(w, m, in, accumulate);
  return begin(w, m);
}

static void complete_groups(kiln__cpu_warp *w, matrices *m, uint64_t keep)
{
  const uint32_t committed = m->open - 1;
  uint32_t kept = 0;

  if (committed > keep && committed - keep > m->done)
    m->done = (uint32_t)(committed - keep);
  for (uint32_t i = 0; i < m->n_pending; i++) {
    if (in_flight(m, m->pending[i].group))
      m->pending[kept++] = m->pending[i];
    else
      kiln__cpu_watch_async_seen(w, m->pending[i].id);
  }
  m->n_pending = kept;
}

void kiln__cpu_matrices_order(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  matrices *m = is_checked(w) ? state_of(w) : NULL;

  if (m == NULL)
    return;
  if (in->op == KILN__OP_wgmma_fence)
    m->fences++;
  else if (in->op == KILN__OP_wgmma_commit)
    m->open++;
  else
    complete_groups(w, m, (uint64_t)in->imm);
}

/* ---- End of a block ------------------------------------------------------ */

/* Compares two warps of a warpgroup. */
static void compare(kiln__cpu_warp *first, kiln__cpu_warp *w)
{
  const matrices *a = first->matrices, *b = w->matrices;
  const uint32_t n_a = a != NULL ? a->issued : 0;
  const uint32_t n_b = b != NULL ? b->issued : 0;
  kiln__cpu_warp *const other = n_b > n_a ? w : first;
  const matrices *const more = n_b > n_a ? b : a;

  if (n_a == n_b && (n_a == 0 || a->hash == b->hash))
    return;
  kiln__cpu_watch_wgmma_misuse(
      other, more->last,
      "executes other wgmma, or with other descriptors, than another warp of "
      "its warpgroup",
      "the branches around it: all 128 threads of a warpgroup must execute the "
      "same wgmma");
}

void kiln__cpu_matrices_end(kiln__cpu_block *block)
{
  const bool whole = !atomic_load(&block->grid->stopped);

  for (uint32_t i = 0; i < block->n_warps && whole; i++) {
    if (i % GROUP_WARPS != 0)
      compare(&block->warps[i / GROUP_WARPS * GROUP_WARPS], &block->warps[i]);
  }
  for (uint32_t i = 0; i < block->n_warps; i++)
    kiln__cpu_matrices_free(&block->warps[i]);
}
