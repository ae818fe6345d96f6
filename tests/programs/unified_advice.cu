/* unified_advice.cu -- managed memory with advice, prefetches and attachment. */
#include "program.cuh"

__global__ void square(float *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= x[i];
}

int main()
{
  const int n = 20000;
  float *x;
  cudaStream_t s;
  cudaMemLocation device = {};
  device.type = cudaMemLocationTypeDevice;
  device.id = 0;

  CALL(cudaMallocManaged(&x, n * sizeof *x, cudaMemAttachHost));
  for (int i = 0; i < n; i++)
    x[i] = i % 100;
  CALL(cudaStreamCreate(&s));
  CALL(cudaStreamAttachMemAsync(s, x, 0, cudaMemAttachSingle));
  CALL(cudaMemAdvise(x, n * sizeof *x, cudaMemAdviseSetPreferredLocation,
                     device));
  CALL(cudaMemPrefetchAsync(x, n * sizeof *x, device, 0, s));
  square<<<(n + 255) / 256, 256, 0, s>>>(x, n);
  CALL(cudaStreamSynchronize(s));
  for (int i = 0; i < n; i++)
    CHECK(x[i] == (float)(i % 100) * (i % 100));
  CALL(cudaFree(x));
  return verdict();
}
