/* device_launch.c -- runs the launches, copies and fills that kernels submit
 * (CUDA's dynamic parallelism).
 *
 * Problem: a grid is complete only when all grids that it launched are
 * complete. A kernel may launch thousands of grids, which may launch further
 * grids.
 *
 * Idea: launches are collected in the order in which the kernel submitted them,
 * and run after the blocks of the kernel have ended. The launches that a child
 * makes are put before the next child. This is a depth-first walk over the tree
 * of grids, without recursion in the host's stack. One queue serves all streams
 * of a grid: this order is one of the orders that streams and events allow. The
 * launches in the tail stream follow all others of their grid.
 *
 * A kernel may also wait for its children (cudaDeviceSynchronize before compute
 * capability 9.0). The thread that calls then runs them. The same happens if
 * the grid has submitted more work than the limit of pending launches, so that
 * the launch does not fail.
 *
 * Invariant: a child starts after the launch that submitted it, and before the
 * next work of the host in the same stream.
 *
 * Source: CUDA C++ Programming Guide, chapter CUDA Dynamic Parallelism. */
#include "device_launch.h"

#include <string.h>

/* ---- Queues -------------------------------------------------------------- */

static void append(kiln__cpu_children *to, kiln__cpu_child *child)
{
  child->next = NULL;
  if (to->first == NULL)
    to->last = &to->first;
  *to->last = child;
  to->last = &child->next;
}

/* Moves all of `from` behind the children in `to`. */
static void join(kiln__cpu_children *to, kiln__cpu_children *from)
{
  if (from->first == NULL)
    return;
  if (to->first == NULL)
    to->last = &to->first;
  *to->last = from->first;
  to->last = from->last;
  from->first = NULL;
}

static kiln__cpu_child *pop(kiln__cpu_children *from)
{
  kiln__cpu_child *const child = from->first;

  if (child != NULL)
    from->first = child->next;
  return child;
}

static void child_free(kiln__cpu_job *job, kiln__cpu_child *child)
{
  if (child->buffer != 0)
    kiln__cpu_memory_remove(job->grid.memory, child->buffer);
  kiln__cpu_origin_free(child->origin);
  kiln__free(&job->alloc, child);
}

static void free_all(kiln__cpu_job *job, kiln__cpu_children *list)
{
  kiln__cpu_child *child;

  while ((child = pop(list)) != NULL)
    child_free(job, child);
}

/* ---- Running children ---------------------------------------------------- */

static void run_area(kiln__cpu_memory *memory, const kiln__cpu_child *child)
{
  const kiln__cpu_area *const a = &child->area;

  for (uint64_t y = 0; y < a->height; y++) {
    const uint64_t to = a->to + y * a->to_pitch;
    const uint64_t from = a->from + y * a->from_pitch;
    uint8_t *const d = kiln__cpu_memory_host(memory, to, a->width);
    const uint8_t *const s = kiln__cpu_memory_host(memory, from, a->width);

    if (d != NULL && child->kind == KILN__CHILD_FILL) {
      memset(d, a->value, a->width);
      kiln__cpu_memory_written(memory, to, a->width);
    } else if (d != NULL && s != NULL) {
      memmove(d, s, a->width);
      kiln__cpu_memory_copied(memory, to, from, a->width);
    }
  }
}

/* Runs all work of the queue, and the work that it submits. After a fault, the
 * rest is discarded. Stores the fault, with the kind KILN__FAULT_NONE if there
 * was none. */
static void run_queue(kiln__cpu_job *job, kiln__cpu_children *queue,
                      kiln__cpu_fault_info *fault)
{
  const kiln__cpu_services *const services = job->launch->services;
  kiln__cpu_child *child;

  fault->kind = KILN__FAULT_NONE;
  while (fault->kind == KILN__FAULT_NONE && (child = pop(queue)) != NULL) {
    kiln__cpu_collector inner = {.origin = child->origin};

    child->origin = NULL;
    if (child->kind == KILN__CHILD_KERNEL) {
      child->launch.collect = &inner.list;
      if (services->run_child(services->user, &child->launch, fault) !=
              KILN_OK &&
          fault->kind == KILN__FAULT_NONE)
        fault->kind = KILN__FAULT_MEMORY;
    } else {
      run_area(job->grid.memory, child);
    }
    kiln__cpu_origin_free(inner.origin);
    child_free(job, child);
    join(&inner.list, queue);
    *queue = inner.list;
  }
  free_all(job, queue);
}

/* Makes the fault of a child the fault of the grid. */
static void inherit(kiln__cpu_job *job, const kiln__cpu_fault_info *fault)
{
  pthread_mutex_lock(&job->grid.lock);
  if (job->grid.fault.kind == KILN__FAULT_NONE) {
    job->grid.fault = *fault;
    job->grid.fault.of_child = fault->kind != KILN__FAULT_MEMORY;
  }
  pthread_mutex_unlock(&job->grid.lock);
  atomic_store(&job->grid.stopped, true);
}

void kiln__cpu_submitted_begin(const kiln__cpu_launch_desc *launch)
{
  kiln__cpu_collector *const c = (kiln__cpu_collector *)(void *)launch->collect;

  if (c == NULL)
    return;
  kiln__cpu_watch_launched_by(launch->watch, c->origin);
  c->origin = NULL;
}

void kiln__cpu_submitted_run(kiln__cpu_job *job)
{
  kiln__cpu_submitted *const s = job->submitted;
  kiln__cpu_children all = {0};
  kiln__cpu_fault_info fault;

  if (s == NULL)
    return;
  join(&all, &s->queue);
  join(&all, &s->tail);
  if (job->launch->collect != NULL) {
    join(job->launch->collect, &all);
    return;
  }
  run_queue(job, &all, &fault);
  if (fault.kind != KILN__FAULT_NONE)
    inherit(job, &fault);
}

bool kiln__cpu_submitted_sync(kiln__cpu_warp *w)
{
  kiln__cpu_job *const job = kiln__cpu_job_of(w);
  kiln__cpu_submitted *const s = kiln__cpu_submitted_of(job);
  kiln__cpu_children all = {0};
  kiln__cpu_fault_info fault = {0};

  if (s == NULL)
    return true;
  pthread_mutex_lock(&s->running);
  pthread_mutex_lock(&s->lock);
  join(&all, &s->queue);
  s->n_queued = 0;
  pthread_mutex_unlock(&s->lock);
  run_queue(job, &all, &fault);
  pthread_mutex_unlock(&s->running);
  if (fault.kind == KILN__FAULT_NONE)
    return true;
  inherit(job, &fault);
  w->fault = true;
  return false;
}

/* ---- State of a grid ----------------------------------------------------- */

kiln__cpu_submitted *kiln__cpu_submitted_of(kiln__cpu_job *job)
{
  kiln__cpu_submitted *s;

  pthread_mutex_lock(&job->grid.lock);
  s = job->submitted;
  if (s == NULL) {
    s = kiln__calloc(&job->alloc, 1, sizeof *s);
    if (s != NULL) {
      pthread_mutex_init(&s->lock, NULL);
      pthread_mutex_init(&s->running, NULL);
      job->submitted = s;
    }
  }
  pthread_mutex_unlock(&job->grid.lock);
  return s;
}

void kiln__cpu_submitted_free(kiln__cpu_job *job)
{
  kiln__cpu_submitted *const s = job->submitted;

  if (s == NULL)
    return;
  free_all(job, &s->queue);
  free_all(job, &s->tail);
  for (size_t i = 0; i < KILN__N_PREPARED; i++) {
    kiln__cpu_children list = {.first = s->prepared[i]};

    free_all(job, &list);
  }
  kiln__free(&job->alloc, s->errors);
  pthread_mutex_destroy(&s->lock);
  pthread_mutex_destroy(&s->running);
  kiln__free(&job->alloc, s);
}

/* ---- Handles ------------------------------------------------------------- */

enum { HANDLE_SHIFT = 24 };

uint64_t kiln__cpu_device_handle(const kiln__cpu_grid *grid, uint32_t i)
{
  return ((grid->number << HANDLE_SHIFT) | i) << 4;
}

int kiln__cpu_device_handle_check(const kiln__cpu_warp *w, uint64_t handle,
                                  bool event)
{
  kiln__cpu_submitted *const s = kiln__cpu_submitted_of(kiln__cpu_job_of(w));
  const uint64_t first = kiln__cpu_device_handle(w->grid, 1);
  uint32_t n;

  if (s == NULL)
    return KILN__RT_NO_MEMORY;
  pthread_mutex_lock(&s->lock);
  n = event ? s->n_events : s->n_streams;
  pthread_mutex_unlock(&s->lock);
  return handle >= first && handle % 16 == 0 && (handle - first) / 16 < n
             ? KILN__RT_SUCCESS
             : KILN__RT_INVALID_HANDLE;
}

int kiln__cpu_stream_check(const kiln__cpu_warp *w, uint64_t stream)
{
  return stream <= KILN__STREAM_FIRE_AND_FORGET
             ? KILN__RT_SUCCESS
             : kiln__cpu_device_handle_check(w, stream, false);
}

/* ---- Submitting work ----------------------------------------------------- */

static kiln__cpu_child **bucket_of(kiln__cpu_submitted *s, uint64_t buffer)
{
  return &s->prepared[(buffer >> 4 ^ buffer >> 12) % KILN__N_PREPARED];
}

/* Allocates a child with a parameter buffer and adds it to the prepared
 * children. The caller holds no lock. */
static int make_child(kiln__cpu_warp *w, uint64_t size,
                      const kiln__cpu_launch_desc *launch, uint64_t *address)
{
  kiln__cpu_job *const job = kiln__cpu_job_of(w);
  kiln__cpu_submitted *const s = kiln__cpu_submitted_of(job);
  kiln__cpu_child *const child = kiln__calloc(&job->alloc, 1, sizeof *child);
  kiln__cpu_range range = {.kind = KILN__RANGE_INTERNAL,
                           .device = job->grid.device};
  kiln__cpu_child **bucket;

  if (s == NULL || child == NULL ||
      kiln__cpu_memory_add(job->grid.memory, &range, size == 0 ? 1 : size,
                           64) != KILN_OK) {
    kiln__free(&job->alloc, child);
    return KILN__RT_NO_MEMORY;
  }
  child->buffer = range.first;
  if (launch != NULL)
    child->launch = *launch;
  child->launch.params = range.host;
  pthread_mutex_lock(&s->lock);
  bucket = bucket_of(s, range.first);
  child->next = *bucket;
  *bucket = child;
  pthread_mutex_unlock(&s->lock);
  *address = range.first;
  return KILN__RT_SUCCESS;
}

int kiln__cpu_child_buffer(kiln__cpu_warp *w, uint64_t size, uint64_t *address)
{
  *address = 0;
  return make_child(w, size, NULL, address);
}

/* Describes a launch. The settings are those of the launch that makes it. */
static int describe(kiln__cpu_warp *w, const kiln__cpu_child_shape *shape,
                    kiln__cpu_launch_desc *out)
{
  const kiln__cpu_launch_desc *const own = kiln__cpu_job_of(w)->launch;
  const kiln__cpu_code *const code = kiln__cpu_call_target(w, shape->function);

  if (code == NULL || !code->entry || !code->defined)
    return KILN__RT_INVALID_FUNCTION;
  if (own->services == NULL || own->services->run_child == NULL)
    return KILN__RT_NOT_SUPPORTED;
  *out = *own;
  out->program = code->program;
  out->code = code;
  out->globals = code->program->addresses;
  out->dynamic_shared = shape->shared;
  out->cooperative = false;
  out->watch = NULL;
  out->collect = NULL;
  for (int i = 0; i < 3; i++) {
    out->grid_dim[i] = shape->grid[i];
    out->block_dim[i] = shape->block[i];
    out->cluster_dim[i] = 0;
  }
  return own->services->check_child(own->services->user, out);
}

int kiln__cpu_child_prepare(kiln__cpu_warp *w,
                            const kiln__cpu_child_shape *shape,
                            uint64_t *address)
{
  kiln__cpu_launch_desc launch;
  int error;

  *address = 0;
  error = describe(w, shape, &launch);
  return error != 0 ? error
                    : make_child(w, launch.code->param_bytes, &launch, address);
}

/* Removes the child with this parameter buffer from the prepared children. */
static kiln__cpu_child *take_prepared(kiln__cpu_submitted *s, uint64_t buffer)
{
  kiln__cpu_child *child = NULL;

  pthread_mutex_lock(&s->lock);
  for (kiln__cpu_child **at = bucket_of(s, buffer); *at != NULL;
       at = &(*at)->next) {
    if ((*at)->buffer == buffer) {
      child = *at;
      *at = child->next;
      break;
    }
  }
  pthread_mutex_unlock(&s->lock);
  return child;
}

/* Submits a child. If too much work is pending, runs it first. */
static int submit(kiln__cpu_warp *w, kiln__cpu_submitted *s,
                  kiln__cpu_child *child, uint64_t stream)
{
  const uint32_t most = kiln__cpu_job_of(w)->launch->max_pending;
  bool full;

  pthread_mutex_lock(&s->lock);
  append(stream == KILN__STREAM_TAIL ? &s->tail : &s->queue, child);
  full = stream != KILN__STREAM_TAIL && ++s->n_queued >= most && most != 0;
  pthread_mutex_unlock(&s->lock);
  if (full)
    kiln__cpu_submitted_sync(w);
  return KILN__RT_SUCCESS;
}

/* Returns the depth of a launch in this stream. A launch in the tail stream
 * replaces its grid, so that it is no deeper. */
static uint32_t depth_in(const kiln__cpu_warp *w, uint64_t stream)
{
  return kiln__cpu_job_of(w)->launch->depth + (stream != KILN__STREAM_TAIL);
}

int kiln__cpu_child_launch(kiln__cpu_warp *w, int lane,
                           const kiln__cpu_child_shape *shape, uint64_t buffer,
                           uint64_t stream)
{
  kiln__cpu_job *const job = kiln__cpu_job_of(w);
  kiln__cpu_submitted *const s = kiln__cpu_submitted_of(job);
  kiln__cpu_launch_desc launch;
  kiln__cpu_child *child;
  int error = kiln__cpu_stream_check(w, stream);

  if (s == NULL)
    return KILN__RT_NO_MEMORY;
  if (buffer == 0 && shape != NULL)
    error = error != 0 ? error : kiln__cpu_child_buffer(w, 1, &buffer);
  child = take_prepared(s, buffer);
  if (child == NULL)
    return error != 0 ? error : KILN__RT_INVALID_VALUE;
  if (error == 0 && depth_in(w, stream) > KILN__MAX_DEPTH)
    error = KILN__RT_LAUNCH_DEPTH;
  if (error == 0 && shape != NULL) {
    error = describe(w, shape, &launch);
    launch.params = child->launch.params;
    child->launch = launch;
  }
  if (error == 0 && child->launch.code == NULL)
    error = KILN__RT_INVALID_VALUE;
  if (error != 0) {
    child_free(job, child);
    return error;
  }
  child->launch.depth = depth_in(w, stream);
  /* A launch in the tail stream follows all accesses of its grid. */
  if (stream != KILN__STREAM_TAIL)
    child->origin = kiln__cpu_origin_make(w, lane);
  return submit(w, s, child, stream);
}

int kiln__cpu_child_area(kiln__cpu_warp *w, const kiln__cpu_area *area,
                         bool fill, uint64_t stream)
{
  kiln__cpu_job *const job = kiln__cpu_job_of(w);
  kiln__cpu_memory *const memory = job->grid.memory;
  kiln__cpu_submitted *const s = kiln__cpu_submitted_of(job);
  kiln__cpu_child *child;
  const int error = kiln__cpu_stream_check(w, stream);

  if (error != 0 || s == NULL)
    return error != 0 ? error : KILN__RT_NO_MEMORY;
  if (area->width == 0 || area->height == 0)
    return KILN__RT_SUCCESS;
  if (kiln__cpu_memory_host(memory, area->to, area->width) == NULL ||
      (!fill && kiln__cpu_memory_host(memory, area->from, area->width) == NULL))
    return KILN__RT_INVALID_VALUE;
  child = kiln__calloc(&job->alloc, 1, sizeof *child);
  if (child == NULL)
    return KILN__RT_NO_MEMORY;
  child->kind = fill ? KILN__CHILD_FILL : KILN__CHILD_COPY;
  child->area = *area;
  return submit(w, s, child, stream);
}
