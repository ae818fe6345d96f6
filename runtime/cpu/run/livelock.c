/* livelock.c -- detects launches that can only spin.
 *
 * Problem: a kernel never ends if its threads poll memory that no thread will
 * write. A time limit cannot distinguish such a kernel from a long computation.
 *
 * Idea: suppose the state of a warp (registers, stacks, pcs) occurs a second
 * time and memory has not changed in between. The warp then repeats itself
 * forever, unless another thread changes memory. If this holds for every warp
 * of every worker, no thread will change memory.
 *
 * Algorithm: a worker that has run for a long time without finishing anything
 * starts a search, and all workers take part. Each worker begins to record
 * changes of memory (spin_trace.c). Once all workers record, each worker saves
 * a hash of the state of every running warp and compares this hash in later
 * rounds. Any change of memory ends the search. The worker waits twice as long
 * before it starts the next search.
 *
 * A loop that counts its iterations while it polls never reaches the same state
 * again. The search treats such loops as spinning after MAX_ROUNDS rounds in
 * which every warp only polled.
 *
 * Cost: there is no cost until a worker has run 2^20 warp instructions without
 * progress, or 2^16 with checks. During a search, stores are traced. Each warp is hashed in rounds 1
 * to 64, and in every 16th round after that. */
#include "grid_job.h"

#include <string.h>

enum { MAX_ROUNDS = 1 << 13, CLOSE_ROUNDS = 64, LOOK_EVERY = 16 };

enum { NOT_LOOKING = 0, GATHERING, RECORDING };

static uint64_t mix(uint64_t hash, uint64_t value)
{
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ (hash >> 29);
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
  uint64_t word;

  for (; size >= 8; size -= 8, bytes += 8) {
    memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  for (; size != 0; size--)
    hash = mix(hash, *bytes++);
  return hash;
}

static uint64_t hash_frames(uint64_t hash, const kiln__cpu_warp *w,
                            const kiln__cpu_frame *f)
{
  const uint8_t *const stack = kiln__cpu_schedule_of(w)->stack;

  for (uint32_t lane = 0; lane < KILN__WARP; lane++)
    hash =
        mix_bytes(hash, stack + (size_t)lane * w->local_stride, f->local_top);
  for (; f != NULL; f = f->parent) {
    hash = mix(hash, (uintptr_t)f->code);
    hash = mix_bytes(hash, f->regs, f->code->frame_bytes);
  }
  return hash;
}

static uint64_t state_of(const kiln__cpu_warp *w)
{
  const kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  uint64_t hash = w->live;

  if (w->grid->lock_step) {
    const kiln__cpu_frame *last = NULL;

    for (uint32_t i = 0; i < s->n_stacked; i++) {
      hash = mix(mix(hash, s->stacked[i].pc), s->stacked[i].mask);
      last = s->stacked[i].frame;
    }
    return last != NULL ? hash_frames(hash, w, last) : hash;
  }
  /* The order of the groups of lanes is arbitrary, so the hashes of all groups
   * are added. */
  for (uint32_t i = 0; i < s->n_groups; i++) {
    const kiln__cpu_group *const g = &s->group[i];
    const uint64_t one =
        mix(mix(mix(1, g->pc), g->mask), (uint64_t)g->wait + 1);

    hash += hash_frames(one, w, g->frame);
  }
  return hash;
}

/* Returns true if every ready group of lanes has run since the state of its
 * warp was saved. */
static bool all_ran(const kiln__cpu_schedule *s)
{
  for (uint32_t i = 0; i < s->n_groups; i++) {
    if (s->group[i].wait == KILN__READY && !s->group[i].ran)
      return false;
  }
  return true;
}

static void save(kiln__cpu_warp *w)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  s->saved = state_of(w);
  s->repeats = false;
  for (uint32_t i = 0; i < s->n_groups; i++)
    s->group[i].ran = false;
}

static void set_traced(kiln__cpu_worker *worker, bool traced)
{
  worker->recording = traced;
  for (kiln__cpu_gang *g = worker->resident; g != NULL; g = g->next) {
    for (uint32_t i = 0; i < g->n_warps; i++) {
      g->schedules[i].traced = traced;
      g->schedules[i].changed = false;
    }
  }
}

static bool any_change(const kiln__cpu_worker *worker)
{
  for (const kiln__cpu_gang *g = worker->resident; g != NULL; g = g->next) {
    for (uint32_t i = 0; i < g->n_warps; i++) {
      if (g->schedules[i].changed)
        return true;
    }
  }
  return worker->event;
}

/* Returns true if every warp of the worker repeats itself or waits. Compares
 * the current states of the warps with the saved states. In rounds 1, 2, 4, 8,
 * ... it saves the states again, because a warp may have entered its loop after
 * they were last saved. */
static bool all_repeat(kiln__cpu_worker *worker)
{
  const bool again = (worker->rounds & (worker->rounds - 1)) == 0;
  const bool look =
      worker->rounds <= CLOSE_ROUNDS || worker->rounds % LOOK_EVERY == 0;
  bool all = true, waiting = true;

  for (kiln__cpu_gang *g = worker->resident; g != NULL; g = g->next) {
    for (uint32_t i = 0; i < g->n_warps; i++) {
      kiln__cpu_warp *const w = &g->warps[i];
      kiln__cpu_schedule *const s = &g->schedules[i];

      if (s->status != KILN__WARP_RUNNING || s->repeats)
        continue;
      waiting = waiting && s->yields >= KILN__MAX_YIELDS;
      s->repeats =
          look && (w->grid->lock_step || all_ran(s)) && state_of(w) == s->saved;
      all = all && s->repeats;
      if (again && !s->repeats)
        save(w);
    }
  }
  return all || (waiting && worker->rounds >= MAX_ROUNDS);
}

static void stop_looking(kiln__cpu_job *job, kiln__cpu_worker *worker)
{
  job->phase = NOT_LOOKING;
  worker->patience *= 2;
  worker->quiet = 0;
}

static void conclude(kiln__cpu_job *job, kiln__cpu_worker *worker)
{
  if (job->phase == RECORDING && job->n_active != 0 &&
      job->n_stuck >= job->n_active && worker->resident != NULL)
    kiln__cpu_fault_deadlock(job, worker->resident, false, true);
}

static void record(kiln__cpu_job *job, kiln__cpu_worker *worker)
{
  if (any_change(worker)) {
    stop_looking(job, worker);
    return;
  }
  if (worker->rounds++ == 0) {
    for (kiln__cpu_gang *g = worker->resident; g != NULL; g = g->next) {
      for (uint32_t i = 0; i < g->n_warps; i++)
        save(&g->warps[i]);
    }
    return;
  }
  if (!worker->verdict && all_repeat(worker)) {
    worker->verdict = true;
    job->n_stuck++;
  }
  if (!worker->verdict && worker->rounds > MAX_ROUNDS)
    stop_looking(job, worker);
  conclude(job, worker);
}

void kiln__cpu_livelock_step(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;

  if (worker->event && !worker->recording) {
    worker->event = false;
    worker->quiet = 0;
  }
  pthread_mutex_lock(&job->livelock_lock);
  if (job->phase == NOT_LOOKING && worker->quiet > worker->patience) {
    job->phase = GATHERING;
    job->epoch++;
    job->n_in = 0;
    job->n_stuck = 0;
  }
  if (job->phase != NOT_LOOKING && worker->epoch != job->epoch) {
    worker->epoch = job->epoch;
    worker->event = false;
    worker->verdict = false;
    worker->rounds = 0;
    set_traced(worker, true);
    job->n_in++;
  }
  if (job->phase == GATHERING && job->n_in >= job->n_active)
    job->phase = RECORDING;
  if (job->phase == RECORDING)
    record(job, worker);
  if (job->phase == NOT_LOOKING && worker->recording)
    set_traced(worker, false);
  pthread_mutex_unlock(&job->livelock_lock);
}

void kiln__cpu_livelock_leave(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;

  pthread_mutex_lock(&job->livelock_lock);
  job->n_active--;
  /* This worker may have released waiting warps of other workers before it
   * ended. */
  job->phase = NOT_LOOKING;
  pthread_mutex_unlock(&job->livelock_lock);
}
