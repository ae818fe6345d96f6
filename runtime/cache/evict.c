/* evict.c -- keeps the size of the cache folder below the configured limit.
 *
 * Problem: the limit holds for all processes together. There is no daemon, and
 * a shared counter would become wrong if a process were killed.
 * Idea: only the folder itself records its size. A process lists the folder
 * before it publishes its first entry. The process lists the folder again
 * whenever it has published one sixteenth of the space that the previous
 * listing left. The least recently used entries are evicted first, ordered by
 * the modification times that Kiln sets.
 * Invariant: up to sixteen processes that add entries at full speed stay below
 * the limit. Listing and removing files need no lock. A lock is held briefly so
 * that processes do not all list the folder concurrently. The lock also ensures
 * that the bytes of a new entry are counted by the next listing.
 * Cost: one listing per sixteenth of the free space. Eviction continues down to
 * 90 % of the limit, so that one listing serves several entries. */
#include "tiers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_WAIT_MS = 100, WRITERS = 16 };

/* Age after which a temporary file is considered abandoned by a process that
 * has died. */
#define STALE_NS ((int64_t)3600 * 1000000000)

static kiln_status add_item(kiln__cache *cache, kiln__files *scan,
                            const char *name, const struct stat *info,
                            int64_t now)
{
  kiln__file_item *item;

  if (scan->n == scan->capacity) {
    const size_t capacity = scan->capacity == 0 ? 256 : scan->capacity * 2;
    kiln__file_item *items =
        kiln__resize(cache->alloc, scan->items, capacity * sizeof *scan->items);

    if (items == NULL)
      return KILN_ENOMEM;
    scan->items = items;
    scan->capacity = capacity;
  }
  item = &scan->items[scan->n++];
  item->used_ns = kiln__stat_ns(info);
  item->bytes = (uint64_t)info->st_size;
  item->future = item->used_ns > now + STALE_NS;
  kiln__copy_text(item->name, sizeof item->name, name);
  return KILN_OK;
}

static kiln_status scan_one(kiln__cache *cache, int dir, const char *name,
                            bool sweep, int64_t now, kiln__files *scan)
{
  const kiln__fs *fs = cache->fs;
  struct stat info;
  int64_t age;

  if (name[0] == '.')
    return KILN_OK;
  if (fs->fstatat(fs->user, dir, name, &info) != 0)
    return errno == ENOENT ? KILN_OK : KILN_EIO;
  if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
    return KILN_OK;
  age = now - kiln__stat_ns(&info);
  /* A modification time far in the future means that the clock was set back. */
  if (sweep && kiln__is_temp_name(name) &&
      (age > STALE_NS || age < -STALE_NS) &&
      fs->unlinkat(fs->user, dir, name) == 0) {
    scan->swept++;
    return KILN_OK;
  }
  scan->bytes += (uint64_t)info.st_size;
  return kiln__is_entry_name(name) ? add_item(cache, scan, name, &info, now)
                                   : KILN_OK;
}

kiln_status kiln__files_list(kiln__cache *cache, int dir, bool sweep,
                             kiln__files *out)
{
  const kiln__fs *fs = cache->fs;
  const int64_t now = kiln__time_ns();
  const int fd = kiln__entry_open(cache, dir, ".", O_RDONLY | O_DIRECTORY, 0);
  kiln_status st = KILN_OK;
  struct dirent *file;
  DIR *list;

  *out = (kiln__files){.items = NULL};
  if (fd < 0)
    return KILN_EIO;
  list = fs->fdopendir(fs->user, fd);
  if (list == NULL) {
    kiln__file_close(cache->fs, fd);
    return KILN_EIO;
  }
  while (st == KILN_OK) {
    errno = 0;
    file = fs->readdir(fs->user, list);
    if (file == NULL) {
      if (errno == EINTR)
        continue;
      st = errno == 0 ? KILN_OK : KILN_EIO;
      break;
    }
    st = scan_one(cache, dir, file->d_name, sweep, now, out);
  }
  {
    const int code = errno;

    closedir(list);
    errno = code;
  }
  if (st != KILN_OK)
    kiln__files_free(cache, out);
  return st;
}

void kiln__files_free(kiln__cache *cache, kiln__files *scan)
{
  kiln__free(cache->alloc, scan->items);
  *scan = (kiln__files){.items = NULL};
}

static int by_use(const void *left, const void *right)
{
  const kiln__file_item *a = left, *b = right;

  if (a->future != b->future)
    return a->future ? -1 : 1;
  if (a->used_ns != b->used_ns)
    return a->used_ns < b->used_ns ? -1 : 1;
  return strcmp(a->name, b->name);
}

uint64_t kiln__evict(kiln__cache *cache, int dir, kiln__files *scan,
                     uint64_t target)
{
  const kiln__fs *fs = cache->fs;
  uint64_t removed = 0;

  if (scan->bytes <= target || scan->n == 0)
    return 0;
  qsort(scan->items, scan->n, sizeof *scan->items, by_use);
  for (size_t i = 0; i < scan->n && scan->bytes > target; i++) {
    const bool done = fs->unlinkat(fs->user, dir, scan->items[i].name) == 0;

    if (!done && errno != ENOENT)
      continue;
    scan->bytes -= scan->items[i].bytes;
    removed += done;
  }
  kiln__count(&cache->stats.evicted, removed);
  return removed;
}

int kiln__evict_lock(kiln__cache *cache, int dir)
{
  const int fd = kiln__lock_file(cache, dir);

  if (fd < 0)
    return -1;
  if (kiln__lock_wait(cache, fd, KILN__EVICT_LOCK, LOCK_WAIT_MS))
    return fd;
  kiln__file_close(cache->fs, fd);
  return -1;
}

bool kiln__space_make(kiln__cache *cache, int dir, uint64_t size, int *lock)
{
  /* Evicting down to 90 % of the limit lets one listing serve several entries.
   */
  const uint64_t cap = cache->cap, high = cap - cap / 20, low = cap - cap / 10;
  kiln__files scan;
  bool fits;

  *lock = -1;
  if (size > cap) {
    errno = EFBIG;
    return false;
  }
  if (__atomic_sub_fetch(&cache->budget, (int64_t)size, __ATOMIC_RELAXED) >= 0)
    return true;
  *lock = kiln__evict_lock(cache, dir);
  switch (kiln__files_list(cache, dir, true, &scan)) {
  case KILN_OK:
    break;
  case KILN_ENOMEM:
    errno = ENOMEM;
    return false;
  default:
    return false;
  }
  if (scan.bytes + size > high)
    kiln__evict(cache, dir, &scan, low > size ? low - size : 0);
  fits = scan.bytes + size <= cap;
  __atomic_store_n(&cache->budget,
                   fits ? (int64_t)((cap - scan.bytes - size) / WRITERS) : 0,
                   __ATOMIC_RELAXED);
  kiln__files_free(cache, &scan);
  if (!fits)
    errno = ENOSPC;
  return fits;
}
