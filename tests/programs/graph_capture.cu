/* graph_capture.cu -- captures two streams that fork and join, and repeats the graph. */
#include "program.cuh"

__global__ void step(int *x, int add)
{
  x[threadIdx.x] += add;
}

__global__ void join(int *x, const int *y)
{
  x[threadIdx.x] += y[threadIdx.x];
}

int main()
{
  int *x, *y;
  cudaStream_t a, b;
  cudaEvent_t fork, done;
  cudaGraph_t g;
  cudaGraphExec_t e;
  cudaStreamCaptureStatus status;

  CALL(cudaMalloc(&x, 64 * sizeof(int)));
  CALL(cudaMalloc(&y, 64 * sizeof(int)));
  CALL(cudaMemset(x, 0, 64 * sizeof(int)));
  CALL(cudaStreamCreate(&a));
  CALL(cudaStreamCreate(&b));
  CALL(cudaEventCreate(&fork));
  CALL(cudaEventCreate(&done));
  CALL(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CALL(cudaStreamIsCapturing(a, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  step<<<1, 64, 0, a>>>(x, 1);
  CALL(cudaEventRecord(fork, a));
  CALL(cudaStreamWaitEvent(b, fork));
  CALL(cudaMemsetAsync(y, 0, 64 * sizeof(int), b));
  step<<<1, 64, 0, b>>>(y, 100);
  CALL(cudaEventRecord(done, b));
  CALL(cudaStreamWaitEvent(a, done));
  join<<<1, 64, 0, a>>>(x, y);
  CALL(cudaStreamEndCapture(a, &g));
  CALL(cudaGraphInstantiate(&e, g, 0));
  for (int i = 0; i < 5; i++)
    CALL(cudaGraphLaunch(e, a));
  CALL(cudaStreamSynchronize(a));
  const std::vector<int> h = to_host(x, 64);
  for (int v : h)
    CHECK(v == 505);
  size_t n = 0;
  CALL(cudaGraphGetNodes(g, nullptr, &n));
  CHECK(n == 4);
  CALL(cudaGraphExecDestroy(e));
  CALL(cudaGraphDestroy(g));
  return verdict();
}
