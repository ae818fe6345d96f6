/* storage_test.c -- tests where the temporary storage of operations comes from, on
 * the fake driver: the stream, the device's own pool, or the default pool. */
#include "device_fixture.h"

#include "ops/ops.h"

#include <pthread.h>

static kiln_stream *stream;

/* More than a stream keeps. */
static const kiln__need large = {.temp = 16 << 20, .descriptors = 100};
static const kiln__need small = {.temp = 1000, .descriptors = 100};

static void set_up(void)
{
  set_up_device();
  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
}

static void tear_down_stream(void)
{
  kiln_stream_free(stream);
  tear_down();
}

static int calls(int function)
{
  return f.cuda->calls[function];
}

/* Opens and closes the storage of one call. */
static void call(kiln__need need)
{
  kiln__storage storage;

  ck_kiln_ok(kiln__storage_open(&storage, stream, NULL, need));
  ck_assert(storage.temp % 256 == 0 && storage.temp != 0);
  ck_assert(storage.descriptors % 256 == 0 && storage.descriptors != 0);
  kiln__storage_close(&storage);
  check_calm();
}

/* Checks how many large calls the own pool has served, and how many allocations
 * the default pool. */
static void served(int own, int by_default)
{
  ck_assert_int_eq(calls(FAKE_CUDA_memAllocFromPoolAsync), own);
  ck_assert_int_eq(calls(FAKE_CUDA_memAllocAsync), by_default);
  ck_assert_int_eq(f.cuda->allocations, 0);
}

START_TEST(large_calls_share_one_bounded_pool)
{
  call(large);
  call(large);
  served(2, 0);
  ck_assert_int_eq(calls(FAKE_CUDA_memPoolCreate), 1);
  ck_assert_int_eq(f.cuda->pools, 1);
  ck_assert_uint_eq(f.cuda->pool_keeps, 64 << 20);
}
END_TEST

START_TEST(small_calls_need_no_pool)
{
  call(small);
  call(small);
  ck_assert_int_eq(calls(FAKE_CUDA_memPoolCreate), 0);
  ck_assert_int_eq(calls(FAKE_CUDA_memAllocAsync), 2); /* for both calls */
}
END_TEST

/* Without the pool, or without its threshold, the default pool serves the calls,
 * and the attempt is not repeated. */
START_TEST(a_pool_that_fails_is_not_tried_again)
{
  f.cuda
      ->rc[_i == 0 ? FAKE_CUDA_memPoolCreate : FAKE_CUDA_memPoolSetAttribute] =
      _i == 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  call(large);
  call(large);
  served(0, 2);
  ck_assert_int_eq(calls(FAKE_CUDA_memPoolCreate), 1);
  ck_assert_int_eq(f.cuda->pools, 0);
}
END_TEST

START_TEST(devices_without_pools_have_plain_memory)
{
  f.device->info.memory_pools = false;
  call(large);
  served(0, 0);
  ck_assert_int_eq(calls(FAKE_CUDA_memPoolCreate), 0);
  ck_assert_int_eq(calls(FAKE_CUDA_memAlloc), 1);
}
END_TEST

/* An old driver, which lacks one of the functions. */
START_TEST(drivers_without_own_pools_use_the_default_pool)
{
  kiln__driver old = *f.device->driver;

  old.memAllocFromPoolAsync = NULL;
  f.device->driver = &old;
  call(large);
  served(0, 1);
  f.device->driver = &f.rt->driver;
}
END_TEST

START_TEST(a_full_device_is_an_error)
{
  kiln__storage storage;

  f.cuda->rc[FAKE_CUDA_memAllocFromPoolAsync] = CUDA_ERROR_OUT_OF_MEMORY;
  ck_kiln_is(kiln__storage_open(&storage, stream, NULL, large), KILN_EDEVMEM);
  check_calm();
  f.cuda->rc[FAKE_CUDA_memAllocFromPoolAsync] = 0;
  call(large);
  served(2, 0);
}
END_TEST

/* Graphs own their memory, so a captured call takes it from the default pool. A
 * capture of another stream does not prevent that the own pool is created. */
START_TEST(captured_calls_use_the_default_pool)
{
  kiln_stream *other;
  kiln__scope scope;
  CUgraph graph;

  ck_kiln_ok(kiln_stream_create(&other, f.device, NULL));
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamBeginCapture(kiln_stream_handle(stream),
                                      CU_STREAM_CAPTURE_MODE_GLOBAL),
      0);
  kiln__leave(&scope);
  call(large);
  call(small);
  served(0, 2);
  ck_assert_int_eq(f.cuda->pools, 0);
  {
    kiln_stream *const captured = stream;

    stream = other;
    call(large);
    stream = captured;
  }
  served(1, 2);
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph), 0);
  ck_assert_int_eq(f.rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  kiln_stream_free(other);
}
END_TEST

static void *call_often(void *arg)
{
  kiln_stream *own;

  (void)arg;
  ck_kiln_ok(kiln_stream_create(&own, f.device, NULL));
  for (int i = 0; i < 50; i++) {
    kiln__storage storage;

    ck_kiln_ok(kiln__storage_open(&storage, own, NULL, large));
    kiln__storage_close(&storage);
  }
  kiln_stream_free(own);
  return NULL;
}

START_TEST(threads_share_the_pool)
{
  pthread_t threads[4];

  for (size_t i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, NULL), 0);
  for (size_t i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  served(200, 0);
  ck_assert_int_eq(calls(FAKE_CUDA_memPoolCreate), 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("storage");
  TCase *t = kiln_test_case(
      s, "storage", 0, set_up, tear_down_stream,
      TESTS(large_calls_share_one_bounded_pool, small_calls_need_no_pool,
            devices_without_pools_have_plain_memory,
            drivers_without_own_pools_use_the_default_pool,
            a_full_device_is_an_error, captured_calls_use_the_default_pool,
            threads_share_the_pool));

  tcase_add_loop_test(t, a_pool_that_fails_is_not_tried_again, 0, 2);
  return kiln_test_run(s);
}
