/* tuning_test.c -- tuning parameters of the operations: the built-in table,
 * changes by the application, and the tuning file. */
#include "ops_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kiln-tuning-XXXXXX";
static char path[512];

static void setup_folder(void)
{
  strcpy(folder, "/tmp/kiln-tuning-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  setenv("KILN_CACHE_DIR", folder, 1);
  setup();
  ck_kiln_ok(kiln_tuning_path(device, path, sizeof path));
}

static void teardown_folder(void)
{
  char command[600];

  teardown();
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  ck_assert_int_eq(system(command), 0);
}

static kiln_tuning get(const char *family, unsigned size, uint64_t n, bool own)
{
  kiln_tuning t;
  bool measured;

  ck_kiln_ok(kiln_tuning_get(device, family, size, n, &t, &measured));
  ck_assert_int_eq(measured, own);
  return t;
}

/* Every family in the list must have tuning parameters, and candidates for them
 * that a tuner can try. */
START_TEST(test_families)
{
  size_t n, n_candidates;
  const kiln_tuning_family *f = kiln_tuning_families(&n);

  ck_assert_uint_ge(n, 12);
  for (size_t i = 0; i < n; i++) {
    const kiln_tuning *c = kiln_tuning_candidates(f[i].name, &n_candidates);

    ck_assert_uint_gt(get(f[i].name, 4, 1000, false).block, 0);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_ge(n_candidates, 3);
    for (size_t k = 0; k < n_candidates; k++)
      ck_assert(c[k].block % 32 == 0 && c[k].items > 0);
  }
  ck_assert_ptr_null(kiln_tuning_candidates("none", &n_candidates));
}
END_TEST

/* Of several size classes that contain the length, the smallest one applies.
 * Other lengths keep their parameters. */
START_TEST(test_set)
{
  const kiln_tuning large = {512, 8, 0, 0}, small = {128, 1, 0, 0};
  const kiln_tuning table = get("map", 8, 1000, false);
  kiln_tuning t;

  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 24, &large));
  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 16, &small));
  ck_assert_uint_eq(get("map", 4, 1 << 16, true).block, 128);
  ck_assert_uint_eq(get("map", 4, (1 << 16) + 1, true).block, 512);
  ck_assert_uint_eq(get("map", 8, 1000, false).block, table.block);
  get("map", 4, (1 << 24) + 1, false);
  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 16, &large));
  ck_assert_uint_eq(get("map", 4, 10, true).block, 512);
  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 16, NULL));
  ck_assert_uint_eq(get("map", 4, 10, true).block, 512); /* of 2^24 */
  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 24, NULL));
  get("map", 4, 10, false);
  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 16, &large));
  ck_kiln_ok(kiln_tuning_reset(device));
  get("map", 4, 10, false);
  ck_assert_int_eq(kiln_tuning_set(device, "nomap", 4, 16, &large),
                   KILN_ENOTFOUND);
  t = (kiln_tuning){100, 1, 0, 0};
  ck_assert_int_eq(kiln_tuning_set(device, "map", 4, 16, &t), KILN_EINVAL);
  ck_assert_int_eq(kiln_tuning_set(device, "map", 3, 16, &large), KILN_EINVAL);
}
END_TEST

/* An operation with changed parameters must give the same results. */
START_TEST(test_used)
{
  enum { N = 10000 };
  const kiln_tuning odd = {512, 8, 0, 0};
  test_array out = array_make(KILN_F32, N, 0, NULL, 1);
  const kiln_map_desc desc = {.out = {out.array}, .expr = {"i * 0.5f"}, .n = N};
  float *got;

  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 64, &odd));
  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (int i = 0; i < N; i++)
    ck_assert_float_eq(got[i], (float)i * 0.5f);
}
END_TEST

/* Returns the tile of a product that gemm_simt computes on every device: other
 * kernels do not read a transposed B. */
static kiln_gemm_tile tile_of(uint64_t m, uint64_t n, kiln_gemm_order order,
                              kiln_gemm_tile wanted)
{
  const kiln_gemm_desc desc = {
      .m = m,
      .n = n,
      .k = 64,
      .a = {.data = 1 << 20, .type = KILN_F32},
      .b = {.data = 2 << 20, .type = KILN_F32, .transposed = true},
      .d = {.data = 3 << 20, .type = KILN_F32, .order = order},
      .alpha = 1,
      .tile = wanted};
  kiln_gemm_choice choice;

  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  return choice.tile;
}

/* A product must use the tile that was measured for its number of elements,
 * unless the caller gives a tile, or unless the tile suits its shape badly. */
START_TEST(test_tiles)
{
  const kiln_tuning small = {256, 64, 0, 128}; /* 128 x 64 */
  const kiln_gemm_tile any = {0, 0, 0}, own = {64, 64, 0};
  kiln_gemm_tile t = tile_of(2048, 2048, KILN_ROW_MAJOR, any);
  const kiln_gemm_tile line = tile_of(1, 4096, KILN_ROW_MAJOR, any);

  ck_assert(t.m != 128 || t.n != 64);
  ck_kiln_ok(kiln_tuning_set(device, "gemm_simt", 4, 22, &small));
  t = tile_of(2048, 2048, KILN_ROW_MAJOR, any);
  ck_assert(t.m == 128 && t.n == 64);
  t = tile_of(2048, 2048, KILN_COLUMN_MAJOR, any);
  ck_assert(t.m == 64 && t.n == 128);
  t = tile_of(2048, 2048, KILN_ROW_MAJOR, own);
  ck_assert(t.m == 64 && t.n == 64);
  t = tile_of(1, 4096, KILN_ROW_MAJOR, any);
  ck_assert(t.m == line.m && t.n == line.n);
  ck_kiln_ok(kiln_tuning_reset(device));
}
END_TEST

/* Counts the sources to the right of each target, with parameters of all_pairs
 * that no table contains. */
START_TEST(test_pairs)
{
  enum { N = 300 };
  const kiln_tuning odd[] = {{32, 3, 0, 1}, {1024, 256, 1, 7}};
  test_array x = array_make(KILN_F32, N, 0, NULL, 1);
  test_array out = array_make(KILN_F32, N, 0, NULL, 1);
  const kiln_map_desc fill = {.out = {x.array}, .expr = {"i"}, .n = N};
  const kiln_all_pairs_desc desc = {.n = N,
                                    .target = {x.array},
                                    .out = {out.array},
                                    .expr = {"s.x > t.x ? 1 : 0"}};

  ck_kiln_ok(kiln_map(stream, &fill, NULL));
  for (size_t k = 0; k < 2; k++) {
    float *got;

    ck_kiln_ok(kiln_tuning_set(device, "all_pairs", 4, 64, &odd[k]));
    ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
    got = kept(array_read(&out));
    for (int i = 0; i < N; i++)
      ck_assert_float_eq(got[i], (float)(N - 1 - i));
  }
}
END_TEST

/* Sums 3 x 3 neighbours with parameters of each stencil kernel that no table
 * contains. */
START_TEST(test_stencils)
{
  enum { SIDE = 40 };
  static const char *const family[] = {"stencil_rows", "stencil_ring",
                                       "stencil_at"};
  const kiln_tuning odd = {96, 3, 0, 1};
  test_array x = array_make(KILN_F32, SIDE * SIDE, 0, NULL, 1);
  test_array out = array_make(KILN_F32, SIDE * SIDE, 0, NULL, 1);
  const kiln_map_desc fill = {
      .out = {x.array}, .expr = {"i"}, .n = SIDE * SIDE};
  double ones[81];

  for (size_t k = 0; k < 81; k++)
    ones[k] = 1;
  ck_kiln_ok(kiln_map(stream, &fill, NULL));
  for (uint32_t k = 0; k < 3; k++) {
    const uint32_t radius = k == 1 ? 4 : 1; /* the ring is for large radii */
    const kiln_stencil_desc desc = {.in = x.array,
                                    .out = out.array,
                                    .dims = 2,
                                    .size = {SIDE, SIDE},
                                    .radius = {radius, radius},
                                    .weights = k == 2 ? NULL : ones,
                                    .expr = k == 2 ? "9 * x" : NULL};
    const float terms = (float)((2 * radius + 1) * (2 * radius + 1));
    float *got;

    ck_kiln_ok(kiln_tuning_set(device, family[k], 4, 64, &odd));
    ck_kiln_ok(kiln_stencil(stream, &desc, NULL));
    got = kept(array_read(&out));
    for (int i = 8; i < SIDE - 8; i++)
      for (int j = 8; j < SIDE - 8; j++)
        ck_assert_float_eq(got[i * SIDE + j], terms * (float)(i * SIDE + j));
  }
}
END_TEST

/* Parameters that are saved beside the cache must be read by the next device
 * that is opened. */
START_TEST(test_file)
{
  const kiln_tuning set = {512, 8, 0, 0};

  ck_kiln_ok(kiln_tuning_set(device, "map", 4, 20, &set));
  ck_kiln_ok(kiln_tuning_save(device, NULL));
  teardown();
  setup();
  ck_assert_uint_eq(get("map", 4, 1000, true).block, 512);
  ck_assert_uint_eq(get("map", 4, 1000, true).items, 8);
}
END_TEST

/* If a line of the file is wrong, Kiln must ignore the whole file, and
 * operations must still work. */
START_TEST(test_bad_files)
{
  static const char *const texts[] = {
      "",
      "something else\n",
      "kiln tuning 1\nmap 4 20 512 8 0\n",
      "kiln tuning 1\nmap 4 20 512 8 0 0 7\n",
      "kiln tuning 1\nmap 4 20 512 8 0 0\nnothing 4 20 512 8 0 0\n",
      "kiln tuning 1\nmap 4 20 512 63 0 0\n", /* never tried */
      "kiln tuning 1\nmap 99999999999999999999 20 512 8 0 0\n",
  };

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(texts[i], f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(kiln_tuning_load(device, path), KILN_ECORRUPT);
    get("map", 4, 1000, false);
    teardown();
    setup();
    get("map", 4, 1000, false);
  }
  ck_assert_int_eq(kiln_tuning_load(device, "/nonexistent"), KILN_EIO);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("tuning");
  TCase *t = tcase_create("tuning");

  tcase_add_checked_fixture(t, setup_folder, teardown_folder);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, test_families);
  tcase_add_test(t, test_set);
  tcase_add_test(t, test_used);
  tcase_add_test(t, test_tiles);
  tcase_add_test(t, test_pairs);
  tcase_add_test(t, test_stencils);
  tcase_add_test(t, test_file);
  tcase_add_test(t, test_bad_files);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
