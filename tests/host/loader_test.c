/* loader_test.c -- tests how Kiln finds libcuda, resolves its symbols,
 * initialises it, and converts its CUresult codes. */
#include "support.h"

#include "driver/driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAST KILN_TEST_FAKES "/fake_libcuda_least.so"
#define STUB KILN_TEST_FAKES "/fake_libcuda_stub.so"
#define OLD KILN_TEST_FAKES "/fake_libcuda_old.so"
#define PROC KILN_TEST_FAKES "/fake_libcuda_proc.so"

static test_allocator memory;
static kiln__trail *trail;
static kiln__driver driver;
static char dir[256];

static void setup(void)
{
  unsetenv("FAKE_CUINIT");
  unsetenv("FAKE_CUDA_VERSION");
  test_allocator_init(&memory);
  trail = kiln__trail_create(&memory.alloc);
  test_dir_make(dir);
}

/* Opens the driver at the path that the option or the environment variable
 * specifies. NULL means that it is not set. */
static kiln_status open_driver(const char *option, const char *variable)
{
  return kiln__driver_open(&driver, &memory.alloc, option, variable, trail);
}

static void teardown(void)
{
  kiln__trail_free(trail);
  ck_assert_int_eq(memory.live, 0);
  test_dir_remove(dir);
}

static void copy_file(const char *from, const char *name, char out[512])
{
  size_t size;
  char *data = test_read_file(from, &size);

  snprintf(out, 512, "%s/%s", dir, name);
  test_write_file(out, data, size);
  free(data);
}

static void ck_contains(const char *text, const char *part)
{
  ck_assert_msg(strstr(text, part) != NULL, "\"%s\" lacks \"%s\"", text, part);
}

static bool no_members(const kiln__driver *d)
{
  static const kiln__driver zero;

  return memcmp(d, &zero, sizeof zero) == 0;
}

START_TEST(least_driver_is_enough)
{
  ck_kiln_ok(open_driver(LEAST, NULL));
  ck_assert_int_eq(driver.version, 11020);
  ck_assert_ptr_nonnull(driver.library);
  ck_assert_str_eq(strrchr(driver.path, '/'), "/fake_libcuda_least.so");
#define REQUIRED ck_assert_ptr_nonnull
#define OPTIONAL ck_assert_ptr_null
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  need(*(void **)&driver.name);
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
#undef REQUIRED
#undef OPTIONAL
}
END_TEST

START_TEST(symbols_come_from_the_driver_itself)
{
  ck_kiln_ok(open_driver(PROC, NULL));
  ck_assert_int_eq(driver.version, 13000);
  ck_assert_ptr_nonnull(*(void **)&driver.memAlloc);
  ck_assert_ptr_nonnull(*(void **)&driver.deviceGetUuid);
  ck_assert_ptr_nonnull(*(void **)&driver.launchKernelEx);
  ck_assert_ptr_null(*(void **)&driver.funcGetName);
  ck_assert_int_eq(driver.ctxDestroy(NULL), CUDA_SUCCESS);
}
END_TEST

START_TEST(stub_is_recognised)
{
  ck_kiln_is(open_driver(STUB, NULL), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "stub");
  ck_assert(no_members(&driver));
  /* The stub library was closed again, so a later search for its soname does
   * not find it. */
  ck_assert_ptr_null(dlopen(STUB, RTLD_LAZY | RTLD_NOLOAD));
}
END_TEST

START_TEST(toolkit_stub_folder_with_another_code)
{
  char folder[300], path[512];

  snprintf(folder, sizeof folder, "%s/stubs", dir);
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  copy_file(LEAST, "stubs/libcuda.so", path);
  setenv("FAKE_CUINIT", "999", 1);
  ck_kiln_is(open_driver(path, NULL), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "stub");
  unsetenv("FAKE_CUINIT");
}
END_TEST

START_TEST(missing_required_symbol_is_named)
{
  ck_kiln_is(open_driver(OLD, NULL), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "cuDevicePrimaryCtxRelease_v2");
  ck_contains(kiln_last_error()->message, "10.2");
  ck_contains(kiln_last_error()->message, "11.2");
  ck_assert(no_members(&driver));
}
END_TEST

START_TEST(old_version_is_refused)
{
  setenv("FAKE_CUDA_VERSION", "11010", 1);
  ck_kiln_is(open_driver(LEAST, NULL), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "11.1");
}
END_TEST

static const struct {
  const char *code;
  kiln_status want;
  const char *hint;
} init_rows[] = {
    {"100", KILN_ENODEVICE, "CUDA_VISIBLE_DEVICES"},
    {"101", KILN_ENODEVICE, "CUDA_VISIBLE_DEVICES"},
    {"3", KILN_EDRIVER, "kernel module"},
    {"46", KILN_EDRIVER, "exclusive"},
    {"802", KILN_EDRIVER, "fabricmanager"},
    {"803", KILN_EDRIVER, "reboot"},
    {"804", KILN_EDRIVER, "compat"},
    {"999", KILN_EDRIVER, "nvidia_uvm"},
    {"2", KILN_EDRIVER, "memory"},
    {"719", KILN_EDRIVER, ""},
    {"34", KILN_ENODRIVER, "path"},
    {"4242", KILN_EDRIVER, ""},
};

START_TEST(failing_init)
{
  setenv("FAKE_CUINIT", init_rows[_i].code, 1);
  ck_kiln_is(open_driver(LEAST, NULL), init_rows[_i].want);
  ck_contains(kiln_last_error()->hint, init_rows[_i].hint);
  if (init_rows[_i].want != KILN_ENODRIVER) {
    ck_assert_int_eq(kiln_last_error()->native, atoi(init_rows[_i].code));
    ck_assert_int_eq(kiln_last_error()->source, KILN_SOURCE_DRIVER);
    ck_assert_str_eq(kiln_last_error()->call, "cuInit");
    ck_contains(kiln_last_error()->message, "fake_libcuda_least.so");
  }
  ck_assert(no_members(&driver));
}
END_TEST

START_TEST(bad_paths_are_errors)
{
  char path[512];

  /* If the option or the environment variable names an unusable path, no other
   * path is tried. The option overrides the variable. */
  ck_kiln_is(open_driver("/nonexistent/x.so", LEAST), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "/nonexistent/x.so");
  ck_contains(kiln_last_error()->message, "driver_path");
  ck_kiln_is(open_driver(NULL, "/nonexistent/y.so"), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "KILN_DRIVER");
  ck_contains(kiln_last_error()->hint, "unset KILN_DRIVER");
  ck_kiln_ok(open_driver(LEAST, "/nonexistent/y.so"));

  snprintf(path, sizeof path, "%s/text.so", dir);
  test_write_file(path, "not a library", 13);
  ck_kiln_is(open_driver(path, NULL), KILN_ENODRIVER);
  ck_kiln_is(open_driver(dir, NULL), KILN_ENODRIVER);
  /* This shared library is not libcuda. */
  ck_kiln_is(open_driver(KILN_TEST_FAKES "/fake_nvjitlink.so", NULL),
             KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "cuInit");
}
END_TEST

START_TEST(relative_path_is_made_absolute)
{
  char path[512];

  copy_file(LEAST, "own.so", path);
  ck_assert_int_eq(chdir(dir), 0);
  ck_kiln_ok(open_driver("own.so", NULL));
  ck_assert_int_eq(driver.path[0], '/');
  ck_assert_str_eq(strrchr(driver.path, '/'), "/own.so");
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(current_directory_is_never_searched)
{
  char path[512];
  kiln_status st;

  copy_file(LEAST, "libcuda.so.1", path);
  copy_file(LEAST, "libcuda.so", path);
  ck_assert_int_eq(chdir(dir), 0);
  st = open_driver(NULL, NULL);
  ck_assert(st != KILN_OK || strncmp(driver.path, dir, strlen(dir)) != 0);
  if (st == KILN_ENODRIVER) {
    ck_contains(kiln_last_error()->message, "libcuda.so.1");
    ck_contains(kiln_last_error()->hint, "KILN_DRIVER");
  }
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

static void count_steps(void *user, const kiln_trail_step *step)
{
  int *counts = user;

  ck_assert_str_eq(step->what, "libcuda");
  counts[step->found]++;
}

START_TEST(trail_lists_every_place)
{
  int counts[2] = {0};

  open_driver("/nonexistent/x.so", NULL);
  open_driver(STUB, NULL);
  open_driver(LEAST, NULL);
  kiln__trail_each(trail, count_steps, counts);
  ck_assert_int_eq(counts[0], 2);
  ck_assert_int_eq(counts[1], 1);
}
END_TEST

/* ---- The search of the system's loader, in a separate process ----------- */

static int child(void)
{
  kiln_allocator a = {0};
  kiln__driver own;
  kiln_status st;

  kiln__allocator_default(&a);
  trail = kiln__trail_create(&a);
  st = kiln__driver_open(&own, &a, NULL, NULL, trail);

  if (st != KILN_OK)
    printf("%s\n", kiln_last_error()->message);
  else
    printf("path=%s\n", own.path);
  return 0;
}

/* Runs this program again as child() with LD_LIBRARY_PATH set, and returns its
 * output. */
static char *run_child(const char *library_path, const char *cwd)
{
  static char out[4096];
  char command[PATH_MAX + 1024], self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  size_t got;
  FILE *pipe;

  ck_assert_int_gt(n, 0);
  self[n] = '\0';
  snprintf(command, sizeof command,
           "cd '%s' && LD_LIBRARY_PATH='%s' '%s' child", cwd, library_path,
           self);
  pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  got = fread(out, 1, sizeof out - 1, pipe);
  out[got] = '\0';
  ck_assert_int_eq(pclose(pipe), 0);
  return out;
}

START_TEST(only_the_soname_with_1)
{
  char path[512], want[600];

  copy_file(LEAST, "libcuda.so.1", path);
  snprintf(want, sizeof want, "path=%s\n", path);
  ck_assert_str_eq(run_child(dir, "/"), want);
}
END_TEST

START_TEST(only_the_plain_name)
{
  char path[512], want[600];

  copy_file(LEAST, "libcuda.so", path);
  snprintf(want, sizeof want, "path=%s\n", path);
  ck_assert_str_eq(run_child(dir, "/"), want);
}
END_TEST

START_TEST(stub_on_the_library_path_is_passed_over)
{
  char path[512], want[600];

  copy_file(STUB, "libcuda.so.1", path);
  copy_file(LEAST, "libcuda.so", path);
  snprintf(want, sizeof want, "path=%s\n", path);
  ck_assert_str_eq(run_child(dir, "/"), want);
}
END_TEST

static const char *const relative_paths[] = {":", ".", ":/nonexistent", "./"};

START_TEST(relative_library_paths_are_not_searched)
{
  char path[512];

  copy_file(LEAST, "libcuda.so.1", path);
  copy_file(LEAST, "libcuda.so", path);
  ck_assert_ptr_null(strstr(run_child(relative_paths[_i], dir), "fake_"));
  ck_assert_ptr_null(strstr(run_child(relative_paths[_i], dir), dir));
  ck_assert_ptr_null(strstr(run_child(relative_paths[_i], dir), "path=."));
}
END_TEST

/* If Kiln passed a truncated file to the system's loader, the process would end
 * with SIGBUS. */
START_TEST(truncated_driver_is_passed_over)
{
  char path[512], want[600];

  copy_file(LEAST, "libcuda.so.1", path);
  ck_assert_int_eq(truncate(path, 5000), 0);
  ck_kiln_is(open_driver(path, NULL), KILN_ENODRIVER);
  ck_contains(kiln_last_error()->message, "truncated: it has 5000 bytes");
  ck_contains(run_child(dir, "/"), "truncated");
  copy_file(LEAST, "libcuda.so", path);
  snprintf(want, sizeof want, "path=%s\n", path);
  ck_assert_str_eq(run_child(dir, "/"), want);
}
END_TEST

/* ---- Results ------------------------------------------------------------- */

static const struct {
  CUresult rc;
  kiln_status want;
} result_rows[] = {
    {0, KILN_OK},          {1, KILN_EDRIVER},
    {2, KILN_EDEVMEM},     {34, KILN_ENODRIVER},
    {100, KILN_ENODEVICE}, {101, KILN_ENODEVICE},
    {200, KILN_EDRIVER},   {209, KILN_EDRIVER},
    {218, KILN_EDRIVER},   {221, KILN_EDRIVER},
    {222, KILN_EDRIVER},   {223, KILN_EDRIVER},
    {300, KILN_EDRIVER},   {301, KILN_EDRIVER},
    {214, KILN_ESTICKY},   {217, KILN_EUNSUPPORTED},
    {400, KILN_EDRIVER},   {500, KILN_ENOTFOUND},
    {600, KILN_ENOTREADY}, {700, KILN_ESTICKY},
    {701, KILN_ELIMIT},    {702, KILN_ESTICKY},
    {709, KILN_ESTICKY},   {710, KILN_ESTICKY},
    {714, KILN_ESTICKY},   {715, KILN_ESTICKY},
    {716, KILN_ESTICKY},   {717, KILN_ESTICKY},
    {718, KILN_ESTICKY},   {719, KILN_ESTICKY},
    {720, KILN_ELIMIT},    {801, KILN_EUNSUPPORTED},
    {900, KILN_ECAPTURE},  {901, KILN_ECAPTURE},
    {902, KILN_ECAPTURE},  {903, KILN_ECAPTURE},
    {904, KILN_ECAPTURE},  {905, KILN_ECAPTURE},
    {906, KILN_ECAPTURE},  {907, KILN_ECAPTURE},
    {908, KILN_ECAPTURE},  {909, KILN_ETIMEOUT},
    {912, KILN_ELIMIT},    {999, KILN_EDRIVER},
    {4242, KILN_EDRIVER},
};

START_TEST(results_become_statuses)
{
  ck_kiln_ok(open_driver(LEAST, NULL));
  for (size_t i = 0; i < sizeof result_rows / sizeof result_rows[0]; i++) {
    const CUresult rc = result_rows[i].rc;

    ck_assert_msg(kiln__cu(&driver, rc, "cuX") == result_rows[i].want,
                  "%d gives %s, not %s", rc,
                  kiln_status_name(kiln__cu(&driver, rc, "cuX")),
                  kiln_status_name(result_rows[i].want));
    if (rc == 0)
      continue;
    ck_assert_int_eq(kiln_last_error()->native, rc);
    ck_assert_str_eq(kiln_last_error()->call, "cuX");
    if (result_rows[i].want == KILN_ESTICKY || rc == 222)
      ck_assert_int_ne(kiln_last_error()->hint[0], '\0');
  }
}
END_TEST

static CUresult name_of(CUresult rc, const char **name)
{
  *name = rc == 700 ? "NAME_BY_DRIVER" : NULL;
  return rc == 700 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult text_of(CUresult rc, const char **text)
{
  *text = rc == 700 ? "text by driver" : NULL;
  return rc == 700 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

START_TEST(names_by_driver_or_own)
{
  const kiln__driver named = {.getErrorName = name_of,
                              .getErrorString = text_of};

  ck_kiln_is(kiln__cu(&named, 700, "cuX"), KILN_ESTICKY);
  ck_assert_str_eq(kiln_last_error()->message,
                   "cuX failed: NAME_BY_DRIVER (700): text by driver");
  ck_kiln_is(kiln__cu(&named, 701, "cuX"), KILN_ELIMIT);
  ck_assert_str_eq(kiln_last_error()->message,
                   "cuX failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)");
  ck_kiln_is(kiln__cu(NULL, 4242, "cuX"), KILN_EDRIVER);
  ck_assert_str_eq(kiln_last_error()->message,
                   "cuX failed: unknown CUresult (4242)");
}
END_TEST

int main(int argc, char **argv)
{
  Suite *s = suite_create("loader");
  TCase *open;

  if (argc == 2 && strcmp(argv[1], "child") == 0)
    return child();
  open = kiln_test_case(
      s, "open", 30, setup, teardown,
      TESTS(least_driver_is_enough, symbols_come_from_the_driver_itself,
            stub_is_recognised, toolkit_stub_folder_with_another_code,
            missing_required_symbol_is_named, old_version_is_refused,
            bad_paths_are_errors, relative_path_is_made_absolute,
            current_directory_is_never_searched, trail_lists_every_place,
            only_the_soname_with_1, only_the_plain_name,
            stub_on_the_library_path_is_passed_over,
            truncated_driver_is_passed_over));
  tcase_add_loop_test(open, failing_init, 0,
                      sizeof init_rows / sizeof init_rows[0]);
  tcase_add_loop_test(open, relative_library_paths_are_not_searched, 0,
                      sizeof relative_paths / sizeof relative_paths[0]);
  kiln_test_case(s, "result", 0, setup, teardown,
                 TESTS(results_become_statuses, names_by_driver_or_own));
  return kiln_test_run(s);
}
