/* link_test.c -- tests a driver that is older than the compiler, so that Kiln
 * uses nvJitLink to assemble the PTX. */
#include "device_fixture.h"

#include <unistd.h>

/* A fake of nvJitLink 12.4. */
#define FAKE_LINK KILN_TEST_FAKES "/fake_nvjitlink.so"

static char library[512], cache[300];
static const kiln_program_desc saxpy = {.source = SAXPY, .name = "saxpy.cu"};

/* Returns the number of nvJitLink handles that were not yet destroyed. */
static int live_jobs(void)
{
  int (*live)(void);

  *(void **)&live = fake_function(FAKE_LINK, "fake_nvjitlink_live");
  return live();
}

static kiln_status open_with(const char *nvrtc, const char *dirs,
                             const char *link)
{
  const kiln_runtime_opts opts = {.allocator = f.alloc.alloc,
                                  .driver_path = FAKE_DRIVER,
                                  .nvrtc_path = nvrtc,
                                  .nvrtc_dirs = &dirs,
                                  .n_nvrtc_dirs = dirs != NULL,
                                  .nvjitlink_path = link,
                                  .cache_dir = cache,
                                  .ignore_env = true};
  kiln_status st = kiln_runtime_create(&f.rt, &opts);

  return st != KILN_OK ? st : kiln_device_open(&f.device, f.rt, 0, NULL);
}

/* Sets up a driver 12.2, a GPU of capability 9.0, and an NVRTC 12.4 that does
 * not support 9.x. */
static void set_up(void)
{
  memset(&f, 0, sizeof f);
  f.cuda = fake_cuda_of(FAKE_DRIVER);
  f.cuda->version = 12020;
  test_allocator_init(&f.alloc);
  test_dir_make(f.dir);
  snprintf(cache, sizeof cache, "%s/cache", f.dir);
  fake_nvrtc_install(FAKE_NVRTC, f.dir, "libnvrtc.so.12",
                     "version 12040\narchs 75 80\n", library);
  f.nvrtc = fake_nvrtc_of(library);
  ck_kiln_ok(open_with(library, NULL, FAKE_LINK));
}

static void start_again(const char *nvrtc, const char *dirs, const char *link)
{
  kiln_device_free(f.device);
  kiln_runtime_free(f.rt);
  f.rt = NULL;
  f.device = NULL;
  ck_kiln_ok(open_with(nvrtc, dirs, link));
}

static void finish(void)
{
  ck_assert_int_eq(live_jobs(), 0);
  tear_down();
}

static void check_linked(const kiln_module *module, kiln_origin origin)
{
  const kiln_ladder_result *ladder = kiln_module_ladder(module);
  const kiln_image *image = kiln_module_image(module);
  const kiln_target target = kiln_image_target(image);
  const char *cubin;
  size_t size;

  ck_assert_int_eq(ladder->rung, KILN_RUNG_LINK);
  ck_assert_ptr_nonnull(strstr(ladder->reason[KILN_RUNG_LINK], "nvJitLink"));
  ck_assert(target.cc == 90 && !target.ptx);
  ck_assert_int_eq(kiln_image_origin(image), origin);
  cubin = kiln_image_cubin(image, &size);
  ck_assert_ptr_nonnull(cubin);
  ck_assert_ptr_nonnull(strstr(cubin, "\177ELF fake cubin sm_90\n"));
  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), ".target sm_80"));
}

START_TEST(ptx_becomes_machine_code)
{
  ck_kiln_ok(kiln_module_load(&f.module, f.device, &saxpy));
  check_linked(f.module, KILN_FROM_COMPILER);
  get_kernel(f.module, "saxpy");
  ck_assert_ptr_nonnull(
      strstr(kiln_image_key(kiln_module_image(f.module), NULL), "12040"));
}
END_TEST

START_TEST(the_cache_keeps_it)
{
  ck_kiln_ok(kiln_module_load(&f.module, f.device, &saxpy));
  kiln_module_free(f.module);
  f.module = NULL;
  start_again(library, NULL, FAKE_LINK);
  ck_kiln_ok(kiln_module_load(&f.module, f.device, &saxpy));
  check_linked(f.module, KILN_FROM_DISK);
  ck_assert_int_eq(f.nvrtc->compiles, 1);
}
END_TEST

typedef struct heard {
  char text[4096];
} heard;

static void hear(void *user, const char *text, size_t size)
{
  heard *h = user;

  snprintf(h->text, sizeof h->text, "%.*s", (int)size, text);
}

START_TEST(what_the_linker_says_reaches_the_caller)
{
  heard log = {""};
  const kiln_program_desc bad = {
      .source = "#warning odd\nextern \"C\" __global__ void BAD() {}\n",
      .name = "bad.cu",
      .on_log = hear,
      .log_user = &log};
  const kiln_error *record = kiln_last_error();

  /* A failure is not cached, so the second round fails in the same way. */
  for (int i = 0; i < 2; i++) {
    ck_kiln_is(kiln_module_load(&f.module, f.device, &bad), KILN_ECOMPILE);
    ck_assert_ptr_null(f.module);
    ck_assert_int_eq(record->source, KILN_SOURCE_NVJITLINK);
    ck_assert_int_eq(record->native, 4);
    ck_assert_str_eq(record->call, "nvJitLinkComplete");
    ck_assert_str_ne(record->hint, "");
    ck_assert_ptr_nonnull(strstr(record->log, "ptxas line 1; error: BAD"));
    ck_assert_ptr_nonnull(strstr(record->log, "bad.cu(1): warning"));
    ck_assert_str_eq(log.text, record->log);
    ck_assert_int_eq(f.nvrtc->compiles, i + 1);
  }
}
END_TEST

START_TEST(without_nvjitlink_it_is_named)
{
  start_again(library, NULL, "/nonexistent");
  ck_kiln_is(kiln_module_load(&f.module, f.device, &saxpy), KILN_EUNSUPPORTED);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "no nvJitLink"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "nvJitLink 12.4"));
}
END_TEST

/* If NVRTC is too new for the driver, the nvJitLink of the same CUDA release is
 * too new as well, and an older one must be found. */
START_TEST(nvjitlink_of_the_drivers_major)
{
  char other[512], path[512];

  fake_nvrtc_install(FAKE_NVRTC, f.dir, "libnvrtc.so.13", NULL, other);
  fake_nvrtc_install(FAKE_LINK, f.dir, "libnvJitLink.so.12", NULL, path);
  /* This nvJitLink could be loaded, but the driver would refuse its machine
   * code. */
  fake_nvrtc_install(FAKE_LINK, f.dir, "libnvJitLink.so.13", NULL, path);
  start_again(NULL, f.dir, NULL);
  ck_kiln_ok(kiln_module_load(&f.module, f.device, &saxpy));
  check_linked(f.module, KILN_FROM_COMPILER);
  snprintf(path, sizeof path, "%s/libnvJitLink.so.13", f.dir);
  ck_assert_ptr_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
  snprintf(path, sizeof path, "%s/libnvJitLink.so.12", f.dir);
  ck_assert_ptr_nonnull(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}
END_TEST

/* Loads a module with an empty cache while allocation number `at` fails. */
static bool round_of(long at, bool after)
{
  char command[400];
  kiln_status st;
  bool reached;

  kiln_device_free(f.device);
  kiln_runtime_free(f.rt);
  f.rt = NULL;
  f.device = NULL;
  snprintf(command, sizeof command, "rm -rf '%s'", cache);
  ck_assert_int_eq(system(command), 0);
  f.alloc.calls = 0;
  f.alloc.fail_at = at;
  f.alloc.fail_after = after;
  st = open_with(library, NULL, FAKE_LINK);
  if (st == KILN_OK)
    st = kiln_module_load(&f.module, f.device, &saxpy);
  reached = f.alloc.calls > at;
  f.alloc.fail_at = -1;
  ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM, "allocation %ld: %s: %s",
                at, kiln_status_name(st), kiln_last_error()->message);
  ck_assert(reached || st == KILN_OK);
  ck_assert((f.module != NULL) == (st == KILN_OK));
  if (st == KILN_OK)
    check_linked(f.module, KILN_FROM_COMPILER);
  kiln_module_free(f.module);
  f.module = NULL;
  ck_assert_int_eq(live_jobs(), 0);
  ck_assert_int_eq(f.nvrtc->programs, 0);
  return reached;
}

START_TEST(every_allocation_fails_in_turn)
{
  long at = 0;

  while (round_of(at, _i != 0))
    at++;
  ck_assert_int_gt(at, 20);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("link");
  TCase *t = kiln_test_case(s, "link", 60, set_up, finish,
                            TESTS(ptx_becomes_machine_code, the_cache_keeps_it,
                                  what_the_linker_says_reaches_the_caller,
                                  without_nvjitlink_it_is_named,
                                  nvjitlink_of_the_drivers_major));

  tcase_add_loop_test(t, every_allocation_fails_in_turn, 0, 2);
  return kiln_test_run(s);
}
