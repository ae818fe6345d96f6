/* core_test.c -- tests the runtime library: registration, launches, variables, errors,
 * devices, default streams, threads and fork. It is built once per major version, from
 * the declarations of this project, and registers its kernels as nvcc's code does. */
#include "host_code.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 5;\n"
    ".visible .const .align 4 .b8 table[16];\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shared_value = 7;\n"
    ".visible .entry add(.param .u64 to, .param .u32 n)\n{\n"
    "  .reg .u64 %a;\n  .reg .u32 %v, %n;\n"
    "  ld.param.u64 %a, [to];\n  ld.param.u32 %n, [n];\n"
    "  atom.global.add.u32 %v, [%a], %n;\n  ret;\n}\n"
    ".visible .entry count()\n{\n  .reg .u32 %v;\n"
    "  atom.global.add.u32 %v, [counter], 1;\n"
    "  atom.global.add.u32 %v, [shared_value], 1;\n  ret;\n}\n"
    ".visible .entry dynamic(.param .u64 to)\n.maxntid 64, 1, 1\n{\n  "
    "ret;\n}\n";

/* The addresses of these objects name the symbols. */
static char add, count, dynamic, absent, counter, table;
static void *shared_value;

static fat_binary binary;
static void **image;

static void setup(void)
{
  fat_binary_make(&binary, ptx);
  image = __cudaRegisterFatBinary(&binary);
  register_kernel(image, &add, "add");
  register_kernel(image, &count, "count");
  register_kernel(image, &dynamic, "dynamic");
  register_kernel(image, &absent, "absent");
  __cudaRegisterVar(image, &counter, NULL, "counter", 0, 4, 0, 0);
  __cudaRegisterVar(image, &table, NULL, "table", 0, 16, 1, 0);
  __cudaRegisterManagedVar(image, &shared_value, NULL, "shared_value", 0, 4, 0,
                           0);
  __cudaRegisterFatBinaryEnd(image);
}

static void teardown(void)
{
  __cudaUnregisterFatBinary(image);
  free(binary.data);
}

static const dim3 one = {1, 1, 1};

/* What launches of wrong shapes and of unknown kernels return */
#define WRONG_SHAPE                                                            \
  (KILN__RT_MAJOR < 13 ? "cudaErrorInvalidConfiguration"                       \
                       : "cudaErrorInvalidValue")
#define UNKNOWN_KERNEL                                                         \
  (KILN__RT_MAJOR < 12 ? "cudaErrorInvalidDeviceFunction"                      \
                       : "cudaErrorInvalidResourceHandle")
#define fails_as(call, name)                                                   \
  do {                                                                         \
    ck_assert_str_eq(cudaGetErrorName(call), name);                            \
    ck_assert_str_eq(cudaGetErrorName(cudaGetLastError()), name);              \
  } while (0)

static cudaError_t launch_add(void *to, unsigned n)
{
  void *arguments[] = {&to, &n};

  return cudaLaunchKernel(&add, one, one, arguments, 0, NULL);
}

static unsigned read_word(const void *from)
{
  unsigned value = 0;

  must(cudaMemcpy(&value, from, 4, cudaMemcpyDeviceToHost));
  return value;
}

static unsigned *zeroed(void)
{
  void *to;

  must(cudaMalloc(&to, 4));
  must(cudaMemset(to, 0, 4));
  return to;
}

/* ---- Launches -------------------------------------------------------------- */

START_TEST(configurations_are_a_stack)
{
  const dim3 outer = {2, 3, 4}, inner = {5, 6, 7};
  cudaStream_t stream = NULL;
  size_t shared;
  dim3 grid, block;

  ck_assert_uint_eq(__cudaPushCallConfiguration(outer, one, 8, NULL), 0);
  ck_assert_uint_eq(__cudaPushCallConfiguration(inner, one, 9, NULL), 0);
  must(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  ck_assert_uint_eq(grid.z, 7);
  ck_assert_uint_eq(shared, 9);
  must(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  ck_assert_uint_eq(grid.z, 4);
  ck_assert_uint_eq(shared, 8);
  fails(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
        cudaErrorMissingConfiguration);
  while (__cudaPushCallConfiguration(outer, one, 8, NULL) == 0) {
  }
}
END_TEST

START_TEST(kernels_run)
{
  unsigned *to = zeroed();

  must(launch_add(to, 40));
  must(launch_add(to, 2));
  ck_assert_uint_eq(read_word(to), 42);
  must(cudaFree(to));
}
END_TEST

START_TEST(bad_launches_are_rejected)
{
  const dim3 none = {0, 1, 1}, large = {1024, 2, 1}, many = {65, 1, 1};
  void *to = zeroed(), *arguments[] = {&to, &to};

  fails_as(cudaLaunchKernel(&add, none, one, arguments, 0, NULL), WRONG_SHAPE);
  fails_as(cudaLaunchKernel(&add, one, large, arguments, 0, NULL), WRONG_SHAPE);
  fails(cudaLaunchKernel(&dynamic, one, many, arguments, 0, NULL),
        cudaErrorInvalidValue);
  fails(cudaLaunchKernel(&dynamic, one, one, arguments, 1 << 20, NULL),
        cudaErrorInvalidValue);
  fails(cudaLaunchKernel(&add, one, one, arguments, 0, (cudaStream_t)to),
        cudaErrorInvalidResourceHandle);
  fails(cudaLaunchKernel(&absent, one, one, arguments, 0, NULL),
        cudaErrorInvalidDeviceFunction);
  fails_as(cudaLaunchKernel(&to, one, one, arguments, 0, NULL), UNKNOWN_KERNEL);
  fails(cudaLaunchKernel(NULL, one, one, arguments, 0, NULL),
        cudaErrorInvalidDeviceFunction);
  ck_assert_uint_eq(read_word(to), 0);
}
END_TEST

START_TEST(attributes_are_those_of_the_kernel)
{
  cudaFuncAttributes_12 a;
  int blocks = 0;

  must(cudaFuncGetAttributes((void *)&a, &dynamic));
  ck_assert_int_eq(a.maxThreadsPerBlock, 64);
  must(cudaFuncSetAttribute(&dynamic, 8, 1000));
  must(cudaFuncGetAttributes((void *)&a, &dynamic));
  ck_assert_int_eq(a.maxDynamicSharedSizeBytes, 1000);
  fails(cudaFuncSetAttribute(&dynamic, 4, 1), cudaErrorInvalidValue);
  fails_as(cudaFuncGetAttributes((void *)&a, &blocks), UNKNOWN_KERNEL);
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &dynamic, 64, 0));
  ck_assert_int_gt(blocks, 0);
}
END_TEST

START_TEST(extended_and_cooperative_launches_run)
{
  unsigned *to = zeroed(), n = 3;
  void *arguments[] = {&to, &n};
  cudaLaunchConfig_t config = {.gridDim = {2, 1, 1}, .blockDim = {4, 1, 1}};

  must(cudaLaunchKernelExC(&config, &add, arguments));
  must(cudaLaunchCooperativeKernel(&add, config.gridDim, one, arguments, 0,
                                   NULL));
  ck_assert_uint_eq(read_word(to), 2 * 4 * 3 + 2 * 3);
  fails(cudaLaunchKernelExC(NULL, &add, arguments), cudaErrorInvalidValue);
}
END_TEST

#if KILN__RT_MAJOR >= 12
START_TEST(handles_launch_like_their_functions)
{
  unsigned *to = zeroed(), n = 3;
  void *arguments[] = {&to, &n};
  cudaKernel_t kernel = NULL, missing = NULL;
  const char *name;

  must(__cudaGetKernel(&kernel, &add));
  must(__cudaLaunchKernel(kernel, one, one, arguments, 0, NULL));
  must(cudaLaunchKernel(kernel, one, one, arguments, 0, NULL));
  ck_assert_uint_eq(read_word(to), 6);
  must(cudaFuncGetName(&name, &add));
  ck_assert_str_eq(name, "add");
  /* Host code ignores the status of __cudaGetKernel(). */
  ck_assert_int_eq(__cudaGetKernel(&missing, &absent),
                   cudaErrorInvalidDeviceFunction);
  fails(__cudaLaunchKernel(missing, one, one, arguments, 0, NULL),
        cudaErrorInvalidDeviceFunction);
  /* The handle outlives a reset of the device. */
  must(cudaDeviceReset());
  to = zeroed();
  must(__cudaLaunchKernel(kernel, one, one, arguments, 0, NULL));
  ck_assert_uint_eq(read_word(to), 3);
}
END_TEST
#endif

/* ---- Registration ---------------------------------------------------------- */

START_TEST(many_symbols_are_found)
{
  enum { N = 3000 };
  static char hosts[N];
  unsigned *to = zeroed(), n = 1;
  void *arguments[] = {&to, &n};
  void **more = __cudaRegisterFatBinary(&binary);

  for (int i = 0; i < N; i++)
    register_kernel(more, &hosts[i], i % 2 == 0 ? "add" : "absent");
  for (int i = 0; i < N; i += 500)
    must(cudaLaunchKernel(&hosts[i], one, one, arguments, 0, NULL));
  fails(cudaLaunchKernel(&hosts[501], one, one, arguments, 0, NULL),
        cudaErrorInvalidDeviceFunction);
  __cudaUnregisterFatBinary(more);
  fails_as(cudaLaunchKernel(&hosts[0], one, one, arguments, 0, NULL),
           UNKNOWN_KERNEL);
  must(launch_add(to, 1));
  ck_assert_uint_eq(read_word(to), 7);
}
END_TEST

/* A damaged fat binary fails when it is first used, and harms no other. */
START_TEST(damaged_images_fail_at_first_use)
{
  static char host;
  fat_binary damaged;
  void **other;

  fat_binary_make(&damaged, ".version 6.0\n.target sm_52\nnonsense\n");
  other = __cudaRegisterFatBinary(&damaged);
  register_kernel(other, &host, "add");
  must(launch_add(zeroed(), 1));
  fails(cudaLaunchKernel(&host, one, one, NULL, 0, NULL), cudaErrorInvalidPtx);
  fails(cudaLaunchKernel(&host, one, one, NULL, 0, NULL), cudaErrorInvalidPtx);
  must(launch_add(zeroed(), 1));
  __cudaUnregisterFatBinary(other);
  free(damaged.data);
  damaged.data = NULL;
  other = __cudaRegisterFatBinary(&damaged);
  register_kernel(other, &host, "add");
  fails(cudaLaunchKernel(&host, one, one, NULL, 0, NULL),
        cudaErrorInvalidKernelImage);
  __cudaUnregisterFatBinary(other);
}
END_TEST

/* Changes some bytes of `size` bytes. */
static void damage(void *bytes, size_t size, uint32_t *random)
{
  for (unsigned n = 1 + (*random >> 8) % 3; n > 0; n--) {
    *random = *random * 1664525 + 1013904223;
    ((unsigned char *)bytes)[(*random >> 8) % size] ^=
        (unsigned char)(1u << (*random >> 28 & 7));
  }
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Wrappers and headers with wrong bits: sizes that lead past the end of the mapped memory,
 * pointers to nowhere, other versions. The text itself is not changed. A wrong pointer or
 * size may lead to memory of other objects. The address sanitizer reports this, so the test
 * does not run with it. */
START_TEST(damaged_headers_are_survived)
{
  enum { HEAD = 80, PAGE = 4096 };
  const int rounds = getenv("KILN_TEST_THOROUGH") != NULL ? 20000 : 300;
  const size_t size = HEAD + strlen(ptx) + 1;
  unsigned char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char *data = pages + 2 * PAGE - (size + 7) / 8 * 8;
  cudaFuncAttributes_12 attributes;
  uint32_t random = 7;
  int refused = 0;
  static char host;

  ck_assert_ptr_ne(pages, MAP_FAILED);
  ck_assert_uint_lt(size, 2 * PAGE);
  ck_assert_int_eq(mprotect(pages + 2 * PAGE, PAGE, PROT_NONE), 0);
  ck_assert_int_eq(munmap(pages + 3 * PAGE, PAGE), 0);
  for (int i = 0; i < rounds; i++) {
    fat_binary wrapper = binary;
    void **damaged;

    memcpy(data, binary.data, size);
    wrapper.data = data;
    if (i % 3 != 0)
      damage(data, HEAD, &random);
    if (i % 3 != 1)
      damage(&wrapper, sizeof wrapper, &random);
    damaged = __cudaRegisterFatBinary(&wrapper);
    register_kernel(damaged, &host, "add");
    refused += cudaFuncGetAttributes((void *)&attributes, &host) != cudaSuccess;
    __cudaUnregisterFatBinary(damaged);
  }
  (void)cudaGetLastError();
  ck_assert_int_gt(refused, rounds / 4);
  munmap(pages, 3 * PAGE);
  must(launch_add(zeroed(), 1));
}
END_TEST

/* ---- Variables ------------------------------------------------------------- */

START_TEST(variables_are_copied_and_checked)
{
  unsigned value = 0;
  size_t size = 0;
  void *address = NULL;

  must(cudaGetSymbolSize(&size, &counter));
  ck_assert_uint_eq(size, 4);
  must(cudaGetSymbolAddress(&address, &counter));
  ck_assert_uint_eq(read_word(address), 5);
  must(cudaLaunchKernel(&count, one, one, NULL, 0, NULL));
  must(cudaMemcpyFromSymbol(&value, &counter, 4, 0, cudaMemcpyDeviceToHost));
  ck_assert_uint_eq(value, 6);
  value = 0xabcd;
  must(cudaMemcpyToSymbol(&table, &value, 4, 12, cudaMemcpyHostToDevice));
  value = 0;
  must(cudaMemcpyFromSymbol(&value, &table, 4, 12, cudaMemcpyDefault));
  ck_assert_uint_eq(value, 0xabcd);
  fails(cudaMemcpyToSymbol(&table, &value, 4, 13, cudaMemcpyHostToDevice),
        cudaErrorInvalidValue);
  fails(cudaMemcpyToSymbol(&table, &value, SIZE_MAX, 4, cudaMemcpyHostToDevice),
        cudaErrorInvalidValue);
  fails(cudaMemcpyToSymbol(&table, &value, 4, 0, cudaMemcpyDeviceToHost),
        cudaErrorInvalidMemcpyDirection);
  fails(cudaGetSymbolAddress(&address, &add), cudaErrorInvalidSymbol);
  fails(cudaGetSymbolAddress(&address, &value), cudaErrorInvalidSymbol);
  fails(cudaGetSymbolAddress(&address, NULL), cudaErrorInvalidSymbol);
}
END_TEST

START_TEST(managed_variables_are_shared)
{
  void *address = NULL;

  __cudaInitModule(image);
  ck_assert_ptr_nonnull(shared_value);
  ck_assert_uint_eq(*(unsigned *)shared_value, 7);
  must(cudaLaunchKernel(&count, one, one, NULL, 0, NULL));
  must(cudaDeviceSynchronize());
  ck_assert_uint_eq(*(unsigned *)shared_value, 8);
  must(cudaGetSymbolAddress(&address, &shared_value));
  ck_assert_ptr_eq(address, shared_value);
  must(cudaGetSymbolAddress(&address, shared_value));
  ck_assert_ptr_eq(address, shared_value);
}
END_TEST

/* ---- Errors ---------------------------------------------------------------- */

static void *other_thread(void *none)
{
  ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
  ck_assert_int_eq(cudaSetDevice(77), cudaErrorInvalidDevice);
  return none;
}

START_TEST(the_last_error_belongs_to_the_thread)
{
  pthread_t thread;

  ck_assert_int_eq(cudaSetDevice(99), cudaErrorInvalidDevice);
  must(cudaFree(NULL)); /* a success leaves the last error alone */
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, NULL);
  ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
  ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
  ck_assert_str_eq(cudaGetErrorString(cudaErrorInvalidDevice),
                   "invalid device ordinal");
  ck_assert_str_eq(cudaGetErrorName(12345), "unrecognized error code");
}
END_TEST

/* A reset does not repair the process. */
START_TEST(a_fault_lasts)
{
  void *to;

  must(launch_add(NULL, 1));
  fails(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  fails(cudaMalloc(&to, 4), cudaErrorIllegalAddress);
  must(cudaDeviceReset());
  fails(cudaMalloc(&to, 4), cudaErrorDevicesUnavailable);
  fails(launch_add(NULL, 1), cudaErrorDevicesUnavailable);
}
END_TEST

/* ---- Devices and contexts -------------------------------------------------- */

START_TEST(the_current_context_of_the_driver_is_used)
{
  CUcontext made, now = NULL;
  CUdevice device;
  int chosen = -1;
  void *to;

  ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
  ck_assert_int_eq(cuDeviceGet(&device, 1), CUDA_SUCCESS);
  ck_assert_int_eq(cuCtxCreate_v2(&made, 0, device), CUDA_SUCCESS);
  must(cudaGetDevice(&chosen));
  ck_assert_int_eq(chosen, 1);
  must(cudaMalloc(&to, 4));
  ck_assert_int_eq(cuCtxGetCurrent(&now), CUDA_SUCCESS);
  ck_assert_ptr_eq(now, made);
  must(cudaSetDevice(0)); /* replaces it by the primary context */
  ck_assert_int_eq(cuCtxGetCurrent(&now), CUDA_SUCCESS);
  ck_assert_ptr_ne(now, made);
  must(cudaGetDevice(&chosen));
  ck_assert_int_eq(chosen, 0);
}
END_TEST

START_TEST(devices_have_their_own_variables)
{
  unsigned value = 0;

  for (int i = 0; i < 2; i++) {
    must(cudaSetDevice(i));
    for (int k = 0; k <= i; k++)
      must(cudaLaunchKernel(&count, one, one, NULL, 0, NULL));
  }
  for (int i = 0; i < 2; i++) {
    must(cudaSetDevice(i));
    must(cudaMemcpyFromSymbol(&value, &counter, 4, 0, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(value, 6u + (unsigned)i);
  }
}
END_TEST

static void hold_shortly(void *none)
{
  (void)none;
  usleep(20000);
}

/* A blocking copy between devices waits for earlier work of both, and later work waits
 * for the copy. */
START_TEST(copies_between_devices_are_ordered)
{
  unsigned *there, *here = zeroed();
  void *host = NULL;

  must(cudaSetDevice(1));
  there = zeroed();
  must(cudaLaunchHostFunc(NULL, hold_shortly, host));
  must(launch_add(there, 9));
  must(cudaSetDevice(0));
  must(cudaMemcpyPeer(here, 0, there, 1, 4));
  ck_assert_uint_eq(read_word(here), 9);
  must(cudaSetDevice(1));
  must(cudaLaunchHostFunc(NULL, hold_shortly, host));
  must(launch_add(there, 1));
  must(cudaMemcpyPeer(here, 0, there, 1, 4));
  must(cudaSetDevice(0));
  ck_assert_uint_eq(read_word(here), 10);
  must(cudaDeviceEnablePeerAccess(1, 0));
  fails(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  fails(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
  must(launch_add(there, 1));
  must(cudaDeviceDisablePeerAccess(1));
  fails(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
}
END_TEST

START_TEST(properties_agree_with_attributes)
{
#if KILN__RT_MAJOR == 13
  cudaDeviceProp_13 p;
#else
  cudaDeviceProp_11 p;
#endif
  int value = 0;

  must(cudaGetDeviceProperties(&p, 1));
  must(cudaDeviceGetAttribute(&value, 75, 1));
  ck_assert_int_eq(p.major, value);
  must(cudaDeviceGetAttribute(&value, 111, 1));
  ck_assert_uint_eq(p.reservedSharedMemPerBlock, (size_t)value);
  must(cudaDeviceGetAttribute(&value, 33, 1));
  ck_assert_int_eq(p.pciBusID, value);
  fails(cudaGetDeviceProperties(&p, 2), cudaErrorInvalidDevice);
  fails(cudaDeviceGetAttribute(&value, 75, -1), cudaErrorInvalidDevice);
#if KILN__RT_MAJOR == 12
  cudaDeviceProp_12 now;

  must(cudaGetDeviceProperties_v2(&now, 0));
  must(cudaDeviceGetAttribute(&value, 120, 0));
  ck_assert_int_eq(now.clusterLaunch, value);
#endif
}
END_TEST

START_TEST(flags_and_lists_of_devices_are_checked)
{
  int devices[] = {1, 1}, device = -1;
  unsigned flags = 0;

  fails(cudaSetDeviceFlags(3), cudaErrorInvalidValue);
  fails(cudaSetDeviceFlags(0x100), cudaErrorInvalidValue);
  must(cudaSetDeviceFlags(4));
  must(cudaGetDeviceFlags(&flags));
  ck_assert_uint_eq(flags & 7, 4);
  fails(cudaSetValidDevices(devices, 2), cudaErrorInvalidDevice);
  must(cudaSetValidDevices(devices, 1));
  must(cudaFree(NULL));
  must(cudaGetDevice(&device));
  ck_assert_int_eq(device, 1);
}
END_TEST

/* ---- Memory ---------------------------------------------------------------- */

START_TEST(memory_is_described)
{
  cudaPointerAttributes_13 a;
  void *to = zeroed(), *host = NULL, *none = &none;

  must(cudaPointerGetAttributes((void *)&a, to));
  ck_assert_int_eq(a.type, cudaMemoryTypeDevice);
  must(cudaHostAlloc(&host, 64, 0));
  must(cudaPointerGetAttributes((void *)&a, host));
  ck_assert_int_eq(a.type, cudaMemoryTypeHost);
  ck_assert_ptr_eq(a.hostPointer, host);
  must(cudaPointerGetAttributes((void *)&a, &a));
  ck_assert_int_eq(a.type, cudaMemoryTypeUnregistered);
  must(cudaFreeHost(host));
  must(cudaMalloc(&none, 0));
  ck_assert_ptr_null(none);
  must(cudaFreeHost(NULL));
  fails(cudaFree(&a), cudaErrorInvalidValue);
  fails(cudaMemcpy(to, &a, 4, 9), cudaErrorInvalidMemcpyDirection);
  fails(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
  must(cudaMemcpy(to, to, 0, cudaMemcpyDeviceToDevice));
}
END_TEST

/* ---- Default streams ------------------------------------------------------- */

static void hold(void *gate)
{
  pthread_mutex_lock(gate);
  pthread_mutex_unlock(gate);
}

/* The host holds a stream that blocks. The legacy stream would wait for it, the
 * thread's stream does not. */
START_TEST(null_is_the_threads_stream_in_the_per_thread_form)
{
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  cudaStream_t held;
  unsigned *to = zeroed(), n = 2;
  void *arguments[] = {&to, &n};

  must(cudaStreamCreate(&held));
  pthread_mutex_lock(&gate);
  must(cudaLaunchHostFunc(held, hold, &gate));
  must(cudaLaunchKernel_ptsz(&add, one, one, arguments, 0, NULL));
  must(cudaStreamSynchronize_ptsz(NULL));
  must(cudaStreamQuery(cudaStreamPerThread));
  must(cudaMemcpyAsync_ptsz(to, &n, 4, cudaMemcpyHostToDevice, NULL));
  must(cudaMemcpy_ptds(&n, to, 4, cudaMemcpyDeviceToHost));
  ck_assert_uint_eq(n, 2);
  must(launch_add(to, 1));
  ck_assert_int_eq(cudaStreamQuery(NULL), cudaErrorNotReady);
  pthread_mutex_unlock(&gate);
  ck_assert_uint_eq(read_word(to), 3);
  must(cudaStreamDestroy(held));
}
END_TEST

START_TEST(events_measure_and_order)
{
  cudaEvent_t from, to;
  float milliseconds = -1;

  must(cudaEventCreate(&from));
  must(cudaEventCreate(&to));
  fails(cudaEventElapsedTime(&milliseconds, from, to),
        cudaErrorInvalidResourceHandle);
  must(cudaEventRecord(from, NULL));
  must(launch_add(zeroed(), 1));
  must(cudaEventRecord(to, NULL));
  must(cudaEventSynchronize(to));
  must(cudaEventElapsedTime(&milliseconds, from, to));
  ck_assert(milliseconds >= 0);
  must(cudaEventDestroy(from));
  must(cudaEventDestroy(to));
}
END_TEST

/* ---- Threads and processes ------------------------------------------------- */

static void *launch_often(void *to)
{
  for (int i = 0; i < 50; i++) {
    ck_assert_int_eq(launch_add(to, 1), cudaSuccess);
    ck_assert_int_eq(cudaLaunchKernel(&count, one, one, NULL, 0, NULL),
                     cudaSuccess);
  }
  return NULL;
}

/* The first use of everything happens in several threads at the same time. */
START_TEST(threads_start_and_launch_at_the_same_time)
{
  enum { N = 6 };
  static unsigned words[1];
  pthread_t threads[N];
  void *to = NULL;

  must(cudaHostAlloc(&to, sizeof words, 0));
  *(unsigned *)to = 0;
  for (int i = 0; i < N; i++)
    pthread_create(&threads[i], NULL, launch_often, to);
  for (int i = 0; i < N; i++)
    pthread_join(threads[i], NULL);
  must(cudaDeviceSynchronize());
  ck_assert_uint_eq(*(unsigned *)to, 50 * N);
  must(cudaFreeHost(to));
}
END_TEST

static void *use_first(void *none)
{
  int n = 0;

  ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
  ck_assert_int_eq(cudaGetDeviceCount(&n), cudaSuccess);
  ck_assert_int_eq(cudaLaunchKernel(&count, one, one, NULL, 0, NULL),
                   cudaSuccess);
  ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
  return none;
}

START_TEST(threads_may_make_the_first_calls)
{
  pthread_t threads[4];

  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, use_first, NULL);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
}
END_TEST

static int child_result(cudaError_t wanted)
{
  const pid_t child = fork();
  int status = -1;

  if (child == 0)
    _exit(cudaFree(NULL) == wanted ? 0 : 1);
  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return status;
}

/* A child can use CUDA if its parent did not. */
START_TEST(children_fail_after_the_parent_started)
{
  ck_assert_int_eq(child_result(cudaSuccess), 0);
  must(cudaFree(NULL));
  ck_assert_int_eq(child_result(cudaErrorInitializationError), 0);
  must(launch_add(zeroed(), 1));
}
END_TEST

/* Loads images all the time, which takes the lock of the registry. */
static void *load_until(void *stop)
{
  static char host;

  while (!atomic_load((atomic_bool *)stop)) {
    void **more = __cudaRegisterFatBinary(&binary);

    register_kernel(more, &host, "add");
    cudaLaunchKernel(&host, one, one, NULL, 0, NULL);
    __cudaUnregisterFatBinary(more);
  }
  return NULL;
}

/* A child that exits while a thread of its parent used the registry does not hang. */
START_TEST(children_exit_while_the_parent_launches)
{
  atomic_bool stop = false;
  pthread_t thread;

  must(cudaFree(NULL));
  pthread_create(&thread, NULL, load_until, &stop);
  for (int i = 0; i < 20; i++) {
    const pid_t child = fork();
    int status = -1;

    if (child == 0) {
      __cudaUnregisterFatBinary(image);
      _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
  }
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
}
END_TEST

/* The program of a child: leaves an allocation to the reset. */
static int leak(void)
{
  void *to;

  return cudaMalloc(&to, 12) == cudaSuccess && cudaDeviceReset() == cudaSuccess
             ? 0
             : 1;
}

static void run_leak(const char *report)
{
  setenv("KILN_CPU", "cpu:9.0,check=mem", 1);
  setenv("KILN_CPU_REPORT", report, 1);
  execl("/proc/self/exe", "cudart_core", "leak", (char *)NULL);
  _exit(1);
}

START_TEST(leaks_are_reported_at_the_reset)
{
  char path[] = "/tmp/kiln-cudart-XXXXXX", text[4096] = "";
  const int file = mkstemp(path);
  int status = -1;
  pid_t child;

  ck_assert_int_ge(file, 0);
  child = fork();
  if (child == 0)
    run_leak(path);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_ge(read(file, text, sizeof text - 1), 0);
  close(file);
  unlink(path);
  ck_assert_int_eq(status, 0);
  ck_assert_ptr_nonnull(strstr(text, "leak: 12 bytes"));
}
END_TEST

/* The driver reads KILN_CPU when it is loaded, so the program starts again with the
 * variable set. */
static void want_two_devices(char **argv)
{
  if (getenv("KILN_CPU") != NULL)
    return;
  setenv("KILN_CPU", "cpu:9.0,devices=2", 1);
  execv("/proc/self/exe", argv);
  abort();
}

static int run_all(void)
{
  Suite *suite = suite_create("cudart core");
  TCase *all = tcase_create("core");
  SRunner *runner = srunner_create(suite);
  int failed;

  tcase_add_checked_fixture(all, setup, teardown);
  tcase_set_timeout(all, 60);
  tcase_add_test(all, configurations_are_a_stack);
  tcase_add_test(all, kernels_run);
  tcase_add_test(all, bad_launches_are_rejected);
  tcase_add_test(all, attributes_are_those_of_the_kernel);
  tcase_add_test(all, extended_and_cooperative_launches_run);
#if KILN__RT_MAJOR >= 12
  tcase_add_test(all, handles_launch_like_their_functions);
#endif
  tcase_add_test(all, many_symbols_are_found);
  tcase_add_test(all, damaged_images_fail_at_first_use);
  if (!SANITIZED)
    tcase_add_test(all, damaged_headers_are_survived);
  tcase_add_test(all, variables_are_copied_and_checked);
  tcase_add_test(all, managed_variables_are_shared);
  tcase_add_test(all, the_last_error_belongs_to_the_thread);
  tcase_add_test(all, a_fault_lasts);
  tcase_add_test(all, the_current_context_of_the_driver_is_used);
  tcase_add_test(all, devices_have_their_own_variables);
  tcase_add_test(all, copies_between_devices_are_ordered);
  tcase_add_test(all, properties_agree_with_attributes);
  tcase_add_test(all, flags_and_lists_of_devices_are_checked);
  tcase_add_test(all, memory_is_described);
  tcase_add_test(all, null_is_the_threads_stream_in_the_per_thread_form);
  tcase_add_test(all, events_measure_and_order);
  tcase_add_test(all, threads_start_and_launch_at_the_same_time);
  tcase_add_test(all, threads_may_make_the_first_calls);
  tcase_add_test(all, children_fail_after_the_parent_started);
  tcase_add_test(all, children_exit_while_the_parent_launches);
  tcase_add_test(all, leaks_are_reported_at_the_reset);
  suite_add_tcase(suite, all);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "leak") == 0)
    return leak();
  want_two_devices(argv);
  return run_all();
}
