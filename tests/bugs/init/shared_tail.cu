// kiln run: --grid 1 --block 128 --arg f32[100]=ramp --arg f32[1] --arg 100
// The tree reduction adds 128 values, but only 100 values were stored.
extern "C" __global__ void shared_tail(const float *x, float *sum, int n)
{
  __shared__ float s[128];
  const int i = threadIdx.x;
  if (i < n)
    s[i] = x[i];
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (i < d)
      s[i] += s[i + d]; // BUG uninitialised read
    __syncthreads();
  }
  if (i == 0)
    *sum = s[0];
}
