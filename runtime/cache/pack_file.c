/* pack_file.c -- packs: read-only files of entries that ship with an
 * application.
 *
 * A pack is made without a GPU and read on machines that may have no compiler.
 * The entries of a pack are therefore found by the portable part of the key,
 * which describes the program, and by the target. All numbers are
 * little-endian. The columns are the offset, the size in bytes and the content:
 *
 *    0  8  magic number
 *    8  4  format version
 *   12  4  a constant that reveals a different byte order
 *   16  8  size of the file in bytes
 *   24  8  number of entries
 *   32     portable hash (32 digits), target (4) and size (8) of each
 *          entry, sorted by hash, then by target
 *          XXH3-64 of all preceding bytes (8)
 *          the entries in their own file format, with the portable key only
 *
 * A pack is opened on first use, and its index stays in memory. An entry is
 * read and checked when it is requested. */
#include "tiers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
  PACK_VERSION = 1,
  PACK_MARK = 0x01020304,
  PACK_HEAD = 32,
  PACK_ITEM = 32 + 4 + 8,
  /* Limit that bounds the memory allocated for a forged header: 12 MB. */
  MOST_ITEMS = 1 << 18,
  EXACT_RANK = 1 << 24,
  UNTRIED = 0,
  OPEN,
  UNUSABLE
};

static const char magic[8] = {'k', 'i', 'l', 'n', 'p', 'a', 'k', '\n'};

/* ---- Targets ------------------------------------------------------------- */

static uint32_t pack_target(kiln_target t)
{
  return (uint32_t)t.cc << 16 | (uint32_t)(unsigned char)t.suffix << 8 |
         (uint32_t)t.ptx;
}

static kiln_target unpack_target(uint32_t v)
{
  return (kiln_target){.cc = (int)(v >> 16),
                       .suffix = (char)(v >> 8 & 0x7f),
                       .ptx = (v & 1) != 0};
}

static bool is_tegra(int cc)
{
  kiln_traits traits;

  return kiln_arch_traits(cc, &traits) == KILN_OK && traits.tegra;
}

/* Returns true if machine code for target `have` runs on the wanted target.
 * Machine code runs on its own capability and on later minor versions of the
 * same major version, but not across integrated and discrete GPUs. Code with
 * suffix 'a' runs only on its own capability. A program that needs a target
 * suffix accepts only code with this suffix. */
static bool code_serves(kiln_target have, kiln_target want)
{
  if (have.ptx || want.ptx)
    return false;
  if (have.cc == want.cc)
    return want.suffix == 0 || have.suffix == want.suffix ||
           (want.suffix == 'f' && have.suffix == 'a');
  return have.cc < want.cc && have.cc / 10 == want.cc / 10 &&
         have.suffix == want.suffix && have.suffix != 'a' &&
         is_tegra(have.cc) == is_tegra(want.cc);
}

/* Returns true if the PTX of an entry can be assembled for the wanted target.
 * Every entry has PTX. PTX runs on any later GPU, but PTX with a target suffix
 * runs only on the same chip or family. */
static bool ptx_serves(kiln_target have, kiln_target want)
{
  if (have.suffix != want.suffix || have.cc > want.cc)
    return false;
  switch (have.suffix) {
  case 'a':
    return have.cc == want.cc;
  case 'f':
    return have.cc / 10 == want.cc / 10;
  default:
    return true;
  }
}

/* Returns how well an image serves the wanted target: 0 means not at all, and a
 * higher value is better. */
static int rank_target(kiln_target have, kiln_target want)
{
  if (pack_target(have) == pack_target(want))
    return EXACT_RANK;
  if (code_serves(have, want))
    return (1 << 16) + have.cc;
  return ptx_serves(have, want) ? 1 + have.cc : 0;
}

/* ---- Opening ------------------------------------------------------------- */

static int compare_items(const void *left, const void *right)
{
  const kiln__pack_item *a = left, *b = right;
  const int order = strcmp(a->hash, b->hash);
  const uint32_t ta = pack_target(a->target), tb = pack_target(b->target);

  return order != 0 ? order : (ta > tb) - (ta < tb);
}

static bool parse_item(kiln__pack_item *item, const unsigned char *from,
                       uint64_t *at, uint64_t end)
{
  memcpy(item->hash, from, 32);
  item->target = unpack_target(kiln__get32(from + 32));
  item->size = kiln__get64(from + 36);
  item->offset = *at;
  if (item->size < KILN__WIRE_HEAD || item->size > end - *at ||
      item->size > KILN__ENTRY_LIMIT)
    return false;
  *at += item->size;
  return true;
}

/* Parses the index of a pack: the header, the items and the checksum. */
static bool parse_index(kiln__pack *pack, const unsigned char *index,
                        size_t index_size, uint64_t size)
{
  uint64_t at = index_size;

  if (kiln__get64(index + index_size - 8) != kiln__sum64(index, index_size - 8))
    return false;
  for (size_t i = 0; i < pack->n; i++) {
    if (!parse_item(&pack->items[i], index + PACK_HEAD + i * PACK_ITEM, &at,
                    size))
      return false;
    if (i > 0 && compare_items(&pack->items[i - 1], &pack->items[i]) >= 0)
      return false;
  }
  return at == size;
}

/* A pack that cannot be read may be a temporary problem, so the pack is tried
 * again later. All other problems of a pack are permanent. */
static const char unreadable[] = "it cannot be read";

/* Reads the index of a pack. Returns NULL, or the reason why the pack cannot be
 * used. */
static const char *read_index(kiln__cache *cache, kiln__pack *pack)
{
  static const char damaged[] = "it is damaged or no pack";
  unsigned char head[PACK_HEAD], *index;
  struct stat info;
  uint64_t size, n;
  size_t index_size;
  bool good;

  if (cache->fs->fstat(cache->fs->user, pack->fd, &info) != 0 ||
      !S_ISREG(info.st_mode))
    return "it is not a file";
  size = (uint64_t)info.st_size;
  if (size < PACK_HEAD + 8 ||
      !kiln__pread_all(cache->fs, pack->fd, head, sizeof head, 0))
    return damaged;
  n = kiln__get64(head + 24);
  if (memcmp(head, magic, sizeof magic) != 0 ||
      kiln__get32(head + 12) != PACK_MARK || kiln__get64(head + 16) != size)
    return damaged;
  if (kiln__get32(head + 8) != PACK_VERSION)
    return "it was written by another version of Kiln";
  if (n > MOST_ITEMS ||
      n > (size - PACK_HEAD - 8) / (PACK_ITEM + KILN__WIRE_HEAD))
    return damaged;
  index_size = PACK_HEAD + (size_t)n * PACK_ITEM + 8;
  index = kiln__alloc(cache->alloc, index_size);
  pack->items = kiln__calloc(cache->alloc, (size_t)n, sizeof *pack->items);
  pack->n = (size_t)n;
  good = index != NULL && pack->items != NULL &&
         kiln__pread_all(cache->fs, pack->fd, index, index_size, 0);
  if (good && !parse_index(pack, index, index_size, size)) {
    kiln__free(cache->alloc, index);
    return damaged;
  }
  kiln__free(cache->alloc, index);
  return good ? NULL : unreadable;
}

static void close_pack(kiln__cache *cache, kiln__pack *pack)
{
  kiln__file_close(cache->fs, pack->fd);
  kiln__free(cache->alloc, pack->items);
  pack->fd = -1;
  pack->items = NULL;
  pack->n = 0;
}

static bool passes(int code)
{
  return code == EMFILE || code == ENFILE || code == ENOMEM;
}

/* Opens a pack and returns its new state. UNTRIED means that a later attempt
 * may succeed. */
static uint32_t open_pack(kiln__cache *cache, kiln__pack *pack)
{
  const kiln__fs *fs = cache->fs;
  const char *problem;
  bool again = false;
  char text[96];

  do {
    pack->fd = fs->openat(fs->user, AT_FDCWD, pack->path,
                          O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  } while (pack->fd < 0 && errno == EINTR);
  if (pack->fd < 0) {
    again = passes(errno);
    problem = kiln__errno_text(errno, text, sizeof text);
  } else {
    problem = read_index(cache, pack);
    again = problem == unreadable;
  }
  if (problem == NULL)
    return OPEN;
  kiln__count(&cache->stats.read_failures, 1);
  close_pack(cache, pack);
  if (again)
    kiln__warn(cache, KILN__WARNING_PACK, "pack %s is not used: %s", pack->path,
               problem);
  else
    kiln__logf(cache->log, KILN_LOG_WARNING, "pack %s is not used: %s",
               pack->path, problem);
  return again ? UNTRIED : UNUSABLE;
}

/* Opens all packs that were not tried yet. A log callback may call Kiln again,
 * so each pack is opened into a copy of its struct, with no lock held. If two
 * threads open the same pack, one of them discards its copy. */
static void ready(kiln__cache *cache)
{
  for (size_t i = 0; i < cache->n_packs; i++) {
    kiln__pack *pack = &cache->packs[i];
    kiln__pack opened = {.path = pack->path, .fd = -1};
    bool late;

    if (__atomic_load_n(&pack->state, __ATOMIC_ACQUIRE) != UNTRIED ||
        kiln__forked(&cache->fork))
      continue;
    opened.state = open_pack(cache, &opened);
    pthread_mutex_lock(&cache->pack_lock);
    late = pack->state != UNTRIED;
    if (!late) {
      pack->fd = opened.fd;
      pack->items = opened.items;
      pack->n = opened.n;
      __atomic_store_n(&pack->state, opened.state, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&cache->pack_lock);
    if (late)
      close_pack(cache, &opened);
  }
}

kiln_status kiln__packs_create(kiln__cache *cache, const char *const *paths,
                               size_t n)
{
  if (n == 0)
    return KILN_OK;
  cache->packs = kiln__calloc(cache->alloc, n, sizeof *cache->packs);
  if (cache->packs == NULL)
    return kiln__fail_memory("packs");
  for (size_t i = 0; i < n; i++) {
    cache->packs[i].fd = -1;
    cache->packs[i].path = kiln__strdup(cache->alloc, paths[i]);
    cache->n_packs = i + 1;
    if (cache->packs[i].path == NULL)
      return kiln__fail_memory("packs");
  }
  return KILN_OK;
}

void kiln__packs_free(kiln__cache *cache)
{
  for (size_t i = 0; i < cache->n_packs; i++) {
    close_pack(cache, &cache->packs[i]);
    kiln__free(cache->alloc, cache->packs[i].path);
  }
  kiln__free(cache->alloc, cache->packs);
}

/* ---- Looking up ---------------------------------------------------------- */

/* Returns the index of the first pack item with a hash that is not less than
 * the given hash. Items with equal hashes are adjacent. */
static size_t lower_bound(const kiln__pack *pack, const char *hash)
{
  size_t low = 0, high = pack->n;

  while (low < high) {
    const size_t mid = low + (high - low) / 2;

    if (strcmp(pack->items[mid].hash, hash) < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static bool is_open(const kiln__pack *pack)
{
  return __atomic_load_n(&pack->state, __ATOMIC_ACQUIRE) == OPEN;
}

static bool offered(const kiln__pack *pack, size_t i, const char *hash)
{
  return i < pack->n && strcmp(pack->items[i].hash, hash) == 0;
}

/* Returns the item over all packs that serves the target best. If several are
 * equally good, the item of the earlier pack wins. Returns NULL if no item
 * serves the target. */
static kiln__pack_item *choose(kiln__cache *cache, const kiln__key *key,
                               kiln_target want, bool exact, size_t *which)
{
  kiln__pack_item *best = NULL;
  int best_rank = exact ? EXACT_RANK - 1 : 0;

  for (size_t p = 0; p < cache->n_packs; p++) {
    kiln__pack *pack = &cache->packs[p];

    if (!is_open(pack))
      continue;
    for (size_t i = lower_bound(pack, key->portable_hash);
         offered(pack, i, key->portable_hash); i++) {
      const int rank =
          __atomic_load_n(&pack->items[i].rejected, __ATOMIC_RELAXED) != 0
              ? 0
              : rank_target(pack->items[i].target, want);

      if (rank > best_rank) {
        best_rank = rank;
        best = &pack->items[i];
        *which = p;
      }
    }
  }
  return best;
}

/* Reads an entry from a pack. The result is KILN__BAD if the entry is damaged
 * or has a different key. */
static kiln__verdict read_item(kiln__cache *cache, const kiln__pack *pack,
                               const kiln__pack_item *item,
                               const kiln__key *key, kiln__entry **out)
{
  kiln__entry *entry;
  const kiln__verdict verdict =
      kiln__wire_load(cache, pack->fd, item->offset, item->size, &entry);

  if (verdict == KILN__LOADED && kiln__entry_has_key(entry, &key->portable)) {
    *out = entry;
    return KILN__LOADED;
  }
  if (verdict == KILN__FAILED)
    kiln__count(&cache->stats.read_failures, 1);
  else
    kiln__count(
        verdict == KILN__BAD ? &cache->stats.corrupt : &cache->stats.forged, 1);
  kiln__entry_unref(entry);
  return verdict == KILN__FAILED ? KILN__FAILED : KILN__BAD;
}

/* Creates an entry with the requested key and copies of a pack entry's
 * sections, so that the memory tier finds it at the next request. */
static kiln__entry *under_key(kiln__cache *cache, const kiln__entry *from,
                              const kiln__key *key)
{
  return kiln__entry_create(cache->alloc, key, from->parts + 1);
}

kiln__entry *kiln__cache_pack(kiln__cache *cache, const kiln__key *key,
                              kiln_target target, bool exact)
{
  kiln__entry *entry, *packed;
  kiln__pack_item *item;
  size_t which = 0;

  ready(cache);
  while ((item = choose(cache, key, target, exact, &which)) != NULL) {
    switch (read_item(cache, &cache->packs[which], item, key, &packed)) {
    case KILN__LOADED:
      break;
    /* the entry is damaged; continue, since another item may serve the
     * target */
    case KILN__BAD:
      __atomic_store_n(&item->rejected, 1, __ATOMIC_RELAXED);
      continue;
    default:
      return NULL;
    }
    entry = under_key(cache, packed, key);
    kiln__entry_unref(packed);
    if (entry == NULL)
      return NULL;
    entry->pack_item = 1 + ((uint64_t)(item - cache->packs[which].items) << 32 |
                            (uint64_t)which);
    kiln__count(&cache->stats.pack_hits, 1);
    return entry;
  }
  return NULL;
}

void kiln__packs_reject(kiln__cache *cache, const kiln__entry *entry)
{
  const uint64_t id = entry->pack_item - 1;
  const size_t which = (size_t)(id & 0xffffffffu), i = (size_t)(id >> 32);

  if (entry->pack_item != 0 && which < cache->n_packs &&
      is_open(&cache->packs[which]) && i < cache->packs[which].n)
    __atomic_store_n(&cache->packs[which].items[i].rejected, 1,
                     __ATOMIC_RELAXED);
}

static bool in_list(const kiln_target *list, size_t n, kiln_target t)
{
  for (size_t i = 0; i < n; i++) {
    if (pack_target(list[i]) == pack_target(t))
      return true;
  }
  return false;
}

static void add_target(kiln_target *out, size_t capacity, size_t *n,
                       kiln_target t)
{
  if (in_list(out, *n < capacity ? *n : capacity, t))
    return;
  if (*n < capacity)
    out[*n] = t;
  ++*n;
}

bool kiln__cache_has_packs(const kiln__cache *cache)
{
  return cache->n_packs > 0;
}

size_t kiln__cache_pack_targets(kiln__cache *cache, const kiln__key *key,
                                kiln_target *out, size_t capacity)
{
  size_t n = 0;

  ready(cache);
  for (size_t p = 0; p < cache->n_packs; p++) {
    const kiln__pack *pack = &cache->packs[p];

    if (!is_open(pack))
      continue;
    for (size_t i = lower_bound(pack, key->portable_hash);
         offered(pack, i, key->portable_hash); i++) {
      kiln_target t = pack->items[i].target;

      if (__atomic_load_n(&pack->items[i].rejected, __ATOMIC_RELAXED) != 0)
        continue;
      add_target(out, capacity, &n, t);
      t.ptx = true; /* each pack entry also has PTX for its target */
      add_target(out, capacity, &n, t);
    }
  }
  return n;
}

/* ---- Writing ------------------------------------------------------------- */

typedef struct draft {
  kiln__pack_item item;
  kiln__entry *entry; /* copy of the entry with only the portable key */
} draft;

static int compare_drafts(const void *left, const void *right)
{
  const draft *a = left, *b = right;

  return compare_items(&a->item, &b->item);
}

/* Makes a copy of an entry that has only the portable fields in its key. */
static kiln_status make_draft(const kiln_allocator *a, const kiln__entry *entry,
                              kiln_target target, draft *out)
{
  const char *text = entry->parts[0].data;
  const size_t size = entry->parts[0].size;
  size_t at = 0, start = 0;
  kiln__field field;
  kiln__key key;
  kiln_status st = KILN_OK;

  kiln__key_init(&key, a);
  for (; kiln__key_next(text, size, &at, &field); start = at) {
    if (field.portable)
      kiln__buf_add(&key.text, text + start, at - start);
  }
  KILN_TRY(kiln__key_seal(&key));
  memcpy(out->item.hash, key.hash, sizeof key.hash);
  out->item.target = target;
  out->entry = kiln__entry_create(a, &key, entry->parts + 1);
  if (out->entry == NULL)
    KILN_TRY(kiln__fail_memory("pack"));
  out->item.size = out->entry->wire_size;

done:
  kiln__key_free(&key);
  return st;
}

/* Sorts the drafts (entries to be written) and keeps one draft per key and
 * target. Returns the number of remaining drafts. */
static size_t arrange(draft *drafts, size_t n)
{
  size_t kept = 0;

  if (n > 1)
    qsort(drafts, n, sizeof *drafts, compare_drafts);
  for (size_t i = 0; i < n; i++) {
    if (kept > 0 && compare_drafts(&drafts[kept - 1], &drafts[i]) == 0)
      kiln__entry_unref(drafts[i].entry);
    else
      drafts[kept++] = drafts[i];
  }
  return kept;
}

static void put_index(kiln__buf *b, const draft *drafts, size_t n)
{
  unsigned char bytes[PACK_ITEM];
  uint64_t size = PACK_HEAD + n * PACK_ITEM + 8;

  for (size_t i = 0; i < n; i++)
    size += drafts[i].item.size;
  memcpy(bytes, magic, sizeof magic);
  kiln__put32(bytes + 8, PACK_VERSION);
  kiln__put32(bytes + 12, PACK_MARK);
  kiln__put64(bytes + 16, size);
  kiln__put64(bytes + 24, n);
  kiln__buf_add(b, bytes, PACK_HEAD);
  for (size_t i = 0; i < n; i++) {
    memcpy(bytes, drafts[i].item.hash, 32);
    kiln__put32(bytes + 32, pack_target(drafts[i].item.target));
    kiln__put64(bytes + 36, drafts[i].item.size);
    kiln__buf_add(b, bytes, PACK_ITEM);
  }
  if (!b->failed) {
    kiln__put64(bytes, kiln__sum64(b->data, b->size));
    kiln__buf_add(b, bytes, 8);
  }
}

static void put_entry(kiln__buf *b, const kiln__entry *entry)
{
  unsigned char head[KILN__WIRE_HEAD];

  kiln__entry_head(entry, head);
  kiln__buf_add(b, head, sizeof head);
  for (int i = 0; i < KILN__WIRE_PARTS; i++)
    kiln__buf_add(b, entry->parts[i].data, entry->parts[i].size);
}

kiln_status kiln__pack_write(const kiln_allocator *a, const char *path,
                             kiln__entry *const *entries,
                             const kiln_target *targets, size_t n)
{
  draft *drafts = kiln__calloc(a, n, sizeof *drafts);
  kiln_status st = KILN_OK;
  kiln__buf b;

  kiln__buf_init(&b, a);
  if (drafts == NULL)
    KILN_TRY(kiln__fail_memory("pack"));
  if (n > MOST_ITEMS)
    KILN_TRY(kiln__fail(KILN_EINVAL, "write several packs",
                        "a pack holds at most %d images, not %zu", MOST_ITEMS,
                        n));
  for (size_t i = 0; i < n; i++)
    KILN_TRY(make_draft(a, entries[i], targets[i], &drafts[i]));
  n = arrange(drafts, n);
  put_index(&b, drafts, n);
  for (size_t i = 0; i < n; i++)
    put_entry(&b, drafts[i].entry);
  KILN_TRY(kiln__buf_status(&b, "pack"));
  KILN_TRY(kiln__replace_file(path, b.data, b.size, 0644));

done:
  for (size_t i = 0; drafts != NULL && i < n; i++)
    kiln__entry_unref(drafts[i].entry);
  kiln__free(a, drafts);
  kiln__buf_free(&b);
  return st;
}
