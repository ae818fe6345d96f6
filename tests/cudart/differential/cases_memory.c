/* cases_memory.c -- cases of linear, pitched, pinned and managed memory, copies, fills,
 * pools and pointer attributes. */
#include "cases.h"

#define HTOD cudaMemcpyHostToDevice
#define DTOH cudaMemcpyDeviceToHost
#define DTOD cudaMemcpyDeviceToDevice
#define HTOH cudaMemcpyHostToHost

/* Device memory of n bytes. */
static char *device(size_t n)
{
  void *p = NULL;

  OK(cudaMalloc(&p, n));
  return p;
}

CASE(malloc_null_out)
{
  BAD(cudaMalloc(NULL, 16));
}
CASE(malloc_zero)
{
  void *p = &p;

  OK(cudaMalloc(&p, 0));
  V(1, p == NULL);
}
CASE(malloc_too_much)
{
  void *p;

  T(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 50));
  T(cudaErrorMemoryAllocation, cudaGetLastError());
}
CASE(malloc_all_bits)
{
  void *p;

  T(cudaErrorMemoryAllocation, cudaMalloc(&p, SIZE_MAX));
}
CASE(malloc_is_aligned)
{
  char *p = device(1), *q = device(3);

  V(0, (size_t)p % 256);
  V(0, (size_t)q % 256);
  OK(cudaFree(p));
  OK(cudaFree(q));
}
CASE(free_null)
{
  OK(cudaFree(NULL));
}
CASE(free_twice)
{
  char *p = device(16);

  OK(cudaFree(p));
  BAD(cudaFree(p));
}
CASE(free_interior)
{
  char *p = device(1024);

  BAD(cudaFree(p + 256));
  OK(cudaFree(p));
}
CASE(free_host_pointer)
{
  int x = 0;

  BAD(cudaFree(&x));
}
CASE(free_of_pinned)
{
  void *p;

  OK(cudaMallocHost(&p, 64));
  T(ANY, cudaFree(p));
  T(ANY, cudaFreeHost(p));
}
CASE(free_host_of_device)
{
  char *p = device(16);

  BAD(cudaFreeHost(p));
  OK(cudaFree(p));
}
CASE(free_host_null)
{
  OK(cudaFreeHost(NULL));
}
CASE(free_host_of_stack)
{
  int x = 0;

  BAD(cudaFreeHost(&x));
}
CASE(malloc_host_null_out)
{
  BAD(cudaMallocHost(NULL, 16));
}
CASE(malloc_host_zero)
{
  void *p = &p;

  OK(cudaMallocHost(&p, 0));
  V(1, p == NULL);
}
CASE(host_alloc_flags)
{
  void *p;
  unsigned flags = 99;

  for (unsigned f = 0; f < 8; f++) {
    OK(cudaHostAlloc(&p, 64, f));
    OK(cudaHostGetFlags(&flags, p));
    printf("  flags %u: %u\n", f, flags);
    OK(cudaFreeHost(p));
  }
}
CASE(host_alloc_bad_flags)
{
  void *p;

  BAD(cudaHostAlloc(&p, 64, 0x100));
}
CASE(host_alloc_null_out)
{
  BAD(cudaHostAlloc(NULL, 64, 0));
}
CASE(host_flags_of_stack)
{
  unsigned f;
  int x = 0;

  BAD(cudaHostGetFlags(&f, &x));
}
CASE(host_device_pointer)
{
  void *p, *d;

  OK(cudaHostAlloc(&p, 64, 2));
  OK(cudaHostGetDevicePointer(&d, p, 0));
  V(1, d == p);
  BAD(cudaHostGetDevicePointer(&d, p, 1));
  OK(cudaFreeHost(p));
}
CASE(host_device_pointer_of_stack)
{
  void *d;
  int x = 0;

  BAD(cudaHostGetDevicePointer(&d, &x, 0));
}
CASE(register_twice)
{
  void *p = aligned_alloc(4096, 8192);

  OK(cudaHostRegister(p, 8192, 0));
  T(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p, 8192, 0));
  OK(cudaHostUnregister(p));
  T(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(p));
  free(p);
}
CASE(register_zero)
{
  void *p = aligned_alloc(4096, 8192);

  BAD(cudaHostRegister(p, 0, 0));
  free(p);
}
CASE(register_null)
{
  BAD(cudaHostRegister(NULL, 4096, 0));
}
CASE(register_bad_flags)
{
  void *p = aligned_alloc(4096, 8192);

  BAD(cudaHostRegister(p, 8192, 0x1000));
  free(p);
}
CASE(unregister_null)
{
  BAD(cudaHostUnregister(NULL));
}
CASE(unregister_of_pinned)
{
  void *p;

  OK(cudaMallocHost(&p, 4096));
  T(ANY, cudaHostUnregister(p));
  OK(cudaFreeHost(p));
}
CASE(managed_null_out)
{
  BAD(cudaMallocManaged(NULL, 16, 1));
}
CASE(managed_zero)
{
  void *p;

  OK(cudaMallocManaged(&p, 0, 1));
}
CASE(managed_flags)
{
  void *p;

  OK(cudaMallocManaged(&p, 16, 1));
  OK(cudaFree(p));
  OK(cudaMallocManaged(&p, 16, 2));
  OK(cudaFree(p));
  BAD(cudaMallocManaged(&p, 16, 0));
  BAD(cudaMallocManaged(&p, 16, 4));
  BAD(cudaMallocManaged(&p, 16, 3));
}
CASE(managed_by_both_sides)
{
  int *p;

  OK(cudaMallocManaged((void **)&p, 64, 1));
  p[3] = 5;
  OK(fill(p, 7, (dim3){1, 1, 1}, (dim3){3, 1, 1}, NULL));
  OK(cudaDeviceSynchronize());
  V(7, p[2]);
  V(5, p[3]);
  OK(cudaFree(p));
}
CASE(copy_round_trip)
{
  char *p = device(16), in[16] = "fifteen letters", out[16] = "";

  OK(cudaMemcpy(p, in, 16, HTOD));
  OK(cudaMemcpy(out, p, 16, DTOH));
  V(0, strcmp(in, out));
  OK(cudaFree(p));
}
CASE(copy_default_kind)
{
  char *p = device(16), *q = device(16), in[16] = "default", out[16] = "";

  OK(cudaMemcpy(p, in, 16, cudaMemcpyDefault));
  OK(cudaMemcpy(q, p, 16, cudaMemcpyDefault));
  OK(cudaMemcpy(out, q, 16, cudaMemcpyDefault));
  V(0, strcmp(in, out));
  OK(cudaFree(p));
  OK(cudaFree(q));
}
CASE(copy_host_to_host)
{
  char in[8] = "seven..", out[8] = "";

  OK(cudaMemcpy(out, in, 8, HTOH));
  V(0, strcmp(in, out));
  OK(cudaMemcpy(out, in, 8, cudaMemcpyDefault));
}
CASE(copy_zero_bytes)
{
  char *p = device(16), x = 0;

  OK(cudaMemcpy(p, &x, 0, HTOD));
  OK(cudaMemcpy(NULL, NULL, 0, HTOD));
  OK(cudaMemcpy(NULL, NULL, 0, DTOD));
  OK(cudaFree(p));
}
CASE(copy_null)
{
  char *p = device(16), x[16];

  BAD(cudaMemcpy(NULL, x, 16, HTOD));
  BAD(cudaMemcpy(p, NULL, 16, HTOD));
  BAD(cudaMemcpy(NULL, p, 16, DTOH));
  OK(cudaFree(p));
}
CASE(copy_bad_kind)
{
  char *p = device(16), x[16] = "";

  T(cudaErrorInvalidMemcpyDirection, cudaMemcpy(p, x, 16, 5));
  T(cudaErrorInvalidMemcpyDirection, cudaMemcpy(p, x, 16, -1));
  T(cudaErrorInvalidMemcpyDirection, cudaMemcpyAsync(p, x, 16, 77, NULL));
  OK(cudaFree(p));
}
CASE(copy_past_the_end)
{
  char *p = device(512), x[4096] = "";

  T(ANY, cudaMemcpy(p, x, 512, HTOD));
  BAD(cudaMemcpy(p, x, (size_t)1 << 40, DTOD));
  OK(cudaFree(p));
}
CASE(copy_wrong_direction)
{
  char *p = device(16), x[16] = "";

  T(ANY, cudaMemcpy(x, p, 16, HTOD));
  T(ANY, cudaMemcpy(p, x, 16, DTOH));
  OK(cudaFree(p));
}
CASE(copy_after_free)
{
  char *p = device(16), x[16] = "";

  OK(cudaFree(p));
  BAD(cudaMemcpy(x, p, 16, DTOH));
}
CASE(copy_async_pageable)
{
  char *p = device(16), in[16] = "async", out[16] = "";

  OK(cudaMemcpyAsync(p, in, 16, HTOD, NULL));
  OK(cudaMemcpyAsync(out, p, 16, DTOH, NULL));
  OK(cudaStreamSynchronize(NULL));
  V(0, strcmp(in, out));
  OK(cudaFree(p));
}
CASE(copy_overlapping)
{
  char *p = device(16);

  T(ANY, cudaMemcpy(p, p, 16, DTOD));
  OK(cudaFree(p));
}
CASE(copy_2d)
{
  char *p, out[12] = "", in[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  size_t pitch = 0;

  OK(cudaMallocPitch((void **)&p, &pitch, 4, 3));
  V(0, pitch % 32);
  OK(cudaMemcpy2D(p, pitch, in, 4, 4, 3, HTOD));
  OK(cudaMemcpy2D(out, 4, p, pitch, 4, 3, DTOH));
  V(0, memcmp(in, out, 12));
  OK(cudaFree(p));
}
CASE(copy_2d_pitch_too_small)
{
  char *p = device(64), x[64] = "";

  T(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 4, x, 8, 8, 2, HTOD));
  T(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 8, x, 4, 8, 2, HTOD));
  OK(cudaFree(p));
}
CASE(copy_2d_empty)
{
  char *p = device(64), x[64] = "";

  OK(cudaMemcpy2D(p, 8, x, 8, 0, 2, HTOD));
  OK(cudaMemcpy2D(p, 8, x, 8, 8, 0, HTOD));
  OK(cudaFree(p));
}
CASE(copy_2d_bad_kind)
{
  char *p = device(64), x[64] = "";

  T(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(p, 8, x, 8, 8, 2, 9));
  OK(cudaFree(p));
}
CASE(pitch_null_out)
{
  void *p;
  size_t pitch;

  BAD(cudaMallocPitch(NULL, &pitch, 4, 4));
  BAD(cudaMallocPitch(&p, NULL, 4, 4));
}
CASE(pitch_empty)
{
  void *p = &p;
  size_t pitch = 7;

  OK(cudaMallocPitch(&p, &pitch, 0, 4));
  V(1, p == NULL);
  OK(cudaMallocPitch(&p, &pitch, 4, 0));
  V(1, p == NULL);
}
CASE(malloc_3d)
{
  cudaPitchedPtr p;

  OK(cudaMalloc3D(&p, (cudaExtent){10, 4, 2}));
  V(10, p.xsize);
  V(4, p.ysize);
  OK(cudaMemset3D(p, 1, (cudaExtent){10, 4, 2}));
  OK(cudaFree(p.ptr));
  BAD(cudaMalloc3D(NULL, (cudaExtent){10, 4, 2}));
}
CASE(malloc_3d_empty)
{
  cudaPitchedPtr p = {.ptr = &p};

  OK(cudaMalloc3D(&p, (cudaExtent){0, 4, 2}));
  V(1, p.ptr == NULL);
}
CASE(memset_values)
{
  unsigned char *p = (unsigned char *)device(8), out[8];

  OK(cudaMemset(p, 0x1ab, 8));
  OK(cudaMemcpy(out, p, 8, DTOH));
  V(0xab, out[7]);
  OK(cudaFree(p));
}
CASE(memset_zero_bytes)
{
  char *p = device(8);

  OK(cudaMemset(p, 1, 0));
  OK(cudaMemset(NULL, 1, 0));
  OK(cudaFree(p));
}
CASE(memset_null)
{
  BAD(cudaMemset(NULL, 1, 8));
}
CASE(memset_host)
{
  int x = 0;

  BAD(cudaMemset(&x, 1, 4));
}
CASE(memset_too_much)
{
  char *p = device(64);

  BAD(cudaMemset(p, 1, (size_t)1 << 40));
  OK(cudaFree(p));
}
CASE(memset_2d)
{
  char *p = device(64), out[64];

  OK(cudaMemset(p, 0, 64));
  OK(cudaMemset2D(p, 16, 3, 4, 4));
  OK(cudaMemcpy(out, p, 64, DTOH));
  V(3, out[19]);
  V(0, out[20]);
  OK(cudaFree(p));
}
CASE(memset_2d_pitch_too_small)
{
  char *p = device(64);

  T(ANY, cudaMemset2D(p, 4, 3, 8, 4));
  OK(cudaFree(p));
}
CASE(memset_2d_empty)
{
  char *p = device(64);

  OK(cudaMemset2D(p, 16, 3, 0, 4));
  OK(cudaMemset2D(p, 16, 3, 4, 0));
  OK(cudaFree(p));
}
CASE(memset_async)
{
  char *p = device(8), out[8];

  OK(cudaMemsetAsync(p, 9, 8, NULL));
  OK(cudaMemcpy(out, p, 8, DTOH));
  V(9, out[0]);
  OK(cudaFree(p));
}
CASE(memory_info)
{
  size_t room, total;

  OK(cudaMemGetInfo(&room, &total));
  V(1, room <= total);
}
CASE(pointer_of_device)
{
  pointer_attributes a;
  char *p = device(64);

  OK(cudaPointerGetAttributes(&a, p + 5));
  V(2, a.type);
  V(0, a.device);
  V(1, a.devicePointer == p + 5);
  V(1, a.hostPointer == NULL);
  OK(cudaFree(p));
}
CASE(pointer_of_pinned)
{
  pointer_attributes a;
  void *p;

  OK(cudaMallocHost(&p, 64));
  OK(cudaPointerGetAttributes(&a, p));
  V(1, a.type);
  V(1, a.hostPointer == p);
  V(1, a.devicePointer == p);
  OK(cudaFreeHost(p));
}
CASE(pointer_of_managed)
{
  pointer_attributes a;
  void *p;

  OK(cudaMallocManaged(&p, 64, 1));
  OK(cudaPointerGetAttributes(&a, p));
  V(3, a.type);
  V(1, a.hostPointer == p);
  V(1, a.devicePointer == p);
  OK(cudaFree(p));
}
CASE(pointer_of_stack)
{
  pointer_attributes a;
  int x = 0;

  OK(cudaPointerGetAttributes(&a, &x));
  V(0, a.type);
  V(1, a.devicePointer == NULL);
  OK(cudaGetLastError());
}
CASE(pointer_null)
{
  pointer_attributes a;
  char *p = device(64);

  BAD(cudaPointerGetAttributes(NULL, p));
  T(ANY, cudaPointerGetAttributes(&a, NULL));
  OK(cudaFree(p));
}
CASE(pool_default)
{
  cudaMemPool_t a, b;

  OK(cudaDeviceGetDefaultMemPool(&a, 0));
  OK(cudaDeviceGetMemPool(&b, 0));
  V(1, a == b);
}
CASE(pool_bad_device)
{
  cudaMemPool_t a;

  T(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&a, 99));
  BAD(cudaDeviceGetMemPool(&a, -3));
}
CASE(pool_null_out)
{
  BAD(cudaDeviceGetDefaultMemPool(NULL, 0));
}
CASE(pool_destroy_default)
{
  cudaMemPool_t a;

  OK(cudaDeviceGetDefaultMemPool(&a, 0));
  BAD(cudaMemPoolDestroy(a));
}
CASE(pool_threshold)
{
  cudaMemPool_t a;
  unsigned long long v = 12345678, w = 0;

  OK(cudaDeviceGetDefaultMemPool(&a, 0));
  OK(cudaMemPoolGetAttribute(a, 4, &w));
  V(0, w);
  OK(cudaMemPoolSetAttribute(a, 4, &v));
  OK(cudaMemPoolGetAttribute(a, 4, &w));
  V(12345678, w);
  v = 0;
  OK(cudaMemPoolSetAttribute(a, 4, &v));
}
CASE(pool_bad_attribute)
{
  cudaMemPool_t a;
  unsigned long long v = 0;

  OK(cudaDeviceGetDefaultMemPool(&a, 0));
  BAD(cudaMemPoolGetAttribute(a, 99, &v));
  BAD(cudaMemPoolSetAttribute(a, 99, &v));
}
CASE(pool_reuse_attributes)
{
  cudaMemPool_t a;

  OK(cudaDeviceGetDefaultMemPool(&a, 0));
  for (int i = 1; i <= 3; i++) {
    int v = -1;

    OK(cudaMemPoolGetAttribute(a, i, &v));
    V(1, v);
  }
}
CASE(malloc_async)
{
  void *p;

  OK(cudaMallocAsync(&p, 100, NULL));
  OK(cudaMemsetAsync(p, 1, 100, NULL));
  OK(cudaFreeAsync(p, NULL));
  OK(cudaStreamSynchronize(NULL));
}
CASE(malloc_async_zero)
{
  void *p = &p;

  OK(cudaMallocAsync(&p, 0, NULL));
  V(1, p == NULL);
}
CASE(malloc_async_null_out)
{
  BAD(cudaMallocAsync(NULL, 16, NULL));
}
CASE(malloc_async_too_much)
{
  void *p;

  T(cudaErrorMemoryAllocation, cudaMallocAsync(&p, (size_t)1 << 50, NULL));
}
CASE(free_async_null)
{
  T(ANY, cudaFreeAsync(NULL, NULL));
}
CASE(free_async_twice)
{
  void *p;

  OK(cudaMallocAsync(&p, 100, NULL));
  OK(cudaFreeAsync(p, NULL));
  BAD(cudaFreeAsync(p, NULL));
}
CASE(free_async_of_malloc)
{
  char *p = device(64);

  OK(cudaFreeAsync(p, NULL));
  OK(cudaDeviceSynchronize());
}
CASE(free_of_malloc_async)
{
  void *p;

  OK(cudaMallocAsync(&p, 100, NULL));
  OK(cudaStreamSynchronize(NULL));
  OK(cudaFree(p));
}
CASE(peer_copy_same_device)
{
  char *p = device(16), *q = device(16), in[16] = "peer", out[16] = "";

  OK(cudaMemcpy(p, in, 16, HTOD));
  OK(cudaMemcpyPeer(q, 0, p, 0, 16));
  OK(cudaMemcpy(out, q, 16, DTOH));
  V(0, strcmp(in, out));
  T(cudaErrorInvalidDevice, cudaMemcpyPeer(q, 77, p, 0, 16));
  OK(cudaFree(p));
  OK(cudaFree(q));
}
CASE(symbol_address)
{
  void *p = NULL;
  size_t n = 0;

  OK(cudaGetSymbolAddress(&p, &v_table));
  V(1, p != NULL);
  OK(cudaGetSymbolSize(&n, &v_table));
  V(32, n);
  OK(cudaGetSymbolSize(&n, &v_const));
  V(16, n);
}
CASE(symbol_unknown)
{
  void *p;
  size_t n;
  int x = 0;

  T(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, &x));
  T(cudaErrorInvalidSymbol, cudaGetSymbolSize(&n, &x));
  T(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&x, &n, 4, 0, HTOD));
  T(cudaErrorInvalidSymbol, cudaMemcpyFromSymbol(&n, &x, 4, 0, DTOH));
}
CASE(symbol_of_kernel)
{
  void *p;

  T(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, &k_fill));
}
CASE(symbol_null)
{
  void *p;

  T(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, NULL));
}
CASE(symbol_copies)
{
  int in[2] = {77, 78}, out[4] = {0};

  OK(cudaMemcpyFromSymbol(out, &v_const, 16, 0, DTOH));
  V(40, out[3]);
  OK(cudaMemcpyToSymbol(&v_const, in, 8, 4, HTOD));
  OK(cudaMemcpyFromSymbol(out, &v_const, 16, 0, DTOH));
  V(10, out[0]);
  V(78, out[2]);
}
CASE(symbol_past_the_end)
{
  int x[16] = {0};

  BAD(cudaMemcpyToSymbol(&v_const, x, 20, 0, HTOD));
  BAD(cudaMemcpyToSymbol(&v_const, x, 8, 12, HTOD));
  BAD(cudaMemcpyFromSymbol(x, &v_const, 8, 12, DTOH));
}
CASE(symbol_wrong_direction)
{
  int x[4] = {0};

  T(cudaErrorInvalidMemcpyDirection,
    cudaMemcpyToSymbol(&v_const, x, 4, 0, DTOH));
  T(cudaErrorInvalidMemcpyDirection,
    cudaMemcpyFromSymbol(x, &v_const, 4, 0, HTOD));
}
CASE(symbol_in_kernel)
{
  int out[8] = {0};
  char *p = device(32);
  void *args[] = {&p};

  OK(launch(&k_table, 8, args, NULL));
  OK(cudaMemcpy(out, p, 32, DTOH));
  V(8, out[7]);
  OK(cudaFree(p));
}
CASE(advise_linear_memory)
{
  char *p = device(64);

  T(ANY, cudaMemAdvise(p, 64, 1, (cudaMemLocation){1, 0}));
  OK(cudaFree(p));
}
CASE(advise_managed)
{
  void *p;

  OK(cudaMallocManaged(&p, 4096, 1));
  OK(cudaMemAdvise(p, 4096, 1, (cudaMemLocation){1, 0}));
  OK(cudaMemAdvise(p, 4096, 2, (cudaMemLocation){1, 0}));
  OK(cudaMemAdvise(p, 4096, 3, (cudaMemLocation){1, 0}));
  BAD(cudaMemAdvise(p, 4096, 99, (cudaMemLocation){1, 0}));
  OK(cudaMemPrefetchAsync(p, 4096, (cudaMemLocation){1, 0}, 0, NULL));
  T(cudaErrorInvalidDevice,
    cudaMemPrefetchAsync(p, 4096, (cudaMemLocation){1, 99}, 0, NULL));
  OK(cudaDeviceSynchronize());
  OK(cudaFree(p));
}
CASE(range_attribute)
{
  void *p;
  int v = -5;

  OK(cudaMallocManaged(&p, 4096, 1));
  OK(cudaMemRangeGetAttribute(&v, 4, 1, p, 4096));
  V(0, v);
  BAD(cudaMemRangeGetAttribute(&v, 4, 99, p, 4096));
  BAD(cudaMemRangeGetAttribute(&v, 3, 1, p, 4096));
  OK(cudaFree(p));
}
CASE(ipc_own_process)
{
  cudaIpcMemHandle_t h;
  char *p = device(64);
  void *q;
  int x = 0;

  T(ANY, cudaIpcGetMemHandle(&h, p));
  T(ANY, cudaIpcOpenMemHandle(&q, h, 1));
  BAD(cudaIpcGetMemHandle(&h, &x));
  BAD(cudaIpcCloseMemHandle(&x));
  OK(cudaFree(p));
}
