/* wmma_product.cu -- a matrix product by the warp matrix functions. */
#include "program.cuh"

#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void multiply(float *c, const __half *a, const __half *b, int n)
{
  const int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(fa, a + row * n + k, n);
    wmma::load_matrix_sync(fb, b + col * n + k, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; i++)
    fc.x[i] *= 2;
  wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}

int main()
{
  const int n = 64;
  std::vector<__half> a(n * n), b(n * n);
  for (int i = 0; i < n * n; i++) {
    a[i] = __float2half((i * 3) % 11 - 5);
    b[i] = __float2half((i * 5) % 7 - 3);
  }
  __half *da = to_device(a), *db = to_device(b);
  float *dc;
  CALL(cudaMalloc(&dc, n * n * sizeof(float)));
  multiply<<<dim3(4, 4), 32>>>(dc, da, db, n);
  const std::vector<float> c = to_host(dc, n * n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float s = 0;
      for (int k = 0; k < n; k++)
        s += __half2float(a[i * n + k]) * __half2float(b[j * n + k]);
      CHECK(c[i * n + j] == 2 * s);
    }
  return verdict();
}
