/* packed_test.c -- an application that ships its cache as a kernel pack.
 * Without a compiler and a cache folder it must give the same results; a kernel
 * that it never called still needs the compiler. */
#include "ops_fixture.h"

enum { N = 3000 };

static char dir[256], cache[300], pack[300];

static void start(const kiln_runtime_opts *opts)
{
  ck_kiln_ok(test_runtime(&rt, opts));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
}

/* Starts with a compiler and an empty cache folder. */
static void start_at_home(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
  snprintf(pack, sizeof pack, "%s/app.kpack", dir);
  start(&(kiln_runtime_opts){.cache_dir = cache});
}

/* Starts without a compiler and without a cache folder, with the kernel pack
 * alone. */
static void start_locked_down(void)
{
  static const char *const packs[] = {pack};

  start(&(kiln_runtime_opts){.nvrtc_path = "/nowhere",
                             .cache_off = true,
                             .packs = packs,
                             .n_packs = 1});
}

static void leave(void)
{
  teardown();
  test_dir_remove(dir);
}

/* The application: makes an array, computes the running sums of a map of it,
 * and sorts it. */
static void compute(uint32_t *sums, uint32_t *sorted)
{
  test_array x = array_make(KILN_U32, N, 0, NULL, 0);
  test_array y = array_make(KILN_U32, N, 0, NULL, 0);
  const kiln_map_desc fill = {
      .out = {x.array}, .expr = {"(unsigned)(i * 2654435761u) >> 20"}, .n = N};
  const kiln_scan_desc scan = {
      .x = {.in = {x.array}, .map = "3 * x + 1"}, .n = N, .out = y.array};
  const kiln_sort_desc sort = {.keys_in = x.array, .keys_out = x.array, .n = N};

  ck_kiln_ok(kiln_map(stream, &fill, NULL));
  ck_kiln_ok(kiln_scan(stream, &scan, NULL));
  ck_kiln_ok(kiln_sort(stream, &sort, NULL));
  memcpy(sums, kept(array_read(&y)), N * sizeof *sums);
  memcpy(sorted, kept(array_read(&x)), N * sizeof *sorted);
}

static void check(const uint32_t *sums, const uint32_t *sorted)
{
  static uint32_t count[1 << 12];
  uint32_t sum = 0, at = 0;

  memset(count, 0, sizeof count);
  for (uint32_t i = 0; i < N; i++) {
    const uint32_t x = (i * 2654435761u) >> 20;

    sum += 3 * x + 1;
    ck_assert_uint_eq(sums[i], sum);
    count[x]++;
  }
  for (uint32_t x = 0; x < 1 << 12; x++)
    for (uint32_t k = 0; k < count[x]; k++)
      ck_assert_uint_eq(sorted[at++], x);
}

static uint64_t compiles(void)
{
  kiln_cache_stats stats;

  ck_kiln_ok(kiln_cache_counters(rt, &stats));
  return stats.misses;
}

START_TEST(operations_from_a_pack)
{
  static uint32_t sums[N], sorted[N];
  uint64_t made;
  size_t n;

  start_at_home();
  compute(sums, sorted);
  check(sums, sorted);
  made = compiles();
  ck_assert_uint_ge(made, 3);
  ck_kiln_ok(kiln_pack_cache(rt, pack, &n));
  ck_assert_uint_eq(n, made);
  teardown();

  start_locked_down();
  memset(sums, 0, sizeof sums);
  memset(sorted, 0, sizeof sorted);
  compute(sums, sorted);
  check(sums, sorted);
  ck_assert_uint_eq(compiles(), 0);
  leave();
}
END_TEST

/* A process that compiled nothing must be able to make the same pack from the
 * cache folder. */
START_TEST(packed_later)
{
  static uint32_t sums[N], sorted[N];
  size_t n, again;

  start_at_home();
  compute(sums, sorted);
  ck_kiln_ok(kiln_pack_cache(rt, pack, &n));
  teardown();
  start(&(kiln_runtime_opts){.cache_dir = cache});
  ck_kiln_ok(kiln_pack_cache(rt, pack, &again));
  ck_assert_uint_eq(again, n);
  teardown();
  start_locked_down();
  compute(sums, sorted);
  check(sums, sorted);
  leave();
}
END_TEST

START_TEST(what_was_never_called)
{
  static uint32_t sums[N], sorted[N];
  test_array x;
  kiln_map_desc desc = {.expr = {"x / 2"}, .n = N};

  start_at_home();
  compute(sums, sorted);
  ck_kiln_ok(kiln_pack_cache(rt, pack, NULL));
  teardown();
  start_locked_down();
  x = array_make(KILN_U32, N, 0, NULL, 0);
  desc.in[0] = desc.out[0] = x.array;
  ck_kiln_is(kiln_map(stream, &desc, NULL), KILN_ENONVRTC);
  leave();
}
END_TEST

START_TEST(nothing_to_pack)
{
  size_t n = 7;

  start_at_home();
  ck_kiln_is(kiln_pack_cache(rt, pack, &n), KILN_ENOTFOUND);
  ck_assert_uint_eq(n, 0);
  ck_assert_int_ne(access(pack, F_OK), 0);
  ck_kiln_is(kiln_pack_cache(rt, NULL, &n), KILN_EINVAL);
  ck_kiln_is(kiln_pack_cache(NULL, pack, &n), KILN_EINVAL);
  leave();
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("packed");
  TCase *t = tcase_create("all");

  tcase_set_timeout(t, 120);
  tcase_add_test(t, operations_from_a_pack);
  tcase_add_test(t, packed_later);
  tcase_add_test(t, what_was_never_called);
  tcase_add_test(t, nothing_to_pack);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
