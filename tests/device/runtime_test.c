/* runtime_test.c -- devices, contexts, modules and streams on the device under
 * test. */
#include "gpu_fixture.h"

#include "program/program.h"

#include <pthread.h>

static const char source[] =
    "struct pair { double d; char c; };\n"
    "__device__ int counter = 5;\n"
    "__constant__ float factors[4];\n"
    "__managed__ int shared_with_host = 7;\n"
    "extern \"C\" __global__ void add(int *out, int n, pair p)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    out[i] += i + (int)p.d + p.c + counter + (int)factors[i % 4];\n"
    "}\n"
    "template <class T> __global__ void fill(T *out, T value)\n"
    "{\n"
    "  out[threadIdx.x] = value;\n"
    "}\n";

static const char *const names[] = {"fill<double>", "&counter", "&factors"};
static const kiln_program_desc desc = {
    .source = source, .names = names, .n_names = 3};

static kiln_module *load(kiln_device *device)
{
  kiln_module *module = NULL;

  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  return module;
}

START_TEST(the_device_describes_itself)
{
  const kiln_traits *t = kiln_device_traits(g.device);
  kiln_device_info info;
  kiln_traits table;
  int value;

  ck_kiln_ok(kiln_device_describe(g.device, &info));
  ck_kiln_ok(kiln_arch_traits(t->cc, &table));
  printf("%s, %d.%d, %d SMs, %s, %s\n", info.name, t->cc / 10, t->cc % 10,
         info.sm_count, info.uuid, info.pci);
  ck_assert_str_ne(info.name, "");
  ck_assert_uint_eq(strlen(info.uuid), 40);
  ck_assert_int_gt(info.sm_count, 0);
  ck_assert(info.memory_bytes > 0);
  /* Kiln's table of architectures must agree with the attributes of the GPU. */
  ck_assert_int_eq(t->max_threads_per_sm, table.max_threads_per_sm);
  ck_assert_int_eq(t->regs_per_sm, table.regs_per_sm);
  ck_assert_int_eq(t->smem_per_sm, table.smem_per_sm);
  ck_assert_int_eq(t->smem_per_block, table.smem_per_block);
  ck_assert_int_eq(t->smem_per_block_optin, table.smem_per_block_optin);
  ck_assert_int_eq(t->smem_reserved_per_block, table.smem_reserved_per_block);
  ck_assert_int_eq(t->max_blocks_per_sm, table.max_blocks_per_sm);
  ck_kiln_ok(kiln_device_attribute(g.device, 16, &value));
  ck_assert_int_eq(value, info.sm_count);
}
END_TEST

START_TEST(the_best_code_loads_and_kernels_are_known)
{
  kiln_module *module = load(g.device);
  kiln_kernel_info info;
  uint32_t sizes[8];
  size_t n = 0, size;
  const char *ptx = kiln_image_ptx(kiln_module_image(module), &size);

  ck_assert_int_eq(kiln_module_ladder(module)->rung,
                   on_cpu() ? KILN_RUNG_PTX : KILN_RUNG_EXACT);
  ck_kiln_ok(kiln_kernel_describe(gpu_kernel(module, "add"), &info));
  ck_assert(info.params_known);
  ck_assert_int_eq(info.n_params, 3);
  ck_assert_uint_eq(info.sizes[0], 8);
  ck_assert_uint_eq(info.sizes[1], 4);
  ck_assert_uint_eq(info.sizes[2], 16);
  ck_assert_int_gt(info.registers, 0);
  ck_assert_int_eq(info.binary_version, kiln_device_traits(g.device)->cc);
  /* The parameters in the PTX must agree with those that the driver reports. */
  ck_assert(kiln__image_ptx_params(ptx, size, "add", sizes, 8, &n));
  ck_assert_uint_eq(n, 3);
  ck_assert_mem_eq(sizes, info.sizes, 3 * sizeof sizes[0]);
  ck_assert_ptr_eq(gpu_kernel(module, "fill<double>"),
                   gpu_kernel(module, "fill<double>"));
  kiln_module_free(module);
}
END_TEST

START_TEST(a_missing_kernel_is_named_with_those_there)
{
  kiln_module *module = load(g.device);
  kiln_kernel *kernel;

  ck_kiln_is(kiln_module_kernel(&kernel, module, "nothing"), KILN_ENOTFOUND);
  ck_assert_ptr_null(kernel);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "add"));
  kiln_module_free(module);
}
END_TEST

START_TEST(symbols_reach_the_kernel)
{
  const kiln_launch_config config = kiln_launch_1d(8, 32);
  const float factors[4] = {100, 200, 300, 400};
  const struct {
    double d;
    char c;
  } p = {1000, 1};
  kiln_module *module = load(g.device);
  CUdeviceptr out = gpu_alloc(g.device, 32), address;
  int n = 8, back[8], counter = 0;
  size_t size;

  ck_kiln_ok(kiln_module_symbol(module, "&factors", &address, &size));
  ck_assert_uint_eq(size, 16);
  ck_kiln_ok(kiln_symbol_read(module, "&counter", 0, &counter, 4));
  ck_assert_int_eq(counter, 5);
  counter = 50;
  ck_kiln_ok(kiln_symbol_write(module, "&counter", 0, &counter, 4));
  ck_kiln_ok(kiln_symbol_write(module, "&factors", 0, factors, 16));
  ck_kiln_ok(kiln_symbol_write(module, "&factors", 4, &factors[3], 4));
  ck_kiln_is(kiln_symbol_write(module, "&factors", 4, factors, 16),
             KILN_EINVAL);
  ck_kiln_is(kiln_module_symbol(module, "nowhere", &address, &size),
             KILN_ENOTFOUND);
  ck_kiln_ok(kiln_symbol_read(module, "shared_with_host", 0, &counter, 4));
  ck_assert_int_eq(counter, 7);
  ck_kiln_ok(kiln_fill(g.device, out, 0, 4, 8));
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "add"), &config, KILN_ARG(out),
                         KILN_ARG(n), KILN_ARG(p)));
  ck_kiln_ok(kiln_copy_to_host(g.device, back, out, sizeof back));
  for (int i = 0; i < 8; i++)
    ck_assert_int_eq(back[i], i + 1000 + 1 + 50 +
                                  (i % 4 == 1 ? 400 : (int)factors[i % 4]));
  ck_kiln_ok(kiln_memory_free(g.device, out));
  kiln_module_free(module);
}
END_TEST

/* ---- Other kinds of images ----------------------------------------------- */

static void run_image(const kiln_target *target, kiln_rung want)
{
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {4, 1, 1}};
  CUdeviceptr out = gpu_alloc(g.device, 32);
  double value = 1.5, back[4];
  kiln_module *module;
  kiln_image *image;

  ck_kiln_ok(kiln_compile(&image, g.rt, &desc, target));
  ck_kiln_ok(kiln_module_from_image(&module, g.device, image));
  kiln_image_free(image);
  ck_assert_int_eq(kiln_module_ladder(module)->rung, want);
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "fill<double>"), &config,
                         KILN_ARG(out), KILN_ARG(value)));
  ck_kiln_ok(kiln_copy_to_host(g.device, back, out, sizeof back));
  ck_assert_double_eq(back[3], 1.5);
  kiln_module_free(module);
  ck_kiln_ok(kiln_memory_free(g.device, out));
}

/* Returns 7.5, which every NVRTC library here supports, or the capability of
 * the device if it is lower. */
static int older_cc(void)
{
  const int cc = kiln_device_traits(g.device)->cc;

  return cc < 75 ? cc : 75;
}

START_TEST(ptx_is_assembled_by_the_driver)
{
  const kiln_target target = {.cc = older_cc(), .ptx = true};

  run_image(&target, KILN_RUNG_PTX);
}
END_TEST

START_TEST(machine_code_of_another_gpu_falls_back_to_its_ptx)
{
  const kiln_target target = {.cc = older_cc()};

  if (kiln_device_traits(g.device)->cc / 10 == 7 && !on_cpu()) {
    printf("skipped: the GPU is itself of major 7\n");
    return;
  }
  run_image(&target, KILN_RUNG_PTX);
}
END_TEST

START_TEST(a_callers_module_is_used)
{
  kiln_module *ours = load(g.device), *wrapped;
  kiln_kernel_info info;
  const kiln_image *image = kiln_module_image(ours);
  kiln__scope scope;
  CUmodule handle = NULL;

  ck_kiln_ok(kiln__enter(g.device, &scope));
  ck_assert_int_eq(g.rt->driver.moduleLoadData(
                       &handle, on_cpu() ? kiln_image_ptx(image, NULL)
                                         : kiln_image_cubin(image, NULL)),
                   0);
  kiln__leave(&scope);
  ck_kiln_ok(kiln_module_wrap(&wrapped, g.device, handle,
                              kiln_image_ptx(kiln_module_image(ours), NULL)));
  ck_kiln_ok(kiln_kernel_describe(gpu_kernel(wrapped, "add"), &info));
  ck_assert_int_eq(info.n_params, 3);
  kiln_module_free(wrapped);
  ck_kiln_ok(kiln__enter(g.device, &scope));
  ck_assert_int_eq(g.rt->driver.moduleUnload(handle), 0);
  kiln__leave(&scope);
  kiln_module_free(ours);
}
END_TEST

/* ---- Contexts ------------------------------------------------------------ */

static void use(kiln_device *device, int value)
{
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {4, 1, 1}};
  kiln_module *module = load(device);
  CUdeviceptr out = gpu_alloc(device, 32);
  double d = value, back[4];

  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "fill<double>"), &config,
                         KILN_ARG(out), KILN_ARG(d)));
  ck_kiln_ok(kiln_copy_to_host(device, back, out, sizeof back));
  ck_assert_double_eq(back[0], d);
  ck_kiln_ok(kiln_memory_free(device, out));
  kiln_module_free(module);
}

START_TEST(two_contexts_on_one_gpu)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  CUcontext first, second;
  kiln_device *other;

  ck_kiln_ok(kiln_device_open(&other, g.rt, 0, &own));
  ck_kiln_ok(kiln_device_context(g.device, &first));
  ck_kiln_ok(kiln_device_context(other, &second));
  ck_assert_ptr_ne(first, second);
  use(g.device, 1);
  use(other, 2);
  use(g.device, 3);
  ck_assert_ptr_null(current_context());
  kiln_device_free(other);
  use(g.device, 4);
}
END_TEST

START_TEST(a_foreign_context_is_borrowed)
{
  const kiln_device_opts opts = {.context = KILN_CONTEXT_FOREIGN};
  kiln_device *device;

  ck_assert_int_eq(g.rt->driver.ctxCreate(&g.outer, 0, 0), 0);
  ck_kiln_ok(kiln_device_open(&device, g.rt, -1, &opts));
  use(device, 5);
  /* uses the primary context while the foreign one is current */
  use(g.device, 6);
  ck_assert_ptr_eq(current_context(), g.outer);
  kiln_device_free(device);
  ck_assert_ptr_eq(current_context(), g.outer);
  ck_assert_int_eq(g.rt->driver.ctxDestroy(g.outer), 0);
  g.outer = NULL;
}
END_TEST

/* If the application has destroyed a context, freeing the objects in it must do
 * no harm. */
START_TEST(a_destroyed_context_is_survived)
{
  const kiln_device_opts opts = {.context = KILN_CONTEXT_FOREIGN};
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {4, 1, 1}};
  kiln_device *device;
  kiln_module *module;
  kiln_kernel *kernel;
  kiln_stream *stream;
  kiln_event *event;
  CUdeviceptr none = 0;
  double value = 0;
  CUcontext context, popped;

  ck_assert_int_eq(g.rt->driver.ctxCreate(&context, 0, 0), 0);
  ck_kiln_ok(kiln_device_open(&device, g.rt, -1, &opts));
  module = load(device);
  kernel = gpu_kernel(module, "fill<double>");
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  ck_kiln_ok(kiln_event_create(&event, device, true));
  g.rt->driver.ctxPopCurrent(&popped);
  ck_assert_int_eq(g.rt->driver.ctxDestroy(context), 0);
  ck_assert_int_ne(
      KILN_LAUNCH(kernel, &config, KILN_ARG(none), KILN_ARG(value)), KILN_OK);
  printf("launch in a destroyed context: %s\n", kiln_last_error()->message);
  kiln_event_free(event);
  kiln_stream_free(stream);
  kiln_module_free(module);
  kiln_device_free(device);
  use(g.device, 7);
}
END_TEST

START_TEST(a_reset_device_is_survived)
{
  kiln_module *module = load(g.device);
  kiln_stream *stream;

  gpu_kernel(module, "add");
  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  ck_assert_int_eq(g.rt->driver.devicePrimaryCtxReset(0), 0);
  kiln_stream_free(stream);
  kiln_module_free(module);
  kiln_device_free(g.device);
  ck_kiln_ok(kiln_device_open(&g.device, g.rt, 0, NULL));
  use(g.device, 8);
}
END_TEST

/* ---- Streams ------------------------------------------------------------- */

START_TEST(streams_of_every_kind)
{
  const kiln_launch_config base = {.grid = {1, 1, 1}, .block = {4, 1, 1}};
  kiln_module *module = load(g.device);
  kiln_kernel *kernel = gpu_kernel(module, "fill<double>");
  CUdeviceptr out = gpu_alloc(g.device, 32);
  double back[4];

  for (int kind = 0; kind < 6; kind++) {
    const kiln_stream_opts opts = {.blocking = kind == 1,
                                   .priority = kind == 2 ? -100 : 0};
    kiln_launch_config config = base;
    kiln_stream *stream;
    double value = kind + 10;

    if (kind < 3)
      ck_kiln_ok(kiln_stream_create(&stream, g.device, &opts));
    else /* the default, the legacy and the per-thread stream */
      ck_kiln_ok(
          kiln_stream_wrap(&stream, g.device, (CUstream)(uintptr_t)(kind - 3)));
    config.stream = stream;
    ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(out), KILN_ARG(value)));
    ck_kiln_ok(kiln_stream_synchronize(stream));
    ck_kiln_ok(kiln_stream_query(stream));
    ck_kiln_ok(kiln_copy_to_host(g.device, back, out, sizeof back));
    ck_assert_double_eq(back[3], value);
    kiln_stream_free(stream);
  }
  ck_kiln_ok(kiln_memory_free(g.device, out));
  kiln_module_free(module);
}
END_TEST

START_TEST(events_order_and_time)
{
  kiln_module *module = gpu_load(g.device, SPIN);
  kiln_kernel *spin = gpu_kernel(module, "spin");
  kiln_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  kiln_stream *a, *b;
  kiln_event *from, *to;
  long long ns = 20000000;
  float ms = 0;

  ck_kiln_ok(kiln_stream_create(&a, g.device, NULL));
  ck_kiln_ok(kiln_stream_create(&b, g.device, NULL));
  ck_kiln_ok(kiln_event_create(&from, g.device, true));
  ck_kiln_ok(kiln_event_create(&to, g.device, true));
  config.stream = a;
  ck_kiln_ok(kiln_event_record(from, a));
  ck_kiln_ok(KILN_LAUNCH(spin, &config, KILN_ARG(ns)));
  ck_kiln_ok(kiln_event_record(to, a));
  ck_kiln_is(kiln_event_query(to), KILN_ENOTREADY);
  ck_kiln_is(kiln_stream_query(a), KILN_ENOTREADY);
  ck_kiln_is(kiln_event_elapsed(&ms, from, to), KILN_ENOTREADY);
  ck_kiln_ok(kiln_stream_wait(b, to));
  ck_kiln_ok(kiln_stream_synchronize(b));
  ck_kiln_ok(kiln_event_query(to)); /* stream b has waited for this event */
  ck_kiln_ok(kiln_event_elapsed(&ms, from, to));
  ck_assert_float_ge(ms, 19.5f);
  /* A slow machine may add much; a wrong unit would give 20,000. */
  ck_assert_float_lt(ms, 10000.0f);
  kiln_event_free(to);
  kiln_event_free(from);
  kiln_stream_free(b);
  kiln_stream_free(a);
  kiln_module_free(module);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

static void *worker(void *arg)
{
  const int value = (int)(intptr_t)arg;
  CUcontext current;

  for (int i = 0; i < 5; i++)
    use(g.device, value * 10 + i);
  g.rt->driver.ctxGetCurrent(&current);
  return current == NULL ? NULL : "a context was left";
}

START_TEST(threads_work_side_by_side)
{
  pthread_t threads[8];
  void *complaint;

  for (intptr_t i = 0; i < 8; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], &complaint);
    ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
  }
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("runtime on a GPU");
  TCase *t = tcase_create("runtime");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, gpu_set_up, gpu_tear_down);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, the_device_describes_itself);
  tcase_add_test(t, the_best_code_loads_and_kernels_are_known);
  tcase_add_test(t, a_missing_kernel_is_named_with_those_there);
  tcase_add_test(t, symbols_reach_the_kernel);
  tcase_add_test(t, ptx_is_assembled_by_the_driver);
  tcase_add_test(t, machine_code_of_another_gpu_falls_back_to_its_ptx);
  tcase_add_test(t, a_callers_module_is_used);
  tcase_add_test(t, two_contexts_on_one_gpu);
  tcase_add_test(t, a_foreign_context_is_borrowed);
  tcase_add_test(t, a_destroyed_context_is_survived);
  tcase_add_test(t, a_reset_device_is_survived);
  tcase_add_test(t, streams_of_every_kind);
  tcase_add_test(t, events_order_and_time);
  tcase_add_test(t, threads_work_side_by_side);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
