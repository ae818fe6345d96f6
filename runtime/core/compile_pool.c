/* compile_pool.c -- the compile threads, which are started on demand up to a
 * maximum and then kept.
 *
 * The pool also limits the number of concurrent compilations on all threads, as
 * a counting semaphore does: each compilation occupies one slot. In a forked
 * child the pool threads do not exist, and the lock may stay locked for ever.
 * In a child, tasks therefore run in the calling thread, and the number of
 * compilations is not limited. */
#include "compile_pool.h"

#include <signal.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

struct kiln__pool {
  const kiln_allocator *alloc;
  pthread_mutex_t lock;
  pthread_cond_t work;
  kiln__task *first, *last;
  unsigned limit, started, idle, queued;
  bool closing;
  /* condition that is signalled when a compilation ends */
  pthread_cond_t turn;
  unsigned compiling;
  pid_t pid;
  pthread_t threads[MAX_THREADS];
};

kiln_status kiln__pool_create(kiln__pool **out, const kiln_allocator *a,
                              unsigned threads)
{
  kiln__pool *pool = kiln__calloc(a, 1, sizeof *pool);

  *out = NULL;
  if (pool == NULL)
    return kiln__fail_memory("compile threads");
  pool->alloc = a;
  pool->limit = threads > MAX_THREADS ? MAX_THREADS : threads;
  if (pool->limit == 0)
    pool->limit = 1;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->turn, NULL);
  pool->pid = getpid();
  *out = pool;
  return KILN_OK;
}

static bool is_child(const kiln__pool *pool)
{
  return getpid() != pool->pid;
}

static kiln__task *take_first(kiln__pool *pool)
{
  kiln__task *task = pool->first;

  if (task == NULL)
    return NULL;
  pool->first = task->next;
  if (pool->first == NULL)
    pool->last = NULL;
  pool->queued--;
  return task;
}

static void *worker(void *arg)
{
  kiln__pool *pool = arg;

  pthread_mutex_lock(&pool->lock);
  for (;;) {
    kiln__task *task = take_first(pool);

    if (task != NULL) {
      pthread_mutex_unlock(&pool->lock);
      task->run(task);
      pthread_mutex_lock(&pool->lock);
      continue;
    }
    if (pool->closing)
      break;
    pool->idle++;
    pthread_cond_wait(&pool->work, &pool->lock);
    pool->idle--;
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Starts a pool thread with all signals blocked, so that the application's
 * handlers never run on Kiln's threads. */
static bool start_thread(kiln__pool *pool)
{
  sigset_t all, before;
  bool ok;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ok = pthread_create(&pool->threads[pool->started], NULL, worker, pool) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (ok)
    pool->started++;
  return ok;
}

static void append(kiln__pool *pool, kiln__task *task)
{
  task->next = NULL;
  if (pool->last == NULL)
    pool->first = task;
  else
    pool->last->next = task;
  pool->last = task;
  pool->queued++;
}

void kiln__pool_add(kiln__pool *pool, kiln__task *task)
{
  bool here = false;

  if (is_child(pool)) {
    task->run(task);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  /* A signalled thread counts as idle until it wakes. The number of idle
   * threads is therefore compared with the number of queued tasks. */
  if (pool->idle <= pool->queued && pool->started < pool->limit &&
      !pool->closing && !start_thread(pool))
    here = pool->started == 0;
  if (!here) {
    append(pool, task);
    pthread_cond_signal(&pool->work);
  }
  pthread_mutex_unlock(&pool->lock);
  if (here)
    task->run(task);
}

bool kiln__pool_remove(kiln__pool *pool, kiln__task *task)
{
  kiln__task *before = NULL, *t;
  bool found = false;

  if (is_child(pool))
    return false;
  pthread_mutex_lock(&pool->lock);
  for (t = pool->first; t != NULL && t != task; t = t->next)
    before = t;
  if (t != NULL) {
    found = true;
    if (before == NULL)
      pool->first = t->next;
    else
      before->next = t->next;
    if (pool->last == t)
      pool->last = before;
    pool->queued--;
  }
  pthread_mutex_unlock(&pool->lock);
  return found;
}

void kiln__pool_enter(kiln__pool *pool)
{
  if (is_child(pool))
    return;
  pthread_mutex_lock(&pool->lock);
  while (pool->compiling >= pool->limit)
    pthread_cond_wait(&pool->turn, &pool->lock);
  pool->compiling++;
  pthread_mutex_unlock(&pool->lock);
}

void kiln__pool_leave(kiln__pool *pool)
{
  if (is_child(pool))
    return;
  pthread_mutex_lock(&pool->lock);
  pool->compiling--;
  pthread_cond_signal(&pool->turn);
  pthread_mutex_unlock(&pool->lock);
}

void kiln__pool_free(kiln__pool *pool)
{
  if (pool == NULL)
    return;
  if (is_child(pool)) {
    kiln__free(pool->alloc, pool);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->closing = true;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  for (unsigned i = 0; i < pool->started; i++)
    pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->work);
  pthread_cond_destroy(&pool->turn);
  pthread_mutex_destroy(&pool->lock);
  kiln__free(pool->alloc, pool);
}
