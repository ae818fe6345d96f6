// kiln run: --grid 1 --block 128 --shared 256 --arg i32[128]
// The launch provides shared memory for 64 words, but the block uses 128 words.
extern "C" __global__ void dynamic_shared_short(int *x)
{
  extern __shared__ int s[];
  s[threadIdx.x] = x[threadIdx.x]; // BUG out of bounds
  __syncthreads();
  x[threadIdx.x] = s[127 - threadIdx.x];
}
