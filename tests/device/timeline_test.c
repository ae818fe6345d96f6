/* timeline_test.c -- timeline spans on the device under test: their lengths,
 * their overlap, and the common time axis of host and device. */
#include "gpu_fixture.h"

#include <unistd.h>

typedef struct seen {
  size_t n;
  kiln_span spans[32];
  char names[32][64];
} seen;

static kiln_timeline *timeline;
static kiln_module *module;
static kiln_kernel *spin;
static kiln_stream *streams[2];

static void set_up(void)
{
  gpu_set_up();
  module = gpu_load(g.device, SPIN);
  spin = gpu_kernel(module, "spin");
  ck_kiln_ok(kiln_timeline_create(&timeline, g.device));
  for (int i = 0; i < 2; i++)
    ck_kiln_ok(kiln_stream_create(&streams[i], g.device, NULL));
}

static void tear_down(void)
{
  for (int i = 0; i < 2; i++)
    kiln_stream_free(streams[i]);
  kiln_timeline_free(timeline);
  kiln_module_free(module);
  gpu_tear_down();
}

static void keep(void *user, const kiln_span *span)
{
  seen *s = user;

  ck_assert_uint_lt(s->n, 32);
  s->spans[s->n] = *span;
  snprintf(s->names[s->n], 64, "%s", span->name);
  printf("row %d  %10.1f .. %10.1f us  %s\n", span->row, span->begin_us,
         span->end_us, span->name);
  s->n++;
}

static kiln_status run(kiln_stream *stream, long long ns)
{
  const kiln_launch_config c = {
      .grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = stream};

  return KILN_LAUNCH(spin, &c, KILN_ARG(ns));
}

START_TEST(two_streams_overlap)
{
  const long long ns = 20000000;
  seen s = {0};

  ck_kiln_ok(run(streams[0], 1000)); /* warm */
  ck_kiln_ok(kiln_device_synchronize(g.device));
  for (int i = 0; i < 2; i++)
    ck_kiln_ok(kiln_stream_attach(streams[i], timeline));
  for (int i = 0; i < 2; i++)
    ck_kiln_ok(run(streams[i], ns));
  ck_kiln_ok(kiln_timeline_each(timeline, keep, &s));
  ck_assert_uint_eq(s.n, 2);
  for (int i = 0; i < 2; i++) {
    const double us = s.spans[i].end_us - s.spans[i].begin_us;

    ck_assert_str_eq(s.names[i], "spin");
    /* On a busy machine the CPU device may take any time longer. */
    ck_assert_msg(us > 19900 && (on_cpu() || us < 60000), "%f us", us);
  }
  ck_assert_int_ne(s.spans[0].row, s.spans[1].row);
  /* The two kernels ran at the same time. */
  if (!on_cpu())
    ck_assert(s.spans[1].begin_us < s.spans[0].end_us);
}
END_TEST

START_TEST(host_and_device_share_an_axis)
{
  const kiln_span *host, *device;
  seen s = {0};

  ck_kiln_ok(run(streams[0], 1000));
  ck_kiln_ok(kiln_device_synchronize(g.device));
  ck_kiln_ok(kiln_timeline_host_begin(timeline, "host"));
  ck_kiln_ok(kiln_timeline_begin(timeline, streams[0], "device"));
  ck_kiln_ok(run(streams[0], 5000000));
  ck_kiln_ok(kiln_timeline_end(timeline, streams[0]));
  ck_kiln_ok(kiln_stream_synchronize(streams[0]));
  ck_kiln_ok(kiln_timeline_host_end(timeline));
  ck_kiln_ok(kiln_timeline_each(timeline, keep, &s));
  ck_assert_uint_eq(s.n, 2);
  host = &s.spans[s.spans[0].row == 0 ? 0 : 1];
  device = &s.spans[s.spans[0].row == 0 ? 1 : 0];
  ck_assert_int_eq(host->row, 0);
  /* Host and device clocks agree to some tens of microseconds. */
  ck_assert(device->begin_us > host->begin_us - 100);
  ck_assert(device->end_us < host->end_us + 100);
  ck_assert(device->end_us - device->begin_us > 4900);
}
END_TEST

START_TEST(copies_and_kernels_fill_a_trace)
{
  char path[] = "/tmp/kiln-trace-XXXXXX", *text;
  const int file = mkstemp(path);
  CUdeviceptr p = gpu_alloc(g.device, 8000000);
  size_t size;
  void *host;

  ck_assert_int_ge(file, 0);
  close(file);
  ck_kiln_ok(kiln_host_alloc(&host, g.device, 8000000));
  for (int i = 0; i < 2; i++)
    ck_kiln_ok(kiln_stream_attach(streams[i], timeline));
  for (int i = 0; i < 4; i++) {
    kiln_stream *stream = streams[i % 2];

    ck_kiln_ok(kiln_copy_to_device_async(stream, p, host, 4000000));
    ck_kiln_ok(run(stream, 200000));
    ck_kiln_ok(kiln_copy_to_host_async(stream, host, p, 4000000));
  }
  ck_kiln_ok(kiln_timeline_write(timeline, path));
  text = test_read_file(path, &size);
  unlink(path);
  ck_assert_ptr_nonnull(strstr(text, "\"copy HtoD 4.0 MB\""));
  ck_assert_ptr_nonnull(strstr(text, "\"copy DtoH 4.0 MB\""));
  ck_assert_ptr_nonnull(strstr(text, "\"spin\""));
  ck_assert_ptr_nonnull(strstr(text, "\"stream 2\""));
  free(text);
  ck_kiln_ok(kiln_host_free(g.device, host));
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("timeline on a GPU");
  TCase *t = tcase_create("timeline");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, two_streams_overlap);
  tcase_add_test(t, host_and_device_share_an_axis);
  tcase_add_test(t, copies_and_kernels_fill_a_trace);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
