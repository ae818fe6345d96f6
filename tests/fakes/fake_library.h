/* fake_library.h -- loads a fake library and finds a function that only fakes
 * have. */
#ifndef FAKE_LIBRARY_H
#define FAKE_LIBRARY_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the address of the function `name` in the fake at `path`, and loads
 * the library if necessary. Ends the process if the library is no fake. */
static inline void *fake_function(const char *path, const char *name)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *fn = library == NULL ? NULL : dlsym(library, name);

  if (fn == NULL) {
    fprintf(stderr, "%s has no %s: %s\n", path, name, dlerror());
    abort();
  }
  return fn;
}

#endif
