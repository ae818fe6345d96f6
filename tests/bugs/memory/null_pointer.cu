// kiln run: --grid 1 --block 32 --arg u64=0
extern "C" __global__ void null_pointer(int *x)
{
  x[threadIdx.x] = 1; // BUG out of bounds
}
