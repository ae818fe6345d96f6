/* sweep_test.c -- `kiln sweep`: axes, rows that fail with their reason,
 * interrupts, and the files that it writes. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_CLI

#include "test_device.h"
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[256];

/* Reverses the elements of each block in shared memory, which the launch must
 * provide. */
static const char reverse[] =
    "extern __shared__ float tile[];\n"
    "extern \"C\" __global__ void __launch_bounds__(512)\n"
    "    reverse(float *y, const float *x)\n"
    "{\n"
    "  static_assert(MODE != 3, \"mode 3, which \\\"nobody\\\" has\");\n"
    "  const unsigned at = blockIdx.x * blockDim.x;\n"
    "  tile[threadIdx.x] = x[at + threadIdx.x] * MODE;\n"
    "  __syncthreads();\n"
    "  y[at + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];\n"
    "}\n";

static const char slow[] =
    "extern \"C\" __global__ void slow(float *y, unsigned n)\n"
    "{\n"
    "  float s = 0;\n"
    "  for (unsigned i = 0; i < n; i++)\n"
    "    s = s * 1.5f + (float)i;\n"
    "  y[threadIdx.x] = s;\n"
    "}\n";

/* Needs many registers: 64 values stay alive over a loop. */
static const char wide[] =
    "extern \"C\" __global__ void wide(float *y, const float *x, unsigned n)\n"
    "{\n"
    "  float r[64];\n"
    "  for (int k = 0; k < 64; k++)\n"
    "    r[k] = x[(threadIdx.x + k * 97u) % n];\n"
    "  for (int step = 0; step < 4; step++)\n"
    "    for (int k = 0; k < 64; k++)\n"
    "      r[k] = r[k] * r[(k * 7 + 3) % 64] + r[(k + 1) % 64];\n"
    "  for (int k = 1; k < 64; k++)\n"
    "    r[0] += r[k];\n"
    "  y[threadIdx.x] = r[0];\n"
    "}\n";

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

static void teardown(void)
{
  test_dir_remove(dir);
}

static const char *path_of(const char *name)
{
  static char paths[4][512];
  static int next;
  char *path = paths[next++ % 4];

  snprintf(path, sizeof paths[0], "%s/%s", dir, name);
  return path;
}

static const char *source(const char *name, const char *text)
{
  const char *path = path_of(name);

  test_write_file(path, text, strlen(text));
  return path;
}

/* Runs a sweep and returns its JSON document, which the caller deletes. */
#define sweep_json(...) parse(expect(0, NULL, __VA_ARGS__).out)

static cJSON *parse(const char *text)
{
  cJSON *json = cJSON_Parse(text);

  ck_assert_msg(json != NULL, "not JSON:\n%s", text);
  return json;
}

static const cJSON *row_of(const cJSON *json, int i)
{
  return cJSON_GetArrayItem(cJSON_GetObjectItem(json, "rows"), i);
}

static double number(const cJSON *row, const char *key)
{
  const cJSON *item = cJSON_GetObjectItem(row, key);

  ck_assert_msg(cJSON_IsNumber(item), "no number \"%s\"", key);
  return item->valuedouble;
}

static void check_reason(const cJSON *row, const char *text)
{
  const cJSON *item = cJSON_GetObjectItem(row, "reason");

  ck_assert_msg(cJSON_IsString(item), "no reason \"%s\"", text);
  ck_has(item->valuestring, text);
}

/* Each kind of failure is a row with its reason, also a launch that breaks the
 * context; the settings after it run. */
START_TEST(failures_are_rows)
{
  cJSON *json =
      sweep_json("sweep %s --block 64,1024,2048 --smem 0,4K,400K -D MODE=1,3 "
                 "--arch sm_90 --json --arg f32[8192] --arg f32[8192]=ramp",
                 source("reverse.cu", reverse));

  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")), 18);
  check_reason(row_of(json, 0), "illegal memory access");
  check_reason(row_of(json, 1), "1024 threads exceed the launch bound of 512");
  check_reason(row_of(json, 2), "2048 threads per block");
  ck_assert_ptr_null(cJSON_GetObjectItem(row_of(json, 3), "reason"));
  ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(row_of(json, 3), "same_result")));
  ck_assert_double_eq(number(row_of(json, 3), "blocks_per_sm"), 32);
  ck_assert_double_eq(number(row_of(json, 3), "occupancy_percent"), 100);
  check_reason(row_of(json, 6), "409600 bytes of shared memory exceed");
  check_reason(row_of(json, 9), "mode 3, which \"nobody\" has");
  if (on_cpu())
    ck_assert_double_gt(number(row_of(json, 3), "warp_instructions"), 0);
  else
    ck_assert_double_gt(number(row_of(json, 3), "ms"), 0);
  cJSON_Delete(json);
}
END_TEST

/* Registers follow the limit, and spills appear. Settings with the same macros
 * have the same result. */
START_TEST(registers_are_limited)
{
  const char *svg = path_of("wide.svg"), *csv = path_of("wide.csv");
  cJSON *json;
  char *text;
  size_t size;

  json = sweep_json("sweep %s --maxreg none,32..128 --block 32,64 --arch sm_80 "
                    "--json --svg %s --csv %s --html %s.html --arg f32[64] "
                    "--arg f32[512]=random --arg 512",
                    source("wide.cu", wide), svg, csv, svg);
  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")), 8);
  ck_assert_double_gt(number(row_of(json, 0), "registers"), 64);
  ck_assert_double_le(number(row_of(json, 2), "registers"), 32);
  ck_assert_double_gt(number(row_of(json, 2), "spill_stores"), 0);
  ck_assert_double_gt(number(row_of(json, 3), "occupancy_percent"),
                      number(row_of(json, 1), "occupancy_percent"));
  ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(row_of(json, 2), "same_result")));
  cJSON_Delete(json);
  text = test_read_file(svg, &size);
  ck_has(text, "limit of registers per thread");
  ck_has(text, "Spills");
  free(text);
  text = test_read_file(csv, &size);
  ck_assert_msg(strncmp(text, "maxreg,grid,block,smem,registers,", 33) == 0,
                "%s", text);
  free(text);
}
END_TEST

/* Sums pairs of neighbours, with the block size and the elements per thread in
 * the source. */
static const char pairs[] =
    "extern \"C\" __global__ void __launch_bounds__(BLOCK)\n"
    "    pairs(unsigned *y, const unsigned *x, unsigned n)\n"
    "{\n"
    "  static_assert(BLOCK % 32 == 0, \"whole warps\");\n"
    "  for (int k = 0; k < EACH; k++) {\n"
    "    const unsigned i = (blockIdx.x * EACH + k) * BLOCK + threadIdx.x;\n"
    "    if (i < n)\n"
    "      y[i] = x[i] + x[(i + 1) % n];\n"
    "  }\n"
    "}\n";

/* A block size of the launch is also a macro, and the grid follows the elements
 * per thread: all settings compute the same. */
START_TEST(macros_follow_the_launch)
{
  static const char *const grids[] = {"16", "8", "4", "4", "2", "1"};
  cJSON *json = sweep_json(
      "sweep %s -D BLOCK=@block -D EACH=1,4 --per-thread EACH --items 1000 "
      "--block 64..256 --arch sm_90 --json --arg u32[1000] "
      "--arg u32[1000]=ramp --arg 1000",
      source("pairs.cu", pairs));

  for (int i = 0; i < 6; i++) {
    const cJSON *row = row_of(json, i);

    ck_assert_ptr_null(cJSON_GetObjectItem(row, "reason"));
    ck_assert_str_eq(cJSON_GetObjectItem(row, "grid")->valuestring, grids[i]);
    ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(row, "same_result")));
  }
  cJSON_Delete(json);
}
END_TEST

static const struct {
  const char *options;
  int settings;
} axes[] = {{"--block 32..1024", 6},
            {"--block 48..1000", 6},
            {"--block 32..256:32", 8},
            {"--block 32..100:32", 3},
            {"--block 8x8,16x4 --maxreg none,32", 4},
            {"-D A=1..8 -D B=x,y -D C=f(1,2)", 8}};

/* The last row counts 1, 2, 4 and 8, times two: a macro with brackets is no
 * axis. */
START_TEST(ranges_have_values)
{
  cJSON *json = sweep_json("sweep %s --no-run --json --arch sm_90 %s",
                           source("slow.cu", slow), axes[_i].options);

  ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")),
                   axes[_i].settings);
  cJSON_Delete(json);
}
END_TEST

static const char *const misuses[] = {
    "--block 0",          "--block 32..a",
    "--block 9..3",       "--block 1..9:0",
    "--maxreg 256",       "--smem big",
    "--grid 1 --items 5", "--block 4,4,4,,x",
    "--arch sm_80,sm_90", "--block 1..1024:1 --grid 1..1024:1",
    "--block 1x2x3x4",    "--per-thread EACH --items 9"};

START_TEST(misuse_is_explained)
{
  const test_run run =
      test_kiln("sweep %s %s", source("slow.cu", slow), misuses[_i]);

  ck_run_rc(run, 2);
  ck_has(run.err, "kiln sweep: ");
}
END_TEST

/* A kernel without arguments is not launched; the command says so. */
START_TEST(missing_arguments_are_reported)
{
  const test_run run =
      expect(0, "occupancy", "sweep %s --arch sm_90", source("slow.cu", slow));

  ck_has(run.err, "slow has 2 parameters and no arguments");
}
END_TEST

/* Runs a long sweep, interrupts it after some seconds, and returns the number of
 * rows that it kept. */
static int rows_after(int seconds, const char *csv)
{
  char command[2048];
  char *text;
  size_t size;
  int status, rows = -1;

  remove(csv);
  snprintf(command, sizeof command,
           "timeout --preserve-status -s INT %d " KILN_TEST_BUILD
           "/kiln sweep %s --block 1..1024:1 --arg 'f32[1024]' --arg 300000 "
           "--csv %s >%s 2>&1",
           seconds, source("slow.cu", slow), csv, path_of("out.txt"));
  status = system(command);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 130, "status %d",
                status);
  if (access(csv, R_OK) != 0)
    return 0;
  text = test_read_file(csv, &size);
  for (const char *at = text; *at != '\0'; at++)
    rows += *at == '\n' ? 1 : 0;
  free(text);
  text = test_read_file(path_of("out.txt"), &size);
  ck_has(text, "of 1024 settings are shown");
  free(text);
  return rows;
}

/* An interrupted sweep keeps its rows. A slow machine gets more time. */
START_TEST(interrupts_keep_rows)
{
  int rows = 0;

  if (!on_cpu())
    return; /* a GPU may be through before the interrupt */
  for (int seconds = 1; rows == 0 && seconds <= 64; seconds *= 4)
    rows = rows_after(seconds, path_of("kept.csv"));
  ck_assert_int_gt(rows, 0);
  ck_assert_int_lt(rows, 1024);
}
END_TEST

#define N(array) (int)(sizeof(array) / sizeof(array)[0])

static Suite *make(void)
{
  Suite *s = suite_create("sweep");
  TCase *t = tcase_create("sweep");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, failures_are_rows);
  tcase_add_test(t, registers_are_limited);
  tcase_add_test(t, macros_follow_the_launch);
  tcase_add_test(t, missing_arguments_are_reported);
  tcase_add_test(t, interrupts_keep_rows);
  tcase_add_loop_test(t, ranges_have_values, 0, N(axes));
  tcase_add_loop_test(t, misuse_is_explained, 0, N(misuses));
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
