/* nvrtc.h -- finds NVRTC libraries, describes them without loading them, and
 * loads a library on first use. */
#ifndef KILN_NVRTC_H
#define KILN_NVRTC_H

#include "../base/base.h"

/* Result codes of NVRTC. A source file cannot include both this header and
 * NVIDIA's nvrtc.h. */
enum {
#define KILN__NVRTC_RESULT(name, value) name = (value),
#include "nvrtc_constants.def"
#undef KILN__NVRTC_RESULT
};

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

/* The function table of a loaded NVRTC library. The pointer of an optional
 * function is NULL if the library lacks the function. */
typedef struct kiln__nvrtc {
#define KILN__NVRTC_FN(name, symbol, need, since, result, params)              \
  result(*name) params; /* NOLINT: no expressions */
#include "nvrtc_api.def"
#undef KILN__NVRTC_FN
  void *library; /* dlopen() handle, which is never closed */
  /* handle of libnvrtc-builtins from the same folder, or NULL */
  void *builtins;
  char path[512];
  int version; /* NVRTC version, 13000 = 13.0 */
} kiln__nvrtc;

/* The description of an NVRTC library, available without loading the library.
 */
typedef struct kiln__nvrtc_id {
  kiln_nvrtc_info info;
  char build[48]; /* build id of the library; part of every cache key */
  uint64_t size;
  int64_t mtime_ns;
} kiln__nvrtc_id;

/* The locations that the search for NVRTC examines. All strings are borrowed
 * during the call. */
typedef struct kiln__nvrtc_places {
  const char *explicit_path; /* the only library path to try, or NULL */
  /* the only library path to try if explicit_path is NULL, or NULL */
  const char *env_path;
  const char *const *dirs; /* library folders of the caller, searched first */
  size_t n_dirs;
  /* true: ignore CUDA_PATH, VIRTUAL_ENV and similar variables */
  bool ignore_env;
  /* Absolute path of the memo file, which stores results of searches, or
   * NULL. */
  const char *memo_path;
  /* For tests: a folder that replaces "/" in well-known paths and disables the
   * search by the system's loader. NULL otherwise. */
  const char *root;
} kiln__nvrtc_places;

typedef struct kiln__nvrtc_set kiln__nvrtc_set;

/* Copies the search settings without searching. Returns KILN_OK or KILN_ENOMEM.
 */
kiln_status kiln__nvrtc_set_create(kiln__nvrtc_set **out,
                                   const kiln_allocator *a,
                                   const kiln__nvrtc_places *places,
                                   kiln__trail *trail, const kiln__log *log);
void kiln__nvrtc_set_free(kiln__nvrtc_set *set);

/* Lists all NVRTC libraries, newest first. The array lives as long as the set.
 * The first call searches: it loads the libraries that the memo file does not
 * describe, and updates the memo file. Returns KILN_OK, KILN_ENONVRTC (the
 * error record names the examined paths and the next step) or KILN_ENOMEM.
 * Thread-safe. */
kiln_status kiln__nvrtc_list(kiln__nvrtc_set *set, const kiln__nvrtc_id **out,
                             size_t *n);

/* Works like kiln__nvrtc_list(). If no library is found, but the memo file
 * describes libraries from earlier runs, those libraries are listed and *gone
 * becomes true. The keys of such libraries still find entries in the cache, but
 * kiln__nvrtc_use() fails for them with KILN_ENONVRTC. Both functions return
 * KILN_EFORKED if another thread of the parent process was searching at the
 * fork. */
kiln_status kiln__nvrtc_known(kiln__nvrtc_set *set, const kiln__nvrtc_id **out,
                              size_t *n, bool *gone);

/* Returns the function table of library i of the list, and loads the library if
 * necessary. Returns KILN_OK, KILN_ENONVRTC or KILN_ENOMEM. Thread-safe. */
kiln_status kiln__nvrtc_use(kiln__nvrtc_set *set, size_t i,
                            const kiln__nvrtc **out);

/* Converts an nvrtcResult to a status and an error record. A compile error
 * gives KILN_ECOMPILE. A missing builtins library (result 7) gets its own hint.
 */
kiln_status kiln__nvrtc_rc(const kiln__nvrtc *nvrtc, nvrtcResult rc,
                           const char *call);

/* The nvJitLink library, which assembles PTX to CUBIN for drivers that are
 * older than the compiler. */
typedef struct kiln__nvjitlink kiln__nvjitlink;

/* Finds and loads nvJitLink. Returns KILN_OK, KILN_ENOTFOUND or KILN_ENOMEM.
 * @param beside  path of an NVRTC library; the folder of that library is also
 *   searched
 * @param newest_major  newest useful major version of CUDA, since the driver
 *   loads no machine code of a later major version; 0 means any. An explicitly
 *   given path is used regardless of its version. */
kiln_status kiln__nvjitlink_open(kiln__nvjitlink **out, const kiln_allocator *a,
                                 const char *explicit_path,
                                 const char *env_path, const char *beside,
                                 bool ignore_env, int newest_major,
                                 kiln__trail *trail);
void kiln__nvjitlink_free(kiln__nvjitlink *link);
/* Returns the version of nvJitLink, 12080 = 12.8. */
int kiln__nvjitlink_version(const kiln__nvjitlink *link);
/* Appends machine code for `arch` (such as "sm_90") to `cubin`. Returns
 * KILN_OK, KILN_ECOMPILE (the record has nvJitLink's log) or KILN_ENOMEM. */
kiln_status kiln__nvjitlink_assemble(kiln__nvjitlink *link, const char *ptx,
                                     size_t size, const char *arch,
                                     kiln__buf *cubin);
/* Links relocatable machine code to code that can be loaded. Appends the result
 * to `cubin`. Returns the statuses of kiln__nvjitlink_assemble(). */
kiln_status kiln__nvjitlink_link(kiln__nvjitlink *link,
                                 const void *const code[], const size_t size[],
                                 size_t n, const char *arch, kiln__buf *cubin);

#endif
