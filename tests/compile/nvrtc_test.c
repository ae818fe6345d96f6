/* nvrtc_test.c -- tests that Kiln's own loader finds and uses every real NVRTC,
 * and nvJitLink if it is installed. KILN_TEST_NVRTC lists the libraries.
 * Without it, the test uses the libraries that discovery finds. */
#include "support.h"

#include "nvrtc/nvrtc.h"

#include <kiln/arch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static test_allocator memory;
static kiln__trail *trail;
static char paths[16][512];
static int n_paths;

static const char source[] =
    "extern \"C\" __global__ void twice(float *x, unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    x[i] *= 2.0f;\n"
    "}\n";

static void setup(void)
{
  test_allocator_init(&memory);
  trail = kiln__trail_create(&memory.alloc);
}

static void teardown(void)
{
  kiln__trail_free(trail);
  ck_assert_int_eq(memory.live, 0);
}

static kiln__nvrtc_set *open_set(const char *path, const char *memo)
{
  const kiln__nvrtc_places places = {.explicit_path = path, .memo_path = memo};
  kiln__nvrtc_set *set;

  ck_kiln_ok(kiln__nvrtc_set_create(&set, &memory.alloc, &places, trail, NULL));
  return set;
}

/* Compiles a kernel for architecture `arch`. The caller frees the returned
 * PTX. */
static char *compile(const kiln__nvrtc *nvrtc, int arch)
{
  char option[64], *ptx, *cubin;
  const char *const options[] = {option};
  nvrtcProgram program;
  nvrtcResult rc;
  size_t size;

  snprintf(option, sizeof option, "--gpu-architecture=sm_%d", arch);
  rc = nvrtc->createProgram(&program, source, "twice.cu", 0, NULL, NULL);
  ck_kiln_ok(kiln__nvrtc_rc(nvrtc, rc, "nvrtcCreateProgram"));
  rc = nvrtc->compileProgram(program, 1, options);
  ck_kiln_ok(kiln__nvrtc_rc(nvrtc, rc, "nvrtcCompileProgram"));
  ck_assert_int_eq(nvrtc->getCUBINSize(program, &size), NVRTC_SUCCESS);
  ck_assert_uint_gt(size, 100);
  cubin = malloc(size);
  ck_assert_int_eq(nvrtc->getCUBIN(program, cubin), NVRTC_SUCCESS);
  ck_assert_int_eq(memcmp(cubin, "\177ELF", 4), 0);
  free(cubin);
  ck_assert_int_eq(nvrtc->getPTXSize(program, &size), NVRTC_SUCCESS);
  ptx = malloc(size);
  ck_assert_int_eq(nvrtc->getPTX(program, ptx), NVRTC_SUCCESS);
  ck_assert_ptr_nonnull(strstr(ptx, ".entry twice("));
  ck_assert_int_eq(nvrtc->destroyProgram(&program), NVRTC_SUCCESS);
  return ptx;
}

static bool is_mapped(const char *path)
{
  char line[1024];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");

  while (fgets(line, sizeof line, maps) != NULL)
    found = found || strstr(line, path) != NULL;
  fclose(maps);
  return found;
}

static void copy_library(const char *from, const char *to)
{
  size_t size;
  char *data = test_read_file(from, &size);

  test_write_file(to, data, size);
  free(data);
}

/* NVRTC has to find its builtins library, although no search path contains the
 * folder of the library. */
START_TEST(each_library_compiles)
{
  kiln__nvrtc_set *set = open_set(paths[_i], NULL);
  const kiln__nvrtc_id *ids;
  const kiln__nvrtc *nvrtc;
  const int *known;
  size_t n, n_known;

  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_assert_uint_eq(n, 1);
  printf("%s: NVRTC %d, build %s, %zu architectures\n", ids[0].info.path,
         ids[0].info.version, ids[0].build, ids[0].info.n_archs);
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  ck_assert_ptr_nonnull(nvrtc->builtins);
  free(compile(nvrtc, ids[0].info.archs[0]));
  ck_assert_int_eq(*(void *const *)&nvrtc->setFlowCallback != NULL,
                   nvrtc->version >= 12080);

  known = kiln_nvrtc_known_archs(nvrtc->version, &n_known);
  if (n_known > 0) {
    ck_assert_uint_eq(n_known, ids[0].info.n_archs);
    ck_assert_int_eq(
        memcmp(known, ids[0].info.archs, n_known * sizeof known[0]), 0);
  }
  kiln__nvrtc_set_free(set);
}
END_TEST

START_TEST(each_library_is_remembered_unloaded)
{
  char dir[256], memo[300];
  const kiln__nvrtc_id *ids;
  kiln__nvrtc_set *set;
  size_t n;
  int status;
  pid_t pid;

  test_dir_make(dir);
  snprintf(memo, sizeof memo, "%s/nvrtc.memo", dir);
  set = open_set(paths[_i], memo);
  pid = fork(); /* The fork happens before NVRTC is loaded. */
  if (pid == 0)
    _exit(kiln__nvrtc_list(set, &ids, &n) == KILN_OK ? 0 : 1);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_assert(!ids[0].info.loaded);
  ck_assert(!is_mapped("libnvrtc"));
  kiln__nvrtc_set_free(set);
  test_dir_remove(dir);
}
END_TEST

static bool library_path_is_relative(void)
{
  const char *path = getenv("LD_LIBRARY_PATH");

  while (path != NULL && path[0] == '/') {
    path += strcspn(path, ":");
    if (*path == '\0')
      return false;
    path++;
  }
  return path != NULL && (path[0] != '\0' || path != getenv("LD_LIBRARY_PATH"));
}

/* The RUNPATH of NVRTC releases before 13 contains the current directory. If
 * such an NVRTC is alone in its folder, it must not load builtins or other
 * libraries from the current directory. */
START_TEST(current_directory_lends_no_library)
{
  static const char *const traps[] = {"libpthread.so.0", "librt.so.1",
                                      "libdl.so.2", "libm.so.6"};
  char dir[256], alone[300], path[512], sprung[300];
  kiln__nvrtc_set *set;
  const kiln__nvrtc_id *ids;
  const kiln__nvrtc *nvrtc;
  size_t n;

  if (library_path_is_relative()) {
    printf("not checked: LD_LIBRARY_PATH names the current directory\n");
    return;
  }
  test_dir_make(dir);
  snprintf(alone, sizeof alone, "%s/libnvrtc.so", dir);
  snprintf(sprung, sizeof sprung, "%s/sprung", dir);
  copy_library(paths[_i], alone);
  snprintf(path, sizeof path, "%s/here", dir);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  ck_assert_int_eq(chdir(path), 0);
  for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++)
    copy_library(KILN_TEST_FAKES "/fake_nvrtc.so", traps[i]);
  setenv("FAKE_NVRTC_LOAD_FILE", sprung, 1);
  set = open_set(alone, NULL);
  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  snprintf(path, sizeof path, "libnvrtc-builtins.so.%d.%d",
           ids[0].info.version / 1000, ids[0].info.version % 1000 / 10);
  copy_library(KILN_TEST_FAKES "/fake_nvrtc.so", path);

  if (kiln__nvrtc_use(set, 0, &nvrtc) == KILN_OK) {
    nvrtcProgram program;

    /* The compile fails if the system has no builtins of this version. Both
     * results are accepted. */
    ck_assert_int_eq(
        nvrtc->createProgram(&program, source, "x.cu", 0, NULL, NULL), 0);
    nvrtc->compileProgram(program, 0, NULL);
    nvrtc->destroyProgram(&program);
  } else {
    ck_assert_int_eq(kiln_last_error()->status, KILN_ENONVRTC);
    ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "builtins"));
  }
  ck_assert_msg(access(sprung, F_OK) != 0,
                "a library of the current directory was loaded");
  ck_assert_int_eq(chdir("/"), 0);
  kiln__nvrtc_set_free(set);
  test_dir_remove(dir);
}
END_TEST

START_TEST(nvjitlink_assembles_its_ptx)
{
  kiln__nvrtc_set *set = open_set(paths[0], NULL);
  const kiln__nvrtc_id *ids;
  const kiln__nvrtc *nvrtc;
  kiln__nvjitlink *link;
  kiln__buf cubin;
  size_t n;

  ck_kiln_ok(kiln__nvrtc_list(set, &ids, &n));
  ck_kiln_ok(kiln__nvrtc_use(set, 0, &nvrtc));
  if (kiln__nvjitlink_open(&link, &memory.alloc, NULL, NULL, ids[0].info.path,
                           false, 0, trail) != KILN_OK) {
    printf("nvJitLink not checked: %s\n", kiln_last_error()->message);
  } else if (kiln__nvjitlink_version(link) < nvrtc->version) {
    printf("nvJitLink not checked: %d is older than NVRTC %d\n",
           kiln__nvjitlink_version(link), nvrtc->version);
    kiln__nvjitlink_free(link);
  } else {
    /* The newest architecture is used, because a later major version of
     * nvJitLink may not support old architectures. */
    const int newest = ids[0].info.archs[ids[0].info.n_archs - 1];
    char arch[16], *ptx = compile(nvrtc, newest);

    snprintf(arch, sizeof arch, "sm_%d", newest);
    kiln__buf_init(&cubin, &memory.alloc);
    ck_kiln_ok(kiln__nvjitlink_assemble(link, ptx, strlen(ptx), arch, &cubin));
    ck_assert_int_eq(memcmp(cubin.data, "\177ELF", 4), 0);
    ck_kiln_is(kiln__nvjitlink_assemble(link, "no PTX", 6, arch, &cubin),
               KILN_ECOMPILE);
    ck_assert_int_ne(kiln_last_error()->log[0], '\0');
    ck_kiln_is(
        kiln__nvjitlink_assemble(link, ptx, strlen(ptx), "sm_999", &cubin),
        KILN_ECOMPILE);
    kiln__buf_free(&cubin);
    free(ptx);
    kiln__nvjitlink_free(link);
  }
  kiln__nvrtc_set_free(set);
}
END_TEST

static void add_path(const char *path, size_t size)
{
  if (size > 0 && size < sizeof paths[0] && n_paths < 16)
    snprintf(paths[n_paths++], sizeof paths[0], "%.*s", (int)size, path);
}

/* Runs discovery in a child process, so that this process has not loaded any
 * NVRTC. */
static void find_paths(void)
{
  const char *list = getenv("KILN_TEST_NVRTC");
  const kiln__nvrtc_id *ids;
  char line[600];
  int ends[2];
  size_t n;
  FILE *in;

  for (; list != NULL && *list != '\0'; list += list[0] == ':') {
    add_path(list, strcspn(list, ":"));
    list += strcspn(list, ":");
  }
  if (n_paths > 0 || pipe(ends) != 0)
    return;
  if (fork() == 0) {
    FILE *out = fdopen(ends[1], "w");
    const kiln__nvrtc_places places = {0};
    /* The child uses the default allocator, because no test is running yet. */
    kiln_allocator plain = {0};
    kiln__nvrtc_set *set;

    kiln__allocator_default(&plain);
    if (out != NULL &&
        kiln__nvrtc_set_create(&set, &plain, &places, NULL, NULL) == KILN_OK &&
        kiln__nvrtc_list(set, &ids, &n) == KILN_OK) {
      for (size_t i = 0; i < n; i++)
        fprintf(out, "%s\n", ids[i].info.path);
    }
    fflush(out);
    _exit(0);
  }
  close(ends[1]);
  in = fdopen(ends[0], "r");
  while (fgets(line, sizeof line, in) != NULL)
    add_path(line, strcspn(line, "\n"));
  fclose(in);
  wait(NULL);
}

int main(void)
{
  Suite *s = suite_create("nvrtc, real");
  TCase *t = tcase_create("nvrtc");

  find_paths();
  if (n_paths == 0) {
    printf("skipped: no NVRTC here; name some in KILN_TEST_NVRTC\n");
    return KILN_TEST_SKIP;
  }
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_library_compiles, 0, n_paths);
  tcase_add_loop_test(t, each_library_is_remembered_unloaded, 0, n_paths);
  tcase_add_loop_test(t, current_directory_lends_no_library, 0, n_paths);
  tcase_add_test(t, nvjitlink_assembles_its_ptx);
  suite_add_tcase(s, t);
  return kiln_test_run(s);
}
