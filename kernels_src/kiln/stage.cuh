/* stage.cuh -- copies to shared memory that no register waits for, where the
 * architecture has them (cp.async, 8.0); plain ones elsewhere. */
#ifndef KILN_STAGE_CUH
#define KILN_STAGE_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

/* 16 bytes, aligned on both sides. They are there after stage_wait() by the same
 * thread, and for others after a barrier behind that. */
__device__ __forceinline__ void stage_async(void *shared, const void *global)
{
#if KILN_ARCH >= 80
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(__cvta_generic_to_global(global))
               : "memory");
#else
  *static_cast<uint4 *>(shared) = *static_cast<const uint4 *>(global);
#endif
}

__device__ __forceinline__ void stage_wait()
{
#if KILN_ARCH >= 80
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

} // namespace kiln

#endif
