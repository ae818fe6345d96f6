// Arithmetic on f16 and bf16 in PTX, with values that f16 and bf16 can represent.
static __device__ unsigned short narrow(float v)
{
  unsigned short h;

  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}

static __device__ float widen(unsigned short h)
{
  float v;

  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
  return v;
}

extern "C" __global__ void halves(const int *in, float *out, int)
{
  const unsigned short a = narrow(in[threadIdx.x] % 32), b = narrow(0.5f);
  unsigned short c;

  asm("{fma.rn.f16 %0, %1, %2, %2;}" : "=h"(c) : "h"(a), "h"(b));
  out[threadIdx.x] = widen(c);
}

// Computes the sum of packed pairs of f16 values over a warp.
extern "C" __global__ void half_sum(const int *in, float *out, int)
{
  unsigned v = narrow(in[threadIdx.x] % 8) |
               (unsigned)narrow(in[threadIdx.x] % 4) << 16;

  for (int d = 16; d > 0; d /= 2) {
    const unsigned w = __shfl_xor_sync(0xffffffffu, v, d);

    asm("add.rn.f16x2 %0, %0, %1;" : "+r"(v) : "r"(w));
  }
  out[threadIdx.x] = widen((unsigned short)v);
  out[32 + threadIdx.x] = widen((unsigned short)(v >> 16));
}

extern "C" __global__ void bfloats(const int *in, float *out, int)
{
  const float v = in[threadIdx.x] % 64;

#if __CUDA_ARCH__ >= 800
  unsigned short b, three;

  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(v));
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(three) : "f"(3.0f));
  asm("fma.rn.bf16 %0, %0, %1, %1;" : "+h"(b) : "h"(three));
  out[threadIdx.x] = __uint_as_float((unsigned)b << 16);
#else
  out[threadIdx.x] = v * 3 + 3;
#endif
}
