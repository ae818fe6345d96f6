// kiln run: --grid 1 --block 64 --arg i32[64] --arg 50
// Some lanes of the second warp have exited; the barrier waits for the other lanes.
extern "C" __global__ void after_exit(int *x, int n)
{
  __shared__ int s[64];
  if ((int)threadIdx.x >= n)
    return;
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[n - 1 - threadIdx.x];
}
