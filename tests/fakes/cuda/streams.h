/* streams.h -- the part of fake_cuda.c that implements streams, capture, graphs
 * and events. */

/* ---- Streams and graphs ------------------------------------------------- */

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags,
                                           int priority)
{
  object *stream;

  ENTER(streamCreateWithPriority, A_CONTEXT);
  if (priority > 0 || priority < -5)
    return CUDA_ERROR_INVALID_VALUE;
  stream = make(STREAM, current());
  stream->flags = flags;
  stream->priority = priority;
  *out = (CUstream)stream;
  return CUDA_SUCCESS;
}

static void end_capture(object *stream)
{
  if (stream->capture == CU_STREAM_CAPTURE_STATUS_NONE)
    return;
  stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
  atomic_fetch_sub(&all_captures, 1);
  if (stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
    atomic_fetch_sub(&global_captures, 1);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle)
{
  object *stream;

  ENTER(streamDestroy, STARTED);
  NEED_OWN(stream, handle, STREAM);
  end_capture(stream);
  destroy(stream);
  return CUDA_SUCCESS;
}

static bool legacy_tied(CUstream handle)
{
  bool tied = false;

  if ((uintptr_t)handle > 1)
    return false;
  pthread_mutex_lock(&lock);
  for (object *o = live; o != NULL; o = o->next)
    tied |= o->kind == STREAM && o->capture != 0 &&
            (o->flags & CU_STREAM_NON_BLOCKING) == 0 && o->context == current();
  pthread_mutex_unlock(&lock);
  return tied;
}

/* Waits for a stream. If the stream is being captured, this invalidates the
 * capture. */
static CUresult wait_for(CUstream handle, const char *call)
{
  object *stream;

  if (!stream_of(handle, &stream, call))
    return CUDA_ERROR_INVALID_HANDLE;
  if (legacy_tied(handle)) {
    spoil_captures();
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream != NULL && stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
  ENTER(streamSynchronize, A_CONTEXT);
  return wait_for(stream, __func__);
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
  ENTER(streamQuery, A_CONTEXT);
  return wait_for(stream, __func__);
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event,
                                  unsigned flags)
{
  object *s;

  ENTER(streamWaitEvent, A_CONTEXT);
  if (!stream_of(stream, &s, __func__) || find(event, EVENT) == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream handle,
                                    CUstreamCaptureStatus *status)
{
  object *stream;

  ENTER(streamIsCapturing, A_CONTEXT);
  NEED_STREAM(stream, handle);
  if (legacy_tied(handle))
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = stream == NULL ? CU_STREAM_CAPTURE_STATUS_NONE : stream->capture;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
  const object *stream;

  ENTER(streamGetCtx, A_CONTEXT);
  NEED_LIVE(stream, handle, STREAM);
  *out = (CUcontext)stream->context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
  object *stream;

  ENTER(streamGetPriority, A_CONTEXT);
  NEED_STREAM(stream, handle);
  *priority = stream == NULL ? 0 : stream->priority;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
  object *stream;

  ENTER(streamGetFlags, A_CONTEXT);
  NEED_STREAM(stream, handle);
  *flags = stream == NULL ? 0 : stream->flags;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle,
                                        CUstreamCaptureMode mode)
{
  object *stream;

  ENTER(streamBeginCapture, A_CONTEXT);
  if (!stream_of(handle, &stream, __func__) || stream == NULL)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  stream->capture_mode = mode;
  stream->capturer = pthread_self();
  stream->nodes = 0;
  atomic_fetch_add(&all_captures, 1);
  if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
    atomic_fetch_add(&global_captures, 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
  object *stream, *graph;
  bool spoiled;

  ENTER(streamEndCapture, A_CONTEXT);
  *out = NULL;
  if (!stream_of(handle, &stream, __func__) || stream == NULL ||
      stream->capture == CU_STREAM_CAPTURE_STATUS_NONE)
    return CUDA_ERROR_ILLEGAL_STATE;
  spoiled = stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  end_capture(stream);
  if (spoiled)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graph = make(GRAPH, NULL);
  graph->nodes = stream->nodes;
  *out = (CUgraph)graph;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
  const int before = thread_mode;

  ENTER(threadExchangeStreamCaptureMode, STARTED);
  thread_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle,
                                            unsigned long long flags)
{
  const object *graph;
  object *exec;

  ENTER(graphInstantiateWithFlags, STARTED);
  NEED_LIVE(graph, handle, GRAPH);
  exec = make(EXEC, NULL);
  exec->nodes = graph->nodes;
  *out = (CUgraphExec)exec;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph,
                                      CUgraphNode *culprit, char *log,
                                      size_t size)
{
  ENTER(graphInstantiate, STARTED);
  return cuGraphInstantiateWithFlags(out, graph, 0);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
  const object *exec;

  ENTER(graphLaunch, A_CONTEXT);
  NEED_LIVE(exec, handle, EXEC);
  atomic_fetch_add(&control.launches, exec->nodes);
  return CUDA_SUCCESS;
}

static CUresult drop_graph(const void *handle, kind k)
{
  object *o = find(handle, k);

  if (o == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  destroy(o);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
  ENTER(graphDestroy, STARTED);
  return drop_graph(graph, GRAPH);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
  ENTER(graphExecDestroy, STARTED);
  return drop_graph(exec, EXEC);
}

/* ---- Events ------------------------------------------------------------- */

static uint64_t now_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
  object *event;

  ENTER(eventCreate, A_CONTEXT);
  event = make(EVENT, current());
  event->flags = flags;
  *out = (CUevent)event;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent handle)
{
  object *event;

  ENTER(eventDestroy, STARTED);
  NEED_OWN(event, handle, EVENT);
  destroy(event);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent handle, CUstream stream)
{
  object *event, *s;

  ENTER(eventRecord, A_CONTEXT);
  event = own(handle, EVENT, __func__);
  if (event == NULL || !stream_of(stream, &s, __func__))
    return CUDA_ERROR_INVALID_HANDLE;
  event->ns = now_ns();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent handle)
{
  ENTER(eventSynchronize, UNSAFE);
  return find(handle, EVENT) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventQuery(CUevent handle)
{
  ENTER(eventQuery, UNSAFE);
  return find(handle, EVENT) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
  const object *a = find(from, EVENT), *b = find(to, EVENT);

  ENTER(eventElapsedTime, A_CONTEXT);
  if (a == NULL || b == NULL || a->ns == 0 || b->ns == 0 ||
      ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  *ms = (float)((double)(int64_t)(b->ns - a->ns) / 1e6);
  return CUDA_SUCCESS;
}
