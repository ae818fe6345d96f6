/* edge_locale_test.c -- tests that nothing depends on the caller's locale.
 * Constants, cache keys, cache entries and times must be correct under a locale
 * whose decimal point is a comma. The test uses an installed locale or creates
 * one with localedef. If neither is possible, the test is skipped. */
#include "each_nvrtc.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

static const kiln_target sm_80 = {.cc = 80};

static char chosen[256]; /* name of the locale */
/* folder of the locale that the test created, or "" if it created none */
static char locales[256];
static char dir[256], cache[300];

static bool has_comma(void)
{
  return localeconv()->decimal_point[0] == ',';
}

static bool choose_installed(void)
{
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE",
                                      "fr_FR.UTF-8", "fr_FR.utf8"};

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (setlocale(LC_ALL, names[i]) != NULL && has_comma())
      return true;
  }
  return false;
}

static bool make_locale(void)
{
  char command[600];

  snprintf(locales, sizeof locales, "/tmp/kiln.locale.XXXXXX");
  if (mkdtemp(locales) == NULL)
    return false;
  snprintf(command, sizeof command,
           "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", locales,
           locales);
  if (system(command) != 0)
    return false;
  setenv("LOCPATH", locales, 1);
  return setlocale(LC_ALL, "de_DE.UTF-8") != NULL && has_comma();
}

static void setup(void)
{
  ck_assert(has_comma());
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
}

static void teardown(void)
{
  ck_assert(has_comma()); /* Kiln must not have changed the locale. */
  test_dir_remove(dir);
}

static kiln_image *compile(kiln_runtime *rt, const char *define)
{
  const kiln_program_desc desc = {
      .source = "__global__ void k(float *p) { p[0] = V; p[1] = 0.1f; }\n",
      .defines = &define,
      .n_defines = 1};
  kiln_image *image;

  ck_kiln_ok(kiln_compile(&image, rt, &desc, &sm_80));
  return image;
}

/* Checks that the PTX contains the bits of a float, in any notation that
 * compilers use. */
static void holds(const kiln_image *image, uint32_t bits)
{
  const char *ptx = kiln_image_ptx(image, NULL);
  char decimal[32], hex[32];

  snprintf(decimal, sizeof decimal, " %u;", bits);
  snprintf(hex, sizeof hex, "0f%08X", bits);
  ck_assert_msg(strstr(ptx, decimal) != NULL || strstr(ptx, hex) != NULL,
                "no %s in %s", hex, ptx);
}

START_TEST(constants_and_entries)
{
  kiln_runtime *first = each_runtime(_i, cache), *rt;
  kiln_image *cold = compile(first, "V=1.5f"), *warm;
  const char *key, *other;
  kiln_resources a, b;

  /* NVRTC 11 changes the locale, so Kiln has to restore it. */
  ck_assert(has_comma());
  ck_assert_str_eq(setlocale(LC_ALL, NULL), chosen);
  ck_assert_ptr_eq(uselocale((locale_t)0), LC_GLOBAL_LOCALE);
  holds(cold, 0x3fc00000); /* 1.5 */
  holds(cold, 0x3dcccccd); /* 0.1 */

  rt = each_runtime(_i, cache); /* Another runtime reads the image from disk. */
  warm = compile(rt, "V=1.5f");
  ck_assert_int_eq(kiln_image_origin(warm), KILN_FROM_DISK);
  ck_assert(kiln_image_compile_ms(cold) > 0);
  ck_assert(kiln_image_compile_ms(warm) > 0.9 * kiln_image_compile_ms(cold));
  ck_assert(kiln_image_compile_ms(warm) < 1.1 * kiln_image_compile_ms(cold));
  ck_kiln_ok(kiln_image_resources(cold, 0, &a));
  ck_kiln_ok(kiln_image_resources(warm, 0, &b));
  ck_assert_str_eq(a.name, b.name);
  ck_assert_int_eq(a.registers, b.registers);
  kiln_image_key(cold, &key);
  kiln_image_key(warm, &other);
  ck_assert_str_eq(key, other);
  kiln_image_free(warm);
  kiln_runtime_free(rt);

  /* The cache entry is also found under the locale "C". */
  setlocale(LC_ALL, "C");
  rt = each_runtime(_i, cache);
  warm = compile(rt, "V=1.5f");
  ck_assert_int_eq(kiln_image_origin(warm), KILN_FROM_DISK);
  ck_assert(kiln_image_compile_ms(warm) > 0.9 * kiln_image_compile_ms(cold));
  ck_assert_str_eq(kiln_image_ptx(warm, NULL), kiln_image_ptx(cold, NULL));
  kiln_image_free(warm);
  kiln_runtime_free(rt);
  kiln_image_free(cold);
  kiln_runtime_free(first);
  ck_assert_ptr_nonnull(setlocale(LC_ALL, chosen));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("edge_locale");
  TCase *t = tcase_create("each NVRTC");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, constants_and_entries, 0, each_n);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  int rc = KILN_TEST_SKIP;

  if (each_find() == 0)
    return KILN_TEST_SKIP;
  if (choose_installed() || make_locale()) {
    snprintf(chosen, sizeof chosen, "%s", setlocale(LC_ALL, NULL));
    rc = kiln_test_run(suite());
  } else {
    printf("skipped: no locale that writes 1,5, and localedef makes none\n");
  }
  if (locales[0] != '\0')
    test_dir_remove(locales);
  return rc;
}
