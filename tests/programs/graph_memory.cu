/* graph_memory.cu -- memory that a captured graph allocates and frees. */
#include "program.cuh"

__global__ void fill(int *x, int n)
{
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    x[i] = i;
}

__global__ void total(const int *x, int n, int *out)
{
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    atomicAdd(out, x[i]);
}

int main()
{
  const int n = 500;
  int *x, *out;
  cudaStream_t s;
  cudaGraph_t g;
  cudaGraphExec_t e;
  CALL(cudaStreamCreate(&s));
  CALL(cudaMalloc(&out, sizeof(int)));
  CALL(cudaMemset(out, 0, sizeof(int)));
  CALL(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  CALL(cudaMallocAsync(&x, n * sizeof(int), s));
  fill<<<1, 64, 0, s>>>(x, n);
  total<<<1, 64, 0, s>>>(x, n, out);
  CALL(cudaFreeAsync(x, s));
  CALL(cudaStreamEndCapture(s, &g));
  CALL(cudaGraphInstantiate(&e, g, 0));
  for (int i = 0; i < 3; i++)
    CALL(cudaGraphLaunch(e, s));
  CALL(cudaStreamSynchronize(s));
  CHECK(to_host(out, 1)[0] == 3 * n * (n - 1) / 2);
  CALL(cudaGraphExecDestroy(e));
  CALL(cudaGraphDestroy(g));
  return verdict();
}
