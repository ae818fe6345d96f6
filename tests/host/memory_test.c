/* memory_test.c -- tests allocation, copies and fills on the fake driver. */
#include "device_fixture.h"

static unsigned char pattern[1000], back[1000];

static void set_up(void)
{
  set_up_device();
  for (size_t i = 0; i < sizeof pattern; i++)
    pattern[i] = (unsigned char)(i * 7 + 1);
  memset(back, 0, sizeof back);
}

static CUdeviceptr get(size_t size)
{
  CUdeviceptr p;

  ck_kiln_ok(kiln_memory_alloc(&p, f.device, size));
  ck_assert(p != 0);
  ck_assert(p % 256 == 0);
  return p;
}

static void put(CUdeviceptr p)
{
  ck_kiln_ok(kiln_memory_free(f.device, p));
}

START_TEST(nothing_is_nothing)
{
  CUdeviceptr p = 5;
  kiln_stream *stream;
  void *pinned = &p;

  ck_kiln_ok(kiln_memory_alloc(&p, f.device, 0));
  ck_assert(p == 0);
  ck_kiln_ok(kiln_memory_free(f.device, 0));
  ck_kiln_ok(kiln_host_alloc(&pinned, f.device, 0));
  ck_assert_ptr_null(pinned);
  ck_kiln_ok(kiln_host_free(f.device, NULL));
  ck_kiln_ok(kiln_host_register(f.device, NULL, 0));
  ck_kiln_ok(kiln_host_unregister(f.device, NULL));
  ck_kiln_ok(kiln_copy_to_device(f.device, 0, NULL, 0));
  ck_kiln_ok(kiln_copy_to_host(f.device, NULL, 0, 0));
  ck_kiln_ok(kiln_copy_on_device(f.device, 0, 0, 0));
  ck_kiln_ok(kiln_copy_peer(f.device, 0, f.device, 0, 0));
  ck_kiln_ok(kiln_fill(f.device, 0, 0, 4, 0));
  /* The calls on 0 bytes have not reached the driver. */
  ck_assert_int_eq(f.cuda->retained, 0);
  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln_memory_alloc_async(&p, stream, 0));
  ck_kiln_ok(kiln_memory_free_async(stream, 0));
  ck_kiln_ok(kiln_copy_to_device_async(stream, 0, NULL, 0));
  ck_kiln_ok(kiln_fill_async(stream, 0, 0, 1, 0));
  kiln_stream_free(stream);
}
END_TEST

START_TEST(copies_arrive_and_are_waited_for)
{
  const CUdeviceptr a = get(1000), b = get(1000);
  int waits = f.cuda->calls[FAKE_CUDA_streamSynchronize];

  ck_kiln_ok(kiln_copy_to_device(f.device, a, pattern, 1000));
  ck_kiln_ok(kiln_copy_on_device(f.device, b, a, 1000));
  ck_kiln_ok(kiln_copy_to_host(f.device, back, b, 1000));
  ck_assert_mem_eq(back, pattern, 1000);
  /* For the first two copies, the driver returns before the device has the
   * data, so Kiln must wait for the stream. */
  ck_assert_int_ge(f.cuda->calls[FAKE_CUDA_streamSynchronize], waits + 2);
  put(a);
  put(b);
}
END_TEST

START_TEST(fills_of_every_width)
{
  const CUdeviceptr p = get(64);
  uint16_t halves[32];
  uint32_t words[16];

  ck_kiln_ok(kiln_fill(f.device, p, 0x1ab, 1, 64));
  ck_kiln_ok(kiln_copy_to_host(f.device, back, p, 64));
  ck_assert_int_eq(back[0], 0xab);
  ck_assert_int_eq(back[63], 0xab);
  ck_kiln_ok(kiln_fill(f.device, p + 2, 0xabcd, 2, 31));
  ck_kiln_ok(kiln_copy_to_host(f.device, halves, p, 64));
  ck_assert_int_eq(halves[0], 0xabab);
  ck_assert_int_eq(halves[1], 0xabcd);
  ck_assert_int_eq(halves[31], 0xabcd);
  ck_kiln_ok(kiln_fill(f.device, p + 4, 0xdeadbeef, 4, 15));
  ck_kiln_ok(kiln_copy_to_host(f.device, words, p, 64));
  ck_assert_uint_eq(words[0], 0xabcdabab);
  ck_assert_uint_eq(words[15], 0xdeadbeef);
  put(p);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
  const CUdeviceptr p = get(64);
  CUdeviceptr q = 1;
  void *pinned;
  kiln_stream *stream;
  uint64_t unused;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_is(kiln_memory_alloc(NULL, f.device, 1), KILN_EINVAL);
  ck_kiln_is(kiln_memory_alloc(&q, NULL, 1), KILN_EINVAL);
  ck_assert(q == 0);
  ck_kiln_is(kiln_memory_free(NULL, p), KILN_EINVAL);
  ck_kiln_is(kiln_memory_alloc_async(&q, NULL, 1), KILN_EINVAL);
  ck_kiln_is(kiln_memory_free_async(NULL, p), KILN_EINVAL);
  ck_kiln_is(kiln_memory_info(f.device, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_memory_info(NULL, &unused, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_host_alloc(&pinned, NULL, 1), KILN_EINVAL);
  ck_kiln_is(kiln_host_alloc(NULL, f.device, 1), KILN_EINVAL);
  ck_kiln_is(kiln_host_register(f.device, NULL, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_device(NULL, p, pattern, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_device(f.device, 0, pattern, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_device(f.device, p, NULL, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_host(f.device, NULL, p, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_host(f.device, back, 0, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_on_device(f.device, p, 0, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_peer(f.device, p, NULL, p, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_peer(NULL, p, f.device, p, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_device_async(NULL, p, pattern, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_device_async(stream, p, NULL, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_to_host_async(stream, NULL, p, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_on_device_async(stream, p, 0, 1), KILN_EINVAL);
  ck_kiln_is(kiln_copy_peer_async(NULL, f.device, p, f.device, p, 1),
             KILN_EINVAL);
  ck_kiln_is(kiln_copy_peer_async(stream, NULL, p, f.device, p, 1),
             KILN_EINVAL);
  ck_kiln_is(kiln_fill(f.device, p, 0, 3, 1), KILN_EINVAL);
  ck_kiln_is(kiln_fill(f.device, p, 0, 0, 1), KILN_EINVAL);
  ck_kiln_is(kiln_fill(f.device, p + 2, 0, 4, 1), KILN_EINVAL);
  ck_kiln_is(kiln_fill(f.device, p + 1, 0, 2, 1), KILN_EINVAL);
  ck_kiln_is(kiln_fill(f.device, p, 0, 4, SIZE_MAX / 2), KILN_EINVAL);
  ck_kiln_is(kiln_fill(f.device, 0, 0, 4, 1), KILN_EINVAL);
  ck_kiln_is(kiln_fill_async(NULL, p, 0, 1, 1), KILN_EINVAL);
  kiln_stream_free(stream);
  put(p);
}
END_TEST

START_TEST(asynchronous_copies_and_fills)
{
  const CUdeviceptr a = get(1000), b = get(1000);
  kiln_stream *stream;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln_copy_to_device_async(stream, a, pattern, 1000));
  ck_kiln_ok(kiln_copy_on_device_async(stream, b, a, 1000));
  ck_kiln_ok(kiln_fill_async(stream, b, 9, 1, 10));
  ck_kiln_ok(kiln_fill_async(stream, b + 10, 0x0909, 2, 5));
  ck_kiln_ok(kiln_fill_async(stream, b + 20, 0x09090909, 4, 5));
  ck_kiln_ok(kiln_copy_to_host_async(stream, back, b, 1000));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  for (int i = 0; i < 40; i++)
    ck_assert_int_eq(back[i], 9);
  ck_assert_mem_eq(back + 40, pattern + 40, 960);
  kiln_stream_free(stream);
  put(a);
  put(b);
}
END_TEST

START_TEST(pools_where_there_are_some)
{
  kiln_stream *stream;
  CUdeviceptr p;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln_memory_alloc_async(&p, stream, 100));
  ck_kiln_ok(kiln_memory_free_async(stream, p));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_memAllocAsync], 1);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_memFreeAsync], 1);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_memAlloc], 0);
  f.device->info.memory_pools = false;
  ck_kiln_ok(kiln_memory_alloc_async(&p, stream, 100));
  ck_kiln_ok(kiln_memory_free_async(stream, p));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_memAllocAsync], 1);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_memAlloc], 1);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_memFree], 1);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_streamSynchronize], 1);
  kiln_stream_free(stream);
}
END_TEST

START_TEST(a_device_without_pools_is_found_out)
{
  kiln_device_info info;
  kiln_device *device;

  f.cuda->devices[0].attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 0;
  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, NULL));
  ck_kiln_ok(kiln_device_describe(device, &info));
  ck_assert(!info.memory_pools);
  kiln_device_free(device);
  f.cuda->devices[0].attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
  f.rt->driver.memAllocAsync = NULL;
  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, NULL));
  ck_kiln_ok(kiln_device_describe(device, &info));
  ck_assert(!info.memory_pools);
  kiln_device_free(device);
}
END_TEST

START_TEST(memory_that_runs_out)
{
  kiln_stream *stream;
  CUdeviceptr p = 1;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_is(kiln_memory_alloc(&p, f.device, (size_t)1 << 40), KILN_EDEVMEM);
  ck_assert(p == 0);
  ck_assert_str_ne(kiln_last_error()->hint, "");
  p = 1;
  ck_kiln_is(kiln_memory_alloc_async(&p, stream, (size_t)1 << 40),
             KILN_EDEVMEM);
  ck_assert(p == 0);
  kiln_stream_free(stream);
}
END_TEST

START_TEST(pinned_memory)
{
  uint64_t unused = 0, total = 0;
  void *p;

  ck_kiln_ok(kiln_host_alloc(&p, f.device, 4096));
  ck_assert_ptr_nonnull(p);
  memset(p, 1, 4096);
  ck_assert_int_eq(f.cuda->pinned, 1);
  ck_kiln_ok(kiln_host_free(f.device, p));
  ck_kiln_ok(kiln_host_register(f.device, pattern, sizeof pattern));
  ck_assert_int_eq(f.cuda->pinned, 1);
  ck_kiln_ok(kiln_host_unregister(f.device, pattern));
  ck_kiln_is(kiln_host_unregister(f.device, back), KILN_EDRIVER);
  ck_kiln_ok(kiln_memory_info(f.device, &unused, &total));
  ck_assert(total == (uint64_t)80 << 30 && unused == (uint64_t)79 << 30);
  ck_kiln_ok(kiln_memory_info(f.device, &unused, NULL));
}
END_TEST

START_TEST(copies_between_devices)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_device *other;
  kiln_stream *stream;
  CUdeviceptr a, b;

  f.cuda->n_devices = 2;
  ck_kiln_ok(kiln_device_open(&other, f.rt, 1, &own));
  a = get(1000);
  ck_kiln_ok(kiln_memory_alloc(&b, other, 1000));
  ck_kiln_ok(kiln_copy_to_device(f.device, a, pattern, 1000));
  ck_kiln_ok(kiln_copy_peer(other, b, f.device, a, 1000));
  ck_kiln_ok(kiln_copy_to_host(other, back, b, 1000));
  ck_assert_mem_eq(back, pattern, 1000);

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln_fill(other, b, 3, 1, 1000));
  ck_kiln_ok(kiln_copy_peer_async(stream, f.device, a, other, b, 1000));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_copy_to_host(f.device, back, a, 1000));
  ck_assert_int_eq(back[999], 3);
  kiln_stream_free(stream);
  put(a);
  ck_kiln_ok(kiln_memory_free(other, b));
  kiln_device_free(other);
  f.cuda->n_devices = 1;
}
END_TEST

static const int copying[] = {FAKE_CUDA_memcpyHtoD, FAKE_CUDA_streamSynchronize,
                              FAKE_CUDA_ctxPushCurrent,
                              FAKE_CUDA_streamIsCapturing};

START_TEST(a_failed_copy_restores_everything)
{
  const CUdeviceptr p = get(64);
  const bool counts = copying[_i] != FAKE_CUDA_streamIsCapturing;

  f.cuda->rc[copying[_i]] = CUDA_ERROR_ILLEGAL_ADDRESS;
  ck_kiln_is(kiln_copy_to_device(f.device, p, pattern, 64),
             counts ? KILN_ESTICKY : KILN_OK);
  f.cuda->rc[copying[_i]] = 0;
  check_calm();
  ck_kiln_ok(kiln_copy_to_device(f.device, p, pattern, 64));
  put(p);
}
END_TEST

/* A capture of another stream in the strictest mode neither prevents memory
 * calls nor is invalidated by them. Copies in the captured stream become graph
 * nodes. */
START_TEST(memory_calls_leave_a_capture_whole)
{
  kiln_stream *stream;
  kiln__scope scope;
  CUdeviceptr p, q;
  CUgraph graph;
  void *pinned;
  uint64_t unused;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamBeginCapture(kiln_stream_handle(stream),
                                      CU_STREAM_CAPTURE_MODE_GLOBAL),
      0);
  kiln__leave(&scope);

  p = get(1000);
  ck_kiln_ok(kiln_copy_to_device(f.device, p, pattern, 1000));
  ck_kiln_ok(kiln_copy_to_host(f.device, back, p, 1000));
  ck_kiln_ok(kiln_fill(f.device, p, 0, 4, 10));
  /* This copy is captured, so it does not run yet. */
  ck_kiln_ok(kiln_copy_to_host_async(stream, back, p, 1000));
  ck_assert_mem_eq(back, pattern, 1000);
  ck_kiln_ok(kiln_host_alloc(&pinned, f.device, 10));
  ck_kiln_ok(kiln_host_free(f.device, pinned));
  ck_kiln_ok(kiln_memory_info(f.device, &unused, NULL));
  q = get(10);
  put(q);

  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph), 0);
  ck_assert_int_eq(f.rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  kiln_stream_free(stream);
  put(p);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("memory");
  TCase *t = kiln_test_case(
      s, "memory", 0, set_up, tear_down,
      TESTS(nothing_is_nothing, copies_arrive_and_are_waited_for,
            fills_of_every_width, bad_arguments_are_refused,
            asynchronous_copies_and_fills, pools_where_there_are_some,
            a_device_without_pools_is_found_out, memory_that_runs_out,
            pinned_memory, copies_between_devices,
            memory_calls_leave_a_capture_whole));

  tcase_add_loop_test(t, a_failed_copy_restores_everything, 0, 4);
  return kiln_test_run(s);
}
