/* reduction_ladder.cu -- sums by four methods, from divergent to warp shuffles. */
#include "program.cuh"

extern __shared__ int tmp[];

__global__ void interleaved(const int *x, int *out, int n)
{
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tmp[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (t % (2 * s) == 0)
      tmp[t] += tmp[t + s];
    __syncthreads();
  }
  if (t == 0)
    atomicAdd(out, tmp[0]);
}

__global__ void sequential(const int *x, int *out, int n)
{
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
  tmp[t] = (i < n ? x[i] : 0) + (i + blockDim.x < n ? x[i + blockDim.x] : 0);
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s)
      tmp[t] += tmp[t + s];
    __syncthreads();
  }
  if (t == 0)
    atomicAdd(out, tmp[0]);
}

template <unsigned BLOCK>
__global__ void unrolled(const int *x, int *out, int n)
{
  const int t = threadIdx.x;
  int s = 0;
  for (int i = blockIdx.x * BLOCK + t; i < n; i += BLOCK * gridDim.x)
    s += x[i];
  tmp[t] = s;
  __syncthreads();
  if (BLOCK >= 256 && t < 128)
    tmp[t] += tmp[t + 128];
  __syncthreads();
  if (BLOCK >= 128 && t < 64)
    tmp[t] += tmp[t + 64];
  __syncthreads();
  if (t < 32) {
    s = tmp[t] + tmp[t + 32];
    for (int d = 16; d > 0; d /= 2)
      s += __shfl_down_sync(0xffffffffu, s, d);
    if (t == 0)
      atomicAdd(out, s);
  }
}

__global__ void by_instruction(const int *x, int *out, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = i < n ? x[i] : 0;
  for (int d = 1; d < 32; d *= 2)
    s += __shfl_xor_sync(~0u, s, d);
  if (threadIdx.x % 32 == 0)
    atomicAdd(out, s);
}

int main()
{
  const int n = 20011;
  std::vector<int> h(n);
  int want = 0;
  for (int i = 0; i < n; i++)
    want += h[i] = (i * 31) % 17 - 5;
  int *x = to_device(h), *out;
  CALL(cudaMalloc(&out, 4 * sizeof(int)));
  CALL(cudaMemset(out, 0, 4 * sizeof(int)));
  interleaved<<<(n + 255) / 256, 256, 1024>>>(x, out, n);
  sequential<<<(n + 511) / 512, 256, 1024>>>(x, out + 1, n);
  unrolled<256><<<16, 256, 1024>>>(x, out + 2, n);
  by_instruction<<<(n + 255) / 256, 256>>>(x, out + 3, n);
  const std::vector<int> g = to_host(out, 4);
  for (int i = 0; i < 4; i++)
    CHECK(g[i] == want);
  return verdict();
}
