// kiln run: --grid 1 --block 64 --arg i32[64]
// The odd threads of two warps write values and count at one flag, those of warp 1
// after those of warp 0. The even threads look at the flag when all have counted;
// each reads the value of a thread of its own warp.
extern "C" __global__ void two_warps_one_flag(int *out)
{
  __shared__ int value[64];
  __shared__ unsigned flag, all;
  const int i = threadIdx.x;
  if (i == 0)
    flag = all = 0;
  __syncthreads();
  if (i % 2 != 0) {
    while (i >= 32 && *(volatile unsigned *)&flag < 16) { }
    value[i] = i;
    __threadfence_block();
    if (atomicAdd(&flag, 1u) == 31)
      atomicExch(&all, 1u);
  } else {
    while (*(volatile unsigned *)&all == 0) { }
    while (*(volatile unsigned *)&flag < 32) { }
    __threadfence_block();
    out[i] = value[i + 1];
  }
}
