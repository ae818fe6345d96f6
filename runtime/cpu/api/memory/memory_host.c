/* memory_host.c -- implements pinned host memory. The device address of this
 * memory equals the host address. */
#include "../context/api_context.h"
#include "api_memory.h"

static CUresult allocate(void **p, size_t bytes, unsigned flags)
{
  CUcontext context;
  CUdeviceptr first;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(p != NULL && bytes != 0 && (flags & ~7u) == 0));
  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(kiln__cpu_block_add(
      &first,
      &(kiln__cpu_block_info){.kind = KILN__RANGE_HOST,
                              .size = bytes,
                              .device = context->device,
                              .context = context,
                              .flags = flags | CU_MEMHOSTALLOC_DEVICEMAP}));
  *p = (void *)(uintptr_t)first;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memHostAlloc(void **p, size_t bytes, unsigned int flags)
{
  return allocate(p, bytes, flags);
}

CUresult kiln__cpu_memFreeHost(void *p)
{
  const CUdeviceptr first = (CUdeviceptr)(uintptr_t)p;
  CUcontext context;
  kiln__cpu_block_info info;
  CUresult rc = kiln__cpu_current(&context);

  if (rc != CUDA_SUCCESS || p == NULL)
    return rc;
  CU_TRY(valid(kiln__cpu_block_at(first, &info) &&
               info.kind == KILN__RANGE_HOST && !info.registered));
  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(valid(kiln__cpu_block_claim(first, &info)));
  rc = kiln__cpu_wait_context(info.context);
  kiln__cpu_block_remove(first);
  return rc;
}

CUresult kiln__cpu_memHostRegister(void *p, size_t bytes, unsigned int flags)
{
  const unsigned known = CU_MEMHOSTREGISTER_PORTABLE |
                         CU_MEMHOSTREGISTER_DEVICEMAP |
                         CU_MEMHOSTREGISTER_READ_ONLY;
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(
      valid(p != NULL && bytes != 0 && (uintptr_t)p + bytes >= (uintptr_t)p &&
            (flags & ~(known | (unsigned)CU_MEMHOSTREGISTER_IOMEMORY)) == 0));
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  CU_TRY(kiln__cpu_current_unsafe(&context));
  return kiln__cpu_block_register(p, bytes, context,
                                  flags | CU_MEMHOSTREGISTER_DEVICEMAP);
}

CUresult kiln__cpu_memHostUnregister(void *p)
{
  const CUdeviceptr first = (CUdeviceptr)(uintptr_t)p;
  CUcontext context;
  kiln__cpu_block_info info;
  CUresult rc;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(p != NULL));
  if (!kiln__cpu_block_of(first, &info))
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  CU_TRY(valid(kiln__cpu_block_at(first, &info) && info.registered));
  CU_TRY(kiln__cpu_current_unsafe(&context));
  if (!kiln__cpu_block_claim(first, &info))
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  rc = kiln__cpu_wait_context(info.context);
  kiln__cpu_block_remove(first);
  return rc;
}

/* Finds the pinned allocation that contains `p`. `p` may point into the middle
 * of the allocation. */
static CUresult pinned(const void *p, kiln__cpu_block_info *info)
{
  CU_TRY(kiln__cpu_check_current());
  return valid(kiln__cpu_block_of((CUdeviceptr)(uintptr_t)p, info) &&
               info->kind == KILN__RANGE_HOST);
}

CUresult kiln__cpu_memHostGetDevicePointer(CUdeviceptr *address, void *p,
                                           unsigned int flags)
{
  kiln__cpu_block_info info;

  CU_TRY(pinned(p, &info));
  CU_TRY(valid(address != NULL && flags == 0));
  *address = (CUdeviceptr)(uintptr_t)p;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memHostGetFlags(unsigned int *flags, void *p)
{
  kiln__cpu_block_info info;

  CU_TRY(pinned(p, &info));
  return CU_STORE(flags, info.flags);
}
