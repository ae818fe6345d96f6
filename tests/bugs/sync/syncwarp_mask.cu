// kiln run: --grid 1 --block 32 --arg i32[32]
extern "C" __global__ void syncwarp_mask(int *x)
{
  if (threadIdx.x < 8)
    __syncwarp(0xffffff00); // BUG wrong mask
  x[threadIdx.x] = 1;
}
