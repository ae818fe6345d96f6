/* cases_stream.c -- cases of streams, events, callbacks and captures. */
#include "cases.h"

static void count(void *p)
{
  ++*(int *)p;
}

static void count_old(cudaStream_t stream, cudaError_t rc, void *p)
{
  (void)stream;
  *(int *)p += rc == cudaSuccess;
}

static cudaStream_t stream(void)
{
  cudaStream_t s = NULL;

  OK(cudaStreamCreate(&s));
  return s;
}

static cudaEvent_t event(unsigned flags)
{
  cudaEvent_t e = NULL;

  OK(cudaEventCreateWithFlags(&e, flags));
  return e;
}

CASE(stream_life)
{
  cudaStream_t s = stream();

  OK(cudaStreamQuery(s));
  OK(cudaStreamSynchronize(s));
  OK(cudaStreamDestroy(s));
}
CASE(stream_null_out)
{
  BAD(cudaStreamCreate(NULL));
  BAD(cudaStreamCreateWithFlags(NULL, 0));
}
CASE(stream_flags)
{
  cudaStream_t s;
  unsigned f = 9;

  OK(cudaStreamCreateWithFlags(&s, 1));
  OK(cudaStreamGetFlags(s, &f));
  V(1, f);
  OK(cudaStreamDestroy(s));
  BAD(cudaStreamCreateWithFlags(&s, 2));
}
CASE(stream_flags_of_default)
{
  unsigned f = 9;

  OK(cudaStreamGetFlags(NULL, &f));
  V(0, f);
  BAD(cudaStreamGetFlags(NULL, NULL));
}
CASE(stream_priority)
{
  cudaStream_t s;
  int p = 9;

  OK(cudaStreamCreateWithPriority(&s, 1, -1));
  OK(cudaStreamGetPriority(s, &p));
  V(-1, p);
  OK(cudaStreamDestroy(s));
  OK(cudaStreamCreateWithPriority(&s, 0, 99));
  OK(cudaStreamGetPriority(s, &p));
  V(0, p);
  OK(cudaStreamDestroy(s));
  OK(cudaStreamCreateWithPriority(&s, 0, -99));
  OK(cudaStreamGetPriority(s, &p));
  V(1, p < 0);
  OK(cudaStreamDestroy(s));
}
CASE(stream_default_handles)
{
  OK(cudaStreamSynchronize(NULL));
  OK(cudaStreamSynchronize(cudaStreamLegacy));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
  OK(cudaStreamQuery(cudaStreamLegacy));
  OK(cudaStreamQuery(cudaStreamPerThread));
}
CASE(stream_destroy_default)
{
  T(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
  T(ANY, cudaStreamDestroy(cudaStreamLegacy));
  T(ANY, cudaStreamDestroy(cudaStreamPerThread));
}
CASE(stream_id)
{
  cudaStream_t a = stream(), b = stream();
  unsigned long long i = 0, j = 0;

  OK(cudaStreamGetId(a, &i));
  OK(cudaStreamGetId(b, &j));
  V(1, i != j);
  BAD(cudaStreamGetId(a, NULL));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
}
CASE(stream_device)
{
  cudaStream_t s = stream();
  int d = 9;

  OK(cudaStreamGetDevice(s, &d));
  V(0, d);
  OK(cudaStreamDestroy(s));
}
CASE(stream_attributes)
{
  cudaStream_t a = stream(), b = stream();
  cudaLaunchAttributeValue v;

  memset(&v, 0, sizeof v);
  OK(cudaStreamGetAttribute(a, 3, &v));
  V(-1, v.priority); /* policies share the place of priorities */
  v.priority = 2;
  OK(cudaStreamSetAttribute(a, 3, &v));
  OK(cudaStreamCopyAttributes(b, a));
  BAD(cudaStreamGetAttribute(a, 99, &v));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
}
CASE(stream_attach)
{
  void *p;
  cudaStream_t s = stream();

  OK(cudaMallocManaged(&p, 64, 1));
  OK(cudaStreamAttachMemAsync(s, p, 0, 4));
  T(ANY, cudaStreamAttachMemAsync(NULL, p, 0, 4));
  BAD(cudaStreamAttachMemAsync(s, p, 0, 77));
  OK(cudaStreamSynchronize(s));
  OK(cudaFree(p));
  OK(cudaStreamDestroy(s));
}
CASE(stream_host_function)
{
  int n = 0;
  cudaStream_t s = stream();

  OK(cudaLaunchHostFunc(s, count, &n));
  OK(cudaStreamAddCallback(s, count_old, &n, 0));
  OK(cudaStreamSynchronize(s));
  V(2, n);
  BAD(cudaLaunchHostFunc(s, NULL, &n));
  BAD(cudaStreamAddCallback(s, NULL, &n, 0));
  BAD(cudaStreamAddCallback(s, count_old, &n, 5));
  OK(cudaStreamDestroy(s));
}
CASE(event_life)
{
  cudaEvent_t e;

  OK(cudaEventCreate(&e));
  OK(cudaEventQuery(e));
  OK(cudaEventSynchronize(e));
  OK(cudaEventRecord(e, NULL));
  OK(cudaEventSynchronize(e));
  OK(cudaEventDestroy(e));
}
CASE(event_null)
{
  BAD(cudaEventCreate(NULL));
  T(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, NULL));
  T(cudaErrorInvalidResourceHandle, cudaEventSynchronize(NULL));
  T(cudaErrorInvalidResourceHandle, cudaEventQuery(NULL));
  T(cudaErrorInvalidResourceHandle, cudaEventDestroy(NULL));
}
CASE(event_flags)
{
  cudaEvent_t e;

  for (unsigned f = 0; f < 4; f++) {
    OK(cudaEventCreateWithFlags(&e, f));
    OK(cudaEventDestroy(e));
  }
  BAD(cudaEventCreateWithFlags(&e, 8));
  BAD(cudaEventCreateWithFlags(&e, 4));
}
CASE(event_time)
{
  cudaEvent_t a = event(0), b = event(0);
  float ms = -1;

  OK(cudaEventRecord(a, NULL));
  OK(cudaEventRecord(b, NULL));
  OK(cudaEventSynchronize(b));
  OK(cudaEventElapsedTime(&ms, a, b));
  V(1, ms >= 0);
  BAD(cudaEventElapsedTime(NULL, a, b));
  OK(cudaEventDestroy(a));
  OK(cudaEventDestroy(b));
}
CASE(event_time_not_recorded)
{
  cudaEvent_t a = event(0), b = event(0);
  float ms;

  T(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
  OK(cudaEventRecord(a, NULL));
  T(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
  OK(cudaEventDestroy(a));
  OK(cudaEventDestroy(b));
}
CASE(event_time_without_timing)
{
  cudaEvent_t a = event(2), b = event(0);
  float ms;

  OK(cudaEventRecord(a, NULL));
  OK(cudaEventRecord(b, NULL));
  OK(cudaEventSynchronize(b));
  T(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
  OK(cudaEventDestroy(a));
  OK(cudaEventDestroy(b));
}
CASE(event_record_flags)
{
  cudaEvent_t e = event(0);

  OK(cudaEventRecordWithFlags(e, NULL, 0));
  BAD(cudaEventRecordWithFlags(e, NULL, 9));
  T(ANY, cudaEventRecordWithFlags(e, NULL, 1));
  OK(cudaEventDestroy(e));
}
CASE(event_wait)
{
  cudaEvent_t e = event(2);
  cudaStream_t s = stream();

  OK(cudaStreamWaitEvent(s, e, 0));
  OK(cudaEventRecord(e, NULL));
  OK(cudaStreamWaitEvent(s, e, 0));
  T(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(s, NULL, 0));
  BAD(cudaStreamWaitEvent(s, e, 9));
  OK(cudaStreamSynchronize(s));
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
}
CASE(capture_empty)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;
  size_t n = 9;

  OK(cudaStreamBeginCapture(s, 0));
  OK(cudaStreamEndCapture(s, &g));
  V(1, g != NULL);
  OK(cudaGraphGetNodes(g, NULL, &n));
  V(0, n);
  OK(cudaGraphDestroy(g));
  OK(cudaStreamDestroy(s));
}
CASE(capture_of_legacy)
{
  T(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(NULL, 0));
  T(cudaErrorStreamCaptureUnsupported,
    cudaStreamBeginCapture(cudaStreamLegacy, 0));
}
CASE(capture_twice)
{
  cudaStream_t s = stream();
  cudaGraph_t g;

  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorIllegalState, cudaStreamBeginCapture(s, 0));
  T(ANY, cudaStreamEndCapture(s, &g));
  OK(cudaStreamDestroy(s));
}
CASE(capture_not_begun)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;

  T(cudaErrorIllegalState, cudaStreamEndCapture(s, &g));
  OK(cudaStreamDestroy(s));
}
CASE(capture_bad_mode)
{
  cudaStream_t s = stream();

  BAD(cudaStreamBeginCapture(s, 9));
  OK(cudaStreamDestroy(s));
}
CASE(capture_synchronise)
{
  cudaStream_t s = stream();
  cudaStreamCaptureStatus status = 9;
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s));
  OK(cudaStreamIsCapturing(s, &status));
  V(2, status);
  T(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
  V(1, g == NULL);
  OK(cudaStreamIsCapturing(s, &status));
  V(0, status);
  OK(cudaStreamDestroy(s));
}
CASE(capture_query)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(s));
  T(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
  OK(cudaStreamDestroy(s));
}
CASE(capture_malloc_in_global_mode)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;
  void *p = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 64));
  T(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
  OK(cudaStreamDestroy(s));
}
CASE(capture_malloc_in_relaxed_mode)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;
  void *p = NULL;

  OK(cudaStreamBeginCapture(s, 2));
  OK(cudaMalloc(&p, 64));
  OK(cudaStreamEndCapture(s, &g));
  OK(cudaGraphDestroy(g));
  OK(cudaFree(p));
  OK(cudaStreamDestroy(s));
}
CASE(capture_legacy_work)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;
  void *p;

  OK(cudaMalloc(&p, 64));
  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(p, 0, 64, NULL));
  T(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
  OK(cudaFree(p));
  OK(cudaStreamDestroy(s));
}
CASE(capture_unjoined)
{
  cudaStream_t s = stream(), t = stream();
  cudaEvent_t e = event(2);
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  OK(launch(&k_spin, 1, NULL, s));
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(t, e, 0));
  OK(launch(&k_spin, 1, NULL, t));
  T(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(s, &g));
  V(1, g == NULL);
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
}
CASE(capture_ended_by_other_stream)
{
  cudaStream_t s = stream(), t = stream();
  cudaEvent_t e = event(2);
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(t, e, 0));
  T(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(t, &g));
  T(ANY, cudaStreamEndCapture(s, &g));
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
}
CASE(capture_merge)
{
  cudaStream_t s = stream(), t = stream();
  cudaEvent_t e = event(2);
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  OK(cudaStreamBeginCapture(t, 0));
  OK(cudaEventRecord(e, s));
  T(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(t, e, 0));
  T(ANY, cudaStreamEndCapture(s, &g));
  T(ANY, cudaStreamEndCapture(t, &g));
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
}
CASE(capture_event_synchronise)
{
  cudaStream_t s = stream();
  cudaEvent_t e = event(2);
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  OK(cudaEventRecord(e, s));
  T(cudaErrorCapturedEvent, cudaEventSynchronize(e));
  T(ANY, cudaEventQuery(e));
  T(ANY, cudaStreamEndCapture(s, &g));
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
}
CASE(capture_wait_for_older_event)
{
  cudaStream_t s = stream(), t = stream();
  cudaEvent_t e = event(2);
  cudaGraph_t g = NULL;

  OK(cudaEventRecord(e, t));
  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(s, e, 0));
  T(ANY, cudaStreamEndCapture(s, &g));
  OK(cudaEventDestroy(e));
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
}
CASE(capture_runs_nothing)
{
  int *p, host = 5;
  cudaStream_t s = stream();
  cudaGraph_t g;
  cudaGraphExec_t x;

  OK(cudaMalloc((void **)&p, 4));
  OK(cudaMemset(p, 0, 4));
  OK(cudaStreamBeginCapture(s, 0));
  OK(fill(p, 7, (dim3){1, 1, 1}, (dim3){1, 1, 1}, s));
  OK(cudaStreamEndCapture(s, &g));
  OK(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
  V(0, host);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
  V(7, host);
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
  OK(cudaFree(p));
  OK(cudaStreamDestroy(s));
}
CASE(capture_info)
{
  cudaStream_t s = stream();
  cudaStreamCaptureStatus status = 9;
  unsigned long long id = 0;
  cudaGraph_t g = NULL, h = NULL;
  const cudaGraphNode_t *after = NULL;
  size_t n = 9;

  OK(cudaStreamGetCaptureInfo(s, &status, &id, &g, &after, NULL, &n));
  V(0, status);
  OK(cudaStreamBeginCapture(s, 0));
  OK(launch(&k_spin, 1, NULL, s));
  OK(cudaStreamGetCaptureInfo(s, &status, &id, &g, &after, NULL, &n));
  V(1, status);
  V(1, id != 0);
  V(1, n);
  OK(cudaStreamUpdateCaptureDependencies(s, NULL, NULL, 0, 1));
  OK(cudaStreamGetCaptureInfo(s, &status, &id, &g, &after, NULL, &n));
  V(0, n);
  OK(cudaStreamEndCapture(s, &h));
  V(1, g == h);
  OK(cudaGraphDestroy(h));
  OK(cudaStreamDestroy(s));
}
CASE(capture_mode_exchange)
{
  cudaStreamCaptureMode m = 2;

  OK(cudaThreadExchangeStreamCaptureMode(&m));
  V(0, m);
  OK(cudaThreadExchangeStreamCaptureMode(&m));
  V(2, m);
  m = 9;
  OK(cudaThreadExchangeStreamCaptureMode(&m));
}
CASE(capture_pool)
{
  cudaStream_t s = stream();
  cudaGraph_t g;
  cudaGraphExec_t x;
  void *p = NULL;
  size_t n = 0;

  OK(cudaStreamBeginCapture(s, 0));
  OK(cudaMallocAsync(&p, 64, s));
  OK(cudaMemsetAsync(p, 1, 64, s));
  OK(cudaFreeAsync(p, s));
  OK(cudaStreamEndCapture(s, &g));
  OK(cudaGraphGetNodes(g, NULL, &n));
  V(3, n);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, s));
  OK(cudaGraphLaunch(x, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
  OK(cudaStreamDestroy(s));
}
