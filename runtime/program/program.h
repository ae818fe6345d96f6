/* program.h -- the internal interface of programs and images for device/,
 * launch/ and ops/.
 *
 * A module load has three steps. The first step chooses the rung of the
 * compatibility ladder (the way to get code for the GPU) and the NVRTC. The
 * second step starts the request: it searches the cache, and on a miss a pool
 * thread compiles while the caller creates its context. The third step waits,
 * and returns the image or the failure. */
#ifndef KILN_PROGRAM_INTERNAL_H
#define KILN_PROGRAM_INTERNAL_H

#include "../core/runtime.h"

#include <kiln/cache.h>

#include <stdatomic.h>

/* ---- Making images ------------------------------------------------------- */

typedef struct kiln__linked kiln__linked;

/* A request for an image: the target, and the method to make the image. */
typedef struct kiln__image_request {
  /* Rung of the compatibility ladder: EXACT, LOWER, PTX, LINK or PACK. */
  kiln_rung rung;
  /* Compile target; if the rung is PACK, the target of the pack's image. */
  kiln_target target;
  /* Compute capability of the machine code, if the rung is LINK. */
  int cc;
  /* Index in kiln__nvrtc_list(); unused if the rung is PACK. */
  size_t nvrtc;
  /* flag that stops the compile once it is true, or NULL */
  const atomic_bool *cancel;
  /* True to make relocatable code, which is not loaded but linked. */
  bool object;
  /* The objects from which the image is linked, or NULL to compile the program
   * as a whole. Both methods must give code with the same results. *linked
   * must stay valid until kiln__image_finish(). */
  const kiln__linked *linked;
} kiln__image_request;

/* One input of a link: relocatable machine code, or PTX that ends in a NUL
 * byte. */
typedef struct kiln__object {
  const void *data;
  size_t size; /* bytes, without the NUL byte of PTX */
  bool ptx;
  const char *name; /* name in messages */
} kiln__object;

/* A program that consists of two objects. The objects are compiled as separate
 * programs, which the cache and the packs hold, and are then linked. The
 * program `body` has the kernels. It calls functions that `texts` defines. */
struct kiln__linked {
  /* Makes the entry: a kiln__make_fn whose first argument is a kiln__build. */
  kiln_status (*make)(void *build, kiln__entry **out);
  /* Loads the linker, if the request needs one that must be loaded. */
  void (*prepare)(void *user, const kiln__image_request *req);
  const kiln_program_desc *body, *texts;
  /* Links the machine code of the objects for `target` and appends it to `out`.
   * `nvrtc` is the version of the compiler that made the objects. Returns
   * KILN_OK, or a status with an error record that has the reason. */
  kiln_status (*link)(void *user, const kiln__object objects[2],
                      const kiln_target *target, int nvrtc, kiln__buf *out);
  void *user;
};

/* Chooses the best rung of the compatibility ladder for a GPU and a driver over
 * all NVRTC libraries; among equal rungs the newest NVRTC wins. Loads no NVRTC
 * that the memo of earlier searches describes, and loads nvJitLink only if no
 * better rung remains. Returns KILN_OK, KILN_EINVAL or KILN_ENOTFOUND for an
 * invalid description, KILN_ENOMEM or KILN_EIO. If ladder->rung is REFUSE after
 * KILN_OK, kiln__image_refuse() gives the failure.
 * @param desc  the program; its target suffix, and its key for the packs, are
 * used
 * @param driver  the driver; its version (0 means compile only), and whether it
 *   takes PTX alone, are used */
kiln_status kiln__image_choose(kiln__image_request *req,
                               kiln_ladder_result *ladder, kiln_runtime *rt,
                               const kiln_program_desc *desc, int cc,
                               bool tegra, const kiln__driver *driver);

/* Converts a refusal of the ladder to a failure. Returns KILN_ENONVRTC with the
 * searched paths if there is no NVRTC, else KILN_EUNSUPPORTED with the ladder's
 * hint. */
kiln_status kiln__image_refuse(kiln_runtime *rt,
                               const kiln_ladder_result *ladder);

/* Performs all three steps of a request in the calling thread, with the
 * contract of kiln_compile(). `traits` are the traits of the device, or of the
 * table if there is no device. */
kiln_status kiln__image_make(kiln_image **out, kiln_runtime *rt,
                             const kiln_program_desc *desc,
                             const kiln_traits *traits,
                             const kiln__image_request *req);

/* Does what kiln_compile() does, but makes relocatable code. */
kiln_status kiln__compile_object(kiln_image **out, kiln_runtime *rt,
                                 const kiln_program_desc *desc,
                                 const kiln_target *target);

/* Looks up an image in the cache only: never compiles, loads no NVRTC and
 * starts no thread. Returns KILN_ENOTFOUND, without an error record, if the
 * image is not in the cache. */
kiln_status kiln__image_lookup(kiln_image **out, kiln_runtime *rt,
                               const kiln_program_desc *desc,
                               const kiln_traits *traits,
                               const kiln__image_request *req);

/* Searches the cache in this thread. On a miss, the compile is queued on
 * rt->pool, so that the caller can create its context meanwhile. `desc` and
 * req->cancel must stay valid until kiln__image_finish(); `traits` and *req are
 * copied. After KILN_OK the caller must call kiln__image_finish() exactly once.
 */
typedef struct kiln__pending kiln__pending;
kiln_status kiln__image_start(kiln__pending **out, kiln_runtime *rt,
                              const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req);
/* Returns false while a compile thread still works on the request. The caller
 * can use that time to create a context. */
bool kiln__image_ready(const kiln__pending *pending);
/* Waits for a request, frees `pending`, and returns the image or the failure,
 * with the error record in this thread. Calls desc->on_log in this thread. A
 * NULL `pending` gives KILN_EINVAL. */
kiln_status kiln__image_finish(kiln__pending *pending, kiln_image **out);

kiln_image *kiln__image_ref(kiln_image *image);
/* Returns the cache entry of an image without a new reference, for
 * kiln__cache_reject() and packs. */
kiln__entry *kiln__image_entry(const kiln_image *image);

/* ---- PTX ----------------------------------------------------------------- */

/* Finds the parameter sizes in bytes of entry `lowered` from the .param lines
 * of a PTX source, which need not be NUL-terminated. Fills at most `capacity`
 * sizes; *n receives the number of parameters. Returns false if there is no
 * such entry or if the text is not PTX. */
bool kiln__image_ptx_params(const char *ptx, size_t size, const char *lowered,
                            uint32_t *sizes, size_t capacity, size_t *n);

/* One kernel (.entry) of a PTX source. `name` is not NUL-terminated. */
typedef struct kiln__image_ptx_entry {
  const char *name;
  size_t name_size;
  size_t n_params;
  /* maximum threads per block: the product of the values of .maxntid or
   * .reqntid, or 0 if neither is present */
  int max_threads;
} kiln__image_ptx_entry;

/* Iterates over the kernels (.entry) of a PTX source. The first call takes *at
 * = 0. Returns false at the end. */
bool kiln__image_ptx_next(const char *ptx, size_t size, size_t *at,
                          kiln__image_ptx_entry *out);

#endif
