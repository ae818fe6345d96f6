// kiln run: --grid 1 --block 64 --arg i32[64]=none --arg i32[64]
// Only elements with even indices are written, but all elements are read.
extern "C" __global__ void half_written(int *x, int *y)
{
  const int i = threadIdx.x;
  if (i % 2 == 0)
    x[i] = i;
  __syncthreads();
  y[i] = x[i]; // BUG uninitialised read
}
