/* cache_fixture.h -- what the tests of the cache share: keys and images that
 * differ by name, a maker that counts its calls, file operations that fail. */
#ifndef CACHE_FIXTURE_H
#define CACHE_FIXTURE_H

#include "cache/tiers.h"

#include "support.h"

/* A key of a few fields; all but "target" and "nvrtc" are portable. */
void key_make(kiln__key *key, const kiln_allocator *a, const char *name);
void key_make_target(kiln__key *key, const kiln_allocator *a, const char *name,
                     const char *target);

/* The image that belongs to a name: `size` bytes of CUBIN among the rest. */
kiln__entry *image_make(const kiln_allocator *a, const kiln__key *key,
                        const char *name, size_t size);
/* Does the entry hold that image, each section with a NUL behind it? */
bool image_is(const kiln__entry *entry, const char *name, size_t size);

/* A stand-in for the compiler. Set alloc, key, name and size; zeros elsewhere
 * mean that it succeeds at once. */
typedef struct maker {
  const kiln_allocator *alloc;
  const kiln__key *key;
  const char *name;
  size_t size;
  unsigned sleep_ms;
  kiln_status fail;
  int calls; /* atomic */
} maker;

kiln_status maker_run(void *user, kiln__entry **out);

/* File operations of which number fail_at (from 0), and all later ones if
 * sticky, fail with `code`. */
typedef struct faulty_fs {
  kiln__fs fs;
  long ops;
  long fail_at; /* -1: none */
  bool sticky;
  int code;
  size_t most;        /* bytes per read or write at most; 0: all */
  const char *vanish; /* instead of failing, remove this folder */
  bool lock_fails;    /* each lock fails with `code` */
  bool read_only;     /* as a read-only file system */
  bool interrupts;    /* every other call fails with EINTR */
  unsigned interruptions;
} faulty_fs;

void faulty_fs_init(faulty_fs *f);

/* One cache on one folder with its own counting allocator. */
typedef struct bench {
  char root[256]; /* removed at the end */
  char dir[300];  /* root/cache; not made */
  test_allocator mem;
  faulty_fs fs;
  kiln__log log;
  int warnings; /* log lines at warning level; atomic */
  char last_warning[512];
  kiln__cache_config config;
  kiln__cache *cache;
} bench;

void bench_make(bench *b); /* no cache yet: adapt config, then bench_open */
void bench_open(bench *b);
void bench_close(bench *b); /* the cache only; checks for leaks */
void bench_free(bench *b);

/* Fetch `name` with an image of `size` bytes; checks that the result is right.
 * Returns the origin. */
kiln_origin bench_fetch(bench *b, const char *name, size_t size);
/* The same, look-up only; false if it is not there. */
bool bench_has(bench *b, const char *name, size_t size);
kiln_cache_stats bench_stats(bench *b);
/* Path of the entry of `name`. */
void bench_entry_path(bench *b, const char *name, char path[512]);

/* Counts the files of a folder whose names end in `ending` ("": all), and their
 * bytes. */
size_t count_files(const char *dir, const char *ending, uint64_t *bytes);
size_t open_fds(void);
void set_file_time(const char *path, int64_t seconds_from_now);

#endif
