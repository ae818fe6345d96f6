/* inject_main.c -- the entry point of libkiln_profile.so, and the end of
 * recording.
 *
 * NVIDIA's driver, and Kiln's drop-in driver, load the library that
 * CUDA_INJECTION64_PATH names when the program calls cuInit for the first time,
 * and call InitializeInjection(). */
#include "inject.h"

#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

static void finish(void)
{
  kiln__inject_cupti_flush(true);
  kiln__record_close();
}

/* Starts recording. The driver ignores the result, which is 1 as in NVIDIA's
 * own injection libraries. */
int InitializeInjection(void)
{
  static bool begun;

  if (begun)
    return 1;
  begun = true;
  if (!kiln__inject_cpu())
    kiln__inject_cupti();
  (void)atexit(finish);
  return 1;
}
