/* fake_libcuda.h -- the implementation of small fakes of libcuda. Every
 * function returns FAKE_ANSWER. The environment variable FAKE_CUINIT sets
 * the result of cuInit, and FAKE_CUDA_VERSION sets the version that
 * cuDriverGetVersion reports.
 *
 * Before including this file, define FAKE_ANSWER, FAKE_VERSION (the default
 * version), and one of
 *   FAKE_OPTIONAL_TOO  export the optional functions as well
 *   FAKE_HIDDEN        export only cuInit, cuDriverGetVersion and
 *                      cuGetProcAddress_v2, which returns the others */
#include "driver/abi.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef FAKE_HIDDEN
#define SCOPE HIDDEN
#else
#define SCOPE EXPORT
#endif

#define BODY(symbol, result, params)                                           \
  SCOPE result symbol params;                                                  \
  SCOPE result symbol params                                                   \
  {                                                                            \
    return FAKE_ANSWER;                                                        \
  }
#define IF_REQUIRED(symbol, result, params) BODY(symbol, result, params)
#if defined(FAKE_OPTIONAL_TOO) || defined(FAKE_HIDDEN)
#define IF_OPTIONAL(symbol, result, params) BODY(symbol, result, params)
#else
#define IF_OPTIONAL(symbol, result, params)
#endif

/* These functions are defined below, so the generated definitions get unused
 * names. */
#define cuInit unused_init
#define cuDriverGetVersion unused_version
#define cuGetProcAddress unused_proc
#define cuGetProcAddress_v2 unused_proc_v2
#ifdef FAKE_LACKS
#define cuDevicePrimaryCtxRelease_v2 unused_release
#endif
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  IF_##need(symbol, result, params)
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
#undef cuInit
#undef cuDriverGetVersion
#undef cuGetProcAddress
#undef cuGetProcAddress_v2

EXPORT CUresult cuInit(unsigned int flags);
EXPORT CUresult cuDriverGetVersion(int *version);

static int setting(const char *name, int otherwise)
{
  const char *value = getenv(name);

  return value == NULL ? otherwise : atoi(value);
}

EXPORT CUresult cuInit(unsigned int flags)
{
  return setting("FAKE_CUINIT", FAKE_ANSWER);
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
  *version = setting("FAKE_CUDA_VERSION", FAKE_VERSION);
  return FAKE_ANSWER;
}
