/* scan_ladder_test.c -- the teaching versions of the scan: their results and
 * the number of their additions. */
#include "scan_values.h"

enum { THREADS = 64 };

typedef struct step {
  const char *builtin, *kernel;
  unsigned section; /* elements per section; 0 means the whole array */
  bool exclusive;
} step;

static const step steps[] = {
    {"ladder/scan_naive", "scan_naive", 0, false},
    {"ladder/scan_naive", "scan_naive", 0, true},
    {"ladder/scan_hillis_steele", "scan_hillis_steele", THREADS, false},
    {"ladder/scan_hillis_steele", "scan_hillis_steele", THREADS, true},
    {"ladder/scan_brent_kung", "scan_brent_kung", 2 * THREADS, false},
    {"ladder/scan_brent_kung", "scan_brent_kung", 2 * THREADS, true},
};

enum { N_STEPS = sizeof steps / sizeof steps[0] };

static kiln_kernel *load(kiln_module **module, const char *builtin,
                         const char *kernel, bool exclusive)
{
  const char *const defines[] = {"KILN_BLOCK=64", "KILN_COUNT=1",
                                 exclusive ? "KILN_EXCLUSIVE=1"
                                           : "KILN_EXCLUSIVE=0"};
  const kiln_program_desc desc = {
      .builtin = builtin, .defines = defines, .n_defines = 3};
  kiln_kernel *k;

  ck_kiln_ok(kiln_module_load(module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&k, *module, kernel));
  return k;
}

/* Scans each section of x into y. */
static void scan_sections(kiln_kernel *kernel, const step *s, CUdeviceptr x,
                          uint32_t n, CUdeviceptr y, CUdeviceptr sums,
                          CUdeviceptr additions)
{
  kiln_launch_config config =
      kiln_launch_1d(n, s->section == 0 ? THREADS : s->section);

  config.block.x = THREADS;
  config.stream = stream;
  if (s->section == 0)
    ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(x), KILN_ARG(n),
                           KILN_ARG(y), KILN_ARG(additions)));
  else
    ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(x), KILN_ARG(n),
                           KILN_ARG(y), KILN_ARG(sums), KILN_ARG(additions)));
}

static uint64_t log2_of(uint64_t n)
{
  uint64_t k = 0;

  while (n > 1) {
    n /= 2;
    k++;
  }
  return k;
}

/* Returns the number of additions for one section of n elements, where n is a
 * power of two. */
static uint64_t additions_of(const step *s, uint64_t n)
{
  if (s->section == 0)
    return s->exclusive ? (n - 1) * (n - 2) / 2 : n * (n - 1) / 2;
  if (s->section == THREADS)
    return n * log2_of(n) - (n - 1);
  /* n - 1 additions in the up-sweep, n - 1 - log2 n in the down-sweep */
  return 2 * (n - 1) - log2_of(n);
}

/* Scans one section, or a whole array with the naive kernel. */
static void run_section(const step *s, kiln_kernel *kernel, size_t n)
{
  uint64_t state = n, counted;
  int64_t *v = small_wholes(n, &state), sum = 0;
  int64_t *want = scanned(v, NULL, n, KILN_SUM, 0, NULL, s->exclusive);
  test_array in = array_make(KILN_F32, n, 0, elements(KILN_F32, v, n), 0);
  test_array out = array_make(KILN_F32, n, 0, NULL, 0x5a);
  test_array sums = array_make(KILN_F32, 1, 0, NULL, 0x5a);
  test_array additions = array_make(KILN_U64, 1, 0, NULL, 0);

  scan_sections(kernel, s, in.array.data, (uint32_t)n, out.array.data,
                sums.array.data, additions.array.data);
  ck_array(&out, elements(KILN_F32, want, n), s->kernel);
  counted = *(uint64_t *)kept(array_read(&additions));
  if ((n & (n - 1)) == 0)
    ck_assert_msg(counted == additions_of(s, n), "%s: %llu additions for %zu",
                  s->kernel, (unsigned long long)counted, n);
  else if (s->section > THREADS)
    ck_assert_uint_le(counted, 2 * (n - 1));
  for (size_t i = 0; i < n; i++)
    sum += v[i];
  if (s->section != 0)
    ck_array(&sums, elements(KILN_F32, &sum, 1), "the section's sum");
}

START_TEST(test_sections)
{
  static const size_t lengths[] = {1,  2,  3,  10,  31,  32,
                                   33, 63, 64, 100, 127, 128};
  kiln_module *module;
  kiln_kernel *kernel =
      load(&module, steps[_i].builtin, steps[_i].kernel, steps[_i].exclusive);

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    if (steps[_i].section == 0 || lengths[k] <= steps[_i].section)
      run_section(&steps[_i], kernel, lengths[k]);
  kiln_module_free(module);
}
END_TEST

/* Scans whole arrays: first their sections, then the sums of the sections,
 * which are added to the results. */
typedef struct scanner {
  const step *s, *inclusive;
  kiln_kernel *sections, *of_sums, *add;
  CUdeviceptr additions;
} scanner;

static void scan_all(const scanner *s, const step *how, CUdeviceptr x,
                     uint32_t n, CUdeviceptr y)
{
  const uint32_t section = how->section;
  const uint32_t n_sums = (n + section - 1) / section;
  kiln_launch_config config = kiln_launch_1d(n, THREADS);
  CUdeviceptr sums;

  ck_kiln_ok(kiln_memory_alloc(&sums, device, 4 * n_sums));
  scan_sections(how == s->s ? s->sections : s->of_sums, how, x, n, y, sums,
                s->additions);
  if (n_sums > 1) {
    scan_all(s, s->inclusive, sums, n_sums, sums);
    config.stream = stream;
    ck_kiln_ok(KILN_LAUNCH(s->add, &config, KILN_ARG(y), KILN_ARG(n),
                           KILN_ARG(section), KILN_ARG(sums),
                           KILN_ARG(s->additions)));
  }
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln_memory_free(device, sums));
}

START_TEST(test_whole_arrays)
{
  static const size_t lengths[] = {64, 65, 1000, 8192, 20011};
  const step *s = &steps[2 + _i];
  kiln_module *module[3];
  scanner all = {.s = s, .inclusive = &steps[2 + _i / 2 * 2]};

  all.sections = load(&module[0], s->builtin, s->kernel, s->exclusive);
  all.of_sums = load(&module[1], s->builtin, s->kernel, false);
  all.add = load(&module[2], "ladder/scan_add", "scan_add", false);
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];
    uint64_t state = n;
    int64_t *v = small_wholes(n, &state);
    int64_t *want = scanned(v, NULL, n, KILN_SUM, 0, NULL, s->exclusive);
    test_array in = array_make(KILN_F32, n, 0, elements(KILN_F32, v, n), 0);
    test_array out = array_make(KILN_F32, n, 0, NULL, 0x5a);
    test_array additions = array_make(KILN_U64, 1, 0, NULL, 0);

    all.additions = additions.array.data;
    scan_all(&all, s, in.array.data, (uint32_t)n, out.array.data);
    ck_array(&out, elements(KILN_F32, want, n), "whole array");
  }
  for (int k = 0; k < 3; k++)
    kiln_module_free(module[k]);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scan_ladder");
  TCase *t = device_case(s, "scan_ladder");

  tcase_add_loop_test(t, test_sections, 0, N_STEPS);
  tcase_add_loop_test(t, test_whole_arrays, 0, N_STEPS - 2);
  return s;
}

DEVICE_TEST_MAIN(suite)
