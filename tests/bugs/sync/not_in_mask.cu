// kiln run: --grid 1 --block 32 --arg i32[32]
extern "C" __global__ void not_in_mask(int *x)
{
  const int v = threadIdx.x;
  if (v >= 16)
    x[v] = __shfl_sync(0x0000ffff, v, 0); // BUG wrong mask
}
