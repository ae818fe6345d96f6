/* rt_node.c -- adds, changes and describes kernel nodes, fill nodes, conditional nodes,
 * and nodes of any type. Kernels are named by the address of their host function, and a
 * node that needs a context gets the current one. */
#include "rt_node.h"
#include "../array/rt_box.h"
#include "../launch/rt_registry.h"

#include <string.h>

static CUcontext current(void)
{
  CUcontext context = NULL;

  return cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* ---- Kernels ----------------------------------------------------------------------- */

cudaError_t kiln__rt_kernel_params(CUDA_KERNEL_NODE_PARAMS *out,
                                   const cudaKernelNodeParams *in)
{
  CUkernel kernel;

  KILN__RT_TRY(kiln__rt_kernel(&kernel, in->func));
  *out = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = in->gridDim.x,
                                   .gridDimY = in->gridDim.y,
                                   .gridDimZ = in->gridDim.z,
                                   .blockDimX = in->blockDim.x,
                                   .blockDimY = in->blockDim.y,
                                   .blockDimZ = in->blockDim.z,
                                   .sharedMemBytes = in->sharedMemBytes,
                                   .kernelParams = in->kernelParams,
                                   .extra = in->extra,
                                   .kern = kernel,
                                   .ctx = current()};
  return cudaSuccess;
}

cudaError_t kiln__rt_graphAddKernelNode(cudaGraphNode_t *node,
                                        cudaGraph_t graph,
                                        const cudaGraphNode_t *after, size_t n,
                                        const cudaKernelNodeParams *params)
{
  CUDA_KERNEL_NODE_PARAMS p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_kernel_params(&p, params));
  return cuGraphAddKernelNode_v2(node, graph, after, n, &p);
}

cudaError_t
kiln__rt_graphKernelNodeSetParams(cudaGraphNode_t node,
                                  const cudaKernelNodeParams *params)
{
  CUDA_KERNEL_NODE_PARAMS p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_kernel_params(&p, params));
  return cuGraphKernelNodeSetParams_v2(node, &p);
}

cudaError_t
kiln__rt_graphExecKernelNodeSetParams(cudaGraphExec_t exec,
                                      cudaGraphNode_t node,
                                      const cudaKernelNodeParams *params)
{
  CUDA_KERNEL_NODE_PARAMS p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_kernel_params(&p, params));
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &p);
}

/* A kernel without a host function is described by its handle. */
cudaError_t kiln__rt_graphKernelNodeGetParams(cudaGraphNode_t node,
                                              cudaKernelNodeParams *params)
{
  CUDA_KERNEL_NODE_PARAMS p = {0};
  const void *host;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuGraphKernelNodeGetParams_v2(node, &p));
  host = p.kern != NULL ? kiln__rt_host_of(p.kern) : (const void *)p.func;
  *params = (cudaKernelNodeParams){
      .func = host != NULL ? (void *)(uintptr_t)host : (void *)p.kern,
      .gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
      .blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
      .sharedMemBytes = p.sharedMemBytes,
      .kernelParams = p.kernelParams,
      .extra = p.extra};
  return cudaSuccess;
}

/* ---- Fills --------------------------------------------------------------------------- */

CUDA_MEMSET_NODE_PARAMS kiln__rt_fill_params(const cudaMemsetParams *in)
{
  return (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)(uintptr_t)in->dst,
                                   .pitch = in->pitch,
                                   .value = in->value,
                                   .elementSize = in->elementSize,
                                   .width = in->width,
                                   .height = in->height};
}

cudaError_t kiln__rt_graphAddMemsetNode(cudaGraphNode_t *node,
                                        cudaGraph_t graph,
                                        const cudaGraphNode_t *after, size_t n,
                                        const cudaMemsetParams *params)
{
  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  return cuGraphAddMemsetNode(
      node, graph, after, n,
      (CUDA_MEMSET_NODE_PARAMS[]){kiln__rt_fill_params(params)}, current());
}

cudaError_t kiln__rt_graphMemsetNodeSetParams(cudaGraphNode_t node,
                                              const cudaMemsetParams *params)
{
  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  return cuGraphMemsetNodeSetParams(
      node, (CUDA_MEMSET_NODE_PARAMS[]){kiln__rt_fill_params(params)});
}

cudaError_t kiln__rt_graphExecMemsetNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *params)
{
  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  return cuGraphExecMemsetNodeSetParams(
      exec, node, (CUDA_MEMSET_NODE_PARAMS[]){kiln__rt_fill_params(params)},
      current());
}

cudaError_t kiln__rt_graphMemsetNodeGetParams(cudaGraphNode_t node,
                                              cudaMemsetParams *params)
{
  CUDA_MEMSET_NODE_PARAMS p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuGraphMemsetNodeGetParams(node, &p));
  *params = (cudaMemsetParams){.dst = (void *)(uintptr_t)p.dst,
                               .pitch = p.pitch,
                               .value = p.value,
                               .elementSize = p.elementSize,
                               .width = p.width,
                               .height = p.height};
  return cudaSuccess;
}

/* ---- Nodes of any type ------------------------------------------------------------------ */

static cudaError_t copy_node_params(CUgraphNodeParams *out,
                                    const cudaMemcpyNodeParams *in)
{
  if (in->flags != 0)
    return cudaErrorInvalidValue;
  out->memcpy = (CUDA_MEMCPY_NODE_PARAMS){.copyCtx = current()};
  return kiln__rt_box_of(&out->memcpy.copyParams, &in->copyParams);
}

static CUDA_MEMSET_NODE_PARAMS_v2 fill_node_params(const cudaMemsetParams *in)
{
  return (CUDA_MEMSET_NODE_PARAMS_v2){.dst = (CUdeviceptr)(uintptr_t)in->dst,
                                      .pitch = in->pitch,
                                      .value = in->value,
                                      .elementSize = in->elementSize,
                                      .width = in->width,
                                      .height = in->height,
                                      .ctx = current()};
}

cudaError_t kiln__rt_node_params(CUgraphNodeParams *out,
                                 const cudaGraphNodeParams *in)
{
  *out = (CUgraphNodeParams){.type = in->type};
  switch (in->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return kiln__rt_kernel_params(&out->kernel, &in->kernel);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return copy_node_params(out, &in->memcpy);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    out->memset = fill_node_params(&in->memset);
    return cudaSuccess;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    out->conditional =
        (CUDA_CONDITIONAL_NODE_PARAMS){.handle = in->conditional.handle,
                                       .type = in->conditional.type,
                                       .size = in->conditional.size,
                                       .ctx = current()};
    return cudaSuccess;
  case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
  case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    return cudaErrorNotSupported;
  default:
    /* The other members of the union have the layout of the driver's. */
    memcpy(out->reserved1, in->reserved1, sizeof out->reserved1);
    return cudaSuccess;
  }
}

/* Stores what the driver returns through the parameters of a new node. */
static void node_results(cudaGraphNodeParams *params,
                         const CUgraphNodeParams *made)
{
  if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    params->conditional.phGraph_out = made->conditional.phGraph_out;
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    params->alloc.dptr = made->alloc.dptr;
}

cudaError_t kiln__rt_graphAddNodeV2(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *after,
                                    const cudaGraphEdgeData *edges, size_t n,
                                    cudaGraphNodeParams *params)
{
  CUgraphNodeParams p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_node_params(&p, params));
  KILN__RT_TRY(cuGraphAddNode_v2(node, graph, after, edges, n, &p));
  node_results(params, &p);
  return cudaSuccess;
}

cudaError_t kiln__rt_graphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *after, size_t n,
                                  cudaGraphNodeParams *params)
{
  return kiln__rt_graphAddNodeV2(node, graph, after, NULL, n, params);
}

cudaError_t kiln__rt_graphNodeSetParams(cudaGraphNode_t node,
                                        cudaGraphNodeParams *params)
{
  CUgraphNodeParams p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_node_params(&p, params));
  return cuGraphNodeSetParams(node, &p);
}

cudaError_t kiln__rt_graphExecNodeSetParams(cudaGraphExec_t exec,
                                            cudaGraphNode_t node,
                                            cudaGraphNodeParams *params)
{
  CUgraphNodeParams p;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_node_params(&p, params));
  return cuGraphExecNodeSetParams(exec, node, &p);
}

cudaError_t
kiln__rt_graphConditionalHandleCreate(cudaGraphConditionalHandle *handle,
                                      cudaGraph_t graph, unsigned int value,
                                      unsigned int flags)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuGraphConditionalHandleCreate(handle, graph, current(), value, flags);
}
