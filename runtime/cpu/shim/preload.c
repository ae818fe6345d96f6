/* preload.c -- replaces dlopen for programs under `kiln exec` that open CUDA's
 * libraries by an explicit path. Such programs receive the libraries in
 * KILN_EXEC_DIR instead. It also replaces _exit, before which the drop-in
 * libcuda.so.1 completes its report.
 *
 * Every other call jumps to the real dlopen, which then sees the original
 * caller and searches the caller's RUNPATH. The shims themselves call dlmopen,
 * which this file does not replace. */
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *open_fn(const char *path, int flags);

/* Returns whether `name` is the file name of the library `library`, with or
 * without a version. */
static int names(const char *name, const char *library)
{
  const size_t n = strlen(library);

  return strncmp(name, library, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

static const char *last_part(const char *path)
{
  const char *slash = strrchr(path, '/');

  return slash == NULL ? path : slash + 1;
}

/* The shims, the newest first in each family. A family has one name up to
 * ".so". `any_version` is set if the newest shim may replace an unknown version,
 * since all versions have the same functions. */
static struct shim {
  const char *name;
  int any_version;
  char *_Atomic asked; /* first path that the program asked for, or NULL */
} shims[] = {{"libcuda.so.1", 1, NULL},       {"libnvrtc.so.13", 1, NULL},
             {"libnvrtc.so.12", 1, NULL},     {"libnvrtc.so.11.2", 1, NULL},
             {"libnvJitLink.so.13", 1, NULL}, {"libnvJitLink.so.12", 1, NULL},
             {"libnvidia-ml.so.1", 1, NULL},  {"libcudart.so.13", 0, NULL},
             {"libcudart.so.12", 0, NULL},    {"libcudart.so.11.0", 0, NULL}};
enum { N_SHIMS = sizeof shims / sizeof shims[0] };

/* Returns the shim for a file name with its version, or NULL. */
static struct shim *with_version(const char *name)
{
  for (size_t i = 0; i < N_SHIMS; i++) {
    if (names(name, shims[i].name))
      return &shims[i];
  }
  return NULL;
}

/* Returns the newest shim of the family of a file name, or NULL. */
static struct shim *newest(const char *name)
{
  for (size_t i = 0; i < N_SHIMS; i++) {
    const size_t stem =
        (size_t)(strstr(shims[i].name, ".so") + 3 - shims[i].name);

    if (strncmp(name, shims[i].name, stem) == 0 &&
        (name[stem] == '\0' || (name[stem] == '.' && shims[i].any_version)))
      return &shims[i];
  }
  return NULL;
}

/* Finds the shim for a path: by the file name, by the versioned name that a
 * symbolic link points to, or else the newest shim of the family. */
static struct shim *find(const char *asked)
{
  char whole[PATH_MAX];
  struct shim *found = with_version(last_part(asked));

  if (found == NULL && newest(last_part(asked)) == NULL)
    return NULL;
  if (found == NULL && strchr(asked, '/') != NULL &&
      realpath(asked, whole) != NULL)
    found = with_version(last_part(whole));
  return found == NULL ? newest(last_part(asked)) : found;
}

/* Records the path of NVIDIA's library, which the shim may need. */
static void record(struct shim *shim, const char *asked)
{
  char *none = NULL, *copy;

  if (shim->asked != NULL || strchr(asked, '/') == NULL ||
      access(asked, R_OK) != 0)
    return;
  copy = strdup(asked);
  if (copy != NULL &&
      !atomic_compare_exchange_strong(&shim->asked, &none, copy))
    free(copy);
}

__attribute__((visibility("default"))) const char *
kiln_exec_asked(const char *own);
const char *kiln_exec_asked(const char *own)
{
  for (size_t i = 0; i < N_SHIMS; i++) {
    if (strcmp(own, shims[i].name) == 0)
      return shims[i].asked;
  }
  return NULL;
}

/* Stores the path of the shim for the library that the program requests.
 * Returns 0 if the program requests another library, or if there is no shim. */
static int is_ours(const char *asked, const char *dir, char *path, size_t size)
{
  struct shim *shim = find(asked);

  if (shim == NULL ||
      snprintf(path, size, "%s/%s", dir, shim->name) >= (int)size ||
      access(path, R_OK) != 0)
    return 0;
  if (strcmp(asked, path) != 0)
    record(shim, asked);
  return 1;
}

__attribute__((visibility("default"))) void *dlopen(const char *path,
                                                    int flags);
void *dlopen(const char *path, int flags)
{
  static _Thread_local char ours[PATH_MAX];
  const char *dir = getenv("KILN_EXEC_DIR");
  open_fn *next;

  *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  if (path != NULL && dir != NULL && is_ours(path, dir, ours, sizeof ours))
    path = ours;
  /* With -O2 this tail call is a jump, so dlopen sees the original caller. */
  return next(path, flags);
}

/* ---- The end of the process ------------------------------------------------ */

static void (*_Atomic before_exit)(void);

/* Sets the function that the process calls before it ends by _exit. The function
 * must not do anything in a child of vfork, which shares the memory. */
__attribute__((visibility("default"))) void
kiln_exec_before_exit(void (*fn)(void));
void kiln_exec_before_exit(void (*fn)(void))
{
  before_exit = fn;
}

static _Noreturn void leave(int status)
{
  void (*const fn)(void) = before_exit;
  void (*next)(int status);

  if (fn != NULL)
    fn();
  *(void **)&next = dlsym(RTLD_NEXT, "_exit");
  next(status);
  for (;;) { /* the real _exit does not return */
  }
}

__attribute__((visibility("default"))) _Noreturn void _exit(int status);
void _exit(int status)
{
  leave(status);
}

__attribute__((visibility("default"))) _Noreturn void _Exit(int status);
void _Exit(int status)
{
  leave(status);
}
