/* wide_test.c -- select, partition, split, run lengths and find with 64-bit
 * positions. The kernels for long arrays run on few elements, and on a GPU with
 * enough memory on more than 2^32. */
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

/* Runs a kernel of a program in blocks of 256 threads and waits for its end. */
static void run(const char *builtin, const char *name, uint32_t blocks,
                const kiln_arg *args, size_t n_args)
{
  const kiln_program_desc desc = {.builtin = builtin,
                                  .defines = defines,
                                  .n_defines =
                                      sizeof defines / sizeof defines[0]};
  const kiln_launch_config config = {
      .grid = {.x = blocks}, .block = {.x = 256}, .stream = stream};
  kiln_module *module;
  kiln_kernel *kernel;

  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  ck_kiln_ok(kiln_launch(kernel, &config, args, n_args));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  kiln_module_free(module);
}

#define RUN(builtin, name, blocks, ...)                                        \
  run(builtin, name, blocks, (const kiln_arg[]){__VA_ARGS__},                  \
      sizeof((const kiln_arg[]){__VA_ARGS__}) / sizeof(kiln_arg))
#define DATA(a) KILN_ARG((a).array.data)

static const uint64_t n = N;
static const uint32_t epoch = EPOCH;
static const CUdeviceptr none;

/* Returns runs of -1, 0 and 1. teardown() frees them. */
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

static test_array floats_make(const float *x)
{
  return array_make(KILN_F32, N, 0, x, 0);
}

/* Makes an array for results that the kernel must overwrite. */
static test_array results_make(size_t count)
{
  return array_make(KILN_U64, count, 0, NULL, 0x5a);
}

static test_array words_make(void)
{
  return array_make(KILN_U64, 1000, 0, NULL, 0);
}

/* Checks that the array begins with n_of[0] times value[0], n_of[1] times
 * value[1] and n_of[2] times value[2]. */
static void check_values(const test_array *a, const float value[3],
                         const uint64_t n_of[3])
{
  const float *got = kept(array_read(a));

  for (size_t v = 0, i = 0; v < 3; v++)
    for (size_t end = i + n_of[v]; i < end; i++)
      if (got[i] != value[v])
        ck_abort_msg("element %zu", i);
}

/* Counts the elements of value -1, 0 and 1. */
static void count_values(const float *x, uint64_t n_of[3])
{
  for (size_t i = 0; i < N; i++)
    n_of[(int)x[i] + 1]++;
}

START_TEST(test_select)
{
  float *x = some_floats();
  uint64_t n_of[3] = {0}, *n_got;
  test_array in = floats_make(x), out = floats_make(NULL);
  test_array count = results_make(1), words = words_make();

  RUN("select", "select_elements", TILES, DATA(in), KILN_ARG(n), DATA(out),
      KILN_ARG(none), KILN_ARG(none), KILN_ARG(none), DATA(count), DATA(words),
      KILN_ARG(epoch));
  count_values(x, n_of);
  n_got = kept(array_read(&count));
  ck_assert_uint_eq(n_got[0], n_of[2]);
  check_values(&out, (const float[]){1, 0, 0},
               (const uint64_t[]){n_of[2], 0, 0});
}
END_TEST

START_TEST(test_partition)
{
  const uint32_t counters = 3;
  float *x = some_floats();
  uint64_t n_of[3] = {0}, *sizes;
  test_array in = floats_make(x), out = floats_make(NULL);
  test_array count = results_make(2), words = words_make();

  RUN("partition", "partition", TILES + counters, DATA(in), KILN_ARG(n),
      DATA(out), KILN_ARG(none), KILN_ARG(none), DATA(count), DATA(words),
      KILN_ARG(counters), KILN_ARG(epoch));
  count_values(x, n_of);
  sizes = kept(array_read(&count));
  ck_assert_uint_eq(sizes[0], n_of[2]);
  ck_assert_uint_eq(sizes[1], n_of[0]);
  check_values(&out, (const float[]){1, -1, 0},
               (const uint64_t[]){n_of[2], n_of[0], n_of[1]});
}
END_TEST

START_TEST(test_runs)
{
  float *x = some_floats();
  test_array in = floats_make(x), values = floats_make(NULL);
  test_array offsets = array_make(KILN_U32, N, 0, NULL, 0);
  test_array lengths = array_make(KILN_U64, N, 0, NULL, 0);
  test_array count = results_make(1), words = words_make();
  uint64_t *got, *runs;
  size_t k = 0;

  RUN("run_length", "run_length", TILES, DATA(in), KILN_ARG(n), DATA(values),
      DATA(offsets), DATA(lengths), DATA(count), DATA(words), KILN_ARG(epoch));
  got = kept(array_read(&lengths));
  runs = kept(array_read(&count));
  for (size_t i = 0, end; i < N; i = end, k++) {
    for (end = i + 1; end < N && x[end] == x[i];)
      end++;
    if (got[k] != end - i)
      ck_abort_msg("run %zu", k);
  }
  ck_assert_uint_eq(runs[0], k);
}
END_TEST

START_TEST(test_find)
{
  float *x = kept(calloc(N, sizeof *x));
  test_array in, out = results_make(1), words = words_make();
  uint64_t *got;

  x[12345] = x[15000] = 1;
  in = floats_make(x);
  RUN("find", "find", 4, DATA(in), KILN_ARG(n), DATA(out), DATA(words),
      KILN_ARG(epoch));
  got = kept(array_read(&out));
  ck_assert_uint_eq(got[0], 12345);
}
END_TEST

/* The keys are the elements themselves, so only three of the 256 bins get
 * any. */
START_TEST(test_split)
{
  enum { BLOCKS = 5, BINS = 256 };
  const uint32_t blocks = BLOCKS, each = (TILES + BLOCKS - 1) / BLOCKS;
  float *x = some_floats();
  test_array in, out = floats_make(NULL), offsets = results_make(BINS + 1);
  test_array table = results_make(BINS * (BLOCKS + 1));
  uint64_t n_of[3] = {0}, *at;

  count_values(x, n_of);
  for (size_t i = 0; i < N; i++)
    x[i] += 1;
  in = floats_make(x);
  RUN("split", "split_count", BLOCKS, DATA(in), KILN_ARG(n), KILN_ARG(each),
      DATA(table));
  RUN("split", "split_scan", BINS, DATA(table), KILN_ARG(blocks));
  RUN("split", "split_move", BLOCKS, DATA(in), KILN_ARG(n), KILN_ARG(each),
      DATA(table), DATA(out), KILN_ARG(none), DATA(offsets));
  at = kept(array_read(&offsets));
  ck_assert_uint_eq(at[1], n_of[0]);
  ck_assert_uint_eq(at[2], n_of[0] + n_of[1]);
  ck_assert_uint_eq(at[BINS], N);
  check_values(&out, (const float[]){0, 1, 2}, n_of);
}
END_TEST

/* Waits for an operation and returns the number that it stored at `result`. */
static uint64_t number_of(kiln_status st, CUdeviceptr result)
{
  uint64_t number;

  ck_kiln_ok(st);
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_copy_to_host(device, &number, result, 8));
  return number;
}

/* The elements are bytes that follow from their index, so the expected results
 * are known. */
START_TEST(test_beyond_4g)
{
  const uint64_t length = (UINT64_C(1) << 32) + 100003;
  CUdeviceptr x, out, result;
  kiln_select_desc select;
  kiln_partition_desc partition;
  kiln_find_desc find;
  kiln_map_desc fill;
  uint64_t odd, first;
  uint8_t tail[16];

  if (on_cpu() || kiln_memory_alloc(&x, device, length) != KILN_OK)
    return;
  ck_kiln_ok(kiln_memory_alloc(&out, device, length));
  ck_kiln_ok(kiln_memory_alloc(&result, device, 16));
  fill = (kiln_map_desc){.out = {{x, KILN_U8}},
                         .expr = {"i % 251 + (i + 1 == last) * 4"},
                         .n = length};
  fill.code = (kiln_code){
      .params = &(kiln_param){"last", KILN_U64, &length, false}, .n_params = 1};
  select = (kiln_select_desc){.x = {.in = {{x, KILN_U8}}},
                              .predicate = "x % 2 == 1",
                              .n = length,
                              .out = {out, KILN_U8},
                              .count = {result, KILN_U64}};
  partition = (kiln_partition_desc){.x = {.in = {{x, KILN_U8}}},
                                    .first = "x >= 100",
                                    .n = length,
                                    .out = {out, KILN_U8},
                                    .count = {result, KILN_U64}};
  find = (kiln_find_desc){.x = {.in = {{x, KILN_U8}}},
                          .predicate = "x == i % 251 + 4",
                          .n = length,
                          .out = {result, KILN_U64}};
  ck_kiln_ok(kiln_map(stream, &fill, NULL));
  ck_assert_uint_eq(number_of(kiln_find(stream, &find, NULL), result),
                    length - 1);
  odd = length / 251 * 125;
  for (uint64_t i = length - length % 251; i < length; i++)
    odd += (i % 251 + (i + 1 == length ? 4u : 0u)) % 2;
  ck_assert_uint_eq(number_of(kiln_select(stream, &select, NULL), result), odd);
  first = number_of(kiln_partition(stream, &partition, NULL), result);
  ck_kiln_ok(kiln_copy_to_host(device, tail, out + first, sizeof tail));
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
