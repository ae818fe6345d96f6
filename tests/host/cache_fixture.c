/* cache_fixture.c -- shared helpers of the cache tests; cache_fixture.h
 * describes them. */
#include "cache_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(kiln__key *key, const char *field, const char *value,
                bool portable)
{
  kiln__key_add(key, field, value, strlen(value), portable);
}

void key_make_target(kiln__key *key, const kiln_allocator *a, const char *name,
                     const char *target)
{
  kiln__key_init(key, a);
  add(key, "program", name, true);
  add(key, "source", "extern \"C\" __global__ void k() {}\n", true);
  add(key, "define", "N=1", true);
  add(key, "nvrtc", "13.0 build 1", false);
  add(key, "target", target, false);
  if (kiln__key_seal(key) != KILN_OK)
    /* Helper programs call this function too, so Check's ck_ macros are not
     * available. */
    abort();
}

void key_make(kiln__key *key, const kiln_allocator *a, const char *name)
{
  key_make_target(key, a, name, "sm_90");
}

static unsigned char image_byte(const char *name, size_t i)
{
  return (unsigned char)((unsigned char)name[i % strlen(name)] * 7u + i * 31u);
}

#define META "target sm_90\nnvrtc 13000\nmicroseconds 7\n"

kiln__entry *image_make(const kiln_allocator *a, const kiln__key *key,
                        const char *name, size_t size)
{
  kiln__slice s[KILN__SECTIONS] = {{0}};
  unsigned char *cubin = malloc(size + 1);
  kiln__entry *entry;

  for (size_t i = 0; i < size; i++)
    cubin[i] = image_byte(name, i);
  s[KILN__PTX] = (kiln__slice){name, strlen(name)};
  s[KILN__CUBIN] = (kiln__slice){cubin, size};
  s[KILN__META] = (kiln__slice){META, strlen(META)};
  entry = kiln__entry_create(a, key, s);
  free(cubin);
  return entry;
}

bool image_is(const kiln__entry *entry, const char *name, size_t size)
{
  const kiln__slice ptx = kiln__entry_get(entry, KILN__PTX);
  const kiln__slice cubin = kiln__entry_get(entry, KILN__CUBIN);
  const kiln__slice meta = kiln__entry_get(entry, KILN__META);
  const unsigned char *bytes = cubin.data;

  if (ptx.size != strlen(name) || strcmp(ptx.data, name) != 0 ||
      cubin.size != size || strcmp(meta.data, META) != 0)
    return false;
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != image_byte(name, i))
      return false;
  }
  for (int i = 0; i < KILN__SECTIONS; i++) {
    const kiln__slice s = kiln__entry_get(entry, (kiln__section)i);

    if (((const char *)s.data)[s.size] != '\0')
      return false;
  }
  return true;
}

kiln_status maker_run(void *user, kiln__entry **out)
{
  maker *m = user;

  __atomic_fetch_add(&m->calls, 1, __ATOMIC_RELAXED);
  if (m->sleep_ms > 0)
    kiln__sleep_ns((uint64_t)m->sleep_ms * 1000000);
  if (m->fail != KILN_OK)
    return kiln__fail(m->fail, "let it succeed", "made to fail: %s", m->name);
  *out = image_make(m->alloc, m->key, m->name, m->size);
  return *out == NULL ? kiln__fail_memory("image") : KILN_OK;
}

/* ---- Failing file operations --------------------------------------------- */

/* Counts a file operation. Returns true and sets errno if the operation has to
 * fail. */
static bool fails(void *user)
{
  faulty_fs *f = user;
  const long op = __atomic_fetch_add(&f->ops, 1, __ATOMIC_RELAXED);

  if (f->fail_at < 0 || op < f->fail_at || (op > f->fail_at && !f->sticky))
    return false;
  if (f->vanish != NULL) {
    test_dir_remove(f->vanish);
    return false;
  }
  errno = f->code;
  return true;
}

static bool interrupted(void *user)
{
  faulty_fs *f = user;

  if (!f->interrupts || (f->interruptions++ & 1) != 0)
    return false;
  errno = EINTR;
  return true;
}

static size_t limit(void *user, size_t n)
{
  const faulty_fs *f = user;

  return f->most != 0 && n > f->most ? f->most : n;
}

static bool read_only(const void *user)
{
  return ((const faulty_fs *)user)->read_only;
}

static bool errno_is(int code)
{
  errno = code;
  return true;
}

static int f_openat(void *user, int dir, const char *name, int flags,
                    mode_t mode)
{
  if (fails(user) || interrupted(user) ||
      (read_only(user) && (flags & O_ACCMODE) != O_RDONLY && errno_is(EROFS)))
    return -1;
  return kiln__fs_posix.openat(NULL, dir, name, flags, mode);
}

/* Defines a file operation that fails if `refuse` requests a failure, and that
 * otherwise makes the real call. */
#define FORWARD(type, name, parameters, refuse, failure, arguments)            \
  static type f_##name parameters                                              \
  {                                                                            \
    return refuse ? failure : kiln__fs_posix.name arguments;                   \
  }
#define STOPPED (fails(user) || interrupted(user))
#define UNWRITABLE (fails(user) || (read_only(user) && errno_is(EROFS)))

FORWARD(ssize_t, read, (void *user, int fd, void *buf, size_t n), STOPPED, -1,
        (NULL, fd, buf, limit(user, n)))
FORWARD(ssize_t, pread, (void *user, int fd, void *buf, size_t n, off_t at),
        STOPPED, -1, (NULL, fd, buf, limit(user, n), at))
FORWARD(ssize_t, write, (void *user, int fd, const void *buf, size_t n),
        STOPPED, -1, (NULL, fd, buf, limit(user, n)))
FORWARD(int, fstat, (void *user, int fd, struct stat *out), fails(user), -1,
        (NULL, fd, out))
FORWARD(int, fstatat, (void *user, int dir, const char *name, struct stat *out),
        fails(user), -1, (NULL, dir, name, out))
FORWARD(int, mkdirat, (void *user, int dir, const char *name, mode_t mode),
        UNWRITABLE, -1, (NULL, dir, name, mode))
FORWARD(int, renameat, (void *user, int dir, const char *from, const char *to),
        UNWRITABLE, -1, (NULL, dir, from, to))
FORWARD(int, unlinkat, (void *user, int dir, const char *name), UNWRITABLE, -1,
        (NULL, dir, name))
FORWARD(int, futimens, (void *user, int fd, const struct timespec times[2]),
        UNWRITABLE, -1, (NULL, fd, times))
FORWARD(int, unlock, (void *user, int fd, off_t at), fails(user), -1,
        (NULL, fd, at))
FORWARD(DIR *, fdopendir, (void *user, int fd), fails(user), NULL, (NULL, fd))
FORWARD(struct dirent *, readdir, (void *user, DIR *dir), fails(user), NULL,
        (NULL, dir))

/* The descriptor is closed even if close() reports a failure. */
static int f_close(void *user, int fd)
{
  const bool fail = fails(user);
  const int code = errno, rc = kiln__fs_posix.close(NULL, fd);

  /* The assertion fails if a descriptor is closed twice. */
  ck_assert_int_eq(rc, 0);
  errno = code;
  return fail ? -1 : 0;
}

static int f_lock(void *user, int fd, off_t at)
{
  const faulty_fs *f = user;

  if (f->lock_fails) {
    errno = f->code;
    return -1;
  }
  return fails(user) ? -1 : kiln__fs_posix.lock(NULL, fd, at);
}

void faulty_fs_init(faulty_fs *f)
{
  *f = (faulty_fs){.fail_at = -1};
  f->fs = (kiln__fs){
      .openat = f_openat,
      .read = f_read,
      .pread = f_pread,
      .write = f_write,
      .close = f_close,
      .fstat = f_fstat,
      .fstatat = f_fstatat,
      .mkdirat = f_mkdirat,
      .renameat = f_renameat,
      .unlinkat = f_unlinkat,
      .futimens = f_futimens,
      .lock = f_lock,
      .unlock = f_unlock,
      .fdopendir = f_fdopendir,
      .readdir = f_readdir,
      .user = f,
  };
}

/* ---- Bench --------------------------------------------------------------- */

static void note(void *user, kiln_log_level level, const char *text)
{
  bench *b = user;

  if (level == KILN_LOG_WARNING &&
      __atomic_fetch_add(&b->warnings, 1, __ATOMIC_RELAXED) == 0)
    snprintf(b->last_warning, sizeof b->last_warning, "%s", text);
}

void bench_make(bench *b)
{
  memset(b, 0, sizeof *b);
  test_dir_make(b->root);
  snprintf(b->dir, sizeof b->dir, "%s/cache", b->root);
  test_allocator_init(&b->mem);
  faulty_fs_init(&b->fs);
  b->log = (kiln__log){note, b, KILN_LOG_WARNING};
  b->config = (kiln__cache_config){.alloc = &b->mem.alloc,
                                   .log = &b->log,
                                   .fs = &b->fs.fs,
                                   .dir = b->dir,
                                   .wait_ms = 20000};
}

void bench_open(bench *b)
{
  ck_kiln_ok(kiln__cache_open(&b->cache, &b->config));
}

void bench_close(bench *b)
{
  kiln__cache_close(b->cache);
  b->cache = NULL;
  ck_assert_int_eq(b->mem.live, 0);
}

void bench_free(bench *b)
{
  if (b->cache != NULL)
    bench_close(b);
  test_dir_remove(b->root);
}

kiln_origin bench_take(bench *b, const kiln__fetch *f, const char *name,
                       size_t size)
{
  kiln__entry *entry;
  kiln_origin origin;

  ck_kiln_ok(kiln__cache_fetch(b->cache, f, &entry, &origin));
  ck_assert(image_is(entry, name, size));
  kiln__entry_unref(entry);
  return origin;
}

kiln_origin bench_fetch(bench *b, const char *name, size_t size)
{
  kiln__key key;
  maker m = {&b->mem.alloc, &key, name, size, 0, KILN_OK, 0};
  kiln__fetch f = {
      .key = &key, .target = {90, 0, false}, .make = maker_run, .user = &m};
  kiln_origin origin;

  key_make(&key, &b->mem.alloc, name);
  origin = bench_take(b, &f, name, size);
  ck_assert_int_eq(m.calls, origin == KILN_FROM_COMPILER);
  kiln__key_free(&key);
  return origin;
}

bool bench_has(bench *b, const char *name, size_t size)
{
  kiln__key key;
  kiln__fetch f = {.key = &key, .target = {90, 0, false}, .lookup_only = true};
  kiln__entry *entry;
  kiln_origin origin;
  kiln_status st;

  key_make(&key, &b->mem.alloc, name);
  st = kiln__cache_fetch(b->cache, &f, &entry, &origin);
  ck_assert(st == KILN_OK || st == KILN_ENOTFOUND);
  if (st == KILN_OK)
    ck_assert(image_is(entry, name, size));
  kiln__entry_unref(entry);
  kiln__key_free(&key);
  return st == KILN_OK;
}

kiln_cache_stats bench_stats(bench *b)
{
  kiln_cache_stats s;

  kiln__cache_stats_get(b->cache, &s);
  return s;
}

void bench_entry_path(bench *b, const char *name, char path[512])
{
  kiln__key key;
  char file[KILN__NAME_SIZE];

  key_make(&key, &b->mem.alloc, name);
  kiln__entry_name(file, key.hash);
  snprintf(path, 512, "%s/%s", b->dir, file);
  kiln__key_free(&key);
}

size_t count_files(const char *dir, const char *ending, uint64_t *bytes)
{
  DIR *list = opendir(dir);
  struct dirent *file;
  size_t n = 0;

  *bytes = 0;
  if (list == NULL)
    return 0;
  while ((file = readdir(list)) != NULL) {
    const size_t length = strlen(file->d_name), end = strlen(ending);
    struct stat info;

    if (file->d_name[0] == '.' || length < end ||
        strcmp(file->d_name + length - end, ending) != 0 ||
        fstatat(dirfd(list), file->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    n++;
    *bytes += (uint64_t)info.st_size;
  }
  closedir(list);
  return n;
}

size_t open_fds(void)
{
  uint64_t bytes;

  return count_files("/proc/self/fd", "", &bytes);
}

void set_file_time(const char *path, int64_t seconds_from_now)
{
  const int64_t now = kiln__time_ns() / 1000000000 + seconds_from_now;
  const struct timespec t[2] = {{.tv_sec = (time_t)now},
                                {.tv_sec = (time_t)now}};

  ck_assert_int_eq(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}
