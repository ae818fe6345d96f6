/* api_context_test.c -- tests devices, contexts, attributes and error
 * descriptions of the CPU device's driver. */
#include "api_fixture.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>

/* ---- Devices ------------------------------------------------------------- */

START_TEST(nothing_before_init)
{
  int n;
  CUcontext c;
  CUdeviceptr p;

  is(cu(deviceGetCount)(&n), CUDA_ERROR_NOT_INITIALIZED);
  is(cu(ctxCreate)(&c, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
  is(cu(ctxGetCurrent)(&c), CUDA_ERROR_NOT_INITIALIZED);
  is(cu(ctxSynchronize)(), CUDA_ERROR_NOT_INITIALIZED);
  is(cu(memAlloc)(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
  is(cu(init)(1), CUDA_ERROR_INVALID_VALUE);
  ok(cu(driverGetVersion)(&n));
  ck_assert_int_eq(n, 13000);
  ok(cu(init)(0));
  ok(cu(init)(0));
  ok(cu(deviceGetCount)(&n));
  ck_assert_int_eq(n, 1);
  is(cu(memAlloc)(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

static int attribute(CUdevice_attribute a)
{
  int value;

  ok(cu(deviceGetAttribute)(&value, a, 0));
  return value;
}

/* The expected numbers are copied by hand from the table of compute
 * capabilities in the CUDA C++ Programming Guide. */
START_TEST(attributes_are_the_architecture_s)
{
  static const struct {
    int arch, shared, optin, sm_shared, threads, blocks, cluster;
  } rows[] = {
      {35, 48, 48, 48, 2048, 16, 0},   {61, 48, 48, 96, 2048, 32, 0},
      {75, 48, 64, 64, 1024, 16, 0},   {80, 48, 163, 164, 2048, 32, 0},
      {90, 48, 227, 228, 2048, 32, 1}, {120, 48, 99, 100, 1536, 24, 1},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const kiln_cpu_opts opts = {.arch = rows[i].arch};
    char name[64], want[64];

    ck_kiln_ok(kiln_cpu_configure(&opts));
    ok(cu(init)(0));
    ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                     rows[i].arch / 10);
    ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                     rows[i].arch % 10);
    ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
                     rows[i].shared * 1024);
    ck_assert_int_eq(
        attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        rows[i].optin * 1024);
    ck_assert_int_eq(
        attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        rows[i].sm_shared * 1024);
    ck_assert_int_eq(
        attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        rows[i].threads);
    ck_assert_int_eq(
        attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        rows[i].blocks);
    ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH),
                     rows[i].cluster);
    ok(cu(deviceGetName)(name, sizeof name, 0));
    snprintf(want, sizeof want, "Kiln CPU device, compute %d.%d",
             rows[i].arch / 10, rows[i].arch % 10);
    ck_assert_str_eq(name, want);
  }
  ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
}
END_TEST

START_TEST(devices_have_names_ids_and_places)
{
  const kiln_cpu_opts opts = {.devices = 3, .memory_bytes = 1 << 20};
  CUuuid a, b;
  char text[16], small[4];
  size_t bytes;
  int n, device;

  ck_kiln_ok(kiln_cpu_configure(&opts));
  ok(cu(init)(0));
  ok(cu(deviceGetCount)(&n));
  ck_assert_int_eq(n, 3);
  ok(cu(deviceGetUuid)(&a, 0));
  ok(cu(deviceGetUuid)(&b, 1));
  ck_assert_mem_ne(&a, &b, sizeof a);
  ok(cu(deviceTotalMem)(&bytes, 2));
  ck_assert_uint_eq(bytes, 1 << 20);
  for (int i = 0; i < 3; i++) {
    int bus;

    ok(cu(deviceGetPCIBusId)(text, sizeof text, i));
    ok(cu(deviceGetByPCIBusId)(&device, text));
    ck_assert_int_eq(device, i);
    /* A PCI bus id is also accepted without its domain. */
    ok(cu(deviceGetByPCIBusId)(&device, text + 5));
    ck_assert_int_eq(device, i);
    ok(cu(deviceGetAttribute)(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
    ck_assert_int_eq(bus, (int)strtol(text + 5, NULL, 16));
  }
  is(cu(deviceGetByPCIBusId)(&device, "0000:01:00.0"),
     CUDA_ERROR_INVALID_DEVICE);
  is(cu(deviceGetByPCIBusId)(&device, "nonsense"), CUDA_ERROR_INVALID_VALUE);
  is(cu(deviceGetPCIBusId)(small, sizeof small, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cu(deviceGetName)(small, sizeof small, 0));
  ck_assert_str_eq(small, "Kil");
  is(cu(deviceGet)(&device, 3), CUDA_ERROR_INVALID_DEVICE);
  is(cu(deviceGet)(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  is(cu(deviceGet)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(deviceTotalMem)(&bytes, 3), CUDA_ERROR_INVALID_DEVICE);
  is(cu(deviceGetAttribute)(&n, 0, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(deviceGetAttribute)(&n, 1000, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cu(deviceCanAccessPeer)(&n, 0, 1));
  ck_assert_int_eq(n, 1);
  ok(cu(deviceCanAccessPeer)(&n, 1, 1));
  ck_assert_int_eq(n, 0);
  ok(cu(deviceGetP2PAttribute)(&n, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0,
                               2));
  ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(results_have_names_and_texts)
{
  static const struct {
    CUresult code;
    const char *name;
  } rows[] = {
#define KILN__CU_RESULT(name, value) {value, #name},
#define KILN__CU_CONSTANT(name, value)
#include "driver/driver_constants.def"
#undef KILN__CU_RESULT
#undef KILN__CU_CONSTANT
  };
  const char *text;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ok(cu(getErrorName)(rows[i].code, &text));
    ck_assert_str_eq(text, rows[i].name);
    ok(cu(getErrorString)(rows[i].code, &text));
    ck_assert_uint_gt(strlen(text), 5);
  }
  is(cu(getErrorName)(12345, &text), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(text);
  is(cu(getErrorString)(12345, &text), CUDA_ERROR_INVALID_VALUE);
  is(cu(getErrorName)(0, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Contexts ------------------------------------------------------------ */

static void *no_current(void *arg)
{
  CUcontext c = arg, got;

  ok(cu(ctxGetCurrent)(&got));
  ck_assert_ptr_null(got);
  is(cu(ctxPopCurrent)(&got), CUDA_ERROR_INVALID_CONTEXT);
  ok(cu(ctxSetCurrent)(c));
  ok(cu(ctxGetCurrent)(&got));
  ck_assert_ptr_eq(got, c);
  ok(cu(ctxSynchronize)());
  return NULL;
}

START_TEST(contexts_are_a_stack_of_the_thread)
{
  CUcontext c[20], got;
  unsigned long long id[2];
  pthread_t thread;
  CUdevice device;

  ok(cu(init)(0));
  for (int i = 0; i < 20; i++)
    ok(cu(ctxCreate)(&c[i], (unsigned)(i % 2) * CU_CTX_SCHED_SPIN, 0));
  pthread_create(&thread, NULL, no_current, c[3]);
  pthread_join(thread, NULL);
  for (int i = 19; i >= 0; i--) {
    unsigned flags;

    ok(cu(ctxGetFlags)(&flags));
    ck_assert_uint_eq(flags, (unsigned)(i % 2));
    ok(cu(ctxGetCurrent)(&got));
    ck_assert_ptr_eq(got, c[i]);
    ok(cu(ctxPopCurrent)(&got));
    ck_assert_ptr_eq(got, c[i]);
  }
  is(cu(ctxPopCurrent)(NULL), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxGetDevice)(&device), CUDA_ERROR_INVALID_CONTEXT);
  ok(cu(ctxSetCurrent)(NULL));
  ok(cu(ctxPushCurrent)(c[0]));
  /* This call replaces the context at the top of the stack. */
  ok(cu(ctxSetCurrent)(c[1]));
  ok(cu(ctxGetId)(NULL, &id[0]));
  ok(cu(ctxGetId)(c[1], &id[1]));
  ck_assert_uint_eq(id[0], id[1]);
  ok(cu(ctxGetId)(c[2], &id[1]));
  ck_assert_uint_ne(id[0], id[1]);
  ok(cu(ctxSetCurrent)(NULL));
  ok(cu(ctxGetCurrent)(&got));
  ck_assert_ptr_null(got);
  for (int i = 0; i < 20; i++)
    ok(cu(ctxDestroy)(c[i]));
  is(cu(ctxDestroy)(c[0]), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxPushCurrent)(c[0]), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxSetCurrent)(c[0]), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxGetId)(c[0], &id[0]), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(a_destroyed_context_stays_current_elsewhere)
{
  CUcontext outer = make_context(), inner = make_context(), again;
  CUdeviceptr p;

  ok(cu(ctxPushCurrent)(outer));
  /* The destroyed context is below the top of the context stack. */
  ok(cu(ctxDestroy)(inner));
  ok(cu(ctxPopCurrent)(NULL));
  is(cu(memAlloc)(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  /* The new context may have the address of the destroyed context. */
  again = make_context();
  ok(cu(ctxPopCurrent)(NULL));
  is(cu(ctxSynchronize)(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ok(cu(ctxPopCurrent)(NULL));
  ok(cu(ctxDestroy)(again));
  ok(cu(ctxDestroy)(outer));
}
END_TEST

START_TEST(wrong_context_arguments)
{
  CUcontext c;
  int local;
  unsigned version;
  size_t value;

  ok(cu(init)(0));
  is(cu(ctxCreate)(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(ctxCreate)(&c, 3, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(ctxCreate)(&c, 0x100, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(ctxCreate)(&c, 0, 1), CUDA_ERROR_INVALID_DEVICE);
  is(cu(ctxDestroy)(NULL), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxDestroy)((CUcontext)(void *)&local), CUDA_ERROR_INVALID_CONTEXT);
  is(cu(ctxDestroy)((CUcontext)(uintptr_t)0x1234567),
     CUDA_ERROR_INVALID_CONTEXT);
  c = make_context();
  is(cu(streamDestroy)((CUstream)(void *)c), CUDA_ERROR_INVALID_HANDLE);
  is(cu(ctxGetApiVersion)(c, NULL), CUDA_ERROR_INVALID_VALUE);
  ok(cu(ctxGetApiVersion)(c, &version));
  ck_assert_uint_ge(version, 3020);
  is(cu(ctxGetLimit)(&value, 99), CUDA_ERROR_INVALID_VALUE);
  is(cu(ctxGetLimit)(&value, CU_LIMIT_SHMEM_SIZE),
     CUDA_ERROR_UNSUPPORTED_LIMIT);
  is(cu(ctxSetLimit)(CU_LIMIT_STACK_SIZE, 1 << 30), CUDA_ERROR_INVALID_VALUE);
  ok(cu(ctxSetLimit)(CU_LIMIT_STACK_SIZE, 3000));
  ok(cu(ctxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
  ck_assert_uint_ge(value, 3000);
  ok(cu(ctxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 12345));
  ok(cu(ctxGetLimit)(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  ck_assert_uint_eq(value, 12345);
  is(cu(ctxSetCacheConfig)(7), CUDA_ERROR_INVALID_VALUE);
  ok(cu(ctxSetCacheConfig)(2));
  ok(cu(ctxGetCacheConfig)(&local));
  ck_assert_int_eq(local, 2);
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(primary_contexts_are_counted)
{
  CUcontext a, b;
  CUstream s;
  CUdeviceptr p;
  unsigned flags;
  int active;
  size_t before, after;

  ok(cu(init)(0));
  ok(cu(devicePrimaryCtxGetState)(0, &flags, &active));
  ck_assert_int_eq(active, 0);
  ok(cu(devicePrimaryCtxSetFlags)(0, CU_CTX_SCHED_YIELD));
  is(cu(devicePrimaryCtxSetFlags)(0, 7), CUDA_ERROR_INVALID_VALUE);
  is(cu(devicePrimaryCtxRelease)(0), CUDA_ERROR_INVALID_CONTEXT);
  ok(cu(devicePrimaryCtxRetain)(&a, 0));
  ok(cu(devicePrimaryCtxRetain)(&b, 0));
  ck_assert_ptr_eq(a, b);
  ok(cu(devicePrimaryCtxGetState)(0, &flags, &active));
  ck_assert_int_eq(active, 1);
  ck_assert_uint_eq(flags, CU_CTX_SCHED_YIELD);
  is(cu(ctxDestroy)(a), CUDA_ERROR_INVALID_CONTEXT);
  ok(cu(ctxSetCurrent)(a));
  ok(cu(memGetInfo)(&before, NULL));
  ok(cu(memAlloc)(&p, 4096));
  ok(cu(streamCreate)(&s, 0));
  ok(cu(devicePrimaryCtxReset)(0));
  is(cu(streamSynchronize)(s), CUDA_ERROR_INVALID_HANDLE);
  is(cu(memFree)(p), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memGetInfo)(&after, NULL));
  ck_assert_uint_eq(before, after);
  ok(cu(memAlloc)(&p, 4096)); /* The context must still be usable. */
  ok(cu(devicePrimaryCtxRelease)(0));
  ok(cu(ctxSynchronize)());
  ok(cu(devicePrimaryCtxRelease)(0));
  is(cu(ctxSynchronize)(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ok(cu(devicePrimaryCtxRetain)(&b, 0));
  ck_assert_ptr_eq(a, b);
  ok(cu(ctxSynchronize)());
  ok(cu(devicePrimaryCtxRelease)(0));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_context");

  kiln_test_case(s, "context", 120, NULL, NULL,
                 TESTS(nothing_before_init, attributes_are_the_architecture_s,
                       devices_have_names_ids_and_places,
                       results_have_names_and_texts,
                       contexts_are_a_stack_of_the_thread,
                       a_destroyed_context_stays_current_elsewhere,
                       wrong_context_arguments, primary_contexts_are_counted));
  return kiln_test_run(s);
}
