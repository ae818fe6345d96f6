// kiln run: --grid 4 --block 32 --arg u32[1] --arg i32[1]
// A spin lock with fences keeps plain accesses in order.
extern "C" __global__ void lock(unsigned *taken, int *n)
{
  if (threadIdx.x % 8 == 0) {
    while (atomicCAS(taken, 0u, 1u) != 0) { }
    __threadfence();
    *n = *n + 1;
    __threadfence();
    atomicExch(taken, 0u);
  }
}
