// kiln run: --grid 1 --block 64 --arg i32[64]
extern "C" __global__ void shared_past_end(int *x)
{
  __shared__ int s[64];
  s[threadIdx.x * 33] = x[threadIdx.x]; // BUG out of bounds
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x];
}
