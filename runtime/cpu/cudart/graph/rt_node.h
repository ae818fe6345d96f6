/* rt_node.h -- converts the parameters of graph nodes between the runtime and the
 * driver. */
#ifndef KILN_CPU_RT_NODE_H
#define KILN_CPU_RT_NODE_H

#include "../cudart.h"

/* Converts the parameters of a kernel node. `func` may be the address of a host
 * function, or a kernel handle. Returns cudaErrorInvalidDeviceFunction if it is
 * neither. */
cudaError_t kiln__rt_kernel_params(CUDA_KERNEL_NODE_PARAMS *out,
                                   const cudaKernelNodeParams *in);
/* Converts the parameters of a fill. */
CUDA_MEMSET_NODE_PARAMS kiln__rt_fill_params(const cudaMemsetParams *in);
/* Converts the parameters of a node of any type. A node that needs a context gets the
 * current one. Returns cudaErrorNotSupported for external semaphores. */
cudaError_t kiln__rt_node_params(CUgraphNodeParams *out,
                                 const cudaGraphNodeParams *in);

#endif
