/* pool_async.cu -- memory pools: allocation in the order of streams. */
#include "program.cuh"

__global__ void fill(int *x, int n, int v)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = v + i;
}

int main()
{
  const int n = 5000;
  int *x, *y;
  cudaStream_t s;
  cudaMemPool_t pool, own;
  unsigned long long keep = ~0ull, used = 0;
  CALL(cudaStreamCreate(&s));
  CALL(cudaDeviceGetDefaultMemPool(&pool, 0));
  CALL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  CALL(cudaMallocAsync(&x, n * sizeof(int), s));
  fill<<<(n + 255) / 256, 256, 0, s>>>(x, n, 1);
  CALL(cudaStreamSynchronize(s));
  CHECK(to_host(x, n)[n - 1] == n);
  CALL(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used >= n * sizeof(int));
  CALL(cudaFreeAsync(x, s));
  cudaMemPoolProps p = {};
  p.allocType = cudaMemAllocationTypePinned;
  p.location.type = cudaMemLocationTypeDevice;
  CALL(cudaMemPoolCreate(&own, &p));
  CALL(cudaMallocFromPoolAsync(&y, n * sizeof(int), own, s));
  fill<<<(n + 255) / 256, 256, 0, s>>>(y, n, 5);
  std::vector<int> h(n);
  CALL(
      cudaMemcpyAsync(h.data(), y, n * sizeof(int), cudaMemcpyDeviceToHost, s));
  CALL(cudaFreeAsync(y, s));
  CALL(cudaStreamSynchronize(s));
  CHECK(h[7] == 12);
  CALL(cudaMemPoolTrimTo(own, 0));
  CALL(cudaMemPoolDestroy(own));
  CALL(cudaStreamDestroy(s));
  return verdict();
}
