/* device_fixture.h -- sets up a runtime on the fake driver and the fake NVRTC.
 * The teardown of each test checks that everything was freed. */
#ifndef DEVICE_FIXTURE_H
#define DEVICE_FIXTURE_H

#include "support.h"

#include "device/device.h"
#include "fake_cuda.h"
#include "fake_nvrtc.h"

#define FAKE_DRIVER KILN_TEST_FAKES "/fake_cuda.so"
#define FAKE_NVRTC KILN_TEST_FAKES "/fake_nvrtc.so"

#define SAXPY                                                                  \
  "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,"      \
  " unsigned n) {}\n"                                                          \
  "extern \"C\" __global__ void empty() {}\n"

typedef struct fixture {
  fake_cuda_control *cuda;
  fake_nvrtc_control *nvrtc;
  test_allocator alloc;
  char dir[256];
  kiln_runtime *rt;
  kiln_device *device;
  kiln_module *module;
  CUcontext outer; /* context that the test has made current, or NULL */
} fixture;

static fixture f;

/* Returns the context that is current in this thread. */
static inline CUcontext current_context(void)
{
  CUcontext context = NULL;

  ck_assert_int_eq(f.rt->driver.ctxGetCurrent(&context), 0);
  return context;
}

static inline void open_runtime(void)
{
  const kiln_runtime_opts opts = {.allocator = f.alloc.alloc,
                                  .driver_path = FAKE_DRIVER,
                                  .nvrtc_path = FAKE_NVRTC,
                                  .cache_dir = f.dir,
                                  .ignore_env = true};

  ck_kiln_ok(kiln_runtime_create(&f.rt, &opts));
}

static inline void set_up_runtime(void)
{
  memset(&f, 0, sizeof f);
  f.cuda = fake_cuda_of(FAKE_DRIVER);
  f.nvrtc = fake_nvrtc_of(FAKE_NVRTC);
  test_allocator_init(&f.alloc);
  test_dir_make(f.dir);
  open_runtime();
}

static inline void set_up_device(void)
{
  set_up_runtime();
  ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
}

static inline kiln_module *load_source(kiln_device *device, const char *source)
{
  const kiln_program_desc desc = {.source = source};
  kiln_module *module;

  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_assert_ptr_nonnull(module);
  return module;
}

static inline kiln_kernel *get_kernel(kiln_module *module, const char *name)
{
  kiln_kernel *kernel;

  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  ck_assert_ptr_nonnull(kernel);
  return kernel;
}

static inline void set_up_module(void)
{
  set_up_device();
  f.module = load_source(f.device, SAXPY);
}

/* Checks that the context of the caller is current again and that no rule of
 * the driver was violated. */
static inline void check_calm(void)
{
  ck_assert_msg(f.cuda->violations == 0, "the driver was misused: %s",
                f.cuda->violation);
  if (f.rt != NULL && f.rt->driver_ready && !kiln__forked(&f.rt->fork))
    ck_assert_ptr_eq(current_context(), f.outer);
}

static inline void tear_down(void)
{
  check_calm();
  kiln_module_free(f.module);
  /* Check that the module was unloaded by its own call, and not together with
   * the context. */
  ck_assert_int_eq(f.cuda->modules, 0);
  ck_assert_int_eq(f.cuda->streams, 0);
  ck_assert_int_eq(f.cuda->events, 0);
  ck_assert_int_eq(f.cuda->allocations, 0);
  kiln_device_free(f.device);
  check_calm();
  kiln_runtime_free(f.rt);
  ck_assert_msg(f.cuda->violations == 0, "the driver was misused: %s",
                f.cuda->violation);
  ck_assert_int_eq(f.cuda->contexts, 0);
  ck_assert_int_eq(f.cuda->retained, 0);
  ck_assert_int_eq(fake_cuda_live(f.cuda), 0);
  ck_assert_int_eq(f.nvrtc->programs, 0);
  ck_assert_int_eq(f.alloc.live, 0);
  test_dir_remove(f.dir);
}

#endif
