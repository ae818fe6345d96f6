/* graph_update.cu -- captures a changed graph again and updates the executable one. */
#include "program.cuh"

__global__ void add(int *x, int v)
{
  atomicAdd(x, v);
}

static cudaGraph_t captured(cudaStream_t s, int *x, int v, int n)
{
  cudaGraph_t g;
  CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < n; i++)
    add<<<1, 32, 0, s>>>(x, v);
  CALL(cudaStreamEndCapture(s, &g));
  return g;
}

int main()
{
  int *x;
  cudaStream_t s;
  cudaGraphExec_t e;
  cudaGraphExecUpdateResultInfo info;
  CALL(cudaStreamCreate(&s));
  CALL(cudaMalloc(&x, sizeof(int)));
  CALL(cudaMemset(x, 0, sizeof(int)));
  cudaGraph_t a = captured(s, x, 1, 3), b = captured(s, x, 10, 3),
              c = captured(s, x, 1, 4);
  CALL(cudaGraphInstantiate(&e, a, 0));
  CALL(cudaGraphLaunch(e, s));
  CALL(cudaGraphExecUpdate(e, b, &info));
  CHECK(info.result == cudaGraphExecUpdateSuccess);
  CALL(cudaGraphLaunch(e, s));
  CALL(cudaStreamSynchronize(s));
  CHECK(to_host(x, 1)[0] == 3 * 32 + 3 * 320);
  FAILS(cudaGraphExecUpdate(e, c, &info), cudaErrorGraphExecUpdateFailure);
  CHECK(info.result != cudaGraphExecUpdateSuccess);
  return verdict();
}
