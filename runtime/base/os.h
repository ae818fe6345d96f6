/* os.h -- what Kiln needs of the operating system: files, folders, clocks,
 * environment, fork detection. */
#ifndef KILN_OS_H
#define KILN_OS_H

#include "base.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The file operations of the cache as a table, so that tests can make each one
 * fail in turn. Contracts as those of the system calls: -1 and errno. */
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
  /* Locks the byte at `at` exclusively; -1 and EAGAIN if it is held elsewhere.
   */
  int (*lock)(void *user, int fd, off_t at);
  int (*unlock)(void *user, int fd, off_t at);
  DIR *(*fdopendir)(void *user, int fd);
  struct dirent *(*readdir)(void *user, DIR *dir);
  void *user;
} kiln__fs;

/* The real system calls. Locks are open-file-description locks. The callers
 * retry EINTR, through kiln__read_all() and kiln__write_all(). */
extern const kiln__fs kiln__fs_posix;

/* Write or read all n bytes, retrying short counts and EINTR. False with errno.
 * A file that ends early gives false with errno 0. */
bool kiln__write_all(const kiln__fs *fs, int fd, const void *data, size_t n);
bool kiln__read_all(const kiln__fs *fs, int fd, void *data, size_t n);
bool kiln__pread_all(const kiln__fs *fs, int fd, void *data, size_t n,
                     uint64_t at);

/* Reads a whole regular file of at most `limit` bytes into an empty buffer.
 * Never blocks on a pipe. KILN_OK, KILN_EIO, KILN_ENOMEM. */
kiln_status kiln__read_file(kiln__buf *out, const char *path, size_t limit);

/* Writes a file so that readers see the old or the new content, never a part of
 * it: temporary file in the same folder, fsync, rename. Only regular files are
 * replaced: a device node or a folder in the path's place stays.
 * KILN_OK, KILN_EIO. */
kiln_status kiln__replace_file(const char *path, const void *data, size_t size,
                               mode_t mode);

/* ---- Folders that only this user writes to (trusted_folder.c) -------------- */

/* A file descriptor of the folder, or -1 with errno. ENOENT: there is none (or
 * none could be made). EPERM: another user owns it or may write to it. `path`
 * must not end in '/'. `create` makes it, and missing parents, with mode 0700.
 * `why` (may be NULL) receives the reason and the next step. */
int kiln__folder_open(const kiln__fs *fs, const char *path, bool create,
                      char why[256]);
/* openat with O_CLOEXEC and O_NOCTTY added and EINTR retried. */
int kiln__file_open(const kiln__fs *fs, int dir, const char *name, int flags,
                    mode_t mode);
/* Closes a descriptor unless it is negative; keeps errno. */
void kiln__file_close(const kiln__fs *fs, int fd);

/* ---- Time and environment ---------------------------------------------------- */

/* Monotonic and calendar clocks in nanoseconds. */
uint64_t kiln__clock_ns(void);
int64_t kiln__time_ns(void);
void kiln__sleep_ns(uint64_t ns);

/* The value of an environment variable. NULL if it is unset or empty, or if the
 * process runs with raised privileges (secure_getenv()). */
const char *kiln__env(const char *name);

/* Cores this process may use, at least 1. */
unsigned kiln__cores(void);

/* ---- Fork ----------------------------------------------------------------- */

/* Distinguishes a forked child from its parent without a system call: the
 * kernel wipes a page of memory in the child (MADV_WIPEONFORK). */
typedef struct kiln__fork_guard {
  volatile uint32_t *page; /* 1 in the process that made it; NULL: use pid */
  pid_t pid;
} kiln__fork_guard;

void kiln__fork_guard_init(kiln__fork_guard *guard);
void kiln__fork_guard_free(kiln__fork_guard *guard);
bool kiln__forked(const kiln__fork_guard *guard);
/* KILN_OK or KILN_EFORKED with its record. */
kiln_status kiln__fork_check(const kiln__fork_guard *guard);

/* A mutex that a forked child may find locked by a thread of its parent, which
 * does not exist in the child and so never unlocks it. */
typedef struct kiln__fork_mutex {
  pthread_mutex_t mutex;
  kiln__fork_guard guard;
  pid_t holder; /* atomic: process whose thread holds the mutex, 0: none */
} kiln__fork_mutex;

void kiln__fork_mutex_init(kiln__fork_mutex *m);
void kiln__fork_mutex_destroy(kiln__fork_mutex *m);
/* Waits for threads of this process only. KILN_OK: locked. KILN_EFORKED, with
 * its record: a thread of the parent held it at the fork. */
kiln_status kiln__fork_mutex_lock(kiln__fork_mutex *m);
void kiln__fork_mutex_unlock(kiln__fork_mutex *m);

#endif
