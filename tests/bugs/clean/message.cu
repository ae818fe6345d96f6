// kiln run: --grid 2 --block 32 --arg i32[1] --arg u32[1] --arg i32[1]
// One block passes a value to another block, with a fence and an atomic flag.
extern "C" __global__ void message(int *value, unsigned *flag, int *out)
{
  if (threadIdx.x != 0)
    return;
  if (blockIdx.x == 0) {
    *value = 42;
    __threadfence();
    atomicExch(flag, 1u);
  } else {
    while (atomicAdd(flag, 0u) == 0) { }
    __threadfence();
    *out = *value;
  }
}
