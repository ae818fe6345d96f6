/* launch_test.c -- tests launches on the fake driver: grids, checks of
 * arguments and limits, the driver calls, and occupancy. */
#include "device_fixture.h"

#include <pthread.h>

static kiln_kernel *kernel;

static void set_up(void)
{
  set_up_module();
  kernel = get_kernel(f.module, "saxpy");
}

static const kiln_launch_config one = {.grid = {1, 1, 1}, .block = {32, 1, 1}};

static float a = 2.5f;
static CUdeviceptr x = 0x1000, y = 0x2000;
static uint32_t n = 77;

static kiln_status launch(const kiln_launch_config *config)
{
  return KILN_LAUNCH(kernel, config, KILN_ARG(a), KILN_ARG(x), KILN_ARG(y),
                     KILN_ARG(n));
}

/* ---- Grids --------------------------------------------------------------- */

START_TEST(grids_for_elements)
{
  static const struct {
    uint64_t n;
    uint32_t block, want;
  } rows[] = {
      {0, 256, 0},
      {1, 256, 1},
      {255, 256, 1},
      {256, 256, 1},
      {257, 256, 2},
      {(uint64_t)1 << 31, 256, 1u << 23},
      {((uint64_t)1 << 32) + 1, 256, (1u << 24) + 1},
      /* The grid is clamped to the hardware limit, so the kernel has to loop
       * over the elements. */
      {(uint64_t)1 << 40, 256, 2147483647},
      {UINT64_MAX, 1, 2147483647},
      {UINT64_MAX, 1024, 2147483647},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const kiln_launch_config c = kiln_launch_1d(rows[i].n, rows[i].block);

    ck_assert_uint_eq(c.grid.x, rows[i].want);
    ck_assert_uint_eq(c.grid.y, 1);
    ck_assert_uint_eq(c.block.x, rows[i].block);
  }
}
END_TEST

START_TEST(grids_in_two_and_three_dimensions)
{
  kiln_launch_config c = kiln_launch_2d(1000, 33, 32, 8);

  ck_assert(c.grid.x == 32 && c.grid.y == 5 && c.grid.z == 1);
  ck_assert(c.block.x == 32 && c.block.y == 8);
  c = kiln_launch_2d(1, UINT64_MAX, 1, 1);
  ck_assert(c.grid.x == 1 && c.grid.y == 65535);
  c = kiln_launch_3d(17, 9, 5, 16, 4, 2);
  ck_assert(c.grid.x == 2 && c.grid.y == 3 && c.grid.z == 3);
  /* If the size is zero in one dimension, the grid is empty. This is marked by
   * x = 0, since a zero in y would count as 1. */
  ck_assert_uint_eq(kiln_launch_2d(5, 0, 1, 1).grid.x, 0);
  ck_assert_uint_eq(kiln_launch_3d(5, 0, 5, 1, 1, 1).grid.x, 0);
  ck_assert_uint_eq(kiln_launch_3d(5, 5, 0, 1, 1, 1).grid.x, 0);
  ck_assert_uint_eq(kiln_launch_2d(0, 5, 1, 1).grid.x, 0);
  /* A block size of 0 is kept here, and kiln_launch() refuses it. */
  ck_assert_uint_eq(kiln_launch_1d(5, 0).block.x, 0);
}
END_TEST

/* ---- Arguments that reach the driver ------------------------------------- */

START_TEST(arguments_and_shape_arrive)
{
  const kiln_launch_config c = {
      .grid = {7, 0, 3}, .block = {64, 2, 0}, .smem = 4096};
  const fake_cuda_launch *l = &f.cuda->last;
  float got_a;
  CUdeviceptr got_x, got_y;
  uint32_t got_n;

  ck_kiln_ok(launch(&c));
  ck_assert_int_eq(f.cuda->launches, 1);
  ck_assert_str_eq(l->kernel, "saxpy");
  ck_assert(l->grid[0] == 7 && l->grid[1] == 1 && l->grid[2] == 3);
  ck_assert(l->block[0] == 64 && l->block[1] == 2 && l->block[2] == 1);
  ck_assert_uint_eq(l->smem, 4096);
  ck_assert_ptr_null(l->stream);
  ck_assert(!l->ex && !l->cooperative);
  ck_assert_int_eq(l->n_params, 4);
  memcpy(&got_a, l->params, 4);
  memcpy(&got_x, l->params + 4, 8);
  memcpy(&got_y, l->params + 12, 8);
  memcpy(&got_n, l->params + 20, 4);
  ck_assert_float_eq(got_a, a);
  ck_assert(got_x == x && got_y == y && got_n == n);
}
END_TEST

START_TEST(no_arguments_at_all)
{
  kiln_kernel *empty = get_kernel(f.module, "empty");

  ck_kiln_ok(kiln_launch(empty, &one, NULL, 0));
  ck_assert_str_eq(f.cuda->last.kernel, "empty");
  ck_kiln_is(KILN_LAUNCH(empty, &one, KILN_ARG(n)), KILN_EARGS);
}
END_TEST

START_TEST(streams_arrive)
{
  kiln_launch_config c = one;
  kiln_stream *stream, *wrapped;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  c.stream = stream;
  ck_kiln_ok(launch(&c));
  ck_assert_ptr_eq(f.cuda->last.stream, kiln_stream_handle(stream));
  kiln_stream_free(stream);
  /* Launch on the legacy default stream and on the per-thread default
   * stream. */
  for (uintptr_t i = 1; i <= 2; i++) {
    ck_kiln_ok(kiln_stream_wrap(&wrapped, f.device, (CUstream)i));
    c.stream = wrapped;
    ck_kiln_ok(launch(&c));
    ck_assert_uint_eq((uintptr_t)f.cuda->last.stream, i);
    kiln_stream_free(wrapped);
  }
}
END_TEST

START_TEST(two_contexts_on_one_gpu)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_device *device;
  kiln_module *module;
  CUcontext first, second;

  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, &own));
  module = load_source(device, SAXPY);
  ck_kiln_ok(kiln_device_context(f.device, &first));
  ck_kiln_ok(kiln_device_context(device, &second));
  ck_kiln_ok(kiln_launch(get_kernel(module, "empty"), &one, NULL, 0));
  ck_assert_ptr_eq(f.cuda->last.context, second);
  ck_kiln_ok(launch(&one));
  ck_assert_ptr_eq(f.cuda->last.context, first);
  check_calm();
  kiln_module_free(module);
  kiln_device_free(device);
}
END_TEST

/* ---- Refusals ------------------------------------------------------------ */

START_TEST(an_empty_grid_is_no_work)
{
  kiln_launch_config c = one;

  c.grid.x = 0;
  ck_kiln_ok(launch(&c));
  c.grid = (kiln_dim3){0, 0, 0};
  ck_kiln_ok(launch(&c));
  ck_assert_int_eq(f.cuda->launches, 0);
  /* The arguments are checked even if the grid is empty. */
  ck_kiln_is(kiln_launch(kernel, &c, NULL, 0), KILN_EARGS);
}
END_TEST

static void refuse_args(const kiln_arg *args, size_t count, const char *text)
{
  ck_kiln_is(kiln_launch(kernel, &one, args, count), KILN_EARGS);
  ck_assert_msg(strstr(kiln_last_error()->message, text) != NULL,
                "\"%s\" does not say \"%s\"", kiln_last_error()->message, text);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "saxpy"));
  ck_assert_int_eq(f.cuda->launches, 0);
}

START_TEST(wrong_arguments_are_named)
{
  double wide = 1;
  kiln_arg args[] = {KILN_ARG(a), KILN_ARG(x), KILN_ARG(y), KILN_ARG(n),
                     KILN_ARG(n)};
  static kiln_arg many[KILN_MAX_PARAMS + 1];

  refuse_args(args, 3, "4 parameters, 3 arguments");
  refuse_args(args, 5, "4 parameters, 5 arguments");
  refuse_args(args, 0, "4 parameters, 0 arguments");
  refuse_args(NULL, 4, "args is NULL");
  refuse_args(many, KILN_MAX_PARAMS + 1, "257");
  args[0] = (kiln_arg)KILN_ARG(wide);
  refuse_args(args, 4, "argument 1 of saxpy has 8 bytes, the parameter has 4");
  args[0] = (kiln_arg)KILN_ARG(a);
  args[3] = (kiln_arg)KILN_ARG(wide);
  refuse_args(args, 4, "argument 4 of saxpy has 8 bytes, the parameter has 4");
  args[3] = (kiln_arg){NULL, 4};
  refuse_args(args, 4, "argument 4 of saxpy is NULL");
  ck_kiln_is(kiln_launch(NULL, &one, args, 4), KILN_EINVAL);
  ck_kiln_is(kiln_launch(kernel, NULL, args, 4), KILN_EINVAL);
}
END_TEST

/* The size of a struct argument includes its padding. */
START_TEST(structs_by_value_count_their_padding)
{
  struct padded {
    double d;
    char c;
  } s = {1.5, 'x'};
  struct {
    char c[9];
  } packed = {"12345678"};
  kiln_module *module = load_source(
      f.device, "struct padded { double d; char c; };\n"
                "extern \"C\" __global__ void k(padded s) //params 16\n{}\n");
  kiln_kernel *k = get_kernel(module, "k");

  ck_kiln_ok(KILN_LAUNCH(k, &one, KILN_ARG(s)));
  ck_assert_mem_eq(f.cuda->last.params, &s.d, sizeof s.d);
  ck_assert_int_eq(f.cuda->last.params[8], 'x');
  ck_kiln_is(KILN_LAUNCH(k, &one, KILN_ARG(packed)), KILN_EARGS);
  kiln_module_free(module);
}
END_TEST

START_TEST(large_parameters_are_passed)
{
  static unsigned char big[4000];
  kiln_module *module = load_source(
      f.device, "struct big { char c[4000]; };\n"
                "extern \"C\" __global__ void k(big s) //params 4000\n{}\n");

  big[3999] = 42;
  ck_kiln_ok(KILN_LAUNCH(get_kernel(module, "k"), &one, KILN_ARG(big)));
  ck_assert_int_eq(f.cuda->last.params[3999], 42);
  kiln_module_free(module);
}
END_TEST

START_TEST(unknown_parameters_are_not_checked)
{
  kernel->params_known = false;
  ck_kiln_ok(launch(&one));
  ck_assert_int_eq(f.cuda->launches, 1);
  ck_kiln_is(kiln_launch(kernel, &one, (const kiln_arg[]){{NULL, 4}}, 1),
             KILN_EARGS);
}
END_TEST

static void refuse_shape(kiln_dim3 grid, kiln_dim3 block, kiln_status want,
                         const char *text)
{
  const kiln_launch_config c = {.grid = grid, .block = block};

  ck_kiln_is(launch(&c), want);
  ck_assert_msg(strstr(kiln_last_error()->message, text) != NULL,
                "\"%s\" does not say \"%s\"", kiln_last_error()->message, text);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_launchKernel], 0);
}

START_TEST(shapes_above_the_limits_are_refused)
{
  refuse_shape((kiln_dim3){1, 1, 1}, (kiln_dim3){0, 1, 1}, KILN_EINVAL,
               "0 threads");
  refuse_shape((kiln_dim3){1, 1, 1}, (kiln_dim3){1025, 1, 1}, KILN_ELIMIT,
               "1025 threads in x");
  refuse_shape((kiln_dim3){1, 1, 1}, (kiln_dim3){1, 2000, 1}, KILN_ELIMIT,
               "2000 threads in y");
  refuse_shape((kiln_dim3){1, 1, 1}, (kiln_dim3){1, 1, 65}, KILN_ELIMIT,
               "65 threads in z");
  refuse_shape((kiln_dim3){1, 1, 1}, (kiln_dim3){32, 32, 2}, KILN_ELIMIT,
               "2048 threads");
  refuse_shape((kiln_dim3){1, 1, 1},
               (kiln_dim3){UINT32_MAX, UINT32_MAX, UINT32_MAX}, KILN_ELIMIT,
               "4294967295 threads in x");
  refuse_shape((kiln_dim3){1, 65536, 1}, (kiln_dim3){1, 1, 1}, KILN_ELIMIT,
               "65536 blocks in y");
  refuse_shape((kiln_dim3){1, 1, 65536}, (kiln_dim3){1, 1, 1}, KILN_ELIMIT,
               "65536 blocks in z");
  refuse_shape((kiln_dim3){2147483648u, 1, 1}, (kiln_dim3){1, 1, 1},
               KILN_ELIMIT, "2147483648 blocks in x");
}
END_TEST

START_TEST(the_largest_shapes_pass)
{
  const kiln_launch_config c = {.grid = {2147483647, 65535, 65535},
                                .block = {4, 4, 64}};

  ck_kiln_ok(launch(&c));
}
END_TEST

START_TEST(register_hungry_kernels_say_so)
{
  kiln_module *module;
  kiln_launch_config c = one;

  f.cuda->max_threads = 512;
  f.cuda->registers = 120;
  module = load_source(f.device, SAXPY);
  c.block.x = 513;
  ck_kiln_is(kiln_launch(get_kernel(module, "empty"), &c, NULL, 0),
             KILN_ELIMIT);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "120 registers"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "512"));
  c.block.x = 512;
  ck_kiln_ok(kiln_launch(get_kernel(module, "empty"), &c, NULL, 0));
  kiln_module_free(module);
  /* Some limits, such as registers per block, are checked only by the
   * driver. */
  f.cuda->rc[FAKE_CUDA_launchKernel] = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  ck_kiln_is(launch(&one), KILN_ELIMIT);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "registers"));
}
END_TEST

START_TEST(dynamic_shared_memory_is_opted_in_once)
{
  kiln_launch_config c = one;

  c.smem = 49152;
  ck_kiln_ok(launch(&c));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 0);
  c.smem = 49153;
  ck_kiln_ok(launch(&c));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 1);
  c.smem = 232448; /* This is all the shared memory that a block may use. */
  ck_kiln_ok(launch(&c));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 1);
  c.smem = 232449;
  ck_kiln_is(launch(&c), KILN_ELIMIT);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "232449"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "232448"));
}
END_TEST

START_TEST(static_shared_memory_counts)
{
  kiln_launch_config c = one;
  kiln_module *module;
  kiln_kernel *k;

  f.cuda->static_smem = 16384;
  module = load_source(f.device, SAXPY);
  k = get_kernel(module, "empty");
  c.smem = 32768;
  ck_kiln_ok(kiln_launch(k, &c, NULL, 0));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 0);
  c.smem = 32769;
  ck_kiln_ok(kiln_launch(k, &c, NULL, 0));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 1);
  c.smem = 232448 - 16384 + 1;
  ck_kiln_is(kiln_launch(k, &c, NULL, 0), KILN_ELIMIT);
  kiln_module_free(module);
}
END_TEST

START_TEST(a_refused_opt_in_is_reported)
{
  kiln_launch_config c = one;

  c.smem = 100000;
  f.cuda->rc[FAKE_CUDA_funcSetAttribute] = CUDA_ERROR_INVALID_VALUE;
  f.cuda->times[FAKE_CUDA_funcSetAttribute] = 1;
  ck_kiln_is(launch(&c), KILN_EDRIVER);
  ck_assert_str_eq(kiln_last_error()->call, "cuFuncSetAttribute");
  ck_assert_int_eq(f.cuda->launches, 0);
  /* After a failure, the next launch sets the kernel attribute again. */
  ck_kiln_ok(launch(&c));
}
END_TEST

/* ---- Cooperative launches, clusters, programmatic overlap --------------- */

START_TEST(cooperative_launches)
{
  kiln_launch_config c = one;

  c.cooperative = true;
  c.grid.x = 20; /* 2 blocks fit on each of the 10 multiprocessors. */
  ck_kiln_ok(launch(&c));
  ck_assert(f.cuda->last.cooperative);
  c.grid.x = 21;
  ck_kiln_is(launch(&c), KILN_ELIMIT);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "21 blocks"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "make 20"));
  ck_assert_int_eq(kiln_last_error()->native,
                   CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  f.device->info.cooperative = false;
  ck_kiln_is(launch(&c), KILN_EUNSUPPORTED);
}
END_TEST

START_TEST(cluster_launches)
{
  kiln_launch_config c = one;

  c.grid = (kiln_dim3){8, 2, 1};
  c.cluster = (kiln_dim3){4, 2, 0};
  c.cooperative = true;
  ck_kiln_ok(launch(&c));
  ck_assert(f.cuda->last.ex && f.cuda->last.cooperative);
  ck_assert(f.cuda->last.cluster[0] == 4 && f.cuda->last.cluster[1] == 2 &&
            f.cuda->last.cluster[2] == 1);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 0);
  c.cooperative = false;
  c.grid.x = 7;
  ck_kiln_is(launch(&c), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "multiple"));
  c.grid = (kiln_dim3){16, 1, 1};
  /* Clusters of more than 8 blocks need a kernel attribute. */
  c.cluster = (kiln_dim3){16, 1, 1};
  ck_kiln_ok(launch(&c));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_funcSetAttribute], 1);
  c.grid.x = c.cluster.x = 32;
  ck_kiln_is(launch(&c), KILN_ELIMIT);
}
END_TEST

START_TEST(clusters_need_their_gpu_and_driver)
{
  kiln_launch_config c = one;

  c.cluster.x = 1;
  f.device->traits.has_cluster = false;
  f.device->traits.cc = 80;
  ck_kiln_is(launch(&c), KILN_EUNSUPPORTED);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "8.0"));
  f.device->traits.has_cluster = true;
  f.rt->driver.launchKernelEx = NULL;
  ck_kiln_is(launch(&c), KILN_EUNSUPPORTED);
  ck_assert_int_eq(f.cuda->launches, 0);
}
END_TEST

START_TEST(overlap_is_used_where_it_exists_and_ignored_elsewhere)
{
  kiln_launch_config c = one;

  c.overlap_prior = true;
  ck_kiln_ok(launch(&c));
  ck_assert(f.cuda->last.ex && f.cuda->last.overlap);
  f.device->traits.has_pdl = false;
  ck_kiln_ok(launch(&c));
  ck_assert(!f.cuda->last.ex);
  f.device->traits.has_pdl = true;
  f.rt->driver.launchKernelEx = NULL;
  ck_kiln_ok(launch(&c));
  ck_assert(!f.cuda->last.ex);
  c.cooperative = true;
  ck_kiln_ok(launch(&c));
  ck_assert(f.cuda->last.cooperative);
}
END_TEST

/* ---- Errors, speed, threads ---------------------------------------------- */

START_TEST(an_earlier_kernels_failure_is_told_apart)
{
  f.cuda->launch_sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  /* The launch succeeds, and the running kernel then corrupts the context. */
  ck_kiln_ok(launch(&one));
  f.cuda->launch_sticky = 0;
  ck_kiln_is(launch(&one), KILN_ESTICKY);
  ck_assert_int_eq(kiln_last_error()->native, CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "lost"));
  ck_kiln_is(kiln_device_synchronize(f.device), KILN_ESTICKY);
  check_calm();
  /* Releasing the corrupted context frees everything in it. */
  kiln_module_free(f.module);
  f.module = NULL;
  kiln_device_free(f.device);
  f.device = NULL;
}
END_TEST

START_TEST(a_launchs_own_fault_costs_nothing)
{
  f.cuda->rc[FAKE_CUDA_launchKernel] = CUDA_ERROR_INVALID_VALUE;
  ck_kiln_is(launch(&one), KILN_EDRIVER);
  ck_assert_str_eq(kiln_last_error()->call, "cuLaunchKernel");
  f.cuda->rc[FAKE_CUDA_launchKernel] = 0;
  ck_kiln_ok(launch(&one));
}
END_TEST

START_TEST(a_launch_allocates_and_looks_up_nothing)
{
  CUcontext context, popped;
  long calls;
  int lookups, currents, pushes;

  ck_kiln_ok(kiln_device_context(f.device, &context));
  ck_assert_int_eq(f.rt->driver.ctxPushCurrent(context), 0);
  ck_kiln_ok(launch(&one));
  calls = f.alloc.calls;
  lookups = f.cuda->calls[FAKE_CUDA_moduleGetFunction];
  currents = f.cuda->calls[FAKE_CUDA_ctxGetCurrent];
  pushes = f.cuda->calls[FAKE_CUDA_ctxPushCurrent];
  for (int i = 0; i < 100; i++)
    ck_kiln_ok(launch(&one));
  ck_assert_int_eq(f.alloc.calls, calls);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_moduleGetFunction], lookups);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_ctxGetCurrent], currents + 100);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_ctxPushCurrent], pushes);
  ck_assert_int_eq(f.rt->driver.ctxPopCurrent(&popped), 0);
}
END_TEST

static void *launch_many(void *arg)
{
  kiln_launch_config c = one;

  (void)arg;
  for (int i = 0; i < 500; i++) {
    c.smem = i % 2 == 0 ? 0 : 60000 + (uint32_t)i;
    if (launch(&c) != KILN_OK)
      return "a launch failed";
  }
  return NULL;
}

START_TEST(threads_launch_one_kernel)
{
  test_threads(8, launch_many, NULL, 0);
  ck_assert_int_eq(f.cuda->launches, 4000);
}
END_TEST

/* ---- Occupancy ----------------------------------------------------------- */

START_TEST(occupancy_is_the_drivers)
{
  int blocks = -1, block = -1, grid = -1;

  ck_kiln_ok(kiln_kernel_occupancy(kernel, 256, 0, &blocks));
  ck_assert_int_eq(blocks, 2);
  ck_kiln_ok(kiln_kernel_occupancy(kernel, 256, 100000, &blocks));
  /* Kiln raises the shared memory limit before it asks the driver for the
   * occupancy. */
  ck_assert_int_eq(blocks, 2);
  ck_kiln_ok(kiln_kernel_occupancy(kernel, 256, 300000, &blocks));
  ck_assert_int_eq(blocks, 0);
  ck_kiln_ok(kiln_kernel_occupancy(kernel, 2048, 0, &blocks));
  ck_assert_int_eq(blocks, 0);
  ck_kiln_is(kiln_kernel_occupancy(kernel, 0, 0, &blocks), KILN_EINVAL);
  ck_kiln_is(kiln_kernel_occupancy(NULL, 1, 0, &blocks), KILN_EINVAL);
  ck_kiln_ok(kiln_kernel_suggest(kernel, 0, 0, &block, &grid));
  ck_assert_int_eq(block, 768);
  ck_assert_int_eq(grid, 20);
  ck_kiln_ok(kiln_kernel_suggest(kernel, 0, 128, &block, NULL));
  ck_assert_int_eq(block, 128);
  ck_kiln_ok(kiln_kernel_suggest(kernel, 0, 0, NULL, &grid));
  ck_kiln_is(kiln_kernel_suggest(kernel, 0, -1, &block, &grid), KILN_EINVAL);
  ck_kiln_is(kiln_kernel_suggest(kernel, 999999, 0, &block, &grid),
             KILN_ELIMIT);
  ck_assert_int_eq(block, 0);
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "launch", 30, set_up, tear_down,
      TESTS(grids_for_elements, grids_in_two_and_three_dimensions,
            arguments_and_shape_arrive, no_arguments_at_all, streams_arrive,
            two_contexts_on_one_gpu, an_empty_grid_is_no_work,
            wrong_arguments_are_named, structs_by_value_count_their_padding,
            large_parameters_are_passed, unknown_parameters_are_not_checked,
            shapes_above_the_limits_are_refused, the_largest_shapes_pass,
            register_hungry_kernels_say_so,
            dynamic_shared_memory_is_opted_in_once, static_shared_memory_counts,
            a_refused_opt_in_is_reported, cooperative_launches,
            cluster_launches, clusters_need_their_gpu_and_driver,
            overlap_is_used_where_it_exists_and_ignored_elsewhere,
            an_earlier_kernels_failure_is_told_apart,
            a_launchs_own_fault_costs_nothing,
            a_launch_allocates_and_looks_up_nothing, threads_launch_one_kernel,
            occupancy_is_the_drivers));
}
