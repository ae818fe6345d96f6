/* Tests packs, which are files of precompiled images: which image is chosen for
 * which target, and that a damaged pack does no harm. */
#include "cache_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bench b;
static char path[300];
static const char *paths[2] = {path, NULL};

static void begin(void)
{
  bench_make(&b);
  snprintf(path, sizeof path, "%s/app.pack", b.root);
  b.config.packs = paths;
  b.config.n_packs = 1;
}

static void end(void)
{
  bench_free(&b);
}

/* Returns a different image size for each target. The tests identify the chosen
 * image by its size. */
static size_t size_for(const char *target)
{
  size_t n = 1000;

  for (const char *c = target; *c != '\0'; c++)
    n = n * 3 % 9973 + (unsigned char)*c;
  return n;
}

static void write_pack(const char *file, const char *name,
                       const char *const *list, size_t n)
{
  kiln__entry *entries[16] = {NULL};
  kiln_target targets[16] = {{0}};

  for (size_t i = 0; i < n; i++) {
    kiln__key key;

    key_make_target(&key, &b.mem.alloc, name, list[i]);
    entries[i] = image_make(&b.mem.alloc, &key, name, size_for(list[i]));
    ck_kiln_ok(kiln_target_parse(&targets[i], list[i]));
    kiln__key_free(&key);
  }
  ck_kiln_ok(kiln__pack_write(&b.mem.alloc, file, entries, targets, n));
  for (size_t i = 0; i < n; i++)
    kiln__entry_unref(entries[i]);
}

/* Returns the target of the image that the pack provides for a request, or ""
 * if there is none. */
static const char *answer(const char *name, const char *want,
                          const char *const *list, size_t n)
{
  kiln_target target;
  kiln__entry *entry;
  kiln__key key;
  const char *found = "";

  ck_kiln_ok(kiln_target_parse(&target, want));
  key_make_target(&key, &b.mem.alloc, name, want);
  entry = kiln__cache_pack(b.cache, &key, target, false);
  for (size_t i = 0; entry != NULL && i < n; i++) {
    if (image_is(entry, name, size_for(list[i])))
      found = list[i];
  }
  if (entry != NULL) {
    ck_assert_str_ne(found, "");
    ck_assert(kiln__entry_has_key(entry, &key.text));
    ck_assert_str_eq(kiln__entry_hash(entry), key.hash);
  }
  kiln__entry_unref(entry);
  kiln__key_free(&key);
  return found;
}

START_TEST(targets_are_chosen)
{
  static const char *const list[] = {"sm_70",   "sm_80",      "sm_87", "sm_90a",
                                     "sm_100f", "compute_75", "sm_60"};
  static const struct {
    const char *want, *got;
  } cases[] = {
      {"sm_80", "sm_80"},   /* the pack has this exact target */
      {"sm_86", "sm_80"},   /* sm_80 code runs on later minor versions */
      {"sm_89", "sm_80"},   /* sm_87 is skipped: it is for integrated GPUs */
      {"sm_87", "sm_87"},   /* the pack has this exact target */
      {"sm_72", "sm_70"},   /* sm_72 is integrated, so it gets PTX of sm_70 */
      {"sm_75", "sm_70"},   /* machine code is preferred to PTX for this GPU */
      {"sm_90", "sm_90a"},  /* sm_90a code runs on exactly this GPU */
      {"sm_90a", "sm_90a"}, /* the pack has this exact target */
      {"compute_90", "sm_87"}, /* the highest PTX without a suffix is used */
      {"sm_120", "sm_87"},     /* only PTX can run, so the highest is used */
      {"sm_103f", "sm_100f"},  /* sm_100f code runs on its whole family */
      {"sm_100f", "sm_100f"},
      {"sm_103", "sm_87"},
      {"sm_120f", ""},
      {"sm_100a", ""},
      {"compute_75", "compute_75"},
      {"sm_62", "sm_60"},
      {"sm_61", "sm_60"},
      {"sm_53", ""}, /* all images of the pack are for newer GPUs */
      {"sm_35", ""},
  };
  const size_t n = sizeof list / sizeof list[0];

  write_pack(path, "app", list, n);
  bench_open(&b);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *got = answer("app", cases[i].want, list, n);

    ck_assert_msg(strcmp(got, cases[i].got) == 0, "%s: got %s, want %s",
                  cases[i].want, got, cases[i].got);
  }
  ck_assert_str_eq(answer("another", "sm_80", list, n), "");
}
END_TEST

START_TEST(fetch_takes_it_from_the_pack)
{
  static const char *const list[] = {"sm_90"};
  kiln_cache_stats s;
  kiln__key key;
  kiln__fetch f = {.key = &key, .target = {90, 0, false}, .lookup_only = true};
  kiln__entry *entry;
  kiln_origin origin;
  uint64_t bytes;

  write_pack(path, "app", list, 1);
  bench_open(&b);
  key_make(&key, &b.mem.alloc, "app");
  for (int i = 0; i < 2; i++) {
    ck_kiln_ok(kiln__cache_fetch(b.cache, &f, &entry, &origin));
    ck_assert_int_eq(origin, i == 0 ? KILN_FROM_PACK : KILN_FROM_MEMORY);
    ck_assert(image_is(entry, "app", size_for("sm_90")));
    if (i == 0)
      kiln__entry_unref(entry);
  }
  s = bench_stats(&b);
  ck_assert_uint_eq(s.pack_hits, 1);
  ck_assert_uint_eq(s.memory_hits, 1);
  /* The image is not copied to the cache folder. */
  ck_assert_uint_eq(count_files(b.dir, "", &bytes), 0);

  /* After the driver has refused an image, the cache no longer takes that image
   * from any pack. */
  {
    kiln_target t[4];

    ck_assert_uint_eq(kiln__cache_pack_targets(b.cache, &key, t, 4), 2);
  }
  kiln__entry_unref(entry);
  ck_kiln_ok(kiln__cache_fetch(b.cache, &f, &entry, &origin));
  {
    kiln__entry *packed = kiln__cache_pack(b.cache, &key, f.target, true);

    kiln__cache_reject(b.cache, packed);
    kiln__entry_unref(packed);
  }
  kiln__entry_unref(entry);
  ck_kiln_is(kiln__cache_fetch(b.cache, &f, &entry, &origin), KILN_ENOTFOUND);
  kiln__key_free(&key);
}
END_TEST

START_TEST(fetch_leaves_what_is_for_another_target)
{
  static const char *const list[] = {"sm_80", "compute_75"};
  kiln__fetch f = {.target = {86, 0, false}, .lookup_only = true};
  kiln__entry *entry;
  kiln_origin origin;
  kiln__key key;

  write_pack(path, "app", list, 2);
  bench_open(&b);
  key_make_target(&key, &b.mem.alloc, "app", "sm_86");
  f.key = &key;
  ck_kiln_is(kiln__cache_fetch(b.cache, &f, &entry, &origin), KILN_ENOTFOUND);
  entry = kiln__cache_pack(b.cache, &key, f.target, true);
  ck_assert_ptr_null(entry);
  entry = kiln__cache_pack(b.cache, &key, f.target, false);
  ck_assert_ptr_nonnull(entry);
  ck_assert(image_is(entry, "app", size_for("sm_80")));
  kiln__entry_unref(entry);
  kiln__key_free(&key);
}
END_TEST

START_TEST(earlier_packs_win_and_targets_are_listed)
{
  static const char *const one[] = {"sm_80", "sm_90"};
  static const char *const two[] = {"sm_90", "compute_75"};
  char second[300];
  kiln_target t[8];
  kiln__key key;

  snprintf(second, sizeof second, "%s/second.pack", b.root);
  paths[1] = second;
  b.config.n_packs = 2;
  write_pack(path, "app", one, 2);
  write_pack(second, "app", two, 2);
  bench_open(&b);
  ck_assert_str_eq(answer("app", "sm_90", one, 2), "sm_90");
  ck_assert_str_eq(answer("app", "sm_75", two, 2), "compute_75");
  key_make(&key, &b.mem.alloc, "app");
  ck_assert_uint_eq(kiln__cache_pack_targets(b.cache, &key, t, 8), 5);
  ck_assert(t[0].cc == 80 && !t[0].ptx && t[1].cc == 80 && t[1].ptx);
  ck_assert(t[2].cc == 90 && !t[2].ptx && t[3].cc == 90 && t[3].ptx);
  ck_assert(t[4].cc == 75 && t[4].ptx);
  ck_assert_uint_ge(kiln__cache_pack_targets(b.cache, &key, t, 1), 2);
  ck_assert_uint_ge(kiln__cache_pack_targets(b.cache, &key, NULL, 0), 2);
  kiln__key_free(&key);
  b.config.n_packs = 1;
  paths[1] = NULL;
}
END_TEST

START_TEST(repetitions_are_written_once)
{
  static const char *const list[] = {"sm_90", "sm_90", "sm_80", "sm_90"};
  struct stat many, few;

  write_pack(path, "app", list, 4);
  ck_assert_int_eq(stat(path, &many), 0);
  write_pack(path, "app", list + 1, 2);
  ck_assert_int_eq(stat(path, &few), 0);
  ck_assert_int_eq(many.st_size, few.st_size);
  ck_assert_uint_eq(few.st_mode & 0777, 0644);
  write_pack(path, "app", list, 0);
  bench_open(&b);
  ck_assert_str_eq(answer("app", "sm_90", list, 4), "");
  ck_assert_uint_eq(bench_stats(&b).read_failures, 0);
}
END_TEST

/* ---- Bad packs ----------------------------------------------------------- */

/* Checks that a damaged pack gives either the correct image or none. Without an
 * image from the pack, the program is compiled. */
static void still_right(void)
{
  kiln__entry *entry;
  kiln__key key;

  bench_open(&b);
  key_make(&key, &b.mem.alloc, "app");
  entry = kiln__cache_pack(b.cache, &key, (kiln_target){90, 0, false}, true);
  /* The image is the machine code for sm_90, or the PTX of the sm_80 entry. */
  if (entry != NULL)
    ck_assert(image_is(entry, "app", size_for("sm_90")) ||
              image_is(entry, "app", size_for("sm_80")));
  kiln__entry_unref(entry);
  kiln__key_free(&key);
  bench_close(&b);
}

START_TEST(damaged_packs_are_ignored)
{
  static const char *const list[] = {"sm_80", "sm_90"};
  uint64_t random = 42;
  size_t size;
  char *data;

  b.config.dir = NULL;
  write_pack(path, "app", list, 2);
  data = test_read_file(path, &size);
  for (size_t n = 0; n < size; n += n < 200 ? 1 : 37) {
    test_write_file(path, data, n);
    still_right();
  }
  for (int i = 0; i < test_rounds(2000); i++) {
    const size_t bit = (size_t)(test_random(&random) % (size * 8));

    data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    test_write_file(path, data, size);
    data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    still_right();
  }
  free(data);
}
END_TEST

static void refused(const char *reason)
{
  kiln__key key;

  b.warnings = 0;
  bench_open(&b);
  key_make(&key, &b.mem.alloc, "app");
  for (int i = 0; i < 3; i++)
    ck_assert_ptr_null(
        kiln__cache_pack(b.cache, &key, (kiln_target){90, 0, false}, true));
  /* The bad pack is opened and reported only once. */
  ck_assert_int_eq(b.warnings, 1);
  ck_assert_msg(strstr(b.last_warning, reason) != NULL, "%s", b.last_warning);
  ck_assert_uint_eq(bench_stats(&b).read_failures, 1);
  ck_assert_int_eq(bench_fetch(&b, "app", 100), KILN_FROM_COMPILER);
  kiln__key_free(&key);
  bench_close(&b);
  test_dir_remove(b.dir);
}

START_TEST(unusable_packs_are_reported)
{
  static const char *const list[] = {"sm_90"};
  unsigned char *data;
  size_t size;

  refused("No such file");
  test_write_file(path, "not a pack, but long enough to be one, perhaps", 46);
  refused("damaged");
  unlink(path);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  refused("not a file");
  rmdir(path);

  write_pack(path, "app", list, 1);
  data = (unsigned char *)test_read_file(path, &size);
  kiln__put32(data + 8, 2);
  test_write_file(path, data, size);
  refused("another version");
  kiln__put32(data + 8, 1);
  /* The header's number of entries is much too large. */
  kiln__put64(data + 24, UINT64_MAX / 44);
  test_write_file(path, data, size);
  refused("damaged");
  free(data);
}
END_TEST

/* The pack's index lists an undamaged entry under the hash of another key. The
 * look-up must miss. */
START_TEST(forged_index_is_a_miss)
{
  static const char *const list[] = {"sm_90"};
  unsigned char *data;
  size_t size;
  kiln__key key;

  write_pack(path, "other", list, 1);
  data = (unsigned char *)test_read_file(path, &size);
  key_make(&key, &b.mem.alloc, "app");
  memcpy(data + 32, key.portable_hash, 32);
  kiln__put64(data + 32 + 44, kiln__sum64(data, 32 + 44));
  test_write_file(path, data, size);
  bench_open(&b);
  ck_assert_ptr_null(
      kiln__cache_pack(b.cache, &key, (kiln_target){90, 0, false}, true));
  ck_assert_uint_eq(bench_stats(&b).forged, 1);
  kiln__key_free(&key);
  free(data);
}
END_TEST

/* A sparse file of 2 GiB has a header that claims the file is full of entries.
 * It is refused. */
START_TEST(counts_are_bounded_before_reading)
{
  static const char *const list[] = {"sm_90"};
  const uint64_t size = (uint64_t)2 << 30;
  unsigned char *data;
  size_t n;
  kiln__key key;

  write_pack(path, "app", list, 1);
  data = (unsigned char *)test_read_file(path, &n);
  kiln__put64(data + 16, size);
  kiln__put64(data + 24, (size - 40) / 44);
  test_write_file(path, data, n);
  ck_assert_int_eq(truncate(path, (off_t)size), 0);
  bench_open(&b);
  b.mem.largest = 0;
  key_make(&key, &b.mem.alloc, "app");
  ck_assert_ptr_null(
      kiln__cache_pack(b.cache, &key, (kiln_target){90, 0, false}, true));
  ck_assert_uint_lt(b.mem.largest, 1 << 26);
  kiln__key_free(&key);
  free(data);
}
END_TEST

START_TEST(memory_fails_in_turn)
{
  static const char *const list[] = {"sm_80", "sm_90"};
  kiln__key key;
  kiln__entry *made[2];
  const kiln_target targets[2] = {{80, 0, false}, {90, 0, false}};

  b.config.dir = NULL;
  key_make(&key, &b.mem.alloc, "app");
  for (int i = 0; i < 2; i++)
    made[i] = image_make(&b.mem.alloc, &key, "app", size_for(list[i]));
  for (long i = 0;; i++) {
    const long live = b.mem.live;
    kiln_status st;

    b.mem.calls = 0;
    b.mem.fail_at = i;
    st = kiln__pack_write(&b.mem.alloc, path, made, targets, 2);
    b.mem.fail_at = -1;
    ck_assert_int_eq(b.mem.live, live);
    if (st == KILN_OK) {
      ck_assert_int_gt(i, 3);
      break;
    }
    ck_kiln_is(st, KILN_ENOMEM);
    /* No incomplete pack file remains. */
    ck_assert_int_ne(access(path, F_OK), 0);
  }
  for (int i = 0; i < 2; i++)
    kiln__entry_unref(made[i]);
  for (long i = 0;; i++) {
    kiln__entry *entry = NULL;

    b.mem.calls = 0;
    b.mem.fail_at = i;
    if (kiln__cache_open(&b.cache, &b.config) == KILN_OK)
      entry = kiln__cache_pack(b.cache, &key, targets[1], true);
    b.mem.fail_at = -1;
    if (entry != NULL)
      ck_assert(image_is(entry, "app", size_for("sm_90")));
    kiln__entry_unref(entry);
    /* After a failed allocation, the next look-up succeeds. */
    if (b.cache != NULL && entry == NULL) {
      entry = kiln__cache_pack(b.cache, &key, targets[1], true);
      ck_assert_ptr_nonnull(entry);
      kiln__entry_unref(entry);
      entry = NULL;
    }
    kiln__cache_close(b.cache);
    b.cache = NULL;
    if (b.mem.calls <= i)
      break;
  }
  kiln__key_free(&key);
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "cache pack", 60, begin, end,
      TESTS(targets_are_chosen, fetch_takes_it_from_the_pack,
            fetch_leaves_what_is_for_another_target,
            earlier_packs_win_and_targets_are_listed,
            repetitions_are_written_once, damaged_packs_are_ignored,
            unusable_packs_are_reported, forged_index_is_a_miss,
            counts_are_bounded_before_reading, memory_fails_in_turn));
}
