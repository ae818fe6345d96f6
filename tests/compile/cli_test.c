/* cli_test.c -- tests the `kiln` command as a child process with a real NVRTC.
 * The tests need no GPU. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_CLI

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char dir[256];
/* value of KILN_NVRTC; if empty, discovery finds an NVRTC */
static char nvrtc[4096];

static void setup(void)
{
  test_dir_make(dir);
  test_command_setup(dir);
  if (nvrtc[0] != '\0')
    setenv("KILN_NVRTC", nvrtc, 1);
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static const char *write_source(const char *name, const char *text)
{
  static char path[512];

  snprintf(path, sizeof path, "%s/%s", dir, name);
  test_write_file(path, text, strlen(text));
  return path;
}

START_TEST(error_has_file_and_line)
{
  const char *file = write_source("broken.cu", "__global__ void f(int *x)\n"
                                               "{\n"
                                               "  *x = nothing;\n"
                                               "}\n");
  const test_run run = expect(1, NULL, "compile %s --arch 90", file);
  char want[600];

  ck_assert_str_eq(run.out, "");
  snprintf(want, sizeof want, "%s(3): error", file);
  ck_has(run.err, want);
  ck_has(run.err, "\"nothing\"");
}
END_TEST

START_TEST(warning_goes_to_stderr)
{
  const char *file = write_source("warns.cu", "__global__ void f(int *x)\n"
                                              "{\n"
                                              "  int unused;\n"
                                              "  *x = 1;\n"
                                              "}\n");
  const test_run run = expect(0, NULL, "compile %s --arch 90", file);

  ck_has(run.err, "warns.cu(3): warning");
  ck_lacks(run.err, "ptxas");
  ck_lacks(run.out, "warning");
}
END_TEST

START_TEST(include_beside_the_file)
{
  const char *file;

  write_source("part.h", "#define VALUE 42\n");
  file = write_source(
      "whole.cu", "#include \"part.h\"\n"
                  "extern \"C\" __global__ void f(int *x) { *x = VALUE; }\n");
  expect(0, "42", "compile %s --arch 90 --emit ptx", file);
}
END_TEST

START_TEST(template_is_named)
{
  const char *file =
      write_source("scale.cu", "template <class T, int N>\n"
                               "__global__ void scale(T *x) { *x *= N; }\n");
  const char *const words[] = {
      "kiln",   "compile",         file,     "--arch", "90",
      "--name", "scale<float, 3>", "--json", NULL};
  const test_run run = test_kiln_words(words);
  const cJSON *target, *kernel;
  cJSON *json;

  ck_run_rc(run, 0);
  json = cJSON_Parse(run.out);
  ck_assert_ptr_nonnull(json);
  target = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "targets"), 0);
  kernel = cJSON_GetArrayItem(cJSON_GetObjectItem(target, "kernels"), 0);
  ck_assert_str_eq(cJSON_GetObjectItem(kernel, "name")->valuestring,
                   "scale<float, 3>");
  ck_assert_int_gt(cJSON_GetObjectItem(kernel, "registers")->valueint, 0);
  ck_assert_int_eq(cJSON_GetObjectItem(kernel, "parameters")->valueint, 1);
  ck_assert_int_eq(cJSON_GetObjectItem(
                       cJSON_GetObjectItem(kernel, "occupancy_percent"), "256")
                       ->valueint,
                   100);
  cJSON_Delete(json);
}
END_TEST

/* This kernel must spill, because 100 live values do not fit into 24
 * registers. */
static const char greedy[] =
    "extern \"C\" __global__ void greedy(float *x, int n)\n"
    "{\n"
    "  float v[100];\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 100; i++)\n"
    "    v[i] = x[i * 32 + threadIdx.x];\n"
    "  __syncthreads();\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 100; i++)\n"
    "    x[(99 - i) * 32 + threadIdx.x] = v[i] * v[(i + 37) % 100];\n"
    "}\n";

START_TEST(spill_gate)
{
  const char *file = write_source("greedy.cu", greedy);
  test_run run = expect(0, NULL, "compile %s --arch 90 --fail-on-spill", file);

  run = expect(0, NULL, "compile %s --arch 90 --maxrregcount 24", file);
  run = expect(1, NULL,
               "compile %s --arch 90 --maxrregcount 24 --fail-on-spill", file);
  ck_has(run.err, "spill");
  ck_assert_str_eq(run.out, "");
}
END_TEST

START_TEST(ptx_only_target)
{
  test_run run =
      expect(0, "compute_90", "compile builtin:saxpy --arch compute_90");

  ck_lacks(run.out, "100 %");
  run = expect(1, NULL,
               "compile builtin:saxpy --arch compute_90 --emit cubin -o "
               "%s/x.cubin",
               dir);
  ck_has(run.err, "next: use an sm_ target");
}
END_TEST

START_TEST(bench_reduce_without_gpu)
{
  const test_run run =
      expect(0, "Resources for sm_80", "bench reduce --arch sm_80");

  ck_has(run.out, "atomic, global memory");
  ck_has(run.out, "no GPU");
  ck_has(run.out, "none launched");
}
END_TEST

START_TEST(unknown_gpu_is_refused)
{
  const test_run run = expect(1, NULL, "compile builtin:saxpy --arch sm_20");

  ck_has(run.err, "sm_20");
  ck_has(run.err, "next: ");
}
END_TEST

START_TEST(doctor_compiles)
{
  test_run run = expect(0, "a small program compiles for sm_", "doctor");

  ck_has(run.out, "verdict: kernels compile here");
  expect(0, "libnvrtc", "doctor --brief");
}
END_TEST

/* The programs in the kernel pack of the default run. Their variants have
 * defines, traits and names. A thorough run packs all embedded programs. */
static const char *const packed[] = {"buckets", "ladder/reduce_warp", "saxpy",
                                     "scan"};
enum { N_PACKED = sizeof packed / sizeof packed[0] };

static bool is_packed(const kiln_variant *v)
{
  bool found = getenv("KILN_TEST_THOROUGH") != NULL;

  for (size_t i = 0; i < N_PACKED; i++)
    found = found || strcmp(v->builtin, packed[i]) == 0;
  return found;
}

static size_t add_words(const char **words, size_t used, const char *option,
                        const char *const *values)
{
  for (; *values != NULL; values++) {
    words[used++] = option;
    words[used++] = *values;
  }
  return used;
}

/* Checks that `kiln compile` takes the variant from a kernel pack. */
static void check_served(const kiln_variant *v)
{
  char text[512];
  const char *words[64] = {"kiln", "compile", text, "--arch", "90"};
  size_t used = 5;
  test_run run;

  snprintf(text, sizeof text, "builtin:%s", v->builtin);
  used = add_words(words, used, "-D", v->defines);
  used = add_words(words, used, "--trait", v->traits);
  add_words(words, used, "--name", v->names);
  run = test_kiln_words(words);
  ck_run_rc(run, 0);
  ck_has(run.out, " pack ");
}

/* Packs the shipped variants for one GPU. The command must then find these
 * variants in the pack while NVRTC is hidden. */
START_TEST(pack_serves_shipped_variants)
{
  size_t n, fits = 0, chosen = 0;
  const kiln_variant *list = kiln_variant_list(&n);
  char text[512];
  test_run run;

  for (size_t i = 0; i < n; i++) {
    chosen += is_packed(&list[i]) ? 1 : 0;
    fits += is_packed(&list[i]) && list[i].min_cc <= 90 ? 1 : 0;
  }
  snprintf(text, sizeof text, "%zu images of %zu programs", fits, chosen);
  expect(0, text, "pack %s --arch 90 -o %s/all.kpack",
         chosen == n ? "all" : "buckets ladder/reduce_warp saxpy scan", dir);
  expect(0, NULL, "cache clear");
  snprintf(text, sizeof text, "%s/all.kpack", dir);
  setenv("KILN_PACKS", text, 1);
  setenv("KILN_NVRTC", "/nowhere/libnvrtc.so", 1);
  for (size_t i = 0; i < n; i++)
    if (is_packed(&list[i]) && list[i].min_cc <= 90)
      check_served(&list[i]);
  run = expect(1, NULL, "compile builtin:saxpy --arch 90 -D OTHER");
  ck_has(run.err, "/nowhere/libnvrtc.so");
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("command with NVRTC");
  TCase *t = tcase_create("command");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, error_has_file_and_line);
  tcase_add_test(t, warning_goes_to_stderr);
  tcase_add_test(t, include_beside_the_file);
  tcase_add_test(t, template_is_named);
  tcase_add_test(t, spill_gate);
  tcase_add_test(t, ptx_only_target);
  tcase_add_test(t, bench_reduce_without_gpu);
  tcase_add_test(t, unknown_gpu_is_refused);
  tcase_add_test(t, doctor_compiles);
  tcase_add_test(t, pack_serves_shipped_variants);
  suite_add_tcase(s, t);
  return s;
}

/* Finds an NVRTC: the newest in KILN_TEST_NVRTC, otherwise the library that
 * KILN_NVRTC names, otherwise the library that discovery finds. */
static bool find_nvrtc(void)
{
  const char *list = getenv("KILN_TEST_NVRTC"), *named = getenv("KILN_NVRTC");
  kiln_runtime *rt = NULL;
  size_t n = 0;
  bool found;

  if (list != NULL && list[0] != '\0') {
    const char *last = strrchr(list, ':');

    named = last == NULL ? list : last + 1;
  }
  if (named != NULL)
    snprintf(nvrtc, sizeof nvrtc, "%s", named);
  if (nvrtc[0] != '\0')
    return true;
  if (kiln_runtime_create(&rt, NULL) != KILN_OK)
    return false;
  found = kiln_runtime_nvrtc(rt, NULL, 0, &n) == KILN_OK && n > 0;
  kiln_runtime_free(rt);
  return found;
}

int main(void)
{
  if (!find_nvrtc()) {
    printf("skipped: %s\n", kiln_last_error()->message);
    return KILN_TEST_SKIP;
  }
  return kiln_test_run(make());
}

#else

int main(void)
{
  puts("skipped: built without the command (KILN_CLI)");
  return KILN_TEST_SKIP;
}

#endif
