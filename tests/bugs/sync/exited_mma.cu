// kiln run: --grid 1 --block 32 --arg u32[128]=ramp --arg f32[32]
// Half of the lanes have exited when the others multiply matrices.
__device__ float multiply(unsigned a, unsigned b, unsigned c)
{
  float d[4] = {};

  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a), "r"(b), "r"(c)); // BUG wrong mask
  return d[0] + d[1] + d[2] + d[3];
}

extern "C" __global__ void exited_mma(const unsigned *in, float *out)
{
  const unsigned i = threadIdx.x;

  if (i < 16)
    out[i] = multiply(in[i], in[i + 32], in[i + 64]);
}
