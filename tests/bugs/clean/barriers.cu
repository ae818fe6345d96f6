// kiln run: --grid 2 --block 128 --arg i32[1024]=ramp --arg i32[256]
extern "C" __global__ void barriers(const int *x, int *y)
{
  __shared__ int s[128];
  int sum = 0;
  for (int k = 0; k < 4; k++) {
    s[threadIdx.x] = x[(blockIdx.x * 4 + k) * 128 + threadIdx.x];
    __syncthreads();
    sum += s[127 - threadIdx.x];
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = sum;
}
