/* device_contexts_test.c -- tests devices, contexts, streams and events on the fake
 * driver. */
#include "device_fixture.h"

#include <pthread.h>

/* ---- Opening ------------------------------------------------------------- */

START_TEST(open_makes_no_context)
{
  kiln_device_info info;

  ck_assert_int_eq(f.cuda->retained, 0);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_devicePrimaryCtxRetain], 0);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_ctxCreate], 0);
  ck_kiln_ok(kiln_device_describe(f.device, &info));
  ck_assert_str_eq(info.name, "Fake GPU 9.0");
  ck_assert_str_eq(info.uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
  ck_assert_str_eq(info.pci, "0000:65:00.0");
  ck_assert_int_eq(info.sm_count, 10);
  ck_assert_int_eq(info.max_grid[0], 2147483647);
  ck_assert_int_eq(info.max_grid[2], 65535);
  ck_assert_int_eq(info.max_block[2], 64);
  ck_assert(info.memory_pools && info.cooperative && info.ecc && !info.mig);
  ck_assert(info.memory_bytes == (uint64_t)80 << 30);
  ck_assert_ptr_eq(kiln_device_runtime(f.device), f.rt);
  ck_assert_int_eq(f.cuda->retained, 0);
}
END_TEST

START_TEST(traits_hold_the_gpus_own_limits)
{
  int *a = f.cuda->devices[0].attributes;
  kiln_device *device;
  kiln_traits table;
  const kiln_traits *t;

  a[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 111111;
  a[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 32768;
  a[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 1536;
  a[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = FAKE_CUDA_UNKNOWN;
  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, NULL));
  ck_kiln_ok(kiln_arch_traits(90, &table));
  t = kiln_device_traits(device);
  ck_assert_int_eq(t->cc, 90);
  ck_assert_int_eq(t->smem_per_block_optin, 111111);
  ck_assert_int_eq(t->regs_per_sm, 32768);
  ck_assert_int_eq(t->max_threads_per_sm, 1536);
  ck_assert_int_eq(t->max_warps_per_sm, 48);
  ck_assert_int_eq(t->max_blocks_per_sm, table.max_blocks_per_sm);
  kiln_device_free(device);
}
END_TEST

START_TEST(a_gpu_newer_than_the_table_works)
{
  int *a = f.cuda->devices[0].attributes;
  kiln_device *device;
  kiln_module *module;

  a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 13;
  a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 7;
  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, NULL));
  ck_assert_int_eq(kiln_device_traits(device)->cc, 137);
  ck_assert(kiln_device_traits(device)->has_cluster);
  /* No NVRTC supports this GPU, so the driver assembles PTX. */
  module = load_source(device, SAXPY);
  ck_assert_int_eq(kiln_module_ladder(module)->rung, KILN_RUNG_PTX);
  kiln_module_free(module);
  kiln_device_free(device);
}
END_TEST

START_TEST(mixed_gpus_each_get_their_own_code)
{
  static const int cc[] = {75, 90, 120};
  kiln_device *devices[3];
  kiln_module *modules[3];

  f.cuda->n_devices = 3;
  for (int i = 0; i < 3; i++) {
    int *a = f.cuda->devices[i].attributes;

    a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = cc[i] / 10;
    a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = cc[i] % 10;
    ck_kiln_ok(kiln_device_open(&devices[i], f.rt, i, NULL));
    modules[i] = load_source(devices[i], SAXPY);
    ck_assert_int_eq(kiln_module_ladder(modules[i])->rung, KILN_RUNG_EXACT);
    ck_assert_int_eq(kiln_module_ladder(modules[i])->target.cc, cc[i]);
  }
  ck_assert_int_eq(f.cuda->retained, 3);
  for (int i = 0; i < 3; i++) {
    kiln_module_free(modules[i]);
    kiln_device_free(devices[i]);
  }
}
END_TEST

START_TEST(a_slice_of_a_gpu_says_so)
{
  kiln_device_info info;
  kiln_device *device;

  snprintf(f.cuda->devices[0].name, sizeof f.cuda->devices[0].name,
           "NVIDIA H200 MIG 1g.18gb");
  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, NULL));
  ck_kiln_ok(kiln_device_describe(device, &info));
  ck_assert(info.mig);
  ck_assert_msg(strncmp(info.uuid, "MIG-a0", 6) == 0, "%s", info.uuid);
  kiln_device_free(device);
}
END_TEST

START_TEST(opening_refuses_what_is_not_there)
{
  kiln_device *device = f.device;
  int n = -1;

  ck_kiln_is(kiln_device_open(&device, f.rt, 1, NULL), KILN_ENODEVICE);
  ck_assert_ptr_null(device);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "no device 1"));
  ck_kiln_is(kiln_device_open(&device, f.rt, -1, NULL), KILN_ENODEVICE);
  ck_kiln_is(kiln_device_open(&device, NULL, 0, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_device_open(NULL, f.rt, 0, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_device_count(f.rt, NULL), KILN_EINVAL);
  ck_kiln_ok(kiln_device_count(f.rt, &n));
  ck_assert_int_eq(n, 1);
  ck_kiln_is(kiln_device_attribute(f.device, 9999, &n), KILN_EDRIVER);
  ck_assert_int_eq(kiln_last_error()->native, CUDA_ERROR_INVALID_VALUE);
  ck_kiln_ok(kiln_device_attribute(
      f.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &n));
  ck_assert_int_eq(n, 10);
}
END_TEST

START_TEST(a_driver_without_gpu_counts_zero)
{
  int n = 9;

  f.cuda->n_devices = 0;
  ck_kiln_ok(kiln_device_count(f.rt, &n));
  ck_assert_int_eq(n, 0);
  ck_kiln_is(kiln_device_open(&f.device, f.rt, 0, NULL), KILN_ENODEVICE);
  f.cuda->n_devices = 1;
}
END_TEST

/* ---- Contexts ------------------------------------------------------------ */

START_TEST(primary_context_is_retained_once_and_released)
{
  CUcontext one, two;

  ck_kiln_ok(kiln_device_context(f.device, &one));
  ck_kiln_ok(kiln_device_context(f.device, &two));
  ck_assert_ptr_nonnull(one);
  ck_assert_ptr_eq(one, two);
  ck_assert_int_eq(f.cuda->retained, 1);
  ck_assert_ptr_null(current_context());
  kiln_device_free(f.device);
  f.device = NULL;
  ck_assert_int_eq(f.cuda->retained, 0);
}
END_TEST

START_TEST(own_context_is_created_and_destroyed)
{
  const kiln_device_opts opts = {.context = KILN_CONTEXT_OWN};
  kiln_device *a, *b;
  CUcontext one, two, primary;

  ck_kiln_ok(kiln_device_open(&a, f.rt, 0, &opts));
  ck_kiln_ok(kiln_device_open(&b, f.rt, 0, &opts));
  ck_kiln_ok(kiln_device_context(a, &one));
  /* cuCtxCreate() pushes the new context on the thread's stack, and Kiln has
   * popped it again. */
  ck_assert_ptr_null(current_context());
  ck_kiln_ok(kiln_device_context(b, &two));
  ck_kiln_ok(kiln_device_context(f.device, &primary));
  ck_assert_ptr_ne(one, two);
  ck_assert_ptr_ne(one, primary);
  ck_assert_int_eq(f.cuda->contexts, 2);
  kiln_device_free(a);
  kiln_device_free(b);
  ck_assert_int_eq(f.cuda->contexts, 0);
}
END_TEST

/* Creates a context that belongs to the test and makes it current in this
 * thread. */
static void make_outer(void)
{
  ck_assert_int_eq(f.rt->driver.ctxCreate(&f.outer, 0, 0), 0);
}

static void drop_outer(void)
{
  ck_assert_int_eq(f.rt->driver.ctxDestroy(f.outer), 0);
  f.outer = NULL;
}

START_TEST(foreign_context_is_only_borrowed)
{
  const kiln_device_opts current = {.context = KILN_CONTEXT_FOREIGN};
  kiln_device_opts given = current;
  kiln_device *device;
  kiln_stream *stream;
  CUcontext context;

  ck_kiln_is(kiln_device_open(&device, f.rt, -1, &current), KILN_EINVAL);
  f.cuda->n_devices = 2;
  ck_assert_int_eq(f.rt->driver.ctxCreate(&f.outer, 0, 1), 0);
  ck_kiln_ok(kiln_device_open(&device, f.rt, -1, &current));
  ck_kiln_ok(kiln_device_context(device, &context));
  ck_assert_ptr_eq(context, f.outer);
  kiln_device_free(device);
  ck_assert_int_eq(f.cuda->contexts, 1);
  ck_assert_ptr_eq(current_context(), f.outer);

  given.foreign = f.outer;
  ck_kiln_is(kiln_device_open(&device, f.rt, 0, &given), KILN_EINVAL);
  ck_kiln_ok(kiln_device_open(&device, f.rt, 1, &given));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  kiln_stream_free(stream);
  kiln_device_free(device);
  drop_outer();
  f.cuda->n_devices = 1;
}
END_TEST

START_TEST(callers_context_comes_back_after_failures)
{
  CUcontext context;
  kiln_stream *stream;
  kiln_event *event;
  CUdeviceptr p;

  make_outer();
  f.cuda->rc[FAKE_CUDA_devicePrimaryCtxRetain] = CUDA_ERROR_OUT_OF_MEMORY;
  ck_kiln_is(kiln_device_context(f.device, &context), KILN_EDEVMEM);
  ck_assert_ptr_null(context);
  check_calm();
  f.cuda->rc[FAKE_CUDA_devicePrimaryCtxRetain] = 0;
  f.cuda->rc[FAKE_CUDA_streamCreateWithPriority] = CUDA_ERROR_UNKNOWN;
  ck_kiln_is(kiln_stream_create(&stream, f.device, NULL), KILN_EDRIVER);
  ck_assert_ptr_null(stream);
  check_calm();
  f.cuda->rc[FAKE_CUDA_eventCreate] = CUDA_ERROR_UNKNOWN;
  ck_kiln_is(kiln_event_create(&event, f.device, true), KILN_EDRIVER);
  ck_assert_ptr_null(event);
  check_calm();
  f.cuda->rc[FAKE_CUDA_memAlloc] = CUDA_ERROR_OUT_OF_MEMORY;
  ck_kiln_is(kiln_memory_alloc(&p, f.device, 100), KILN_EDEVMEM);
  ck_assert(p == 0);
  check_calm();
  f.cuda->rc[FAKE_CUDA_ctxPushCurrent] = CUDA_ERROR_INVALID_CONTEXT;
  ck_kiln_is(kiln_device_synchronize(f.device), KILN_EDRIVER);
  check_calm();
  f.cuda->rc[FAKE_CUDA_ctxPushCurrent] = 0;
  drop_outer();
}
END_TEST

START_TEST(a_current_context_is_not_pushed_again)
{
  CUcontext context, popped;
  int pushes;

  ck_kiln_ok(kiln_device_context(f.device, &context));
  ck_assert_int_eq(f.rt->driver.ctxPushCurrent(context), 0);
  pushes = f.cuda->calls[FAKE_CUDA_ctxPushCurrent];
  ck_kiln_ok(kiln_device_synchronize(f.device));
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_ctxPushCurrent], pushes);
  ck_assert_ptr_eq(current_context(), context);
  ck_assert_int_eq(f.rt->driver.ctxPopCurrent(&popped), 0);
}
END_TEST

START_TEST(a_destroyed_context_is_noticed)
{
  const kiln_device_opts opts = {.context = KILN_CONTEXT_OWN};
  kiln_device *device;
  kiln_module *module;
  kiln_stream *stream;
  kiln_event *event;
  kiln_kernel *kernel;
  CUcontext context;
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

  ck_kiln_ok(kiln_device_open(&device, f.rt, 0, &opts));
  module = load_source(device, SAXPY);
  kernel = get_kernel(module, "empty");
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  ck_kiln_ok(kiln_event_create(&event, device, true));
  ck_kiln_ok(kiln_device_context(device, &context));
  ck_assert_int_eq(f.rt->driver.ctxDestroy(context), 0);

  ck_kiln_is(kiln_launch(kernel, &config, NULL, 0), KILN_ESTICKY);
  ck_assert_int_eq(kiln_last_error()->native, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  kiln_event_free(event);
  kiln_stream_free(stream);
  kiln_module_free(module);
  kiln_device_free(device);
}
END_TEST

START_TEST(a_reset_device_takes_its_handles_along)
{
  kiln_module *module = load_source(f.device, SAXPY);
  kiln_stream *stream;
  CUcontext again;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_assert_int_eq(f.rt->driver.devicePrimaryCtxReset(0), 0);
  /* Another user creates the primary context again, perhaps with the same
   * handle. */
  ck_assert_int_eq(f.rt->driver.devicePrimaryCtxRetain(&again, 0), 0);
  kiln_stream_free(stream);
  kiln_module_free(module);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_streamDestroy], 0);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_moduleUnload], 0);
  kiln_device_free(f.device);
  f.device = NULL;
  ck_assert_int_eq(f.rt->driver.devicePrimaryCtxRelease(0), 0);
}
END_TEST

START_TEST(a_reset_device_is_noticed_without_context_numbers)
{
  kiln_stream *stream;
  int pushes;

  f.rt->driver.ctxGetId = NULL;
  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_assert_int_eq(f.rt->driver.devicePrimaryCtxReset(0), 0);
  pushes = f.cuda->calls[FAKE_CUDA_ctxPushCurrent];
  kiln_stream_free(stream);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_ctxPushCurrent], pushes);
}
END_TEST

START_TEST(a_recycled_context_handle_is_told_by_its_number)
{
  kiln_stream *stream;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  /* The id changes, as if the same handle referred to a new context. */
  f.device->context_id += 1;
  kiln_stream_free(stream);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_streamDestroy], 0);
  f.device->context_id -= 1;
  ck_assert_int_eq(f.rt->driver.devicePrimaryCtxReset(0), 0);
}
END_TEST

START_TEST(an_old_driver_without_context_numbers_works)
{
  kiln_stream *stream;

  f.rt->driver.ctxGetId = NULL;
  f.rt->driver.getErrorName = NULL;
  f.rt->driver.getErrorString = NULL;
  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  kiln_stream_free(stream);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_streamDestroy], 1);
}
END_TEST

/* ---- Streams and events -------------------------------------------------- */

START_TEST(streams_are_made_as_asked)
{
  static const struct {
    int wanted, got;
  } rows[] = {{0, 0}, {-3, -3}, {-5, -5}, {-99, -5}, {7, 0}};
  kiln_stream *stream;
  unsigned flags;
  int priority;
  CUcontext context, popped;

  ck_kiln_ok(kiln_device_context(f.device, &context));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const kiln_stream_opts opts = {.blocking = i % 2 != 0,
                                   .priority = rows[i].wanted};

    ck_kiln_ok(kiln_stream_create(&stream, f.device, &opts));
    ck_assert_int_eq(f.rt->driver.ctxPushCurrent(context), 0);
    f.rt->driver.streamGetFlags(kiln_stream_handle(stream), &flags);
    f.rt->driver.streamGetPriority(kiln_stream_handle(stream), &priority);
    ck_assert_int_eq(f.rt->driver.ctxPopCurrent(&popped), 0);
    ck_assert_uint_eq(flags, opts.blocking ? 0 : CU_STREAM_NON_BLOCKING);
    ck_assert_int_eq(priority, rows[i].got);
    ck_assert_ptr_eq(kiln_stream_device(stream), f.device);
    kiln_stream_free(stream);
  }
}
END_TEST

START_TEST(wrapped_streams_stay_the_callers)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_stream *real, *wrapped;
  kiln_device *other;

  ck_kiln_ok(kiln_stream_create(&real, f.device, NULL));
  ck_kiln_ok(kiln_stream_wrap(&wrapped, f.device, kiln_stream_handle(real)));
  ck_assert_ptr_eq(kiln_stream_handle(wrapped), kiln_stream_handle(real));
  ck_kiln_ok(kiln_stream_synchronize(wrapped));
  kiln_stream_free(wrapped);
  ck_assert_int_eq(f.cuda->streams, 1);
  ck_kiln_ok(kiln_device_open(&other, f.rt, 0, &own));
  ck_kiln_is(kiln_stream_wrap(&wrapped, other, kiln_stream_handle(real)),
             KILN_EINVAL);
  ck_assert_ptr_null(wrapped);
  kiln_device_free(other);
  kiln_stream_free(real);
  /* Wrap the default stream, the legacy stream and the per-thread stream. */
  for (uintptr_t i = 0; i < 3; i++) {
    ck_kiln_ok(kiln_stream_wrap(&wrapped, f.device, (CUstream)i));
    ck_kiln_ok(kiln_stream_synchronize(wrapped));
    kiln_stream_free(wrapped);
  }
}
END_TEST

START_TEST(events_mark_and_time)
{
  kiln_event *a, *b, *untimed;
  kiln_stream *stream;
  float ms = -1;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln_event_create(&a, f.device, true));
  ck_kiln_ok(kiln_event_create(&b, f.device, true));
  ck_kiln_ok(kiln_event_create(&untimed, f.device, false));
  ck_kiln_ok(kiln_event_record(a, stream));
  kiln__sleep_ns(2000000);
  ck_kiln_ok(kiln_event_record(b, NULL));
  ck_kiln_ok(kiln_event_record(untimed, stream));
  ck_kiln_ok(kiln_stream_wait(stream, b));
  ck_kiln_ok(kiln_event_synchronize(b));
  ck_kiln_ok(kiln_event_query(b));
  ck_kiln_ok(kiln_event_elapsed(&ms, a, b));
  ck_assert_float_ge(ms, 2.0f);
  ck_assert_float_lt(ms, 1000.0f);
  ck_kiln_is(kiln_event_elapsed(&ms, a, untimed), KILN_EDRIVER);
  ck_assert_float_eq(ms, 0.0f);
  f.cuda->rc[FAKE_CUDA_eventQuery] = CUDA_ERROR_NOT_READY;
  ck_kiln_is(kiln_event_query(b), KILN_ENOTREADY);
  f.cuda->rc[FAKE_CUDA_streamQuery] = CUDA_ERROR_NOT_READY;
  ck_kiln_is(kiln_stream_query(stream), KILN_ENOTREADY);
  kiln_event_free(untimed);
  kiln_event_free(b);
  kiln_event_free(a);
  kiln_stream_free(stream);
}
END_TEST

START_TEST(null_arguments_are_refused)
{
  kiln_stream *stream;
  kiln_event *event;
  float ms;
  bool capturing;

  ck_kiln_is(kiln_stream_create(NULL, f.device, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_stream_create(&stream, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_stream_wrap(&stream, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_stream_synchronize(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_stream_query(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_stream_wait(NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_stream_capturing(NULL, &capturing), KILN_EINVAL);
  ck_kiln_is(kiln_stream_attach(NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_event_create(&event, NULL, true), KILN_EINVAL);
  ck_kiln_is(kiln_event_record(NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_event_synchronize(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_event_query(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_event_elapsed(&ms, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_device_describe(NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_device_synchronize(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_device_context(f.device, NULL), KILN_EINVAL);
  kiln_stream_free(NULL);
  kiln_event_free(NULL);
  kiln_device_free(NULL);
  ck_assert_ptr_null(kiln_stream_handle(NULL));
  ck_assert_ptr_null(kiln_stream_device(NULL));
  ck_assert_ptr_null(kiln_event_handle(NULL));
  ck_assert_ptr_null(kiln_device_traits(NULL));
}
END_TEST

/* ---- Capture ------------------------------------------------------------- */

static kiln_stream *begin_capture(bool blocking, int mode)
{
  const kiln_stream_opts opts = {.blocking = blocking};
  kiln_stream *stream;
  kiln__scope scope;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, &opts));
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamBeginCapture(kiln_stream_handle(stream), mode), 0);
  kiln__leave(&scope);
  return stream;
}

/* Ends the capture and checks that no call has invalidated it. */
static void end_capture(kiln_stream *stream)
{
  CUgraph graph = NULL;
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph), 0);
  ck_assert_int_eq(f.rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  kiln_stream_free(stream);
}

START_TEST(waiting_is_refused_while_captured_and_spoils_nothing)
{
  kiln_stream *stream = begin_capture(false, CU_STREAM_CAPTURE_MODE_GLOBAL);
  bool capturing = false;

  ck_kiln_ok(kiln_stream_capturing(stream, &capturing));
  ck_assert(capturing);
  ck_kiln_is(kiln_stream_synchronize(stream), KILN_ECAPTURE);
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->message, "kiln_stream_synchronize"));
  ck_kiln_is(kiln_stream_query(stream), KILN_ECAPTURE);
  end_capture(stream);
}
END_TEST

START_TEST(default_stream_tied_up_by_a_capture_is_refused)
{
  kiln_stream *stream = begin_capture(true, CU_STREAM_CAPTURE_MODE_RELAXED);
  CUdeviceptr p;
  char byte = 0;

  ck_kiln_ok(kiln_memory_alloc(&p, f.device, 1));
  ck_kiln_is(kiln_copy_to_device(f.device, p, &byte, 1), KILN_ECAPTURE);
  ck_kiln_is(kiln_fill(f.device, p, 0, 1, 1), KILN_ECAPTURE);
  ck_kiln_is(kiln_device_synchronize(f.device), KILN_ECAPTURE);
  end_capture(stream);
  ck_kiln_ok(kiln_memory_free(f.device, p));
}
END_TEST

START_TEST(events_may_be_asked_while_another_stream_is_captured)
{
  kiln_event *event;
  kiln_stream *stream;

  ck_kiln_ok(kiln_event_create(&event, f.device, true));
  ck_kiln_ok(kiln_event_record(event, NULL));
  stream = begin_capture(false, CU_STREAM_CAPTURE_MODE_GLOBAL);
  ck_kiln_ok(kiln_event_query(event));
  ck_kiln_ok(kiln_event_synchronize(event));
  end_capture(stream);
  kiln_event_free(event);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

static void *use_device(void *arg)
{
  CUcontext context, current;

  (void)arg;
  for (int i = 0; i < 200; i++) {
    kiln_stream *stream;

    if (kiln_device_context(f.device, &context) != KILN_OK ||
        kiln_stream_create(&stream, f.device, NULL) != KILN_OK ||
        kiln_stream_synchronize(stream) != KILN_OK)
      return "a call failed";
    kiln_stream_free(stream);
    if (f.rt->driver.ctxGetCurrent(&current) != 0 || current != NULL)
      return "a context was left";
  }
  return NULL;
}

START_TEST(threads_share_one_context)
{
  test_threads(8, use_device, NULL, 0);
  ck_assert_int_eq(f.cuda->retained, 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("device");

  kiln_test_case(s, "runtime", 0, set_up_runtime, tear_down,
                 TESTS(a_driver_without_gpu_counts_zero));
  kiln_test_case(
      s, "device", 30, set_up_device, tear_down,
      TESTS(
          open_makes_no_context, traits_hold_the_gpus_own_limits,
          a_gpu_newer_than_the_table_works, mixed_gpus_each_get_their_own_code,
          a_slice_of_a_gpu_says_so, opening_refuses_what_is_not_there,
          primary_context_is_retained_once_and_released,
          own_context_is_created_and_destroyed,
          foreign_context_is_only_borrowed,
          callers_context_comes_back_after_failures,
          a_current_context_is_not_pushed_again, a_destroyed_context_is_noticed,
          a_reset_device_takes_its_handles_along,
          a_reset_device_is_noticed_without_context_numbers,
          a_recycled_context_handle_is_told_by_its_number,
          an_old_driver_without_context_numbers_works,
          streams_are_made_as_asked, wrapped_streams_stay_the_callers,
          events_mark_and_time, null_arguments_are_refused,
          waiting_is_refused_while_captured_and_spoils_nothing,
          default_stream_tied_up_by_a_capture_is_refused,
          events_may_be_asked_while_another_stream_is_captured,
          threads_share_one_context));
  return kiln_test_run(s);
}
