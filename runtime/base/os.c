/* os.c -- the table of system calls, reading and replacing whole files, clocks,
 * environment variables, and fork detection. */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int set_lock(int fd, short type, off_t at)
{
  struct flock range = {
      .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

  return fcntl(fd, F_OFD_SETLK, &range);
}

/* The file operations of the table: result type, name, parameters, and the
 * system call that the operation makes. */
#define FS_CALLS(X)                                                            \
  X(int, openat,                                                               \
    (void *user, int dir, const char *name, int flags, mode_t mode),           \
    openat(dir, name, flags, mode))                                            \
  X(ssize_t, read, (void *user, int fd, void *buf, size_t n),                  \
    read(fd, buf, n))                                                          \
  X(ssize_t, pread, (void *user, int fd, void *buf, size_t n, off_t at),       \
    pread(fd, buf, n, at))                                                     \
  X(ssize_t, write, (void *user, int fd, const void *buf, size_t n),           \
    write(fd, buf, n))                                                         \
  X(int, close, (void *user, int fd), close(fd))                               \
  X(int, fstat, (void *user, int fd, struct stat *out), fstat(fd, out))        \
  X(int, fstatat, (void *user, int dir, const char *name, struct stat *out),   \
    fstatat(dir, name, out, AT_SYMLINK_NOFOLLOW))                              \
  X(int, mkdirat, (void *user, int dir, const char *name, mode_t mode),        \
    mkdirat(dir, name, mode))                                                  \
  X(int, renameat, (void *user, int dir, const char *from, const char *to),    \
    renameat(dir, from, dir, to))                                              \
  X(int, unlinkat, (void *user, int dir, const char *name),                    \
    unlinkat(dir, name, 0))                                                    \
  X(int, futimens, (void *user, int fd, const struct timespec times[2]),       \
    futimens(fd, times))                                                       \
  X(int, lock, (void *user, int fd, off_t at), set_lock(fd, F_WRLCK, at))      \
  X(int, unlock, (void *user, int fd, off_t at), set_lock(fd, F_UNLCK, at))    \
  X(DIR *, fdopendir, (void *user, int fd), fdopendir(fd))                     \
  X(struct dirent *, readdir, (void *user, DIR *dir), readdir(dir))

#define DEFINE(type, name, parameters, call)                                   \
  static type posix_##name parameters                                          \
  {                                                                            \
    (void)user;                                                                \
    return call;                                                               \
  }
#define MEMBER(type, name, parameters, call) .name = posix_##name,

FS_CALLS(DEFINE)

const kiln__fs kiln__fs_posix = {FS_CALLS(MEMBER)};

bool kiln__write_all(const kiln__fs *fs, int fd, const void *data, size_t n)
{
  const char *from = data;

  while (n > 0) {
    const ssize_t done = fs->write(fs->user, fd, from, n);

    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0) {
      if (done == 0)
        errno = EIO;
      return false;
    }
    from += done;
    n -= (size_t)done;
  }
  return true;
}

/* Reads from offset `at`, or from the current file position if `at` is NULL. */
static bool read_whole(const kiln__fs *fs, int fd, char *to, size_t n,
                       const uint64_t *at)
{
  for (size_t have = 0; have < n;) {
    const ssize_t done =
        at == NULL
            ? fs->read(fs->user, fd, to + have, n - have)
            : fs->pread(fs->user, fd, to + have, n - have, (off_t)(*at + have));

    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0) {
      if (done == 0)
        errno = 0;
      return false;
    }
    have += (size_t)done;
  }
  return true;
}

bool kiln__read_all(const kiln__fs *fs, int fd, void *data, size_t n)
{
  return read_whole(fs, fd, data, n, NULL);
}

bool kiln__pread_all(const kiln__fs *fs, int fd, void *data, size_t n,
                     uint64_t at)
{
  return read_whole(fs, fd, data, n, &at);
}

kiln_status kiln__read_file(kiln__buf *out, const char *path, size_t limit)
{
  const kiln__fs *fs = &kiln__fs_posix;
  kiln_status st = KILN_OK;
  struct stat info;
  /* O_NONBLOCK prevents open() from blocking if the path refers to a pipe. */
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

  if (fd < 0)
    return kiln__fail_os(errno, "open", path);
  if (fstat(fd, &info) != 0)
    KILN_TRY(kiln__fail_os(errno, "fstat", path));
  if (!S_ISREG(info.st_mode))
    KILN_TRY(kiln__fail_os(EISDIR, "read", path));
  if ((uint64_t)info.st_size > limit)
    KILN_TRY(kiln__fail_os(EFBIG, "read", path));
  if (!kiln__buf_reserve(out, (size_t)info.st_size))
    KILN_TRY(kiln__fail_memory(path));
  if (!kiln__read_all(fs, fd, out->data, (size_t)info.st_size))
    KILN_TRY(kiln__fail_os(errno == 0 ? EIO : errno, "read", path));
  out->size = (size_t)info.st_size;
  out->data[out->size] = '\0';

done:
  close(fd);
  return st;
}

kiln_status kiln__replace_file(const char *path, const void *data, size_t size,
                               mode_t mode)
{
  const kiln__fs *fs = &kiln__fs_posix;
  kiln_status st = KILN_OK;
  char temporary[4096];
  struct stat there;
  bool failed;
  int fd = -1;

  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
    kiln__fail_os(S_ISDIR(there.st_mode) ? EISDIR : EEXIST, "rename", path);
    kiln__error_hint("only regular files are replaced: give another path");
    return KILN_EIO;
  }

  /* The temporary file name contains the address of a local variable. The
   * address differs between threads, so the name is unique per thread. */
  if (!kiln__format(temporary, sizeof temporary, "%s.%ld.%llx.%llx.tmp", path,
                    (long)getpid(), (unsigned long long)kiln__clock_ns(),
                    (unsigned long long)(uintptr_t)&fd))
    return kiln__fail_os(ENAMETOOLONG, "open", path);
  fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0)
    return kiln__fail_os(errno, "open", temporary);
  if (!kiln__write_all(fs, fd, data, size))
    KILN_TRY(kiln__fail_os(errno, "write", temporary));
  if (fsync(fd) != 0)
    KILN_TRY(kiln__fail_os(errno, "fsync", temporary));
  failed = close(fd) != 0;
  fd = -1; /* close() releases the descriptor even if it fails */
  if (failed)
    KILN_TRY(kiln__fail_os(errno, "close", temporary));
  if (rename(temporary, path) != 0)
    KILN_TRY(kiln__fail_os(errno, "rename", path));

done:
  if (fd >= 0)
    close(fd);
  if (st != KILN_OK)
    unlink(temporary);
  return st;
}

uint64_t kiln__clock_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t kiln__time_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void kiln__sleep_ns(uint64_t ns)
{
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                       .tv_nsec = (long)(ns % 1000000000u)};

  while (nanosleep(&t, &t) != 0 && errno == EINTR)
    continue;
}

const char *kiln__env(const char *name)
{
  const char *value = secure_getenv(name);

  return value == NULL || value[0] == '\0' ? NULL : value;
}

unsigned kiln__cores(void)
{
  cpu_set_t set;
  long online;

  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return (unsigned)CPU_COUNT(&set);
  /* the machine has more CPUs than the CPU set can hold */
  online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (unsigned)online : 1;
}

void kiln__fork_guard_init(kiln__fork_guard *guard)
{
  const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    /* cppcheck-suppress invalidFunctionArg; -1: no file */
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  guard->pid = getpid();
  guard->page = NULL;
  if (page == MAP_FAILED)
    return;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    /* kernels older than 4.14 lack MADV_WIPEONFORK: use getpid() instead */
    munmap(page, size);
    return;
  }
  guard->page = page;
  *guard->page = 1;
}

void kiln__fork_guard_free(kiln__fork_guard *guard)
{
  if (guard->page != NULL)
    munmap((void *)guard->page, (size_t)sysconf(_SC_PAGESIZE));
  guard->page = NULL;
}

bool kiln__forked(const kiln__fork_guard *guard)
{
  return guard->page != NULL ? *guard->page != 1 : getpid() != guard->pid;
}

kiln_status kiln__fork_check(const kiln__fork_guard *guard)
{
  if (!kiln__forked(guard))
    return KILN_OK;
  return kiln__fail(KILN_EFORKED,
                    "create the runtime after fork, or exec a new program",
                    "this process was forked from the one that made the "
                    "runtime, and CUDA does not work across fork");
}

/* ---- A mutex whose waiters notice that the process was forked ----------- */

/* Time in which a thread surely records itself as the holder of the mutex,
 * since it executes only a few instructions after locking it. If the mutex
 * stays locked for longer and no thread of this process is recorded, it was
 * locked at the fork. */
#define FORK_GRACE_NS ((uint64_t)100 * 1000000)

void kiln__fork_mutex_init(kiln__fork_mutex *m)
{
  pthread_mutex_init(&m->mutex, NULL);
  kiln__fork_guard_init(&m->guard);
  m->holder = 0;
}

void kiln__fork_mutex_destroy(kiln__fork_mutex *m)
{
  if (!kiln__forked(&m->guard))
    pthread_mutex_destroy(&m->mutex);
  kiln__fork_guard_free(&m->guard);
}

static kiln_status lock_in_child(kiln__fork_mutex *m, pid_t self)
{
  uint64_t deadline = kiln__clock_ns() + FORK_GRACE_NS;

  while (pthread_mutex_trylock(&m->mutex) != 0) {
    const uint64_t now = kiln__clock_ns();

    if (__atomic_load_n(&m->holder, __ATOMIC_RELAXED) == self)
      deadline = now + FORK_GRACE_NS;
    else if (now >= deadline)
      return kiln__fork_check(&m->guard);
    kiln__sleep_ns(1000000);
  }
  return KILN_OK;
}

kiln_status kiln__fork_mutex_lock(kiln__fork_mutex *m)
{
  const bool child = kiln__forked(&m->guard);
  const pid_t self = child ? getpid() : m->guard.pid;
  kiln_status st = KILN_OK;

  if (child)
    st = lock_in_child(m, self);
  else
    pthread_mutex_lock(&m->mutex);
  if (st == KILN_OK)
    __atomic_store_n(&m->holder, self, __ATOMIC_RELAXED);
  return st;
}

void kiln__fork_mutex_unlock(kiln__fork_mutex *m)
{
  __atomic_store_n(&m->holder, 0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&m->mutex);
}
