/* vector_add.cu -- adds two vectors; the size is no multiple of the block. */
#include "program.cuh"

__global__ void add(const float *a, const float *b, float *c, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}

int main()
{
  const int n = 50001;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; i++)
    a[i] = i * 0.5f, b[i] = n - i;
  float *da = to_device(a), *db = to_device(b), *dc;
  CALL(cudaMalloc(&dc, n * sizeof(float)));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  CALL(cudaGetLastError());
  const std::vector<float> c = to_host(dc, n);
  for (int i = 0; i < n; i++)
    CHECK(c[i] == a[i] + b[i]);
  CALL(cudaFree(da));
  CALL(cudaFree(db));
  CALL(cudaFree(dc));
  return verdict();
}
