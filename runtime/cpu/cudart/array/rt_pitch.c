/* rt_pitch.c -- allocates and fills pitched memory. The driver chooses the pitch for
 * elements of 4 bytes, which also serves wider elements. */
#include "../cudart.h"

enum { ELEMENT = 4 };

static CUdeviceptr device(const void *address)
{
  return (CUdeviceptr)(uintptr_t)address;
}

cudaError_t kiln__rt_mallocPitch(void **out, size_t *pitch, size_t width,
                                 size_t height)
{
  CUdeviceptr address = 0;
  cudaError_t rc = cudaSuccess;

  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL || pitch == NULL)
    return cudaErrorInvalidValue;
  *out = NULL;
  *pitch = 0;
  if (width > 0 && height > 0)
    rc = cuMemAllocPitch_v2(&address, pitch, width, height, ELEMENT);
  *out = (void *)(uintptr_t)address;
  return rc;
}

cudaError_t kiln__rt_malloc3D(cudaPitchedPtr *out, cudaExtent extent)
{
  size_t rows;

  if (out == NULL || __builtin_mul_overflow(extent.height, extent.depth, &rows))
    return cudaErrorInvalidValue;
  *out = (cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
  return kiln__rt_mallocPitch(&out->ptr, &out->pitch, extent.width, rows);
}

/* ---- Fills ------------------------------------------------------------------------ */

/* Fills rows in a stream, or in the default stream of the form if `async` is
 * false. */
static cudaError_t fill(void *to, size_t pitch, int value, size_t width,
                        size_t height, bool async, cudaStream_t stream)
{
  const unsigned char byte = (unsigned char)value;

  if (width == 0 || height == 0)
    return cudaSuccess;
  if (async)
    return cuMemsetD2D8Async(device(to), pitch, byte, width, height,
                             kiln__rt_stream(stream));
  return kiln__rt_self()->per_thread
             ? cuMemsetD2D8_v2_ptds(device(to), pitch, byte, width, height)
             : cuMemsetD2D8_v2(device(to), pitch, byte, width, height);
}

static cudaError_t fill_box(cudaPitchedPtr to, int value, cudaExtent extent,
                            bool async, cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  if (to.ysize == extent.height)
    return fill(to.ptr, to.pitch, value, extent.width,
                extent.height * extent.depth, async, stream);
  for (size_t z = 0; z < extent.depth; z++)
    KILN__RT_TRY(fill((unsigned char *)to.ptr + z * to.pitch * to.ysize,
                      to.pitch, value, extent.width, extent.height, async,
                      stream));
  return cudaSuccess;
}

cudaError_t kiln__rt_memset2D(void *to, size_t pitch, int value, size_t width,
                              size_t height)
{
  KILN__RT_TRY(kiln__rt_context());
  return fill(to, pitch, value, width, height, false, NULL);
}

cudaError_t kiln__rt_memset2DAsync(void *to, size_t pitch, int value,
                                   size_t width, size_t height,
                                   cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return fill(to, pitch, value, width, height, true, stream);
}

cudaError_t kiln__rt_memset3D(cudaPitchedPtr to, int value, cudaExtent extent)
{
  return fill_box(to, value, extent, false, NULL);
}

cudaError_t kiln__rt_memset3DAsync(cudaPitchedPtr to, int value,
                                   cudaExtent extent, cudaStream_t stream)
{
  return fill_box(to, value, extent, true, stream);
}
