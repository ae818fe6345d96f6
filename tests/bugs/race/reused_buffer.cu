// kiln run: --grid 1 --block 64 --arg i32[256]=ramp --arg i32[64]
// There is a barrier before the read, but no barrier before the next write.
extern "C" __global__ void reused_buffer(const int *x, int *y)
{
  __shared__ int s[64];
  int sum = 0;
  for (int k = 0; k < 4; k++) {
    s[threadIdx.x] = x[k * 64 + threadIdx.x]; // BUG race
    __syncthreads();
    sum += s[(threadIdx.x + 32) % 64];
  }
  y[threadIdx.x] = sum;
}
