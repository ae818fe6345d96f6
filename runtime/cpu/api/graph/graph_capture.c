/* graph_capture.c -- implements stream capture, which turns the commands of a
 * stream into nodes of a graph.
 *
 * Problem: while a stream captures, its commands are not run but collected. The
 * graph must order the commands as the streams would have ordered them.
 *
 * Idea: each capturing stream has tips, which are the nodes that the stream's
 * next command depends on. A command becomes a node after the tips, and then
 * this node is the only tip. An event that is recorded in a capturing stream
 * stores the tips. A stream that waits for the event adds these tips to its own
 * tips. If that stream was not part of the capture, it thereby joins the
 * capture.
 *
 * Invariant: every node of the graph is a tip, or precedes a tip. The tips are
 * those of the streams in the capture and of the streams that were destroyed
 * meanwhile (the orphans). When the capture ends, every tip must precede the
 * tips of the stream that began the capture. Otherwise work would be left
 * unjoined.
 *
 * Calls that would wait for captured work, or mix it with the legacy stream,
 * invalidate the capture, as with the driver. The rules are in CUDA's
 * programming guide, "Stream Capture". machine.graph_lock guards all state of
 * captures. */
#include "../context/api_context.h"
#include "graph_parts.h"

#include <string.h>

typedef struct kiln__cpu_capture capture;

struct kiln__cpu_capture {
  uint64_t id;
  uint64_t thread; /* id of the host thread that began the capture */
  CUstreamCaptureMode mode;
  /* stream that began the capture, and list of the streams in the capture */
  CUstream origin, streams;
  CUgraph graph;
  /* last captured nodes (tips) of streams that were destroyed during the
   * capture */
  CUgraphNode *orphans;
  size_t n_orphans;
  bool given; /* true if the program supplied the graph to capture into */
  bool invalid;
  capture *next;
};

static bool none(void)
{
  return atomic_load(&machine()->n_captures) == 0;
}

/* ---- Tips: the last captured nodes of a stream --------------------------- */

/* Allocates storage for `n` tips of a stream, which are the nodes that its next
 * command depends on. Returns false if there is no memory. */
static bool tips_reserve(CUstream s, size_t n)
{
  CUgraphNode *tips;

  if (n <= s->tips_capacity)
    return true;
  tips = kiln__resize(&machine()->alloc, s->tips, 2 * n * sizeof(CUgraphNode));
  if (tips == NULL)
    return false;
  s->tips = tips;
  s->tips_capacity = 2 * n;
  return true;
}

/* Adds nodes to the stream's tips (the nodes that its next command depends on),
 * each node at most once. Returns false if there is no memory. */
static bool tips_add(CUstream s, const CUgraphNode *nodes, size_t n)
{
  if (!tips_reserve(s, s->n_tips + n))
    return false;
  for (size_t i = 0; i < n; i++) {
    size_t k = 0;

    while (k < s->n_tips && s->tips[k] != nodes[i])
      k++;
    if (k == s->n_tips)
      s->tips[s->n_tips++] = nodes[i];
  }
  return true;
}

/* Replaces the list of graph nodes on which the stream's next node will depend.
 * Returns false if memory runs out; the list is then empty. */
static bool tips_set(CUstream s, const CUgraphNode *nodes, size_t n)
{
  if (!tips_reserve(s, n == 0 ? 1 : n))
    return false;
  s->n_tips = 0;
  return tips_add(s, nodes, n);
}

/* ---- Begin and end of a capture ------------------------------------------ */

static void join(capture *c, CUstream s)
{
  s->capture = c;
  s->next_captured = c->streams;
  c->streams = s;
}

static void leave(capture *c, CUstream s)
{
  CUstream *at = &c->streams;

  while (*at != NULL && *at != s)
    at = &(*at)->next_captured;
  if (*at == s)
    *at = s->next_captured;
  s->capture = NULL;
  s->n_tips = 0;
}

/* Ends a capture. Stores the captured graph in *graph, or frees it if `graph`
 * is NULL. */
static void end(capture *c, CUgraph *graph)
{
  kiln__cpu_machine *m = machine();
  capture **at = &m->captures;

  while (c->streams != NULL)
    leave(c, c->streams);
  while (*at != c)
    at = &(*at)->next;
  *at = c->next;
  atomic_fetch_sub(&m->n_captures, 1);
  if (graph != NULL)
    *graph = c->graph;
  else if (!c->given)
    kiln__cpu_graph_free(c->graph);
  kiln__free(&m->alloc, c->orphans);
  kiln__free(&m->alloc, c);
}

static capture *find(uint64_t id)
{
  capture *c = machine()->captures;

  while (c != NULL && c->id != id)
    c = c->next;
  return c;
}

/* Begins to capture a stream into a new graph. If `graph` is given, the
 * captured nodes are added to that graph and depend on the nodes `after`. */
static CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode *after,
                      size_t n, CUstreamCaptureMode mode)
{
  kiln__cpu_machine *m = machine();
  CUresult rc = CUDA_SUCCESS;
  capture *c;
  CUstream s;

  CU_TRY(valid(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL &&
               mode <= CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_TRY(kiln__cpu_current_stream(handle, &s));
  if (s->legacy)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  c = kiln__calloc(&m->alloc, 1, sizeof *c);
  CU_TRY(allocated(c));
  c->id = kiln__cpu_next_id();
  c->thread = kiln__cpu_this_thread()->id;
  c->mode = mode;
  c->origin = s;
  c->given = graph != NULL;
  lock_graphs();
  if (s->capture != NULL)
    rc = CUDA_ERROR_ILLEGAL_STATE;
  if (rc == CUDA_SUCCESS && !tips_set(s, after, n))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  if (rc == CUDA_SUCCESS) {
    c->graph = graph != NULL ? graph : kiln__cpu_graph_new(false);
    if (c->graph == NULL)
      rc = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (rc == CUDA_SUCCESS) {
    join(c, s);
    c->next = m->captures;
    m->captures = c;
    atomic_fetch_add(&m->n_captures, 1);
  }
  unlock_graphs();
  if (rc != CUDA_SUCCESS)
    kiln__free(&m->alloc, c);
  return rc;
}

CUresult kiln__cpu_streamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
  CU_TRY(kiln__cpu_check_current());
  return begin(stream, NULL, NULL, 0, mode);
}

/* Returns whether all `n` nodes are live handles of nodes of this graph. */
static bool nodes_of(CUgraph graph, const CUgraphNode *nodes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!kiln__cpu_live(nodes[i], KILN__HANDLE_GRAPH_NODE) ||
        nodes[i]->graph != graph)
      return false;
  }
  return true;
}

CUresult kiln__cpu_streamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                             const CUgraphNode *after,
                                             const CUgraphEdgeData *edges,
                                             size_t n, CUstreamCaptureMode mode)
{
  (void)edges;
  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(kiln__cpu_live(graph, KILN__HANDLE_GRAPH) &&
               (after != NULL || n == 0) && nodes_of(graph, after, n)));
  return begin(stream, graph, after, n, mode);
}

static bool all_before_origin(const capture *c, const CUgraphNode *tips,
                              size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!kiln__cpu_node_reaches(c->graph, tips[i], c->origin->tips,
                                c->origin->n_tips))
      return false;
  }
  return true;
}

/* Returns whether the stream that began the capture depends on all work of the
 * other captured streams. */
static bool joined(const capture *c)
{
  for (CUstream s = c->streams; s != NULL; s = s->next_captured) {
    if (s != c->origin && !all_before_origin(c, s->tips, s->n_tips))
      return false;
  }
  return all_before_origin(c, c->orphans, c->n_orphans);
}

/* The graph may be NULL if the program supplied the graph to capture into. */
CUresult kiln__cpu_streamEndCapture(CUstream stream, CUgraph *out)
{
  CUgraph ignored = NULL, *graph = out != NULL ? out : &ignored;
  CUstream s;
  CUresult rc = CUDA_SUCCESS;
  capture *c;

  CU_TRY(kiln__cpu_check_current());
  CU_TRY(kiln__cpu_current_stream(stream, &s));
  lock_graphs();
  c = s->capture;
  if (out == NULL && (c == NULL || !c->given)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else if (c == NULL) {
    rc = CUDA_ERROR_ILLEGAL_STATE;
  } else if (c->origin != s) {
    c->invalid = true;
    rc = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  } else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
             c->thread != kiln__cpu_this_thread()->id) {
    rc = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  } else if (c->invalid || !joined(c)) {
    rc = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                    : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *graph = NULL;
    end(c, NULL);
  } else {
    end(c, graph);
  }
  unlock_graphs();
  return rc;
}

/* Keeps the tips (last captured nodes) of a destroyed stream as orphans of the
 * capture. The stream's work stays in the graph. It still has to be joined,
 * through an event that was recorded before the stream was destroyed. */
static void orphan_tips(capture *c, const struct CUstream_st *s)
{
  CUgraphNode *more =
      kiln__resize(&machine()->alloc, c->orphans,
                   (c->n_orphans + s->n_tips + 1) * sizeof(CUgraphNode));

  if (more == NULL) {
    c->invalid = true;
    return;
  }
  c->orphans = more;
  for (size_t i = 0; i < s->n_tips; i++)
    c->orphans[c->n_orphans++] = s->tips[i];
}

void kiln__cpu_capture_forget(CUstream stream)
{
  capture *c;

  if (none())
    return;
  lock_graphs();
  c = stream->capture;
  if (c != NULL && c->origin == stream) {
    end(c, NULL);
  } else if (c != NULL) {
    orphan_tips(c, stream);
    leave(c, stream);
  }
  unlock_graphs();
}

bool kiln__cpu_graph_in_capture(CUgraph graph)
{
  for (const capture *c = machine()->captures; c != NULL; c = c->next) {
    if (c->graph == graph)
      return true;
  }
  return false;
}

static bool takes_part(const capture *c, CUcontext context, bool blocking_only)
{
  for (CUstream s = c->streams; s != NULL; s = s->next_captured) {
    if (s->context == context && (s->blocking || !blocking_only))
      return true;
  }
  return false;
}

void kiln__cpu_end_captures(CUcontext context)
{
  capture *next;

  lock_graphs();
  for (capture *c = machine()->captures; c != NULL; c = next) {
    next = c->next;
    if (takes_part(c, context, false))
      end(c, NULL);
  }
  unlock_graphs();
}

/* ---- Calls that a capture forbids ---------------------------------------- */

/* Checks a call that waits, allocates or frees. Invalidates each capture whose
 * mode, together with the mode of the calling thread, forbids the call. The
 * caller holds machine.graph_lock. */
static CUresult unsafe(void)
{
  const kiln__cpu_thread *t = kiln__cpu_this_thread();
  CUresult rc = CUDA_SUCCESS;

  if (t->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_SUCCESS;
  for (capture *c = machine()->captures; c != NULL; c = c->next) {
    const bool own =
        c->thread == t->id && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool other = t->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                       c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

    if (own || other) {
      c->invalid = true;
      rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return rc;
}

CUresult kiln__cpu_current_unsafe(CUcontext *out)
{
  CUresult rc = kiln__cpu_current(out);

  if (rc != CUDA_SUCCESS || none())
    return rc;
  lock_graphs();
  rc = unsafe();
  unlock_graphs();
  return rc;
}

/* Checks work of the legacy stream. Such work would wait for every blocking
 * stream, so the call fails while a blocking stream captures. */
static CUresult legacy_rule(CUstream s, bool invalidate)
{
  CUresult rc = CUDA_SUCCESS;

  for (capture *c = machine()->captures; s->legacy && c != NULL; c = c->next) {
    if (takes_part(c, s->context, true)) {
      c->invalid = c->invalid || invalidate;
      rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return rc;
}

CUresult kiln__cpu_capture_sync(CUstream stream)
{
  CUresult rc;

  if (none())
    return CUDA_SUCCESS;
  lock_graphs();
  rc = legacy_rule(stream, true);
  if (rc == CUDA_SUCCESS && stream->capture != NULL) {
    rc = stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                  : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->capture->invalid = true;
  }
  if (rc == CUDA_SUCCESS)
    rc = unsafe();
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_capture_sync_context(CUcontext context)
{
  CUresult rc = CUDA_SUCCESS;

  if (none())
    return CUDA_SUCCESS;
  lock_graphs();
  for (capture *c = machine()->captures; c != NULL; c = c->next) {
    if (takes_part(c, context, false)) {
      c->invalid = true;
      rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  if (rc == CUDA_SUCCESS)
    rc = unsafe();
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_threadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
  kiln__cpu_thread *t = kiln__cpu_this_thread();
  CUstreamCaptureMode old;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(allocated(t));
  CU_TRY(valid(mode != NULL)); /* the driver accepts every mode */
  old = t->mode;
  t->mode = *mode;
  *mode = old;
  return CUDA_SUCCESS;
}

/* ---- Adding stream commands to a captured graph -------------------------- */

/* Makes a node that depends on the stream's tips (last captured nodes). The new
 * node becomes the only tip. */
static CUresult put_node(CUstream s, CUgraphNodeType type, CUgraphNode *node)
{
  capture *c = s->capture;

  if (c->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *node = kiln__cpu_node_new(c->graph, type, s->tips, s->n_tips);
  if (*node == NULL || !tips_set(s, node, 1)) {
    c->invalid = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  (*node)->context = s->context;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_capture_node(CUstream stream, CUgraphNodeType type,
                                CUgraphNode *node)
{
  CUresult rc;

  *node = NULL;
  if (none())
    return CUDA_SUCCESS;
  lock_graphs();
  rc = legacy_rule(stream, true);
  if (rc == CUDA_SUCCESS && stream->capture != NULL)
    rc = put_node(stream, type, node);
  if (rc != CUDA_SUCCESS || *node == NULL) {
    *node = NULL;
    unlock_graphs();
  }
  return rc;
}

void kiln__cpu_capture_node_done(void)
{
  unlock_graphs();
}

static CUgraphNodeType node_type(const kiln__cpu_work *work)
{
  switch (work->kind) {
  case KILN__WORK_KERNEL:
    return CU_GRAPH_NODE_TYPE_KERNEL;
  case KILN__WORK_COPY:
    return CU_GRAPH_NODE_TYPE_MEMCPY;
  case KILN__WORK_FILL:
    return CU_GRAPH_NODE_TYPE_MEMSET;
  case KILN__WORK_HOST:
    return CU_GRAPH_NODE_TYPE_HOST;
  case KILN__WORK_MEM_OP:
    return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  case KILN__WORK_ALLOC:
  case KILN__WORK_FREE:
  case KILN__WORK_EMPTY:
    break;
  }
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

static CUresult take(CUstream s, kiln__cpu_work *work, bool wait, bool *taken)
{
  kiln__cpu_shared *shared;
  CUgraphNode node = NULL;
  CUresult rc;

  if (s->capture == NULL)
    return wait ? unsafe() : CUDA_SUCCESS;
  if (s->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (wait || work->always) {
    s->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  shared = kiln__cpu_share(work);
  if (shared == NULL) {
    s->capture->invalid = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  rc = put_node(s, node_type(work), &node);
  if (rc == CUDA_SUCCESS) {
    node->shared = shared;
    *taken = true;
  } else {
    /* Free only the wrapper of the work, since the caller still owns the
     * work. */
    kiln__free(&machine()->alloc, shared);
  }
  return rc;
}

CUresult kiln__cpu_capture_work(CUstream stream, kiln__cpu_work *work,
                                bool wait, bool *taken)
{
  CUresult rc;

  *taken = false;
  if (none())
    return CUDA_SUCCESS;
  lock_graphs();
  rc = legacy_rule(stream, true);
  if (rc == CUDA_SUCCESS)
    rc = take(stream, work, wait, taken);
  unlock_graphs();
  return rc;
}

bool kiln__cpu_is_capturing(CUcontext context, CUstream handle)
{
  CUstream s;
  bool yes;

  if (none() || kiln__cpu_stream_of(context, handle, &s) != CUDA_SUCCESS)
    return false;
  lock_graphs();
  yes = s->capture != NULL;
  unlock_graphs();
  return yes;
}

/* ---- Events -------------------------------------------------------------- */

/* Stores the stream's tips (last captured nodes) in the event. */
static CUresult record_captured(CUevent event, CUstream s)
{
  kiln__cpu_machine *m = machine();
  CUgraphNode *tips;

  if (s->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  tips = kiln__resize(&m->alloc, event->tips,
                      (s->n_tips + 1) * sizeof(CUgraphNode));
  if (tips == NULL) {
    s->capture->invalid = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (s->n_tips > 0)
    memcpy(tips, s->tips, s->n_tips * sizeof(CUgraphNode));
  event->tips = tips;
  event->n_tips = s->n_tips;
  event->capture_id = s->capture->id;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_capture_record(CUevent event, CUstream stream,
                                  unsigned flags, bool *taken)
{
  CUgraphNode node;
  CUresult rc;

  *taken = false;
  if (none())
    return CUDA_SUCCESS;
  lock_graphs();
  rc = legacy_rule(stream, true);
  if (rc == CUDA_SUCCESS && stream->capture != NULL) {
    *taken = true;
    if ((flags & CU_EVENT_RECORD_EXTERNAL) == 0) {
      rc = record_captured(event, stream);
    } else {
      rc = put_node(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &node);
      if (rc == CUDA_SUCCESS)
        node->event = event;
    }
  }
  unlock_graphs();
  return rc;
}

/* Makes the stream wait for an event of the capture `of_event`. The stream
 * joins this capture unless it is already part of it. `of_event` is NULL if the
 * capture has ended or never existed. */
static CUresult wait_captured(CUstream s, CUevent event, capture *of_event)
{
  capture *c = s->capture;

  if (c != NULL && c != of_event) {
    c->invalid = true;
    if (of_event == NULL)
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    of_event->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (of_event == NULL)
    /* The event was recorded in a capture that has ended. */
    return CUDA_ERROR_CAPTURED_EVENT;
  if (s->legacy) {
    of_event->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (of_event->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (c == NULL) {
    join(of_event, s);
    s->n_tips = 0;
  }
  if (!tips_add(s, event->tips, event->n_tips)) {
    of_event->invalid = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_capture_wait(CUstream stream, CUevent event, unsigned flags,
                                bool *taken)
{
  CUgraphNode node;
  CUresult rc = CUDA_SUCCESS;

  lock_graphs();
  *taken = stream->capture != NULL || event->capture_id != 0;
  if (*taken && (flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    if (stream->capture == NULL)
      rc = CUDA_ERROR_INVALID_VALUE;
    else
      rc = put_node(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &node);
    if (rc == CUDA_SUCCESS)
      node->event = event;
  } else if (*taken) {
    if (stream->capture != NULL && stream->capture->invalid)
      rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else
      rc = wait_captured(stream, event,
                         event->capture_id == 0 ? NULL
                                                : find(event->capture_id));
  } else {
    rc = legacy_rule(stream, true);
  }
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_capture_event(CUevent event)
{
  CUresult rc = CUDA_SUCCESS;
  capture *c;

  lock_graphs();
  if (event->capture_id != 0) {
    rc = CUDA_ERROR_CAPTURED_EVENT;
    c = find(event->capture_id);
    /* This is what NVIDIA's driver returns after the capture was invalidated. */
    if (c != NULL && c->invalid)
      rc = CUDA_ERROR_INVALID_VALUE;
    if (c != NULL)
      c->invalid = true;
  }
  unlock_graphs();
  return rc;
}

/* ---- Queries ------------------------------------------------------------- */

CUresult kiln__cpu_streamIsCapturing(CUstream stream,
                                     CUstreamCaptureStatus *status)
{
  return kiln__cpu_streamGetCaptureInfoV3(stream, status, NULL, NULL, NULL,
                                          NULL, NULL);
}

CUresult kiln__cpu_streamGetCaptureInfoV3(CUstream stream,
                                          CUstreamCaptureStatus *status,
                                          uint64_t *id, CUgraph *graph,
                                          const CUgraphNode **after,
                                          const CUgraphEdgeData **edges,
                                          size_t *n)
{
  CUstream s;
  CUresult rc;
  const capture *c;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(valid(status != NULL));
  lock_graphs();
  rc = legacy_rule(s, false);
  c = s->capture;
  *status = c == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
            : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (rc == CUDA_SUCCESS && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (id != NULL)
      *id = c->id;
    if (graph != NULL)
      *graph = c->graph;
    if (after != NULL)
      *after = s->tips;
    if (edges != NULL)
      *edges = NULL; /* Captured edges have no edge data. */
    if (n != NULL)
      *n = s->n_tips;
  }
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_streamUpdateCaptureDependencies(CUstream stream,
                                                   CUgraphNode *after, size_t n,
                                                   unsigned int flags)
{
  CUstream s;
  CUresult rc = CUDA_SUCCESS;
  bool ok;

  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(valid(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES &&
               (after != NULL || n == 0)));
  lock_graphs();
  if (s->capture == NULL) {
    rc = CUDA_ERROR_ILLEGAL_STATE;
  } else if (s->capture->invalid) {
    rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!nodes_of(s->capture->graph, after, n)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    ok = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES ? tips_set(s, after, n)
                                                     : tips_add(s, after, n);
    rc = ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  unlock_graphs();
  return rc;
}
