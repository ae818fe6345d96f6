/* stage.cuh -- copies from global to shared memory that need no registers, by cp.async
 * where the architecture has it (8.0), and by plain loads and stores elsewhere. */
#ifndef KILN_STAGE_CUH
#define KILN_STAGE_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

/* Copies 16 bytes, aligned on both sides. The calling thread sees them after
 * stage_wait(), and other threads after a further barrier. */
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
