/* cache_fixture.h -- shared helpers of the cache tests: keys and images that
 * differ by name, a fake compiler that counts its calls, and file operations
 * that fail. */
#ifndef CACHE_FIXTURE_H
#define CACHE_FIXTURE_H

#include "cache/tiers.h"

#include "support.h"

/* Makes a key with a few fields. All fields except "target" and "nvrtc" are
 * portable. */
void key_make(kiln__key *key, const kiln_allocator *a, const char *name);
void key_make_target(kiln__key *key, const kiln_allocator *a, const char *name,
                     const char *target);

/* Makes the image for a name, with a CUBIN section of `size` bytes. */
kiln__entry *image_make(const kiln_allocator *a, const kiln__key *key,
                        const char *name, size_t size);
/* Returns true if the entry holds the image of that name, with a NUL after each
 * section. */
bool image_is(const kiln__entry *entry, const char *name, size_t size);

/* A fake compiler. Set alloc, key, name and size; zero in the other members
 * means that the compile succeeds immediately. */
typedef struct maker {
  const kiln_allocator *alloc;
  const kiln__key *key;
  const char *name;
  size_t size;
  unsigned sleep_ms;
  kiln_status fail;
  int calls; /* number of calls; atomic */
} maker;

kiln_status maker_run(void *user, kiln__entry **out);

/* File operations that fail with `code`: operation number fail_at, counted from
 * 0, and all later operations if `sticky` is set. */
typedef struct faulty_fs {
  kiln__fs fs;
  long ops;
  long fail_at; /* number of the failing operation; -1 for none */
  bool sticky;
  int code;
  size_t most;        /* maximum bytes per read or write; 0 for no limit */
  const char *vanish; /* instead of failing, remove this folder */
  bool lock_fails;    /* every lock operation fails with `code` */
  bool read_only;     /* behave like a read-only file system */
  bool interrupts;    /* every second call fails with EINTR */
  unsigned interruptions;
} faulty_fs;

void faulty_fs_init(faulty_fs *f);

/* A cache in its own folder, with its own counting allocator. */
typedef struct bench {
  char root[256]; /* folder that is removed at the end */
  char dir[300];  /* path root/cache, which is not created */
  test_allocator mem;
  faulty_fs fs;
  kiln__log log;
  int warnings; /* number of log messages at warning level; atomic */
  char last_warning[512];
  kiln__cache_config config;
  kiln__cache *cache;
} bench;

/* creates no cache: adapt config, then call bench_open() */
void bench_make(bench *b);
void bench_open(bench *b);
void bench_close(bench *b); /* closes only the cache and checks for leaks */
void bench_free(bench *b);

/* Fetches `name` with an image of `size` bytes, and checks the result. Returns
 * the origin of the image. */
kiln_origin bench_fetch(bench *b, const char *name, size_t size);
/* Fetches as `f` specifies, checks that the image is that of `name` with `size`
 * bytes, and drops it. Returns the origin of the image. */
kiln_origin bench_take(bench *b, const kiln__fetch *f, const char *name,
                       size_t size);
/* Looks up `name` without making the image. Returns false if the cache does not
 * have it. */
bool bench_has(bench *b, const char *name, size_t size);
kiln_cache_stats bench_stats(bench *b);
/* Writes the path of the entry of `name`. */
void bench_entry_path(bench *b, const char *name, char path[512]);

/* Counts the files of a folder with names that end in `ending` ("" for all
 * files), and their total bytes. */
size_t count_files(const char *dir, const char *ending, uint64_t *bytes);
size_t open_fds(void);
void set_file_time(const char *path, int64_t seconds_from_now);

#endif
