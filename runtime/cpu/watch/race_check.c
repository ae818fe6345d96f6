/* race_check.c -- finds data races, which are conflicting accesses that no
 * synchronisation orders.
 *
 * Problem: a race changes the result only under some schedules. It should be
 * reported in every run, independent of the order that the interpreter chose.
 *
 * Idea: track happens-before by vector clocks (Mattern, 1989). Instead of full
 * vectors, store per 32-bit word the time stamps of its last writer and last
 * readers, like the epochs of FastTrack (Flanagan and Freund, PLDI 2009).
 *
 * GPU threads form a hierarchy, so there are three levels of clocks. Warp-level
 * synchronisation orders the lanes of a warp, and barriers order the warps of a
 * block. Blocks are ordered by a fence followed by a strong store (atomic,
 * volatile, relaxed) whose value another thread reads. In lock-step mode, the
 * instruction order also orders the lanes of a warp.
 *
 * Invariant: an access is ordered after a stamp if the accessing thread knows a
 * clock of the stamp's lane, warp or block that is at least the stamp. Two
 * strong accesses never race. Lanes of one instruction do not race with each
 * other.
 *
 * Cost: one shadow cell (three stamps) per 32-bit word, and a few comparisons
 * per access, under one lock per launch.
 *
 * The check may miss races but reports no false ones. What one warp learns of
 * another block counts for the whole block of that warp. A shadow cell stores
 * the readers of only two warps. */
#include "watch_state.h"

#include <string.h>

static bool named(const kiln__cpu_insn *in, const char *prefix)
{
  return kiln__starts_with(kiln__cpu_op_name[in->op], prefix);
}

/* Returns whether the instruction is an mbarrier operation. An mbarrier arrival
 * has release semantics; a test or wait has acquire semantics. */
static bool is_mbarrier(const kiln__cpu_insn *in)
{
  return named(in, "mbarrier_") || named(in, "cp_async_arrive");
}

static bool is_strong(const kiln__cpu_insn *in, kiln__cpu_access access)
{
  return access == KILN__ACCESS_ATOMIC || in->sem != KILN__SEM_WEAK ||
         is_mbarrier(in);
}

/* ---- Shadow cells -------------------------------------------------------- */

static kiln__cpu_cell *global_cell(kiln__cpu_watch *watch, uint64_t address)
{
  const uint64_t number = address / KILN__PAGE_BYTES;
  kiln__cpu_page **bucket =
      &watch->pages[(number ^ (number >> 12)) % KILN__N_BUCKETS];
  kiln__cpu_page *page = watch->last_page;

  if (page != NULL && page->number == number)
    return &page->cells[address % KILN__PAGE_BYTES / 4];
  for (page = *bucket; page != NULL && page->number != number;)
    page = page->next;
  if (page == NULL) {
    page = kiln__calloc(&watch->alloc, 1, sizeof *page);
    if (page == NULL)
      return NULL;
    page->cells =
        kiln__calloc(&watch->alloc, KILN__PAGE_WORDS, sizeof *page->cells);
    if (page->cells == NULL) {
      kiln__free(&watch->alloc, page);
      return NULL;
    }
    page->number = number;
    page->next = *bucket;
    *bucket = page;
  }
  watch->last_page = page;
  return &page->cells[address % KILN__PAGE_BYTES / 4];
}

const kiln__cpu_cell *kiln__cpu_race_find(const kiln__cpu_watch *watch,
                                          uint64_t address)
{
  const uint64_t number = address / KILN__PAGE_BYTES;
  const kiln__cpu_page *page =
      watch->pages[(number ^ (number >> 12)) % KILN__N_BUCKETS];

  while (page != NULL && page->number != number)
    page = page->next;
  return page == NULL ? NULL : &page->cells[address % KILN__PAGE_BYTES / 4];
}

kiln__cpu_cell *kiln__cpu_race_cell(kiln__cpu_watch *watch,
                                    const kiln__cpu_block_state *state,
                                    kiln__cpu_space space, uint64_t address)
{
  if (space != KILN__SPACE_SHARED)
    return global_cell(watch, address);
  return state->shared != NULL && address / 4 < state->n_words
             ? &state->shared[address / 4]
             : NULL;
}

static uint64_t sync_key(const kiln__cpu_block *block, kiln__cpu_space space,
                         uint64_t address)
{
  if (space != KILN__SPACE_SHARED)
    return address;
  return (UINT64_C(1) << 63) | (block->number << 24) | address;
}

void kiln__cpu_race_free(kiln__cpu_watch *watch)
{
  const kiln_allocator *a = &watch->alloc;

  for (int i = 0; i < KILN__N_BUCKETS; i++) {
    while (watch->pages[i] != NULL) {
      kiln__cpu_page *page = watch->pages[i];

      watch->pages[i] = page->next;
      kiln__free(a, page->cells);
      kiln__free(a, page);
    }
  }
}

/* ---- How synchronisation orders two accesses ----------------------------- */

static void raise(uint32_t *to, const uint32_t *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    if (to[i] < from[i])
      to[i] = from[i];
  }
}

bool kiln__cpu_race_ordered(const kiln__cpu_block_state *state,
                            const kiln__cpu_warp *w, uint32_t lane,
                            const kiln__cpu_stamp *before)
{
  const kiln__cpu_warp_clocks *mine = &state->warps[w->index];

  if (before->async)
    return kiln__cpu_async_complete(w->grid->watch, state, w, before);
  if (before->block != (uint32_t)w->block->number)
    return kiln__cpu_clocks_of(&state->known, before->block) >= before->time;
  if (before->warp != w->index)
    return mine->warps[before->warp] >= before->warp_clock;
  return before->lane == lane || w->grid->lock_step ||
         mine->lanes[lane][before->lane] >= before->lane_clock;
}

kiln__cpu_stamp kiln__cpu_race_stamp(const kiln__cpu_block_state *state,
                                     const kiln__cpu_warp *w,
                                     const kiln__cpu_insn *in, uint32_t lane,
                                     uint8_t bytes, bool strong)
{
  const kiln__cpu_warp_clocks *mine = &state->warps[w->index];

  return (kiln__cpu_stamp){.in = in,
                           .block = (uint32_t)w->block->number,
                           .time = state->time,
                           .warp_clock = mine->warps[w->index],
                           .lane_clock = mine->lanes[lane][lane],
                           .warp = (uint8_t)w->index,
                           .lane = (uint8_t)lane,
                           .bytes = bytes,
                           .strong = strong,
                           .mark = state->proxy_fences};
}

/* ---- Synchronisation through memory -------------------------------------- */

/* Publishes the clocks that the writer of the synchronisation word `m` had at
 * its last fence. Every later reader of the word learns these clocks. */
static void release(kiln__cpu_watch *watch, kiln__cpu_block_state *state,
                    const kiln__cpu_warp *w, uint32_t lane, bool foreign,
                    kiln__cpu_sync_word *m)
{
  kiln__cpu_warp_clocks *mine = &state->warps[w->index];
  const uint32_t block = (uint32_t)w->block->number;
  uint32_t *clocks;

  kiln__cpu_clocks_join(&watch->alloc, &m->known, &state->known);
  if (mine->fenced_time > 0)
    kiln__cpu_clocks_raise(&watch->alloc, &m->known, block, mine->fenced_time);
  /* A word in the shared memory of another block keeps the clocks of the warps
   * of that block, which wait there together. */
  if (foreign) {
    mine->lanes[lane][lane]++;
    return;
  }
  if (m->block != block)
    kiln__cpu_sync_forget(&watch->alloc, m);
  m->block = block;
  raise(m->warps, mine->fenced, KILN__MAX_WARPS);
  clocks = kiln__cpu_sync_clocks(&watch->alloc, m, w->index, true);
  if (clocks != NULL)
    raise(clocks, mine->lanes[lane], KILN__WARP);
  /* Later accesses of this lane are not ordered by this release. */
  mine->lanes[lane][lane]++;
}

static void acquire(kiln__cpu_watch *watch, kiln__cpu_block_state *state,
                    const kiln__cpu_warp *w, uint32_t lane,
                    kiln__cpu_sync_word *m)
{
  kiln__cpu_warp_clocks *mine = &state->warps[w->index];
  const uint32_t *clocks;

  kiln__cpu_clocks_join(&watch->alloc, &state->known, &m->known);
  if (m->block != (uint32_t)w->block->number)
    return;
  raise(mine->warps, m->warps, KILN__MAX_WARPS);
  clocks = kiln__cpu_sync_clocks(&watch->alloc, m, w->index, false);
  if (clocks != NULL)
    raise(mine->lanes[lane], clocks, KILN__WARP);
}

static void fence(kiln__cpu_block_state *state, uint32_t warp)
{
  kiln__cpu_warp_clocks *mine = &state->warps[warp];

  memcpy(mine->fenced, mine->warps, sizeof mine->fenced);
  mine->warps[warp]++;
  mine->fenced_time = state->time++;
}

static bool releases(const kiln__cpu_insn *in)
{
  return is_mbarrier(in) || in->sem == KILN__SEM_RELEASE ||
         in->sem == KILN__SEM_ACQ_REL || in->sem == KILN__SEM_SC;
}

static void synchronise(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                        const kiln__cpu_insn *in, const kiln__cpu_block *target,
                        kiln__cpu_space space, const uint64_t *address,
                        uint32_t mask, kiln__cpu_access access)
{
  kiln__cpu_block_state *state = w->block->watch;
  kiln__cpu_block_state *owner =
      space == KILN__SPACE_SHARED ? target->watch : NULL;

  if (access != KILN__ACCESS_READ && releases(in))
    fence(state, w->index);
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint32_t lane = (uint32_t)__builtin_ctz(m);
    kiln__cpu_sync_word *word = kiln__cpu_sync_find(
        watch, owner, sync_key(target, space, address[lane]),
        access != KILN__ACCESS_READ);

    if (word == NULL)
      continue;
    if (access != KILN__ACCESS_WRITE)
      acquire(watch, state, w, lane, word);
    if (access != KILN__ACCESS_READ)
      release(watch, state, w, lane,
              space == KILN__SPACE_SHARED && target != w->block, word);
  }
}

/* ---- Accesses ------------------------------------------------------------ */

void kiln__cpu_race_other(const kiln__cpu_watch *watch, const kiln__cpu_grid *g,
                          const kiln__cpu_stamp *before, bool wrote, char *buf,
                          size_t size)
{
  const uint32_t x = g->grid_dim[0], y = g->grid_dim[1];
  uint32_t thread[3];
  char line[256];

  kiln__cpu_watch_line(watch, before->in, line, sizeof line);
  kiln__cpu_watch_thread(g, before->warp, before->lane, thread);
  kiln__format(buf, size,
               "%sthread (%u,%u,%u) of block (%u,%u,%u), which %s it at %s",
               before->async ? "the asynchronous operation of " : "", thread[0],
               thread[1], thread[2], before->block % x, before->block / x % y,
               before->block / x / y, wrote ? "wrote" : "read", line);
}

static const char *advice_of(const kiln__cpu_warp *w, kiln__cpu_space space,
                             const kiln__cpu_stamp *before)
{
  if (before->async)
    return "wait for the mbarrier of the copy, or for its group "
           "(cp.async.bulk.wait_group, wgmma.wait_group)";
  if (before->block != (uint32_t)w->block->number &&
      space == KILN__SPACE_SHARED)
    return "put barrier.cluster between the two, or an mbarrier at which the "
           "other block arrives";
  if (before->block != (uint32_t)w->block->number)
    return "blocks run in any order: use an atomic, or __threadfence() and an "
           "atomic flag, or two launches";
  return before->warp == w->index
             ? "put __syncwarp() between the two"
             : "put __syncthreads() between the two, or make both atomic";
}

static void report(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                   const kiln__cpu_insn *in, uint32_t lane,
                   kiln__cpu_space space, uint64_t address, uint32_t bytes,
                   bool write, const kiln__cpu_stamp *before, bool before_wrote)
{
  const kiln__cpu_where where = {w, in, (int)lane, space, address, bytes};
  char other[512], what[160];

  kiln__cpu_race_other(watch, w->grid, before, before_wrote, other,
                       sizeof other);
  kiln__format(what, sizeof what, "%s without order after",
               write ? "writes" : "reads");
  kiln__cpu_find(watch, KILN_CPU_CHECK_RACE, "race", &where, other, what,
                 advice_of(w, space, before));
}

/* One memory access of a warp, as the race check sees it. */
typedef struct touch {
  kiln__cpu_watch *watch;
  kiln__cpu_warp *w;
  const kiln__cpu_insn *in;
  const kiln__cpu_block *target; /* owner of the shared memory */
  kiln__cpu_space space;
  uint32_t bytes; /* number of bytes that each lane accesses */
  bool strong, write;
} touch;

static void check_word(const touch *t, uint32_t lane, uint64_t address,
                       uint8_t which, kiln__cpu_cell *cell)
{
  const kiln__cpu_where where = {t->w,     t->in,   (int)lane,
                                 t->space, address, t->bytes};
  const kiln__cpu_block_state *state = t->w->block->watch;
  const kiln__cpu_stamp *writer = &cell->writer;

  if (t->watch->origin != NULL && t->space == KILN__SPACE_GLOBAL)
    kiln__cpu_ancestor_check(&where, address, which, t->strong, t->write);

  if (writer->in != NULL && (writer->bytes & which) != 0 &&
      !(t->strong && writer->strong) &&
      !kiln__cpu_race_ordered(state, t->w, lane, writer)) {
    report(t->watch, t->w, t->in, lane, t->space, address, t->bytes, t->write,
           writer, true);
    return;
  }
  for (int i = 0; i < 2 && t->write; i++) {
    const kiln__cpu_stamp *reader = &cell->reader[i];

    if (reader->in != NULL && (reader->bytes & which) != 0 &&
        !(t->strong && reader->strong) &&
        !kiln__cpu_race_ordered(state, t->w, lane, reader)) {
      report(t->watch, t->w, t->in, lane, t->space, address, t->bytes, t->write,
             reader, false);
      return;
    }
  }
}

static bool same_warp(const kiln__cpu_stamp *a, const kiln__cpu_stamp *b)
{
  return a->block == b->block && a->warp == b->warp && a->async == b->async;
}

void kiln__cpu_race_note(kiln__cpu_cell *cell, const kiln__cpu_stamp *stamp,
                         bool write)
{
  if (write) {
    cell->writer = *stamp;
    return;
  }
  if (cell->reader[0].in != NULL && !same_warp(&cell->reader[0], stamp))
    cell->reader[1] = cell->reader[0];
  cell->reader[0] = *stamp;
}

static void note_word(const touch *t, uint32_t lane, uint64_t address,
                      uint8_t which, kiln__cpu_cell *cell)
{
  const kiln__cpu_stamp stamp = kiln__cpu_race_stamp(
      t->w->block->watch, t->w, t->in, lane, which, t->strong);

  (void)address;
  kiln__cpu_race_note(cell, &stamp, t->write);
}

/* Type of a function that is called for each 32-bit word that a lane accesses.
 * `which` has one bit for each accessed byte of the word. */
typedef void word_fn(const touch *t, uint32_t lane, uint64_t address,
                     uint8_t which, kiln__cpu_cell *cell);

/* Returns which bytes of the word at `word` the program uses of an access to
 * `address`: all of them, except for loads that also cover padding. */
static unsigned used_of(const touch *t, uint64_t address, uint64_t word)
{
  const uint64_t used = t->in->used_bytes;

  if (used == 0 || t->write)
    return 0xf;
  return (unsigned)(word < address ? used << (address - word)
                                   : used >> (word - address));
}

static void each_word(word_fn *fn, const touch *t, uint32_t lane,
                      uint64_t address)
{
  const uint64_t last = address + t->bytes;

  for (uint64_t word = address & ~UINT64_C(3); word < last; word += 4) {
    const unsigned from = word < address ? (unsigned)(address - word) : 0;
    const unsigned to = last - word < 4 ? (unsigned)(last - word) : 4;
    const unsigned all = (1u << to) - (1u << from);
    const unsigned which = all & used_of(t, address, word);
    kiln__cpu_cell *cell =
        kiln__cpu_race_cell(t->watch, t->target->watch, t->space, word);

    if (cell != NULL && which != 0)
      fn(t, lane, word, (uint8_t)which, cell);
  }
}

/* Checks the accesses of all lanes before it records any of them, since lanes
 * of one instruction do not race with each other in this check. */
void kiln__cpu_race_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in,
                           const kiln__cpu_block *target, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access)
{
  const touch t = {.watch = watch,
                   .w = w,
                   .in = in,
                   .target = target,
                   .space = space,
                   .bytes = bytes,
                   .strong = is_strong(in, access),
                   .write = access != KILN__ACCESS_READ};

  if (w->block->watch == NULL || target->watch == NULL ||
      (space != KILN__SPACE_SHARED && space != KILN__SPACE_GLOBAL))
    return;
  if (t.strong)
    synchronise(watch, w, in, target, space, address, mask, access);
  for (uint32_t m = mask; m != 0; m &= m - 1)
    each_word(check_word, &t, (uint32_t)__builtin_ctz(m),
              address[__builtin_ctz(m)]);
  for (uint32_t m = mask; m != 0; m &= m - 1)
    each_word(note_word, &t, (uint32_t)__builtin_ctz(m),
              address[__builtin_ctz(m)]);
}

/* ---- Synchronisation ----------------------------------------------------- */

void kiln__cpu_watch_fence(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  kiln__cpu_watch *watch = w->grid->watch;

  if (w->block->watch == NULL)
    return;
  if (named(in, "fence_async"))
    kiln__cpu_watch_proxy_fence(w);
  pthread_mutex_lock(&watch->lock);
  fence(w->block->watch, w->index);
  pthread_mutex_unlock(&watch->lock);
}

/* Each lane of `mask` learns the clocks of all other lanes of `mask`. */
static void join_lanes(kiln__cpu_warp_clocks *mine, uint32_t mask)
{
  uint32_t all[KILN__WARP] = {0};

  for (uint32_t m = mask; m != 0; m &= m - 1)
    raise(all, mine->lanes[__builtin_ctz(m)], KILN__WARP);
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint32_t lane = (uint32_t)__builtin_ctz(m);

    memcpy(mine->lanes[lane], all, sizeof all);
    mine->lanes[lane][lane]++;
  }
}

void kiln__cpu_watch_warp_sync(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                               uint32_t mask)
{
  kiln__cpu_watch *watch = w->grid->watch;
  kiln__cpu_block_state *state = w->block->watch;

  (void)in;
  if (state == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  join_lanes(&state->warps[w->index], mask);
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_barrier(kiln__cpu_block *block, uint32_t warps)
{
  kiln__cpu_watch *watch = block->grid->watch;
  kiln__cpu_block_state *state = block->watch;
  uint32_t all[KILN__MAX_WARPS] = {0};

  if (state == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  for (uint32_t m = warps; m != 0; m &= m - 1)
    raise(all, state->warps[__builtin_ctz(m)].warps, KILN__MAX_WARPS);
  for (uint32_t m = warps; m != 0; m &= m - 1) {
    const uint32_t i = (uint32_t)__builtin_ctz(m);

    memcpy(state->warps[i].warps, all, sizeof all);
    state->warps[i].warps[i]++;
    join_lanes(&state->warps[i], ~0u);
  }
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_cluster_barrier(kiln__cpu_block *const *blocks, uint32_t n)
{
  kiln__cpu_watch *const watch = blocks[0]->grid->watch;
  kiln__cpu_clocks all = {0};
  bool ok = true;

  for (uint32_t i = 0; i < n; i++) {
    if (blocks[i]->watch == NULL)
      return;
    kiln__cpu_watch_barrier(blocks[i], UINT32_MAX >> (32 - blocks[i]->n_warps));
  }
  pthread_mutex_lock(&watch->lock);
  for (uint32_t i = 0; i < n; i++) {
    const kiln__cpu_block_state *const state = blocks[i]->watch;

    ok = ok && kiln__cpu_clocks_join(&watch->alloc, &all, &state->known) &&
         kiln__cpu_clocks_raise(&watch->alloc, &all,
                                (uint32_t)blocks[i]->number, state->time);
  }
  for (uint32_t i = 0; i < n; i++) {
    kiln__cpu_block_state *const state = blocks[i]->watch;

    ok = ok && kiln__cpu_clocks_join(&watch->alloc, &state->known, &all);
    state->time++;
  }
  kiln__free(&watch->alloc, all.items);
  pthread_mutex_unlock(&watch->lock);
}
