/* tune.h -- parameters that the operations run with on a device.
 *
 * They come from a table of measured values inside the library; where a device
 * was tuned (`kiln tune`), from what was measured there, kept in a file beside
 * the cache and read on the first operation; and for GPUs never seen from the
 * table's nearest row. Results do not depend on them, but for the rounding of
 * floating-point sums. */
#ifndef KILN_TUNE_H
#define KILN_TUNE_H

#include <kiln/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an operation can be run with. What items and extra count differs by
 * family; kiln_tuning_family() tells. */
typedef struct kiln_tuning {
  uint16_t block;  /**< threads a block: a multiple of 32, 1,024 at most */
  uint16_t items;  /**< a thread's share, 1 to 256 */
  uint16_t per_sm; /**< resident blocks on an SM that registers are limited for,
                      0: not limited */
  uint16_t extra;  /**< the family's own */
} kiln_tuning;

/** A family of operations that has parameters. */
typedef struct kiln_tuning_family {
  const char *name;  /**< "scan" */
  const char *items; /**< what items counts: "elements a thread" */
  const char *extra; /**< what extra counts, "" if nothing */
  const char
      *builtin; /**< embedded program that takes KILN_BLOCK, KILN_ITEMS */
} kiln_tuning_family;

/** The table of families. @return static array of *n entries. */
KILN_API const kiln_tuning_family *kiln_tuning_families(size_t *n);

/** The parameters worth trying for a family. @return static array of *n entries;
 * NULL for no such family. */
KILN_API const kiln_tuning *kiln_tuning_candidates(const char *family,
                                                   size_t *n);

/**
 * What a family runs with for n elements of `size` bytes (1, 2, 4, 8).
 *
 * @param[out] out       zeroed on failure.
 * @param[out] measured  on this device rather than from the table; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (no such family).
 * Threads: any. Blocks: on a file, the first time.
 */
KILN_API kiln_status kiln_tuning_get(kiln_device *device, const char *family,
                                     unsigned size, uint64_t n,
                                     kiln_tuning *out, bool *measured);

/**
 * Run a family with these parameters from the next call on, for up to 2^log2_n
 * elements of `size` bytes (of set classes that fit, the smallest counts).
 *
 * @retval KILN_OK, KILN_EINVAL (names the bound), KILN_ENOTFOUND, KILN_ENOMEM.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_tuning_set(kiln_device *device, const char *family,
                                     unsigned size, unsigned log2_n,
                                     const kiln_tuning *tuning);

/** Forget what was set and read. @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM. */
KILN_API kiln_status kiln_tuning_reset(kiln_device *device);

/** File of this device beside the cache: one for each GPU model and version of
 * Kiln. @retval KILN_OK, KILN_EINVAL, KILN_EIO (no usable cache folder). */
KILN_API kiln_status kiln_tuning_path(kiln_device *device, char *buf,
                                      size_t size);

/** Write what was set to `path` (NULL: kiln_tuning_path()), whole or not at all.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM. */
KILN_API kiln_status kiln_tuning_save(kiln_device *device, const char *path);

/** Read a file that kiln_tuning_save() wrote and set all of it, or, if a line is
 * wrong, nothing. Files beside the cache are read by themselves.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ECORRUPT (names the line),
 *         KILN_ENOMEM. */
KILN_API kiln_status kiln_tuning_load(kiln_device *device, const char *path);

#ifdef __cplusplus
}
#endif
#endif
