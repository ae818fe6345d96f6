// kiln run: --grid 8 --block 32 --arg i32[1]
// Several blocks increment the same word without an atomic operation.
extern "C" __global__ void plain_counter(int *n)
{
  if (threadIdx.x == 0)
    *n = *n + 1; // BUG race
}
