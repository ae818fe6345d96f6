// kiln run: --grid 4 --block 64 --arg f32[256]=ramp
// The kernel works in place, so a block reads elements that the next block writes.
extern "C" __global__ void neighbour_block(float *x)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float right = i + 1 < 256 ? x[i + 1] : 0;
  __syncthreads();
  x[i] = x[i] + right; // BUG race
}
