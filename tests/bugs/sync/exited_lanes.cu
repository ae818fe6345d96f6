// kiln run: --grid 1 --block 32 --arg i32[32]
// The mask includes lanes that have exited.
extern "C" __global__ void exited_lanes(int *x)
{
  if (threadIdx.x >= 24)
    return;
  x[threadIdx.x] = __shfl_down_sync(0xffffffff, (int)threadIdx.x, 1); // BUG wrong mask
}
