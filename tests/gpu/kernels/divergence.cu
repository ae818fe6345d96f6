// kiln run: --grid 4 --block 128 --arg i32[512]=ramp --arg i32[512]
// After a divergent branch, each lane runs a different number of iterations.
extern "C" __global__ void divergence(const int *x, int *y)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = x[i];

  if (v % 2) {
#pragma unroll 1
    for (int k = 0; k < (int)(i % 32); k++)
      v = v * 3 + x[k];
  } else {
#pragma unroll 1
    for (int k = 0; k < 8; k++)
      v = v * 5 - x[k];
  }
  y[i] = v;
}
