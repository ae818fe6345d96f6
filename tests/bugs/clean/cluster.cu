// kiln run: --grid 4 --block 64 --arg i32[256]
// Blocks of a cluster exchange values through shared memory, ordered by
// barrier.cluster in one step and by a remote arrival at an mbarrier in the other.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster(int *out)
{
  __shared__ int mine[64], theirs[64];
  __shared__ alignas(8) unsigned long long bar;
  const unsigned t = threadIdx.x;
  unsigned rank, there, place, remote, x;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  if (t == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 64;\n\t"
                 "fence.mbarrier_init.release.cluster;" ::"r"(b));
  mine[t] = 100 * rank + t;
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(&mine[63 - t])), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"((unsigned)__cvta_generic_to_shared(&theirs[t])), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(b), "r"(rank ^ 1));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there));
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(place), "r"(x + 1) : "memory");
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
  asm volatile("{\n\t.reg .pred p;\n"
               "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n\t"
               "@!p bra again;\n\t}" ::"r"(b)
               : "memory");
  out[blockIdx.x * 64 + t] = theirs[63 - t];
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
  mine[t] = 0;
}
