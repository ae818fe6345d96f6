/* queue.c -- implements streams as queues. A host thread per stream runs the
 * queue entries, which the code calls marks.
 *
 * Problem: each stream runs its work in order, and streams run concurrently
 * with each other. Event waits and the legacy stream restrict this. The legacy
 * stream waits for every blocking stream, and blocking streams wait for the
 * legacy stream.
 *
 * Idea: one kind of dependency expresses all of these rules. Work that is added
 * to a stream becomes a queue entry, with edges from the entries that the work
 * has to wait for. These are the entries of event records, and the entries that
 * the rules of the legacy stream imply at this moment. An entry may begin when
 * it is the first entry of its stream, nothing of the stream runs, and all its
 * edges are met. Once the work is queued, no thread has to examine other
 * streams.
 *
 * Invariant: an edge leads from an older entry to a newer entry. Therefore
 * there is no cycle, and the oldest unfinished entry can always run.
 *
 * Cost: one short critical section of queue_lock per added entry and per
 * completed entry. A stream gets its thread when its work has to wait for the
 * first time. Short work that waits for nothing runs in the caller's thread. */
#include "../observe.h"
#include "streams.h"

#include <signal.h>
#include <stdlib.h>

/* ---- Queue entries ------------------------------------------------------- */

static void drop_locked(kiln__cpu_mark *mark)
{
  if (mark == NULL || --mark->refs > 0)
    return;
  kiln__free(&machine()->alloc, mark->more);
  kiln__free(&machine()->alloc, mark);
}

kiln__cpu_mark *kiln__cpu_mark_hold(kiln__cpu_mark *mark)
{
  if (mark != NULL) {
    pthread_mutex_lock(&machine()->queue_lock);
    mark->refs++;
    pthread_mutex_unlock(&machine()->queue_lock);
  }
  return mark;
}

void kiln__cpu_mark_drop(kiln__cpu_mark *mark)
{
  if (mark == NULL)
    return;
  pthread_mutex_lock(&machine()->queue_lock);
  drop_locked(mark);
  pthread_mutex_unlock(&machine()->queue_lock);
}

bool kiln__cpu_mark_done(kiln__cpu_mark *mark)
{
  bool done;

  pthread_mutex_lock(&machine()->queue_lock);
  done = mark->done;
  pthread_mutex_unlock(&machine()->queue_lock);
  return done;
}

void kiln__cpu_mark_wait(kiln__cpu_mark *mark)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->queue_lock);
  mark->waiters++;
  while (!mark->done)
    pthread_cond_wait(&m->queue_done, &m->queue_lock);
  mark->waiters--;
  pthread_mutex_unlock(&m->queue_lock);
}

/* ---- Execution ----------------------------------------------------------- */

/* Returns whether the first entry of the stream's queue can begin. */
static bool runnable(const struct CUstream_st *s)
{
  return s->first != NULL && !s->running && s->first->unmet == 0;
}

/* Wakes the stream's thread if the first queue entry can run or the stream has
 * ended. */
static void kick(CUstream s)
{
  if (runnable(s) || (s->ending && s->first == NULL))
    pthread_cond_signal(&s->wake);
}

/* Frees a stream that has ended and whose queue is empty. Otherwise does
 * nothing. The caller must not use the stream afterwards. */
static void retire(CUstream s)
{
  CUcontext context = s->context;
  CUstream *at = &context->streams;

  if (!s->ending || s->first != NULL || s->running || s->has_thread)
    return;
  while (*at != NULL && *at != s)
    at = &(*at)->next;
  if (*at == s)
    *at = s->next;
  drop_locked(s->last);
  pthread_cond_destroy(&s->wake);
  kiln__free(&machine()->alloc, s->tips);
  kiln__free(&machine()->alloc, s);
  pthread_cond_broadcast(&machine()->queue_done);
}

/* Runs the work of a queue entry without holding a lock, then frees the work.
 * After the context has failed, the work is only freed, unless work->always is
 * set. */
static void run(kiln__cpu_mark *mark)
{
  kiln__cpu_work *work = mark->work;
  CUcontext context = mark->stream->context;

  if (work->always || atomic_load(&context->sticky) == CUDA_SUCCESS) {
    CUresult rc = kiln__cpu_run_work(work, mark->stream, work->call, false);

    if (rc != CUDA_SUCCESS)
      kiln__cpu_stick(context, rc);
  }
  if (work->free != NULL)
    work->free(work);
}

/* Marks a queue entry as done, and wakes the streams and host threads that wait
 * for it. */
static void reach(kiln__cpu_mark *mark)
{
  mark->done = true;
  mark->time_ns = kiln__clock_ns();
  for (kiln__cpu_edge *e = mark->edges; e != NULL; e = e->next) {
    if (--e->later->unmet == 0)
      kick(e->later->stream);
  }
  mark->edges = NULL;
  if (mark->waiters > 0)
    pthread_cond_broadcast(&machine()->queue_done);
}

kiln__cpu_mark *kiln__cpu_mark_new(void)
{
  kiln__cpu_mark *mark = kiln__calloc(&machine()->alloc, 1, sizeof *mark);

  if (mark != NULL)
    mark->refs = 1;
  return mark;
}

void kiln__cpu_mark_reach(kiln__cpu_mark *mark)
{
  pthread_mutex_lock(&machine()->queue_lock);
  if (!mark->done)
    reach(mark);
  pthread_mutex_unlock(&machine()->queue_lock);
}

/* Completes the queue entry that the stream was running. This call may free the
 * stream. */
static void finish(kiln__cpu_mark *mark)
{
  CUstream s = mark->stream;

  s->running = false;
  mark->stream = NULL;
  mark->work = NULL;
  reach(mark);
  drop_locked(mark);
  kick(s);
  retire(s);
}

/* The stream's thread. Runs the queue entries of the stream until the stream
 * ends. */
static void *stream_thread(void *arg)
{
  CUstream s = arg;
  kiln__cpu_machine *m = machine();
  CUcontext context = s->context;

  pthread_mutex_lock(&m->queue_lock);
  for (;;) {
    kiln__cpu_mark *mark;

    while (!runnable(s) && !(s->ending && s->first == NULL && !s->running))
      pthread_cond_wait(&s->wake, &m->queue_lock);
    if (!runnable(s))
      break;
    mark = s->first;
    s->first = mark->next;
    s->running = true;
    if (mark->work != NULL) {
      pthread_mutex_unlock(&m->queue_lock);
      run(mark);
      pthread_mutex_lock(&m->queue_lock);
    }
    finish(mark); /* The stream stays allocated while has_thread is set. */
  }
  s->has_thread = false;
  retire(s);
  context->n_threads--;
  pthread_cond_broadcast(&m->queue_done);
  pthread_mutex_unlock(&m->queue_lock);
  return NULL;
}

/* Starts the stream's thread unless it exists. The new thread blocks all
 * signals, so that only the program's threads run the program's signal
 * handlers. */
static bool ensure_thread(CUstream s)
{
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t all, old;
  int rc;

  if (s->has_thread)
    return true;
  if (pthread_attr_init(&attr) != 0)
    return false;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  rc = pthread_create(&thread, &attr, stream_thread, s);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attr);
  if (rc != 0)
    return false;
  s->has_thread = true;
  s->context->n_threads++;
  return true;
}

/* ---- Adding marks -------------------------------------------------------- */

/* Finds the queue entries of other streams that new work of the stream `s`
 * waits for, by the rules of the legacy stream. Stores the entries if `out` is
 * not NULL. Returns their number. */
static size_t each_implied(CUstream s, kiln__cpu_mark **out)
{
  CUcontext context = s->context;
  size_t n = 0;

  if (s->legacy) {
    for (CUstream o = context->streams; o != NULL; o = o->next) {
      if (o->blocking && o->last != NULL && !o->last->done) {
        if (out != NULL)
          out[n] = o->last;
        n++;
      }
    }
  } else if (s->blocking && context->legacy != NULL &&
             context->legacy->last != NULL && !context->legacy->last->done) {
    if (out != NULL)
      out[n] = context->legacy->last;
    n++;
  }
  return n;
}

/* Makes the queue entry `mark` wait for the entry `before`, through the next
 * unused edge of `mark`. */
static void link_after(kiln__cpu_mark *mark, kiln__cpu_mark *before)
{
  kiln__cpu_edge *e = mark->more != NULL ? &mark->more[mark->n_edges]
                                         : &mark->own[mark->n_edges];

  mark->n_edges++;
  mark->unmet++;
  e->later = mark;
  e->next = before->edges;
  before->edges = e;
}

/* Allocates all edges of a queue entry before the first edge is linked, so that
 * a failure leaves no partial state. Returns false if there is no memory. */
static bool link_all(kiln__cpu_mark *mark, CUstream s,
                     kiln__cpu_mark *const *after, size_t n)
{
  const kiln_allocator *a = &machine()->alloc;
  const size_t n_implied = each_implied(s, NULL);
  kiln__cpu_mark *few[2], **implied = few;

  if (n + n_implied > 2) {
    mark->more = kiln__calloc(a, n + n_implied, sizeof *mark->more);
    implied = kiln__calloc(a, n_implied + 1, sizeof *implied);
    if (mark->more == NULL || implied == NULL) {
      kiln__free(a, implied);
      return false;
    }
  }
  each_implied(s, implied);
  for (size_t i = 0; i < n; i++) {
    if (after[i] != NULL && !after[i]->done)
      link_after(mark, after[i]);
  }
  for (size_t i = 0; i < n_implied; i++)
    link_after(mark, implied[i]);
  if (implied != few)
    kiln__free(a, implied);
  return true;
}

/* Returns whether new work of the stream has to wait for any queue entry. */
static bool must_wait(CUstream s, kiln__cpu_mark *const *after, size_t n)
{
  if (s->first != NULL || s->running || each_implied(s, NULL) > 0)
    return true;
  for (size_t i = 0; i < n; i++) {
    if (after[i] != NULL && !after[i]->done)
      return true;
  }
  return false;
}

/* Makes `mark` the newest queue entry of the stream. The stream holds a
 * reference to it. */
static void become_last(CUstream s, kiln__cpu_mark *mark)
{
  drop_locked(s->last);
  s->last = mark;
  mark->refs++;
}

static void append(CUstream s, kiln__cpu_mark *mark)
{
  if (s->first == NULL)
    s->first = mark;
  else
    s->tail->next = mark;
  s->tail = mark;
  kick(s);
}

/* Runs a queue entry that waits for nothing, in the caller's thread. */
static void run_here(CUstream s, kiln__cpu_mark *mark)
{
  s->running = true;
  if (mark->work != NULL) {
    pthread_mutex_unlock(&machine()->queue_lock);
    run(mark);
    pthread_mutex_lock(&machine()->queue_lock);
  }
  finish(mark);
}

CUresult kiln__cpu_queue_add(CUstream stream, kiln__cpu_work *work,
                             kiln__cpu_how how, kiln__cpu_mark *const *after,
                             size_t n, kiln__cpu_mark **out)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_mark *mark = kiln__calloc(&m->alloc, 1, sizeof *mark);
  bool ok = mark != NULL, here;

  if (work != NULL)
    work->call = kiln__cpu_this_call();
  if (ok) {
    *mark = (kiln__cpu_mark){.refs = 1, .stream = stream, .work = work};
    pthread_mutex_lock(&m->queue_lock);
    here = (work == NULL || how == KILN__HERE) && !must_wait(stream, after, n);
    ok = here || (ensure_thread(stream) && link_all(mark, stream, after, n));
    if (ok) {
      become_last(stream, mark);
      if (out != NULL) {
        mark->refs++;
        *out = mark;
      }
      if (here)
        run_here(stream, mark);
      else
        append(stream, mark);
    } else {
      drop_locked(mark);
    }
    pthread_mutex_unlock(&m->queue_lock);
  }
  if (!ok && work != NULL && work->free != NULL)
    work->free(work);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- Waiting for several queue entries ----------------------------------- */

kiln__cpu_mark **kiln__cpu_marks_of_context(CUcontext context, size_t *n)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_mark **marks;
  size_t most = 1;

  *n = 0;
  pthread_mutex_lock(&m->queue_lock);
  for (CUstream s = context->streams; s != NULL; s = s->next)
    most++;
  marks = kiln__calloc(&m->alloc, most, sizeof *marks);
  if (marks == NULL) {
    *n = 1;
  } else {
    if (context->legacy != NULL && context->legacy->last != NULL)
      marks[(*n)++] = context->legacy->last;
    for (CUstream s = context->streams; s != NULL; s = s->next) {
      if (s->last != NULL)
        marks[(*n)++] = s->last;
    }
    for (size_t i = 0; i < *n; i++)
      marks[i]->refs++;
  }
  pthread_mutex_unlock(&m->queue_lock);
  return marks;
}

kiln__cpu_mark **kiln__cpu_marks_of_stream(CUstream stream, size_t *n)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_mark **marks;

  pthread_mutex_lock(&m->queue_lock);
  *n = each_implied(stream, NULL);
  marks = kiln__calloc(&m->alloc, *n + 1, sizeof *marks);
  if (marks != NULL) {
    each_implied(stream, marks);
    if (stream->last != NULL)
      marks[(*n)++] = stream->last;
    for (size_t i = 0; i < *n; i++)
      marks[i]->refs++;
  } else {
    *n = 1;
  }
  pthread_mutex_unlock(&m->queue_lock);
  return marks;
}

void kiln__cpu_marks_wait(kiln__cpu_mark **marks, size_t n)
{
  for (size_t i = 0; marks != NULL && i < n; i++) {
    kiln__cpu_mark_wait(marks[i]);
    kiln__cpu_mark_drop(marks[i]);
  }
  kiln__free(&machine()->alloc, marks);
}

/* ---- Creation and destruction -------------------------------------------- */

CUresult kiln__cpu_stream_make(CUstream *out, CUcontext context, unsigned flags,
                               int priority)
{
  kiln__cpu_machine *m = machine();
  CUstream s = kiln__calloc(&m->alloc, 1, sizeof *s);

  *out = NULL;
  if (s == NULL || pthread_cond_init(&s->wake, NULL) != 0) {
    kiln__free(&m->alloc, s);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  s->context = context;
  s->id = kiln__cpu_next_id();
  s->flags = flags;
  s->priority = priority;
  s->policy =
      -1; /* none was chosen; the getter returns this on a GPU as well */
  s->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  pthread_mutex_lock(&m->queue_lock);
  s->next = context->streams;
  context->streams = s;
  pthread_mutex_unlock(&m->queue_lock);
  *out = s;
  return CUDA_SUCCESS;
}

void kiln__cpu_stream_end(CUstream stream)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->queue_lock);
  stream->ending = true;
  kick(stream);
  retire(stream);
  pthread_mutex_unlock(&m->queue_lock);
}

void kiln__cpu_end_streams(CUcontext context)
{
  kiln__cpu_machine *m = machine();
  CUstream next;

  pthread_mutex_lock(&m->queue_lock);
  if (context->legacy != NULL) {
    context->legacy->next = context->streams;
    context->streams = context->legacy;
    context->legacy = NULL;
  }
  for (CUstream s = context->streams; s != NULL; s = next) {
    next = s->next;
    kiln__cpu_live_remove(s);
    s->legacy = false;
    s->ending = true;
    kick(s);
    retire(s);
  }
  while (context->n_threads > 0 || context->streams != NULL)
    pthread_cond_wait(&m->queue_done, &m->queue_lock);
  pthread_mutex_unlock(&m->queue_lock);
}
