/* disk.c -- the disk tier: reads, publishes and rejects entry files.
 *
 * Problem: many processes, running several versions of Kiln, share a folder
 * without a daemon. Any process may be killed at any instruction, disks fill
 * up, and network file systems reorder writes.
 * Idea: publish by renaming, and check on reading. A new entry is written to a
 * temporary file in the same folder and then renamed, so no reader sees a
 * partial file. A reader checks the owner, mode, size, checksums and stored
 * key. An entry that fails a check is removed and counts as a miss.
 * Invariant: an entry that passes the checks is the image that its key
 * describes. Entries are not synced, because the caller waits for the image.
 * fsync() costs 3 to 8 ms per entry on an SSD, compared with 1 ms for a write
 * and 10 to 20 ms for a small compile. The checksums detect entries that a
 * power failure tore; the loss is one compile.
 * Cost of a hit: open, fstat, two reads, close, and XXH3 over the file content.
 */
#include "tiers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Minimum time between two updates of an entry file's modification time, which
 * each cache hit may update. */
#define TOUCH_NS ((int64_t)60 * 1000000000)

static void set_time(kiln__cache *cache, int fd, int64_t now)
{
  const struct timespec t = {.tv_sec = (time_t)(now / 1000000000),
                             .tv_nsec = (long)(now % 1000000000)};
  const struct timespec both[2] = {t, t};

  /* A failure to set the time (another owner, a read-only folder) only affects
   * the order of eviction. */
  (void)cache->fs->futimens(cache->fs->user, fd, both);
}

/* Records the time of a cache hit in the entry file's modification time. Access
 * times cannot be used, since they do not change on noatime mounts. */
static void touch(kiln__cache *cache, int fd, const struct stat *info)
{
  const int64_t now = kiln__time_ns(), age = now - kiln__stat_ns(info);

  if (age >= TOUCH_NS || age <= -TOUCH_NS)
    set_time(cache, fd, now);
}

/* Opens a file that may be an entry and checks its type, owner, mode and size.
 * *out is -1 unless the result is KILN__LOADED. */
static kiln__verdict open_entry(kiln__cache *cache, int dir, const char *name,
                                int *out, struct stat *info)
{
  const kiln__fs *fs = cache->fs;
  /* O_NONBLOCK prevents open() from blocking if the name refers to a FIFO. */
  const int fd = kiln__entry_open(cache, dir, name, O_RDONLY | O_NONBLOCK, 0);

  *out = -1;
  if (fd < 0) {
    if (errno == ENOENT)
      return KILN__ABSENT;
    if (errno == ELOOP && fs->fstatat(fs->user, dir, name, info) == 0)
      return KILN__BAD;
    errno = errno == ELOOP ? EIO : errno;
    return KILN__FAILED;
  }
  if (fs->fstat(fs->user, fd, info) != 0) {
    kiln__file_close(cache->fs, fd);
    return KILN__FAILED;
  }
  if (!S_ISREG(info->st_mode) ||
      (info->st_uid != geteuid() && info->st_uid != 0) ||
      (info->st_mode & 022) != 0 || info->st_size < KILN__WIRE_HEAD ||
      (uint64_t)info->st_size > KILN__ENTRY_LIMIT) {
    kiln__file_close(cache->fs, fd);
    return KILN__BAD;
  }
  *out = fd;
  return KILN__LOADED;
}

/* An entry file that ends before its recorded size is damaged. Other read
 * failures do not show that the file is damaged. */
static kiln__verdict read_at(kiln__cache *cache, int fd, void *data, size_t n,
                             uint64_t at)
{
  if (kiln__pread_all(cache->fs, fd, data, n, at))
    return KILN__LOADED;
  return errno == 0 ? KILN__BAD : KILN__FAILED;
}

/* Reads and checks the header of an entry file. The header's checksum also
 * covers the sizes of the file's parts. If the sizes do not add up to the file
 * size, the rest of the file is not read, however large the file is. */
static kiln__verdict read_head(kiln__cache *cache, int fd, uint64_t at,
                               uint64_t size,
                               unsigned char head[KILN__WIRE_HEAD],
                               kiln__wire *wire)
{
  const kiln__verdict verdict = read_at(cache, fd, head, KILN__WIRE_HEAD, at);

  if (verdict == KILN__LOADED && !kiln__wire_read(wire, head, size))
    return KILN__BAD;
  return verdict;
}

kiln__verdict kiln__wire_load(kiln__cache *cache, int fd, uint64_t at,
                              uint64_t size, kiln__entry **out)
{
  unsigned char head[KILN__WIRE_HEAD];
  kiln__entry *entry;
  kiln__wire wire;
  kiln__verdict verdict = read_head(cache, fd, at, size, head, &wire);

  *out = NULL;
  if (verdict != KILN__LOADED)
    return verdict;
  entry = kiln__entry_reserve(cache->alloc, (size_t)size);
  if (entry == NULL) {
    errno = ENOMEM;
    return KILN__FAILED;
  }
  memcpy(entry->block, head, sizeof head);
  verdict = read_at(cache, fd, entry->block + sizeof head,
                    (size_t)size - sizeof head, at + sizeof head);
  if (verdict == KILN__LOADED && !kiln__entry_decode(entry))
    verdict = KILN__BAD;
  if (verdict == KILN__LOADED)
    *out = entry;
  else
    kiln__entry_unref(entry);
  return verdict;
}

kiln__verdict kiln__disk_load(kiln__cache *cache, int dir, const char *name,
                              kiln__entry **out, struct stat *info)
{
  int fd;
  kiln__verdict verdict = open_entry(cache, dir, name, &fd, info);

  *out = NULL;
  if (verdict != KILN__LOADED)
    return verdict;
  verdict = kiln__wire_load(cache, fd, 0, (uint64_t)info->st_size, out);
  kiln__file_close(cache->fs, fd);
  return verdict;
}

static kiln__verdict peek_open(kiln__cache *cache, int fd, kiln__buf *key,
                               uint64_t size)
{
  unsigned char head[KILN__WIRE_HEAD];
  kiln__wire wire;
  kiln__verdict verdict = read_head(cache, fd, 0, size, head, &wire);

  if (verdict != KILN__LOADED)
    return verdict;
  if (!kiln__buf_reserve(key, (size_t)wire.size[0])) {
    errno = ENOMEM;
    return KILN__FAILED;
  }
  verdict = read_at(cache, fd, key->data, (size_t)wire.size[0], sizeof head);
  if (verdict != KILN__LOADED)
    return verdict;
  key->size = (size_t)wire.size[0];
  key->data[key->size] = '\0';
  return kiln__sum64(key->data, key->size) == wire.sum[0] ? KILN__LOADED
                                                          : KILN__BAD;
}

kiln__verdict kiln__disk_peek(kiln__cache *cache, int dir, const char *name,
                              kiln__buf *key, struct stat *info)
{
  int fd;
  kiln__verdict verdict = open_entry(cache, dir, name, &fd, info);

  if (verdict != KILN__LOADED)
    return verdict;
  verdict = peek_open(cache, fd, key, (uint64_t)info->st_size);
  kiln__file_close(cache->fs, fd);
  return verdict;
}

bool kiln__disk_unlink(kiln__cache *cache, int dir, const char *name,
                       const struct stat *info)
{
  const kiln__fs *fs = cache->fs;
  struct stat now;

  if (fs->fstatat(fs->user, dir, name, &now) != 0 ||
      now.st_ino != info->st_ino || now.st_dev != info->st_dev ||
      now.st_size != info->st_size) {
    errno = ENOENT; /* another process has replaced the entry file meanwhile */
    return false;
  }
  return fs->unlinkat(fs->user, dir, name) == 0;
}

/* ---- Reading ------------------------------------------------------------- */

/* Removes and counts a damaged entry file, so that the next compile can be
 * cached. If a folder has the name of the entry file, it cannot be removed, so
 * the key stays uncached. */
static void note_bad(kiln__cache *cache, int dir, const char *name,
                     const struct stat *info)
{
  char text[96];

  kiln__count(&cache->stats.corrupt, 1);
  if (S_ISDIR(info->st_mode))
    kiln__warn(cache, KILN__WARNING_CORRUPT,
               "%s/%s is a folder where a cache entry belongs: its program is "
               "not cached; remove the folder",
               cache->dir, name);
  else if (kiln__disk_unlink(cache, dir, name, info))
    kiln__warn(cache, KILN__WARNING_CORRUPT,
               "%s/%s is damaged or not ours; removed", cache->dir, name);
  else
    kiln__warn(cache, KILN__WARNING_CORRUPT,
               "%s/%s is damaged or not ours and cannot be removed (%s): its "
               "program is not cached",
               cache->dir, name, kiln__errno_text(errno, text, sizeof text));
}

static void note_failed(kiln__cache *cache, const char *name)
{
  const int code = errno;
  char text[96];

  kiln__count(&cache->stats.read_failures, 1);
  kiln__warn(cache, KILN__WARNING_READ, "%s/%s cannot be read: %s", cache->dir,
             name, kiln__errno_text(code, text, sizeof text));
}

static kiln__entry *read_entry(kiln__cache *cache, int dir,
                               const kiln__key *key)
{
  char name[KILN__NAME_SIZE];
  struct stat info;
  kiln__entry *entry = NULL;
  kiln__verdict verdict;
  int fd;

  kiln__entry_name(name, key->hash);
  verdict = open_entry(cache, dir, name, &fd, &info);
  if (verdict == KILN__LOADED)
    verdict = kiln__wire_load(cache, fd, 0, (uint64_t)info.st_size, &entry);
  if (verdict == KILN__FAILED)
    note_failed(cache, name);
  else if (verdict == KILN__BAD)
    note_bad(cache, dir, name, &info);
  if (entry != NULL && !kiln__entry_has_key(entry, &key->text)) {
    kiln__count(&cache->stats.forged, 1);
    kiln__disk_unlink(cache, dir, name, &info);
    kiln__entry_unref(entry);
    entry = NULL;
  }
  if (entry != NULL)
    touch(cache, fd, &info);
  kiln__file_close(cache->fs, fd);
  return entry;
}

kiln__entry *kiln__disk_read(kiln__cache *cache, const kiln__key *key)
{
  char why[256] = "";
  kiln__entry *entry;
  int dir, code;

  if (cache->dir == NULL)
    return NULL;
  dir = kiln__cache_folder(cache, false, why);
  if (dir < 0) {
    code = errno;
    if (code != ENOENT && code != EPERM)
      kiln__count(&cache->stats.read_failures, 1);
    if (code != ENOENT)
      kiln__warn(cache, KILN__WARNING_FOLDER,
                 "the cache folder %s is not used: %s", cache->dir, why);
    return NULL;
  }
  entry = read_entry(cache, dir, key);
  kiln__file_close(cache->fs, dir);
  return entry;
}

/* ---- Publishing ---------------------------------------------------------- */

static bool write_parts(kiln__cache *cache, int fd, const kiln__entry *entry)
{
  unsigned char head[KILN__WIRE_HEAD];

  kiln__entry_head(entry, head);
  if (!kiln__write_all(cache->fs, fd, head, sizeof head))
    return false;
  for (int i = 0; i < KILN__WIRE_PARTS; i++) {
    if (!kiln__write_all(cache->fs, fd, entry->parts[i].data,
                         entry->parts[i].size))
      return false;
  }
  return true;
}

/* Writes and closes the temporary file of a new entry. Returns false and sets
 * errno on failure. The eviction lock is released as soon as a listing of the
 * folder would count the new bytes. */
static bool fill_temp(kiln__cache *cache, int fd, const kiln__entry *entry,
                      int *room)
{
  bool good = write_parts(cache, fd, entry);

  {
    const int code = errno;

    kiln__lock_release(cache, *room, KILN__EVICT_LOCK);
    *room = -1;
    errno = code;
  }
  if (!good) {
    kiln__file_close(cache->fs, fd);
    return false;
  }
  set_time(cache, fd, kiln__time_ns());
  /* On network file systems, close() reports a full disk or quota. The
   * descriptor is closed even if close() fails with EINTR. */
  return cache->fs->close(cache->fs->user, fd) == 0 || errno == EINTR;
}

/* Publishes an entry in the open cache folder. On failure, returns false, sets
 * errno and removes the temporary file. If the removal also fails, a later
 * listing of the folder removes the file after an hour. */
static bool publish_in(kiln__cache *cache, int dir, const kiln__entry *entry)
{
  const kiln__fs *fs = cache->fs;
  char name[KILN__NAME_SIZE], temp[128];
  int fd, room = -1, code = 0;

  kiln__entry_name(name, entry->hash);
  kiln__format(temp, sizeof temp, "%s.%lx.%x.%llx.tmp", entry->hash,
               (unsigned long)getpid(),
               __atomic_fetch_add(&cache->n_temps, 1, __ATOMIC_RELAXED),
               (unsigned long long)kiln__time_ns());
  if (!kiln__space_make(cache, dir, entry->wire_size, &room)) {
    code = errno;
    kiln__lock_release(cache, room, KILN__EVICT_LOCK);
    errno = code;
    return false;
  }
  fd = kiln__entry_open(cache, dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0) {
    code = errno;
    kiln__lock_release(cache, room, KILN__EVICT_LOCK);
    errno = code;
    return false;
  }
  if (!fill_temp(cache, fd, entry, &room) ||
      fs->renameat(fs->user, dir, temp, name) != 0)
    code = errno;
  if (code != 0)
    fs->unlinkat(fs->user, dir, temp);
  errno = code;
  return code == 0;
}

void kiln__disk_publish(kiln__cache *cache, kiln__entry *entry)
{
  char why[256] = "", text[96];
  bool good;
  int dir;

  if (cache->dir == NULL)
    return;
  dir = kiln__cache_folder(cache, true, why);
  good = dir >= 0 && publish_in(cache, dir, entry);
  if (good)
    kiln__count(&cache->stats.published, 1);
  else
    kiln__count(&cache->stats.write_failures, 1);
  if (dir < 0)
    kiln__warn(cache, KILN__WARNING_FOLDER,
               "the cache folder %s is not used: %s", cache->dir, why);
  else if (!good)
    kiln__warn(cache, KILN__WARNING_WRITE,
               "nothing could be added to the cache folder %s: %s", cache->dir,
               kiln__errno_text(errno, text, sizeof text));
  kiln__file_close(cache->fs, dir);
}

void kiln__disk_reject(kiln__cache *cache, kiln__entry *entry)
{
  char name[KILN__NAME_SIZE];
  kiln__entry *there;
  struct stat info;
  int dir;

  if (cache->dir == NULL)
    return;
  dir = kiln__cache_folder(cache, false, NULL);
  if (dir < 0)
    return;
  kiln__entry_name(name, entry->hash);
  if (kiln__disk_load(cache, dir, name, &there, &info) == KILN__LOADED &&
      kiln__entry_same(there, entry))
    kiln__disk_unlink(cache, dir, name, &info);
  kiln__entry_unref(there);
  kiln__file_close(cache->fs, dir);
}
