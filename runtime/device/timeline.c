/* timeline.c -- records the spans of a timeline (kiln/timeline.h).
 * timeline_file.c evaluates and writes the spans.
 *
 * Problem: the host's clock measures spans on the host, and CUDA events measure
 * spans on the device. Events give only time differences, but both kinds of
 * spans need one time axis. In addition, a difference is a float in
 * milliseconds with a 24-bit significand, which loses microseconds after some
 * seconds.
 *
 * Idea: an anchor is an event whose time on the axis is known. The first anchor
 * is recorded when the timeline is created: line_up() records events and waits
 * for each one. The event with the shortest round trip is taken as simultaneous
 * with the middle of its round trip on the host's clock. A new anchor is
 * recorded every few seconds, and its time is computed from the previous
 * anchor. The time of a span is computed from the latest anchor, so every
 * difference is short.
 *
 * Invariant: the anchor of a span is older than the span by at most
 * anchor_every_ns, plus the time in which nothing was recorded.
 *
 * Cost: two events per span on a stream. Events are reused after their times
 * were read. Only kiln_timeline_each() and kiln_timeline_write() wait for the
 * device. */
#include "timeline.h"

#include <string.h>

/* The time between two anchors. A float below 4,096 milliseconds has a
 * resolution of 0.25 us. */
static const uint64_t anchor_every_ns = 4000000000u;

void *kiln__list_next(kiln__list *list, const kiln_allocator *a, size_t size)
{
  if (list->n == list->capacity) {
    const size_t capacity = list->capacity == 0 ? 32 : list->capacity * 2;
    void *items = kiln__resize(a, list->items, capacity * size);

    if (items == NULL)
      return NULL;
    list->items = items;
    list->capacity = capacity;
  }
  return (char *)list->items + list->n * size;
}

static const kiln_allocator *allocator(const kiln_timeline *t)
{
  return &t->device->rt->alloc;
}

/* Returns an unused CUDA event for a span, or creates a new event. */
static CUresult take_event(kiln_timeline *t, CUevent *out)
{
  if (t->idle.n == 0)
    return t->device->driver->eventCreate(out, CU_EVENT_DEFAULT);
  *out = ((CUevent *)t->idle.items)[--t->idle.n];
  return CUDA_SUCCESS;
}

void kiln__timeline_keep(kiln_timeline *t, CUevent event)
{
  CUevent *slot;

  if (event == NULL)
    return;
  slot = kiln__list_next(&t->idle, allocator(t), sizeof(CUevent));
  if (slot == NULL) {
    t->device->driver->eventDestroy(event);
    return;
  }
  *slot = event;
  t->idle.n++;
}

/* Records a CUDA event at the current end of the stream. Writes no error
 * record: after a failed launch, the record of the launch must be preserved. */
static CUresult record_silently(kiln_timeline *t, CUstream stream, CUevent *out)
{
  CUevent event;
  CUresult rc = take_event(t, &event);

  *out = NULL;
  if (rc != CUDA_SUCCESS)
    return rc;
  rc = t->device->driver->eventRecord(event, stream);
  if (rc == CUDA_SUCCESS)
    *out = event;
  else
    kiln__timeline_keep(t, event);
  return rc;
}

static kiln_status record(kiln_timeline *t, CUstream stream, CUevent *out)
{
  return kiln__device_rc(t->device, record_silently(t, stream, out),
                         "cuEventRecord");
}

static kiln_status add_anchor(kiln_timeline *t, CUstream stream, uint64_t now)
{
  kiln__anchor *anchor =
      kiln__list_next(&t->anchors, allocator(t), sizeof *anchor);
  kiln_status st;

  if (anchor == NULL)
    return kiln__fail_memory("a timeline");
  *anchor = (kiln__anchor){0};
  st = record(t, stream, &anchor->event);
  if (st != KILN_OK)
    return st;
  t->anchors.n++;
  t->anchored_ns = now;
  return KILN_OK;
}

/* Finds the timeline row of a stream or host thread, or adds a row. */
static kiln_status find_row(kiln_timeline *t, kiln__list *rows,
                            const kiln__row *wanted, bool host, size_t *out)
{
  kiln__row *row = rows->items;

  for (size_t i = 0; i < rows->n; i++) {
    if (host ? pthread_equal(row[i].thread, wanted->thread) != 0
             : row[i].stream == wanted->stream) {
      *out = i;
      return KILN_OK;
    }
  }
  row = kiln__list_next(rows, allocator(t), sizeof *row);
  if (row == NULL)
    return kiln__fail_memory("a timeline");
  *row = *wanted;
  row->open = KILN__NONE;
  *out = rows->n++;
  return KILN_OK;
}

static kiln_status new_span(kiln_timeline *t, const char *name,
                            kiln__span_record **out)
{
  *out = kiln__list_next(&t->spans, allocator(t), sizeof **out);
  if (*out == NULL)
    return kiln__fail_memory("a timeline");
  memset(*out, 0, sizeof **out);
  kiln__copy_text((*out)->name, sizeof(*out)->name, name);
  (*out)->outer = KILN__NONE;
  return KILN_OK;
}

/* Opens a span on a stream. Call it between kiln__enter() and kiln__leave(),
 * with the timeline's lock held. */
static kiln_status open_span(kiln_timeline *t, CUstream stream,
                             const char *name, size_t *row, size_t *index)
{
  const kiln__row wanted = {.stream = stream};
  const uint64_t now = kiln__clock_ns();
  kiln_status st = KILN_OK;
  kiln__span_record *span;

  KILN_TRY(find_row(t, &t->rows, &wanted, false, row));
  if (now - t->anchored_ns > anchor_every_ns)
    KILN_TRY(add_anchor(t, stream, now));
  KILN_TRY(new_span(t, name, &span));
  KILN_TRY(record(t, stream, &span->begin));
  span->row = (int)*row + 1;
  span->anchor = t->anchors.n - 1;
  *index = t->spans.n++;

done:
  return st;
}

static CUresult close_span(kiln_timeline *t, CUstream stream, size_t index)
{
  kiln__span_record *span = &kiln__spans(t)[index];
  const CUresult rc = record_silently(t, stream, &span->end);

  span->state = rc == CUDA_SUCCESS ? KILN__SPAN_CLOSED : KILN__SPAN_DROPPED;
  return rc;
}

bool kiln__mark_begin(kiln__mark *mark, const kiln_stream *stream,
                      const char *name)
{
  kiln_timeline *t = stream->timeline;
  kiln_status st;
  size_t row;

  if (t == NULL || kiln__capturing(t->device->driver, stream->handle))
    return false;
  mark->timeline = t;
  pthread_mutex_lock(&t->lock);
  st = open_span(t, stream->handle, name, &row, &mark->span);
  pthread_mutex_unlock(&t->lock);
  return st == KILN_OK;
}

void kiln__mark_end(const kiln__mark *mark, const kiln_stream *stream)
{
  kiln_timeline *t = mark->timeline;

  pthread_mutex_lock(&t->lock);
  close_span(t, stream->handle, mark->span);
  pthread_mutex_unlock(&t->lock);
}

/* Finds the host's time of the first anchor (the CUDA event that relates device
 * time to host time). The attempt with the shortest round trip is the most
 * precise. A few attempts usually suffice. More attempts are made only while
 * all round trips are long because the machine is busy. */
enum { TRIES = 4, MOST_TRIES = 64, SHORT_NS = 60000 };

static kiln_status line_up(kiln_timeline *t, CUstream stream)
{
  const kiln__driver *driver = t->device->driver;
  kiln__anchor *first = kiln__anchors(t);
  uint64_t least = UINT64_MAX;
  kiln_status st = KILN_OK;

  for (int i = 0; i < TRIES || (i < MOST_TRIES && least > SHORT_NS); i++) {
    const uint64_t before = kiln__clock_ns();
    CUevent event;
    uint64_t after;

    KILN_TRY(record(t, stream, &event));
    st = kiln__device_rc(t->device, driver->eventSynchronize(event),
                         "cuEventSynchronize");
    after = kiln__clock_ns();
    if (st == KILN_OK && after - before < least) {
      CUevent worse = first->event;

      least = after - before;
      first->event = event;
      t->origin_ns = before + least / 2;
      event = worse;
    }
    kiln__timeline_keep(t, event);
    if (st != KILN_OK)
      goto done;
  }
  first->timed = true;
  t->anchored_ns = t->origin_ns;

done:
  return st;
}

/* Records the first anchor (reference event) in a separate stream, since a
 * capture may occupy the default stream. */
static kiln_status start(kiln_timeline *t)
{
  const kiln__driver *driver = t->device->driver;
  kiln__relaxed relaxed;
  CUstream stream = NULL;
  kiln_status st;

  kiln__relax(driver, &relaxed);
  st = kiln__device_rc(
      t->device,
      driver->streamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
      "cuStreamCreateWithPriority");
  if (st == KILN_OK) {
    st = add_anchor(t, stream, kiln__clock_ns());
    if (st == KILN_OK)
      st = line_up(t, stream);
    driver->streamDestroy(stream);
  }
  kiln__unrelax(&relaxed);
  return st;
}

kiln_status kiln_timeline_create(kiln_timeline **out, kiln_device *device)
{
  kiln_status st = KILN_OK;
  kiln_timeline *t = NULL;
  kiln__scope scope;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  t = kiln__calloc(&device->rt->alloc, 1, sizeof *t);
  if (t == NULL)
    KILN_TRY(kiln__fail_memory("a timeline"));
  t->device = device;
  pthread_mutex_init(&t->lock, NULL);
  KILN_TRY(start(t));
  *out = t;
  t = NULL;

done:
  kiln__leave(&scope);
  kiln_timeline_free(t);
  return st;
}

static void destroy_events(kiln_timeline *t)
{
  const kiln__driver *driver = t->device->driver;

  for (size_t i = 0; i < t->spans.n; i++) {
    const kiln__span_record *span = &kiln__spans(t)[i];

    if (span->begin != NULL)
      driver->eventDestroy(span->begin);
    if (span->end != NULL)
      driver->eventDestroy(span->end);
  }
  for (size_t i = 0; i < t->anchors.n; i++)
    driver->eventDestroy(kiln__anchors(t)[i].event);
  for (size_t i = 0; i < t->idle.n; i++)
    driver->eventDestroy(((CUevent *)t->idle.items)[i]);
}

void kiln_timeline_free(kiln_timeline *t)
{
  const kiln_allocator *a;
  kiln__scope scope;

  if (t == NULL)
    return;
  a = allocator(t);
  if (kiln__enter_to_free(t->device, &scope)) {
    destroy_events(t);
    kiln__leave(&scope);
  }
  kiln__free(a, t->spans.items);
  kiln__free(a, t->rows.items);
  kiln__free(a, t->threads.items);
  kiln__free(a, t->anchors.items);
  kiln__free(a, t->idle.items);
  pthread_mutex_destroy(&t->lock);
  kiln__free(a, t);
}

kiln_status kiln_timeline_begin(kiln_timeline *t, kiln_stream *stream,
                                const char *name)
{
  const CUstream handle = kiln_stream_handle(stream);
  kiln__scope scope;
  kiln_status st;
  size_t row, index;

  if (t == NULL || name == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the timeline or name is NULL");
  st = kiln__enter(t->device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__refuse_capture(t->device, handle, __func__);
  if (st == KILN_OK) {
    pthread_mutex_lock(&t->lock);
    st = open_span(t, handle, name, &row, &index);
    if (st == KILN_OK) {
      kiln__row *rows = t->rows.items;

      kiln__spans(t)[index].outer = rows[row].open;
      rows[row].open = index;
    }
    pthread_mutex_unlock(&t->lock);
  }
  kiln__leave(&scope);
  return st;
}

/* Returns the index of the innermost open span of a timeline row, or
 * KILN__NONE. */
static size_t innermost(const kiln__list *rows, const kiln__row *wanted,
                        bool host, kiln__row **out)
{
  kiln__row *row = rows->items;

  for (size_t i = 0; i < rows->n; i++) {
    if (host ? pthread_equal(row[i].thread, wanted->thread) != 0
             : row[i].stream == wanted->stream) {
      *out = &row[i];
      return row[i].open;
    }
  }
  return KILN__NONE;
}

static kiln_status none_open(const char *where)
{
  return kiln__fail(KILN_EINVAL, "begin a span first", "no span is open %s",
                    where);
}

kiln_status kiln_timeline_end(kiln_timeline *t, kiln_stream *stream)
{
  const kiln__row wanted = {.stream = kiln_stream_handle(stream)};
  kiln__scope scope;
  kiln__row *row;
  kiln_status st;
  size_t index;

  if (t == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the timeline is NULL");
  st = kiln__enter(t->device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__refuse_capture(t->device, wanted.stream, __func__);
  if (st == KILN_OK) {
    pthread_mutex_lock(&t->lock);
    index = innermost(&t->rows, &wanted, false, &row);
    if (index == KILN__NONE) {
      st = none_open("in this stream");
    } else {
      row->open = kiln__spans(t)[index].outer;
      st = kiln__device_rc(t->device, close_span(t, wanted.stream, index),
                           "cuEventRecord");
    }
    pthread_mutex_unlock(&t->lock);
  }
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_timeline_host_begin(kiln_timeline *t, const char *name)
{
  const kiln__row wanted = {.thread = pthread_self()};
  kiln_status st;
  kiln__span_record *span;
  kiln__row *rows;
  size_t row = 0;

  if (t == NULL || name == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the timeline or name is NULL");
  st = kiln__fork_check(&t->device->rt->fork);
  if (st != KILN_OK)
    return st;
  pthread_mutex_lock(&t->lock);
  KILN_TRY(find_row(t, &t->threads, &wanted, true, &row));
  KILN_TRY(new_span(t, name, &span));
  rows = t->threads.items;
  span->thread = (int)row + 1;
  span->outer = rows[row].open;
  rows[row].open = t->spans.n++;
  span->begin_ns = (int64_t)(kiln__clock_ns() - t->origin_ns);

done:
  pthread_mutex_unlock(&t->lock);
  return st;
}

kiln_status kiln_timeline_host_end(kiln_timeline *t)
{
  const kiln__row wanted = {.thread = pthread_self()};
  const uint64_t now = kiln__clock_ns();
  kiln_status st;
  kiln__row *row;
  size_t index;

  if (t == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the timeline is NULL");
  st = kiln__fork_check(&t->device->rt->fork);
  if (st != KILN_OK)
    return st;
  pthread_mutex_lock(&t->lock);
  index = innermost(&t->threads, &wanted, true, &row);
  if (index == KILN__NONE) {
    st = none_open("on this thread's row");
  } else {
    kiln__span_record *span = &kiln__spans(t)[index];

    row->open = span->outer;
    span->end_ns = (int64_t)(now - t->origin_ns);
    span->state = KILN__SPAN_TIMED;
  }
  pthread_mutex_unlock(&t->lock);
  return st;
}
