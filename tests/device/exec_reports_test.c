/* exec_reports_test.c -- the report of `kiln exec`: its formats, suppressions,
 * and programs with several processes. */
#include "command.h"

#include <stdio.h>

#ifdef KILN_TEST_CLI

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM KILN_TEST_BUILD "/tests/exec_processes"
#define CHECK "exec %s --check race -- " PROGRAM

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

/* ---- Processes ------------------------------------------------------------ */

START_TEST(findings_of_all_processes_are_merged)
{
  test_run run = test_kiln(CHECK " forks", plain);

  ck_run_rc(run, 1);
  ck_has(run.err, "seen 128 times"); /* 4 launches with 32 each */
  ck_has(run.err, "1 finding in 4 launches of 1 kernel in 2 processes\n");
  run = test_kiln(CHECK " runs", plain);
  ck_run_rc(run, 1);
  ck_has(run.err, "1 finding in 1 launch of 1 kernel\n");
}
END_TEST

START_TEST(use_after_fork_is_explained)
{
  const test_run run = test_kiln(CHECK " late", plain);

  ck_run_rc(run, 1);
  ck_has(run.err, "CUDA does not work across fork");
  ck_has(run.err, "set_start_method(\"spawn\")");
  ck_has(run.err, "1 finding in 1 launch of 1 kernel\n");
}
END_TEST

START_TEST(findings_of_killed_processes_are_kept)
{
  test_run run = test_kiln(CHECK " killed", plain);

  ck_run_rc(run, 128 + 9);
  ck_has(run.err, "race in race<unsigned int>");
  ck_has(run.err, "the process 'exec_processes' (");
  ck_has(run.err, "was killed or replaced");
  run = test_kiln("exec %s -- " PROGRAM " aborts", plain);
  ck_run_rc(run, 128 + 6);
  ck_has(run.err, "0x123400"); /* the fault is reported as well */
}
END_TEST

START_TEST(threads_and_signals_do_no_harm)
{
  test_run run = test_kiln(CHECK " threads", plain);

  ck_run_rc(run, 1);
  ck_has(run.err, "1 finding in 5 launches of 1 kernel\n");
  run = test_kiln("exec %s --time -- " PROGRAM " signals", plain);
  ck_run_rc(run, 0);
  run = test_kiln(CHECK " spawns", plain);
  ck_run_rc(run, 1);
  ck_has(run.err, "1 finding in 2 launches of 1 kernel\n");
}
END_TEST

START_TEST(time_is_listed_per_kernel)
{
  const test_run run = test_kiln("exec %s --time -- " PROGRAM " forks", plain);

  ck_run_rc(run, 0);
  ck_assert_str_eq(run.out, "");
  ck_has(run.err, "launches");
  ck_has(run.err, "race<unsigned int>         4          32");
  ck_has(run.err, "all kernels                4          32");
  ck_has(run.err, "reading and translating PTX: ");
  ck_has(run.err, " s for 2 modules\n");
}
END_TEST

/* ---- Formats -------------------------------------------------------------- */

/* Runs the job `once` with a report file, and returns the file's contents, which
 * are valid until the next call. */
static const char *reported(const char *name, const char *more)
{
  static char *text;
  char path[300];
  size_t size;

  snprintf(path, sizeof path, "%s/%s", dir, name);
  ck_run_rc(test_kiln("exec %s --check race %s --report %s -- " PROGRAM " once",
                      plain, more, path),
            *more == '\0');
  free(text);
  text = test_read_file(path, &size);
  return text;
}

/* Returns a part of a JSON document. A step is a member, or an index. */
static const cJSON *part(const cJSON *root, const char *steps)
{
  char copy[200], *rest = copy, *step;

  snprintf(copy, sizeof copy, "%s", steps);
  while ((step = strtok_r(rest, "/", &rest)) != NULL) {
    root = step[0] >= '0' && step[0] <= '9'
               ? cJSON_GetArrayItem(root, atoi(step))
               : cJSON_GetObjectItemCaseSensitive(root, step);
    ck_assert_msg(root != NULL, "no %s in %s", step, steps);
  }
  return root;
}

#define TEXT(root, steps) part(root, steps)->valuestring
#define NUMBER(root, steps) (int)part(root, steps)->valuedouble

START_TEST(text_and_json_are_written)
{
  cJSON *root;

  ck_has(reported("a.txt", ""), "1 finding in 1 launch of 1 kernel\n");
  ck_has(reported("a.lines", ""), "{\"type\":\"finding\",\"run\":\"");
  root = cJSON_Parse(reported("a.json", ""));
  ck_assert_int_eq(NUMBER(root, "n_findings"), 1);
  ck_assert_int_eq(NUMBER(root, "checked_launches"), 1);
  ck_assert_int_eq(NUMBER(root, "checked_kernels"), 1);
  ck_assert_str_eq(TEXT(root, "findings/0/kind"), "race");
  ck_assert_str_eq(TEXT(root, "findings/0/name"), "race<unsigned int>");
  ck_assert(!cJSON_IsTrue(part(root, "findings/0/suppressed")));
  ck_assert_int_eq(NUMBER(root, "kernels/0/warp_insns"), 8);
  ck_assert_str_eq(TEXT(root, "program/1"), "once");
  cJSON_Delete(root);
}
END_TEST

START_TEST(sarif_has_the_parts_that_forges_read)
{
  cJSON *root = cJSON_Parse(reported("a.sarif", ""));
  const cJSON *result = part(root, "runs/0/results/0");
  char rule[64];

  ck_assert_str_eq(TEXT(root, "version"), "2.1.0");
  ck_assert_str_eq(TEXT(root, "runs/0/tool/driver/name"), "Kiln");
  ck_assert_str_eq(TEXT(result, "ruleId"), "kiln/race");
  snprintf(rule, sizeof rule, "runs/0/tool/driver/rules/%d/id",
           NUMBER(result, "ruleIndex"));
  ck_assert_str_eq(TEXT(root, rule), "kiln/race");
  ck_assert_str_eq(TEXT(result, "level"), "error");
  ck_has(TEXT(result, "message/text"), "race in race<unsigned int>");
  ck_has(TEXT(result, "locations/0/physicalLocation/artifactLocation/uri"),
         "exec_processes");
  ck_assert_int_ge(
      NUMBER(result, "locations/0/physicalLocation/region/startLine"), 1);
  ck_assert_int_eq(NUMBER(result, "occurrenceCount"), 32);
  ck_assert(cJSON_IsTrue(part(root, "runs/0/invocations/0/"
                                    "executionSuccessful")));
  cJSON_Delete(root);
}
END_TEST

START_TEST(junit_has_one_case_per_finding)
{
  const char *xml = reported("a.xml", "");

  ck_has(xml, "<testsuites name=\"kiln exec\" tests=\"2\" failures=\"1\" "
              "errors=\"0\"");
  ck_has(xml, "name=\"exit code\"");
  ck_has(xml, "name=\"race in race&lt;unsigned int&gt; at PTX line ");
  ck_has(xml, "<failure message=\"race in race&lt;unsigned int&gt;");
  ck_has(xml, "</testsuites>\n");
}
END_TEST

/* Validates the files against the published schemas, where KILN_TEST_SCHEMAS
 * names a folder with sarif-2.1.0.json and junit-10.xsd, and Python has
 * jsonschema and lxml. */
START_TEST(files_are_valid_by_their_schemas)
{
  const char *schemas = getenv("KILN_TEST_SCHEMAS");
  char command[1200];

  if (schemas == NULL)
    return;
  (void)reported("a.sarif", "");
  (void)reported("a.xml", "");
  snprintf(command, sizeof command,
           "python3 " KILN_TEST_SOURCE "/tests/exec/validate.py %s %s/a.sarif "
           "%s/a.xml",
           schemas, dir, dir);
  ck_assert_int_eq(system(command), 0); /* NOLINT: a test's own command */
}
END_TEST

/* ---- Suppressions --------------------------------------------------------- */

static const char *suppressing(const char *text)
{
  static char option[320];
  char path[300];
  FILE *f;

  snprintf(path, sizeof path, "%s/suppressions", dir);
  f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  fputs(text, f);
  fclose(f);
  snprintf(option, sizeof option, "--suppress %s", path);
  return option;
}

START_TEST(suppressions_hide_what_they_match)
{
  cJSON *root = cJSON_Parse(
      reported("a.sarif", suppressing("# old code\n\nkind=race "
                                      "kernel=\"race<unsigned *\" "
                                      "reason=\"known, see the notes\"\n")));

  ck_assert_str_eq(TEXT(root, "runs/0/results/0/suppressions/0/kind"),
                   "external");
  ck_assert_str_eq(TEXT(root, "runs/0/results/0/suppressions/0/justification"),
                   "known, see the notes");
  cJSON_Delete(root);
  ck_has(reported("a.xml", suppressing("kernel=_Z4race* file=*")),
         "<skipped message=\"");
  ck_has(reported("a.txt", suppressing("kind=race\r\nkind=leak\r\n")),
         "0 findings (1 suppressed) in 1 launch of 1 kernel\n");
}
END_TEST

START_TEST(unused_suppressions_are_reported)
{
  const char *text =
      "kind=leak\nkind=race line=3-9\nkernel=other\nfile=x.cu\nkind=r?ce\n";
  const test_run run = test_kiln("exec %s --check race %s -- " PROGRAM " once",
                                 plain, suppressing(text));

  ck_run_rc(run, 0);
  for (int line = 1; line <= 4; line++) {
    char message[80];

    snprintf(message, sizeof message,
             "suppressions:%d: this suppression matches no finding", line);
    ck_has(run.err, message);
  }
  ck_lacks(run.err, "suppressions:5");
}
END_TEST

START_TEST(wrong_suppressions_are_refused)
{
  static const struct {
    const char *text, *message;
  } cases[] = {{"kind", "suppressions:1: there is no value for 'kind'"},
               {"kind=race\nkid=race", "suppressions:2: this term is not "
                                       "understood: 'kid=race'"},
               {"line=9-3", "'line=9-3'"},
               {"line=x", "'line=x'"},
               {"kind=\"race", "a closing quotation mark is missing"}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const test_run run = test_kiln("exec %s %s -- " PROGRAM " once", plain,
                                   suppressing(cases[i].text));

    ck_run_rc(run, 2);
    ck_has(run.err, cases[i].message);
  }
  ck_run_rc(test_kiln("exec --suppress /no/such/file -- " PROGRAM " once"), 2);
  ck_run_rc(test_kiln("exec --report /no/such/file.xml -- " PROGRAM " once"),
            1);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("exec_reports");
  TCase *t = tcase_create("reports");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  if (!KILN_TEST_SANITIZED) {
    tcase_add_test(t, findings_of_all_processes_are_merged);
    tcase_add_test(t, use_after_fork_is_explained);
    tcase_add_test(t, findings_of_killed_processes_are_kept);
    tcase_add_test(t, time_is_listed_per_kernel);
  }
  tcase_add_test(t, threads_and_signals_do_no_harm);
  tcase_add_test(t, text_and_json_are_written);
  tcase_add_test(t, sarif_has_the_parts_that_forges_read);
  tcase_add_test(t, junit_has_one_case_per_finding);
  tcase_add_test(t, files_are_valid_by_their_schemas);
  tcase_add_test(t, suppressions_hide_what_they_match);
  tcase_add_test(t, unused_suppressions_are_reported);
  tcase_add_test(t, wrong_suppressions_are_refused);
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
