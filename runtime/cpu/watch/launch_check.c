/* launch_check.c -- finds races between a kernel and the kernels that it launched.
 *
 * Problem: a child may run at any time between its launch and the end of its
 * parent. Accesses of the parent that are not ordered before the launch conflict
 * with those of the child, although the interpreter runs the child later.
 *
 * Idea: a launch copies the clocks of the launching thread, and the shadow cells
 * of the parent stay until its children have ended. Each access of the child is
 * compared with the cells of its parent, and of the parent's parent.
 *
 * Invariant: an access of the parent is ordered before the child if the
 * launching thread knew it at the launch, which is the rule of the CUDA C++
 * Programming Guide. Cost: one look-up per ancestor, word and access. Children of
 * one grid are not compared with each other. */
#include "launch_check.h"

#include "watch_state.h"

#include <string.h>

struct kiln__cpu_origin {
  kiln__cpu_watch *watch; /* checks of the launching grid, with a reference */
  /* the launching thread, and the clocks that it knew */
  uint32_t block, warp;
  kiln__cpu_clocks known;
  uint32_t warps[KILN__MAX_WARPS], lanes[KILN__WARP];
  uint32_t grid_dim[3], block_dim[3];
};

/* Copies what the lane knows, and counts its clock up, so that its later
 * accesses are not ordered before the launch. In lock-step mode, the order of
 * instructions orders all lanes of the warp. */
static bool copy_clocks(kiln__cpu_origin *o, kiln__cpu_warp *w, int lane)
{
  kiln__cpu_block_state *const state = w->block->watch;
  kiln__cpu_warp_clocks *const mine = &state->warps[w->index];

  memcpy(o->warps, mine->warps, sizeof o->warps);
  memcpy(o->lanes, mine->lanes[lane], sizeof o->lanes);
  if (w->grid->lock_step) {
    for (int i = 0; i < KILN__WARP; i++)
      o->lanes[i] = mine->lanes[i][i]++;
  } else {
    mine->lanes[lane][lane]++;
  }
  return kiln__cpu_clocks_join(&o->watch->alloc, &o->known, &state->known);
}

kiln__cpu_origin *kiln__cpu_origin_make(kiln__cpu_warp *w, int lane)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  kiln__cpu_origin *o;
  bool ok;

  if ((kiln__cpu_watch_checks(watch) & KILN_CPU_CHECK_RACE) == 0 ||
      w->block->watch == NULL)
    return NULL;
  o = kiln__calloc(&watch->alloc, 1, sizeof *o);
  if (o == NULL)
    return NULL;
  o->watch = watch;
  o->block = (uint32_t)w->block->number;
  o->warp = w->index;
  memcpy(o->grid_dim, w->grid->grid_dim, sizeof o->grid_dim);
  memcpy(o->block_dim, w->grid->block_dim, sizeof o->block_dim);
  atomic_fetch_add(&watch->refs, 1);
  pthread_mutex_lock(&watch->lock);
  ok = copy_clocks(o, w, lane);
  pthread_mutex_unlock(&watch->lock);
  if (ok)
    return o;
  kiln__cpu_origin_free(o);
  return NULL;
}

void kiln__cpu_origin_free(kiln__cpu_origin *origin)
{
  kiln_allocator a;
  kiln__cpu_watch *watch;

  if (origin == NULL)
    return;
  watch = origin->watch;
  a = watch->alloc;
  kiln__free(&a, origin->known.items);
  kiln__free(&a, origin);
  kiln__cpu_watch_free(watch);
}

void kiln__cpu_watch_launched_by(kiln__cpu_watch *watch,
                                 kiln__cpu_origin *origin)
{
  if (watch == NULL)
    kiln__cpu_origin_free(origin);
  else
    watch->origin = origin;
}

/* ---- Accesses of the child ----------------------------------------------- */

static bool known_at_launch(const kiln__cpu_origin *o,
                            const kiln__cpu_stamp *before)
{
  if (before->async)
    return true;
  if (before->block != o->block)
    return kiln__cpu_clocks_of(&o->known, before->block) >= before->time;
  if (before->warp != o->warp)
    return o->warps[before->warp] >= before->warp_clock;
  return o->lanes[before->lane] >= before->lane_clock;
}

static bool conflicts(const kiln__cpu_origin *o, const kiln__cpu_stamp *before,
                      uint8_t which, bool strong)
{
  return before->in != NULL && (before->bytes & which) != 0 &&
         !(strong && before->strong) && !known_at_launch(o, before);
}

static void report(const kiln__cpu_where *where, const kiln__cpu_origin *o,
                   bool write, const kiln__cpu_stamp *before, bool wrote)
{
  const uint32_t x = o->grid_dim[0], y = o->grid_dim[1];
  const uint32_t t = (uint32_t)before->warp * KILN__WARP + before->lane;
  const uint32_t *const dim = o->block_dim;
  char other[512], what[160], line[256];

  kiln__cpu_watch_line(o->watch, before->in, line, sizeof line);
  kiln__format(
      other, sizeof other,
      "thread (%u,%u,%u) of block (%u,%u,%u) of the grid that launched "
      "it, which %s it at %s",
      t % dim[0], t / dim[0] % dim[1], t / dim[0] / dim[1], before->block % x,
      before->block / x % y, before->block / x / y, wrote ? "wrote" : "read",
      line);
  kiln__format(what, sizeof what, "%s without order after",
               write ? "writes" : "reads");
  kiln__cpu_find(where->w->grid->watch, KILN_CPU_CHECK_RACE, "race", where,
                 other, what,
                 "a launch orders only what its thread did or saw before: put "
                 "__syncthreads() before the launch, or do the access in a "
                 "kernel in cudaStreamTailLaunch");
}

/* Returns the access of the parent that conflicts with this one, or NULL. */
static const kiln__cpu_stamp *find(const kiln__cpu_origin *o,
                                   const kiln__cpu_cell *cell, uint8_t which,
                                   bool strong, bool write, bool *wrote)
{
  *wrote = conflicts(o, &cell->writer, which, strong);
  if (*wrote)
    return &cell->writer;
  for (int i = 0; write && i < 2; i++) {
    if (conflicts(o, &cell->reader[i], which, strong))
      return &cell->reader[i];
  }
  return NULL;
}

void kiln__cpu_ancestor_check(const kiln__cpu_where *where, uint64_t word,
                              uint8_t which, bool strong, bool write)
{
  const kiln__cpu_origin *o = where->w->grid->watch->origin;

  for (; o != NULL; o = o->watch->origin) {
    const kiln__cpu_cell *cell;
    const kiln__cpu_stamp *before;
    bool wrote;

    pthread_mutex_lock(&o->watch->lock);
    cell = kiln__cpu_race_find(o->watch, word);
    before = cell == NULL ? NULL : find(o, cell, which, strong, write, &wrote);
    if (before != NULL)
      report(where, o, write, before, wrote);
    pthread_mutex_unlock(&o->watch->lock);
  }
}
