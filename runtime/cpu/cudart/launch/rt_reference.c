/* rt_reference.c -- texture and surface references of CUDA 11.
 *
 * A reference is a variable of a fat binary with a twin in the host program, which has
 * its settings: address modes, filter, channels. Binding copies the settings to the
 * driver's reference of the same name in the current context. The host program may
 * change the settings between two calls, so each binding reads them again. */
#include "../array/rt_channel.h"
#include "rt_registry.h"

void kiln__rt_registerTexture(void **image, const textureReference *host,
                              const void **device, const char *name, int dim,
                              int normalized, int external)
{
  (void)device, (void)dim, (void)external;
  kiln__rt_register(image, (kiln__rt_symbol){.host = host,
                                             .name = name,
                                             .normalized = normalized != 0,
                                             .kind = KILN__RT_TEXTURE});
}

void kiln__rt_registerSurface(void **image, const void *host,
                              const void **device, const char *name, int dim,
                              int external)
{
  (void)device, (void)dim, (void)external;
  kiln__rt_register(
      image,
      (kiln__rt_symbol){.host = host, .name = name, .kind = KILN__RT_SURFACE});
}

/* Finds the driver's reference in the current context. `normalized` is true if kernels
 * read integers as fractions. */
static cudaError_t texture_of(CUtexref *out, bool *normalized,
                              const textureReference *host)
{
  kiln__rt_symbol symbol;
  CUmodule module;

  KILN__RT_TRY(kiln__rt_module_of(&module, &symbol, host, KILN__RT_TEXTURE));
  *normalized = symbol.normalized;
  return cuModuleGetTexRef(out, module, symbol.name);
}

/* Copies the settings of the host's reference. `desc` replaces its channels if it is
 * not NULL. */
static cudaError_t configure(CUtexref *out, kiln__rt_texel *texel,
                             const textureReference *host,
                             const cudaChannelFormatDesc *desc)
{
  bool normalized;
  unsigned flags;

  if (host == NULL)
    return cudaErrorInvalidTexture;
  KILN__RT_TRY(texture_of(out, &normalized, host));
  KILN__RT_TRY(
      kiln__rt_texel_of(texel, desc == NULL ? &host->channelDesc : desc));
  flags = (normalized ? 0 : CU_TRSF_READ_AS_INTEGER) |
          (host->normalized != 0 ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
          (host->sRGB != 0 ? CU_TRSF_SRGB : 0);
  KILN__RT_TRY(cuTexRefSetFormat(*out, texel->format, (int)texel->channels));
  KILN__RT_TRY(cuTexRefSetFlags(*out, flags));
  KILN__RT_TRY(cuTexRefSetFilterMode(*out, host->filterMode));
  for (int i = 0; i < 3; i++)
    KILN__RT_TRY(cuTexRefSetAddressMode(*out, i, host->addressMode[i]));
  return cudaSuccess;
}

static cudaError_t configure_levels(CUtexref r, const textureReference *host)
{
  KILN__RT_TRY(cuTexRefSetMipmapFilterMode(r, host->mipmapFilterMode));
  KILN__RT_TRY(cuTexRefSetMipmapLevelBias(r, host->mipmapLevelBias));
  KILN__RT_TRY(cuTexRefSetMipmapLevelClamp(r, host->minMipmapLevelClamp,
                                           host->maxMipmapLevelClamp));
  return cuTexRefSetMaxAnisotropy(r, host->maxAnisotropy);
}

/* Without `offset`, the address must be aligned as a texture needs it. */
cudaError_t kiln__rt_bindTexture(size_t *offset, const textureReference *host,
                                 const void *address,
                                 const cudaChannelFormatDesc *desc, size_t size)
{
  kiln__rt_texel texel;
  CUtexref r;

  KILN__RT_TRY(configure(&r, &texel, host, desc));
  return cuTexRefSetAddress_v2(offset, r, (CUdeviceptr)(uintptr_t)address,
                               size);
}

cudaError_t kiln__rt_bindTexture2D(size_t *offset, const textureReference *host,
                                   const void *address,
                                   const cudaChannelFormatDesc *desc,
                                   size_t width, size_t height, size_t pitch)
{
  CUDA_ARRAY_DESCRIPTOR shape = {.Width = width, .Height = height};
  kiln__rt_texel texel;
  CUtexref r;

  KILN__RT_TRY(configure(&r, &texel, host, desc));
  shape.Format = texel.format;
  shape.NumChannels = texel.channels;
  if (offset != NULL)
    *offset = 0;
  return cuTexRefSetAddress2D_v3(r, &shape, (CUdeviceptr)(uintptr_t)address,
                                 pitch);
}

cudaError_t kiln__rt_bindTextureToArray(const textureReference *host,
                                        cudaArray_t array,
                                        const cudaChannelFormatDesc *desc)
{
  kiln__rt_texel texel;
  CUtexref r;

  KILN__RT_TRY(configure(&r, &texel, host, desc));
  return cuTexRefSetArray(r, array, CU_TRSA_OVERRIDE_FORMAT);
}

cudaError_t
kiln__rt_bindTextureToMipmappedArray(const textureReference *host,
                                     cudaMipmappedArray_t mipmap,
                                     const cudaChannelFormatDesc *desc)
{
  kiln__rt_texel texel;
  CUtexref r;

  KILN__RT_TRY(configure(&r, &texel, host, desc));
  KILN__RT_TRY(configure_levels(r, host));
  return cuTexRefSetMipmappedArray(r, mipmap, CU_TRSA_OVERRIDE_FORMAT);
}

/* The driver cannot unbind; the next binding replaces the present one. */
cudaError_t kiln__rt_unbindTexture(const textureReference *host)
{
  bool normalized;
  CUtexref r;

  if (host == NULL)
    return cudaErrorInvalidTexture;
  return texture_of(&r, &normalized, host);
}

/* Bindings have no offset here: cudaBindTexture() returns it. */
cudaError_t kiln__rt_getTextureAlignmentOffset(size_t *offset,
                                               const textureReference *host)
{
  if (offset == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_unbindTexture(host));
  *offset = 0;
  return cudaSuccess;
}

cudaError_t kiln__rt_getTextureReference(const textureReference **reference,
                                         const void *host)
{
  if (reference == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_unbindTexture(host));
  *reference = host;
  return cudaSuccess;
}

/* ---- Surfaces -------------------------------------------------------------- */

static cudaError_t surface_of(CUsurfref *out, const void *host)
{
  kiln__rt_symbol symbol;
  CUmodule module;

  KILN__RT_TRY(kiln__rt_module_of(&module, &symbol, host, KILN__RT_SURFACE));
  return cuModuleGetSurfRef(out, module, symbol.name);
}

cudaError_t kiln__rt_bindSurfaceToArray(const void *host, cudaArray_t array,
                                        const cudaChannelFormatDesc *desc)
{
  CUsurfref r;

  (void)desc; /* the array has a format of its own */
  KILN__RT_TRY(surface_of(&r, host));
  return cuSurfRefSetArray(r, array, 0);
}

cudaError_t kiln__rt_getSurfaceReference(const void **reference,
                                         const void *host)
{
  CUsurfref r;

  if (reference == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(surface_of(&r, host));
  *reference = host;
  return cudaSuccess;
}
