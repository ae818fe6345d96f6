/* memory.c -- device memory and pinned host memory. */
#include "device.h"

static kiln_status need_device(const kiln_device *device, bool others)
{
  if (device == NULL || !others)
    return kiln__fail(KILN_EINVAL, NULL, "an argument is NULL");
  return KILN_OK;
}

/* Allocating is forbidden to a thread while anything is captured in the
 * default mode; it disturbs no capture, hence relaxed. */
typedef struct unit {
  kiln_device *device;
  kiln__scope scope;
  kiln__relaxed relaxed;
} unit;

static kiln_status begin(kiln_device *device, unit *u)
{
  const kiln_status st = kiln__enter(device, &u->scope);

  u->device = device;
  if (st == KILN_OK)
    kiln__relax(device->driver, &u->relaxed);
  return st;
}

static kiln_status end(unit *u, CUresult rc, const char *call)
{
  kiln__unrelax(&u->relaxed);
  kiln__leave(&u->scope);
  return kiln__device_rc(u->device, rc, call);
}

kiln_status kiln_memory_alloc(CUdeviceptr *out, kiln_device *device,
                              size_t size)
{
  kiln_status st = need_device(device, out != NULL);
  unit u;

  if (out != NULL)
    *out = 0;
  if (st != KILN_OK || size == 0)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  st = end(&u, device->driver->memAlloc(out, size), "cuMemAlloc_v2");
  if (st != KILN_OK)
    *out = 0;
  return st;
}

kiln_status kiln_memory_free(kiln_device *device, CUdeviceptr p)
{
  kiln_status st = need_device(device, true);
  unit u;

  if (st != KILN_OK || p == 0)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  return end(&u, device->driver->memFree(p), "cuMemFree_v2");
}

kiln_status kiln_memory_alloc_async(CUdeviceptr *out, kiln_stream *stream,
                                    size_t size)
{
  kiln__scope scope;
  kiln_device *device;
  kiln_status st;

  if (out != NULL)
    *out = 0;
  if (out == NULL || stream == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out or stream is NULL");
  device = stream->device;
  if (size == 0 || !device->info.memory_pools)
    return kiln_memory_alloc(out, device, size);
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__device_rc(device,
                       device->driver->memAllocAsync(out, size, stream->handle),
                       "cuMemAllocAsync");
  if (st != KILN_OK)
    *out = 0;
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_memory_free_async(kiln_stream *stream, CUdeviceptr p)
{
  kiln__scope scope;
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
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__device_rc(device, device->driver->memFreeAsync(p, stream->handle),
                       "cuMemFreeAsync");
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_memory_info(kiln_device *device, uint64_t *free_bytes,
                             uint64_t *total_bytes)
{
  kiln_status st = need_device(device, free_bytes != NULL);
  size_t unused = 0, total = 0;
  unit u;

  if (free_bytes != NULL)
    *free_bytes = 0;
  if (total_bytes != NULL)
    *total_bytes = 0;
  if (st != KILN_OK)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  st = end(&u, device->driver->memGetInfo(&unused, &total), "cuMemGetInfo_v2");
  if (st != KILN_OK)
    return st;
  *free_bytes = unused;
  if (total_bytes != NULL)
    *total_bytes = total;
  return KILN_OK;
}

kiln_status kiln_host_alloc(void **out, kiln_device *device, size_t size)
{
  kiln_status st = need_device(device, out != NULL);
  unit u;

  if (out != NULL)
    *out = NULL;
  if (st != KILN_OK || size == 0)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  st =
      end(&u, device->driver->memHostAlloc(out, size, CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
  if (st != KILN_OK)
    *out = NULL;
  return st;
}

kiln_status kiln_host_free(kiln_device *device, void *p)
{
  kiln_status st = need_device(device, true);
  unit u;

  if (st != KILN_OK || p == NULL)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  return end(&u, device->driver->memFreeHost(p), "cuMemFreeHost");
}

kiln_status kiln_host_register(kiln_device *device, void *p, size_t size)
{
  kiln_status st = need_device(device, p != NULL || size == 0);
  unit u;

  if (st != KILN_OK || size == 0)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  return end(
      &u, device->driver->memHostRegister(p, size, CU_MEMHOSTREGISTER_PORTABLE),
      "cuMemHostRegister_v2");
}

kiln_status kiln_host_unregister(kiln_device *device, void *p)
{
  kiln_status st = need_device(device, true);
  unit u;

  if (st != KILN_OK || p == NULL)
    return st;
  st = begin(device, &u);
  if (st != KILN_OK)
    return st;
  return end(&u, device->driver->memHostUnregister(p), "cuMemHostUnregister");
}
