/* cache.h -- keys, entries, and the tiers (memory, packs, disk) of the compile
 * cache.
 *
 * kiln__cache_fetch() searches the memory tier, then the packs (for exactly the
 * requested target), then the disk tier. If none has the entry, one thread
 * searches the disk again, makes the entry and publishes it, while other
 * threads and processes that request the same entry wait (single flight). If no
 * better image can be made, callers may use kiln__cache_pack() to get a pack's
 * image for a lower target. A fetch fails only if memory runs out or if making
 * the entry fails. */
#ifndef KILN_CACHE_INTERNAL_H
#define KILN_CACHE_INTERNAL_H

#include "../arch/arch.h"
#include "../base/os.h"

#include <kiln/cache.h>

/* ---- Keys ---------------------------------------------------------------- */

/* The text of a key is a sequence of length-prefixed fields, so different lists
 * of fields never give the same bytes. Portable fields describe the program:
 * source, headers, defines, options, names. Local fields describe the compiler
 * and the target. Packs compare only the portable fields. */
typedef struct kiln__key {
  kiln__buf text;     /* text of all fields of the cache key */
  kiln__buf portable; /* text of the portable fields only */
  /* XXH3-128 hash of text in hexadecimal; set by kiln__key_seal() */
  char hash[33];
  char portable_hash[33];
} kiln__key;

void kiln__key_init(kiln__key *key, const kiln_allocator *a);
void kiln__key_free(kiln__key *key);
void kiln__key_add(kiln__key *key, const char *field, const void *value,
                   size_t size, bool portable);
/* Computes the hashes of the key. Returns KILN_ENOMEM if an earlier append to
 * the key failed, else KILN_OK. */
kiln_status kiln__key_seal(kiln__key *key);
/* Iterates over the fields of a key's text. The first call takes *at = 0.
 * Returns false at the end of the text or if the text is malformed. */
typedef struct kiln__field {
  /* The pointers refer to text that is not NUL-terminated. */
  const char *name, *value;
  size_t name_size, size;
  bool portable;
} kiln__field;
bool kiln__key_next(const char *text, size_t size, size_t *at,
                    kiln__field *out);

/* ---- Entries ------------------------------------------------------------- */

typedef enum kiln__section {
  KILN__PTX = 0,
  KILN__CUBIN,
  KILN__NAMES,  /* lowered (mangled) names of the name expressions */
  KILN__LOG,    /* log of the compiler */
  KILN__REPORT, /* resource usage of the kernels */
  KILN__META,   /* compile time, NVRTC version and target (META section) */
  KILN__SECTIONS
} kiln__section;

typedef struct kiln__slice {
  /* bytes of the section, followed by a NUL byte that `size` does not count */
  const void *data;
  size_t size;
} kiln__slice;

/* The parsed META section of a cache entry: how the image was made. */
typedef struct kiln__meta {
  kiln_target target;    /* target for which the image was compiled */
  int nvrtc;             /* compiler version, 13000 = 13.0 */
  uint64_t microseconds; /* compile time in microseconds */
} kiln__meta;

void kiln__meta_write(kiln__buf *out, const kiln__meta *meta);
/* Parses the META section of a cache entry. Returns false if the section names
 * no target. */
bool kiln__meta_read(kiln__slice text, kiln__meta *out);

/* An immutable cache entry, shared by reference counting. */
typedef struct kiln__entry kiln__entry;

/* Creates an entry with copies of the key text and the sections. Returns one
 * reference, or NULL if memory ran out. */
kiln__entry *kiln__entry_create(const kiln_allocator *a, const kiln__key *key,
                                const kiln__slice sections[KILN__SECTIONS]);
kiln__entry *kiln__entry_ref(kiln__entry *entry);
/* Releases one reference to an entry. `entry` may be NULL. */
void kiln__entry_unref(kiln__entry *entry);
kiln__slice kiln__entry_get(const kiln__entry *entry, kiln__section section);
/* Returns the full text of the entry's key. */
kiln__slice kiln__entry_key(const kiln__entry *entry);
const char *kiln__entry_hash(const kiln__entry *entry);

/* ---- Cache --------------------------------------------------------------- */

typedef struct kiln__cache kiln__cache;

typedef struct kiln__cache_config {
  const kiln_allocator *alloc;
  const kiln__log *log;
  const kiln__fs *fs; /* file operations; NULL means the real system calls */
  const char *dir;    /* cache folder; NULL means no disk tier */
  uint64_t cap_bytes; /* capacity of the disk tier in bytes; 0 means 256 MiB */
  /* maximum time to wait for a compile in another process, in milliseconds */
  unsigned wait_ms;
  /* capacity of the memory tier in bytes; 0 means 64 MiB */
  size_t memory_bytes;
  const char *const *packs;
  size_t n_packs;
} kiln__cache_config;

/* Creates a cache without touching any file. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__cache_open(kiln__cache **out,
                             const kiln__cache_config *config);
void kiln__cache_close(kiln__cache *cache);

/* Callback that makes the entry after a miss. The callback runs in the thread
 * that called kiln__cache_fetch(), with no lock held. */
typedef kiln_status (*kiln__make_fn)(void *user, kiln__entry **out);

typedef struct kiln__fetch {
  const kiln__key *key;
  /* target of the request: packs serve only an image for exactly this target */
  kiln_target target;
  bool refresh; /* true: ignore existing cache entries and replace them */
  /* true: make the entry without using any tier of the cache */
  bool private_only;
  /* true: after a miss, return KILN_ENOTFOUND without an error record instead
   * of making the entry */
  bool lookup_only;
  kiln__make_fn make;
  void *user;
} kiln__fetch;

/* Fetches the entry of a key, and makes it after a miss. Returns KILN_OK with a
 * reference in *out, KILN_ENOMEM, or the status of `make`. Every thread that
 * waited for the same `make` call gets the same status and error record. After
 * KILN_ECANCELED, one of the waiting threads makes the entry instead. `make`
 * may call the cache, also for the same key. In a child forked after
 * kiln__cache_open(), the memory tier and the sharing between threads are
 * disabled. */
kiln_status kiln__cache_fetch(kiln__cache *cache, const kiln__fetch *fetch,
                              kiln__entry **out, kiln_origin *origin);

/* Returns a reference to the best image that any pack has for this portable key
 * and target, or NULL. Only the members portable_hash and portable of the key
 * are needed, so the call works without NVRTC. If `exact` is true, only an
 * image for exactly the given target is accepted. */
kiln__entry *kiln__cache_pack(kiln__cache *cache, const kiln__key *key,
                              kiln_target target, bool exact);
/* Lists the targets for which the packs have an image with this portable key.
 * PTX that is stored beside machine code counts as a separate target. Returns
 * the number of targets, which may exceed the capacity. */
size_t kiln__cache_pack_targets(kiln__cache *cache, const kiln__key *key,
                                kiln_target *out, size_t capacity);

/* Returns true if the caller specified any packs. Without packs, no portable
 * key is needed. */
bool kiln__cache_has_packs(const kiln__cache *cache);

/* Removes an entry after the driver refused its image. The entry is removed
 * from the memory tier and from the disk tier, unless the file on disk was
 * replaced meanwhile. No pack offers the entry again. */
void kiln__cache_reject(kiln__cache *cache, kiln__entry *entry);

/* Returns the path of the cache folder, or NULL if the disk tier is disabled.
 * Touches no file. */
const char *kiln__cache_dir(const kiln__cache *cache);

/* These functions implement the public functions of <kiln/cache.h>. */
void kiln__cache_stats_get(kiln__cache *cache, kiln_cache_stats *out);
void kiln__cache_info_get(kiln__cache *cache, kiln_cache_info *out);
/* Programs and targets are read from the key fields "program" and "target". */
kiln_status kiln__cache_visit(kiln__cache *cache, bool verify, kiln_cache_fn fn,
                              void *user);
kiln_status kiln__cache_repair(kiln__cache *cache, uint64_t *removed);
kiln_status kiln__cache_shrink(kiln__cache *cache, uint64_t bytes,
                               uint64_t *removed);
kiln_status kiln__cache_wipe(kiln__cache *cache, uint64_t *removed);
/* Iterates over the key texts of all entries, first in the memory tier, then on
 * disk. The callback returns false to stop the iteration. */
typedef bool (*kiln__key_fn)(void *user, const char *hash, const char *text,
                             size_t size);
kiln_status kiln__cache_keys(kiln__cache *cache, kiln__key_fn fn, void *user);
/* Lists references to all undamaged entries, first from the memory tier, then
 * from disk. The caller frees the array with kiln__free(). *out is NULL after a
 * failure. */
kiln_status kiln__cache_entries(kiln__cache *cache, kiln__entry ***out,
                                size_t *n);
/* Writes entries and their targets to a pack file. Returns KILN_OK, KILN_EINVAL
 * (too many entries), KILN_ENOMEM or KILN_EIO. */
kiln_status kiln__pack_write(const kiln_allocator *a, const char *path,
                             kiln__entry *const *entries,
                             const kiln_target *targets, size_t n);

#endif
