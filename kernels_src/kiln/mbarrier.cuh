/* mbarrier.cuh -- barriers in shared memory that count arrivals and bytes.
 *
 * An mbarrier has a phase, a number of pending arrivals and a number of pending bytes.
 * Its phase completes when both are 0. A copy of the tensor memory accelerator (TMA)
 * subtracts the bytes that it has written. A thread waits for the phase by its parity:
 * the first phase has parity 0. Addresses are shared-memory addresses of this block.
 *
 * Source: PTX ISA, "Parallel Synchronization and Communication Instructions:
 * mbarrier". Requires compute capability 9.0. */
#ifndef KILN_MBARRIER_CUH
#define KILN_MBARRIER_CUH

namespace kiln
{

__device__ __forceinline__ unsigned shared_address(const void *p)
{
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void mbarrier_init(unsigned barrier,
                                              unsigned arrivals)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals)
               : "memory");
}

/* Makes the initialised barriers visible to the other blocks of the cluster and to the
 * TMA. One thread calls it before the block's first barrier. */
__device__ __forceinline__ void mbarrier_publish()
{
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Arrives once and adds `bytes` to the pending bytes of this phase. */
__device__ __forceinline__ void mbarrier_expect(unsigned barrier,
                                                unsigned bytes)
{
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(unsigned barrier)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}

/* Arrives at the barrier that block `rank` of the cluster has at the same address. */
__device__ __forceinline__ void mbarrier_arrive_at(unsigned barrier,
                                                   unsigned rank)
{
  asm volatile("{\n"
               ".reg .b32 there;\n"
               "mapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, "
               "[there];\n"
               "}" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

/* Waits until the phase with this parity has completed. */
__device__ __forceinline__ void mbarrier_wait(unsigned barrier, unsigned parity)
{
  unsigned done;

  do
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  while (!done);
}

/* Waits for all threads of the cluster. Every thread of the block calls it. */
__device__ __forceinline__ void cluster_sync()
{
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

__device__ __forceinline__ unsigned cluster_rank()
{
  unsigned rank;

  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

} // namespace kiln

#endif
