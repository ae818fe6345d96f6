/* rt_texture.c -- makes texture and surface objects from the runtime's descriptors,
 * and converts the driver's descriptors back.
 *
 * The layouts of the descriptors grew with CUDA 12 and 13. A function for an old
 * layout copies what the layout has and calls the function for the new one. Modes,
 * resource types and view formats have the same numbers in both interfaces. */
#include "rt_channel.h"

#include <string.h>

/* ---- Resources --------------------------------------------------------------- */

static cudaError_t resource_to_driver(CUDA_RESOURCE_DESC *out,
                                      const cudaResourceDesc_11 *in)
{
  kiln__rt_texel texel;

  *out = (CUDA_RESOURCE_DESC){.resType = in->resType};
  switch (in->resType) {
  case cudaResourceTypeArray:
    out->res.array.hArray = in->res.array.array;
    return cudaSuccess;
  case cudaResourceTypeMipmappedArray:
    out->res.mipmap.hMipmappedArray = in->res.mipmap.mipmap;
    return cudaSuccess;
  case cudaResourceTypeLinear:
    KILN__RT_TRY(kiln__rt_texel_of(&texel, &in->res.linear.desc));
    out->res.linear.devPtr = (CUdeviceptr)(uintptr_t)in->res.linear.devPtr;
    out->res.linear.format = texel.format;
    out->res.linear.numChannels = texel.channels;
    out->res.linear.sizeInBytes = in->res.linear.sizeInBytes;
    return cudaSuccess;
  case cudaResourceTypePitch2D:
    KILN__RT_TRY(kiln__rt_texel_of(&texel, &in->res.pitch2D.desc));
    out->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)in->res.pitch2D.devPtr;
    out->res.pitch2D.format = texel.format;
    out->res.pitch2D.numChannels = texel.channels;
    out->res.pitch2D.width = in->res.pitch2D.width;
    out->res.pitch2D.height = in->res.pitch2D.height;
    out->res.pitch2D.pitchInBytes = in->res.pitch2D.pitchInBytes;
    return cudaSuccess;
  default:
    return cudaErrorInvalidValue;
  }
}

static void resource_to_runtime(cudaResourceDesc_11 *out,
                                const CUDA_RESOURCE_DESC *in)
{
  *out = (cudaResourceDesc_11){.resType = in->resType};
  switch (in->resType) {
  case CU_RESOURCE_TYPE_ARRAY:
    out->res.array.array = in->res.array.hArray;
    break;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    out->res.mipmap.mipmap = in->res.mipmap.hMipmappedArray;
    break;
  case CU_RESOURCE_TYPE_LINEAR:
    out->res.linear.devPtr = (void *)(uintptr_t)in->res.linear.devPtr;
    out->res.linear.desc = kiln__rt_channels_of(
        (kiln__rt_texel){in->res.linear.format, in->res.linear.numChannels});
    out->res.linear.sizeInBytes = in->res.linear.sizeInBytes;
    break;
  default:
    out->res.pitch2D.devPtr = (void *)(uintptr_t)in->res.pitch2D.devPtr;
    out->res.pitch2D.desc = kiln__rt_channels_of(
        (kiln__rt_texel){in->res.pitch2D.format, in->res.pitch2D.numChannels});
    out->res.pitch2D.width = in->res.pitch2D.width;
    out->res.pitch2D.height = in->res.pitch2D.height;
    out->res.pitch2D.pitchInBytes = in->res.pitch2D.pitchInBytes;
    break;
  }
}

/* Returns the format of the texels of a resource, or cudaErrorInvalidValue if the
 * resource has none. */
static cudaError_t texel_of_resource(kiln__rt_texel *out,
                                     const CUDA_RESOURCE_DESC *in)
{
  CUDA_ARRAY3D_DESCRIPTOR d;
  CUarray array = in->res.array.hArray;

  switch (in->resType) {
  case CU_RESOURCE_TYPE_LINEAR:
    *out = (kiln__rt_texel){in->res.linear.format, in->res.linear.numChannels};
    return cudaSuccess;
  case CU_RESOURCE_TYPE_PITCH2D:
    *out =
        (kiln__rt_texel){in->res.pitch2D.format, in->res.pitch2D.numChannels};
    return cudaSuccess;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    KILN__RT_TRY(
        cuMipmappedArrayGetLevel(&array, in->res.mipmap.hMipmappedArray, 0));
    break;
  default:
    break;
  }
  KILN__RT_TRY(cuArray3DGetDescriptor_v2(&d, array));
  *out = (kiln__rt_texel){d.Format, d.NumChannels};
  return cudaSuccess;
}

/* ---- Textures ------------------------------------------------------------------ */

static CUDA_TEXTURE_DESC texture_to_driver(const cudaTextureDesc_12 *in)
{
  const cudaTextureDesc_11 *d = &in->known;
  CUDA_TEXTURE_DESC out = {.filterMode = d->filterMode,
                           .maxAnisotropy = d->maxAnisotropy,
                           .mipmapFilterMode = d->mipmapFilterMode,
                           .mipmapLevelBias = d->mipmapLevelBias,
                           .minMipmapLevelClamp = d->minMipmapLevelClamp,
                           .maxMipmapLevelClamp = d->maxMipmapLevelClamp};

  memcpy(out.addressMode, d->addressMode, sizeof out.addressMode);
  memcpy(out.borderColor, d->borderColor, sizeof out.borderColor);
  if (d->readMode == cudaReadModeElementType)
    out.flags |= CU_TRSF_READ_AS_INTEGER;
  if (d->normalizedCoords != 0)
    out.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (d->sRGB != 0)
    out.flags |= CU_TRSF_SRGB;
  if (d->disableTrilinearOptimization != 0)
    out.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (in->seamlessCubemap != 0)
    out.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  return out;
}

static cudaTextureDesc_12 texture_to_runtime(const CUDA_TEXTURE_DESC *d)
{
  cudaTextureDesc_12 out = {
      .known = {.filterMode = d->filterMode,
                .maxAnisotropy = d->maxAnisotropy,
                .mipmapFilterMode = d->mipmapFilterMode,
                .mipmapLevelBias = d->mipmapLevelBias,
                .minMipmapLevelClamp = d->minMipmapLevelClamp,
                .maxMipmapLevelClamp = d->maxMipmapLevelClamp}};

  memcpy(out.known.addressMode, d->addressMode, sizeof d->addressMode);
  memcpy(out.known.borderColor, d->borderColor, sizeof d->borderColor);
  out.known.readMode = (d->flags & CU_TRSF_READ_AS_INTEGER) != 0
                           ? cudaReadModeElementType
                           : cudaReadModeNormalizedFloat;
  out.known.normalizedCoords = (d->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  out.known.sRGB = (d->flags & CU_TRSF_SRGB) != 0;
  out.known.disableTrilinearOptimization =
      (d->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  out.seamlessCubemap = (d->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  return out;
}

/* Checks that the read and filter modes suit the texels: 32-bit texels cannot be
 * read as fractions, and integers cannot be interpolated. */
static cudaError_t check_modes(const CUDA_RESOURCE_DESC *resource,
                               const cudaTextureDesc_11 *d)
{
  cudaChannelFormatDesc c;
  kiln__rt_texel texel;
  bool integer;

  KILN__RT_TRY(texel_of_resource(&texel, resource));
  c = kiln__rt_channels_of(texel);
  integer = c.f == cudaChannelFormatKindSigned ||
            c.f == cudaChannelFormatKindUnsigned;
  if (c.x == 32 && d->readMode == cudaReadModeNormalizedFloat)
    return cudaErrorInvalidNormSetting;
  if (integer && d->readMode == cudaReadModeElementType &&
      d->filterMode == CU_TR_FILTER_MODE_LINEAR)
    return cudaErrorInvalidFilterSetting;
  return cudaSuccess;
}

cudaError_t kiln__rt_createTextureObject(cudaTextureObject_t *texture,
                                         const cudaResourceDesc_11 *resource,
                                         const cudaTextureDesc_12 *desc,
                                         const cudaResourceViewDesc_11 *view)
{
  CUDA_RESOURCE_VIEW_DESC v = {0};
  CUDA_RESOURCE_DESC r;
  CUDA_TEXTURE_DESC t;

  KILN__RT_TRY(kiln__rt_context());
  if (texture == NULL || resource == NULL)
    return cudaErrorInvalidValue;
  if (desc == NULL)
    return cudaErrorInvalidResourceHandle; /* as NVIDIA's library answers */
  KILN__RT_TRY(resource_to_driver(&r, resource));
  KILN__RT_TRY(check_modes(&r, &desc->known));
  t = texture_to_driver(desc);
  if (view != NULL)
    memcpy(&v, view, sizeof *view);
  return cuTexObjectCreate(texture, &r, &t, view != NULL ? &v : NULL);
}

cudaError_t kiln__rt_createTextureObject11(cudaTextureObject_t *texture,
                                           const cudaResourceDesc_11 *resource,
                                           const cudaTextureDesc_11 *desc,
                                           const cudaResourceViewDesc_11 *view)
{
  cudaTextureDesc_12 d = {.seamlessCubemap = 0};

  if (desc != NULL)
    d.known = *desc;
  return kiln__rt_createTextureObject(texture, resource,
                                      desc != NULL ? &d : NULL, view);
}

cudaError_t kiln__rt_createTextureObject13(cudaTextureObject_t *texture,
                                           const cudaResourceDesc_13 *resource,
                                           const cudaTextureDesc_12 *desc,
                                           const cudaResourceViewDesc_13 *view)
{
  return kiln__rt_createTextureObject(
      texture, resource != NULL ? &resource->known : NULL, desc,
      view != NULL ? &view->known : NULL);
}

cudaError_t kiln__rt_destroyTextureObject(cudaTextureObject_t texture)
{
  KILN__RT_TRY(kiln__rt_context());
  return texture == 0 ? cudaSuccess : cuTexObjectDestroy(texture);
}

/* ---- Descriptors of textures ----------------------------------------------------- */

cudaError_t kiln__rt_getTextureObjectResourceDesc(cudaResourceDesc_11 *desc,
                                                  cudaTextureObject_t texture)
{
  CUDA_RESOURCE_DESC d;

  KILN__RT_TRY(kiln__rt_context());
  if (desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuTexObjectGetResourceDesc(&d, texture));
  resource_to_runtime(desc, &d);
  return cudaSuccess;
}

cudaError_t kiln__rt_getTextureObjectResourceDesc13(cudaResourceDesc_13 *desc,
                                                    cudaTextureObject_t texture)
{
  if (desc != NULL)
    *desc = (cudaResourceDesc_13){.flags = 0};
  return kiln__rt_getTextureObjectResourceDesc(
      desc != NULL ? &desc->known : NULL, texture);
}

cudaError_t kiln__rt_getTextureObjectTextureDesc(cudaTextureDesc_12 *desc,
                                                 cudaTextureObject_t texture)
{
  CUDA_TEXTURE_DESC d;

  KILN__RT_TRY(kiln__rt_context());
  if (desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuTexObjectGetTextureDesc(&d, texture));
  *desc = texture_to_runtime(&d);
  return cudaSuccess;
}

cudaError_t kiln__rt_getTextureObjectTextureDesc11(cudaTextureDesc_11 *desc,
                                                   cudaTextureObject_t texture)
{
  cudaTextureDesc_12 d;

  if (desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_getTextureObjectTextureDesc(&d, texture));
  *desc = d.known;
  return cudaSuccess;
}

cudaError_t
kiln__rt_getTextureObjectResourceViewDesc(cudaResourceViewDesc_11 *desc,
                                          cudaTextureObject_t texture)
{
  CUDA_RESOURCE_VIEW_DESC d;

  KILN__RT_TRY(kiln__rt_context());
  if (desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuTexObjectGetResourceViewDesc(&d, texture));
  memcpy(desc, &d, sizeof *desc);
  return cudaSuccess;
}

cudaError_t
kiln__rt_getTextureObjectResourceViewDesc13(cudaResourceViewDesc_13 *desc,
                                            cudaTextureObject_t texture)
{
  if (desc != NULL)
    *desc = (cudaResourceViewDesc_13){.reserved = {0}};
  return kiln__rt_getTextureObjectResourceViewDesc(
      desc != NULL ? &desc->known : NULL, texture);
}

/* ---- Surfaces -------------------------------------------------------------------- */

cudaError_t kiln__rt_createSurfaceObject(cudaSurfaceObject_t *surface,
                                         const cudaResourceDesc_11 *resource)
{
  CUDA_RESOURCE_DESC r;

  KILN__RT_TRY(kiln__rt_context());
  if (surface == NULL || resource == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(resource_to_driver(&r, resource));
  if (resource->resType != cudaResourceTypeArray)
    return cudaErrorInvalidValue;
  return cuSurfObjectCreate(surface, &r);
}

cudaError_t kiln__rt_destroySurfaceObject(cudaSurfaceObject_t surface)
{
  KILN__RT_TRY(kiln__rt_context());
  return surface == 0 ? cudaSuccess : cuSurfObjectDestroy(surface);
}

cudaError_t kiln__rt_getSurfaceObjectResourceDesc(cudaResourceDesc_11 *desc,
                                                  cudaSurfaceObject_t surface)
{
  CUDA_RESOURCE_DESC d;

  KILN__RT_TRY(kiln__rt_context());
  if (desc == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuSurfObjectGetResourceDesc(&d, surface));
  resource_to_runtime(desc, &d);
  return cudaSuccess;
}

cudaError_t kiln__rt_getSurfaceObjectResourceDesc13(cudaResourceDesc_13 *desc,
                                                    cudaSurfaceObject_t surface)
{
  if (desc != NULL)
    *desc = (cudaResourceDesc_13){.flags = 0};
  return kiln__rt_getSurfaceObjectResourceDesc(
      desc != NULL ? &desc->known : NULL, surface);
}
