/* maintain.c -- operations on the cache folder that users request: list,
 * verify, repair, trim, clear, and compare keys. Unlike the tiers, these
 * functions report failures. */
#include "tiers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right)
{
  return strcmp(((const kiln__file_item *)left)->name,
                ((const kiln__file_item *)right)->name);
}

/* Opens the cache folder for an operation that the user requested. If there is
 * no folder, the result is KILN_OK with the descriptor -1. */
static kiln_status open_for_user(kiln__cache *cache, int *dir)
{
  char why[256] = "", *next;

  *dir = -1;
  if (cache->dir == NULL)
    return KILN_OK;
  *dir = kiln__cache_folder(cache, false, why);
  if (*dir >= 0 || errno == ENOENT)
    return KILN_OK;
  /* The message has the form "what is wrong: what to do" and is split at the
   * colon. */
  next = strstr(why, ": ");
  if (next != NULL)
    *next = '\0';
  return kiln__fail_native(
      KILN_EIO, KILN_SOURCE_OS, errno, "open", next == NULL ? NULL : next + 2,
      "the cache folder %s cannot be used: %s", cache->dir, why);
}

static kiln_status scan_for_user(kiln__cache *cache, int dir, bool sweep,
                                 kiln__files *scan)
{
  const kiln_status st = kiln__files_list(cache, dir, sweep, scan);

  if (st == KILN_ENOMEM)
    return kiln__fail_memory("list of cache entries");
  return st == KILN_OK ? st : kiln__fail_os(errno, "readdir", cache->dir);
}

kiln_status kiln__cache_shrink(kiln__cache *cache, uint64_t bytes,
                               uint64_t *removed)
{
  kiln__files scan = {.items = NULL};
  kiln_status st = KILN_OK;
  int dir = -1, lock = -1;

  *removed = 0;
  KILN_TRY(open_for_user(cache, &dir));
  if (dir < 0)
    goto done;
  lock = kiln__evict_lock(cache, dir);
  KILN_TRY(scan_for_user(cache, dir, true, &scan));
  *removed = kiln__evict(cache, dir, &scan, bytes);

done:
  kiln__lock_release(cache, lock, KILN__EVICT_LOCK);
  kiln__files_free(cache, &scan);
  kiln__file_close(cache->fs, dir);
  return st;
}

kiln_status kiln__cache_wipe(kiln__cache *cache, uint64_t *removed)
{
  const kiln__fs *fs = cache->fs;
  kiln__files scan = {.items = NULL};
  kiln_status st = KILN_OK;
  int dir = -1;

  *removed = 0;
  kiln__tier_clear(cache);
  KILN_TRY(open_for_user(cache, &dir));
  if (dir < 0)
    goto done;
  KILN_TRY(scan_for_user(cache, dir, true, &scan));
  *removed = scan.swept;
  for (size_t i = 0; i < scan.n; i++) {
    if (fs->unlinkat(fs->user, dir, scan.items[i].name) == 0)
      ++*removed;
    else if (errno != ENOENT && st == KILN_OK)
      st = kiln__fail_os(errno, "unlink", cache->dir);
  }

done:
  kiln__files_free(cache, &scan);
  kiln__file_close(cache->fs, dir);
  return st;
}

/* Returns true if an entry file is readable, complete, and stored under its own
 * name. */
static bool entry_is_good(kiln__cache *cache, int dir, const char *name,
                          struct stat *info, kiln__verdict *verdict)
{
  kiln__entry *entry;
  char own[KILN__NAME_SIZE];
  bool good = false;

  *verdict = kiln__disk_load(cache, dir, name, &entry, info);
  if (*verdict == KILN__LOADED) {
    kiln__entry_name(own, entry->hash);
    good = strcmp(own, name) == 0;
    *verdict = good ? KILN__LOADED : KILN__BAD;
  }
  kiln__entry_unref(entry);
  return good;
}

kiln_status kiln__cache_repair(kiln__cache *cache, uint64_t *removed)
{
  kiln__files scan = {.items = NULL};
  kiln_status st = KILN_OK;
  int dir = -1;

  *removed = 0;
  KILN_TRY(open_for_user(cache, &dir));
  if (dir < 0)
    goto done;
  KILN_TRY(scan_for_user(cache, dir, true, &scan));
  *removed = scan.swept;
  for (size_t i = 0; i < scan.n; i++) {
    const char *name = scan.items[i].name;
    kiln__verdict verdict;
    struct stat info;

    if (!kiln__is_current_name(name) ||
        entry_is_good(cache, dir, name, &info, &verdict) ||
        verdict != KILN__BAD)
      continue;
    kiln__count(&cache->stats.corrupt, 1);
    if (kiln__disk_unlink(cache, dir, name, &info))
      ++*removed;
  }

done:
  kiln__files_free(cache, &scan);
  kiln__file_close(cache->fs, dir);
  return st;
}

static char *copy_field(kiln__cache *cache, const kiln__buf *key,
                        const char *wanted)
{
  kiln__field field;
  size_t at = 0;

  while (key->size > 0 && kiln__key_next(key->data, key->size, &at, &field)) {
    if (field.name_size == strlen(wanted) &&
        memcmp(field.name, wanted, field.name_size) == 0)
      return kiln__strndup(cache->alloc, field.value, field.size);
  }
  return kiln__strdup(cache->alloc, "");
}

/* Calls the visitor for one file of the cache folder. Returns false if the
 * visitor stops the iteration. */
static bool visit_one(kiln__cache *cache, int dir, const kiln__file_item *file,
                      bool verify, kiln_cache_fn fn, void *user,
                      kiln_status *st)
{
  char hash[33];
  kiln__buf key;
  struct stat info;
  kiln_cache_item item = {.bytes = file->bytes,
                          .used_s = file->used_ns / 1000000000};
  char *program = NULL, *target = NULL;
  kiln__verdict verdict;
  bool more = true;

  kiln__buf_init(&key, cache->alloc);
  verdict = kiln__disk_peek(cache, dir, file->name, &key, &info);
  if (verdict == KILN__ABSENT)
    goto done; /* another process evicted the entry file meanwhile */
  item.good =
      verdict == KILN__LOADED &&
      (!verify || entry_is_good(cache, dir, file->name, &info, &verdict));
  if (!item.good)
    kiln__buf_clear(&key);
  program = copy_field(cache, &key, "program");
  target = copy_field(cache, &key, "target");
  if (program == NULL || target == NULL) {
    *st = kiln__fail_memory("cache entry");
    more = false;
    goto done;
  }
  memcpy(hash, file->name, 32);
  hash[32] = '\0';
  item.hash = hash;
  item.program = program;
  item.target = target;
  more = fn(user, &item);

done:
  kiln__free(cache->alloc, program);
  kiln__free(cache->alloc, target);
  kiln__buf_free(&key);
  return more;
}

kiln_status kiln__cache_visit(kiln__cache *cache, bool verify, kiln_cache_fn fn,
                              void *user)
{
  kiln__files scan = {.items = NULL};
  kiln_status st = KILN_OK;
  bool more = true;
  int dir = -1;

  KILN_TRY(open_for_user(cache, &dir));
  if (dir < 0)
    goto done;
  KILN_TRY(scan_for_user(cache, dir, false, &scan));
  if (scan.n > 1)
    qsort(scan.items, scan.n, sizeof *scan.items, by_name);
  for (size_t i = 0; i < scan.n && more; i++) {
    if (kiln__is_current_name(scan.items[i].name))
      more = visit_one(cache, dir, &scan.items[i], verify, fn, user, &st);
  }

done:
  kiln__files_free(cache, &scan);
  kiln__file_close(cache->fs, dir);
  return st;
}

static bool listed(kiln__entry *const *entries, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++) {
    if (strncmp(entries[i]->hash, name, 32) == 0)
      return true;
  }
  return false;
}

static kiln_status disk_keys(kiln__cache *cache, int dir,
                             kiln__entry *const *skip, size_t n_skip,
                             kiln__key_fn fn, void *user)
{
  kiln__files scan = {.items = NULL};
  kiln_status st = KILN_OK;
  bool more = true;
  kiln__buf key;

  kiln__buf_init(&key, cache->alloc);
  KILN_TRY(scan_for_user(cache, dir, false, &scan));
  for (size_t i = 0; i < scan.n && more; i++) {
    const char *name = scan.items[i].name;
    struct stat info;
    char hash[33];

    if (!kiln__is_current_name(name) || listed(skip, n_skip, name))
      continue;
    kiln__buf_clear(&key);
    if (kiln__disk_peek(cache, dir, name, &key, &info) != KILN__LOADED)
      continue;
    memcpy(hash, name, 32);
    hash[32] = '\0';
    more = fn(user, hash, key.data, key.size);
  }

done:
  kiln__buf_free(&key);
  kiln__files_free(cache, &scan);
  return st;
}

/* Appends the entries on disk that are not in the memory tier. */
static kiln_status add_disk_entries(kiln__cache *cache, int dir,
                                    kiln__entry ***entries, size_t *n)
{
  const size_t n_memory = *n;
  kiln__files scan = {.items = NULL};
  kiln_status st = KILN_OK;
  kiln__entry **all = NULL;

  KILN_TRY(scan_for_user(cache, dir, false, &scan));
  all = kiln__calloc(cache->alloc, *n + scan.n, sizeof *all);
  if (all == NULL)
    KILN_TRY(kiln__fail_memory("list of cache entries"));
  if (*n > 0)
    memcpy(all, *entries, *n * sizeof *all);
  kiln__free(cache->alloc, *entries);
  *entries = all;
  for (size_t i = 0; i < scan.n; i++) {
    const char *name = scan.items[i].name;
    struct stat info;

    kiln__verdict verdict;

    if (!kiln__is_current_name(name) || listed(all, n_memory, name))
      continue;
    verdict = kiln__disk_load(cache, dir, name, &all[*n], &info);
    if (verdict == KILN__FAILED)
      KILN_TRY(errno == ENOMEM ? kiln__fail_memory("a cache entry")
                               : kiln__fail_os(errno, "read", cache->dir));
    *n += verdict == KILN__LOADED;
  }

done:
  kiln__files_free(cache, &scan);
  return st;
}

kiln_status kiln__cache_entries(kiln__cache *cache, kiln__entry ***out,
                                size_t *n)
{
  kiln_status st = KILN_OK;
  int dir = -1;

  *out = NULL;
  *n = 0;
  KILN_TRY(kiln__tier_list(cache, out, n));
  KILN_TRY(open_for_user(cache, &dir));
  if (dir >= 0)
    st = add_disk_entries(cache, dir, out, n);

done:
  kiln__file_close(cache->fs, dir);
  if (st != KILN_OK) {
    for (size_t i = 0; i < *n; i++)
      kiln__entry_unref((*out)[i]);
    kiln__free(cache->alloc, *out);
    *out = NULL;
    *n = 0;
  }
  return st;
}

kiln_status kiln__cache_keys(kiln__cache *cache, kiln__key_fn fn, void *user)
{
  kiln__entry **entries = NULL;
  kiln_status st = KILN_OK;
  size_t n = 0;
  bool more = true;
  int dir = -1;

  KILN_TRY(kiln__tier_list(cache, &entries, &n));
  for (size_t i = 0; i < n && more; i++)
    more = fn(user, entries[i]->hash, entries[i]->parts[0].data,
              entries[i]->parts[0].size);
  if (more)
    KILN_TRY(open_for_user(cache, &dir));
  if (dir >= 0)
    KILN_TRY(disk_keys(cache, dir, entries, n, fn, user));

done:
  for (size_t i = 0; i < n; i++)
    kiln__entry_unref(entries[i]);
  kiln__free(cache->alloc, entries);
  kiln__file_close(cache->fs, dir);
  return st;
}
