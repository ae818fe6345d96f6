/* capture_test.c -- launches and copies captured into a graph, and calls that
 * are allowed during a capture. */
#include "gpu_fixture.h"
#include "ops_fixture.h"

static const char source[] =
    "__device__ int step;\n"
    "extern \"C\" __global__ void add(int *data, int n, int value)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    data[i] += value + step;\n"
    "}\n";

enum { N = 1000 };

static CUdeviceptr data;

static void set_up(void)
{
  gpu_set_up();
  device = g.device;
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  data = gpu_alloc(g.device, N * 4);
  ck_kiln_ok(kiln_fill(g.device, data, 0, 4, N));
}

static void tear_down(void)
{
  ck_kiln_ok(kiln_memory_free(g.device, data));
  kiln_stream_free(stream);
  gpu_tear_down();
}

static void replay(CUgraphExec exec, int times)
{
  for (int i = 0; i < times; i++)
    capture_replay(exec);
  ck_kiln_ok(kiln_stream_synchronize(stream));
}

static void expect(int want)
{
  int back[N];

  ck_kiln_ok(kiln_copy_to_host(g.device, back, data, sizeof back));
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(back[i], want);
}

static kiln_status add(kiln_module *module, int value)
{
  kiln_launch_config c = kiln_launch_1d(N, 128);
  int n = N;

  c.stream = stream;
  return KILN_LAUNCH(gpu_kernel(module, "add"), &c, KILN_ARG(data), KILN_ARG(n),
                     KILN_ARG(value));
}

static const int modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                            CU_STREAM_CAPTURE_MODE_RELAXED};

START_TEST(launches_and_copies_are_captured)
{
  kiln_module *module = gpu_load(g.device, source);
  static int first[N];
  CUgraphExec exec;

  for (int i = 0; i < N; i++)
    first[i] = 5;
  capture_begin_in(modes[_i]);
  ck_kiln_ok(kiln_copy_to_device_async(stream, data, first, sizeof first));
  ck_kiln_ok(add(module, 1));
  ck_kiln_ok(add(module, 10));
  exec = capture_end();
  expect(0); /* the capture has not run the work */
  replay(exec, 1);
  expect(16);
  replay(exec, 3);
  expect(16);
  capture_free(exec);
  kiln_module_free(module);
}
END_TEST

/* A program may be compiled, loaded and launched for the first time during a
 * capture, including its kernel and symbol look-ups. */
START_TEST(first_load_inside_a_capture)
{
  const kiln_program_desc desc = {.source = source, .no_cache = true};
  const char *const names[] = {"&step"};
  kiln_program_desc named = desc;
  kiln_module *module = NULL;
  CUgraphExec exec;
  int one = 1;

  named.names = names;
  named.n_names = 1;
  capture_begin_in(modes[_i]);
  ck_kiln_ok(kiln_module_load(&module, g.device, &named));
  ck_kiln_ok(kiln_symbol_write(module, "&step", 0, &one, 4));
  ck_kiln_ok(add(module, 2));
  exec = capture_end();
  replay(exec, 4);
  expect(12);
  capture_free(exec);
  kiln_module_free(module);
}
END_TEST

START_TEST(unloading_inside_a_capture)
{
  kiln_module *module = gpu_load(g.device, source);
  kiln_module *other = gpu_load(g.device, SPIN);
  CUgraphExec exec;

  gpu_kernel(other, "spin");
  capture_begin_in(modes[_i]);
  ck_kiln_ok(add(module, 3));
  kiln_module_free(other);
  exec = capture_end();
  replay(exec, 2);
  expect(6);
  capture_free(exec);
  kiln_module_free(module);
}
END_TEST

START_TEST(memory_calls_inside_a_capture)
{
  kiln_module *module = gpu_load(g.device, source);
  CUdeviceptr p = 0;
  CUgraphExec exec;
  kiln_event *event;
  char bytes[64] = {1};
  uint64_t unused;
  void *pinned;

  ck_kiln_ok(kiln_event_create(&event, g.device, true));
  ck_kiln_ok(kiln_event_record(event, NULL));
  capture_begin_in(modes[_i]);
  ck_kiln_ok(add(module, 4));
  ck_kiln_ok(kiln_memory_alloc(&p, g.device, 64));
  ck_kiln_ok(kiln_copy_to_device(g.device, p, bytes, 64));
  ck_kiln_ok(kiln_fill(g.device, p, 9, 1, 64));
  ck_kiln_ok(kiln_copy_to_host(g.device, bytes, p, 64));
  ck_assert_int_eq(bytes[63], 9);
  ck_kiln_ok(kiln_host_alloc(&pinned, g.device, 64));
  ck_kiln_ok(kiln_host_free(g.device, pinned));
  ck_kiln_ok(kiln_memory_info(g.device, &unused, NULL));
  ck_kiln_ok(kiln_event_synchronize(event));
  ck_kiln_ok(kiln_event_query(event));
  ck_kiln_ok(kiln_memory_free(g.device, p));
  exec = capture_end();
  replay(exec, 2);
  expect(8);
  capture_free(exec);
  kiln_event_free(event);
  kiln_module_free(module);
}
END_TEST

START_TEST(waiting_is_refused_and_spoils_nothing)
{
  kiln_module *module = gpu_load(g.device, source);
  CUgraphExec exec;

  capture_begin_in(modes[_i]);
  ck_kiln_ok(add(module, 6));
  ck_kiln_is(kiln_stream_synchronize(stream), KILN_ECAPTURE);
  ck_kiln_is(kiln_stream_query(stream), KILN_ECAPTURE);
  exec = capture_end();
  replay(exec, 1);
  expect(6);
  capture_free(exec);
  kiln_module_free(module);
}
END_TEST

/* The device cannot be synchronised during a capture. The driver may invalidate
 * the capture. */
START_TEST(synchronising_the_device_is_refused)
{
  CUgraph graph = NULL;
  kiln__scope scope;
  CUresult rc;

  capture_begin_in(modes[_i]);
  ck_kiln_is(kiln_device_synchronize(g.device), KILN_ECAPTURE);
  ck_kiln_ok(kiln__enter(g.device, &scope));
  rc = g.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph);
  printf("mode %d: the capture ends with %d after that\n", modes[_i], rc);
  if (rc == 0)
    g.rt->driver.graphDestroy(graph);
  kiln__leave(&scope);
}
END_TEST

/* While a blocking stream is being captured, the default stream cannot be
 * used. */
START_TEST(the_default_stream_tied_up)
{
  const kiln_stream_opts blocking = {.blocking = true};
  char byte = 0;

  kiln_stream_free(stream);
  ck_kiln_ok(kiln_stream_create(&stream, g.device, &blocking));
  capture_begin_in(modes[_i]);
  ck_kiln_is(kiln_copy_to_device(g.device, data, &byte, 1), KILN_ECAPTURE);
  ck_kiln_is(kiln_fill(g.device, data, 0, 1, 1), KILN_ECAPTURE);
  capture_free(capture_end());
}
END_TEST

START_TEST(timelines_leave_captured_streams_alone)
{
  kiln_module *module = gpu_load(g.device, source);
  kiln_timeline *timeline;
  CUgraphExec exec;

  ck_kiln_ok(kiln_timeline_create(&timeline, g.device));
  ck_kiln_ok(kiln_stream_attach(stream, timeline));
  capture_begin_in(modes[_i]);
  ck_kiln_ok(add(module, 7));
  ck_kiln_is(kiln_timeline_begin(timeline, stream, "no"), KILN_ECAPTURE);
  exec = capture_end();
  replay(exec, 1);
  expect(7);
  ck_kiln_ok(kiln_stream_attach(stream, NULL));
  kiln_timeline_free(timeline);
  capture_free(exec);
  kiln_module_free(module);
}
END_TEST

/* A graph can be replayed after its image has left the caches, because the
 * module is still loaded. */
START_TEST(replay_after_the_cache_was_cleared)
{
  kiln_module *module = gpu_load(g.device, source);
  CUgraphExec exec;
  uint64_t removed;

  capture_begin_in(modes[_i]);
  ck_kiln_ok(add(module, 1));
  exec = capture_end();
  ck_kiln_ok(kiln_cache_clear(g.rt, &removed));
  replay(exec, 5);
  expect(5);
  capture_free(exec);
  kiln_module_free(module);
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("capture on a GPU");
  TCase *t = tcase_create("capture");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, launches_and_copies_are_captured, 0, 3);
  tcase_add_loop_test(t, first_load_inside_a_capture, 0, 3);
  tcase_add_loop_test(t, unloading_inside_a_capture, 0, 3);
  tcase_add_loop_test(t, memory_calls_inside_a_capture, 0, 3);
  tcase_add_loop_test(t, waiting_is_refused_and_spoils_nothing, 0, 3);
  tcase_add_loop_test(t, synchronising_the_device_is_refused, 0, 3);
  tcase_add_loop_test(t, the_default_stream_tied_up, 0, 3);
  tcase_add_loop_test(t, timelines_leave_captured_streams_alone, 0, 3);
  tcase_add_loop_test(t, replay_after_the_cache_was_cleared, 0, 1);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
