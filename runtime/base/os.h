/* os.h -- the operating-system services that Kiln uses: files, folders, clocks,
 * the environment, and fork detection. */
#ifndef KILN_OS_H
#define KILN_OS_H

#include "base.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A table of the file operations that the cache uses. Tests replace the table
 * to make each operation fail in turn. Each member follows the contract of the
 * system call with the same name: it returns -1 and sets errno on failure. */
typedef struct kiln__fs {
  int (*openat)(void *user, int dir, const char *name, int flags, mode_t mode);
  ssize_t (*read)(void *user, int fd, void *buf, size_t n);
  ssize_t (*pread)(void *user, int fd, void *buf, size_t n, off_t at);
  ssize_t (*write)(void *user, int fd, const void *buf, size_t n);
  int (*close)(void *user, int fd);
  int (*fstat)(void *user, int fd, struct stat *out);
  int (*fstatat)(void *user, int dir, const char *name, struct stat *out);
  int (*mkdirat)(void *user, int dir, const char *name, mode_t mode);
  int (*renameat)(void *user, int dir, const char *from, const char *to);
  int (*unlinkat)(void *user, int dir, const char *name);
  int (*futimens)(void *user, int fd, const struct timespec times[2]);
  /* Locks the byte at offset `at` exclusively. Returns -1 with errno EAGAIN if
   * another process holds the lock. */
  int (*lock)(void *user, int fd, off_t at);
  int (*unlock)(void *user, int fd, off_t at);
  DIR *(*fdopendir)(void *user, int fd);
  struct dirent *(*readdir)(void *user, DIR *dir);
  void *user;
} kiln__fs;

/* The table of the real system calls. Its locks are open-file-description
 * locks. Callers use kiln__read_all() and kiln__write_all(), which retry after
 * EINTR. */
extern const kiln__fs kiln__fs_posix;

/* Write or read all n bytes, and retry after short counts and EINTR. Return
 * false and set errno on failure. A read past the end of the file returns false
 * with errno 0. */
bool kiln__write_all(const kiln__fs *fs, int fd, const void *data, size_t n);
bool kiln__read_all(const kiln__fs *fs, int fd, void *data, size_t n);
bool kiln__pread_all(const kiln__fs *fs, int fd, void *data, size_t n,
                     uint64_t at);

/* Reads a whole regular file of at most `limit` bytes into an empty buffer.
 * Never blocks on a pipe. Returns KILN_OK, KILN_EIO or KILN_ENOMEM. */
kiln_status kiln__read_file(kiln__buf *out, const char *path, size_t limit);

/* Writes a file atomically: readers see the complete old content or the
 * complete new content. The content is written to a temporary file in the same
 * folder, synchronised with fsync(), and renamed. If a device node or a folder
 * already has that path, the call fails and leaves it unchanged. Returns
 * KILN_OK or KILN_EIO. */
kiln_status kiln__replace_file(const char *path, const void *data, size_t size,
                               mode_t mode);

/* ---- Folders that only this user can write to (trusted_folder.c) --------- */

/* Opens a folder and returns its file descriptor, or returns -1 and sets errno.
 * ENOENT means that the folder does not exist or could not be created. EPERM
 * means that another user owns the folder or may write to it. `path` must not
 * end in '/'. With `create`, the folder and its missing parents are created
 * with mode 0700. `why` (may be NULL) receives the reason and the next step. */
int kiln__folder_open(const kiln__fs *fs, const char *path, bool create,
                      char why[256]);
/* Calls openat() with O_CLOEXEC and O_NOCTTY added, and retries after EINTR. */
int kiln__file_open(const kiln__fs *fs, int dir, const char *name, int flags,
                    mode_t mode);
/* Closes the file descriptor unless it is negative. Preserves errno. */
void kiln__file_close(const kiln__fs *fs, int fd);

/* ---- Time and environment ------------------------------------------------ */

/* Read the monotonic clock and the calendar clock, in nanoseconds. */
uint64_t kiln__clock_ns(void);
int64_t kiln__time_ns(void);
void kiln__sleep_ns(uint64_t ns);

/* Returns the value of an environment variable. Returns NULL if the variable is
 * unset or empty, or if the process runs with elevated privileges (see
 * secure_getenv()). */
const char *kiln__env(const char *name);

/* Returns the number of CPU cores that this process may use, at least 1. */
unsigned kiln__cores(void);

/* ---- Fork ---------------------------------------------------------------- */

/* Distinguishes a forked child from its parent without a system call: the
 * kernel zeroes a page of memory in the child (MADV_WIPEONFORK). */
typedef struct kiln__fork_guard {
  /* page that holds 1 in the creating process and 0 in a forked child; NULL if
   * the pid is compared instead */
  volatile uint32_t *page;
  pid_t pid;
} kiln__fork_guard;

void kiln__fork_guard_init(kiln__fork_guard *guard);
void kiln__fork_guard_free(kiln__fork_guard *guard);
bool kiln__forked(const kiln__fork_guard *guard);
/* Returns KILN_EFORKED, with an error record, in a forked child, else KILN_OK.
 */
kiln_status kiln__fork_check(const kiln__fork_guard *guard);

/* A mutex that detects a fork. A forked child may find the mutex locked by a
 * thread of its parent. That thread does not exist in the child, so it never
 * unlocks the mutex there. */
typedef struct kiln__fork_mutex {
  pthread_mutex_t mutex;
  kiln__fork_guard guard;
  pid_t holder; /* atomic: id of the process that holds the mutex, or 0 */
} kiln__fork_mutex;

void kiln__fork_mutex_init(kiln__fork_mutex *m);
void kiln__fork_mutex_destroy(kiln__fork_mutex *m);
/* Locks the mutex, and waits only for threads of this process. Returns KILN_OK
 * if the mutex is locked. Returns KILN_EFORKED, with an error record, if a
 * thread of the parent process held the mutex at the fork. */
kiln_status kiln__fork_mutex_lock(kiln__fork_mutex *m);
void kiln__fork_mutex_unlock(kiln__fork_mutex *m);

#endif
