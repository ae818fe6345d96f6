// kiln run: --grid 1 --block 128 --arg i32[128]=ramp --arg i32[1]
// Several warps write the same word, and the last write determines its value.
extern "C" __global__ void two_writers(const int *x, int *out)
{
  __shared__ int last;
  if (x[threadIdx.x] % 32 == 7)
    last = x[threadIdx.x]; // BUG race
  __syncthreads();
  if (threadIdx.x == 0)
    *out = last;
}
