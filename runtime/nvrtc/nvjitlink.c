/* nvjitlink.c -- uses nvJitLink to assemble PTX to machine code without the
 * driver. This is needed for drivers that are older than the compiler that made
 * the PTX. */
#include "nvrtc.h"

#include "../base/load_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "libnvJitLink"

enum {
  INPUT_CUBIN = 1, /* values of the enumeration nvJitLinkInputType */
  INPUT_PTX = 2,
  LINK_SUCCESS = 0,
  LINK_INVALID_INPUT = 3, /* a value of the enumeration nvJitLinkResult */
  LINK_PTX_COMPILE = 4,
  NEWEST_MAJOR = 20,
  OLDEST_MAJOR = 12,
  MOST_MINOR = 15,
  MAX_LOG = 1 << 20
};

typedef struct nvJitLink *link_handle;

struct kiln__nvjitlink {
  const kiln_allocator *alloc;
  void *library; /* dlopen() handle, which is never closed */
  char path[512];
  int version;
  int (*create)(link_handle *, uint32_t, const char **);
  int (*destroy)(link_handle *);
  int (*add_data)(link_handle, int, const void *, size_t, const char *);
  int (*complete)(link_handle);
  int (*cubin_size)(link_handle, size_t *);
  int (*cubin)(link_handle, void *);
  int (*log_size)(link_handle, size_t *);
  int (*log)(link_handle, char *);
};

/* Names of the nvJitLink functions without the prefix "nvJitLink". */
static const struct {
  const char *name;
  size_t offset;
} functions[] = {
    {"Create", offsetof(kiln__nvjitlink, create)},
    {"Destroy", offsetof(kiln__nvjitlink, destroy)},
    {"AddData", offsetof(kiln__nvjitlink, add_data)},
    {"Complete", offsetof(kiln__nvjitlink, complete)},
    {"GetLinkedCubinSize", offsetof(kiln__nvjitlink, cubin_size)},
    {"GetLinkedCubin", offsetof(kiln__nvjitlink, cubin)},
    {"GetErrorLogSize", offsetof(kiln__nvjitlink, log_size)},
    {"GetErrorLog", offsetof(kiln__nvjitlink, log)},
};

static void *find_symbol(void *library, const char *name, int major, int minor)
{
  char symbol[64];

  kiln__format(symbol, sizeof symbol, "__nvJitLink%s_%d_%d", name, major,
               minor);
  return dlsym(library, symbol);
}

/* The functions of nvJitLink.h are inline and call versioned symbols such as
 * __nvJitLinkCreate_12_3. A library exports these symbols for each minor
 * version of its major version, with equal signatures. The newest exported
 * minor version also serves as the version of libraries that have no
 * nvJitLinkVersion(). */
static bool find_release(void *library, int *major, int *minor)
{
  for (*major = NEWEST_MAJOR; *major >= OLDEST_MAJOR; (*major)--) {
    for (*minor = MOST_MINOR; *minor >= 0; (*minor)--) {
      if (find_symbol(library, "Create", *major, *minor) != NULL)
        return true;
    }
  }
  return false;
}

static void read_version(kiln__nvjitlink *link, int major, int minor)
{
  int (*version)(unsigned *, unsigned *);
  void *fn = dlsym(link->library, "nvJitLinkVersion");
  unsigned own_major, own_minor;

  link->version = major * 1000 + minor * 10;
  if (fn == NULL)
    return;
  memcpy(&version, &fn, sizeof fn);
  if (version(&own_major, &own_minor) == LINK_SUCCESS && own_major < 1000 &&
      own_minor < 100)
    link->version = (int)(own_major * 1000 + own_minor * 10);
}

/* Returns NULL if the nvJitLink library is usable, else the reason why it is
 * not. */
static const char *resolve(kiln__nvjitlink *link)
{
  int major, minor;

  if (!find_release(link->library, &major, &minor))
    return "it is no nvJitLink";
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *fn = find_symbol(link->library, functions[i].name, major, minor);

    if (fn == NULL)
      return "it lacks a function";
    memcpy((char *)link + functions[i].offset, &fn, sizeof fn);
  }
  read_version(link, major, minor);
  return NULL;
}

static bool try_library(kiln__nvjitlink *link, const char *how,
                        const char *path, kiln__trail *trail)
{
  char reason[256];
  const char *why = reason;

  link->library = kiln__library_open(path, reason);
  if (link->library != NULL)
    why = resolve(link);
  kiln__trail_add(trail, WHAT, how, path, why);
  if (why == NULL) {
    kiln__copy_text(link->path, sizeof link->path, path);
    return true;
  }
  if (link->library != NULL)
    dlclose(link->library);
  link->library = NULL;
  return false;
}

typedef struct walk {
  kiln__nvjitlink *link;
  kiln__trail *trail;
} walk;

static bool try_path(void *user, const char *path)
{
  const walk *w = user;

  return try_library(w->link, "system loader", path, w->trail);
}

/* Tries the library files that the system's loader would find for each soname
 * of nvJitLink. */
static bool try_loader(kiln__nvjitlink *link, int newest, kiln__trail *trail)
{
  walk w = {link, trail};

  for (int major = newest; major >= OLDEST_MAJOR; major--) {
    char name[32];

    kiln__format(name, sizeof name, WHAT ".so.%d", major);
    if (kiln__library_each(link->alloc, name, try_path, &w))
      return true;
    /* Libraries of later major versions do not exist yet, so looking for them
     * is not recorded in the list of examined paths. */
    if (major <= 13)
      kiln__trail_add(trail, WHAT, "system loader", name, "not found");
  }
  return false;
}

static bool try_folder(kiln__nvjitlink *link, const char *how,
                       const char *folder, int newest, kiln__trail *trail)
{
  for (int major = newest; major >= OLDEST_MAJOR; major--) {
    char path[PATH_MAX];
    struct stat info;

    if (kiln__format(path, sizeof path, "%s/" WHAT ".so.%d", folder, major) &&
        stat(path, &info) == 0 && try_library(link, how, path, trail))
      return true;
  }
  kiln__trail_add(trail, WHAT, how, folder, "none in this folder");
  return false;
}

/* Searches for nvJitLink in the folder of an NVRTC library, and in the folder
 * of nvJitLink in CUDA 12 wheels. */
static bool try_beside(kiln__nvjitlink *link, const char *nvrtc, int newest,
                       kiln__trail *trail)
{
  const char *slash = nvrtc == NULL ? NULL : strrchr(nvrtc, '/');
  char folder[PATH_MAX];

  if (nvrtc == NULL || nvrtc[0] != '/' || slash == NULL)
    return false;
  kiln__format(folder, sizeof folder, "%.*s", (int)(slash - nvrtc), nvrtc);
  if (try_folder(link, "beside NVRTC", folder, newest, trail))
    return true;
  kiln__format(folder, sizeof folder, "%.*s/../../nvjitlink/lib",
               (int)(slash - nvrtc), nvrtc);
  return try_folder(link, "beside NVRTC", folder, newest, trail);
}

static bool try_toolkits(kiln__nvjitlink *link, bool ignore_env, int newest,
                         kiln__trail *trail)
{
  static const char *const variables[] = {"CUDA_PATH", "CUDA_HOME"};
  char folder[PATH_MAX];

  for (size_t i = 0; i < 2; i++) {
    const char *root = ignore_env ? NULL : kiln__env(variables[i]);

    if (root != NULL && root[0] == '/' &&
        kiln__format(folder, sizeof folder, "%s/lib64", root) &&
        try_folder(link, "CUDA toolkit", folder, newest, trail))
      return true;
  }
  return try_folder(link, "CUDA toolkit", "/usr/local/cuda/lib64", newest,
                    trail);
}

static bool try_given(kiln__nvjitlink *link, const char *how, const char *given,
                      kiln__trail *trail)
{
  char path[PATH_MAX];

  if (realpath(given, path) == NULL) {
    kiln__trail_add(trail, WHAT, how, given, strerror(errno));
    return false;
  }
  return try_library(link, how, path, trail);
}

kiln_status kiln__nvjitlink_open(kiln__nvjitlink **out, const kiln_allocator *a,
                                 const char *explicit_path,
                                 const char *env_path, const char *beside,
                                 bool ignore_env, int newest_major,
                                 kiln__trail *trail)
{
  const int newest = newest_major > 0 && newest_major < NEWEST_MAJOR
                         ? newest_major
                         : NEWEST_MAJOR;
  kiln__nvjitlink *link = kiln__calloc(a, 1, sizeof *link);
  char text[512];
  bool found;

  *out = NULL;
  if (link == NULL)
    return kiln__fail_memory("nvJitLink");
  link->alloc = a;
  if (explicit_path != NULL)
    found = try_given(link, "option nvjitlink_path", explicit_path, trail);
  else if (env_path != NULL)
    found = try_given(link, "environment KILN_NVJITLINK", env_path, trail);
  else
    found = try_beside(link, beside, newest, trail) ||
            try_loader(link, newest, trail) ||
            try_toolkits(link, ignore_env, newest, trail);
  if (found) {
    *out = link;
    return KILN_OK;
  }
  kiln__free(a, link);
  kiln__trail_text(trail, WHAT, text, sizeof text);
  return kiln__fail(KILN_ENOTFOUND,
                    "install nvJitLink, or set KILN_NVJITLINK to its path",
                    "no nvJitLink: tried %s", text);
}

void kiln__nvjitlink_free(kiln__nvjitlink *link)
{
  if (link != NULL)
    kiln__free(link->alloc, link);
}

int kiln__nvjitlink_version(const kiln__nvjitlink *link)
{
  return link->version;
}

/* ---- Assembling ---------------------------------------------------------- */

static void attach_log(const kiln__nvjitlink *link, link_handle handle)
{
  size_t size = 0;
  char *log;

  if (handle == NULL || link->log_size(handle, &size) != LINK_SUCCESS ||
      size <= 1 || size > MAX_LOG)
    return;
  log = kiln__calloc(link->alloc, 1, size + 1);
  if (log != NULL && link->log(handle, log) == LINK_SUCCESS)
    kiln__error_log(log, strlen(log));
  kiln__free(link->alloc, log);
}

static kiln_status link_rc(const kiln__nvjitlink *link, link_handle handle,
                           int rc, const char *call, const char *arch)
{
  kiln_status st;

  if (rc == LINK_SUCCESS)
    return KILN_OK;
  st = kiln__fail_native(
      KILN_ECOMPILE, KILN_SOURCE_NVJITLINK, rc, call,
      rc == LINK_PTX_COMPILE || rc == LINK_INVALID_INPUT
          ? "the log names the line; PTX newer than this nvJitLink needs a "
            "newer one"
          : "this nvJitLink may be older than the GPU: install a newer one",
      "%s failed with %d, for %s, nvJitLink %d.%d", call, rc, arch,
      link->version / 1000, link->version % 1000 / 10);
  attach_log(link, handle);
  return st;
}

/* Completes a link and appends the machine code to `cubin`. */
static kiln_status take_code(const kiln__nvjitlink *link, link_handle handle,
                             const char *arch, kiln__buf *cubin)
{
  kiln_status st = KILN_OK;
  size_t made = 0;

  KILN_TRY(
      link_rc(link, handle, link->complete(handle), "nvJitLinkComplete", arch));
  KILN_TRY(link_rc(link, handle, link->cubin_size(handle, &made),
                   "nvJitLinkGetLinkedCubinSize", arch));
  if (!kiln__buf_reserve(cubin, made))
    KILN_TRY(kiln__fail_memory("machine code"));
  KILN_TRY(link_rc(link, handle, link->cubin(handle, cubin->data + cubin->size),
                   "nvJitLinkGetLinkedCubin", arch));
  cubin->size += made;
  cubin->data[cubin->size] = '\0';

done:
  return st;
}

kiln_status kiln__nvjitlink_assemble(kiln__nvjitlink *link, const char *ptx,
                                     size_t size, const char *arch,
                                     kiln__buf *cubin)
{
  kiln_status st = KILN_OK;
  link_handle handle = NULL;
  char option[64], *text = NULL;
  const char *options[] = {option};

  kiln__format(option, sizeof option, "-arch=%s", arch);
  /* nvJitLink reads PTX as a C string, and the PTX of a cache file may not be
   * NUL-terminated. */
  text = kiln__strndup(link->alloc, ptx, size);
  if (text == NULL)
    KILN_TRY(kiln__fail_memory("PTX"));
  KILN_TRY(link_rc(link, handle, link->create(&handle, 1, options),
                   "nvJitLinkCreate", arch));
  KILN_TRY(link_rc(
      link, handle,
      link->add_data(handle, INPUT_PTX, text, strlen(text) + 1, "kernel.ptx"),
      "nvJitLinkAddData", arch));
  st = take_code(link, handle, arch, cubin);

done:
  if (handle != NULL)
    link->destroy(&handle);
  kiln__free(link->alloc, text);
  return st;
}

kiln_status kiln__nvjitlink_link(kiln__nvjitlink *link,
                                 const void *const code[], const size_t size[],
                                 size_t n, const char *arch, kiln__buf *cubin)
{
  kiln_status st = KILN_OK;
  link_handle handle = NULL;
  char option[64];
  const char *options[] = {option};

  kiln__format(option, sizeof option, "-arch=%s", arch);
  KILN_TRY(link_rc(link, handle, link->create(&handle, 1, options),
                   "nvJitLinkCreate", arch));
  for (size_t i = 0; i < n; i++)
    KILN_TRY(link_rc(
        link, handle,
        link->add_data(handle, INPUT_CUBIN, code[i], size[i], "object.cubin"),
        "nvJitLinkAddData", arch));
  st = take_code(link, handle, arch, cubin);

done:
  if (handle != NULL)
    link->destroy(&handle);
  return st;
}
