/* tune.h -- parameters that the operations run with on a device.
 *
 * They come from a table of measured values inside the library. On a device that was
 * tuned (`kiln tune`) they come from a file beside the cache, which is read on the
 * first operation. A GPU that is not in the table gets the values of the nearest row.
 * Results do not depend on the parameters, except for the rounding of floating-point
 * sums. */
#ifndef KILN_TUNE_H
#define KILN_TUNE_H

#include <kiln/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters of a family. The units of items and extra differ by family; see
 * kiln_tuning_families(). Its size never changes. */
typedef struct kiln_tuning {
  uint16_t block;  /**< threads per block: a multiple of 32, 1,024 at most */
  uint16_t items;  /**< share of a thread, 1 to 256 */
  uint16_t per_sm; /**< resident blocks per SM that registers are limited for;
                      0: not limited */
  uint16_t extra;  /**< the family's own parameter */
} kiln_tuning;

/** A family of operations that has parameters. Its size never changes. */
typedef struct kiln_tuning_family {
  const char *name;  /**< "scan" */
  const char *items; /**< what items counts: "elements per thread" */
  const char *extra; /**< what extra counts, "" if nothing */
  const char
      *builtin; /**< embedded program that takes KILN_BLOCK, KILN_ITEMS */
} kiln_tuning_family;

/** Returns the table of families.
 * @param[out] n  number of entries. @return static array. Threads: any. Blocks:
 * never. */
KILN_API const kiln_tuning_family *kiln_tuning_families(size_t *n);

/** Returns the parameters that are worth trying for a family.
 * @param[out] n  number of entries. @return static array; NULL if there is no such
 * family. Threads: any. Blocks: never. */
KILN_API const kiln_tuning *kiln_tuning_candidates(const char *family,
                                                   size_t *n);

/**
 * Reads the parameters that a family runs with.
 *
 * @param family         name of a family.
 * @param size           bytes per element: 1, 2, 4 or 8.
 * @param n              elements.
 * @param[out] out       zeroed on failure.
 * @param[out] measured  they were measured on this device; false: they are from the
 *                       table. May be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (no such family).
 * Threads: any. Blocks: on the tuning file, the first time.
 */
KILN_API kiln_status kiln_tuning_get(kiln_device *device, const char *family,
                                     unsigned size, uint64_t n,
                                     kiln_tuning *out, bool *measured);

/**
 * Sets the parameters that a family runs with from the next call on, for up to
 * 2^log2_n elements. If several classes that were set fit a call, the smallest one
 * applies.
 *
 * @param family  name of a family.
 * @param size    bytes per element: 1, 2, 4 or 8.
 * @param log2_n  the class's largest number of elements, as a power of two.
 * @param tuning  copied.
 * @retval KILN_OK, KILN_EINVAL (the record names the bound), KILN_ENOTFOUND,
 *         KILN_ENOMEM.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_tuning_set(kiln_device *device, const char *family,
                                     unsigned size, unsigned log2_n,
                                     const kiln_tuning *tuning);

/** Discards what was set and what was read from the tuning file, so that the table
 * applies again.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_tuning_reset(kiln_device *device);

/** Returns the path of this device's tuning file beside the cache. There is one file
 * per GPU model and version of Kiln.
 * @param[out] buf  receives the path, NUL-terminated.
 * @param size      bytes of buf.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO (no usable cache folder). Threads: any.
 * Blocks: on files. */
KILN_API kiln_status kiln_tuning_path(kiln_device *device, char *buf,
                                      size_t size);

/** Writes what was set to a file. Kiln writes a temporary file and renames it.
 * @param path  NULL: kiln_tuning_path().
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM. Threads: any. Blocks: on
 * files. */
KILN_API kiln_status kiln_tuning_save(kiln_device *device, const char *path);

/** Reads a file that kiln_tuning_save() wrote and sets everything in it, or nothing if
 * a line is wrong. The file beside the cache needs no call: the first operation reads
 * it.
 * @param path  file to read.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ECORRUPT (the record names the line),
 *         KILN_ENOMEM. Threads: any. Blocks: on files. */
KILN_API kiln_status kiln_tuning_load(kiln_device *device, const char *path);

#ifdef __cplusplus
}
#endif
#endif
