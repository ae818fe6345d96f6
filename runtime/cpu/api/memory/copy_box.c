/* copy_box.c -- implements copies in two and three dimensions, and copies to
 * and from arrays. */
#include "../context/api_context.h"
#include "api_copy.h"

static CUresult issue(const CUDA_MEMCPY3D *params, CUstream stream, bool async)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  return kiln__cpu_issue_copy(context, stream, params, async);
}

/* ---- Copies to and from the first row of an array ------------------------ */

static CUresult to_array(CUarray to, size_t to_offset, CUmemorytype type,
                         CUdeviceptr from, size_t bytes, CUstream stream,
                         bool async)
{
  const CUDA_MEMCPY3D p = {.srcMemoryType = type,
                           .srcDevice = from,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = to,
                           .dstXInBytes = to_offset,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};

  CU_TRY(kiln__cpu_known(to, KILN__HANDLE_ARRAY));
  return issue(&p, stream, async);
}

static CUresult from_array(CUmemorytype type, CUdeviceptr to, CUarray from,
                           size_t from_offset, size_t bytes, CUstream stream,
                           bool async)
{
  const CUDA_MEMCPY3D p = {.dstMemoryType = type,
                           .dstDevice = to,
                           .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = from,
                           .srcXInBytes = from_offset,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};

  CU_TRY(kiln__cpu_known(from, KILN__HANDLE_ARRAY));
  return issue(&p, stream, async);
}

CUresult kiln__cpu_memcpyDtoA(CUarray to, size_t to_offset, CUdeviceptr from,
                              size_t bytes)
{
  return to_array(to, to_offset, CU_MEMORYTYPE_DEVICE, from, bytes, NULL,
                  false);
}

CUresult kiln__cpu_memcpyAtoD(CUdeviceptr to, CUarray from, size_t from_offset,
                              size_t bytes)
{
  return from_array(CU_MEMORYTYPE_DEVICE, to, from, from_offset, bytes, NULL,
                    false);
}

CUresult kiln__cpu_memcpyHtoA(CUarray to, size_t to_offset, const void *from,
                              size_t bytes)
{
  return to_array(to, to_offset, CU_MEMORYTYPE_UNIFIED,
                  (CUdeviceptr)(uintptr_t)from, bytes, NULL, false);
}

CUresult kiln__cpu_memcpyAtoH(void *to, CUarray from, size_t from_offset,
                              size_t bytes)
{
  return from_array(CU_MEMORYTYPE_UNIFIED, (CUdeviceptr)(uintptr_t)to, from,
                    from_offset, bytes, NULL, false);
}

CUresult kiln__cpu_memcpyHtoAAsync(CUarray to, size_t to_offset,
                                   const void *from, size_t bytes,
                                   CUstream stream)
{
  return to_array(to, to_offset, CU_MEMORYTYPE_UNIFIED,
                  (CUdeviceptr)(uintptr_t)from, bytes, stream, true);
}

CUresult kiln__cpu_memcpyAtoHAsync(void *to, CUarray from, size_t from_offset,
                                   size_t bytes, CUstream stream)
{
  return from_array(CU_MEMORYTYPE_UNIFIED, (CUdeviceptr)(uintptr_t)to, from,
                    from_offset, bytes, stream, true);
}

CUresult kiln__cpu_memcpyAtoA(CUarray to, size_t to_offset, CUarray from,
                              size_t from_offset, size_t bytes)
{
  const CUDA_MEMCPY3D p = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = from,
                           .srcXInBytes = from_offset,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = to,
                           .dstXInBytes = to_offset,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};

  if (!kiln__cpu_live(to, KILN__HANDLE_ARRAY) ||
      !kiln__cpu_live(from, KILN__HANDLE_ARRAY))
    return CUDA_ERROR_INVALID_HANDLE;
  return issue(&p, NULL, false);
}

/* ---- Two dimensions ------------------------------------------------------ */

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool async)
{
  CUDA_MEMCPY3D p;

  CU_TRY(valid(c != NULL));
  p = (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                      .srcY = c->srcY,
                      .srcMemoryType = c->srcMemoryType,
                      .srcHost = c->srcHost,
                      .srcDevice = c->srcDevice,
                      .srcArray = c->srcArray,
                      .srcPitch = c->srcPitch,
                      .dstXInBytes = c->dstXInBytes,
                      .dstY = c->dstY,
                      .dstMemoryType = c->dstMemoryType,
                      .dstHost = c->dstHost,
                      .dstDevice = c->dstDevice,
                      .dstArray = c->dstArray,
                      .dstPitch = c->dstPitch,
                      .WidthInBytes = c->WidthInBytes,
                      .Height = c->Height,
                      .Depth = 1};
  return issue(&p, stream, async);
}

CUresult kiln__cpu_memcpy2D(const CUDA_MEMCPY2D *copy)
{
  return copy_2d(copy, NULL, false);
}

CUresult kiln__cpu_memcpy2DUnaligned(const CUDA_MEMCPY2D *copy)
{
  return copy_2d(copy, NULL, false);
}

CUresult kiln__cpu_memcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream)
{
  return copy_2d(copy, stream, true);
}

/* ---- Three dimensions ---------------------------------------------------- */

CUresult kiln__cpu_memcpy3D(const CUDA_MEMCPY3D *copy)
{
  return copy == NULL ? CUDA_ERROR_INVALID_VALUE : issue(copy, NULL, false);
}

CUresult kiln__cpu_memcpy3DAsync(const CUDA_MEMCPY3D *copy, CUstream stream)
{
  return copy == NULL ? CUDA_ERROR_INVALID_VALUE : issue(copy, stream, true);
}

static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream,
                          bool async)
{
  CUDA_MEMCPY3D p;

  CU_TRY(valid(c != NULL));
  if ((c->srcMemoryType == CU_MEMORYTYPE_DEVICE &&
       !kiln__cpu_live(c->srcContext, KILN__HANDLE_CONTEXT)) ||
      (c->dstMemoryType == CU_MEMORYTYPE_DEVICE &&
       !kiln__cpu_live(c->dstContext, KILN__HANDLE_CONTEXT)))
    return CUDA_ERROR_INVALID_CONTEXT;
  p = (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                      .srcY = c->srcY,
                      .srcZ = c->srcZ,
                      .srcLOD = c->srcLOD,
                      .srcMemoryType = c->srcMemoryType,
                      .srcHost = c->srcHost,
                      .srcDevice = c->srcDevice,
                      .srcArray = c->srcArray,
                      .srcPitch = c->srcPitch,
                      .srcHeight = c->srcHeight,
                      .dstXInBytes = c->dstXInBytes,
                      .dstY = c->dstY,
                      .dstZ = c->dstZ,
                      .dstLOD = c->dstLOD,
                      .dstMemoryType = c->dstMemoryType,
                      .dstHost = c->dstHost,
                      .dstDevice = c->dstDevice,
                      .dstArray = c->dstArray,
                      .dstPitch = c->dstPitch,
                      .dstHeight = c->dstHeight,
                      .WidthInBytes = c->WidthInBytes,
                      .Height = c->Height,
                      .Depth = c->Depth};
  return issue(&p, stream, async);
}

CUresult kiln__cpu_memcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
  return copy_peer(copy, NULL, false);
}

CUresult kiln__cpu_memcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy,
                                     CUstream stream)
{
  return copy_peer(copy, stream, true);
}
