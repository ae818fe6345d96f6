/* compile_pool.h -- a thread pool of bounded size that runs compile tasks in
 * the order of their submission. */
#ifndef KILN_COMPILE_POOL_H
#define KILN_COMPILE_POOL_H

#include "../base/base.h"

typedef struct kiln__pool kiln__pool;

/* A task of the pool. The caller embeds it in a struct with the data that the
 * task needs. The task must stay valid until `run` was called or
 * kiln__pool_remove() returned true. */
typedef struct kiln__task {
  struct kiln__task *next;
  /* callback that a pool thread calls with no lock held */
  void (*run)(struct kiln__task *task);
} kiln__task;

/* Creates a pool without starting a thread. `threads` is the maximum number of
 * threads, clamped to 1..64. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__pool_create(kiln__pool **out, const kiln_allocator *a,
                              unsigned threads);
/* Runs all queued tasks, then joins the threads. A forked child has no pool
 * threads, so there the function only frees the memory. NULL is allowed. */
void kiln__pool_free(kiln__pool *pool);

/* Queues a task. In a forked child, or if no thread is running and none can be
 * started, the task runs in the calling thread before the function returns. */
void kiln__pool_add(kiln__pool *pool, kiln__task *task);

/* Removes a task that has not started. Returns false if the task has started or
 * was never queued. */
bool kiln__pool_remove(kiln__pool *pool, kiln__task *task);

/* The caller calls these functions before and after every run of the compiler,
 * on any thread. They limit the number of concurrent compilations to the size
 * of the pool. kiln__pool_enter() waits until fewer compilations run; a thread
 * must not call it twice without kiln__pool_leave(). In a forked child both
 * functions do nothing, since the parent's threads would never leave there. */
void kiln__pool_enter(kiln__pool *pool);
void kiln__pool_leave(kiln__pool *pool);

#endif
