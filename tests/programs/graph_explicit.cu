/* graph_explicit.cu -- a graph made node by node, launched and updated. */
#include "program.cuh"

__global__ void scale(float *x, int n, float f)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
}

static void CUDART_CB count(void *p)
{
  ++*(int *)p;
}

int main()
{
  int n = 1024, calls = 0;
  float f = 3, *x;
  std::vector<float> in(n, 2), out(n);
  cudaGraph_t g;
  cudaGraphNode_t up, kernel, down, host;
  cudaGraphExec_t exec;

  CALL(cudaMalloc(&x, n * sizeof *x));
  CALL(cudaGraphCreate(&g, 0));
  CALL(cudaGraphAddMemcpyNode1D(&up, g, nullptr, 0, x, in.data(), n * sizeof *x,
                                cudaMemcpyHostToDevice));
  void *args[] = {&x, &n, &f};
  cudaKernelNodeParams k = {};
  k.func = (void *)scale;
  k.gridDim = dim3(4);
  k.blockDim = dim3(256);
  k.kernelParams = args;
  CALL(cudaGraphAddKernelNode(&kernel, g, &up, 1, &k));
  CALL(cudaGraphAddMemcpyNode1D(&down, g, &kernel, 1, out.data(), x,
                                n * sizeof *x, cudaMemcpyDeviceToHost));
  cudaHostNodeParams hp = {count, &calls};
  CALL(cudaGraphAddHostNode(&host, g, &down, 1, &hp));
  size_t nodes = 0;
  CALL(cudaGraphGetNodes(g, nullptr, &nodes));
  CHECK(nodes == 4);
  CALL(cudaGraphInstantiate(&exec, g, 0));
  CALL(cudaGraphLaunch(exec, 0));
  CALL(cudaStreamSynchronize(0));
  for (float v : out)
    CHECK(v == 6);
  f = 10;
  CALL(cudaGraphExecKernelNodeSetParams(exec, kernel, &k));
  CALL(cudaGraphLaunch(exec, 0));
  CALL(cudaStreamSynchronize(0));
  for (float v : out)
    CHECK(v == 20);
  CHECK(calls == 2);
  CALL(cudaGraphExecDestroy(exec));
  CALL(cudaGraphDestroy(g));
  return verdict();
}
