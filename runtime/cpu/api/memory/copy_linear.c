/* copy_linear.c -- implements copies of contiguous bytes, and copies to and
 * from the first row of an array. */
#include "../context/api_context.h"
#include "api_copy.h"

/* The source or the destination of a copy: bytes at an address, or in the first
 * row of an array. */
typedef struct place {
  CUmemorytype type;
  CUdeviceptr address;
  CUarray array;
  size_t x; /* offset in bytes in the first row of the array */
} place;

static place device(CUdeviceptr address)
{
  return (place){.type = CU_MEMORYTYPE_DEVICE, .address = address};
}

static place unified(CUdeviceptr address)
{
  return (place){.type = CU_MEMORYTYPE_UNIFIED, .address = address};
}

/* Under unified addressing, the host pointer may also be a device address. */
static place host(const void *p)
{
  return unified((CUdeviceptr)(uintptr_t)p);
}

static place row(CUarray array, size_t x)
{
  return (place){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = x};
}

static bool exists(const place *p)
{
  return p->type != CU_MEMORYTYPE_ARRAY ||
         kiln__cpu_live(p->array, KILN__HANDLE_ARRAY);
}

static CUresult copy(place to, place from, size_t bytes, CUstream stream,
                     bool async)
{
  const CUDA_MEMCPY3D p = {.srcMemoryType = from.type,
                           .srcDevice = from.address,
                           .srcHost = (const void *)(uintptr_t)from.address,
                           .srcArray = from.array,
                           .srcXInBytes = from.x,
                           .dstMemoryType = to.type,
                           .dstDevice = to.address,
                           .dstHost = (void *)(uintptr_t)to.address,
                           .dstArray = to.array,
                           .dstXInBytes = to.x,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};

  if (!exists(&to) || !exists(&from))
    return CUDA_ERROR_INVALID_HANDLE;
  return kiln__cpu_issue_copy(stream, &p, async);
}

/* Defines a copy function. The variable arguments are its parameters without
 * the number of bytes. `target` and `source` convert these parameters into the
 * destination and the source. */
#define COPY(name, target, source, ...)                                        \
  CUresult kiln__cpu_##name(__VA_ARGS__, size_t bytes)                         \
  {                                                                            \
    return copy(target, source, bytes, NULL, false);                           \
  }

/* Defines a copy function and its asynchronous variant. */
#define COPIES(name, target, source, ...)                                      \
  COPY(name, target, source, __VA_ARGS__)                                      \
                                                                               \
  CUresult kiln__cpu_##name##Async(__VA_ARGS__, size_t bytes, CUstream stream) \
  {                                                                            \
    return copy(target, source, bytes, stream, true);                          \
  }

COPIES(memcpy, unified(to), unified(from), CUdeviceptr to, CUdeviceptr from)
COPIES(memcpyHtoD, device(to), host(from), CUdeviceptr to, const void *from)
COPIES(memcpyDtoH, host(to), device(from), void *to, CUdeviceptr from)
COPIES(memcpyDtoD, device(to), device(from), CUdeviceptr to, CUdeviceptr from)
COPIES(memcpyHtoA, row(to, offset), host(from), CUarray to, size_t offset,
       const void *from)
COPIES(memcpyAtoH, host(to), row(from, offset), void *to, CUarray from,
       size_t offset)
COPY(memcpyDtoA, row(to, offset), device(from), CUarray to, size_t offset,
     CUdeviceptr from)
COPY(memcpyAtoD, device(to), row(from, offset), CUdeviceptr to, CUarray from,
     size_t offset)
COPY(memcpyAtoA, row(to, to_offset), row(from, from_offset), CUarray to,
     size_t to_offset, CUarray from, size_t from_offset)

/* ---- Copies between devices ---------------------------------------------- */

static CUresult wait_elsewhere(CUcontext context)
{
  CUcontext here;

  CU_TRY(kiln__cpu_current(&here));
  return context == NULL || context == here ? CUDA_SUCCESS
                                            : kiln__cpu_wait_context(context);
}

CUresult kiln__cpu_before_peer_copy(CUcontext to, CUcontext from)
{
  CU_TRY(wait_elsewhere(to));
  return wait_elsewhere(from);
}

CUresult kiln__cpu_after_peer_copy(CUcontext to, CUcontext from)
{
  CUcontext here;

  CU_TRY(kiln__cpu_current(&here));
  if ((to == NULL || to == here) && (from == NULL || from == here))
    return CUDA_SUCCESS;
  return kiln__cpu_wait_context(here);
}

static CUresult peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                     CUcontext from_context, size_t bytes, CUstream stream,
                     bool async)
{
  CU_TRY(kiln__cpu_check_current());
  if (!kiln__cpu_live(to_context, KILN__HANDLE_CONTEXT) ||
      !kiln__cpu_live(from_context, KILN__HANDLE_CONTEXT))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (async)
    return copy(device(to), device(from), bytes, stream, true);
  CU_TRY(kiln__cpu_before_peer_copy(to_context, from_context));
  CU_TRY(copy(device(to), device(from), bytes, stream, false));
  return kiln__cpu_after_peer_copy(to_context, from_context);
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

CUresult kiln__cpu_memcpyBatchAsyncV1(CUdeviceptr *to, CUdeviceptr *from,
                                      size_t *sizes, size_t n,
                                      CUmemcpyAttributes *attributes,
                                      size_t *attribute_of, size_t n_attributes,
                                      size_t *failed, CUstream stream)
{
  CU_TRY(kiln__cpu_check_current());
  if (failed != NULL)
    *failed = SIZE_MAX;
  CU_TRY(valid(to != NULL && from != NULL && sizes != NULL && n != 0 &&
               attributes != NULL && attribute_of != NULL &&
               n_attributes != 0 && n_attributes <= n));
  CU_TRY(kiln__cpu_batch_stream(stream));
  for (size_t i = 0; i < n; i++) {
    const CUresult rc =
        copy(unified(to[i]), unified(from[i]), sizes[i], stream, true);

    if (rc != CUDA_SUCCESS && failed != NULL)
      *failed = i;
    CU_TRY(rc);
  }
  return CUDA_SUCCESS;
}
