/* recursion_stack.cu -- recursive device functions and large local arrays. */
#include "program.cuh"

__device__ int fibonacci(int n)
{
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ void sort(int *x, int n)
{
  if (n < 2)
    return;
  int pivot = x[n / 2], i = 0, j = n - 1;
  while (i <= j) {
    while (x[i] < pivot)
      i++;
    while (x[j] > pivot)
      j--;
    if (i <= j) {
      const int t = x[i];
      x[i++] = x[j];
      x[j--] = t;
    }
  }
  sort(x, j + 1);
  sort(x + i, n - i);
}

__global__ void both(int *out)
{
  int x[100];
  for (int i = 0; i < 100; i++)
    x[i] = (i * 37 + threadIdx.x) % 101;
  sort(x, 100);
  for (int i = 1; i < 100; i++)
    if (x[i - 1] > x[i])
      out[threadIdx.x] = -1;
  out[32 + threadIdx.x] = fibonacci(threadIdx.x % 12);
}

int main()
{
  int *out;
  CALL(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
  CALL(cudaMalloc(&out, 64 * sizeof(int)));
  CALL(cudaMemset(out, 0, 64 * sizeof(int)));
  both<<<1, 32>>>(out);
  const std::vector<int> g = to_host(out, 64);
  for (int i = 0; i < 32; i++)
    CHECK(g[i] == 0);
  CHECK(g[32 + 11] == 89);
  return verdict();
}
