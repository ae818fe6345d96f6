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
