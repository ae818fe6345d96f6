// kiln run: --grid 1 --block 64 --arg i32[64]
// Each half of the block waits for the whole block, at a different barrier.
extern "C" __global__ void different_barriers(int *x)
{
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1;"); // BUG deadlock
  else
    asm volatile("bar.sync 2;");
  x[threadIdx.x] = 1;
}
