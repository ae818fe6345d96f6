/* tune.h -- tuning parameters of the operations on a device.
 *
 * The library contains a table of measured parameters. If a device was tuned
 * with `kiln tune`, a file in the cache folder takes precedence over the table;
 * the first operation reads the file. A GPU that is not in the table gets the
 * parameters of the most similar GPU. The parameters do not change results,
 * except for the rounding of floating-point sums.
 *
 * The number of elements n selects the parameters. It is the number of elements
 * of a stencil's array, of the matrices D of a product, and the number of
 * targets of all pairs. For matrix products, the parameters are a tile; a model
 * chooses the tile if none was measured, if the tile suits the shape of the
 * matrices badly, or if the caller gives one. */
#ifndef KILN_TUNE_H
#define KILN_TUNE_H

#include <kiln/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Tuning parameters of a family of operations that share kernels. The meaning
 * of items and extra depends on the family; see kiln_tuning_families(). The
 * size of this struct never changes. */
typedef struct kiln_tuning {
  uint16_t block;  /**< number of threads per block: a multiple of 32, at most
                        1,024. Not used for matrix products */
  uint16_t items;  /**< amount of work per thread, 1 to 256;
                        kiln_tuning_family.items names the unit */
  uint16_t per_sm; /**< number of resident blocks per SM for which the compiler
                        limits the registers; 0 means no register limit */
  uint16_t extra;  /**< additional tuning parameter; kiln_tuning_family.extra
                        explains its meaning */
} kiln_tuning;

/** A family of operations that share kernels and tuning parameters. The size of
 * this struct never changes. */
typedef struct kiln_tuning_family {
  const char *name;  /**< name of the family, e.g. "scan" */
  const char *items; /**< unit of kiln_tuning.items, e.g. "elements per
                          thread" */
  const char *extra; /**< meaning of kiln_tuning.extra; "" if the family does
                          not use it */
  /** Name of the embedded program that the family compiles with the macros
   * KILN_BLOCK and KILN_ITEMS; NULL if the program takes other macros. */
  const char *builtin;
} kiln_tuning_family;

/**
 * Returns the table of all families of operations that have tuning parameters.
 * @param[out] n  receives the number of entries.
 * @return a static array.
 * Thread-safe. Never blocks.
 */
KILN_API const kiln_tuning_family *kiln_tuning_families(size_t *n);

/** Returns the tuning parameters that are worth trying for a family of
 * operations. `kiln tune` measures them.
 * @param[out] n  receives the number of entries.
 * @return a static array, or NULL if there is no such family.
 * Thread-safe. Never blocks. */
KILN_API const kiln_tuning *kiln_tuning_candidates(const char *family,
                                                   size_t *n);

/**
 * Returns the tuning parameters that a family of operations uses on a device.
 *
 * @param family         name of a family.
 * @param size           size of an element in bytes: 1, 2, 4 or 8.
 * @param n              number of elements.
 * @param[out] out       the parameters; zeroed on failure.
 * @param[out] measured  receives true if the parameters were measured on this
 *                       device, and false if they come from the table. May be
 *                       NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (there is no such family).
 * Thread-safe. Blocks only when it reads the tuning file for the first time.
 */
KILN_API kiln_status kiln_tuning_get(kiln_device *device, const char *family,
                                     unsigned size, uint64_t n,
                                     kiln_tuning *out, bool *measured);

/**
 * Sets the tuning parameters that a family of operations uses on a device, from
 * the next call on, for calls with at most 2^log2_n elements. If parameters are
 * set for several size classes that fit a call, those of the smallest class
 * apply.
 *
 * @param family  name of a family.
 * @param size    size of an element in bytes: 1, 2, 4 or 8.
 * @param log2_n  largest number of elements in the size class, as a base-2
 *                logarithm.
 * @param tuning  the parameters; copied. NULL discards those of this size and
 *                size class.
 * @retval KILN_OK, KILN_EINVAL (the error record names the violated bound),
 *         KILN_ENOTFOUND, KILN_ENOMEM.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_tuning_set(kiln_device *device, const char *family,
                                     unsigned size, unsigned log2_n,
                                     const kiln_tuning *tuning);

/** Discards all tuning parameters of a device that were set or read from a
 * file, so that the library's table of measured parameters applies again.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_tuning_reset(kiln_device *device);

/** Returns the path of the tuning file of a device. The file is in the cache
 * folder, one per GPU model and version of Kiln.
 * @param[out] buf  receives the path, NUL-terminated.
 * @param size      size of buf in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO (the cache folder is not usable).
 * Thread-safe. Blocks while it accesses files. */
KILN_API kiln_status kiln_tuning_path(kiln_device *device, char *buf,
                                      size_t size);

/** Writes to a file all tuning parameters of a device that were set. Kiln
 * writes a temporary file and renames it.
 * @param path  path of the file to write or replace; NULL selects
 *              kiln_tuning_path().
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM.
 * Thread-safe. Blocks while it accesses files. */
KILN_API kiln_status kiln_tuning_save(kiln_device *device, const char *path);

/** Reads a file that kiln_tuning_save() wrote, and sets all tuning parameters
 * in the file. If any line is invalid, the call sets nothing. The tuning file
 * in the cache folder need not be loaded, because the first operation reads it.
 * @param path  path of the file to read.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ECORRUPT (the error record names
 *         the invalid line), KILN_ENOMEM.
 * Thread-safe. Blocks while it accesses files. */
KILN_API kiln_status kiln_tuning_load(kiln_device *device, const char *path);

#ifdef __cplusplus
}
#endif
#endif
