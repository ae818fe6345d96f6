// kiln run: --grid 1 --block 96 --arg i32[64]=ramp --arg i32[32]
// Two warps produce values and one warp consumes them, with named barriers.
extern "C" __global__ void named_barriers(const int *x, int *y)
{
  __shared__ int s[64];
  if (threadIdx.x < 64) {
    s[threadIdx.x] = x[threadIdx.x];
    __threadfence_block();
    asm volatile("bar.arrive 1, 96;" ::: "memory");
  } else {
    const int i = threadIdx.x - 64;
    asm volatile("bar.sync 1, 96;" ::: "memory");
    y[i] = s[i] + s[i + 32];
  }
}
