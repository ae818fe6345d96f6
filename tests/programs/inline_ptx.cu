/* inline_ptx.cu -- instructions of PTX in CUDA C++. */
#include "program.cuh"

__global__ void mixed(unsigned *out, const unsigned *in)
{
  unsigned lane, sum, low, reversed, selected;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("add.u32 %0, %1, %2;" : "=r"(sum) : "r"(in[lane]), "r"(lane));
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(low) : "r"(sum));
  asm("brev.b32 %0, %1;" : "=r"(reversed) : "r"(low));
  asm("{ .reg .pred p;\n"
      "  setp.lt.u32 p, %1, 16;\n"
      "  selp.u32 %0, %2, %3, p; }"
      : "=r"(selected)
      : "r"(lane), "r"(reversed), "r"(low));
  out[lane] = selected;
}

int main()
{
  std::vector<unsigned> h(32);
  for (unsigned i = 0; i < 32; i++)
    h[i] = i * 40503u;
  unsigned *out;
  CALL(cudaMalloc(&out, 128));
  mixed<<<1, 32>>>(out, to_device(h));
  const std::vector<unsigned> g = to_host(out, 32);
  for (unsigned i = 0; i < 32; i++) {
    const unsigned low = (h[i] + i) >> 4 & 255;
    unsigned reversed = 0;
    for (int b = 0; b < 32; b++)
      reversed |= (low >> b & 1) << (31 - b);
    CHECK(g[i] == (i < 16 ? reversed : low));
  }
  return verdict();
}
