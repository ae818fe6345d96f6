// kiln run: --grid 4 --block 64 --arg f32[256]=ramp --arg f32[1]=none
// The accumulator *sum was never set to zero.
extern "C" __global__ void accumulator(const float *x, float *sum)
{
  atomicAdd(sum, x[blockIdx.x * blockDim.x + threadIdx.x]); // BUG uninitialised read
}
