/* memory_test.c -- copies, fills and memory pools on the device under test,
 * also beyond 2^32 bytes. */
#include "gpu_fixture.h"

#include <unistd.h>

static const uint64_t GiB = (uint64_t)1 << 30;

START_TEST(copies_of_every_size_come_back)
{
  static const size_t sizes[] = {1,    31,   32,    33,    255,     256,
                                 257,  4095, 65535, 65536, 65537,   1048577,
                                 4096, 3,    8191,  99991, 16777259};

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const size_t n = sizes[i];
    CUdeviceptr a = gpu_alloc(g.device, n), b = gpu_alloc(g.device, n);
    unsigned char *to = malloc(n), *back = malloc(n + 16);
    uint64_t state = n;

    for (size_t k = 0; k < n; k++)
      to[k] = (unsigned char)test_random(&state);
    memset(back, 0xee, n + 16);
    ck_kiln_ok(kiln_fill(g.device, b, 0, 1, n));
    ck_kiln_ok(kiln_copy_to_device(g.device, a, to, n));
    ck_kiln_ok(kiln_copy_on_device(g.device, b, a, n));
    ck_kiln_ok(kiln_copy_to_host(g.device, back, b, n));
    ck_assert_mem_eq(back, to, n);
    ck_assert_int_eq(back[n], 0xee); /* the copy wrote nothing behind its end */
    free(to);
    free(back);
    ck_kiln_ok(kiln_memory_free(g.device, a));
    ck_kiln_ok(kiln_memory_free(g.device, b));
  }
}
END_TEST

static const char check_source[] =
    "extern \"C\" __global__ void check(const int *data, int n, int want,\n"
    "                                   int *wrong)\n"
    "{\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "    if (data[i] != want)\n"
    "      atomicAdd(wrong, 1);\n"
    "}\n";

/* A synchronous copy or fill must be complete when it returns: a kernel in a
 * non-blocking stream must see the data. */
START_TEST(synchronous_means_done)
{
  enum { N = 4 << 20 };
  kiln_module *module = gpu_load(g.device, check_source);
  kiln_kernel *check = gpu_kernel(module, "check");
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {1024, 1, 1}};
  CUdeviceptr p = gpu_alloc(g.device, N * 4), q = gpu_alloc(g.device, N * 4);
  CUdeviceptr wrong = gpu_alloc(g.device, 4);
  int *data = malloc(N * 4), bad = -1;
  kiln_stream *stream;

  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  c.stream = stream;
  ck_kiln_ok(kiln_fill(g.device, wrong, 0, 4, 1));
  for (int round = 1; round <= 30; round++) {
    /* The kernel checks the last elements, because they arrive last. */
    int n = round % 3 == 0 ? 8192 : 1024, want = round;
    CUdeviceptr last = (round % 3 == 2 ? q : p) + (CUdeviceptr)(N - n) * 4;

    if (round % 3 == 0) {
      ck_kiln_ok(kiln_fill(g.device, p, (uint32_t)round, 4, N));
    } else {
      for (int i = 0; i < N; i++)
        data[i] = round;
      ck_kiln_ok(kiln_copy_to_device(g.device, p, data, N * 4));
      if (round % 3 == 2)
        ck_kiln_ok(kiln_copy_on_device(g.device, q, p, N * 4));
    }
    ck_kiln_ok(KILN_LAUNCH(check, &c, KILN_ARG(last), KILN_ARG(n),
                           KILN_ARG(want), KILN_ARG(wrong)));
    ck_kiln_ok(kiln_stream_synchronize(stream));
  }
  ck_kiln_ok(kiln_copy_to_host(g.device, &bad, wrong, 4));
  ck_assert_int_eq(bad, 0);
  free(data);
  kiln_stream_free(stream);
  ck_kiln_ok(kiln_memory_free(g.device, wrong));
  ck_kiln_ok(kiln_memory_free(g.device, q));
  ck_kiln_ok(kiln_memory_free(g.device, p));
  kiln_module_free(module);
}
END_TEST

START_TEST(fills_of_every_width)
{
  CUdeviceptr p = gpu_alloc(g.device, 1024);
  unsigned char back[1024];

  for (int width = 1; width <= 4; width *= 2) {
    ck_kiln_ok(kiln_fill(g.device, p, 0, 1, 1024));
    ck_kiln_ok(kiln_fill(g.device, p + 4, 0x44332211, width, 100));
    ck_kiln_ok(kiln_copy_to_host(g.device, back, p, 1024));
    for (int i = 0; i < 1024; i++) {
      const bool in = i >= 4 && i < 4 + 100 * width;

      ck_assert_int_eq(back[i], in ? 0x11 * (1 + (i - 4) % width) : 0);
    }
  }
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

START_TEST(pinned_memory_copies_asynchronously)
{
  enum { N = 64 << 20 };
  CUdeviceptr p = gpu_alloc(g.device, N);
  unsigned char *mine = aligned_alloc(4096, N);
  kiln_stream *stream;
  void *pinned;

  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  ck_kiln_ok(kiln_host_alloc(&pinned, g.device, N));
  ck_kiln_ok(kiln_host_register(g.device, mine, N));
  memset(pinned, 0x5a, N);
  memset(mine, 0, N);
  ck_kiln_ok(kiln_copy_to_device_async(stream, p, pinned, N));
  ck_kiln_ok(kiln_copy_to_host_async(stream, mine, p, N));
  ck_kiln_is(kiln_stream_query(stream), KILN_ENOTREADY); /* it overlaps */
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_assert_int_eq(mine[0], 0x5a);
  ck_assert_int_eq(mine[N - 1], 0x5a);
  ck_kiln_ok(kiln_fill_async(stream, p, 0x01, 1, N));
  ck_kiln_ok(kiln_copy_on_device_async(stream, p, p + N / 2, N / 2));
  ck_kiln_ok(kiln_copy_to_host_async(stream, mine, p, N));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_assert_int_eq(mine[N / 2 - 1], 1);
  ck_kiln_ok(kiln_host_unregister(g.device, mine));
  ck_kiln_ok(kiln_host_free(g.device, pinned));
  kiln_stream_free(stream);
  free(mine);
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

START_TEST(stream_ordered_memory)
{
  kiln_device_info info;
  kiln_stream *stream;
  unsigned char back[1000];

  ck_kiln_ok(kiln_device_describe(g.device, &info));
  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  for (int pools = info.memory_pools; pools >= 0; pools--) {
    /* in the second round, a device without memory pools */
    g.device->info.memory_pools = pools != 0;
    for (int i = 0; i < 100; i++) {
      CUdeviceptr p;

      ck_kiln_ok(kiln_memory_alloc_async(&p, stream, 1000));
      ck_kiln_ok(kiln_fill_async(stream, p, (uint32_t)i, 1, 1000));
      ck_kiln_ok(kiln_copy_to_host_async(stream, back, p, 1000));
      ck_kiln_ok(kiln_memory_free_async(stream, p));
      ck_kiln_ok(kiln_stream_synchronize(stream));
      ck_assert_int_eq(back[999], i);
    }
  }
  kiln_stream_free(stream);
}
END_TEST

START_TEST(memory_that_runs_out)
{
  uint64_t unused, total;
  CUdeviceptr p = 1;

  ck_kiln_ok(kiln_memory_info(g.device, &unused, &total));
  ck_assert(unused <= total && total > 0);
  ck_kiln_is(kiln_memory_alloc(&p, g.device, total + GiB), KILN_EDEVMEM);
  ck_assert(p == 0);
  /* the context still works after the failed allocation */
  p = gpu_alloc(g.device, 1000);
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

START_TEST(copies_between_contexts)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_device *other;
  kiln_stream *stream;
  CUdeviceptr a = gpu_alloc(g.device, 4000), b;
  unsigned char back[4000];
  int count = 0;

  ck_kiln_ok(kiln_device_count(g.rt, &count));
  printf("between %s\n", count > 1 ? "two GPUs" : "two contexts of one GPU");
  ck_kiln_ok(kiln_device_open(&other, g.rt, count > 1 ? 1 : 0, &own));
  b = gpu_alloc(other, 4000);
  ck_kiln_ok(kiln_fill(g.device, a, 0x21, 1, 4000));
  ck_kiln_ok(kiln_copy_peer(other, b, g.device, a, 4000));
  ck_kiln_ok(kiln_copy_to_host(other, back, b, 4000));
  ck_assert_int_eq(back[3999], 0x21);
  ck_kiln_ok(kiln_fill(other, b, 0x43, 1, 4000));
  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  ck_kiln_ok(kiln_copy_peer_async(stream, g.device, a, other, b, 4000));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_copy_to_host(g.device, back, a, 4000));
  ck_assert_int_eq(back[0], 0x43);
  ck_assert_int_eq(back[3999], 0x43);
  kiln_stream_free(stream);
  ck_kiln_ok(kiln_memory_free(other, b));
  kiln_device_free(other);
  ck_kiln_ok(kiln_memory_free(g.device, a));
}
END_TEST

/* ---- Beyond 2^32 bytes --------------------------------------------------- */

/* The CPU device checks ranges before it reads or writes. A size that some
 * function cuts to 32 bits would pass this check. */
START_TEST(sizes_past_4_gib_are_not_cut)
{
  enum { N = 4096 };
  const size_t n = 4 * GiB + 16;
  CUdeviceptr p, q;
  unsigned char host[16] = {0};

  if (!on_cpu())
    return;
  p = gpu_alloc(g.device, N);
  q = gpu_alloc(g.device, N);
  for (int width = 1; width <= 4; width *= 2)
    ck_kiln_is(kiln_fill(g.device, p, 0, width, n), KILN_EDRIVER);
  ck_kiln_is(kiln_copy_to_device(g.device, p, host, n), KILN_EDRIVER);
  ck_kiln_is(kiln_copy_to_host(g.device, host, p, n), KILN_EDRIVER);
  ck_kiln_is(kiln_copy_on_device(g.device, p, q, n), KILN_EDRIVER);
  ck_kiln_ok(kiln_memory_free(g.device, q));
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

static bool has_room(uint64_t device_bytes, uint64_t host_bytes)
{
  const uint64_t host =
      (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t unused;

  if (on_cpu()) { /* the CPU device's memory is host memory */
    if (getenv("KILN_TEST_THOROUGH") == NULL) {
      printf("skipped: takes long on the CPU device; set "
             "KILN_TEST_THOROUGH=1\n");
      return false;
    }
    host_bytes += device_bytes;
  }
  ck_kiln_ok(kiln_memory_info(g.device, &unused, NULL));
  if (unused >= device_bytes && host >= host_bytes)
    return true;
  printf("skipped: needs %llu GiB of device and %llu GiB of host memory\n",
         (unsigned long long)(device_bytes / GiB),
         (unsigned long long)(host_bytes / GiB));
  return false;
}

static unsigned char byte_at(CUdeviceptr p)
{
  unsigned char byte = 0;

  ck_kiln_ok(kiln_copy_to_host(g.device, &byte, p, 1));
  return byte;
}

START_TEST(fills_and_copies_past_4_gib)
{
  const size_t n = 4 * GiB + 4096 + 12;
  CUdeviceptr a, b;

  if (!has_room(9 * GiB, 0))
    return;
  a = gpu_alloc(g.device, n);
  b = gpu_alloc(g.device, n);
  ck_kiln_ok(kiln_fill(g.device, a, 0, 4, n / 4));
  ck_kiln_ok(kiln_fill(g.device, a, 0x77, 1, n));
  ck_assert_int_eq(byte_at(a), 0x77);
  ck_assert_int_eq(byte_at(a + 4 * GiB), 0x77);
  ck_assert_int_eq(byte_at(a + n - 1), 0x77);
  ck_kiln_ok(kiln_fill(g.device, a, 0x66666666, 4, n / 4));
  ck_assert_int_eq(byte_at(a + n - 1), 0x66);
  ck_kiln_ok(kiln_fill(g.device, b, 0, 1, n));
  ck_kiln_ok(kiln_copy_on_device(g.device, b, a, n));
  ck_assert_int_eq(byte_at(b + 4 * GiB - 1), 0x66);
  ck_assert_int_eq(byte_at(b + n - 1), 0x66);
  ck_kiln_ok(kiln_memory_free(g.device, b));
  ck_kiln_ok(kiln_memory_free(g.device, a));
}
END_TEST

START_TEST(host_copies_past_4_gib)
{
  const size_t n = 4 * GiB + 12345;
  unsigned char *host;
  CUdeviceptr p;

  if (!has_room(5 * GiB, 8 * GiB))
    return;
  host = malloc(n);
  ck_assert_ptr_nonnull(host);
  p = gpu_alloc(g.device, n);
  memset(host, 0x12, n);
  host[4 * GiB] = 0x34;
  host[n - 1] = 0x56;
  ck_kiln_ok(kiln_copy_to_device(g.device, p, host, n));
  ck_assert_int_eq(byte_at(p + 4 * GiB), 0x34);
  ck_assert_int_eq(byte_at(p + n - 1), 0x56);
  memset(host, 0, n);
  ck_kiln_ok(kiln_copy_to_host(g.device, host, p, n));
  ck_assert_int_eq(host[0], 0x12);
  ck_assert_int_eq(host[4 * GiB], 0x34);
  ck_assert_int_eq(host[n - 1], 0x56);
  free(host);
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("memory on a GPU");
  TCase *t = tcase_create("memory");

  tcase_add_checked_fixture(t, gpu_set_up, gpu_tear_down);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, copies_of_every_size_come_back);
  tcase_add_test(t, synchronous_means_done);
  tcase_add_test(t, fills_of_every_width);
  tcase_add_test(t, pinned_memory_copies_asynchronously);
  tcase_add_test(t, stream_ordered_memory);
  tcase_add_test(t, memory_that_runs_out);
  tcase_add_test(t, copies_between_contexts);
  tcase_add_test(t, sizes_past_4_gib_are_not_cut);
  tcase_add_test(t, fills_and_copies_past_4_gib);
  tcase_add_test(t, host_copies_past_4_gib);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
