/* test_device.h -- the device under test: a GPU or the CPU device.
 *
 * KILN_DEVICE chooses the device: "gpu", "cpu", or for example
 * "cpu:6.1,seed=3". By default the tests take the GPU if there is one, and the
 * CPU device otherwise. Every machine has one of them, so no test is skipped
 * for lack of a device. */
#ifndef KILN_TEST_DEVICE_H
#define KILN_TEST_DEVICE_H

#include "support.h"

#include <kiln/cpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* DEVICE_TEST_MAIN sets this variable before any test runs. */
static const char *test_cpu; /* NULL, or the CPU device's settings */

static inline bool on_cpu(void)
{
  return test_cpu != NULL;
}

/* The kernels for lock-step warps (KILN_HAS_ITS=0) have no barriers between the
 * lanes of a warp. Today's GPUs happen to run them correctly. The CPU device
 * may let lanes diverge, so it runs these kernels in lock-step mode only.
 * KILN_TEST_NO_LOCK_STEP leaves them out, because tools report them. */
static inline bool lock_step_bodies_run(const kiln_traits *traits)
{
  return getenv("KILN_TEST_NO_LOCK_STEP") == NULL &&
         !(on_cpu() && traits->has_its);
}

/* Returns the folders of the libraries in KILN_TEST_NVRTC, so that Kiln finds
 * the one that supports the architecture of the CPU device. */
static inline size_t test_nvrtc_dirs(const char *dirs[8])
{
  static char text[4096];
  const char *list = getenv("KILN_TEST_NVRTC");
  size_t n = 0;

  if (list == NULL || strlen(list) >= sizeof text)
    return 0;
  strcpy(text, list);
  for (char *rest = text, *path; n < 8 && (path = strsep(&rest, ":"));) {
    char *slash = strrchr(path, '/');

    if (slash != NULL) {
      *slash = '\0';
      dirs[n++] = path;
    }
  }
  return n;
}

/* Sets KILN_NVRTC for commands that a test starts with an empty environment:
 * the library in KILN_TEST_NVRTC that supports the architecture of the CPU
 * device. */
static inline void test_use_nvrtc(void)
{
  const char *list = getenv("KILN_TEST_NVRTC");
  const char *name = "libnvrtc.so.13";
  char text[4096];
  kiln_cpu_opts cpu;

  ck_kiln_ok(kiln_cpu_parse(&cpu, test_cpu != NULL ? test_cpu : "cpu"));
  if (list == NULL || strlen(list) >= sizeof text)
    return;
  if (cpu.arch != 0 && cpu.arch < 75)
    name = cpu.arch < 50 ? "libnvrtc.so.11" : "libnvrtc.so.12";
  strcpy(text, list);
  for (char *rest = text, *path; (path = strsep(&rest, ":"));) {
    if (strstr(path, name) != NULL)
      setenv("KILN_NVRTC", path, 1);
  }
}

/* Calls kiln_runtime_create() for the device under test. If `wanted` is NULL,
 * the options are the defaults. */
static inline kiln_status test_runtime(kiln_runtime **out,
                                       const kiln_runtime_opts *wanted)
{
  kiln_runtime_opts opts = {0};
  const char *dirs[8];
  kiln_cpu_opts cpu;

  if (wanted != NULL)
    opts = *wanted;
  if (on_cpu()) {
    kiln_status st = kiln_cpu_parse(&cpu, test_cpu);

    if (st == KILN_OK)
      st = kiln_cpu_configure(&cpu);
    /* KILN_EUNSUPPORTED: the device is in use, with the same settings */
    if (st != KILN_OK && st != KILN_EUNSUPPORTED)
      return st;
    opts.driver = kiln_cpu_driver();
    if (opts.nvrtc_path == NULL && opts.nvrtc_dirs == NULL) {
      opts.n_nvrtc_dirs = test_nvrtc_dirs(dirs);
      opts.nvrtc_dirs = opts.n_nvrtc_dirs > 0 ? dirs : NULL;
      if (opts.n_nvrtc_dirs > 0)
        /* with KILN_NVRTC set, Kiln would try no other library */
        unsetenv("KILN_NVRTC");
    }
  }
  return kiln_runtime_create(out, &opts);
}

/* A child process looks for the GPU, because a process that has initialised
 * CUDA must not fork, and Check forks for every test. */
static inline bool has_gpu(void)
{
  const pid_t child = fork();
  int status = 1;

  if (child == 0) {
    kiln_runtime *rt = NULL;
    kiln_driver_info driver = {0};
    kiln_status st = kiln_runtime_create(&rt, NULL);

    if (st == KILN_OK)
      st = kiln_runtime_driver(rt, &driver);
    if (st != KILN_OK)
      printf("no GPU: %s\n", kiln_last_error()->message);
    fflush(stdout);
    _exit(st == KILN_OK && driver.n_devices > 0 ? 0 : 1);
  }
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* ---- Checks -------------------------------------------------------------- */

/* With the CPU device's checks on (KILN_DEVICE=cpu,check=all), any finding
 * fails the test. A test with faulty kernels sets findings_wanted. */
static bool findings_wanted;
static unsigned n_findings;

/* Counts a finding. Any thread may call it. */
static void note_finding(void *user, const kiln_cpu_finding *finding)
{
  (void)user;
  printf("%s\n", finding->text);
  __atomic_fetch_add(&n_findings, 1, __ATOMIC_RELAXED);
}

/* Runs when the process of a test ends, so that leaks at the end of a context
 * count as well. Check reports the exit code of the process. */
static void fail_on_findings(void)
{
  if (n_findings == 0 || findings_wanted)
    return;
  printf("%u findings of the checks: see above\n", n_findings);
  fflush(stdout);
  _exit(EXIT_FAILURE);
}

static inline void watch_test_device(void)
{
  kiln_cpu_opts cpu;

  if (kiln_cpu_parse(&cpu, test_cpu) != KILN_OK || cpu.checks == 0)
    return;
  if (kiln_cpu_on_finding(note_finding, NULL) != KILN_OK ||
      atexit(fail_on_findings) != 0)
    exit(EXIT_FAILURE);
}

static inline void choose_test_device(void)
{
  const char *which = getenv("KILN_DEVICE");

  if (which != NULL && strncmp(which, "cpu", 3) == 0)
    test_cpu = which;
  else if ((which == NULL || which[0] == '\0') && !has_gpu())
    test_cpu = "cpu";
  if (test_cpu != NULL)
    watch_test_device();
  printf("device: %s\n", test_cpu != NULL ? test_cpu : "gpu");
  fflush(stdout);
}

/* Defines main() of a test that runs on a device. */
#define DEVICE_TEST_MAIN(make)                                                 \
  int main(void)                                                               \
  {                                                                            \
    choose_test_device();                                                      \
    return kiln_test_run(make());                                              \
  }

#endif
