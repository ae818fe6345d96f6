/* graph_abi.h -- declares the parameters of graph nodes in the CUDA runtime API. The
 * rules in the head of runtime_abi.h apply. Types that are missing here have the layout
 * of the driver's types. */
#ifndef KILN_CPU_RT_GRAPH_ABI_H
#define KILN_CPU_RT_GRAPH_ABI_H

#include "array_abi.h"

typedef int cudaGraphNodeType;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUDA_HOST_NODE_PARAMS cudaHostNodeParams;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUDA_CHILD_GRAPH_NODE_PARAMS cudaChildGraphNodeParams;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUgraphExecUpdateResult cudaGraphExecUpdateResult;
typedef CUgraphConditionalHandle cudaGraphConditionalHandle;
typedef int cudaStreamCaptureStatus;
typedef int cudaStreamCaptureMode;

typedef struct cudaKernelNodeParams {
  void *func; /* host address of the kernel */
  dim3 gridDim, blockDim;
  unsigned int sharedMemBytes;
  void **kernelParams, **extra;
} cudaKernelNodeParams;

typedef struct cudaMemcpyNodeParams {
  int flags, reserved[3];
  cudaMemcpy3DParms copyParams;
} cudaMemcpyNodeParams;

typedef struct cudaMemsetParams {
  void *dst;
  size_t pitch;
  unsigned int value, elementSize;
  size_t width, height;
} cudaMemsetParams;

typedef struct cudaConditionalNodeParams {
  cudaGraphConditionalHandle handle;
  int type;
  unsigned int size;
  cudaGraph_t *phGraph_out;
} cudaConditionalNodeParams;

typedef struct cudaGraphNodeParams {
  cudaGraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParams kernel;
    cudaMemcpyNodeParams memcpy;
    cudaMemsetParams memset;
    cudaHostNodeParams host;
    cudaChildGraphNodeParams graph;
    struct {
      cudaEvent_t event;
    } eventWait, eventRecord;
    cudaMemAllocNodeParams alloc;
    struct {
      void *dptr;
    } free;
    cudaConditionalNodeParams conditional;
  };
  long long reserved2;
} cudaGraphNodeParams;

#endif
