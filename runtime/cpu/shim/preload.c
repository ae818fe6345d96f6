/* preload.c -- for programs under `kiln exec` that open libcuda or NVRTC by a
 * path of their own: they get the ones in KILN_EXEC_DIR.
 *
 * Everything else goes on to the real dlopen by a jump, so that it still sees
 * who called: the caller's RUNPATH counts. The shims themselves use dlmopen, which
 * is not caught here. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *open_fn(const char *path, int flags);

static int is_ours(const char *name, const char *dir, char *path, size_t size)
{
  static const char *const prefixes[] = {"libcuda.so", "libnvrtc.so"};

  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
    const size_t n = strlen(prefixes[i]);

    if (strncmp(name, prefixes[i], n) != 0 ||
        (name[n] != '\0' && name[n] != '.'))
      continue;
    snprintf(path, size, "%s/%s", dir, i == 0 ? "libcuda.so.1" : name);
    if (access(path, R_OK) == 0)
      return 1;
    snprintf(path, size, "%s/libnvrtc.so", dir);
    return i == 1 && access(path, R_OK) == 0;
  }
  return 0;
}

__attribute__((visibility("default"))) void *dlopen(const char *path,
                                                    int flags);
void *dlopen(const char *path, int flags)
{
  static _Thread_local char ours[PATH_MAX];
  const char *dir = getenv("KILN_EXEC_DIR");
  open_fn *next;

  *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  if (path != NULL && dir != NULL) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;

    if (is_ours(name, dir, ours, sizeof ours))
      path = ours;
  }
  return next(path, flags);
}
