// kiln run: --grid 1 --block 64 --arg f32[64] --arg f32[64]=ramp
// Element 0 has no left neighbour, and the stencil does not test for element 0.
extern "C" __global__ void before_start(float *y, const float *x)
{
  const int i = threadIdx.x;
  const float left = x[i - 1]; // BUG out of bounds
  y[i] = x[i] - left;
}
