/* module_test.c -- tests module loading on the fake driver: refused images and
 * their fallbacks, kernels, symbols and stream capture. */
#include "device_fixture.h"

#include "program/program.h"

#include <pthread.h>

static const kiln_program_desc saxpy = {.source = SAXPY};

static uint64_t rejected(void)
{
  kiln_cache_stats stats;

  ck_kiln_ok(kiln_cache_counters(f.rt, &stats));
  return stats.rejected;
}

/* ---- Loading ------------------------------------------------------------- */

START_TEST(loads_machine_code_for_the_gpu)
{
  const kiln_ladder_result *ladder = kiln_module_ladder(f.module);

  ck_assert_int_eq(ladder->rung, KILN_RUNG_EXACT);
  ck_assert_int_eq(ladder->target.cc, 90);
  ck_assert(!ladder->target.ptx);
  ck_assert_ptr_nonnull(kiln_module_image(f.module));
  ck_assert_ptr_nonnull(kiln_module_handle(f.module));
  ck_assert_int_eq(kiln_image_origin(kiln_module_image(f.module)),
                   KILN_FROM_COMPILER);
  ck_assert_int_eq(f.cuda->modules, 1);
  ck_assert_int_eq(f.nvrtc->compiles, 1);
}
END_TEST

START_TEST(second_load_compiles_nothing)
{
  kiln_module *again = load_source(f.device, SAXPY);

  ck_assert_int_eq(f.nvrtc->compiles, 1);
  ck_assert_int_eq(kiln_image_origin(kiln_module_image(again)),
                   KILN_FROM_MEMORY);
  kiln_module_free(again);
}
END_TEST

START_TEST(loads_from_an_image_that_may_be_freed)
{
  kiln_target target = {.cc = 90};
  kiln_module *module;
  kiln_image *image;

  ck_kiln_ok(kiln_compile(&image, f.rt, &saxpy, &target));
  ck_kiln_ok(kiln_module_from_image(&module, f.device, image));
  kiln_image_free(image);
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_EXACT);
  get_kernel(module, "saxpy");
  kiln_module_free(module);
}
END_TEST

START_TEST(machine_code_of_another_gpu_falls_back_to_its_ptx)
{
  kiln_target target = {.cc = 80};
  kiln_module *module;
  kiln_image *image;

  ck_kiln_ok(kiln_compile(&image, f.rt, &saxpy, &target));
  ck_kiln_ok(kiln_module_from_image(&module, f.device, image));
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_PTX);
  ck_assert_ptr_nonnull(
      strstr(kiln_module_ladder(module)->reason[KILN_RUNG_LOWER],
             "CUDA_ERROR_NO_BINARY_FOR_GPU"));
  /* The image is not removed from the cache, since it is valid for its own
   * GPU. */
  ck_assert_uint_eq(rejected(), 0);
  kiln_module_free(module);
  kiln_image_free(image);
}
END_TEST

START_TEST(ptx_that_was_asked_for_stays_ptx)
{
  kiln_target target = {.cc = 75, .ptx = true};
  kiln_module *module;
  kiln_image *image;

  ck_kiln_ok(kiln_compile(&image, f.rt, &saxpy, &target));
  ck_assert_ptr_null(kiln_image_cubin(image, NULL));
  ck_kiln_ok(kiln_module_from_image(&module, f.device, image));
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_PTX);
  kiln_module_free(module);
  kiln_image_free(image);
}
END_TEST

START_TEST(compile_errors_come_through)
{
  const kiln_program_desc bad = {.source = "#error no\n", .name = "bad.cu"};
  kiln_module *module = f.module;

  ck_kiln_is(kiln_module_load(&module, f.device, &bad), KILN_ECOMPILE);
  ck_assert_ptr_null(module);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "bad.cu"));
}
END_TEST

START_TEST(null_arguments_are_refused)
{
  kiln_module *module;
  kiln_kernel *kernel;

  ck_kiln_is(kiln_module_load(NULL, f.device, &saxpy), KILN_EINVAL);
  ck_kiln_is(kiln_module_load(&module, NULL, &saxpy), KILN_EINVAL);
  ck_kiln_is(kiln_module_load(&module, f.device, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_module_from_image(&module, f.device, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_module_wrap(&module, f.device, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_module_kernel(&kernel, f.module, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_module_kernel(&kernel, NULL, "x"), KILN_EINVAL);
  ck_kiln_is(kiln_module_kernel(NULL, f.module, "x"), KILN_EINVAL);
  ck_kiln_is(kiln_module_symbol(f.module, NULL, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_kernel_describe(NULL, NULL), KILN_EINVAL);
  kiln_module_free(NULL);
  ck_assert_ptr_null(kiln_module_image(NULL));
  ck_assert_ptr_null(kiln_module_ladder(NULL));
  ck_assert_ptr_null(kiln_module_handle(NULL));
  ck_assert_ptr_null(kiln_kernel_handle(NULL));
  ck_assert_ptr_null(kiln_kernel_module(NULL));
}
END_TEST

/* ---- Refusals by the driver ---------------------------------------------- */

static const int refusals[] = {
    CUDA_ERROR_INVALID_IMAGE,  CUDA_ERROR_NO_BINARY_FOR_GPU,
    CUDA_ERROR_INVALID_PTX,    CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    CUDA_ERROR_INVALID_SOURCE, CUDA_ERROR_FILE_NOT_FOUND};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

/* Kiln removes a cached image that the driver refuses, and compiles it again.
 */
START_TEST(refused_cached_image_is_rebuilt)
{
  kiln_module *module;

  f.cuda->rc[FAKE_CUDA_moduleLoadDataEx] = 0;
  f.cuda->cubin_rc = 0;
  f.cuda->rc[FAKE_CUDA_moduleLoadDataEx] = refusals[_i];
  f.cuda->times[FAKE_CUDA_moduleLoadDataEx] = 1;
  ck_kiln_ok(kiln_module_load(&module, f.device, &saxpy));
  ck_assert_int_eq(f.nvrtc->compiles, 2);
  ck_assert_uint_eq(rejected(), 1);
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_EXACT);
  ck_assert_int_eq(kiln_image_origin(kiln_module_image(module)),
                   KILN_FROM_COMPILER);
  get_kernel(module, "saxpy");
  kiln_module_free(module);
}
END_TEST

START_TEST(refused_machine_code_falls_back_to_ptx)
{
  kiln_module *module;

  f.cuda->cubin_rc = refusals[_i];
  ck_kiln_ok(kiln_module_load(&module, f.device, &saxpy));
  /* The program was compiled again exactly once. */
  ck_assert_int_eq(f.nvrtc->compiles, 2);
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_PTX);
  ck_assert(kiln_module_ladder(module)->target.ptx);
  ck_assert_ptr_nonnull(strstr(
      kiln_module_ladder(module)->reason[KILN_RUNG_EXACT], "CUDA_ERROR"));
  get_kernel(module, "saxpy");
  kiln_module_free(module);
}
END_TEST

START_TEST(all_refused_says_why)
{
  kiln_module *module;

  f.cuda->cubin_rc = CUDA_ERROR_NO_BINARY_FOR_GPU;
  f.cuda->ptx_rc = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  f.cuda->jit_log = "ptxas application ptx input, line 9; fatal : \xff nope";
  ck_kiln_is(kiln_module_load(&module, f.device, &saxpy), KILN_EDRIVER);
  ck_assert_ptr_null(module);
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->message, "CUDA_ERROR_NO_BINARY_FOR_GPU (209)"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message,
                               "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"));
  ck_assert_int_eq(kiln_last_error()->native,
                   CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  ck_assert_str_eq(kiln_last_error()->call, "cuModuleLoadDataEx");
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "line 9"));
  ck_assert_str_ne(kiln_last_error()->hint, "");
}
END_TEST

START_TEST(a_log_that_fills_its_buffer_is_cut)
{
  static char text[20000];
  kiln_module *module;

  memset(text, 'x', sizeof text - 1);
  f.cuda->cubin_rc = CUDA_ERROR_INVALID_IMAGE;
  f.cuda->ptx_rc = CUDA_ERROR_INVALID_PTX;
  f.cuda->jit_log = text;
  ck_kiln_is(kiln_module_load(&module, f.device, &saxpy), KILN_EDRIVER);
  ck_assert_uint_ge(strlen(kiln_last_error()->log), KILN_ERROR_LOG_SIZE - 8);
  ck_assert_uint_lt(strlen(kiln_last_error()->log), KILN_ERROR_LOG_SIZE);
}
END_TEST

START_TEST(rebuilding_without_nvrtc_still_tries_ptx)
{
  kiln_module *module;

  f.cuda->cubin_rc = CUDA_ERROR_NO_BINARY_FOR_GPU;
  f.nvrtc->rc[FAKE_NVRTC_createProgram] = 1;
  ck_kiln_ok(kiln_module_load(&module, f.device, &saxpy));
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_PTX);
  kiln_module_free(module);
}
END_TEST

/* A failure of the device does not show that the image is bad, so the cache
 * keeps the image. */
START_TEST(other_failures_leave_the_cache_alone)
{
  static const struct {
    int rc;
    kiln_status want;
  } rows[] = {{CUDA_ERROR_OUT_OF_MEMORY, KILN_EDEVMEM},
              {CUDA_ERROR_ILLEGAL_ADDRESS, KILN_ESTICKY},
              {CUDA_ERROR_UNKNOWN, KILN_EDRIVER}};
  kiln_module *module;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    f.cuda->rc[FAKE_CUDA_moduleLoadDataEx] = rows[i].rc;
    ck_kiln_is(kiln_module_load(&module, f.device, &saxpy), rows[i].want);
    ck_assert_ptr_null(module);
  }
  f.cuda->rc[FAKE_CUDA_moduleLoadDataEx] = 0;
  ck_assert_uint_eq(rejected(), 0);
  ck_assert_int_eq(f.nvrtc->compiles, 1);
}
END_TEST

START_TEST(no_context_no_module)
{
  const kiln_program_desc other = {.source = SAXPY "//\n"};
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_device *device;
  kiln_module *module;

  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, &own));
  f.cuda->rc[FAKE_CUDA_ctxCreate] = CUDA_ERROR_OUT_OF_MEMORY;
  ck_kiln_is(kiln_module_load(&module, device, &other), KILN_EDEVMEM);
  ck_assert_ptr_null(module);
  ck_assert_str_eq(kiln_last_error()->call, "cuCtxCreate_v2");
  f.cuda->rc[FAKE_CUDA_ctxCreate] = 0;
  kiln_device_free(device);
}
END_TEST

START_TEST(a_driver_older_than_the_compiler_is_refused_with_the_cure)
{
  kiln_module *module;

  f.rt->driver.version = 12020;
  ck_kiln_is(kiln_module_load(&module, f.device, &saxpy), KILN_EUNSUPPORTED);
  ck_assert_ptr_null(module);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "12.2"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "NVRTC 12"));
}
END_TEST

START_TEST(refusal_of_the_ladder_names_the_cause)
{
  kiln_module *module;

  /* This GPU is older than every GPU that the installed NVRTC libraries
   * support. */
  f.device->traits.cc = 30;
  ck_kiln_is(kiln_module_load(&module, f.device, &saxpy), KILN_EUNSUPPORTED);
  ck_assert_ptr_null(module);
  ck_assert_str_ne(kiln_last_error()->message, "");
  ck_assert_str_ne(kiln_last_error()->hint, "");
}
END_TEST

/* Counts the contexts that exist while a compile thread compiles. The context
 * must be created concurrently. */
static atomic_int contexts_during_compile;

static void look_at_context(void *user)
{
  const fixture *fix = user;

  for (int i = 0; i < 2000 && fix->cuda->retained == 0; i++)
    kiln__sleep_ns(1000000);
  atomic_store(&contexts_during_compile, fix->cuda->retained);
}

START_TEST(context_is_made_beside_the_compile)
{
  atomic_store(&contexts_during_compile, -1);
  f.nvrtc->on_compile = look_at_context;
  f.nvrtc->user = &f;
  f.module = load_source(f.device, SAXPY);
  f.nvrtc->on_compile = NULL;
  ck_assert_int_eq(atomic_load(&contexts_during_compile), 1);
}
END_TEST

/* ---- Kernels ------------------------------------------------------------- */

START_TEST(a_kernel_is_found_once_and_described)
{
  kiln_kernel *kernel = get_kernel(f.module, "saxpy");
  kiln_kernel_info info;

  ck_assert_ptr_eq(get_kernel(f.module, "saxpy"), kernel);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_moduleGetFunction], 1);
  ck_assert_ptr_eq(kiln_kernel_module(kernel), f.module);
  ck_assert_ptr_nonnull(kiln_kernel_handle(kernel));
  ck_assert_uint_eq((uintptr_t)kernel % 64, 0);
  ck_kiln_ok(kiln_kernel_describe(kernel, &info));
  ck_assert_str_eq(info.name, "saxpy");
  ck_assert_int_eq(info.registers, 16);
  ck_assert_int_eq(info.max_threads, 1024);
  ck_assert(info.params_known);
  ck_assert_int_eq(info.n_params, 4);
  ck_assert_uint_eq(info.sizes[0], 4);
  ck_assert_uint_eq(info.sizes[1], 8);
  ck_assert_uint_eq(info.sizes[2], 8);
  ck_assert_uint_eq(info.sizes[3], 4);
}
END_TEST

START_TEST(name_expressions_find_templates)
{
  const char *const names[] = {"scale<float, 4>", "scale<int, 2>"};
  const kiln_program_desc desc = {
      .source = "template <class T, int N> __global__ void scale(T *x) {}\n",
      .names = names,
      .n_names = 2};
  kiln_kernel *a, *b;

  ck_kiln_ok(kiln_module_load(&f.module, f.device, &desc));
  a = get_kernel(f.module, "scale<float, 4>");
  b = get_kernel(f.module, "scale<int, 2>");
  ck_assert_ptr_ne(a, b);
  /* The kernel is also found by its lowered name. */
  ck_assert_ptr_eq(get_kernel(f.module, a->name), a);
}
END_TEST

START_TEST(a_missing_kernel_is_named_with_those_there)
{
  kiln_kernel *kernel = (kiln_kernel *)&f;

  ck_kiln_is(kiln_module_kernel(&kernel, f.module, "sax"), KILN_ENOTFOUND);
  ck_assert_ptr_null(kernel);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "\"sax\""));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "saxpy"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "empty"));
}
END_TEST

/* Drivers before 12.4 do not report the sizes of kernel parameters, so Kiln
 * reads the sizes from the PTX. */
START_TEST(parameters_come_from_ptx_on_older_drivers)
{
  const char *source =
      "struct s { char c[24]; };\n"
      "extern \"C\" __global__ void k(s by_value, char c, double d) //params "
      "24,1,8\n{}\n";
  kiln_kernel_info info;

  f.rt->driver.funcGetParamInfo = NULL;
  f.module = load_source(f.device, source);
  ck_kiln_ok(kiln_kernel_describe(get_kernel(f.module, "k"), &info));
  ck_assert(info.params_known);
  ck_assert_int_eq(info.n_params, 3);
  ck_assert_uint_eq(info.sizes[0], 24);
  ck_assert_uint_eq(info.sizes[1], 1);
  ck_assert_uint_eq(info.sizes[2], 8);
}
END_TEST

static const char wrapped_ptx[] =
    "//\n.version 8.0\n.target sm_90\n.address_size 64\n\n"
    ".visible .entry k(\n\t.param .u64 k_param_0,\n"
    "\t.param .align 8 .b8 k_param_1[16]\n)\n{\n\tret;\n}\n";

START_TEST(a_wrapped_module_stays_the_callers)
{
  kiln_kernel_info info;
  kiln_module *module;
  CUmodule handle;
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(f.rt->driver.moduleLoadData(&handle, wrapped_ptx), 0);
  kiln__leave(&scope);

  f.rt->driver.funcGetParamInfo = NULL;
  ck_kiln_ok(kiln_module_wrap(&module, f.device, handle, wrapped_ptx));
  ck_assert_ptr_null(kiln_module_image(module));
  ck_assert_ptr_null(kiln_module_ladder(module));
  ck_kiln_ok(kiln_kernel_describe(get_kernel(module, "k"), &info));
  ck_assert_int_eq(info.n_params, 2);
  ck_assert_uint_eq(info.sizes[1], 16);
  kiln_module_free(module);

  ck_kiln_ok(kiln_module_wrap(&module, f.device, handle, NULL));
  ck_kiln_ok(kiln_kernel_describe(get_kernel(module, "k"), &info));
  ck_assert(!info.params_known);
  kiln_module_free(module);
  ck_assert_int_eq(f.cuda->modules, 1);
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(f.rt->driver.moduleUnload(handle), 0);
  kiln__leave(&scope);
}
END_TEST

START_TEST(kernel_failures_leave_nothing)
{
  kiln_kernel *kernel;

  for (int i = 0; i < 8; i++) {
    f.cuda->rc[FAKE_CUDA_funcGetAttribute] = CUDA_ERROR_UNKNOWN;
    f.cuda->skip[FAKE_CUDA_funcGetAttribute] = i;
    ck_kiln_is(kiln_module_kernel(&kernel, f.module, "saxpy"), KILN_EDRIVER);
    ck_assert_ptr_null(kernel);
    check_calm();
  }
  f.cuda->rc[FAKE_CUDA_funcGetAttribute] = 0;
  get_kernel(f.module, "saxpy");
}
END_TEST

static void *find_kernels(void *arg)
{
  kiln_kernel **a = arg, *b;

  if (kiln_module_kernel(a, f.module, "saxpy") != KILN_OK ||
      kiln_module_kernel(&b, f.module, "empty") != KILN_OK)
    return "a kernel was not found";
  return *a != b ? NULL : "two kernels are one";
}

START_TEST(threads_get_the_same_kernel)
{
  kiln_kernel *found[8];

  test_threads(8, find_kernels, found, sizeof found[0]);
  for (int i = 0; i < 8; i++) {
    ck_assert_ptr_nonnull(found[i]);
    ck_assert_ptr_eq(found[i], found[0]);
  }
}
END_TEST

static void *load_module(void *arg)
{
  kiln_module *module;

  (void)arg;
  if (kiln_module_load(&module, f.device, &saxpy) != KILN_OK)
    return "not loaded";
  kiln_module_free(module);
  return NULL;
}

START_TEST(threads_load_one_program_and_compile_it_once)
{
  f.nvrtc->delay_ms = 20;
  test_threads(8, load_module, NULL, 0);
  ck_assert_int_eq(f.nvrtc->compiles, 1);
  f.nvrtc->delay_ms = 0;
}
END_TEST

/* ---- Symbols ------------------------------------------------------------- */

START_TEST(symbols_are_read_and_written)
{
  const int ones[4] = {1, 1, 1, 1};
  int back[16];
  CUdeviceptr address;
  size_t size;

  ck_kiln_ok(kiln_module_symbol(f.module, "counter", &address, &size));
  ck_assert(address != 0);
  ck_assert_uint_eq(size, 64);
  ck_kiln_ok(kiln_module_symbol(f.module, "counter", NULL, NULL));
  ck_kiln_ok(kiln_symbol_write(f.module, "counter", 48, ones, sizeof ones));
  ck_kiln_ok(kiln_symbol_read(f.module, "counter", 0, back, sizeof back));
  ck_assert_int_eq(back[11], 0);
  ck_assert_int_eq(back[12], 1);
  ck_assert_int_eq(back[15], 1);
  ck_kiln_is(kiln_symbol_write(f.module, "counter", 49, ones, sizeof ones),
             KILN_EINVAL);
  ck_kiln_is(kiln_symbol_read(f.module, "counter", 65, back, 0), KILN_EINVAL);
  ck_kiln_is(kiln_symbol_read(f.module, "counter", SIZE_MAX, back, 2),
             KILN_EINVAL);
  ck_kiln_ok(kiln_symbol_read(f.module, "counter", 64, back, 0));
  address = 1;
  ck_kiln_is(kiln_module_symbol(f.module, "nowhere", &address, &size),
             KILN_ENOTFOUND);
  ck_assert(address == 0 && size == 0);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "nowhere"));
}
END_TEST

/* ---- Capture ------------------------------------------------------------- */

/* While another stream is captured in the strictest mode, each feature is used
 * for the first time: loading, look-up, symbols, unloading. The capture stays
 * valid. */
START_TEST(loading_in_a_capture_leaves_it_whole)
{
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  kiln_launch_config c = config;
  kiln_stream *stream;
  kiln_module *module;
  kiln_kernel *kernel;
  kiln__scope scope;
  CUgraph graph;
  int zero = 0;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamBeginCapture(kiln_stream_handle(stream),
                                      CU_STREAM_CAPTURE_MODE_GLOBAL),
      0);
  kiln__leave(&scope);
  c.stream = stream;

  module = load_source(f.device, SAXPY "// in a capture\n");
  kernel = get_kernel(module, "empty");
  ck_kiln_ok(kiln_symbol_write(module, "counter", 0, &zero, sizeof zero));
  ck_kiln_ok(kiln_launch(kernel, &c, NULL, 0));
  /* This call unloads another module during the capture. */
  kiln_module_free(f.module);
  f.module = NULL;

  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph), 0);
  ck_assert_int_eq(f.rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  kiln_module_free(module);
  kiln_stream_free(stream);
}
END_TEST

START_TEST(wherever_the_driver_fails_nothing_is_lost)
{
  kiln_status st = KILN_EDRIVER;
  long at = 0;

  f.cuda->fail_rc = CUDA_ERROR_UNKNOWN;
  for (; st != KILN_OK && at < 500; at++) {
    kiln_device *device = NULL;
    kiln_module *module = NULL;
    kiln_kernel *kernel;
    const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};

    f.cuda->all_calls = 0;
    f.cuda->fail_at = at;
    st = kiln_device_open(&device, f.rt, 0, &own);
    if (st == KILN_OK)
      st = kiln_module_load(&module, device, &saxpy);
    if (st == KILN_OK)
      st = kiln_module_kernel(&kernel, module, "saxpy");
    if (f.cuda->all_calls <= at)
      at = 500; /* Every driver call has failed once, so end the loop. */
    f.cuda->fail_at = -1;
    check_calm();
    kiln_module_free(module);
    kiln_device_free(device);
    ck_assert_int_eq(fake_cuda_live(f.cuda), 0);
    st = at >= 500 ? KILN_OK : KILN_EDRIVER;
  }
  ck_assert_int_ge(at, 500);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("module");
  TCase *t;

  kiln_test_case(s, "device", 30, set_up_device, tear_down,
                 TESTS(context_is_made_beside_the_compile,
                       loads_from_an_image_that_may_be_freed,
                       machine_code_of_another_gpu_falls_back_to_its_ptx,
                       ptx_that_was_asked_for_stays_ptx,
                       refusal_of_the_ladder_names_the_cause,
                       name_expressions_find_templates,
                       parameters_come_from_ptx_on_older_drivers,
                       a_wrapped_module_stays_the_callers,
                       threads_load_one_program_and_compile_it_once,
                       wherever_the_driver_fails_nothing_is_lost));
  t = kiln_test_case(
      s, "module", 30, set_up_module, tear_down,
      TESTS(loads_machine_code_for_the_gpu, second_load_compiles_nothing,
            compile_errors_come_through, null_arguments_are_refused,
            all_refused_says_why, a_log_that_fills_its_buffer_is_cut,
            rebuilding_without_nvrtc_still_tries_ptx,
            other_failures_leave_the_cache_alone, no_context_no_module,
            a_driver_older_than_the_compiler_is_refused_with_the_cure,
            a_kernel_is_found_once_and_described,
            a_missing_kernel_is_named_with_those_there,
            kernel_failures_leave_nothing, threads_get_the_same_kernel,
            symbols_are_read_and_written,
            loading_in_a_capture_leaves_it_whole));
  tcase_add_loop_test(t, refused_cached_image_is_rebuilt, 0, REFUSALS);
  tcase_add_loop_test(t, refused_machine_code_falls_back_to_ptx, 0, REFUSALS);
  return kiln_test_run(s);
}
