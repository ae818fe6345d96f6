/* cache.h -- look at and tend the compile cache; make packs.
 *
 * Entries live in memory (per runtime) and in one folder (shared by every
 * process of this user). The folder is never needed: whatever goes wrong with
 * it ends in an uncached compile and a counter here. */
#ifndef KILN_CACHE_H
#define KILN_CACHE_H

#include <kiln/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Counters of one runtime since it was made. */
typedef struct kiln_cache_stats {
  uint64_t memory_hits;    /**< answered by the memory tier */
  uint64_t disk_hits;      /**< answered by the disk tier */
  uint64_t pack_hits;      /**< answered by a pack */
  uint64_t misses;         /**< answered by nothing: compiled */
  uint64_t waits;          /**< another thread or process compiled it */
  uint64_t wait_timeouts;  /**< of these, given up: compiled here as well */
  uint64_t corrupt;        /**< bad entries removed */
  uint64_t rejected;       /**< entries that the driver refused, removed */
  uint64_t forged;         /**< entries whose stored key was another */
  uint64_t read_failures;  /**< system calls that failed while reading */
  uint64_t write_failures; /**< entries that could not be published */
  uint64_t lock_failures;  /**< locks that could not be had; went on without */
  uint64_t published;      /**< entries written */
  uint64_t evicted;        /**< entries removed for the byte cap */
} kiln_cache_stats;

/** Never blocks; any thread. @retval KILN_OK, KILN_EINVAL. */
KILN_API kiln_status kiln_cache_counters(kiln_runtime *rt,
                                         kiln_cache_stats *out);

/** State of the folder. */
typedef struct kiln_cache_info {
  char path[512];   /**< folder, "" if there is none */
  bool usable;      /**< it is read and written */
  char reason[256]; /**< why not, and what to do, if not */
  uint64_t entries; /**< complete entries */
  uint64_t bytes;   /**< of all files, temporary ones included */
  uint64_t cap;     /**< bytes allowed */
} kiln_cache_info;

/** Looks at the folder. Blocks on files; any thread.
 * @retval KILN_OK (also if unusable), KILN_EINVAL. */
KILN_API kiln_status kiln_cache_describe(kiln_runtime *rt,
                                         kiln_cache_info *out);

/** One entry on disk. */
typedef struct kiln_cache_item {
  const char *hash;    /**< 32 digits; the file's name */
  const char *program; /**< the program's name, as in its key */
  const char *target;  /**< "sm_90" */
  uint64_t bytes;      /**< file size */
  int64_t used_s;      /**< last use, seconds since 1970 */
  bool good;           /**< every length and checksum holds */
} kiln_cache_item;

/** Return false to stop. Texts are borrowed for the call. */
typedef bool (*kiln_cache_fn)(void *user, const kiln_cache_item *item);

/** Visit every entry. @param verify  read it whole and check it.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO. */
KILN_API kiln_status kiln_cache_each(kiln_runtime *rt, bool verify,
                                     kiln_cache_fn fn, void *user);

/** Remove bad entries and stale temporary files.
 * @param[out] removed  files removed; may be NULL. */
KILN_API kiln_status kiln_cache_repair(kiln_runtime *rt, uint64_t *removed);

/** Remove the least recently used until at most `bytes` remain. */
KILN_API kiln_status kiln_cache_trim(kiln_runtime *rt, uint64_t bytes,
                                     uint64_t *removed);

/** Remove every entry, in memory and on disk. */
KILN_API kiln_status kiln_cache_clear(kiln_runtime *rt, uint64_t *removed);

/**
 * Why a program is not in the cache: the nearest entry (most fields in
 * common) and the key fields in which it differs.
 *
 * @param report  called once a differing field: name, wanted, found. Values
 *                longer than 80 bytes come as length and hash.
 * @param[out] hit  the program is there; report is not called then.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (the cache is empty), as
 *         kiln_compile() for a bad desc.
 */
typedef void (*kiln_why_fn)(void *user, const char *field, const char *wanted,
                            const char *found);
KILN_API kiln_status kiln_cache_why(kiln_runtime *rt,
                                    const kiln_program_desc *desc,
                                    const kiln_target *target, bool *hit,
                                    kiln_why_fn report, void *user);

/**
 * Write a pack: images in one read-only file, for machines without NVRTC.
 *
 * A pack answers a program whose source, headers, defines, names and options
 * are the same, whatever NVRTC is installed: for its own target at once, and
 * for one that its target can serve where no NVRTC makes better. Written to a
 * temporary file, then renamed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM.
 */
KILN_API kiln_status kiln_pack_write(kiln_runtime *rt, const char *path,
                                     kiln_image *const *images, size_t n);

/**
 * Write a pack of all that this runtime's cache holds, in memory and on disk:
 * what an application compiled so far, the operations (kiln/ops.h) with their
 * expressions among it. Run the application once with a cache folder of its own
 * on each kind of GPU, and ship the packs: it then starts without NVRTC, and every
 * first call is one from a file.
 *
 * @param[out] n_images  how many; may be NULL
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTFOUND (nothing there), KILN_EIO,
 *         KILN_ENOMEM.
 * Threads: any. Blocks: on files.
 */
KILN_API kiln_status kiln_pack_cache(kiln_runtime *rt, const char *path,
                                     size_t *n_images);

#ifdef __cplusplus
}
#endif
#endif
