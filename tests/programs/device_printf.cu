/* device_printf.cu -- printf in kernels, with a larger buffer. */
#include "program.cuh"

__global__ void hello(float x, const char *name)
{
  if (threadIdx.x == 0)
    printf("block %d of %d: %.3f %5u|%-4d|%s %c %llx %%\n", blockIdx.x,
           gridDim.x, x * blockIdx.x, 7u, -3, name, 'q', 0xabcdef012345ull);
}

__device__ char word[] = "word";

int main()
{
  size_t size = 0;
  void *name;
  CALL(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
  CALL(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
  CHECK(size >= 4 << 20);
  CALL(cudaGetSymbolAddress(&name, word));
  hello<<<3, 64>>>(1.5f, (char *)name);
  CALL(cudaDeviceSynchronize());
  return verdict();
}
