/* nvrtc.h -- find NVRTC libraries, describe them without loading them, load
 * them on use. */
#ifndef KILN_NVRTC_H
#define KILN_NVRTC_H

#include "../base/base.h"

/* Result codes. One file cannot include this and NVIDIA's nvrtc.h. */
enum {
#define KILN__NVRTC_RESULT(name, value) name = (value),
#include "nvrtc_constants.def"
#undef KILN__NVRTC_RESULT
};

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

/* A loaded NVRTC as a table; NULL where an optional entry is missing. */
typedef struct kiln__nvrtc {
#define KILN__NVRTC_FN(name, symbol, need, since, result, params)              \
  result(*name) params; /* NOLINT: no expressions */
#include "nvrtc_api.def"
#undef KILN__NVRTC_FN
  void *library;  /* dlopen handle; never closed */
  void *builtins; /* libnvrtc-builtins from the same folder, or NULL */
  char path[512];
  int version; /* 13000 = 13.0 */
} kiln__nvrtc;

/* The description of a library, known without loading it. */
typedef struct kiln__nvrtc_id {
  kiln_nvrtc_info info;
  char build[48]; /* build identity: part of every cache key */
  uint64_t size;
  int64_t mtime_ns;
} kiln__nvrtc_id;

/* Where to look. All strings are borrowed for the call. */
typedef struct kiln__nvrtc_places {
  const char *explicit_path; /* the only place to try, or NULL */
  const char *env_path;      /* the only place to try, or NULL */
  const char *const *dirs;   /* caller's folders, first */
  size_t n_dirs;
  bool ignore_env;       /* no CUDA_PATH, VIRTUAL_ENV, ... */
  const char *memo_path; /* absolute path of the memo, or NULL */
  const char *root; /* for tests: replaces "/" in well-known places, and the
                            loader's search is skipped; NULL: none */
} kiln__nvrtc_places;

typedef struct kiln__nvrtc_set kiln__nvrtc_set;

/* Copies the places; looks at nothing yet. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__nvrtc_set_create(kiln__nvrtc_set **out,
                                   const kiln_allocator *a,
                                   const kiln__nvrtc_places *places,
                                   kiln__trail *trail, const kiln__log *log);
void kiln__nvrtc_set_free(kiln__nvrtc_set *set);

/* All libraries, newest first; the array lives as long as the set. The first
 * call searches: it loads libraries that the memo does not describe, and
 * updates the memo. Any thread.
 * KILN_OK, KILN_ENONVRTC (trail and next step in the record), KILN_ENOMEM. */
kiln_status kiln__nvrtc_list(kiln__nvrtc_set *set, const kiln__nvrtc_id **out,
                             size_t *n);

/* As kiln__nvrtc_list(). If nothing was found, but the memo describes libraries
 * that were there once, those are listed and *gone becomes true: their keys
 * still find what is in the cache. kiln__nvrtc_use() fails for them with
 * KILN_ENONVRTC. Status as above, and KILN_EFORKED for both: another thread of
 * the parent process was searching at the fork. */
kiln_status kiln__nvrtc_known(kiln__nvrtc_set *set, const kiln__nvrtc_id **out,
                              size_t *n, bool *gone);

/* The table of entry i, which is loaded if it was not. Any thread.
 * KILN_OK, KILN_ENONVRTC, KILN_ENOMEM. */
kiln_status kiln__nvrtc_use(kiln__nvrtc_set *set, size_t i,
                            const kiln__nvrtc **out);

/* Turns an nvrtcResult into a status and an error record; KILN_ECOMPILE for a
 * compile error. Missing builtins (result 7) get a next step of their own. */
kiln_status kiln__nvrtc_rc(const kiln__nvrtc *nvrtc, nvrtcResult rc,
                           const char *call);

/* nvJitLink: PTX to CUBIN for drivers older than the compiler. */
typedef struct kiln__nvjitlink kiln__nvjitlink;

/* Finds and loads nvJitLink.
 *
 * newest_major   of CUDA that is useful, since the driver loads no machine code of
 *                a later major; 0: any. A given path is used whatever its major.
 * KILN_OK, KILN_ENOTFOUND, KILN_ENOMEM. */
kiln_status kiln__nvjitlink_open(kiln__nvjitlink **out, const kiln_allocator *a,
                                 const char *explicit_path,
                                 const char *env_path,
                                 const char *beside, /* an NVRTC's path */
                                 bool ignore_env, int newest_major,
                                 kiln__trail *trail);
void kiln__nvjitlink_free(kiln__nvjitlink *link);
int kiln__nvjitlink_version(const kiln__nvjitlink *link); /* 12080 = 12.8 */
/* Appends machine code for `arch` ("sm_90") to `cubin`. KILN_OK, KILN_ECOMPILE
 * (the record has nvJitLink's log), KILN_ENOMEM. */
kiln_status kiln__nvjitlink_assemble(kiln__nvjitlink *link, const char *ptx,
                                     size_t size, const char *arch,
                                     kiln__buf *cubin);

#endif
