/* half_bfloat.cu -- arithmetic in half and bfloat16, and its conversions.
// nvcc: -arch=compute_80
 */
#include "program.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void axpy(__half2 *y, const __half2 *x, __half a, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = __hfma2(__half2half2(a), x[i], y[i]);
}

__global__ void squares(__nv_bfloat16 *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = __hmul(x[i], x[i]);
}

int main()
{
  const int n = 500;
  std::vector<__half2> x(n), y(n);
  std::vector<__nv_bfloat16> b(n);
  for (int i = 0; i < n; i++) {
    x[i] = __floats2half2_rn(i % 32, -i % 16);
    y[i] = __floats2half2_rn(1, 2);
    b[i] = __float2bfloat16(i % 12);
  }
  __half2 *dx = to_device(x), *dy = to_device(y);
  __nv_bfloat16 *db = to_device(b);
  axpy<<<4, 128>>>(dy, dx, __float2half(0.5f), n);
  squares<<<4, 128>>>(db, n);
  const std::vector<__half2> g = to_host(dy, n);
  const std::vector<__nv_bfloat16> s = to_host(db, n);
  for (int i = 0; i < n; i++) {
    CHECK(__low2float(g[i]) == 1 + 0.5f * (i % 32));
    CHECK(__high2float(g[i]) == 2 - 0.5f * (i % 16));
    CHECK(__bfloat162float(s[i]) == (float)(i % 12) * (i % 12));
  }
  return verdict();
}
