/* graph_params.c -- implements the functions that add a node of one type, or
 * get or set the parameters of such a node. The functions pack their arguments
 * into CUgraphNodeParams and call the general functions of graph_node.c. */
#include "graph_exec.h"

#include <string.h>

/* ---- Parameters of a node ------------------------------------------------ */

static CUgraphNodeParams kernel_params(const CUDA_KERNEL_NODE_PARAMS *p)
{
  return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p};
}

static CUgraphNodeParams kernel_params_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
  CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

  /* CUDA_KERNEL_NODE_PARAMS_v1 is a prefix of CUDA_KERNEL_NODE_PARAMS. */
  memcpy(&all.kernel, p, sizeof *p);
  return all;
}

static CUgraphNodeParams copy_params(const CUDA_MEMCPY3D *p, CUcontext context)
{
  return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                             .memcpy = {.copyCtx = context, .copyParams = *p}};
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *p,
                                     CUcontext context)
{
  return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET,
                             .memset = {.dst = p->dst,
                                        .pitch = p->pitch,
                                        .value = p->value,
                                        .elementSize = p->elementSize,
                                        .width = p->width,
                                        .height = p->height,
                                        .ctx = context}};
}

static CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS *p)
{
  return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = *p};
}

static CUgraphNodeParams event_params(CUgraphNodeType type, CUevent event)
{
  return (CUgraphNodeParams){.type = type, .eventWait = {.event = event}};
}

static CUgraphNodeParams ops_params(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
  return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                             .memOp = *p};
}

/* Checks that `node` is a live node of this type, and locks machine.graph_lock.
 * On failure the lock is not held. */
static CUresult open_node(CUgraphNode node, CUgraphNodeType type,
                          const void *out)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL && kiln__cpu_live(node, KILN__HANDLE_GRAPH_NODE) &&
               node->type == type));
  lock_graphs();
  return CUDA_SUCCESS;
}

static void close_node(void)
{
  unlock_graphs();
}

/* Defines a function that returns a property of a node of one type. */
#define NODE_GETTER(name, node_type, type, property)                           \
  CUresult kiln__cpu_graph##name(CUgraphNode node, type *out)                  \
  {                                                                            \
    CU_TRY(open_node(node, node_type, out));                                   \
    *out = (property);                                                         \
    close_node();                                                              \
    return CUDA_SUCCESS;                                                       \
  }

NODE_GETTER(ChildGraphNodeGetGraph, CU_GRAPH_NODE_TYPE_GRAPH, CUgraph,
            node->child)
NODE_GETTER(EventRecordNodeGetEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CUevent,
            node->event)
NODE_GETTER(EventWaitNodeGetEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUevent,
            node->event)
NODE_GETTER(MemcpyNodeGetParams, CU_GRAPH_NODE_TYPE_MEMCPY, CUDA_MEMCPY3D,
            *kiln__cpu_copy_params(node->shared->work))
NODE_GETTER(MemsetNodeGetParams, CU_GRAPH_NODE_TYPE_MEMSET,
            CUDA_MEMSET_NODE_PARAMS, *kiln__cpu_fill_params(node->shared->work))
NODE_GETTER(HostNodeGetParams, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS,
            kiln__cpu_host_params(node->shared->work))
NODE_GETTER(MemFreeNodeGetParams, CU_GRAPH_NODE_TYPE_MEM_FREE, CUdeviceptr,
            node->memory != NULL ? node->memory->address : 0)

/* ---- Empty nodes and child-graph nodes ----------------------------------- */

CUresult kiln__cpu_graphAddEmptyNode(CUgraphNode *node, CUgraph graph,
                                     const CUgraphNode *after, size_t n)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

  return kiln__cpu_graphAddNodeV1(node, graph, after, n, &p);
}

CUresult kiln__cpu_graphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
                                          const CUgraphNode *after, size_t n,
                                          CUgraph child)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

  p.graph.graph = child;
  return kiln__cpu_graphAddNodeV1(node, graph, after, n, &p);
}

CUresult kiln__cpu_graphExecChildGraphNodeSetParams(CUgraphExec exec,
                                                    CUgraphNode node,
                                                    CUgraph child)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                         .graph = {.graph = child}};

  return kiln__cpu_graphExecNodeSetParams(exec, node, &p);
}

/* ---- Functions that only pack their arguments ---------------------------- */

/* Defines three functions for one type of node. They add a node, change a node,
 * and change the node's copy in an executable graph. `make` converts the
 * parameters into CUgraphNodeParams. */
#define NODE_FUNCTIONS(kind, version, type, make)                              \
  CUresult kiln__cpu_graphAdd##kind##Node##version(                            \
      CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,    \
      const type *params)                                                      \
  {                                                                            \
    CU_TRY(valid(params != NULL));                                             \
    return kiln__cpu_graphAddNodeV1(node, graph, after, n,                     \
                                    (CUgraphNodeParams[]){make(params)});      \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_graph##kind##NodeSetParams##version(CUgraphNode node,     \
                                                         const type *params)   \
  {                                                                            \
    CU_TRY(valid(params != NULL));                                             \
    return kiln__cpu_graphNodeSetParams(node,                                  \
                                        (CUgraphNodeParams[]){make(params)});  \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_graphExec##kind##NodeSetParams##version(                  \
      CUgraphExec exec, CUgraphNode node, const type *params)                  \
  {                                                                            \
    CU_TRY(valid(params != NULL));                                             \
    return kiln__cpu_graphExecNodeSetParams(                                   \
        exec, node, (CUgraphNodeParams[]){make(params)});                      \
  }

NODE_FUNCTIONS(Kernel, , CUDA_KERNEL_NODE_PARAMS, kernel_params)
NODE_FUNCTIONS(Kernel, V1, CUDA_KERNEL_NODE_PARAMS_v1, kernel_params_v1)
NODE_FUNCTIONS(Host, , CUDA_HOST_NODE_PARAMS, host_params)
NODE_FUNCTIONS(BatchMemOp, , CUDA_BATCH_MEM_OP_NODE_PARAMS, ops_params)

/* Defines the functions of NODE_FUNCTIONS for types of nodes whose context is
 * an argument. A node keeps its context when it is changed. */
#define CONTEXT_NODE_FUNCTIONS(kind, type, make)                               \
  CUresult kiln__cpu_graphAdd##kind##Node(                                     \
      CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,    \
      const type *params, CUcontext context)                                   \
  {                                                                            \
    CU_TRY(valid(params != NULL));                                             \
    return kiln__cpu_graphAddNodeV1(                                           \
        node, graph, after, n, (CUgraphNodeParams[]){make(params, context)});  \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_graph##kind##NodeSetParams(CUgraphNode node,              \
                                                const type *params)            \
  {                                                                            \
    CU_TRY(valid(params != NULL &&                                             \
                 kiln__cpu_live(node, KILN__HANDLE_GRAPH_NODE)));              \
    return kiln__cpu_graphNodeSetParams(                                       \
        node, (CUgraphNodeParams[]){make(params, node->context)});             \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_graphExec##kind##NodeSetParams(                           \
      CUgraphExec exec, CUgraphNode node, const type *params,                  \
      CUcontext context)                                                       \
  {                                                                            \
    CU_TRY(valid(params != NULL));                                             \
    return kiln__cpu_graphExecNodeSetParams(                                   \
        exec, node, (CUgraphNodeParams[]){make(params, context)});             \
  }

CONTEXT_NODE_FUNCTIONS(Memcpy, CUDA_MEMCPY3D, copy_params)
CONTEXT_NODE_FUNCTIONS(Memset, CUDA_MEMSET_NODE_PARAMS, fill_params)

/* Defines the functions for nodes that record an event or wait for an event. */
#define EVENT_NODE_FUNCTIONS(kind, type)                                       \
  CUresult kiln__cpu_graphAdd##kind##Node(CUgraphNode *node, CUgraph graph,    \
                                          const CUgraphNode *after, size_t n,  \
                                          CUevent event)                       \
  {                                                                            \
    return kiln__cpu_graphAddNodeV1(                                           \
        node, graph, after, n,                                                 \
        (CUgraphNodeParams[]){event_params(type, event)});                     \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_graph##kind##NodeSetEvent(CUgraphNode node,               \
                                               CUevent event)                  \
  {                                                                            \
    return kiln__cpu_graphNodeSetParams(                                       \
        node, (CUgraphNodeParams[]){event_params(type, event)});               \
  }                                                                            \
                                                                               \
  CUresult kiln__cpu_graphExec##kind##NodeSetEvent(                            \
      CUgraphExec exec, CUgraphNode node, CUevent event)                       \
  {                                                                            \
    return kiln__cpu_graphExecNodeSetParams(                                   \
        exec, node, (CUgraphNodeParams[]){event_params(type, event)});         \
  }

EVENT_NODE_FUNCTIONS(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
EVENT_NODE_FUNCTIONS(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

/* ---- Kernels ------------------------------------------------------------- */

CUresult kiln__cpu_graphKernelNodeGetParams(CUgraphNode node,
                                            CUDA_KERNEL_NODE_PARAMS *params)
{
  CUresult rc;

  CU_TRY(open_node(node, CU_GRAPH_NODE_TYPE_KERNEL, params));
  rc = kiln__cpu_kernel_work_params(node->shared->work, params);
  if (rc == CUDA_SUCCESS)
    params->ctx = node->context;
  close_node();
  return rc;
}

CUresult
kiln__cpu_graphKernelNodeGetParamsV1(CUgraphNode node,
                                     CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
  CUDA_KERNEL_NODE_PARAMS p = {0};

  CU_TRY(valid(params != NULL));
  CU_TRY(kiln__cpu_graphKernelNodeGetParams(node, &p));
  memcpy(params, &p, sizeof *params);
  return CUDA_SUCCESS;
}

/* ---- Memory -------------------------------------------------------------- */

CUresult kiln__cpu_graphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
                                        const CUgraphNode *after, size_t n,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
  CUgraphNodeParams p;
  CUresult rc;

  CU_TRY(valid(params != NULL));
  p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                          .alloc = *params};
  rc = kiln__cpu_graphAddNodeV1(node, graph, after, n, &p);
  if (rc == CUDA_SUCCESS)
    params->dptr = p.alloc.dptr;
  return rc;
}

CUresult
kiln__cpu_graphMemAllocNodeGetParams(CUgraphNode node,
                                     CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
  CU_TRY(open_node(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params));
  *params = node->memory->params;
  params->dptr = node->memory->address;
  close_node();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_graphAddMemFreeNode(CUgraphNode *node, CUgraph graph,
                                       const CUgraphNode *after, size_t n,
                                       CUdeviceptr address)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
                         .free = {.dptr = address}};

  return kiln__cpu_graphAddNodeV1(node, graph, after, n, &p);
}

/* ---- Memory operations --------------------------------------------------- */

CUresult
kiln__cpu_graphBatchMemOpNodeGetParams(CUgraphNode node,
                                       CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
  CU_TRY(open_node(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, params));
  *params = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = node->context};
  params->paramArray =
      kiln__cpu_mem_ops_params(node->shared->work, &params->count);
  close_node();
  return CUDA_SUCCESS;
}
