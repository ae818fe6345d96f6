/* support.c -- helper functions of the tests: temporary folders, files, random
 * numbers and the counting allocator. */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int kiln_test_run(Suite *suite)
{
  SRunner *runner = srunner_create(suite);
  int failed;

  srunner_run_all(runner, CK_NORMAL);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

TCase *kiln_test_case(Suite *suite, const char *name, double seconds,
                      SFun set_up, SFun tear_down, const TTest *const *tests)
{
  TCase *t = tcase_create(name);

  if (seconds > 0)
    tcase_set_timeout(t, seconds);
  if (set_up != NULL || tear_down != NULL)
    tcase_add_checked_fixture(t, set_up, tear_down);
  for (; *tests != NULL; tests++)
    tcase_add_test(t, *tests);
  suite_add_tcase(suite, t);
  return t;
}

void kiln_test_loops(TCase *t, int times, const TTest *const *tests)
{
  for (; *tests != NULL; tests++)
    tcase_add_loop_test(t, *tests, 0, times);
}

int kiln_test_main(const char *name, double seconds, SFun set_up,
                   SFun tear_down, const TTest *const *tests)
{
  Suite *suite = suite_create(name);

  kiln_test_case(suite, name, seconds, set_up, tear_down, tests);
  return kiln_test_run(suite);
}

static bool fails(test_allocator *a, size_t size)
{
  const long call = __atomic_fetch_add(&a->calls, 1, __ATOMIC_RELAXED);

  if (size > __atomic_load_n(&a->largest, __ATOMIC_RELAXED))
    __atomic_store_n(&a->largest, size, __ATOMIC_RELAXED);
  return a->fail_at >= 0 &&
         (call == a->fail_at || (a->fail_after && call > a->fail_at));
}

static void *counting_alloc(void *user, size_t size)
{
  test_allocator *a = user;
  void *p;

  ck_assert(size > 0);
  if (fails(a, size))
    return NULL;
  p = malloc(size);
  /* Fills new memory with nonzero bytes, so that tests do not depend on
   * zeros. */
  memset(p, 0xa5, size);
  __atomic_fetch_add(&a->live, 1, __ATOMIC_RELAXED);
  return p;
}

static void *counting_resize(void *user, void *p, size_t size)
{
  test_allocator *a = user;

  if (p == NULL)
    return counting_alloc(user, size);
  return fails(a, size) ? NULL : realloc(p, size);
}

static void counting_release(void *user, void *p)
{
  test_allocator *a = user;

  if (p == NULL)
    return;
  __atomic_fetch_sub(&a->live, 1, __ATOMIC_RELAXED);
  free(p);
}

void test_allocator_init(test_allocator *a)
{
  *a = (test_allocator){
      .alloc = {counting_alloc, counting_resize, counting_release, a},
      .fail_at = -1};
}

bool test_in_part(size_t i)
{
  const char *const text = getenv("KILN_TEST_PART");
  unsigned part, parts;

  if (text == NULL)
    return true;
  ck_assert_msg(sscanf(text, "%u/%u", &part, &parts) == 2 && part < parts,
                "KILN_TEST_PART=%s is not of the form 2/16", text);
  return i % parts == part;
}

void test_dir_make(char path[256])
{
  const char *base = getenv("TMPDIR");

  snprintf(path, 256, "%s/kiln-test-XXXXXX", base == NULL ? "/tmp" : base);
  ck_assert_ptr_nonnull(mkdtemp(path));
}

void test_dir_remove(const char *path)
{
  DIR *dir = opendir(path);
  struct dirent *entry;

  if (dir == NULL)
    return;
  while ((entry = readdir(dir)) != NULL) {
    char child[4096];
    struct stat info;

    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
    if (lstat(child, &info) == 0 && S_ISDIR(info.st_mode))
      test_dir_remove(child);
    else
      unlink(child);
  }
  closedir(dir);
  rmdir(path);
}

void test_write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");

  ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
  ck_assert_uint_eq(fwrite(data, 1, size, f), size);
  ck_assert_int_eq(fclose(f), 0);
}

char *test_read_file(const char *path, size_t *size)
{
  FILE *f = fopen(path, "rb");
  char *data;
  long n;

  ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
  ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
  n = ftell(f);
  ck_assert_int_ge(n, 0);
  rewind(f);
  data = malloc((size_t)n + 1);
  ck_assert_uint_eq(fread(data, 1, (size_t)n, f), (size_t)n);
  data[n] = '\0';
  fclose(f);
  *size = (size_t)n;
  return data;
}

void test_threads(int n, void *(*run)(void *), void *args, size_t size)
{
  pthread_t threads[64];

  ck_assert_int_le(n, 64);
  for (int i = 0; i < n; i++) {
    void *arg = args == NULL ? NULL : (char *)args + (size_t)i * size;

    ck_assert_int_eq(pthread_create(&threads[i], NULL, run, arg), 0);
  }
  for (int i = 0; i < n; i++) {
    void *complaint;

    pthread_join(threads[i], &complaint);
    ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
  }
}

uint64_t test_random(uint64_t *state)
{
  uint64_t x = *state;

  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

int test_rounds(int full)
{
  if (getenv("KILN_TEST_THOROUGH") != NULL)
    return full;
  return full < 10 ? 1 : full / 10;
}
