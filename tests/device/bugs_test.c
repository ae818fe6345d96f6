/* bugs_test.c -- `kiln check` finds planted bugs of every kind and locates
 * their lines, and finds nothing in correct programs.
 *
 * Each file of tests/bugs/ says in a comment how it is run, and marks the line
 * of its bug with a comment such as "// BUG race". The name of its folder is
 * the check that has to find the bug. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_CLI

#include "test_device.h"

#include <cjson/cJSON.h>
#include <glob.h>

static char dir[256];

static void setup(void)
{
  test_dir_make(dir);
  test_command_setup(dir);
  test_use_nvrtc();
}

static void teardown(void)
{
  test_dir_remove(dir);
}

/* Returns the line of the comment that marks the bug, and copies the kind of
 * the bug. Returns 0 if the file has no such comment. */
static unsigned marked(const char *path, char kind[64])
{
  size_t size;
  char *text = test_read_file(path, &size);
  const char *mark = strstr(text, "// BUG ");
  unsigned line = 1;

  kind[0] = '\0';
  for (const char *p = text; mark != NULL && p < mark; p++)
    line += *p == '\n';
  if (mark != NULL)
    snprintf(kind, 64, "%.*s", (int)strcspn(mark + 7, "\n"), mark + 7);
  free(text);
  return mark != NULL ? line : 0;
}

/* Counts the findings "KIND in KERNEL, line N of FILE" in the output: those of
 * the expected kind at the expected line, and those of other kinds. A bug may
 * be reported at a second line as well. */
static void count_findings(const char *out, const char *kind, unsigned line,
                           int *right, int *wrong)
{
  *right = *wrong = 0;
  for (const char *p = out; p != NULL && *p != '\0';) {
    const size_t n = strcspn(p, "\n");
    const char *in = memmem(p, n, " in ", 4);
    const char *at = memmem(p, n, ", line ", 7);

    if (p[0] != ' ' && in != NULL && at != NULL && in < at) {
      const bool same =
          strncmp(p, kind, strlen(kind)) == 0 && in == p + strlen(kind);

      *right += same && strtoul(at + 7, NULL, 10) == line;
      *wrong += !same && strncmp(p, "deadlock", 8) != 0;
    }
    p += n;
    p += *p == '\n';
  }
}

/* Returns the options that a file needs in addition to those that it names. */
static const char *options_of(const char *path)
{
  size_t size;
  char *text = test_read_file(path, &size);
  const bool suffix =
      strstr(text, "wgmma.") != NULL || strstr(text, "setmaxnreg.") != NULL;

  free(text);
  return suffix ? "--suffix a --device cpu:9.0" : "";
}

static void check_file(const char *path, const char *checks)
{
  char kind[64];
  const unsigned line = marked(path, kind);
  const test_run run =
      test_kiln("check --check %s %s %s", checks, options_of(path), path);
  int right, wrong;

  count_findings(run.out, kind, line, &right, &wrong);
  if (line == 0) {
    ck_assert_msg(
        run.rc == 0 && right + wrong == 0,
        "%s: found something, exit code %d\n" CK_RUN_SHOWN CK_RUN_SHOWN, path,
        run.rc, run.out, run.err);
    return;
  }
  ck_assert_msg(run.rc == 1 && right > 0 && wrong == 0,
                "%s: %d findings of \"%s\" at line %u, %d others, exit code "
                "%d\n" CK_RUN_SHOWN CK_RUN_SHOWN,
                path, right, kind, line, wrong, run.rc, run.out, run.err);
}

static void check_folder(const char *folder, const char *checks, size_t least)
{
  char pattern[512];
  glob_t files;

  snprintf(pattern, sizeof pattern, KILN_TEST_SOURCE "/tests/bugs/%s/*.cu",
           folder);
  ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
  ck_assert_uint_ge(files.gl_pathc, least);
  for (size_t i = 0; i < files.gl_pathc; i++)
    check_file(files.gl_pathv[i], checks);
  globfree(&files);
}

START_TEST(memory_bugs_are_found)
{
  check_folder("memory", "memory", 6);
}
END_TEST

START_TEST(races_are_found)
{
  check_folder("race", "race", 6);
}
END_TEST

START_TEST(uninitialised_reads_are_found)
{
  check_folder("init", "init", 6);
}
END_TEST

START_TEST(synchronisation_bugs_are_found)
{
  check_folder("sync", "sync", 6);
}
END_TEST

START_TEST(nothing_is_found_where_nothing_is_wrong)
{
  check_folder("clean", "all", 6);
}
END_TEST

/* A plain run must fail on findings too if the settings of the device enable
 * checks. */
START_TEST(findings_fail_a_plain_run)
{
  static const char *const file =
      KILN_TEST_SOURCE "/tests/bugs/race/plain_counter.cu";
  test_run run = test_kiln("run --device cpu %s", file);

  ck_run_rc(run, 0);
  run = test_kiln("run --device cpu,check=race %s", file);
  ck_run_rc(run, 1);
  ck_has(run.out, "race in plain_counter, line 6 of ");
  run = test_kiln("doctor --device cpu,check=all");
  ck_run_rc(run, 0);
}
END_TEST

static double counted(const cJSON *kernel, const char *key)
{
  const cJSON *value = cJSON_GetObjectItem(kernel, key);

  ck_assert_msg(cJSON_IsNumber(value), "no number \"%s\"", key);
  return value->valuedouble;
}

static cJSON *counters_of(const char *name)
{
  char path[512];
  size_t size;
  char *text;
  cJSON *json;
  const test_run run =
      test_kiln("run --device cpu --json %s/counters.json " KILN_TEST_SOURCE
                "/tests/gpu/kernels/%s.cu",
                dir, name);

  ck_run_rc(run, 0);
  snprintf(path, sizeof path, "%s/counters.json", dir);
  text = test_read_file(path, &size);
  json = cJSON_Parse(text);
  ck_assert_msg(json != NULL, "not JSON: %s", text);
  free(text);
  return json;
}

/* These counters are compared with those of Nsight Compute. A warp that reads
 * every seventh element touches 28 sectors; a column of a 32 x 32 tile lies in
 * a single bank. */
START_TEST(counters_come_as_json)
{
  cJSON *json = counters_of("strides");
  const cJSON *kernel =
      cJSON_GetArrayItem(cJSON_GetObjectItem(json, "kernels"), 0);

  ck_assert(counted(kernel, "launches") == 1);
  ck_assert(counted(kernel, "global_load_requests") == 64);
  ck_assert(counted(kernel, "global_load_sectors") == 64 * 28);
  ck_assert(counted(kernel, "global_store_sectors") == 64 * 4);
  ck_assert(counted(cJSON_GetObjectItem(kernel, "warp_class"), "global load") ==
            64);
  ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(json, "lines")), 0);
  cJSON_Delete(json);
  json = counters_of("transpose");
  kernel = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "kernels"), 0);
  ck_assert(counted(kernel, "shared_load_requests") == 512);
  ck_assert(counted(kernel, "shared_load_passes") == 512 * 32);
  ck_assert(counted(kernel, "shared_store_passes") == 512);
  cJSON_Delete(json);
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("planted bugs");
  TCase *t = tcase_create("check");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, memory_bugs_are_found);
  tcase_add_test(t, races_are_found);
  tcase_add_test(t, uninitialised_reads_are_found);
  tcase_add_test(t, synchronisation_bugs_are_found);
  tcase_add_test(t, nothing_is_found_where_nothing_is_wrong);
  tcase_add_test(t, findings_fail_a_plain_run);
  tcase_add_test(t, counters_come_as_json);
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(make)

#else

int main(void)
{
  puts("skipped: built without the command (KILN_CLI)");
  return KILN_TEST_SKIP;
}

#endif
