/* program.h -- internal interface of programs and images, for device/, launch/
 * and ops/.
 *
 * A module load runs in steps: choose (which rung, which NVRTC), start (ask the
 * cache; on a miss the compile runs on a pool thread, while the caller makes
 * its context), finish (wait; the image or the failure). */
#ifndef KILN_PROGRAM_INTERNAL_H
#define KILN_PROGRAM_INTERNAL_H

#include "../core/runtime.h"

#include <kiln/cache.h>

#include <stdatomic.h>

/* ---- Making images --------------------------------------------------------- */

/* What to make, and how. */
typedef struct kiln__image_request {
  kiln_rung rung;     /* EXACT, LOWER, PTX, LINK or PACK */
  kiln_target target; /* what to compile for; the pack's target on PACK */
  int cc;             /* LINK: machine code is assembled for this capability */
  size_t nvrtc;       /* index in kiln__nvrtc_list; unused on PACK */
  const atomic_bool *cancel; /* NULL, or stops the compile once it is true */
} kiln__image_request;

/* Walks the ladder for a GPU and a driver with every NVRTC: the best rung wins,
 * and among equals the newest NVRTC. Loads no NVRTC that the memo describes,
 * and nvJitLink only if no better rung is left.
 *
 * desc             its suffix, and its key for the packs driver           its
 * version (0: compile only) and whether it takes PTX alone
 * KILN_OK (ladder->rung may be REFUSE: then kiln__image_refuse() gives the
 * failure), KILN_EINVAL and KILN_ENOTFOUND for a bad description, KILN_ENOMEM,
 * KILN_EIO. */
kiln_status kiln__image_choose(kiln__image_request *req,
                               kiln_ladder_result *ladder, kiln_runtime *rt,
                               const kiln_program_desc *desc, int cc,
                               bool tegra, const kiln__driver *driver);

/* Turns a refusal of the ladder into a failure: KILN_ENONVRTC with the places
 * tried if there is no NVRTC, else KILN_EUNSUPPORTED with the ladder's hint. */
kiln_status kiln__image_refuse(kiln_runtime *rt,
                               const kiln_ladder_result *ladder);

/* All steps in the calling thread, as kiln_compile(). `traits` are the
 * device's, or those of the table where there is no device. */
kiln_status kiln__image_make(kiln_image **out, kiln_runtime *rt,
                             const kiln_program_desc *desc,
                             const kiln_traits *traits,
                             const kiln__image_request *req);

/* Asks the cache only: never compiles, loads no NVRTC, starts no thread.
 * KILN_ENOTFOUND, without an error record, if the image is not there. */
kiln_status kiln__image_lookup(kiln_image **out, kiln_runtime *rt,
                               const kiln_program_desc *desc,
                               const kiln_traits *traits,
                               const kiln__image_request *req);

/* Asks the cache in this thread; on a miss the compile is queued on rt->pool,
 * so that the caller can make its context meanwhile. desc and req->cancel must
 * stay valid until finish; traits and *req are copied. After KILN_OK the caller
 * calls finish exactly once. */
typedef struct kiln__pending kiln__pending;
kiln_status kiln__image_start(kiln__pending **out, kiln_runtime *rt,
                              const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req);
/* False while a compile thread works on it: until then the caller has time to
 * make a context. */
bool kiln__image_ready(const kiln__pending *pending);
/* Waits, frees `pending`, and returns the image or the failure, with its record
 * in this thread. Calls desc->on_log in this thread. A NULL pending gives
 * KILN_EINVAL. */
kiln_status kiln__image_finish(kiln__pending *pending, kiln_image **out);

kiln_image *kiln__image_ref(kiln_image *image);
/* The entry, borrowed: for kiln__cache_reject() and packs. */
kiln__entry *kiln__image_entry(const kiln_image *image);

/* ---- PTX -------------------------------------------------------------------- */

/* The sizes in bytes of the parameters of entry `lowered`, from the .param
 * lines of a PTX text that need not end in a NUL. Fills at most `capacity`
 * sizes; *n receives the whole count. False: there is no such entry, or the
 * text is no PTX. */
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
