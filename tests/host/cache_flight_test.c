/* Tests that concurrent requests for one key share a single compile ("single
 * flight"): in threads and processes, with failures, re-entrancy, and lock
 * holders that die or hang. */
#include "cache_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 2000, THREADS = 16 };

static bench b;
static kiln__key key;

static void begin(void)
{
  bench_make(&b);
  key_make(&key, &b.mem.alloc, "shared");
}

static void end(void)
{
  kiln__key_free(&key);
  bench_free(&b);
}

/* ---- Threads ------------------------------------------------------------- */

typedef struct job {
  kiln_status (*make)(void *user, kiln__entry **out);
  maker *maker;
  const kiln__key *key;
  kiln_status st;
  kiln_origin origin;
  char message[128];
  bool right;
} job;

static pthread_barrier_t start;

static void *fetch_job(void *user)
{
  job *j = user;
  const kiln__fetch f = {.key = j->key, .make = j->make, .user = j->maker};
  kiln__entry *entry;

  j->st = kiln__cache_fetch(b.cache, &f, &entry, &j->origin);
  if (j->st == KILN_OK)
    j->right = image_is(entry, j->maker->name, j->maker->size);
  else
    kiln__copy_text(j->message, sizeof j->message, kiln_last_error()->message);
  kiln__entry_unref(entry);
  return NULL;
}

static void *run_job(void *user)
{
  pthread_barrier_wait(&start);
  return fetch_job(user);
}

static void run_jobs(job *jobs, int n)
{
  pthread_barrier_init(&start, NULL, (unsigned)n);
  test_threads(n, run_job, jobs, sizeof *jobs);
  pthread_barrier_destroy(&start);
}

static void many_threads_one_key(void)
{
  maker m = {&b.mem.alloc, &key, "shared", SIZE, 50, KILN_OK, 0};
  job jobs[THREADS];
  int compiled = 0;

  memset(jobs, 0, sizeof jobs);
  for (int i = 0; i < THREADS; i++)
    jobs[i] = (job){.make = maker_run, .maker = &m, .key = &key};
  bench_open(&b);
  run_jobs(jobs, THREADS);
  ck_assert_int_eq(m.calls, 1);
  for (int i = 0; i < THREADS; i++) {
    ck_kiln_ok(jobs[i].st);
    ck_assert(jobs[i].right);
    compiled += jobs[i].origin == KILN_FROM_COMPILER;
    ck_assert(jobs[i].origin == KILN_FROM_COMPILER ||
              jobs[i].origin == KILN_FROM_MEMORY);
  }
  ck_assert_int_eq(compiled, 1);
  ck_assert_uint_eq(bench_stats(&b).misses, 1);
  ck_assert_uint_eq(bench_stats(&b).waits + bench_stats(&b).memory_hits,
                    THREADS - 1);
  ck_assert_ptr_null(b.cache->flights);
  ck_assert_ptr_null(b.cache->waiters);
}

START_TEST(threads_share_one_compile)
{
  many_threads_one_key();
}
END_TEST

START_TEST(threads_share_one_compile_without_a_folder)
{
  b.config.dir = NULL;
  /* There is no memory tier either, so the waiting threads receive the entry
   * directly from the compiling thread. */
  b.config.memory_bytes = 1;
  many_threads_one_key();
}
END_TEST

START_TEST(threads_share_one_failure)
{
  maker m = {&b.mem.alloc, &key, "shared", SIZE, 80, KILN_ECOMPILE, 0};
  job jobs[THREADS];
  uint64_t bytes;

  for (int i = 0; i < THREADS; i++)
    jobs[i] = (job){.make = maker_run, .maker = &m, .key = &key};
  bench_open(&b);
  run_jobs(jobs, THREADS);
  /* A thread that starts after the failure may compile again. */
  ck_assert_int_lt(m.calls, THREADS / 2);
  for (int i = 0; i < THREADS; i++) {
    ck_kiln_is(jobs[i].st, KILN_ECOMPILE);
    ck_assert_str_eq(jobs[i].message, "made to fail: shared");
  }
  ck_assert_uint_eq(count_files(b.dir, ".k1", &bytes), 0);
}
END_TEST

/* A fake compile that fails with KILN_ECANCELED once another thread waits for
 * its result. */
static kiln_status make_canceled(void *user, kiln__entry **out)
{
  bool awaited = false;

  while (!awaited) {
    kiln__sleep_ns(1000000);
    pthread_mutex_lock(&b.cache->lock);
    awaited = b.cache->waiters != NULL;
    pthread_mutex_unlock(&b.cache->lock);
  }
  return maker_run(user, out);
}

/* If the compiling thread is cancelled, only its own call fails: one of the
 * waiting threads compiles instead. */
START_TEST(canceling_is_not_shared)
{
  maker canceled = {&b.mem.alloc, &key, "shared", SIZE, 0, KILN_ECANCELED, 0};
  maker good = {&b.mem.alloc, &key, "shared", SIZE, 50, KILN_OK, 0};
  job first = {.make = make_canceled, .maker = &canceled, .key = &key};
  job jobs[THREADS];
  pthread_t thread;

  for (int i = 0; i < THREADS; i++)
    jobs[i] = (job){.make = maker_run, .maker = &good, .key = &key};
  bench_open(&b);
  ck_assert_int_eq(pthread_create(&thread, NULL, fetch_job, &first), 0);
  /* Wait until the first thread is compiling. */
  while (bench_stats(&b).misses == 0)
    kiln__sleep_ns(1000000);
  run_jobs(jobs, THREADS);
  pthread_join(thread, NULL);
  ck_kiln_is(first.st, KILN_ECANCELED);
  for (int i = 0; i < THREADS; i++)
    ck_kiln_ok(jobs[i].st);
  ck_assert_int_eq(good.calls, 1);
}
END_TEST

static pthread_barrier_t inside;

static kiln_status make_together(void *user, kiln__entry **out)
{
  /* The barrier opens only if all threads are compiling concurrently. */
  pthread_barrier_wait(&inside);
  return maker_run(user, out);
}

START_TEST(different_keys_compile_at_once)
{
  kiln__key keys[THREADS];
  char names[THREADS][16];
  maker makers[THREADS];
  job jobs[THREADS];

  bench_open(&b);
  pthread_barrier_init(&inside, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    snprintf(names[i], sizeof names[i], "key %d", i);
    key_make(&keys[i], &b.mem.alloc, names[i]);
    makers[i] = (maker){&b.mem.alloc, &keys[i], names[i], SIZE, 0, KILN_OK, 0};
    jobs[i] =
        (job){.make = make_together, .maker = &makers[i], .key = &keys[i]};
  }
  run_jobs(jobs, THREADS);
  for (int i = 0; i < THREADS; i++) {
    ck_assert(jobs[i].right);
    ck_assert_int_eq(jobs[i].origin, KILN_FROM_COMPILER);
    kiln__key_free(&keys[i]);
  }
  pthread_barrier_destroy(&inside);
}
END_TEST

/* Threads fetch, reject, clear and count entries concurrently, so that the
 * sanitizers can detect data races. */
static void *stir(void *user)
{
  uint64_t *random = user, n;

  for (int i = 0; i < 150; i++) {
    const uint64_t r = test_random(random);
    kiln__key k;
    char name[16];
    maker m = {&b.mem.alloc, &k, name, SIZE, 0, KILN_OK, 0};
    kiln__fetch f = {
        .key = &k, .make = maker_run, .user = &m, .refresh = r % 13 == 0};
    kiln__entry *entry;
    kiln_origin origin;

    snprintf(name, sizeof name, "key %d", (int)(r >> 8) & 7);
    key_make(&k, &b.mem.alloc, name);
    ck_kiln_ok(kiln__cache_fetch(b.cache, &f, &entry, &origin));
    ck_assert(image_is(entry, name, SIZE));
    if (r % 11 == 0)
      kiln__cache_reject(b.cache, entry);
    if (r % 31 == 0)
      ck_kiln_ok(kiln__cache_wipe(b.cache, &n));
    if (r % 17 == 0)
      ck_kiln_ok(kiln__cache_shrink(b.cache, 4 * SIZE, &n));
    bench_stats(&b);
    kiln__entry_unref(entry);
    kiln__key_free(&k);
  }
  return NULL;
}

START_TEST(everything_at_once)
{
  uint64_t seeds[8];

  b.config.memory_bytes = 5 * SIZE;
  b.config.cap_bytes = 6 * SIZE;
  bench_open(&b);
  for (uint64_t i = 0; i < 8; i++)
    seeds[i] = 1 + i * 77;
  test_threads(8, stir, seeds, sizeof seeds[0]);
}
END_TEST

/* ---- Re-entrancy --------------------------------------------------------- */

/* A fake compile of "outer" that fetches other keys and "outer" itself from the
 * cache. */
static kiln_status make_nested(void *user, kiln__entry **out)
{
  maker *m = user;
  maker again = {m->alloc, m->key, m->name, m->size, 0, KILN_OK, 0};
  const kiln__fetch f = {.key = m->key, .make = maker_run, .user = &again};

  ck_assert_int_eq(bench_fetch(&b, "inner", SIZE), KILN_FROM_COMPILER);
  bench_take(&b, &f, m->name, SIZE);
  return maker_run(user, out);
}

START_TEST(make_may_call_the_cache)
{
  maker m = {&b.mem.alloc, &key, "shared", SIZE, 0, KILN_OK, 0};
  const kiln__fetch f = {.key = &key, .make = make_nested, .user = &m};

  bench_open(&b);
  bench_take(&b, &f, "shared", SIZE);
  /* No wait timed out, so the thread did not wait for its own lock. */
  ck_assert_uint_eq(bench_stats(&b).wait_timeouts, 0);
}
END_TEST

typedef struct crossing {
  kiln__key mine, others;
  const char *name, *other_name;
} crossing;

static kiln_status make_crossing(void *user, kiln__entry **out)
{
  const crossing *c = user;
  maker m = {&b.mem.alloc, &c->mine, c->name, SIZE, 0, KILN_OK, 0};
  maker o = {&b.mem.alloc, &c->others, c->other_name, SIZE, 0, KILN_OK, 0};
  const kiln__fetch f = {.key = &c->others, .make = maker_run, .user = &o};

  pthread_barrier_wait(&inside); /* Wait until both threads are compiling. */
  bench_take(&b, &f, c->other_name, SIZE);
  return maker_run(&m, out);
}

static void *cross(void *user)
{
  crossing *c = user;
  const kiln__fetch f = {.key = &c->mine, .make = make_crossing, .user = c};

  bench_take(&b, &f, c->name, SIZE);
  return NULL;
}

/* Each of two threads fetches the key that the other thread is compiling. One
 * thread must detect the cycle instead of waiting for ever. */
START_TEST(crossed_makes_do_not_deadlock)
{
  crossing c[2] = {{.name = "left", .other_name = "right"},
                   {.name = "right", .other_name = "left"}};

  bench_open(&b);
  pthread_barrier_init(&inside, NULL, 2);
  for (int i = 0; i < 2; i++) {
    key_make(&c[i].mine, &b.mem.alloc, c[i].name);
    key_make(&c[i].others, &b.mem.alloc, c[i].other_name);
  }
  test_threads(2, cross, c, sizeof c[0]);
  for (int i = 0; i < 2; i++) {
    kiln__key_free(&c[i].mine);
    kiln__key_free(&c[i].others);
  }
  pthread_barrier_destroy(&inside);
  ck_assert_uint_eq(bench_stats(&b).wait_timeouts, 0);
}
END_TEST

/* ---- Processes ----------------------------------------------------------- */

/* The ways in which a child process ends after it has begun to compile "shared"
 * and has reported this to the parent. */
typedef enum holder { FINISHES, HANGS, FAILS } holder;

static int told;

static kiln_status make_as_told(void *user, kiln__entry **out)
{
  maker *m = user;

  ck_assert_int_eq(write(told, "!", 1), 1);
  return maker_run(m, out);
}

static pid_t start_holder(holder kind)
{
  int ends[2];
  char byte;
  pid_t pid;

  ck_assert_int_eq(pipe(ends), 0);
  pid = fork();
  if (pid == 0) {
    maker m = {&b.mem.alloc,
               &key,
               "shared",
               SIZE,
               kind == HANGS ? 600000 : 150,
               kind == FAILS ? KILN_ECOMPILE : KILN_OK,
               0};
    const kiln__fetch f = {.key = &key, .make = make_as_told, .user = &m};
    kiln__entry *entry;
    kiln_origin origin;
    kiln_status st;

    told = ends[1];
    bench_open(&b);
    st = kiln__cache_fetch(b.cache, &f, &entry, &origin);
    _exit(st == m.fail ? 0 : 1);
  }
  close(ends[1]);
  ck_assert_int_eq(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  return pid;
}

static void reap(pid_t pid, bool clean)
{
  int status;

  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  if (clean)
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(another_process_compiles)
{
  const pid_t pid = start_holder(FINISHES);

  bench_open(&b);
  ck_assert_int_eq(bench_fetch(&b, "shared", SIZE), KILN_FROM_OTHER_PROCESS);
  ck_assert_int_eq(bench_fetch(&b, "shared", SIZE), KILN_FROM_MEMORY);
  ck_assert_uint_eq(bench_stats(&b).waits, 1);
  ck_assert_uint_eq(bench_stats(&b).misses, 0);
  ck_assert_uint_eq(bench_stats(&b).wait_timeouts, 0);
  reap(pid, true);
}
END_TEST

START_TEST(other_keys_are_not_held_up)
{
  const pid_t pid = start_holder(HANGS);
  const uint64_t begun = kiln__clock_ns();

  bench_open(&b);
  ck_assert_int_eq(bench_fetch(&b, "another", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).waits, 0);
  ck_assert_uint_lt(kiln__clock_ns() - begun, 15000000000u);
  kill(pid, SIGKILL);
  reap(pid, false);
}
END_TEST

START_TEST(failure_elsewhere_is_tried_here)
{
  const pid_t pid = start_holder(FAILS);

  bench_open(&b);
  ck_assert_int_eq(bench_fetch(&b, "shared", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).waits, 1);
  reap(pid, true);
}
END_TEST

START_TEST(killed_holder_lets_go)
{
  const pid_t pid = start_holder(HANGS);
  uint64_t begun;

  bench_open(&b);
  kill(pid, SIGKILL);
  reap(pid, false);
  begun = kiln__clock_ns();
  ck_assert_int_eq(bench_fetch(&b, "shared", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_lt(kiln__clock_ns() - begun, 15000000000u);
  ck_assert_uint_eq(bench_stats(&b).published, 1);
}
END_TEST

START_TEST(hung_holder_is_waited_for_so_long)
{
  const pid_t pid = start_holder(HANGS);
  uint64_t begun, took;

  b.config.wait_ms = 300;
  bench_open(&b);
  begun = kiln__clock_ns();
  ck_assert_int_eq(bench_fetch(&b, "shared", SIZE), KILN_FROM_COMPILER);
  took = kiln__clock_ns() - begun;
  ck_assert_uint_ge(took, 290000000u);
  ck_assert_uint_lt(took, 3000000000u);
  ck_assert_uint_eq(bench_stats(&b).waits, 1);
  ck_assert_uint_eq(bench_stats(&b).wait_timeouts, 1);
  /* The compiled entry was stored, so other processes need not wait. */
  ck_assert_uint_eq(bench_stats(&b).published, 1);
  kill(pid, SIGKILL);
  reap(pid, false);
  printf("hung holder: waited %.0f ms of 300, then compiled\n",
         (double)took / 1e6);
}
END_TEST

/* If file locks fail in this file system, each process compiles without
 * waiting. */
START_TEST(locks_that_fail_are_done_without)
{
  static const int codes[] = {ENOLCK, EDEADLK, ESTALE, ENOSYS, EACCES, EIO};
  const uint64_t begun = kiln__clock_ns();

  b.fs.lock_fails = true;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    uint64_t removed;

    b.fs.code = codes[i];
    bench_open(&b);
    ck_assert_int_eq(bench_fetch(&b, "shared", SIZE), KILN_FROM_COMPILER);
    ck_assert_uint_ge(bench_stats(&b).lock_failures, 1);
    ck_assert_uint_eq(bench_stats(&b).published, 1);
    ck_kiln_ok(kiln__cache_wipe(b.cache, &removed));
    ck_assert_uint_eq(removed, 1);
    kiln__cache_close(b.cache);
    b.cache = NULL;
  }
  ck_assert_uint_lt(kiln__clock_ns() - begun, 15000000000u);
}
END_TEST

/* ---- Fork ---------------------------------------------------------------- */

START_TEST(forked_child_finds_no_locked_door)
{
  pid_t pid;

  bench_open(&b);
  bench_fetch(&b, "shared", SIZE);
  /* The test locks these mutexes as if another thread held them at the fork. */
  pthread_mutex_lock(&b.cache->lock);
  pthread_mutex_lock(&b.cache->pack_lock);
  pid = fork();
  if (pid == 0) {
    bool good = bench_fetch(&b, "shared", SIZE) == KILN_FROM_DISK;

    good = good && bench_fetch(&b, "fresh", SIZE) == KILN_FROM_COMPILER;
    good = good && bench_fetch(&b, "fresh", SIZE) == KILN_FROM_DISK;
    kiln__cache_close(b.cache);
    _exit(good ? 0 : 1);
  }
  pthread_mutex_unlock(&b.cache->pack_lock);
  pthread_mutex_unlock(&b.cache->lock);
  reap(pid, true);
  ck_assert_int_eq(bench_fetch(&b, "fresh", SIZE), KILN_FROM_DISK);
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "cache flight", 60, begin, end,
      TESTS(threads_share_one_compile,
            threads_share_one_compile_without_a_folder,
            threads_share_one_failure, canceling_is_not_shared,
            different_keys_compile_at_once, everything_at_once,
            make_may_call_the_cache, crossed_makes_do_not_deadlock,
            another_process_compiles, other_keys_are_not_held_up,
            failure_elsewhere_is_tried_here, killed_holder_lets_go,
            hung_holder_is_waited_for_so_long, locks_that_fail_are_done_without,
            forked_child_finds_no_locked_door));
}
