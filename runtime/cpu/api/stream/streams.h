/* streams.h -- what contexts, streams, events and graphs share inside api/. */
#ifndef KILN_CPU_STREAMS_H
#define KILN_CPU_STREAMS_H

#include "machine.h"

/* ---- Threads of the program -------------------------------------------------- */

typedef struct kiln__thread_stream {
  uint64_t context_id;
  CUstream stream;
  struct kiln__thread_stream *next;
} kiln__thread_stream;

typedef struct kiln__thread {
  uint64_t id; /* unique in the process */
  struct kiln__pushed {
    CUcontext context;
    uint64_t id; /* tells a context from a later one at the same address */
  } * stack;
  size_t n, capacity;
  unsigned per_thread;          /* in a function for the per-thread default
                                  stream: NULL means that one */
  bool in_callback;             /* runs a host function of a stream */
  CUstreamCaptureMode mode;     /* cuThreadExchangeStreamCaptureMode */
  kiln__thread_stream *streams; /* its default stream in each context */
} kiln__thread;

/* The calling thread's, freed when it ends; NULL: no memory. */
kiln__thread *kiln__this_thread(void);

/* Unique number for contexts, streams, grids, captures. */
uint64_t kiln__next_id(void);

/* A handle given by the program, NULL meaning the current one.
 * CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult kiln__context_of(CUcontext given, CUcontext *out);
/* An ordinal that exists? */
bool kiln__device_exists(int device);

/* ---- Marks: points in streams that are reached or not -------------------------- */

/* Also the entry of the queue that leads to the point. Under queue_lock but for
 * refs, which it needs too. */
typedef struct kiln__mark kiln__mark;
typedef struct kiln__edge {
  kiln__mark *later; /* what waits */
  struct kiln__edge *next;
} kiln__edge;

struct kiln__mark {
  unsigned refs;
  unsigned waiters; /* host threads */
  unsigned unmet;   /* marks that have to be done before */
  unsigned n_edges;
  bool done;
  uint64_t time_ns;         /* when it was reached */
  CUstream stream;          /* until done */
  kiln__work *work;         /* NULL: nothing to be run */
  kiln__mark *next;         /* of the stream's queue */
  kiln__edge *edges;        /* later marks that wait for this one */
  kiln__edge own[2], *more; /* this one's part in others' edges */
};

kiln__mark *kiln__mark_hold(kiln__mark *mark); /* NULL is fine */
void kiln__mark_drop(kiln__mark *mark);
bool kiln__mark_done(kiln__mark *mark);
void kiln__mark_wait(kiln__mark *mark);

/* A mark outside of any queue, reached when it is said to be. */
kiln__mark *kiln__mark_new(void);
void kiln__mark_reach(kiln__mark *mark);

/* ---- Streams --------------------------------------------------------------------- */

struct kiln__capture;

struct CUstream_st {
  CUcontext context;
  uint64_t id;
  unsigned flags;
  int priority;
  bool legacy, blocking, per_thread;
  /* under queue_lock */
  kiln__mark *first, *tail; /* not yet begun */
  kiln__mark *last;         /* the newest, done or not; NULL: none yet */
  bool running, has_thread, ending;
  pthread_cond_t wake;
  CUstream next;
  /* capture.c's, under machine.graph_lock */
  struct kiln__capture *capture;
  CUgraphNode *tips; /* what the next node depends on */
  size_t n_tips, tips_capacity;
  CUstream next_captured;
  int policy; /* cuStreamSetAttribute: synchronisation policy */
};

/* How the caller's thread may help: run the work itself if nothing is before
 * it. */
typedef enum kiln__how { KILN__LATER, KILN__HERE } kiln__how;

/* How a call hands its work to a stream, or-ed. */
enum {
  KILN__MAY_RUN_HERE = 1, /* in the caller, if nothing is before it */
  KILN__WAIT = 2,         /* return when it is done */
  KILN__SYNC_CALL = 4     /* one that captures refuse */
};
CUresult kiln__enqueue_as(CUcontext context, CUstream handle, kiln__work *work,
                          unsigned manner);

/* A stream of `context`, known to it but not yet a live handle. */
CUresult kiln__stream_make(CUstream *out, CUcontext context, unsigned flags,
                           int priority);
/* It ends when its queue is empty; do not touch it any more. */
void kiln__stream_end(CUstream stream);
/* What a handle of the API means. CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__stream_of(CUcontext context, CUstream handle, CUstream *out);
/* Put work (NULL: only a mark) at the end, after the given marks too. *out, if
 * wanted, is the caller's to drop. Takes work over. */
CUresult kiln__queue_add(CUstream stream, kiln__work *work, kiln__how how,
                         kiln__mark *const *after, size_t n, kiln__mark **out);
/* Marks that everything issued so far has to pass, held: the caller drops and
 * frees (malloc). NULL with *n > 0: no memory. */
kiln__mark **kiln__marks_of_context(CUcontext context, size_t *n);
kiln__mark **kiln__marks_of_stream(CUstream stream, size_t *n);
/* Wait for them, drop, free. */
void kiln__marks_wait(kiln__mark **marks, size_t n);
/* Every stream of the context ends and its threads are gone. */
void kiln__end_streams(CUcontext context);

/* ---- Events ----------------------------------------------------------------------- */

struct CUevent_st {
  CUcontext context;
  unsigned flags;
  CUevent next, previous;
  kiln__mark *mark; /* last record; NULL: none. Under queue_lock. */
  /* last record was captured: by which capture (0: none) and after what.
   * Under machine.graph_lock. */
  uint64_t capture_id;
  CUgraphNode *tips;
  size_t n_tips;
};

/* Make `mark` the event's last record; takes the reference over. */
void kiln__event_set(CUevent event, kiln__mark *mark);
/* The same for a caller that holds machine.graph_lock. */
void kiln__event_put(CUevent event, kiln__mark *mark);
/* The last record, held; NULL: none. */
kiln__mark *kiln__event_mark(CUevent event);
void kiln__end_events(CUcontext context);

#endif
