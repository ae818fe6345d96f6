/* api_memory_test.c -- tests allocations, copies, fills and memory pools of the
 * CPU device's driver against plain loops. */
#include "api_fixture.h"
#include "support.h"

#include <stdio.h>
#include <unistd.h>

static uint64_t seed = 7;

static unsigned below(unsigned n)
{
  return (unsigned)(test_random(&seed) % n);
}

static void scramble(uint8_t *p, size_t n)
{
  for (size_t i = 0; i < n; i++)
    p[i] = (uint8_t)test_random(&seed);
}

/* ---- Allocations --------------------------------------------------------- */

START_TEST(bytes_are_counted)
{
  const kiln_cpu_opts opts = {.memory_bytes = 1 << 20};
  CUcontext c;
  CUdeviceptr p, q;
  size_t unused, total;

  ck_kiln_ok(kiln_cpu_configure(&opts));
  c = make_context();
  ok(cu(memGetInfo)(&unused, &total));
  ck_assert_uint_eq(unused, 1 << 20);
  ck_assert_uint_eq(total, 1 << 20);
  is(cu(memAlloc)(&p, (1 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
  is(cu(memAlloc)(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cu(memAlloc)(&p, 1 << 19));
  is(cu(memAlloc)(&q, (1 << 19) + 1), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cu(memAlloc)(&q, 1 << 19));
  ok(cu(memGetInfo)(&unused, NULL));
  ck_assert_uint_eq(unused, 0);
  ok(cu(memFree)(p));
  ok(cu(memGetInfo)(&unused, NULL));
  ck_assert_uint_eq(unused, 1 << 19);
  ok(cu(memFree)(q));
  is(cu(memFree)(q), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memFree)(0));
  is(cu(memFree)(1234), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAlloc)(&p, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAlloc)(NULL, 16), CUDA_ERROR_INVALID_VALUE);
  is(cu(memGetInfo)(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  /* Destroying the context must free this allocation. */
  ok(cu(memAlloc)(&p, 1000));
  ok(cu(ctxDestroy)(c));
  c = make_context();
  ok(cu(memGetInfo)(&unused, NULL));
  ck_assert_uint_eq(unused, 1 << 20);
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(ranges_and_alignment)
{
  CUdeviceptr p[50], base;
  size_t bytes, pitch;

  for (int i = 0; i < 50; i++) {
    const size_t size = 1 + below(5000);

    ok(cu(memAlloc)(&p[i], size));
    ck_assert_uint_eq(p[i] % 512, 0);
    ok(cu(memGetAddressRange)(&base, &bytes, p[i] + size - 1));
    ck_assert_uint_eq(base, p[i]);
    ck_assert_uint_eq(bytes, size);
    is(cu(memGetAddressRange)(&base, &bytes, p[i] + size),
       CUDA_ERROR_NOT_FOUND);
    is(cu(memFree)(p[i] + 1), CUDA_ERROR_INVALID_VALUE);
  }
  for (int i = 0; i < 50; i++)
    ok(cu(memFree)(p[i]));
  is(cu(memGetAddressRange)(&base, &bytes, p[0]), CUDA_ERROR_NOT_FOUND);
  ok(cu(memAllocPitch)(&p[0], &pitch, 100, 7, 4));
  ck_assert_uint_ge(pitch, 100);
  ck_assert_uint_eq(pitch % 512, 0);
  ok(cu(memGetAddressRange)(NULL, &bytes, p[0]));
  ck_assert_uint_eq(bytes, pitch * 7);
  is(cu(memAllocPitch)(&p[0], &pitch, 100, 7, 5), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAllocPitch)(&p[0], &pitch, 0, 7, 4), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAllocPitch)(&p[0], NULL, 8, 7, 4), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* GPUs use 2 MiB pages for large allocations. */
static int advice_of(CUdeviceptr p, CUmem_range_attribute attribute)
{
  int value = 99;

  ok(cu(memRangeGetAttribute)(&value, 4, attribute, p, 4096));
  return value;
}

START_TEST(large_allocations_are_aligned_to_pages)
{
  static const size_t sizes[] = {1 << 20, 1500000, (2 << 20) + 1, 33554433};
  const size_t page = 2 << 20;

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    CUdeviceptr before, plain, managed;

    ok(cu(memAlloc)(&before, 1));
    ok(cu(memAlloc)(&plain, sizes[i]));
    ok(cu(memAllocManaged)(&managed, sizes[i], CU_MEM_ATTACH_GLOBAL));
    ck_assert_uint_eq(plain % page, 0);
    ck_assert_uint_eq(managed % page, 0);
    ok(cu(memsetD8)(managed, 7, sizes[i]));
    ck_assert_uint_eq(((uint8_t *)(uintptr_t)managed)[sizes[i] - 1], 7);
    ok(cu(memFree)(before));
    ok(cu(memFree)(plain));
    ok(cu(memFree)(managed));
  }
}
END_TEST

static int int_of(CUpointer_attribute a, CUdeviceptr p)
{
  int value = -77;

  ok(cu(pointerGetAttribute)(&value, a, p));
  return value;
}

START_TEST(pointers_say_what_they_are)
{
  CUcontext got;
  CUdeviceptr device = make_memory(100), managed, pool, start;
  char own[64];
  void *host, *back;
  uint64_t id[2];
  size_t size;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  int values[3];
  void *data[] = {&values[0], &values[1], &values[2]};

  ok(cu(memAllocManaged)(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  ok(cu(memAllocAsync)(&pool, 100, NULL));
  ok(cu(memHostAlloc)(&host, 100, CU_MEMHOSTALLOC_PORTABLE));
  ck_assert_int_eq(int_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 9),
                   CU_MEMORYTYPE_DEVICE);
  ck_assert_int_eq(
      int_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host),
      CU_MEMORYTYPE_HOST);
  ck_assert_int_eq(int_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), 1);
  ck_assert_int_eq(int_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, device), 0);
  ck_assert_int_eq(int_of(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pool), 0);
  ok(cu(pointerGetAttribute)(&got, CU_POINTER_ATTRIBUTE_CONTEXT, device));
  ck_assert_ptr_eq(got, context);
  ok(cu(pointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                             device + 50));
  ck_assert_uint_eq(start, device);
  ok(cu(pointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                             device + 50));
  ck_assert_uint_eq(size, 100);
  ok(cu(pointerGetAttribute)(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                             (CUdeviceptr)(uintptr_t)host + 5));
  ck_assert_ptr_eq(back, (char *)host + 5);
  is(cu(pointerGetAttribute)(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, device),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(pointerGetAttribute)(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
  ok(cu(pointerGetAttribute)(&id[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, pool));
  ck_assert_uint_ne(id[0], id[1]);
  is(cu(pointerGetAttribute)(&back, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             (CUdeviceptr)(uintptr_t)own),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(pointerGetAttribute)(&back, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(pointerGetAttribute)(&back, 99, device), CUDA_ERROR_INVALID_VALUE);
  is(cu(pointerGetAttribute)(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(pointerGetAttributes)(3, wanted, data, managed));
  ck_assert_int_eq(values[0], CU_MEMORYTYPE_DEVICE);
  ck_assert_int_eq(values[1], 1);
  ck_assert_int_eq(values[2], 0);
  ok(cu(pointerGetAttributes)(3, wanted, data, (CUdeviceptr)(uintptr_t)own));
  ck_assert_int_eq(values[0], 0);
  ck_assert_int_eq(values[2], -2);
  is(cu(pointerGetAttributes)(0, wanted, data, device),
     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(host_memory_has_its_own_address)
{
  CUcontext c = make_context();
  char *p, *own = malloc(10000);
  CUdeviceptr address;
  unsigned flags;

  ok(cu(memHostAlloc)((void **)&p, 5000, CU_MEMHOSTALLOC_WRITECOMBINED));
  memset(p, 3, 5000);
  ok(cu(memHostGetDevicePointer)(&address, p + 100, 0));
  ck_assert_uint_eq(address, (uintptr_t)p + 100);
  ok(cu(memHostGetFlags)(&flags, p));
  ck_assert_uint_ne(flags & CU_MEMHOSTALLOC_WRITECOMBINED, 0);
  is(cu(memHostGetDevicePointer)(&address, p + 5000, 0),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(memHostGetDevicePointer)(&address, own, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(memHostGetDevicePointer)(&address, p, 1), CUDA_ERROR_INVALID_VALUE);
  is(cu(memFree)((CUdeviceptr)(uintptr_t)p), CUDA_ERROR_INVALID_VALUE);
  is(cu(memFreeHost)(p + 8), CUDA_ERROR_INVALID_VALUE);
  is(cu(memHostUnregister)(p), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memFreeHost)(p));
  is(cu(memFreeHost)(p), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memFreeHost)(NULL));
  is(cu(memHostAlloc)((void **)&p, 10, 64), CUDA_ERROR_INVALID_VALUE);
  is(cu(memHostAlloc)((void **)&p, 0, 0), CUDA_ERROR_INVALID_VALUE);

  ok(cu(memHostRegister)(own, 10000, CU_MEMHOSTREGISTER_PORTABLE));
  is(cu(memHostRegister)(own + 5000, 100, 0),
     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ok(cu(memHostGetDevicePointer)(&address, own + 9999, 0));
  is(cu(memFreeHost)(own), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memHostUnregister)(own));
  is(cu(memHostUnregister)(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  is(cu(memHostRegister)(NULL, 10, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(memHostRegister)(own, 0, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(memHostRegister)(own, 16, 4), CUDA_ERROR_NOT_SUPPORTED);
  /* Destroying the context must unregister this memory. */
  ok(cu(memHostRegister)(own, 10000, 0));
  ok(cu(ctxDestroy)(c));
  memset(own, 1, 10000);
  free(own);
}
END_TEST

START_TEST(managed_memory_is_seen_by_both)
{
  CUdeviceptr p;
  uint32_t *host;
  int values[3];

  ok(cu(memAllocManaged)(&p, 4096, CU_MEM_ATTACH_GLOBAL));
  host = (uint32_t *)(uintptr_t)p;
  ok(cu(memsetD32)(p, 0xabcd1234, 1024));
  for (int i = 0; i < 1024; i++)
    ck_assert_uint_eq(host[i], 0xabcd1234);
  host[5] = 99;
  ok(cu(memcpyDtoD)(p, p + 20, 4));
  ok(cu(ctxSynchronize)());
  ck_assert_uint_eq(host[0], 99);
  is(cu(memAllocManaged)(&p, 10, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memAdviseV1)(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
  ok(cu(memAdviseV1)(p, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, -1));
  is(cu(memAdviseV1)(p, 4097, CU_MEM_ADVISE_SET_READ_MOSTLY, 0),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(memAdviseV1)(p, 16, 99, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAdviseV1)(p, 16, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 5),
     CUDA_ERROR_INVALID_DEVICE);
  ok(cu(memPrefetchAsyncV1)(p, 4096, 0, NULL));
  is(cu(memPrefetchAsyncV1)(p, 4096, 9, NULL), CUDA_ERROR_INVALID_DEVICE);
  ck_assert_int_eq(advice_of(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
  ck_assert_int_eq(advice_of(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), -1);
  ck_assert_int_eq(advice_of(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION),
                   0);
  ck_assert_int_eq(advice_of(p, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY), -2);
  ok(cu(memAdviseV1)(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
  ok(cu(memAdviseV1)(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, -1));
  ok(cu(memRangeGetAttribute)(values, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p,
                              4096));
  ck_assert_int_eq(values[0], -1);
  ck_assert_int_eq(values[1], 0);
  ck_assert_int_eq(values[2], -2);
  ok(cu(memAdviseV1)(p, 16, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
  ck_assert_int_eq(advice_of(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
  ok(cu(memPrefetchAsyncV1)(p, 16, -1, NULL)); /* now the places are mixed */
  ck_assert_int_eq(advice_of(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION),
                   -2);
  ok(cu(streamAttachMemAsync)(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
  ok(cu(memFree)(p));
}
END_TEST

static void nap_fn(void *user)
{
  (void)user;
  usleep(20000);
}

START_TEST(a_free_waits_for_its_context)
{
  CUstream s = make_stream(1);
  CUdeviceptr p = make_memory(4096);
  CUevent e = make_event();

  ok(cu(launchHostFunc)(s, nap_fn, NULL));
  ok(cu(memsetD8Async)(p, 1, 4096, s));
  ok(cu(eventRecord)(e, s));
  is(cu(eventQuery)(e), CUDA_ERROR_NOT_READY);
  ok(cu(memFree)(p));
  ok(cu(eventQuery)(e));
  ok(cu(ctxSynchronize)());
}
END_TEST

/* ---- Leaks --------------------------------------------------------------- */

static void count_leaks(void *user, const kiln_cpu_finding *f)
{
  ck_assert_uint_eq(f->check, KILN_CPU_CHECK_MEMORY);
  ck_assert_str_eq(f->kind, "leak");
  ck_assert_ptr_nonnull(strstr(f->text, "cuMemAlloc"));
  ck_assert_uint_eq(f->bytes, 1234);
  ++*(int *)user;
}

START_TEST(leaks_are_found_at_the_end)
{
  const kiln_cpu_opts opts = {.checks = KILN_CPU_CHECK_MEMORY};
  CUcontext c;
  CUdeviceptr p;
  int n = 0;

  ck_kiln_ok(kiln_cpu_configure(&opts));
  c = make_context();
  ok(cu(memAlloc)(&p, 1234));
  ok(cu(memAlloc)(&p, 99));
  ok(cu(memFree)(p));
  ok(cu(ctxDestroy)(c));
  ck_kiln_ok(kiln_cpu_take_findings(count_leaks, &n));
  ck_assert_int_eq(n, 1);
}
END_TEST

/* ---- Contiguous copies --------------------------------------------------- */

START_TEST(copies_in_all_directions)
{
  enum { N = 3000 };
  CUstream s = make_stream(0);
  CUdeviceptr a = make_memory(N), b = make_memory(N);
  uint8_t in[N], out[N], *pinned;

  ok(cu(memHostAlloc)((void **)&pinned, N, 0));
  for (int round = 0; round < 200; round++) {
    const size_t at = below(N), n = below((unsigned)(N - at) + 1);
    const CUstream t = below(2) == 0 ? s : NULL;

    scramble(in, N);
    scramble(out, N);
    memcpy(pinned, in, N);
    switch (below(6)) {
    case 0:
      ok(cu(memcpyHtoD)(a + at, in + at, n));
      ok(cu(memcpyDtoD)(b + at, a + at, n));
      ok(cu(memcpyDtoH)(out + at, b + at, n));
      break;
    case 1:
      ok(cu(memcpyHtoDAsync)(a + at, pinned + at, n, t));
      ok(cu(memcpyDtoDAsync)(b + at, a + at, n, t));
      ok(cu(memcpyDtoHAsync)(pinned + at, b + at, n, t));
      ok(cu(streamSynchronize)(t));
      memcpy(out + at, pinned + at, n);
      break;
    case 2:
      ok(cu(memcpy)(a + at, (CUdeviceptr)(uintptr_t)(in + at), n));
      ok(cu(memcpy)((CUdeviceptr)(uintptr_t)(out + at), a + at, n));
      break;
    case 3:
      ok(cu(memcpyAsync)(a + at, (CUdeviceptr)(uintptr_t)(in + at), n, t));
      ok(cu(memcpyPeerAsync)(b + at, context, a + at, context, n, t));
      ok(cu(memcpyAsync)((CUdeviceptr)(uintptr_t)(out + at), b + at, n, t));
      ok(cu(streamSynchronize)(t));
      break;
    case 4:
      ok(cu(memcpyHtoDPerThread)(a + at, in + at, n));
      ok(cu(memcpyDtoHPerThread)(out + at, a + at, n));
      break;
    default:
      ok(cu(memcpyHtoD)(a + at, pinned + at, n));
      ok(cu(memcpyPeer)(b + at, context, a + at, context, n));
      ok(cu(memcpyDtoH)(out + at, b + at, n));
    }
    ck_assert_mem_eq(in + at, out + at, n);
  }
}
END_TEST

START_TEST(copies_beyond_the_end_write_nothing)
{
  CUstream s = make_stream(0);
  CUdeviceptr p, q;
  uint8_t host[200], before[100], *pinned;
  const CUresult bad = CUDA_ERROR_INVALID_VALUE;

  ok(cu(memHostAlloc)((void **)&pinned, 100, 0));
  ok(cu(memAlloc)(&p, 100));
  ok(cu(memAlloc)(&q, 100));
  ok(cu(memsetD8)(p, 0x55, 100));
  scramble(host, sizeof host);
  is(cu(memcpyHtoD)(p, host, 101), bad);
  is(cu(memcpyHtoD)(p + 1, host, 100), bad);
  is(cu(memcpyHtoD)(p - 1, host, 2), bad);
  is(cu(memcpyHtoD)(p + 100, host, 1), bad);
  is(cu(memcpyHtoD)(0, host, 1), bad);
  is(cu(memcpyHtoD)(p, NULL, 1), bad);
  is(cu(memcpyHtoD)((CUdeviceptr)(uintptr_t)host, host + 50, 4), bad);
  is(cu(memcpyHtoD)(p, (void *)(uintptr_t)(q + 50), 51), bad);
  is(cu(memcpyHtoD)(p, pinned + 96, 5), bad);
  is(cu(memcpyDtoH)(pinned + 1, p, 100), bad);
  is(cu(memcpyDtoH)(host, p, 101), bad);
  is(cu(memcpyDtoH)(host, (CUdeviceptr)(uintptr_t)host, 4), bad);
  is(cu(memcpyDtoH)(NULL, p, 4), bad);
  is(cu(memcpyDtoD)(p, q, 101), bad);
  is(cu(memcpyDtoD)(p, q + 60, 41), bad);
  is(cu(memcpyHtoDAsync)(p, host, 101, s), bad);
  is(cu(memcpyDtoHAsync)(host, p + 50, 51, s), bad);
  is(cu(memcpyAsync)(p, q, SIZE_MAX, s), bad);
  is(cu(memsetD8)(p, 1, 101), bad);
  is(cu(memsetD16)(p, 1, 51), bad);
  is(cu(memsetD16)(p + 1, 1, 1), bad);
  is(cu(memsetD32)(p + 2, 1, 1), bad);
  is(cu(memsetD32)(p, 1, SIZE_MAX / 2), bad);
  is(cu(memsetD8Async)(p + 99, 1, 2, s), bad);
  is(cu(memcpyPeer)(p, context, q, NULL, 4), CUDA_ERROR_INVALID_CONTEXT);
  ok(cu(memcpyHtoD)(p, host, 0));
  ok(cu(memcpyDtoH)(before, p, 100));
  for (int i = 0; i < 100; i++)
    ck_assert_uint_eq(before[i], 0x55);
  ok(cu(memFree)(q));
  is(cu(memcpyDtoD)(p, q, 1), bad);
  ok(cu(ctxSynchronize)());
}
END_TEST

/* A pageable source may be modified as soon as the call returns, although the
 * copy is still pending in its stream. A pageable destination is complete when
 * the call returns. */
START_TEST(pageable_memory_is_staged)
{
  CUstream s = make_stream(1);
  CUdeviceptr p;
  static uint8_t in[200000], out[200000], want[200000];
  gate g = {0};

  ok(cu(memAlloc)(&p, sizeof in));
  scramble(in, sizeof in);
  memcpy(want, in, sizeof in);
  ok(cu(launchHostFunc)(s, gate_fn, &g));
  ok(cu(memcpyHtoDAsync)(p, in, sizeof in, s));
  memset(in, 0, sizeof in);
  is(cu(streamQuery)(s), CUDA_ERROR_NOT_READY);
  atomic_store(&g.open, true);
  ok(cu(memcpyDtoHAsync)(out, p, sizeof out, s));
  ck_assert_mem_eq(out, want, sizeof out);
}
END_TEST

/* A synchronous copy runs in the legacy stream, after the work of all blocking
 * streams. */
START_TEST(a_synchronous_copy_comes_after_blocking_streams)
{
  CUstream s = make_stream(0);
  CUdeviceptr p = make_memory(4);
  uint32_t value = 0;

  for (uint32_t i = 1; i < 100; i++) {
    atomic_int n = 0;

    ok(cu(launchHostFunc)(s, count_fn, &n));
    ok(cu(memsetD32Async)(p, i, 1, s));
    ok(cu(memcpyDtoH)(&value, p, 4));
    ck_assert_uint_eq(value, i);
    ck_assert_int_eq(atomic_load(&n), 1);
  }
}
END_TEST

/* ---- Two- and three-dimensional copies ----------------------------------- */

/* One side of a copy: bytes in host, device or unified memory, and a plain copy
 * of their expected values. */
typedef struct box_side {
  int type;
  size_t pitch, rows, slices;
  CUdeviceptr device;
  uint8_t *host, *want;
} box_side;

static size_t bytes_of(const box_side *b)
{
  return b->pitch * b->rows * b->slices;
}

static box_side side_make(void)
{
  static const int types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
                              CU_MEMORYTYPE_UNIFIED};
  box_side b = {.type = types[below(3)],
                .pitch = 1 + below(60),
                .rows = 1 + below(12),
                .slices = 1 + below(6)};

  b.want = malloc(bytes_of(&b));
  b.host = malloc(bytes_of(&b));
  scramble(b.want, bytes_of(&b));
  memcpy(b.host, b.want, bytes_of(&b));
  if (b.type == CU_MEMORYTYPE_DEVICE ||
      (b.type == CU_MEMORYTYPE_UNIFIED && below(2) == 0)) {
    ok(cu(memAlloc)(&b.device, bytes_of(&b)));
    ok(cu(memcpyHtoD)(b.device, b.want, bytes_of(&b)));
  } else {
    b.device = (CUdeviceptr)(uintptr_t)b.host;
  }
  return b;
}

static void side_check(box_side *b)
{
  if (b->device != (CUdeviceptr)(uintptr_t)b->host) {
    ok(cu(memcpyDtoH)(b->host, b->device, bytes_of(b)));
    ok(cu(memFree)(b->device));
  }
  ck_assert_mem_eq(b->host, b->want, bytes_of(b));
  free(b->host);
  free(b->want);
}

START_TEST(boxes_against_loops)
{
  CUstream s = make_stream(0);

  for (int round = 0; round < 400; round++) {
    box_side from = side_make(), to = side_make();
    const bool flat = below(2) == 0;
    CUDA_MEMCPY3D p = {.srcMemoryType = from.type, .dstMemoryType = to.type};
    size_t w = from.pitch < to.pitch ? from.pitch : to.pitch;
    size_t h = from.rows < to.rows ? from.rows : to.rows;
    size_t d = from.slices < to.slices ? from.slices : to.slices;

    p.WidthInBytes = w = 1 + below((unsigned)w);
    p.Height = h = 1 + below((unsigned)h);
    p.Depth = d = flat ? 1 : 1 + below((unsigned)d);
    p.srcXInBytes = below((unsigned)(from.pitch - w) + 1);
    p.dstXInBytes = below((unsigned)(to.pitch - w) + 1);
    p.srcY = below((unsigned)(from.rows - h) + 1);
    p.dstY = below((unsigned)(to.rows - h) + 1);
    p.srcZ = flat ? 0 : below((unsigned)(from.slices - d) + 1);
    p.dstZ = flat ? 0 : below((unsigned)(to.slices - d) + 1);
    p.srcHost = from.host;
    p.srcDevice = from.device;
    p.dstHost = to.host;
    p.dstDevice = to.device;
    p.srcPitch = from.pitch;
    p.dstPitch = to.pitch;
    p.srcHeight = from.rows;
    p.dstHeight = to.rows;
    for (size_t z = 0; z < d; z++) {
      for (size_t y = 0; y < h; y++) {
        for (size_t x = 0; x < w; x++)
          to.want[((p.dstZ + z) * to.rows + p.dstY + y) * to.pitch +
                  p.dstXInBytes + x] =
              from.want[((p.srcZ + z) * from.rows + p.srcY + y) * from.pitch +
                        p.srcXInBytes + x];
      }
    }
    if (flat) {
      const CUDA_MEMCPY2D q = {.srcXInBytes = p.srcXInBytes,
                               .srcY = p.srcY,
                               .srcMemoryType = p.srcMemoryType,
                               .srcHost = p.srcHost,
                               .srcDevice = p.srcDevice,
                               .srcPitch = p.srcPitch,
                               .dstXInBytes = p.dstXInBytes,
                               .dstY = p.dstY,
                               .dstMemoryType = p.dstMemoryType,
                               .dstHost = p.dstHost,
                               .dstDevice = p.dstDevice,
                               .dstPitch = p.dstPitch,
                               .WidthInBytes = w,
                               .Height = h};

      if (below(2) == 0)
        ok(cu(memcpy2D)(&q));
      else
        ok(cu(memcpy2DAsync)(&q, s));
    } else if (below(2) == 0) {
      ok(cu(memcpy3D)(&p));
    } else {
      ok(cu(memcpy3DAsync)(&p, s));
    }
    ok(cu(ctxSynchronize)());
    side_check(&from);
    side_check(&to);
  }
}
END_TEST

START_TEST(wrong_boxes)
{
  CUdeviceptr p = make_memory(200);
  uint8_t host[1000] = {0};
  const CUresult bad = CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY2D good = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = host,
                              .srcPitch = 20,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstPitch = 20,
                              .WidthInBytes = 20,
                              .Height = 10};
  CUDA_MEMCPY2D q;

  q = good;
  q.dstDevice = p;
  ok(cu(memcpy2D)(&q));
  q.Height = 11;
  is(cu(memcpy2D)(&q), bad);
  q.Height = 10;
  q.dstPitch = 19;
  is(cu(memcpy2D)(&q), bad);
  q.dstPitch = 20;
  q.dstXInBytes = 1;
  is(cu(memcpy2D)(&q), bad);
  q.dstXInBytes = 0;
  q.dstY = 1;
  is(cu(memcpy2D)(&q), bad);
  q.dstY = 0;
  q.dstMemoryType = 0;
  is(cu(memcpy2D)(&q), bad);
  /* The copy must fail because the array handle is missing. */
  q.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  is(cu(memcpy2D)(&q), bad);
  q.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  q.srcHost = NULL;
  is(cu(memcpy2D)(&q), bad);
  q.WidthInBytes = 0;
  ok(cu(memcpy2D)(&q)); /* The size is zero, so the copy has no effect. */
  q.WidthInBytes = SIZE_MAX;
  is(cu(memcpy2D)(&q), bad);
  is(cu(memcpy2D)(NULL), bad);
  is(cu(memcpy3D)(NULL), bad);
  is(cu(memcpyHtoA)(NULL, 0, host, 4), CUDA_ERROR_INVALID_HANDLE);
  is(cu(memcpyAtoH)(host, (CUarray)(void *)context, 0, 4),
     CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(arrays_take_and_give)
{
  const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 10,
                                        .Height = 6,
                                        .Depth = 4,
                                        .Format = CU_AD_FORMAT_SIGNED_INT16,
                                        .NumChannels = 2};
  enum { ROW = 40, SIZE = 40 * 6 * 4 };
  CUarray a, b;
  uint8_t in[SIZE], out[SIZE];
  CUDA_MEMCPY3D p = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                     .srcHost = in,
                     .srcPitch = ROW,
                     .srcHeight = 6,
                     .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                     .WidthInBytes = ROW,
                     .Height = 6,
                     .Depth = 4};
  CUDA_MEMCPY3D q = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                     .dstMemoryType = CU_MEMORYTYPE_HOST,
                     .dstHost = out,
                     .dstPitch = ROW,
                     .dstHeight = 6,
                     .WidthInBytes = ROW,
                     .Height = 6,
                     .Depth = 4};

  ok(cu(array3DCreate)(&a, &desc));
  ok(cu(array3DCreate)(&b, &desc));
  scramble(in, SIZE);
  memset(out, 0, SIZE);
  p.dstArray = a;
  q.srcArray = b;
  ok(cu(memcpy3D)(&p));
  p = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                      .srcArray = a,
                      .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                      .dstArray = b,
                      .srcZ = 1,
                      .dstZ = 1,
                      .WidthInBytes = ROW,
                      .Height = 6,
                      .Depth = 3};
  ok(cu(memcpy3D)(&p));
  ok(cu(memcpyAtoA)(b, 8, a, 4, 12));
  ok(cu(memcpy3D)(&q));
  ck_assert_mem_eq(out + ROW * 6, in + ROW * 6, ROW * 6 * 3);
  ck_assert_mem_eq(out + 8, in + 4, 12);
  ok(cu(memcpyHtoA)(a, 4, in + 100, 16));
  ok(cu(memcpyAtoH)(out, a, 4, 16));
  ck_assert_mem_eq(out, in + 100, 16);
  is(cu(memcpyHtoA)(a, 28, in, 16), CUDA_ERROR_INVALID_VALUE);
  is(cu(memcpyHtoA)(a, 2, in, 4), CUDA_ERROR_INVALID_VALUE);
  p.dstZ = 2;
  is(cu(memcpy3D)(&p), CUDA_ERROR_INVALID_VALUE);
  p.dstZ = 1;
  p.srcXInBytes = 4;
  is(cu(memcpy3D)(&p), CUDA_ERROR_INVALID_VALUE);
  ok(cu(arrayDestroy)(b));
  is(cu(memcpy3D)(&q), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Fills --------------------------------------------------------------- */

START_TEST(fills_against_loops)
{
  enum { N = 4096 };
  CUstream s = make_stream(0);
  CUdeviceptr p = make_memory(N);
  uint8_t want[N], got[N];

  scramble(want, N);
  ok(cu(memcpyHtoD)(p, want, N));
  for (int round = 0; round < 500; round++) {
    const size_t size = (size_t)1 << below(3);
    const size_t pitch = size * (1 + below(32));
    const size_t at = size * below(64);
    const size_t w = 1 + below((unsigned)(pitch / size));
    size_t h = 1 + below(20);
    const uint32_t v = (uint32_t)test_random(&seed);
    const bool async = below(2) == 0;

    if (at + (h - 1) * pitch + w * size > N)
      h = 1;
    for (size_t y = 0; y < h; y++) {
      for (size_t x = 0; x < w * size; x++)
        want[at + y * pitch + x] = (uint8_t)(v >> (8 * (x % size)));
    }
    if (size == 1 && h == 1)
      ok(async ? cu(memsetD8Async)(p + at, (unsigned char)v, w, s)
               : cu(memsetD8)(p + at, (unsigned char)v, w));
    else if (size == 2 && h == 1)
      ok(async ? cu(memsetD16Async)(p + at, (unsigned short)v, w, s)
               : cu(memsetD16)(p + at, (unsigned short)v, w));
    else if (h == 1)
      ok(async ? cu(memsetD32Async)(p + at, v, w, s)
               : cu(memsetD32)(p + at, v, w));
    else if (size == 1)
      ok(async ? cu(memsetD2D8Async)(p + at, pitch, (unsigned char)v, w, h, s)
               : cu(memsetD2D8)(p + at, pitch, (unsigned char)v, w, h));
    else if (size == 2)
      ok(async ? cu(memsetD2D16Async)(p + at, pitch, (unsigned short)v, w, h, s)
               : cu(memsetD2D16)(p + at, pitch, (unsigned short)v, w, h));
    else
      ok(async ? cu(memsetD2D32Async)(p + at, pitch, v, w, h, s)
               : cu(memsetD2D32)(p + at, pitch, v, w, h));
  }
  ok(cu(memcpyDtoH)(got, p, N));
  ck_assert_mem_eq(got, want, N);
  is(cu(memsetD2D32)(p, 8, 0, 3, 2), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memsetD32)(p, 0, 0));
}
END_TEST

/* ---- Memory pools -------------------------------------------------------- */

static uint64_t number(CUmemoryPool pool, CUmemPool_attribute a)
{
  uint64_t value;

  ok(cu(memPoolGetAttribute)(pool, a, &value));
  return value;
}

START_TEST(pools_count_what_they_hold)
{
  const CUmemPoolProps props = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
      .maxSize = 10000};
  CUstream s = make_stream(1);
  CUmemoryPool pool, own;
  CUdeviceptr p, q;
  uint64_t zero = 0, keep = 1 << 20;
  CUmemoryPool of;

  ok(cu(deviceGetDefaultMemPool)(&pool, 0));
  ok(cu(memAllocAsync)(&p, 1000, s));
  ok(cu(memAllocAsync)(&q, 500, s));
  ok(cu(pointerGetAttribute)(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
  ck_assert_ptr_eq(of, pool);
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1500);
  ok(cu(memFreeAsync)(p, s));
  is(cu(memFreeAsync)(p, s), CUDA_ERROR_INVALID_VALUE);
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 500);
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 500);
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1500);
  ok(cu(memPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  ok(cu(memAllocAsync)(&p, 2000, s));
  ok(cu(memFreeAsync)(p, s));
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2500);
  ok(cu(memPoolTrimTo)(pool, 1000));
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 1000);
  ok(cu(memPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  ck_assert_uint_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 500);
  is(cu(memPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(memFree)(q)); /* Memory of a pool can also be freed synchronously. */

  ok(cu(memPoolCreate)(&own, &props));
  ok(cu(memAllocFromPoolAsync)(&p, 6000, own, s));
  is(cu(memAllocFromPoolAsync)(&q, 6000, own, s), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cu(deviceSetMemPool)(0, own));
  ok(cu(memAllocAsync)(&q, 100, s));
  ck_assert_uint_eq(number(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 6100);
  is(cu(memPoolDestroy)(pool), CUDA_ERROR_INVALID_VALUE);
  /* An allocation must stay valid after its pool was destroyed. */
  ok(cu(memPoolDestroy)(own));
  is(cu(memPoolDestroy)(own), CUDA_ERROR_INVALID_VALUE);
  ok(cu(deviceGetMemPool)(&of, 0));
  ck_assert_ptr_eq(of, pool);
  ok(cu(memsetD8)(p, 1, 6000));
  ok(cu(memFreeAsync)(p, s));
  ok(cu(memFreeAsync)(q, s));
  ok(cu(streamSynchronize)(s));
  is(cu(memAllocFromPoolAsync)(&q, 60, own, s), CUDA_ERROR_INVALID_VALUE);
  is(cu(memPoolTrimTo)((CUmemoryPool)(void *)context, 0),
     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_free_waits_in_its_stream)
{
  CUstream s = make_stream(1);
  CUdeviceptr p;
  uint32_t value = 0;
  gate g = {0};

  ok(cu(memAllocAsync)(&p, 4, s));
  ok(cu(launchHostFunc)(s, gate_fn, &g));
  ok(cu(memFreeAsync)(p, s));
  /* A second free must fail, even if the first is still pending in the
   * stream. */
  is(cu(memFree)(p), CUDA_ERROR_INVALID_VALUE);
  /* The memory must be usable until the pending free operation runs. */
  ok(cu(memsetD32)(p, 17, 1));
  ok(cu(memcpyDtoH)(&value, p, 4));
  ck_assert_uint_eq(value, 17);
  atomic_store(&g.open, true);
  ok(cu(streamSynchronize)(s));
  is(cu(memcpyDtoH)(&value, p, 4), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAllocAsync)(&p, 0, s), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAllocAsync)(NULL, 4, s), CUDA_ERROR_INVALID_VALUE);
  is(cu(memAllocAsync)(&p, 4, (CUstream)(void *)&g), CUDA_ERROR_INVALID_HANDLE);
  /* Memory of cuMemAlloc is freed after the work of the stream. */
  ok(cu(memAlloc)(&p, 16));
  is(cu(memFreeAsync)(p + 8, s), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memFreeAsync)(p, s));
  is(cu(memFree)(p), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Two devices --------------------------------------------------------- */

START_TEST(devices_share_memory)
{
  const kiln_cpu_opts opts = {.devices = 2};
  CUcontext a, b;
  CUdeviceptr p, q;
  uint32_t value;
  size_t unused[2], total;

  ck_kiln_ok(kiln_cpu_configure(&opts));
  ok(cu(init)(0));
  ok(cu(ctxCreate)(&a, 0, 0));
  ok(cu(memAlloc)(&p, 512));
  ok(cu(memsetD32)(p, 123, 128));
  ok(cu(memGetInfo)(&unused[0], &total));
  ok(cu(ctxCreate)(&b, 0, 1));
  ok(cu(memAlloc)(&q, 1024));
  ok(cu(memGetInfo)(&unused[1], &total));
  ck_assert_uint_eq(unused[0], total - 512);
  ck_assert_uint_eq(unused[1], total - 1024);
  ck_assert_int_eq(int_of(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q), 1);
  ok(cu(memcpyPeer)(q, b, p, a, 512));
  ok(cu(memcpyDtoH)(&value, q + 508, 4));
  ck_assert_uint_eq(value, 123);
  ok(cu(ctxEnablePeerAccess)(a, 0));
  is(cu(ctxEnablePeerAccess)(a, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  is(cu(ctxEnablePeerAccess)(a, 1), CUDA_ERROR_INVALID_VALUE);
  is(cu(ctxEnablePeerAccess)(b, 0), CUDA_ERROR_INVALID_CONTEXT);
  ok(cu(ctxDisablePeerAccess)(a));
  is(cu(ctxDisablePeerAccess)(a), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  ok(cu(ctxDestroy)(b));
  ok(cu(memcpyDtoH)(&value, p, 4));
  is(cu(memcpyDtoH)(&value, q, 4), CUDA_ERROR_INVALID_VALUE);
  ok(cu(ctxDestroy)(a));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_memory");

  kiln_test_case(
      s, "memory", 120, setup, teardown,
      TESTS(ranges_and_alignment, large_allocations_are_aligned_to_pages,
            pointers_say_what_they_are, managed_memory_is_seen_by_both,
            a_free_waits_for_its_context, copies_in_all_directions,
            copies_beyond_the_end_write_nothing, pageable_memory_is_staged,
            a_synchronous_copy_comes_after_blocking_streams,
            boxes_against_loops, wrong_boxes, arrays_take_and_give,
            fills_against_loops, pools_count_what_they_hold,
            a_free_waits_in_its_stream));
  kiln_test_case(s, "contexts", 120, NULL, NULL,
                 TESTS(bytes_are_counted, host_memory_has_its_own_address,
                       leaks_are_found_at_the_end, devices_share_memory));
  return kiln_test_run(s);
}
