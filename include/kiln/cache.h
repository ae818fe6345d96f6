/* cache.h -- inspect and maintain the compile cache; write packs.
 *
 * Entries live in memory, per runtime, and in one folder that every process of
 * this user shares. Kiln never depends on the folder: whatever goes wrong with it
 * ends in an uncached compile and in a counter here. */
#ifndef KILN_CACHE_H
#define KILN_CACHE_H

#include <kiln/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Counters of one runtime since it was created. */
typedef struct kiln_cache_stats {
  uint64_t memory_hits;   /**< look-ups answered from memory */
  uint64_t disk_hits;     /**< look-ups answered from the folder */
  uint64_t pack_hits;     /**< look-ups answered from a pack */
  uint64_t misses;        /**< look-ups without an answer: compiled */
  uint64_t waits;         /**< waits for a thread or process that compiled it */
  uint64_t wait_timeouts; /**< waits that timed out; this process compiled the
                              program itself */
  uint64_t corrupt;       /**< bad entries removed */
  uint64_t rejected; /**< entries removed because the driver refused them */
  uint64_t forged;   /**< entries whose stored key was another one */
  uint64_t read_failures;  /**< system calls that failed while reading */
  uint64_t write_failures; /**< entries that could not be published */
  uint64_t lock_failures;  /**< locks that could not be taken; Kiln continued
                              without them */
  uint64_t published;      /**< entries written */
  uint64_t evicted;        /**< entries removed to stay below the byte cap */
} kiln_cache_stats;

/** Reads the cache counters of a runtime.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL. Threads: any. Blocks: never. */
KILN_INLINE kiln_status kiln_cache_counters(kiln_runtime *rt,
                                            kiln_cache_stats *out);

/** State of the cache folder. */
typedef struct kiln_cache_info {
  char path[512];   /**< folder; "" if there is none */
  bool usable;      /**< Kiln reads and writes it */
  char reason[256]; /**< if it is not usable: why, and what to do */
  uint64_t entries; /**< complete entries */
  uint64_t bytes;   /**< size of all files, including temporary ones */
  uint64_t cap;     /**< byte cap */
} kiln_cache_info;

/** Describes the cache folder.
 * @param[out] out  filled on success, also if the folder is not usable.
 * @retval KILN_OK, KILN_EINVAL. Threads: any. Blocks: on files. */
KILN_INLINE kiln_status kiln_cache_describe(kiln_runtime *rt,
                                            kiln_cache_info *out);

/** One entry in the folder. */
typedef struct kiln_cache_item {
  const char *hash;    /**< 32 digits; the file's name */
  const char *program; /**< the program's name, as in its key */
  const char *target;  /**< "sm_90" */
  uint64_t bytes;      /**< file size */
  int64_t used_s;      /**< last use, seconds since 1970 */
  bool good;           /**< every length and checksum is right */
} kiln_cache_item;

/** Receives one entry, borrowed for the call. Returns false to stop. */
typedef bool (*kiln_cache_fn)(void *user, const kiln_cache_item *item);

/**
 * Visits every entry of the folder, in no particular order.
 *
 * @param verify  read each entry whole and check its checksums.
 * @param fn      called per entry, in the calling thread.
 * @param user    passed to fn.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO.
 * Threads: any. Blocks: on files.
 */
KILN_API kiln_status kiln_cache_each(kiln_runtime *rt, bool verify,
                                     kiln_cache_fn fn, void *user);

/** Removes bad entries and temporary files that a crashed process left.
 * @param[out] removed  number of files removed; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO. Threads: any. Blocks: on files. */
KILN_API kiln_status kiln_cache_repair(kiln_runtime *rt, uint64_t *removed);

/** Removes the least recently used entries until the rest fits.
 * @param bytes         size in bytes that the folder may keep.
 * @param[out] removed  number of files removed; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO. Threads: any. Blocks: on files. */
KILN_API kiln_status kiln_cache_trim(kiln_runtime *rt, uint64_t bytes,
                                     uint64_t *removed);

/** Removes every entry, in memory and in the folder.
 * @param[out] removed  number of files removed; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO. Threads: any. Blocks: on files. */
KILN_API kiln_status kiln_cache_clear(kiln_runtime *rt, uint64_t *removed);

/** Receives one key field that differs. A value longer than 80 bytes is given as
 * its length and hash. Texts are borrowed for the call. */
typedef void (*kiln_why_fn)(void *user, const char *field, const char *wanted,
                            const char *found);

/**
 * Explains why a program is not in the cache. Finds the entry that shares most
 * key fields with it and reports the fields in which the two differ.
 *
 * @param desc      the program; borrowed for the call.
 * @param target    the target.
 * @param[out] hit  the program is in the cache; report is not called then.
 * @param report    called per differing field, in the calling thread.
 * @param user      passed to report.
 * @retval KILN_OK, KILN_ENOTFOUND (the cache is empty), and as kiln_compile()
 *         for a bad desc.
 * Threads: any. Blocks: on files.
 */
KILN_INLINE kiln_status kiln_cache_why(kiln_runtime *rt,
                                       const kiln_program_desc *desc,
                                       const kiln_target *target, bool *hit,
                                       kiln_why_fn report, void *user);

/**
 * Writes a pack: images in one read-only file, for machines without NVRTC.
 *
 * A pack answers a program with the same source, headers, defines, names and
 * options, whichever NVRTC is installed. An image for exactly the wanted target
 * is used at once. An image that the target can also run is used if no NVRTC
 * compiles a better one. Kiln writes a temporary file and renames it.
 *
 * @param path    file to write or replace.
 * @param images  n images; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM.
 * Threads: any. Blocks: on files.
 */
KILN_API kiln_status kiln_pack_write(kiln_runtime *rt, const char *path,
                                     kiln_image *const *images, size_t n);

/**
 * Writes a pack of everything that this runtime's cache holds, in memory and in
 * the folder: what an application has compiled so far, including the operations
 * (ops.h) with the application's own expressions.
 *
 * To ship packs, run the application once on each kind of GPU with a cache folder
 * of its own and then call this function. With its pack the application starts
 * without NVRTC and takes every first call from a file.
 *
 * @param path           file to write or replace.
 * @param[out] n_images  number of images written; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (the cache is empty), KILN_EIO,
 *         KILN_ENOMEM.
 * Threads: any. Blocks: on files.
 */
KILN_API kiln_status kiln_pack_cache(kiln_runtime *rt, const char *path,
                                     size_t *n_images);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

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
