// kiln run: --grid 2 --block 64 --arg u32[128]=none
// An atomic variable of one thread, in local memory. One lane per warp uses it.
#define ADD(old, at)                                                           \
  asm volatile("atom.add.u32 %0, [%1], 5;" : "=r"(old) : "l"(at) : "memory")

extern "C" __global__ void own_atomic(unsigned *x)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned own[4] = {i, 1, 2, 3}, before = 0;
  unsigned *const a = &own[i / 32 % 4];

  if (threadIdx.x % 32 == 0)
    ADD(before, a);
  x[i] = before + *a;
}
