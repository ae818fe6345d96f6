/* overlap.cuh -- programmatic dependent launch: a launch that starts while the preceding
 * launch of the stream still runs.
 *
 *   KILN_PDL  1 lets launches overlap (compute capability 9.0) */
#ifndef KILN_OVERLAP_CUH
#define KILN_OVERLAP_CUH

#include <kiln/prelude.cuh>

#ifndef KILN_PDL
#define KILN_PDL (KILN_ARCH >= 90)
#endif

namespace kiln
{

/* Waits for earlier launches of the stream. Before this call, the kernel must
 * not read memory that those launches write, and must not write memory that
 * those launches read. */
__device__ __forceinline__ void launch_wait()
{
#if KILN_PDL
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next launch start as soon as all blocks have called launch_next(). */
__device__ __forceinline__ void launch_next()
{
#if KILN_PDL
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace kiln

#endif
