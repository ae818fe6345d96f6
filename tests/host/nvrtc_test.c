/* nvrtc_test.c -- tests the search for NVRTC, the loading of the library, the
 * conversion of its result codes, and nvJitLink. */
#include "nvrtc_fixture.h"

#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

static void expect_none(const char *message, const char *hint)
{
  kiln__nvrtc_set *set = open_set();
  const kiln__nvrtc_id *ids = (const kiln__nvrtc_id *)&places;
  size_t n = 7;

  /* The second call fails in the same way as the first. */
  for (int i = 0; i < 2; i++) {
    ck_kiln_is(kiln__nvrtc_list(set, &ids, &n), KILN_ENONVRTC);
    ck_assert_ptr_null(ids);
    ck_assert_uint_eq(n, 0);
    ck_contains(kiln_last_error()->message, message);
    ck_contains(kiln_last_error()->hint, hint);
    kiln__fail(KILN_EINVAL, NULL, "another failure");
  }
  kiln__nvrtc_set_free(set);
}

/* ---- Where --------------------------------------------------------------- */

START_TEST(nothing_anywhere)
{
  expect_none("/usr/local/cuda", "KILN_NVRTC");
}
END_TEST

static const struct {
  /* The value of the environment variable is relative to the test's folder. */
  const char *folder, *variable, *value;
} place_rows[] = {
    {"usr/local/cuda/lib64", NULL, NULL},
    {"usr/local/cuda/lib", NULL, NULL},
#if defined(__x86_64__)
    {"usr/local/cuda/targets/x86_64-linux/lib", NULL, NULL},
    {"usr/local/cuda-13.0/targets/x86_64-linux/lib", NULL, NULL},
#endif
    {"usr/local/cuda-12.4/lib64", NULL, NULL},
    {"opt/cuda/lib64", NULL, NULL},
    {"usr/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib", NULL, NULL},
    {"usr/local/lib/python3.11/dist-packages/nvidia/cu13/lib", NULL, NULL},
    {"usr/local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib", NULL,
     NULL},
    {"usr/lib64/python3.12/site-packages/nvidia/cu14/lib", NULL, NULL},
    {".local/lib/python3.13/site-packages/nvidia/cu13/lib", NULL, NULL},
    {"mine/lib64", "CUDA_PATH", "mine"},
    {"mine/lib64", "CUDA_HOME", "mine"},
    {"env/lib/python3.9/site-packages/nvidia/cu13/lib", "VIRTUAL_ENV", "env"},
    {"env/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib", "VIRTUAL_ENV",
     "env"},
    {"conda/lib", "CONDA_PREFIX", "conda"},
    {"conda/lib/python3.10/site-packages/nvidia/cuda_nvrtc/lib", "CONDA_PREFIX",
     "conda"},
};

START_TEST(each_place)
{
  put(FAKE, place_rows[_i].folder, "libnvrtc.so.12", "version 12040\n");
  if (place_rows[_i].variable != NULL) {
    ck_assert_str_eq(versions(), "");
    setenv(place_rows[_i].variable, below(place_rows[_i].value), 1);
  }
  ck_assert_str_eq(versions(), "12040 ");
  if (place_rows[_i].variable != NULL) {
    places.ignore_env = true;
    ck_assert_str_eq(versions(), "");
  }
}
END_TEST

static const char *const names[] = {"libnvrtc.so.20",   "libnvrtc.so.14",
                                    "libnvrtc.so.13",   "libnvrtc.so.12",
                                    "libnvrtc.so.11.2", "libnvrtc.so"};

START_TEST(library_names)
{
  put(FAKE, "usr/local/cuda/lib64", names[_i], "version 12060\n");
  ck_assert_str_eq(versions(), "12060 ");
}
END_TEST

START_TEST(several_newest_first_links_once)
{
  const char *path;
  const char *dirs[2];

  put(FAKE, "a", "libnvrtc.so.12", "version 12080\narchs 90 50 100 90 -3\n");
  path = put(FAKE, "b", "libnvrtc.so.13", NULL);
  ck_assert_int_eq(symlink(path, below("a/libnvrtc.so.13")), 0);
  ck_assert_int_eq(symlink("libnvrtc.so.13", below("b/libnvrtc.so")), 0);
  ck_assert_int_eq(link(path, below("b/libnvrtc.so.14")), 0);
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.11.2", NULL);
  dirs[0] = below("a");
  dirs[1] = below("b");
  places.dirs = dirs;
  places.n_dirs = 2;
  ck_assert_str_eq(versions(), "13000 12080 11080 ");
  {
    kiln__nvrtc_set *set = open_set();
    const kiln__nvrtc_id *ids;
    size_t n;

    ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
    ck_assert_uint_eq(ids[1].info.n_archs, 3);
    ck_assert_int_eq(ids[1].info.archs[0], 50);
    ck_assert_int_eq(ids[1].info.archs[1], 90);
    ck_assert_int_eq(ids[1].info.archs[2], 100);
    ck_assert_str_eq(ids[1].info.path, below("a/libnvrtc.so.12"));
    ck_assert(ids[1].info.loaded);
    ck_assert_int_ne(ids[1].build[0], '\0');
    kiln__nvrtc_set_free(set);
  }
}
END_TEST

START_TEST(given_path_is_the_only_place)
{
  const char *mine = put(FAKE, "x", "renamed.so", "version 12010\n");

  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so", NULL);
  places.explicit_path = mine;
  /* The option overrides the environment variable. */
  places.env_path = "/nonexistent/env.so";
  ck_assert_str_eq(versions(), "12010 ");
  places.explicit_path = NULL;
  places.env_path = mine;
  ck_assert_str_eq(versions(), "12010 ");
}
END_TEST

START_TEST(given_path_that_fails_is_an_error)
{
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so", NULL);
  test_write_file(below("text.so"), "no library", 10);

  places.env_path = "/nonexistent/env.so";
  expect_none("KILN_NVRTC", "KILN_NVRTC");
  places.explicit_path = "/nonexistent/mine.so";
  expect_none("No such file", "path");
  places.explicit_path = below("text.so");
  expect_none("text.so", "path");
  places.explicit_path = root; /* The option names a folder. */
  expect_none(root, "path");
  /* The option names a library that is not NVRTC. */
  places.explicit_path = FAKE_LINK;
  expect_none("nvrtcGetErrorString", "path");
  /* The current folder contains no file of this name. */
  places.explicit_path = "libnvrtc.so.13";
  expect_none("libnvrtc.so.13", "path");
}
END_TEST

/* If a process can open no more files, the error message names this reason. */
START_TEST(descriptors_that_run_out_are_named)
{
  struct rlimit before, none;

  places.explicit_path = put(FAKE, "own", "libnvrtc.so.13", NULL);
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  expect_none("Too many open files", "path");
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}
END_TEST

START_TEST(given_relative_path_is_taken_from_here)
{
  places.memo_path = memo;
  places.explicit_path = "own.so";
  put(FAKE, "one", "own.so", "version 12010\n");
  put(FAKE, "two", "own.so", "version 12020\n");
  age();
  ck_assert_int_eq(chdir(below("one")), 0);
  ck_assert_str_eq(versions(), "12010 ");
  ck_assert_int_eq(chdir(below("two")), 0);
  ck_assert_str_eq(versions(), "12020 ");
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(unusable_libraries_are_passed_over)
{
  put(FAKE_BROKEN, "usr/local/cuda/lib64", "libnvrtc.so.13", NULL);
  put(FAKE, "usr/local/cuda/lib", "libnvrtc.so.13", "version 11010\n");
  put(FAKE, "opt/cuda/lib64", "libnvrtc.so.12", "rc getNumSupportedArchs 11\n");
  put(FAKE, "opt/cuda/lib", "libnvrtc.so.12", "rc getVersion 3\n");
  expect_none("tried", "install");
  put(FAKE, "usr/local/cuda-12.0/lib64", "libnvrtc.so.12", NULL);
  ck_assert_str_eq(versions(), "12080 ");
}
END_TEST

/* Kiln must not pass a truncated library to dlopen(), which would end the
 * process with SIGBUS. */
START_TEST(truncated_libraries_are_passed_over)
{
  const char *path =
      put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.13", "version 13000\n");
  char text[1024];

  ck_assert_int_eq(truncate(path, 9000), 0);
  put(FAKE, "usr/local/cuda-12.0/lib64", "libnvrtc.so.12", NULL);
  ck_assert_str_eq(versions(), "12080 ");
  ck_assert_str_eq(versions_here(), "12080 ");
  kiln__trail_text(trail, "libnvrtc", text, sizeof text);
  ck_contains(text, "the file is truncated: it has 9000 bytes");
}
END_TEST

/* ---- Fork ---------------------------------------------------------------- */

/* state of stalling_alloc(): 1 = the next allocation will wait, 2 = an
 * allocation is waiting */
static atomic_int stall;

static void *stalling_alloc(void *user, size_t size)
{
  (void)user;
  if (atomic_load(&stall) == 1) {
    atomic_store(&stall, 2);
    while (atomic_load(&stall) == 2)
      usleep(1000);
  }
  return malloc(size);
}

static void *list_set(void *set)
{
  const kiln__nvrtc_id *ids;
  size_t n;

  kiln__nvrtc_list(set, &ids, &n);
  return NULL;
}

/* The forked child has a copy of the locked mutex, but no thread that would
 * unlock it. The child must not wait for the mutex. */
START_TEST(forked_child_does_not_wait_for_the_parents_search)
{
  kiln_allocator a = {0};
  kiln__nvrtc_set *set;
  pthread_t thread;
  int status;
  pid_t pid;

  kiln__allocator_default(&a);
  a.alloc = stalling_alloc;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  ck_kiln_ok(kiln__nvrtc_set_create(&set, &a, &places, trail, NULL));
  atomic_store(&stall, 1);
  ck_assert_int_eq(pthread_create(&thread, NULL, list_set, set), 0);
  while (atomic_load(&stall) != 2)
    usleep(1000);
  pid = fork();
  if (pid == 0) {
    const kiln__nvrtc_id *ids;
    size_t n;

    alarm(10);
    atomic_store(&stall, 0);
    _exit(kiln__nvrtc_list(set, &ids, &n) == KILN_EFORKED ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  atomic_store(&stall, 0);
  pthread_join(thread, NULL);
  kiln__nvrtc_set_free(set);
  ck_assert_msg(status == 0, "the child ended with 0x%x", (unsigned)status);
}
END_TEST

START_TEST(current_directory_is_never_searched)
{
  put(FAKE, "here", "libnvrtc.so.13", NULL);
  put(FAKE, "here/lib64", "libnvrtc.so.13", NULL);
  ck_assert_int_eq(chdir(below("here")), 0);
  setenv("CUDA_PATH", ".", 1);
  setenv("CUDA_HOME", "lib64", 1);
  setenv("VIRTUAL_ENV", "", 1);
  setenv("HOME", ".", 1);
  expect_none("not an absolute path", "install");
  /* Search again with the system loader's own search paths included. */
  places.root = NULL;
  {
    kiln__nvrtc_set *set = open_set();
    const kiln__nvrtc_id *ids;
    size_t n;

    kiln__nvrtc_list(set, &ids, &n);
    for (size_t i = 0; i < n; i++)
      ck_assert_int_ne(strncmp(ids[i].info.path, root, strlen(root)), 0);
    kiln__nvrtc_set_free(set);
  }
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(already_loaded_in_the_process)
{
  const char *path = put(FAKE, "host/app", "libnvrtc.so.12", NULL);

  ck_assert_ptr_nonnull(dlopen(path, RTLD_NOW));
  ck_assert_str_eq(versions(), "12080 ");
}
END_TEST

START_TEST(long_paths_do_no_harm)
{
  char long_name[700];

  memset(long_name, 'a', sizeof long_name);
  for (size_t i = 100; i < sizeof long_name; i += 101)
    long_name[i] = '/';
  long_name[0] = '/';
  long_name[sizeof long_name - 1] = '\0';
  setenv("CUDA_PATH", long_name, 1);
  setenv("CONDA_PREFIX", long_name, 1);
  put(FAKE, "opt/cuda/lib64", "libnvrtc.so.12", NULL);
  ck_assert_str_eq(versions(), "12080 ");
  places.explicit_path = long_name;
  ck_assert_str_eq(versions(), "");
}
END_TEST

/* ---- The library cache of the system's loader --------------------------- */

typedef struct cache_row {
  int32_t flags;
  uint32_t key, value, os;
  uint64_t hwcap;
} cache_row;

enum { X86 = 0x0303, ARM = 0x0a03 };

static int32_t native(void)
{
#if defined(__aarch64__)
  return ARM;
#else
  return X86;
#endif
}

/* Makes a file like /etc/ld.so.cache with two libraries, optionally after a
 * table in the older format. */
static size_t make_cache(char *out, size_t capacity, int32_t flags,
                         const char *path, bool old_table)
{
  /* The table in the older format has one row of 12 bytes, and is padded to a
   * multiple of 8 bytes. */
  static const char old[] = "ld.so-1.7.0\0\1\0\0\0"
                            "123456789012"
                            "1234";
  const size_t start = old_table ? sizeof old - 1 : 0;
  cache_row rows[2] = {{.flags = native()}, {.flags = flags}};
  uint32_t counts[7] = {2, 0, 0, 0, 0, 0, 0};
  char *at = out + start;
  size_t size = 48 + sizeof rows;

  memset(out, 0, capacity);
  memcpy(out, old, start);
  memcpy(at, "glibc-ld.so.cache1.1", 20);
  memcpy(at + 20, counts, sizeof counts);
  rows[0].key = rows[0].value = (uint32_t)size;
  size += (size_t)sprintf(at + size, "libc.so.6") + 1;
  rows[1].key = (uint32_t)size;
  size += (size_t)sprintf(at + size, "libnvrtc.so.12") + 1;
  rows[1].value = (uint32_t)size;
  size += (size_t)sprintf(at + size, "%s", path) + 1;
  memcpy(at + 48, rows, sizeof rows);
  return start + size;
}

START_TEST(loader_cache_is_read_not_asked)
{
  char data[2048];
  const char *path = put(FAKE, "odd/place", "libnvrtc.so.12", NULL);
  const int32_t other = native() == X86 ? ARM : X86;
  size_t size;

  for (int old_table = 0; old_table < 2; old_table++) {
    size = make_cache(data, sizeof data, native(), path, old_table != 0);
    test_write_file(below("etc/ld.so.cache"), data, size);
    ck_assert_str_eq(versions(), "12080 ");
  }
  size = make_cache(data, sizeof data, other, path, false);
  test_write_file(below("etc/ld.so.cache"), data, size);
  ck_assert_str_eq(versions(), "");
  size = make_cache(data, sizeof data, native(), "odd/place/libnvrtc.so.12",
                    false);
  test_write_file(below("etc/ld.so.cache"), data, size);
  ck_assert_int_eq(chdir(root), 0);
  ck_assert_str_eq(versions(), "");
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(loader_cache_damaged)
{
  char data[2048];
  uint64_t seed = 88172645463325252u;
  const char *path = put(FAKE, "odd/place", "libnvrtc.so.12", NULL);
  const size_t size = make_cache(data, sizeof data, native(), path, true);

  for (size_t n = 0; n < size; n += 3) {
    test_write_file(below("etc/ld.so.cache"), data, n);
    versions();
  }
  for (int i = 0; i < 200; i++) {
    const size_t at = test_random(&seed) % size;
    const char was = data[at];

    data[at] = (char)test_random(&seed);
    test_write_file(below("etc/ld.so.cache"), data, size);
    versions();
    data[at] = was;
  }
}
END_TEST

/* ---- Using --------------------------------------------------------------- */

START_TEST(older_library_lacks_optional_functions)
{
  kiln__nvrtc_set *set;
  const kiln__nvrtc *nvrtc;
  const kiln__nvrtc_id *ids;
  size_t n;

  places.explicit_path =
      put(FAKE_OLD, "x", "libnvrtc.so.11.2", "version 11020\n");
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  ck_assert_int_eq(nvrtc->version, 11020);
  ck_assert_ptr_null(*(void *const *)&nvrtc->setFlowCallback);
  ck_assert_ptr_null(*(void *const *)&nvrtc->getLTOIR);
  ck_assert_ptr_nonnull(*(void *const *)&nvrtc->getCUBIN);
  ck_kiln_is(kiln__nvrtc_use(set, 1, &nvrtc), KILN_EINTERNAL);
  ck_assert_ptr_null(nvrtc);
  kiln__nvrtc_set_free(set);
}
END_TEST

START_TEST(builtins_beside_it_are_mapped_first)
{
  kiln__nvrtc_set *set;
  const kiln__nvrtc *nvrtc;
  const kiln__nvrtc_id *ids;
  size_t n;

  places.explicit_path = put(FAKE, "x", "libnvrtc.so.13", NULL);
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  put(FAKE_BROKEN, "x", "libnvrtc-builtins.so.13.0", NULL);
  ck_assert(!mapped("libnvrtc-builtins.so.13.0"));
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  ck_assert_ptr_nonnull(nvrtc->builtins);
  ck_assert(mapped(below("x/libnvrtc-builtins.so.13.0")));
  ck_kiln_is(kiln__nvrtc_rc(nvrtc, 7, "nvrtcCompileProgram"), KILN_ENONVRTC);
  ck_contains(kiln_last_error()->hint, "does not belong");
  kiln__nvrtc_set_free(set);
}
END_TEST

START_TEST(missing_builtins_are_named)
{
  kiln__nvrtc_set *set;
  const kiln__nvrtc *nvrtc;
  const kiln__nvrtc_id *ids;
  size_t n;

  /* No system has this NVRTC release, so its builtins library is missing. */
  places.explicit_path = put(FAKE, "x", "libnvrtc.so", "version 19070\n");
  put(FAKE_BROKEN, "x", "libnvrtc-builtins.so.13.0", NULL);
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  ck_assert_ptr_null(nvrtc->builtins);
  ck_kiln_is(kiln__nvrtc_rc(nvrtc, 7, "nvrtcCompileProgram"), KILN_ENONVRTC);
  ck_contains(kiln_last_error()->hint, "libnvrtc-builtins.so.19.7");
  ck_contains(kiln_last_error()->hint, below("x"));
  kiln__nvrtc_set_free(set);
}
END_TEST

START_TEST(replaced_while_running)
{
  const char *path = put(FAKE, "x", "libnvrtc.so.12", NULL);
  kiln__nvrtc_set *set;
  const kiln__nvrtc *nvrtc;
  const kiln__nvrtc_id *ids;
  char beside[600];
  size_t n;

  places.explicit_path = path;
  places.memo_path = memo;
  age();
  list_elsewhere();
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_assert(!mapped(path));
  snprintf(beside, sizeof beside, "%s.fake", path);
  test_write_file(beside, "version 12050\n", 14);
  ck_kiln_is(kiln__nvrtc_use(set, 0, &nvrtc), KILN_ENONVRTC);
  ck_contains(kiln_last_error()->message, "replaced");
  unlink(path);
  ck_kiln_is(kiln__nvrtc_use(set, 0, &nvrtc), KILN_ENONVRTC);
  ck_assert_ptr_null(nvrtc);
  kiln__nvrtc_set_free(set);
}
END_TEST

static const struct {
  int rc;
  kiln_status want;
} result_rows[] = {
    {0, KILN_OK},         {1, KILN_ENOMEM},     {2, KILN_ECOMPILE},
    {3, KILN_EINVAL},     {4, KILN_EINTERNAL},  {5, KILN_ECOMPILE},
    {6, KILN_ECOMPILE},   {7, KILN_ENONVRTC},   {8, KILN_EINTERNAL},
    {9, KILN_EINTERNAL},  {10, KILN_ENOTFOUND}, {11, KILN_ECOMPILE},
    {16, KILN_ECANCELED}, {99, KILN_ECOMPILE}};

START_TEST(results_become_statuses)
{
  kiln__nvrtc_set *set;
  const kiln__nvrtc *nvrtc;
  const kiln__nvrtc_id *ids;
  size_t n;

  places.explicit_path = FAKE;
  set = open_set();
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  for (size_t i = 0; i < sizeof result_rows / sizeof result_rows[0]; i++) {
    const int rc = result_rows[i].rc;

    ck_assert_int_eq(kiln__nvrtc_rc(nvrtc, rc, "nvrtcX"), result_rows[i].want);
    if (rc == 0)
      continue;
    ck_assert_int_eq(kiln_last_error()->native, rc);
    ck_assert_int_eq(kiln_last_error()->source, KILN_SOURCE_NVRTC);
    ck_contains(kiln_last_error()->message, "NVRTC");
  }
  kiln__nvrtc_set_free(set);
}
END_TEST

enum { THREADS = 8 };

static void *use_all(void *user)
{
  kiln__nvrtc_set *set = user;
  const kiln__nvrtc_id *ids;
  const kiln__nvrtc *nvrtc;
  intptr_t sum = 0;
  size_t n;

  for (int round = 0; round < 20; round++) {
    if (kiln__nvrtc_list(set, &ids, &n) != KILN_OK)
      return "nothing was listed";
    for (size_t i = 0; i < n; i++) {
      sum += ids[i].info.loaded;
      if (kiln__nvrtc_use(set, i, &nvrtc) != KILN_OK ||
          nvrtc->version != ids[i].info.version)
        return "a library cannot be used";
    }
  }
  return sum > 0 ? NULL : "nothing was loaded";
}

START_TEST(threads_share_a_set)
{
  kiln__nvrtc_set *set;

  places.memo_path = memo;
  put(FAKE, "usr/local/cuda/lib64", "libnvrtc.so.12", NULL);
  put(FAKE, "opt/cuda/lib64", "libnvrtc.so.13", NULL);
  age();
  for (int warm = 0; warm < 2; warm++) {
    if (warm != 0)
      list_elsewhere();
    set = open_set();
    test_threads(THREADS, use_all, set, 0);
    kiln__nvrtc_set_free(set);
  }
}
END_TEST

/* Creates, uses and frees a set of NVRTC libraries once. The test makes each
 * allocation fail in turn. */
static kiln_status whole(void)
{
  kiln__nvrtc_set *set = NULL;
  const kiln__nvrtc_id *ids;
  const kiln__nvrtc *nvrtc;
  kiln_status st = KILN_OK;
  size_t n;

  KILN_TRY(kiln__nvrtc_set_create(&set, &memory.alloc, &places, NULL, NULL));
  KILN_TRY(kiln__nvrtc_list(set, &ids, &n));
  ck_assert_uint_eq(n, 2);
  KILN_TRY(kiln__nvrtc_use(set, 1, &nvrtc));

done:
  kiln__nvrtc_set_free(set);
  return st;
}

START_TEST(every_allocation_fails)
{
  const char *dirs[1];
  const long before = memory.live;
  long n = 0;

  put(FAKE, "a", "libnvrtc.so.12", NULL);
  put(FAKE, "a", "libnvrtc.so.13", NULL);
  dirs[0] = below("a");
  places.dirs = dirs;
  places.n_dirs = 1;
  places.memo_path = memo;
  for (int warm = 0; warm < 2; warm++) {
    if (warm != 0) {
      age();
      memory.fail_at = -1;
      list_elsewhere();
    }
    for (n = 0;; n++) {
      kiln_status st;

      if (warm == 0)
        unlink(memo);
      memory.calls = 0;
      memory.fail_at = n;
      st = whole();
      ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM, "allocation %ld: %s", n,
                    kiln_status_name(st));
      ck_assert_int_eq(memory.live, before);
      if (memory.calls <= n)
        break;
    }
    ck_assert_int_gt(n, 5);
  }
  memory.fail_at = -1;
}
END_TEST

/* ---- nvJitLink ----------------------------------------------------------- */

START_TEST(link_assembles)
{
  kiln__nvjitlink *link;
  kiln__buf cubin;
  /* This PTX is not NUL-terminated. */
  const char text[] = {'p', 't', 'x', '1'};

  ck_kiln_ok(kiln__nvjitlink_open(&link, &memory.alloc, FAKE_LINK,
                                  "/nonexistent", NULL, false, 0, trail));
  ck_assert_int_eq(kiln__nvjitlink_version(link), 12040);
  kiln__buf_init(&cubin, &memory.alloc);
  ck_kiln_ok(kiln__nvjitlink_assemble(link, text, 4, "sm_90", &cubin));
  ck_assert_uint_eq(cubin.size, strlen(cubin.data));
  ck_assert_str_eq(cubin.data, "\177ELF fake cubin sm_90\nptx1");
  kiln__buf_free(&cubin);

  ck_kiln_is(kiln__nvjitlink_assemble(link, "BAD", 3, "sm_90", &cubin),
             KILN_ECOMPILE);
  ck_assert_int_eq(kiln_last_error()->native, 4);
  ck_assert_int_eq(kiln_last_error()->source, KILN_SOURCE_NVJITLINK);
  ck_assert_str_eq(kiln_last_error()->log, "ptxas line 1; error: BAD");
  ck_kiln_is(kiln__nvjitlink_assemble(link, "x", 1, "90", &cubin),
             KILN_ECOMPILE);
  for (long i = 0; i < 2; i++) {
    memory.calls = 0;
    memory.fail_at = i;
    ck_kiln_is(kiln__nvjitlink_assemble(link, "x", 1, "sm_90", &cubin),
               KILN_ENOMEM);
    kiln__buf_free(&cubin);
  }
  memory.fail_at = -1;
  {
    int (*live)(void);

    *(void **)&live = fake_function(FAKE_LINK, "fake_nvjitlink_live");
    ck_assert_int_eq(live(), 0);
  }
  kiln__nvjitlink_free(link);
}
END_TEST

START_TEST(link_is_found_beside_nvrtc)
{
  kiln__nvjitlink *link;
  const char *nvrtc;

  put(FAKE_LINK, "site/nvidia/nvjitlink/lib", "libnvJitLink.so.12", NULL);
  nvrtc = put(FAKE, "site/nvidia/cuda_nvrtc/lib", "libnvrtc.so.12", NULL);
  ck_kiln_ok(kiln__nvjitlink_open(&link, &memory.alloc, NULL, NULL, nvrtc, true,
                                  0, trail));
  ck_assert(mapped("nvidia/nvjitlink/lib/libnvJitLink.so.12"));
  kiln__nvjitlink_free(link);
}
END_TEST

START_TEST(link_path_that_fails)
{
  kiln__nvjitlink *link = (kiln__nvjitlink *)&places;

  ck_kiln_is(kiln__nvjitlink_open(&link, &memory.alloc, "/nonexistent",
                                  FAKE_LINK, NULL, false, 0, trail),
             KILN_ENOTFOUND);
  ck_assert_ptr_null(link);
  ck_contains(kiln_last_error()->message, "/nonexistent");
  ck_kiln_is(kiln__nvjitlink_open(&link, &memory.alloc, NULL, FAKE, NULL, false,
                                  0, trail),
             KILN_ENOTFOUND);
  memory.calls = 0;
  memory.fail_at = 0;
  ck_kiln_is(kiln__nvjitlink_open(&link, &memory.alloc, FAKE_LINK, NULL, NULL,
                                  false, 0, trail),
             KILN_ENOMEM);
  memory.fail_at = -1;
}
END_TEST

int main(void)
{
  Suite *s = suite_create("nvrtc");
  TCase *where;

  where = kiln_test_case(
      s, "where", 60, setup, teardown,
      TESTS(nothing_anywhere, several_newest_first_links_once,
            given_path_is_the_only_place, given_path_that_fails_is_an_error,
            descriptors_that_run_out_are_named,
            given_relative_path_is_taken_from_here,
            unusable_libraries_are_passed_over,
            truncated_libraries_are_passed_over,
            forked_child_does_not_wait_for_the_parents_search,
            current_directory_is_never_searched, already_loaded_in_the_process,
            long_paths_do_no_harm, loader_cache_is_read_not_asked,
            loader_cache_damaged));
  tcase_add_loop_test(where, each_place, 0,
                      sizeof place_rows / sizeof place_rows[0]);
  tcase_add_loop_test(where, library_names, 0, sizeof names / sizeof names[0]);
  kiln_test_case(s, "use", 60, setup, teardown,
                 TESTS(older_library_lacks_optional_functions,
                       builtins_beside_it_are_mapped_first,
                       missing_builtins_are_named, replaced_while_running,
                       results_become_statuses, threads_share_a_set,
                       every_allocation_fails));
  kiln_test_case(
      s, "nvJitLink", 60, setup, teardown,
      TESTS(link_assembles, link_is_found_beside_nvrtc, link_path_that_fails));
  return kiln_test_run(s);
}
