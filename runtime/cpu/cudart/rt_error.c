/* rt_error.c -- keeps each thread's last error and its mode of the default stream, and
 * has the names and texts of errors.
 *
 * A failed call overwrites the last error; a successful call leaves it alone.
 * cudaGetLastError() returns and clears it. Errors that destroy a context come back
 * from the driver with every later call, so they need no state here. */
#include "cudart.h"

kiln__rt_thread *kiln__rt_self(void)
{
  static _Thread_local kiln__rt_thread self = {.device = -1};

  return &self;
}

bool kiln__rt_enter(bool per_thread)
{
  kiln__rt_thread *self = kiln__rt_self();
  const bool outer = self->per_thread;

  self->per_thread = per_thread;
  return outer;
}

cudaError_t kiln__rt_leave(bool outer, cudaError_t rc)
{
  kiln__rt_thread *self = kiln__rt_self();

  self->per_thread = outer;
  if (rc != cudaSuccess)
    self->last = rc;
  return rc;
}

CUstream kiln__rt_stream(cudaStream_t stream)
{
  return stream == NULL && kiln__rt_self()->per_thread ? CU_STREAM_PER_THREAD
                                                       : stream;
}

/* A function of Kiln's driver. The address is NULL over another driver. A weak symbol is
 * also found if the program opened this library without RTLD_GLOBAL, where dlsym() would
 * not find it. */
extern void kiln_cpu_note_missing(const char *name, const char *advice)
    __attribute__((weak));

cudaError_t kiln__rt_refuse(const char *symbol, cudaError_t error,
                            const char *advice)
{
  if (kiln_cpu_note_missing != NULL)
    kiln_cpu_note_missing(symbol, advice);
  return error;
}

cudaError_t kiln__rt_getLastError(void)
{
  kiln__rt_thread *self = kiln__rt_self();
  const cudaError_t last = self->last;

  self->last = cudaSuccess;
  return last;
}

cudaError_t kiln__rt_peekAtLastError(void)
{
  return kiln__rt_self()->last;
}

/* ---- Names and texts ------------------------------------------------------- */

static const char unknown[] = "unrecognized error code";

const char *kiln__rt_getErrorName(cudaError_t error)
{
  switch (error) {
#define KILN__RT_ERROR(name, code, text)                                       \
  case code:                                                                   \
    return #name;
#define KILN__RT_ERROR_12(name, code, text)                                    \
  case code:                                                                   \
    return kiln__rt_version < 12000 ? unknown : #name;
#include "runtime_errors.def"
  default:
    return unknown;
  }
}

/* CUDA 11 has another text for one code. */
const char *kiln__rt_getErrorString(cudaError_t error)
{
  if (error == cudaErrorInvalidNormSetting && kiln__rt_version < 12000)
    return "read as normalized float not supported for 32-bit non float type";
  switch (error) {
#define KILN__RT_ERROR(name, code, text)                                       \
  case code:                                                                   \
    return text;
#define KILN__RT_ERROR_12(name, code, text)                                    \
  case code:                                                                   \
    return kiln__rt_version < 12000 ? unknown : (text);
#include "runtime_errors.def"
  default:
    return unknown;
  }
}

/* ---- Versions -------------------------------------------------------------- */

cudaError_t kiln__rt_runtimeGetVersion(int *version)
{
  if (version == NULL)
    return cudaErrorInvalidValue;
  *version = kiln__rt_version;
  return cudaSuccess;
}

/* Returns version 0 if there is no driver. */
cudaError_t kiln__rt_driverGetVersion(int *version)
{
  if (version == NULL)
    return cudaErrorInvalidValue;
  if (cuDriverGetVersion(version) != CUDA_SUCCESS)
    *version = 0;
  return cudaSuccess;
}
