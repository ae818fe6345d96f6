/* tiers.h -- declarations that the files of the cache share.
 *
 * The mutexes guard only the memory tier, the flights (compiles that several
 * threads wait for) and the opening of packs. The disk tier holds no state
 * between calls, so the next call notices if the folder disappears, fills up or
 * changes its owner. In a forked child, a mutex that another thread held at the
 * fork stays locked for ever. The child therefore skips the memory tier, the
 * flights and unopened packs, while the disk tier works as usual. */
#ifndef KILN_CACHE_TIERS_H
#define KILN_CACHE_TIERS_H

#include "../base/hash.h"
#include "cache.h"

enum {
  KILN__MEMORY_BUCKETS = 1024,
  /* size of a buffer for an entry's file name, in bytes */
  KILN__NAME_SIZE = 48,
  /* number of parts of an entry: the key, then the sections */
  KILN__WIRE_PARTS = KILN__SECTIONS + 1,
  KILN__WIRE_HEAD = 32 + KILN__WIRE_PARTS * 16 + 8
};

/* maximum size of an entry file in bytes */
#define KILN__ENTRY_LIMIT ((uint64_t)1 << 30)

/* ---- entry.c ------------------------------------------------------------- */

struct kiln__entry {
  const kiln_allocator *alloc;
  unsigned refs;
  char hash[33];
  /* Position of the entry in a pack: 1 + (index << 32 | pack number), or 0 if
   * the entry is not from a pack (see pack_file.c). */
  uint64_t pack_item;
  size_t wire_size; /* size of the entry's file in bytes */
  /* The key and the sections as slices of `block` */
  kiln__slice parts[KILN__WIRE_PARTS];
  unsigned char block[];
};

typedef struct kiln__wire {
  uint64_t total;
  uint64_t size[KILN__WIRE_PARTS];
  uint64_t sum[KILN__WIRE_PARTS];
} kiln__wire;

/* Allocates an entry whose block has space for an entry file of wire_size
 * bytes. The caller reads the file into the block and calls
 * kiln__entry_decode(). Returns NULL if memory ran out. */
kiln__entry *kiln__entry_reserve(const kiln_allocator *a, size_t wire_size);
/* Checks the file content in the entry's block (sizes, checksums, META) and
 * sets the parts of the entry. Returns false if the content is damaged. */
bool kiln__entry_decode(kiln__entry *entry);
/* Checks the header of an entry file of `size` bytes, which is its first
 * KILN__WIRE_HEAD bytes. The checks cover the magic number, the version, the
 * checksum, and the sum of the part sizes, which must equal `size`. */
bool kiln__wire_read(kiln__wire *out, const unsigned char *head, uint64_t size);
void kiln__entry_head(const kiln__entry *entry,
                      unsigned char head[KILN__WIRE_HEAD]);
bool kiln__entry_same(const kiln__entry *a, const kiln__entry *b);
bool kiln__entry_has_key(const kiln__entry *entry, const kiln__buf *text);
void kiln__put32(unsigned char *to, uint32_t value);
void kiln__put64(unsigned char *to, uint64_t value);
uint32_t kiln__get32(const unsigned char *from);
uint64_t kiln__get64(const unsigned char *from);

/* ---- The cache ----------------------------------------------------------- */

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
  char hash[33]; /* hash of the portable key, in hexadecimal */
  kiln_target target;
  uint64_t offset, size;
  /* True after the driver refused the image, which is then not used again. */
  uint32_t rejected;
} kiln__pack_item;

typedef struct kiln__pack {
  char *path;
  int fd;
  uint32_t state; /* state of the pack: 0 not opened yet, 1 open, 2 unusable */
  kiln__pack_item *items; /* index of the pack, sorted by hash */
  size_t n;
} kiln__pack;

typedef struct kiln__flight kiln__flight;
typedef struct kiln__waiter kiln__waiter;

struct kiln__cache {
  const kiln_allocator *alloc;
  const kiln__log *log;
  const kiln__fs *fs;
  /* Absolute path of the cache folder; NULL if there is no disk tier. */
  char *dir;
  uint64_t cap;
  unsigned wait_ms;
  kiln__fork_guard fork;
  kiln_cache_stats stats; /* updated atomically */
  /* atomic: bytes that may be published before the folder is listed again */
  int64_t budget;
  /* atomic: counter that makes the names of temporary files unique. */
  uint32_t n_temps;
  uint32_t warned; /* atomic: one bit per kiln__warning already logged */

  /* Mutex that guards the memory tier, the flights and their waiters. */
  pthread_mutex_t lock;
  kiln__tier memory;
  kiln__flight *flights;
  kiln__waiter *waiters;

  pthread_mutex_t pack_lock; /* mutex that guards the opening of packs */
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

/* A cache logs each kind of warning once. Later occurrences are logged at the
 * debug level. */
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

/* ---- memory_tier.c ------------------------------------------------------- */

/* Looks up a key in the memory tier. The caller holds cache->lock. Returns a
 * reference or NULL. */
kiln__entry *kiln__tier_peek(kiln__cache *cache, const kiln__key *key);
/* The following functions take the cache's lock. In a forked child they do
 * nothing. */
kiln__entry *kiln__tier_find(kiln__cache *cache, const kiln__key *key);
void kiln__tier_put(kiln__cache *cache, kiln__entry *entry);
void kiln__tier_drop(kiln__cache *cache, const kiln__entry *entry);
uint64_t kiln__tier_clear(kiln__cache *cache);
/* Lists references to all entries of the memory tier. The caller frees the
 * array with kiln__free(). Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__tier_list(kiln__cache *cache, kiln__entry ***out, size_t *n);

/* ---- names_locks.c ------------------------------------------------------- */

/* Opens the cache folder, with the contract of kiln__folder_open(). */
int kiln__cache_folder(kiln__cache *cache, bool create, char why[256]);
/* Opens a file in the cache folder, with the contract of kiln__file_open().
 * Symbolic links are refused. */
int kiln__entry_open(kiln__cache *cache, int dir, const char *name, int flags,
                     mode_t mode);
void kiln__entry_name(char name[KILN__NAME_SIZE], const char *hash);
/* Returns true for names of entry files of any format version. */
bool kiln__is_entry_name(const char *name);
/* Returns true for names of entry files of the current format version. */
bool kiln__is_current_name(const char *name);
bool kiln__is_temp_name(const char *name);

/* Offsets of the bytes that are locked in the lock file. A lock is represented
 * by the file descriptor that holds it, or by -1 if the byte is not locked. */
enum { KILN__EVICT_LOCK = 0 };
/* Opens the lock file, and creates it if necessary. Counts a failure in the
 * statistics. */
int kiln__lock_file(kiln__cache *cache, int dir);
/* Tries to lock a byte for up to `wait_ms` milliseconds. Returns false with
 * errno EAGAIN if another process holds the lock, or with another errno if
 * locks do not work in this file system. */
bool kiln__lock_wait(kiln__cache *cache, int fd, off_t at, unsigned wait_ms);
void kiln__lock_release(kiln__cache *cache, int fd, off_t at);

/* ---- disk.c -------------------------------------------------------------- */

typedef enum kiln__verdict {
  KILN__LOADED,
  KILN__ABSENT,
  KILN__BAD,   /* the file is damaged or has another format version */
  KILN__FAILED /* a system call or an allocation failed */
} kiln__verdict;

/* Reads and checks an entry of `size` bytes at offset `at` of an open file,
 * beginning with the header. Sets errno if the result is KILN__FAILED. */
kiln__verdict kiln__wire_load(kiln__cache *cache, int fd, uint64_t at,
                              uint64_t size, kiln__entry **out);
/* Reads and checks a whole entry file. `info` is the result of fstat(). */
kiln__verdict kiln__disk_load(kiln__cache *cache, int dir, const char *name,
                              kiln__entry **out, struct stat *info);
/* Reads only the key text of an entry file, for listings, into an empty buffer.
 */
kiln__verdict kiln__disk_peek(kiln__cache *cache, int dir, const char *name,
                              kiln__buf *key, struct stat *info);
/* Unlinks a file name if it still refers to the file that `info` describes.
 * Returns false and sets errno on failure. */
bool kiln__disk_unlink(kiln__cache *cache, int dir, const char *name,
                       const struct stat *info);
/* Reads the entry of a key from disk, or returns NULL. Removes and counts a
 * damaged file. */
kiln__entry *kiln__disk_read(kiln__cache *cache, const kiln__key *key);
/* Writes the entry to the cache folder. A failure is counted and logged. */
void kiln__disk_publish(kiln__cache *cache, kiln__entry *entry);
/* Removes the file of this entry from the cache folder, unless another entry
 * has replaced it. */
void kiln__disk_reject(kiln__cache *cache, kiln__entry *entry);

/* ---- evict.c ------------------------------------------------------------- */

typedef struct kiln__file_item {
  int64_t used_ns;
  uint64_t bytes;
  /* the modification time lies in the future, so the file counts as old */
  bool future;
  char name[KILN__NAME_SIZE];
} kiln__file_item;

typedef struct kiln__files {
  kiln__file_item *items; /* entry files of any format version */
  size_t n, capacity;
  uint64_t bytes; /* total size of all files in the cache folder, in bytes */
  uint64_t swept; /* number of stale temporary files removed */
} kiln__files;

/* Lists the cache folder. If `sweep` is true, stale temporary files are also
 * removed. Returns KILN_OK, KILN_EIO with errno, or KILN_ENOMEM, without an
 * error record. */
kiln_status kiln__files_list(kiln__cache *cache, int dir, bool sweep,
                             kiln__files *out);
void kiln__files_free(kiln__cache *cache, kiln__files *scan);
/* Removes the least recently used entries until at most `target` bytes remain.
 * Returns the number of removed entries. */
uint64_t kiln__evict(kiln__cache *cache, int dir, kiln__files *scan,
                     uint64_t target);
/* Waits briefly for the eviction lock. Returns the descriptor that holds the
 * lock, or -1. */
int kiln__evict_lock(kiln__cache *cache, int dir);
/* Evicts entries until a file of `size` bytes fits into the cache folder.
 * Returns false and sets errno if that fails. *lock receives the eviction lock
 * or -1; the caller releases the lock once the file is in the folder. */
bool kiln__space_make(kiln__cache *cache, int dir, uint64_t size, int *lock);

/* ---- flight.c ------------------------------------------------------------ */

/* Makes the entry once for all threads and processes that request it (see
 * flight.c). Returns the statuses of kiln__cache_fetch(). */
kiln_status kiln__flight_run(kiln__cache *cache, const kiln__fetch *fetch,
                             kiln__entry **out, kiln_origin *origin);
/* Calls `make`, counts the miss, and publishes the resulting entry. */
kiln_status kiln__make(kiln__cache *cache, const kiln__fetch *fetch,
                       kiln__entry **out);

/* ---- pack_file.c --------------------------------------------------------- */

/* Records the paths of the packs. The files are opened at the first look-up. */
kiln_status kiln__packs_create(kiln__cache *cache, const char *const *paths,
                               size_t n);
void kiln__packs_free(kiln__cache *cache);
/* Marks an entry as refused by the driver, so that no pack offers it again. */
void kiln__packs_reject(kiln__cache *cache, const kiln__entry *entry);

#endif
