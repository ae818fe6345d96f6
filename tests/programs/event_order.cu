/* event_order.cu -- events: time of a kernel, and an order between streams. */
#include "program.cuh"

__global__ void fill(int *x, int n, int v)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = v;
}

__global__ void twice(const int *x, int *y, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 2 * x[i];
}

int main()
{
  const int n = 10000;
  int *x, *y;
  cudaStream_t a, b;
  cudaEvent_t start, filled, end;
  float ms = -1;

  CALL(cudaMalloc(&x, n * sizeof(int)));
  CALL(cudaMalloc(&y, n * sizeof(int)));
  CALL(cudaStreamCreate(&a));
  CALL(cudaStreamCreate(&b));
  CALL(cudaEventCreate(&start));
  CALL(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  CALL(cudaEventCreate(&end));
  CALL(cudaEventRecord(start, a));
  fill<<<(n + 127) / 128, 128, 0, a>>>(x, n, 21);
  CALL(cudaEventRecord(filled, a));
  CALL(cudaStreamWaitEvent(b, filled, 0));
  twice<<<(n + 127) / 128, 128, 0, b>>>(x, y, n);
  CALL(cudaEventRecord(end, b));
  CALL(cudaEventSynchronize(end));
  CALL(cudaEventQuery(end));
  CALL(cudaEventElapsedTime(&ms, start, end));
  CHECK(ms >= 0);
  FAILS(cudaEventElapsedTime(&ms, start, filled),
        cudaErrorInvalidResourceHandle);
  const std::vector<int> h = to_host(y, n);
  for (int v : h)
    CHECK(v == 42);
  CALL(cudaEventDestroy(start));
  CALL(cudaEventDestroy(filled));
  CALL(cudaEventDestroy(end));
  return verdict();
}
