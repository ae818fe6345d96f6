/* exec_bugs_test.c -- planted bugs in a program of the runtime API, which nvcc
 * compiled and which knows nothing of Kiln, must be found at their lines. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_NVCC

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOURCE KILN_TEST_SOURCE "/tests/exec/runtime_bugs.cu"
#define PROGRAM KILN_TEST_BUILD "/tests/exec_runtime_bugs"

/* A planted bug, as the comment BUG(job: kind) of the source describes it. */
typedef struct bug {
  char job[32], kind[32], kernel[64];
  int line;
} bug;

static char dir[256];
static bug bugs[16];
static int n_bugs;

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

static void read_bugs(void)
{
  FILE *f = fopen(SOURCE, "r");
  char text[256];

  ck_assert_ptr_nonnull(f);
  for (int line = 1; fgets(text, sizeof text, f) != NULL; line++) {
    const char *at = strstr(text, "// BUG(");

    if (at != NULL && n_bugs < 16 &&
        sscanf(at, "// BUG(%31[a-z]: %31[a-z ])", bugs[n_bugs].job,
               bugs[n_bugs].kind) == 2)
      bugs[n_bugs++].line = line;
  }
  fclose(f);
}

/* Runs one job under all checks. Returns the report, which the caller deletes. */
static cJSON *report_of(const char *job, int rc)
{
  char path[300];
  size_t size;
  char *text;
  cJSON *report;

  snprintf(path, sizeof path, "%s/%s.json", dir, job);
  ck_run_rc(
      test_kiln("exec --check all --report %s -- " PROGRAM " %s", path, job),
      rc);
  text = test_read_file(path, &size);
  report = cJSON_Parse(text);
  free(text);
  ck_assert_ptr_nonnull(report);
  return report;
}

static const char *text_of(const cJSON *f, const char *key)
{
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(f, key));
}

/* The bug is found at its line. Other findings may describe the same bug, such as
 * the other access of a race, but they must be in the same kernel. */
START_TEST(planted_bugs_are_found_at_their_lines)
{
  const bug *b;
  const char *kernel = NULL;
  cJSON *report, *f;

  read_bugs();
  ck_assert_int_eq(n_bugs, 10);
  b = &bugs[_i];
  report = report_of(b->job, 1);
  cJSON_ArrayForEach(f, cJSON_GetObjectItem(report, "findings"))
  {
    const char *file = text_of(f, "shown_file");

    if (strcmp(text_of(f, "kind"), b->kind) == 0 &&
        cJSON_GetObjectItem(f, "shown_line")->valueint == b->line &&
        strstr(file, "runtime_bugs.cu") != NULL)
      kernel = text_of(f, "kernel");
  }
  ck_assert_msg(kernel != NULL, "%s: no %s at line %d", b->job, b->kind,
                b->line);
  cJSON_ArrayForEach(f, cJSON_GetObjectItem(report, "findings"))
      ck_assert_str_eq(text_of(f, "kernel"), kernel);
  cJSON_Delete(report);
}
END_TEST

START_TEST(correct_kernels_have_no_findings)
{
  cJSON *report = report_of("none", 0);

  ck_assert_int_eq(cJSON_GetObjectItem(report, "n_findings")->valueint, 0);
  ck_assert_int_eq(cJSON_GetObjectItem(report, "checked_launches")->valueint,
                   1);
  cJSON_Delete(report);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("exec_bugs");
  TCase *t = tcase_create("bugs");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, planted_bugs_are_found_at_their_lines, 0, 10);
  tcase_add_test(t, correct_kernels_have_no_findings);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  if (access(PROGRAM, X_OK) != 0) {
    puts("nvcc could not compile the program");
    return KILN_TEST_SKIP;
  }
  return kiln_test_run(make_suite());
}

#else

int main(void)
{
  puts("there is no nvcc, or the command was not built");
  return KILN_TEST_SKIP;
}

#endif
