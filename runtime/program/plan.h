/* plan.h -- a checked and normalised description: what the compiler gets, and
 * what goes into the key. It is made from the description alone and needs no
 * compiler. */
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include "arena.h"
#include "program.h"

/* Everything lives in the arena or is borrowed from the desc. */
typedef struct kiln__plan {
  const kiln_program_desc *desc;
  kiln__arena arena;
  const char *name; /* file name shown in messages */
  char suffix;
  const char *source; /* LF line ends, no byte order mark */
  size_t source_size;
  kiln__list defines;   /* "NAME=VALUE", sorted */
  kiln__list traits;    /* overrides, "KILN_X=1", sorted */
  kiln__list names;     /* name expressions, sorted */
  kiln__list words;     /* options as the compiler gets them */
  kiln__list canonical; /* the same without -I, one text per option */
  kiln__list folders;   /* of -I, in order */
  kiln__list preludes;  /* of -include, in order */
  bool has_std, has_debug, has_lineinfo, has_fast_math, has_max_registers;
  bool has_fast_compile, has_minimal;

  /* Headers that the text can include; exactly these are given to the compiler.
   */
  kiln__list header_names, header_texts; /* in step */
  kiln__list files;      /* "name", then "size hash": two items per file */
  const char *untracked; /* why the includes cannot be known, or NULL */
  kiln__list unresolved; /* names found nowhere: perhaps the compiler's own */
  kiln__list compiler_files; /* "name", then "size hash" of those that were */
} kiln__plan;

/* Makes a plan. The caller frees it, whatever this returns. KILN_OK,
 * KILN_EINVAL, KILN_ENOTFOUND (builtin), KILN_ENOMEM. */
kiln_status kiln__plan_make(kiln__plan *plan, const kiln_allocator *a,
                            const kiln_program_desc *desc);
/* False if a count of the description comes without its list. */
bool kiln__desc_has_lists(const kiln_program_desc *desc);
/* Checks the description without following its includes. As kiln__plan_make().
 */
kiln_status kiln__plan_check(kiln__plan *plan, const kiln_allocator *a,
                             const kiln_program_desc *desc);
void kiln__plan_free(kiln__plan *plan);

/* Steps of kiln__plan_make. */
kiln_status kiln__plan_options(kiln__plan *plan);
kiln_status kiln__plan_includes(kiln__plan *plan);

/* Finds the unresolved includes (<cuda_fp16.h>, <mma.h>, ...) in the folder of
 * headers that belongs to the NVRTC at `nvrtc`, and all that they include. They
 * count as a part of the compiler: as local fields of the key. Reads nothing if
 * nothing is unresolved. KILN_OK, also if they are not found; KILN_ENOMEM. */
kiln_status kiln__plan_compiler_headers(kiln__plan *plan, const char *nvrtc);

/* The traits that programs see as macros, for `target` on a device with
 * `traits`: features up to the target's, limits of the device. */
enum { KILN__MACROS = 12 };
typedef struct kiln__macro {
  const char *name;
  long value;
} kiln__macro;
void kiln__macros(kiln__macro out[KILN__MACROS], const kiln_traits *traits,
                  const kiln_target *target);
bool kiln__macro_known(const char *name, size_t size);

/* Adds the plan's portable fields. */
void kiln__plan_key(const kiln__plan *plan, kiln__key *key);
/* Adds the local ones. `nvrtc` NULL: none is used. */
void kiln__local_key(const kiln__plan *plan, kiln__key *key,
                     const kiln__nvrtc_id *nvrtc, const kiln_traits *traits,
                     const kiln__image_request *req, int link_version);

/* Whether an NVRTC makes code for exactly this target. */
bool kiln__nvrtc_makes(const kiln__nvrtc_id *id, const kiln_target *target);

/* Chooses how kiln_compile() makes a target: with the newest NVRTC that
 * supports it, or from a pack. Fails as kiln_compile() if nothing can make it.
 */
kiln_status kiln__compile_request(kiln__image_request *req, kiln_traits *traits,
                                  kiln_runtime *rt,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target);

#endif
