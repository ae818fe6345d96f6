/* watch.c -- implements the checks and counters of one launch: their creation,
 * the shadow state of blocks, and the entry point of memory accesses.
 *
 * The shadow state of a block is large: clocks of 32 warps, and one shadow cell
 * per 32-bit word of shared memory. It is allocated when the first block starts
 * and reused by later blocks. */
#include "launch_check.h"
#include "watch_state.h"

#include <string.h>

kiln_status kiln__cpu_watch_create(kiln__cpu_watch **out,
                                   const kiln_allocator *a, unsigned checks,
                                   bool counters,
                                   const kiln__cpu_program *program,
                                   const kiln__cpu_code *code)
{
  kiln__cpu_watch *watch = kiln__calloc(a, 1, sizeof *watch);

  *out = NULL;
  if (watch == NULL)
    return kiln__fail_memory("the checks of a launch");
  watch->alloc = *a;
  atomic_init(&watch->refs, 1);
  watch->checks = checks;
  watch->counters = counters;
  watch->program = program;
  watch->code = code;
  watch->last = &watch->found;
  pthread_mutex_init(&watch->lock, NULL);
  *out = watch;
  return KILN_OK;
}

static void free_state(const kiln_allocator *a, kiln__cpu_block_state *state)
{
  kiln__cpu_async_free(a, state);
  kiln__free(a, state->shared);
  kiln__free(a, state->shared_valid);
  kiln__free(a, state->known.items);
  kiln__free(a, state->warps);
  kiln__free(a, state);
}

void kiln__cpu_watch_free(kiln__cpu_watch *watch)
{
  kiln_allocator a;

  if (watch == NULL || atomic_fetch_sub(&watch->refs, 1) != 1)
    return;
  a = watch->alloc;
  kiln__cpu_origin_free(watch->origin);
  kiln__cpu_race_free(watch);
  kiln__cpu_sync_free(watch);
  kiln__free(&a, watch->async);
  while (watch->spare != NULL) {
    kiln__cpu_block_state *state = watch->spare;

    watch->spare = state->next;
    free_state(&a, state);
  }
  while (watch->found != NULL) {
    kiln__cpu_found *found = watch->found;

    watch->found = found->next;
    kiln__free(&a, found);
  }
  while (watch->tallies != NULL) {
    kiln__cpu_tallies *t = watch->tallies;

    watch->tallies = t->next;
    kiln__free(&a, t->tally);
    kiln__free(&a, t);
  }
  pthread_mutex_destroy(&watch->lock);
  kiln__free(&a, watch);
}

unsigned kiln__cpu_watch_checks(const kiln__cpu_watch *watch)
{
  return watch != NULL ? watch->checks : 0;
}

/* ---- Blocks -------------------------------------------------------------- */

static kiln__cpu_block_state *make_state(const kiln__cpu_watch *watch,
                                         const kiln__cpu_block *block)
{
  const kiln_allocator *a = &watch->alloc;
  kiln__cpu_block_state *state = kiln__calloc(a, 1, sizeof *state);

  if (state == NULL)
    return NULL;
  state->n_words = (block->shared_size + 3) / 4;
  state->warps = kiln__alloc(a, KILN__MAX_WARPS * sizeof *state->warps);
  if ((watch->checks & KILN_CPU_CHECK_RACE) != 0)
    state->shared =
        kiln__alloc(a, (state->n_words + 1u) * sizeof *state->shared);
  if ((watch->checks & KILN_CPU_CHECK_INIT) != 0)
    state->shared_valid = kiln__alloc(a, state->n_words + 1u);
  if (state->warps == NULL ||
      ((watch->checks & KILN_CPU_CHECK_RACE) != 0 && state->shared == NULL) ||
      ((watch->checks & KILN_CPU_CHECK_INIT) != 0 &&
       state->shared_valid == NULL)) {
    free_state(a, state);
    return NULL;
  }
  return state;
}

static void start_state(kiln__cpu_block_state *state)
{
  kiln__cpu_async_start(state);
  state->time = 1;
  state->known.n = 0;
  memset(state->warps, 0, KILN__MAX_WARPS * sizeof *state->warps);
  for (uint32_t i = 0; i < KILN__MAX_WARPS; i++) {
    state->warps[i].warps[i] = 1;
    for (uint32_t lane = 0; lane < KILN__WARP; lane++)
      state->warps[i].lanes[lane][lane] = 1;
  }
  if (state->shared != NULL)
    memset(state->shared, 0, (state->n_words + 1u) * sizeof *state->shared);
  if (state->shared_valid != NULL)
    memset(state->shared_valid, 0, state->n_words + 1u);
}

bool kiln__cpu_watch_block_begin(kiln__cpu_block *block)
{
  kiln__cpu_watch *watch = block->grid->watch;
  kiln__cpu_block_state *state;

  block->watch = NULL;
  if (watch == NULL ||
      (watch->checks & (KILN_CPU_CHECK_RACE | KILN_CPU_CHECK_INIT)) == 0)
    return true;
  pthread_mutex_lock(&watch->lock);
  state = watch->spare;
  if (state != NULL)
    watch->spare = state->next;
  pthread_mutex_unlock(&watch->lock);
  if (state == NULL)
    state = make_state(watch, block);
  if (state == NULL)
    return false;
  start_state(state);
  block->watch = state;
  return true;
}

void kiln__cpu_watch_block_end(kiln__cpu_block *block)
{
  kiln__cpu_watch *watch = block->grid->watch;
  kiln__cpu_block_state *state = block->watch;

  if (state == NULL)
    return;
  pthread_mutex_lock(&watch->lock);
  kiln__cpu_sync_end_block(watch, state);
  state->next = watch->spare;
  watch->spare = state;
  pthread_mutex_unlock(&watch->lock);
  block->watch = NULL;
}

/* ---- Accesses ------------------------------------------------------------ */

/* Checks the accesses of lanes to the shared memory of other blocks of the
 * cluster. The upper bits of an address select the block. */
static void watch_cluster(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                          const kiln__cpu_insn *in, const uint64_t *address,
                          uint32_t mask, uint32_t bytes,
                          kiln__cpu_access access)
{
  const uint64_t low = (UINT64_C(1) << KILN__CLUSTER_SHIFT) - 1;

  while (mask != 0) {
    const uint64_t rank = address[__builtin_ctz(mask)] >> KILN__CLUSTER_SHIFT;
    uint64_t at[KILN__WARP] = {0};
    uint32_t same = 0;

    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int lane = __builtin_ctz(m);

      if (address[lane] >> KILN__CLUSTER_SHIFT != rank)
        continue;
      at[lane] = address[lane] & low;
      same |= 1u << lane;
    }
    mask &= ~same;
    if (w->block->cluster == NULL || rank - 1 >= w->block->cluster_size)
      continue;
    if ((watch->checks & KILN_CPU_CHECK_INIT) != 0)
      kiln__cpu_init_access(watch, w, in, w->block->cluster[rank - 1],
                            KILN__SPACE_SHARED, at, same, bytes, access);
    if ((watch->checks & KILN_CPU_CHECK_RACE) != 0)
      kiln__cpu_race_access(watch, w, in, w->block->cluster[rank - 1],
                            KILN__SPACE_SHARED, at, same, bytes, access);
  }
}

void kiln__cpu_watch_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            kiln__cpu_space space,
                            const uint64_t address[KILN__WARP], uint32_t mask,
                            uint32_t bytes, kiln__cpu_access access)
{
  kiln__cpu_watch *watch = w->grid->watch;

  if (space == KILN__SPACE_GENERIC)
    space = KILN__SPACE_GLOBAL;
  pthread_mutex_lock(&watch->lock);
  if (space == KILN__SPACE_SHARED_CLUSTER) {
    watch_cluster(watch, w, in, address, mask, bytes, access);
    pthread_mutex_unlock(&watch->lock);
    return;
  }
  if ((watch->checks & KILN_CPU_CHECK_INIT) != 0)
    kiln__cpu_init_access(watch, w, in, w->block, space, address, mask, bytes,
                          access);
  if ((watch->checks & KILN_CPU_CHECK_RACE) != 0)
    kiln__cpu_race_access(watch, w, in, w->block, space, address, mask, bytes,
                          access);
  pthread_mutex_unlock(&watch->lock);
}
