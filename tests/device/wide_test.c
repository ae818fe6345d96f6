/* wide_test.c -- select, partition, split, runs and find with 64-bit positions:
 * their kernels on few elements, as they are for many, and on a GPU with room
 * more than 2^32 elements. */
#include "ops_fixture.h"

enum { N = 20011, EPOCH = 7 };

static const char *const defines[] = {"KILN_WIDE=1",
                                      "KILN_BLOCK=256",
                                      "KILN_ITEMS=8",
                                      "KILN_PARTITIONS=3",
                                      "KILN_COUNT=unsigned long long",
                                      "KILN_OUT=unsigned long long",
                                      "KILN_POSITION=unsigned long long",
                                      "KILN_LENGTH=unsigned long long"};

static kiln_module *module;

static kiln_kernel *kernel_of(const char *builtin, const char *name)
{
  const kiln_program_desc desc = {.builtin = builtin,
                                  .defines = defines,
                                  .n_defines =
                                      sizeof defines / sizeof defines[0]};
  kiln_kernel *kernel;

  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  return kernel;
}

/* -1, 0 or 1 in runs; the test keeps them. */
static float *some_floats(void)
{
  float *x = kept(malloc(N * sizeof *x));
  uint64_t state = 3;

  for (size_t i = 0, end; i < N;) {
    const float v = (float)(test_random(&state) % 3) - 1;

    for (end = i + 1 + test_random(&state) % 9; i < end && i < N;)
      x[i++] = v;
  }
  return x;
}

enum { TILE = 256 * 8, TILES = (N + TILE - 1) / TILE };

static kiln_launch_config grid(uint32_t blocks)
{
  return (kiln_launch_config){
      .grid = {.x = blocks}, .block = {.x = 256}, .stream = stream};
}

static test_array words_make(void)
{
  return array_make(KILN_U64, 1000, 0, NULL, 0);
}

START_TEST(test_select)
{
  const kiln_launch_config config = grid(TILES);
  float *x = some_floats(), *got;
  test_array in = array_make(KILN_F32, N, 0, x, 0);
  test_array out = array_make(KILN_F32, N, 1, NULL, 0);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  test_array words = words_make();
  const CUdeviceptr none = 0;
  const uint64_t n = N;
  const uint32_t epoch = EPOCH;
  uint64_t *n_got;
  size_t k = 0;

  ck_kiln_ok(KILN_LAUNCH(
      kernel_of("select", "select_elements"), &config, KILN_ARG(in.array.data),
      KILN_ARG(n), KILN_ARG(out.array.data), KILN_ARG(none), KILN_ARG(none),
      KILN_ARG(none), KILN_ARG(count.array.data), KILN_ARG(words.array.data),
      KILN_ARG(epoch)));
  got = kept(array_read(&out));
  n_got = kept(array_read(&count));
  for (size_t i = 0; i < N; i++)
    k += x[i] > 0;
  ck_assert_uint_eq(n_got[0], k);
  for (size_t i = 0; i < k; i++)
    if (got[i] != 1)
      ck_abort_msg("element %zu", i);
  kiln_module_free(module);
}
END_TEST

START_TEST(test_partition)
{
  const uint32_t counters = 3, epoch = EPOCH;
  const kiln_launch_config config = grid(TILES + counters);
  float *x = some_floats(), *got;
  test_array in = array_make(KILN_F32, N, 0, x, 0);
  test_array out = array_make(KILN_F32, N, 1, NULL, 0);
  test_array count = array_make(KILN_U64, 2, 0, NULL, 0x5a);
  test_array words = words_make();
  const CUdeviceptr none = 0;
  const uint64_t n = N;
  size_t above = 0, below = 0;
  uint64_t *sizes;

  ck_kiln_ok(KILN_LAUNCH(
      kernel_of("partition", "partition"), &config, KILN_ARG(in.array.data),
      KILN_ARG(n), KILN_ARG(out.array.data), KILN_ARG(none), KILN_ARG(none),
      KILN_ARG(count.array.data), KILN_ARG(words.array.data),
      KILN_ARG(counters), KILN_ARG(epoch)));
  got = kept(array_read(&out));
  sizes = kept(array_read(&count));
  for (size_t i = 0; i < N; i++) {
    above += x[i] > 0;
    below += x[i] < 0;
  }
  ck_assert_uint_eq(sizes[0], above);
  ck_assert_uint_eq(sizes[1], below);
  for (size_t i = 0; i < N; i++)
    if (got[i] != (i < above ? 1.0f : i < above + below ? -1.0f : 0.0f))
      ck_abort_msg("element %zu", i);
  kiln_module_free(module);
}
END_TEST

START_TEST(test_runs)
{
  const kiln_launch_config config = grid(TILES);
  float *x = some_floats();
  test_array in = array_make(KILN_F32, N, 0, x, 0);
  test_array values = array_make(KILN_F32, N, 0, NULL, 0);
  test_array offsets = array_make(KILN_U32, N, 0, NULL, 0);
  test_array lengths = array_make(KILN_U64, N, 0, NULL, 0);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  test_array words = words_make();
  const uint64_t n = N;
  const uint32_t epoch = EPOCH;
  uint64_t *got, *runs;
  size_t k = 0;

  ck_kiln_ok(KILN_LAUNCH(
      kernel_of("run_length", "run_length"), &config, KILN_ARG(in.array.data),
      KILN_ARG(n), KILN_ARG(values.array.data), KILN_ARG(offsets.array.data),
      KILN_ARG(lengths.array.data), KILN_ARG(count.array.data),
      KILN_ARG(words.array.data), KILN_ARG(epoch)));
  got = kept(array_read(&lengths));
  runs = kept(array_read(&count));
  for (size_t i = 0, end; i < N; i = end, k++) {
    for (end = i + 1; end < N && x[end] == x[i];)
      end++;
    if (got[k] != end - i)
      ck_abort_msg("run %zu", k);
  }
  ck_assert_uint_eq(runs[0], k);
  kiln_module_free(module);
}
END_TEST

START_TEST(test_find)
{
  const kiln_launch_config config = grid(4);
  float *x = kept(calloc(N, sizeof *x));
  test_array in, out = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  test_array words = words_make();
  const uint64_t n = N;
  const uint32_t epoch = EPOCH;
  uint64_t *got;

  x[12345] = x[15000] = 1;
  in = array_make(KILN_F32, N, 0, x, 0);
  ck_kiln_ok(KILN_LAUNCH(
      kernel_of("find", "find"), &config, KILN_ARG(in.array.data), KILN_ARG(n),
      KILN_ARG(out.array.data), KILN_ARG(words.array.data), KILN_ARG(epoch)));
  got = kept(array_read(&out));
  ck_assert_uint_eq(got[0], 12345);
  kiln_module_free(module);
}
END_TEST

/* Keys of the default are the elements; three of 256 bins have some. */
START_TEST(test_split)
{
  enum { BLOCKS = 5, BINS = 256 };
  const kiln_launch_config config = grid(BLOCKS), rows = grid(BINS);
  const uint32_t blocks = BLOCKS, each = (TILES + BLOCKS - 1) / BLOCKS;
  float *x = some_floats(), *got;
  test_array in, out = array_make(KILN_F32, N, 1, NULL, 0);
  test_array table = array_make(KILN_U64, BINS * (BLOCKS + 1), 0, NULL, 0x5a);
  test_array offsets = array_make(KILN_U64, BINS + 1, 0, NULL, 0x5a);
  const CUdeviceptr none = 0;
  const uint64_t n = N;
  uint64_t *at, size[3] = {0};
  kiln_kernel *kernel;

  for (size_t i = 0; i < N; i++) {
    x[i] += 1;
    size[(int)x[i]]++;
  }
  in = array_make(KILN_F32, N, 0, x, 0);
  kernel = kernel_of("split", "split_count");
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(in.array.data), KILN_ARG(n),
                         KILN_ARG(each), KILN_ARG(table.array.data)));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, "split_scan"));
  ck_kiln_ok(
      KILN_LAUNCH(kernel, &rows, KILN_ARG(table.array.data), KILN_ARG(blocks)));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, "split_move"));
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(in.array.data), KILN_ARG(n),
                         KILN_ARG(each), KILN_ARG(table.array.data),
                         KILN_ARG(out.array.data), KILN_ARG(none),
                         KILN_ARG(offsets.array.data)));
  got = kept(array_read(&out));
  at = kept(array_read(&offsets));
  ck_assert_uint_eq(at[1], size[0]);
  ck_assert_uint_eq(at[2], size[0] + size[1]);
  ck_assert_uint_eq(at[BINS], N);
  for (size_t i = 0; i < N; i++)
    if (got[i] != (i < at[1] ? 0.0f : i < at[2] ? 1.0f : 2.0f))
      ck_abort_msg("element %zu", i);
  kiln_module_free(module);
}
END_TEST

/* Elements of one byte made from their index; what is chosen is known. */
START_TEST(test_beyond_4g)
{
  const uint64_t n = (UINT64_C(1) << 32) + 100003;
  CUdeviceptr x, out, result;
  kiln_select_desc select;
  kiln_partition_desc partition;
  kiln_find_desc find;
  kiln_map_desc fill;
  uint64_t got[2];
  uint8_t tail[16];

  if (on_cpu() || kiln_memory_alloc(&x, device, n) != KILN_OK)
    return;
  ck_kiln_ok(kiln_memory_alloc(&out, device, n));
  ck_kiln_ok(kiln_memory_alloc(&result, device, 16));
  fill = (kiln_map_desc){
      .out = {{x, KILN_U8}}, .expr = {"i % 251 + (i + 1 == last) * 4"}, .n = n};
  fill.code = (kiln_code){.params = &(kiln_param){"last", KILN_U64, &n, false},
                          .n_params = 1};
  select = (kiln_select_desc){.x = {.in = {{x, KILN_U8}}},
                              .predicate = "x % 2 == 1",
                              .n = n,
                              .out = {out, KILN_U8},
                              .count = {result, KILN_U64}};
  partition = (kiln_partition_desc){.x = {.in = {{x, KILN_U8}}},
                                    .first = "x >= 100",
                                    .n = n,
                                    .out = {out, KILN_U8},
                                    .count = {result, KILN_U64}};
  find = (kiln_find_desc){.x = {.in = {{x, KILN_U8}}},
                          .predicate = "x == i % 251 + 4",
                          .n = n,
                          .out = {result, KILN_U64}};
  ck_kiln_ok(kiln_map(stream, &fill, NULL));
  ck_kiln_ok(kiln_find(stream, &find, NULL));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_copy_to_host(device, got, result, 8));
  ck_assert_uint_eq(got[0], n - 1);
  ck_kiln_ok(kiln_select(stream, &select, NULL));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_copy_to_host(device, got, result, 8));
  got[1] = 0;
  for (uint64_t i = n - n % 251; i < n; i++)
    got[1] += (i % 251 + (i + 1 == n ? 4u : 0u)) % 2;
  ck_assert_uint_eq(got[0], n / 251 * 125 + got[1]);
  ck_kiln_ok(kiln_partition(stream, &partition, NULL));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_copy_to_host(device, got, result, 8));
  ck_kiln_ok(kiln_copy_to_host(device, tail, out + got[0], sizeof tail));
  for (uint8_t k = 0; k < sizeof tail; k++)
    ck_assert_uint_eq(tail[k], k);
  ck_kiln_ok(kiln_memory_free(device, x));
  ck_kiln_ok(kiln_memory_free(device, out));
  ck_kiln_ok(kiln_memory_free(device, result));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("wide");
  TCase *t = device_case(s, "wide");

  tcase_add_test(t, test_select);
  tcase_add_test(t, test_partition);
  tcase_add_test(t, test_runs);
  tcase_add_test(t, test_find);
  tcase_add_test(t, test_split);
  tcase_add_test(t, test_beyond_4g);
  return s;
}

DEVICE_TEST_MAIN(suite)
