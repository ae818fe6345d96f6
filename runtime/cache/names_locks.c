/* names_locks.c -- names of the files in the cache folder, and the folder's
 * lock file. */
#include "tiers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int kiln__cache_folder(kiln__cache *cache, bool create, char why[256])
{
  return kiln__folder_open(cache->fs, cache->dir, create, why);
}

int kiln__entry_open(kiln__cache *cache, int dir, const char *name, int flags,
                     mode_t mode)
{
  return kiln__file_open(cache->fs, dir, name, flags | O_NOFOLLOW, mode);
}

/* ---- Names --------------------------------------------------------------- */

/* The number in the name is the version of the file format. Versions of Kiln
 * that share a folder must not treat each other's entries as damaged. */
static const char extension[] = ".k1";

void kiln__entry_name(char name[KILN__NAME_SIZE], const char *hash)
{
  kiln__format(name, KILN__NAME_SIZE, "%.32s%s", hash, extension);
}

static bool starts_with_hash(const char *name)
{
  return strspn(name, "0123456789abcdef") == 32;
}

bool kiln__is_current_name(const char *name)
{
  return starts_with_hash(name) && strcmp(name + 32, extension) == 0;
}

bool kiln__is_entry_name(const char *name)
{
  size_t digits;

  if (!starts_with_hash(name) || !kiln__starts_with(name + 32, ".k"))
    return false;
  digits = strspn(name + 34, "0123456789");
  return digits > 0 && digits < 8 && name[34 + digits] == '\0';
}

/* The pattern also matches the temporary files of the NVRTC memo (stored
 * library descriptions), which is in the same folder. */
bool kiln__is_temp_name(const char *name)
{
  const size_t n = strlen(name);

  return n > 4 && strcmp(name + n - 4, ".tmp") == 0 &&
         (starts_with_hash(name) || kiln__starts_with(name, "nvrtc.memo."));
}

/* ---- Locks --------------------------------------------------------------- */

int kiln__lock_file(kiln__cache *cache, int dir)
{
  const int fd = kiln__entry_open(cache, dir, "lock", O_RDWR | O_CREAT, 0600);

  if (fd < 0) {
    char text[96];
    const int code = errno;

    kiln__count(&cache->stats.lock_failures, 1);
    kiln__warn(cache, KILN__WARNING_LOCK, "%s/lock: %s; continuing without it",
               cache->dir, kiln__errno_text(code, text, sizeof text));
  }
  return fd;
}

bool kiln__lock_wait(kiln__cache *cache, int fd, off_t at, unsigned wait_ms)
{
  const uint64_t deadline = kiln__clock_ns() + (uint64_t)wait_ms * 1000000;
  char text[96];

  while (cache->fs->lock(cache->fs->user, fd, at) != 0) {
    if (errno != EAGAIN && errno != EINTR) {
      const int code = errno;

      kiln__count(&cache->stats.lock_failures, 1);
      kiln__warn(cache, KILN__WARNING_LOCK,
                 "%s: cannot lock: %s; continuing without it", cache->dir,
                 kiln__errno_text(code, text, sizeof text));
      errno = code;
      return false;
    }
    if (kiln__clock_ns() >= deadline) {
      errno = EAGAIN;
      return false;
    }
    kiln__sleep_ns(1000000);
  }
  return true;
}

void kiln__lock_release(kiln__cache *cache, int fd, off_t at)
{
  if (fd < 0)
    return;
  /* A forked child may hold a copy of the descriptor, so closing the descriptor
   * does not always release the lock. */
  cache->fs->unlock(cache->fs->user, fd, at);
  kiln__file_close(cache->fs, fd);
}
