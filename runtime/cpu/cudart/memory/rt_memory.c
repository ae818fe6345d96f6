/* rt_memory.c -- allocates linear memory. */
#include "../cudart.h"

/* An allocation of no bytes succeeds and stores NULL. */
cudaError_t kiln__rt_malloc(void **out, size_t size)
{
  CUdeviceptr address = 0;
  cudaError_t rc = cudaSuccess;

  KILN__RT_TRY(kiln__rt_context());
  if (out == NULL)
    return cudaErrorInvalidValue;
  *out = NULL;
  if (size > 0)
    rc = cuMemAlloc_v2(&address, size);
  *out = (void *)(uintptr_t)address;
  return rc;
}

/* cudaFree(NULL) only makes sure that there is a context. Many programs use it for
 * this purpose. */
cudaError_t kiln__rt_free(void *address)
{
  KILN__RT_TRY(kiln__rt_context());
  return address == NULL ? cudaSuccess
                         : cuMemFree_v2((CUdeviceptr)(uintptr_t)address);
}
