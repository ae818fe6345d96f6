/* find.h -- discovery inside of nvrtc/: stamps, the search, the memo. */
#ifndef KILN_NVRTC_FIND_H
#define KILN_NVRTC_FIND_H

#include "nvrtc.h"

#include "../base/library.h"

enum { KILN__LEAST_NVRTC = 11020, KILN__PATH_SIZE = 512 };

/* What stat says of a file or folder, as far as a change of it shows. */
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
  bool in_use;        /* handed out; its builtins were seen to */
} kiln__nvrtc_entry;

/* ---- Search ------------------------------------------------------------------ */

/* Everything that decides where a search looks, and what it found. Watches and
 * steps are lines of the memo. */
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
  char why[256];    /* why the last candidate was turned down */
  int64_t began_ns; /* calendar time */
  bool fresh;       /* something changed so lately that a further change
                            might not show: the answer is not remembered */
  bool odd_text;    /* a path that the memo cannot hold */
  bool no_memory;
} kiln__search;

/* Gather the inputs. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__search_init(kiln__search *s, const kiln_allocator *a,
                              const kiln__nvrtc_places *places,
                              kiln__trail *trail);
/* Frees what was found too, unless it was taken out. */
void kiln__search_free(kiln__search *s);
/* Look everywhere. KILN_OK (also if nothing was found), KILN_ENOMEM. */
kiln_status kiln__search_run(kiln__search *s);
/* Add an entry; false if out of memory. */
bool kiln__search_push(kiln__search *s, const kiln__nvrtc_entry *entry);

/* ---- Memo --------------------------------------------------------------------- */

/* Its text, or nothing if it is missing, foreign, damaged or of another
 * format. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__memo_read(kiln__buf *out, const char *path);
/* Is the library known? Fills the entry's id. */
bool kiln__memo_library(const char *memo, const char *path,
                        const kiln__stamp *stamp, kiln__nvrtc_id *out);
/* Answer a search from the memo, if nothing that it looked at has changed.
 * Replays its steps into the trail. */
bool kiln__memo_answer(const char *memo, kiln__search *s);
/* Adds every library that the memo describes to the search's entries, whether
 * it still exists or not. */
void kiln__memo_remembered(const char *memo, kiln__search *s);
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

/* Load and check the table. KILN_OK, KILN_ENONVRTC, KILN_ENOMEM. */
kiln_status kiln__nvrtc_load(const kiln_allocator *a, const char *path,
                             kiln__nvrtc **out);
/* Ask a loaded library for its architectures, sorted.
 * KILN_OK, KILN_ENONVRTC, KILN_ENOMEM. */
kiln_status kiln__nvrtc_archs(const kiln_allocator *a, const kiln__nvrtc *nvrtc,
                              kiln_nvrtc_info *out);
/* Map the builtins that NVRTC will ask for, so that it need not search. Their
 * absence shows when something is compiled, unless NVRTC would then look into
 * the current directory. KILN_OK, KILN_ENONVRTC. */
kiln_status kiln__nvrtc_load_builtins(const kiln_allocator *a,
                                      kiln__nvrtc *nvrtc);

#endif
