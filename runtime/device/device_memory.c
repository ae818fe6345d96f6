/* device_memory.c -- device, managed and pinned memory (kiln/memory.h).
 *
 * Stream-ordered memory comes from the device's default memory pool, which
 * orders allocations with the work in a stream, so no call waits. If the driver
 * has no memory pools, the same functions use plain allocation, and freeing
 * first waits for the stream. Callers therefore need only one code path.
 *
 * The temporary storage of a single call comes from a second pool that only
 * Kiln uses. The default pool gives its memory back at each synchronisation, so
 * that the next call would wait until the driver has mapped it again. */
#include "device.h"

/* The state of a driver call that allocates or frees memory. Such a call
 * disturbs no capture, but the driver forbids it to a thread while any stream
 * is captured in the default mode. The thread's capture mode is therefore
 * relaxed during the call. */
typedef struct allocation {
  kiln_device *device;
  kiln__scope scope;
  kiln__relaxed relaxed;
} allocation;

static kiln_status begin(allocation *a, kiln_device *device)
{
  const kiln_status st = kiln__enter(device, &a->scope);

  a->device = device;
  if (st == KILN_OK)
    kiln__relax(device->driver, &a->relaxed);
  return st;
}

static kiln_status end(allocation *a, CUresult rc, const char *call)
{
  kiln__unrelax(&a->relaxed);
  kiln__leave(&a->scope);
  return kiln__device_rc(a->device, rc, call);
}

static kiln_status need(const kiln_device *device, bool others)
{
  if (device == NULL || !others)
    return kiln__fail(KILN_EINVAL, NULL, "an argument is NULL");
  return KILN_OK;
}

/* Runs one driver call in the device's context. Within the call, `a` is the
 * state of the allocation. The following functions differ only in the call. */
#define IN_DEVICE(device, call, text)                                          \
  do {                                                                         \
    allocation a;                                                              \
                                                                               \
    st = begin(&a, device);                                                    \
    if (st == KILN_OK)                                                         \
      st = end(&a, (device)->driver->call, text);                              \
  } while (0)

kiln_status kiln_memory_alloc(CUdeviceptr *out, kiln_device *device,
                              size_t size)
{
  kiln_status st = need(device, out != NULL);

  if (out != NULL)
    *out = 0;
  if (st != KILN_OK || size == 0)
    return st;
  IN_DEVICE(device, memAlloc(out, size), "cuMemAlloc_v2");
  if (st != KILN_OK)
    *out = 0;
  return st;
}

kiln_status kiln_memory_alloc_managed(CUdeviceptr *out, kiln_device *device,
                                      size_t size)
{
  kiln_status st = need(device, out != NULL);

  if (out != NULL)
    *out = 0;
  if (st != KILN_OK || size == 0)
    return st;
  if (device->driver->memAllocManaged == NULL)
    return kiln__device_missing("cuMemAllocManaged");
  IN_DEVICE(device, memAllocManaged(out, size, CU_MEM_ATTACH_GLOBAL),
            "cuMemAllocManaged");
  if (st != KILN_OK)
    *out = 0;
  return st;
}

kiln_status kiln_memory_alloc_pitched(CUdeviceptr *out, size_t *pitch,
                                      kiln_device *device, size_t width,
                                      size_t height)
{
  enum { WIDEST_ACCESS = 16 };
  kiln_status st = need(device, out != NULL && pitch != NULL);

  if (out != NULL)
    *out = 0;
  if (pitch != NULL)
    *pitch = 0;
  if (st != KILN_OK || width == 0 || height == 0)
    return st;
  if (device->driver->memAllocPitch == NULL)
    return kiln__device_missing("cuMemAllocPitch_v2");
  IN_DEVICE(device, memAllocPitch(out, pitch, width, height, WIDEST_ACCESS),
            "cuMemAllocPitch_v2");
  if (st != KILN_OK)
    *out = *pitch = 0;
  return st;
}

kiln_status kiln_memory_free(kiln_device *device, CUdeviceptr p)
{
  kiln_status st = need(device, true);

  if (st == KILN_OK && p != 0)
    IN_DEVICE(device, memFree(p), "cuMemFree_v2");
  return st;
}

kiln_status kiln_memory_alloc_async(CUdeviceptr *out, kiln_stream *stream,
                                    size_t size)
{
  kiln_device *device;
  kiln_status st;

  if (out != NULL)
    *out = 0;
  if (out == NULL || stream == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out or stream is NULL");
  device = stream->device;
  if (size == 0 || !device->info.memory_pools)
    return kiln_memory_alloc(out, device, size);
  KILN__IN_SCOPE(st, device, memAllocAsync(out, size, stream->handle),
                 "cuMemAllocAsync");
  if (st != KILN_OK)
    *out = 0;
  return st;
}

kiln_status kiln_memory_free_async(kiln_stream *stream, CUdeviceptr p)
{
  kiln_device *device;
  kiln_status st;

  if (stream == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "stream is NULL");
  device = stream->device;
  if (p == 0)
    return KILN_OK;
  if (!device->info.memory_pools) {
    st = kiln_stream_synchronize(stream);
    return st == KILN_OK ? kiln_memory_free(device, p) : st;
  }
  KILN__IN_SCOPE(st, device, memFreeAsync(p, stream->handle), "cuMemFreeAsync");
  return st;
}

kiln_status kiln__memory_alloc_pooled(CUdeviceptr *out, kiln_stream *stream,
                                      size_t size)
{
  kiln_device *device = stream->device;
  const CUmemoryPool pool = kiln__device_pool(device);
  CUresult rc;

  if (pool == NULL)
    return kiln_memory_alloc_async(out, stream, size);
  rc = device->driver->memAllocFromPoolAsync(out, size, pool, stream->handle);
  if (rc != CUDA_SUCCESS)
    *out = 0;
  return kiln__device_rc(device, rc, "cuMemAllocFromPoolAsync");
}

kiln_status kiln_memory_info(kiln_device *device, uint64_t *free_bytes,
                             uint64_t *total_bytes)
{
  kiln_status st = need(device, free_bytes != NULL);
  size_t unused = 0, total = 0;

  if (free_bytes != NULL)
    *free_bytes = 0;
  if (total_bytes != NULL)
    *total_bytes = 0;
  if (st != KILN_OK)
    return st;
  IN_DEVICE(device, memGetInfo(&unused, &total), "cuMemGetInfo_v2");
  if (st != KILN_OK)
    return st;
  *free_bytes = unused;
  if (total_bytes != NULL)
    *total_bytes = total;
  return KILN_OK;
}

/* ---- Pinned memory ------------------------------------------------------- */

/* Pinned memory is usable by every context, and mapped into the address space
 * of the device. */

kiln_status kiln_host_alloc(void **out, kiln_device *device, size_t size)
{
  kiln_status st = need(device, out != NULL);

  if (out != NULL)
    *out = NULL;
  if (st != KILN_OK || size == 0)
    return st;
  IN_DEVICE(device,
            memHostAlloc(out, size,
                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
            "cuMemHostAlloc");
  if (st != KILN_OK)
    *out = NULL;
  return st;
}

kiln_status kiln_host_free(kiln_device *device, void *p)
{
  kiln_status st = need(device, true);

  if (st == KILN_OK && p != NULL)
    IN_DEVICE(device, memFreeHost(p), "cuMemFreeHost");
  return st;
}

kiln_status kiln_host_register(kiln_device *device, void *p, size_t size)
{
  kiln_status st = need(device, p != NULL || size == 0);

  if (st == KILN_OK && size > 0)
    IN_DEVICE(device,
              memHostRegister(p, size,
                              CU_MEMHOSTREGISTER_PORTABLE |
                                  CU_MEMHOSTREGISTER_DEVICEMAP),
              "cuMemHostRegister_v2");
  return st;
}

kiln_status kiln_host_unregister(kiln_device *device, void *p)
{
  kiln_status st = need(device, true);

  if (st == KILN_OK && p != NULL)
    IN_DEVICE(device, memHostUnregister(p), "cuMemHostUnregister");
  return st;
}

kiln_status kiln_host_address(CUdeviceptr *out, kiln_device *device, void *p)
{
  kiln_status st = need(device, out != NULL && p != NULL);

  if (out != NULL)
    *out = 0;
  if (st != KILN_OK)
    return st;
  IN_DEVICE(device, memHostGetDevicePointer(out, p, 0),
            "cuMemHostGetDevicePointer_v2");
  if (st != KILN_OK)
    *out = 0;
  return st;
}
