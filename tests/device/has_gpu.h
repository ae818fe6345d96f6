/* has_gpu.h -- is there a GPU? Asked in a child: a process that has initialised
 * CUDA must not fork, and Check forks for every test. */
#ifndef KILN_TEST_HAS_GPU_H
#define KILN_TEST_HAS_GPU_H

#include "support.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Defines main of a test that needs a GPU. */
#define DEVICE_TEST_MAIN(make)                                                 \
  int main(void)                                                               \
  {                                                                            \
    return has_gpu() ? kiln_test_run(make()) : KILN_TEST_SKIP;                 \
  }

#endif
