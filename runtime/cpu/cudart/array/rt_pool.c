/* rt_pool.c -- forwards memory pools, allocation in the order of a stream, and sharing
 * between processes to the driver, whose structs and numbers the runtime uses. */
#include "../cudart.h"

/* Defines a function that needs a context and is otherwise the driver's. */
#define FORWARD(name, params, call)                                            \
  cudaError_t kiln__rt_##name params                                           \
  {                                                                            \
    KILN__RT_TRY(kiln__rt_context());                                          \
    return call;                                                               \
  }

static CUdeviceptr device(const void *address)
{
  return (CUdeviceptr)(uintptr_t)address;
}

/* ---- Allocation in the order of a stream ------------------------------------------ */

cudaError_t kiln__rt_mallocAsync(void **out, size_t size, cudaStream_t stream)
{
  CUdeviceptr address = 0;
  cudaError_t rc;

  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL)
    return cudaErrorInvalidValue;
  rc = size == 0 ? cudaSuccess
                 : cuMemAllocAsync(&address, size, kiln__rt_stream(stream));
  *out = (void *)(uintptr_t)address;
  return rc;
}

cudaError_t kiln__rt_mallocFromPoolAsync(void **out, size_t size,
                                         cudaMemPool_t pool,
                                         cudaStream_t stream)
{
  CUdeviceptr address = 0;
  cudaError_t rc;

  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL)
    return cudaErrorInvalidValue;
  rc = size == 0 ? cudaSuccess
                 : cuMemAllocFromPoolAsync(&address, size, pool,
                                           kiln__rt_stream(stream));
  *out = (void *)(uintptr_t)address;
  return rc;
}

cudaError_t kiln__rt_freeAsync(void *address, cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return address == NULL
             ? cudaSuccess
             : cuMemFreeAsync(device(address), kiln__rt_stream(stream));
}

/* ---- Pools -------------------------------------------------------------------------- */

FORWARD(memPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps *props),
        cuMemPoolCreate(pool, props))
FORWARD(memPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy(pool))
FORWARD(memPoolTrimTo, (cudaMemPool_t pool, size_t keep),
        cuMemPoolTrimTo(pool, keep))
FORWARD(memPoolSetAttribute,
        (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value),
        cuMemPoolSetAttribute(pool, attribute, value))
FORWARD(memPoolGetAttribute,
        (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value),
        cuMemPoolGetAttribute(pool, attribute, value))
FORWARD(memPoolSetAccess,
        (cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t n),
        cuMemPoolSetAccess(pool, access, n))
FORWARD(memPoolGetAccess,
        (cudaMemAccessFlags * flags, cudaMemPool_t pool,
         cudaMemLocation *location),
        cuMemPoolGetAccess(flags, pool, location))
FORWARD(memPoolExportToShareableHandle,
        (void *handle, cudaMemPool_t pool, cudaMemAllocationHandleType type,
         unsigned int flags),
        cuMemPoolExportToShareableHandle(handle, pool, type, flags))
FORWARD(memPoolImportFromShareableHandle,
        (cudaMemPool_t * pool, void *handle, cudaMemAllocationHandleType type,
         unsigned int flags),
        cuMemPoolImportFromShareableHandle(pool, handle, type, flags))
FORWARD(memPoolExportPointer, (cudaMemPoolPtrExportData * data, void *address),
        cuMemPoolExportPointer(data, device(address)))
FORWARD(memGetDefaultMemPool,
        (cudaMemPool_t * pool, cudaMemLocation *location,
         cudaMemAllocationType type),
        cuMemGetDefaultMemPool(pool, location, type))
FORWARD(memGetMemPool,
        (cudaMemPool_t * pool, cudaMemLocation *location,
         cudaMemAllocationType type),
        cuMemGetMemPool(pool, location, type))
FORWARD(memSetMemPool,
        (cudaMemLocation * location, cudaMemAllocationType type,
         cudaMemPool_t pool),
        cuMemSetMemPool(location, type, pool))

cudaError_t kiln__rt_memPoolImportPointer(void **address, cudaMemPool_t pool,
                                          cudaMemPoolPtrExportData *data)
{
  CUdeviceptr imported = 0;

  KILN__RT_TRY(kiln__rt_context());
  if (address == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuMemPoolImportPointer(&imported, pool, data));
  *address = (void *)(uintptr_t)imported;
  return cudaSuccess;
}

/* Defines a function whose device is an ordinal. */
#define FORWARD_DEVICE(name, params, call)                                     \
  cudaError_t kiln__rt_##name params                                           \
  {                                                                            \
    CUdevice handle;                                                           \
                                                                               \
    KILN__RT_TRY(kiln__rt_device(&handle, device));                            \
    return call;                                                               \
  }

/* Unlike the others, this function calls an unknown device an invalid value. */
cudaError_t kiln__rt_deviceGetMemPool(cudaMemPool_t *pool, int device)
{
  CUdevice handle;

  if (kiln__rt_device(&handle, device) != cudaSuccess)
    return cudaErrorInvalidValue;
  return cuDeviceGetMemPool(pool, handle);
}

FORWARD_DEVICE(deviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
               cuDeviceGetDefaultMemPool(pool, handle))
FORWARD_DEVICE(deviceSetMemPool, (int device, cudaMemPool_t pool),
               cuDeviceSetMemPool(handle, pool))
FORWARD_DEVICE(deviceGraphMemTrim, (int device), cuDeviceGraphMemTrim(handle))
FORWARD_DEVICE(deviceGetGraphMemAttribute,
               (int device, cudaGraphMemAttributeType attribute, void *value),
               cuDeviceGetGraphMemAttribute(handle, attribute, value))
FORWARD_DEVICE(deviceSetGraphMemAttribute,
               (int device, cudaGraphMemAttributeType attribute, void *value),
               cuDeviceSetGraphMemAttribute(handle, attribute, value))

/* ---- Sharing with other processes ---------------------------------------------------- */

FORWARD(ipcGetMemHandle, (cudaIpcMemHandle_t * handle, void *address),
        cuIpcGetMemHandle(handle, device(address)))
FORWARD(ipcCloseMemHandle, (void *address),
        cuIpcCloseMemHandle(device(address)))
FORWARD(ipcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
        cuIpcGetEventHandle(handle, event))
FORWARD(ipcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
        cuIpcOpenEventHandle(event, handle))

cudaError_t kiln__rt_ipcOpenMemHandle(void **address, cudaIpcMemHandle_t handle,
                                      unsigned int flags)
{
  CUdeviceptr opened = 0;

  KILN__RT_TRY(kiln__rt_context());
  if (address == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuIpcOpenMemHandle_v2(&opened, handle, flags));
  *address = (void *)(uintptr_t)opened;
  return cudaSuccess;
}
