/* api_streams_test.c -- tests streams, events, host functions and failures of
 * the CPU device's driver, without kernels. */
#include "api_fixture.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t seed = 1;

/* ---- Order of operations ------------------------------------------------- */

typedef struct in_order {
  int *list, *n, value;
} in_order;

static void append_fn(void *user)
{
  in_order *o = user;

  o->list[(*o->n)++] = o->value;
}

START_TEST(a_stream_keeps_its_order)
{
  enum { N = 500 };
  CUstream s = make_stream(0);
  in_order o[N];
  int list[N], n = 0;

  for (int i = 0; i < N; i++) {
    o[i] = (in_order){.list = list, .n = &n, .value = i};
    ok(cu(launchHostFunc)(s, append_fn, &o[i]));
  }
  ok(cu(streamSynchronize)(s));
  ck_assert_int_eq(n, N);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(list[i], i);
}
END_TEST

static void meet_fn(void *user)
{
  pthread_barrier_wait(user);
}

/* This test ends only if two streams run concurrently. */
START_TEST(streams_overlap)
{
  enum { N = 8 };
  CUstream s[N];
  pthread_barrier_t barrier;

  pthread_barrier_init(&barrier, NULL, N);
  for (int i = 0; i < N; i++)
    s[i] = make_stream(i % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < N; i++)
      ok(cu(launchHostFunc)(s[i], meet_fn, &barrier));
  }
  ok(cu(ctxSynchronize)());
  pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(the_legacy_stream_waits_and_holds_up)
{
  CUstream blocking = make_stream(0), other = make_stream(1);
  gate g = {0}, h = {0};
  atomic_int in_legacy = 0, after = 0, aside = 0;

  ok(cu(launchHostFunc)(blocking, gate_fn, &g));
  ok(cu(launchHostFunc)(NULL, count_fn, &in_legacy));
  ok(cu(launchHostFunc)(CU_STREAM_LEGACY, gate_fn, &h));
  ok(cu(launchHostFunc)(blocking, count_fn, &after));
  ok(cu(launchHostFunc)(other, count_fn, &aside));
  ok(cu(streamSynchronize)(other));
  ck_assert_int_eq(atomic_load(&aside), 1);
  gate_wait(&g);
  usleep(2000);
  ck_assert_int_eq(atomic_load(&in_legacy), 0);
  is(cu(streamQuery)(NULL), CUDA_ERROR_NOT_READY);
  is(cu(streamQuery)(blocking), CUDA_ERROR_NOT_READY);
  ok(cu(streamQuery)(other));
  atomic_store(&g.open, true);
  gate_wait(&h);
  ck_assert_int_eq(atomic_load(&in_legacy), 1);
  usleep(2000);
  ck_assert_int_eq(atomic_load(&after), 0);
  atomic_store(&h.open, true);
  ok(cu(streamSynchronize)(blocking));
  ck_assert_int_eq(atomic_load(&after), 1);
  ok(cu(streamQuery)(NULL));
}
END_TEST

/* Generates random programs of streams and events. The rules of streams give
 * pairs of operations: the first operation of a pair must end before the second
 * begins. */
enum { N_OPS = 300, N_STREAMS = 6 };

typedef struct op {
  atomic_int *clock;
  int begin, end;
  bool before[N_OPS];
} op;

static void op_fn(void *user)
{
  op *o = user;

  o->begin = atomic_fetch_add(o->clock, 1);
  if (o->begin % 16 == 0)
    usleep(100);
  o->end = atomic_fetch_add(o->clock, 1);
}

/* Adds the set of operations `from` to the set `to`. An array of flags
 * represents a set of operations that must end first. */
static void or_into(bool *to, const bool *from)
{
  for (int i = 0; i < N_OPS; i++)
    to[i] = to[i] || from[i];
}

static void random_program(op *ops)
{
  /* Stream 0 is the legacy stream. */
  static bool tail[N_STREAMS][N_OPS], mark[4][N_OPS];
  bool recorded[4] = {false};
  CUstream s[N_STREAMS] = {NULL};
  CUevent e[4];
  atomic_int clock = 0;

  memset(tail, 0, sizeof tail);
  memset(mark, 0, sizeof mark);
  for (int i = 1; i < N_STREAMS; i++)
    s[i] = make_stream(i >= 4 ? CU_STREAM_NON_BLOCKING : 0);
  for (int i = 0; i < 4; i++)
    e[i] = make_event();
  for (int i = 0; i < N_OPS; i++) {
    const int k = (int)(test_random(&seed) % N_STREAMS);
    const int v = (int)(test_random(&seed) % 4);
    const int what = (int)(test_random(&seed) % 4);

    ops[i].begin = -1;
    if (what == 1 && !recorded[v])
      continue; /* A wait for an unrecorded event has no effect. */
    if (k == 0) {
      for (int j = 1; j < 4; j++)
        or_into(tail[0], tail[j]);
    } else if (k < 4) {
      or_into(tail[k], tail[0]);
    }
    switch (what) {
    case 0:
      ok(cu(eventRecord)(e[v], s[k]));
      memcpy(mark[v], tail[k], sizeof mark[v]);
      recorded[v] = true;
      break;
    case 1:
      ok(cu(streamWaitEvent)(s[k], e[v], 0));
      or_into(tail[k], mark[v]);
      break;
    default:
      ops[i] = (op){.clock = &clock};
      memcpy(ops[i].before, tail[k], sizeof ops[i].before);
      tail[k][i] = true;
      ok(cu(launchHostFunc)(s[k], op_fn, &ops[i]));
    }
  }
  ok(cu(ctxSynchronize)());
  for (int i = 1; i < N_STREAMS; i++)
    ok(cu(streamDestroy)(s[i]));
  for (int i = 0; i < 4; i++)
    ok(cu(eventDestroy)(e[i]));
}

START_TEST(random_programs_keep_the_rules)
{
  op *ops = calloc(N_OPS, sizeof *ops);

  for (int round = 0; round < 15; round++) {
    random_program(ops);
    for (int i = 0; i < N_OPS; i++) {
      for (int j = 0; ops[i].begin >= 0 && j < N_OPS; j++)
        ck_assert_msg(!ops[i].before[j] || ops[j].end < ops[i].begin,
                      "round %d: op %d began before %d ended", round, i, j);
    }
  }
  free(ops);
}
END_TEST

START_TEST(a_destroyed_stream_finishes)
{
  CUstream s = make_stream(0);
  atomic_int n = 0;
  gate g = {0};

  ok(cu(launchHostFunc)(s, gate_fn, &g));
  ok(cu(launchHostFunc)(s, count_fn, &n));
  ok(cu(streamDestroy)(s));
  is(cu(streamDestroy)(s), CUDA_ERROR_INVALID_HANDLE);
  is(cu(launchHostFunc)(s, count_fn, &n), CUDA_ERROR_INVALID_HANDLE);
  atomic_store(&g.open, true);
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n), 1);
}
END_TEST

/* ---- Events -------------------------------------------------------------- */

static void sleep_fn(void *user)
{
  usleep((useconds_t) * (int *)user * 1000);
}

START_TEST(events_measure_the_time_between_them)
{
  CUstream s = make_stream(0);
  CUevent a = make_event(), b = make_event(), untimed;
  int ms = 30;
  float t;

  /* This event was never recorded, so it counts as complete. */
  ok(cu(eventQuery)(a));
  ok(cu(eventSynchronize)(a));
  is(cu(eventElapsedTime)(&t, a, b), CUDA_ERROR_INVALID_HANDLE);
  ok(cu(eventRecord)(a, s));
  ok(cu(launchHostFunc)(s, sleep_fn, &ms));
  ok(cu(eventRecord)(b, s));
  is(cu(eventQuery)(b), CUDA_ERROR_NOT_READY);
  is(cu(eventElapsedTime)(&t, a, b), CUDA_ERROR_NOT_READY);
  ok(cu(eventSynchronize)(b));
  ok(cu(eventQuery)(b));
  ok(cu(eventElapsedTime)(&t, a, b));
  ck_assert_float_ge(t, 29.9f);
  ck_assert_float_lt(t, 3000.0f);
  ok(cu(eventElapsedTime)(&t, b, a));
  ck_assert_float_lt(t, 0);
  ok(cu(eventCreate)(&untimed, CU_EVENT_DISABLE_TIMING));
  ok(cu(eventRecord)(untimed, s));
  ok(cu(eventSynchronize)(untimed));
  is(cu(eventElapsedTime)(&t, a, untimed), CUDA_ERROR_INVALID_HANDLE);
  is(cu(eventElapsedTime)(NULL, a, b), CUDA_ERROR_INVALID_VALUE);
  is(cu(eventCreate)(&untimed, 64), CUDA_ERROR_INVALID_VALUE);
  is(cu(eventCreate)(&untimed, CU_EVENT_INTERPROCESS),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(eventDestroy)(untimed));
  ok(cu(eventCreate)(&untimed,
                     CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ok(cu(eventDestroy)(untimed));
  is(cu(eventRecordWithFlags)(a, s, 2), CUDA_ERROR_INVALID_VALUE);
  is(cu(eventRecordWithFlags)(a, s, CU_EVENT_RECORD_EXTERNAL),
     CUDA_ERROR_ILLEGAL_STATE);
  is(cu(streamWaitEvent)(s, a, 2), CUDA_ERROR_INVALID_VALUE);
  ok(cu(eventDestroy)(a));
  is(cu(eventDestroy)(a), CUDA_ERROR_INVALID_HANDLE);
  is(cu(eventRecord)(a, s), CUDA_ERROR_INVALID_HANDLE);
  is(cu(streamWaitEvent)(s, a, 0), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* A stream waits for the most recent record of an event before the wait, not
 * for later records. */
START_TEST(a_wait_is_for_the_record_before_it)
{
  CUstream a = make_stream(1), b = make_stream(1), w = make_stream(1);
  CUevent e = make_event();
  static gate g, h;
  atomic_int n = 0;

  ok(cu(launchHostFunc)(a, gate_fn, &g));
  ok(cu(eventRecord)(e, a));
  ok(cu(streamWaitEvent)(w, e, 0));
  ok(cu(launchHostFunc)(w, count_fn, &n));
  ok(cu(launchHostFunc)(b, gate_fn, &h));
  ok(cu(eventRecord)(e, b));
  usleep(2000);
  ck_assert_int_eq(atomic_load(&n), 0);
  atomic_store(&g.open, true);
  ok(cu(streamSynchronize)(w));
  ck_assert_int_eq(atomic_load(&n), 1);
  is(cu(eventQuery)(e), CUDA_ERROR_NOT_READY);
  ok(cu(eventDestroy)(e)); /* The event is destroyed before it completes. */
  atomic_store(&h.open, true);
}
END_TEST

START_TEST(events_belong_to_their_context)
{
  CUcontext c = make_context(), d;
  CUevent e = make_event();
  CUstream s = make_stream(0), t;

  d = make_context();
  t = make_stream(0);
  is(cu(eventRecord)(e, t), CUDA_ERROR_INVALID_HANDLE);
  ok(cu(eventRecord)(e, s));
  /* A stream may wait for an event of another context. */
  ok(cu(streamWaitEvent)(t, e, 0));
  ok(cu(ctxDestroy)(c));
  is(cu(eventQuery)(e), CUDA_ERROR_INVALID_HANDLE);
  is(cu(streamQuery)(s), CUDA_ERROR_INVALID_HANDLE);
  ok(cu(streamSynchronize)(t));
  ok(cu(ctxDestroy)(d));
}
END_TEST

/* ---- Host functions ------------------------------------------------------ */

static atomic_int callback_rc, callback_calls;
static _Atomic(CUstream) callback_stream;

static void callback(CUstream stream, CUresult status, void *user)
{
  CUdeviceptr p;

  atomic_store(&callback_stream, stream);
  atomic_store(&callback_rc, status);
  atomic_fetch_add(&callback_calls, 1);
  if (user != NULL)
    *(CUresult *)user = cu(memAlloc)(&p, 4);
}

static void set_context_and_call(void *user)
{
  CUdeviceptr p;

  ok(cu(ctxSetCurrent)(*(CUcontext *)user));
  is(cu(memAlloc)(&p, 4), CUDA_ERROR_NOT_PERMITTED);
  is(cu(ctxSynchronize)(), CUDA_ERROR_NOT_PERMITTED);
  is(cu(ctxDestroy)(*(CUcontext *)user), CUDA_ERROR_NOT_PERMITTED);
}

START_TEST(host_functions_may_not_call_back)
{
  CUstream s = make_stream(0);
  CUresult rc = 0;

  ok(cu(launchHostFunc)(s, set_context_and_call, &context));
  ok(cu(streamAddCallback)(s, callback, &rc, 0));
  ok(cu(streamSynchronize)(s));
  ck_assert_int_ne(rc, CUDA_SUCCESS);
  ck_assert_ptr_eq(atomic_load(&callback_stream), s);
  is(cu(launchHostFunc)(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamAddCallback)(s, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamAddCallback)(s, callback, NULL, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(streams_wait_for_words_in_memory)
{
  CUstream a = make_stream(1), b = make_stream(1);
  CUdeviceptr p;
  uint32_t *words;
  atomic_int n = 0;
  CUstreamBatchMemOpParams ops[2] = {{.pad = {0}}, {.pad = {0}}};

  ok(cu(memHostAlloc)((void **)&words, 64, 0));
  memset(words, 0, 64);
  p = (CUdeviceptr)(uintptr_t)words;
  ok(cu(streamWaitValue32)(a, p, 5, CU_STREAM_WAIT_VALUE_GEQ));
  ok(cu(launchHostFunc)(a, count_fn, &n));
  usleep(3000);
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(streamWriteValue32)(b, p, 4, 0));
  ok(cu(streamSynchronize)(b));
  usleep(3000);
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(streamWriteValue32)(b, p, 5, 0));
  ok(cu(streamSynchronize)(a));
  ck_assert_int_eq(atomic_load(&n), 1);
  ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  ops[0].writeValue.address = p + 8;
  ops[0].writeValue.value64 = UINT64_C(0x123456789abc);
  ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  ops[1].waitValue.address = p + 8;
  ops[1].waitValue.value64 = UINT64_C(1) << 41;
  ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_AND;
  ok(cu(streamBatchMemOp)(a, 2, ops, 0));
  ok(cu(streamSynchronize)(a));
  ck_assert_mem_eq((char *)words + 8, &ops[0].writeValue.value64, 8);
  is(cu(streamWaitValue32)(a, p + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamWaitValue32)(a, 16, 0, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamWaitValue32)(a, p, 0, 64), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamBatchMemOp)(a, 0, ops, 0), CUDA_ERROR_INVALID_VALUE);
  ops[0].operation = 99;
  is(cu(streamBatchMemOp)(a, 1, ops, 0), CUDA_ERROR_INVALID_VALUE);
  /* This operation is pending until the fixture destroys the context. */
  ok(cu(streamWaitValue32)(a, p, 77, CU_STREAM_WAIT_VALUE_EQ));
}
END_TEST

/* ---- Sticky errors ------------------------------------------------------- */

START_TEST(a_failed_kernel_sticks_to_its_context)
{
  CUcontext c = make_context(), d;
  CUstream s = make_stream(0), t = make_stream(1);
  CUdeviceptr p = make_memory(64);
  atomic_int n = 0;
  CUevent e = make_event();
  const CUresult bad = CUDA_ERROR_ILLEGAL_ADDRESS;

  ok(kiln__cpu_enqueue(c, s, failing_work(bad)));
  is(cu(streamSynchronize)(s), bad);
  is(cu(streamSynchronize)(t), bad);
  is(cu(ctxSynchronize)(), bad);
  is(cu(memAlloc)(&p, 64), bad);
  is(cu(memFree)(p), bad);
  is(cu(streamQuery)(t), bad);
  is(cu(eventRecord)(e, s), bad);
  is(cu(eventQuery)(e), bad);
  is(cu(memcpyHtoD)(p, &p, 4), bad);
  is(cu(memsetD8)(p, 0, 4), bad);
  is(cu(launchHostFunc)(s, count_fn, &n), bad);
  is(kiln__cpu_enqueue(c, s, failing_work(CUDA_ERROR_ASSERT)), bad);
  ok(cu(ctxGetCurrent)(&d));
  ck_assert_ptr_eq(c, d);
  ok(cu(ctxDestroy)(c));
  /* The new context must not have the error of the old context. */
  d = make_context();
  ok(cu(memAlloc)(&p, 64));
  ok(cu(ctxDestroy)(d));
}
END_TEST

START_TEST(after_a_failure_nothing_runs_but_callbacks)
{
  CUstream s = make_stream(0);
  atomic_int n = 0;
  gate g = {0};

  atomic_store(&callback_calls, 0);
  ok(cu(launchHostFunc)(s, gate_fn, &g));
  ok(kiln__cpu_enqueue(context, s, failing_work(CUDA_ERROR_ASSERT)));
  ok(kiln__cpu_enqueue(context, s, failing_work(CUDA_ERROR_LAUNCH_FAILED)));
  ok(cu(launchHostFunc)(s, count_fn, &n));
  ok(cu(streamAddCallback)(s, callback, NULL, 0));
  atomic_store(&g.open, true);
  is(cu(streamSynchronize)(s), CUDA_ERROR_ASSERT);
  ck_assert_int_eq(atomic_load(&n), 0);
  ck_assert_int_eq(atomic_load(&callback_calls), 1);
  ck_assert_int_eq(atomic_load(&callback_rc), CUDA_ERROR_ASSERT);
}
END_TEST

START_TEST(a_reset_clears_the_primary_context)
{
  CUcontext c;
  CUdeviceptr p;

  ok(cu(init)(0));
  ok(cu(devicePrimaryCtxRetain)(&c, 0));
  ok(cu(ctxSetCurrent)(c));
  ok(kiln__cpu_enqueue(c, NULL, failing_work(CUDA_ERROR_LAUNCH_FAILED)));
  is(cu(ctxSynchronize)(), CUDA_ERROR_LAUNCH_FAILED);
  ok(cu(devicePrimaryCtxReset)(0));
  ok(cu(ctxSynchronize)());
  ok(cu(memAlloc)(&p, 16));
  ok(cu(devicePrimaryCtxRelease)(0));
}
END_TEST

/* ---- Per-thread default streams ------------------------------------------ */

typedef struct meeting {
  CUcontext context;
  pthread_barrier_t *barrier;
  unsigned long long id;
} meeting;

static void *own_default(void *arg)
{
  meeting *m = arg;
  unsigned long long legacy;

  ok(cu(ctxSetCurrent)(m->context));
  ok(cu(streamGetIdPerThread)(NULL, &m->id));
  ok(cu(streamGetId)(NULL, &legacy));
  ck_assert_uint_ne(m->id, legacy);
  ok(cu(streamGetId)(CU_STREAM_PER_THREAD, &legacy));
  ck_assert_uint_eq(m->id, legacy);
  ok(cu(launchHostFuncPerThread)(NULL, meet_fn, m->barrier));
  ok(cu(streamSynchronizePerThread)(NULL));
  return NULL;
}

START_TEST(threads_have_default_streams_of_their_own)
{
  enum { N = 4 };
  pthread_barrier_t barrier;
  pthread_t threads[N];
  meeting m[N];

  pthread_barrier_init(&barrier, NULL, N);
  for (int i = 0; i < N; i++) {
    m[i] = (meeting){.context = context, .barrier = &barrier};
    pthread_create(&threads[i], NULL, own_default, &m[i]);
  }
  for (int i = 0; i < N; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++)
      ck_assert_uint_ne(m[i].id, m[j].id);
  }
  is(cu(streamDestroy)(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
  is(cu(streamDestroy)(NULL), CUDA_ERROR_INVALID_HANDLE);
  pthread_barrier_destroy(&barrier);
}
END_TEST

/* ---- Handles ------------------------------------------------------------- */

START_TEST(what_is_no_stream_is_refused)
{
  CUstream dead = make_stream(0);
  CUevent e = make_event();
  char bytes[64] = {0};
  void *const bad[] = {dead,
                       e,
                       context,
                       bytes,
                       (void *)(uintptr_t)0xdeadbeef,
                       (void *)(uintptr_t)3};
  CUcontext got;
  atomic_int n = 0;
  int priority;
  unsigned flags;
  unsigned long long id;
  CUstreamCaptureStatus status;
  CUgraph graph;

  ok(cu(streamDestroy)(dead));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    CUstream s = bad[i];

    is(cu(streamDestroy)(s), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamQuery)(s), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamSynchronize)(s), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamWaitEvent)(s, e, 0), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamGetCtx)(s, &got), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamGetId)(s, &id), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamGetFlags)(s, &flags), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamGetPriority)(s, &priority), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamIsCapturing)(s, &status), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamBeginCapture)(s, 0), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamEndCapture)(s, &graph), CUDA_ERROR_INVALID_HANDLE);
    is(cu(launchHostFunc)(s, count_fn, &n), CUDA_ERROR_INVALID_HANDLE);
    is(cu(eventRecord)(e, s), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamAddCallback)(s, callback, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    CUevent v = bad[i];

    if (bad[i] == (void *)e)
      continue;
    is(cu(eventDestroy)(v), CUDA_ERROR_INVALID_HANDLE);
    is(cu(eventQuery)(v), CUDA_ERROR_INVALID_HANDLE);
    is(cu(eventSynchronize)(v), CUDA_ERROR_INVALID_HANDLE);
    is(cu(eventRecord)(v, NULL), CUDA_ERROR_INVALID_HANDLE);
    is(cu(streamWaitEvent)(NULL, v, 0), CUDA_ERROR_INVALID_HANDLE);
  }
  is(cu(streamCreate)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamCreate)(&dead, 2), CUDA_ERROR_INVALID_VALUE);
  is(cu(eventCreate)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(streamGetCtx)(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(streams_know_what_they_were_made_with)
{
  CUcontext got;
  CUstream s;
  int least, greatest, priority;
  unsigned flags;

  ok(cu(ctxGetStreamPriorityRange)(&least, &greatest));
  ck_assert_int_lt(greatest, least);
  ok(cu(streamCreateWithPriority)(&s, CU_STREAM_NON_BLOCKING, -1000));
  ok(cu(streamGetPriority)(s, &priority));
  ck_assert_int_eq(priority, greatest);
  ok(cu(streamGetFlags)(s, &flags));
  ck_assert_uint_eq(flags, CU_STREAM_NON_BLOCKING);
  ok(cu(streamGetCtx)(s, &got));
  ck_assert_ptr_eq(got, context);
}
END_TEST

/* ---- Many threads -------------------------------------------------------- */

typedef struct worker {
  CUcontext context;
  int number;
  bool good;
} worker;

static void *work(void *arg)
{
  worker *w = arg;
  uint32_t host[256], back[256];

  ok(cu(ctxSetCurrent)(w->context));
  w->good = true;
  for (int round = 0; round < 20; round++) {
    CUstream s = make_stream((unsigned)round % 2);
    CUevent e = make_event();
    CUdeviceptr p, q;
    atomic_int n = 0;

    ok(cu(memAlloc)(&p, sizeof host));
    ok(cu(memAllocAsync)(&q, sizeof host, s));
    for (int i = 0; i < 256; i++)
      host[i] = (uint32_t)(w->number * 1000000 + round * 1000 + i);
    ok(cu(memcpyHtoDAsync)(p, host, sizeof host, s));
    /* The copy has already read the pageable source. */
    memset(host, 0, sizeof host);
    ok(cu(memcpyDtoDAsync)(q, p, sizeof host, s));
    ok(cu(launchHostFunc)(s, count_fn, &n));
    ok(cu(eventRecord)(e, s));
    ok(cu(memcpyDtoHAsync)(back, q, sizeof back, s));
    ok(cu(memFreeAsync)(q, s));
    ok(cu(eventSynchronize)(e));
    w->good = w->good && atomic_load(&n) == 1;
    ok(cu(streamSynchronize)(s));
    for (int i = 0; i < 256; i++)
      w->good = w->good &&
                back[i] == (uint32_t)(w->number * 1000000 + round * 1000 + i);
    ok(cu(memFree)(p));
    ok(cu(eventDestroy)(e));
    ok(cu(streamDestroy)(s));
  }
  return NULL;
}

START_TEST(thirty_two_threads)
{
  enum { N = 32 };
  pthread_t threads[N];
  worker w[N];
  size_t before, after;

  ok(cu(memGetInfo)(&before, NULL));
  for (int i = 0; i < N; i++) {
    w[i] = (worker){.context = context, .number = i};
    pthread_create(&threads[i], NULL, work, &w[i]);
  }
  for (int i = 0; i < N; i++) {
    pthread_join(threads[i], NULL);
    ck_assert(w[i].good);
  }
  ok(cu(ctxSynchronize)());
  ok(cu(memGetInfo)(&after, NULL));
  ck_assert_uint_eq(before, after);
}
END_TEST

/* ---- Fork ---------------------------------------------------------------- */

static int child(CUstream s, CUdeviceptr p)
{
  int n;
  CUcontext c;
  char byte;

  /* If the child deadlocks on a lock of the parent, this signal ends the
   * test. */
  alarm(10);
  return cu(init)(0) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(deviceGetCount)(&n) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(ctxGetCurrent)(&c) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(ctxCreate)(&c, 0, 0) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(ctxSynchronize)() != CUDA_ERROR_NOT_INITIALIZED ||
         cu(streamSynchronize)(s) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(memcpyDtoH)(&byte, p, 1) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(memFree)(p) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(devicePrimaryCtxRetain)(&c, 0) != CUDA_ERROR_NOT_INITIALIZED ||
         cu(ctxDestroy)(c) != CUDA_ERROR_NOT_INITIALIZED;
}

START_TEST(a_forked_child_is_refused)
{
  CUstream s = make_stream(0);
  CUdeviceptr p = make_memory(64);
  static gate g;
  int status;
  pid_t pid;

  ok(cu(launchHostFunc)(s, gate_fn, &g));
  gate_wait(&g);
  pid = fork();
  if (pid == 0)
    _exit(child(s, p));
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
  atomic_store(&g.open, true);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_streams");

  kiln_test_case(
      s, "streams", 120, setup, teardown,
      TESTS(a_stream_keeps_its_order, streams_overlap,
            the_legacy_stream_waits_and_holds_up,
            random_programs_keep_the_rules, a_destroyed_stream_finishes,
            events_measure_the_time_between_them,
            a_wait_is_for_the_record_before_it,
            host_functions_may_not_call_back, streams_wait_for_words_in_memory,
            after_a_failure_nothing_runs_but_callbacks,
            threads_have_default_streams_of_their_own,
            what_is_no_stream_is_refused, streams_know_what_they_were_made_with,
            thirty_two_threads, a_forked_child_is_refused));
  kiln_test_case(s, "contexts", 120, NULL, NULL,
                 TESTS(events_belong_to_their_context,
                       a_failed_kernel_sticks_to_its_context,
                       a_reset_clears_the_primary_context));
  return kiln_test_run(s);
}
