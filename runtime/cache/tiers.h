/* tiers.h -- what the files of the cache share.
 *
 * A mutex guards only the memory tier, the flights and the opening of packs.
 * The disk tier holds no state between calls, so a folder that disappears,
 * fills up or changes its owner is noticed at the next call. In a forked child
 * a mutex that another thread held stays locked for ever: there the memory
 * tier, the flights and unopened packs are skipped, and the disk tier works as
 * before. */
#ifndef KILN_CACHE_TIERS_H
#define KILN_CACHE_TIERS_H

#include "cache.h"

enum {
  KILN__MEMORY_BUCKETS = 1024,
  KILN__NAME_SIZE = 48,                  /* of an entry's file name */
  KILN__WIRE_PARTS = KILN__SECTIONS + 1, /* the key, then the sections */
  KILN__WIRE_HEAD = 32 + KILN__WIRE_PARTS * 16 + 8
};

#define KILN__ENTRY_LIMIT ((uint64_t)1 << 30) /* bytes of a file */

/* ---- entry.c ---------------------------------------------------------------- */

struct kiln__entry {
  const kiln_allocator *alloc;
  unsigned refs;
  char hash[33];
  uint64_t pack_item; /* 0, or 1 + index << 32 | pack: see pack_file.c */
  size_t wire_size;   /* bytes as a file */
  kiln__slice parts[KILN__WIRE_PARTS]; /* into block */
  unsigned char block[];
};

typedef struct kiln__wire {
  uint64_t total;
  uint64_t size[KILN__WIRE_PARTS];
  uint64_t sum[KILN__WIRE_PARTS];
} kiln__wire;

/* An entry whose block has space for a file of wire_size bytes, to be read
 * there and decoded. NULL: out of memory. */
kiln__entry *kiln__entry_reserve(const kiln_allocator *a, size_t wire_size);
/* Checks what was read into the block (sizes, checksums, META) and sets up the
 * parts. False if the entry is damaged. */
bool kiln__entry_decode(kiln__entry *entry);
/* Checks the first KILN__WIRE_HEAD bytes of a file of `size` bytes: magic,
 * version, checksum, and that the parts add up to the size. */
bool kiln__wire_read(kiln__wire *out, const unsigned char *head, uint64_t size);
void kiln__entry_head(const kiln__entry *entry,
                      unsigned char head[KILN__WIRE_HEAD]);
bool kiln__entry_same(const kiln__entry *a, const kiln__entry *b);
bool kiln__entry_has_key(const kiln__entry *entry, const kiln__buf *text);
void kiln__put32(unsigned char *to, uint32_t value);
void kiln__put64(unsigned char *to, uint64_t value);
uint32_t kiln__get32(const unsigned char *from);
uint64_t kiln__get64(const unsigned char *from);
uint64_t kiln__sum64(const void *data, size_t size);
void kiln__hash_text(char hex[33], const void *data, size_t size);

/* ---- The cache -------------------------------------------------------------- */

typedef struct kiln__tier_node {
  struct kiln__tier_node *chain, *newer, *older;
  kiln__entry *entry;
} kiln__tier_node;

typedef struct kiln__tier {
  kiln__tier_node *buckets[KILN__MEMORY_BUCKETS];
  kiln__tier_node *newest, *oldest;
  size_t bytes, cap, n;
} kiln__tier;

typedef struct kiln__pack_item {
  char hash[33]; /* of the portable key */
  kiln_target target;
  uint64_t offset, size;
  uint32_t rejected; /* the driver refused it: do not offer it again */
} kiln__pack_item;

typedef struct kiln__pack {
  char *path;
  int fd;
  uint32_t state;         /* 0 not tried, 1 open, 2 unusable */
  kiln__pack_item *items; /* sorted by hash */
  size_t n;
} kiln__pack;

typedef struct kiln__flight kiln__flight;
typedef struct kiln__waiter kiln__waiter;

struct kiln__cache {
  const kiln_allocator *alloc;
  const kiln__log *log;
  const kiln__fs *fs;
  char *dir; /* absolute; NULL: no disk tier */
  uint64_t cap;
  unsigned wait_ms;
  kiln__fork_guard fork;
  kiln_cache_stats stats; /* atomics */
  int64_t budget;         /* atomic: bytes to publish before the next scan */
  uint32_t n_temps;       /* atomic: makes temporary names differ */
  uint32_t warned;        /* atomic: one bit per kiln__warning */

  pthread_mutex_t lock; /* guards memory, flights, waiters */
  kiln__tier memory;
  kiln__flight *flights;
  kiln__waiter *waiters;

  pthread_mutex_t pack_lock; /* guards the opening of packs */
  kiln__pack *packs;
  size_t n_packs;
};

static inline void kiln__count(uint64_t *counter, uint64_t n)
{
  __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static inline int64_t kiln__stat_ns(const struct stat *info)
{
  return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* A cache logs each kind of warning once; later ones go to the debug level. */
typedef enum kiln__warning {
  KILN__WARNING_FOLDER,
  KILN__WARNING_READ,
  KILN__WARNING_WRITE,
  KILN__WARNING_LOCK,
  KILN__WARNING_CORRUPT,
  KILN__WARNING_PACK
} kiln__warning;

void kiln__warn(kiln__cache *cache, kiln__warning kind, const char *format, ...)
    KILN_PRINTF(3, 4);

/* ---- memory_tier.c ---------------------------------------------------------- */

/* Called with cache->lock held. Returns a reference or NULL. */
kiln__entry *kiln__tier_peek(kiln__cache *cache, const kiln__key *key);
/* These take the lock. In a forked child they do nothing. */
kiln__entry *kiln__tier_find(kiln__cache *cache, const kiln__key *key);
void kiln__tier_put(kiln__cache *cache, kiln__entry *entry);
void kiln__tier_drop(kiln__cache *cache, const kiln__entry *entry);
uint64_t kiln__tier_clear(kiln__cache *cache);
/* References to all entries; the caller frees the array with kiln__free().
 * KILN_OK, KILN_ENOMEM. */
kiln_status kiln__tier_list(kiln__cache *cache, kiln__entry ***out, size_t *n);

/* ---- names_locks.c ---------------------------------------------------------- */

/* The cache folder, as kiln__folder_open(). */
int kiln__cache_folder(kiln__cache *cache, bool create, char why[256]);
/* A file in the folder, as kiln__file_open(); symbolic links are refused. */
int kiln__entry_open(kiln__cache *cache, int dir, const char *name, int flags,
                     mode_t mode);
void kiln__entry_name(char name[KILN__NAME_SIZE], const char *hash);
bool kiln__is_entry_name(const char *name);   /* of any format version */
bool kiln__is_current_name(const char *name); /* of this one */
bool kiln__is_temp_name(const char *name);

/* Bytes of the one lock file. The descriptor stands for the lock: -1 if there
 * is none. */
enum { KILN__EVICT_LOCK = 0 };
/* Opens the lock file, or makes it; counts a failure. */
int kiln__lock_file(kiln__cache *cache, int dir);
/* Tries for up to `wait_ms`. False with errno: EAGAIN if it is held elsewhere,
 * another code if locks do not work here. */
bool kiln__lock_wait(kiln__cache *cache, int fd, off_t at, unsigned wait_ms);
void kiln__lock_release(kiln__cache *cache, int fd, off_t at);

/* ---- disk.c ----------------------------------------------------------------- */

typedef enum kiln__verdict {
  KILN__LOADED,
  KILN__ABSENT,
  KILN__BAD,   /* not a good entry of ours */
  KILN__FAILED /* a system call or an allocation failed */
} kiln__verdict;

/* Reads and checks the entry of `size` bytes at `at` in an open file, head
 * first. KILN__FAILED with errno. */
kiln__verdict kiln__wire_load(kiln__cache *cache, int fd, uint64_t at,
                              uint64_t size, kiln__entry **out);
/* Reads one file whole and checks it. `info` is what fstat said. */
kiln__verdict kiln__disk_load(kiln__cache *cache, int dir, const char *name,
                              kiln__entry **out, struct stat *info);
/* Reads the key text only, for listings, into an empty buffer. */
kiln__verdict kiln__disk_peek(kiln__cache *cache, int dir, const char *name,
                              kiln__buf *key, struct stat *info);
/* Unlinks the name if it still refers to the file that `info` describes. False
 * with errno. */
bool kiln__disk_unlink(kiln__cache *cache, int dir, const char *name,
                       const struct stat *info);
/* The entry of a key, or NULL. Removes and counts what is damaged. */
kiln__entry *kiln__disk_read(kiln__cache *cache, const kiln__key *key);
/* Writes the entry to the folder; a failure is counted and logged. */
void kiln__disk_publish(kiln__cache *cache, kiln__entry *entry);
/* Removes the file that holds exactly this entry. */
void kiln__disk_reject(kiln__cache *cache, kiln__entry *entry);

/* ---- evict.c ---------------------------------------------------------------- */

typedef struct kiln__file_item {
  int64_t used_ns;
  uint64_t bytes;
  bool future; /* the time is ahead of the clock: counts as old */
  char name[KILN__NAME_SIZE];
} kiln__file_item;

typedef struct kiln__files {
  kiln__file_item *items; /* entries, of any format version */
  size_t n, capacity;
  uint64_t bytes; /* of all files */
  uint64_t swept; /* stale temporary files removed */
} kiln__files;

/* Lists the folder; `sweep` removes stale temporary files. KILN_OK, KILN_EIO
 * with errno, KILN_ENOMEM; writes no error record. */
kiln_status kiln__files_list(kiln__cache *cache, int dir, bool sweep,
                             kiln__files *out);
void kiln__files_free(kiln__cache *cache, kiln__files *scan);
/* Removes the least recently used entries until at most `target` bytes remain.
 * Returns how many it removed. */
uint64_t kiln__evict(kiln__cache *cache, int dir, kiln__files *scan,
                     uint64_t target);
/* Waits briefly for the eviction lock: its descriptor, or -1. */
int kiln__evict_lock(kiln__cache *cache, int dir);
/* Makes space for a file of `size` bytes. False with errno if there is none.
 * *lock receives the eviction lock or -1; the caller releases it once the bytes
 * are in the folder. */
bool kiln__space_make(kiln__cache *cache, int dir, uint64_t size, int *lock);

/* ---- flight.c --------------------------------------------------------------- */

/* Makes the entry once for all threads and processes that want it; see
 * flight.c. Status as kiln__cache_fetch(). */
kiln_status kiln__flight_run(kiln__cache *cache, const kiln__fetch *fetch,
                             kiln__entry **out, kiln_origin *origin);
/* Calls make, counts the miss, and publishes the result. */
kiln_status kiln__make(kiln__cache *cache, const kiln__fetch *fetch,
                       kiln__entry **out);

/* ---- pack_file.c ------------------------------------------------------------ */

/* Records the paths; the files are opened at the first look-up. */
kiln_status kiln__packs_create(kiln__cache *cache, const char *const *paths,
                               size_t n);
void kiln__packs_free(kiln__cache *cache);
/* The driver refused this entry: no pack offers it again. */
void kiln__packs_reject(kiln__cache *cache, const kiln__entry *entry);

#endif
