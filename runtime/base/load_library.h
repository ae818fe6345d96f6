/* load_library.h -- load shared libraries that somebody else installed. */
#ifndef KILN_LOAD_LIBRARY_H
#define KILN_LOAD_LIBRARY_H

#include "os.h"

/* dlopen(path, RTLD_NOW | RTLD_LOCAL) after a check that the file is whole.
 * The loader maps what the program headers name and touches it: a truncated
 * file ends the process with SIGBUS. NULL on failure, with the reason in
 * `why`. */
void *kiln__library_open(const char *path, char why[256]);

/* True if the path is an ELF file that ends before the last segment that its
 * program headers name; `why` says so then. */
bool kiln__library_truncated(const char *path, char why[256]);

/* Calls `fn` with each path where the system's loader would find the library
 * `soname`, in the loader's order: the folders of LD_LIBRARY_PATH, of RUNPATH
 * and the built-in ones, then /etc/ld.so.cache. Unlike dlopen(soname) it never
 * takes the current directory: empty and relative elements are skipped. Stops
 * when `fn` returns true, and returns that. Files that do not exist are left
 * out. Running out of memory shortens the list. */
typedef bool (*kiln__library_fn)(void *user, const char *path);
bool kiln__library_each(const kiln_allocator *a, const char *soname,
                        kiln__library_fn fn, void *user);

/* The loader's folders, each with its NUL, absolute ones only. *relative (may
 * be NULL) becomes true if there were others. `library` is a dlopen handle, or
 * NULL for the file that holds this function. KILN_OK, KILN_ENOMEM without a
 * record. */
kiln_status kiln__loader_folders(kiln__buf *out, void *library, bool *relative);

/* Calls `fn` with the path of each library in the loader's cache file `cache`
 * whose name begins with `prefix` and that is of this machine. Stops when `fn`
 * returns true, and returns that. *no_memory is set if memory ran out. */
bool kiln__loader_cache_each(const kiln_allocator *a, const char *cache,
                             const char *prefix, kiln__library_fn fn,
                             void *user, bool *no_memory);

#endif
