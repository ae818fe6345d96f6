/* cpu_exec_test.c -- unmodified programs under `kiln exec`. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_CLI

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER KILN_TEST_BUILD "/tests/exec_driver"
#define MAPPED KILN_TEST_BUILD "/tests/exec_mapped"
#define OPENS KILN_TEST_BUILD "/tests/exec_opens"

static char dir[256];
/* A preloaded library comes before a sanitizer's runtime, which insists on
 * being the first. */
static const char *const plain = KILN_TEST_SANITIZED ? "--no-preload" : "";

static void setup(void)
{
  test_dir_make(dir);
  test_command_setup(dir);
  unsetenv("KILN_DRIVER");
  unsetenv("KILN_DEVICE");
}

static void teardown(void)
{
  test_dir_remove(dir);
}

START_TEST(linked_programs_run)
{
  test_run run = test_kiln("exec %s -- %s add", plain, DRIVER);

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  ck_assert_str_eq(run.err, "");
  run = test_kiln("exec %s --device cpu:6.1 --threads 2 --seed 5 -- %s add",
                  plain, DRIVER);
  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
}
END_TEST

START_TEST(the_exit_code_is_the_programs)
{
  test_run run = test_kiln("exec %s -- %s exit 42", plain, DRIVER);

  ck_run_rc(run, 42);
  run = test_kiln("exec %s --check all -- %s exit 5", plain, DRIVER);
  ck_run_rc(run, 5);
  run = test_kiln("exec %s -- /no/such/program", plain);
  ck_run_rc(run, 127);
  ck_has(run.err, "/no/such/program");
}
END_TEST

START_TEST(device_printf_comes_out)
{
  const test_run run = test_kiln("exec %s -- %s print", plain, DRIVER);

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "hello 0\nhello 1\nhello 2\n");
}
END_TEST

START_TEST(faults_are_explained)
{
  test_run run = test_kiln("exec %s -- %s bad", plain, DRIVER);

  ck_run_rc(run, 7);
  ck_assert_str_eq(run.out, "CUDA_ERROR_ILLEGAL_ADDRESS\n");
  ck_has(run.err, "add");
  ck_has(run.err, "0x123400");
}
END_TEST

START_TEST(findings_are_reported)
{
  char path[300];
  test_run run = test_kiln("exec %s -- %s race", plain, DRIVER);
  size_t size = 0;
  char *report;

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.err, "");
  snprintf(path, sizeof path, "%s/report", dir);
  run = test_kiln("exec %s --check mem,race --report %s -- %s race", plain,
                  path, DRIVER);
  ck_run_rc(run, 1);
  ck_assert_str_eq(run.out, "done\n");
  ck_has(run.err, "race in race<unsigned int>"); /* not _Z4raceIjEvPT_ */
  ck_has(run.err, "1 finding in 1 launch of 1 kernel\n");
  report = test_read_file(path, &size);
  ck_has(report, "\"type\":\"finding\"");
  ck_has(report, "\"kind\":\"race\"");
  free(report);
}
END_TEST

START_TEST(a_clean_run_says_what_was_checked)
{
  test_run run = test_kiln("exec %s --check all -- %s add", plain, DRIVER);

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  ck_assert_str_eq(run.err, "\n0 findings in 1 launch of 1 kernel\n");
}
END_TEST

START_TEST(mapped_memory_is_used)
{
  test_run run = test_kiln("exec %s --check all -- %s grow", plain, MAPPED);

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  ck_has(run.err, "\n0 findings in 4 launches of 1 kernel\n");
  run = test_kiln("exec %s -- %s share", plain, MAPPED);
  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
}
END_TEST

/* The memory is mapped without access, unmapped, too small, or never written. */
START_TEST(mistakes_with_mapped_memory_are_found)
{
  static const struct {
    const char *job, *result, *text;
  } rows[] = {
      {"denied", "CUDA_ERROR_ILLEGAL_ADDRESS\n", "no access in add"},
      {"read", "CUDA_ERROR_ILLEGAL_ADDRESS\n",
       "writes to mapped memory that the device may only read"},
      {"unmapped", "CUDA_ERROR_ILLEGAL_ADDRESS\n", "cuMemUnmap has removed"},
      {"past", "CUDA_ERROR_ILLEGAL_ADDRESS\n", "to which no memory is mapped"},
      {"unwritten", "CUDA_SUCCESS\n", "uninitialised read"}};
  const int i = _i;
  const test_run run = test_kiln("exec %s --check mem,init -- %s %s", plain,
                                 MAPPED, rows[i].job);

  ck_assert_int_ne(run.rc, 0);
  ck_assert_str_eq(run.out, rows[i].result);
  ck_has(run.err, rows[i].text);
  ck_has(run.err, "in add, line 5 of add.cu");
}
END_TEST

START_TEST(unsupported_functions_are_named)
{
  const test_run run = test_kiln("exec %s -- %s beyond", plain, DRIVER);
  const char *first;

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "CUDA_ERROR_NOT_SUPPORTED\n");
  ck_has(run.err, "cuDeviceGetDevResource");
  ck_has(run.err, "2 times");
  first = strstr(run.err, "cuDeviceGetDevResource");
  ck_assert_ptr_null(strstr(first + 1, "cuDeviceGetDevResource"));
}
END_TEST

START_TEST(missing_tables_and_notes_have_one_line_each)
{
  const test_run run = test_kiln("exec %s -- %s tables", plain, DRIVER);

  ck_run_rc(run, 0);
  ck_has(run.err, "cuGetExportTable (private tables, asked for by ");
  ck_has(run.err, "exec_driver)");
  ck_has(run.err, "-cudart shared");
  ck_has(run.err, "CMAKE_CUDA_RUNTIME_LIBRARY=Shared");
  ck_has(run.err, "does not implement cudaSomething; the program called it 2 "
                  "times. Call cudaOther instead\n");
}
END_TEST

START_TEST(counters_are_shown)
{
  const test_run run = test_kiln("exec %s --counters -- %s add", plain, DRIVER);

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  ck_has(run.err, "warp insns");
  ck_has(run.err, "add");
  /* 32 warps execute the branch, and it diverges in one of them */
  ck_has(run.err, "1 of 32");
}
END_TEST

START_TEST(wrong_use_is_told)
{
  test_run run = test_kiln("exec");

  ck_run_rc(run, 2);
  run = test_kiln("exec --check men -- %s add", DRIVER);
  ck_run_rc(run, 2);
  ck_has(run.err, "men");
  run = test_kiln("exec --device gpu -- %s add", DRIVER);
  ck_run_rc(run, 2);
  run = test_kiln("exec --device cpu:1.0 -- %s add", DRIVER);
  ck_run_rc(run, 2);
  ck_has(run.err, "1.0");
  run = test_kiln("exec --help");
  ck_run_rc(run, 0);
  ck_has(run.out, "--check");
}
END_TEST

/* Returns the newest NVRTC library that Kiln finds, or NULL. */
static const char *find_nvrtc(int *version)
{
  static kiln_nvrtc_info info[8];
  kiln_runtime *rt;
  size_t n = 0;

  ck_kiln_ok(kiln_runtime_create(&rt, NULL));
  if (kiln_runtime_nvrtc(rt, info, 8, &n) != KILN_OK)
    n = 0;
  kiln_runtime_free(rt);
  *version = info[0].version;
  return n == 0 ? NULL : info[0].path;
}

START_TEST(programs_that_open_libraries_run)
{
  int version = 0;
  const char *nvrtc = find_nvrtc(&version);
  const char *name = version >= 13000   ? "libnvrtc.so.13"
                     : version >= 12000 ? "libnvrtc.so.12"
                                        : "libnvrtc.so.11.2";
  char path[512];
  test_run run;

  if (nvrtc == NULL)
    return; /* there is no library for the drop-in to replace */
  run = test_kiln("exec %s -- %s libcuda.so.1 %s sm_80", plain, OPENS, name);
  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  if (KILN_TEST_SANITIZED)
    return;
  /* If a program opens libraries by their paths, the preloaded library
   * intercepts the call. */
  run = test_kiln("exec -- %s /usr/lib/libcuda.so %s sm_80", OPENS, nvrtc);
  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  /* The library may also be opened by its full version name or by the link that
   * compilers use. */
  snprintf(path, sizeof path, "%s/%s.0.88", dir, name);
  ck_assert_int_eq(symlink(nvrtc, path), 0);
  run = test_kiln("exec -- %s libcuda.so %s sm_80", OPENS, path);
  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
  snprintf(path, sizeof path, "%s/libnvrtc.so", dir);
  ck_assert_int_eq(symlink(nvrtc, path), 0);
  run = test_kiln("exec -- %s libcuda.so %s sm_80", OPENS, path);
  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "right\n");
}
END_TEST

#ifdef KILN_TEST_STRANGER
START_TEST(programs_of_the_header_run)
{
  static const char *const jobs[] = {"link",  "library", "reference",
                                     "graph", "buffer",  "peer"};
  const char *const program = KILN_TEST_BUILD "/tests/exec_stranger";

  for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
    const test_run run =
        test_kiln("exec %s --device cpu:9.0,devices=2 --check all -- %s %s",
                  plain, program, jobs[i]);

    ck_assert_msg(run.rc == 0 && strcmp(run.out, "right\n") == 0,
                  "%s: %d: %s%s", jobs[i], run.rc, run.out, run.err);
    ck_assert_int_eq(strncmp(run.err, "\n0 findings in ", 15), 0);
  }
  ck_assert_str_eq(test_kiln("exec %s -- %s mistakes", plain, program).out,
                   "right\n");
}
END_TEST
#endif

static Suite *make_suite(void)
{
  Suite *s = suite_create("cpu_exec");
  TCase *t = tcase_create("exec");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, linked_programs_run);
  tcase_add_test(t, the_exit_code_is_the_programs);
  tcase_add_test(t, device_printf_comes_out);
  tcase_add_test(t, faults_are_explained);
  tcase_add_test(t, findings_are_reported);
  tcase_add_test(t, a_clean_run_says_what_was_checked);
  tcase_add_test(t, mapped_memory_is_used);
  tcase_add_loop_test(t, mistakes_with_mapped_memory_are_found, 0, 5);
  tcase_add_test(t, unsupported_functions_are_named);
  tcase_add_test(t, missing_tables_and_notes_have_one_line_each);
  tcase_add_test(t, counters_are_shown);
  tcase_add_test(t, wrong_use_is_told);
  tcase_add_test(t, programs_that_open_libraries_run);
#ifdef KILN_TEST_STRANGER
  tcase_add_test(t, programs_of_the_header_run);
#endif
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(make_suite)

#else

int main(void)
{
  puts("the command was not built");
  return KILN_TEST_SKIP;
}

#endif
