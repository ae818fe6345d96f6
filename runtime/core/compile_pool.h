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

/* Starts no thread yet. `threads` is the bound, raised to 1 and lowered to 64.
 * KILN_OK, KILN_ENOMEM. */
kiln_status kiln__pool_create(kiln__pool **out, const kiln_allocator *a,
                              unsigned threads);
/* Runs what is queued, then joins the threads. In a forked child, which has no
 * threads, only frees the memory. NULL is allowed. */
void kiln__pool_free(kiln__pool *pool);

/* Queues a task. If no thread runs and none can be started, and in a forked
 * child, the task runs in the calling thread before this returns. */
void kiln__pool_add(kiln__pool *pool, kiln__task *task);

/* Removes a task that has not started. False if it has, or was never queued. */
bool kiln__pool_remove(kiln__pool *pool, kiln__task *task);

/* Enclose every run of the compiler, on any thread: at most as many run at once
 * as the pool may have threads. Enter waits for a turn; a thread must not hold
 * two. In a forked child both do nothing, since turns of the parent's threads
 * would never end. */
void kiln__pool_enter(kiln__pool *pool);
void kiln__pool_leave(kiln__pool *pool);

#endif
