/* find_nccl.c -- finds and loads NCCL.
 *
 * Order: the caller's path, KILN_NCCL, an NCCL that the process has loaded, the
 * loader, NVIDIA's Python wheels in VIRTUAL_ENV, conda's folder. If a path is
 * given, no other is tried. */
#include "find_nccl.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char soname[] = "libnccl.so.2";

/* Appends to the list of what was tried. */
static void note(char *tried, const char *path, const char *why)
{
  const size_t used = strlen(tried);

  (void)snprintf(tried + used, KILN__TRIED_SIZE - used, "%s%.200s: %.120s",
                 used > 0 ? "; " : "", path, why);
}

static bool fill(kiln__nccl_api *api, void *library)
{
  bool complete = true;
  void *symbol;

#define LOAD(name, parameters)                                                 \
  symbol = dlsym(library, "nccl" #name);                                       \
  memcpy(&api->name, &symbol, sizeof symbol);                                  \
  complete = complete && symbol != NULL;
  KILN__NCCL_FUNCTIONS(LOAD)
  LOAD(GetErrorString, )
#undef LOAD
  return complete;
}

/* Loads one library. NCCL stays loaded, because its threads may run. */
static bool load(kiln__nccl_api *api, const char *path, int flags, char *tried)
{
  void *const library =
      dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
  int version = 0;

  if (library == NULL) {
    const char *const why = dlerror();

    if (flags == 0)
      note(tried, path, why != NULL ? why : "cannot be loaded");
    return false;
  }
  if (!fill(api, library)) {
    note(tried, path, "it lacks functions of NCCL 2.18");
    return false;
  }
  if (api->GetVersion(&version) == KILN__NCCL_SUCCESS &&
      version >= KILN__NCCL_LEAST_VERSION)
    return true;
  note(tried, path, "it is older than NCCL 2.18");
  return false;
}

/* Tries the files that match `pattern` in the folder that a variable names. */
static bool load_below(kiln__nccl_api *api, const char *variable,
                       const char *pattern, char *tried)
{
  const char *const folder = secure_getenv(variable);
  char path[PATH_MAX];
  bool found = false;
  glob_t files;
  int n;

  if (folder == NULL || folder[0] != '/')
    return false;
  n = snprintf(path, sizeof path, "%s/%s", folder, pattern);
  if (n < 0 || (size_t)n >= sizeof path || glob(path, 0, NULL, &files) != 0)
    return false;
  for (size_t i = 0; i < files.gl_pathc && !found; i++)
    found = load(api, files.gl_pathv[i], 0, tried);
  globfree(&files);
  return found;
}

kiln_status kiln__find_nccl(kiln__nccl_api *api, const char *path)
{
  char tried[KILN__TRIED_SIZE] = "";

  if (path == NULL)
    path = secure_getenv("KILN_NCCL");
  if (path != NULL
          ? load(api, path, 0, tried)
          : load(api, soname, RTLD_NOLOAD, tried) ||
                load(api, soname, 0, tried) ||
                load_below(api, "VIRTUAL_ENV",
                           "lib/python3*/site-packages/nvidia/nccl/"
                           "lib/libnccl.so.2",
                           tried) ||
                load_below(api, "CONDA_PREFIX", "lib/libnccl.so.2", tried))
    return KILN_OK;
  return kiln__comm_fail(KILN_ENOTFOUND,
                         "install NCCL 2.18 or later (package libnccl2, wheel "
                         "nvidia-nccl-cu12), or set KILN_NCCL to its path",
                         "no usable NCCL: %s", tried);
}
