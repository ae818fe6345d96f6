/* rt_copy_node.c -- adds, changes and describes copy nodes: boxes, contiguous bytes, and
 * copies to and from device variables. Each kind of copy becomes a CUDA_MEMCPY3D. */
#include "../array/rt_box.h"

static CUcontext current(void)
{
  CUcontext context = NULL;

  return cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Finds the bytes of a variable that a copy accesses. */
static cudaError_t bytes_of_variable(void **out, const void *symbol,
                                     size_t size, size_t offset)
{
  CUdeviceptr address;
  size_t bytes;

  KILN__RT_TRY(kiln__rt_variable(&address, &bytes, symbol));
  if (offset > bytes || size > bytes - offset)
    return cudaErrorInvalidValue;
  *out = (void *)(uintptr_t)(address + offset);
  return cudaSuccess;
}

static cudaError_t box_3d(CUDA_MEMCPY3D *box, const cudaMemcpy3DParms *params)
{
  return params == NULL ? cudaErrorInvalidValue : kiln__rt_box_of(box, params);
}

static cudaError_t box_to_symbol(CUDA_MEMCPY3D *box, const void *symbol,
                                 const void *from, size_t size, size_t offset,
                                 cudaMemcpyKind kind)
{
  void *to;

  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
      kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  KILN__RT_TRY(bytes_of_variable(&to, symbol, size, offset));
  return kiln__rt_box_of_bytes(box, to, from, size, kind);
}

static cudaError_t box_from_symbol(CUDA_MEMCPY3D *box, void *to,
                                   const void *symbol, size_t size,
                                   size_t offset, cudaMemcpyKind kind)
{
  void *from;

  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
      kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  KILN__RT_TRY(bytes_of_variable(&from, symbol, size, offset));
  return kiln__rt_box_of_bytes(box, to, from, size, kind);
}

/* Defines three functions for one kind of copy: they add a node, change a node, and
 * change the node's copy in an executable graph. `make` stores the copy in `box`, from
 * the parameters at the end. */
#define COPY_NODE_FUNCTIONS(suffix, make, ...)                                 \
  cudaError_t kiln__rt_graphAddMemcpyNode##suffix(                             \
      cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,  \
      size_t n, __VA_ARGS__)                                                   \
  {                                                                            \
    CUDA_MEMCPY3D box;                                                         \
                                                                               \
    KILN__RT_TRY(kiln__rt_context());                                          \
    KILN__RT_TRY(make);                                                        \
    return cuGraphAddMemcpyNode(node, graph, after, n, &box, current());       \
  }                                                                            \
                                                                               \
  cudaError_t kiln__rt_graphMemcpyNodeSetParams##suffix(cudaGraphNode_t node,  \
                                                        __VA_ARGS__)           \
  {                                                                            \
    CUDA_MEMCPY3D box;                                                         \
                                                                               \
    KILN__RT_TRY(kiln__rt_context());                                          \
    KILN__RT_TRY(make);                                                        \
    return cuGraphMemcpyNodeSetParams(node, &box);                             \
  }                                                                            \
                                                                               \
  cudaError_t kiln__rt_graphExecMemcpyNodeSetParams##suffix(                   \
      cudaGraphExec_t exec, cudaGraphNode_t node, __VA_ARGS__)                 \
  {                                                                            \
    CUDA_MEMCPY3D box;                                                         \
                                                                               \
    KILN__RT_TRY(kiln__rt_context());                                          \
    KILN__RT_TRY(make);                                                        \
    return cuGraphExecMemcpyNodeSetParams(exec, node, &box, current());        \
  }

COPY_NODE_FUNCTIONS(, box_3d(&box, params), const cudaMemcpy3DParms *params)
COPY_NODE_FUNCTIONS(1D, kiln__rt_box_of_bytes(&box, to, from, size, kind),
                    void *to, const void *from, size_t size,
                    cudaMemcpyKind kind)
COPY_NODE_FUNCTIONS(ToSymbol,
                    box_to_symbol(&box, symbol, from, size, offset, kind),
                    const void *symbol, const void *from, size_t size,
                    size_t offset, cudaMemcpyKind kind)
COPY_NODE_FUNCTIONS(FromSymbol,
                    box_from_symbol(&box, to, symbol, size, offset, kind),
                    void *to, const void *symbol, size_t size, size_t offset,
                    cudaMemcpyKind kind)

cudaError_t kiln__rt_graphMemcpyNodeGetParams(cudaGraphNode_t node,
                                              cudaMemcpy3DParms *params)
{
  CUDA_MEMCPY3D box;

  KILN__RT_TRY(kiln__rt_context());
  if (params == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(cuGraphMemcpyNodeGetParams(node, &box));
  kiln__rt_box_params(params, &box);
  return cudaSuccess;
}
