/* zero_copy.cu -- kernels read and write mapped host memory and registered memory. */
#include "program.cuh"

__global__ void increment(int *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += i;
}

int main()
{
  const int n = 3000;
  int *host, *dev, *own, *own_dev;
  unsigned flags = 0;

  CALL(cudaSetDeviceFlags(cudaDeviceMapHost));
  CALL(cudaHostAlloc(&host, n * sizeof(int),
                     cudaHostAllocMapped | cudaHostAllocPortable));
  CALL(cudaHostGetFlags(&flags, host));
  CHECK(flags & cudaHostAllocMapped);
  CALL(cudaHostGetDevicePointer(&dev, host, 0));
  own = (int *)std::aligned_alloc(4096, 4 * 4096);
  CALL(cudaHostRegister(own, 4 * 4096, cudaHostRegisterMapped));
  CALL(cudaHostGetDevicePointer(&own_dev, own, 0));
  for (int i = 0; i < n; i++)
    host[i] = 1, own[i] = 2;
  increment<<<(n + 255) / 256, 256>>>(dev, n);
  increment<<<(n + 255) / 256, 256>>>(own_dev, n);
  CALL(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) {
    CHECK(host[i] == 1 + i);
    CHECK(own[i] == 2 + i);
  }
  FAILS(cudaHostRegister(own, 4 * 4096, 0),
        cudaErrorHostMemoryAlreadyRegistered);
  CALL(cudaHostUnregister(own));
  FAILS(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
  CALL(cudaFreeHost(host));
  std::free(own);
  return verdict();
}
