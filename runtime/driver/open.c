/* open.c -- finds libcuda, fills the function table, and initialises the
 * driver.
 *
 * The search order is:
 * - a path given by the caller or by KILN_DRIVER;
 * - a libcuda that the process has already loaded;
 * - the system loader's folders and cache;
 * - well-known folders that the loader's configuration may lack.
 *
 * A stub library for linking is skipped. A driver that fails to initialise is
 * an error. */
#include "driver.h"

#include "../base/load_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  LEAST_DRIVER =
      11020, /* first driver version that has every required function */
  REQUIRED = 1,
  OPTIONAL = 0
};

#define WHAT "libcuda"

static const char no_driver_hint[] =
    "install the NVIDIA driver (in a container, start it with GPU access), or "
    "set KILN_DRIVER to the path of libcuda.so.1";

/* The names of the symbols, one after the other. The table of symbols holds
 * offsets of these names instead of pointers, because each pointer would cost
 * the loader a relocation. */
typedef struct symbol_names {
#define KILN__DRIVER_FN(member, symbol_name, need, since, result, params)      \
  char member[sizeof #symbol_name];
#include "driver_api.def"
#undef KILN__DRIVER_FN
} symbol_names;

static const symbol_names symbol_text = {
#define KILN__DRIVER_FN(member, symbol_name, need, since, result, params)      \
#symbol_name,
#include "driver_api.def"
#undef KILN__DRIVER_FN
};

typedef struct symbol {
  uint16_t name;   /* byte offset of the name in symbol_text */
  uint16_t offset; /* byte offset of the function pointer in kiln__driver */
  uint16_t since;
  bool required;
} symbol;

static const symbol symbols[] = {
#define KILN__DRIVER_FN(member, symbol_name, need, since, result, params)      \
  {offsetof(symbol_names, member), offsetof(kiln__driver, member), since,      \
   (need) == REQUIRED},
#include "driver_api.def"
#undef KILN__DRIVER_FN
};

enum { N_SYMBOLS = sizeof symbols / sizeof symbols[0] };

/* Well-known folders that the loader's configuration may lack. The folder of
 * the Windows Subsystem for Linux comes first, since a Linux distribution's own
 * libcuda cannot work in that system. */
static const char *const folders[] = {
    "/usr/lib/wsl/lib",
#if defined(__x86_64__)
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
#elif defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
#endif
    "/usr/lib64",
    "/usr/lib64/nvidia",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
};

typedef enum outcome {
  ABSENT,   /* the file is missing or not a driver; the search continues */
  UNUSABLE, /* the driver does not work; the search ends with an error record */
  USABLE
} outcome;

static const char *name_of(const symbol *s)
{
  return (const char *)&symbol_text + s->name;
}

static void set_member(kiln__driver *driver, size_t offset, void *fn)
{
  memcpy((char *)driver + offset, &fn, sizeof fn);
}

/* Removes the version suffix of a symbol: "cuMemAlloc_v2" becomes "cuMemAlloc".
 * cuGetProcAddress takes the plain name and chooses the variant by the driver
 * version. */
static void plain_name(char out[64], const char *name)
{
  char *tail;

  kiln__copy_text(out, 64, name);
  tail = strrchr(out, '_');
  if (tail != NULL && tail[1] == 'v')
    *tail = '\0';
}

static void *ask_driver(const kiln__driver *driver, const symbol *s)
{
  char name[64];
  void *fn = NULL;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  CUresult rc = CUDA_ERROR_NOT_FOUND;

  plain_name(name, name_of(s));
  if (driver->getProcAddressV2 != NULL)
    rc = driver->getProcAddressV2(name, &fn, s->since,
                                  CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  else if (driver->getProcAddress != NULL)
    rc = driver->getProcAddress(name, &fn, s->since,
                                CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  return rc == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS ? fn : NULL;
}

/* Fills the function table. Returns the first required symbol that the library
 * lacks, or NULL if it lacks none. */
static const symbol *resolve(kiln__driver *driver)
{
  const symbol *missing = NULL;

  for (size_t i = 0; i < N_SYMBOLS; i++)
    set_member(driver, symbols[i].offset,
               dlsym(driver->library, name_of(&symbols[i])));
  for (size_t i = 0; i < N_SYMBOLS; i++) {
    const symbol *s = &symbols[i];
    void *fn;

    memcpy(&fn, (const char *)driver + s->offset, sizeof fn);
    if (fn != NULL || kiln__starts_with(name_of(s), "cuGetProcAddress"))
      continue;
    fn = ask_driver(driver, s);
    set_member(driver, s->offset, fn);
    if (fn == NULL && s->required && missing == NULL)
      missing = s;
  }
  return missing;
}

static void version_text(char out[32], int version)
{
  kiln__format(out, 32, "%d.%d", version / 1000, version % 1000 / 10);
}

static void library_path(kiln__driver *driver, const char *asked)
{
  void *fn = dlsym(driver->library, "cuInit");
  Dl_info info;

  if (fn == NULL || dladdr(fn, &info) == 0 || info.dli_fname == NULL)
    info.dli_fname = asked;
  kiln__copy_text(driver->path, sizeof driver->path, info.dli_fname);
}

static bool is_stub(const kiln__driver *driver, CUresult rc)
{
  return rc == CUDA_ERROR_STUB_LIBRARY ||
         (rc != CUDA_SUCCESS && strstr(driver->path, "/stubs/") != NULL);
}

/* Returns the hint for a failed cuInit() if it differs from the hint for the
 * same error of later calls. */
static const char *init_hint(CUresult rc)
{
  switch (rc) {
  case CUDA_ERROR_NO_DEVICE:
    return "check `nvidia-smi` and CUDA_VISIBLE_DEVICES; a container must be "
           "started with GPU access";
  case CUDA_ERROR_INVALID_DEVICE:
    return "correct or unset CUDA_VISIBLE_DEVICES";
  case CUDA_ERROR_NOT_INITIALIZED:
  case CUDA_ERROR_OPERATING_SYSTEM:
    return "check that the kernel module is loaded (`nvidia-smi`) and that "
           "this user may open /dev/nvidia*";
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return "this GPU allows no forward compatibility: remove the `compat` "
           "folder from LD_LIBRARY_PATH, or install a newer driver";
  case CUDA_ERROR_UNKNOWN:
    return "run `nvidia-smi`; if that works, reload nvidia_uvm (it breaks "
           "after suspend) or reboot";
  default:
    return kiln_last_error()->hint;
  }
}

static kiln_status init_failed(const kiln__driver *driver, CUresult rc)
{
  const kiln_status st = kiln__cu(driver, rc, "cuInit");

  /* No context exists during cuInit(). An error code that later means a lost
   * context or full device memory therefore has a different cause during
   * cuInit(). */
  return kiln__fail_native(st == KILN_ENODEVICE ? st : KILN_EDRIVER,
                           KILN_SOURCE_DRIVER, rc, "cuInit", init_hint(rc),
                           "%s (%s)", kiln_last_error()->message, driver->path);
}

static outcome check_version(kiln__driver *driver, kiln_status *st)
{
  char has[32], least[32];

  if (driver->driverGetVersion(&driver->version) != CUDA_SUCCESS)
    driver->version = 0;
  if (driver->version == 0 || driver->version >= LEAST_DRIVER)
    return USABLE;
  version_text(has, driver->version);
  version_text(least, LEAST_DRIVER);
  *st = kiln__fail(KILN_ENODRIVER, "install NVIDIA driver 460.27 or newer",
                   "%s is a driver for CUDA %s, and Kiln needs %s",
                   driver->path, has, least);
  return UNUSABLE;
}

static kiln_status missing_symbol(const kiln__driver *driver,
                                  const symbol *missing)
{
  char has[32] = "unknown", least[32];
  int version = 0;

  version_text(least, LEAST_DRIVER);
  if (driver->driverGetVersion != NULL &&
      driver->driverGetVersion(&version) == CUDA_SUCCESS)
    version_text(has, version);
  return kiln__fail(KILN_ENODRIVER,
                    "install NVIDIA driver 460.27 (CUDA 11.2) or newer",
                    "%s (driver for CUDA %s) has no %s; Kiln needs a driver "
                    "for CUDA %s or newer",
                    driver->path, has, name_of(missing), least);
}

/* Resolves the symbols of a library that was just loaded, and initialises the
 * driver. */
static outcome start(kiln__driver *driver, const char *asked, kiln_status *st,
                     char reason[256])
{
  const symbol *missing;
  CUresult rc;

  library_path(driver, asked);
  missing = resolve(driver);
  if (driver->init == NULL) {
    kiln__copy_text(reason, 256, "has no cuInit, so it is no CUDA driver");
    return ABSENT;
  }
  if (missing != NULL) {
    rc = driver->init(0);
    if (is_stub(driver, rc)) {
      kiln__copy_text(reason, 256, "a stub for linking, not a driver");
      return ABSENT;
    }
    *st = missing_symbol(driver, missing);
    return UNUSABLE;
  }
  if (check_version(driver, st) != USABLE)
    return UNUSABLE;
  rc = driver->init(0);
  if (is_stub(driver, rc)) {
    kiln__copy_text(reason, 256, "a stub for linking, not a driver");
    return ABSENT;
  }
  if (rc != CUDA_SUCCESS) {
    *st = init_failed(driver, rc);
    return UNUSABLE;
  }
  if (driver->version == 0 &&
      driver->driverGetVersion(&driver->version) != CUDA_SUCCESS)
    driver->version = LEAST_DRIVER;
  /* Kiln's drop-in libcuda, which contains the CPU device, exports this
   * symbol. */
  driver->ptx_only = dlsym(driver->library, "kiln_cpu_driver") != NULL;
  driver->kiln_version = KILN_VERSION;
  return USABLE;
}

/* Tries one driver library. A name with a slash is a path. A name without a
 * slash is a soname, and matches only a library that the process has already
 * loaded. */
static outcome attempt(kiln__driver *out, const char *how, const char *name,
                       kiln__trail *trail, kiln_status *st)
{
  char reason[256] = "";
  outcome result = ABSENT;

  memset(out, 0, sizeof *out);
  if (name[0] == '/')
    out->library = kiln__library_open(name, reason);
  else
    out->library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (out->library != NULL)
    result = start(out, name, st, reason);
  if (result == USABLE) {
    kiln__trail_add(trail, WHAT, how, out->path, NULL);
    return USABLE;
  }
  if (out->library != NULL || name[0] == '/')
    kiln__trail_add(trail, WHAT, how, name,
                    result == UNUSABLE ? kiln_last_error()->message : reason);
  if (result == ABSENT && out->library != NULL)
    /* close the stub library; otherwise a later search for its soname would
     * find it */
    dlclose(out->library);
  memset(out, 0, sizeof *out);
  return result;
}

/* Opens the driver library at the only path that the caller or the environment
 * allows. */
static kiln_status open_given(kiln__driver *out, const char *how,
                              const char *given, const char *hint,
                              kiln__trail *trail)
{
  char path[PATH_MAX], reason[512];
  kiln_status st = KILN_OK;

  /* The path is made absolute, since the loader would search its folders for a
   * name without '/'. */
  if (realpath(given, path) == NULL) {
    kiln__format(reason, sizeof reason, "%s", strerror(errno));
    kiln__trail_add(trail, WHAT, how, given, reason);
    return kiln__fail(KILN_ENODRIVER, hint, "%s (%s) cannot be used: %s", given,
                      how, reason);
  }
  if (attempt(out, how, path, trail, &st) == ABSENT) {
    kiln__trail_text(trail, WHAT, reason, sizeof reason);
    st = kiln__fail(KILN_ENODRIVER, hint, "%s (%s) cannot be used: tried %s",
                    given, how, reason);
  }
  return st;
}

/* The state of a search for the driver library. */
typedef struct walk {
  kiln__driver *out;
  const char *how;
  kiln__trail *trail;
  kiln_status st;
  outcome result;
} walk;

static bool try_path(void *user, const char *path)
{
  walk *w = user;

  w->result = attempt(w->out, w->how, path, w->trail, &w->st);
  return w->result != ABSENT;
}

static const char *const names[] = {"libcuda.so.1", "libcuda.so"};

/* Searches in the same order as dlopen(name): first among loaded libraries,
 * then in the loader's folders and cache. */
static bool try_loader(walk *w, const kiln_allocator *a, const char *name)
{
  w->how = "loaded in this process";
  if (try_path(w, name))
    return true;
  w->how = "system loader";
  if (kiln__library_each(a, name, try_path, w))
    return true;
  kiln__trail_add(w->trail, WHAT, w->how, name, "not found");
  return false;
}

static bool try_folders(walk *w)
{
  w->how = "usual folder";
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    for (size_t j = 0; j < 2; j++) {
      char path[128];
      struct stat info;

      kiln__format(path, sizeof path, "%s/%s", folders[i], names[j]);
      if (stat(path, &info) == 0) {
        if (try_path(w, path))
          return true;
      } else if (j == 0) {
        kiln__trail_add(w->trail, WHAT, w->how, path, strerror(errno));
      }
    }
  }
  return false;
}

kiln_status kiln__driver_open(kiln__driver *out, const kiln_allocator *a,
                              const char *explicit_path, const char *env_path,
                              kiln__trail *trail)
{
  char text[KILN_ERROR_MESSAGE_SIZE - 64];
  walk w = {.out = out, .trail = trail};

  memset(out, 0, sizeof *out);
  if (explicit_path != NULL)
    return open_given(out, "option driver_path", explicit_path,
                      "correct the path, or leave it NULL", trail);
  if (env_path != NULL)
    return open_given(out, "environment KILN_DRIVER", env_path,
                      "correct or unset KILN_DRIVER", trail);
  if (try_loader(&w, a, names[0]) || try_loader(&w, a, names[1]) ||
      try_folders(&w))
    return w.st;
  kiln__trail_text(trail, WHAT, text, sizeof text);
  return kiln__fail(KILN_ENODRIVER, no_driver_hint,
                    "no NVIDIA driver library: tried %s", text);
}

kiln_status kiln__driver_take(kiln__driver *out, const kiln__driver *given,
                              kiln__trail *trail)
{
  CUresult rc;

  memset(out, 0, sizeof *out);
  if (given->kiln_version != KILN_VERSION)
    return kiln__fail(
        KILN_EINVAL, "build both from one version of Kiln",
        "the driver table was made by Kiln version %d, and this is version %d",
        given->kiln_version, KILN_VERSION);
  *out = *given;
  rc = out->init(0);
  if (rc != CUDA_SUCCESS) {
    const kiln_status st = init_failed(out, rc);

    memset(out, 0, sizeof *out);
    return st;
  }
  if (out->driverGetVersion(&out->version) != CUDA_SUCCESS)
    out->version = LEAST_DRIVER;
  kiln__trail_add(trail, WHAT, "option driver", out->path, NULL);
  return KILN_OK;
}
