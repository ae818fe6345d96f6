// kiln run: --grid 2 --block 64 --arg f32[128]=ramp --arg f32[128]
// The halo element before the block's first element was never loaded.
extern "C" __global__ void shared_halo(const float *x, float *y)
{
  __shared__ float s[65];
  const int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x + 1] = x[i];
  __syncthreads();
  y[i] = s[threadIdx.x + 1] - s[threadIdx.x]; // BUG uninitialised read
}
