/* constant_filter.cu -- a filter with its weights in constant memory. */
#include "program.cuh"

const int R = 4;
__constant__ float weight[2 * R + 1];
__device__ int calls;
__device__ float table[3][4] = {{1, 2, 3, 4}, {5, 6}, {9}};

__global__ void filter(float *out, const float *in, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0)
    calls++;
  if (i >= n)
    return;
  float s = 0;
  for (int k = -R; k <= R; k++)
    if (i + k >= 0 && i + k < n)
      s += weight[k + R] * in[i + k];
  out[i] = s;
}

int main()
{
  const int n = 3001;
  float w[2 * R + 1] = {1, 2, 3, 4, 5, 4, 3, 2, 1}, back[2 * R + 1];
  std::vector<float> in(n);
  for (int i = 0; i < n; i++)
    in[i] = i % 8;
  float *x = to_device(in), *y;
  int seen = -1;
  void *address = nullptr;
  size_t size = 0;
  CALL(cudaMalloc(&y, n * sizeof(float)));
  CALL(cudaMemcpyToSymbol(weight, w, 4 * sizeof(float)));
  CALL(cudaMemcpyToSymbol(weight, w + 4, 5 * sizeof(float), 4 * sizeof(float)));
  CALL(cudaMemcpyFromSymbol(back, weight, sizeof back));
  CHECK(std::memcmp(w, back, sizeof w) == 0);
  filter<<<(n + 255) / 256, 256>>>(y, x, n);
  filter<<<(n + 255) / 256, 256>>>(y, x, n);
  const std::vector<float> g = to_host(y, n);
  for (int i = 0; i < n; i++) {
    float s = 0;
    for (int k = -R; k <= R; k++)
      if (i + k >= 0 && i + k < n)
        s += w[k + R] * in[i + k];
    CHECK(g[i] == s);
  }
  CALL(cudaMemcpyFromSymbol(&seen, calls, sizeof seen));
  CHECK(seen == 2);
  CALL(cudaGetSymbolAddress(&address, table));
  CALL(cudaGetSymbolSize(&size, table));
  CHECK(size == sizeof table);
  CHECK(to_host((float *)address, 12)[5] == 6);
  FAILS(cudaMemcpyToSymbol(weight, w, sizeof w, sizeof w),
        cudaErrorInvalidValue);
  return verdict();
}
