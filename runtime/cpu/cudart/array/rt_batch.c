/* rt_batch.c -- copies, prefetches and discards of many ranges by one call. */
#include "../cudart.h"

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

_Static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP),
               "the runtime's copies have the layout of the driver's");

cudaError_t kiln__rt_memcpy3DBatchAsync12(size_t n, cudaMemcpy3DBatchOp *list,
                                          size_t *failed,
                                          unsigned long long flags,
                                          cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuMemcpy3DBatchAsync(n, (CUDA_MEMCPY3D_BATCH_OP *)(void *)list, failed,
                              flags, kiln__rt_stream(stream));
}

cudaError_t kiln__rt_memcpy3DBatchAsync(size_t n, cudaMemcpy3DBatchOp *list,
                                        unsigned long long flags,
                                        cudaStream_t stream)
{
  return kiln__rt_memcpy3DBatchAsync12(n, list, NULL, flags, stream);
}
