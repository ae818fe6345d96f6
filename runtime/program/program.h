/* program.h -- inside of programs and images: what the device folder and the
 * command build on.
 *
 * desc -> choose (which rung, which NVRTC) -> start (cache; on a miss the
 * compile runs on a pool thread) -> finish -> image */
#ifndef KILN_PROGRAM_INTERNAL_H
#define KILN_PROGRAM_INTERNAL_H

#include "../core/runtime.h"

#include <kiln/cache.h>

#include <stdatomic.h>

/* ---- Making images --------------------------------------------------------- */

/* What to make, and by which means. */
typedef struct kiln__image_request {
  kiln_rung rung;     /* EXACT, LOWER, PTX, LINK or PACK */
  kiln_target target; /* what to compile for; the pack's target on PACK */
  int cc;             /* LINK: machine code is assembled for this capability */
  size_t nvrtc;       /* index in kiln__nvrtc_list; unused on PACK */
  const atomic_bool *cancel; /* NULL, or stops the compile once it is true */
} kiln__image_request;

/* Walk the ladder for a GPU and a driver with every NVRTC that was found: the
 * best rung wins, and among equals the newest NVRTC. Maps no NVRTC whose
 * description is known; loads nvJitLink only if no better rung is left.
 *
 * desc             its suffix, and its key for the packs
 * driver           its version (0: compile only) and whether it takes PTX alone
 * KILN_OK (ladder->rung may be REFUSE: make that the caller's
 * KILN_EUNSUPPORTED or KILN_ENONVRTC with kiln__image_refuse), KILN_EINVAL and
 * KILN_ENOTFOUND for a bad desc, KILN_ENOMEM, KILN_EIO. */
kiln_status kiln__image_choose(kiln__image_request *req,
                               kiln_ladder_result *ladder, kiln_runtime *rt,
                               const kiln_program_desc *desc, int cc,
                               bool tegra, const kiln__driver *driver);

/* The failure that a refusing ladder stands for: KILN_ENONVRTC with the places
 * tried if there is no NVRTC, else KILN_EUNSUPPORTED with the ladder's hint. */
kiln_status kiln__image_refuse(kiln_runtime *rt,
                               const kiln_ladder_result *ladder);

/* Everything at once in the calling thread, as kiln_compile(). `traits` are
 * the device's, or the table's where there is none. */
kiln_status kiln__image_make(kiln_image **out, kiln_runtime *rt,
                             const kiln_program_desc *desc,
                             const kiln_traits *traits,
                             const kiln__image_request *req);

/* Only what the cache has: never compiles, never maps NVRTC, starts no thread.
 * KILN_ENOTFOUND (no record written) if it is not there. */
kiln_status kiln__image_lookup(kiln_image **out, kiln_runtime *rt,
                               const kiln_program_desc *desc,
                               const kiln_traits *traits,
                               const kiln__image_request *req);

/* Begin: the cache is asked here; on a miss the compile is queued on rt->pool,
 * so that the caller can make its context meanwhile. desc, and req->cancel,
 * must stay valid until finish; traits and *req are copied.
 * Whatever a start returned KILN_OK for must be finished exactly once. */
typedef struct kiln__pending kiln__pending;
kiln_status kiln__image_start(kiln__pending **out, kiln_runtime *rt,
                              const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req);
/* False while a compile thread is still at it: a context may be made for free
 * until then. */
bool kiln__image_ready(const kiln__pending *pending);
/* Wait, free `pending`, hand over the image or the failure (its record is
 * copied into this thread). Calls desc->on_log in this thread. NULL pending
 * is fine and gives KILN_EINVAL. */
kiln_status kiln__image_finish(kiln__pending *pending, kiln_image **out);

kiln_image *kiln__image_ref(kiln_image *image);
/* For kiln__cache_reject and packs; borrowed. */
kiln__entry *kiln__image_entry(const kiln_image *image);

/* ---- PTX -------------------------------------------------------------------- */

/* Parameter sizes in bytes of entry `lowered`, from the .param lines of PTX
 * text that need not end in a NUL. Fills at most `capacity` of sizes and gives
 * the whole count in *n. False: no such entry, or text that is no PTX. */
bool kiln__image_ptx_params(const char *ptx, size_t size, const char *lowered,
                            uint32_t *sizes, size_t capacity, size_t *n);

/* One .entry of a PTX text; `name` is not terminated. */
typedef struct kiln__image_ptx_entry {
  const char *name;
  size_t name_size;
  size_t n_params;
  int max_threads; /* product of .maxntid or .reqntid, 0 = none */
} kiln__image_ptx_entry;

/* Walk the entries; start with *at = 0. False at the end. */
bool kiln__image_ptx_next(const char *ptx, size_t size, size_t *at,
                          kiln__image_ptx_entry *out);

#endif
