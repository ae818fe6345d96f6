// kiln run: --grid 2 --block 32 --arg i32[1] --arg u32[1] --arg i32[1]
// The flag announces the value, but nothing orders the two stores.
extern "C" __global__ void missing_fence(int *value, unsigned *flag, int *out)
{
  if (threadIdx.x != 0)
    return;
  if (blockIdx.x == 0) {
    *value = 42;
    atomicExch(flag, 1u);
  } else {
    while (atomicAdd(flag, 0u) == 0) { }
    *out = *value; // BUG race
  }
}
