/* graph_conditional.cu -- a graph with a loop whose condition a kernel sets. */
#include "program.cuh"

__global__ void halve(int *x, int *turns, cudaGraphConditionalHandle h)
{
  *x /= 2;
  ++*turns;
  cudaGraphSetConditional(h, *x > 0);
}

int main()
{
  int start = 1000, *x, *turns;
  cudaGraph_t g;
  cudaGraphExec_t e;
  cudaGraphConditionalHandle h;
  cudaGraphNode_t loop, body;

  CALL(cudaMalloc(&x, sizeof(int)));
  CALL(cudaMalloc(&turns, sizeof(int)));
  CALL(cudaMemcpy(x, &start, sizeof(int), cudaMemcpyHostToDevice));
  CALL(cudaMemset(turns, 0, sizeof(int)));
  CALL(cudaGraphCreate(&g, 0));
  CALL(cudaGraphConditionalHandleCreate(&h, g, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams p = {};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = h;
  p.conditional.type = cudaGraphCondTypeWhile;
  p.conditional.size = 1;
  CALL(cudaGraphAddNode(&loop, g, nullptr, nullptr, 0, &p));
  void *args[] = {&x, &turns, &h};
  cudaKernelNodeParams k = {};
  k.func = (void *)halve;
  k.gridDim = k.blockDim = dim3(1);
  k.kernelParams = args;
  CALL(cudaGraphAddKernelNode(&body, p.conditional.phGraph_out[0], nullptr, 0,
                              &k));
  CALL(cudaGraphInstantiate(&e, g, 0));
  CALL(cudaGraphLaunch(e, 0));
  CALL(cudaDeviceSynchronize());
  CHECK(to_host(turns, 1)[0] == 10);
  return verdict();
}
