// kiln run: --grid 1 --block 32 --arg f32[32]=none --arg f32[32]
extern "C" __global__ void fresh_memory(const float *x, float *y)
{
  y[threadIdx.x] = x[threadIdx.x] + 1; // BUG uninitialised read
}
