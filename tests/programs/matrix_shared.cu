/* matrix_shared.cu -- a matrix product with tiles in shared memory. */
#include "program.cuh"

template <int TILE>
__global__ void multiply(float *c, const float *a, const float *b, int n)
{
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += TILE) {
    as[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k++)
      sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

int main()
{
  const int n = 96;
  std::vector<float> a(n * n), b(n * n);
  for (int i = 0; i < n * n; i++)
    a[i] = i % 7 - 3, b[i] = i % 5 - 2;
  float *da = to_device(a), *db = to_device(b), *dc;
  CALL(cudaMalloc(&dc, n * n * sizeof(float)));
  multiply<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(dc, da, db, n);
  const std::vector<float> c = to_host(dc, n * n);
  multiply<32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(dc, da, db, n);
  const std::vector<float> c32 = to_host(dc, n * n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float want = 0;
      for (int k = 0; k < n; k++)
        want += a[i * n + k] * b[k * n + j];
      CHECK(c[i * n + j] == want);
      CHECK(c32[i * n + j] == want);
    }
  return verdict();
}
