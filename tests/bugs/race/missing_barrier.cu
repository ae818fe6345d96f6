// kiln run: --grid 2 --block 128 --arg f32[256]=ramp
extern "C" __global__ void missing_barrier(float *x)
{
  __shared__ float s[128];
  float *mine = x + blockIdx.x * 128;
  s[threadIdx.x] = mine[threadIdx.x];
  mine[threadIdx.x] = s[127 - threadIdx.x]; // BUG race
}
