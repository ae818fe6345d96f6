// kiln run: --grid 1 --block 32 --arg i32[32]=ramp
// Warp-synchronous code, which was correct before Volta only.
extern "C" __global__ void no_warp_sync(int *x)
{
  __shared__ int s[32];
  const int i = threadIdx.x;
  s[i] = x[i];
  x[i] = s[i ^ 1]; // BUG race
}
