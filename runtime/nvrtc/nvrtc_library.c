/* nvrtc_library.c -- loads and checks one NVRTC library, and converts its
 * result codes. */
#include "find.h"

#include <dlfcn.h>
#include <string.h>

enum { REQUIRED = 1, OPTIONAL = 0, MAX_ARCHS = 1024 };

typedef struct symbol {
  const char *name;
  size_t offset; /* byte offset of the function pointer in kiln__nvrtc */
  bool required;
} symbol;

static const symbol symbols[] = {
#define KILN__NVRTC_FN(member, symbol_name, need, since, result, params)       \
  {#symbol_name, offsetof(kiln__nvrtc, member), (need) == REQUIRED},
#include "nvrtc_api.def"
#undef KILN__NVRTC_FN
};

static kiln_status resolve(kiln__nvrtc *nvrtc)
{
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *fn = dlsym(nvrtc->library, symbols[i].name);

    if (fn == NULL && symbols[i].required)
      return kiln__fail(KILN_ENONVRTC, "install NVRTC 11.2 or newer",
                        "%s has no %s: it is no NVRTC, or older than 11.2",
                        nvrtc->path, symbols[i].name);
    memcpy((char *)nvrtc + symbols[i].offset, &fn, sizeof fn);
  }
  return KILN_OK;
}

static kiln_status read_version(kiln__nvrtc *nvrtc)
{
  int major = 0, minor = 0;
  const nvrtcResult rc = nvrtc->getVersion(&major, &minor);

  if (rc != NVRTC_SUCCESS)
    return kiln__fail_native(KILN_ENONVRTC, KILN_SOURCE_NVRTC, rc,
                             "nvrtcVersion", NULL,
                             "%s does not report its version", nvrtc->path);
  nvrtc->version = major * 1000 + minor * 10;
  if (nvrtc->version < KILN__LEAST_NVRTC)
    return kiln__fail(KILN_ENONVRTC, "install NVRTC 11.2 or newer",
                      "%s is NVRTC %d.%d, and Kiln needs 11.2", nvrtc->path,
                      major, minor);
  return KILN_OK;
}

/* Preloads the libraries that NVRTC depends on. NVRTC releases before 13 have a
 * RUNPATH with an empty element, which makes the loader search the current
 * directory for these dependencies. The loader does not search for libraries
 * that are already loaded. */
static void load_needed(void)
{
  static const char *const names[] = {"libpthread.so.0", "librt.so.1",
                                      "libdl.so.2", "libm.so.6"};

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    /* cppcheck-suppress leakReturnValNotUsed; stays loaded */
    dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
}

kiln_status kiln__nvrtc_load(const kiln_allocator *a, const char *path,
                             kiln__nvrtc **out)
{
  kiln_status st = KILN_OK;
  kiln__nvrtc *nvrtc = kiln__calloc(a, 1, sizeof *nvrtc);
  char why[256];

  *out = NULL;
  if (nvrtc == NULL)
    return kiln__fail_memory("NVRTC");
  kiln__copy_text(nvrtc->path, sizeof nvrtc->path, path);
  load_needed();
  nvrtc->library = kiln__library_open(path, why);
  if (nvrtc->library == NULL)
    KILN_TRY(kiln__fail(KILN_ENONVRTC, "install NVRTC again",
                        "%s cannot be loaded: %s", path, why));
  KILN_TRY(resolve(nvrtc));
  KILN_TRY(read_version(nvrtc));
  *out = nvrtc;
  nvrtc = NULL;

done:
  if (nvrtc != NULL && nvrtc->library != NULL)
    /* unloading the library is safe, since only nvrtcVersion() was called */
    dlclose(nvrtc->library);
  kiln__free(a, nvrtc);
  return st;
}

static void add_arch(kiln_nvrtc_info *info, int arch)
{
  const size_t capacity = sizeof info->archs / sizeof info->archs[0];
  size_t at = info->n_archs;

  for (size_t i = 0; i < info->n_archs; i++) {
    if (info->archs[i] == arch)
      return;
  }
  if (arch <= 0 || info->n_archs == capacity)
    return;
  for (; at > 0 && info->archs[at - 1] > arch; at--)
    info->archs[at] = info->archs[at - 1];
  info->archs[at] = arch;
  info->n_archs++;
}

kiln_status kiln__nvrtc_archs(const kiln_allocator *a, const kiln__nvrtc *nvrtc,
                              kiln_nvrtc_info *out)
{
  int n = 0, *archs;
  nvrtcResult rc = nvrtc->getNumSupportedArchs(&n);

  out->n_archs = 0;
  if (rc != NVRTC_SUCCESS || n <= 0 || n > MAX_ARCHS)
    return kiln__fail_native(KILN_ENONVRTC, KILN_SOURCE_NVRTC, rc,
                             "nvrtcGetNumSupportedArchs", "install NVRTC again",
                             "%s does not report its architectures",
                             nvrtc->path);
  archs = kiln__calloc(a, (size_t)n, sizeof archs[0]);
  if (archs == NULL)
    return kiln__fail_memory("NVRTC's architectures");
  rc = nvrtc->getSupportedArchs(archs);
  for (int i = 0; i < n && rc == NVRTC_SUCCESS; i++)
    add_arch(out, archs[i]);
  kiln__free(a, archs);
  if (out->n_archs == 0)
    return kiln__fail_native(KILN_ENONVRTC, KILN_SOURCE_NVRTC, rc,
                             "nvrtcGetSupportedArchs", "install NVRTC again",
                             "%s does not report its architectures",
                             nvrtc->path);
  return KILN_OK;
}

static void builtins_name(const kiln__nvrtc *nvrtc, char out[64])
{
  kiln__format(out, 64, "libnvrtc-builtins.so.%d.%d", nvrtc->version / 1000,
               nvrtc->version % 1000 / 10);
}

static void builtins_hint(const kiln__nvrtc *nvrtc)
{
  const char *slash = strrchr(nvrtc->path, '/');
  const int n = slash == NULL ? 0 : (int)(slash - nvrtc->path);
  char name[64];

  builtins_name(nvrtc, name);
  if (nvrtc->builtins == NULL)
    kiln__error_hint("put %s, of the same release, into %.*s beside %s", name,
                     n, nvrtc->path, slash == NULL ? "it" : slash + 1);
  else
    kiln__error_hint("install NVRTC again: %s in %.*s does not belong to %s",
                     name, n, nvrtc->path, slash == NULL ? "it" : slash + 1);
}

/* Returns true if the loader's search on behalf of `library` includes the
 * current directory. */
static kiln_status searches_here(const kiln_allocator *a, void *library,
                                 bool *here)
{
  kiln__buf folders;
  kiln_status st;

  kiln__buf_init(&folders, a);
  st = kiln__loader_folders(&folders, library, here);
  kiln__buf_free(&folders);
  return st == KILN_OK ? st : kiln__fail_memory("NVRTC's search path");
}

static bool load_whole(void *user, const char *path)
{
  void **library = user;
  char why[256];

  *library = kiln__library_open(path, why);
  return *library != NULL;
}

/* NVRTC opens its builtins library and libcuda by soname when it compiles, and
 * the loader reuses a library of that soname that is already loaded. This
 * function therefore loads both libraries by their full paths. Their folders
 * need not be in a search path, and no search reaches the current directory. */
kiln_status kiln__nvrtc_load_builtins(const kiln_allocator *a,
                                      kiln__nvrtc *nvrtc)
{
  const char *slash = strrchr(nvrtc->path, '/');
  char path[sizeof nvrtc->path + 64], name[64], why[256];
  kiln_status st;
  void *driver;
  bool here;

  builtins_name(nvrtc, name);
  if (slash != NULL) {
    kiln__format(path, sizeof path, "%.*s/%s", (int)(slash - nvrtc->path),
                 nvrtc->path, name);
    nvrtc->builtins = kiln__library_open(path, why);
  }
  if (nvrtc->builtins == NULL)
    nvrtc->builtins = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (nvrtc->builtins == NULL)
    kiln__library_each(a, name, load_whole, &nvrtc->builtins);
  st = searches_here(a, nvrtc->library, &here);
  if (st != KILN_OK || !here)
    return st;
  /* cppcheck-suppress leakReturnValNotUsed; it stays loaded */
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL)
    kiln__library_each(a, "libcuda.so.1", load_whole, &driver);
  if (nvrtc->builtins != NULL)
    return KILN_OK;
  st = kiln__fail(KILN_ENONVRTC, NULL,
                  "%s lacks %s and would search the current directory for it",
                  nvrtc->path, name);
  builtins_hint(nvrtc);
  return st;
}

static kiln_status status_of(nvrtcResult rc)
{
  switch (rc) {
  case NVRTC_SUCCESS:
    return KILN_OK;
  case NVRTC_ERROR_OUT_OF_MEMORY:
    return KILN_ENOMEM;
  case NVRTC_ERROR_INVALID_INPUT:
    return KILN_EINVAL;
  case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
    return KILN_ENONVRTC;
  case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
    return KILN_ENOTFOUND;
  case NVRTC_ERROR_CANCELLED:
    return KILN_ECANCELED;
  case NVRTC_ERROR_INVALID_PROGRAM:
  case NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
  case NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION:
    return KILN_EINTERNAL;
  default:
    return KILN_ECOMPILE;
  }
}

static const char *hint_of(nvrtcResult rc)
{
  switch (rc) {
  case NVRTC_ERROR_OUT_OF_MEMORY:
    return "lower the number of compile threads, or free memory";
  case NVRTC_ERROR_INVALID_OPTION:
    return "this NVRTC does not support an option or an architecture that the "
           "log names; a newer one may";
  case NVRTC_ERROR_COMPILATION:
    return "correct the program at the place that the log names";
  case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
    return "list the name in the program's names before it is compiled";
  case NVRTC_ERROR_INTERNAL_ERROR:
    return "a defect in NVRTC: try another version of it";
  default:
    return NULL;
  }
}

kiln_status kiln__nvrtc_rc(const kiln__nvrtc *nvrtc, nvrtcResult rc,
                           const char *call)
{
  const char *name;
  kiln_status st;

  if (rc == NVRTC_SUCCESS)
    return KILN_OK;
  name = nvrtc->getErrorString(rc);
  st = kiln__fail_native(status_of(rc), KILN_SOURCE_NVRTC, rc, call,
                         hint_of(rc), "%s failed: %s (%d), NVRTC %d.%d", call,
                         name == NULL ? "unknown result" : name, rc,
                         nvrtc->version / 1000, nvrtc->version % 1000 / 10);
  if (rc == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)
    builtins_hint(nvrtc);
  return st;
}
