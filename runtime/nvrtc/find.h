/* find.h -- the internal interface of nvrtc/: stamps of files (size, time,
 * inode), the search for libraries, the memo (a file with the results of
 * earlier searches), and the loading of libraries. */
#ifndef KILN_NVRTC_FIND_H
#define KILN_NVRTC_FIND_H

#include "nvrtc.h"

#include "../base/hash.h"
#include "../base/load_library.h"

enum { KILN__LEAST_NVRTC = 11020, KILN__PATH_SIZE = 512 };

/* The stamp of a file or folder: the fields of stat() that reveal a change. */
typedef struct kiln__stamp {
  bool exists;
  /* device number of stat(), which is not stored in the memo */
  uint64_t size, inode, device;
  int64_t mtime_ns;
} kiln__stamp;

kiln__stamp kiln__stamp_of(const char *path);
bool kiln__stamp_same(const kiln__stamp *a, const kiln__stamp *b);

/* An NVRTC library that the search found. */
typedef struct kiln__nvrtc_entry {
  kiln__nvrtc_id id;
  kiln__stamp stamp;
  kiln__nvrtc *table; /* function table; NULL until the library is loaded */
  /* True if a caller uses the function table and the builtins library is
   * loaded. */
  bool in_use;
} kiln__nvrtc_entry;

/* ---- Search -------------------------------------------------------------- */

/* The inputs that determine which folders are searched, and the results of the
 * search. */
typedef struct kiln__search {
  const kiln_allocator *alloc;
  const kiln__nvrtc_places *places;
  kiln__trail *trail;
  /* Content of the memo file (results of earlier searches), or "". */
  const char *memo;
  const char *given; /* the only library path to try, or NULL */
  /* name of the option or variable that specified `given`, for messages */
  const char *given_how;
  /* paths of libraries loaded in the process, each with its NUL */
  kiln__buf loaded;
  kiln__buf loader; /* folders of the system's loader, each with its NUL */
  char inputs[33];  /* hash of all inputs of the search, in hexadecimal */

  kiln__buf lines; /* lines of text that the search adds to the memo file */
  kiln__nvrtc_entry *entries;
  size_t n, capacity;
  char why[256]; /* reason why the last candidate library cannot be used */
  /* calendar time at which the search began, in nanoseconds */
  int64_t began_ns;
  /* True if a file changed so recently that its stamp may miss a second change.
   * The result of the search is then not stored. */
  bool fresh;
  bool odd_text; /* true if a path has characters that the memo cannot store */
  bool no_memory;
} kiln__search;

/* Collects the inputs of a search. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__search_init(kiln__search *s, const kiln_allocator *a,
                              const kiln__nvrtc_places *places,
                              kiln__trail *trail);
/* Frees the search and the libraries that it found, unless the caller took the
 * array of libraries. */
void kiln__search_free(kiln__search *s);
/* Searches all folders. Returns KILN_OK, also if no library was found, or
 * KILN_ENOMEM. */
kiln_status kiln__search_run(kiln__search *s);
/* Adds a library to the results of the search. Returns false if memory ran
 * out. */
bool kiln__search_push(kiln__search *s, const kiln__nvrtc_entry *entry);

/* ---- Memo ---------------------------------------------------------------- */

/* Reads the memo file (results of earlier searches). The result is empty if the
 * file is missing, damaged or of another format, or if other users could have
 * written it. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__memo_read(kiln__buf *out, const char *path);
/* Looks up a library in the memo by its path and its stamp (size, time, inode),
 * and fills *out. Returns false if the memo does not contain it. */
bool kiln__memo_library(const char *memo, const char *path,
                        const kiln__stamp *stamp, kiln__nvrtc_id *out);
/* Answers a search from the memo if no file or folder that the recorded search
 * examined has changed. Also adds the recorded steps to the trail, the list of
 * examined paths. */
bool kiln__memo_answer(const char *memo, kiln__search *s);
/* Adds every library that the memo describes to the results of the search, even
 * if the library no longer exists. */
void kiln__memo_remembered(const char *memo, kiln__search *s);
/* Append one line to the text of a memo: the stamp (size, time, inode) of a
 * file, or one examined path. */
void kiln__memo_watch(kiln__buf *out, const char *path,
                      const kiln__stamp *stamp);
void kiln__memo_step(kiln__buf *out, const char *how, const char *where,
                     const char *reason);
/* Rewrites the memo file: first the results of this search, then the older
 * content. The folder must belong to this user, as for the cache (see
 * kiln__folder_open()). A failure leaves the old memo in place and writes no
 * error record. */
void kiln__memo_write(const char *old, const char *path, const kiln__search *s);

/* ---- Libraries ----------------------------------------------------------- */

/* Identifies a library file without loading it, by its GNU build id. Without a
 * build id, the size and a hash of samples of the file are used. Returns false
 * and sets errno if the file cannot be read. */
bool kiln__library_build(const char *path, char out[48]);

/* Loads an NVRTC library, fills its function table and checks that all required
 * functions exist. Returns KILN_OK, KILN_ENONVRTC or KILN_ENOMEM. */
kiln_status kiln__nvrtc_load(const kiln_allocator *a, const char *path,
                             kiln__nvrtc **out);
/* Queries the architectures that a loaded library supports, in ascending order.
 * Returns KILN_OK, KILN_ENONVRTC or KILN_ENOMEM. */
kiln_status kiln__nvrtc_archs(const kiln_allocator *a, const kiln__nvrtc *nvrtc,
                              kiln_nvrtc_info *out);
/* Loads the builtins library, which NVRTC opens when it compiles, so that NVRTC
 * does not search for it. If the builtins library is missing, the first compile
 * fails. If NVRTC would then search the current directory, this function fails
 * instead. Returns KILN_OK, KILN_ENONVRTC or KILN_ENOMEM. */
kiln_status kiln__nvrtc_load_builtins(const kiln_allocator *a,
                                      kiln__nvrtc *nvrtc);

#endif
