// kiln run: --grid 4 --block 256 --arg f32[1000] --arg 1000
extern "C" __global__ void guarded(float *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = i;
}
