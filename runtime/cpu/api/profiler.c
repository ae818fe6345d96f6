/* profiler.c -- implements cuProfilerStart and cuProfilerStop. Both functions
 * succeed and do nothing, since counters include every launch. */
#include "machine.h"

CUresult kiln__cpu_profilerInitialize(const char *config, const char *output,
                                      int mode)
{
  (void)config, (void)output, (void)mode;
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult kiln__cpu_profilerStart(void)
{
  return kiln__cpu_check_current();
}

CUresult kiln__cpu_profilerStop(void)
{
  return kiln__cpu_check_current();
}
