// kiln run: --grid 2 --block 32 --arg i32[64]
// A block reads its neighbour's shared memory without waiting for the writes.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_neighbour(int *out)
{
  __shared__ int mine[32];
  unsigned rank, there, x;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  mine[threadIdx.x] = threadIdx.x;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"((unsigned)__cvta_generic_to_shared(&mine[threadIdx.x])),
                 "r"(rank ^ 1));
  if (rank == 1)
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there)); // BUG race
  out[rank * 32 + threadIdx.x] = x;
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}
