// kiln run: --grid 1 --block 32 --arg i32[32]=ramp
// This warp-synchronous code is correct only on GPUs older than Volta.
extern "C" __global__ void no_warp_sync(int *x)
{
  __shared__ int s[32];
  const int i = threadIdx.x;
  s[i] = x[i];
  x[i] = s[i ^ 1]; // BUG race
}
