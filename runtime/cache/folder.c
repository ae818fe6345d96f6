/* folder.c -- opening the cache folder safely; names and locks in it.
 *
 * What is in the folder runs on the GPU with the user's data, so the folder
 * has to be the user's (or root's), and nobody else may write to it. */
#include "tiers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY };

void kiln__file_close(kiln__cache *cache, int fd)
{
  const int code = errno;

  if (fd >= 0)
    cache->fs->close(cache->fs->user, fd);
  errno = code;
}

int kiln__file_open(kiln__cache *cache, int dir, const char *name, int flags,
                    mode_t mode)
{
  int fd;

  do {
    fd = cache->fs->openat(cache->fs->user, dir, name,
                           flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

static int open_dir(kiln__cache *cache, int flags)
{
  int fd;

  do {
    fd = cache->fs->openat(cache->fs->user, AT_FDCWD, cache->dir,
                           DIR_FLAGS | flags, 0);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

static bool trusted_owner(uid_t uid)
{
  return uid == geteuid() || uid == 0;
}

/* A link in a folder that others may write to, such as /tmp, could lead
 * anywhere; one that the user or root made is followed. */
static int open_link(kiln__cache *cache)
{
  const int code = errno;
  struct stat info;

  if ((code != ELOOP && code != ENOTDIR) ||
      cache->fs->fstatat(cache->fs->user, AT_FDCWD, cache->dir, &info) != 0 ||
      !S_ISLNK(info.st_mode) || !trusted_owner(info.st_uid)) {
    errno = code;
    return -1;
  }
  return open_dir(cache, 0);
}

/* Missing parents too, all with mode 0700. False with errno. */
static bool make_dirs(kiln__cache *cache)
{
  const kiln__fs *fs = cache->fs;
  char path[4096];
  size_t i = 1;

  if (!kiln__copy_text(path, sizeof path, cache->dir)) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (;; i++) {
    const char c = path[i];

    if (c != '/' && c != '\0')
      continue;
    path[i] = '\0';
    if (fs->mkdirat(fs->user, AT_FDCWD, path, 0700) != 0 && errno != EEXIST &&
        c == '\0')
      return false; /* a parent may exist and still refuse: EROFS, EACCES */
    if (c == '\0')
      return true;
    path[i] = '/';
  }
}

static void explain(char why[256], int code)
{
  char text[96];
  const char *what = kiln__errno_text(code, text, sizeof text);

  if (why == NULL)
    return;
  switch (code) {
  case ENOTDIR:
    kiln__format(why, 256,
                 "it is not a folder: remove what is there, or set "
                 "KILN_CACHE_DIR to another path");
    break;
  case ELOOP:
    kiln__format(why, 256,
                 "it is a symbolic link that belongs to another user: set "
                 "KILN_CACHE_DIR to a folder of yours");
    break;
  case ENOENT:
    kiln__format(why, 256,
                 "there is no such folder and none could be made: set "
                 "KILN_CACHE_DIR to a folder that you may write to");
    break;
  default:
    kiln__format(why, 256,
                 "it cannot be opened (%s): mend that, or set KILN_CACHE_DIR "
                 "to a folder that you may write to",
                 what);
    break;
  }
}

/* 0, or EPERM with the reason. */
static int check_dir(const struct stat *info, char why[256])
{
  if (!trusted_owner(info->st_uid)) {
    if (why != NULL)
      kiln__format(why, 256,
                   "it belongs to user %lu, not to user %lu: set "
                   "KILN_CACHE_DIR to a folder of your own",
                   (unsigned long)info->st_uid, (unsigned long)geteuid());
    return EPERM;
  }
  if ((info->st_mode & 022) != 0) {
    if (why != NULL)
      kiln__format(why, 256,
                   "its mode %04o lets others write to it: run chmod go-w on "
                   "it, or set KILN_CACHE_DIR to a private folder",
                   (unsigned)info->st_mode & 07777);
    return EPERM;
  }
  return 0;
}

int kiln__folder_open(kiln__cache *cache, bool create, char why[256])
{
  struct stat info;
  int fd = open_dir(cache, O_NOFOLLOW), code;

  if (fd < 0 && errno == ENOENT && create && make_dirs(cache))
    fd = open_dir(cache, O_NOFOLLOW);
  if (fd < 0)
    fd = open_link(cache);
  if (fd < 0) {
    explain(why, errno);
    return -1;
  }
  code = cache->fs->fstat(cache->fs->user, fd, &info) != 0 ? errno : 0;
  if (code != 0)
    explain(why, code);
  else
    code = check_dir(&info, why);
  if (code == 0)
    return fd;
  kiln__file_close(cache, fd);
  errno = code;
  return -1;
}

/* ---- Names --------------------------------------------------------------- */

/* The number is the format version: versions of Kiln that share a folder must
 * not take each other's entries for damaged ones. */
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

/* Also of the note that NVRTC discovery keeps here. */
bool kiln__is_temp_name(const char *name)
{
  const size_t n = strlen(name);

  return n > 4 && strcmp(name + n - 4, ".tmp") == 0 &&
         (starts_with_hash(name) || kiln__starts_with(name, "nvrtc.memo."));
}

/* ---- Locks --------------------------------------------------------------- */

int kiln__lock_file(kiln__cache *cache, int dir)
{
  const int fd = kiln__file_open(cache, dir, "lock", O_RDWR | O_CREAT, 0600);

  if (fd < 0) {
    char text[96];
    const int code = errno;

    kiln__count(&cache->stats.lock_failures, 1);
    kiln__worry_about(cache, KILN__WORRY_LOCK, "%s/lock: %s; going on without",
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
      kiln__worry_about(cache, KILN__WORRY_LOCK,
                        "%s: cannot lock: %s; going on without", cache->dir,
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
  /* A forked child may hold a copy of the descriptor, so closing is not
   * enough. */
  cache->fs->unlock(cache->fs->user, fd, at);
  kiln__file_close(cache, fd);
}
