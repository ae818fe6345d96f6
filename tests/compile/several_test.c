/* several_test.c -- tests all available NVRTCs in one process. The newest NVRTC
 * that supports an architecture has to compile for it. A later process must
 * find the images in the cache without loading any NVRTC. */
#include "each_nvrtc.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ARCHS = 128 };

static char dir[256], folders[EACH_MAX][512];

static void setup(void)
{
  test_dir_make(dir);
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static kiln_runtime *open_all(void)
{
  const char *dirs[EACH_MAX];
  kiln_runtime *rt;

  for (int i = 0; i < each_n; i++) {
    snprintf(folders[i], sizeof folders[0], "%s", each_path[i]);
    *strrchr(folders[i], '/') = '\0';
    dirs[i] = folders[i];
  }
  ck_kiln_ok(kiln_runtime_create(
      &rt, &(kiln_runtime_opts){.ignore_env = true,
                                .nvrtc_dirs = dirs,
                                .n_nvrtc_dirs = (size_t)each_n,
                                .cache_dir = dir}));
  return rt;
}

/* Returns the version of the newest NVRTC that generates code for an
 * architecture, or 0 if there is none. */
static int newest_for(const kiln_nvrtc_info *info, size_t n, int arch)
{
  int best = 0;

  for (size_t i = 0; i < n; i++) {
    for (size_t a = 0; a < info[i].n_archs; a++) {
      if (info[i].archs[a] == arch && info[i].version > best)
        best = info[i].version;
    }
  }
  return best;
}

static const char source[] =
    "template <class T> __global__ void scale(T *x, T a, unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] *= a;\n"
    "}\n";
static const char *const names[] = {"scale<float>"};
static const kiln_program_desc desc = {
    .source = source, .name = "scale.cu", .names = names, .n_names = 1};

/* Tries each known architecture, alternating between the oldest and the newest
 * end of the list, so that the NVRTC libraries alternate as well. */
static int compile_all(kiln_runtime *rt, kiln_origin origin)
{
  kiln_nvrtc_info info[EACH_MAX];
  int done = 0, used[EACH_MAX] = {0};
  size_t n = 0;

  ck_kiln_ok(kiln_runtime_nvrtc(rt, info, EACH_MAX, &n));
  ck_assert_uint_ge(n, (size_t)each_n);
  for (int k = 0; k < MOST_ARCHS; k++) {
    const int arch = k % 2 == 0 ? 30 + k / 2 : 30 + MOST_ARCHS - k / 2;
    const kiln_target target = {.cc = arch};
    const int want = newest_for(info, n, arch);
    kiln_image *image;

    if (want == 0)
      continue;
    ck_kiln_ok(kiln_compile(&image, rt, &desc, &target));
    ck_assert_int_eq(kiln_image_nvrtc(image), want);
    ck_assert_int_eq(kiln_image_target(image).cc, arch);
    ck_assert_int_eq(kiln_image_origin(image), origin);
    ck_assert_ptr_nonnull(kiln_image_cubin(image, NULL));
    ck_assert_str_eq(kiln_image_lowered(image, "scale<float>"),
                     "_Z5scaleIfEvPT_S0_j");
    kiln_image_free(image);
    for (size_t i = 0; i < n; i++)
      used[i] += info[i].version == want;
    done++;
  }
  for (size_t i = 0; i < n; i++)
    printf("%s NVRTC %d: %d architectures\n", kiln_origin_name(origin),
           info[i].version, used[i]);
  return done;
}

static bool maps_nvrtc(void)
{
  char line[1024];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");

  while (fgets(line, sizeof line, maps) != NULL)
    found = found || strstr(line, "libnvrtc") != NULL;
  fclose(maps);
  return found;
}

/* Compiles in a child process, so that the libraries are unloaded
 * afterwards. */
static int compile_in_child(kiln_origin origin, bool maps)
{
  int status = 0;
  pid_t pid;

  fflush(stdout);
  pid = fork();
  if (pid == 0) {
    kiln_runtime *rt = open_all();
    const int done = compile_all(rt, origin);

    ck_assert_int_eq(maps_nvrtc(), maps);
    kiln_runtime_free(rt);
    fflush(stdout);
    _exit(done);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

START_TEST(each_architecture_by_the_newest_that_knows_it)
{
  const int done = compile_in_child(KILN_FROM_COMPILER, true);

  ck_assert_int_ge(done, 5);
  ck_assert_int_eq(compile_in_child(KILN_FROM_DISK, false), done);
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("several NVRTC");
  TCase *t = tcase_create("all");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, each_architecture_by_the_newest_that_knows_it);
  suite_add_tcase(suite, t);
  return suite;
}

/* Finds the libraries in a child process, because discovery loads them. This
 * process and its later children therefore start without any NVRTC. */
static void find_in_child(void)
{
  int ends[2], n;

  if (pipe(ends) != 0)
    return;
  if (fork() == 0) {
    n = each_find();
    fflush(stdout);
    if (write(ends[1], &n, sizeof n) < 0 ||
        write(ends[1], each_path, sizeof each_path) < 0)
      _exit(1);
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], &n, sizeof n) == (ssize_t)sizeof n &&
      read(ends[0], each_path, sizeof each_path) == (ssize_t)sizeof each_path)
    each_n = n;
  close(ends[0]);
  wait(NULL);
}

int main(void)
{
  find_in_child();
  if (each_n == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(make());
}
