/* access.c -- finds the bytes that lanes access if their addresses follow no
 * simple pattern.
 *
 * This is the general path of every memory instruction. It separates the lanes
 * by state space and checks alignment and bounds lane by lane. It also counts
 * the accesses and reports them to the memory checks. access.h describes the
 * fast paths. */
#include "access.h"

/* ---- Memory ranges ------------------------------------------------------- */

const kiln__cpu_range *KILN__ISA_NAME(range_of)(kiln__cpu_warp *w,
                                                uint64_t address, uint64_t n)
{
  kiln__cpu_memory *memory = w->grid->memory;
  const uint64_t epoch = kiln__cpu_memory_epoch(memory);
  kiln__cpu_range found;
  kiln__cpu_range *r;

  if (w->cached_epoch != epoch) {
    memset(w->cached, 0, sizeof w->cached);
    w->cached_epoch = epoch;
  }
  if (!kiln__cpu_memory_find(memory, address, &found) ||
      n > found.last - address || kiln__cpu_range_denies(&found, w->grid) ||
      kiln__cpu_range_is_read_only(&found, w->grid))
    return NULL;
  r = &w->cached[w->cached_next++ % KILN__N_CACHED];
  *r = found;
  return r;
}

const kiln__cpu_range *KILN__ISA_NAME(read_only_range_of)(kiln__cpu_warp *w,
                                                          uint64_t address,
                                                          uint64_t n,
                                                          kiln__cpu_range *copy)
{
  return kiln__cpu_memory_find(w->grid->memory, address, copy) &&
                 n <= copy->last - address &&
                 !kiln__cpu_range_denies(copy, w->grid)
             ? copy
             : NULL;
}

/* Returns the lanes of `mask` whose accesses lie within `range`, and sets the
 * host addresses of these lanes. */
static uint32_t in_range(const kiln__cpu_range *range, uint32_t n,
                         uint32_t mask, kiln__cpu_reach *r)
{
  const uint64_t first = range->first, limit = range->last - first - n;
  const uintptr_t host = (uintptr_t)range->host;
  uint32_t in = 0;

  for (unsigned i = 0; i < KILN__WARP; i++) {
    const uint64_t at = r->address[i] - first;
    const bool ok = at <= limit && (mask >> i & 1) != 0;

    r->host[i] = ok ? host + at : r->host[i];
    in |= (uint32_t)ok << i;
  }
  return in;
}

/* Each of the following functions finds the bytes that the lanes of `mask`
 * access in one state space. It returns the lanes whose accesses are out of
 * bounds. */

static uint32_t reach_global(kiln__cpu_warp *w, uint32_t mask, uint32_t n,
                             kiln__cpu_access access, kiln__cpu_reach *r)
{
  kiln__cpu_range copy;
  uint32_t bad = 0;

  while (mask != 0) {
    const int lane = __builtin_ctz(mask);
    const kiln__cpu_range *range = kiln__cpu_range_of(w, r->address[lane], n);

    if (range == NULL && access == KILN__ACCESS_READ)
      range = KILN__ISA_NAME(read_only_range_of)(w, r->address[lane], n, &copy);
    if (range != NULL) {
      mask &= ~in_range(range, n, mask, r);
    } else {
      bad |= 1u << lane;
      mask &= mask - 1;
    }
  }
  return bad;
}

/* Returns the host address of n bytes of the cluster's shared memory. The upper
 * bits of `offset` select the block, and 0 selects the warp's own block.
 * Returns NULL if the block does not exist or the bytes are out of bounds.
 * *exited becomes true if the block has exited. */
static uint8_t *shared_of(const kiln__cpu_warp *w, uint64_t offset, uint32_t n,
                          bool *exited)
{
  const uint64_t rank = (offset >> KILN__CLUSTER_SHIFT) - 1;
  const uint64_t within = offset & ((UINT64_C(1) << KILN__CLUSTER_SHIFT) - 1);
  const kiln__cpu_block *b = w->block;

  if (offset >> KILN__CLUSTER_SHIFT != 0) {
    if (b->cluster != NULL && rank < b->cluster_size)
      b = b->cluster[rank];
    else if (b->cluster != NULL || rank != 0)
      return NULL;
    *exited = *exited || b->exited;
  }
  return kiln__cpu_in_shared(b, within, n) ? b->shared + within : NULL;
}

static uint32_t reach_shared(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                             uint64_t window, uint32_t mask, uint32_t n,
                             kiln__cpu_reach *r)
{
  uint32_t bad = 0;
  bool exited = false;

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint8_t *host = shared_of(w, r->address[lane] - window, n, &exited);

    r->host[lane] = (uintptr_t)host;
    bad |= (uint32_t)(host == NULL) << lane;
  }
  if (__builtin_expect(exited, 0))
    kiln__cpu_watch_exited_block(w, in, __builtin_ctz(mask));
  return bad;
}

static uint32_t reach_local(const kiln__cpu_warp *w, uint64_t window,
                            uint32_t mask, uint32_t n, kiln__cpu_reach *r)
{
  const uintptr_t base = (uintptr_t)w->local - w->local_at;
  uint32_t bad = 0;

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint64_t offset = r->address[lane] - window;

    r->host[lane] = base + (uintptr_t)lane * w->local_stride + offset;
    bad |= (uint32_t)(offset >= w->local_size || n > w->local_size - offset)
           << lane;
  }
  return bad;
}

/* Finds the bytes of kernel parameters. An address is an offset in the
 * parameter buffer, or lies in the generic address window of kernel
 * parameters. */
static uint32_t reach_params(const kiln__cpu_warp *w, uint32_t mask, uint32_t n,
                             kiln__cpu_reach *r)
{
  const uint32_t size = w->grid->code->param_bytes;
  uint32_t bad = 0;

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint64_t at = r->address[lane];
    const uint64_t offset = kiln__cpu_in_space(at, KILN__WINDOW_PARAM)
                                ? at - KILN__WINDOW_PARAM
                                : at;

    r->host[lane] = (uintptr_t)w->grid->params + offset;
    bad |= (uint32_t)(offset >= size || n > size - offset) << lane;
  }
  return bad;
}

/* ---- Generic addresses --------------------------------------------------- */

/* The sets of lanes whose generic addresses lie in each state space. */
typedef struct spaces {
  uint32_t global, shared, local, param;
} spaces;

static uint32_t in_window(const kiln__cpu_reach *r, uint32_t mask,
                          uint64_t window)
{
  uint32_t in = 0;

  for (unsigned i = 0; i < KILN__WARP; i++)
    in |= (uint32_t)kiln__cpu_in_space(r->address[i], window) << i;
  return in & mask;
}

static spaces split(const kiln__cpu_reach *r, kiln__cpu_space space,
                    uint32_t mask)
{
  spaces s = {0, 0, 0, 0};

  switch (space) {
  case KILN__SPACE_GENERIC:
    s.shared = in_window(r, mask, KILN__WINDOW_SHARED);
    s.local = in_window(r, mask, KILN__WINDOW_LOCAL);
    s.param = in_window(r, mask, KILN__WINDOW_PARAM);
    s.global = mask & ~(s.shared | s.local | s.param);
    break;
  case KILN__SPACE_SHARED:
  case KILN__SPACE_SHARED_CLUSTER:
    s.shared = mask;
    break;
  case KILN__SPACE_LOCAL:
    s.local = mask;
    break;
  case KILN__SPACE_PARAM:
    s.param = mask;
    break;
  case KILN__SPACE_GLOBAL:
  case KILN__SPACE_CONST:
  case KILN__SPACE_REG:
  case KILN__SPACE_TEX:
    s.global = mask;
    break;
  }
  return s;
}

kiln__cpu_space KILN__ISA_NAME(space_of)(const kiln__cpu_warp *w,
                                         uint64_t address)
{
  kiln__cpu_range r;

  if (kiln__cpu_in_space(address, KILN__WINDOW_SHARED))
    return KILN__SPACE_SHARED;
  if (kiln__cpu_in_space(address, KILN__WINDOW_LOCAL))
    return KILN__SPACE_LOCAL;
  if (kiln__cpu_in_space(address, KILN__WINDOW_PARAM))
    return KILN__SPACE_PARAM;
  if (kiln__cpu_memory_find(w->grid->memory, address, &r) &&
      r.kind == KILN__RANGE_CONST)
    return KILN__SPACE_CONST;
  return KILN__SPACE_GLOBAL;
}

/* ---- Counting accesses and reporting them to the checks ------------------ */

static void count(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  const kiln__cpu_reach *r, const spaces *s, uint32_t n,
                  kiln__cpu_counted counted)
{
  uint32_t cost = 0;

  if (counted == KILN__COUNT_ATOMIC) {
    cost = KILN__ISA_NAME(crowded)(r->address, w->mask, n);
  } else {
    if (s->global != 0)
      cost += KILN__ISA_NAME(sectors)(r->address, s->global, n);
    if (s->shared != 0)
      cost += KILN__ISA_NAME(passes)(r->address, s->shared, n);
    if (s->local != 0)
      cost += KILN__ISA_NAME(local_sectors)(r->address, s->local, n);
  }
  kiln__cpu_tally_add(w, in, cost);
}

static void watch_within(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         kiln__cpu_space space, const kiln__cpu_reach *r,
                         uint64_t window, uint32_t mask, uint32_t n,
                         kiln__cpu_access access)
{
  uint64_t at[KILN__WARP];

  if (mask == 0)
    return;
  for (int i = 0; i < KILN__WARP; i++)
    at[i] = r->address[i] - window;
  kiln__cpu_watch_access(w, in, space, at, mask, n, access);
}

/* Reports shared-memory accesses to the memory checks. An address in
 * shared::cluster may also refer to the shared memory of the warp's own
 * block. */
static void watch_shared(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         const kiln__cpu_reach *r, uint64_t window,
                         uint32_t mask, uint32_t n, kiln__cpu_access access)
{
  const uint64_t own = w->block->cluster_rank + UINT64_C(1);
  uint64_t at[KILN__WARP] = {0};
  uint32_t mine = 0;

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint64_t offset = r->address[lane] - window;
    const uint64_t rank = offset >> KILN__CLUSTER_SHIFT;

    if (rank == 0 || rank == own) {
      at[lane] = offset & ((UINT64_C(1) << KILN__CLUSTER_SHIFT) - 1);
      mine |= 1u << lane;
    }
  }
  if (mine != 0)
    kiln__cpu_watch_access(w, in, KILN__SPACE_SHARED, at, mine, n, access);
  watch_within(w, in, KILN__SPACE_SHARED_CLUSTER, r, window, mask & ~mine, n,
               access);
}

static void watch(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  kiln__cpu_space space, const kiln__cpu_reach *r,
                  const spaces *s, uint32_t n, kiln__cpu_access access)
{
  const bool generic = space == KILN__SPACE_GENERIC;

  if (space == KILN__SPACE_PARAM)
    return;
  watch_within(w, in, space == KILN__SPACE_CONST ? space : KILN__SPACE_GLOBAL,
               r, 0, s->global, n, access);
  if (s->shared != 0)
    watch_shared(w, in, r, generic ? KILN__WINDOW_SHARED : 0, s->shared, n,
                 access);
  watch_within(w, in, KILN__SPACE_LOCAL, r, generic ? KILN__WINDOW_LOCAL : 0,
               s->local, n, access);
}

/* ---- The general path, which handles any addresses ----------------------- */

static bool fail(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                 kiln__cpu_fault_kind kind, const kiln__cpu_reach *r,
                 uint32_t bad, uint32_t n)
{
  const int lane = __builtin_ctz(bad);

  kiln__cpu_fault(w, in, kind, lane, r->address[lane], n);
  return false;
}

static uint32_t misaligned(const kiln__cpu_reach *r, uint32_t mask, uint32_t n)
{
  uint32_t bad = 0;

  for (unsigned i = 0; i < KILN__WARP; i++)
    bad |= (uint32_t)((r->address[i] & (n - 1)) != 0) << i;
  return bad & mask;
}

/* PTX leaves atomic operations on local memory undefined. GPUs compute the right
 * values if one lane is active, as programs with atomic variables of one thread
 * expect, and wrong ones if the lanes of a warp use the same local address. */
static bool is_lone_local(const kiln__cpu_warp *w, const spaces *s)
{
  return s->local == w->mask && (w->mask & (w->mask - 1)) == 0;
}

bool KILN__ISA_NAME(reach_at)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                              kiln__cpu_space space, int32_t slot, bool wide,
                              uint64_t offset, uint32_t n,
                              kiln__cpu_access access,
                              kiln__cpu_counted counted, kiln__cpu_reach *r)
{
  if (slot < 0 && space == KILN__SPACE_LOCAL)
    offset += w->local_at;
  kiln__cpu_addresses(w, slot, wide, offset, r->address);
  return KILN__ISA_NAME(reach_listed)(w, in, space, n, access, counted, r);
}

bool KILN__ISA_NAME(reach_listed)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  kiln__cpu_space space, uint32_t n,
                                  kiln__cpu_access access,
                                  kiln__cpu_counted counted, kiln__cpu_reach *r)
{
  const bool generic = space == KILN__SPACE_GENERIC;
  uint32_t bad;
  spaces s;

  bad = misaligned(r, w->mask, n);
  if (bad != 0)
    return fail(w, in, KILN__FAULT_MISALIGNED, r, bad, n);

  s = split(r, space, w->mask);
  bad = s.local | s.param;
  if (access == KILN__ACCESS_ATOMIC && bad != 0 && !is_lone_local(w, &s))
    return fail(w, in, KILN__FAULT_SPACE, r, bad, n);
  memset(r->host, 0, sizeof r->host);
  bad = reach_global(w, s.global, n, access, r);
  bad |= reach_shared(w, in, generic ? KILN__WINDOW_SHARED : 0, s.shared, n, r);
  bad |= reach_local(w, generic ? KILN__WINDOW_LOCAL : 0, s.local, n, r);
  bad |= reach_params(w, s.param, n, r);
  if (bad != 0)
    return fail(w, in, KILN__FAULT_ADDRESS, r, bad, n);

  if (w->counted && counted != KILN__COUNT_NONE)
    count(w, in, r, &s, n, counted);
  if (w->watched)
    watch(w, in, space, r, &s, n, access);
  return true;
}
