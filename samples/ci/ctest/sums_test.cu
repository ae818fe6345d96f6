/* sums_test.cu -- the test of a kernel that adds up blocks of numbers. */
#include <cstdio>

__global__ void block_sums(const int *x, int *sums, int n)
{
  __shared__ int part[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;

  part[threadIdx.x] = i < n ? x[i] : 0;
  for (int step = 64; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step)
      part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0)
    sums[blockIdx.x] = part[0];
}

int main()
{
  enum { N = 1000, BLOCKS = (N + 127) / 128 };
  int *x, *sums, total = 0;

  cudaMallocManaged(&x, N * sizeof *x);
  cudaMallocManaged(&sums, BLOCKS * sizeof *sums);
  for (int i = 0; i < N; i++)
    x[i] = i;
  block_sums<<<BLOCKS, 128>>>(x, sums, N);
  if (cudaDeviceSynchronize() != cudaSuccess)
    return 1;
  for (int b = 0; b < BLOCKS; b++)
    total += sums[b];
  std::printf("the sum is %d\n", total);
  cudaFree(x);
  cudaFree(sums);
  return total == N * (N - 1) / 2 ? 0 : 1;
}
