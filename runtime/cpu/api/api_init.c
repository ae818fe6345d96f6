/* api_init.c -- implements cuInit and the driver version. Also checks, for
 * other driver calls, that cuInit was called in this process. */
#include "observe.h"
#include "stream/streams.h"

CUresult kiln__cpu_init(unsigned int flags)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  CUresult rc = CUDA_SUCCESS;
  bool first = false;

  CU_TRY(allocated(m));
  if (m->initialised && kiln__forked(&m->fork_guard)) {
    if (kiln__cpu_report_to != NULL)
      kiln__cpu_report_to->forked();
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  CU_TRY(valid(flags == 0));
  pthread_mutex_lock(&m->lock);
  if (!m->initialised) {
    if (m->isa == NULL)
      m->isa = kiln__cpu_isa_best(m->opts.isa);
    if (m->isa == NULL)
      rc = CUDA_ERROR_SYSTEM_NOT_READY;
    else
      kiln__fork_guard_init(&m->fork_guard);
    first = rc == CUDA_SUCCESS;
    m->initialised = first;
  }
  pthread_mutex_unlock(&m->lock);
  if (first && kiln__cpu_after_init != NULL)
    kiln__cpu_after_init();
  return rc;
}

CUresult kiln__cpu_ready(void)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();

  if (m == NULL || !m->initialised || kiln__forked(&m->fork_guard))
    return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_driverGetVersion(int *version)
{
  return CU_STORE(version, KILN__DRIVER_VERSION);
}
