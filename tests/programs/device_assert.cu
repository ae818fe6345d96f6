/* device_assert.cu -- an assertion fails in one thread. */
#include "program.cuh"

#include <cassert>

__global__ void odd(const int *x)
{
  assert(x[threadIdx.x] % 2 == 1);
}

int main()
{
  std::vector<int> h(64, 1);
  int *x = to_device(h);
  odd<<<1, 64>>>(x);
  CALL(cudaDeviceSynchronize());
  CALL(cudaMemset(x + 40, 0, sizeof(int)));
  odd<<<1, 64>>>(x);
  FAILS(cudaDeviceSynchronize(), cudaErrorAssert);
  FAILS(cudaGetLastError(), cudaErrorAssert);
  FAILS(cudaDeviceSynchronize(), cudaErrorAssert);
  return verdict();
}
