/* barrier.c -- barriers of a block and of a cluster, and threads that exit.
 *
 * A barrier without a thread count is complete when every live thread of the
 * block has arrived. A barrier with a thread count counts the arriving threads.
 * A warp whose live lanes have all arrived counts as 32 threads, even if the
 * warp has fewer live lanes. In lock-step mode, and for bar and .aligned
 * instructions, a warp arrives as a whole.
 *
 * The synchronisation check reports two mistakes at barriers in divergent code.
 * First, a lane exits without arriving at a barrier at which other lanes of its
 * warp wait. Second, lanes of one warp arrive at the same barrier through
 * different instructions. */
#include "grid_job.h"

#include <stddef.h>
#include <string.h>

static void misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in, int lane,
                   const char *text)
{
  if (kiln__cpu_schedule_of(w)->check_sync)
    kiln__cpu_watch_sync_misuse(w, in, lane, "%s", text);
}

/* ---- Checks of barriers in divergent code -------------------------------- */

/* Returns true if the code at this program counter only exits the thread. A
 * thread may exit instead of arriving at a barrier. */
static bool ends_here(const kiln__cpu_frame *f, uint32_t pc)
{
  const kiln__cpu_insn *in = &f->code->insns[pc];

  for (unsigned i = 0; i < 4 && in->kind == KILN__KIND_BRANCH && in->guard < 0;
       i++)
    in = &f->code->insns[in->target];
  return in->kind == KILN__KIND_EXIT ||
         (in->kind == KILN__KIND_RETURN && f->parent == NULL);
}

/* Records the ready lanes of the warp that have not arrived when the lanes in
 * `mask` arrive at an .aligned barrier. The recorded lanes may still arrive. If
 * they exit instead, check_strays() reports a mistake. Nothing is recorded if
 * the launch has a seed, or if the scheduler selects groups of lanes by age. In
 * these cases the order of execution does not show which lanes have passed the
 * barrier. */
static void note_strays(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        uint32_t mask)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  if (s->random != 0 || s->fair)
    return;
  for (uint32_t i = 0; i < s->n_groups; i++) {
    const kiln__cpu_group *const g = &s->group[i];

    if (g->wait == KILN__READY && (g->mask & mask) == 0 &&
        !ends_here(g->frame, g->pc)) {
      s->strayed |= g->mask;
      s->strayed_from = in;
    }
  }
}

/* Reports a barrier that only part of the warp reaches in lock-step mode. This
 * happens if the barrier lies before the instruction at which the warp
 * reconverges. */
static void check_whole(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        uint32_t mask)
{
  const kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  uint32_t seen = mask;

  for (uint32_t i = s->n_stacked; i-- != 0;) {
    const kiln__cpu_entry *const e = &s->stacked[i];
    const uint32_t lanes = e->mask & w->live & ~seen;

    if (lanes != 0 && !ends_here(e->frame, e->pc)) {
      misuse(w, in, __builtin_ctz(lanes),
             "only part of the warp arrives at this barrier; this thread is at "
             "another instruction");
      return;
    }
    seen |= lanes;
  }
}

static void check_aligned(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                          uint32_t mask)
{
  if ((in->flags & KILN__ALIGNED) == 0 || mask == w->live ||
      !kiln__cpu_schedule_of(w)->check_sync)
    return;
  if (w->grid->lock_step)
    check_whole(w, in, mask);
  else
    note_strays(w, in, mask);
}

static void check_strays(kiln__cpu_warp *w, uint32_t leaving)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  if ((s->strayed & leaving) == 0)
    return;
  misuse(w, s->strayed_from, __builtin_ctz(s->strayed & leaving),
         "this thread exits without arriving at the barrier at which other "
         "threads of its warp wait");
  s->strayed = 0;
}

/* Reports lanes of one warp that arrived at the same barrier through different
 * instructions. */
static void check_places(kiln__cpu_warp *w, const kiln__cpu_group *a,
                         const kiln__cpu_group *b)
{
  const kiln__cpu_insn *const in = &b->frame->code->insns[b->pc];

  if ((in->flags & KILN__ALIGNED) != 0 &&
      (a->frame->code != b->frame->code || a->pc != b->pc))
    misuse(w, in, __builtin_ctz(b->mask),
           "threads of one warp arrive at a barrier through different "
           "instructions");
}

/* ---- Releasing waiting threads ------------------------------------------- */

static void give_result(const kiln__cpu_barrier *bar, const kiln__cpu_insn *in,
                        uint8_t *regs, uint32_t mask)
{
  uint32_t value;

  switch (in->sub) {
  case KILN__BAR_POPC:
    value = bar->trues;
    break;
  case KILN__BAR_AND:
    value = bar->trues == bar->votes ? UINT32_MAX : 0;
    break;
  case KILN__BAR_OR:
    value = bar->trues != 0 ? UINT32_MAX : 0;
    break;
  default:
    return;
  }
  if (in->d < 0)
    return;
  for (; mask != 0; mask &= mask - 1)
    ((uint32_t *)(void *)(regs + in->d))[__builtin_ctz(mask)] = value;
}

static void release_warp(kiln__cpu_warp *w, const kiln__cpu_barrier *bar,
                         uint32_t number)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  if (w->grid->lock_step) {
    kiln__cpu_entry *const top = &s->stacked[s->n_stacked - 1];

    if (s->wait != KILN__AT_BARRIER || s->wants != number)
      return;
    give_result(bar, &top->frame->code->insns[top->pc], top->frame->regs,
                top->mask);
    top->pc++;
    s->wait = KILN__READY;
  } else {
    const kiln__cpu_group *any = NULL;

    s->strayed = 0;
    for (uint32_t i = 0; i < s->n_groups; i++) {
      kiln__cpu_group *const g = &s->group[i];

      if (g->wait != KILN__AT_BARRIER || g->wants != number)
        continue;
      if (any != NULL && s->check_sync) {
        const kiln__cpu_group before = {.frame = any->frame, .pc = any->pc - 1};

        check_places(w, &before, g);
      }
      give_result(bar, &g->frame->code->insns[g->pc], g->frame->regs, g->mask);
      g->wait = KILN__READY;
      g->pc++;
      any = g;
    }
    if (any == NULL)
      return;
  }
  if (s->status == KILN__WARP_WAITING)
    s->status = KILN__WARP_RUNNING;
}

static void complete(kiln__cpu_block *block, uint32_t number)
{
  kiln__cpu_block_own *const own = kiln__cpu_own(block);
  kiln__cpu_barrier *const bar = &own->barrier[number];
  const uint32_t warps = bar->warps;

  bar->open = false;
  own->open &= ~(1u << number);
  own->worker->event = true;
  if (bar->expected == 0)
    block->phase++;
  for (uint32_t m = warps; m != 0; m &= m - 1)
    release_warp(&block->warps[__builtin_ctz(m)], bar, number);
  if (block->grid->watch != NULL)
    kiln__cpu_watch_barrier(block, warps);
}

static bool is_complete(const kiln__cpu_block_own *own,
                        const kiln__cpu_barrier *bar)
{
  return bar->counted >= (bar->expected != 0 ? bar->expected : own->live);
}

void kiln__cpu_barriers_recheck(kiln__cpu_block *block)
{
  kiln__cpu_block_own *const own = kiln__cpu_own(block);

  for (uint32_t m = own->open; m != 0; m &= m - 1) {
    const uint32_t number = (uint32_t)__builtin_ctz(m);

    if (own->barrier[number].expected == 0 && own->live != 0 &&
        is_complete(own, &own->barrier[number]))
      complete(block, number);
  }
}

/* ---- Arrival at a barrier ------------------------------------------------ */

static kiln__cpu_barrier *opened(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 uint32_t number, uint32_t expected)
{
  kiln__cpu_block_own *const own = kiln__cpu_own(w->block);
  kiln__cpu_barrier *const bar = &own->barrier[number];

  if (!bar->open) {
    memset(bar, 0, offsetof(kiln__cpu_barrier, here));
    memset(bar->here, 0, w->block->n_warps * sizeof *bar->here);
    bar->open = true;
    bar->expected = expected;
    own->open |= 1u << number;
  } else if (bar->expected != expected) {
    misuse(w, in, -1,
           "threads specify different thread counts for the same barrier");
  }
  return bar;
}

/* Returns the number of threads that an arrival adds to the barrier. Each
 * thread counts once. At a barrier with a thread count, a warp counts as 32
 * threads once all its other lanes have arrived or exited. */
static uint32_t weight(const kiln__cpu_warp *w, const kiln__cpu_barrier *bar,
                       uint32_t mask)
{
  const uint32_t before = bar->here[w->index];

  if (before == 0 && mask == UINT32_MAX)
    return KILN__WARP;
  if (bar->expected != 0 && (w->live & ~(before | mask)) == 0)
    return KILN__WARP - (uint32_t)__builtin_popcount(before);
  return (uint32_t)__builtin_popcount(mask & ~before);
}

static void take_vote(kiln__cpu_barrier *bar, const kiln__cpu_insn *in,
                      const uint8_t *regs, uint32_t mask)
{
  const uint32_t flip = (in->flags & KILN__NEGATE_B) != 0 ? UINT32_MAX : 0;

  if (in->sub < KILN__BAR_POPC || in->c < 0)
    return;
  for (; mask != 0; mask &= mask - 1) {
    const uint32_t *const p = (const uint32_t *)(const void *)(regs + in->c);

    bar->votes++;
    bar->trues += (p[__builtin_ctz(mask)] ^ flip) != 0;
  }
}

void kiln__cpu_barrier_arrive(kiln__cpu_warp *w, kiln__cpu_frame *f,
                              const kiln__cpu_insn *in, uint32_t number,
                              uint32_t mask)
{
  kiln__cpu_block_own *const own = kiln__cpu_own(w->block);
  const int lane = __builtin_ctz(mask);
  uint32_t expected = 0, counted = mask;
  kiln__cpu_barrier *bar;

  if (in->b >= 0)
    expected = ((const uint32_t *)(const void *)(f->regs + in->b))[lane];
  if (number >= KILN__N_BARRIERS || expected % KILN__WARP != 0) {
    kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, lane, number, 0);
    return;
  }
  bar = opened(w, in, number, expected);
  check_aligned(w, in, mask);
  if (w->grid->lock_step)
    /* In lock-step mode the arrival counts for all live lanes of the warp. */
    counted = w->live;
  take_vote(bar, in, f->regs, mask);
  bar->counted += weight(w, bar, counted);
  bar->here[w->index] |= counted;
  bar->warps |= 1u << w->index;
  if (w->tally != NULL && !is_complete(own, bar))
    w->tally[in->index].events++;
  if (is_complete(own, bar))
    complete(w->block, number);
}

/* ---- Cluster barriers ---------------------------------------------------- */

static void cluster_release(kiln__cpu_gang *gang)
{
  gang->cluster_phase ^= 1;
  gang->cluster_arrived = 0;
  gang->worker->event = true;
  if (gang->worker->job->launch->watch != NULL)
    kiln__cpu_watch_cluster_barrier(gang->ranks, gang->n_blocks);
  for (uint32_t i = 0; i < gang->n_warps; i++) {
    kiln__cpu_schedule *const s = &gang->schedules[i];
    bool any = s->wait == KILN__AT_CLUSTER;

    if (s->status == KILN__WARP_DONE)
      continue;
    if (any) {
      s->wait = KILN__READY;
      s->stacked[s->n_stacked - 1].pc++;
      s->cluster_in = 0;
    }
    for (uint32_t k = 0; !gang->worker->job->grid.lock_step && k < s->n_groups;
         k++) {
      kiln__cpu_group *const g = &s->group[k];

      if (g->wait != KILN__AT_CLUSTER)
        continue;
      g->wait = KILN__READY;
      g->pc++;
      s->cluster_in &= ~g->mask;
      any = true;
    }
    if (any && s->status == KILN__WARP_WAITING)
      s->status = KILN__WARP_RUNNING;
  }
}

static void cluster_recheck(kiln__cpu_gang *gang)
{
  if (gang->cluster_arrived != 0 && gang->cluster_arrived >= gang->live)
    cluster_release(gang);
}

/* Executes barrier.cluster. The lanes of a group normally arrived in the same
 * phase of the cluster barrier. If a program mixes phases within a group, all
 * lanes of the group wait for the later phase. */
bool kiln__cpu_cluster_step(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            uint32_t mask)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  kiln__cpu_gang *const gang = kiln__cpu_own(w->block)->gang;
  uint32_t odd;

  if (w->grid->lock_step)
    mask = w->live;
  odd = gang->cluster_phase != 0 ? mask : 0;
  if (in->sub == KILN__CLUSTER_ARRIVE) {
    if ((s->cluster_in & mask) != 0)
      misuse(w, in, __builtin_ctz(s->cluster_in & mask),
             "a second barrier.cluster.arrive without a wait");
    gang->cluster_arrived += (uint32_t)__builtin_popcount(mask);
    s->cluster_in |= mask;
    s->cluster_odd = (s->cluster_odd & ~mask) | (odd & mask);
    cluster_recheck(gang);
    return true;
  }
  if ((s->cluster_in & mask) != mask)
    misuse(w, in, __builtin_ctz(mask & ~s->cluster_in),
           "barrier.cluster.wait without an arrive");
  if ((s->cluster_in & mask & ~(s->cluster_odd ^ odd)) != 0)
    /* Some lanes arrived in the phase that is not complete yet. */
    return false;
  s->cluster_in &= ~mask;
  return true;
}

/* ---- Exit of threads ----------------------------------------------------- */

void kiln__cpu_lanes_exit(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  kiln__cpu_block_own *const own = kiln__cpu_own(w->block);
  kiln__cpu_gang *const gang = own->gang;
  const uint32_t n = (uint32_t)__builtin_popcount(mask);
  const uint32_t odd = gang->cluster_phase != 0 ? mask : 0;
  const uint32_t arrived = s->cluster_in & mask & ~(s->cluster_odd ^ odd);

  check_strays(w, mask);
  w->live &= ~mask;
  own->live -= n;
  w->block->exited = own->live == 0;
  gang->live -= n;
  gang->cluster_arrived -= (uint32_t)__builtin_popcount(arrived);
  s->cluster_in &= ~mask;
  for (kiln__cpu_frame *up; f != NULL; f = up) {
    up = f->parent;
    f->lanes &= ~mask;
    if (f->lanes == 0 && up != NULL)
      kiln__cpu_frame_give(w, f);
  }
  if (own->open != 0)
    kiln__cpu_barriers_recheck(w->block);
  if (gang->n_blocks > 1 || gang->cluster_arrived != 0)
    cluster_recheck(gang);
}
