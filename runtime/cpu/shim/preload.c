/* preload.c -- replaces dlopen for programs under `kiln exec` that open libcuda
 * or NVRTC by an explicit path. Such programs receive the libraries in
 * KILN_EXEC_DIR instead. It also replaces _exit, before which the drop-in
 * libcuda.so.1 completes its report.
 *
 * Every other call jumps to the real dlopen, which then sees the original
 * caller and searches the caller's RUNPATH. The shims themselves call dlmopen,
 * which this file does not replace. */
#include <dlfcn.h>
#include <limits.h>
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

/* Finds the shim for a file name by dropping components of the version. For
 * example, the shim of libnvrtc.so.13.0.88 is libnvrtc.so.13. */
static int with_version(const char *name, const char *dir, char *path,
                        size_t size)
{
  const size_t bare = strlen(dir) + sizeof "/libnvrtc.so" - 1;

  if (snprintf(path, size, "%s/%s", dir, name) >= (int)size)
    return 0;
  while (access(path, R_OK) != 0) {
    if (strlen(path) <= bare)
      return 0;
    *strrchr(path, '.') = '\0';
  }
  return 1;
}

/* Finds the NVRTC shim for a path. Tries the file name first, then the
 * versioned name that a symbolic link points to, then the newest shim. */
static int nvrtc_shim(const char *asked, const char *dir, char *path,
                      size_t size)
{
  static const char *const newest[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                       "libnvrtc.so.11.2"};
  char whole[PATH_MAX];

  if (with_version(last_part(asked), dir, path, size))
    return 1;
  if (strchr(asked, '/') != NULL && realpath(asked, whole) != NULL &&
      names(last_part(whole), "libnvrtc.so") &&
      with_version(last_part(whole), dir, path, size))
    return 1;
  for (size_t i = 0; i < sizeof newest / sizeof newest[0]; i++) {
    if (with_version(newest[i], dir, path, size))
      return 1;
  }
  return 0;
}

/* Stores the path of the shim for the library that the program requests.
 * Returns 0 if the program requests another library, or if there is no shim. */
static int is_ours(const char *asked, const char *dir, char *path, size_t size)
{
  if (names(last_part(asked), "libnvrtc.so"))
    return nvrtc_shim(asked, dir, path, size);
  return names(last_part(asked), "libcuda.so") &&
         snprintf(path, size, "%s/libcuda.so.1", dir) < (int)size &&
         access(path, R_OK) == 0;
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
