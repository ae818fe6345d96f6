// kiln run: --grid 1 --block 64 --arg i32[64]
// Each half of the block waits at a barrier of its own for the whole block.
extern "C" __global__ void different_barriers(int *x)
{
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1;"); // BUG deadlock
  else
    asm volatile("bar.sync 2;");
  x[threadIdx.x] = 1;
}
