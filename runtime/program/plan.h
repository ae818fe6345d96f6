/* plan.h -- a plan is a checked and normalised program description. A plan
 * holds everything that is passed to the compiler and everything that enters
 * the cache key. A plan is made from the description alone and needs no
 * compiler. */
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include "arena.h"
#include "program.h"

/* All data of a plan lives in the arena or is borrowed from the description. */
typedef struct kiln__plan {
  const kiln_program_desc *desc;
  kiln__arena arena;
  const char *name; /* file name shown in messages */
  char suffix;
  /* source text with LF line ends, without a byte order mark */
  const char *source;
  size_t source_size;
  kiln__list defines;   /* "NAME=VALUE" strings, sorted */
  kiln__list traits;    /* trait overrides such as "KILN_X=1", sorted */
  kiln__list names;     /* name expressions, sorted */
  kiln__list words;     /* option strings in the form that the compiler takes */
  kiln__list canonical; /* options without -I, one string per option */
  kiln__list folders;   /* folders of the -I options, in order */
  kiln__list preludes;  /* files of the -include options, in order */
  bool has_std, has_debug, has_lineinfo, has_fast_math, has_max_registers;
  bool has_fast_compile, has_minimal;

  /* The headers that the source can include. Exactly these headers are passed
   * to the compiler. */
  kiln__list header_names, header_texts; /* parallel lists */
  kiln__list files; /* two strings per file: "name", then "size hash" */
  /* reason why the includes cannot be determined, or NULL */
  const char *untracked;
  /* names of headers that were not found, which the compiler may provide */
  kiln__list unresolved;
  /* the compiler's headers: "name", then "size hash" */
  kiln__list compiler_files;
} kiln__plan;

/* Makes a plan. The caller frees the plan, also after a failure. Returns
 * KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (a builtin header) or KILN_ENOMEM. */
kiln_status kiln__plan_make(kiln__plan *plan, const kiln_allocator *a,
                            const kiln_program_desc *desc);
/* Returns false if the description has a non-zero count with a NULL list. */
bool kiln__desc_has_lists(const kiln_program_desc *desc);
/* Checks the description without following its includes. Returns the statuses
 * of kiln__plan_make(). */
kiln_status kiln__plan_check(kiln__plan *plan, const kiln_allocator *a,
                             const kiln_program_desc *desc);
void kiln__plan_free(kiln__plan *plan);

/* The functions that kiln__plan_make() calls, one per step. */
kiln_status kiln__plan_options(kiln__plan *plan);
kiln_status kiln__plan_includes(kiln__plan *plan);

/* Finds the unresolved includes (<cuda_fp16.h>, <mma.h>, ...), and everything
 * they include, in the header folder that belongs to the NVRTC at path `nvrtc`.
 * These headers count as part of the compiler and become local fields of the
 * key. Reads no file if all includes are resolved. Returns KILN_OK, even if the
 * headers are not found, or KILN_ENOMEM. */
kiln_status kiln__plan_compiler_headers(kiln__plan *plan, const char *nvrtc);

/* Returns the traits that programs see as macros, for `target` on a device with
 * `traits`. The features are those of the target; the limits are those of the
 * device. */
enum { KILN__MACROS = 13 };
typedef struct kiln__macro {
  const char *name;
  long value;
} kiln__macro;
void kiln__macros(kiln__macro out[KILN__MACROS], const kiln_traits *traits,
                  const kiln_target *target);
bool kiln__macro_known(const char *name, size_t size);

/* Adds the fields of the plan that describe the program (portable fields) to
 * the key. */
void kiln__plan_key(const kiln__plan *plan, kiln__key *key);
/* Adds the fields that describe the compiler and the target (local fields) to
 * the key. `nvrtc` is NULL if no NVRTC is used. */
void kiln__local_key(const kiln__plan *plan, kiln__key *key,
                     const kiln__nvrtc_id *nvrtc, const kiln_traits *traits,
                     const kiln__image_request *req, int link_version);

/* Returns true if an NVRTC makes code for exactly this target. */
bool kiln__nvrtc_makes(const kiln__nvrtc_id *id, const kiln_target *target);

/* Chooses how kiln_compile() makes the code for a target: with the newest NVRTC
 * that supports the target, or from a pack. Fails like kiln_compile() if
 * neither is possible. */
kiln_status kiln__compile_request(kiln__image_request *req, kiln_traits *traits,
                                  kiln_runtime *rt,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target);

#endif
