/* cache_fixture.h -- shared helpers of the cache tests: keys and images that
 * differ by name, a fake compiler that counts its calls, and file operations
 * that fail. */
#ifndef CACHE_FIXTURE_H
#define CACHE_FIXTURE_H

#include "cache/tiers.h"

#include "support.h"

/* Makes a key with a few fields. All fields except "target" and "nvrtc" are
 * portable. Packs compare only the portable fields. */
void key_make(kiln__key *key, const kiln_allocator *a, const char *name);
void key_make_target(kiln__key *key, const kiln_allocator *a, const char *name,
                     const char *target);

/* Makes the image for a name, with a CUBIN section of `size` bytes. */
kiln__entry *image_make(const kiln_allocator *a, const kiln__key *key,
                        const char *name, size_t size);
/* Returns true if the entry holds the image that image_make() makes for that
 * name, with a NUL after each section. */
bool image_is(const kiln__entry *entry, const char *name, size_t size);

/* A fake compiler. Callers set alloc, key, name and size. If the other members
 * are zero, the compile succeeds immediately. */
typedef struct maker {
  const kiln_allocator *alloc;
  const kiln__key *key;
  const char *name;
  size_t size;
  unsigned sleep_ms;
  kiln_status fail;
  int calls; /* number of compiles; accessed atomically */
} maker;

kiln_status maker_run(void *user, kiln__entry **out);

/* File operations of which some fail with the errno value `code`: operation
 * number fail_at, counted from 0, and all later operations if `sticky` is
 * set. */
typedef struct faulty_fs {
  kiln__fs fs;
  long ops;
  long fail_at; /* number of the operation that fails; -1 for none */
  bool sticky;
  int code;
  size_t most;        /* maximum bytes per read or write; 0 for no limit */
  const char *vanish; /* folder to remove instead of failing, or NULL */
  bool lock_fails;    /* whether every lock operation fails with `code` */
  bool read_only;     /* whether the file system is read-only */
  bool interrupts;    /* whether every second call fails with EINTR */
  unsigned interruptions;
} faulty_fs;

void faulty_fs_init(faulty_fs *f);

/* A cache in its own folder, with an allocator that counts the live blocks. */
typedef struct bench {
  char root[256]; /* folder that is removed after the test */
  char dir[300];  /* path root/cache; bench_make() does not create it */
  test_allocator mem;
  faulty_fs fs;
  kiln__log log;
  int warnings; /* number of warnings in the log; accessed atomically */
  char last_warning[512];
  kiln__cache_config config;
  kiln__cache *cache;
} bench;

/* Prepares everything but the cache. The test may then change the configuration
 * and calls bench_open(). */
void bench_make(bench *b);
void bench_open(bench *b);
/* Closes only the cache, and checks for memory leaks. */
void bench_close(bench *b);
void bench_free(bench *b);

/* Fetches `name` with an image of `size` bytes, and checks the result. Returns
 * the origin of the image. */
kiln_origin bench_fetch(bench *b, const char *name, size_t size);
/* Fetches an image from the cache with the request `f`, checks that it is the
 * image of `name` with `size` bytes, and releases it. Returns the origin of the
 * image. */
kiln_origin bench_take(bench *b, const kiln__fetch *f, const char *name,
                       size_t size);
/* Looks up `name` without compiling. Returns false if the cache does not have
 * the entry. */
bool bench_has(bench *b, const char *name, size_t size);
kiln_cache_stats bench_stats(bench *b);
/* Writes the path of the file of entry `name` to `path`. */
void bench_entry_path(bench *b, const char *name, char path[512]);

/* Counts the files of a folder whose names end in `ending` ("" for all files),
 * and sums their sizes in bytes. */
size_t count_files(const char *dir, const char *ending, uint64_t *bytes);
size_t open_fds(void);
void set_file_time(const char *path, int64_t seconds_from_now);

#endif
