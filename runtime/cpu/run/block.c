/* block.c -- allocates the memory of block groups, starts blocks, and runs the
 * warps of a block group in turn. A block group (a gang in the code) is the
 * blocks of one cluster, or a single block.
 *
 * The memory of a block group (shared memory, stacks, warps, schedules) is
 * allocated once. Later block groups of the same worker thread reuse this
 * memory, because a grid has many more blocks than are resident at once. */
#include "../memory/mbarrier.h"
#include "../memory/pending_copies.h"
#include "grid_job.h"
#include "warpgroup_check.h"

#include <string.h>

enum { ALIGN = 64 };

static size_t rounded(size_t bytes)
{
  return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* ---- Memory of a block group --------------------------------------------- */

static void place_warps(kiln__cpu_gang *gang, kiln__cpu_job *job)
{
  uint32_t *carry =
      (uint32_t *)(void *)(gang->stacks + (size_t)gang->n_warps * KILN__WARP *
                                              job->local_stride);

  for (uint32_t i = 0; i < gang->n_warps; i++) {
    kiln__cpu_warp *const w = &gang->warps[i];
    kiln__cpu_schedule *const s = &gang->schedules[i];
    const uint32_t block = i / job->warps_per_block;

    w->index = i % job->warps_per_block;
    w->block = &gang->blocks[block];
    w->grid = &job->grid;
    w->schedule = s;
    w->local_stride = job->local_stride;
    w->local_size = job->local_stride;
    w->carry = carry + (size_t)i * KILN__WARP;
    s->stack = gang->stacks + (size_t)i * KILN__WARP * job->local_stride;
  }
}

static void place_blocks(kiln__cpu_gang *gang, kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;

  for (uint32_t i = 0; i < gang->n_blocks; i++) {
    kiln__cpu_block *const b = &gang->blocks[i];

    gang->owns[i].gang = gang;
    gang->owns[i].worker = worker;
    gang->ranks[i] = b;
    b->grid = &job->grid;
    b->schedule = &gang->owns[i];
    b->shared = gang->shared + (size_t)i * job->shared_stride;
    b->shared_size = job->grid.shared_size;
    b->n_warps = job->warps_per_block;
    b->n_threads = job->grid.block_dim[0] * job->grid.block_dim[1] *
                   job->grid.block_dim[2];
    b->warps = gang->warps + (size_t)i * job->warps_per_block;
    b->cluster = gang->n_blocks > 1 ? gang->ranks : NULL;
    b->cluster_rank = i;
    b->cluster_size = gang->n_blocks;
  }
}

static kiln__cpu_gang *gang_make(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;
  const size_t blocks = job->gang_blocks;
  const size_t warps = blocks * job->warps_per_block;
  const size_t at_blocks = rounded(sizeof(kiln__cpu_gang));
  const size_t at_owns = at_blocks + rounded(blocks * sizeof(kiln__cpu_block));
  const size_t at_ranks =
      at_owns + rounded(blocks * sizeof(kiln__cpu_block_own));
  const size_t at_warps =
      at_ranks + rounded(blocks * sizeof(kiln__cpu_block *));
  const size_t at_schedules = at_warps + warps * sizeof(kiln__cpu_warp);
  const size_t at_shared =
      at_schedules + rounded(warps * sizeof(kiln__cpu_schedule));
  const size_t at_stacks = at_shared + blocks * job->shared_stride;
  const size_t size =
      at_stacks + warps * KILN__WARP * (job->local_stride + sizeof(uint32_t));
  uint8_t *memory = kiln__calloc(&job->alloc, 1, size + ALIGN), *at = memory;
  kiln__cpu_gang *gang;

  if (memory == NULL)
    return NULL;
  at += -(uintptr_t)at & (ALIGN - 1);
  gang = (kiln__cpu_gang *)(void *)at;
  gang->memory = memory;
  gang->worker = worker;
  gang->blocks = (kiln__cpu_block *)(void *)(at + at_blocks);
  gang->owns = (kiln__cpu_block_own *)(void *)(at + at_owns);
  gang->ranks = (kiln__cpu_block **)(void *)(at + at_ranks);
  gang->warps = (kiln__cpu_warp *)(void *)(at + at_warps);
  gang->schedules = (kiln__cpu_schedule *)(void *)(at + at_schedules);
  gang->shared = at + at_shared;
  gang->stacks = at + at_stacks;
  gang->n_blocks = (uint32_t)blocks;
  gang->n_warps = (uint32_t)warps;
  place_warps(gang, job);
  place_blocks(gang, worker);
  return gang;
}

void kiln__cpu_gang_free(kiln__cpu_gang *gang)
{
  kiln__cpu_job *const job = gang->worker->job;

  for (uint32_t i = 0; i < gang->n_warps; i++) {
    kiln__cpu_copies_free(gang->warps[i].copies);
    kiln__free(&job->alloc, gang->schedules[i].stacked);
    kiln__cpu_matrices_free(&gang->warps[i]);
  }
  kiln__free(&job->alloc, gang->memory);
}

/* ---- Start and end of a block -------------------------------------------- */

/* Initialises a warp for a new block. All lanes of the warp form one group at
 * the first instruction. */
static bool warp_begin(kiln__cpu_warp *w, kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const uint32_t first = w->index * KILN__WARP;
  const uint32_t n = w->block->n_threads - first;
  const uint32_t mask = n >= KILN__WARP ? UINT32_MAX : (1u << n) - 1;

  if (s->entry == NULL) {
    s->entry = kiln__cpu_frame_take(w, job->grid.code);
    if (s->entry == NULL)
      return false;
    s->entry->local_top = job->grid.code->local_bytes;
    if (job->launch->watch != NULL) {
      const unsigned checks = kiln__cpu_watch_checks(job->launch->watch);

      w->watched = (checks & (KILN_CPU_CHECK_RACE | KILN_CPU_CHECK_INIT)) != 0;
      w->counted = s->entry->tally != NULL;
      s->check_sync = (checks & KILN_CPU_CHECK_SYNC) != 0;
    }
  } else {
    kiln__cpu_frame_fill(w, s->entry);
  }
  s->entry->lanes = mask;
  s->entry->local_top = job->grid.code->local_bytes;
  s->status = KILN__WARP_RUNNING;
  s->wait = KILN__READY;
  s->began = mask;
  s->traced = worker->recording;
  s->yields = 0;
  s->asleep = NULL;
  s->products = 0;
  s->registers = job->grid.code->registers_at_start;
  s->needs_registers = false;
  s->again = false;
  s->turns = job->grid.seed != 0 ? KILN__TURNS : KILN__PATIENCE;
  s->fair = false;
  s->others = false;
  s->repeats = false;
  s->saved = 0;
  s->cluster_in = 0;
  s->strayed = 0;
  w->live = mask;
  w->fault = false;
  /* Discard the cp.async copies that no lane of the previous block waited
   * for. */
  kiln__cpu_copies_free(w->copies);
  w->copies = NULL;
  if (job->grid.seed != 0)
    s->random =
        (worker->random = worker->random * UINT64_C(6364136223846793005) +
                          UINT64_C(1442695040888963407)) |
        1;
  if (job->grid.lock_step) {
    s->n_stacked = 0;
    job->launch->isa->set_mask(w, mask);
    if (!kiln__cpu_stack_room(w, NULL))
      return false;
    s->stacked[s->n_stacked++] =
        (kiln__cpu_entry){s->entry, 0, mask, UINT32_MAX};
  } else {
    s->n_groups = 1;
    s->current = 0;
    s->group[0] = (kiln__cpu_group){.frame = s->entry, .mask = mask};
  }
  kiln__cpu_frame_use(w, s->entry);
  return true;
}

/* Computes the index of a block in the grid. The blocks of a cluster are
 * consecutive along each axis of the cluster. */
static void block_place(kiln__cpu_block *b, const kiln__cpu_grid *g,
                        uint64_t gang, uint32_t rank)
{
  const uint32_t *const dim = g->cluster_dim, *const grid = g->grid_dim;
  const uint64_t wide = grid[0] / dim[0], high = grid[1] / dim[1];

  b->ctaid[0] = (uint32_t)(gang % wide) * dim[0] + rank % dim[0];
  b->ctaid[1] =
      (uint32_t)(gang / wide % high) * dim[1] + rank / dim[0] % dim[1];
  b->ctaid[2] =
      (uint32_t)(gang / wide / high) * dim[2] + rank / dim[0] / dim[1];
  b->number =
      b->ctaid[0] + (b->ctaid[1] + (uint64_t)b->ctaid[2] * grid[1]) * grid[0];
}

kiln__cpu_gang *kiln__cpu_gang_begin(kiln__cpu_worker *worker, uint64_t number)
{
  kiln__cpu_job *const job = worker->job;
  kiln__cpu_gang *gang = worker->spare;
  bool ok = true;

  if (gang != NULL)
    worker->spare = gang->next;
  else
    gang = gang_make(worker);
  if (gang == NULL)
    return NULL;
  gang->next = NULL;
  gang->number = number;
  gang->done = 0;
  gang->cluster_arrived = 0;
  gang->cluster_phase = 0;
  gang->live = 0;
  for (uint32_t i = 0; i < gang->n_blocks; i++) {
    kiln__cpu_block *const b = &gang->blocks[i];
    kiln__cpu_block_own *const own = &gang->owns[i];

    block_place(b, &job->grid, number, i);
    b->phase = 0;
    b->exited = false;
    own->live = b->n_threads;
    gang->live += b->n_threads;
    for (; own->open != 0; own->open &= own->open - 1)
      own->barrier[__builtin_ctz(own->open)].open = false;
    for (uint32_t k = 0; k < b->n_warps; k++)
      ok = ok && warp_begin(&b->warps[k], worker);
    if (ok && job->launch->watch != NULL)
      kiln__cpu_watch_block_begin(b);
  }
  if (!ok) {
    gang->next = worker->spare;
    worker->spare = gang;
    return NULL;
  }
  return gang;
}

/* Returns a block group to its worker thread for reuse. If the grid was
 * stopped, some lanes may still be inside function calls. The stack frames of
 * these calls remain in the worker's list of all frames. */
void kiln__cpu_gang_end(kiln__cpu_gang *gang)
{
  kiln__cpu_worker *const worker = gang->worker;

  for (uint32_t i = 0; i < gang->n_warps; i++) {
    /* Discard the cp.async copies that no lane waited for. */
    if (gang->warps[i].copies != NULL)
      kiln__cpu_copies_free(gang->warps[i].copies);
    gang->warps[i].copies = NULL;
  }
  if (worker->job->launch->watch != NULL) {
    for (uint32_t i = 0; i < gang->n_blocks; i++)
      kiln__cpu_matrices_end(&gang->blocks[i]);
    for (uint32_t i = 0; i < gang->n_blocks; i++)
      kiln__cpu_watch_block_end(&gang->blocks[i]);
  }
  gang->next = worker->spare;
  worker->spare = gang;
}

/* ---- Running warps ------------------------------------------------------- */

/* Returns the time slice of a warp in warp instructions. The time slice is
 * shorter near the end of the instruction budget, and random if the launch has
 * a seed. */
static uint64_t share_of(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;
  uint64_t share = KILN__SHARE;

  if (job->grid.seed != 0) {
    worker->random = worker->random * UINT64_C(6364136223846793005) +
                     UINT64_C(1442695040888963407);
    share = 1 + (worker->random >> 33) % 512;
  }
  if (job->launch->budget != 0) {
    const uint64_t used =
        atomic_load_explicit(&job->charged, memory_order_relaxed);
    const uint64_t rest =
        used < job->launch->budget ? job->launch->budget - used : 0;

    if (share > rest)
      share = rest;
  }
  return share;
}

/* Subtracts the issued warp instructions from the instruction budget of the
 * launch. Returns false if the grid has to stop. */
static bool charge(kiln__cpu_worker *worker, uint64_t issued)
{
  kiln__cpu_job *const job = worker->job;

  worker->quiet += issued;
  worker->clock += issued;
  if (job->launch->budget != 0 &&
      atomic_fetch_add(&job->charged, issued) + issued >= job->launch->budget) {
    kiln__cpu_fault_grid(job, KILN__FAULT_BUDGET,
                         "the launch used up its budget of warp instructions");
    return false;
  }
  if (job->launch->cancel != NULL && atomic_load(job->launch->cancel))
    kiln__cpu_fault_grid(job, KILN__FAULT_BUDGET, "the launch was cancelled");
  return !atomic_load_explicit(&job->grid.stopped, memory_order_relaxed);
}

/* Runs a warp for one time slice. Returns false if the grid has to stop. */
static bool run_warp(kiln__cpu_gang *gang, kiln__cpu_warp *w, uint64_t *used)
{
  kiln__cpu_worker *const worker = gang->worker;
  kiln__cpu_job *const job = worker->job;
  const kiln__cpu_isa *const isa = job->launch->isa;
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const uint64_t share = share_of(worker);
  uint64_t left = share;

  s->yields = 0;
  s->asleep = NULL;
  s->status = share == 0            ? KILN__WARP_RUNNING
              : job->grid.lock_step ? isa->run_lock_step(w, &left)
                                    : isa->run_its(w, &left);
  *used += share - left;
  if (s->status == KILN__WARP_DONE) {
    gang->done++;
    worker->event = true;
  }
  return s->status != KILN__WARP_FAULT && charge(worker, share - left);
}

/* Returns true if the warp sleeps at an mbarrier whose phase has not ended. While
 * the livelock search records, no warp sleeps. */
static bool sleeps(const kiln__cpu_gang *gang, const kiln__cpu_schedule *s)
{
  return s->asleep != NULL && !gang->worker->recording &&
         kiln__cpu_mbarrier_phase(
             __atomic_load_n(s->asleep, __ATOMIC_RELAXED)) == s->asleep_phase;
}

/* Runs each ready warp of the block group once, in ascending order. If the
 * launch has a seed, the first warp is random. Unless `all` is true, warps that
 * sleep are left out. *ran receives the number of warps that ran. *busy receives
 * true if a warp did more than poll memory. Returns false if the grid has to
 * stop. */
static bool sweep(kiln__cpu_gang *gang, bool all, uint32_t *ran, bool *busy,
                  uint64_t *used)
{
  kiln__cpu_worker *const worker = gang->worker;
  uint32_t first = 0;

  if (worker->job->grid.seed != 0)
    first = (uint32_t)(worker->random >> 40) % gang->n_warps;
  *ran = 0;
  *busy = false;
  for (uint32_t i = 0; i < gang->n_warps; i++) {
    const uint32_t at = first + i;
    kiln__cpu_warp *const w =
        &gang->warps[at < gang->n_warps ? at : at - gang->n_warps];
    kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

    if (s->status != KILN__WARP_RUNNING || (!all && sleeps(gang, s)))
      continue;
    ++*ran;
    if (!run_warp(gang, w, used))
      return false;
    if (s->status != KILN__WARP_RUNNING || s->yields < KILN__MAX_YIELDS)
      *busy = true;
  }
  return true;
}

/* Returns the time slice of a block group in warp instructions. It ends early
 * when the worker is about to search for a livelock, and during the search. */
static uint64_t gang_share(const kiln__cpu_worker *worker)
{
  uint64_t rest = 0;

  if (!worker->recording && worker->quiet <= worker->patience)
    rest = worker->patience - worker->quiet + 1;
  return rest < KILN__GANG_SHARE ? rest : KILN__GANG_SHARE;
}

kiln__cpu_gang_state kiln__cpu_gang_run(kiln__cpu_gang *gang)
{
  const uint64_t share = gang_share(gang->worker);
  uint64_t used = 0;
  uint32_t ran;
  bool busy;

  do {
    if (!sweep(gang, false, &ran, &busy, &used))
      return KILN__GANG_BUSY;
    if (gang->done == gang->n_warps)
      return KILN__GANG_DONE;
    /* If all other warps sleep, they poll once more. try_wait may return before
     * the phase ends, so a program may depend on it. */
    if (ran == 0 && !sweep(gang, true, &ran, &busy, &used))
      return KILN__GANG_BUSY;
    if (ran == 0)
      return KILN__GANG_STUCK;
  } while (busy && used < share);
  return busy ? KILN__GANG_BUSY : KILN__GANG_IDLE;
}
