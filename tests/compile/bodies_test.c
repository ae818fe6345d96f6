/* bodies_test.c -- bodies of operations for GPUs, compiled without a GPU, and
 * their link with expressions by nvJitLink. The operations run on the CPU
 * device, which only chooses the kernels' parameters. */
#include "each_nvrtc.h"

#include "ops/link/link.h"

#include <kiln/cpu.h>
#include <kiln/kiln.h>

enum { N = 1 << 20, CASE_SECONDS = 3600 };

static kiln_runtime *rt;
static kiln_device *device;
static kiln_stream *stream;
static const kiln_target sm_90 = {.cc = 90};

static void open_with(const kiln_runtime_opts *wanted)
{
  const kiln_cpu_opts cpu = {.arch = 90};
  kiln_runtime_opts opts = *wanted;

  opts.driver = kiln_cpu_driver();
  opts.ignore_env = true;
  ck_kiln_ok(kiln_cpu_configure(&cpu));
  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
}

/* Opens the CPU device with one NVRTC and, if it is not NULL, one nvJitLink. */
static void open_device(const char *nvrtc, const char *linker)
{
  open_with(&(kiln_runtime_opts){
      .nvrtc_path = nvrtc, .nvjitlink_path = linker, .cache_off = true});
}

static void close_device(void)
{
  kiln_stream_free(stream);
  kiln_device_free(device);
  kiln_runtime_free(rt);
}

/* ---- Calls --------------------------------------------------------------- */

/* An array that no call reads, aligned to 256 bytes. */
static kiln_array at(unsigned k, kiln_dtype type)
{
  return (kiln_array){UINT64_C(0x10000000) * (k + 1), type};
}

static kiln_status call_map(void)
{
  const kiln_map_desc desc = {.in = {at(0, KILN_F32), at(1, KILN_F32)},
                              .out = {at(2, KILN_F32)},
                              .expr = {"x * 2 + y"},
                              .n = N};

  return kiln_map(stream, &desc, NULL);
}

static kiln_status call_reduce(void)
{
  const kiln_reduce_desc desc = {
      .x = {.in = {at(0, KILN_F32)}, .map = "fabsf(x)"},
      .n = N,
      .op = {.expr = "a > b ? a : b", .identity = "-INFINITY"},
      .out = at(1, KILN_F32)};

  return kiln_reduce(stream, &desc, NULL);
}

static kiln_status call_scan(void)
{
  const kiln_scan_desc desc = {.x = {.in = {at(0, KILN_U64)}},
                               .n = 1000,
                               .op = {.expr = "a ^ b", .identity = "0"},
                               .out = at(1, KILN_U64)};

  return kiln_scan(stream, &desc, NULL);
}

static kiln_status call_select(void)
{
  const kiln_select_desc desc = {.x = {.in = {at(0, KILN_I32)}},
                                 .predicate = "x > 5",
                                 .n = N,
                                 .out = at(1, KILN_I32),
                                 .count = at(2, KILN_U32)};

  return kiln_select(stream, &desc, NULL);
}

static kiln_status call_named(void)
{
  const kiln_reduce_desc desc = {
      .x = {.in = {at(0, KILN_F32)}}, .n = N, .out = at(1, KILN_F32)};

  return kiln_reduce(stream, &desc, NULL);
}

typedef kiln_status (*call_fn)(void);
static const call_fn calls[] = {call_map, call_reduce, call_scan, call_select};

enum { N_CALLS = sizeof calls / sizeof calls[0] };

/* ---- Tests --------------------------------------------------------------- */

static unsigned n_bodies;

static kiln_status take_body(void *user, kiln_image *image)
{
  size_t size = 0;

  ck_assert_ptr_eq(user, &n_bodies);
  ck_assert_ptr_nonnull(kiln_image_cubin(image, &size));
  ck_assert_uint_gt(size, 1000);
  ck_assert_int_eq(kiln_image_target(image).cc, 90);
  n_bodies++;
  kiln_image_free(image);
  return KILN_OK;
}

START_TEST(compiles_bodies_without_a_gpu)
{
  open_device(each_path[each_n - 1], NULL);
  ck_kiln_ok(kiln_ops_bodies(device, &sm_90, take_body, &n_bodies));
  ck_assert_int_eq(kiln_ops_bodies(device, &sm_90, take_body, NULL),
                   KILN_EINVAL);
  ck_assert_int_eq(call_map(), KILN_ECANCELED);
  ck_assert_uint_eq(n_bodies, 1);
  ck_assert_int_eq(call_named(), KILN_ECANCELED);
  ck_assert_uint_eq(n_bodies, 1);
  close_device();
}
END_TEST

/* Compiles both objects and links them by nvJitLink. */
static kiln_status link_body(kiln_device *d, void *user,
                             const kiln_program_desc *body,
                             const kiln_program_desc *texts)
{
  kiln_image *image[2] = {NULL, NULL};
  const void *code[2];
  size_t size[2];
  kiln__nvjitlink *link = NULL;
  kiln__buf out;

  (void)user;
  ck_kiln_ok(kiln__compile_object(&image[0], d->rt, body, &sm_90));
  ck_kiln_ok(kiln__compile_object(&image[1], d->rt, texts, &sm_90));
  for (size_t i = 0; i < 2; i++)
    code[i] = kiln_image_cubin(image[i], &size[i]);
  ck_kiln_ok(kiln__runtime_link(d->rt, &link));
  ck_assert_ptr_nonnull(link);
  kiln__buf_init(&out, &d->rt->alloc);
  ck_kiln_ok(kiln__nvjitlink_link(link, code, size, 2, "sm_90", &out));
  ck_assert_uint_gt(out.size, 1000);
  ck_assert_mem_eq(out.data, "\177ELF", 4);
  n_bodies++;
  kiln__buf_clear(&out);
  /* Without the expressions the link fails and the message has the reason. */
  ck_assert_int_eq(kiln__nvjitlink_link(link, code, size, 1, "sm_90", &out),
                   KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "kiln__text_"));
  kiln__buf_free(&out);
  kiln_image_free(image[0]);
  kiln_image_free(image[1]);
  return KILN_OK;
}

START_TEST(links_machine_code)
{
  const char *const nvrtc = getenv("KILN_TEST_LINK_NVRTC");
  const char *const linker = getenv("KILN_TEST_NVJITLINK");

  if (nvrtc == NULL || linker == NULL)
    return;
  open_device(nvrtc, linker);
  device->on_body = link_body;
  ck_assert_int_eq(calls[_i](), KILN_ECANCELED);
  ck_assert_uint_eq(n_bodies, 1);
  device->on_body = NULL;
  close_device();
}
END_TEST

static unsigned n_driver_links;

/* Links the PTX of both objects by the driver, here the CPU device. */
static kiln_status link_by_driver(kiln_device *d, void *user,
                                  const kiln_program_desc *body,
                                  const kiln_program_desc *texts)
{
  const kiln_target ptx = {.cc = 90, .ptx = true};
  kiln_image *image[2] = {NULL, NULL};
  kiln__object objects[2] = {{.ptx = true, .name = "body.ptx"},
                             {.ptx = true, .name = "texts.ptx"}};
  CUmodule module = NULL;
  kiln__scope scope;
  kiln__buf out;

  (void)user;
  ck_kiln_ok(kiln__compile_object(&image[0], d->rt, body, &ptx));
  ck_kiln_ok(kiln__compile_object(&image[1], d->rt, texts, &ptx));
  for (size_t i = 0; i < 2; i++)
    objects[i].data = kiln_image_ptx(image[i], &objects[i].size);
  kiln__buf_init(&out, &d->rt->alloc);
  ck_kiln_ok(kiln__device_link(d, objects, &ptx, 0, &out));
  ck_kiln_ok(kiln__enter(d, &scope));
  ck_assert_int_eq(
      d->driver->moduleLoadDataEx(&module, out.data, 0, NULL, NULL), 0);
  ck_assert_int_eq(d->driver->moduleUnload(module), 0);
  kiln__leave(&scope);
  kiln__buf_clear(&out);
  objects[1] = objects[0]; /* each kernel twice, and no function */
  ck_assert_int_eq(kiln__device_link(d, objects, &ptx, 0, &out), KILN_EDRIVER);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "kiln__text_map"));
  kiln__buf_free(&out);
  kiln_image_free(image[0]);
  kiln_image_free(image[1]);
  n_driver_links++;
  return KILN_OK;
}

START_TEST(links_by_the_driver)
{
  open_device(each_path[each_n - 1], NULL);
  device->on_body = link_by_driver;
  ck_assert_int_eq(call_map(), KILN_ECANCELED);
  ck_assert_uint_eq(n_driver_links, 1);
  device->on_body = NULL;
  close_device();
}
END_TEST

/* ---- Packs of another compiler ------------------------------------------- */

static unsigned n_refused, n_linked;

static void count(void *user, kiln_log_level level, const char *message)
{
  (void)user;
  n_refused += level == KILN_LOG_WARNING &&
               strncmp(message, "a pack's map is not used: NVRTC ", 32) == 0;
  n_linked += strncmp(message, "linked ", 7) == 0;
}

/* Runs a map on the CPU device and checks its result. */
static void run_map(const char *expr, uint32_t want)
{
  uint32_t result = 0;
  CUdeviceptr to = 0;

  ck_kiln_ok(kiln_memory_alloc(&to, device, 4));
  {
    const kiln_map_desc desc = {
        .out = {{to, KILN_U32}}, .expr = {expr}, .n = 1};

    ck_kiln_ok(kiln_map(stream, &desc, NULL));
  }
  ck_kiln_ok(kiln_device_synchronize(device));
  ck_kiln_ok(kiln_copy_to_host(device, &result, to, 4));
  ck_assert_uint_eq(result, want);
  kiln_memory_free(device, to);
}

/* A pack holds a body that an older NVRTC made. The newer NVRTC compiles its
 * own, and the log has the reason. A pack of the same NVRTC is used. */
START_TEST(checks_the_compiler_of_packs)
{
  const bool same = _i == 1;
  char dir[256], cache[300], pack[300];
  const char *const packs[] = {pack};

  if (each_n < 2)
    return;
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
  snprintf(pack, sizeof pack, "%s/bodies.kpack", dir);
  open_with(&(kiln_runtime_opts){.nvrtc_path = each_path[each_n - 2 + same],
                                 .cache_dir = cache});
  run_map("i + 7", 7);
  ck_kiln_ok(kiln_pack_cache(rt, pack, NULL));
  close_device();
  n_refused = n_linked = 0;
  open_with(&(kiln_runtime_opts){.nvrtc_path = each_path[each_n - 1],
                                 .cache_off = true,
                                 .packs = packs,
                                 .n_packs = 1,
                                 .log = count,
                                 .log_level = KILN_LOG_INFO});
  run_map("i + 9", 9);
  ck_assert_uint_eq(n_linked, 1);
  ck_assert_uint_eq(n_refused, same ? 0 : 1);
  run_map("i + 11", 11);
  ck_assert_uint_eq(n_linked, 2);
  ck_assert_uint_eq(n_refused, same ? 0 : 1);
  close_device();
  test_dir_remove(dir);
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("bodies");
  TCase *t = tcase_create("bodies");

  tcase_set_timeout(t, CASE_SECONDS);
  tcase_add_test(t, compiles_bodies_without_a_gpu);
  tcase_add_loop_test(t, links_machine_code, 0, N_CALLS);
  tcase_add_test(t, links_by_the_driver);
  tcase_add_loop_test(t, checks_the_compiler_of_packs, 0, 2);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  return each_find() == 0 ? KILN_TEST_SKIP : kiln_test_run(make());
}
