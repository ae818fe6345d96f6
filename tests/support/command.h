/* command.h -- run the `kiln` command as a child and look at what it says. */
#ifndef KILN_TEST_COMMAND_H
#define KILN_TEST_COMMAND_H

#include "support.h"

/* What one run left. */
typedef struct test_run {
  int rc;    /* exit code; 128 + signal if it was killed */
  char *out; /* stdout, never NULL; lives until the test process ends */
  char *err; /* stderr, the same */
} test_run;

/* Start from a clean environment: no KILN_ variable, home and cache in the
 * folder, and a driver that is not there. Call it first in a test. */
void test_command_setup(const char *folder);

/* Run build/kiln with a command line that is split at blanks; %s and the like
 * are filled in first, and may hold no blank. */
test_run test_kiln(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));

/* Run it likewise, and fail unless the exit code is `rc` and, if `out` is not NULL,
 * standard output contains `out`. */
test_run expect(int rc, const char *out, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* As above, with words as they are; NULL-terminated. */
test_run test_kiln_words(const char *const *words);

/* Check cannot take long messages. */
#define CK_RUN_SHOWN "%.1500s"

/* Fail with the output unless the exit code is `want`. */
#define ck_run_rc(run, want)                                                   \
  ck_assert_msg((run).rc == (want),                                            \
                "exit code %d, not %d\n" CK_RUN_SHOWN CK_RUN_SHOWN, (run).rc,  \
                (want), (run).out, (run).err)

/* Fail with the text unless `text` holds `part`, or does not hold it. */
#define ck_has(text, part)                                                     \
  ck_assert_msg(strstr((text), (part)) != NULL,                                \
                "no \"%s\" in:\n" CK_RUN_SHOWN, (part), (text))
#define ck_lacks(text, part)                                                   \
  ck_assert_msg(strstr((text), (part)) == NULL, "\"%s\" in:\n" CK_RUN_SHOWN,   \
                (part), (text))

#endif
