/* grid_run.c -- runs a launch: creates its state and its workers (host
 * threads), and determines the order in which blocks start.
 *
 * Blocks start in groups: the blocks of one cluster, or a single block. Each
 * worker takes block groups from a shared counter and starts them in this
 * order. The worker runs its resident block groups in rounds, oldest first.
 * grid_run.h explains the idea and its invariant. */
#include "device_launch.h"

#include <string.h>

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
  while (b != 0) {
    const uint64_t rest = a % b;

    a = b;
    b = rest;
  }
  return a;
}

static uint64_t scrambled(uint64_t x)
{
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* Returns a number below n that has no common divisor with n. Adding this
 * number repeatedly modulo n visits all numbers below n. */
static uint64_t step_through(uint64_t n, uint64_t seed)
{
  uint64_t step = scrambled(seed) % n;

  while (step == 0 || common_divisor(step, n) != 1)
    step = (step + 1) % n;
  return step;
}

__extension__ typedef unsigned __int128 wide;

/* Returns the number of the i-th block group to start. A seed permutes the
 * block groups that can be resident at the same time; all others start later,
 * as on a GPU. A block may therefore wait for blocks with lower numbers. CUDA
 * does not guarantee this order, but CUB and Kiln's decoupled look-back rely on
 * it.
 *
 * If the block groups are not all resident at the same time, the seed permutes
 * only half as many. The remaining capacity lets later blocks start while a
 * resident block waits for them. */
static uint64_t gang_number(const kiln__cpu_job *job, uint64_t i)
{
  const uint64_t seed = job->grid.seed;
  const uint64_t most = job->n_gangs <= job->max_gangs
                            ? job->n_gangs
                            : (job->max_gangs + UINT64_C(1)) / 2;
  const uint64_t window = i / most;
  const uint64_t first = window * most;
  const uint64_t rest = job->n_gangs - first;
  const uint64_t n = rest < most ? rest : most;

  if (seed == 0 || n < 2)
    return i;
  return first + (uint64_t)(((wide)(i - first) * step_through(n, seed + 1) +
                             scrambled(seed + window)) %
                            n);
}

/* ---- Workers ------------------------------------------------------------- */

static bool may_start(const kiln__cpu_worker *worker)
{
  const kiln__cpu_job *const job = worker->job;

  return worker->n_resident < job->max_gangs &&
         (worker->next < worker->end ||
          atomic_load_explicit(&job->next_gang, memory_order_relaxed) <
              job->n_gangs);
}

/* Returns the number of the next block group in order, or a number >= n_gangs
 * if none is left. A worker takes several consecutive block groups at once.
 * Workers therefore rarely contend for the counter, and they write to different
 * memory regions. Near the end of the grid, a worker takes fewer block groups,
 * so that the load stays balanced. Each worker starts its block groups in
 * order, so the lowest unfinished one can always be started. */
static uint64_t next_gang(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;

  if (worker->next == worker->end) {
    uint64_t run = 1;

    if (job->n_workers > 1 && job->n_gangs / job->n_workers >= 512) {
      const uint64_t given =
          atomic_load_explicit(&job->next_gang, memory_order_relaxed);

      run = given < job->n_gangs ? (job->n_gangs - given) / (4 * job->n_workers)
                                 : 0;
      run = run < 1 ? 1 : run > 64 ? 64 : run;
    }
    worker->next = atomic_fetch_add(&job->next_gang, run);
    worker->end = worker->next + run;
  }
  return worker->next++;
}

/* Starts one more block group, if any is left, and appends it to the list of
 * resident block groups. */
static void start_one(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;
  const uint64_t i = next_gang(worker);
  kiln__cpu_gang *gang;

  if (i >= job->n_gangs)
    return;
  gang = kiln__cpu_gang_begin(worker, gang_number(job, i));
  if (gang == NULL) {
    kiln__cpu_fault_grid(job, KILN__FAULT_MEMORY, "no memory for a block");
    return;
  }
  *worker->last = gang;
  worker->last = &gang->next;
  worker->n_resident++;
  worker->event = true;
}

static void end_gang(kiln__cpu_worker *worker, kiln__cpu_gang **link)
{
  kiln__cpu_gang *const gang = *link;

  *link = gang->next;
  if (worker->last == &gang->next)
    worker->last = link;
  worker->n_resident--;
  worker->event = true;
  kiln__cpu_gang_end(gang);
}

/* Runs each resident block group once, oldest first. When a block group
 * finishes, a new one starts in its place. */
static void go_round(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;
  kiln__cpu_gang **link = &worker->resident;

  while (!atomic_load_explicit(&job->grid.stopped, memory_order_relaxed)) {
    if (*link == NULL && may_start(worker))
      /* `link` points to the end of the list, where start_one() appends the new
       * block group. */
      start_one(worker);
    if (*link == NULL)
      break;
    switch (kiln__cpu_gang_run(*link)) {
    case KILN__GANG_DONE:
      end_gang(worker, link);
      break;
    case KILN__GANG_STUCK:
      kiln__cpu_fault_deadlock(job, *link, true, false);
      break;
    default:
      link = &(*link)->next;
      break;
    }
  }
}

static void work(kiln__cpu_worker *worker)
{
  kiln__cpu_job *const job = worker->job;

  while (!atomic_load(&job->grid.stopped) &&
         (worker->resident != NULL || may_start(worker))) {
    go_round(worker);
    if (worker->resident != NULL)
      kiln__cpu_livelock_step(worker);
  }
  kiln__cpu_livelock_leave(worker);
}

static void *work_thread(void *arg)
{
  work(arg);
  return NULL;
}

static kiln_status worker_init(kiln__cpu_worker *worker, kiln__cpu_job *job,
                               unsigned index)
{
  const size_t n = job->grid.program->n_functions;

  worker->index = index;
  worker->last = &worker->resident;
  /* Checks make instructions slower by a factor of 10 to 100. */
  worker->patience = UINT64_C(1) << (job->launch->watch == NULL ? 20 : 16);
  worker->random = scrambled(job->grid.seed + index);
  worker->free = kiln__calloc(&job->alloc, n, sizeof *worker->free);
  worker->tallies = kiln__calloc(&job->alloc, n, sizeof *worker->tallies);
  return worker->free != NULL && worker->tallies != NULL
             ? KILN_OK
             : kiln__fail_memory("a launch");
}

static void worker_free(kiln__cpu_worker *worker)
{
  kiln__cpu_gang *gang, *next;

  for (gang = worker->resident; gang != NULL; gang = next) {
    next = gang->next;
    kiln__cpu_gang_end(gang);
  }
  for (gang = worker->spare; gang != NULL; gang = next) {
    next = gang->next;
    kiln__cpu_gang_free(gang);
  }
  kiln__cpu_frames_free(worker);
  kiln__free(&worker->job->alloc, worker->free);
  kiln__free(&worker->job->alloc, worker->tallies);
  kiln__free(&worker->job->alloc, worker->guests);
}

/* ---- Jobs ---------------------------------------------------------------- */

static uint32_t rounded(uint32_t value, uint32_t to)
{
  return to < 2 ? value : (value + to - 1) / to * to;
}

static void set_sizes(kiln__cpu_job *job)
{
  const kiln__cpu_launch_desc *const l = job->launch;
  const kiln__cpu_code *const code = l->code;
  kiln__cpu_grid *const g = &job->grid;
  const uint64_t need = (uint64_t)code->reach_local + code->local_bytes +
                        16 * ((uint64_t)l->program->n_functions + 1);
  uint64_t blocks = 1, threads = 1, gang = 1;

  for (int i = 0; i < 3; i++) {
    g->cluster_dim[i] = l->cluster_dim[i] != 0 ? l->cluster_dim[i] : 1;
    gang *= g->cluster_dim[i];
    blocks *= l->grid_dim[i];
    threads *= l->block_dim[i];
  }
  g->shared_size =
      rounded(code->static_shared, code->dynamic_align) + l->dynamic_shared;
  job->shared_stride = rounded(g->shared_size + 1, 64);
  job->local_stride =
      rounded(code->recursive || need > l->local_limit
                  ? (l->local_limit > code->local_bytes ? l->local_limit
                                                        : code->local_bytes)
                  : (uint32_t)need,
              64);
  job->gang_blocks = (uint32_t)gang;
  job->warps_per_block = (uint32_t)((threads + KILN__WARP - 1) / KILN__WARP);
  job->n_gangs = blocks / gang;
  job->n_workers = l->threads != 0 ? l->threads : 1;
  if (job->n_workers > job->n_gangs)
    job->n_workers = job->n_gangs > 0 ? (unsigned)job->n_gangs : 1;
  job->max_gangs = (uint32_t)(l->max_resident / gang / job->n_workers);
  if (job->max_gangs == 0)
    job->max_gangs = 1;
  if (l->cooperative)
    job->max_gangs = UINT32_MAX;
}

static kiln_status check_launch(const kiln__cpu_launch_desc *l)
{
  uint64_t threads = 1;

  for (int i = 0; i < 3; i++) {
    const uint32_t cluster = l->cluster_dim[i] != 0 ? l->cluster_dim[i] : 1;

    if (l->grid_dim[i] == 0 || l->block_dim[i] == 0 ||
        l->grid_dim[i] % cluster != 0)
      return kiln__fail(KILN_EINVAL, NULL,
                        "grid and block sizes must be at least 1, the grid a "
                        "multiple of the cluster");
    threads *= l->block_dim[i];
  }
  if (threads > KILN__MAX_WARPS * KILN__WARP)
    return kiln__fail(KILN_EINVAL, NULL, "more than 1024 threads in a block");
  return KILN_OK;
}

/* Allocates the workspace in which grid-wide synchronisation counts arriving
 * blocks. The workspace contains its own size in bytes, followed by the
 * counter. */
static kiln_status make_workspace(kiln__cpu_job *job)
{
  kiln__cpu_range range = {.kind = KILN__RANGE_INTERNAL,
                           .device = job->grid.device};
  const uint32_t size = KILN__WORKSPACE;
  uint8_t *host;
  kiln_status st;

  if (!job->launch->cooperative)
    return KILN_OK;
  st = kiln__cpu_memory_add(job->grid.memory, &range, KILN__WORKSPACE, 256);
  if (st != KILN_OK)
    return st;
  host = kiln__cpu_memory_host(job->grid.memory, range.first, KILN__WORKSPACE);
  memset(host, 0, KILN__WORKSPACE);
  memcpy(host, &size, sizeof size);
  kiln__cpu_memory_written(job->grid.memory, range.first, KILN__WORKSPACE);
  job->workspace = range.first;
  job->grid.envreg[0] = range.first >> 32;
  job->grid.envreg[1] = range.first & UINT32_MAX;
  return KILN_OK;
}

static void fill_grid(kiln__cpu_job *job)
{
  const kiln__cpu_launch_desc *const l = job->launch;
  kiln__cpu_grid *const g = &job->grid;

  g->program = l->program;
  g->code = l->code;
  g->memory = l->memory;
  g->params = l->params;
  memcpy(g->grid_dim, l->grid_dim, sizeof g->grid_dim);
  memcpy(g->block_dim, l->block_dim, sizeof g->block_dim);
  g->dynamic_shared = l->dynamic_shared;
  g->number = l->number;
  g->device = l->device;
  g->arch = l->arch;
  g->sm_count = l->sm_count;
  g->lock_step = l->lock_step;
  g->cooperative = l->cooperative;
  g->seed = l->seed;
  g->globals = l->globals;
  g->textures = l->textures;
  g->watch = l->watch;
  g->out = l->out;
  g->alloc = job->alloc;
  g->heap_limit = l->heap_limit;
  set_sizes(job);
}

static kiln_status job_init(kiln__cpu_job *job, const kiln__cpu_launch_desc *l,
                            const kiln_allocator *a)
{
  kiln_status st = KILN_OK;

  job->launch = l;
  job->alloc = *a;
  fill_grid(job);
  job->workers = kiln__calloc(a, job->n_workers, sizeof *job->workers);
  for (unsigned i = 0; job->workers != NULL && i < job->n_workers; i++)
    job->workers[i].job = job;
  if (job->workers == NULL)
    KILN_TRY(kiln__fail_memory("a launch"));
  for (unsigned i = 0; i < job->n_workers; i++)
    KILN_TRY(worker_init(&job->workers[i], job, i));
  KILN_TRY(make_workspace(job));
done:
  return st;
}

/* Runs all workers; the calling thread is the first worker. If a thread cannot
 * be created, the other workers run its block groups. */
static void run_workers(kiln__cpu_job *job)
{
  bool made[64] = {false};
  const unsigned n = job->n_workers < 64 ? job->n_workers : 64;

  job->n_active = n;
  for (unsigned i = 1; i < n; i++) {
    made[i] = pthread_create(&job->workers[i].thread, NULL, work_thread,
                             &job->workers[i]) == 0;
    if (!made[i])
      kiln__cpu_livelock_leave(&job->workers[i]);
  }
  work(&job->workers[0]);
  for (unsigned i = 1; i < n; i++) {
    if (made[i])
      pthread_join(job->workers[i].thread, NULL);
  }
}

static void job_free(kiln__cpu_job *job)
{
  for (unsigned i = 0; job->workers != NULL && i < job->n_workers; i++)
    worker_free(&job->workers[i]);
  kiln__cpu_submitted_free(job);
  if (job->workspace != 0)
    kiln__cpu_memory_remove(job->grid.memory, job->workspace);
  kiln__free(&job->alloc, job->workers);
  pthread_mutex_destroy(&job->grid.lock);
  pthread_mutex_destroy(&job->livelock_lock);
}

kiln_status kiln__cpu_grid_run(const kiln__cpu_launch_desc *launch,
                               const kiln_allocator *a,
                               kiln__cpu_fault_info *fault)
{
  kiln_status st = check_launch(launch);
  kiln__cpu_job *job;

  memset(fault, 0, sizeof *fault);
  if (st != KILN_OK)
    return st;
  job = kiln__calloc(a, 1, sizeof *job);
  if (job == NULL)
    return kiln__fail_memory("a launch");
  pthread_mutex_init(&job->grid.lock, NULL);
  pthread_mutex_init(&job->livelock_lock, NULL);
  kiln__cpu_memory_enter(launch->memory);
  kiln__cpu_submitted_begin(launch);
  KILN_TRY(job_init(job, launch, a));
  run_workers(job);
  for (unsigned i = 0; launch->issued != NULL && i < job->n_workers; i++)
    *launch->issued += job->workers[i].clock;
  if (job->grid.fault.kind == KILN__FAULT_NONE)
    kiln__cpu_submitted_run(job);
  *fault = job->grid.fault;
  if (fault->kind == KILN__FAULT_MEMORY)
    st = kiln__fail_memory("blocks of a launch");
  else if (fault->kind != KILN__FAULT_NONE)
    st = kiln__fail(KILN_EDRIVER, NULL, "kernel `%s` failed",
                    launch->code->name);
  if (fault->kind != KILN__FAULT_NONE && !fault->of_child &&
      launch->watch != NULL)
    kiln__cpu_watch_fault(launch->watch, &job->grid);
done:
  kiln__cpu_memory_leave(launch->memory);
  job_free(job);
  kiln__free(a, job);
  return st;
}
