// kiln run: --grid 8 --block 128 --arg u32[4096]=random --arg u32[64]
// The kernel performs atomic additions in shared memory, then in global memory.
extern "C" __global__ void histogram(const unsigned *x, unsigned *bins)
{
  __shared__ unsigned mine[64];

  if (threadIdx.x < 64)
    mine[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * 512 + threadIdx.x; i < (blockIdx.x + 1) * 512;
       i += 128)
    atomicAdd(&mine[x[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64)
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
