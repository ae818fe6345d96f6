/* streams.h -- what contexts, streams, events and graphs share inside api/. */
#ifndef KILN_CPU_STREAMS_H
#define KILN_CPU_STREAMS_H

#include "../machine.h"

/* ---- Threads of the program -------------------------------------------------- */

typedef struct kiln__cpu_thread_stream {
  uint64_t context_id;
  CUstream stream;
  struct kiln__cpu_thread_stream *next;
} kiln__cpu_thread_stream;

typedef struct kiln__cpu_thread {
  uint64_t id; /* unique in the process */
  struct kiln__cpu_pushed {
    CUcontext context;
    uint64_t id; /* tells a context from a later one at the same address */
  } * stack;
  size_t n, capacity;
  unsigned per_thread;              /* in a function for the per-thread default
                                  stream: NULL means that one */
  bool in_callback;                 /* runs a host function of a stream */
  CUstreamCaptureMode mode;         /* cuThreadExchangeStreamCaptureMode */
  kiln__cpu_thread_stream *streams; /* its default stream in each context */
} kiln__cpu_thread;

/* The calling thread's, freed when it ends; NULL: no memory. */
kiln__cpu_thread *kiln__cpu_this_thread(void);

/* Unique number for contexts, streams, grids, captures. */
uint64_t kiln__cpu_next_id(void);

/* A handle given by the program, NULL meaning the current one.
 * CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult kiln__cpu_context_of(CUcontext given, CUcontext *out);
/* An ordinal that exists? */
bool kiln__cpu_device_exists(int device);

/* ---- Marks: points in streams that are reached or not -------------------------- */

/* Also the entry of the queue that leads to the point. Under queue_lock but for
 * refs, which it needs too. */
typedef struct kiln__cpu_mark kiln__cpu_mark;
typedef struct kiln__cpu_edge {
  kiln__cpu_mark *later; /* what waits */
  struct kiln__cpu_edge *next;
} kiln__cpu_edge;

struct kiln__cpu_mark {
  unsigned refs;
  unsigned waiters; /* host threads */
  unsigned unmet;   /* marks that have to be done before */
  unsigned n_edges;
  bool done;
  uint64_t time_ns;             /* when it was reached */
  CUstream stream;              /* until done */
  kiln__cpu_work *work;         /* NULL: nothing to be run */
  kiln__cpu_mark *next;         /* of the stream's queue */
  kiln__cpu_edge *edges;        /* later marks that wait for this one */
  kiln__cpu_edge own[2], *more; /* this one's part in others' edges */
};

kiln__cpu_mark *kiln__cpu_mark_hold(kiln__cpu_mark *mark); /* NULL is fine */
void kiln__cpu_mark_drop(kiln__cpu_mark *mark);
bool kiln__cpu_mark_done(kiln__cpu_mark *mark);
void kiln__cpu_mark_wait(kiln__cpu_mark *mark);

/* A mark outside of any queue, reached when it is said to be. */
kiln__cpu_mark *kiln__cpu_mark_new(void);
void kiln__cpu_mark_reach(kiln__cpu_mark *mark);

/* ---- Streams --------------------------------------------------------------------- */

struct kiln__cpu_capture;

struct CUstream_st {
  CUcontext context;
  uint64_t id;
  unsigned flags;
  int priority;
  bool legacy, blocking, per_thread;
  /* under queue_lock */
  kiln__cpu_mark *first, *tail; /* not yet begun */
  kiln__cpu_mark *last;         /* the newest, done or not; NULL: none yet */
  bool running, has_thread, ending;
  pthread_cond_t wake;
  CUstream next;
  /* capture.c's, under machine.graph_lock */
  struct kiln__cpu_capture *capture;
  CUgraphNode *tips; /* what the next node depends on */
  size_t n_tips, tips_capacity;
  CUstream next_captured;
  int policy; /* cuStreamSetAttribute: synchronisation policy */
};

/* How the caller's thread may help: run the work itself if nothing is before
 * it. */
typedef enum kiln__cpu_how { KILN__LATER, KILN__HERE } kiln__cpu_how;

/* How a call hands its work to a stream, or-ed. */
enum {
  KILN__MAY_RUN_HERE = 1, /* in the caller, if nothing is before it */
  KILN__WAIT = 2,         /* return when it is done */
  KILN__SYNC_CALL = 4     /* one that captures refuse */
};
CUresult kiln__cpu_enqueue_as(CUcontext context, CUstream handle,
                              kiln__cpu_work *work, unsigned manner);

/* A stream of `context`, known to it but not yet a live handle. */
CUresult kiln__cpu_stream_make(CUstream *out, CUcontext context, unsigned flags,
                               int priority);
/* It ends when its queue is empty; do not touch it any more. */
void kiln__cpu_stream_end(CUstream stream);
/* What a handle of the API means. CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_stream_of(CUcontext context, CUstream handle, CUstream *out);
/* Put work (NULL: only a mark) at the end, after the given marks too. *out, if
 * wanted, is the caller's to drop. Takes work over. */
CUresult kiln__cpu_queue_add(CUstream stream, kiln__cpu_work *work,
                             kiln__cpu_how how, kiln__cpu_mark *const *after,
                             size_t n, kiln__cpu_mark **out);
/* Marks that everything issued so far has to pass, held: the caller drops and
 * frees (malloc). NULL with *n > 0: no memory. */
kiln__cpu_mark **kiln__cpu_marks_of_context(CUcontext context, size_t *n);
kiln__cpu_mark **kiln__cpu_marks_of_stream(CUstream stream, size_t *n);
/* Wait for them, drop, free. */
void kiln__cpu_marks_wait(kiln__cpu_mark **marks, size_t n);
/* Every stream of the context ends and its threads are gone. */
void kiln__cpu_end_streams(CUcontext context);

/* ---- Events ----------------------------------------------------------------------- */

struct CUevent_st {
  CUcontext context;
  unsigned flags;
  CUevent next, previous;
  kiln__cpu_mark *mark; /* last record; NULL: none. Under queue_lock. */
  /* last record was captured: by which capture (0: none) and after what.
   * Under machine.graph_lock. */
  uint64_t capture_id;
  CUgraphNode *tips;
  size_t n_tips;
};

/* Make `mark` the event's last record; takes the reference over. */
void kiln__cpu_event_set(CUevent event, kiln__cpu_mark *mark);
/* The same for a caller that holds machine.graph_lock. */
void kiln__cpu_event_put(CUevent event, kiln__cpu_mark *mark);
/* The last record, held; NULL: none. */
kiln__cpu_mark *kiln__cpu_event_mark(CUevent event);
void kiln__cpu_end_events(CUcontext context);

#endif
