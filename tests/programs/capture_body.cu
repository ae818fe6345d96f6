// A loop in a graph, whose body is captured from a stream into the graph of the node.
#include "program.cuh"

__global__ void step(cudaGraphConditionalHandle handle, int *p)
{
  const int n = ++*p;

  cudaGraphSetConditional(handle, n < 5);
}

__global__ void twice(int *p)
{
  *p *= 2;
}

int main()
{
  cudaGraphConditionalHandle handle;
  cudaGraphNodeParams params = {};
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaStream_t stream;
  cudaGraph_t graph;
  int *p, n[2] = {0, 1};

  CALL(cudaMalloc(&p, sizeof n));
  CALL(cudaMemcpy(p, n, sizeof n, cudaMemcpyHostToDevice));
  CALL(cudaStreamCreate(&stream));
  CALL(cudaGraphCreate(&graph, 0));
  CALL(cudaGraphConditionalHandleCreate(&handle, graph, 1,
                                        cudaGraphCondAssignDefault));
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
#if CUDART_VERSION >= 13000
  CALL(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
  CALL(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
  CALL(cudaStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0],
                                     nullptr, nullptr, 0,
                                     cudaStreamCaptureModeRelaxed));
  twice<<<1, 1, 0, stream>>>(p + 1);
  step<<<1, 1, 0, stream>>>(handle, p);
  CALL(cudaStreamEndCapture(stream, nullptr)); // the graph is known already
  CALL(cudaGraphInstantiate(&exec, graph, 0));
  CALL(cudaGraphLaunch(exec, stream));
  CALL(cudaStreamSynchronize(stream));
  CALL(cudaMemcpy(n, p, sizeof n, cudaMemcpyDeviceToHost));
  CHECK(n[0] == 5 && n[1] == 32);
  CALL(cudaGraphExecDestroy(exec));
  CALL(cudaGraphDestroy(graph));
  return verdict();
}
