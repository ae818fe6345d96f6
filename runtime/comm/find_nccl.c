/* find_nccl.c -- finds and loads NCCL.
 *
 * The places are those of NVRTC: the caller's path, KILN_NCCL, an NCCL that the
 * process has loaded, the loader, the toolkits, NVIDIA's Python wheels, conda's
 * folder. If a path is given, no other is tried. */
#include "find_nccl.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char soname[] = "libnccl.so.2";

/* Appends to the list of what was tried. The messages of dlopen() start with the
 * path, which is left out. */
static void note(char *tried, const char *path, const char *why)
{
  const size_t used = strlen(tried), n = strlen(path);

  if (strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0)
    why += n + 2;
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

/* A place: a folder from the environment, or the root, and files below it. */
typedef struct place {
  const char *variable, *pattern;
} place;
#define WHEEL "nvidia/nccl/lib/libnccl.so.2"
static const place places[] = {
    {"CUDA_HOME", "lib64/libnccl.so.2"},
    {"CUDA_PATH", "lib64/libnccl.so.2"},
    {NULL, "usr/local/cuda/lib64/libnccl.so.2"},
    {NULL, "usr/local/cuda-*/lib64/libnccl.so.2"},
    {"VIRTUAL_ENV", "lib/python3*/site-packages/" WHEEL},
    {"CONDA_PREFIX", "lib/libnccl.so.2"},
    {"CONDA_PREFIX", "lib/python3*/site-packages/" WHEEL},
    {"HOME", ".local/lib/python3*/site-packages/" WHEEL},
    {NULL, "usr/local/lib/python3*/dist-packages/" WHEEL},
    {NULL, "usr/local/lib/python3*/site-packages/" WHEEL}};
enum { PLACES = sizeof places / sizeof *places };

/* Tries the files that match `pattern` in the folder that a variable names. */
static bool load_below(kiln__nccl_api *api, const place *at, char *tried)
{
  const char *const folder =
      at->variable != NULL ? secure_getenv(at->variable) : "/";
  const char *const pattern = at->pattern;
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

static bool load_from_places(kiln__nccl_api *api, char *tried)
{
  for (int i = 0; i < PLACES; i++) {
    if (load_below(api, &places[i], tried))
      return true;
  }
  return false;
}

static bool find(kiln__nccl_api *api, const char *path, char *tried)
{
  if (path == NULL)
    path = secure_getenv("KILN_NCCL");
  if (path != NULL)
    return load(api, path, 0, tried);
  return load(api, soname, RTLD_NOLOAD, tried) || load(api, soname, 0, tried) ||
         load_from_places(api, tried);
}

kiln_status kiln__find_nccl(kiln__nccl_api *api, const char *path)
{
  char tried[KILN__TRIED_SIZE] = "";

  if (find(api, path, tried))
    return KILN_OK;
  return kiln__comm_fail(KILN_ENOTFOUND,
                         "install NCCL 2.18 or later (package libnccl2, wheel "
                         "nvidia-nccl-cu12), or set KILN_NCCL to its path",
                         "no usable NCCL: %s", tried);
}

kiln_status kiln_comm_nccl(kiln_nccl_info *out, const char *path)
{
  kiln__nccl_api api = {.GetVersion = NULL};
  Dl_info info;
  void *symbol;

  if (out == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "out is NULL");
  memset(out, 0, sizeof *out);
  if (!find(&api, path, out->tried))
    return kiln__comm_fail(
        KILN_ENOTFOUND,
        "install NCCL 2.18 or later, or set KILN_NCCL to its "
        "path",
        "no usable NCCL: %.600s", out->tried);
  (void)api.GetVersion(&out->version);
  memcpy(&symbol, &api.GetVersion, sizeof symbol);
  if (dladdr(symbol, &info) != 0 && info.dli_fname != NULL)
    (void)snprintf(out->path, sizeof out->path, "%s", info.dli_fname);
  return KILN_OK;
}
