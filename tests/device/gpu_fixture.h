/* gpu_fixture.h -- a runtime and the first GPU, for tests on a real driver. */
#ifndef GPU_FIXTURE_H
#define GPU_FIXTURE_H

#include "test_device.h"

#include "device/device.h"

#include <stdlib.h>
#include <string.h>

typedef struct gpu_fixture {
  kiln_runtime *rt;
  kiln_device *device;
  /* context that is current in this thread before each test, or NULL */
  CUcontext outer;
} gpu_fixture;

static gpu_fixture g;

static inline CUcontext current_context(void)
{
  CUcontext context = NULL;

  ck_assert_int_eq(g.rt->driver.ctxGetCurrent(&context), 0);
  return context;
}

static inline void gpu_set_up(void)
{
  memset(&g, 0, sizeof g);
  ck_kiln_ok(test_runtime(&g.rt, NULL));
  ck_kiln_ok(kiln_device_open(&g.device, g.rt, 0, NULL));
}

static inline void gpu_tear_down(void)
{
  ck_assert_ptr_eq(current_context(), g.outer);
  kiln_device_free(g.device);
  kiln_runtime_free(g.rt);
}

static inline kiln_module *gpu_load(kiln_device *device, const char *source)
{
  const kiln_program_desc desc = {.source = source};
  kiln_module *module = NULL;

  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  return module;
}

static inline kiln_kernel *gpu_kernel(kiln_module *module, const char *name)
{
  kiln_kernel *kernel = NULL;

  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  return kernel;
}

static inline CUdeviceptr gpu_alloc(kiln_device *device, size_t size)
{
  CUdeviceptr p = 0;

  ck_kiln_ok(kiln_memory_alloc(&p, device, size));
  return p;
}

/* Kernel that runs for `ns` nanoseconds. One thread is enough. */
#define SPIN                                                                   \
  "extern \"C\" __global__ void spin(long long ns)\n"                          \
  "{\n"                                                                        \
  "  long long from, now;\n"                                                   \
  "  asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(from));\n"           \
  "  do\n"                                                                     \
  "    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(now));\n"          \
  "  while (now - from < ns);\n"                                               \
  "}\n"

#endif
