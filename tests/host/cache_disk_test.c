/* Tests the disk tier and the memory tier of the cache: which entries are
 * found, refused, rebuilt and evicted. */
#include "cache_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 3000 };

static bench b;

static void begin(void)
{
  bench_make(&b);
}

static void end(void)
{
  bench_free(&b);
}

/* Opens a new cache on the same folder, as another process would. */
static void reopen(void)
{
  if (b.cache != NULL)
    bench_close(&b);
  b.warnings = 0;
  bench_open(&b);
}

static mode_t mode_of(const char *path)
{
  struct stat info;

  ck_assert_msg(lstat(path, &info) == 0, "%s: %s", path, strerror(errno));
  return info.st_mode & 07777;
}

static bool exists(const char *path)
{
  struct stat info;

  return lstat(path, &info) == 0;
}

static void path_in(char path[512], const char *name)
{
  snprintf(path, 512, "%s/%s", b.dir, name);
}

/* ---- Finding ------------------------------------------------------------- */

START_TEST(each_tier_answers)
{
  const size_t fds = open_fds();
  kiln_cache_stats s;

  bench_open(&b);
  ck_assert(!bench_has(&b, "a", SIZE));
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_MEMORY);
  ck_assert_int_eq(bench_fetch(&b, "b", SIZE), KILN_FROM_COMPILER);
  s = bench_stats(&b);
  ck_assert_uint_eq(s.misses, 2);
  ck_assert_uint_eq(s.published, 2);
  ck_assert_uint_eq(s.memory_hits, 1);
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_MEMORY);
  ck_assert(bench_has(&b, "b", SIZE));
  s = bench_stats(&b);
  ck_assert_uint_eq(s.disk_hits, 2);
  ck_assert_uint_eq(s.misses + s.corrupt + s.read_failures + s.waits, 0);
  ck_assert_int_eq(b.warnings, 0);
  ck_assert_uint_eq(open_fds(), fds);
}
END_TEST

START_TEST(no_folder_is_fine)
{
  kiln_cache_info info;
  uint64_t n = 7;

  b.config.dir = NULL;
  bench_open(&b);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_MEMORY);
  kiln__cache_info_get(b.cache, &info);
  ck_assert(!info.usable && info.path[0] == '\0' && info.reason[0] != '\0');
  ck_kiln_ok(kiln__cache_wipe(b.cache, &n));
  ck_assert_uint_eq(n, 0);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).write_failures, 0);
  ck_assert(!exists(b.dir));
}
END_TEST

START_TEST(folders_are_made_private)
{
  char deep[300], up[300];

  umask(0);
  snprintf(up, sizeof up, "%s/x", b.root);
  snprintf(deep, sizeof deep, "%s/x/y z/kiln//", b.root);
  b.config.dir = deep;
  bench_open(&b);
  ck_assert(!bench_has(&b, "a", SIZE));
  /* A look-up alone does not create the cache folder. */
  ck_assert(!exists(up));
  bench_fetch(&b, "a", SIZE);
  ck_assert_uint_eq(mode_of(up), 0700);
  ck_assert_uint_eq(mode_of(deep), 0700);
  snprintf(b.dir, sizeof b.dir, "%s/x/y z/kiln", b.root);
  {
    char entry[512];

    bench_entry_path(&b, "a", entry);
    ck_assert_uint_eq(mode_of(entry), 0600);
  }
}
END_TEST

START_TEST(relative_path_stays)
{
  ck_assert_int_eq(chdir(b.root), 0);
  b.config.dir = "cache";
  bench_open(&b);
  ck_assert_int_eq(chdir("/"), 0);
  bench_fetch(&b, "a", SIZE);
  ck_assert(exists(b.dir));
  /* After chdir("/"), the relative path "cache" names a different folder. */
  reopen();
  ck_assert_int_eq(chdir(b.root), 0);
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

static void fetch_refused(const char *reason)
{
  kiln_cache_info info;

  reopen();
  ck_assert_int_eq(bench_fetch(&b, "refused", SIZE), KILN_FROM_COMPILER);
  ck_assert_int_eq(bench_fetch(&b, "refused", SIZE), KILN_FROM_MEMORY);
  ck_assert_uint_eq(bench_stats(&b).write_failures, 1);
  ck_assert_uint_eq(bench_stats(&b).published, 0);
  ck_assert_int_eq(b.warnings, 1);
  ck_assert_ptr_nonnull(strstr(b.last_warning, reason));
  kiln__cache_info_get(b.cache, &info);
  ck_assert(!info.usable);
  ck_assert_msg(strstr(info.reason, reason) != NULL, "%s", info.reason);
  ck_assert_ptr_nonnull(strstr(info.reason, "KILN_CACHE_DIR"));
  {
    uint64_t n;

    ck_kiln_is(kiln__cache_repair(b.cache, &n), KILN_EIO);
    ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "KILN_CACHE_DIR"));
  }
}

START_TEST(open_folders_are_refused)
{
  static const mode_t modes[] = {0777, 0770, 0720, 0702, 01777};
  char entry[512];

  bench_open(&b);
  bench_fetch(&b, "refused", SIZE);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    ck_assert_int_eq(chmod(b.dir, modes[i]), 0);
    fetch_refused("chmod go-w");
  }
  ck_assert_int_eq(chmod(b.dir, 0755), 0);
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "refused", SIZE), KILN_FROM_DISK);
  bench_entry_path(&b, "refused", entry);
  ck_assert(exists(entry));
}
END_TEST

START_TEST(foreign_folders_are_refused)
{
  if (geteuid() != 0) {
    printf("foreign owners: not tried, needs root\n");
    return;
  }
  bench_open(&b);
  bench_fetch(&b, "refused", SIZE);
  ck_assert_int_eq(chown(b.dir, 4242, 4242), 0);
  fetch_refused("belongs to user 4242");
}
END_TEST

START_TEST(files_are_no_folders)
{
  test_write_file(b.dir, "x", 1);
  fetch_refused("not a folder");
}
END_TEST

START_TEST(links_to_folders)
{
  char real[300];

  snprintf(real, sizeof real, "%s/real", b.root);
  ck_assert_int_eq(mkdir(real, 0700), 0);
  ck_assert_int_eq(symlink(real, b.dir), 0);
  bench_open(&b);
  bench_fetch(&b, "a", SIZE);
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  if (geteuid() == 0) {
    ck_assert_int_eq(lchown(b.dir, 4242, 4242), 0);
    fetch_refused("symbolic link of user 4242");
  }
}
END_TEST

START_TEST(links_that_lead_nowhere)
{
  ck_assert_int_eq(symlink(b.dir, b.dir), 0);
  bench_open(&b);
  fetch_refused("leads to itself");
  unlink(b.dir);
  ck_assert_int_eq(symlink("/dev/null", b.dir), 0);
  fetch_refused("no folder");
}
END_TEST

START_TEST(read_only_folder_is_read)
{
  kiln_cache_info info;

  bench_open(&b);
  bench_fetch(&b, "a", SIZE);
  /* The test sets this flag because the root user ignores mode bits. */
  b.fs.read_only = true;
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  ck_assert_int_eq(b.warnings, 0);
  ck_assert_int_eq(bench_fetch(&b, "b", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).write_failures, 1);
  ck_assert_uint_ge(bench_stats(&b).lock_failures, 1);
  ck_assert_int_gt(b.warnings, 0);
  kiln__cache_info_get(b.cache, &info);
  ck_assert(!info.usable);
  ck_assert_uint_eq(info.entries, 1);
  ck_assert_ptr_nonnull(strstr(info.reason, "Read-only"));
  ck_assert_ptr_nonnull(strstr(info.reason, "KILN_CACHE_DIR"));
}
END_TEST

/* ---- Bad entries --------------------------------------------------------- */

/* Checks that the cache detects and counts the bad file of entry "a", removes
 * the file, and rebuilds the entry. */
static void rebuilt(uint64_t corrupt, uint64_t forged)
{
  kiln_cache_stats s;

  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  s = bench_stats(&b);
  /* The first look-up counts the bad file, and the second look-up finds no
   * file. */
  ck_assert_uint_eq(s.corrupt, corrupt);
  ck_assert_uint_eq(s.forged, forged);
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
}

static void make_one(char path[512])
{
  bench_open(&b);
  bench_fetch(&b, "a", SIZE);
  bench_entry_path(&b, "a", path);
}

START_TEST(every_truncation_is_noticed)
{
  char path[512];
  const size_t step = test_rounds(10) == 1 ? 17 : 1;
  uint64_t seen = 0;
  size_t size;
  char *data;

  /* An entry does not fit in the memory tier, so only the disk tier is used. */
  b.config.memory_bytes = 1;
  make_one(path);
  data = test_read_file(path, &size);
  for (size_t n = 0; n < size; n += n < 200 ? 1 : step) {
    test_write_file(path, data, n);
    ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
    ck_assert_uint_eq(bench_stats(&b).corrupt, ++seen);
  }
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  printf("truncations: %zu lengths, all noticed and rebuilt\n", size);
  free(data);
}
END_TEST

START_TEST(every_bit_flip_is_noticed)
{
  const int flips = test_rounds(2000);
  uint64_t random = 88172645463325252u;
  char path[512];
  size_t size;
  char *data;

  b.config.memory_bytes = 1;
  make_one(path);
  data = test_read_file(path, &size);
  for (uint64_t i = 0; i < (uint64_t)flips; i++) {
    const size_t bit = (size_t)(test_random(&random) % (size * 8));

    data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    test_write_file(path, data, size);
    data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
    ck_assert_uint_eq(bench_stats(&b).corrupt + bench_stats(&b).forged, i + 1);
  }
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  printf("bit flips: %d, all noticed and rebuilt\n", flips);
  free(data);
}
END_TEST

START_TEST(forged_entry_is_a_miss)
{
  char a[512], other[512];
  size_t size;
  char *data;

  make_one(a);
  bench_fetch(&b, "other", SIZE);
  bench_entry_path(&b, "other", other);
  data = test_read_file(other, &size);
  /* The file of "a" now holds a valid entry of another key. */
  test_write_file(a, data, size);
  rebuilt(0, 1);
  free(data);
  ck_assert(bench_has(&b, "other", SIZE));
}
END_TEST

START_TEST(links_fifos_and_folders_are_no_entries)
{
  char path[512], kept[512];

  make_one(path);
  path_in(kept, "kept");
  ck_assert_int_eq(rename(path, kept), 0);
  /* The file of "a" is now a symbolic link to an undamaged entry. */
  ck_assert_int_eq(symlink("kept", path), 0);
  rebuilt(1, 0);
  ck_assert(exists(kept));
  unlink(path);
  ck_assert_int_eq(mkfifo(path, 0600), 0); /* Opening a FIFO must not hang. */
  rebuilt(1, 0);
  unlink(path);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  reopen();
  b.warnings = 0; /* Store the text of the next warning. */
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).write_failures, 1);
  {
    uint64_t bytes;

    ck_assert_uint_eq(count_files(b.dir, ".tmp", &bytes), 0);
  }
  /* The folder remains, and the warning does not claim that it was removed. */
  ck_assert_ptr_nonnull(strstr(b.last_warning, "is a folder"));
  ck_assert_ptr_null(strstr(b.last_warning, "removed"));
  ck_assert(exists(path));
}
END_TEST

/* Publishes an entry for "a" with valid checksums whose META section contains
 * `text`. */
static void publish_meta(const char *text)
{
  kiln__slice parts[KILN__SECTIONS];
  kiln__entry *bad;
  kiln__key key;

  key_make(&key, &b.mem.alloc, "a");
  for (int i = 0; i < KILN__SECTIONS; i++)
    parts[i] = (kiln__slice){"x", 1};
  parts[KILN__META] = (kiln__slice){text, strlen(text)};
  bad = kiln__entry_create(&b.mem.alloc, &key, parts);
  kiln__disk_publish(b.cache, bad);
  kiln__entry_unref(bad);
  kiln__key_free(&key);
}

START_TEST(unreadable_meta_is_damage)
{
  static const char *const texts[] = {"target sm_5", "", "target ",
                                      "nvrtc 13000\n"};
  uint64_t removed;
  char path[512];

  make_one(path);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    publish_meta(texts[i]);
    rebuilt(1, 0);
    publish_meta(texts[i]);
    ck_kiln_ok(kiln__cache_repair(b.cache, &removed));
    ck_assert_uint_eq(removed, 1);
  }
}
END_TEST

/* A sparse file of 900 MB is refused before it is read and before memory of its
 * size is allocated. */
START_TEST(sizes_are_checked_before_reading)
{
  char path[512];

  make_one(path);
  ck_assert_int_eq(truncate(path, 900 << 20), 0);
  b.mem.largest = 0;
  rebuilt(1, 0);
  test_write_file(path, "", 0);
  ck_assert_int_eq(truncate(path, 900 << 20), 0);
  rebuilt(1, 0);
  ck_assert_uint_lt(b.mem.largest, 1 << 20);
}
END_TEST

START_TEST(others_entries_are_refused)
{
  char path[512];

  make_one(path);
  ck_assert_int_eq(chmod(path, 0620), 0);
  rebuilt(1, 0);
  ck_assert_int_eq(chmod(path, 0602), 0);
  rebuilt(1, 0);
  if (geteuid() == 0) {
    ck_assert_int_eq(chown(path, 4242, 4242), 0);
    rebuilt(1, 0);
  }
}
END_TEST

START_TEST(other_versions_are_left_alone)
{
  char path[512], later[512];
  uint64_t bytes;

  make_one(path);
  snprintf(later, sizeof later, "%.*s.k2", (int)strlen(path) - 3, path);
  test_write_file(later, "of another version", 18);
  reopen();
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  ck_kiln_ok(kiln__cache_repair(b.cache, &bytes));
  ck_assert_uint_eq(bytes, 0);
  ck_assert(exists(later));
  ck_kiln_ok(kiln__cache_wipe(b.cache, &bytes));
  ck_assert_uint_eq(bytes, 2);
}
END_TEST

START_TEST(rejected_images_are_forgotten)
{
  kiln__key key;
  kiln__fetch f = {.key = &key, .lookup_only = true};
  kiln__entry *entry, *better;
  kiln_origin origin;
  char path[512];

  make_one(path);
  key_make(&key, &b.mem.alloc, "a");
  ck_kiln_ok(kiln__cache_fetch(b.cache, &f, &entry, &origin));
  kiln__cache_reject(b.cache, entry);
  ck_assert(!exists(path));
  ck_kiln_is(kiln__cache_fetch(b.cache, &f, &better, &origin), KILN_ENOTFOUND);
  ck_assert_uint_eq(bench_stats(&b).rejected, 1);

  /* Another process has replaced the entry's file. Rejecting the old entry must
   * not remove the new file. */
  {
    kiln__entry *other = image_make(&b.mem.alloc, &key, "a", SIZE + 1);

    kiln__disk_publish(b.cache, other);
    kiln__entry_unref(other);
  }
  kiln__cache_reject(b.cache, entry);
  ck_assert(exists(path));
  ck_assert(bench_has(&b, "a", SIZE + 1));
  kiln__entry_unref(entry);
  kiln__key_free(&key);
}
END_TEST

START_TEST(refresh_replaces_and_private_leaves_no_trace)
{
  kiln__key key;
  maker m = {&b.mem.alloc, &key, "a", SIZE + 5, 0, KILN_OK, 0};
  kiln__fetch f = {.key = &key, .make = maker_run, .user = &m};
  char path[512];

  make_one(path);
  key_make(&key, &b.mem.alloc, "a");
  f.private_only = true;
  ck_assert_int_eq(bench_take(&b, &f, "a", SIZE + 5), KILN_FROM_COMPILER);
  ck_assert(bench_has(&b, "a", SIZE));
  f.private_only = false;
  f.refresh = true;
  ck_assert_int_eq(bench_take(&b, &f, "a", SIZE + 5), KILN_FROM_COMPILER);
  ck_assert_int_eq(m.calls, 2);
  ck_assert(bench_has(&b, "a", SIZE + 5));
  kiln__key_free(&key);
  reopen();
  ck_assert(bench_has(&b, "a", SIZE + 5));
}
END_TEST

START_TEST(failed_compile_publishes_nothing)
{
  kiln__key key;
  maker m = {&b.mem.alloc, &key, "a", SIZE, 0, KILN_ECOMPILE, 0};
  kiln__fetch f = {.key = &key, .make = maker_run, .user = &m};
  kiln__entry *entry = (kiln__entry *)&m;
  kiln_origin origin;
  uint64_t bytes;

  bench_open(&b);
  key_make(&key, &b.mem.alloc, "a");
  for (int i = 1; i <= 2; i++) {
    ck_kiln_is(kiln__cache_fetch(b.cache, &f, &entry, &origin), KILN_ECOMPILE);
    ck_assert_ptr_null(entry);
    ck_assert_str_eq(kiln_last_error()->message, "made to fail: a");
    ck_assert_int_eq(m.calls, i);
  }
  ck_assert_uint_eq(count_files(b.dir, ".k1", &bytes), 0);
  ck_assert_uint_eq(count_files(b.dir, ".tmp", &bytes), 0);
  m.fail = KILN_OK;
  bench_take(&b, &f, "a", SIZE);
  kiln__key_free(&key);
}
END_TEST

/* ---- Memory tier --------------------------------------------------------- */

START_TEST(memory_tier_holds_its_cap)
{
  b.config.dir = NULL;
  b.config.memory_bytes = 20 * SIZE;
  bench_open(&b);
  for (int i = 0; i < 200; i++) {
    char name[32];

    snprintf(name, sizeof name, "kernel %d", i);
    bench_fetch(&b, name, SIZE);
    ck_assert(bench_has(&b, name, SIZE));
    if (i > 0)
      /* This look-up marks the entry as recently used, so it is not evicted. */
      ck_assert(bench_has(&b, "kernel 0", SIZE));
    ck_assert_uint_le(b.cache->memory.bytes, b.config.memory_bytes);
  }
  ck_assert(!bench_has(&b, "kernel 1", SIZE));
  bench_fetch(&b, "too large", 21 * SIZE);
  ck_assert(!bench_has(&b, "too large", 21 * SIZE));
  ck_assert(bench_has(&b, "kernel 0", SIZE));
}
END_TEST

/* ---- Eviction ------------------------------------------------------------ */

START_TEST(least_recently_used_goes_first)
{
  char path[512];
  uint64_t bytes;

  b.config.memory_bytes = 1;
  b.config.cap_bytes = 20 * (SIZE + 500);
  bench_open(&b);
  for (int i = 0; i < 15; i++) {
    char name[32];

    snprintf(name, sizeof name, "kernel %d", i);
    bench_fetch(&b, name, SIZE);
    bench_entry_path(&b, name, path);
    set_file_time(path, -3600 + 60 * i);
  }
  /* A cache hit renews the file's time stamp. */
  bench_fetch(&b, "kernel 0", SIZE);
  for (int i = 15; i < 25; i++) {
    char name[32];

    snprintf(name, sizeof name, "kernel %d", i);
    bench_fetch(&b, name, SIZE);
    /* The newest entry is never evicted. */
    ck_assert(bench_has(&b, name, SIZE));
    count_files(b.dir, "", &bytes);
    ck_assert_uint_le(bytes, b.config.cap_bytes);
  }
  ck_assert(bench_has(&b, "kernel 0", SIZE));
  ck_assert(!bench_has(&b, "kernel 1", SIZE));
  ck_assert(!bench_has(&b, "kernel 2", SIZE));
  ck_assert(bench_has(&b, "kernel 14", SIZE));
  ck_assert_uint_gt(bench_stats(&b).evicted, 0);
}
END_TEST

START_TEST(hits_are_noted_at_most_once_a_minute)
{
  char path[512];
  struct stat before, after;

  b.config.memory_bytes = 1;
  make_one(path);
  set_file_time(path, -30);
  ck_assert_int_eq(stat(path, &before), 0);
  bench_fetch(&b, "a", SIZE);
  ck_assert_int_eq(stat(path, &after), 0);
  ck_assert_int_eq(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
  set_file_time(path, -90);
  bench_fetch(&b, "a", SIZE);
  ck_assert_int_eq(stat(path, &after), 0);
  ck_assert_int_ge(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
  /* The time stamp lies in the future, as if the clock had been set back. */
  set_file_time(path, 7200);
  bench_fetch(&b, "a", SIZE);
  ck_assert_int_eq(stat(path, &after), 0);
  ck_assert_int_lt(after.st_mtim.tv_sec, before.st_mtim.tv_sec + 3600);
}
END_TEST

START_TEST(times_ahead_count_as_old)
{
  char path[512];
  uint64_t removed;

  make_one(path);
  set_file_time(path, 86400);
  bench_fetch(&b, "b", SIZE);
  bench_entry_path(&b, "b", path);
  set_file_time(path, -86400);
  ck_kiln_ok(kiln__cache_shrink(b.cache, SIZE + 1000, &removed));
  ck_assert_uint_eq(removed, 1);
  reopen();
  ck_assert(!bench_has(&b, "a", SIZE));
  ck_assert(bench_has(&b, "b", SIZE));
}
END_TEST

START_TEST(caps_below_an_entry)
{
  uint64_t bytes;

  b.config.cap_bytes = 100;
  b.config.memory_bytes = 1;
  bench_open(&b);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).write_failures, 3);
  /* The folder contains only the lock file. */
  ck_assert_uint_eq(count_files(b.dir, "", &bytes), 1);
  ck_assert_uint_eq(bytes, 0);
  bench_close(&b);

  b.config.cap_bytes = 2 * SIZE; /* The capacity holds one entry but not two. */
  bench_open(&b);
  bench_fetch(&b, "a", SIZE);
  ck_assert(bench_has(&b, "a", SIZE));
  bench_fetch(&b, "b", SIZE);
  ck_assert(bench_has(&b, "b", SIZE));
  ck_assert(!bench_has(&b, "a", SIZE));
  /* An entry that is larger than the capacity is not stored and evicts
   * nothing. */
  bench_fetch(&b, "large", 3 * SIZE);
  ck_assert(bench_has(&b, "b", SIZE));
  bench_close(&b);

  b.config.cap_bytes = 0; /* 0 selects the default capacity. */
  bench_open(&b);
  {
    kiln_cache_info info;

    kiln__cache_info_get(b.cache, &info);
    ck_assert_uint_eq(info.cap, 256u << 20);
  }
}
END_TEST

START_TEST(temporary_files_count_and_are_swept)
{
  static const char young[] = "0123456789abcdef0123456789abcdef.1.2.3.tmp";
  static const char stale[] = "0123456789abcdef0123456789abcdef.1.2.4.tmp";
  static const char ahead[] = "0123456789abcdef0123456789abcdef.1.2.5.tmp";
  static const char memo[] = "nvrtc.memo.123.abc.tmp";
  /* The cache does not create files of this name. */
  static const char foreign[] = "notes.tmp";
  static char data[4 * SIZE];
  kiln_cache_info info;
  char path[512];
  uint64_t removed;

  make_one(path);
  {
    const char *const names[] = {young, stale, ahead, memo, foreign};

    for (int i = 0; i < 5; i++) {
      path_in(path, names[i]);
      test_write_file(path, data, sizeof data);
      set_file_time(path, i == 0 ? -600 : i == 2 ? 7200 : -7200);
    }
  }
  kiln__cache_info_get(b.cache, &info);
  ck_assert_uint_eq(info.entries, 1);
  ck_assert_uint_gt(info.bytes, 5 * sizeof data);
  ck_kiln_ok(kiln__cache_repair(b.cache, &removed));
  ck_assert_uint_eq(removed, 3);
  path_in(path, young);
  ck_assert(exists(path));
  path_in(path, foreign);
  ck_assert(exists(path));

  /* Recent temporary files count towards the capacity. An entry that does not
   * fit in the remaining space is not added. */
  bench_close(&b);
  b.config.cap_bytes = 2 * sizeof data + SIZE / 2;
  b.config.memory_bytes = 1;
  bench_open(&b);
  bench_fetch(&b, "b", SIZE);
  ck_assert(!bench_has(&b, "b", SIZE));
  ck_assert_uint_eq(bench_stats(&b).write_failures, 1);
  path_in(path, young);
  ck_assert(exists(path));
}
END_TEST

/* ---- On request ---------------------------------------------------------- */

typedef struct seen {
  int n, good, stop_after;
  char programs[256];
} seen;

static bool see(void *user, const kiln_cache_item *item)
{
  seen *s = user;

  s->n++;
  s->good += item->good;
  ck_assert_uint_eq(strlen(item->hash), 32);
  ck_assert_uint_gt(item->bytes, 0);
  if (item->good) {
    ck_assert_str_eq(item->target, "sm_90");
    ck_assert_int_gt(item->used_s, 1600000000);
    strcat(s->programs, item->program);
  }
  return s->n != s->stop_after;
}

START_TEST(visiting)
{
  seen all = {0}, first = {.stop_after = 1}, checked = {0};
  char path[512];
  size_t size;
  char *data;

  make_one(path);
  bench_fetch(&b, "b", SIZE);
  bench_fetch(&b, "c", SIZE);
  data = test_read_file(path, &size);
  /* Flip a bit in the entry's last section. */
  data[size - 1] = (char)(data[size - 1] ^ 1);
  test_write_file(path, data, size);
  free(data);
  ck_kiln_ok(kiln__cache_visit(b.cache, false, see, &all));
  ck_assert_int_eq(all.n, 3);
  /* The listing reads only headers and keys, so it does not detect the
   * damage. */
  ck_assert_int_eq(all.good, 3);
  ck_assert_ptr_nonnull(strchr(all.programs, 'a'));
  ck_assert_ptr_nonnull(strchr(all.programs, 'c'));
  ck_kiln_ok(kiln__cache_visit(b.cache, true, see, &checked));
  ck_assert_int_eq(checked.n, 3);
  ck_assert_int_eq(checked.good, 2);
  ck_kiln_ok(kiln__cache_visit(b.cache, true, see, &first));
  ck_assert_int_eq(first.n, 1);
  {
    uint64_t removed;

    ck_kiln_ok(kiln__cache_repair(b.cache, &removed));
    ck_assert_uint_eq(removed, 1);
    ck_assert(!exists(path));
  }
}
END_TEST

static bool count_key(void *user, const char *hash, const char *text,
                      size_t size)
{
  char again[33];

  kiln__hash_text(again, text, size);
  ck_assert_str_eq(again, hash);
  ++*(int *)user;
  return true;
}

START_TEST(keys_of_both_tiers)
{
  int n = 0;

  bench_open(&b);
  bench_fetch(&b, "a", SIZE);
  bench_fetch(&b, "b", SIZE);
  reopen();
  /* This entry is in the memory tier and on disk, but must be listed once. */
  bench_fetch(&b, "b", SIZE);
  bench_fetch(&b, "c", SIZE);
  ck_kiln_ok(kiln__cache_keys(b.cache, count_key, &n));
  ck_assert_int_eq(n, 3);
}
END_TEST

START_TEST(shrink_and_wipe)
{
  uint64_t removed, bytes;
  kiln_cache_info info;

  bench_open(&b);
  for (int i = 0; i < 10; i++) {
    char name[32];

    snprintf(name, sizeof name, "kernel %d", i);
    bench_fetch(&b, name, SIZE);
  }
  ck_kiln_ok(kiln__cache_shrink(b.cache, 5 * (SIZE + 1000), &removed));
  count_files(b.dir, "", &bytes);
  ck_assert_uint_le(bytes, 5 * (SIZE + 1000));
  ck_assert_uint_gt(removed, 3);
  ck_assert_uint_lt(removed, 10);
  kiln__cache_info_get(b.cache, &info);
  ck_assert_uint_eq(info.entries, 10 - removed);
  ck_assert_uint_eq(info.bytes, bytes);
  ck_assert_str_eq(info.path, b.dir);
  ck_assert(info.usable && info.reason[0] == '\0');
  ck_kiln_ok(kiln__cache_wipe(b.cache, &bytes));
  ck_assert_uint_eq(bytes, 10 - removed);
  ck_assert(!bench_has(&b, "kernel 9", SIZE));
  ck_kiln_ok(kiln__cache_shrink(b.cache, 0, &removed));
  ck_assert_uint_eq(removed, 0);
}
END_TEST

/* ---- Each memory allocation fails in turn ------------------------------- */

START_TEST(memory_fails_in_turn)
{
  for (int warm = 0; warm < 2; warm++) {
    for (long i = 0;; i++) {
      kiln__key key;
      maker m = {&b.mem.alloc, &key, "a", SIZE, 0, KILN_OK, 0};
      kiln__fetch f = {.key = &key, .make = maker_run, .user = &m};
      kiln__entry *entry = NULL;
      kiln_origin origin;
      kiln_status st;
      bool reached;

      if (!warm)
        test_dir_remove(b.dir);
      key_make(&key, &b.mem.alloc, "a");
      b.mem.calls = 0;
      b.mem.fail_at = i;
      st = kiln__cache_open(&b.cache, &b.config);
      if (st == KILN_OK) {
        st = kiln__cache_fetch(b.cache, &f, &entry, &origin);
        ck_assert_int_eq(entry != NULL, st == KILN_OK);
        if (st == KILN_OK)
          ck_assert(image_is(entry, "a", SIZE));
        kiln__entry_unref(entry);
      }
      ck_assert(st == KILN_OK || st == KILN_ENOMEM);
      reached = b.mem.calls > i;
      b.mem.fail_at = -1;
      kiln__cache_close(b.cache);
      b.cache = NULL;
      kiln__key_free(&key);
      ck_assert_int_eq(b.mem.live, 0);
      if (!reached) {
        ck_assert_int_gt(i, 3);
        break;
      }
    }
  }
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "cache disk", 60, begin, end,
      TESTS(each_tier_answers, no_folder_is_fine, folders_are_made_private,
            relative_path_stays, open_folders_are_refused,
            foreign_folders_are_refused, files_are_no_folders, links_to_folders,
            links_that_lead_nowhere, read_only_folder_is_read,
            every_truncation_is_noticed, every_bit_flip_is_noticed,
            forged_entry_is_a_miss, links_fifos_and_folders_are_no_entries,
            unreadable_meta_is_damage, sizes_are_checked_before_reading,
            others_entries_are_refused, other_versions_are_left_alone,
            rejected_images_are_forgotten,
            refresh_replaces_and_private_leaves_no_trace,
            failed_compile_publishes_nothing, memory_tier_holds_its_cap,
            least_recently_used_goes_first,
            hits_are_noted_at_most_once_a_minute, times_ahead_count_as_old,
            caps_below_an_entry, temporary_files_count_and_are_swept, visiting,
            keys_of_both_tiers, shrink_and_wipe, memory_fails_in_turn));
}
