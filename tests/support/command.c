/* command.c -- runs the `kiln` command and collects its output in unnamed
 * temporary files. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void test_command_setup(const char *folder)
{
  static const char *const gone[] = {
      "KILN_NVRTC",      "KILN_NVJITLINK", "KILN_PACKS",
      "KILN_CACHE_SIZE", "CUDA_PATH",      "CUDA_HOME",
      "VIRTUAL_ENV",     "CONDA_PREFIX",   "XDG_CACHE_HOME"};
  char path[512];

  for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
    unsetenv(gone[i]);
  setenv("HOME", folder, 1);
  setenv("TMPDIR", folder, 1);
  snprintf(path, sizeof path, "%s/cache", folder);
  setenv("KILN_CACHE_DIR", path, 1);
  snprintf(path, sizeof path, "%s/no-libcuda.so", folder);
  setenv("KILN_DRIVER", path, 1);
}

/* Returns the path of the command. It is derived from the path of the test
 * program, because both are in the same build folder. */
static const char *command_path(void)
{
  static char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
  char *slash;

  ck_assert_int_gt(n, 0);
  path[n] = '\0';
  slash = strrchr(path, '/');
  memcpy(slash, "/../kiln", sizeof "/../kiln");
  return path;
}

/* Returns an unnamed temporary file for output. A pipe could fill up and block
 * the child process. */
static int unnamed_file(void)
{
  char path[] = "/tmp/kiln-run-XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);

  ck_assert_int_ge(fd, 0);
  unlink(path);
  return fd;
}

/* The outputs of all runs. They are kept until the test process ends and stay
 * reachable, so that leak checkers do not report them. */
static struct output {
  struct output *next;
  char text[];
} * outputs;

static char *read_back(int fd)
{
  const off_t size = lseek(fd, 0, SEEK_END);
  struct output *o = calloc(1, sizeof *o + (size_t)size + 1);

  ck_assert_ptr_nonnull(o);
  ck_assert_int_eq(pread(fd, o->text, (size_t)size, 0), size);
  close(fd);
  o->next = outputs;
  outputs = o;
  return o->text;
}

test_run test_kiln_words(const char *const *words)
{
  const int out = unnamed_file(), err = unnamed_file();
  test_run run = {0};
  const char *path = command_path();
  int status = 0;
  const pid_t pid = fork();

  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    const int in = open("/dev/null", O_RDONLY);

    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(path, (char *const *)(uintptr_t)words);
    _exit(127);
  }
  while (waitpid(pid, &status, 0) < 0)
    ck_assert_int_eq(errno, EINTR);
  run.rc = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  run.out = read_back(out);
  run.err = read_back(err);
  return run;
}

/* Splits a command line at blanks, in place, and runs it. */
static test_run run_line(char *line)
{
  const char *words[64] = {"kiln"};
  char *save = NULL;
  size_t n = 1;

  for (char *word = strtok_r(line, " ", &save); word != NULL;
       word = strtok_r(NULL, " ", &save)) {
    ck_assert_uint_lt(n, 63);
    words[n++] = word;
  }
  return test_kiln_words(words);
}

#define FILL_LINE(line, format)                                                \
  do {                                                                         \
    va_list args;                                                              \
                                                                               \
    va_start(args, format);                                                    \
    ck_assert_int_lt(vsnprintf(line, sizeof line, format, args),               \
                     (int)sizeof line);                                        \
    va_end(args);                                                              \
  } while (0)

test_run test_kiln(const char *format, ...)
{
  char line[4096];

  FILL_LINE(line, format);
  return run_line(line);
}

test_run expect(int rc, const char *out, const char *format, ...)
{
  char line[4096], shown[4096];
  test_run run;

  FILL_LINE(line, format);
  memcpy(shown, line, sizeof shown);
  run = run_line(line);
  ck_assert_msg(run.rc == rc && (out == NULL || strstr(run.out, out) != NULL),
                "kiln %.500s\nexit code %d, not %d; or no \"%s\" in "
                "stdout:\n" CK_RUN_SHOWN CK_RUN_SHOWN,
                shown, run.rc, rc, out == NULL ? "" : out, run.out, run.err);
  return run;
}
