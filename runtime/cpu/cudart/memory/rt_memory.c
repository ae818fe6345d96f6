/* rt_memory.c -- allocates linear memory of devices and of the host, and describes
 * pointers. */
#include "../cudart.h"

#include <string.h>

/* An allocation of no bytes succeeds and stores NULL. */
cudaError_t kiln__rt_malloc(void **out, size_t size)
{
  CUdeviceptr address = 0;
  cudaError_t rc = cudaSuccess;

  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL)
    return cudaErrorInvalidValue;
  *out = NULL;
  if (size > 0)
    rc = cuMemAlloc_v2(&address, size);
  *out = (void *)(uintptr_t)address;
  return rc;
}

/* A managed allocation of no bytes succeeds as well. */
cudaError_t kiln__rt_mallocManaged(void **out, size_t size, unsigned int flags)
{
  CUdeviceptr address = 0;
  cudaError_t rc;

  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL)
    return cudaErrorInvalidValue;
  rc = cuMemAllocManaged(&address, size > 0 ? size : 1, flags);
  if (rc == cudaSuccess && size == 0) {
    rc = cuMemFree_v2(address);
    address = 0;
  }
  if (rc == cudaSuccess)
    *out = (void *)(uintptr_t)address;
  return rc;
}

/* cudaFree(NULL) only makes sure that there is a context. Many programs use it for
 * this purpose. */
cudaError_t kiln__rt_free(void *address)
{
  KILN__RT_TRY(kiln__rt_context());
  return address == NULL ? cudaSuccess
                         : cuMemFree_v2((CUdeviceptr)(uintptr_t)address);
}

/* ---- Host memory ----------------------------------------------------------- */

/* An allocation of no bytes succeeds and stores NULL. */
cudaError_t kiln__rt_hostAlloc(void **out, size_t size, unsigned flags)
{
  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL)
    return cudaErrorInvalidValue;
  *out = NULL;
  return size == 0 ? cudaSuccess : cuMemHostAlloc(out, size, flags);
}

cudaError_t kiln__rt_mallocHost(void **out, size_t size)
{
  return kiln__rt_hostAlloc(out, size, 0);
}

cudaError_t kiln__rt_freeHost(void *address)
{
  KILN__RT_TRY(kiln__rt_context());
  return address == NULL ? cudaSuccess : cuMemFreeHost(address);
}

/* ---- Pointers -------------------------------------------------------------- */

/* What the driver knows about an address. Members that it does not report are 0. */
typedef struct known {
  unsigned type,
      managed; /* type is 0 for memory that the driver does not know */
  int device;
  CUdeviceptr on_device;
  void *on_host;
} known;

static cudaError_t ask(known *k, const void *address)
{
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void *data[] = {&k->type, &k->managed, &k->device, &k->on_device,
                  &k->on_host};

  memset(k, 0, sizeof *k);
  return cuPointerGetAttributes(5, attributes, data,
                                (CUdeviceptr)(uintptr_t)address);
}

/* Memory that CUDA does not know is no error: its type is Unregistered, and only the
 * host can use it. */
cudaError_t kiln__rt_pointerGetAttributes(cudaPointerAttributes_11 *out,
                                          const void *address)
{
  known k;

  if (out == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(ask(&k, address));
  memset(out, 0, sizeof *out);
  if (k.type == 0) {
    out->type = cudaMemoryTypeUnregistered;
    out->device = cudaInvalidDeviceId;
    out->hostPointer = (void *)(uintptr_t)address;
    return cudaSuccess;
  }
  out->type = k.managed != 0                 ? cudaMemoryTypeManaged
              : k.type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                             : cudaMemoryTypeDevice;
  out->device = k.device;
  out->devicePointer = (void *)(uintptr_t)k.on_device;
  out->hostPointer = k.on_host;
  return cudaSuccess;
}

cudaError_t kiln__rt_pointerGetAttributes13(cudaPointerAttributes_13 *out,
                                            const void *address)
{
  cudaPointerAttributes_11 a;

  if (out == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_pointerGetAttributes(&a, address));
  memset(out, 0, sizeof *out);
  out->type = a.type;
  out->device = a.device;
  out->devicePointer = a.devicePointer;
  out->hostPointer = a.hostPointer;
  return cudaSuccess;
}
