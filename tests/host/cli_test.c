/* Tests the kiln command as a child process, with a fake NVRTC and without a
 * driver. */
#include "command.h"

#ifdef KILN_TEST_CLI

#include <cjson/cJSON.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[256];

/* Options that select a fake NVRTC 13.0. fake_nvrtc.h describes its output. */
#define NVRTC "--nvrtc " KILN_TEST_FAKES "/fake_nvrtc.so "

static const char kernel[] = "extern \"C\" __global__ void twice(float *x,\n"
                             "                                 unsigned n)\n"
                             "{\n"
                             "}\n";
static const char wrong_kernel[] = "__global__ void twice(float *x)\n"
                                   "{\n"
                                   "#error this is wrong\n"
                                   "}\n";

static void setup(void)
{
  test_dir_make(dir);
  test_command_setup(dir);
}

/* The JSON values that the test has parsed. teardown() frees them. */
static cJSON *parsed[16];
static size_t n_parsed;

static void teardown(void)
{
  while (n_parsed > 0)
    cJSON_Delete(parsed[--n_parsed]);
  test_dir_remove(dir);
}

static const char *path_of(const char *name)
{
  static char paths[16][512];
  static int next;
  char *path = paths[next++ % 16];

  snprintf(path, sizeof paths[0], "%s/%s", dir, name);
  return path;
}

static const char *write_source(const char *name, const char *text)
{
  const char *path = path_of(name);

  test_write_file(path, text, strlen(text));
  return path;
}

static const cJSON *parse(const char *text)
{
  cJSON *json = cJSON_Parse(text);

  ck_assert_msg(json != NULL, "not JSON:\n%s", text);
  ck_assert_uint_lt(n_parsed, 16);
  return parsed[n_parsed++] = json;
}

/* Returns the number of items of a list in a JSON object. */
static int count_of(const cJSON *object, const char *list)
{
  return cJSON_GetArraySize(cJSON_GetObjectItem(object, list));
}

/* Returns item i of a list in a JSON object. */
static const cJSON *item_of(const cJSON *object, const char *list, int i)
{
  return cJSON_GetArrayItem(cJSON_GetObjectItem(object, list), i);
}

static double number(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  ck_assert_msg(cJSON_IsNumber(item), "no number \"%s\"", key);
  return item->valuedouble;
}

static const char *text_of(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  ck_assert_msg(cJSON_IsString(item), "no text \"%s\"", key);
  return item->valuestring;
}

/* Runs the command, checks its exit code, and parses the JSON on its standard
 * output. */
#define expect_json(rc, ...) parse(expect(rc, NULL, __VA_ARGS__).out)

/* ---- Usage and wrong usage ---------------------------------------------- */

static const char *const command_names[] = {
    "doctor",       "devices",      "compile",     "cache",       "pack",
    "run",          "check",        "exec",        "bench",       "tune",
    "bench ops",    "bench reduce", "bench calls", "bench start", "bench cpu",
    "bench launch", "bench passes", "bench nbody", "bench comm",  "bench draw",
    "occupancy",    "sweep",        "profile",     "diff"};

enum { N_COMMANDS = sizeof command_names / sizeof command_names[0] };

START_TEST(help_is_there)
{
  static const char *const parts[] = {"\n\nExample: kiln ", "\n\nExit codes: "};
  const char *name = command_names[_i];
  const test_run run = expect(0, name, "%s --help", name);

  ck_assert_msg(strncmp(run.out, "usage: kiln ", 12) == 0, "%s", run.out);
  for (size_t i = 0; i < 2; i++)
    ck_has(run.out, parts[i]);
  for (const char *line = run.out; *line != '\0'; line++) {
    const size_t n = strcspn(line, "\n");

    ck_assert_msg(n < 80, "too long: %s", line);
    line += n;
  }
  ck_assert_str_eq(run.err, "");
  if (strchr(name, ' ') == NULL)
    expect(0, name, "--help");
}
END_TEST

START_TEST(version)
{
  const test_run run = expect(0, NULL, "--version");

  ck_assert_str_eq(run.out, "kiln " KILN_VERSION_TEXT "\n");
}
END_TEST

static const char *const misuses[] = {
    "",
    "frobnicate",
    "--cache-dir",
    "doctor extra",
    "doctor --nonsense",
    "doctor --device cpu:bogus",
    "doctor --device bogus",
    "doctor --device cpu:9.0,nothing",
    "doctor --what-if gpu",
    "doctor --what-if driver=12.2",
    "doctor --what-if gpu=9.0,color=blue",
    "doctor --what-if gpu=nine",
    "doctor --what-if gpu=9.0,driver=new",
    "doctor --what-if gpu=9.0,suffix=z",
    "devices extra",
    "devices --nonsense",
    "compile",
    "compile a.cu b.cu",
    "compile --emit elf x.cu",
    "compile -D = x.cu",
    "compile -D 2=3 x.cu",
    "compile --trait KILN_HAS_SHFL x.cu",
    "compile --maxrregcount 0 x.cu",
    "compile --maxrregcount many x.cu",
    "cache",
    "cache destroy",
    "cache stats extra",
    "cache trim",
    "cache trim lots",
    "cache trim 1Q",
    "cache why",
    "pack",
    "pack all",
    "pack -o x.kpack",
    "pack cache",
    "pack cache all -o x.kpack",
    "pack cache --arch 90 -o x.kpack",
    "pack ops all -o x.kpack",
    "pack ops --types u33 -o x.kpack",
    "pack saxpy --types u32 -o x.kpack",
    "bench",
    "bench nothing",
    "tune nothing",
    "tune --sizes 99",
    "tune map --arch sm_x",
    "bench map --sizes x",
    "bench map --repeats 0",
    "bench launch extra",
    "bench launch --device first",
    "bench reduce extra",
    "bench reduce --nothing",
    "bench reduce --arch sm_x",
    "bench start --runs 0",
};

START_TEST(wrong_use_exits_2)
{
  const test_run run = expect(2, NULL, "%s", misuses[_i]);

  ck_assert_str_eq(run.out, "");
  /* Case 0 is the command without arguments, which prints the whole help text
   * instead of a hint. */
  ck_has(run.err, _i == 0 ? "usage: kiln" : "next: ");
}
END_TEST

START_TEST(global_options_stand_anywhere)
{
  test_run run =
      expect(0, NULL, "cache path --cache-dir %s", path_of("elsewhere"));

  ck_has(run.out, path_of("elsewhere"));
  run = expect(0, NULL, "--cache-dir=%s cache path", path_of("third"));
  ck_has(run.out, path_of("third"));
}
END_TEST

/* ---- Doctor ------------------------------------------------------------- */

START_TEST(doctor_with_nothing)
{
  test_run run;
  const cJSON *json;

  setenv("KILN_NVRTC", path_of("no-nvrtc.so"), 1);
  run = expect(1, "verdict: nothing can be compiled here\nnext: ", "doctor");
  ck_has(run.out, path_of("no-nvrtc.so"));
  ck_has(run.out, path_of("no-libcuda.so"));
  expect(1, "nothing can be compiled here", "doctor --brief");
  json = expect_json(1, "doctor --json");
  ck_assert_str_eq(text_of(json, "verdict"), "nothing can be compiled here");
  ck_assert_int_gt((int)strlen(text_of(json, "next")), 10);
  ck_assert_int_ge(count_of(json, "trail"), 2);
  ck_assert_int_ge(count_of(json, "problems"), 2);
  ck_assert_int_eq(count_of(json, "nvrtc"), 0);
}
END_TEST

START_TEST(doctor_without_gpu)
{
  test_run run =
      expect(0, "verdict: kernels compile here; there is no GPU to run",
             NVRTC "doctor");
  const cJSON *json;

  ck_has(run.out, "13.0");
  ck_has(run.out, "a small program compiles for sm_121");
  json = expect_json(0, NVRTC "doctor --json");
  ck_assert_str_eq(text_of(cJSON_GetObjectItem(json, "compile"), "status"),
                   "KILN_OK");
  ck_assert_int_eq((int)number(item_of(json, "nvrtc", 0), "version"), 13000);
  ck_assert(cJSON_IsTrue(
      cJSON_GetObjectItem(cJSON_GetObjectItem(json, "cache"), "usable")));
}
END_TEST

/* If only the GPU is missing, the suggested next step is the CPU device. */
START_TEST(doctor_names_the_cpu_device)
{
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  test_run run;

  unsetenv("KILN_DRIVER");
  run = test_kiln(NVRTC "doctor");
  if (driver == NULL && access("/usr/lib/wsl/lib", F_OK) != 0) {
    ck_has(run.out, "this machine has no NVIDIA GPU and no driver");
    ck_has(run.out, "next: run kernels on the CPU device: kiln run");
  } else if (driver != NULL) {
    dlclose(driver);
  }
}
END_TEST

START_TEST(doctor_names_a_bad_cache)
{
  test_run run;

  write_source("cache", "a file where the folder should be");
  run = expect(0, "not used", NVRTC "doctor");
  ck_has(run.out, "KILN_CACHE_DIR");
  ck_lacks(run.err, "warning");
}
END_TEST

START_TEST(doctor_names_a_bad_pack)
{

  setenv("KILN_PACKS", path_of("missing.kpack"), 1);
  expect(0, "missing.kpack, cannot be read", NVRTC "doctor");
}
END_TEST

START_TEST(doctor_finds_nccl)
{
  const cJSON *nccl;
  test_run run;

  setenv("KILN_NCCL", KILN_TEST_FAKES "/fake_nccl.so", 1);
  expect(0, "2.27.3, " KILN_TEST_FAKES "/fake_nccl.so", NVRTC "doctor");
  nccl = cJSON_GetObjectItem(expect_json(0, NVRTC "doctor --json"), "nccl");
  ck_assert_int_eq((int)number(nccl, "version"), 22703);
  ck_assert_str_eq(text_of(nccl, "tried"), "");
  setenv("FAKE_NCCL_VERSION", "21703", 1);
  run = expect(0, "NCCL       not found", NVRTC "doctor");
  ck_has(run.out, "it is older than NCCL 2.18");
  setenv("KILN_NCCL", path_of("no-nccl.so"), 1);
  run = expect(0, "NCCL       not found", NVRTC "doctor");
  ck_has(run.out, path_of("no-nccl.so"));
}
END_TEST

static const struct {
  const char *question, *rung, *target;
} ladders[] = {
    {"gpu=9.0,driver=13.0,nvrtc=13.0", "exact", "sm_90"},
    {"gpu=9.0,driver=13.0,nvrtc=13.0,suffix=a", "exact", "sm_90a"},
    {"gpu=9.0,driver=13.0,nvrtc=none", "refuse", NULL},
    {"gpu=3.5,driver=13.0,nvrtc=13.0", "refuse", NULL},
    {"gpu=12.1,driver=13.0,nvrtc=12.0", "ptx", "compute_90"},
};

START_TEST(what_if)
{
  const int rc = ladders[_i].target == NULL ? 1 : 0;
  test_run run = expect(rc, NULL, "doctor --what-if %s", ladders[_i].question);
  const cJSON *json;

  ck_has(run.out, rc == 0 ? ladders[_i].target : "verdict: nothing fits");
  json = expect_json(rc, "doctor --json --what-if %s", ladders[_i].question);
  ck_assert_str_eq(text_of(json, "rung"), ladders[_i].rung);
  if (rc == 0)
    ck_assert_str_eq(text_of(json, "target"), ladders[_i].target);
  else
    ck_assert_int_gt((int)strlen(text_of(json, "hint")), 5);
  ck_assert_int_eq(count_of(json, "reasons"), KILN_RUNG_COUNT);
}
END_TEST

/* ---- Devices ------------------------------------------------------------ */

START_TEST(devices_without_gpu)
{
  test_run run = expect(0, "no GPU found: ", "devices");
  const cJSON *json;

  ck_has(run.out, "next: ");
  json = expect_json(0, "devices --json");
  ck_assert_int_eq(count_of(json, "devices"), 0);
  ck_assert_int_gt((int)strlen(text_of(json, "reason")), 5);
}
END_TEST

START_TEST(devices_table)
{
  size_t n;
  const int *list = kiln_arch_list(&n);
  const cJSON *row;
  const cJSON *json;
  size_t i = 0;

  json = expect_json(0, "devices --table --json");
  ck_assert_int_eq(cJSON_GetArraySize(json), (int)n);
  cJSON_ArrayForEach(row, json)
  {
    kiln_traits traits;

    ck_kiln_ok(kiln_arch_traits(list[i], &traits));
    ck_assert_int_eq((int)number(row, "cc"), list[i]);
    ck_assert_int_eq((int)number(row, "smem_per_sm"), traits.smem_per_sm);
    ck_assert_str_eq(text_of(row, "brought"), kiln_arch_brought(list[i]));
    i++;
  }
}
END_TEST

/* ---- Compile ------------------------------------------------------------ */

START_TEST(compile_report)
{
  const char *file = write_source("twice.cu", kernel);
  test_run run = expect(0, "compiled", NVRTC "compile %s --arch sm_90", file);
  const cJSON *one, *k;
  const cJSON *json;

  ck_has(run.out, "twice");
  ck_assert_str_eq(run.err, "");
  json =
      expect_json(0, NVRTC "compile %s --arch 9.0,80 --arch 75 --json", file);
  ck_assert_int_eq(count_of(json, "targets"), 3);
  one = item_of(json, "targets", 0);
  ck_assert_str_eq(text_of(one, "target"), "sm_90");
  ck_assert_str_eq(text_of(one, "from"), "disk");
  ck_assert_str_eq(text_of(item_of(json, "targets", 1), "from"), "compiled");
  k = item_of(one, "kernels", 0);
  ck_assert_str_eq(text_of(k, "name"), "twice");
}
END_TEST

START_TEST(compile_takes_the_newest_without_gpu)
{
  const test_run run = expect(0, NULL, NVRTC "compile builtin:saxpy");

  ck_has(run.err, "no GPU found, so this compiles for sm_121");
  ck_has(run.out, "saxpy");
}
END_TEST

START_TEST(compile_all)
{
  const test_run run =
      expect(0, "sm_75", NVRTC "compile builtin:saxpy --arch all");

  ck_has(run.out, "sm_90");
  ck_has(run.out, "sm_121");
}
END_TEST

START_TEST(compile_emits)
{
  const char *file = write_source("twice.cu", kernel);
  test_run run = expect(0, ".visible .entry twice",
                        NVRTC "compile %s --arch 90 --emit ptx", file);
  char *text;
  size_t size;

  ck_lacks(run.out, "regs");
  expect(0, NULL, NVRTC "compile %s --arch 90 -o %s", file, path_of("a.ptx"));
  text = test_read_file(path_of("a.ptx"), &size);
  ck_lacks(text, "ELF");
  ck_has(text, ".visible .entry twice");
  free(text);
  expect(0, NULL, NVRTC "compile %s --arch 90 -o %s", file, path_of("a.cubin"));
  text = test_read_file(path_of("a.cubin"), &size);
  ck_assert_int_eq(memcmp(text, "\177ELF", 4), 0);
  free(text);
}
END_TEST

START_TEST(compile_emits_into_a_folder)
{
  const char *file = write_source("twice.cu", kernel);
  test_run run =
      expect(0, "twice",
             NVRTC "compile %s --arch 80,90 --emit ptx,cubin,report -o %s/",
             file, path_of("out"));
  static const char *const names[] = {"twice.sm_80.ptx", "twice.sm_80.cubin",
                                      "twice.sm_90.ptx", "twice.sm_90.cubin"};

  for (size_t i = 0; i < 4; i++) {
    char path[600];

    snprintf(path, sizeof path, "%s/%s", path_of("out"), names[i]);
    ck_assert_msg(access(path, R_OK) == 0, "%s is missing", path);
  }
  run = expect(2, NULL, NVRTC "compile %s --arch 80,90 --emit ptx -o %s", file,
               path_of("one.ptx"));
  ck_has(run.err, "give a folder");
  ck_assert_int_ne(access(path_of("one.ptx"), F_OK), 0);
}
END_TEST

START_TEST(compile_error_is_mapped)
{
  const char *file = write_source("twice.cu", wrong_kernel);
  char want[600];
  const char *first;
  test_run run = expect(1, NULL, NVRTC "compile %s --arch 80,90", file);

  ck_assert_str_eq(run.out, "");
  snprintf(want, sizeof want, "\n%s(3): ", file);
  ck_has(run.err, want);
  ck_has(run.err, "this is wrong");
  ck_has(run.err, "for sm_80: ");
  ck_has(run.err, "for sm_90: ");
  /* The log is the same for both targets and is printed once. */
  first = strstr(run.err, want);
  ck_assert_ptr_null(strstr(first + 1, want));
  /* The log already contains the hint. */
  ck_assert_ptr_null(strstr(run.err, "next: "));
  expect(1, "KILN_ECOMPILE", NVRTC "compile %s --arch 90 --json", file);
}
END_TEST

START_TEST(missing_header_has_a_next_step)
{
  const char *file = write_source(
      "needs.cu", "#include <nowhere.h>\n__global__ void k() {}\n");
  test_run run = expect(1, NULL, NVRTC "compile %s --arch 80,90", file);
  const char *next;

  next = strstr(run.err, "next: give its folder with -I");
  ck_assert_msg(next != NULL, "%s", run.err);
  ck_assert_ptr_null(strstr(next + 1, "next: "));
}
END_TEST

START_TEST(compile_missing_things)
{
  test_run run =
      expect(1, NULL, NVRTC "compile %s --arch 90", path_of("none.cu"));

  ck_has(run.err, "none.cu");
  run = expect(1, NULL, NVRTC "compile builtin:none --arch 90");
  ck_has(run.err, "next: kiln compile --list");
  run = expect(1, NULL, "--nvrtc %s compile builtin:saxpy --arch 90",
               path_of("none.so"));
  ck_has(run.err, "none.so");
  ck_has(run.err, "next: ");
  expect(2, NULL, NVRTC "compile builtin:saxpy --arch sm_9000000");
}
END_TEST

START_TEST(compile_options_reach_nvrtc)
{
  /* The option --verbose is Kiln's own, except directly after --option, which
   * passes it to NVRTC. */
  const char *file = write_source("twice.cu", kernel);
  const test_run run =
      expect(0, NULL,
             NVRTC "compile %s --arch 90 --emit ptx --option --verbose", file);

  ck_lacks(run.err, "kiln: debug");
}
END_TEST

START_TEST(compile_lists_builtins)
{
  const test_run run = expect(0, "builtin:saxpy", "compile --list");

  ck_has(run.out, "builtin:reduce");
}
END_TEST

START_TEST(spill_gate)
{
  const char *file = write_source(
      "spills.cu", "//regs 255\n//spill 64\n"
                   "extern \"C\" __global__ void greedy(float *x) {}\n");
  test_run run = expect(0, "64/64", NVRTC "compile %s --arch 90", file);

  run = expect(1, NULL, NVRTC "compile %s --arch 90 --fail-on-spill", file);
  ck_has(run.err, "spill");
}
END_TEST

START_TEST(diff_needs_two_compiles)
{
  const char *file = write_source("twice.cu", kernel);
  test_run run = expect(2, NULL, NVRTC "diff");

  ck_has(run.err, "name a program");
  run = expect(2, NULL, NVRTC "diff %s --arch 90", file);
  ck_has(run.err, "nothing to compare");
  run = expect(2, NULL, NVRTC "diff %s --arch 75,80,90", file);
  ck_has(run.err, "one target per side");
  run = expect(2, NULL, NVRTC "diff %s %s --against %s", file, file, file);
  ck_has(run.err, "not both");
  run = expect(1, NULL, NVRTC "diff %s --arch 80,90 --kernel thrice", file);
  ck_has(run.err, "neither program has a kernel 'thrice'");
}
END_TEST

START_TEST(diff_without_a_tool_compares_resources)
{
  const char *file = write_source("twice.cu", kernel);
  test_run run;

  setenv("KILN_NVDISASM", path_of("absent"), 1);
  run = expect(1, "registers per thread", NVRTC "diff %s --arch 80,90", file);
  ck_has(run.err, "only resources are compared");
  ck_has(run.err, "next: ");
}
END_TEST

START_TEST(sass_needs_a_tool)
{
  const char *tool = path_of("nvdisasm");
  const char *file = write_source("twice.cu", kernel);
  static const char script[] = "#!/bin/sh\necho \"tool $1\"; head -c 4 $2\n";
  char path[600];
  test_run run;

  setenv("KILN_NVDISASM", path_of("absent"), 1);
  run = expect(1, NULL, NVRTC "compile %s --arch 90 --emit sass", file);
  ck_has(run.err, "next: correct KILN_NVDISASM");
  unsetenv("KILN_NVDISASM");
  setenv("PATH", dir, 1);
  run = expect(1, NULL, NVRTC "compile %s --arch 90 --emit sass", file);
  /* A disassembler in a well-known folder refuses the fake compiler's code. */
  if (strstr(run.err, "cannot read this machine code") == NULL)
    ck_has(run.err, "next: pip install nvidia-cuda-nvdisasm");
  test_write_file(tool, script, sizeof script - 1);
  ck_assert_int_eq(chmod(tool, 0755), 0);
  snprintf(path, sizeof path, "%s:/usr/bin:/bin", dir);
  setenv("PATH", path, 1);
  run = expect(0, "tool -c", NVRTC "compile %s --arch 90 --emit sass", file);
  ck_has(run.out, "ELF");
}
END_TEST

/* ---- Unsuitable files --------------------------------------------------- */

/* Reading any of these files would never end or would exhaust the memory. */
START_TEST(odd_files_are_refused)
{
  const char *fifo = path_of("fifo"), *large = path_of("large.cu");
  const struct {
    const char *words, *file, *why;
  } cases[] = {
      {NVRTC "compile %s --arch 90", "/dev/zero", "it is a device"},
      {NVRTC "compile %s --arch 90", fifo, "it is a FIFO"},
      {NVRTC "compile %s --arch 90", dir, "it is a directory"},
      {NVRTC "compile %s --arch 90", large, "the limit is 67108864"},
      {NVRTC "pack %s --arch 90 -o /dev/null", "/dev/zero", "it is a device"},
      {NVRTC "pack saxpy --arch 90 -o %s", "/dev/null", "it is a device"},
      {NVRTC "pack cache -o %s", fifo, "it is a FIFO"},
      {"--nvrtc %s compile builtin:saxpy --arch 90", fifo, "no regular file"},
  };

  write_source("large.cu", kernel);
  ck_assert_int_eq(truncate(large, (64 << 20) + 1), 0);
  ck_assert_int_eq(mkfifo(fifo, 0600), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char words[512];
    test_run run;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(words, sizeof words, cases[i].words, cases[i].file);
#pragma GCC diagnostic pop
    run = test_kiln("%s", words);
    ck_run_rc(run, 1);
    ck_has(run.err, cases[i].why);
  }
}
END_TEST

/* A file name may contain any byte except '/' and NUL. JSON output stays UTF-8,
 * and tables contain no terminal control bytes. */
START_TEST(names_with_odd_bytes)
{
  const char *file = write_source("odd\xff\x1b[1m.cu", kernel);
  static const char *const lists[] = {"compile", "cache list"};

  expect(0, NULL, NVRTC "compile %s --arch 90", file);
  for (size_t i = 0; i < 2; i++) {
    const char *what = i == 0 ? file : "--verbose";
    test_run run = test_kiln(NVRTC "%s %s --arch 90 --json", lists[i], what);

    ck_run_rc(run, 0);
    parse(run.out);
    ck_has(run.out, "odd\xef\xbf\xbd\\u001b");
    ck_lacks(run.out, "\xff");
    run = test_kiln(NVRTC "%s %s --arch 90", lists[i], what);
    ck_run_rc(run, 0);
    ck_has(run.out, "odd\\xff\\x1b[1m");
    ck_lacks(run.out, "\x1b");
  }
}
END_TEST

/* ---- Cache -------------------------------------------------------------- */

static double stat_of(const char *key)
{
  return number(expect_json(0, "cache stats --json"), key);
}

START_TEST(cache_life)
{
  test_run run = expect(0, NULL, "cache path");
  const cJSON *json;

  ck_has(run.out, path_of("cache"));
  expect(0, NULL, "cache list");
  ck_assert_int_eq((int)stat_of("entries"), 0);
  expect(0, NULL, NVRTC "compile builtin:saxpy --arch 80,90");
  ck_assert_int_eq((int)stat_of("entries"), 2);
  run = test_kiln("cache list");
  ck_has(run.out, "sm_80");
  ck_has(run.out, "saxpy");
  json = expect_json(0, "cache list --json");
  ck_assert_int_eq(cJSON_GetArraySize(json), 2);
  ck_assert_uint_eq(strlen(text_of(cJSON_GetArrayItem(json, 0), "entry")), 32);
  expect(0, "2 entries, all good", "cache verify");
  expect(0, "0 removed, 2 left", "cache trim 1G");
  expect(0, "2 removed, 0 left", "cache trim 0");
  expect(0, NULL, NVRTC "compile builtin:saxpy --arch 80");
  expect(0, "1 removed", "cache clear");
  ck_assert_int_eq((int)stat_of("entries"), 0);
}
END_TEST

/* Finds the largest file in a folder and its subfolders. Writes its path to
 * `best`. */
static void damage(const char *folder, char *best, off_t *size)
{
  DIR *d = opendir(folder);
  const struct dirent *e;

  ck_assert_ptr_nonnull(d);
  while ((e = readdir(d)) != NULL) {
    char path[1024];
    struct stat info;

    if (e->d_name[0] == '.')
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (stat(path, &info) != 0)
      continue;
    if (S_ISDIR(info.st_mode)) {
      damage(path, best, size);
    } else if (info.st_size > *size) {
      *size = info.st_size;
      snprintf(best, sizeof path, "%s", path);
    }
  }
  closedir(d);
}

START_TEST(cache_verify_finds_damage)
{
  char path[1024] = "";
  off_t size = 0;
  size_t n;
  char *data;
  test_run run;

  expect(0, NULL, NVRTC "compile builtin:saxpy --arch 90");
  damage(path_of("cache"), path, &size);
  data = test_read_file(path, &n);
  data[n - 1] ^= 1;
  test_write_file(path, data, n);
  free(data);
  ck_assert_int_eq(chmod(path, 0600), 0);
  run = expect(1, "1 of 1 entry bad", "cache verify");
  ck_has(run.out, "--repair");
  expect(0, "removed", "cache verify --repair");
  ck_assert_int_eq((int)stat_of("entries"), 0);
}
END_TEST

START_TEST(cache_why)
{
  const char *file = write_source("twice.cu", kernel);
  test_run run =
      expect(0, "the cache is empty", NVRTC "cache why %s --arch 90", file);

  expect(0, NULL, NVRTC "compile %s --arch 90 -D A=1", file);
  expect(0, "is in the cache", NVRTC "cache why %s --arch 90 -D A=1", file);
  run = expect(0, "is not in the cache; the nearest entry differs in",
               NVRTC "cache why %s --arch 90 -D A=2", file);
  ck_has(run.out, "A=2");
  ck_has(run.out, "A=1");
  ck_lacks(run.out, "source ");
}
END_TEST

/* ---- Packs -------------------------------------------------------------- */

START_TEST(pack_serves_without_nvrtc)
{
  test_run run;

  write_source("twice.cu", kernel);
  write_source("list.txt", "# two programs\n"
                           "twice.cu -D 'A=x y'\n"
                           "\n"
                           "builtin:saxpy\n");
  expect(0, "4 images of 2 programs", NVRTC "pack %s --arch 80,90 -o %s",
         path_of("list.txt"), path_of("app.kpack"));
  expect(0, NULL, "cache clear");
  setenv("KILN_PACKS", path_of("app.kpack"), 1);
  setenv("KILN_NVRTC", path_of("no-nvrtc.so"), 1);
  expect(0, "pack", "compile builtin:saxpy --arch 90");
  expect(0, "sm_80   pack, to serve sm_86", "compile builtin:saxpy --arch 86");
  expect(0, "sm_86   compiled", NVRTC "compile builtin:saxpy --arch 86");
  expect(1, NULL, "compile builtin:saxpy --arch 75");
  run = test_kiln("doctor");
  ck_has(run.out, "app.kpack");
}
END_TEST

START_TEST(pack_takes_names)
{
  test_run run = expect(0, "4 images of 2 programs",
                        NVRTC "pack saxpy builtin:matrix_add --arch 80,90 "
                              "-o %s",
                        path_of("one.kpack"));

  ck_has(run.out, "4 compiled, 0 from the cache");
  expect(0, "0 compiled, 1 from the cache", NVRTC "pack saxpy --arch 90 -o %s",
         path_of("two.kpack"));
}
END_TEST

START_TEST(pack_of_operations)
{
  expect(0, "bodies of operations",
         NVRTC "pack ops --arch 90 --types u32 -o %s", path_of("ops.kpack"));
}
END_TEST

START_TEST(pack_of_the_cache)
{
  test_run run = expect(1, NULL, "pack cache -o %s", path_of("app.kpack"));

  ck_has(run.err, "the cache holds no image");
  expect(0, NULL, NVRTC "compile builtin:saxpy --arch 80,90");
  expect(0, NULL, NVRTC "compile builtin:saxpy --arch 90 -D A=1");
  expect(0, "3 images, as the cache has them", "pack cache -o %s",
         path_of("app.kpack"));
  expect(0, NULL, "cache clear");
  setenv("KILN_PACKS", path_of("app.kpack"), 1);
  setenv("KILN_NVRTC", path_of("no-nvrtc.so"), 1);
  expect(0, "pack", "compile builtin:saxpy --arch 80,90");
  expect(0, NULL, "compile builtin:saxpy --arch 90 -D A=1");
  expect(1, NULL, "compile builtin:saxpy --arch 90 -D A=2");
}
END_TEST

START_TEST(pack_failures)
{
  test_run run;

  write_source("bad.cu", "#error this is wrong\n");
  run = expect(1, NULL, NVRTC "pack %s --arch 90 -o %s", path_of("bad.cu"),
               path_of("x.kpack"));
  ck_has(run.err, "no pack was written");
  ck_assert_int_ne(access(path_of("x.kpack"), F_OK), 0);
  write_source("bad.txt", "builtin:saxpy --nonsense\n");
  run = expect(2, NULL, NVRTC "pack %s --arch 90 -o %s", path_of("bad.txt"),
               path_of("x.kpack"));
  ck_has(run.err, "bad.txt:1");
  expect(1, NULL, NVRTC "pack %s --arch 90 -o %s", path_of("none.txt"),
         path_of("x.kpack"));
}
END_TEST

START_TEST(bench_needs_a_gpu)
{
  static const char *const which[] = {"launch", "start"};
  const test_run run = expect(1, NULL, NVRTC "bench %s", which[_i]);

  ck_has(run.err, "next: ");
}
END_TEST

/* ---- Commands on a fake GPU --------------------------------------------- */

/* Options that select a fake GPU. It runs no kernels, so every verification of
 * a result must fail. */
#define GPU "--driver " KILN_TEST_FAKES "/fake_cuda.so "

START_TEST(gpu_is_described)
{
  test_run run = expect(0, "GPU 0: Fake GPU 9.0", GPU "devices");
  const cJSON *one;
  const cJSON *json;

  ck_has(run.out, "Hopper");
  ck_has(run.out, "227 KiB");
  json = expect_json(0, GPU "devices --json");
  one = item_of(json, "devices", 0);
  ck_assert_str_eq(text_of(one, "compute_capability"), "9.0");
  ck_assert_int_eq((int)number(one, "max_threads_per_block"), 1024);
  ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(one, "has_shfl")));
}
END_TEST

START_TEST(gpu_that_computes_nonsense)
{
  test_run run =
      expect(0, "gets sm_90 (exact); does not run one: the result was wrong",
             GPU NVRTC "doctor");
  const cJSON *one;
  const cJSON *json;

  ck_has(run.out, "verdict: kernels compile here, but the GPU does not run");
  run = test_kiln(GPU NVRTC "doctor --json");
  json = parse(run.out);
  one = item_of(json, "gpus", 0);
  ck_assert_str_eq(text_of(one, "run"), "KILN_ECORRUPT");
  ck_assert_str_eq(text_of(cJSON_GetObjectItem(one, "ladder"), "rung"),
                   "exact");
  run = expect(1, NULL, GPU NVRTC "bench start --runs 1");
  ck_has(run.err, "wrong result");
  ck_assert_str_eq(run.out, "");
}
END_TEST

START_TEST(gpu_decides_the_target)
{
  const test_run run = expect(0, "sm_90", GPU NVRTC "compile builtin:saxpy");

  ck_assert_str_eq(run.err, "");
}
END_TEST

START_TEST(bench_launch_measures)
{
  const char *path = path_of("launch.json");
  expect(0, "bare cuLaunchKernel", GPU NVRTC "bench launch --json %s", path);
  size_t size;
  char *text;
  const cJSON *json;

  text = test_read_file(path, &size);
  json = parse(text);
  ck_assert(number(json, "bare_ns") > 0);
  ck_assert(number(json, "kiln_ns") > 0);
  ck_assert_double_eq_tol(number(json, "ratio"),
                          number(json, "kiln_ns") / number(json, "bare_ns"),
                          1e-6);
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("command");
  TCase *t = kiln_test_case(
      s, "command", 60, setup, teardown,
      TESTS(version, global_options_stand_anywhere, doctor_with_nothing,
            doctor_without_gpu, doctor_names_the_cpu_device,
            doctor_names_a_bad_cache, doctor_names_a_bad_pack,
            doctor_finds_nccl, devices_without_gpu, devices_table,
            compile_report, compile_takes_the_newest_without_gpu, compile_all,
            compile_emits, compile_emits_into_a_folder, compile_error_is_mapped,
            missing_header_has_a_next_step, compile_missing_things,
            compile_options_reach_nvrtc, compile_lists_builtins, spill_gate,
            sass_needs_a_tool, diff_needs_two_compiles,
            diff_without_a_tool_compares_resources, odd_files_are_refused,
            names_with_odd_bytes, cache_life, cache_verify_finds_damage,
            cache_why, pack_serves_without_nvrtc, pack_takes_names,
            pack_of_the_cache, pack_of_operations, pack_failures,
            gpu_is_described, gpu_that_computes_nonsense,
            gpu_decides_the_target, bench_launch_measures));

  tcase_add_loop_test(t, help_is_there, 0, N_COMMANDS);
  tcase_add_loop_test(t, wrong_use_exits_2, 0,
                      (int)(sizeof misuses / sizeof misuses[0]));
  tcase_add_loop_test(t, what_if, 0, (int)(sizeof ladders / sizeof ladders[0]));
  tcase_add_loop_test(t, bench_needs_a_gpu, 0, 2);
  return kiln_test_run(s);
}

#else

#include <stdio.h>

int main(void)
{
  puts("skipped: built without the command (KILN_CLI)");
  return KILN_TEST_SKIP;
}

#endif
