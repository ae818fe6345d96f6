/* cache.h -- inspect and maintain the compile cache; write packs.
 *
 * Cache entries are in memory, per runtime, and in one folder that all
 * processes of this user share. Kiln never depends on the folder. If a problem
 * with the folder occurs, Kiln compiles without the cache and counts the
 * problem in kiln_cache_stats. */
#ifndef KILN_CACHE_H
#define KILN_CACHE_H

#include <kiln/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Cache counters of a runtime since its creation. */
typedef struct kiln_cache_stats {
  uint64_t memory_hits; /**< number of look-ups that the memory cache
                             answered */
  uint64_t disk_hits; /**< number of look-ups that the cache folder answered */
  uint64_t pack_hits; /**< number of look-ups that a pack file answered */
  uint64_t misses;    /**< number of look-ups without a hit, after which the
                           program was compiled */
  uint64_t waits; /**< number of times that a call waited for another thread or
                       process that compiled the same program */
  uint64_t wait_timeouts; /**< number of these waits that timed out, so that
                               this process compiled the program itself */
  uint64_t corrupt;       /**< number of damaged entries that were removed */
  uint64_t rejected; /**< number of entries that were removed because the driver
                          rejected their images */
  uint64_t forged; /**< number of entries whose stored key differs from the key
                        that was looked up */
  uint64_t read_failures;  /**< number of system calls that failed while Kiln
                                read the cache */
  uint64_t write_failures; /**< number of entries that could not be written to
                                the cache folder */
  uint64_t lock_failures;  /**< number of locks that could not be acquired; Kiln
                                continued without them */
  uint64_t published;      /**< number of entries that were written to the cache
                                folder */
  uint64_t evicted;        /**< number of entries that were removed to keep the
                                cache folder below its size limit */
} kiln_cache_stats;

/** Reads the cache counters of a runtime.
 * @param[out] out  the counters; filled on success.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Never blocks. */
KILN_INLINE kiln_status kiln_cache_counters(kiln_runtime *rt,
                                            kiln_cache_stats *out);

/** State of the cache folder. */
typedef struct kiln_cache_info {
  char path[512]; /**< path of the cache folder; "" if there is no folder */
  bool usable;    /**< whether Kiln can read and write the cache folder */
  char reason
      [256]; /**< why the cache folder is not usable, and what to do; "" if it
                  is usable */
  uint64_t entries; /**< number of complete entries in the cache folder */
  uint64_t bytes; /**< size of all files in the cache folder in bytes, including
                       temporary files */
  uint64_t cap;   /**< size limit of the cache folder in bytes */
} kiln_cache_info;

/** Describes the cache folder.
 * @param[out] out  the description; filled on success, even if the folder is
 *                  not usable.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Blocks while it accesses files. */
KILN_INLINE kiln_status kiln_cache_describe(kiln_runtime *rt,
                                            kiln_cache_info *out);

/** One entry in the cache folder. */
typedef struct kiln_cache_item {
  const char *hash; /**< hash of the cache key in 32 hexadecimal digits, which
                         is also the name of the file */
  const char *program; /**< name of the program, as stored in the cache key */
  const char *target;  /**< target of the image in the entry, e.g. "sm_90" */
  uint64_t bytes;      /**< size of the entry's file in bytes */
  int64_t used_s; /**< time of the entry's last use in seconds since 1970 */
  bool good;      /**< all lengths and checksums in the entry's file are
                       correct */
} kiln_cache_item;

/** Callback that receives one cache entry, which is borrowed for the call. The
 * callback returns false to stop the visit of the entries. */
typedef bool (*kiln_cache_fn)(void *user, const kiln_cache_item *item);

/**
 * Visits every entry of the cache folder, in no particular order.
 *
 * @param verify  read each entry completely and verify its checksums.
 * @param fn      callback; called once per entry, in the calling thread.
 * @param user    pointer that is passed to fn.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO.
 * Thread-safe. Blocks while it accesses files.
 */
KILN_API kiln_status kiln_cache_each(kiln_runtime *rt, bool verify,
                                     kiln_cache_fn fn, void *user);

/** Removes damaged cache entries, and temporary files that crashed processes
 * left behind.
 * @param[out] removed  receives the number of removed files; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO.
 * Thread-safe. Blocks while it accesses files. */
KILN_API kiln_status kiln_cache_repair(kiln_runtime *rt, uint64_t *removed);

/** Removes the least recently used cache entries until the rest fits into the
 * given size.
 * @param bytes         size in bytes that the folder may keep.
 * @param[out] removed  receives the number of removed files; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO.
 * Thread-safe. Blocks while it accesses files. */
KILN_API kiln_status kiln_cache_trim(kiln_runtime *rt, uint64_t bytes,
                                     uint64_t *removed);

/** Removes all cache entries, in memory and in the folder.
 * @param[out] removed  receives the number of removed files; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO.
 * Thread-safe. Blocks while it accesses files. */
KILN_API kiln_status kiln_cache_clear(kiln_runtime *rt, uint64_t *removed);

/** Callback that receives one field in which two cache keys differ. A value
 * longer than 80 bytes is reported as its length and hash. The strings are
 * borrowed for the call. */
typedef void (*kiln_why_fn)(void *user, const char *field, const char *wanted,
                            const char *found);

/**
 * Explains why a program is not in the cache. The function finds the entry
 * whose key is most similar to the key of the program. It reports the fields in
 * which the two keys differ.
 *
 * @param desc      the program to look up; borrowed for the call.
 * @param target    the target of the program.
 * @param[out] hit  receives true if the program is in the cache; report is then
 *                  not called.
 * @param report    callback; called once per differing field, in the calling
 *                  thread.
 * @param user      pointer that is passed to report.
 * @retval KILN_OK, KILN_ENOTFOUND (the cache is empty), and the statuses of
 *         kiln_compile() for an invalid desc.
 * Thread-safe. Blocks while it accesses files.
 */
KILN_INLINE kiln_status kiln_cache_why(kiln_runtime *rt,
                                       const kiln_program_desc *desc,
                                       const kiln_target *target, bool *hit,
                                       kiln_why_fn report, void *user);

/**
 * Writes a pack, a read-only file of several images, for machines without
 * NVRTC.
 *
 * A pack provides the image for a program with the same source, headers,
 * defines, names and options, regardless of the installed version of NVRTC. An
 * image for exactly the wanted target is used directly. Another image that can
 * run on the target is used only if NVRTC cannot compile a better one. Kiln
 * writes a temporary file and renames it.
 *
 * @param path    path of the file to write or replace.
 * @param images  array of n images; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM.
 * Thread-safe. Blocks while it accesses files.
 */
KILN_API kiln_status kiln_pack_write(kiln_runtime *rt, const char *path,
                                     kiln_image *const *images, size_t n);

/**
 * Writes a pack of all images in the cache of a runtime, in memory and in the
 * folder. The pack contains everything that an application has compiled so far,
 * including the kernels of operations (ops.h) with user expressions.
 *
 * To ship packs, run the application once on each kind of GPU with a separate
 * cache folder and then call this function. With these packs the application
 * runs without NVRTC, and no call has to compile.
 *
 * @param path           path of the file to write or replace.
 * @param[out] n_images  receives the number of images written; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (the cache is empty), KILN_EIO,
 *         KILN_ENOMEM.
 * Thread-safe. Blocks while it accesses files.
 */
KILN_API kiln_status kiln_pack_cache(kiln_runtime *rt, const char *path,
                                     size_t *n_images);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

KILN__SIZED(kiln_cache_counters, (kiln_runtime * rt, kiln_cache_stats *out),
            (size_t out_size), (rt, out, sizeof *out))
KILN__SIZED(kiln_cache_describe, (kiln_runtime * rt, kiln_cache_info *out),
            (size_t out_size), (rt, out, sizeof *out))
KILN__SIZED(kiln_cache_why,
            (kiln_runtime * rt, const kiln_program_desc *desc,
             const kiln_target *target, bool *hit, kiln_why_fn report,
             void *user),
            (size_t desc_size),
            (rt, desc, target, hit, report, user, sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif
