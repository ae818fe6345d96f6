/* lambda_kernels.cu -- generic kernels that call device lambdas.
// nvcc: --extended-lambda -std=c++17
 */
#include "program.cuh"

template <class F> __global__ void for_each(int n, F f)
{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    f(i);
}

template <class... T> __device__ auto sum(T... v)
{
  return (v + ...);
}

int main()
{
  const int n = 1000;
  int *x, k = 3;
  CALL(cudaMalloc(&x, n * sizeof(int)));
  for_each<<<4, 128>>>(n, [=] __device__(int i) { x[i] = sum(i, k, 1, i); });
  for_each<<<4, 128>>>(n, [=] __device__(int i) { x[i] *= 2; });
  const std::vector<int> g = to_host(x, n);
  for (int i = 0; i < n; i++)
    CHECK(g[i] == 2 * (2 * i + 4));
  return verdict();
}
