/* trusted_folder.c -- opens a folder that belongs to this user and that no
 * other user can write.
 *
 * Problem: files in Kiln's cache run on the GPU with the user's data, and the
 * NVRTC memo decides which libraries are loaded. Anyone who can place a file or
 * a symbolic link in that folder can run code as this user.
 * Idea: open the folder once and check the open descriptor. Reach every file in
 * the folder relative to that descriptor, without following symbolic links
 * (openat, O_NOFOLLOW). Replacing the folder after the check therefore has no
 * effect.
 * Invariant: a descriptor that kiln__folder_open() returns belongs to a folder
 * of the effective user or of root, to which group and others cannot write. */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY };

void kiln__file_close(const kiln__fs *fs, int fd)
{
  const int code = errno;

  if (fd >= 0)
    fs->close(fs->user, fd);
  errno = code;
}

int kiln__file_open(const kiln__fs *fs, int dir, const char *name, int flags,
                    mode_t mode)
{
  int fd;

  do {
    fd = fs->openat(fs->user, dir, name, flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

static bool trusted_owner(uid_t uid)
{
  return uid == geteuid() || uid == 0;
}

/* Returns true if the path itself is a symbolic link; *owner receives the
 * link's owner. */
static bool is_link(const kiln__fs *fs, const char *path, uid_t *owner)
{
  const int code = errno;
  struct stat info;
  const bool link = fs->fstatat(fs->user, AT_FDCWD, path, &info) == 0 &&
                    S_ISLNK(info.st_mode);

  if (link)
    *owner = info.st_uid;
  errno = code;
  return link;
}

/* Opens a folder whose path is a symbolic link. The link is followed only if
 * this user or root created the link. In a folder that others may write to,
 * such as /tmp, other links could lead anywhere. */
static int open_link(const kiln__fs *fs, const char *path)
{
  uid_t owner;

  if ((errno != ELOOP && errno != ENOTDIR) || !is_link(fs, path, &owner) ||
      !trusted_owner(owner))
    return -1;
  return kiln__file_open(fs, AT_FDCWD, path, DIR_FLAGS, 0);
}

/* Creates the folder and its missing parents with mode 0700. For a parent that
 * exists, mkdir() may fail with an error other than EEXIST (such as EROFS or
 * EACCES), so only the last mkdir() decides the result. Returns false and sets
 * errno on failure. */
static bool make_dirs(const kiln__fs *fs, const char *folder)
{
  char path[4096];

  if (!kiln__copy_text(path, sizeof path, folder)) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (size_t i = 1;; i++) {
    const char c = path[i];

    if (c != '/' && c != '\0')
      continue;
    path[i] = '\0';
    if (fs->mkdirat(fs->user, AT_FDCWD, path, 0700) != 0 && errno != EEXIST &&
        c == '\0')
      return false;
    if (c == '\0')
      return true;
    path[i] = '/';
  }
}

static void explain_link(char why[256], int code, uid_t owner)
{
  if (!trusted_owner(owner))
    kiln__format(why, 256,
                 "it is a symbolic link of user %lu, not of user %lu: set "
                 "KILN_CACHE_DIR to a folder of your own",
                 (unsigned long)owner, (unsigned long)geteuid());
  else if (code == ELOOP)
    kiln__copy_text(why, 256,
                    "it is a symbolic link that leads to itself: remove it, or "
                    "set KILN_CACHE_DIR to another path");
  else
    kiln__copy_text(why, 256,
                    "it is a symbolic link to something that is no folder: "
                    "remove it, or set KILN_CACHE_DIR to another path");
}

static void explain(const kiln__fs *fs, const char *path, char why[256],
                    int code)
{
  char text[96];
  uid_t owner;

  if (why == NULL)
    return;
  if ((code == ENOTDIR || code == ELOOP) && is_link(fs, path, &owner))
    explain_link(why, code, owner);
  else if (code == ENOTDIR)
    kiln__copy_text(why, 256,
                    "it is not a folder: remove what is there, or set "
                    "KILN_CACHE_DIR to another path");
  else if (code == ENOENT)
    kiln__copy_text(why, 256,
                    "there is no such folder and none could be made: set "
                    "KILN_CACHE_DIR to a folder that you may write to");
  else
    kiln__format(why, 256,
                 "it cannot be opened (%s): correct that, or set "
                 "KILN_CACHE_DIR to a folder that you may write to",
                 kiln__errno_text(code, text, sizeof text));
}

/* Checks the owner and the permissions of a folder. Returns 0, or EPERM with
 * the reason in `why`. */
static int check_dir(const struct stat *info, char why[256])
{
  char unused[256];

  if (why == NULL)
    why = unused;
  if (!trusted_owner(info->st_uid)) {
    kiln__format(why, 256,
                 "it belongs to user %lu, not to user %lu: set "
                 "KILN_CACHE_DIR to a folder of your own",
                 (unsigned long)info->st_uid, (unsigned long)geteuid());
    return EPERM;
  }
  if ((info->st_mode & 022) != 0) {
    kiln__format(why, 256,
                 "its mode %04o lets others write to it: run chmod go-w on "
                 "it, or set KILN_CACHE_DIR to a private folder",
                 (unsigned)info->st_mode & 07777);
    return EPERM;
  }
  return 0;
}

int kiln__folder_open(const kiln__fs *fs, const char *path, bool create,
                      char why[256])
{
  const int flags = DIR_FLAGS | O_NOFOLLOW;
  struct stat info;
  int fd = kiln__file_open(fs, AT_FDCWD, path, flags, 0), code;

  if (fd < 0 && errno == ENOENT && create && make_dirs(fs, path))
    fd = kiln__file_open(fs, AT_FDCWD, path, flags, 0);
  if (fd < 0)
    fd = open_link(fs, path);
  if (fd < 0) {
    code = errno;
    explain(fs, path, why, code);
    errno = code;
    return -1;
  }
  code = fs->fstat(fs->user, fd, &info) != 0 ? errno : 0;
  if (code != 0)
    explain(fs, path, why, code);
  else
    code = check_dir(&info, why);
  if (code == 0)
    return fd;
  kiln__file_close(fs, fd);
  errno = code;
  return -1;
}
