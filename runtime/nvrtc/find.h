/* find.h -- internal interface of nvrtc/: file stamps, the search, the memo,
 * loading. / */
#ifndef KILN_NVRTC_FIND_H
#define KILN_NVRTC_FIND_H

#include "nvrtc.h"

#include "../base/load_library.h"

enum { KILN__LEAST_NVRTC = 11020, KILN__PATH_SIZE = 512 };

/* The fields of stat() that show a change of a file or folder. */
typedef struct kiln__stamp {
  bool exists;
  uint64_t size, inode, device; /* the device is not kept in the memo */
  int64_t mtime_ns;
} kiln__stamp;

kiln__stamp kiln__stamp_of(const char *path);
bool kiln__stamp_same(const kiln__stamp *a, const kiln__stamp *b);

/* A library that was found. */
typedef struct kiln__nvrtc_entry {
  kiln__nvrtc_id id;
  kiln__stamp stamp;
  kiln__nvrtc *table; /* NULL until it is loaded */
  bool in_use;        /* a caller has the table; its builtins are loaded */
} kiln__nvrtc_entry;

/* ---- Search ------------------------------------------------------------------ */

/* The inputs that decide where a search looks, and what it found. */
typedef struct kiln__search {
  const kiln_allocator *alloc;
  const kiln__nvrtc_places *places;
  kiln__trail *trail;
  const char *memo;      /* text of the memo, "" if there is none */
  const char *given;     /* the only path to try, or NULL */
  const char *given_how; /* who gave it */
  kiln__buf loaded;      /* paths in the process, each with its NUL */
  kiln__buf loader;      /* folders of the system's loader, likewise */
  char inputs[33];       /* hash of all that, hex */

  kiln__buf lines; /* watch and step lines */
  kiln__nvrtc_entry *entries;
  size_t n, capacity;
  char why[256];    /* why the last candidate cannot be used */
  int64_t began_ns; /* calendar time */
  bool fresh;       /* a file changed so recently that a second change might
                            not be noticed: the answer is not remembered */
  bool odd_text;    /* a path that the memo cannot hold */
  bool no_memory;
} kiln__search;

/* Collects the inputs. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__search_init(kiln__search *s, const kiln_allocator *a,
                              const kiln__nvrtc_places *places,
                              kiln__trail *trail);
/* Also frees the entries, unless the caller took them out. */
void kiln__search_free(kiln__search *s);
/* Looks at every place. KILN_OK (also if nothing was found), KILN_ENOMEM. */
kiln_status kiln__search_run(kiln__search *s);
/* Adds an entry; false if out of memory. */
bool kiln__search_push(kiln__search *s, const kiln__nvrtc_entry *entry);

/* ---- Memo --------------------------------------------------------------------- */

/* Reads the memo's text; an empty text if it is missing, damaged, of another
 * format, or if others could have written it. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__memo_read(kiln__buf *out, const char *path);
/* Looks up a library by path and stamp. False if it is unknown; else fills
 * *out. */
bool kiln__memo_library(const char *memo, const char *path,
                        const kiln__stamp *stamp, kiln__nvrtc_id *out);
/* Answers a search from the memo if nothing that the earlier search looked at
 * has changed. Adds its steps to the trail. */
bool kiln__memo_answer(const char *memo, kiln__search *s);
/* Adds every library that the memo describes to the search's entries, whether
 * it still exists or not. */
void kiln__memo_remembered(const char *memo, kiln__search *s);
/* Append a line to the text of a memo: a stamp, a step of the trail. */
void kiln__memo_watch(kiln__buf *out, const char *path,
                      const kiln__stamp *stamp);
void kiln__memo_step(kiln__buf *out, const char *how, const char *where,
                     const char *reason);
/* Writes the memo anew: first what the search found, then what was known. The
 * folder must be this user's, as the cache's (kiln__folder_open()). Failure
 * leaves things as they are and writes no error record. */
void kiln__memo_write(const char *old, const char *path, const kiln__search *s);

/* ---- Libraries ----------------------------------------------------------------- */

/* Identity of a library file without loading it: its GNU build id, else its
 * size and a hash over pieces of it. False with errno if it cannot be read. */
bool kiln__library_build(const char *path, char out[48]);

/* Loads a library and fills and checks its table. KILN_OK, KILN_ENONVRTC,
 * KILN_ENOMEM. */
kiln_status kiln__nvrtc_load(const kiln_allocator *a, const char *path,
                             kiln__nvrtc **out);
/* Asks a loaded library for its architectures, sorted. KILN_OK, KILN_ENONVRTC,
 * KILN_ENOMEM. */
kiln_status kiln__nvrtc_archs(const kiln_allocator *a, const kiln__nvrtc *nvrtc,
                              kiln_nvrtc_info *out);
/* Loads the builtins library that NVRTC opens when it compiles, so that NVRTC
 * does not search for it. If it is missing, the first compile fails. It is an
 * error here if NVRTC would then search the current directory. KILN_OK,
 * KILN_ENONVRTC, KILN_ENOMEM. */
kiln_status kiln__nvrtc_load_builtins(const kiln_allocator *a,
                                      kiln__nvrtc *nvrtc);

#endif
