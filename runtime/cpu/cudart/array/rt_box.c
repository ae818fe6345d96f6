/* rt_box.c -- copies in two and three dimensions, between pitched memory and arrays.
 *
 * All copies become one struct of the driver, CUDA_MEMCPY3D, in which x and the width
 * are in bytes. In the runtime's structs they are in elements of the array that takes
 * part, and in bytes if no array does. Positions in pointers are always in bytes. */
#include "rt_box.h"
#include "rt_channel.h"

#include <string.h>

/* ---- The two sides of a copy ---------------------------------------------------- */

/* Sets *bytes to the bytes of an element; without an array an element is a byte. */
static cudaError_t element_bytes(size_t *bytes, cudaArray_t array)
{
  CUDA_ARRAY3D_DESCRIPTOR d;

  *bytes = 1;
  if (array == NULL)
    return cudaSuccess;
  KILN__RT_TRY(cuArray3DGetDescriptor_v2(&d, array));
  *bytes = kiln__rt_texel_bytes((kiln__rt_texel){d.Format, d.NumChannels});
  return *bytes == 0 ? cudaErrorInvalidChannelDescriptor : cudaSuccess;
}

/* Stores the type of memory of a pointer on each side of a copy. */
static cudaError_t sides(cudaMemcpyKind kind, CUmemorytype *from,
                         CUmemorytype *to)
{
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  *from = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED
          : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
              ? CU_MEMORYTYPE_HOST
              : CU_MEMORYTYPE_DEVICE;
  *to = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED
        : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost
            ? CU_MEMORYTYPE_HOST
            : CU_MEMORYTYPE_DEVICE;
  return cudaSuccess;
}

static void from_pointer(CUDA_MEMCPY3D *box, CUmemorytype type,
                         const void *address, size_t pitch, size_t height)
{
  box->srcMemoryType = type;
  box->srcHost = address;
  box->srcDevice = (CUdeviceptr)(uintptr_t)address;
  box->srcPitch = pitch;
  box->srcHeight = height;
}

static void to_pointer(CUDA_MEMCPY3D *box, CUmemorytype type, void *address,
                       size_t pitch, size_t height)
{
  box->dstMemoryType = type;
  box->dstHost = address;
  box->dstDevice = (CUdeviceptr)(uintptr_t)address;
  box->dstPitch = pitch;
  box->dstHeight = height;
}

static void from_array(CUDA_MEMCPY3D *box, cudaArray_t array)
{
  box->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box->srcArray = array;
}

static void to_array(CUDA_MEMCPY3D *box, cudaArray_t array)
{
  box->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box->dstArray = array;
}

/* ---- Conversion of the runtime's struct -------------------------------------------- */

cudaError_t kiln__rt_box_of(CUDA_MEMCPY3D *out, const cudaMemcpy3DParms *in)
{
  CUmemorytype from, to;
  size_t from_bytes, to_bytes;

  if ((in->srcArray != NULL) == (in->srcPtr.ptr != NULL) ||
      (in->dstArray != NULL) == (in->dstPtr.ptr != NULL))
    return cudaErrorInvalidValue;
  KILN__RT_TRY(sides(in->kind, &from, &to));
  KILN__RT_TRY(element_bytes(&from_bytes, in->srcArray));
  KILN__RT_TRY(element_bytes(&to_bytes, in->dstArray));
  if (in->srcArray != NULL && in->dstArray != NULL && from_bytes != to_bytes)
    return cudaErrorInvalidValue;
  *out = (CUDA_MEMCPY3D){.srcXInBytes = in->srcPos.x * from_bytes,
                         .srcY = in->srcPos.y,
                         .srcZ = in->srcPos.z,
                         .dstXInBytes = in->dstPos.x * to_bytes,
                         .dstY = in->dstPos.y,
                         .dstZ = in->dstPos.z,
                         .WidthInBytes =
                             in->extent.width *
                             (in->srcArray != NULL ? from_bytes : to_bytes),
                         .Height = in->extent.height,
                         .Depth = in->extent.depth};
  if (in->srcArray != NULL)
    from_array(out, in->srcArray);
  else
    from_pointer(out, from, in->srcPtr.ptr, in->srcPtr.pitch, in->srcPtr.ysize);
  if (in->dstArray != NULL)
    to_array(out, in->dstArray);
  else
    to_pointer(out, to, in->dstPtr.ptr, in->dstPtr.pitch, in->dstPtr.ysize);
  return cudaSuccess;
}

static bool is_host(CUmemorytype type)
{
  return type == CU_MEMORYTYPE_HOST;
}

static cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to)
{
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
    return cudaMemcpyDefault;
  if (is_host(from))
    return is_host(to) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return is_host(to) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

void kiln__rt_box_params(cudaMemcpy3DParms *out, const CUDA_MEMCPY3D *in)
{
  size_t from_bytes = 1, to_bytes = 1;
  void *source = is_host(in->srcMemoryType) ? (void *)(uintptr_t)in->srcHost
                                            : (void *)(uintptr_t)in->srcDevice;
  void *target = is_host(in->dstMemoryType) ? in->dstHost
                                            : (void *)(uintptr_t)in->dstDevice;

  *out = (cudaMemcpy3DParms){.kind =
                                 kind_of(in->srcMemoryType, in->dstMemoryType)};
  if (in->srcMemoryType == CU_MEMORYTYPE_ARRAY &&
      element_bytes(&from_bytes, in->srcArray) == cudaSuccess)
    out->srcArray = in->srcArray;
  else
    out->srcPtr =
        (cudaPitchedPtr){source, in->srcPitch, in->WidthInBytes, in->srcHeight};
  if (in->dstMemoryType == CU_MEMORYTYPE_ARRAY &&
      element_bytes(&to_bytes, in->dstArray) == cudaSuccess)
    out->dstArray = in->dstArray;
  else
    out->dstPtr =
        (cudaPitchedPtr){target, in->dstPitch, in->WidthInBytes, in->dstHeight};
  out->srcPos = (cudaPos){in->srcXInBytes / from_bytes, in->srcY, in->srcZ};
  out->dstPos = (cudaPos){in->dstXInBytes / to_bytes, in->dstY, in->dstZ};
  out->extent = (cudaExtent){
      in->WidthInBytes / (out->srcArray != NULL ? from_bytes : to_bytes),
      in->Height, in->Depth};
}

cudaError_t kiln__rt_box_of_bytes(CUDA_MEMCPY3D *out, void *to,
                                  const void *from, size_t size,
                                  cudaMemcpyKind kind)
{
  CUmemorytype source, target;

  KILN__RT_TRY(sides(kind, &source, &target));
  *out = (CUDA_MEMCPY3D){.WidthInBytes = size, .Height = 1, .Depth = 1};
  from_pointer(out, source, from, size, 1);
  to_pointer(out, target, to, size, 1);
  return cudaSuccess;
}

/* ---- Issuing copies ---------------------------------------------------------------- */

static bool is_empty(const CUDA_MEMCPY3D *box)
{
  return box->WidthInBytes == 0 || box->Height == 0 || box->Depth == 0;
}

cudaError_t kiln__rt_box_copy(const CUDA_MEMCPY3D *box)
{
  if (is_empty(box))
    return cudaSuccess;
  return kiln__rt_self()->per_thread ? cuMemcpy3D_v2_ptds(box)
                                     : cuMemcpy3D_v2(box);
}

cudaError_t kiln__rt_box_copy_async(const CUDA_MEMCPY3D *box,
                                    cudaStream_t stream)
{
  return is_empty(box) ? cudaSuccess
                       : cuMemcpy3DAsync_v2(box, kiln__rt_stream(stream));
}

/* Defines a copy function and its asynchronous variant. `make` stores the copy in
 * `box`, from the parameters that the parentheses list. */
#define COPIES(name, make, ...)                                                \
  cudaError_t kiln__rt_##name(__VA_ARGS__)                                     \
  {                                                                            \
    CUDA_MEMCPY3D box;                                                         \
                                                                               \
    KILN__RT_TRY(kiln__rt_context());                                          \
    KILN__RT_TRY(make);                                                        \
    return kiln__rt_box_copy(&box);                                            \
  }                                                                            \
                                                                               \
  cudaError_t kiln__rt_##name##Async(__VA_ARGS__, cudaStream_t stream)         \
  {                                                                            \
    CUDA_MEMCPY3D box;                                                         \
                                                                               \
    KILN__RT_TRY(kiln__rt_context());                                          \
    KILN__RT_TRY(make);                                                        \
    return kiln__rt_box_copy_async(&box, stream);                              \
  }

static cudaError_t box_3d(CUDA_MEMCPY3D *box, const cudaMemcpy3DParms *copy)
{
  return copy == NULL ? cudaErrorInvalidValue : kiln__rt_box_of(box, copy);
}

static cudaError_t box_2d(CUDA_MEMCPY3D *box, void *to, size_t to_pitch,
                          const void *from, size_t from_pitch, size_t width,
                          size_t height, cudaMemcpyKind kind)
{
  CUmemorytype source, target;

  if (width > to_pitch || width > from_pitch)
    return cudaErrorInvalidPitchValue;
  KILN__RT_TRY(sides(kind, &source, &target));
  *box = (CUDA_MEMCPY3D){.WidthInBytes = width, .Height = height, .Depth = 1};
  from_pointer(box, source, from, from_pitch, height);
  to_pointer(box, target, to, to_pitch, height);
  return cudaSuccess;
}

static cudaError_t box_to_array(CUDA_MEMCPY3D *box, cudaArray_t to, size_t x,
                                size_t y, const void *from, size_t pitch,
                                size_t width, size_t height,
                                cudaMemcpyKind kind)
{
  CUmemorytype source, target;

  if (width > pitch)
    return cudaErrorInvalidPitchValue;
  KILN__RT_TRY(sides(kind, &source, &target));
  *box = (CUDA_MEMCPY3D){.dstXInBytes = x,
                         .dstY = y,
                         .WidthInBytes = width,
                         .Height = height,
                         .Depth = 1};
  from_pointer(box, source, from, pitch, height);
  to_array(box, to);
  return cudaSuccess;
}

static cudaError_t box_from_array(CUDA_MEMCPY3D *box, void *to, size_t pitch,
                                  cudaArray_t from, size_t x, size_t y,
                                  size_t width, size_t height,
                                  cudaMemcpyKind kind)
{
  CUmemorytype source, target;

  if (width > pitch)
    return cudaErrorInvalidPitchValue;
  KILN__RT_TRY(sides(kind, &source, &target));
  *box = (CUDA_MEMCPY3D){.srcXInBytes = x,
                         .srcY = y,
                         .WidthInBytes = width,
                         .Height = height,
                         .Depth = 1};
  from_array(box, from);
  to_pointer(box, target, to, pitch, height);
  return cudaSuccess;
}

COPIES(memcpy3D, box_3d(&box, copy), const cudaMemcpy3DParms *copy)
COPIES(memcpy2D,
       box_2d(&box, to, to_pitch, from, from_pitch, width, height, kind),
       void *to, size_t to_pitch, const void *from, size_t from_pitch,
       size_t width, size_t height, cudaMemcpyKind kind)
COPIES(memcpy2DToArray,
       box_to_array(&box, to, x, y, from, pitch, width, height, kind),
       cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
       size_t width, size_t height, cudaMemcpyKind kind)
COPIES(memcpy2DFromArray,
       box_from_array(&box, to, pitch, from, x, y, width, height, kind),
       void *to, size_t pitch, cudaArray_t from, size_t x, size_t y,
       size_t width, size_t height, cudaMemcpyKind kind)

cudaError_t kiln__rt_memcpy2DArrayToArray(cudaArray_t to, size_t to_x,
                                          size_t to_y, cudaArray_t from,
                                          size_t from_x, size_t from_y,
                                          size_t width, size_t height,
                                          cudaMemcpyKind kind)
{
  CUDA_MEMCPY3D box = {.srcXInBytes = from_x,
                       .srcY = from_y,
                       .dstXInBytes = to_x,
                       .dstY = to_y,
                       .WidthInBytes = width,
                       .Height = height,
                       .Depth = 1};

  KILN__RT_TRY(kiln__rt_context());
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  from_array(&box, from);
  to_array(&box, to);
  return kiln__rt_box_copy(&box);
}

/* ---- Copies between devices ---------------------------------------------------------- */

_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D),
               "peer_box() copies one struct into the other");

static cudaError_t peer_box(CUDA_MEMCPY3D_PEER *out,
                            const cudaMemcpy3DPeerParms *in)
{
  CUDA_MEMCPY3D box;

  KILN__RT_TRY(kiln__rt_context());
  if (in == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_box_of(
      &box, &(cudaMemcpy3DParms){.srcArray = in->srcArray,
                                 .srcPos = in->srcPos,
                                 .srcPtr = in->srcPtr,
                                 .dstArray = in->dstArray,
                                 .dstPos = in->dstPos,
                                 .dstPtr = in->dstPtr,
                                 .extent = in->extent,
                                 .kind = cudaMemcpyDeviceToDevice}));
  /* The structs differ only in the members that CUDA_MEMCPY3D reserves. */
  memcpy(out, &box, sizeof *out);
  KILN__RT_TRY(kiln__rt_primary(&out->srcContext, in->srcDevice));
  return kiln__rt_primary(&out->dstContext, in->dstDevice);
}

cudaError_t kiln__rt_memcpy3DPeer(const cudaMemcpy3DPeerParms *copy)
{
  CUDA_MEMCPY3D_PEER box;

  KILN__RT_TRY(peer_box(&box, copy));
  return kiln__rt_self()->per_thread ? cuMemcpy3DPeer_ptds(&box)
                                     : cuMemcpy3DPeer(&box);
}

cudaError_t kiln__rt_memcpy3DPeerAsync(const cudaMemcpy3DPeerParms *copy,
                                       cudaStream_t stream)
{
  CUDA_MEMCPY3D_PEER box;

  KILN__RT_TRY(peer_box(&box, copy));
  return cuMemcpy3DPeerAsync(&box, kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memcpyPeerAsync(void *to, int to_device, const void *from,
                                     int from_device, size_t size,
                                     cudaStream_t stream)
{
  CUcontext target, source;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_primary(&target, to_device));
  KILN__RT_TRY(kiln__rt_primary(&source, from_device));
  if (size == 0)
    return cudaSuccess;
  return cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)to, target,
                           (CUdeviceptr)(uintptr_t)from, source, size,
                           kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memcpyPeer(void *to, int to_device, const void *from,
                                int from_device, size_t size)
{
  CUcontext target, source;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_primary(&target, to_device));
  KILN__RT_TRY(kiln__rt_primary(&source, from_device));
  if (size == 0)
    return cudaSuccess;
  return cuMemcpyPeer((CUdeviceptr)(uintptr_t)to, target,
                      (CUdeviceptr)(uintptr_t)from, source, size);
}
