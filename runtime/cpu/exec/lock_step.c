/* lock_step.c -- the lock-step warp scheduler, as on GPUs before Volta.
 *
 * Idea: the scheduler keeps a stack of entries (frame, pc, lane mask, join).
 * Only the top entry runs. A divergent branch replaces the top entry by an
 * entry that continues at the join, which is the immediate post-dominator of
 * the branch. Above this entry it pushes one entry per side of the branch. An
 * entry that reaches its join is popped. A function call pushes an entry with
 * its own frame.
 *
 * Consequence: lanes that poll for lanes of the same warp below them on the
 * stack never make progress. This is intended. Programs that rely on
 * independent thread scheduling can deadlock here as they would on Pascal.
 *
 * Invariant: among the entries of one frame, the mask of a higher entry is a
 * subset of the mask of the entry at its join. The entries of the running call
 * are contiguous at the top of the stack.
 *
 * Source: the SIMT stack of Fung et al., MICRO 2007. */
#include "schedule.h"

static kiln__cpu_entry *top_of(kiln__cpu_schedule *s)
{
  return &s->stacked[s->n_stacked - 1];
}

static void push(kiln__cpu_schedule *s, kiln__cpu_frame *f, uint32_t pc,
                 uint32_t mask, uint32_t join)
{
  s->stacked[s->n_stacked++] = (kiln__cpu_entry){f, pc, mask, join};
}

/* Pops entries that are empty or have reached their join. Returns false if the
 * stack is empty. */
static bool settle(kiln__cpu_warp *w, kiln__cpu_schedule *s)
{
  while (s->n_stacked != 0) {
    const kiln__cpu_entry *const top = top_of(s);

    if (top->mask != 0 && top->pc != top->join) {
      kiln__cpu_frame_use(w, top->frame);
      if (w->mask != top->mask)
        KILN__SET_MASK(w, top->mask);
      return true;
    }
    s->n_stacked--;
  }
  return false;
}

static bool before_random(kiln__cpu_schedule *s)
{
  return s->random != 0 && (kiln__cpu_schedule_random(s) & 1) != 0;
}

/* Executes a divergent branch: pushes one stack entry per side of the branch.
 * Both sides reconverge at in->join. */
static void diverge(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                    const kiln__cpu_insn *in, uint32_t taken)
{
  kiln__cpu_entry *const top = top_of(s);
  kiln__cpu_frame *const f = top->frame;
  const uint32_t join = in->join, rest = top->mask & ~taken;
  const uint32_t behind = in->index + 1;

  if (w->tally != NULL)
    w->tally[in->index].events++;
  /* If the branch has no reconvergence point, its two sides run to the end one
   * after the other. */
  if (join == UINT32_MAX) {
    top->mask = rest;
    top->pc = behind;
    push(s, f, in->target, taken, top->join);
    return;
  }
  if (top->join == join)
    s->n_stacked--; /* the entry below has the same reconvergence point */
  else
    top->pc = join;
  if (before_random(s)) {
    push(s, f, in->target, taken, join);
    push(s, f, behind, rest, join);
  } else {
    push(s, f, behind, rest, join);
    push(s, f, in->target, taken, join);
  }
}

static void remove_lanes(kiln__cpu_schedule *s, const kiln__cpu_frame *f,
                         uint32_t mask)
{
  for (uint32_t i = s->n_stacked; i-- != 0;) {
    if (f == NULL || s->stacked[i].frame == f)
      s->stacked[i].mask &= ~mask;
    else
      break;
  }
}

static void do_exit(kiln__cpu_warp *w, kiln__cpu_schedule *s, uint32_t mask)
{
  kiln__cpu_frame *const f = top_of(s)->frame;

  top_of(s)->pc++;
  remove_lanes(s, NULL, mask);
  kiln__cpu_lanes_exit(w, f, mask);
}

/* Handles the return of lanes from a function. The stack entries of one call
 * frame are contiguous at the top of the stack. */
static void do_return(kiln__cpu_warp *w, kiln__cpu_schedule *s, uint32_t mask)
{
  kiln__cpu_frame *const f = top_of(s)->frame;

  if (f->parent == NULL) {
    do_exit(w, s, mask);
    return;
  }
  top_of(s)->pc++;
  remove_lanes(s, f, mask);
  kiln__cpu_call_leave(w, f, mask);
}

static void do_call(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                    const kiln__cpu_insn *in, uint32_t mask)
{
  kiln__cpu_frame *const f = top_of(s)->frame, *callee = NULL;
  const kiln__cpu_code *code;
  uint32_t same = mask;

  if (!kiln__cpu_stack_room(w, in))
    return;
  code = kiln__cpu_callee(w, f, in, &same);
  if (code == NULL)
    return;
  if (same != w->mask)
    KILN__SET_MASK(w, same);
  if (!kiln__cpu_call_enter(w, f, in, code, same, &callee))
    return;
  top_of(s)->pc = in->index + 1;
  /* The lanes that call another function execute the call afterwards. */
  if (same != mask)
    push(s, f, in->index, mask & ~same, in->index + 1);
  if (callee != NULL)
    push(s, callee, 0, same, UINT32_MAX);
}

static void do_switch(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                      const kiln__cpu_insn *in)
{
  kiln__cpu_frame *const f = top_of(s)->frame;
  const uint32_t below = top_of(s)->join;
  const uint32_t join = in->join == UINT32_MAX ? below : in->join;
  uint32_t rest = kiln__cpu_guard_mask(w, in), target, parts = 0;

  if (!kiln__cpu_indices_fit(w, in, rest) || !kiln__cpu_stack_room(w, in))
    return;
  if (join == below)
    s->n_stacked--;
  else
    top_of(s)->pc = join;
  if (w->mask != rest)
    push(s, f, in->index + 1, w->mask & ~rest, join);
  for (; rest != 0; parts++) {
    const uint32_t same = kiln__cpu_same_target(w, in, rest, &target);

    rest &= ~same;
    push(s, f, target, same, join);
  }
  if (parts > 1 && w->tally != NULL)
    w->tally[in->index].events++;
}

/* Makes a warp wait at a barrier. Barriers count whole warps, so the arrival of
 * one lane counts for all lanes of the warp. */
static void do_wait(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                    const kiln__cpu_insn *in, uint32_t mask)
{
  kiln__cpu_entry *const top = top_of(s);
  const uint32_t number =
      in->a < 0 ? 0 : KILN__SLOT(const uint32_t, in->a)[__builtin_ctz(mask)];

  if (in->kind == KILN__KIND_CLUSTER) {
    /* The last arrival releases the warps that wait, and this one does not. */
    if (in->sub != KILN__CLUSTER_ARRIVE)
      s->wait = KILN__AT_CLUSTER;
    if (kiln__cpu_cluster_step(w, in, mask)) {
      s->wait = KILN__READY;
      top->pc++;
    }
    return;
  }
  if (in->sub == KILN__BAR_ARRIVE) {
    top->pc++;
  } else {
    s->wait = KILN__AT_BARRIER;
    s->wants = number;
  }
  kiln__cpu_barrier_arrive(w, top->frame, in, number, mask);
}

static void do_other(kiln__cpu_warp *w, kiln__cpu_schedule *s,
                     const kiln__cpu_insn *in)
{
  const uint32_t mask = kiln__cpu_guard_mask(w, in);

  if (mask == 0) {
    top_of(s)->pc++;
    return;
  }
  switch ((kiln__cpu_kind)in->kind) {
  case KILN__KIND_SWITCH:
    do_switch(w, s, in);
    break;
  case KILN__KIND_CALL:
    do_call(w, s, in, mask);
    break;
  case KILN__KIND_RETURN:
    do_return(w, s, mask);
    break;
  case KILN__KIND_EXIT:
    do_exit(w, s, mask);
    break;
  case KILN__KIND_TRAP:
    kiln__cpu_fault(w, in, KILN__FAULT_TRAP, __builtin_ctz(mask), 0, 0);
    break;
  case KILN__KIND_BARRIER:
  case KILN__KIND_CLUSTER:
    do_wait(w, s, in, mask);
    break;
  default:
    kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, -1, 0, 0);
    break;
  }
}

/* Executes a warp instruction, such as shfl.sync. Before Volta, all members
 * have to be active, so the instruction never waits for a lane. */
static void run_warp_op(kiln__cpu_warp *w, const kiln__cpu_schedule *s,
                        const kiln__cpu_insn *in)
{
  const uint32_t mask = kiln__cpu_guard_mask(w, in);

  kiln__cpu_run_one(w, in, false);
  if (mask != 0 && (w->watched || s->check_sync) && in->e >= 0)
    kiln__cpu_warp_synced(
        w, in, mask, KILN__SLOT(const uint32_t, in->e)[__builtin_ctz(mask)]);
}

/* This is the interpreter loop of the lock-step scheduler. It corresponds to
 * run_loop() in its.c. */
static inline __attribute__((always_inline)) int
run_loop(kiln__cpu_warp *w, uint64_t *left, bool counted, bool traced)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const uint64_t limit = *left;
  uint64_t issued = 0;

  while (issued < limit && s->wait == KILN__READY && settle(w, s)) {
    const kiln__cpu_insn *const insns = s->frame->code->insns;
    kiln__cpu_tally *const tally = w->tally;
    const uint32_t mask = w->mask, join = top_of(s)->join;
    const uint32_t lanes = (uint32_t)__builtin_popcount(mask);
    const kiln__cpu_insn *in;
    uint32_t pc = top_of(s)->pc, taken;

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
        if (taken == mask) {
          pc = in->target;
          if (pc <= in->index && issued >= limit)
            break;
        } else if (taken == 0) {
          pc++;
        } else {
          top_of(s)->pc = pc;
          diverge(w, s, in, taken);
          goto stored;
        }
      } else if (in->kind == KILN__KIND_WARP) {
        run_warp_op(w, s, in);
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
      } else if (in->kind == KILN__KIND_YIELD) {
        kiln__cpu_run_one(w, in, traced);
        pc++;
        s->yields += kiln__cpu_polls_of(in);
        if (w->fault || s->yields >= KILN__MAX_YIELDS)
          break;
      } else {
        top_of(s)->pc = pc;
        do_other(w, s, in);
        goto stored;
      }
    } while (__builtin_expect(pc != join, 1));
    top_of(s)->pc = pc;
  stored:
    if (w->fault)
      break;
    if (s->yields >= KILN__MAX_YIELDS) {
      *left -= issued;
      return w->live == 0 ? KILN__WARP_DONE : KILN__WARP_RUNNING;
    }
  }
  *left -= issued;
  if (w->fault)
    return KILN__WARP_FAULT;
  if (w->live == 0)
    return KILN__WARP_DONE;
  return s->wait == KILN__READY ? KILN__WARP_RUNNING : KILN__WARP_WAITING;
}

KILN__RUN_LOOP(run_lock_step)
