// kiln run: --grid 1 --block 128 --arg i32[128]
extern "C" __global__ void half_block(int *x)
{
  if (threadIdx.x < 40) // The other 88 threads never reach the barrier.
    __syncthreads(); // BUG divergent barrier
  x[threadIdx.x] = 1;
}
