/* cli_test.c -- the kiln command on a device, run as a child process. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_CLI

#include "test_device.h"
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[256];

static void setup(void)
{
  test_dir_make(dir);
  test_command_setup(dir);
  unsetenv("KILN_DRIVER");
  if (on_cpu()) {
    setenv("KILN_DEVICE", test_cpu, 1);
    test_use_nvrtc();
  }
}

/* Some benchmarks compare with direct calls of a driver library. On the CPU
 * device they use its drop-in library. */
static void use_driver_library(void)
{
  if (!on_cpu())
    return;
  setenv("KILN_DRIVER", KILN_TEST_BUILD "/cpu/libcuda.so.1", 1);
  setenv("KILN_CPU", test_cpu, 1);
  unsetenv("KILN_DEVICE");
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static cJSON *read_json(const char *name)
{
  char path[512];
  size_t size;
  char *text;
  cJSON *json;

  snprintf(path, sizeof path, "%s/%s", dir, name);
  text = test_read_file(path, &size);
  json = cJSON_Parse(text);
  ck_assert_msg(json != NULL, "not JSON: %s", text);
  free(text);
  return json;
}

/* Returns whether a file in the test's folder contains the text. */
static bool file_has(const char *name, const char *part)
{
  char path[512];
  size_t size;
  char *text;
  bool found;

  snprintf(path, sizeof path, "%s/%s", dir, name);
  text = test_read_file(path, &size);
  found = strstr(text, part) != NULL;
  free(text);
  return found;
}

START_TEST(doctor_runs_a_kernel)
{
  const test_run run = expect(0, "ran a small kernel", "doctor");

  ck_has(run.out, "verdict: kernels compile and run here");
}
END_TEST

START_TEST(devices_are_described)
{
  test_run run = expect(0, "GPU 0: ", "devices");
  const cJSON *one;
  cJSON *json;

  run = expect(0, NULL, "devices --json");
  json = cJSON_Parse(run.out);
  ck_assert_ptr_nonnull(json);
  one = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "devices"), 0);
  ck_assert_ptr_nonnull(one);
  ck_assert_int_eq(cJSON_GetObjectItem(one, "warp_size")->valueint, 32);
  ck_assert_int_ge(cJSON_GetObjectItem(one, "sm_count")->valueint, 1);
  cJSON_Delete(json);
}
END_TEST

START_TEST(compile_takes_this_gpu)
{
  const test_run run = expect(0, NULL, "compile builtin:saxpy");

  /* NVRTC warns that architectures below 7.5 are deprecated, and the CPU device
   * can play one of these. */
  if (run.err[0] != '\0') {
    kiln_cpu_opts cpu;

    ck_assert_msg(on_cpu(), "%s", run.err);
    ck_kiln_ok(kiln_cpu_parse(&cpu, test_cpu));
    ck_assert_msg(cpu.arch != 0 && cpu.arch < 75 &&
                      strstr(run.err, "are deprecated") != NULL,
                  "%s", run.err);
  }
}
END_TEST

START_TEST(bench_launch)
{
  cJSON *json;

  use_driver_library();
  expect(0, NULL, "bench launch --json %s/launch.json", dir);
  json = read_json("launch.json");
  ck_assert(cJSON_GetObjectItem(json, "bare_ns")->valuedouble > 100);
  ck_assert(cJSON_GetObjectItem(json, "kiln_ns")->valuedouble > 100);
  cJSON_Delete(json);
}
END_TEST

/* The benchmark must work, verify its results, and not load NVRTC in a warm
 * start. The times themselves are not checked. */
START_TEST(bench_start)
{
  cJSON *json;

  use_driver_library();
  expect(0, "libnvrtc was mapped in no warm start",
         "bench start --runs 2 --json %s/start.json", dir);
  json = read_json("start.json");
  ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(json, "warm_maps_nvrtc")));
  ck_assert(cJSON_GetObjectItem(json, "compile_ms")->valuedouble > 0);
  cJSON_Delete(json);
}
END_TEST

/* The benchmark must report the times of the first call, of a call from the
 * disk cache, and of later calls. */
START_TEST(bench_calls)
{
  const cJSON *calls, *one;
  cJSON *json;

  use_driver_library();
  expect(0, "figures reach their aim",
         "bench calls --sizes 12 --repeats 1 --only gather, "
         "--json %s/calls.json",
         dir);
  json = read_json("calls.json");
  calls = cJSON_GetObjectItem(json, "calls");
  ck_assert_int_eq(cJSON_GetArraySize(calls), 1);
  one = cJSON_GetArrayItem(calls, 0);
  ck_assert(cJSON_GetObjectItem(one, "launches")->valuedouble >= 5);
  ck_assert(cJSON_GetObjectItem(one, "cold_ms")->valuedouble >
            cJSON_GetObjectItem(one, "disk_ms")->valuedouble);
  ck_assert(cJSON_GetObjectItem(one, "call_us")->valuedouble > 0);
  ck_assert(cJSON_GetObjectItem(one, "bare_us")->valuedouble > 0);
  cJSON_Delete(json);
}
END_TEST

/* The benchmark must measure every case of the map operation, at each size. */
START_TEST(operations_are_measured)
{
  const cJSON *cases, *one;
  cJSON *json;

  expect(0, "saxpy",
         "bench map --sizes 14,10 --repeats 2 --json %s/map.json "
         "--plot %s/map.svg --html %s/map.html",
         dir, dir, dir);
  ck_assert(file_has("map.svg", "GB/s, bytes that must be moved"));
  ck_assert(file_has("map.html", "<td>saxpy</td>"));
  json = read_json("map.json");
  cases = cJSON_GetObjectItem(json, "cases");
  ck_assert_int_eq(cJSON_GetArraySize(cases), 2 * 8);
  cJSON_ArrayForEach(one, cases)
  {
    ck_assert_double_gt(cJSON_GetObjectItem(one, "ms")->valuedouble, 0);
  }
  cJSON_Delete(json);
}
END_TEST

/* The benchmark must measure all variants, with small errors. */
START_TEST(bodies_are_measured)
{
  const cJSON *rows, *one;
  cJSON *json;

  expect(0, "GPU Gems", "bench nbody --sizes 8 --repeats 1 --json %s/n.json",
         dir);
  json = read_json("n.json");
  rows = cJSON_GetObjectItem(json, "nbody");
  ck_assert_int_eq(cJSON_GetArraySize(rows), 4);
  cJSON_ArrayForEach(one, rows)
  {
    ck_assert_double_lt(cJSON_GetObjectItem(one, "error")->valuedouble, 1e-4);
  }
  cJSON_Delete(json);
}
END_TEST

/* Every collective and size must be measured, and an operation on 1 and 2 ranks. */
START_TEST(ranks_are_measured)
{
  const cJSON *rows, *one;
  cJSON *json;

  expect(0, "all-to-all",
         "bench comm --ranks 2 --sizes 3,8 --repeats 3 "
         "--only all- --json %s/c.json",
         dir);
  json = read_json("c.json");
  rows = cJSON_GetObjectItem(json, "collectives");
  ck_assert_int_eq(cJSON_GetArraySize(rows), 3 * 2);
  cJSON_ArrayForEach(one, rows)
  {
    ck_assert_double_gt(cJSON_GetObjectItem(one, "ms")->valuedouble, 0);
  }
  cJSON_Delete(json);
  expect(0, "speed-up",
         "bench comm --ranks 2 --elements 8 --repeats 3 "
         "--only dot --json %s/s.json",
         dir);
  json = read_json("s.json");
  rows = cJSON_GetObjectItem(json, "scaling");
  ck_assert_int_eq(cJSON_GetArraySize(rows), 2);
  ck_assert_double_eq(
      cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), "speedup")->valuedouble,
      1);
  cJSON_Delete(json);
}
END_TEST

/* Each rank launches on its own block, and --combine adds the blocks. */
START_TEST(ranks_launch)
{
  static const char source[] =
      "__global__ void part(int *x, int rank, unsigned ranks, long long *sum)\n"
      "{\n"
      "  atomicAdd((unsigned long long *)sum, (unsigned long long)*x);\n"
      "  *x = *x * 100 + rank * 10 + ranks;\n"
      "}\n";
  static const char launch[] = "--arg i32[1]=ramp --arg rank --arg ranks "
                               "--arg i64[1]";
  char path[512];
  test_run run;

  snprintf(path, sizeof path, "%s/part.cu", dir);
  test_write_file(path, source, sizeof source - 1);
  run = expect(0, "on 3 ranks", "run %s --ranks 3 %s", path, launch);
  ck_has(run.out, "i32[1]: 1 changed: 3\n");
  ck_has(run.out, "i32[1]: 1 changed: 113\n");
  ck_has(run.out, "i32[1]: 1 changed: 223\n");
  run = expect(0, "combined by sum", "run %s --ranks 3 --combine sum %s", path,
               launch);
  ck_has(run.out, "i64[1]: 1 changed: 3\n");
  ck_has(run.out, "i32[1]: 1 changed: 339\n");
}
END_TEST

/* The tuner must store its results beside the cache, but not with --dry-run. */
START_TEST(parameters_are_tuned)
{
  test_run run =
      expect(0, "nothing is kept", "tune map --sizes 12 --repeats 1 --dry-run");

  run = expect(0, "kept in ", "tune map --sizes 12 --repeats 1");
  ck_has(run.out, "tuning-");
}
END_TEST

/* The tuner must try at least one candidate, and none after the budget. Classes
 * above the largest number of targets share a measurement. A product that the
 * device computes by other kernels has no row. */
START_TEST(compute_is_tuned)
{
  test_run run =
      expect(0, "gravity", "tune all_pairs --sizes 6 --repeats 1 --budget 1");

  ck_has(run.out, " of ");
  run = expect(0, "3 x 3",
               "tune stencil_rows gemm_mma --sizes 8 --repeats 1 --budget 1 "
               "--dry-run");
  ck_assert_ptr_null(strstr(run.out, "gemm_mma"));
}
END_TEST

/* The tuner must compile its candidates for an architecture without a
 * device. */
START_TEST(candidates_are_compiled)
{
  const test_run run = expect(0, "registers", "tune map --arch sm_90");

  ck_has(run.out, "12 candidates");
}
END_TEST

/* A file that initialises an array must be a regular file of the array's size.
 * Reading a device file such as /dev/zero would never end.
 */
START_TEST(array_files_are_bounded)
{
  char path[512];
  test_run run;

  snprintf(path, sizeof path, "%s/set.cu", dir);
  test_write_file(path,
                  "extern \"C\" __global__ void set(int *x) { *x = 1; }\n", 51);
  run = expect(1, NULL, "run %s --arg i32[4]=@/dev/zero", path);
  ck_has(run.err, "it is a device");
  run = expect(1, NULL, "run %s --arg i32[4]=@%s", path, path);
  ck_has(run.err, "the limit is 16");
}
END_TEST

/* SIGTERM must end `kiln exec` as it ends any program, and the report file must
 * be removed. */
START_TEST(exec_cleans_up_when_ended)
{
  static const char *const words[] = {
      "kiln", "exec", "--",
      "sh",   "-c",   "ls $TMPDIR; kill -TERM $PPID; sleep 5; echo late",
      NULL};
  const char *first;
  test_run run;

  if (access(KILN_TEST_BUILD "/cpu/libcuda.so.1", R_OK) != 0)
    return; /* Kiln was built without the drop-in library */
  setenv("TMPDIR", dir, 1);
  run = test_kiln_words(words);
  ck_run_rc(run, 128 + SIGTERM);
  ck_has(run.out, "kiln-exec-");
  ck_lacks(run.out, "late");
  /* this command makes a new report file */
  run = test_kiln("exec -- ls %s", dir);
  ck_run_rc(run, 0);
  first = strstr(run.out, "kiln-exec-");
  ck_assert_msg(first != NULL && strstr(first + 1, "kiln-exec-") == NULL, "%s",
                run.out);
}
END_TEST

/* The CPU device runs PTX directly, so the back end takes no time. */
START_TEST(jit_life_has_no_back_end_on_the_cpu)
{
  FILE *in;
  char line[256];
  bool found = false;

  if (!on_cpu() || access(KILN_TEST_BUILD "/samples/jit_life", X_OK) != 0)
    return;
  in = popen(KILN_TEST_BUILD "/samples/jit_life", "r");
  ck_assert_ptr_nonnull(in);
  while (fgets(line, sizeof line, in) != NULL)
    found =
        found || strcmp(line, "  3 back end, PTX to code          -           "
                              "-            -\n") == 0;
  ck_assert_int_eq(pclose(in), 0);
  ck_assert(found);
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("command on a device");
  TCase *t = tcase_create("command");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, doctor_runs_a_kernel);
  tcase_add_test(t, devices_are_described);
  tcase_add_test(t, compile_takes_this_gpu);
  tcase_add_test(t, bench_launch);
  tcase_add_test(t, bench_start);
  tcase_add_test(t, bench_calls);
  tcase_add_test(t, bodies_are_measured);
  tcase_add_test(t, ranks_are_measured);
  tcase_add_test(t, ranks_launch);
  tcase_add_test(t, operations_are_measured);
  tcase_add_test(t, parameters_are_tuned);
  tcase_add_test(t, compute_is_tuned);
  tcase_add_test(t, candidates_are_compiled);
  tcase_add_test(t, array_files_are_bounded);
  tcase_add_test(t, exec_cleans_up_when_ended);
  tcase_add_test(t, jit_life_has_no_back_end_on_the_cpu);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(make)

#else

int main(void)
{
  puts("skipped: built without the command (KILN_CLI)");
  return KILN_TEST_SKIP;
}

#endif
