/* Tests the cache under stress: many processes, killed processes, failing
 * system calls, a full folder and many entries. Every result must be correct.
 * With KILN_TEST_THOROUGH=1 the tests do ten times as much work. */
#include "cache_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 5000 };

static bench b;

static void begin(void)
{
  bench_make(&b);
}

static void end(void)
{
  bench_free(&b);
}

static double ms_since(uint64_t begun)
{
  return (double)(kiln__clock_ns() - begun) / 1e6;
}

/* ---- 64 processes fetch one key ----------------------------------------- */

static pid_t start_worker(const char *count_file, int gate)
{
  const pid_t pid = fork();

  if (pid == 0) {
    char *const args[] = {(char *)(uintptr_t)KILN_CACHE_WORKER,
                          b.dir,
                          (char *)(uintptr_t) "shared",
                          (char *)(uintptr_t)count_file,
                          (char *)(uintptr_t) "50",
                          NULL};

    dup2(gate, STDIN_FILENO);
    execv(KILN_CACHE_WORKER, args);
    _exit(127);
  }
  return pid;
}

START_TEST(many_processes_one_cold_key)
{
  enum { PROCESSES = 64, ROUNDS = 3 };
  size_t most = 0;

  for (int round = 0; round < ROUNDS; round++) {
    char count_file[300];
    pid_t pids[PROCESSES];
    int gate[2], right = 0;
    uint64_t begun;
    size_t compiles;

    snprintf(count_file, sizeof count_file, "%s/count%d", b.root, round);
    ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
    for (int i = 0; i < PROCESSES; i++)
      pids[i] = start_worker(count_file, gate[0]);
    close(gate[0]);
    /* Give the processes time to reach the read of the pipe that starts
     * them. */
    kiln__sleep_ns(100000000);
    begun = kiln__clock_ns();
    close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
      int status;

      ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
      right += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    free(test_read_file(count_file, &compiles));
    printf("%d processes, one cold key: %d right, %zu compiles of 50 ms, "
           "%.0f ms in all\n",
           PROCESSES, right, compiles, ms_since(begun));
    ck_assert_int_eq(right, PROCESSES);
    ck_assert_uint_ge(compiles, 1);
    ck_assert_uint_le(compiles, 2);
    most = compiles > most ? compiles : most;
    test_dir_remove(b.dir);
  }
}
END_TEST

/* ---- Processes are killed while writing an entry ------------------------ */

static void publish_for_ever(uint64_t seed, int begun)
{
  char name[32];

  if (write(begun, "!", 1) != 1)
    _exit(1);
  for (uint64_t i = 0;; i++) {
    snprintf(name, sizeof name, "kernel %d", (int)((seed + i) % 5));
    b.config.memory_bytes = 1;
    bench_open(&b);
    {
      kiln__key key;
      maker m = {&b.mem.alloc, &key, name, 20 * SIZE, 0, KILN_OK, 0};
      kiln__fetch f = {
          .key = &key, .make = maker_run, .user = &m, .refresh = true};
      kiln__entry *entry;
      kiln_origin origin;

      key_make(&key, &b.mem.alloc, name);
      if (kiln__cache_fetch(b.cache, &f, &entry, &origin) != KILN_OK)
        _exit(1);
      kiln__entry_unref(entry);
      kiln__key_free(&key);
    }
    bench_close(&b);
  }
}

START_TEST(killed_while_publishing)
{
  const int kills = test_rounds(200);
  int n = 0;
  uint64_t random = 2463534242u, bytes, removed, temps = 0, hits = 0;

  b.config.memory_bytes = 1;
  /* Kill further processes until one kill interrupts a write. */
  for (; n < kills || (n < 2000 && count_files(b.dir, ".tmp", &bytes) == 0);
       n++) {
    int status, begun[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(begun), 0);
    pid = fork();
    if (pid == 0)
      publish_for_ever((uint64_t)n, begun[1]);
    ck_assert_int_eq(read(begun[0], &byte, 1), 1);
    close(begun[0]);
    close(begun[1]);
    kiln__sleep_ns(test_random(&random) % 8000000);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    bench_open(&b);
    for (int k = 0; k < 5; k++) {
      char name[32];

      snprintf(name, sizeof name, "kernel %d", k);
      /* bench_has() checks every byte. A miss is allowed, but a wrong image is
       * not. */
      hits += bench_has(&b, name, 20 * SIZE);
    }
    bench_fetch(&b, "kernel 0", 20 * SIZE);
    ck_assert_uint_eq(bench_stats(&b).corrupt, 0);
    ck_assert_uint_eq(bench_stats(&b).forged, 0);
    bench_close(&b);
  }
  temps = count_files(b.dir, ".tmp", &bytes);
  bench_open(&b);
  ck_kiln_ok(kiln__cache_repair(b.cache, &removed));
  printf("killed %d times while publishing: %llu entries read back whole, 0 "
         "damaged, %llu temporary files left for the sweep\n",
         n, (unsigned long long)hits, (unsigned long long)temps);
  /* No entry is damaged, and the temporary files are too recent to be
   * removed. */
  ck_assert_uint_eq(removed, 0);
  ck_assert_uint_gt(temps, 0); /* At least one kill interrupted a write. */
  ck_assert_uint_gt(hits, (uint64_t)n);
}
END_TEST

/* ---- Every system call fails in turn ------------------------------------- */

typedef enum scene { COLD, WARM, CROWDED, DAMAGED, SCENES } scene;

enum { CROWD = 12 };

/* Prepares the cache folder for a test case, without injected faults. */
static void set_scene(scene s)
{
  char name[32], path[512];

  test_dir_remove(b.dir);
  b.fs.fail_at = -1;
  if (s == COLD)
    return;
  bench_open(&b);
  bench_fetch(&b, "victim", SIZE);
  for (int i = 0; s == CROWDED && i < CROWD; i++) {
    snprintf(name, sizeof name, "kernel %d", i);
    bench_fetch(&b, name, SIZE);
  }
  bench_entry_path(&b, "victim", path);
  if (s == CROWDED)
    unlink(path);
  if (s == WARM)
    /* The file is old enough that a hit updates its time stamp. */
    set_file_time(path, -600);
  if (s == DAMAGED)
    ck_assert_int_eq(truncate(path, SIZE / 2), 0);
  bench_close(&b);
}

/* Fetches once, with an injected fault in file operation number `at`. Returns
 * true if the fetch made that many operations. */
static bool fetch_with_fault(scene s, long at)
{
  const size_t fds = open_fds();
  long ops;

  set_scene(s);
  bench_open(&b);
  b.fs.ops = 0;
  b.fs.fail_at = at;
  /* bench_fetch() checks the status and every byte of the image. */
  bench_fetch(&b, "victim", SIZE);
  ops = b.fs.ops;
  b.fs.fail_at = -1;
  bench_close(&b); /* bench_close() checks for memory leaks. */
  ck_assert_uint_eq(open_fds(), fds);

  /* A cache that is opened later finds no damaged file. */
  bench_open(&b);
  bench_fetch(&b, "victim", SIZE);
  if (s != DAMAGED)
    ck_assert_uint_eq(bench_stats(&b).corrupt, 0);
  bench_close(&b);
  return at < ops;
}

static long sweep(scene s)
{
  long at = 0;

  while (fetch_with_fault(s, at))
    at++;
  ck_assert_int_ge(at, 8); /* Every fetch makes at least 8 file operations. */
  return at;
}

START_TEST(every_call_fails_in_turn)
{
  static const int codes[] = {ENOSPC, EROFS,  EACCES, EMFILE, ENOLCK,
                              EIO,    EDQUOT, EINTR,  ENOENT, ESTALE};
  long runs = 0, calls = 0;

  /* The capacity is so small that the case CROWDED must evict entries. */
  b.config.cap_bytes = CROWD * (SIZE + 400);
  for (scene s = COLD; s < SCENES; s++) {
    for (size_t c = 0; c < sizeof codes / sizeof codes[0];
         c += test_rounds(10) == 1 ? 3 : 1) {
      b.fs.code = codes[c];
      b.fs.sticky = false;
      calls = sweep(s);
      runs += calls;
      /* If every call failed with EINTR, the retries would never end. */
      b.fs.sticky = codes[c] != EINTR;
      runs += b.fs.sticky ? sweep(s) : 0;
    }
  }
  printf("each file operation failing in turn with each of %zu errors, once "
         "and for good: %ld runs, all right\n",
         sizeof codes / sizeof codes[0], runs);
  ck_assert_int_gt(runs, 1000);
}
END_TEST

START_TEST(folder_vanishes_at_every_call)
{
  long runs = 0;

  b.config.cap_bytes = CROWD * (SIZE + 400);
  b.fs.vanish = b.dir;
  for (scene s = COLD; s < SCENES; s++)
    runs += sweep(s);
  printf("folder removed before each file operation in turn: %ld runs, all "
         "right\n",
         runs);
}
END_TEST

/* System calls that a signal interrupts are repeated, and the result is
 * correct. */
START_TEST(interruptions_cost_nothing)
{
  b.fs.interrupts = true;
  b.fs.most = 1000;
  bench_open(&b);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
  ck_assert_uint_eq(bench_stats(&b).published, 1);
  ck_assert_uint_eq(bench_stats(&b).read_failures, 0);
  ck_assert_uint_eq(bench_stats(&b).lock_failures, 0);
  bench_close(&b);
  bench_open(&b);
  ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
  ck_assert_uint_eq(bench_stats(&b).read_failures, 0);
  ck_assert_int_eq(b.warnings, 0);
  ck_assert_uint_gt(b.fs.interruptions, 20);
}
END_TEST

START_TEST(short_reads_and_writes)
{
  static const size_t most[] = {1, 7, 1000};

  for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
    test_dir_remove(b.dir);
    b.fs.most = most[i];
    bench_open(&b);
    ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_COMPILER);
    ck_assert_uint_eq(bench_stats(&b).published, 1);
    bench_close(&b);
    bench_open(&b);
    ck_assert_int_eq(bench_fetch(&b, "a", SIZE), KILN_FROM_DISK);
    bench_close(&b);
  }
}
END_TEST

/* ---- Eight writers respect the capacity in bytes ------------------------ */

enum { WRITERS = 8, CAP = 8 << 20, LARGEST = 100000 };

static void write_for(unsigned ms, uint64_t seed)
{
  const uint64_t until = kiln__clock_ns() + (uint64_t)ms * 1000000;
  uint64_t random = seed * 7919 + 1;
  int lost = 0;

  b.config.memory_bytes = 1;
  bench_open(&b);
  for (int i = 0; kiln__clock_ns() < until; i++) {
    const size_t size = (size_t)(test_random(&random) % LARGEST);
    char name[32];

    snprintf(name, sizeof name, "%llu %d", (unsigned long long)seed, i);
    bench_fetch(&b, name, size);
    /* An entry that was just written must still be present. The other writers
     * add only a few entries meanwhile, which is far less than the whole
     * capacity. */
    lost += !bench_has(&b, name, size);
    /* Reopen the cache regularly, like a new process that does not know the
     * folder's content. */
    if (i % 50 == 49) {
      bench_close(&b);
      bench_open(&b);
    }
  }
  _exit(lost > 0 ? 100 : 0);
}

START_TEST(cap_holds_under_eight_writers)
{
  const int run_ms = test_rounds(10000);
  pid_t pids[WRITERS];
  uint64_t peak = 0, peak_temps = 0, samples = 0, sum = 0, bytes, temps;
  const uint64_t begun = kiln__clock_ns();
  kiln_cache_info info;
  int bad = 0;

  b.config.cap_bytes = CAP;
  b.config.memory_bytes = 1;
  for (int i = 0; i < WRITERS; i++) {
    pids[i] = fork();
    if (pids[i] == 0)
      write_for((unsigned)run_ms, (uint64_t)i + 1);
  }
  while (ms_since(begun) < run_ms) {
    count_files(b.dir, "", &bytes);
    count_files(b.dir, ".tmp", &temps);
    peak = bytes > peak ? bytes : peak;
    peak_temps = temps > peak_temps ? temps : peak_temps;
    sum += bytes;
    samples++;
    kiln__sleep_ns(500000);
  }
  for (int i = 0; i < WRITERS; i++) {
    int status;

    ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
    bad += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  bench_open(&b);
  kiln__cache_info_get(b.cache, &info);
  printf("cap %d bytes, %d writers for %d ms: at most %.1f %% of it (%.1f %% "
         "on average, %llu samples, up to %llu bytes of them temporary)\n",
         CAP, WRITERS, run_ms, 100.0 * (double)peak / CAP,
         100.0 * (double)sum / (double)samples / CAP,
         (unsigned long long)samples, (unsigned long long)peak_temps);
  ck_assert_int_eq(bad, 0);
  ck_assert_uint_le(peak, CAP + CAP / 20);
  /* The folder was nearly full at least once. */
  ck_assert_uint_ge(peak, CAP - CAP / 5);
}
END_TEST

/* ---- Look-ups among a hundred thousand entries -------------------------- */

static int by_value(const void *left, const void *right)
{
  const double a = *(const double *)left, c = *(const double *)right;

  return (a > c) - (a < c);
}

/* Writes an entry's file directly, with a third of the system calls that a
 * normal publication needs. */
static void write_entry(const char *name)
{
  unsigned char wire[4096];
  size_t at = KILN__WIRE_HEAD;
  kiln__entry *entry;
  kiln__key key;
  char path[512];
  int fd;

  key_make(&key, &b.mem.alloc, name);
  entry = image_make(&b.mem.alloc, &key, name, 0);
  kiln__entry_head(entry, wire);
  ck_assert_uint_le(entry->wire_size, sizeof wire);
  for (int i = 0; i < KILN__WIRE_PARTS; i++) {
    memcpy(wire + at, entry->parts[i].data, entry->parts[i].size);
    at += entry->parts[i].size;
  }
  bench_entry_path(&b, name, path);
  fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, wire, at), (ssize_t)at);
  close(fd);
  kiln__entry_unref(entry);
  kiln__key_free(&key);
}

enum { PROBES = 2001 };

static int n_entries; /* number of entries; 100,000 in a thorough run */

/* Measures look-ups that hit and look-ups that miss, and stores the sorted
 * times in milliseconds. Returns the 99th percentile of the hits. */
static double probe_all(double hit[PROBES], double miss[PROBES],
                        uint64_t *random)
{
  char name[32];
  uint64_t begun;

  for (int i = 0; i < PROBES; i++) {
    snprintf(name, sizeof name, "kernel %d",
             (int)(test_random(random) % (uint64_t)n_entries));
    begun = kiln__clock_ns();
    ck_assert(bench_has(&b, name, 0));
    hit[i] = ms_since(begun);
    snprintf(name, sizeof name, "missing %d", i);
    begun = kiln__clock_ns();
    ck_assert(!bench_has(&b, name, 0));
    miss[i] = ms_since(begun);
  }
  qsort(hit, PROBES, sizeof hit[0], by_value);
  qsort(miss, PROBES, sizeof miss[0], by_value);
  return hit[PROBES * 99 / 100];
}

START_TEST(many_entries)
{
  enum { ROUNDS = 5 };
  static double hit[PROBES], miss[PROBES];
  uint64_t begun = kiln__clock_ns(), random = 12345, removed;
  double made, listed, evicted, slowest;
  int rounds = 0;
  kiln_cache_info info;
  char name[32];

  n_entries = test_rounds(100000);
  b.config.memory_bytes = 1;
  b.config.cap_bytes = (uint64_t)1 << 30;
  bench_open(&b);
  bench_fetch(&b, "kernel 0", 0);
  for (int i = 1; i < n_entries; i++) {
    snprintf(name, sizeof name, "kernel %d", i);
    write_entry(name);
  }
  made = ms_since(begun);
  /* Other load on the machine may slow down some rounds, but not all rounds. */
  do
    slowest = probe_all(hit, miss, &random);
  while (slowest >= 1.0 && ++rounds < ROUNDS);
  begun = kiln__clock_ns();
  kiln__cache_info_get(b.cache, &info);
  listed = ms_since(begun);
  ck_assert_uint_eq(info.entries, (uint64_t)n_entries);
  begun = kiln__clock_ns();
  ck_kiln_ok(kiln__cache_shrink(b.cache, info.bytes * 9 / 10, &removed));
  evicted = ms_since(begun);
  printf("%d entries (made in %.0f ms): hit %.3f ms median, %.3f ms 99th of "
         "100; miss %.3f, %.3f; listing %.0f ms; evicting %llu %.0f ms\n",
         n_entries, made, hit[PROBES / 2], hit[PROBES * 99 / 100],
         miss[PROBES / 2], miss[PROBES * 99 / 100], listed,
         (unsigned long long)removed, evicted);
  ck_assert_double_lt(hit[PROBES / 2], 1.0);
  ck_assert_double_lt(miss[PROBES / 2], 1.0);
  ck_assert_double_lt(slowest, 1.0);
  ck_assert_uint_ge(removed, (uint64_t)n_entries / 10 - 1);
  ck_assert_double_lt(evicted, 5000);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cache torture");

  /* Line buffering prevents child processes from printing buffered output
   * again. */
  setvbuf(stdout, NULL, _IOLBF, 0);
  kiln_test_case(s, "torture", 120, begin, end,
                 TESTS(many_processes_one_cold_key, killed_while_publishing,
                       every_call_fails_in_turn, folder_vanishes_at_every_call,
                       interruptions_cost_nothing, short_reads_and_writes,
                       cap_holds_under_eight_writers, many_entries));
  return kiln_test_run(s);
}
