/* streams.h -- threads, marks, streams and events: what contexts, streams and
 * graphs share. stream/queue.c explains how streams run. */
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
  uint64_t id; /* unique in the process, never reused */
  struct kiln__cpu_pushed {
    CUcontext context;
    uint64_t id; /* differs for a later context at the same address */
  } * stack;
  size_t n, capacity;
  unsigned per_thread;              /* above 0 inside a _ptsz or _ptds function:
                                  stream NULL is the thread's own */
  bool in_callback;                 /* runs a host function of a stream */
  CUstreamCaptureMode mode;         /* cuThreadExchangeStreamCaptureMode */
  kiln__cpu_thread_stream *streams; /* its default stream, per context */
} kiln__cpu_thread;

/* Returns the calling thread's state, made at first use and freed when the
 * thread ends; NULL if there is no memory. */
kiln__cpu_thread *kiln__cpu_this_thread(void);

/* Returns a number that is unique in the process: for contexts, streams, grids
 * and captures. Safe from any thread. */
uint64_t kiln__cpu_next_id(void);

/* Stores the context that the program means; NULL means the current one.
 * CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult kiln__cpu_context_of(CUcontext given, CUcontext *out);
/* Does a device of this ordinal exist? */
bool kiln__cpu_device_exists(int device);

/* ---- Marks ---------------------------------------------------------------------- */

/* A mark is a point in a stream that is done or not, and at the same time the
 * queue entry whose work leads to that point. Events, waits and launches of
 * graphs hold references to marks. All members are under machine.queue_lock. */
typedef struct kiln__cpu_mark kiln__cpu_mark;
typedef struct kiln__cpu_edge {
  kiln__cpu_mark *later; /* the mark that waits */
  struct kiln__cpu_edge *next;
} kiln__cpu_edge;

struct kiln__cpu_mark {
  unsigned refs;
  unsigned waiters; /* host threads in kiln__cpu_mark_wait() */
  unsigned unmet;   /* marks that it waits for and that are not done */
  unsigned n_edges; /* edges of own or more that are in use */
  bool done;
  uint64_t time_ns;      /* when it became done, for event timing */
  CUstream stream;       /* NULL once it is done */
  kiln__cpu_work *work;  /* NULL: there is nothing to run */
  kiln__cpu_mark *next;  /* in the stream's queue */
  kiln__cpu_edge *edges; /* marks that wait for this one */
  /* Storage of the edges through which this mark waits for others: two without
   * an allocation, which nearly always suffice, else `more`. */
  kiln__cpu_edge own[2], *more;
};

/* Adds or drops a reference; NULL does nothing. The last drop frees it. */
kiln__cpu_mark *kiln__cpu_mark_hold(kiln__cpu_mark *mark);
void kiln__cpu_mark_drop(kiln__cpu_mark *mark);
bool kiln__cpu_mark_done(kiln__cpu_mark *mark);
/* Blocks until the mark is done. */
void kiln__cpu_mark_wait(kiln__cpu_mark *mark);

/* Makes a mark outside of any queue, for an event that a graph records. It is
 * done when kiln__cpu_mark_reach() is called. NULL: no memory. */
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
  kiln__cpu_mark *first, *tail; /* queue of marks that have not begun */
  kiln__cpu_mark *last;         /* the newest mark, done or not; or NULL */
  bool running, has_thread, ending;
  pthread_cond_t wake;
  CUstream next;
  /* graph/graph_capture.c, under machine.graph_lock */
  struct kiln__cpu_capture *capture; /* NULL: the stream does not capture */
  CUgraphNode *tips; /* nodes that the next captured node depends on */
  size_t n_tips, tips_capacity;
  CUstream next_captured;
  int policy; /* synchronisation policy, returned by the getter; no effect */
};

/* KILN__HERE lets the caller's thread run the work itself if nothing is before
 * it in the stream; that saves a switch of threads. */
typedef enum kiln__cpu_how { KILN__LATER, KILN__HERE } kiln__cpu_how;

/* How a call enqueues its work; a set of bits. */
enum {
  KILN__MAY_RUN_HERE = 1, /* the caller runs it, if nothing is before it */
  KILN__WAIT = 2,         /* returns when the work is done */
  KILN__SYNC_CALL = 4     /* a synchronous call, which captures refuse */
};
/* As kiln__cpu_enqueue(), with `manner` from the bits above. */
CUresult kiln__cpu_enqueue_as(CUcontext context, CUstream handle,
                              kiln__cpu_work *work, unsigned manner);

/* Makes a stream of `context` and lists it there. The caller makes it a live
 * handle. CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_stream_make(CUstream *out, CUcontext context, unsigned flags,
                               int priority);
/* Ends a stream: it is freed when its queue has run empty. The caller must not
 * use it any more. */
void kiln__cpu_stream_end(CUstream stream);
/* Stores the stream that a handle of the program means, the default streams
 * included. CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_stream_of(CUcontext context, CUstream handle, CUstream *out);
/* Puts a mark with `work` at the end of the stream; `work` NULL makes a mark
 * that runs nothing. It also waits for the `n` marks of `after`, where NULL and
 * done ones do not count. If `out` is not NULL, the caller gets a reference and
 * has to drop it. The callee owns `work`, also on failure.
 * CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY (also: no thread could be made). */
CUresult kiln__cpu_queue_add(CUstream stream, kiln__cpu_work *work,
                             kiln__cpu_how how, kiln__cpu_mark *const *after,
                             size_t n, kiln__cpu_mark **out);
/* Returns the marks that are done when all work issued so far is done, each
 * with a reference. kiln__cpu_marks_wait() consumes them. NULL: no memory. */
kiln__cpu_mark **kiln__cpu_marks_of_context(CUcontext context, size_t *n);
kiln__cpu_mark **kiln__cpu_marks_of_stream(CUstream stream, size_t *n);
/* Waits for the marks, drops their references and frees the array. */
void kiln__cpu_marks_wait(kiln__cpu_mark **marks, size_t n);
/* Ends every stream of a context and waits until their threads are gone. */
void kiln__cpu_end_streams(CUcontext context);

/* ---- Events ----------------------------------------------------------------------- */

struct CUevent_st {
  CUcontext context;
  unsigned flags;
  CUevent next, previous;
  kiln__cpu_mark *mark; /* the last record; or NULL. Under queue_lock. */
  /* If the last record was captured: the number of that capture, else 0, and
   * the nodes that a wait depends on. Under machine.graph_lock. */
  uint64_t capture_id;
  CUgraphNode *tips;
  size_t n_tips;
};

/* Makes `mark` the event's last record; the event owns the reference. */
void kiln__cpu_event_set(CUevent event, kiln__cpu_mark *mark);
/* The same for a caller that holds machine.graph_lock. */
void kiln__cpu_event_put(CUevent event, kiln__cpu_mark *mark);
/* Returns a reference to the last record; NULL: there is none. */
kiln__cpu_mark *kiln__cpu_event_mark(CUevent event);
void kiln__cpu_end_events(CUcontext context);

#endif
