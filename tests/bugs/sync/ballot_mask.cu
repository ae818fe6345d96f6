// kiln run: --grid 1 --block 32 --arg u32[32]
extern "C" __global__ void ballot_mask(unsigned *x)
{
  if (threadIdx.x % 2)
    x[threadIdx.x] = __ballot_sync(0x55555555, 1); // BUG wrong mask
}
