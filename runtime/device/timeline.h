/* timeline.h -- inside of a recorder. */
#ifndef KILN_TIMELINE_INTERNAL_H
#define KILN_TIMELINE_INTERNAL_H

#include "device.h"

enum { KILN__SPAN_NAME = 64 };

typedef enum kiln__span_state {
  KILN__SPAN_OPEN = 0,
  KILN__SPAN_CLOSED, /* ended; on a stream, its times are still in events */
  KILN__SPAN_TIMED,  /* begin_ns and end_ns are known */
  KILN__SPAN_DROPPED /* the driver refused to record it */
} kiln__span_state;

typedef struct kiln__span_record {
  char name[KILN__SPAN_NAME];
  kiln__span_state state;
  int row;    /* 0: host */
  int thread; /* on the host: which thread, from 1 */
  size_t anchor;
  size_t outer; /* the open span around it, or KILN__NONE */
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

/* Events are timed against an anchor that is at most some seconds older: the
 * driver gives differences as float, 24 bits that lose microseconds soon. */
typedef struct kiln__anchor {
  CUevent event;
  bool timed;
  int64_t ns;
} kiln__anchor;

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
  kiln__list idle;    /* of CUevent, to be used again */
};

static inline kiln__span_record *kiln__spans(const kiln_timeline *t)
{
  return t->spans.items;
}

static inline kiln__anchor *kiln__anchors(const kiln_timeline *t)
{
  return t->anchors.items;
}

/* Room for one more item at the end, not counted yet; NULL: no memory. */
void *kiln__list_next(kiln__list *list, const kiln_allocator *a, size_t size);
/* Keep an event for later; within a scope. */
void kiln__timeline_keep(kiln_timeline *t, CUevent event);

#endif
