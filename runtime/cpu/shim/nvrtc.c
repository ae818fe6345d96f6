/* nvrtc.c -- a shim that replaces NVRTC for programs on the CPU device.
 * A program that requests machine code receives the PTX instead, which NVRTC
 * also keeps for real targets. All other calls go to the real library.
 *
 * LTO-IR, which the options -dlto and --dlink-time-opt ask for, comes from the
 * real library as well; the shim of nvJitLink (nvjitlink_shim.c) compiles it to PTX. */
#include "../model/linked_image.h"
#include "real_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum { INVALID_INPUT = 3, INTERNAL_ERROR = 11 };

/* Marks the symbols that the version script exports. */
#define EXPORT __attribute__((visibility("default")))

static struct real {
#define KILN__NVRTC_FN(name, params, args) int(*name) params; /* NOLINT */
#include "nvrtc.def"
#undef KILN__NVRTC_FN
  const char *(*nvrtcGetErrorString)(int result);
} real;

static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* Opens the real NVRTC library. If this fails, every function of the shim
 * reports an error. */
static void open_real(void)
{
  void *library = kiln__real_library(KILN__NVRTC_NAME);

  if (library == NULL)
    return;
#define KILN__NVRTC_FN(name, params, args)                                     \
  *(void **)&real.name = dlsym(library, #name);
#include "nvrtc.def"
#undef KILN__NVRTC_FN
  *(void **)&real.nvrtcGetErrorString = dlsym(library, "nvrtcGetErrorString");
}

static const struct real *the_real(void)
{
  pthread_once(&opened, open_real);
  return &real;
}

#define KILN__NVRTC_FN(name, params, args)                                     \
  EXPORT int name params;                                                      \
  int name params                                                              \
  {                                                                            \
    return the_real()->name == NULL ? INTERNAL_ERROR : real.name args;         \
  }
#include "nvrtc.def"
#undef KILN__NVRTC_FN

EXPORT const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result)
{
  return the_real()->nvrtcGetErrorString == NULL
             ? "NVRTC_ERROR_INTERNAL_ERROR: Kiln's shim found no NVRTC library"
             : real.nvrtcGetErrorString(result);
}

/* The CUBIN of a program is a linked image that holds its PTX. A driver accepts
 * machine code of every version of NVRTC, so the PTX alone would not do. */
typedef struct cubin {
  kiln__linked_head head;
  uint64_t text_size; /* without the NUL */
  char text[];
} cubin;

EXPORT int nvrtcGetCUBINSize(void *program, size_t *size);
int nvrtcGetCUBINSize(void *program, size_t *size)
{
  const int rc = nvrtcGetPTXSize(program, size);

  if (rc == 0 && *size > 0)
    *size += offsetof(cubin, text);
  return rc;
}

EXPORT int nvrtcGetCUBIN(void *program, char *bytes);
int nvrtcGetCUBIN(void *program, char *bytes)
{
  cubin c = {.head = {.magic = KILN__LINKED_MAGIC, .n = 1}};
  size_t size = 0;
  int rc = bytes == NULL ? INVALID_INPUT : nvrtcGetCUBINSize(program, &size);

  if (rc != 0 || size == 0)
    return rc;
  c.head.size = size;
  c.text_size = size - offsetof(cubin, text) - 1;
  rc = nvrtcGetPTX(program, bytes + offsetof(cubin, text));
  if (rc == 0)
    memcpy(bytes, &c, offsetof(cubin, text));
  return rc;
}
