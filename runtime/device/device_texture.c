/* device_texture.c -- CUDA arrays, texture objects and surface objects
 * (kiln/texture.h). */
#include "device.h"

#include <kiln/texture.h>

struct kiln_cuda_array {
  kiln_device *device;
  CUarray handle;
  kiln_cuda_array_desc desc;
};

static const struct {
  CUarray_format format;
  size_t bytes;
} texels[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1},  {CU_AD_FORMAT_UNSIGNED_INT16, 2},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4}, {CU_AD_FORMAT_SIGNED_INT8, 1},
    {CU_AD_FORMAT_SIGNED_INT16, 2},   {CU_AD_FORMAT_SIGNED_INT32, 4},
    {CU_AD_FORMAT_HALF, 2},           {CU_AD_FORMAT_FLOAT, 4}};

enum { N_TEXELS = sizeof texels / sizeof texels[0] };

size_t kiln_texel_bytes(kiln_texel texel)
{
  return (unsigned)texel < N_TEXELS ? texels[texel].bytes : 0;
}

/* ---- Entering ------------------------------------------------------------ */

/* Enters the device's context. Fails while a capture occupies the default
 * stream. */
static kiln_status enter(kiln_device *device, kiln__scope *scope,
                         const char *call)
{
  kiln_status st = kiln__enter(device, scope);

  if (st != KILN_OK)
    return st;
  st = kiln__refuse_capture(device, NULL, call);
  if (st != KILN_OK)
    kiln__leave(scope);
  return st;
}

/* ---- Arrays -------------------------------------------------------------- */

static kiln_status check_desc(const kiln_cuda_array_desc *d)
{
  if ((unsigned)d->texel >= N_TEXELS ||
      (d->channels != 1 && d->channels != 2 && d->channels != 4))
    return kiln__fail(KILN_EINVAL, "texels have 1, 2 or 4 channels",
                      "there are no texels with %d channels of type %d",
                      d->channels, (int)d->texel);
  if (d->width == 0 || (d->depth > 0 && (d->height == 0 || d->layers > 0)))
    return kiln__fail(
        KILN_EINVAL,
        "give the dimensions in order: width, height, depth; "
        "layers of one or two dimensions",
        "there are no arrays of %u x %u x %u texels with %u layers", d->width,
        d->height, d->depth, d->layers);
  return KILN_OK;
}

/* Returns the number of planes or layers to copy if the whole array is
 * copied. */
static size_t planes(const kiln_cuda_array_desc *d)
{
  if (d->layers > 0)
    return d->layers;
  return d->depth > 0 ? d->depth : 1;
}

static size_t rows(const kiln_cuda_array_desc *d)
{
  return d->height > 0 ? d->height : 1;
}

static size_t row_bytes(const kiln_cuda_array_desc *d)
{
  return (size_t)d->width * (size_t)d->channels * kiln_texel_bytes(d->texel);
}

size_t kiln_cuda_array_bytes(const kiln_cuda_array *array)
{
  return array == NULL ? 0
                       : row_bytes(&array->desc) * rows(&array->desc) *
                             planes(&array->desc);
}

kiln_status kiln_cuda_array_create(kiln_cuda_array **out, kiln_device *device,
                                   const kiln_cuda_array_desc *desc)
{
  CUDA_ARRAY3D_DESCRIPTOR d = {0};
  kiln_status st;
  kiln_cuda_array *array;
  kiln__scope scope;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (device == NULL || desc == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "device or desc is NULL");
  st = check_desc(desc);
  if (st != KILN_OK)
    return st;
  if (device->driver->array3DCreate == NULL ||
      device->driver->arrayDestroy == NULL)
    return kiln__device_missing("cuArray3DCreate_v2");
  array = kiln__calloc(&device->rt->alloc, 1, sizeof *array);
  if (array == NULL)
    return kiln__fail_memory("an array");
  array->device = device;
  array->desc = *desc;
  d.Width = desc->width;
  d.Height = desc->height;
  d.Depth = desc->layers > 0 ? desc->layers : desc->depth;
  d.Format = texels[desc->texel].format;
  d.NumChannels = (unsigned)desc->channels;
  d.Flags = (desc->layers > 0 ? CUDA_ARRAY3D_LAYERED : 0u) |
            (desc->surface ? CUDA_ARRAY3D_SURFACE_LDST : 0u);
  st = enter(device, &scope, __func__);
  if (st == KILN_OK) {
    const CUresult rc = device->driver->array3DCreate(&array->handle, &d);

    kiln__leave(&scope);
    st = kiln__device_rc(device, rc, "cuArray3DCreate_v2");
  }
  if (st == KILN_OK)
    *out = array;
  else
    kiln__free(&device->rt->alloc, array);
  return st;
}

void kiln_cuda_array_free(kiln_cuda_array *array)
{
  kiln__scope scope;

  if (array == NULL)
    return;
  if (kiln__enter_to_free(array->device, &scope)) {
    (void)array->device->driver->arrayDestroy(array->handle);
    kiln__leave(&scope);
  }
  kiln__free(&array->device->rt->alloc, array);
}

/* Copies a whole CUDA array: from `src` to the array, or from the array to
 * `dst` if `src` is NULL. */
static kiln_status copy(kiln_cuda_array *array, const void *src, void *dst)
{
  const kiln_cuda_array_desc *d = &array->desc;
  kiln_device *device = array->device;
  CUDA_MEMCPY3D c = {
      .WidthInBytes = row_bytes(d), .Height = rows(d), .Depth = planes(d)};
  kiln__scope scope;
  kiln_status st;
  CUresult rc;

  if (device->driver->memcpy3D == NULL)
    return kiln__device_missing("cuMemcpy3D_v2");
  if (src != NULL) {
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = src;
    c.srcPitch = c.WidthInBytes;
    c.srcHeight = c.Height;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = array->handle;
  } else {
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = array->handle;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = dst;
    c.dstPitch = c.WidthInBytes;
    c.dstHeight = c.Height;
  }
  st = enter(device, &scope, __func__);
  if (st != KILN_OK)
    return st;
  rc = device->driver->memcpy3D(&c);
  kiln__leave(&scope);
  return kiln__device_rc(device, rc, "cuMemcpy3D_v2");
}

kiln_status kiln_cuda_array_write(kiln_cuda_array *array, const void *src)
{
  if (array == NULL || src == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "array or src is NULL");
  return copy(array, src, NULL);
}

kiln_status kiln_cuda_array_read(kiln_cuda_array *array, void *dst)
{
  if (array == NULL || dst == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "array or dst is NULL");
  return copy(array, NULL, dst);
}

/* ---- Textures ------------------------------------------------------------ */

/* Converts a texture description for the driver. `dims` is the number of
 * dimensions. The address mode of dimensions that do not exist is set to
 * "clamp". The reason is that on an H200, a linear fetch in one dimension
 * blends in the border colour if the mode of the second dimension is "border".
 */
static kiln_status describe(CUDA_TEXTURE_DESC *out,
                            const kiln_texture_desc *desc, kiln_texel texel,
                            int dims)
{
  const bool integer =
      desc->as_integer || texel == KILN_TEXEL_U32 || texel == KILN_TEXEL_S32;

  if (desc->filter == KILN_FILTER_LINEAR && integer)
    return kiln__fail(KILN_EINVAL,
                      "read 8- and 16-bit texels as floats, or use "
                      "KILN_FILTER_NEAREST",
                      "a linear filter cannot read integers");
  *out = (CUDA_TEXTURE_DESC){0};
  for (int i = 0; i < 3; i++) {
    if ((unsigned)desc->address[i] > KILN_ADDRESS_BORDER)
      return kiln__fail(KILN_EINVAL, NULL, "%d is not an address mode",
                        (int)desc->address[i]);
    out->addressMode[i] =
        i < dims ? (CUaddress_mode)desc->address[i] : CU_TR_ADDRESS_MODE_CLAMP;
  }
  for (int i = 0; i < 4; i++)
    out->borderColor[i] = desc->border[i];
  out->filterMode = desc->filter == KILN_FILTER_LINEAR
                        ? CU_TR_FILTER_MODE_LINEAR
                        : CU_TR_FILTER_MODE_POINT;
  out->flags = (desc->normalised ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
               (integer ? CU_TRSF_READ_AS_INTEGER : 0u);
  return KILN_OK;
}

/* Creates a texture object for a resource. */
static kiln_status make(uint64_t *out, kiln_device *device,
                        const CUDA_RESOURCE_DESC *resource, kiln_texel texel,
                        const kiln_texture_desc *desc, int dims)
{
  CUDA_TEXTURE_DESC d;
  CUtexObject handle = 0;
  kiln__scope scope;
  CUresult rc;
  kiln_status st = describe(&d, desc, texel, dims);

  if (st != KILN_OK)
    return st;
  if (device->driver->texObjectCreate == NULL)
    return kiln__device_missing("cuTexObjectCreate");
  st = enter(device, &scope, __func__);
  if (st != KILN_OK)
    return st;
  rc = device->driver->texObjectCreate(&handle, resource, &d, NULL);
  kiln__leave(&scope);
  st = kiln__device_rc(device, rc, "cuTexObjectCreate");
  *out = st == KILN_OK ? handle : 0;
  return st;
}

/* Returns the number of dimensions that have coordinates. Layers do not count
 * as a dimension. */
static int dimensions(const kiln_cuda_array_desc *desc)
{
  return desc->height == 0 ? 1 : desc->depth == 0 ? 2 : 3;
}

kiln_status kiln_texture_create(uint64_t *out, kiln_cuda_array *array,
                                const kiln_texture_desc *desc)
{
  CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = 0;
  if (array == NULL || desc == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "array or desc is NULL");
  resource.res.array.hArray = array->handle;
  return make(out, array->device, &resource, array->desc.texel, desc,
              dimensions(&array->desc));
}

kiln_status kiln_texture_of_memory(uint64_t *out, kiln_device *device,
                                   CUdeviceptr p, kiln_texel texel,
                                   int channels, size_t width, size_t height,
                                   size_t pitch, const kiln_texture_desc *desc)
{
  CUDA_RESOURCE_DESC r = {0};

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = 0;
  if (device == NULL || desc == NULL || p == 0 || width == 0 ||
      (unsigned)texel >= N_TEXELS ||
      (channels != 1 && channels != 2 && channels != 4))
    return kiln__fail(KILN_EINVAL, NULL,
                      "device, desc, memory or texel is not valid");
  if (height == 0) {
    r.resType = CU_RESOURCE_TYPE_LINEAR;
    r.res.linear.devPtr = p;
    r.res.linear.format = texels[texel].format;
    r.res.linear.numChannels = (unsigned)channels;
    r.res.linear.sizeInBytes = width * (size_t)channels * texels[texel].bytes;
  } else {
    r.resType = CU_RESOURCE_TYPE_PITCH2D;
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.format = texels[texel].format;
    r.res.pitch2D.numChannels = (unsigned)channels;
    r.res.pitch2D.width = width;
    r.res.pitch2D.height = height;
    r.res.pitch2D.pitchInBytes = pitch;
  }
  return make(out, device, &r, texel, desc, height == 0 ? 1 : 2);
}

kiln_status kiln_texture_free(kiln_device *device, uint64_t texture)
{
  kiln_status st;

  if (texture == 0)
    return KILN_OK;
  if (device == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the device is NULL");
  if (device->driver->texObjectDestroy == NULL)
    return kiln__device_missing("cuTexObjectDestroy");
  KILN__IN_SCOPE(st, device, texObjectDestroy(texture), "cuTexObjectDestroy");
  return st;
}

/* ---- Surfaces ------------------------------------------------------------ */

kiln_status kiln_surface_create(uint64_t *out, kiln_cuda_array *array)
{
  CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
  CUsurfObject handle = 0;
  kiln__scope scope;
  kiln_status st;
  CUresult rc;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = 0;
  if (array == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "array is NULL");
  if (!array->desc.surface)
    return kiln__fail(KILN_EINVAL, "set kiln_cuda_array_desc.surface",
                      "the array was created without surfaces");
  if (array->device->driver->surfObjectCreate == NULL)
    return kiln__device_missing("cuSurfObjectCreate");
  resource.res.array.hArray = array->handle;
  st = enter(array->device, &scope, __func__);
  if (st != KILN_OK)
    return st;
  rc = array->device->driver->surfObjectCreate(&handle, &resource);
  kiln__leave(&scope);
  st = kiln__device_rc(array->device, rc, "cuSurfObjectCreate");
  *out = st == KILN_OK ? handle : 0;
  return st;
}

kiln_status kiln_surface_free(kiln_device *device, uint64_t surface)
{
  kiln_status st;

  if (surface == 0)
    return KILN_OK;
  if (device == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the device is NULL");
  if (device->driver->surfObjectDestroy == NULL)
    return kiln__device_missing("cuSurfObjectDestroy");
  KILN__IN_SCOPE(st, device, surfObjectDestroy(surface), "cuSurfObjectDestroy");
  return st;
}
