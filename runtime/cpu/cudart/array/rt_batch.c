/* rt_batch.c -- copies, prefetches and discards of many ranges by one call. */
#include "rt_box.h"
#include "rt_channel.h"

/* ---- Contiguous ranges ---------------------------------------------------------- */

/* Arrays of pointers become arrays of device addresses, without a copy. */
_Static_assert(sizeof(CUdeviceptr) == sizeof(void *),
               "pointers have the size of device addresses");

static CUdeviceptr *addresses_of(const void *const *pointers)
{
  return (CUdeviceptr *)(uintptr_t)pointers;
}

cudaError_t kiln__rt_memcpyBatchAsync12(void **to, void **from, size_t *sizes,
                                        size_t n,
                                        cudaMemcpyAttributes *attributes,
                                        size_t *attribute_of,
                                        size_t n_attributes, size_t *failed,
                                        cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMemcpyBatchAsync(addresses_of((const void *const *)to),
                            addresses_of((const void *const *)from), sizes, n,
                            attributes, attribute_of, n_attributes, failed,
                            kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memcpyBatchAsync(void *const *to, const void *const *from,
                                      const size_t *sizes, size_t n,
                                      cudaMemcpyAttributes *attributes,
                                      size_t *attribute_of, size_t n_attributes,
                                      cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMemcpyBatchAsync(addresses_of((const void *const *)to),
                            addresses_of(from), (size_t *)(uintptr_t)sizes, n,
                            attributes, attribute_of, n_attributes, NULL,
                            kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memPrefetchBatchAsync(void **addresses, size_t *sizes,
                                           size_t n, cudaMemLocation *locations,
                                           size_t *location_of,
                                           size_t n_locations,
                                           unsigned long long flags,
                                           cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMemPrefetchBatchAsync(addresses_of((const void *const *)addresses),
                                 sizes, n, locations, location_of, n_locations,
                                 flags, kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memDiscardBatchAsync(void **addresses, size_t *sizes,
                                          size_t n, unsigned long long flags,
                                          cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMemDiscardBatchAsync(addresses_of((const void *const *)addresses),
                                sizes, n, flags, kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memDiscardAndPrefetchBatchAsync(
    void **addresses, size_t *sizes, size_t n, cudaMemLocation *locations,
    size_t *location_of, size_t n_locations, unsigned long long flags,
    cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMemDiscardAndPrefetchBatchAsync(
      addresses_of((const void *const *)addresses), sizes, n, locations,
      location_of, n_locations, flags, kiln__rt_stream(stream));
}

/* ---- Boxes ------------------------------------------------------------------------ */

enum { OPERAND_POINTER = 1, OPERAND_ARRAY = 2 };

/* Returns the bytes of an element, by which the operands are measured: those of the
 * array that takes part, else 1. */
static cudaError_t element_of(size_t *bytes, const cudaMemcpy3DBatchOp *op)
{
  const cudaMemcpy3DOperand *o =
      op->src.type == OPERAND_ARRAY ? &op->src : &op->dst;
  CUDA_ARRAY3D_DESCRIPTOR d;

  *bytes = 1;
  if (o->type != OPERAND_ARRAY)
    return cudaSuccess;
  KILN__RT_TRY(cuArray3DGetDescriptor_v2(&d, o->op.array.array));
  *bytes = kiln__rt_texel_bytes((kiln__rt_texel){d.Format, d.NumChannels});
  return *bytes == 0 ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t box_of_operands(cudaMemcpy3DParms *out,
                                   const cudaMemcpy3DBatchOp *op)
{
  const cudaExtent e = op->extent;
  const cudaMemcpy3DOperand *const operands[2] = {&op->src, &op->dst};
  size_t bytes;

  KILN__RT_TRY(element_of(&bytes, op));
  *out = (cudaMemcpy3DParms){.extent = e, .kind = cudaMemcpyDefault};
  for (int i = 0; i < 2; i++) {
    const cudaMemcpy3DOperand *o = operands[i];
    cudaPitchedPtr *p = i == 0 ? &out->srcPtr : &out->dstPtr;

    if (o->type == OPERAND_ARRAY) {
      *(i == 0 ? &out->srcArray : &out->dstArray) = o->op.array.array;
      *(i == 0 ? &out->srcPos : &out->dstPos) = o->op.array.offset;
    } else if (o->type == OPERAND_POINTER) {
      p->ptr = o->op.ptr.ptr;
      p->xsize = o->op.ptr.rowLength != 0 ? o->op.ptr.rowLength : e.width;
      p->ysize = o->op.ptr.layerHeight != 0 ? o->op.ptr.layerHeight : e.height;
      p->pitch = p->xsize * bytes;
    } else {
      return cudaErrorInvalidValue;
    }
  }
  return cudaSuccess;
}

cudaError_t kiln__rt_memcpy3DBatchAsync12(size_t n, cudaMemcpy3DBatchOp *list,
                                          size_t *failed,
                                          unsigned long long flags,
                                          cudaStream_t stream)
{
  cudaError_t rc = cudaSuccess;

  KILN__RT_TRY(kiln__rt_context());
  if (failed != NULL)
    *failed = SIZE_MAX;
  if (n == 0 || list == NULL || flags != 0 || stream == NULL)
    return cudaErrorInvalidValue;
  for (size_t i = 0; i < n && rc == cudaSuccess; i++) {
    cudaMemcpy3DParms params;
    CUDA_MEMCPY3D box;

    rc = box_of_operands(&params, &list[i]);
    if (rc == cudaSuccess)
      rc = kiln__rt_box_of(&box, &params);
    if (rc == cudaSuccess)
      rc = kiln__rt_box_copy_async(&box, stream);
    if (rc != cudaSuccess && failed != NULL)
      *failed = i;
  }
  return rc;
}

cudaError_t kiln__rt_memcpy3DBatchAsync(size_t n, cudaMemcpy3DBatchOp *list,
                                        unsigned long long flags,
                                        cudaStream_t stream)
{
  return kiln__rt_memcpy3DBatchAsync12(n, list, NULL, flags, stream);
}
