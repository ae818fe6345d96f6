/* lookup.c -- opens a cache, looks up keys in its tiers, counts hits and
 * misses, and describes the cache folder.
 *
 * The search order is: the memory tier, packs (for exactly the requested
 * target), and the disk tier. After a miss, a single flight searches the disk
 * again, compiles and publishes (flight.c). A fetch fails only if memory runs
 * out or the compiler fails. Every problem of a tier results in a miss and is
 * counted. */
#include "tiers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_CAP ((uint64_t)256 << 20)
#define DEFAULT_MEMORY ((size_t)64 << 20)

void kiln__warn(kiln__cache *cache, kiln__warning kind, const char *format, ...)
{
  const uint32_t bit = (uint32_t)1 << kind;
  char line[768];
  va_list args;
  bool first;

  if (cache->log == NULL || cache->log->fn == NULL)
    return;
  first = (__atomic_fetch_or(&cache->warned, bit, __ATOMIC_RELAXED) & bit) == 0;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  kiln__logf(cache->log, first ? KILN_LOG_WARNING : KILN_LOG_DEBUG, "%s", line);
}

/* Makes the path of the cache folder absolute, so that chdir() does not move
 * the cache. Also removes a trailing '/', since open() with O_NOFOLLOW would
 * follow a link whose path ends in '/'. */
static char *absolute_path(const kiln_allocator *a, const char *path)
{
  char here[4096] = "";
  kiln__buf b;

  kiln__buf_init(&b, a);
  if (path[0] != '/') {
    if (getcwd(here, sizeof here) == NULL)
      /* The current folder was deleted. The path then becomes "/path", and
       * opening it will be refused. */
      here[0] = '\0';
    kiln__buf_text(&b, here);
    kiln__buf_add(&b, "/", 1);
  }
  kiln__buf_text(&b, path);
  while (!b.failed && b.size > 1 && b.data[b.size - 1] == '/')
    b.data[--b.size] = '\0';
  return kiln__buf_take(&b);
}

kiln_status kiln__cache_open(kiln__cache **out,
                             const kiln__cache_config *config)
{
  kiln__cache *cache = kiln__calloc(config->alloc, 1, sizeof *cache);
  kiln_status st = KILN_OK;

  *out = NULL;
  if (cache == NULL)
    return kiln__fail_memory("cache");
  cache->alloc = config->alloc;
  cache->log = config->log;
  cache->fs = config->fs != NULL ? config->fs : &kiln__fs_posix;
  cache->cap = config->cap_bytes != 0 ? config->cap_bytes : DEFAULT_CAP;
  if (cache->cap > INT64_MAX)
    cache->cap = INT64_MAX;
  cache->wait_ms = config->wait_ms;
  cache->memory.cap =
      config->memory_bytes != 0 ? config->memory_bytes : DEFAULT_MEMORY;
  pthread_mutex_init(&cache->lock, NULL);
  pthread_mutex_init(&cache->pack_lock, NULL);
  kiln__fork_guard_init(&cache->fork);
  if (config->dir != NULL) {
    cache->dir = absolute_path(cache->alloc, config->dir);
    if (cache->dir == NULL)
      KILN_TRY(kiln__fail_memory("cache"));
  }
  KILN_TRY(kiln__packs_create(cache, config->packs, config->n_packs));
  *out = cache;
  cache = NULL;

done:
  kiln__cache_close(cache);
  return st;
}

void kiln__cache_close(kiln__cache *cache)
{
  if (cache == NULL)
    return;
  kiln__tier_clear(cache);
  kiln__packs_free(cache);
  if (!kiln__forked(&cache->fork)) {
    pthread_mutex_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->pack_lock);
  }
  kiln__fork_guard_free(&cache->fork);
  kiln__free(cache->alloc, cache->dir);
  kiln__free(cache->alloc, cache);
}

/* Searches the memory tier, the packs and the disk tier. Returns NULL if none
 * has the entry. */
static kiln__entry *look_up(kiln__cache *cache, const kiln__fetch *fetch,
                            kiln_origin *origin)
{
  kiln__entry *entry = kiln__tier_find(cache, fetch->key);

  if (entry != NULL) {
    kiln__count(&cache->stats.memory_hits, 1);
    *origin = KILN_FROM_MEMORY;
    return entry;
  }
  entry = cache->n_packs > 0
              ? kiln__cache_pack(cache, fetch->key, fetch->target, true)
              : NULL;
  *origin = KILN_FROM_PACK;
  if (entry == NULL) {
    entry = kiln__disk_read(cache, fetch->key);
    *origin = KILN_FROM_DISK;
    if (entry != NULL)
      kiln__count(&cache->stats.disk_hits, 1);
  }
  if (entry != NULL)
    kiln__tier_put(cache, entry);
  return entry;
}

kiln_status kiln__cache_fetch(kiln__cache *cache, const kiln__fetch *fetch,
                              kiln__entry **out, kiln_origin *origin)
{
  *out = NULL;
  *origin = KILN_FROM_COMPILER;
  if (!fetch->private_only && !fetch->refresh) {
    *out = look_up(cache, fetch, origin);
    if (*out != NULL)
      return KILN_OK;
  }
  if (fetch->lookup_only)
    return KILN_ENOTFOUND;
  if (!fetch->private_only && !fetch->refresh)
    return kiln__flight_run(cache, fetch, out, origin);
  *origin = KILN_FROM_COMPILER;
  return kiln__make(cache, fetch, out);
}

void kiln__cache_reject(kiln__cache *cache, kiln__entry *entry)
{
  kiln__count(&cache->stats.rejected, 1);
  kiln__tier_drop(cache, entry);
  if (entry->pack_item != 0)
    kiln__packs_reject(cache, entry);
  else
    kiln__disk_reject(cache, entry);
}

void kiln__cache_stats_get(kiln__cache *cache, kiln_cache_stats *out)
{
  const uint64_t *from = (const uint64_t *)&cache->stats;
  uint64_t *to = (uint64_t *)out;

  _Static_assert(sizeof *out % sizeof *to == 0, "counters only");
  for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
    to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* Tests whether the cache folder is writable: creates and removes a file. Only
 * this test detects read-only file systems, access-control lists and quotas.
 * Returns 0 or an errno value. */
static int probe(kiln__cache *cache, int dir)
{
  const kiln__fs *fs = cache->fs;
  char name[64];
  int fd, code = 0;

  kiln__format(name, sizeof name, "%032x.%lx.probe.tmp", 0u,
               (unsigned long)getpid());
  fd = kiln__entry_open(cache, dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0)
    return errno;
  if (!kiln__write_all(fs, fd, "?", 1))
    code = errno;
  if (fs->close(fs->user, fd) != 0 && code == 0 && errno != EINTR)
    code = errno;
  fs->unlinkat(fs->user, dir, name);
  return code;
}

static void describe_open(kiln__cache *cache, int dir, kiln_cache_info *out)
{
  kiln__files scan;
  char text[96];
  int code;

  if (kiln__files_list(cache, dir, false, &scan) != KILN_OK) {
    kiln__format(out->reason, sizeof out->reason,
                 "it cannot be listed (%s): set KILN_CACHE_DIR to another "
                 "folder",
                 kiln__errno_text(errno, text, sizeof text));
    return;
  }
  for (size_t i = 0; i < scan.n; i++)
    out->entries += kiln__is_current_name(scan.items[i].name);
  out->bytes = scan.bytes;
  kiln__files_free(cache, &scan);
  code = probe(cache, dir);
  out->usable = code == 0;
  if (code != 0)
    kiln__format(
        out->reason, sizeof out->reason,
        "it is read, but nothing can be added (%s): free disk space or "
        "make it writable, or set KILN_CACHE_DIR to another folder",
        kiln__errno_text(code, text, sizeof text));
}

const char *kiln__cache_dir(const kiln__cache *cache)
{
  return cache->dir;
}

void kiln__cache_info_get(kiln__cache *cache, kiln_cache_info *out)
{
  int dir;

  *out = (kiln_cache_info){.cap = cache->cap};
  if (cache->dir == NULL) {
    kiln__copy_text(out->reason, sizeof out->reason,
                    "there is no cache folder: set KILN_CACHE_DIR to one to "
                    "keep what is compiled");
    return;
  }
  kiln__copy_text(out->path, sizeof out->path, cache->dir);
  dir = kiln__cache_folder(cache, true, out->reason);
  if (dir < 0)
    return;
  describe_open(cache, dir, out);
  kiln__file_close(cache->fs, dir);
}
