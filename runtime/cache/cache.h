/* cache.h -- keys, entries, and the tiers that hold them.
 *
 * fetch: memory -> packs, for the very target -> disk -> single flight { disk
 * again -> make -> publish }. What a pack holds for a lower target is for those
 * who cannot make better: kiln__cache_pack. Nothing but out of memory and the
 * maker's own failure ever makes fetch fail. */
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
/* KILN_OK, KILN_ENOMEM if any add failed. */
kiln_status kiln__key_seal(kiln__key *key);
/* Walk the fields of a key's text. False at its end or at malformed text. */
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

/* Copies key text and sections. NULL: out of memory. One reference. */
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

/* Make the entry; called with no lock held, in the calling thread. */
typedef kiln_status (*kiln__make_fn)(void *user, kiln__entry **out);

typedef struct kiln__fetch {
  const kiln__key *key;
  kiln_target target; /* of packs only its own image is taken */
  bool refresh;       /* skip reading, replace what is there */
  bool private_only;  /* no tier at all: just make */
  bool lookup_only;   /* KILN_ENOTFOUND instead of making; silent: writes
                               no error record */
  kiln__make_fn make;
  void *user;
} kiln__fetch;

/* KILN_OK with a reference in *out, KILN_ENOMEM, or what make returned (every
 * thread that waited for that make gets the same status and record, except for
 * KILN_ECANCELED: then one of those that waited makes it). make may call the
 * cache, also for the same key. In a child forked after kiln__cache_open the
 * memory tier and the sharing between threads are left out. */
kiln_status kiln__cache_fetch(kiln__cache *cache, const kiln__fetch *fetch,
                              kiln__entry **out, kiln_origin *origin);

/* Can a pack serve this portable key for this target? A reference or NULL. It
 * needs only portable_hash and portable of the key, so it works without NVRTC.
 *
 * exact   only an image made for that very target will do */
kiln__entry *kiln__cache_pack(kiln__cache *cache, const kiln__key *key,
                              kiln_target target, bool exact);
/* Targets for which packs hold this portable key, the PTX beside machine code
 * counting as a target of its own; returns how many, maybe above capacity. */
size_t kiln__cache_pack_targets(kiln__cache *cache, const kiln__key *key,
                                kiln_target *out, size_t capacity);

/* Were any packs given? Without, nobody need know their key. */
bool kiln__cache_has_packs(const kiln__cache *cache);

/* The driver refused this entry's image: forget it in memory and on disk (not
 * if another one is there by now), and offer it from no pack again. */
void kiln__cache_reject(kiln__cache *cache, kiln__entry *entry);

/* The folder, as a path; NULL if there is to be none. Touches no file. */
const char *kiln__cache_dir(const kiln__cache *cache);

/* Behind the public functions of <kiln/cache.h>. */
void kiln__cache_stats_get(kiln__cache *cache, kiln_cache_stats *out);
void kiln__cache_info_get(kiln__cache *cache, kiln_cache_info *out);
/* Programs and targets are told from the fields "program" and "target". */
kiln_status kiln__cache_visit(kiln__cache *cache, bool verify, kiln_cache_fn fn,
                              void *user);
kiln_status kiln__cache_repair(kiln__cache *cache, uint64_t *removed);
kiln_status kiln__cache_shrink(kiln__cache *cache, uint64_t bytes,
                               uint64_t *removed);
kiln_status kiln__cache_wipe(kiln__cache *cache, uint64_t *removed);
/* Visit the key texts of all entries (memory, then disk); false stops. */
typedef bool (*kiln__key_fn)(void *user, const char *hash, const char *text,
                             size_t size);
kiln_status kiln__cache_keys(kiln__cache *cache, kiln__key_fn fn, void *user);
/* References to all entries that are whole, of memory, then of the disk; free the
 * array with kiln__free. *out is NULL after a failure. */
kiln_status kiln__cache_entries(kiln__cache *cache, kiln__entry ***out,
                                size_t *n);
/* Write entries with their targets as a pack file. */
kiln_status kiln__pack_write(const kiln_allocator *a, const char *path,
                             kiln__entry *const *entries,
                             const kiln_target *targets, size_t n);

#endif
