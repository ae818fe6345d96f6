/* api_event.c -- implements events. An event holds the queue entry (mark) of
 * its last record. A wait for the event is a dependency on this queue entry. */
#include "../context/api_context.h"
#include "../graph/graph.h"

#include <unistd.h>

kiln__cpu_mark *kiln__cpu_event_mark(CUevent event)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_mark *mark;

  pthread_mutex_lock(&m->queue_lock);
  mark = event->mark;
  if (mark != NULL)
    mark->refs++;
  pthread_mutex_unlock(&m->queue_lock);
  return mark;
}

void kiln__cpu_event_put(CUevent event, kiln__cpu_mark *mark)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_mark *old;

  pthread_mutex_lock(&m->queue_lock);
  old = event->mark;
  event->mark = mark;
  pthread_mutex_unlock(&m->queue_lock);
  kiln__cpu_mark_drop(old);
  event->capture_id = 0;
  event->n_tips = 0;
}

void kiln__cpu_event_set(CUevent event, kiln__cpu_mark *mark)
{
  lock_graphs();
  kiln__cpu_event_put(event, mark);
  unlock_graphs();
}

/* ---- Creation and destruction -------------------------------------------- */

static void unlink_event(CUevent e)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->queue_lock);
  if (e->previous != NULL)
    e->previous->next = e->next;
  else
    e->context->events = e->next;
  if (e->next != NULL)
    e->next->previous = e->previous;
  pthread_mutex_unlock(&m->queue_lock);
}

static void free_event(CUevent e)
{
  kiln__cpu_machine *m = machine();

  kiln__cpu_live_remove(e);
  unlink_event(e);
  kiln__cpu_mark_drop(e->mark);
  kiln__cpu_event_page_free(e);
  kiln__free(&m->alloc, e->tips);
  kiln__free(&m->alloc, e);
}

void kiln__cpu_end_events(CUcontext context)
{
  while (context->events != NULL)
    free_event(context->events);
}

/* Makes an event in the current context. */
static CUresult make_event(CUevent *event, unsigned flags)
{
  kiln__cpu_machine *m = machine();
  CUcontext context;
  CUevent e;

  CU_TRY(kiln__cpu_current(&context));
  e = kiln__calloc(&m->alloc, 1, sizeof *e);
  if (e == NULL || !kiln__cpu_live_add(e, KILN__HANDLE_EVENT)) {
    kiln__free(&m->alloc, e);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  e->context = context;
  e->flags = flags;
  pthread_mutex_lock(&m->queue_lock);
  e->next = context->events;
  if (e->next != NULL)
    e->next->previous = e;
  context->events = e;
  pthread_mutex_unlock(&m->queue_lock);
  *event = e;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_eventCreate(CUevent *event, unsigned int flags)
{
  CUresult rc;
  CUevent e;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(event != NULL && (flags & ~7u) == 0 &&
               ((flags & CU_EVENT_INTERPROCESS) == 0 ||
                (flags & CU_EVENT_DISABLE_TIMING) != 0)));
  CU_TRY(make_event(&e, flags));
  rc = (flags & CU_EVENT_INTERPROCESS) != 0 ? kiln__cpu_event_page_make(e)
                                            : CUDA_SUCCESS;
  if (rc == CUDA_SUCCESS)
    *event = e;
  else
    free_event(e);
  return rc;
}

CUresult kiln__cpu_eventDestroy(CUevent event)
{
  CU_TRY(kiln__cpu_current_with(event, KILN__HANDLE_EVENT));
  free_event(event);
  return CUDA_SUCCESS;
}

/* ---- Recording an event and waiting for it ------------------------------- */

static CUresult record(CUevent event, CUstream handle, unsigned flags)
{
  CUstream s;
  kiln__cpu_mark *mark;
  bool taken = false;

  CU_TRY(kiln__cpu_current_with(event, KILN__HANDLE_EVENT));
  CU_TRY(valid((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) == 0));
  CU_TRY(kiln__cpu_current_stream(handle, &s));
  if (s->context != event->context)
    return CUDA_ERROR_INVALID_HANDLE;
  CU_TRY(kiln__cpu_capture_record(event, s, flags, &taken));
  if (taken)
    return CUDA_SUCCESS;
  /* External event records are allowed only during a capture. */
  if (flags != 0)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (event->page != NULL)
    CU_TRY(kiln__cpu_event_page_record(event, s));
  CU_TRY(kiln__cpu_queue_add(s, NULL, KILN__LATER, NULL, 0, &mark));
  kiln__cpu_event_set(event, mark);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_eventRecord(CUevent event, CUstream stream)
{
  return record(event, stream, 0);
}

CUresult kiln__cpu_eventRecordWithFlags(CUevent event, CUstream stream,
                                        unsigned int flags)
{
  return record(event, stream, flags);
}

CUresult kiln__cpu_streamWaitEvent(CUstream stream, CUevent event,
                                   unsigned int flags)
{
  CUstream s;
  CUresult rc;
  kiln__cpu_mark *mark;
  bool taken = false;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(kiln__cpu_known(event, KILN__HANDLE_EVENT));
  CU_TRY(valid((flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) == 0));
  rc = kiln__cpu_capture_wait(s, event, flags, &taken);
  if (rc != CUDA_SUCCESS || taken)
    return rc;
  CU_TRY(valid(flags == 0));
  if (event->page != NULL)
    return kiln__cpu_event_page_wait(event, s);
  mark = kiln__cpu_event_mark(event);
  if (mark == NULL)
    return CUDA_SUCCESS;
  rc = kiln__cpu_queue_add(s, NULL, KILN__LATER, &mark, 1, NULL);
  kiln__cpu_mark_drop(mark);
  return rc;
}

/* ---- Queries ------------------------------------------------------------- */

/* Stores a reference to the queue entry of the event's last record. Stores NULL
 * and returns CUDA_SUCCESS if the event was never recorded. */
static CUresult ask(CUevent event, kiln__cpu_mark **mark)
{
  CUcontext context;
  CUresult rc;

  *mark = NULL;
  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_known(event, KILN__HANDLE_EVENT));
  rc = kiln__cpu_capture_event(event);
  if (rc == CUDA_SUCCESS)
    rc = kiln__cpu_current_unsafe(&context);
  if (rc == CUDA_SUCCESS)
    *mark = kiln__cpu_event_mark(event);
  return rc;
}

CUresult kiln__cpu_eventQuery(CUevent event)
{
  kiln__cpu_mark *mark;
  CUresult rc = ask(event, &mark);

  if (rc == CUDA_SUCCESS && event->page != NULL &&
      !kiln__cpu_event_page_done(event))
    rc = CUDA_ERROR_NOT_READY;
  if (mark == NULL || rc != CUDA_SUCCESS) {
    kiln__cpu_mark_drop(mark);
    return rc;
  }
  rc = kiln__cpu_mark_done(mark) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  kiln__cpu_mark_drop(mark);
  if (atomic_load(&event->context->sticky) != CUDA_SUCCESS)
    rc = atomic_load(&event->context->sticky);
  return rc;
}

CUresult kiln__cpu_eventSynchronize(CUevent event)
{
  kiln__cpu_mark *mark;
  CUcontext context;
  CUresult rc = ask(event, &mark);

  if (rc == CUDA_SUCCESS && event->page != NULL) {
    while (!kiln__cpu_event_page_done(event))
      usleep(50);
  }
  if (mark == NULL)
    return rc;
  context = event->context;
  kiln__cpu_mark_wait(mark);
  kiln__cpu_mark_drop(mark);
  kiln__cpu_out_flush(context->out);
  kiln__cpu_pools_settle(context);
  return atomic_load(&context->sticky);
}

/* Stores a reference to the queue entry of the event's last record, for timing.
 * Returns CUDA_ERROR_INVALID_HANDLE if the event has no timing or was never
 * recorded. */
static CUresult timed(CUevent event, kiln__cpu_mark **mark)
{
  *mark = NULL;
  if (!kiln__cpu_live(event, KILN__HANDLE_EVENT) ||
      (event->flags & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  *mark = kiln__cpu_event_mark(event);
  return *mark == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult kiln__cpu_eventElapsedTime(float *ms, CUevent from, CUevent to)
{
  CUcontext context;
  kiln__cpu_mark *start = NULL, *end = NULL;
  CUresult rc;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(ms != NULL));
  rc = timed(from, &start);
  if (rc == CUDA_SUCCESS)
    rc = timed(to, &end);
  if (rc == CUDA_SUCCESS)
    rc = kiln__cpu_capture_event(from);
  if (rc == CUDA_SUCCESS)
    rc = kiln__cpu_capture_event(to);
  if (rc == CUDA_SUCCESS && from->context != to->context)
    rc = CUDA_ERROR_INVALID_HANDLE;
  if (rc == CUDA_SUCCESS &&
      (!kiln__cpu_mark_done(start) || !kiln__cpu_mark_done(end)))
    rc = CUDA_ERROR_NOT_READY;
  if (rc == CUDA_SUCCESS)
    *ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
  kiln__cpu_mark_drop(start);
  kiln__cpu_mark_drop(end);
  return rc;
}

/* ---- Event functions for a whole context --------------------------------- */

CUresult kiln__cpu_ctxRecordEvent(CUcontext context, CUevent event)
{
  CUcontext c;
  CUresult rc;
  kiln__cpu_mark **marks, *mark;
  size_t n;

  CU_TRY(kiln__cpu_context_of(context, &c));
  if (!kiln__cpu_live(event, KILN__HANDLE_EVENT) || event->context != c)
    return CUDA_ERROR_INVALID_HANDLE;
  CU_TRY(kiln__cpu_capture_sync_context(c));
  marks = kiln__cpu_marks_of_context(c, &n);
  CU_TRY(allocated(marks));
  rc = kiln__cpu_queue_add(c->legacy, NULL, KILN__LATER, marks, n, &mark);
  for (size_t i = 0; i < n; i++)
    kiln__cpu_mark_drop(marks[i]);
  kiln__free(&machine()->alloc, marks);
  if (rc == CUDA_SUCCESS)
    kiln__cpu_event_set(event, mark);
  return rc;
}

/* Makes all streams of the context wait for the event. The legacy stream waits
 * for the event, and blocking streams wait for the legacy stream. Each non-
 * blocking stream receives its own wait. */
CUresult kiln__cpu_ctxWaitEvent(CUcontext context, CUevent event)
{
  kiln__cpu_machine *m = machine();
  CUcontext c;
  CUresult rc;
  kiln__cpu_mark *mark;
  CUstream s;

  CU_TRY(kiln__cpu_context_of(context, &c));
  CU_TRY(kiln__cpu_known(event, KILN__HANDLE_EVENT));
  rc = kiln__cpu_capture_sync_context(c);
  mark = rc == CUDA_SUCCESS ? kiln__cpu_event_mark(event) : NULL;
  if (mark == NULL)
    return rc;
  rc = kiln__cpu_queue_add(c->legacy, NULL, KILN__LATER, &mark, 1, NULL);
  pthread_mutex_lock(&m->queue_lock);
  s = c->streams;
  pthread_mutex_unlock(&m->queue_lock);
  for (; s != NULL && rc == CUDA_SUCCESS; s = s->next) {
    if (!s->blocking && !s->ending)
      rc = kiln__cpu_queue_add(s, NULL, KILN__LATER, &mark, 1, NULL);
  }
  kiln__cpu_mark_drop(mark);
  return rc;
}

/* ---- Sharing with other processes ---------------------------------------- */

CUresult kiln__cpu_ipcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
  CUresult rc;
  CUevent e;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(event != NULL));
  CU_TRY(make_event(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  rc = kiln__cpu_event_page_open(e, &handle);
  if (rc == CUDA_SUCCESS)
    *event = e;
  else
    free_event(e);
  return rc;
}
