/* memory_graph_test.c -- tests pitched, managed and mapped memory, 2-D copies,
 * graphs and host functions on the CPU device. The tests need no kernel and no
 * compiler. */
#include "support.h"

#include <kiln/cpu.h>

#include <string.h>

enum { WIDTH = 37, HEIGHT = 11, HOST_PITCH = 40 };

static kiln_runtime *rt;
static kiln_device *device;
static kiln_stream *stream;
static unsigned char source[HEIGHT][HOST_PITCH], result[HEIGHT][HOST_PITCH];

static void set_up(void)
{
  kiln_runtime_opts opts = {
      .driver = kiln_cpu_driver(), .cache_off = true, .ignore_env = true};

  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  for (size_t y = 0; y < HEIGHT; y++) {
    for (size_t x = 0; x < HOST_PITCH; x++)
      source[y][x] = (unsigned char)(y * 50 + x + 1);
  }
  memset(result, 0xee, sizeof result);
}

static void tear_down(void)
{
  kiln_stream_free(stream);
  kiln_device_free(device);
  kiln_runtime_free(rt);
}

/* Checks that the rectangle was copied and that the padding between its rows
 * did not change. */
static void check_result(void)
{
  for (size_t y = 0; y < HEIGHT; y++) {
    ck_assert_mem_eq(result[y], source[y], WIDTH);
    for (size_t x = WIDTH; x < HOST_PITCH; x++)
      ck_assert_uint_eq(result[y][x], 0xee);
  }
}

START_TEST(rectangles_go_through_pitched_memory)
{
  CUdeviceptr a, b;
  size_t pitch, other;
  kiln_extent e = {.width = WIDTH, .height = HEIGHT};

  ck_kiln_ok(kiln_memory_alloc_pitched(&a, &pitch, device, WIDTH, HEIGHT));
  ck_kiln_ok(kiln_memory_alloc_pitched(&b, &other, device, WIDTH, HEIGHT));
  ck_assert_uint_ge(pitch, WIDTH);
  ck_assert_uint_eq(pitch, other);
  e.dst_pitch = pitch;
  e.src_pitch = HOST_PITCH;
  ck_kiln_ok(kiln_copy_2d_to_device(device, a, source, &e));
  e.src_pitch = pitch;
  ck_kiln_ok(kiln_copy_2d_on_device(device, b, a, &e));
  e.dst_pitch = HOST_PITCH;
  ck_kiln_ok(kiln_copy_2d_to_host(device, result, b, &e));
  check_result();
  ck_kiln_ok(kiln_memory_free(device, a));
  ck_kiln_ok(kiln_memory_free(device, b));
}
END_TEST

START_TEST(rectangles_are_queued_too)
{
  CUdeviceptr a, b;
  kiln_extent e = {.width = WIDTH, .height = HEIGHT, .src_pitch = HOST_PITCH};

  ck_kiln_ok(kiln_memory_alloc(&a, device, WIDTH * HEIGHT));
  ck_kiln_ok(kiln_memory_alloc(&b, device, WIDTH * HEIGHT));
  ck_kiln_ok(kiln_copy_2d_to_device_async(stream, a, source, &e));
  e.src_pitch = 0; /* A pitch of 0 means that the rows have no padding. */
  ck_kiln_ok(kiln_copy_2d_on_device_async(stream, b, a, &e));
  e.dst_pitch = HOST_PITCH;
  ck_kiln_ok(kiln_copy_2d_to_host_async(stream, result, b, &e));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  check_result();
  ck_kiln_ok(kiln_memory_free(device, a));
  ck_kiln_ok(kiln_memory_free(device, b));
}
END_TEST

START_TEST(bad_rectangles_are_refused)
{
  kiln_extent e = {.width = WIDTH, .height = HEIGHT, .src_pitch = WIDTH - 1};
  CUdeviceptr p;
  size_t pitch;

  ck_kiln_ok(kiln_memory_alloc(&p, device, WIDTH * HEIGHT));
  ck_kiln_is(kiln_copy_2d_to_device(device, p, source, &e), KILN_EINVAL);
  e.src_pitch = 0;
  ck_kiln_is(kiln_copy_2d_to_device(device, p, NULL, &e), KILN_EINVAL);
  ck_kiln_is(kiln_copy_2d_to_device(NULL, p, source, &e), KILN_EINVAL);
  ck_kiln_is(kiln_copy_2d_to_host(device, result, p, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_copy_2d_to_host_async(NULL, result, p, &e), KILN_EINVAL);
  e.height = 0; /* A copy of 0 rows does nothing. */
  ck_kiln_ok(kiln_copy_2d_to_device(device, 0, NULL, &e));
  ck_kiln_ok(kiln_memory_free(device, p));
  p = 1;
  pitch = 1;
  ck_kiln_ok(kiln_memory_alloc_pitched(&p, &pitch, device, 0, 5));
  ck_assert(p == 0 && pitch == 0);
  ck_kiln_is(kiln_memory_alloc_pitched(&p, NULL, device, 1, 1), KILN_EINVAL);
}
END_TEST

START_TEST(host_and_device_share_managed_memory)
{
  CUdeviceptr p = 1;
  uint32_t *words;

  ck_kiln_ok(kiln_memory_alloc_managed(&p, device, 64));
  words = (uint32_t *)(uintptr_t)p;
  words[3] = 7;
  ck_kiln_ok(kiln_fill(device, p, 0x01020304, 4, 2));
  ck_assert_uint_eq(words[1], 0x01020304);
  ck_assert_uint_eq(words[3], 7);
  ck_kiln_ok(kiln_memory_free(device, p));
  ck_kiln_ok(kiln_memory_alloc_managed(&p, device, 0));
  ck_assert(p == 0);
  ck_kiln_is(kiln_memory_alloc_managed(NULL, device, 1), KILN_EINVAL);
}
END_TEST

START_TEST(the_device_reaches_mapped_memory)
{
  static uint32_t own[64];
  CUdeviceptr address;
  void *pinned;

  ck_kiln_ok(kiln_host_alloc(&pinned, device, 64));
  ck_kiln_ok(kiln_host_address(&address, device, pinned));
  ck_kiln_ok(kiln_fill(device, address, 5, 4, 16));
  ck_assert_uint_eq(((uint32_t *)pinned)[15], 5);
  ck_kiln_ok(kiln_host_free(device, pinned));
  ck_kiln_ok(kiln_host_register(device, own, sizeof own));
  ck_kiln_ok(kiln_host_address(&address, device, own));
  ck_kiln_ok(kiln_fill(device, address, 6, 4, 64));
  ck_assert_uint_eq(own[63], 6);
  ck_kiln_ok(kiln_host_unregister(device, own));
  ck_kiln_is(kiln_host_address(&address, device, NULL), KILN_EINVAL);
  ck_assert(address == 0);
}
END_TEST

static void count(void *user)
{
  ++*(int *)user;
}

START_TEST(a_graph_repeats_what_was_captured)
{
  CUdeviceptr p;
  kiln_graph *graph;
  uint32_t word = 1;
  int calls = 0;

  ck_kiln_ok(kiln_memory_alloc(&p, device, 4));
  ck_kiln_ok(kiln_graph_begin(stream));
  ck_kiln_is(kiln_graph_begin(stream), KILN_ECAPTURE);
  ck_kiln_ok(kiln_fill_async(stream, p, 9, 4, 1));
  ck_kiln_ok(kiln_copy_to_host_async(stream, &word, p, 4));
  ck_kiln_ok(kiln_stream_call(stream, count, &calls));
  ck_kiln_is(kiln_stream_synchronize(stream), KILN_ECAPTURE);
  ck_kiln_ok(kiln_graph_end(&graph, stream));
  ck_assert_ptr_nonnull(kiln_graph_handle(graph));
  ck_assert_uint_eq(word, 1); /* The graph was captured but has not run yet. */
  ck_assert_int_eq(calls, 0);
  for (int i = 1; i <= 3; i++) {
    word = 0;
    ck_kiln_ok(kiln_graph_launch(graph, stream));
    ck_kiln_ok(kiln_stream_synchronize(stream));
    ck_assert_uint_eq(word, 9);
    ck_assert_int_eq(calls, i);
  }
  kiln_graph_free(graph);
  kiln_graph_free(NULL);
  ck_kiln_ok(kiln_memory_free(device, p));
}
END_TEST

START_TEST(graphs_are_refused_with_a_reason)
{
  kiln_graph *graph = (kiln_graph *)&rt;

  ck_kiln_is(kiln_graph_end(&graph, stream), KILN_EINVAL);
  ck_assert_ptr_null(graph);
  ck_kiln_is(kiln_graph_begin(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_graph_end(NULL, stream), KILN_EINVAL);
  ck_kiln_is(kiln_graph_launch(NULL, stream), KILN_EINVAL);
  ck_kiln_is(kiln_stream_call(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_ptr_null(kiln_graph_handle(NULL));
}
END_TEST

START_TEST(a_host_function_runs_in_stream_order)
{
  CUdeviceptr p;
  int calls = 0;

  ck_kiln_ok(kiln_memory_alloc(&p, device, 4));
  ck_kiln_ok(kiln_fill_async(stream, p, 1, 4, 1));
  ck_kiln_ok(kiln_stream_call(stream, count, &calls));
  ck_kiln_ok(kiln_stream_call(stream, count, &calls));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_assert_int_eq(calls, 2);
  ck_kiln_ok(kiln_memory_free(device, p));
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "memory_graph", 0, set_up, tear_down,
      TESTS(rectangles_go_through_pitched_memory, rectangles_are_queued_too,
            bad_rectangles_are_refused, host_and_device_share_managed_memory,
            the_device_reaches_mapped_memory, a_graph_repeats_what_was_captured,
            graphs_are_refused_with_a_reason,
            a_host_function_runs_in_stream_order));
}
