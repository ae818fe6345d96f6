/* command.h -- runs the `kiln` command as a child process and checks what it
 * prints. */
#ifndef KILN_TEST_COMMAND_H
#define KILN_TEST_COMMAND_H

#include "support.h"

/* The result of one run of the `kiln` command. */
typedef struct test_run {
  int rc; /* exit code, or 128 + signal number if a signal killed it */
  /* Standard output; never NULL; valid until the test process ends. */
  char *out;
  char *err; /* standard error; never NULL; valid until the test process ends */
} test_run;

/* Prepares the environment of the command: removes all KILN_ variables, places
 * the home and cache directories in `folder`, and hides the driver. A test
 * calls it first. */
void test_command_setup(const char *folder);

/* Runs build/kiln with a command line that is split at blanks. printf
 * conversions such as %s are expanded first, and their values must not contain
 * blanks. */
test_run test_kiln(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));

/* Runs build/kiln like test_kiln(). Fails the test unless the exit code is `rc`
 * and, if `out` is not NULL, standard output contains `out`. */
test_run expect(int rc, const char *out, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Runs build/kiln with exactly these arguments. The array is NULL-terminated.
 */
test_run test_kiln_words(const char *const *words);

/* The printf format of command output in messages. It limits the length,
 * because Check truncates long messages. */
#define CK_RUN_SHOWN "%.1500s"

/* Fails the test and prints the command's output unless the exit code is
 * `want`. */
#define ck_run_rc(run, want)                                                   \
  ck_assert_msg((run).rc == (want),                                            \
                "exit code %d, not %d\n" CK_RUN_SHOWN CK_RUN_SHOWN, (run).rc,  \
                (want), (run).out, (run).err)

/* ck_has() fails the test and prints `text` unless `text` contains `part`.
 * ck_lacks() fails if `text` contains `part`. */
#define ck_has(text, part)                                                     \
  ck_assert_msg(strstr((text), (part)) != NULL,                                \
                "no \"%s\" in:\n" CK_RUN_SHOWN, (part), (text))
#define ck_lacks(text, part)                                                   \
  ck_assert_msg(strstr((text), (part)) == NULL, "\"%s\" in:\n" CK_RUN_SHOWN,   \
                (part), (text))

#endif
