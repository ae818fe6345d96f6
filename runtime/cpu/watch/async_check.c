/* async_check.c -- checks the accesses of asynchronous operations: bulk copies
 * and the reads of wgmma.
 *
 * Problem: such an operation accesses memory at any time between its issue and
 * its completion, and threads learn of the completion through an mbarrier or a
 * wait for a group. The interpreter performs the operation at once, so a program
 * that does not wait still computes the right result.
 *
 * Idea: an operation is one more thread for the race check, which starts with
 * the knowledge of the issuing thread. Its stamps carry the id of the operation.
 * An operation keeps the clocks of each warp at the moment at which the warp
 * learnt of the completion. A later access is ordered after the operation if its
 * warp is one of these, or has learnt the clock of one of these.
 *
 * Shared memory that threads wrote is invisible to an asynchronous read until a
 * fence.proxy.async. The check counts these fences per block, and a stamp keeps
 * the count at the time of the write. If the count is unchanged when the
 * operation reads, no thread can have executed the fence.
 *
 * Invariant: no finding in a correct program. Where the tables are full, an
 * operation counts as complete for everybody. Accesses to the shared memory of
 * other blocks of the cluster are only recorded, not checked.
 *
 * Cost: as the race check, one shadow cell per 32-bit word, under one lock. */
#include "watch_state.h"

#include <string.h>

/* ---- Operations ---------------------------------------------------------- */

static kiln__cpu_async_op *find_op(const kiln__cpu_watch *watch,
                                   kiln__cpu_async id)
{
  kiln__cpu_async_op *const op =
      watch->async == NULL ? NULL : &watch->async[id % KILN__N_ASYNC];

  return op != NULL && op->id == id ? op : NULL;
}

kiln__cpu_async kiln__cpu_watch_async_begin(kiln__cpu_warp *w)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_async id = 0;

  if (w->block->watch == NULL || (watch->checks & KILN_CPU_CHECK_RACE) == 0)
    return 0;
  pthread_mutex_lock(&watch->lock);
  if (watch->async == NULL)
    watch->async =
        kiln__calloc(&watch->alloc, KILN__N_ASYNC, sizeof *watch->async);
  if (watch->async != NULL) {
    id = ++watch->last_async;
    if (id == 0)
      id = ++watch->last_async;
    watch->async[id % KILN__N_ASYNC] = (kiln__cpu_async_op){.id = id};
  }
  pthread_mutex_unlock(&watch->lock);
  return id;
}

/* Makes an operation complete for all threads, since no table has room to
 * remember when they learn of it. */
static void forget(const kiln__cpu_watch *watch, kiln__cpu_async id)
{
  kiln__cpu_async_op *const op = find_op(watch, id);

  if (op != NULL)
    op->everybody = true;
}

static void see(const kiln__cpu_watch *watch, const kiln__cpu_warp *w,
                kiln__cpu_async id)
{
  const kiln__cpu_block_state *const state = w->block->watch;
  const uint32_t block = (uint32_t)w->block->number;
  kiln__cpu_async_op *const op = find_op(watch, id);

  if (op == NULL)
    return;
  for (uint32_t i = 0; i < op->n; i++) {
    if (op->seen[i].block == block && op->seen[i].warp == w->index)
      return;
  }
  if (op->n == KILN__N_SEEN) {
    op->everybody = true;
    return;
  }
  op->seen[op->n++] = (struct kiln__cpu_seen){
      .block = block,
      .time = state->time,
      .warp_clock = state->warps[w->index].warps[w->index],
      .warp = w->index};
}

void kiln__cpu_watch_async_seen(kiln__cpu_warp *w, kiln__cpu_async id)
{
  kiln__cpu_watch *const watch = w->grid->watch;

  if (id == 0 || w->block->watch == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  see(watch, w, id);
  pthread_mutex_unlock(&watch->lock);
}

bool kiln__cpu_async_complete(const kiln__cpu_watch *watch,
                              const kiln__cpu_block_state *state,
                              const kiln__cpu_warp *w,
                              const kiln__cpu_stamp *before)
{
  const kiln__cpu_async_op *const op = find_op(watch, before->mark);
  const uint32_t *const mine = state->warps[w->index].warps;
  bool complete = op == NULL || op->everybody;

  for (uint32_t i = 0; !complete && i < op->n; i++) {
    const struct kiln__cpu_seen *const s = &op->seen[i];

    complete = s->block != (uint32_t)w->block->number
                   ? kiln__cpu_clocks_of(&state->known, s->block) >= s->time
                   : s->warp == w->index || mine[s->warp] >= s->warp_clock;
  }
  return complete;
}

/* ---- State of a block ---------------------------------------------------- */

void kiln__cpu_async_start(kiln__cpu_block_state *state)
{
  state->proxy_fences = 0;
  state->n_signals = 0;
  if (state->signals != NULL)
    memset(state->signals, 0, KILN__N_SIGNALS * sizeof *state->signals);
  if (state->stores != NULL)
    memset(state->stores, 0, KILN__MAX_WARPS * sizeof *state->stores);
}

void kiln__cpu_async_free(const kiln_allocator *a, kiln__cpu_block_state *state)
{
  kiln__free(a, state->signals);
  kiln__free(a, state->stores);
}

/* ---- mbarriers ----------------------------------------------------------- */

/* Returns the number of phases of an mbarrier that were signalled before the
 * phase that the newest entry belongs to. */
static uint32_t epoch_of(const kiln__cpu_block_state *state, uint32_t address,
                         uint32_t phase)
{
  const kiln__cpu_signal *newest = NULL;
  const uint32_t n = state->n_signals;

  for (uint32_t i = 1; i <= KILN__N_SIGNALS && i <= n && newest == NULL; i++) {
    const kiln__cpu_signal *const s =
        &state->signals[(n - i) % KILN__N_SIGNALS];

    newest = s->address == address ? s : NULL;
  }
  return newest == NULL ? 0 : newest->epoch + (newest->phase != phase);
}

static void add_signal(kiln__cpu_watch *watch, kiln__cpu_block_state *state,
                       kiln__cpu_async id, uint32_t address, uint32_t phase)
{
  kiln__cpu_signal *s;

  if (state->signals == NULL)
    state->signals =
        kiln__calloc(&watch->alloc, KILN__N_SIGNALS, sizeof *state->signals);
  if (state->signals == NULL) {
    forget(watch, id);
    return;
  }
  s = &state->signals[state->n_signals % KILN__N_SIGNALS];
  if (s->id != 0)
    forget(watch, s->id);
  *s = (kiln__cpu_signal){id, address, phase, epoch_of(state, address, phase)};
  state->n_signals++;
}

void kiln__cpu_watch_async_signal(kiln__cpu_warp *w, kiln__cpu_async id,
                                  kiln__cpu_block *block, uint64_t address,
                                  uint32_t phase)
{
  kiln__cpu_watch *const watch = w->grid->watch;

  if (id == 0)
    return;
  pthread_mutex_lock(&watch->lock);
  if (block->watch != NULL)
    add_signal(watch, block->watch, id, (uint32_t)address, phase);
  else
    forget(watch, id);
  pthread_mutex_unlock(&watch->lock);
}

/* A warp that saw a phase end has seen the operations of all earlier phases of
 * the mbarrier. The number of a phase is known modulo 8 only, so an operation
 * that is four signalled phases old counts as earlier, too. */
void kiln__cpu_watch_phase_over(kiln__cpu_warp *w, uint64_t address,
                                uint32_t phase)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_block_state *const state = w->block->watch;
  uint32_t newest;

  if (state == NULL || state->signals == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  newest = epoch_of(state, (uint32_t)address, phase);
  for (uint32_t i = 0; i < KILN__N_SIGNALS; i++) {
    const kiln__cpu_signal *const s = &state->signals[i];

    if (s->id != 0 && s->address == (uint32_t)address &&
        (s->phase != phase || newest - s->epoch >= 4))
      see(watch, w, s->id);
  }
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_proxy_fence(kiln__cpu_warp *w)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_block *const own = w->block;

  pthread_mutex_lock(&watch->lock);
  for (uint32_t i = 0; i < own->cluster_size || i == 0; i++) {
    kiln__cpu_block *const b = own->cluster != NULL ? own->cluster[i] : own;

    if (b->watch != NULL)
      ((kiln__cpu_block_state *)b->watch)->proxy_fences++;
    if (own->cluster == NULL)
      break;
  }
  pthread_mutex_unlock(&watch->lock);
}

/* ---- Groups of bulk stores ----------------------------------------------- */

static kiln__cpu_stores *stores_of(kiln__cpu_watch *watch,
                                   const kiln__cpu_warp *w)
{
  kiln__cpu_block_state *const state = w->block->watch;

  if (state->stores == NULL)
    state->stores =
        kiln__calloc(&watch->alloc, KILN__MAX_WARPS, sizeof *state->stores);
  return state->stores == NULL ? NULL : &state->stores[w->index];
}

void kiln__cpu_watch_store(kiln__cpu_warp *w, int lane, kiln__cpu_async read,
                           kiln__cpu_async write)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_stores *s;

  if (read == 0 || w->block->watch == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  s = stores_of(watch, w);
  if (s == NULL || s->n == KILN__N_STORES) {
    forget(watch, read);
    forget(watch, write);
  } else {
    s->pending[s->n++] = (struct kiln__cpu_pending_store){
        read, write, (uint32_t)lane, s->groups[lane]};
  }
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_store_commit(kiln__cpu_warp *w, uint32_t mask)
{
  kiln__cpu_block_state *const state = w->block->watch;

  if (state == NULL || state->stores == NULL)
    return;
  for (; mask != 0; mask &= mask - 1)
    state->stores[w->index].groups[__builtin_ctz(mask)]++;
}

void kiln__cpu_watch_store_wait(kiln__cpu_warp *w, uint32_t mask, uint64_t keep,
                                bool read)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_block_state *const state = w->block->watch;
  kiln__cpu_stores *s;
  uint32_t n = 0;

  if (state == NULL || state->stores == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  s = &state->stores[w->index];
  for (uint32_t i = 0; i < s->n; i++) {
    const struct kiln__cpu_pending_store p = s->pending[i];
    const bool due =
        (mask >> p.lane & 1) != 0 && p.group + keep < s->groups[p.lane];

    if (due)
      see(watch, w, p.read);
    if (due && !read)
      see(watch, w, p.write);
    else
      s->pending[n++] = p;
  }
  s->n = n;
  pthread_mutex_unlock(&watch->lock);
}

/* ---- Accesses ------------------------------------------------------------ */

/* One access of an asynchronous operation. */
typedef struct async_touch {
  kiln__cpu_watch *watch;
  kiln__cpu_warp *w;
  const kiln__cpu_insn *in;
  uint32_t lane;
  kiln__cpu_async id;
  kiln__cpu_space space;
  uint64_t address;
  uint32_t bytes;
  bool write, strong;
  bool reported;
} async_touch;

static void report(async_touch *t, const char *kind, const char *what,
                   const kiln__cpu_stamp *before, bool before_wrote,
                   const char *advice)
{
  const kiln__cpu_where where = {t->w,     t->in,      (int)t->lane,
                                 t->space, t->address, t->bytes};
  char other[512];

  t->reported = true;
  kiln__cpu_race_other(t->watch, t->w->grid, before, before_wrote, other,
                       sizeof other);
  kiln__cpu_find(t->watch, KILN_CPU_CHECK_RACE, kind, &where, other, what,
                 advice);
}

/* Checks the access against an earlier one that conflicts with it. */
static void check_stamp(async_touch *t, const kiln__cpu_stamp *before,
                        uint8_t which, bool before_wrote)
{
  const kiln__cpu_block_state *const state = t->w->block->watch;

  if (t->reported || before->in == NULL || (before->bytes & which) == 0 ||
      (t->strong && before->strong) || (before->async && before->mark == t->id))
    return;
  if (!kiln__cpu_race_ordered(state, t->w, t->lane, before))
    report(t, "race",
           t->write ? "starts an asynchronous write without order after"
                    : "starts an asynchronous read without order after",
           before, before_wrote,
           before->async ? "wait for the earlier operation before this one is "
                           "issued"
                         : "put __syncthreads() or an mbarrier between the "
                           "access and the instruction that starts the "
                           "operation");
  else if (!t->write && before_wrote && !before->async &&
           t->space == KILN__SPACE_SHARED &&
           before->mark == state->proxy_fences)
    report(t, "missing proxy fence",
           "starts an asynchronous read of what was written without "
           "fence.proxy.async by",
           before, true,
           "execute fence.proxy.async.shared::cta after the writes, before the "
           "barrier that precedes the operation");
}

static void touch_word(async_touch *t, kiln__cpu_block_state *target,
                       uint64_t word, uint8_t which)
{
  kiln__cpu_block_state *const own = t->w->block->watch;
  kiln__cpu_cell *const cell =
      kiln__cpu_race_cell(t->watch, target, t->space, word);
  kiln__cpu_stamp stamp;

  if (cell == NULL)
    return;
  if (target == own) {
    check_stamp(t, &cell->writer, which, true);
    for (int i = 0; i < 2 && t->write; i++)
      check_stamp(t, &cell->reader[i], which, false);
  }
  stamp = kiln__cpu_race_stamp(own, t->w, t->in, t->lane, which, t->strong);
  stamp.async = true;
  stamp.mark = t->id;
  kiln__cpu_race_note(cell, &stamp, t->write);
}

static void check_race(async_touch *t, kiln__cpu_block_state *target)
{
  const uint64_t last = t->address + t->bytes;

  for (uint64_t word = t->address & ~UINT64_C(3); word < last; word += 4) {
    const unsigned from = word < t->address ? (unsigned)(t->address - word) : 0;
    const unsigned to = last - word < 4 ? (unsigned)(last - word) : 4;

    touch_word(t, target, word, (uint8_t)((1u << to) - (1u << from)));
  }
}

void kiln__cpu_watch_async_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  int lane, kiln__cpu_async id,
                                  kiln__cpu_block *block, kiln__cpu_space space,
                                  uint64_t address, uint32_t bytes,
                                  kiln__cpu_access access)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_block *const where = block != NULL ? block : w->block;
  async_touch t = {.watch = watch,
                   .w = w,
                   .in = in,
                   .lane = (uint32_t)lane,
                   .id = id,
                   .space = space,
                   .address = address,
                   .bytes = bytes,
                   .write = access != KILN__ACCESS_READ,
                   .strong = access == KILN__ACCESS_ATOMIC};
  uint64_t at[KILN__WARP] = {0};

  if (where->watch == NULL || w->block->watch == NULL || bytes == 0)
    return;
  at[lane] = address;
  pthread_mutex_lock(&watch->lock);
  if ((watch->checks & KILN_CPU_CHECK_INIT) != 0)
    kiln__cpu_init_access(watch, w, in, where, space, at, 1u << lane, bytes,
                          access);
  if (id != 0)
    check_race(&t, where->watch);
  pthread_mutex_unlock(&watch->lock);
}
