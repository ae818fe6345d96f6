/* load_library.h -- finds and loads shared libraries that are installed on the
 * system, such as libcuda and libnvrtc. */
#ifndef KILN_LOAD_LIBRARY_H
#define KILN_LOAD_LIBRARY_H

#include "os.h"

/* Calls dlopen(path, RTLD_NOW | RTLD_LOCAL) after a check that the file is
 * complete. The check is needed because the loader maps and touches the
 * segments that the program headers name: a truncated file would end the
 * process with SIGBUS. Returns NULL on failure and writes the reason to `why`.
 */
void *kiln__library_open(const char *path, char why[256]);

/* Returns true if the file is an ELF file that is shorter than its program
 * headers require. `why` then receives an explanation. */
bool kiln__library_truncated(const char *path, char why[256]);

/* Calls `fn` with each path where the system's loader would find the library
 * `soname`, in the loader's order: LD_LIBRARY_PATH, RUNPATH, the built-in
 * folders, /etc/ld.so.cache. Unlike dlopen(soname), the search never uses the
 * current directory, because it skips empty and relative folders. Paths that do
 * not exist are skipped. Stops as soon as `fn` returns true, and then returns
 * true. If memory runs out, the search ends early. */
typedef bool (*kiln__library_fn)(void *user, const char *path);
bool kiln__library_each(const kiln_allocator *a, const char *soname,
                        kiln__library_fn fn, void *user);

/* Lists the folders that the system's loader searches, each followed by a NUL
 * byte. Only absolute folders are listed; *relative (may be NULL) becomes true
 * if relative folders were skipped. `library` is a dlopen handle, or NULL for
 * the file that contains this function. Returns KILN_OK, or KILN_ENOMEM without
 * an error record. */
kiln_status kiln__loader_folders(kiln__buf *out, void *library, bool *relative);

/* Calls `fn` with the path of each library in the loader's cache file `cache`
 * that is built for this machine and has a name beginning with `prefix`. Stops
 * as soon as `fn` returns true, and then returns true. Sets *no_memory if
 * memory ran out. */
bool kiln__loader_cache_each(const kiln_allocator *a, const char *cache,
                             const char *prefix, kiln__library_fn fn,
                             void *user, bool *no_memory);

#endif
