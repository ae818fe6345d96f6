/* stage.cuh -- copies from global to shared memory. From compute capability 8.0 on,
 * cp.async copies without registers. Older devices use plain loads and stores. */
#ifndef KILN_STAGE_CUH
#define KILN_STAGE_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

/* Starts a copy of 16 bytes. Both addresses are multiples of 16. The calling
 * thread sees the data after stage_wait(). Other threads see the data after a
 * further barrier. */
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
