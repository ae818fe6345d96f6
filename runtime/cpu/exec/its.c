/* its.c -- independent thread scheduling: groups of lanes by (frame, pc).
 *
 * Lanes that part at a branch meet again at its immediate post-dominator, as on
 * the GPU: what comes to a join is deeper below the function's end than the join
 * itself, so the deepest group of the deepest call runs; of equals the one at
 * the lowest pc, so that others are met on the way. A group that keeps branching
 * backwards gives the others their turn, so that all make progress: soon if it
 * looks at what others may write, else only after so many turns that few loops
 * of honest work take them. Groups wait at .sync instructions for the lanes that
 * the member mask names. */
#include "schedule.h"

#define KILN__SET_MASK KILN__ISA_NAME(set_mask)

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

/* Ready groups of one frame and pc become one. */
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

/* The ready group to run next, or n_groups. `aged`: the one that has waited
 * longest, other than the present one. */
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
  if (s->random != 0 && ready > 1) { /* any order is right */
    uint32_t skip = (uint32_t)(kiln__cpu_schedule_random(s) >> 32) % ready;

    for (best = 0; s->group[best].wait != KILN__READY || skip-- != 0; best++) {
    }
  }
  return best;
}

/* Who else would run first: see gives_way(). */
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

/* The present group has branched to `pc`: is it another's turn? */
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

/* The next pc at which other lanes of this frame wait to be met, or may have to
 * run first, if no branch is taken. */
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

/* Out of line: the loop needs its registers. */
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

/* Choose who runs; false: nobody is ready. */
static bool pick(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  uint32_t at;

  if (s->n_groups > 1) {
    if (s->random == 0 || (kiln__cpu_schedule_random(s) & 3) != 0)
      merge_groups(s);
    if (s->fair && s->current < s->n_groups &&
        s->group[s->current].wait == KILN__READY) {
      at = s->current;
      s->others = true; /* or so: costs a turn at most */
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

/* The present group's turns are over. */
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

/* ---- Waiting for the members of a mask ----------------------------------------- */

/* Both wait at what can let them go on together. */
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

/* Lanes of several frames execute one instruction: through a frame of operands
 * only, gathered and given back. */
static void run_across(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                       kiln__cpu_group *const *groups, uint32_t n,
                       uint32_t mask)
{
  _Alignas(64) uint8_t spare[SPARE_SLOTS * 256];
  const int32_t from[] = {in->a, in->b, in->c, in->e};
  kiln__cpu_insn across = *in;
  int32_t *const to[] = {&across.a, &across.b, &across.c, &across.e};
  uint8_t *const regs = w->regs;

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

/* All are there: execute, and go on behind. */
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
  if (w->watched || s->check_sync)
    kiln__cpu_warp_synced(w, in, mask, first->wants);
  for (uint32_t i = 0; i < n; i++) {
    groups[i]->wait = KILN__READY;
    groups[i]->pc++;
  }
}

/* Let group `at` and its like go on if nobody is missing. */
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

/* .aligned forms name no members: the whole warp. */
static const uint32_t *members_of(const kiln__cpu_warp *w,
                                  const kiln__cpu_insn *in)
{
  static const _Alignas(64) uint32_t everybody[KILN__WARP] = {
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
      ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};

  return in->e < 0 ? everybody : KILN__SLOT(const uint32_t, in->e);
}

/* The quick case: everybody named, and nobody else, is here. */
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

/* The present group is at a .sync instruction: one group a mask, then wait. */
static void begin_sync(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                       const kiln__cpu_insn *in)
{
  kiln__cpu_group *g = &s->group[s->current];
  const uint32_t *const e = members_of(w, in);
  const uint32_t here = kiln__cpu_guard_mask(w, in), skip = g->mask & ~here;
  kiln__cpu_frame *const f = g->frame;
  const uint32_t pc = g->pc;
  uint32_t rest = here;

  if (w->tally != NULL) { /* counted when it is executed */
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

/* ---- Branches, calls, ends ------------------------------------------------------- */

/* Those that `in` does not concern go on; false: it concerns nobody. */
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
  uint32_t number = in->target;

  if (in->a >= 0) {
    const uint64_t *const a = KILN__SLOT(const uint64_t, in->a);
    const uint64_t first = a[__builtin_ctz(g->mask)];
    uint32_t same = 0;

    for (uint32_t m = g->mask; m != 0; m &= m - 1) {
      const unsigned lane = (unsigned)__builtin_ctz(m);

      same |= (a[lane] == first ? 1u : 0u) << lane;
    }
    if (same != g->mask) {
      add_group(s, g->frame, g->pc, g->mask & ~same);
      g->mask = same;
      KILN__SET_MASK(w, same);
    }
    number = kiln__cpu_call_number(w, first);
    if (number == UINT32_MAX) {
      kiln__cpu_fault(w, in, KILN__FAULT_PC, -1, first, 0);
      return;
    }
  }
  if (!kiln__cpu_call_enter(w, g->frame, in, number, g->mask, &callee))
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
  const uint32_t *const index = KILN__SLOT(const uint32_t, in->a);
  uint32_t rest = g.mask;

  for (uint32_t m = rest; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);

    if (index[lane] >= in->n_vec) {
      kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, lane, index[lane], 0);
      return;
    }
  }
  remove_group(s, s->current);
  s->current = s->n_groups;
  while (rest != 0) {
    const int32_t target = in->vec[index[__builtin_ctz(rest)]];
    uint32_t same = 0;

    for (uint32_t m = rest; m != 0; m &= m - 1) {
      const unsigned lane = (unsigned)__builtin_ctz(m);

      same |= (in->vec[index[lane]] == target ? 1u : 0u) << lane;
    }
    rest &= ~same;
    if (rest != 0 && w->tally != NULL)
      w->tally[in->index].events++;
    add_group(s, g.frame, (uint32_t)target, same);
  }
}

/* Lanes that name another barrier stay where they are, for the next time. */
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

  g->wait = KILN__AT_CLUSTER;
  if (kiln__cpu_cluster_step(w, in, g->mask)) {
    g->wait = KILN__READY;
    g->pc++;
  }
}

/* Everything but simple instructions and branches; the group's pc is stored. */
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

/* A guarded simple instruction. */
static void run_guarded(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        bool traced)
{
  const uint32_t keep = w->mask, mask = kiln__cpu_guard_mask(w, in);

  if (w->tally != NULL)
    w->tally[in->index].lanes -= (unsigned)__builtin_popcount(keep & ~mask);
  if (mask == 0)
    return;
  if (mask != keep)
    KILN__SET_MASK(w, mask);
  if (traced)
    KILN__ISA_NAME(traced)(w, in);
  else
    in->fn(w, in);
  if (mask != keep)
    KILN__SET_MASK(w, keep);
}

/* ---- The loop ------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void
run_one(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool traced)
{
  if (__builtin_expect(in->guard >= 0, 0))
    run_guarded(w, in, traced);
  else if (traced)
    KILN__ISA_NAME(traced)(w, in);
  else
    in->fn(w, in);
}

/* Warp instructions that wait for nobody: done. */
static inline __attribute__((always_inline)) bool
run_warp_op(kiln__cpu_warp *w, const kiln__cpu_schedule *s,
            const kiln__cpu_insn *in)
{
  if (in->e < 0 && (in->flags & KILN__ALIGNED) == 0) {
    run_one(w, in, false);
    return true;
  }
  if (!all_here(w, s, in))
    return false;
  in->fn(w, in);
  if (__builtin_expect(w->watched || s->check_sync, 0))
    kiln__cpu_warp_synced(w, in, w->mask, w->mask);
  return true;
}

/* After what others may wait for: true if this warp's share is over. */
static bool yielded(kiln__cpu_schedule *s, const kiln__cpu_insn *in)
{
  const uint32_t cost = s->random != 0 ? KILN__YIELD_TURNS : KILN__YIELD_COST;

  s->yields += in->op == KILN__OP_nanosleep ? KILN__MAX_YIELDS : 1;
  s->turns -= s->turns < cost ? s->turns : cost;
  return s->yields >= KILN__MAX_YIELDS;
}

static bool turn_is_over(kiln__cpu_schedule *s)
{
  s->turns -= s->turns != 0;
  return s->turns == 0;
}

/* `counted`: there are tallies; `traced`: changes of memory are looked for.
 * Within the inner loop the group's pc is `pc`; it is stored when left. */
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
        run_one(w, in, traced);
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
            meet = after_branch(s, pc, meet); /* pc: stop here */
        } else {
          if (counted)
            tally[in->index].events++;
          add_group(s, s->frame, pc + 1, mask & ~taken);
          s->group[s->current].mask = taken;
          pc = in->target;
          break;
        }
      } else if (in->kind == KILN__KIND_WARP && run_warp_op(w, s, in)) {
        pc++;
        if (w->fault)
          break;
      } else if (in->kind == KILN__KIND_YIELD) {
        run_one(w, in, traced);
        pc++;
        if (yielded(s, in) || w->fault || (s->others && s->turns == 0))
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

int KILN__ISA_NAME(run_its)(kiln__cpu_warp *w, uint64_t *left)
{
  const kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  if (s->traced)
    return s->entry->tally != NULL ? run_loop(w, left, true, true)
                                   : run_loop(w, left, false, true);
  return s->entry->tally != NULL ? run_loop(w, left, true, false)
                                 : run_loop(w, left, false, false);
}
