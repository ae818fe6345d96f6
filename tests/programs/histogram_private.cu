/* histogram_private.cu -- counts bytes in shared memory, then adds per block. */
#include "program.cuh"

__global__ void count(const unsigned char *x, int n, unsigned *bins)
{
  __shared__ unsigned mine[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&mine[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (mine[i])
      atomicAdd(&bins[i], mine[i]);
}

int main()
{
  const int n = 40000;
  std::vector<unsigned char> h(n);
  std::vector<unsigned> want(256);
  unsigned seed = 1;
  for (auto &c : h) {
    seed = seed * 1664525 + 1013904223;
    want[c = seed >> 24]++;
  }
  unsigned char *x = to_device(h);
  unsigned *bins;
  CALL(cudaMalloc(&bins, 1024));
  CALL(cudaMemset(bins, 0, 1024));
  count<<<8, 192>>>(x, n, bins);
  CHECK(to_host(bins, 256) == want);
  return verdict();
}
