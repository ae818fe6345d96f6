/* dynamic_shared.cu -- more than 48 KiB of dynamic shared memory, after asking. */
#include "program.cuh"

extern __shared__ double buffer[];

__global__ void reverse(double *x)
{
  for (int i = threadIdx.x; i < 8192; i += blockDim.x)
    buffer[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 8192; i += blockDim.x)
    x[i] = buffer[8191 - i];
}

int main()
{
  const size_t bytes = 8192 * sizeof(double);
  std::vector<double> h(8192);
  for (int i = 0; i < 8192; i++)
    h[i] = i;
  double *x = to_device(h);
  reverse<<<1, 256, bytes>>>(x);
  FAILS(cudaGetLastError(), cudaErrorInvalidValue);
  FAILS(cudaGetLastError(), cudaSuccess);
  CALL(cudaFuncSetAttribute(
      reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  cudaFuncAttributes a;
  CALL(cudaFuncGetAttributes(&a, reverse));
  CHECK(a.maxDynamicSharedSizeBytes == bytes && a.maxThreadsPerBlock > 0);
  reverse<<<1, 256, bytes>>>(x);
  CALL(cudaGetLastError());
  const std::vector<double> g = to_host(x, 8192);
  for (int i = 0; i < 8192; i++)
    CHECK(g[i] == 8191 - i);
  return verdict();
}
