/* occupancy_calls.cu -- asks for the best block size and launches with it. */
#include "program.cuh"

__global__ void square(int *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= x[i];
}

__global__ void staged(int *x, int n)
{
  extern __shared__ int s[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n)
    x[i] = s[threadIdx.x] + 1;
}

static size_t shared_of(int block)
{
  return block * sizeof(int);
}

int main()
{
  const int n = 9000;
  std::vector<int> h(n, 3);
  int *x = to_device(h), grid = 0, block = 0, active = 0;
  size_t room = 0;
  CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, square, 0, 0));
  CHECK(block >= 32 && block <= 1024 && block % 32 == 0 && grid > 0);
  square<<<(n + block - 1) / block, block>>>(x, n);
  CALL(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, staged,
                                                      shared_of, 512));
  CHECK(block > 0 && block <= 512);
  staged<<<(n + block - 1) / block, block, shared_of(block)>>>(x, n);
  CALL(cudaGetLastError());
  for (int v : to_host(x, n))
    CHECK(v == 10);
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, staged, 256,
                                                     48 * 1024));
  cudaDeviceProp p;
  CALL(cudaGetDeviceProperties(&p, 0));
  CHECK(active >= 1 && active * 256 <= p.maxThreadsPerMultiProcessor);
  CALL(cudaOccupancyAvailableDynamicSMemPerBlock(&room, staged, 2, 256));
  CHECK(room > 0 && room <= p.sharedMemPerMultiprocessor);
  return verdict();
}
