/* stage.cuh -- copies from global to shared memory. From compute capability 8.0 on,
 * cp.async copies without registers. Older devices use plain loads and stores.
 *
 * Copies form groups: stage_commit() closes the group of the calling thread's copies
 * since the last commit. stage_wait_but<n>() waits until at most the n latest groups are
 * still under way, so that a ring of buffers can be filled ahead of its use. */
#ifndef KILN_STAGE_CUH
#define KILN_STAGE_CUH

#include <kiln/types.cuh>

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

/* Starts a copy of 1 to 16 bytes, a power of two; both addresses are multiples of
 * it. Copies of less than 4 bytes are complete when the function returns. */
template <unsigned bytes>
__device__ __forceinline__ void stage_bytes(void *shared, const void *global)
{
  typedef typename word<bytes>::type bits;

#if KILN_ARCH >= 80
  if (bytes >= 4 && bytes < 16) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(shared))),
                 "l"(__cvta_generic_to_global(global)),
                 "n"(bytes >= 4 && bytes < 16 ? bytes : 4)
                 : "memory");
    return;
  }
#endif
  if (bytes == 16)
    stage_async(shared, global);
  else
    *static_cast<bits *>(shared) = *static_cast<const bits *>(global);
}

__device__ __forceinline__ void stage_commit()
{
#if KILN_ARCH >= 80
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <unsigned n> __device__ __forceinline__ void stage_wait_but()
{
#if KILN_ARCH >= 80
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
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
