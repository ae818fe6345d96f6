/* streams_overlap.cu -- four streams copy and compute slices of an array. */
#include "program.cuh"

__global__ void scale(float *x, int n, float f)
{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    x[i] = x[i] * f + 1;
}

int main()
{
  const int slices = 4, n = 4096;
  cudaStream_t s[slices];
  float *host, *dev;
  CALL(cudaMallocHost(&host, slices * n * sizeof(float)));
  CALL(cudaMalloc(&dev, slices * n * sizeof(float)));
  for (int i = 0; i < slices * n; i++)
    host[i] = i;
  for (int i = 0; i < slices; i++) {
    CALL(i % 2 ? cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking)
               : cudaStreamCreate(&s[i]));
    CALL(cudaMemcpyAsync(dev + i * n, host + i * n, n * sizeof(float),
                         cudaMemcpyHostToDevice, s[i]));
    scale<<<4, 128, 0, s[i]>>>(dev + i * n, n, i + 1);
    CALL(cudaMemcpyAsync(host + i * n, dev + i * n, n * sizeof(float),
                         cudaMemcpyDeviceToHost, s[i]));
  }
  for (int i = 0; i < slices; i++) {
    CALL(cudaStreamSynchronize(s[i]));
    CALL(cudaStreamQuery(s[i]));
    CALL(cudaStreamDestroy(s[i]));
  }
  for (int i = 0; i < slices * n; i++)
    CHECK(host[i] == (float)i * (i / n + 1) + 1);
  CALL(cudaFreeHost(host));
  CALL(cudaFree(dev));
  return verdict();
}
