/* compile_pool.h -- a bounded set of threads that run compiles in order. */
#ifndef KILN_COMPILE_POOL_H
#define KILN_COMPILE_POOL_H

#include "../base/base.h"

typedef struct kiln__pool kiln__pool;

/* A unit of work; embed it in what the work needs. It must stay valid until
 * `run` was called or kiln__pool_remove returned true. */
typedef struct kiln__task {
  struct kiln__task *next;
  void (*run)(struct kiln__task *task); /* on a pool thread, no lock held */
} kiln__task;

/* Starts no thread yet; at least one may be. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__pool_create(kiln__pool **out, const kiln_allocator *a,
                              unsigned threads);
/* Runs what is queued, then joins the threads. In a forked child, where the
 * threads are gone, only gives the memory back. NULL is fine. */
void kiln__pool_free(kiln__pool *pool);

/* Queue a task. If no thread can be started and none runs, and in a forked
 * child, the task runs here and now: work is never lost. */
void kiln__pool_add(kiln__pool *pool, kiln__task *task);

/* Take a task back that has not started. */
bool kiln__pool_remove(kiln__pool *pool, kiln__task *task);

/* Around every run of the compiler, whichever thread it is on: at most as many
 * as the pool has threads at once. Enter waits for its turn; neither may be
 * called while holding a turn. In a forked child they do nothing: the turns
 * that threads of the parent held would never end. */
void kiln__pool_enter(kiln__pool *pool);
void kiln__pool_leave(kiln__pool *pool);

#endif
