/* timeline.h -- the internal interface of a timeline, shared by timeline.c
 * (records spans), timeline_file.c (evaluates spans) and stream.c. The head of
 * timeline.c explains anchors, which are CUDA events with a known time. */
#ifndef KILN_TIMELINE_INTERNAL_H
#define KILN_TIMELINE_INTERNAL_H

#include "device.h"

enum { KILN__SPAN_NAME = 64 };

typedef enum kiln__span_state {
  KILN__SPAN_OPEN = 0,
  /* the span has ended, but its times are not yet read from the CUDA events */
  KILN__SPAN_CLOSED,
  KILN__SPAN_TIMED,  /* the members begin_ns and end_ns are valid */
  KILN__SPAN_DROPPED /* the driver refused to record the span */
} kiln__span_state;

/* One span. For a span on a stream, `begin` and `end` are CUDA events until
 * their times are read. */
typedef struct kiln__span_record {
  char name[KILN__SPAN_NAME];
  kiln__span_state state;
  /* number of the span's stream, counted from 1; 0 means a host span */
  int row;
  int thread; /* number of the span's host thread, counted from 1 */
  /* Index of the anchor (reference event) that gives the times of the span. */
  size_t anchor;
  size_t outer; /* index of the enclosing open span, or KILN__NONE */
  CUevent begin, end;
  /* begin and end in nanoseconds since the timeline was created */
  int64_t begin_ns, end_ns;
} kiln__span_record;

#define KILN__NONE SIZE_MAX

/* A row of the timeline: a stream or a host thread that has spans. */
typedef struct kiln__row {
  CUstream stream;
  pthread_t thread;
  size_t open; /* index of the innermost open span, or KILN__NONE */
} kiln__row;

/* An anchor: a CUDA event whose time on the timeline's axis is known or can be
 * computed. */
typedef struct kiln__anchor {
  CUevent event;
  bool timed; /* true if the member `ns` is valid */
  /* time of the anchor in nanoseconds since the timeline was created */
  int64_t ns;
} kiln__anchor;

/* A list of items of equal size, stored in an array that grows. */
typedef struct kiln__list {
  void *items;
  size_t n, capacity;
} kiln__list;

struct kiln_timeline {
  kiln_device *device;
  uint64_t origin_ns;   /* host clock at the first anchor, in nanoseconds */
  uint64_t anchored_ns; /* host clock at the last anchor, in nanoseconds */
  pthread_mutex_t lock;
  kiln__list spans; /* list of kiln__span_record */
  /* list of kiln__row for streams; stream number = index + 1 */
  kiln__list rows;
  kiln__list threads; /* list of kiln__row for host threads */
  kiln__list anchors; /* list of kiln__anchor */
  kiln__list idle;    /* list of CUevent that later spans reuse */
};

static inline kiln__span_record *kiln__spans(const kiln_timeline *t)
{
  return t->spans.items;
}

static inline kiln__anchor *kiln__anchors(const kiln_timeline *t)
{
  return t->anchors.items;
}

/* Returns space for one more item of `size` bytes at the end of the list; the
 * caller increments list->n. Returns NULL if memory ran out. The caller holds
 * the timeline's lock. */
void *kiln__list_next(kiln__list *list, const kiln_allocator *a, size_t size);
/* Keeps a CUDA event for reuse by later spans, or destroys the event if memory
 * runs out. Call it between kiln__enter() and kiln__leave(), with the
 * timeline's lock held. */
void kiln__timeline_keep(kiln_timeline *t, CUevent event);

#endif
