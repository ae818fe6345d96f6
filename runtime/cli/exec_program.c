/* exec_program.c -- runs a program that need not know Kiln, on the CPU device or
 * on the GPU, for `kiln exec` and `kiln profile`. The program finds Kiln's
 * libcuda.so.1 and NVRTC first if it is to run on the CPU device. */
#include "cli/exec_program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_NVRTC = 16 };

/* ---- Libraries ---------------------------------------------------------- */

const char *kiln__cli_exec_folder(cli *c)
{
  static const char *const places[] = {"cpu", "../lib/kiln", "../lib64/kiln",
                                       "../lib/x86_64-linux-gnu/kiln",
                                       "../lib/aarch64-linux-gnu/kiln"};
  char exe[4096];
  const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

  exe[n < 0 ? 0 : n] = '\0';
  if (strrchr(exe, '/') != NULL)
    *strrchr(exe, '/') = '\0';
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const char *dir = kiln__cli_text(c, "%s/%s", exe, places[i]);

    if (access(kiln__cli_text(c, "%s/libcuda.so.1", dir), R_OK) == 0) {
      char *whole = realpath(dir, NULL);
      const char *kept = whole == NULL ? dir : kiln__cli_text(c, "%s", whole);

      free(whole);
      return kept;
    }
  }
  kiln__cli_message(
      c, "build the target kiln_exec_libraries, or install all of Kiln",
      "Kiln's libcuda.so.1 is neither in %s/cpu nor in %s/../lib/kiln", exe,
      exe);
  return NULL;
}

static bool compiles_for(const kiln_nvrtc_info *nvrtc, int arch)
{
  for (size_t i = 0; i < nvrtc->n_archs; i++) {
    if (nvrtc->archs[i] == arch)
      return true;
  }
  return false;
}

const char *kiln__cli_exec_nvrtc(cli *c, int arch)
{
  kiln_nvrtc_info *all =
      kiln__cli_alloc(c, MOST_NVRTC, sizeof(kiln_nvrtc_info));
  const char *list = "", *fallback = "";
  size_t n = 0;

  if (kiln_runtime_nvrtc(c->rt, all, MOST_NVRTC, &n) != KILN_OK)
    return "";
  for (size_t i = 0; i < n && i < MOST_NVRTC; i++) {
    const char **to = compiles_for(&all[i], arch) ? &list : &fallback;

    *to =
        kiln__cli_text(c, "%s%s%s", *to, **to == '\0' ? "" : ":", all[i].path);
  }
  return *list == '\0' ? fallback : list;
}

/* ---- Running ------------------------------------------------------------ */

/* Puts a path at the front of a list of paths in the environment. */
static void put_first(cli *c, const char *name, const char *value)
{
  const char *old = getenv(name);

  setenv(name,
         old == NULL || *old == '\0' ? value
                                     : kiln__cli_text(c, "%s:%s", value, old),
         1);
}

/* Returns the libraries to preload, separated by colons. A program may find NVIDIA's
 * runtime by a run path, which precedes LD_LIBRARY_PATH, or as a copy with another name,
 * as in Python wheels. The loader binds the symbols of both to a preloaded library,
 * because the versions of the symbols agree. */
static const char *preloads(cli *c, const cli_exec *e)
{
  static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12",
                                         "libcudart.so.11.0"};
  const char *list = kiln__cli_text(c, "%s/libkiln_exec.so", e->folder);

  for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
    const char *path = kiln__cli_text(c, "%s/%s", e->folder, runtimes[i]);

    if (access(path, R_OK) == 0)
      list = kiln__cli_text(c, "%s:%s", list, path);
  }
  return list;
}

void kiln__cli_exec_prepare(cli *c, const cli_exec *e)
{
  put_first(c, "LD_LIBRARY_PATH", e->folder);
  if (!e->no_preload)
    put_first(c, "LD_PRELOAD", preloads(c, e));
  setenv("KILN_CPU", e->settings, 1);
  setenv("KILN_CPU_REPORT", e->report, 1);
  setenv("KILN_EXEC_DIR", e->folder, 1);
  setenv("KILN_EXEC_NVRTC", e->nvrtc, 1);
  /* Kiln's variables would affect a program that uses Kiln. */
  unsetenv("KILN_DRIVER");
  unsetenv("KILN_NVRTC");
  unsetenv("KILN_DEVICE");
}

/* Path of the temporary file for the signal handler, or "" if there is none. */
char kiln__cli_exec_temporary[4096];

/* Handles SIGTERM and SIGHUP: passes the signal on to the program, removes
 * the temporary file, and ends this process by the same signal. The
 * handler makes only async-signal-safe calls. */
static volatile pid_t running;

static void end_by_signal(int number)
{
  if (running > 0)
    kill(running, number);
  if (kiln__cli_exec_temporary[0] != '\0')
    unlink(kiln__cli_exec_temporary);
  signal(number, SIG_DFL);
  raise(number);
}

typedef struct handlers {
  struct sigaction interrupt, quit, terminate, hang_up;
} handlers;

/* Installs the signal handlers. SIGINT and SIGQUIT from the keyboard reach
 * the program as well. This process ignores them, so that it can print the
 * report. */
static void catch_signals(handlers *old)
{
  const struct sigaction ignore = {.sa_handler = SIG_IGN};
  const struct sigaction end = {.sa_handler = end_by_signal,
                                .sa_flags = (int)SA_RESETHAND};

  sigaction(SIGINT, &ignore, &old->interrupt);
  sigaction(SIGQUIT, &ignore, &old->quit);
  sigaction(SIGTERM, &end, &old->terminate);
  sigaction(SIGHUP, &end, &old->hang_up);
}

static void restore_signals(const handlers *old)
{
  sigaction(SIGINT, &old->interrupt, NULL);
  sigaction(SIGQUIT, &old->quit, NULL);
  sigaction(SIGTERM, &old->terminate, NULL);
  sigaction(SIGHUP, &old->hang_up, NULL);
}

int kiln__cli_exec_run(cli *c, char **argv)
{
  sigset_t ends, before;
  handlers old;
  pid_t child;
  int status = 0;

  fflush(NULL);
  /* No signal may arrive between fork() and the store of the child's process
   * id. */
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGHUP);
  sigprocmask(SIG_BLOCK, &ends, &before);
  catch_signals(&old);
  child = fork();
  if (child == 0) {
    restore_signals(&old);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(argv[0], argv);
    fprintf(stderr, "kiln: cannot run '%s': %s\n", argv[0], strerror(errno));
    _exit(CLI_NOT_STARTED);
  }
  running = child;
  sigprocmask(SIG_SETMASK, &before, NULL);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  if (child < 0) {
    kiln__cli_message(c, NULL, "cannot start '%s': %s", argv[0],
                      strerror(errno));
    return CLI_NOT_STARTED;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
