/* nvrtc.c -- a shim that replaces NVRTC for programs on the CPU device.
 * A program that requests machine code receives the PTX instead, which NVRTC
 * also keeps for real targets. All other calls go to the real library.
 *
 * KILN_EXEC_NVRTC  paths of real libraries, separated by ':'. The shim opens
 *                  the library with the name that the shim was loaded by, or
 *                  else the first library. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
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

static void *open_path(const char *path, size_t n)
{
  char copy[4096];
  int flags = RTLD_NOW | RTLD_LOCAL;

  if (n == 0 || n >= sizeof copy)
    return NULL;
  memcpy(copy, path, n);
  copy[n] = '\0';
#if !defined(__SANITIZE_ADDRESS__) && defined(RTLD_DEEPBIND)
  /* The real library must call its own functions, not those of this shim. */
  flags |= RTLD_DEEPBIND;
#endif
  /* dlopen() would call the replacement in preload.c. */
  return dlmopen(LM_ID_BASE, copy, flags);
}

/* Returns whether the path ends with the file name of this shim. */
static int has_own_name(const char *path, size_t n)
{
  static const char own[] = "/" KILN__NVRTC_NAME;

  return n >= sizeof own - 1 &&
         memcmp(path + n - (sizeof own - 1), own, sizeof own - 1) == 0;
}

/* Opens the first library in the list that can be opened. If `own_name` is set,
 * only libraries with the file name of this shim are tried. */
static void *open_listed(const char *list, int own_name)
{
  while (*list != '\0') {
    const size_t n = strcspn(list, ":");
    void *library = NULL;

    if (!own_name || has_own_name(list, n))
      library = open_path(list, n);
    if (library != NULL)
      return library;
    list += n + (list[n] == ':');
  }
  return NULL;
}

/* Opens the real NVRTC library. If this fails, every function of the shim
 * reports an error. */
static void open_real(void)
{
  const char *list = getenv("KILN_EXEC_NVRTC");
  void *library = list == NULL ? NULL : open_listed(list, 1);

  if (library == NULL && list != NULL)
    library = open_listed(list, 0);
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

EXPORT int nvrtcGetCUBINSize(void *program, size_t *size);
int nvrtcGetCUBINSize(void *program, size_t *size)
{
  return nvrtcGetPTXSize(program, size);
}

EXPORT int nvrtcGetCUBIN(void *program, char *cubin);
int nvrtcGetCUBIN(void *program, char *cubin)
{
  return cubin == NULL ? INVALID_INPUT : nvrtcGetPTX(program, cubin);
}
