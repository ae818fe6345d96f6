// kiln run: --grid 2 --block 32 --arg i32[64]
// Block 0 may exit before block 1 has read its shared memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    exited_cluster_block(int *out)
{
  __shared__ int mine[32];
  unsigned rank, there, x = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  mine[threadIdx.x] = threadIdx.x;
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
  if (rank == 0)
    return;
  for (int i = 0; i < 20; i++)
    asm volatile("nanosleep.u32 100;");
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;"
               : "=r"(there)
               : "r"((unsigned)__cvta_generic_to_shared(&mine[threadIdx.x])));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there)); // BUG exited block
  out[threadIdx.x] = x;
}
