// kiln run: --grid 4 --block 256 --arg f32[1000] --arg 1024
// The guard compares with the number of threads, not the number of elements.
extern "C" __global__ void past_end(float *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = i; // BUG out of bounds
}
