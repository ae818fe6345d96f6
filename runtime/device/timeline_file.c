/* timeline_file.c -- evaluates the spans of a timeline: reads the times of the
 * events, sorts the spans, and writes them as a Chrome trace. */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

/* Computes the nanoseconds between two completed CUDA events. */
static kiln_status elapsed(const kiln_timeline *t, CUevent from, CUevent to,
                           int64_t *ns)
{
  float ms = 0;
  const kiln_status st = kiln__device_rc(
      t->device, t->device->driver->eventElapsedTime(&ms, from, to),
      "cuEventElapsedTime");

  *ns = (int64_t)((double)ms * 1e6);
  return st;
}

/* Computes the time of each new anchor (reference event) from the preceding
 * anchor. */
static kiln_status time_anchors(kiln_timeline *t)
{
  kiln__anchor *anchors = kiln__anchors(t);

  for (size_t i = 1; i < t->anchors.n; i++) {
    int64_t ns;
    kiln_status st;

    if (anchors[i].timed)
      continue;
    st = elapsed(t, anchors[i - 1].event, anchors[i].event, &ns);
    if (st != KILN_OK)
      return st;
    anchors[i].ns = anchors[i - 1].ns + ns;
    anchors[i].timed = true;
  }
  return KILN_OK;
}

/* Computes the times of a span, and keeps its CUDA events for reuse by later
 * spans. */
static kiln_status time_span(kiln_timeline *t, kiln__span_record *span)
{
  const kiln__anchor *anchor = &kiln__anchors(t)[span->anchor];
  int64_t since, length;
  kiln_status st = elapsed(t, anchor->event, span->begin, &since);

  if (st == KILN_OK)
    st = elapsed(t, span->begin, span->end, &length);
  if (st != KILN_OK)
    return st;
  span->begin_ns = anchor->ns + since;
  span->end_ns = span->begin_ns + length;
  span->state = KILN__SPAN_TIMED;
  kiln__timeline_keep(t, span->begin);
  kiln__timeline_keep(t, span->end);
  span->begin = span->end = NULL;
  return KILN_OK;
}

static kiln_status time_all(kiln_timeline *t)
{
  kiln_status st = time_anchors(t);

  for (size_t i = 0; i < t->spans.n && st == KILN_OK; i++) {
    if (kiln__spans(t)[i].state == KILN__SPAN_CLOSED)
      st = time_span(t, &kiln__spans(t)[i]);
  }
  return st;
}

/* Orders spans by their begin. If two spans begin at the same time, the longer
 * span comes first, since it contains the other span. */
static int by_begin(const void *left, const void *right)
{
  const kiln__span_record *a = left, *b = right;

  if (a->begin_ns != b->begin_ns)
    return a->begin_ns < b->begin_ns ? -1 : 1;
  if (a->end_ns != b->end_ns)
    return a->end_ns > b->end_ns ? -1 : 1;
  return 0;
}

/* Makes a sorted copy of the closed spans, so that the timeline's lock can be
 * released. */
static kiln_status copy_spans(kiln_timeline *t, kiln__span_record **out,
                              size_t *n)
{
  kiln__span_record *copy;

  *out = NULL;
  *n = 0;
  if (t->spans.n == 0)
    return KILN_OK;
  copy = kiln__alloc(&t->device->rt->alloc, t->spans.n * sizeof *copy);
  if (copy == NULL)
    return kiln__fail_memory("the spans of a timeline");
  for (size_t i = 0; i < t->spans.n; i++) {
    if (kiln__spans(t)[i].state == KILN__SPAN_TIMED)
      copy[(*n)++] = kiln__spans(t)[i];
  }
  qsort(copy, *n, sizeof *copy, by_begin);
  *out = copy;
  return KILN_OK;
}

static kiln_status collect(kiln_timeline *t, kiln__span_record **out, size_t *n)
{
  kiln__relaxed relaxed;
  kiln__scope scope;
  kiln_status st = kiln_device_synchronize(t->device);

  if (st == KILN_OK)
    st = kiln__enter(t->device, &scope);
  if (st != KILN_OK)
    return st;
  kiln__relax(t->device->driver, &relaxed);
  pthread_mutex_lock(&t->lock);
  st = time_all(t);
  if (st == KILN_OK)
    st = copy_spans(t, out, n);
  pthread_mutex_unlock(&t->lock);
  kiln__unrelax(&relaxed);
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_timeline_each(kiln_timeline *t, kiln_span_fn fn, void *user)
{
  kiln__span_record *spans = NULL;
  size_t n = 0;
  kiln_status st;

  if (t == NULL || fn == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the timeline or fn is NULL");
  st = collect(t, &spans, &n);
  for (size_t i = 0; i < n && st == KILN_OK; i++) {
    const kiln_span span = {.name = spans[i].name,
                            .row = spans[i].row,
                            .begin_us = (double)spans[i].begin_ns / 1000,
                            .end_us = (double)spans[i].end_ns / 1000};

    fn(user, &span);
  }
  kiln__free(&t->device->rt->alloc, spans);
  return st;
}

/* ---- The file ------------------------------------------------------------ */

/* Returns the length in bytes of the UTF-8 sequence at `p`, or 0 if the
 * sequence is invalid. */
static size_t sequence(const unsigned char *p)
{
  const size_t n = p[0] < 0x80                    ? 1
                   : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
                   : (p[0] & 0xf0) == 0xe0        ? 3
                   : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                  : 0;

  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  }
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
      (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
    /* the sequence is overlong, a surrogate, or above the last code point */
    return 0;
  return n;
}

/* Appends a JSON string. Bytes that are not UTF-8 become Latin-1 code points.
 */
static void add_string(kiln__buf *b, const char *text)
{
  const unsigned char *p = (const unsigned char *)text;

  kiln__buf_text(b, "\"");
  while (*p != '\0') {
    const size_t n = sequence(p);

    if (*p == '"' || *p == '\\')
      kiln__buf_format(b, "\\%c", *p);
    else if (*p < 0x20 || n == 0)
      kiln__buf_format(b, "\\u%04x", *p);
    else
      kiln__buf_add(b, p, n);
    p += n == 0 ? 1 : n;
  }
  kiln__buf_text(b, "\"");
}

/* Appends a time in nanoseconds as a JSON number in microseconds. The decimal
 * point is '.' in every locale. */
static void add_us(kiln__buf *b, int64_t ns)
{
  const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

  kiln__buf_format(b, "%s%llu.%03u", ns < 0 ? "-" : "",
                   (unsigned long long)(size / 1000), (unsigned)(size % 1000));
}

/* Appends the title of a timeline row for the viewer. If `tid` is 0, the title
 * is that of the process. */
static void add_title(kiln__buf *b, int pid, size_t tid, const char *name)
{
  kiln__buf_format(b,
                   "{\"ph\":\"M\",\"pid\":%d,\"tid\":%zu,\"name\":\"%s\","
                   "\"args\":{\"name\":",
                   pid, tid, tid == 0 ? "process_name" : "thread_name");
  add_string(b, name);
  kiln__buf_text(b, "}},\n");
}

static void add_titles(kiln__buf *b, const kiln_timeline *t, size_t streams,
                       size_t threads)
{
  char name[32];

  add_title(b, 0, 0, "host");
  add_title(b, 1, 0, t->device->info.name);
  for (size_t i = 1; i <= threads; i++) {
    kiln__format(name, sizeof name, "thread %zu", i);
    add_title(b, 0, i, name);
  }
  for (size_t i = 1; i <= streams; i++) {
    kiln__format(name, sizeof name, "stream %zu", i);
    add_title(b, 1, i, name);
  }
}

static void add_span(kiln__buf *b, const kiln__span_record *span)
{
  kiln__buf_format(b, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":",
                   span->row == 0 ? 0 : 1,
                   span->row == 0 ? span->thread : span->row);
  add_string(b, span->name);
  kiln__buf_text(b, ",\"ts\":");
  add_us(b, span->begin_ns);
  kiln__buf_text(b, ",\"dur\":");
  add_us(b, span->end_ns - span->begin_ns);
  kiln__buf_text(b, "},\n");
}

kiln_status kiln_timeline_write(kiln_timeline *t, const char *path)
{
  kiln__span_record *spans = NULL;
  kiln_status st = KILN_OK;
  size_t n = 0, streams, threads;
  kiln__buf b;

  if (t == NULL || path == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the timeline or path is NULL");
  kiln__buf_init(&b, &t->device->rt->alloc);
  KILN_TRY(collect(t, &spans, &n));
  pthread_mutex_lock(&t->lock);
  streams = t->rows.n;
  threads = t->threads.n;
  pthread_mutex_unlock(&t->lock);

  kiln__buf_text(&b, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  add_titles(&b, t, streams, threads);
  for (size_t i = 0; i < n; i++)
    add_span(&b, &spans[i]);
  if (!b.failed)
    b.size -= 2; /* JSON allows no comma after the last element */
  kiln__buf_text(&b, "\n]}\n");
  KILN_TRY(kiln__buf_status(&b, "a trace file"));
  KILN_TRY(kiln__replace_file(path, b.data, b.size, 0644));

done:
  kiln__buf_free(&b);
  kiln__free(&t->device->rt->alloc, spans);
  return st;
}
