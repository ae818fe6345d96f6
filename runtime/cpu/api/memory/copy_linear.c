/* copy_linear.c -- implements copies of contiguous bytes. */
#include "../context/api_context.h"
#include "api_copy.h"

static CUDA_MEMCPY3D linear(CUmemorytype to_type, CUdeviceptr to,
                            CUmemorytype from_type, CUdeviceptr from,
                            size_t bytes)
{
  CUDA_MEMCPY3D p = {.srcMemoryType = from_type,
                     .dstMemoryType = to_type,
                     .srcDevice = from,
                     .dstDevice = to,
                     .srcHost = (const void *)(uintptr_t)from,
                     .dstHost = (void *)(uintptr_t)to,
                     .WidthInBytes = bytes,
                     .Height = 1,
                     .Depth = 1};

  return p;
}

static CUresult copy(CUmemorytype to_type, CUdeviceptr to,
                     CUmemorytype from_type, CUdeviceptr from, size_t bytes,
                     CUstream stream, bool async)
{
  const CUDA_MEMCPY3D p = linear(to_type, to, from_type, from, bytes);
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  return kiln__cpu_issue_copy(context, stream, &p, async);
}

static CUdeviceptr of(const void *p)
{
  return (CUdeviceptr)(uintptr_t)p;
}

CUresult kiln__cpu_memcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  return copy(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes,
              NULL, false);
}

CUresult kiln__cpu_memcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                               CUstream stream)
{
  return copy(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes,
              stream, true);
}

/* Copies to the device. Under unified addressing, the host pointer may also be
 * a device address. */
CUresult kiln__cpu_memcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
  return copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_UNIFIED, of(from), bytes,
              NULL, false);
}

CUresult kiln__cpu_memcpyHtoDAsync(CUdeviceptr to, const void *from,
                                   size_t bytes, CUstream stream)
{
  return copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_UNIFIED, of(from), bytes,
              stream, true);
}

CUresult kiln__cpu_memcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
  return copy(CU_MEMORYTYPE_UNIFIED, of(to), CU_MEMORYTYPE_DEVICE, from, bytes,
              NULL, false);
}

CUresult kiln__cpu_memcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                   CUstream stream)
{
  return copy(CU_MEMORYTYPE_UNIFIED, of(to), CU_MEMORYTYPE_DEVICE, from, bytes,
              stream, true);
}

CUresult kiln__cpu_memcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  return copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes, NULL,
              false);
}

CUresult kiln__cpu_memcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from,
                                   size_t bytes, CUstream stream)
{
  return copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes,
              stream, true);
}

/* ---- Copies between devices ---------------------------------------------- */

static CUresult peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                     CUcontext from_context, size_t bytes, CUstream stream,
                     bool async)
{
  CU_TRY(kiln__cpu_check_current());
  if (!kiln__cpu_live(to_context, KILN__HANDLE_CONTEXT) ||
      !kiln__cpu_live(from_context, KILN__HANDLE_CONTEXT))
    return CUDA_ERROR_INVALID_CONTEXT;
  return copy(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes,
              stream, async);
}

CUresult kiln__cpu_memcpyPeer(CUdeviceptr to, CUcontext to_context,
                              CUdeviceptr from, CUcontext from_context,
                              size_t bytes)
{
  return peer(to, to_context, from, from_context, bytes, NULL, false);
}

CUresult kiln__cpu_memcpyPeerAsync(CUdeviceptr to, CUcontext to_context,
                                   CUdeviceptr from, CUcontext from_context,
                                   size_t bytes, CUstream stream)
{
  return peer(to, to_context, from, from_context, bytes, stream, true);
}

/* ---- Batched copies ------------------------------------------------------ */

static CUresult batch(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes,
                      size_t n, const CUmemcpyAttributes *attributes,
                      const size_t *attribute_of, size_t n_attributes,
                      size_t *failed, CUstream stream)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kiln__cpu_check_current());
  if (failed != NULL)
    *failed = SIZE_MAX;
  CU_TRY(valid(to != NULL && from != NULL && sizes != NULL && n != 0 &&
               attributes != NULL && attribute_of != NULL &&
               n_attributes != 0 && n_attributes <= n && stream != NULL));
  for (size_t i = 0; i < n; i++) {
    rc = copy(CU_MEMORYTYPE_UNIFIED, to[i], CU_MEMORYTYPE_UNIFIED, from[i],
              sizes[i], stream, true);
    if (rc != CUDA_SUCCESS) {
      if (failed != NULL)
        *failed = i;
      return rc;
    }
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memcpyBatchAsyncV1(CUdeviceptr *to, CUdeviceptr *from,
                                      size_t *sizes, size_t n,
                                      CUmemcpyAttributes *attributes,
                                      size_t *attribute_of, size_t n_attributes,
                                      size_t *failed, CUstream stream)
{
  return batch(to, from, sizes, n, attributes, attribute_of, n_attributes,
               failed, stream);
}

CUresult kiln__cpu_memcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from,
                                    size_t *sizes, size_t n,
                                    CUmemcpyAttributes *attributes,
                                    size_t *attribute_of, size_t n_attributes,
                                    CUstream stream)
{
  return batch(to, from, sizes, n, attributes, attribute_of, n_attributes, NULL,
               stream);
}
