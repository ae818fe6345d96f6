/* its.c -- the warp scheduler under independent thread scheduling (Volta and
 * later GPUs).
 *
 * Problem: the lanes of a warp may be at different instructions. Lanes should
 * run together wherever possible and reconverge after branches as on a GPU. At
 * the same time every lane must make progress, even if another lane of its warp
 * polls memory that this lane has to write.
 *
 * Idea: lanes with the same frame and pc form a group, and one group runs at a
 * time. Two groups that diverge at a branch reconverge at the immediate
 * post-dominator of the branch. The depth of an instruction is its number of
 * post-dominators up to the end of the function. Code on the path to a
 * reconvergence point is deeper than the reconvergence point itself. The
 * scheduler therefore runs the group in the deepest call first, and among these
 * groups the group at the deepest instruction. Among groups at the same depth,
 * the group with the lowest pc runs first and catches up with the others.
 * Groups that reach the same frame and pc are merged.
 *
 * Fairness: a group that keeps branching backwards lets other groups run. A
 * group that executes polling instructions (volatile loads, atomics, mbarrier
 * tests) does so soon. Any other group does so after KILN__PATIENCE backward
 * branches, which ordinary loops rarely reach. If all lanes of a warp wait in
 * mbarrier.try_wait, the warp sleeps until the phase ends or no warp of its
 * block group can run.
 *
 * Synchronisation: a group at a .sync instruction waits until all live lanes of
 * its member mask have arrived at this instruction, in any frame.
 *
 * Invariant: each live lane is in exactly one group. There are at most 32
 * groups, plus one while lanes are being split.
 *
 * Cost: an undiverged warp runs in the inner loop of run_loop(), with one
 * indirect call per instruction. Groups are searched linearly, but only when a
 * branch diverges, when groups merge, or when another group has to run.
 *
 * Source: the CUDA C++ Programming Guide (Independent Thread Scheduling)
 * defines the observable rules. Reconvergence at immediate post-dominators
 * follows Fung et al., MICRO 2007. */
#include "../memory/mbarrier.h"
#include "access.h"
#include "schedule.h"

static void remove_group(kiln__cpu_schedule *s, uint32_t at)
{
  s->group[at] = s->group[--s->n_groups];
}

static void add_group(kiln__cpu_schedule *s, kiln__cpu_frame *f, uint32_t pc,
                      uint32_t mask)
{
  s->group[s->n_groups++] =
      (kiln__cpu_group){.frame = f, .pc = pc, .mask = mask, .stamp = s->stamps};
}

/* Merges ready groups of lanes with the same frame and pc. */
static void merge_groups(kiln__cpu_schedule *s)
{
  for (uint32_t i = 0; i < s->n_groups; i++) {
    kiln__cpu_group *const g = &s->group[i];

    for (uint32_t j = i + 1; j < s->n_groups; j++) {
      const kiln__cpu_group *const other = &s->group[j];

      if (other->frame != g->frame || other->pc != g->pc ||
          other->wait != KILN__READY || g->wait != KILN__READY)
        continue;
      g->mask |= other->mask;
      g->stamp =
          other->stamp - g->stamp > UINT32_MAX / 2 ? other->stamp : g->stamp;
      if (s->current == j)
        s->current = i;
      else if (s->current == s->n_groups - 1)
        s->current = j;
      remove_group(s, j--);
    }
  }
}

static uint32_t depth_of(const kiln__cpu_group *g)
{
  return g->frame->code->places[g->pc].depth;
}

static bool before(const kiln__cpu_group *a, const kiln__cpu_group *b)
{
  uint32_t deep_a, deep_b;

  if (a->frame != b->frame && a->frame->depth != b->frame->depth)
    return a->frame->depth > b->frame->depth;
  deep_a = depth_of(a);
  deep_b = depth_of(b);
  return deep_a != deep_b ? deep_a > deep_b : a->pc < b->pc;
}

/* Returns the index of the ready group of lanes to run next, or n_groups if no
 * group is ready. If `aged` is true, returns the group that has waited longest,
 * except the running group. */
static uint32_t choose(kiln__cpu_schedule *s, bool aged)
{
  uint32_t best = s->n_groups, ready = 0;

  for (uint32_t i = 0; i < s->n_groups; i++) {
    const kiln__cpu_group *const g = &s->group[i];

    if (g->wait != KILN__READY)
      continue;
    ready++;
    if (aged && i == s->current)
      continue;
    if (best == s->n_groups ||
        (aged ? g->stamp - s->group[best].stamp > UINT32_MAX / 2
              : before(g, &s->group[best])))
      best = i;
  }
  s->others = ready > 1;
  /* With a random seed, any ready group may be next. */
  if (s->random != 0 && ready > 1) {
    uint32_t skip = (uint32_t)(kiln__cpu_schedule_random(s) >> 32) % ready;

    for (best = 0; s->group[best].wait != KILN__READY || skip-- != 0; best++) {
    }
  }
  return best;
}

/* Finds the ready group of lanes that would run next if the running group
 * stopped; see gives_way(). */
static void find_rival(kiln__cpu_schedule *s)
{
  const kiln__cpu_group *const g = &s->group[s->current], *rival = NULL;

  for (uint32_t i = 0; i < s->n_groups; i++) {
    const kiln__cpu_group *const other = &s->group[i];

    if (i != s->current && other->wait == KILN__READY &&
        other->frame->depth == g->frame->depth &&
        (rival == NULL || before(other, rival)))
      rival = other;
  }
  s->rival_depth = rival == NULL ? 0 : depth_of(rival);
  s->rival_pc = rival == NULL ? 0 : rival->pc;
}

/* Returns true if the running group, after a branch to `pc`, has to let another
 * group run. */
static bool gives_way(const kiln__cpu_schedule *s, uint32_t pc, uint32_t meet)
{
  uint32_t depth;

  if (s->fair)
    return false;
  if (s->random != 0)
    return pc > meet;
  depth = s->frame->code->places[pc].depth;
  return depth < s->rival_depth ||
         (depth == s->rival_depth && pc > s->rival_pc);
}

/* Returns the next pc, if no branch is taken, at which the running group of
 * lanes meets another group of the same call frame. The result may also be a pc
 * at which another group may have priority. */
static uint32_t next_meeting(const kiln__cpu_schedule *s, uint32_t pc)
{
  const kiln__cpu_frame *const f = s->group[s->current].frame;
  uint32_t meet = UINT32_MAX;

  if (!s->fair && s->random == 0)
    meet = f->code->places[pc].rise;

  for (uint32_t i = 0; i < s->n_groups; i++) {
    const kiln__cpu_group *const g = &s->group[i];

    if (i != s->current && g->frame == f && g->wait == KILN__READY &&
        g->pc >= pc && g->pc < meet)
      meet = g->pc;
  }
  return meet;
}

/* This function is not inlined, so that run_loop() can use more registers of
 * the host processor. */
static __attribute__((noinline)) uint32_t
after_branch(const kiln__cpu_schedule *s, uint32_t pc, uint32_t meet)
{
  return gives_way(s, pc, meet) ? pc : next_meeting(s, pc);
}

static void use_group(kiln__cpu_warp *w, kiln__cpu_schedule *s, uint32_t at)
{
  kiln__cpu_group *const g = &s->group[at];

  s->current = at;
  g->stamp = ++s->stamps;
  g->ran = true;
  kiln__cpu_frame_use(w, g->frame);
  if (w->mask != g->mask)
    KILN__SET_MASK(w, g->mask);
  s->meet = UINT32_MAX;
  if (s->others) {
    s->meet = next_meeting(s, g->pc);
    if (!s->fair && s->random == 0)
      find_rival(s);
  }
}

/* Selects the group of lanes that runs. Returns false if no group is ready. */
static bool pick(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  uint32_t at;

  if (s->n_groups > 1) {
    if (s->random == 0 || (kiln__cpu_schedule_random(s) & 3) != 0)
      merge_groups(s);
    if (s->fair && s->current < s->n_groups &&
        s->group[s->current].wait == KILN__READY) {
      at = s->current;
      /* Assume that other groups are ready. If none is, this costs one extra
       * call of rotate(). */
      s->others = true;
    } else {
      s->fair = false;
      at = choose(s, false);
    }
  } else {
    at = s->n_groups == 1 && s->group[0].wait == KILN__READY ? 0 : s->n_groups;
    s->others = false;
    s->fair = false;
  }
  if (at == s->n_groups)
    return false;
  use_group(w, s, at);
  return true;
}

/* Selects another group of lanes, because the running group has used up its
 * backward branches. */
static void rotate(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  uint32_t at = UINT32_MAX;

  s->turns = KILN__PATIENCE;
  if (s->random != 0)
    s->turns = 1 + (uint32_t)(kiln__cpu_schedule_random(s) >> 32) % KILN__TURNS;
  merge_groups(s);
  if (!s->fair) {
    at = choose(s, true);
    s->fair = at < s->n_groups;
  } else {
    s->fair = false;
  }
  if (!s->fair)
    at = choose(s, false);
  use_group(w, s, at);
}

/* ---- Waiting for the members of a .sync instruction ---------------------- */

/* Returns true if two groups of lanes wait at .sync instructions that
 * synchronise with each other. */
static bool same_sync(const kiln__cpu_group *a, const kiln__cpu_group *b)
{
  const kiln__cpu_code *const ca = a->frame->code, *const cb = b->frame->code;

  if (ca == cb && a->pc == b->pc)
    return true;
  return ca->insns[a->pc].op == KILN__OP_bar_warp_sync &&
         cb->insns[b->pc].op == KILN__OP_bar_warp_sync;
}

enum { SPARE_SLOTS = 7 };

static void copy_lanes(uint8_t *to, const uint8_t *from, uint32_t mask,
                       size_t bytes)
{
  for (; mask != 0; mask &= mask - 1) {
    const size_t at = (size_t)__builtin_ctz(mask) * bytes;

    memcpy(to + at, from + at, bytes);
  }
}

/* Executes one .sync instruction for lanes of several call frames. The operands
 * are gathered into a temporary frame, and the results are scattered from
 * it. */
static void run_across(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                       kiln__cpu_group *const *groups, uint32_t n,
                       uint32_t mask)
{
  _Alignas(64) uint8_t spare[SPARE_SLOTS * 256];
  const int32_t from[] = {in->a, in->b, in->c, in->e};
  kiln__cpu_insn across = *in;
  int32_t *const to[] = {&across.a, &across.b, &across.c, &across.e};
  uint8_t *const regs = w->regs;

  /* The temporary frame has no room for vectors of registers. */
  if (in->n_vec + in->n_vec2 > 0) {
    kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION,
                    __builtin_ctz(groups[0]->mask), 0, 0);
    return;
  }
  memset(spare, 0, sizeof spare);
  for (int32_t i = 0; i < 4; i++) {
    const size_t bytes =
        i == 0 && (in->type == KILN__B64 || in->type == KILN__U64) ? 8 : 4;

    if (from[i] < 0)
      continue;
    *to[i] = i * 256;
    for (uint32_t k = 0; k < n; k++)
      copy_lanes(spare + i * 256, groups[k]->frame->regs + from[i],
                 groups[k]->mask, bytes);
  }
  across.d = in->d < 0 ? -1 : 4 * 256;
  across.d2 = in->d2 < 0 ? -1 : 5 * 256;
  w->regs = spare;
  KILN__SET_MASK(w, mask);
  in->fn(w, &across);
  w->regs = regs;
  for (uint32_t k = 0; k < n; k++) {
    if (in->d >= 0)
      copy_lanes(groups[k]->frame->regs + in->d, spare + across.d,
                 groups[k]->mask, 4);
    if (in->d2 >= 0)
      copy_lanes(groups[k]->frame->regs + in->d2, spare + across.d2,
                 groups[k]->mask, 4);
  }
}

/* Executes a .sync instruction whose members have all arrived, and advances
 * these members to the next instruction. */
static void pass_sync(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                      kiln__cpu_group **groups, uint32_t n, uint32_t mask)
{
  const kiln__cpu_group *const first = groups[0];
  const kiln__cpu_insn *const in = &first->frame->code->insns[first->pc];
  bool one_frame = true;

  for (uint32_t i = 1; i < n; i++)
    one_frame = one_frame && groups[i]->frame == first->frame;
  kiln__cpu_frame_use(w, first->frame);
  if (w->tally != NULL) {
    w->tally[in->index].issued++;
    w->tally[in->index].lanes += (unsigned)__builtin_popcount(mask);
  }
  if (one_frame) {
    KILN__SET_MASK(w, mask);
    in->fn(w, in);
  } else if (in->op != KILN__OP_bar_warp_sync) {
    run_across(w, in, groups, n, mask);
  }
  s->again = false;
  if (w->watched || s->check_sync)
    kiln__cpu_warp_synced(w, in, mask, first->wants);
  for (uint32_t i = 0; i < n; i++) {
    groups[i]->wait = KILN__READY;
    groups[i]->pc++;
  }
}

/* Completes the .sync instruction at which the group with index `at` waits,
 * unless a member of its mask has not arrived. */
static bool try_sync(kiln__cpu_warp *w, kiln__cpu_schedule *s, uint32_t at)
{
  kiln__cpu_group *found[KILN__WARP + 1];
  const kiln__cpu_group *const g = &s->group[at];
  uint32_t n = 0, mask = 0;

  for (uint32_t i = 0; i < s->n_groups; i++) {
    kiln__cpu_group *const other = &s->group[i];

    if (other->wait != KILN__AT_SYNC || other->wants != g->wants ||
        !same_sync(g, other))
      continue;
    found[n++] = other;
    mask |= other->mask;
  }
  if (n == 0 || (g->wants & w->live & ~mask) != 0)
    return false;
  pass_sync(w, s, found, n, mask);
  return true;
}

static void try_all_syncs(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  for (uint32_t i = 0; i < s->n_groups && !w->fault; i++) {
    if (s->group[i].wait == KILN__AT_SYNC)
      try_sync(w, s, i);
  }
}

/* Returns the member mask of each lane. An .aligned instruction has no member
 * mask; all lanes of the warp are members. */
static const uint32_t *members_of(const kiln__cpu_warp *w,
                                  const kiln__cpu_insn *in)
{
  static const _Alignas(64) uint32_t everybody[KILN__WARP] = {
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};

  return in->e < 0 ? everybody : KILN__SLOT(const uint32_t, in->e);
}

/* Returns true if the running group consists of exactly the members of the
 * .sync instruction `in`, which is the common case. */
static bool all_here(const kiln__cpu_warp *w, const kiln__cpu_schedule *s,
                     const kiln__cpu_insn *in)
{
  const uint32_t *const e = members_of(w, in);
  const uint32_t members = e[__builtin_ctz(w->mask)];

  if (in->guard >= 0 || (members & w->live) != w->mask ||
      (s->check_sync && (members & ~w->live & s->began) != 0))
    return false;
  return kiln__cpu_same_lanes(e, w->mask) == w->mask;
}

/* Handles the arrival of the running group at a .sync instruction. Splits the
 * group by member mask and makes the resulting groups wait. */
static void begin_sync(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                       const kiln__cpu_insn *in)
{
  kiln__cpu_group *g = &s->group[s->current];
  const uint32_t *const e = members_of(w, in);
  const uint32_t here = kiln__cpu_guard_mask(w, in), skip = g->mask & ~here;
  kiln__cpu_frame *const f = g->frame;
  const uint32_t pc = g->pc;
  uint32_t rest = here;

  /* pass_sync() counts the instruction when it is executed, so the count of the
   * arrival is taken back. */
  if (w->tally != NULL) {
    w->tally[pc].issued--;
    w->tally[pc].lanes -= (unsigned)__builtin_popcount(g->mask);
  }
  remove_group(s, s->current);
  s->current = s->n_groups;
  if (skip != 0)
    add_group(s, f, pc + 1, skip);
  while (rest != 0) {
    const uint32_t members = e[__builtin_ctz(rest)];
    const uint32_t same = kiln__cpu_same_lanes(e, rest);

    rest &= ~same;
    add_group(s, f, pc, same);
    g = &s->group[s->n_groups - 1];
    g->wait = KILN__AT_SYNC;
    g->wants = members;
  }
  try_all_syncs(w, s);
}

/* ---- Branches, calls and exits ------------------------------------------- */

/* Splits off the lanes that the guard of `in` excludes; these lanes continue
 * after `in`. Returns false if the guard excludes all lanes. */
static bool split_guard(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                        const kiln__cpu_insn *in)
{
  kiln__cpu_group *const g = &s->group[s->current];
  const uint32_t mask = kiln__cpu_guard_mask(w, in);

  if (mask == 0) {
    g->pc++;
    return false;
  }
  if (mask != g->mask) {
    add_group(s, g->frame, g->pc + 1, g->mask & ~mask);
    g->mask = mask;
    KILN__SET_MASK(w, mask);
  }
  return true;
}

static void do_exit(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  const kiln__cpu_group g = s->group[s->current];

  remove_group(s, s->current);
  s->current = s->n_groups;
  kiln__cpu_lanes_exit(w, g.frame, g.mask);
  if (s->n_groups != 0)
    try_all_syncs(w, s);
}

static void do_return(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  kiln__cpu_group *const g = &s->group[s->current];
  kiln__cpu_frame *const f = g->frame;

  if (f->parent == NULL) {
    do_exit(w, s);
    return;
  }
  g->frame = f->parent;
  g->pc = f->resume;
  kiln__cpu_call_leave(w, f, g->mask);
}

static void do_call(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                    const kiln__cpu_insn *in)
{
  kiln__cpu_group *g = &s->group[s->current];
  kiln__cpu_frame *callee = NULL;
  uint32_t same = g->mask;
  const kiln__cpu_code *const code = kiln__cpu_callee(w, g->frame, in, &same);

  if (code == NULL)
    return;
  if (same != g->mask) {
    add_group(s, g->frame, g->pc, g->mask & ~same);
    g->mask = same;
    KILN__SET_MASK(w, same);
  }
  if (!kiln__cpu_call_enter(w, g->frame, in, code, g->mask, &callee))
    return;
  if (callee == NULL) {
    g->pc++;
    return;
  }
  g->frame = callee;
  g->pc = 0;
}

static void do_switch(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                      const kiln__cpu_insn *in)
{
  const kiln__cpu_group g = s->group[s->current];
  uint32_t rest = g.mask, target;

  if (!kiln__cpu_indices_fit(w, in, rest))
    return;
  remove_group(s, s->current);
  s->current = s->n_groups;
  while (rest != 0) {
    const uint32_t same = kiln__cpu_same_target(w, in, rest, &target);

    rest &= ~same;
    if (rest != 0 && w->tally != NULL)
      w->tally[in->index].events++;
    add_group(s, g.frame, target, same);
  }
}

/* Executes a barrier instruction for the lanes that name the same barrier as
 * the lowest lane. Lanes that name another barrier execute the instruction
 * afterwards. */
static void do_barrier(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                       const kiln__cpu_insn *in)
{
  kiln__cpu_group *const g = &s->group[s->current];
  const uint32_t *const number = KILN__SLOT(const uint32_t, in->a);
  const uint32_t wanted = number[__builtin_ctz(g->mask)];
  const uint32_t same = kiln__cpu_same_lanes(number, g->mask);

  if (same != g->mask)
    add_group(s, g->frame, g->pc, g->mask & ~same);
  g->mask = same;
  if (in->sub == KILN__BAR_ARRIVE) {
    g->pc++;
  } else {
    g->wait = KILN__AT_BARRIER;
    g->wants = wanted;
  }
  kiln__cpu_barrier_arrive(w, g->frame, in, wanted, same);
}

static void do_cluster(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                       const kiln__cpu_insn *in)
{
  kiln__cpu_group *const g = &s->group[s->current];

  /* The last arrival releases the groups that wait, and this one does not. */
  if (in->sub != KILN__CLUSTER_ARRIVE)
    g->wait = KILN__AT_CLUSTER;
  if (kiln__cpu_cluster_step(w, in, g->mask)) {
    g->wait = KILN__READY;
    g->pc++;
  }
}

/* Executes an instruction that is neither simple nor a branch. The caller has
 * stored the current pc in the running group. */
static void do_other(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                     const kiln__cpu_insn *in)
{
  if (in->kind == KILN__KIND_WARP) {
    begin_sync(w, s, in);
    return;
  }
  if (!split_guard(w, s, in))
    return;
  switch ((kiln__cpu_kind)in->kind) {
  case KILN__KIND_SWITCH:
    do_switch(w, s, in);
    break;
  case KILN__KIND_CALL:
    do_call(w, s, in);
    break;
  case KILN__KIND_RETURN:
    do_return(w, s);
    break;
  case KILN__KIND_EXIT:
    do_exit(w, s);
    break;
  case KILN__KIND_TRAP:
    kiln__cpu_fault(w, in, KILN__FAULT_TRAP, -1, 0, 0);
    break;
  case KILN__KIND_BARRIER:
    do_barrier(w, s, in);
    break;
  case KILN__KIND_CLUSTER:
    do_cluster(w, s, in);
    break;
  default:
    kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, -1, 0, 0);
    break;
  }
}

/* ---- The interpreter loop ------------------------------------------------ */

/* Executes a warp instruction, such as shfl.sync, if it does not have to wait
 * for other lanes. Returns true if the instruction was executed. */
static inline __attribute__((always_inline)) bool
run_warp_op(kiln__cpu_warp *w, const kiln__cpu_schedule *s,
            const kiln__cpu_insn *in)
{
  if (in->e < 0 && (in->flags & KILN__ALIGNED) == 0) {
    kiln__cpu_run_one(w, in, false);
    return true;
  }
  if (!all_here(w, s, in))
    return false;
  in->fn(w, in);
  if (__builtin_expect(w->watched || s->check_sync, 0))
    kiln__cpu_warp_synced(w, in, w->mask, w->mask);
  return true;
}

/* Returns true if no lane of the mask found the phase of its mbarrier over. */
static bool waits(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  uint32_t mask)
{
  return in->d >= 0 &&
         (kiln__cpu_predicate_bits(KILN__SLOT(const uint32_t, in->d)) & mask) ==
             0;
}

/* Puts the warp to sleep until the phase of an mbarrier ends, if all lanes wait
 * for the same mbarrier of the block. */
static void sleep_at(const kiln__cpu_warp *w, kiln__cpu_schedule *s,
                     const kiln__cpu_insn *in, uint32_t mask)
{
  const uint64_t low = (UINT64_C(1) << KILN__CLUSTER_SHIFT) - 1;
  uint64_t at[KILN__WARP], first;

  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, at);
  first = at[__builtin_ctz(mask)] & low;
  for (; mask != 0; mask &= mask - 1) {
    if ((at[__builtin_ctz(mask)] & low) != first)
      return;
  }
  s->asleep = (const uint64_t *)(const void *)(w->block->shared + first);
  s->asleep_phase =
      kiln__cpu_mbarrier_phase(__atomic_load_n(s->asleep, __ATOMIC_RELAXED));
}

/* Returns the number of polls that a polling instruction counts as. A warp that
 * sleeps, or whose only ready group waits for an mbarrier, gives up the rest of
 * its time slice. If other groups of the warp are ready, one of them runs. */
static uint32_t polls_of(const kiln__cpu_warp *w, kiln__cpu_schedule *s,
                         const kiln__cpu_insn *in)
{
  const bool tries = in->op == KILN__OP_mbarrier_try_wait ||
                     in->op == KILN__OP_mbarrier_try_parity;
  const uint32_t mask = kiln__cpu_guard_mask(w, in);

  if (!tries || mask == 0 || w->fault || !waits(w, in, mask))
    return kiln__cpu_polls_of(in);
  if (s->others) {
    s->turns = 0;
    return 1;
  }
  if (mask == w->mask)
    sleep_at(w, s, in, mask);
  return KILN__MAX_YIELDS;
}

/* Charges one polling instruction to the running group of lanes. Returns true
 * if the time slice of the warp has ended. */
static bool yielded(const kiln__cpu_warp *w, kiln__cpu_schedule *s,
                    const kiln__cpu_insn *in)
{
  const uint32_t cost = s->random != 0 ? KILN__YIELD_TURNS : KILN__YIELD_COST;

  s->yields += polls_of(w, s, in);
  s->turns -= s->turns < cost ? s->turns : cost;
  return s->yields >= KILN__MAX_YIELDS;
}

static bool turn_is_over(kiln__cpu_schedule *s)
{
  s->turns -= s->turns != 0;
  return s->turns == 0;
}

/* The interpreter loop. If `counted` is true, instructions are counted. If
 * `traced` is true, changes of memory are recorded. Both flags are constants in
 * the inlined copies. In the inner loop, the local variable `pc` replaces the
 * pc of the running group. The pc is stored in the group when the inner loop is
 * left. */
static inline __attribute__((always_inline)) int
run_loop(kiln__cpu_warp *w, uint64_t *left, bool counted, bool traced)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const uint64_t limit = *left;
  uint64_t issued = 0;
  int status = KILN__WARP_RUNNING;

  while (status == KILN__WARP_RUNNING && issued < limit && pick(w, s)) {
    const kiln__cpu_insn *const insns = s->frame->code->insns;
    kiln__cpu_tally *const tally = w->tally;
    const uint32_t mask = w->mask;
    const uint32_t lanes = (uint32_t)__builtin_popcount(mask);
    const kiln__cpu_insn *in;
    uint32_t pc = s->group[s->current].pc, meet = s->meet, taken;

    do {
      in = insns + pc;
      issued++;
      if (counted) {
        tally[pc].issued++;
        tally[pc].lanes += lanes;
      }
      if (__builtin_expect(in->kind == KILN__KIND_SIMPLE, 1)) {
        kiln__cpu_run_one(w, in, traced);
        pc++;
        if (__builtin_expect(w->fault, 0))
          break;
      } else if (in->kind == KILN__KIND_BRANCH) {
        taken = kiln__cpu_guard_mask(w, in);
        if (taken == 0) {
          pc++;
        } else if (taken == mask) {
          pc = in->target;
          if (pc <= in->index &&
              (issued >= limit || (s->others && turn_is_over(s))))
            break;
          if (s->others)
            /* If another group has to run, meet == pc ends the inner loop. */
            meet = after_branch(s, pc, meet);
        } else {
          if (counted)
            tally[in->index].events++;
          add_group(s, s->frame, pc + 1, mask & ~taken);
          s->group[s->current].mask = taken;
          pc = in->target;
          break;
        }
      } else if (in->kind == KILN__KIND_WARP && run_warp_op(w, s, in)) {
        if (__builtin_expect(s->again, 0)) {
          s->again = false;
          s->yields = KILN__MAX_YIELDS;
          if (counted) {
            tally[pc].issued--;
            tally[pc].lanes -= lanes;
          }
          break;
        }
        pc++;
        if (w->fault)
          break;
      } else if (in->kind == KILN__KIND_YIELD) {
        kiln__cpu_run_one(w, in, traced);
        pc++;
        if (yielded(w, s, in) || w->fault || (s->others && s->turns == 0))
          break;
      } else {
        s->group[s->current].pc = pc;
        do_other(w, s, in);
        goto stored;
      }
    } while (__builtin_expect(pc != meet, 1));
    s->group[s->current].pc = pc;
  stored:
    if (w->fault) {
      status = KILN__WARP_FAULT;
    } else if (s->yields >= KILN__MAX_YIELDS) {
      *left -= issued;
      return KILN__WARP_RUNNING;
    } else if (s->others && s->turns == 0 && s->n_groups > 1) {
      rotate(w, s);
    }
  }
  *left -= issued;
  if (status == KILN__WARP_RUNNING && issued < limit)
    status = w->live == 0 ? KILN__WARP_DONE : KILN__WARP_WAITING;
  return status;
}

KILN__RUN_LOOP(run_its)
