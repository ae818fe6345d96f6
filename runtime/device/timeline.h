/* timeline.h -- the inside of a recorder, shared by timeline.c (records),
 * timeline_file.c (evaluates) and stream.c. The head of timeline.c explains anchors. */
#ifndef KILN_TIMELINE_INTERNAL_H
#define KILN_TIMELINE_INTERNAL_H

#include "device.h"

enum { KILN__SPAN_NAME = 64 };

typedef enum kiln__span_state {
  KILN__SPAN_OPEN = 0,
  KILN__SPAN_CLOSED, /* ended; its times are still in the events */
  KILN__SPAN_TIMED,  /* begin_ns and end_ns are known */
  KILN__SPAN_DROPPED /* the driver refused to record it */
} kiln__span_state;

/* One span. On a stream, `begin` and `end` are events until its times are read. */
typedef struct kiln__span_record {
  char name[KILN__SPAN_NAME];
  kiln__span_state state;
  int row;       /* 0: host; else number of the stream, from 1 */
  int thread;    /* on the host: number of the thread, from 1 */
  size_t anchor; /* index of the anchor that it is timed against */
  size_t outer;  /* the open span around it, or KILN__NONE */
  CUevent begin, end;
  int64_t begin_ns, end_ns; /* since the recorder was made */
} kiln__span_record;

#define KILN__NONE SIZE_MAX

/* A stream or a host thread that has spans. */
typedef struct kiln__row {
  CUstream stream;
  pthread_t thread;
  size_t open; /* innermost open span, or KILN__NONE */
} kiln__row;

/* An event whose time on the axis is known or can be computed. */
typedef struct kiln__anchor {
  CUevent event;
  bool timed; /* ns is known */
  int64_t ns; /* since the recorder was created */
} kiln__anchor;

/* A growing array. */
typedef struct kiln__list {
  void *items;
  size_t n, capacity;
} kiln__list;

struct kiln_timeline {
  kiln_device *device;
  uint64_t origin_ns;   /* host clock at the first anchor */
  uint64_t anchored_ns; /* host clock at the last one */
  pthread_mutex_t lock;
  kiln__list spans;   /* of kiln__span_record */
  kiln__list rows;    /* of kiln__row: streams; number = index + 1 */
  kiln__list threads; /* of kiln__row: host threads */
  kiln__list anchors; /* of kiln__anchor */
  kiln__list idle;    /* of CUevent, for later spans */
};

static inline kiln__span_record *kiln__spans(const kiln_timeline *t)
{
  return t->spans.items;
}

static inline kiln__anchor *kiln__anchors(const kiln_timeline *t)
{
  return t->anchors.items;
}

/* Returns space for one more item of `size` bytes at the end; the caller increments
 * list->n. NULL: no memory. Needs the lock. */
void *kiln__list_next(kiln__list *list, const kiln_allocator *a, size_t size);
/* Keeps an event for later spans; destroys it if there is no memory. Needs a scope and the
 * lock. */
void kiln__timeline_keep(kiln_timeline *t, CUevent event);

#endif
