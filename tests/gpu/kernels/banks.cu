// kiln run: --grid 2 --block 128 --arg f32[256] --arg 8
// The lanes of a warp access every eighth word, an 8-way bank conflict.
extern "C" __global__ void banks(float *y, unsigned stride)
{
  __shared__ float s[1024];
  const unsigned i = threadIdx.x;

  for (unsigned k = i; k < 1024; k += 128)
    s[k] = k;
  __syncthreads();
  y[blockIdx.x * 128 + i] = s[i * stride];
}
