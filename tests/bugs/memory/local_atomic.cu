// kiln run: --grid 1 --block 32 --arg u32[32]
// All lanes of a warp use an atomic on local memory, which GPUs compute wrongly.
#define ADD(old, at)                                                           \
  asm volatile("atom.add.u32 %0, [%1], 5;" : "=r"(old) : "l"(at) : "memory")

extern "C" __global__ void local_atomic(unsigned *x)
{
  unsigned own[4] = {threadIdx.x, 1, 2, 3}, before;
  unsigned *const a = &own[x[threadIdx.x] % 4];

  ADD(before, a); // BUG out of bounds
  x[threadIdx.x] = before + *a;
}
