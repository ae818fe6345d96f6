// kiln run: --grid 8 --block 256 --arg i32[4096] --arg u32[4096] --arg i32[4096] --arg u32[64]
// Block 0 passes 4096 values to the other blocks, each with a flag of its own, and
// every block counts in its shared memory by atomics.
extern "C" __global__ void many_flags(int *value, unsigned *flag, int *out,
                                      unsigned *total)
{
  __shared__ unsigned bins[64];
  const unsigned t = threadIdx.x;
  if (t < 64)
    bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[t % 64], 1u);
  __syncthreads();
  if (t < 64)
    atomicAdd(&total[t], bins[t]);
  for (unsigned i = t; i < 4096; i += 256) {
    if (blockIdx.x == 0) {
      value[i] = (int)i;
      __threadfence();
      atomicExch(&flag[i], 1u);
    } else if (blockIdx.x == 1 + i % 7) {
      while (atomicAdd(&flag[i], 0u) == 0) { }
      __threadfence();
      out[i] = value[i];
    }
  }
}
