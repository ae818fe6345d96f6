/* api_capture_test.c -- tests stream capture in the CPU device's driver: how
 * commands become nodes, which calls a capture forbids, and how captures
 * end. */
#include "api_fixture.h"
#include "support.h"

#include <pthread.h>

static uint64_t seed = 3;

static unsigned below(unsigned n)
{
  return (unsigned)(test_random(&seed) % n);
}

/* ---- Capture ------------------------------------------------------------- */

static size_t nodes_of(CUgraph g)
{
  size_t n;

  ok(cu(graphGetNodes)(g, NULL, &n));
  return n;
}

/* Captures a random program of forks and joins, and records the required order
 * of its operations as lists. The graph must run in an order that all lists
 * allow. */
START_TEST(random_captures_keep_the_order)
{
  enum { STREAMS = 4, OPS = 40 };

  for (int round = 0; round < 40; round++) {
    CUstream s[STREAMS];
    bool before[OPS][OPS] = {{false}}, tail[STREAMS][OPS] = {{false}};
    bool mark[STREAMS][OPS] = {{false}}, in[STREAMS] = {true};
    CUevent e[STREAMS];
    visit v[OPS];
    atomic_int clock = 0;
    CUgraph g;
    CUgraphExec x;

    for (int i = 0; i < STREAMS; i++) {
      s[i] = make_stream(1);
      e[i] = make_event();
    }
    ok(cu(streamBeginCapture)(s[0], (int)below(3)));
    for (int i = 0; i < OPS; i++) {
      const int a = (int)below(STREAMS), b = (int)below(STREAMS);

      v[i] = (visit){.clock = &clock};
      /* Stream b waits for an event of stream a. */
      if (in[a] && below(3) == 0) {
        ok(cu(eventRecord)(e[a], s[a]));
        memcpy(mark[a], tail[a], sizeof mark[a]);
        ok(cu(streamWaitEvent)(s[b], e[a], 0));
        for (int k = 0; k < OPS; k++)
          tail[b][k] = tail[b][k] || mark[a][k];
        in[b] = true;
      }
      if (!in[a])
        continue;
      ok(cu(launchHostFunc)(s[a], visit_fn, &v[i]));
      memcpy(before[i], tail[a], sizeof before[i]);
      tail[a][i] = true;
    }
    for (int i = 1; i < STREAMS; i++) {
      if (in[i]) {
        ok(cu(eventRecord)(e[i], s[i]));
        ok(cu(streamWaitEvent)(s[0], e[i], 0));
      }
    }
    ok(cu(streamEndCapture)(s[0], &g));
    /* No captured operation has run yet. */
    ck_assert_int_eq(atomic_load(&clock), 0);
    x = instance(g);
    run_graph(x, s[1]);
    for (int i = 0; i < OPS; i++) {
      for (int k = 0; k < OPS; k++)
        ck_assert(!before[i][k] || v[k].at < v[i].at);
    }
    ok(cu(graphExecDestroy)(x));
    ok(cu(graphDestroy)(g));
    for (int i = 0; i < STREAMS; i++) {
      ok(cu(streamDestroy)(s[i]));
      ok(cu(eventDestroy)(e[i]));
    }
  }
}
END_TEST

START_TEST(all_kinds_of_work_are_captured)
{
  CUstream s = make_stream(1);
  CUdeviceptr p = make_memory(64), q;
  CUevent e = make_event();
  uint32_t in[4] = {1, 2, 3, 4}, out[4] = {0};
  CUgraph g, inner;
  CUgraphExec x, y;
  CUgraphNode nodes[16];
  size_t n = 16;
  int kinds[14] = {0};
  atomic_int calls = 0;

  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamEndCapture)(s, &inner));
  y = instance(inner);
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(memAllocAsync)(&q, 64, s));
  ok(cu(memcpyHtoDAsync)(p, in, 16, s));
  ok(cu(memsetD32Async)(p + 4, 9, 1, s));
  ok(cu(memcpyDtoDAsync)(q, p, 16, s));
  ok(cu(memcpyDtoHAsync)(out, q, 16, s));
  ok(cu(memFreeAsync)(q, s));
  ok(cu(streamWriteValue32)(s, p + 32, 5, 0));
  ok(cu(eventRecordWithFlags)(e, s, CU_EVENT_RECORD_EXTERNAL));
  ok(cu(streamWaitEvent)(s, e, CU_EVENT_WAIT_EXTERNAL));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphGetNodes)(g, nodes, &n));
  for (size_t i = 0; i < n; i++) {
    int type;

    ok(cu(graphNodeGetType)(nodes[i], &type));
    kinds[type]++;
  }
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEMCPY], 3);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEMSET], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEM_ALLOC], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEM_FREE], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_EVENT_RECORD], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_WAIT_EVENT], 1);
  x = instance(g);
  /* The graph reads this value when it runs, not when it is captured. */
  in[0] = 100;
  for (int i = 0; i < 3; i++)
    run_graph(x, s);
  ck_assert_uint_eq(out[0], 100);
  ck_assert_uint_eq(out[1], 9);
  ck_assert_uint_eq(out[3], 4);
  ok(cu(memcpyDtoH)(out, p + 32, 4));
  ck_assert_uint_eq(out[0], 5);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g));
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(graphLaunch)(y, s));
  ok(cu(streamEndCapture)(s, &g));
  n = 16;
  ok(cu(graphGetNodes)(g, nodes, &n));
  ck_assert_uint_eq(n, 1);
  ok(cu(graphNodeGetType)(nodes[0], &kinds[0]));
  ck_assert_int_eq(kinds[0], CU_GRAPH_NODE_TYPE_GRAPH);
  ok(cu(graphDestroy)(g));
  ok(cu(graphExecDestroy)(y));
  ok(cu(graphDestroy)(inner));
}
END_TEST

static CUstreamCaptureStatus status_of(CUstream s)
{
  CUstreamCaptureStatus status;

  ok(cu(streamIsCapturing)(s, &status));
  return status;
}

/* Checks that a call fails and invalidates the capture. */
#define spoils(call, want)                                                     \
  do {                                                                         \
    ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));              \
    is(call, want);                                                            \
    ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);      \
    is(cu(launchHostFunc)(s, count_fn, &n),                                    \
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);                                 \
    is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);    \
    ck_assert_ptr_null(g);                                                     \
    ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);             \
  } while (0)

static void nothing_cb(CUstream stream, CUresult status, void *user)
{
  (void)stream;
  (void)status;
  (void)user;
}

START_TEST(what_a_capture_forbids)
{
  CUstream s = make_stream(1), other = make_stream(1);
  CUevent e = make_event(), f = make_event();
  CUdeviceptr p = make_memory(64), q;
  CUgraph g = NULL;
  atomic_int n = 0;
  char byte = 0;
  void *host;
  const CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

  ok(cu(eventRecord)(f, other));
  spoils(cu(streamSynchronize)(s), no);
  spoils(cu(streamQuery)(s), no);
  spoils(cu(streamSynchronize)(other), no);
  spoils(cu(ctxSynchronize)(), no);
  spoils(cu(memAlloc)(&q, 4), no);
  spoils(cu(memFree)(p), no);
  spoils(cu(memHostAlloc)(&host, 4, 0), no);
  spoils(cu(memcpyHtoD)(p, &byte, 1), no);
  spoils(cu(memsetD8)(p, 1, 1), no);
  spoils(cu(eventQuery)(f), no);
  spoils(cu(eventSynchronize)(f), no);
  spoils(cu(streamAddCallback)(s, nothing_cb, NULL, 0), no);
  spoils(cu(streamWaitEvent)(s, f, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  spoils((cu(eventRecord)(e, s), cu(eventQuery)(e)), CUDA_ERROR_CAPTURED_EVENT);
  is(cu(eventSynchronize)(e), CUDA_ERROR_CAPTURED_EVENT);
  /* The second record of the event is not part of the capture. */
  ok(cu(eventRecord)(e, other));
  ok(cu(eventSynchronize)(e));
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_ILLEGAL_STATE);
  is(cu(streamBeginCapture)(NULL, 0), no);
  is(cu(streamBeginCapture)(s, 3), CUDA_ERROR_INVALID_VALUE);
  ok(cu(streamBeginCapture)(s, 0));
  is(cu(streamBeginCapture)(s, 0), CUDA_ERROR_ILLEGAL_STATE);
  ok(cu(streamEndCapture)(s, &g));
  ck_assert_uint_eq(nodes_of(g), 0);
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(graphDestroy)(g));
}
END_TEST

START_TEST(captures_and_the_legacy_stream)
{
  CUstream s = make_stream(0), free_stream = make_stream(1);
  CUdeviceptr p = make_memory(64);
  CUgraph g;
  atomic_int n = 0;
  CUevent e = make_event();
  const CUresult no = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

  spoils(cu(memsetD8)(p, 1, 1), no);
  spoils(cu(launchHostFunc)(NULL, count_fn, &n), no);
  spoils(cu(streamSynchronize)(NULL), no);
  spoils(cu(eventRecord)(e, NULL), no);
  spoils((cu(eventRecord)(e, s), cu(streamWaitEvent)(NULL, e, 0)), no);
  /* The legacy stream does not synchronise with non-blocking streams. */
  s = free_stream;
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(cu(launchHostFunc)(NULL, count_fn, &n));
  ok(cu(memsetD8)(p, 1, 1));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n), 1);
}
END_TEST

START_TEST(forks_have_to_join)
{
  CUstream s = make_stream(1), t = make_stream(1), u = make_stream(1);
  CUevent e = make_event(), f = make_event();
  CUgraph g, h;
  atomic_int n = 0;

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(e, s));
  ok(cu(streamWaitEvent)(t, e, 0));
  ck_assert_int_eq(status_of(t), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ok(cu(launchHostFunc)(t, count_fn, &n));
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ck_assert_int_eq(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);

  /* A forked stream without work need not be joined before the capture ends. */
  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(launchHostFunc)(s, count_fn, &n));
  ok(cu(eventRecord)(e, s));
  ok(cu(streamWaitEvent)(t, e, 0));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(e, s));
  ok(cu(streamWaitEvent)(t, e, 0));
  is(cu(streamEndCapture)(t, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(streamBeginCapture)(u, 0));
  ok(cu(eventRecord)(e, s));
  is(cu(streamWaitEvent)(u, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  is(cu(streamEndCapture)(u, &h), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  /* Event e belongs to a capture that has already ended. */
  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(f, s));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));
  is(cu(streamWaitEvent)(t, f, 0), CUDA_ERROR_CAPTURED_EVENT);

  ok(cu(streamBeginCapture)(s, 0));
  /* Destroying the capturing stream ends the capture. */
  ok(cu(streamDestroy)(s));
  ok(cu(streamSynchronize)(t));
  ck_assert_int_eq(atomic_load(&n), 0);
}
END_TEST

/* The data of a thread that makes an unsafe call while another thread captures
 * a stream. */
typedef struct intruder {
  CUcontext context;
  CUstreamCaptureMode mode;
  CUresult rc, end;
  CUstream stream;
} intruder;

static void *intrude(void *arg)
{
  intruder *i = arg;
  CUdeviceptr p;
  CUgraph g;

  ok(cu(ctxSetCurrent)(i->context));
  ok(cu(threadExchangeStreamCaptureMode)(&i->mode));
  ck_assert_int_eq(i->mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  i->rc = cu(memAlloc)(&p, 16);
  if (i->rc == CUDA_SUCCESS) {
    ok(cu(memFree)(p));
  }
  i->end = cu(streamEndCapture)(i->stream, &g);
  if (i->end == CUDA_SUCCESS)
    ok(cu(graphDestroy)(g));
  return NULL;
}

/* Makes the stream `fork` join the capture of stream `s`, and records `event`
 * after the work of `fork`. */
static void fork_capture(CUstream s, CUstream fork, CUevent event,
                         CUdeviceptr p)
{
  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(event, s));
  ok(cu(streamWaitEvent)(fork, event, 0));
  ok(cu(memsetD8Async)(p, 1, 4, fork));
  ok(cu(eventRecord)(event, fork));
}

/* The expected result codes were recorded on an H200 with driver 580. */
START_TEST(a_forked_stream_may_be_destroyed_during_the_capture)
{
  CUstream s = make_stream(1), fork;
  CUgraph g;
  CUevent event = make_event();
  CUdeviceptr p = make_memory(4);

  for (int joined_late = 0; joined_late < 2; joined_late++) {
    fork = make_stream(1);
    fork_capture(s, fork, event, p);
    if (!joined_late)
      ok(cu(streamWaitEvent)(s, event, 0));
    ok(cu(streamDestroy)(fork));
    ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    if (joined_late)
      ok(cu(streamWaitEvent)(s, event, 0));
    ok(cu(streamEndCapture)(s, &g));
    ck_assert_uint_eq(nodes_of(g), 1);
    ok(cu(graphDestroy)(g));
  }
  fork = make_stream(1);
  fork_capture(s, fork, event, p);
  /* The capture has not joined the work of the destroyed stream. */
  ok(cu(streamDestroy)(fork));
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
}
END_TEST

START_TEST(modes_of_capture)
{
  static const struct {
    int capture, thread;
    CUresult alloc, end, own;
  } rows[] = {
      {0, 0, 900, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 901},
      {0, 1, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {0, 2, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {1, 0, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {1, 1, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {2, 0, 0, CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE},
      {2, 2, 0, CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE},
  };
  CUstream s = make_stream(1);
  CUdeviceptr p;
  CUgraph g;
  int mode;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    intruder other = {.context = context, .mode = rows[i].thread, .stream = s};
    pthread_t thread;

    ok(cu(streamBeginCapture)(s, rows[i].capture));
    pthread_create(&thread, NULL, intrude, &other);
    pthread_join(thread, NULL);
    ck_assert_msg(other.rc == rows[i].alloc, "row %zu: alloc %d", i, other.rc);
    ck_assert_msg(other.end == rows[i].end, "row %zu: end %d", i, other.end);
    is(cu(streamEndCapture)(s, &g), rows[i].own);
    if (rows[i].own == CUDA_SUCCESS)
      ok(cu(graphDestroy)(g));
  }
  is(cu(threadExchangeStreamCaptureMode)(NULL), CUDA_ERROR_INVALID_VALUE);
  /* Relaxed mode must also apply to captures that this thread begins. */
  mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ok(cu(threadExchangeStreamCaptureMode)(&mode));
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(memAlloc)(&p, 16));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));
}
END_TEST

START_TEST(captures_show_themselves)
{
  CUstream s = make_stream(1);
  CUgraph g, same, mine;
  const CUgraphNode *tips;
  CUgraphNode extra, root;
  size_t n;
  uint64_t id;
  int status;
  atomic_int calls = 0;

  ok(cu(streamGetCaptureInfoV2)(s, &status, &id, &g, &tips, &n));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamGetCaptureInfoV2)(s, &status, &id, &g, &tips, &n));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ck_assert_uint_eq(n, 1);
  ok(cu(graphAddEmptyNode)(&extra, g, tips, n));
  /* The graph cannot be destroyed while it is being captured. */
  is(cu(graphDestroy)(g), CUDA_ERROR_INVALID_VALUE);
  ok(cu(streamUpdateCaptureDependencies)(s, &extra, 1,
                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamEndCapture)(s, &same));
  ck_assert_ptr_eq(g, same);
  ck_assert_uint_eq(nodes_of(g), 3);
  ok(cu(graphNodeGetDependentNodes)(extra, NULL, &n));
  ck_assert_uint_eq(n, 1);
  is(cu(streamUpdateCaptureDependencies)(s, &extra, 1, 0),
     CUDA_ERROR_ILLEGAL_STATE);

  ok(cu(graphCreate)(&mine, 0));
  ok(cu(graphAddEmptyNode)(&root, mine, NULL, 0));
  is(cu(streamBeginCaptureToGraph)(s, mine, &extra, NULL, 1, 0),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(streamBeginCaptureToGraph)(s, mine, &root, NULL, 1, 0));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamEndCapture)(s, &same));
  ck_assert_ptr_eq(same, mine);
  ok(cu(graphNodeGetDependentNodes)(root, NULL, &n));
  ck_assert_uint_eq(n, 1);
  ok(cu(graphDestroy)(g));
  ok(cu(graphDestroy)(mine));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_capture");

  kiln_test_case(s, "capture", 120, setup, teardown,
                 TESTS(random_captures_keep_the_order,
                       all_kinds_of_work_are_captured, what_a_capture_forbids,
                       captures_and_the_legacy_stream, forks_have_to_join,
                       a_forked_stream_may_be_destroyed_during_the_capture,
                       modes_of_capture, captures_show_themselves));
  return kiln_test_run(s);
}
