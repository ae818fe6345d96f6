/* command.h -- runs the `kiln` command as a child process and checks what it
 * prints. */
#ifndef KILN_TEST_COMMAND_H
#define KILN_TEST_COMMAND_H

#include "support.h"

/* The result of one run. */
typedef struct test_run {
  int rc;    /* exit code; 128 + signal if it was killed */
  char *out; /* stdout, never NULL; lives until the test process ends */
  char *err; /* stderr, the same */
} test_run;

/* Prepares the environment: no KILN_ variable, home and cache in the folder,
 * and no driver. Call it first in a test. */
void test_command_setup(const char *folder);

/* Runs build/kiln with a command line that is split at blanks. Conversions such
 * as %s are filled in first; their values must not hold blanks. */
test_run test_kiln(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));

/* Runs it likewise. Fails unless the exit code is `rc` and, if `out` is not
 * NULL, standard output contains `out`. */
test_run expect(int rc, const char *out, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Runs build/kiln with these words, NULL-terminated, as they are. */
test_run test_kiln_words(const char *const *words);

/* Check truncates long messages. */
#define CK_RUN_SHOWN "%.1500s"

/* Fails with the output unless the exit code is `want`. */
#define ck_run_rc(run, want)                                                   \
  ck_assert_msg((run).rc == (want),                                            \
                "exit code %d, not %d\n" CK_RUN_SHOWN CK_RUN_SHOWN, (run).rc,  \
                (want), (run).out, (run).err)

/* Fails with the text unless `text` contains `part`, or does not contain it. */
#define ck_has(text, part)                                                     \
  ck_assert_msg(strstr((text), (part)) != NULL,                                \
                "no \"%s\" in:\n" CK_RUN_SHOWN, (part), (text))
#define ck_lacks(text, part)                                                   \
  ck_assert_msg(strstr((text), (part)) == NULL, "\"%s\" in:\n" CK_RUN_SHOWN,   \
                (part), (text))

#endif
