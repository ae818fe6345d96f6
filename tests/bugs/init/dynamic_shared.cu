// kiln run: --grid 1 --block 64 --shared 512 --arg i32[64]
extern "C" __global__ void dynamic_shared(int *x)
{
  extern __shared__ int s[];
  x[threadIdx.x] = s[threadIdx.x + 64]; // BUG uninitialised read
}
