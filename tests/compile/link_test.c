/* link_test.c -- tests a driver that is older than the compiler. A real NVRTC
 * generates PTX, a real nvJitLink translates it to machine code, and a fake
 * driver loads the result.
 *
 * KILN_TEST_NVJITLINK lists nvJitLink libraries, separated by colons. Without
 * it, the test uses the library that discovery finds. KILN_TEST_LINK_NVRTC
 * names an additional NVRTC. It has to be newer than a driver of the same CUDA
 * major version and older than the nvJitLink. Only such a combination can test
 * the complete path. */
#include "each_nvrtc.h"

#include "fake_cuda.h"
#include "program/program.h"

#define FAKE_DRIVER KILN_TEST_FAKES "/fake_cuda.so"

enum { MOST = 8 };

/* A pair of libraries that can be combined: nvJitLink is not older than
 * NVRTC. */
static struct {
  int nvrtc;      /* index in each_path */
  char link[512]; /* path of nvJitLink; "" means that Kiln finds it */
  int version;    /* version of nvJitLink */
} pairs[EACH_MAX * MOST];
static int n_pairs;

static char dir[256];
static fake_cuda_control *cuda;

static void setup(void)
{
  test_dir_make(dir);
  cuda = fake_cuda_of(FAKE_DRIVER);
}

static void teardown(void)
{
  ck_assert_msg(cuda->violations == 0, "%s", cuda->violation);
  ck_assert_int_eq(fake_cuda_live(cuda), 0);
  test_dir_remove(dir);
}

static kiln_status create(kiln_runtime **rt, int i, const char *cache)
{
  const kiln_runtime_opts opts = {
      .ignore_env = true,
      .driver_path = FAKE_DRIVER,
      .nvrtc_path = each_path[pairs[i].nvrtc],
      .nvjitlink_path = pairs[i].link[0] != '\0' ? pairs[i].link : NULL,
      .cache_dir = cache,
      .cache_off = cache == NULL};

  return kiln_runtime_create(rt, &opts);
}

static kiln_runtime *open_pair(int i, const char *cache)
{
  kiln_runtime *rt;

  ck_kiln_ok(create(&rt, i, cache));
  return rt;
}

static void try_pair(int nvrtc, const char *path)
{
  kiln__nvjitlink *link = NULL;
  kiln_runtime *rt;

  pairs[n_pairs].nvrtc = nvrtc;
  snprintf(pairs[n_pairs].link, sizeof pairs[0].link, "%s", path);
  if (create(&rt, n_pairs, NULL) == KILN_OK &&
      kiln__runtime_link(rt, &link) == KILN_OK && link != NULL) {
    pairs[n_pairs].version = kiln__nvjitlink_version(link);
    n_pairs += pairs[n_pairs].version / 10 >= each_version[nvrtc] / 10;
  } else if (path[0] != '\0') {
    printf("not used: %s: %s\n", path, kiln_last_error()->message);
  }
  kiln_runtime_free(rt);
}

static void find_pairs(void)
{
  const char *list = getenv("KILN_TEST_NVJITLINK");
  char copy[4096], *rest, *path;

  for (int i = 0; i < each_n; i++) {
    snprintf(copy, sizeof copy, "%s", list == NULL ? "" : list);
    if (copy[0] == '\0')
      try_pair(i, "");
    for (rest = copy; copy[0] != '\0' && (path = strsep(&rest, ":")) != NULL;)
      if (path[0] != '\0' && n_pairs < EACH_MAX * MOST)
        try_pair(i, path);
  }
}

static bool knows(int version, int cc)
{
  size_t n;
  const int *archs = kiln_nvrtc_known_archs(version, &n);

  while (n > 0 && archs[n - 1] != cc)
    n--;
  return n > 0;
}

static void set_gpu(int cc, int driver)
{
  int *attributes = cuda->devices[0].attributes;

  attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = cc / 10;
  attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = cc % 10;
  cuda->version = driver;
}

/* Checks that the image is machine code for compute capability `cc`. The flags
 * of the ELF header contain this number; since ABI 8 it is in the second
 * byte. */
static void check_cubin(const kiln_image *image, int cc)
{
  size_t size;
  const unsigned char *cubin = kiln_image_cubin(image, &size);

  ck_assert_ptr_nonnull(cubin);
  ck_assert_uint_gt(size, 500);
  ck_assert_int_eq(memcmp(cubin, "\177ELF", 4), 0);
  ck_assert_int_eq(cubin[48 + (cubin[8] >= 8)], cc);
  ck_assert_int_eq(kiln_image_target(image).cc, cc);
  ck_assert(!kiln_image_target(image).ptx);
}

static const char source[] =
    "template <class T> __global__ void scale(T *x, T a, unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] *= a;\n"
    "}\n";
static const char *const names[] = {"scale<float>", "scale<double>"};
static const kiln_program_desc desc = {
    .source = source, .name = "scale.cu", .names = names, .n_names = 2};

/* Links PTX of one architecture to machine code of another. The second request
 * must find the result on disk. */
START_TEST(ptx_becomes_machine_code)
{
  const kiln__image_request req = {
      .rung = KILN_RUNG_LINK, .target = {75, 0, true}, .cc = 86};
  char cache[300];
  kiln_traits traits;
  kiln_resources res;

  snprintf(cache, sizeof cache, "%s/cache", dir);
  ck_kiln_ok(kiln_arch_traits(86, &traits));
  set_gpu(86, pairs[_i].version);
  for (int round = 0; round < 2; round++) {
    kiln_runtime *rt = open_pair(_i, cache);
    kiln_device *device;
    kiln_module *module;
    kiln_image *image;

    ck_kiln_ok(kiln__image_make(&image, rt, &desc, &traits, &req));
    ck_assert_int_eq(kiln_image_origin(image),
                     round == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK);
    check_cubin(image, 86);
    ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), ".target sm_75"));
    ck_assert_ptr_nonnull(kiln_image_lowered(image, "scale<double>"));
    ck_kiln_ok(kiln_image_resources(image, 0, &res));
    ck_assert_int_eq(res.n_params, 3);
    /* Only machine code records the size of constant memory. */
    ck_assert_int_gt(res.constant, 0);

    ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
    ck_kiln_ok(kiln_module_from_image(&module, device, image));
    ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_EXACT);
    kiln_module_free(module);
    kiln_device_free(device);
    kiln_image_free(image);
    kiln_runtime_free(rt);
  }
}
END_TEST

/* Finds a GPU and a driver version for which Kiln has to use nvJitLink. */
static bool find_triple(int i, kiln_ladder_query *q)
{
  kiln_ladder_result r;

  *q = (kiln_ladder_query){.nvrtc_version = each_version[pairs[i].nvrtc],
                           .nvjitlink_version = pairs[i].version};
  for (q->cc = 50; q->cc < 130; q->cc++) {
    q->driver_version = q->nvrtc_version - 10;
    if (knows(pairs[i].version, q->cc) && kiln_ladder(q, &r) == KILN_OK &&
        r.rung == KILN_RUNG_LINK)
      return true;
  }
  return false;
}

START_TEST(the_whole_rung)
{
  kiln_ladder_query q;
  char cache[300];

  if (!find_triple(_i, &q)) {
    printf("no GPU needs NVRTC %d with nvJitLink %d: whole rung not run\n",
           each_version[pairs[_i].nvrtc], pairs[_i].version);
    return;
  }
  printf("whole rung: NVRTC %d, nvJitLink %d, driver %d, GPU %d\n",
         q.nvrtc_version, q.nvjitlink_version, q.driver_version, q.cc);
  set_gpu(q.cc, q.driver_version);
  snprintf(cache, sizeof cache, "%s/cache", dir);
  for (int round = 0; round < 2; round++) {
    kiln_runtime *rt = open_pair(_i, cache);
    kiln_device *device;
    kiln_module *module;
    kiln_cache_stats stats;

    ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
    ck_kiln_ok(kiln_module_load(&module, device, &desc));
    ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_LINK);
    check_cubin(kiln_module_image(module), q.cc);
    ck_kiln_ok(kiln_cache_counters(rt, &stats));
    ck_assert_uint_eq(stats.misses, round == 0);
    ck_assert_uint_eq(stats.disk_hits, round != 0);
    ck_assert_uint_eq(stats.rejected, 0);
    kiln_module_free(module);
    kiln_device_free(device);
    kiln_runtime_free(rt);
  }
}
END_TEST

/* NVRTC does not check inline PTX, so the linker has to report the error. */
START_TEST(what_does_not_link_says_why)
{
  const kiln_program_desc bad = {.source =
                                     "extern \"C\" __global__ void k() {"
                                     " asm volatile(\"nonsense.b32;\"); }\n",
                                 .name = "bad.cu"};
  const kiln__image_request req = {
      .rung = KILN_RUNG_LINK, .target = {75, 0, true}, .cc = 86};
  kiln_runtime *rt = open_pair(_i, NULL);
  kiln_traits traits;
  kiln_image *image;

  ck_kiln_ok(kiln_arch_traits(86, &traits));
  ck_kiln_is(kiln__image_make(&image, rt, &bad, &traits, &req), KILN_ECOMPILE);
  ck_assert_ptr_null(image);
  ck_assert_int_eq(kiln_last_error()->source, KILN_SOURCE_NVJITLINK);
  ck_assert_msg(strstr(kiln_last_error()->log, "nonsense") != NULL, "%s",
                kiln_last_error()->log);
  ck_assert_str_ne(kiln_last_error()->hint, "");
  kiln_runtime_free(rt);
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("nvJitLink, real");
  TCase *t = tcase_create("link");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, ptx_becomes_machine_code, 0, n_pairs);
  tcase_add_loop_test(t, the_whole_rung, 0, n_pairs);
  tcase_add_loop_test(t, what_does_not_link_says_why, 0, n_pairs);
  suite_add_tcase(suite, t);
  return suite;
}

int main(void)
{
  const char *further = getenv("KILN_TEST_LINK_NVRTC");
  const char *list = getenv("KILN_TEST_NVRTC");
  char both[4096];

  if (further != NULL) {
    snprintf(both, sizeof both, "%s:%s", list == NULL ? "" : list, further);
    setenv("KILN_TEST_NVRTC", both, 1);
  }
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  find_pairs();
  if (n_pairs == 0) {
    printf("skipped: no nvJitLink that is as new as an NVRTC; set "
           "KILN_TEST_NVJITLINK\n");
    return KILN_TEST_SKIP;
  }
  return kiln_test_run(make());
}
