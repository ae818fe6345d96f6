// kiln run: --grid 1 --block 128 --arg f32[512] --arg u32[512]=ramp
// A sum is stored before the wait for its group.
__device__ unsigned long long operand(const void *p)
{
  const unsigned at = (unsigned)__cvta_generic_to_shared(p);

  return at >> 4 | 8ull << 16 | 16ull << 32;
}

__device__ void multiply(float (&d)[4], unsigned long long a,
                         unsigned long long b)
{
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
               "{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b));
}

extern "C" __global__ void wgmma_early(float *out, const unsigned *in)
{
  __shared__ __align__(128) unsigned tile[576];
  float d[4] = {};

  for (unsigned i = threadIdx.x; i < 576; i += 128)
    tile[i] = in[i % 512] & 0x3f803f80;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(d, operand(tile), operand(tile + 512));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("" : "+f"(d[0]));
  out[threadIdx.x] = d[0]; // BUG unordered wgmma
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  for (int i = 1; i < 4; i++)
    out[threadIdx.x + 128 * i] = d[i];
}
