/* streams.h -- declares the state of host threads, queue entries (marks),
 * streams and events, which contexts, streams and graphs share. */
#ifndef KILN_CPU_STREAMS_H
#define KILN_CPU_STREAMS_H

#include "../machine.h"

/* ---- Threads of the program ---------------------------------------------- */

typedef struct kiln__cpu_thread_stream {
  uint64_t context_id;
  CUstream stream;
  struct kiln__cpu_thread_stream *next;
} kiln__cpu_thread_stream;

typedef struct kiln__cpu_thread {
  uint64_t id; /* id of the thread, unique in the process and never reused */
  struct kiln__cpu_pushed {
    CUcontext context;
    /* the context's number; detects a later context at the same address */
    uint64_t object;
  } * stack;
  size_t n, capacity;
  /* number of active _ptsz or _ptds calls of this thread; if it is above 0,
   * stream NULL means the thread's own stream */
  unsigned per_thread;
  bool in_callback; /* true while the thread runs a host function of a stream */
  /* capture mode that cuThreadExchangeStreamCaptureMode sets */
  CUstreamCaptureMode mode;
  /* default streams of the thread, one per context */
  kiln__cpu_thread_stream *streams;
} kiln__cpu_thread;

/* Returns the calling thread's state. The state is made at first use and freed
 * when the thread ends. Returns NULL if there is no memory. */
kiln__cpu_thread *kiln__cpu_this_thread(void);

/* Returns a number that is unique in the process. Contexts, streams, grids and
 * captures receive their numbers from this function. Thread-safe. */
uint64_t kiln__cpu_next_id(void);

/* Stores the context `given`, or the current context if `given` is NULL.
 * Returns CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT,
 * or CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult kiln__cpu_context_of(CUcontext given, CUcontext *out);

/* ---- Queue entries (marks) ----------------------------------------------- */

/* A mark is an entry of a stream's queue, with the work that the stream runs.
 * It is done when the stream has passed this point. Events, waits and launches
 * of graphs hold references to marks. machine.queue_lock guards all members. */
typedef struct kiln__cpu_mark kiln__cpu_mark;
typedef struct kiln__cpu_edge {
  /* queue entry that waits for the entry which holds this edge */
  kiln__cpu_mark *later;
  struct kiln__cpu_edge *next;
} kiln__cpu_edge;

struct kiln__cpu_mark {
  unsigned refs;
  unsigned waiters; /* number of host threads in kiln__cpu_mark_wait() */
  /* number of unfinished queue entries that this entry waits for */
  unsigned unmet;
  unsigned n_edges; /* number of used edges in `own` or `more` */
  bool done;
  /* time at which the stream reached this entry, for cuEventElapsedTime */
  uint64_t time_ns;
  CUstream stream;       /* stream of the entry; NULL once the entry is done */
  kiln__cpu_work *work;  /* work to run; NULL if the entry runs nothing */
  kiln__cpu_mark *next;  /* next entry in the stream's queue */
  kiln__cpu_edge *edges; /* list of edges to entries that wait for this entry */
  /* Storage of the edges through which this queue entry waits for other
   * entries. Two edges fit into `own` without an allocation. This nearly always
   * suffices; otherwise `more` holds the edges. */
  kiln__cpu_edge own[2], *more;
};

/* The first function adds a reference to a queue entry, the second releases
 * one. Both accept NULL and then do nothing. The entry is freed with its last
 * reference. */
kiln__cpu_mark *kiln__cpu_mark_hold(kiln__cpu_mark *mark);
void kiln__cpu_mark_drop(kiln__cpu_mark *mark);
bool kiln__cpu_mark_done(kiln__cpu_mark *mark);
/* Blocks the calling thread until the queue entry is done. */
void kiln__cpu_mark_wait(kiln__cpu_mark *mark);

/* Makes a kiln__cpu_mark that is in no queue, for an event that a graph
 * records. The mark is done when kiln__cpu_mark_reach() is called. Returns NULL
 * if there is no memory. */
kiln__cpu_mark *kiln__cpu_mark_new(void);
void kiln__cpu_mark_reach(kiln__cpu_mark *mark);

/* ---- Streams ------------------------------------------------------------- */

struct kiln__cpu_capture;

struct CUstream_st {
  CUcontext context;
  uint64_t id;
  unsigned flags;
  int priority;
  bool legacy, blocking, per_thread;
  /* machine.queue_lock guards the following members. */
  kiln__cpu_mark *first, *tail; /* queue of entries that have not begun */
  /* newest queue entry of the stream, done or not; NULL if none */
  kiln__cpu_mark *last;
  bool running, has_thread, ending;
  pthread_cond_t wake;
  CUstream next;
  /* Members that graph/graph_capture.c uses, guarded by machine.graph_lock. */
  /* capture that the stream takes part in, or NULL */
  struct kiln__cpu_capture *capture;
  CUgraphNode *tips; /* graph nodes that the next captured node depends on */
  size_t n_tips, tips_capacity;
  CUstream next_captured;
  /* idle bytes that launches of graphs left, valid if graph_trims is the
   * device's number of trims; guarded by machine.lock */
  uint64_t graph_idle, graph_trims;
  int policy; /* synchronisation policy, which is stored for the getter only */
};

/* KILN__HERE allows the caller's thread to run the work itself if no earlier
 * work of the stream is unfinished. That avoids a thread switch. */
typedef enum kiln__cpu_how { KILN__LATER, KILN__HERE } kiln__cpu_how;

/* Flags that specify how a call enqueues its work. A call takes a set of these
 * flags. */
enum {
  /* the calling thread may run the work if the stream has no earlier work */
  KILN__MAY_RUN_HERE = 1,
  KILN__WAIT = 2,     /* the call returns when the work is done */
  KILN__SYNC_CALL = 4 /* the call is synchronous, which captures forbid */
};
/* Does the same as kiln__cpu_enqueue(). `manner` is a set of the flags
 * KILN__MAY_RUN_HERE, KILN__WAIT and KILN__SYNC_CALL. */
CUresult kiln__cpu_enqueue_as(CUcontext context, CUstream handle,
                              kiln__cpu_work *work, unsigned manner);

/* Makes a stream of `context` and adds it to the context's list of streams. The
 * caller makes the stream a live handle. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_stream_make(CUstream *out, CUcontext context, unsigned flags,
                               int priority);
/* Ends a stream. The stream is freed when its queue is empty. The caller must
 * not use the stream any more. */
void kiln__cpu_stream_end(CUstream stream);
/* Stores the stream that a handle of the program refers to, which may be a
 * default stream. Returns CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE, or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_stream_of(CUcontext context, CUstream handle, CUstream *out);
/* Does the same as kiln__cpu_stream_of() in the current context, which it
 * checks with kiln__cpu_current(). */
CUresult kiln__cpu_current_stream(CUstream handle, CUstream *out);
/* Puts an entry with `work` at the end of the stream's queue. If `work` is
 * NULL, the entry runs nothing. The entry also waits for the `n` entries in
 * `after`, where NULL and finished entries do not count. If `out` is not NULL,
 * the caller receives a reference to the entry and has to release it. The
 * callee owns `work`, also on failure.
 *
 * Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY if there is no memory or no
 * thread could be created. */
CUresult kiln__cpu_queue_add(CUstream stream, kiln__cpu_work *work,
                             kiln__cpu_how how, kiln__cpu_mark *const *after,
                             size_t n, kiln__cpu_mark **out);
/* Returns an array of queue entries that are done when all work issued so far
 * to the context or stream is done. The array holds a reference to each entry.
 * kiln__cpu_marks_wait() releases the references and frees the array. Returns
 * NULL if there is no memory. */
kiln__cpu_mark **kiln__cpu_marks_of_context(CUcontext context, size_t *n);
kiln__cpu_mark **kiln__cpu_marks_of_stream(CUstream stream, size_t *n);
/* Waits for the queue entries, releases their references and frees the
 * array. */
void kiln__cpu_marks_wait(kiln__cpu_mark **marks, size_t n);
/* Ends every stream of a context and waits until the threads of the streams
 * have ended. */
void kiln__cpu_end_streams(CUcontext context);

/* ---- Events -------------------------------------------------------------- */

struct CUevent_st {
  CUcontext context;
  unsigned flags;
  CUevent next, previous;
  /* queue entry of the last record, or NULL; guarded by machine.queue_lock */
  kiln__cpu_mark *mark;
  /* Capture state of the event: the number of the capture that contains the
   * last record (0 without a capture), and the nodes that a wait for the event
   * depends on. machine.graph_lock guards these members. */
  uint64_t capture_id;
  CUgraphNode *tips;
  size_t n_tips;
  /* state that other processes see, for interprocess events; else NULL */
  struct kiln__cpu_event_page *page;
};

/* Makes the queue entry `mark` the event's last record. The event takes over
 * the caller's reference. */
void kiln__cpu_event_set(CUevent event, kiln__cpu_mark *mark);
/* Does the same as kiln__cpu_event_set(), for a caller that holds
 * machine.graph_lock. */
void kiln__cpu_event_put(CUevent event, kiln__cpu_mark *mark);
/* Returns a reference to the queue entry of the event's last record, or NULL if
 * the event was never recorded. */
kiln__cpu_mark *kiln__cpu_event_mark(CUevent event);
void kiln__cpu_end_events(CUcontext context);

/* Functions on interprocess events, defined in event_ipc.c. They make, open and free
 * event->page, add to the stream what records the event, and make the stream wait. */
CUresult kiln__cpu_event_page_make(CUevent event);
CUresult kiln__cpu_event_page_open(CUevent event,
                                   const CUipcEventHandle *handle);
void kiln__cpu_event_page_free(CUevent event);
CUresult kiln__cpu_event_page_record(CUevent event, CUstream stream);
CUresult kiln__cpu_event_page_wait(CUevent event, CUstream stream);
/* Returns whether the last record of the event, in any process, is done. */
bool kiln__cpu_event_page_done(const struct CUevent_st *event);

#endif
