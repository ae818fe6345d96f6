/* tma.cuh -- copies of boxes of a tensor by the tensor memory accelerator (TMA).
 *
 * The host describes a tensor by a tensor map (cuTensorMapEncodeTiled): its address,
 * sizes, strides, and the box that one copy moves. A copy needs one thread. Elements of
 * the box outside of the tensor read as 0 and are not written. Here every tensor has
 * three dimensions; x is the position in the dimension whose elements are consecutive.
 *
 * Source: PTX ISA, "cp.async.bulk.tensor". Requires compute capability 9.0. */
#ifndef KILN_TMA_CUH
#define KILN_TMA_CUH

namespace kiln
{

/* A tensor map. Kernels take it as a const __grid_constant__ parameter. */
struct alignas(64) tensor_map {
  unsigned long long opaque[16];
};

/* Starts a copy of a box to shared memory. The barrier counts its bytes. */
__device__ __forceinline__ void tma_load(unsigned to, const tensor_map &from,
                                         unsigned barrier, int x, int y, int z)
{
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(&from), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/* Starts a copy of a box to the same address in each block of the cluster whose bit is
 * set in `blocks`. The barrier at the same address in that block counts its bytes. */
__device__ __forceinline__ void tma_load(unsigned to, const tensor_map &from,
                                         unsigned barrier, int x, int y, int z,
                                         unsigned blocks)
{
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global"
               ".mbarrier::complete_tx::bytes.multicast::cluster"
               " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
               "l"(&from), "r"(barrier), "r"(x), "r"(y), "r"(z),
               "h"(static_cast<unsigned short>(blocks))
               : "memory");
}

/* Starts a copy of a box from shared memory. tma_store_commit() ends the group of
 * copies that tma_store_wait() waits for. */
__device__ __forceinline__ void tma_store(const tensor_map &to, unsigned from,
                                          int x, int y, int z)
{
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group"
               " [%0, {%2, %3, %4}], [%1];" ::"l"(&to),
               "r"(from), "r"(x), "r"(y), "r"(z)
               : "memory");
}

__device__ __forceinline__ void tma_store_commit()
{
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until all but the calling thread's last `groups` groups of copies have read
 * their shared memory. */
template <int groups> __device__ __forceinline__ void tma_store_wait()
{
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

/* Makes the thread's stores to shared memory visible to the TMA and to wgmma. */
__device__ __forceinline__ void tma_fence()
{
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace kiln

#endif
