/* quick_test.c -- tests kernels that operations compile with less optimisation
 * for small calls. These kernels must not spill registers on the architectures
 * where operations use them.
 *
 * The default run compiles each kernel by two of three NVRTCs, and the targets
 * alternate. KILN_TEST_THOROUGH=1 compiles it for every target. */
#include "each_nvrtc.h"

static char dir[256], cache[300];
static kiln_runtime *rt;

static void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
}

static void teardown(void)
{
  kiln_runtime_free(rt);
  rt = NULL;
  test_dir_remove(dir);
}

static const struct {
  const char *builtin;
  int cc; /* lowest capability */
} quick[] = {{"gather", 75},
             {"scatter", 75},
             {"scan", 75},
             {"radix_small", 75},
             {"radix_pass", 75},
             {"radix_histogram", 75},
             {"select", 75},
             {"partition", 75},
             {"split", 75},
             {"histogram", 75},
             {"weighted_histogram", 75},
             {"segmented_sort", 75},
             {"run_length", 75},
             {"find", 75},
             {"difference", 75},
             {"buckets", 75},
             {"random", 75},
             {"rotate", 75},
             {"copy_batch", 75},
             {"run_length_decode", 75},
             {"permute", 75},
             {"permute_rows", 75},
             {"index_check", 75},
             {"counting_sort", 90},
             {"scan_by_key", 90},
             {"reduce_by_key", 90},
             {"rank_select", 90},
             {"top_k", 90},
             {"quantile", 75}};

START_TEST(no_spills)
{
  static const int targets[] = {75, 80, 90};
  const bool thorough = getenv("KILN_TEST_THOROUGH") != NULL;

  rt = each_runtime(_i, cache);
  for (size_t k = 0; k < sizeof quick / sizeof quick[0]; k++)
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
      const kiln_program_desc desc = {.builtin = quick[k].builtin,
                                      .fast_compile = true,
                                      .minimal = true,
                                      .fail_on_spill = true};
      const kiln_target target = {.cc = targets[t]};
      kiln_image *image;

      if (targets[t] < quick[k].cc ||
          (!thorough && quick[k].cc == 75 && t != (k + (size_t)_i) % 3) ||
          (!thorough && each_n == 3 && (k + (size_t)_i) % 3 == 0))
        continue;
      ck_assert_msg(kiln_compile(&image, rt, &desc, &target) == KILN_OK,
                    "%s for %d: %s", quick[k].builtin, targets[t],
                    kiln_last_error()->message);
      kiln_image_free(image);
    }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("quick");
  TCase *t = tcase_create("each");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, no_spills, 0, each_n);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(suite());
}
