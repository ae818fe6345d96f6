/* rt_array.c -- makes and describes arrays and mipmapped arrays. The flags of the
 * runtime are those of the driver. */
#include "rt_channel.h"

cudaError_t kiln__rt_malloc3DArray(cudaArray_t *array,
                                   const cudaChannelFormatDesc *desc,
                                   cudaExtent extent, unsigned int flags)
{
  /* Layered, surface, cubemap, gather, colour, sparse, deferred mapping */
  const unsigned known_flags = 0xef;
  kiln__rt_texel texel;

  KILN__RT_TRY(kiln__rt_context());
  if (array == NULL || desc == NULL || (flags & ~known_flags) != 0)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_texel_of(&texel, desc));
  return cuArray3DCreate_v2(
      array, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width,
                                        .Height = extent.height,
                                        .Depth = extent.depth,
                                        .Format = texel.format,
                                        .NumChannels = texel.channels,
                                        .Flags = flags});
}

cudaError_t kiln__rt_mallocArray(cudaArray_t *array,
                                 const cudaChannelFormatDesc *desc,
                                 size_t width, size_t height,
                                 unsigned int flags)
{
  return kiln__rt_malloc3DArray(array, desc, (cudaExtent){width, height, 0},
                                flags);
}

cudaError_t kiln__rt_mallocMipmappedArray(cudaMipmappedArray_t *mipmap,
                                          const cudaChannelFormatDesc *desc,
                                          cudaExtent extent,
                                          unsigned int levels,
                                          unsigned int flags)
{
  kiln__rt_texel texel;

  KILN__RT_TRY(kiln__rt_context());
  if (mipmap == NULL || desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_texel_of(&texel, desc));
  return cuMipmappedArrayCreate(
      mipmap,
      &(CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width,
                                 .Height = extent.height,
                                 .Depth = extent.depth,
                                 .Format = texel.format,
                                 .NumChannels = texel.channels,
                                 .Flags = flags},
      levels);
}

cudaError_t kiln__rt_getMipmappedArrayLevel(cudaArray_t *array,
                                            cudaMipmappedArray_t mipmap,
                                            unsigned int level)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMipmappedArrayGetLevel(array, mipmap, level);
}

cudaError_t kiln__rt_freeArray(cudaArray_t array)
{
  KILN__RT_TRY(kiln__rt_context());
  return array == NULL ? cudaSuccess : cuArrayDestroy(array);
}

cudaError_t kiln__rt_freeMipmappedArray(cudaMipmappedArray_t mipmap)
{
  KILN__RT_TRY(kiln__rt_context());
  return mipmap == NULL ? cudaSuccess : cuMipmappedArrayDestroy(mipmap);
}

cudaError_t kiln__rt_arrayGetInfo(cudaChannelFormatDesc *desc,
                                  cudaExtent *extent, unsigned int *flags,
                                  cudaArray_t array)
{
  CUDA_ARRAY3D_DESCRIPTOR d;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(cuArray3DGetDescriptor_v2(&d, array));
  if (desc != NULL)
    *desc = kiln__rt_channels_of((kiln__rt_texel){d.Format, d.NumChannels});
  if (extent != NULL)
    *extent = (cudaExtent){d.Width, d.Height, d.Depth};
  if (flags != NULL)
    *flags = d.Flags;
  return cudaSuccess;
}

cudaError_t kiln__rt_getChannelDesc(cudaChannelFormatDesc *desc,
                                    cudaArray_t array)
{
  if (desc == NULL)
    return cudaErrorInvalidValue;
  return kiln__rt_arrayGetInfo(desc, NULL, NULL, array);
}

cudaError_t kiln__rt_deviceGetTexture1DLinearMaxWidth(
    size_t *width, const cudaChannelFormatDesc *desc, int device)
{
  kiln__rt_texel texel;
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  if (width == NULL || desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_texel_of(&texel, desc));
  return cuDeviceGetTexture1DLinearMaxWidth(width, texel.format, texel.channels,
                                            handle);
}
