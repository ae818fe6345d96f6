/* cache.h -- keys, entries, and the tiers that hold them.
 *
 * kiln__cache_fetch() asks, in this order: memory, packs (for the very target),
 * disk, and then a single flight that asks the disk again, makes the entry and
 * publishes it. An image that a pack holds for a lower target serves callers
 * that cannot make a better one: kiln__cache_pack(). A fetch fails only for
 * lack of memory and if making the entry fails. */
#ifndef KILN_CACHE_INTERNAL_H
#define KILN_CACHE_INTERNAL_H

#include "../arch/arch.h"
#include "../base/os.h"

#include <kiln/cache.h>

/* ---- Keys ------------------------------------------------------------------ */

/* A key is text: one length-prefixed field after another, so that no two
 * lists of fields give the same bytes. Fields are either portable (what the
 * program is: source, headers, defines, options, names) or local (which
 * compiler, which target); packs compare the portable part only. */
typedef struct kiln__key {
  kiln__buf text;     /* all fields */
  kiln__buf portable; /* the portable ones */
  char hash[33];      /* XXH3-128 of text, hex; set by kiln__key_seal */
  char portable_hash[33];
} kiln__key;

void kiln__key_init(kiln__key *key, const kiln_allocator *a);
void kiln__key_free(kiln__key *key);
void kiln__key_add(kiln__key *key, const char *field, const void *value,
                   size_t size, bool portable);
/* Computes the hashes. KILN_OK, KILN_ENOMEM if any add failed. */
kiln_status kiln__key_seal(kiln__key *key);
/* Walks the fields of a key's text; start with *at = 0. False at its end or at
 * malformed text. */
typedef struct kiln__field {
  const char *name, *value; /* not terminated */
  size_t name_size, size;
  bool portable;
} kiln__field;
bool kiln__key_next(const char *text, size_t size, size_t *at,
                    kiln__field *out);

/* ---- Entries ---------------------------------------------------------------- */

typedef enum kiln__section {
  KILN__PTX = 0,
  KILN__CUBIN,
  KILN__NAMES,  /* lowered names */
  KILN__LOG,    /* compile log */
  KILN__REPORT, /* resources */
  KILN__META,   /* compile time, NVRTC version, target */
  KILN__SECTIONS
} kiln__section;

typedef struct kiln__slice {
  const void *data; /* a NUL byte follows the data, not counted in size */
  size_t size;
} kiln__slice;

/* The META section, read. */
typedef struct kiln__meta {
  kiln_target target;    /* what the image was made for */
  int nvrtc;             /* version of the compiler, 13000 = 13.0 */
  uint64_t microseconds; /* that the compiler took */
} kiln__meta;

void kiln__meta_write(kiln__buf *out, const kiln__meta *meta);
/* False if the text names no target. */
bool kiln__meta_read(kiln__slice text, kiln__meta *out);

/* Immutable once made, shared by reference count. */
typedef struct kiln__entry kiln__entry;

/* Copies key text and sections. Returns one reference; NULL: out of memory. */
kiln__entry *kiln__entry_create(const kiln_allocator *a, const kiln__key *key,
                                const kiln__slice sections[KILN__SECTIONS]);
kiln__entry *kiln__entry_ref(kiln__entry *entry);
void kiln__entry_unref(kiln__entry *entry); /* NULL is fine */
kiln__slice kiln__entry_get(const kiln__entry *entry, kiln__section section);
kiln__slice kiln__entry_key(const kiln__entry *entry); /* full key text */
const char *kiln__entry_hash(const kiln__entry *entry);

/* ---- Cache ------------------------------------------------------------------ */

typedef struct kiln__cache kiln__cache;

typedef struct kiln__cache_config {
  const kiln_allocator *alloc;
  const kiln__log *log;
  const kiln__fs *fs;  /* NULL: the real one */
  const char *dir;     /* NULL: no disk tier */
  uint64_t cap_bytes;  /* 0: 256 MiB */
  unsigned wait_ms;    /* longest wait for another process */
  size_t memory_bytes; /* cap of the memory tier, 0: 64 MiB */
  const char *const *packs;
  size_t n_packs;
} kiln__cache_config;

/* Touches no file. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__cache_open(kiln__cache **out,
                             const kiln__cache_config *config);
void kiln__cache_close(kiln__cache *cache);

/* Makes the entry. Called in the thread of the fetch, with no lock held. */
typedef kiln_status (*kiln__make_fn)(void *user, kiln__entry **out);

typedef struct kiln__fetch {
  const kiln__key *key;
  kiln_target target; /* packs serve only an image for exactly this target */
  bool refresh;       /* skip reading, replace what is there */
  bool private_only;  /* use no tier: only make */
  bool lookup_only;   /* KILN_ENOTFOUND instead of making; writes no record */
  kiln__make_fn make;
  void *user;
} kiln__fetch;

/* KILN_OK with a reference in *out, KILN_ENOMEM, or what make returned. Every
 * thread that waited for that make gets the same status and record. After
 * KILN_ECANCELED one of the waiting threads makes the entry instead. make may
 * call the cache, also for the same key. In a child that was forked after
 * kiln__cache_open() the memory tier and the sharing between threads are
 * skipped. / */
kiln_status kiln__cache_fetch(kiln__cache *cache, const kiln__fetch *fetch,
                              kiln__entry **out, kiln_origin *origin);

/* The best image that a pack holds for this portable key and target: a
 * reference, or NULL. Needs only portable_hash and portable of the key, so it
 * works without NVRTC. `exact` accepts only an image made for that very target.
 */
kiln__entry *kiln__cache_pack(kiln__cache *cache, const kiln__key *key,
                              kiln_target target, bool exact);
/* The targets for which packs hold this portable key. PTX beside machine code
 * counts as a target of its own. Returns how many there are, which may be above
 * the capacity. */
size_t kiln__cache_pack_targets(kiln__cache *cache, const kiln__key *key,
                                kiln_target *out, size_t capacity);

/* True if packs were given; otherwise no portable key is needed. */
bool kiln__cache_has_packs(const kiln__cache *cache);

/* The driver refused this entry's image: removes it from memory and from the
 * disk (unless another one is there by now), and no pack offers it again. */
void kiln__cache_reject(kiln__cache *cache, kiln__entry *entry);

/* The folder, as a path; NULL if there is to be none. Touches no file. */
const char *kiln__cache_dir(const kiln__cache *cache);

/* Behind the public functions of <kiln/cache.h>. */
void kiln__cache_stats_get(kiln__cache *cache, kiln_cache_stats *out);
void kiln__cache_info_get(kiln__cache *cache, kiln_cache_info *out);
/* Programs and targets come from the key's fields "program" and "target". */
kiln_status kiln__cache_visit(kiln__cache *cache, bool verify, kiln_cache_fn fn,
                              void *user);
kiln_status kiln__cache_repair(kiln__cache *cache, uint64_t *removed);
kiln_status kiln__cache_shrink(kiln__cache *cache, uint64_t bytes,
                               uint64_t *removed);
kiln_status kiln__cache_wipe(kiln__cache *cache, uint64_t *removed);
/* Visits the key texts of all entries, memory first, then disk. The callback
 * stops the walk by returning false. */
typedef bool (*kiln__key_fn)(void *user, const char *hash, const char *text,
                             size_t size);
kiln_status kiln__cache_keys(kiln__cache *cache, kiln__key_fn fn, void *user);
/* References to all undamaged entries, memory first, then disk. The caller
 * frees the array with kiln__free(). *out is NULL after a failure. */
kiln_status kiln__cache_entries(kiln__cache *cache, kiln__entry ***out,
                                size_t *n);
/* Writes entries with their targets as a pack file. KILN_OK, KILN_EINVAL (too
 * many), KILN_ENOMEM, KILN_EIO. */
kiln_status kiln__pack_write(const kiln_allocator *a, const char *path,
                             kiln__entry *const *entries,
                             const kiln_target *targets, size_t n);

#endif
