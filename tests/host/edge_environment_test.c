/* edge_environment_test.c -- tests the cache in unusual environments: home
 * folders, cache folders and size limits that are missing, empty, relative or
 * too long. */
#include "support.h"

#include "fake_nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static const kiln_target sm_90 = {.cc = 90};
static const char source[] = "extern \"C\" __global__ void k(int *p) {}\n";

static char dir[256], library[512];

static void setup(void)
{
  static const char *const variables[] = {"HOME",           "XDG_CACHE_HOME",
                                          "KILN_CACHE_DIR", "KILN_CACHE_SIZE",
                                          "KILN_PACKS",     "KILN_NVRTC"};

  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    unsetenv(variables[i]);
  test_dir_make(dir);
  fake_nvrtc_install(KILN_TEST_FAKES "/fake_nvrtc.so", dir, "libnvrtc.so.13",
                     NULL, library);
}

static void teardown(void)
{
  ck_assert_int_eq(chdir("/"), 0);
  test_dir_remove(dir);
}

static kiln_runtime *make_runtime(const char *cache_dir)
{
  const kiln_runtime_opts opts = {.nvrtc_path = library,
                                  .cache_dir = cache_dir};
  kiln_runtime *rt;

  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
  return rt;
}

static kiln_origin compile(kiln_runtime *rt, const kiln_program_desc *desc)
{
  kiln_image *image;
  kiln_origin origin;

  ck_kiln_ok(kiln_compile(&image, rt, desc, &sm_90));
  ck_assert_str_eq(kiln_image_lowered(image, "k"), "k");
  origin = kiln_image_origin(image);
  kiln_image_free(image);
  return origin;
}

/* The cache folder that results from the environment variables; `$` stands for
 * the test's folder. */
static const struct {
  const char *home, *xdg, *kiln, *want;
} homes[] = {
    {"$", NULL, NULL, "$/.cache/kiln"},
    {"$", "", NULL, "$/.cache/kiln"},
    {"$", "relative", NULL, "$/.cache/kiln"},
    {"$", "$/xdg", NULL, "$/xdg/kiln"},
    {NULL, "$/xdg", NULL, "$/xdg/kiln"},
    {"$", "$/xdg", "$/own", "$/own"},
    {"$", "$/xdg", "", "$/xdg/kiln"},
    {NULL, NULL, NULL, ""},
    {"", "", "", ""},
    {"relative", NULL, NULL, ""},
    {".", "./x", NULL, ""},
    {"$", "$/xdg", "off", ""},
};

static void expand(char out[600], const char *text)
{
  if (text[0] == '$')
    snprintf(out, 600, "%s%s", dir, text + 1);
  else
    snprintf(out, 600, "%s", text);
}

static void set(const char *variable, const char *text)
{
  char value[600];

  if (text == NULL)
    return;
  expand(value, text);
  setenv(variable, value, 1);
}

START_TEST(homes_of_all_kinds)
{
  const kiln_program_desc desc = {.source = source};
  kiln_cache_info info;
  kiln_runtime *rt;
  char want[600];

  /* If a relative path were accepted, it would resolve to this folder. */
  ck_assert_int_eq(chdir(dir), 0);
  set("HOME", homes[_i].home);
  set("XDG_CACHE_HOME", homes[_i].xdg);
  set("KILN_CACHE_DIR", homes[_i].kiln);
  expand(want, homes[_i].want);
  for (int round = 0; round < 2; round++) {
    rt = make_runtime(NULL);
    ck_assert_int_eq(compile(rt, &desc), round == 1 && want[0] != '\0'
                                             ? KILN_FROM_DISK
                                             : KILN_FROM_COMPILER);
    ck_kiln_ok(kiln_cache_describe(rt, &info));
    ck_assert_str_eq(info.path, want);
    ck_assert_int_eq(info.usable, want[0] != '\0');
    ck_assert_int_eq(info.reason[0] == '\0', info.usable);
    kiln_runtime_free(rt);
  }
  ck_assert_int_ne(access("relative", F_OK), 0);
  ck_assert_int_ne(access("x", F_OK), 0);
}
END_TEST

static const struct {
  const char *text;
  uint64_t cap; /* expected capacity in bytes; 0 means the default */
} sizes[] = {
    {"4096", 4096},
    {"1K", 1024},
    {"2k", 2048},
    {"64M", 64u << 20},
    {"3G", (uint64_t)3 << 30},
    {"0", 0},
    {"", 0},
    {"-1", 0},
    {"M", 0},
    {"12X", 0},
    {"1MB", 0},
    {" 5", 0},
    {"99999999999G", 0},
    {"99999999999999999999999", 0},
};

static void take_reason(void *user, const kiln_trail_step *step)
{
  if (strcmp(step->how, "environment KILN_CACHE_SIZE") == 0)
    *(const char **)user = step->reason;
}

START_TEST(sizes_of_all_kinds)
{
  const char *reason = NULL;
  kiln_cache_info info;
  kiln_runtime *rt;

  setenv("KILN_CACHE_DIR", dir, 1);
  setenv("KILN_CACHE_SIZE", sizes[_i].text, 1);
  rt = make_runtime(NULL);
  ck_kiln_ok(kiln_cache_describe(rt, &info));
  ck_assert_uint_eq(info.cap,
                    sizes[_i].cap != 0 ? sizes[_i].cap : (uint64_t)256 << 20);
  ck_kiln_ok(kiln_runtime_trail(rt, take_reason, &reason));
  if (sizes[_i].cap != 0 || sizes[_i].text[0] == '\0')
    ck_assert_ptr_null(reason);
  else
    ck_assert_ptr_nonnull(strstr(reason, "not a size"));
  kiln_runtime_free(rt);
}
END_TEST

/* If a name or path exceeds the limits of the file system, nothing is
 * cached. */
START_TEST(paths_that_are_too_long)
{
  static const size_t lengths[] = {255, 256, 1000, 4095, 4096, 70000};
  const kiln_program_desc desc = {.source = source};
  const size_t most = lengths[5] + sizeof dir + 2;
  char *path = malloc(most);

  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    const size_t at = (size_t)snprintf(path, most, "%s/", dir);
    kiln_cache_info info;
    kiln_runtime *rt;

    memset(path + at, 'x', lengths[i]);
    path[at + lengths[i]] = '\0';
    rt = make_runtime(path);
    ck_assert_int_eq(compile(rt, &desc), KILN_FROM_COMPILER);
    ck_assert_int_eq(compile(rt, &desc), KILN_FROM_MEMORY);
    ck_kiln_ok(kiln_cache_describe(rt, &info));
    ck_assert_int_eq(info.usable, lengths[i] <= 255);
    ck_assert_int_eq(info.reason[0] == '\0', info.usable);
    kiln_runtime_free(rt);
  }
  free(path);
}
END_TEST

static void touch(const char *path, time_t seconds_ago)
{
  const struct timeval now = {.tv_sec = time(NULL) - seconds_ago};

  ck_assert_int_eq(utimes(path, (const struct timeval[]){now, now}), 0);
}

/* Time stamps of included files and of the compiler do not affect the key. */
START_TEST(time_stamps_do_not_matter)
{
  const char *options[] = {"-I", dir};
  const kiln_program_desc desc = {.source = "#include <h.h>\n"
                                            "extern \"C\" __global__ void "
                                            "k(int *p) {}\n",
                                  .options = options,
                                  .n_options = 2};
  char header[300], cache[300];
  kiln_runtime *rt;

  snprintf(header, sizeof header, "%s/h.h", dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
  test_write_file(header, "int x;\n", 7);
  for (int round = 0; round < 4; round++) {
    touch(header, 1000 * (round + 1));
    if (round >= 2)
      touch(library, 1000 * (round + 1));
    rt = make_runtime(cache);
    ck_assert_msg(compile(rt, &desc) ==
                      (round == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK),
                  "round %d", round);
    kiln_runtime_free(rt);
  }
  /* The content of an included file affects the key. */
  test_write_file(header, "int y;\n", 7);
  rt = make_runtime(cache);
  ck_assert_int_eq(compile(rt, &desc), KILN_FROM_COMPILER);
  kiln_runtime_free(rt);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("edge_environment");
  TCase *t =
      kiln_test_case(s, "all", 30, setup, teardown,
                     TESTS(paths_that_are_too_long, time_stamps_do_not_matter));

  tcase_add_loop_test(t, homes_of_all_kinds, 0, sizeof homes / sizeof homes[0]);
  tcase_add_loop_test(t, sizes_of_all_kinds, 0, sizeof sizes / sizeof sizes[0]);
  return kiln_test_run(s);
}
