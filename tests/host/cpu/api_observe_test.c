/* api_observe_test.c -- tests what kiln_cpu_observe() reports, without kernels. */
#include "api_fixture.h"
#include "support.h"

#include <pthread.h>

enum { MOST = 64 };

/* The reported work, in the order of the reports. */
typedef struct seen {
  pthread_mutex_t lock;
  kiln_cpu_activity work[MOST];
  size_t n;
} seen;

static void keep(void *user, const kiln_cpu_activity *work)
{
  seen *s = user;

  pthread_mutex_lock(&s->lock);
  ck_assert_uint_lt(s->n, MOST);
  s->work[s->n++] = *work;
  pthread_mutex_unlock(&s->lock);
}

static seen all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void begin(void)
{
  all.n = 0;
  ck_assert_int_eq(kiln_cpu_observe(keep, NULL, &all), KILN_OK);
}

static void end(void)
{
  ck_assert_int_eq(kiln_cpu_observe(NULL, NULL, NULL), KILN_OK);
}

/* Checks one report of a copy or fill. */
static void expect(size_t i, kiln_cpu_activity_kind kind, uint64_t bytes,
                   kiln_cpu_place from, kiln_cpu_place to, bool in_graph)
{
  const kiln_cpu_activity *w = &all.work[i];

  ck_assert_uint_lt(i, all.n);
  ck_assert_int_eq(w->kind, kind);
  ck_assert_uint_eq(w->bytes, bytes);
  ck_assert_int_eq(w->from, from);
  ck_assert_int_eq(w->to, to);
  ck_assert_int_eq(w->in_graph, in_graph);
  ck_assert_int_eq(w->result, CUDA_SUCCESS);
  ck_assert_uint_le(w->begin_ns, w->end_ns);
  ck_assert_str_eq(w->name, "");
  /* Only the drop-in library numbers calls. */
  ck_assert_uint_eq(w->call, 0);
}

START_TEST(copies_and_fills_are_reported)
{
  CUstream s = make_stream(1);
  CUdeviceptr p = make_memory(4096);
  char host[1000] = {0};

  begin();
  ok(cu(memcpyHtoD)(p, host, 1000));
  ok(cu(memsetD32Async)(p, 7, 25, s));
  ok(cu(memcpyDtoD)(p + 2048, p, 300));
  ok(cu(ctxSynchronize)());
  ok(cu(memcpyDtoHAsync)(host, p, 200, s));
  ok(cu(streamSynchronize)(s));
  end();
  ok(cu(memcpyHtoD)(p, host, 1000)); /* nobody observes this copy */
  ck_assert_uint_eq(all.n, 4);
  expect(0, KILN_CPU_WORK_COPY, 1000, KILN_CPU_PLACE_HOST,
         KILN_CPU_PLACE_DEVICE, false);
  expect(1, KILN_CPU_WORK_FILL, 100, KILN_CPU_PLACE_UNKNOWN,
         KILN_CPU_PLACE_DEVICE, false);
  expect(2, KILN_CPU_WORK_COPY, 300, KILN_CPU_PLACE_DEVICE,
         KILN_CPU_PLACE_DEVICE, false);
  expect(3, KILN_CPU_WORK_COPY, 200, KILN_CPU_PLACE_DEVICE, KILN_CPU_PLACE_HOST,
         false);
  ck_assert_uint_eq(all.work[0].stream, 0);
  ck_assert_uint_ne(all.work[1].stream, 0);
  ck_assert_uint_eq(all.work[1].stream, all.work[3].stream);
  ck_assert_uint_eq(all.work[0].context, all.work[3].context);
}
END_TEST

static void nothing(void *user)
{
  (void)user;
}

/* Every node of a graph is reported at every launch, and the launch itself is
 * not. */
START_TEST(graphs_are_reported_node_by_node)
{
  CUstream s = make_stream(1);
  CUdeviceptr p = make_memory(4096);
  CUgraph graph;
  CUgraphExec exec;

  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(cu(memsetD8Async)(p, 1, 512, s));
  ok(cu(memcpyDtoDAsync)(p + 1024, p, 512, s));
  ok(cu(launchHostFunc)(s, nothing, NULL));
  ok(cu(streamEndCapture)(s, &graph));
  ok(cu(graphInstantiateWithFlags)(&exec, graph, 0));
  begin();
  for (int i = 0; i < 3; i++)
    ok(cu(graphLaunch)(exec, s));
  ok(cu(streamSynchronize)(s));
  end();
  ck_assert_uint_eq(all.n, 9);
  for (size_t i = 0; i < 9; i += 3) {
    expect(i, KILN_CPU_WORK_FILL, 512, KILN_CPU_PLACE_UNKNOWN,
           KILN_CPU_PLACE_DEVICE, true);
    expect(i + 1, KILN_CPU_WORK_COPY, 512, KILN_CPU_PLACE_DEVICE,
           KILN_CPU_PLACE_DEVICE, true);
    ck_assert_int_eq(all.work[i + 2].kind, KILN_CPU_WORK_HOST);
  }
  ok(cu(graphExecDestroy)(exec));
  ok(cu(graphDestroy)(graph));
}
END_TEST

START_TEST(failures_have_their_result)
{
  CUstream s = make_stream(1);

  begin();
  ok(kiln__cpu_enqueue(context, s, failing_work(CUDA_ERROR_ILLEGAL_ADDRESS)));
  is(cu(streamSynchronize)(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  end();
  ck_assert_uint_eq(all.n, 1);
  ck_assert_int_eq(all.work[0].kind, KILN_CPU_WORK_KERNEL);
  ck_assert_int_eq(all.work[0].result, CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(names_become_readable)
{
  char name[32];

  ck_assert_str_eq(
      kiln_cpu_readable_name("_ZN2ns4copyIfLi4EEEvPT_", name, sizeof name),
      "ns::copy<float, 4>");
  ck_assert_str_eq(kiln_cpu_readable_name("plain", name, 3), "pl");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_observe");

  kiln_test_case(s, "observe", 60, setup, teardown,
                 TESTS(copies_and_fills_are_reported,
                       graphs_are_reported_node_by_node,
                       failures_have_their_result));
  kiln_test_case(s, "names", 60, NULL, NULL, TESTS(names_become_readable));
  return kiln_test_run(s);
}
