/* rt_copy.c -- copies and fills linear memory. A copy with an explicit direction calls
 * the driver's function for that direction, which rejects addresses of the other
 * kind. In the per-thread form, a blocking call goes through the thread's stream. */
#include "../cudart.h"

static CUdeviceptr device(const void *address)
{
  return (CUdeviceptr)(uintptr_t)address;
}

static cudaError_t blocking(void *to, const void *from, size_t size,
                            cudaMemcpyKind kind)
{
  switch (kind) {
  case cudaMemcpyHostToDevice:
    return cuMemcpyHtoD_v2(device(to), from, size);
  case cudaMemcpyDeviceToHost:
    return cuMemcpyDtoH_v2(to, device(from), size);
  case cudaMemcpyDeviceToDevice:
    return cuMemcpyDtoD_v2(device(to), device(from), size);
  default:
    return cuMemcpy(device(to), device(from), size);
  }
}

static cudaError_t asynchronous(void *to, const void *from, size_t size,
                                cudaMemcpyKind kind, CUstream stream)
{
  switch (kind) {
  case cudaMemcpyHostToDevice:
    return cuMemcpyHtoDAsync_v2(device(to), from, size, stream);
  case cudaMemcpyDeviceToHost:
    return cuMemcpyDtoHAsync_v2(to, device(from), size, stream);
  case cudaMemcpyDeviceToDevice:
    return cuMemcpyDtoDAsync_v2(device(to), device(from), size, stream);
  default:
    return cuMemcpyAsync(device(to), device(from), size, stream);
  }
}

/* Checks a direction. */
static cudaError_t check_kind(cudaMemcpyKind kind)
{
  return kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault
             ? cudaErrorInvalidMemcpyDirection
             : cudaSuccess;
}

cudaError_t kiln__rt_memcpy(void *to, const void *from, size_t size,
                            cudaMemcpyKind kind)
{
  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(check_kind(kind));
  if (size == 0)
    return cudaSuccess;
  if (!kiln__rt_self()->per_thread)
    return blocking(to, from, size, kind);
  KILN__RT_TRY(asynchronous(to, from, size, kind, CU_STREAM_PER_THREAD));
  return cuStreamSynchronize(CU_STREAM_PER_THREAD);
}

cudaError_t kiln__rt_memcpyAsync(void *to, const void *from, size_t size,
                                 cudaMemcpyKind kind, cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(check_kind(kind));
  if (size == 0)
    return cudaSuccess;
  return asynchronous(to, from, size, kind, kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memset(void *to, int value, size_t size)
{
  KILN__RT_TRY(kiln__rt_context());
  if (size == 0)
    return cudaSuccess;
  if (kiln__rt_self()->per_thread)
    return cuMemsetD8Async(device(to), (unsigned char)value, size,
                           CU_STREAM_PER_THREAD);
  return cuMemsetD8_v2(device(to), (unsigned char)value, size);
}

cudaError_t kiln__rt_memsetAsync(void *to, int value, size_t size,
                                 cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  if (size == 0)
    return cudaSuccess;
  return cuMemsetD8Async(device(to), (unsigned char)value, size,
                         kiln__rt_stream(stream));
}

/* ---- Copies to and from variables ------------------------------------------ */

cudaError_t kiln__rt_getSymbolAddress(void **address, const void *host)
{
  CUdeviceptr found = 0;

  if (address == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_variable(&found, NULL, host));
  *address = (void *)(uintptr_t)found;
  return cudaSuccess;
}

cudaError_t kiln__rt_getSymbolSize(size_t *size, const void *host)
{
  return size == NULL ? cudaErrorInvalidValue
                      : kiln__rt_variable(NULL, size, host);
}

/* Stores the address of `size` bytes of a variable, from `offset` on. `excluded` is the
 * direction that a copy from or to a variable cannot have. */
static cudaError_t part_of(void **out, const void *host, size_t size,
                           size_t offset, cudaMemcpyKind kind,
                           cudaMemcpyKind excluded)
{
  CUdeviceptr address = 0;
  size_t whole = 0;

  KILN__RT_TRY(kiln__rt_variable(&address, &whole, host));
  KILN__RT_TRY(check_kind(kind));
  if (kind == excluded || kind == cudaMemcpyHostToHost)
    return cudaErrorInvalidMemcpyDirection;
  if (offset > whole || size > whole - offset)
    return cudaErrorInvalidValue;
  *out = (void *)(uintptr_t)(address + offset);
  return cudaSuccess;
}

cudaError_t kiln__rt_memcpyToSymbol(const void *host, const void *from,
                                    size_t size, size_t offset,
                                    cudaMemcpyKind kind)
{
  void *to;

  KILN__RT_TRY(part_of(&to, host, size, offset, kind, cudaMemcpyDeviceToHost));
  return kiln__rt_memcpy(to, from, size, kind);
}

cudaError_t kiln__rt_memcpyFromSymbol(void *to, const void *host, size_t size,
                                      size_t offset, cudaMemcpyKind kind)
{
  void *from;

  KILN__RT_TRY(
      part_of(&from, host, size, offset, kind, cudaMemcpyHostToDevice));
  return kiln__rt_memcpy(to, from, size, kind);
}

cudaError_t kiln__rt_memcpyToSymbolAsync(const void *host, const void *from,
                                         size_t size, size_t offset,
                                         cudaMemcpyKind kind,
                                         cudaStream_t stream)
{
  void *to;

  KILN__RT_TRY(part_of(&to, host, size, offset, kind, cudaMemcpyDeviceToHost));
  return kiln__rt_memcpyAsync(to, from, size, kind, stream);
}

cudaError_t kiln__rt_memcpyFromSymbolAsync(void *to, const void *host,
                                           size_t size, size_t offset,
                                           cudaMemcpyKind kind,
                                           cudaStream_t stream)
{
  void *from;

  KILN__RT_TRY(
      part_of(&from, host, size, offset, kind, cudaMemcpyHostToDevice));
  return kiln__rt_memcpyAsync(to, from, size, kind, stream);
}
