/* nvrtc_fixture.h -- makes a folder with fake NVRTC libraries, which replaces
 * the root folder "/" during the search. */
#ifndef NVRTC_FIXTURE_H
#define NVRTC_FIXTURE_H

#include "support.h"

#include "base/os.h"
#include "fake_nvrtc.h"
#include "nvrtc/find.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAKE KILN_TEST_FAKES "/fake_nvrtc.so"
#define FAKE_OLD KILN_TEST_FAKES "/fake_nvrtc_old.so"
#define FAKE_BROKEN KILN_TEST_FAKES "/fake_nvrtc_broken.so"
#define FAKE_LINK KILN_TEST_FAKES "/fake_nvjitlink.so"

static test_allocator memory;
static char root[256], memo[512];
static kiln__trail *trail;
static kiln__nvrtc_places places;

static void setup(void)
{
  static const char *const variables[] = {
      "CUDA_PATH",    "CUDA_HOME",           "VIRTUAL_ENV",
      "CONDA_PREFIX", "FAKE_NVRTC_DELAY_MS", "FAKE_NVRTC_COUNT_FILE"};

  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    unsetenv(variables[i]);
  test_allocator_init(&memory);
  trail = kiln__trail_create(&memory.alloc);
  test_dir_make(root);
  setenv("HOME", root, 1);
  snprintf(memo, sizeof memo, "%s/cache/deep/nvrtc.memo", root);
  places = (kiln__nvrtc_places){.root = root};
}

static void teardown(void)
{
  kiln__trail_free(trail);
  ck_assert_int_eq(memory.live, 0);
  test_dir_remove(root);
}

/* Returns the path of `name` below the test's root folder, and creates the
 * folders on the path. */
static const char *below(const char *name)
{
  static char out[4][512];
  static int turn;
  char *path = out[turn++ % 4];

  snprintf(path, 512, "%s/%s", root, name);
  for (char *at = strchr(path + strlen(root) + 1, '/'); at != NULL;
       at = strchr(at + 1, '/')) {
    *at = '\0';
    ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
    *at = '/';
  }
  return path;
}

/* Copies a fake NVRTC to root/folder/name and returns the path of the copy. */
static const char *put(const char *from, const char *folder, const char *name,
                       const char *config)
{
  static char out[4][512];
  static int turn;
  char *path = out[turn++ % 4], sub[300];

  snprintf(sub, sizeof sub, "%s/", folder);
  below(sub);
  snprintf(sub, sizeof sub, "%s/%s", root, folder);
  fake_nvrtc_install(from, sub, name, config, path);
  return path;
}

static int make_old(const char *path, const struct stat *info, int type,
                    struct FTW *at)
{
  const struct timespec times[2] = {{.tv_sec = 1600000000, .tv_nsec = 7},
                                    {.tv_sec = 1600000000, .tv_nsec = 7}};

  (void)info;
  (void)type;
  (void)at;
  return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

/* Sets old time stamps on all files, because Kiln does not store the result of
 * a search that meets a recently changed file. */
static void age(void)
{
  ck_assert_int_eq(nftw(root, make_old, 16, FTW_PHYS), 0);
}

static kiln__nvrtc_set *open_set(void)
{
  kiln__nvrtc_set *set;

  ck_kiln_ok(kiln__nvrtc_set_create(&set, &memory.alloc, &places, trail, NULL));
  return set;
}

/* Searches for NVRTC and returns the versions that were found, such as "13000
 * 12080 ", or "" for none. */
static const char *versions_here(void)
{
  static char out[512];
  const long live = memory.live;
  kiln__nvrtc_set *set = open_set();
  const kiln__nvrtc_id *ids;
  size_t n, used = 0;
  const kiln_status st = kiln__nvrtc_list(set, &ids, &n);

  out[0] = '\0';
  ck_assert(st == KILN_OK || (st == KILN_ENONVRTC && n == 0));
  for (size_t i = 0; i < n; i++)
    used += (size_t)snprintf(out + used, sizeof out - used, "%d ",
                             ids[i].info.version);
  kiln__nvrtc_set_free(set);
  ck_assert(trail != NULL || memory.live == live);
  return out;
}

/* Returns the list of versions_here() from a child process. If this process
 * loaded a library, all its later searches would report the library as already
 * loaded. */
static const char *versions(void)
{
  static char out[512];
  int ends[2], status;
  ssize_t n;
  pid_t pid;

  ck_assert_int_eq(pipe(ends), 0);
  pid = fork();
  if (pid == 0) {
    const char *found;

    kiln__trail_free(trail);
    trail = NULL;
    found = versions_here();
    _exit(write(ends[1], found, strlen(found) + 1) > 0 ? 0 : 1);
  }
  close(ends[1]);
  n = read(ends[0], out, sizeof out);
  close(ends[0]);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_gt(n, 0);
  return out;
}

static void ck_contains(const char *text, const char *part)
{
  ck_assert_msg(strstr(text, part) != NULL, "\"%s\" lacks \"%s\"", text, part);
}

static bool mapped(const char *path)
{
  char line[2048];
  bool found = false;
  FILE *f = fopen("/proc/self/maps", "r");

  while (fgets(line, sizeof line, f) != NULL)
    found = found || strstr(line, path) != NULL;
  fclose(f);
  return found;
}

/* Makes a child process search for NVRTC and store the result in the memo
 * file. */
static void list_elsewhere(void)
{
  versions();
}

#endif
