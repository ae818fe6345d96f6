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

/* A chain of overlapping launches that an earlier launch may leave out. `skip`
 * points to a word that is not 0 if the chain is left out, followed by a word
 * that is 0 at first. `skip` is NULL if the chain always runs. The launch before
 * the chain must be one whose blocks call launch_next() after `skip` is written.
 * A chain that is left out would take long if each launch waited for the end of
 * the preceding one. Therefore only the first launch waits, and the last launch
 * waits for the word that the first one then sets. So the last launch ends after
 * everything before the chain. */
enum class link { first, inner, last };

/* Returns whether the calling launch has nothing to do. If not, it must call
 * launch_wait(). */
template <link which>
__device__ __forceinline__ bool chain_left_out(unsigned *skip)
{
  if (which != link::last)
    launch_next();
  if (!left_out(skip))
    return false;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (which == link::first) {
      launch_wait();
      atomicExch(skip + 1, 1u);
    } else if (which == link::last) {
      while (atomicAdd(skip + 1, 0u) == 0)
        ;
    }
  }
  return true;
}

} // namespace kiln

#endif
