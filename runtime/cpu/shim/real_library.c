/* real_library.c -- see real_library.h. */
#include "real_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_path(const char *path, size_t n)
{
  char copy[4096];
  int flags = RTLD_NOW | RTLD_LOCAL;

  if (n == 0 || n >= sizeof copy)
    return NULL;
  memcpy(copy, path, n);
  copy[n] = '\0';
#if !defined(__SANITIZE_ADDRESS__) && defined(RTLD_DEEPBIND)
  /* The real library must call its own functions, not those of the shim. */
  flags |= RTLD_DEEPBIND;
#endif
  /* dlopen() would call the replacement in preload.c. */
  return dlmopen(LM_ID_BASE, copy, flags);
}

/* Opens the path that the program passed to dlopen. preload.c records it. */
static void *open_asked(const char *own)
{
  const char *(*asked)(const char *own);
  void *found = dlsym(RTLD_DEFAULT, "kiln_exec_asked");
  const char *path;

  memcpy(&asked, &found, sizeof asked);
  path = asked == NULL ? NULL : asked(own);
  return path == NULL ? NULL : open_path(path, strlen(path));
}

/* Returns whether the path of `n` bytes ends with the file name `own`. */
static int has_name(const char *path, size_t n, const char *own)
{
  const size_t length = strlen(own);

  return n > length && path[n - length - 1] == '/' &&
         memcmp(path + n - length, own, length) == 0;
}

/* Opens `own` in the folder of an NVRTC library, or in the folder where wheels
 * for CUDA 12 have it. */
static void *open_neighbour(const char *nvrtc, size_t n, const char *own)
{
  static const char *const folders[] = {"", "../../nvjitlink/lib/"};
  char path[4096];
  void *library = NULL;

  while (n > 0 && nvrtc[n - 1] != '/')
    n--;
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    const int length =
        snprintf(path, sizeof path, "%.*s%s%s", (int)n, nvrtc, folders[i], own);

    if (n > 0 && length > 0 && (size_t)length < sizeof path)
      library = open_path(path, (size_t)length);
    if (library != NULL)
      return library;
  }
  return NULL;
}

enum { BY_NAME, NEIGHBOURS, ANY };

/* Opens the first library in the list that can be opened in this way. */
static void *open_listed(const char *list, const char *own, int way)
{
  void *library = NULL;

  while (*list != '\0' && library == NULL) {
    const size_t n = strcspn(list, ":");

    if (way == NEIGHBOURS)
      library = open_neighbour(list, n, own);
    else if (way == ANY || has_name(list, n, own))
      library = open_path(list, n);
    list += n + (list[n] == ':');
  }
  return library;
}

void *kiln__real_library(const char *own)
{
  const char *list = getenv("KILN_EXEC_NVRTC");
  const int nvrtc = strncmp(own, "libnvrtc.", 9) == 0;
  void *library = open_asked(own);

  if (library == NULL && list != NULL)
    library = open_listed(list, own, nvrtc ? BY_NAME : NEIGHBOURS);
  if (library == NULL && list != NULL && nvrtc)
    library = open_listed(list, own, ANY);
  return library;
}
