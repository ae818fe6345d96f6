// kiln run: --grid 1 --block 32 --arg i32[32]=ramp
extern "C" __global__ void warp_sync(int *x)
{
  __shared__ int s[32];
  const int i = threadIdx.x;
  s[i] = x[i];
  __syncwarp();
  const int v = s[i ^ 1];
  __syncwarp();
  s[i] = v + __shfl_xor_sync(~0u, v, 16);
  x[i] = s[i];
}
