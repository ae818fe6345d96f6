/* sort_ladder_test.c -- the teaching versions of the sort: one-bit splits, the
 * table of the lecture's worked example, and tiles with bitonic merges. */
#include "ops_fixture.h"

static kiln_module *load(const char *builtin)
{
  const kiln_program_desc desc = {.builtin = builtin};
  kiln_module *module;

  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  return module;
}

static kiln_kernel *kernel_of(kiln_module *module, const char *name)
{
  kiln_kernel *kernel;

  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  return kernel;
}

static int compare(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

static const uint32_t sizes[] = {1,    2,    31,   255,  256,  257,
                                 1023, 1024, 1025, 3072, 4097, 10007};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* Makes random keys. For every third size there are few distinct keys. */
static uint32_t *make_keys(uint32_t n, uint64_t *state)
{
  uint32_t *keys = kept(malloc(4 * (size_t)n));

  for (uint32_t i = 0; i < n; i++)
    keys[i] = n % 3 == 0 ? (uint32_t)(test_random(state) % 5)
                         : (uint32_t)test_random(state);
  return keys;
}

static void check_sorted(const test_array *a, uint32_t *keys, uint32_t n)
{
  uint32_t *got = kept(array_read(a));

  qsort(keys, n, 4, compare);
  for (uint32_t i = 0; i < n; i++)
    ck_assert_msg(got[i] == keys[i], "n %u, key %u", n, i);
}

START_TEST(test_one_bit)
{
  kiln_module *module = load("ladder/sort_one_bit");
  kiln_kernel *count = kernel_of(module, "split_count");
  kiln_kernel *scan = kernel_of(module, "split_scan");
  kiln_kernel *scatter = kernel_of(module, "split_scatter");
  const uint32_t n = sizes[_i];
  const kiln_launch_config each = kiln_launch_1d(n, 256);
  const kiln_launch_config one = {.grid = {.x = 1}, .block = {.x = 256}};
  const uint32_t blocks = each.grid.x;
  uint64_t state = 3;
  uint32_t *keys = make_keys(n, &state);
  test_array a = array_make(KILN_U32, n, 0, keys, 0);
  test_array b = array_make(KILN_U32, n, 0, NULL, 1);
  test_array counts = array_make(KILN_U32, blocks + 1, 0, NULL, 1);
  CUdeviceptr from = a.array.data, to = b.array.data;

  for (uint32_t bit = 0; bit < 32; bit++) {
    const CUdeviceptr other = from;

    ck_kiln_ok(KILN_LAUNCH(count, &each, KILN_ARG(from), KILN_ARG(n),
                           KILN_ARG(bit), KILN_ARG(counts.array.data)));
    ck_kiln_ok(
        KILN_LAUNCH(scan, &one, KILN_ARG(counts.array.data), KILN_ARG(blocks)));
    ck_kiln_ok(KILN_LAUNCH(scatter, &each, KILN_ARG(from), KILN_ARG(to),
                           KILN_ARG(n), KILN_ARG(bit),
                           KILN_ARG(counts.array.data)));
    from = to;
    to = other;
  }
  check_sorted(&a, keys, n);
  free(array_read(&b));
  free(array_read(&counts));
  kiln_module_free(module);
}
END_TEST

/* The kernel must compute the lecture's table for the lowest bit of the
 * keys. */
START_TEST(test_worked_example)
{
  static const uint32_t keys[] = {4, 7, 2, 6, 3, 5, 1, 0};
  static const uint32_t want[] = {0, 1, 0, 0, 1, 1, 1, 0, /* b */
                                  1, 0, 1, 1, 0, 0, 0, 1, /* e */
                                  0, 1, 1, 2, 3, 3, 3, 3, /* f */
                                  4, 4, 5, 5, 5, 6, 7, 8, /* t */
                                  0, 4, 1, 2, 5, 6, 7, 3, /* d */
                                  4};
  kiln_module *module = load("ladder/sort_one_bit");
  kiln_kernel *show = kernel_of(module, "split_show");
  const kiln_launch_config one = {.grid = {.x = 1}, .block = {.x = 256}};
  test_array a = array_make(KILN_U32, 8, 0, keys, 0);
  test_array rows = array_make(KILN_U32, 41, 0, NULL, 0xee);
  const uint32_t n = 8, bit = 0;
  uint32_t *got;

  ck_kiln_ok(KILN_LAUNCH(show, &one, KILN_ARG(a.array.data), KILN_ARG(n),
                         KILN_ARG(bit), KILN_ARG(rows.array.data)));
  got = kept(array_read(&rows));
  for (int i = 0; i < 41; i++)
    ck_assert_msg(got[i] == want[i], "%d: %u", i, got[i]);
  kiln_module_free(module);
}
END_TEST

START_TEST(test_bitonic)
{
  enum { BLOCK = 512, TILE = 2 * BLOCK };
  kiln_module *module = load("ladder/sort_tile_bitonic");
  kiln_kernel *sort = kernel_of(module, "sort_tile");
  kiln_kernel *flip = kernel_of(module, "merge_flip");
  kiln_kernel *step = kernel_of(module, "merge_step");
  kiln_kernel *finish = kernel_of(module, "merge_tile");
  const uint32_t n = sizes[_i];
  const kiln_launch_config tiles = {.grid = {.x = (n + TILE - 1) / TILE},
                                    .block = {.x = BLOCK}};
  uint64_t state = 5;
  uint32_t *keys = make_keys(n, &state);
  test_array a = array_make(KILN_U32, n, 0, keys, 0);
  const CUdeviceptr x = a.array.data;

  ck_kiln_ok(KILN_LAUNCH(sort, &tiles, KILN_ARG(x), KILN_ARG(n)));
  for (uint32_t run = TILE; run < n; run *= 2) {
    /* The grid has a thread for each pair of elements in whole runs. The last
     * run may be shorter. */
    const uint32_t pairs = (n + 2 * run - 1) / (2 * run) * run;
    const kiln_launch_config all = {.grid = {.x = pairs / BLOCK},
                                    .block = {.x = BLOCK}};

    ck_kiln_ok(
        KILN_LAUNCH(flip, &all, KILN_ARG(x), KILN_ARG(n), KILN_ARG(run)));
    for (uint32_t distance = run / 2; distance >= TILE; distance /= 2)
      ck_kiln_ok(KILN_LAUNCH(step, &all, KILN_ARG(x), KILN_ARG(n),
                             KILN_ARG(distance)));
    ck_kiln_ok(KILN_LAUNCH(finish, &tiles, KILN_ARG(x), KILN_ARG(n)));
  }
  check_sorted(&a, keys, n);
  kiln_module_free(module);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("sort_ladder");
  TCase *t = device_case(s, "sort_ladder");

  tcase_add_loop_test(t, test_one_bit, 0, N_SIZES);
  tcase_add_test(t, test_worked_example);
  tcase_add_loop_test(t, test_bitonic, 0, N_SIZES);
  return s;
}

DEVICE_TEST_MAIN(suite)
