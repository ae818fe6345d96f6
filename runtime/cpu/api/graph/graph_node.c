/* graph_node.c -- adds and changes nodes of all types through
 * CUgraphNodeParams.
 *
 * CUgraphNodeParams holds the parameters of any type of node. This file checks
 * the parameters and copies them into a kiln__cpu_node_parts. graph_params.c
 * implements the older functions, which exist per type of node, on top of this
 * file. */
#include "../context/api_context.h"
#include "../memory/api_memory.h"
#include "graph_exec.h"

/* ---- Checked parameters of a node ---------------------------------------- */

/* Stores the context of a node: the context `given`, or the current context if
 * `given` is NULL. */
static CUresult context_for(CUcontext given, CUcontext *out)
{
  *out = given != NULL ? given : kiln__cpu_current_or_null();
  return kiln__cpu_known(*out, KILN__HANDLE_CONTEXT);
}

/* Makes the work of a graph node. Empty nodes, for example, have no work. */
static CUresult work_for(CUgraphNodeParams *p, CUcontext *context,
                         kiln__cpu_work **work)
{
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    CU_TRY(context_for(p->kernel.ctx, context));
    return kiln__cpu_kernel_work(*context, &p->kernel, work);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    CU_TRY(context_for(p->memcpy.copyCtx, context));
    return kiln__cpu_copy_work(*context, &p->memcpy.copyParams, work);
  case CU_GRAPH_NODE_TYPE_MEMSET: {
    const CUDA_MEMSET_NODE_PARAMS m = {.dst = p->memset.dst,
                                       .pitch = p->memset.pitch,
                                       .value = p->memset.value,
                                       .elementSize = p->memset.elementSize,
                                       .width = p->memset.width,
                                       .height = p->memset.height};

    CU_TRY(context_for(p->memset.ctx, context));
    return kiln__cpu_fill_work(*context, &m, work);
  }
  case CU_GRAPH_NODE_TYPE_HOST:
    return kiln__cpu_host_work(p->host.fn, p->host.userData, work);
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    CU_TRY(context_for(p->memOp.ctx, context));
    CU_TRY(valid(p->memOp.flags == 0));
    return kiln__cpu_mem_ops_work(*context, p->memOp.count, p->memOp.paramArray,
                                  work);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult copy_child(kiln__cpu_node_parts *out, CUgraph child)
{
  CU_TRY(kiln__cpu_known(child, KILN__HANDLE_GRAPH));
  lock_graphs();
  out->child = kiln__cpu_graph_copy(child, false);
  unlock_graphs();
  return allocated(out->child);
}

static CUresult alloc_memory(kiln__cpu_node_parts *out,
                             CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
  CUresult rc;

  CU_TRY(valid(p->bytesize != 0 &&
               p->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
               p->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE));
  CU_TRY(kiln__cpu_known_device(p->poolProps.location.id));
  rc = kiln__cpu_graph_memory_new(&out->memory, p);
  if (rc == CUDA_SUCCESS)
    p->dptr = out->memory->address;
  return rc;
}

static CUresult memory_to_free(kiln__cpu_node_parts *out, CUdeviceptr address)
{
  kiln__cpu_block_info info;

  CU_TRY(valid(kiln__cpu_block_at(address, &info) && info.graph != NULL));
  out->memory = kiln__cpu_graph_memory_hold(info.graph);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_node_parts_make(kiln__cpu_node_parts *out, CUgraph graph,
                                   CUgraphNodeParams *params)
{
  kiln__cpu_work *work = NULL;

  *out = (kiln__cpu_node_parts){.type = params->type};
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_EMPTY:
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return copy_child(out, params->graph.graph);
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
  /* The union members eventWait and eventRecord have the same layout. */
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    out->event = params->eventWait.event;
    return valid(kiln__cpu_live(out->event, KILN__HANDLE_EVENT));
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return alloc_memory(out, &params->alloc);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    return memory_to_free(out, params->free.dptr);
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    out->context = params->conditional.ctx;
    return kiln__cpu_branches_make(&out->branches, graph, &params->conditional);
  case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
  case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    break;
  }
  CU_TRY(work_for(params, &out->context, &work));
  out->shared = kiln__cpu_share(work);
  if (out->shared == NULL) {
    work->free(work);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

void kiln__cpu_node_parts_drop(kiln__cpu_node_parts *parts)
{
  kiln__cpu_share_drop(parts->shared);
  kiln__cpu_graph_memory_drop(parts->memory);
  if (parts->child != NULL || parts->branches != NULL) {
    lock_graphs();
    kiln__cpu_graph_free(parts->child);
    kiln__cpu_branches_free(parts->branches);
    unlock_graphs();
  }
  *parts = (kiln__cpu_node_parts){0};
}

void kiln__cpu_node_parts_swap(CUgraphNode node, kiln__cpu_node_parts *parts)
{
  const kiln__cpu_node_parts old = {.type = node->type,
                                    .context = node->context,
                                    .shared = node->shared,
                                    .child = node->child,
                                    .event = node->event,
                                    .memory = node->memory,
                                    .branches = node->branches};

  node->context = parts->context;
  node->shared = parts->shared;
  node->child = parts->child;
  node->event = parts->event;
  node->memory = parts->memory;
  node->branches = parts->branches;
  kiln__cpu_branches_adopt(node->branches, node->graph);
  if (node->child != NULL)
    node->child->parent = node->graph;
  *parts = old;
}

/* ---- Adding nodes -------------------------------------------------------- */

/* Checks that all dependencies are live nodes of this graph, and that no
 * dependency occurs twice. */
static CUresult check_after(CUgraph graph, const CUgraphNode *after, size_t n)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(kiln__cpu_live(graph, KILN__HANDLE_GRAPH) &&
               (after != NULL || n == 0)));
  for (size_t i = 0; i < n; i++) {
    CU_TRY(valid(kiln__cpu_live(after[i], KILN__HANDLE_GRAPH_NODE) &&
                 after[i]->graph == graph));
    for (size_t k = 0; k < i; k++) {
      CU_TRY(valid(after[k] != after[i]));
    }
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_graphAddNodeV1(CUgraphNode *node, CUgraph graph,
                                  const CUgraphNode *after, size_t n,
                                  CUgraphNodeParams *params)
{
  kiln__cpu_node_parts parts;
  CUgraphNode made;
  CUresult rc;

  CU_TRY(check_after(graph, after, n));
  CU_TRY(valid(node != NULL && params != NULL));
  rc = kiln__cpu_node_parts_make(&parts, graph, params);
  if (rc == CUDA_SUCCESS) {
    lock_graphs();
    made = kiln__cpu_node_new(graph, params->type, after, n);
    if (made != NULL) {
      kiln__cpu_node_parts_swap(made, &parts);
      *node = made;
    } else {
      rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    unlock_graphs();
  }
  kiln__cpu_node_parts_drop(&parts);
  return rc;
}

/* ---- Changing nodes ------------------------------------------------------ */

static bool can_change(CUgraphNodeType type)
{
  return type != CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
         type != CU_GRAPH_NODE_TYPE_MEM_FREE &&
         type != CU_GRAPH_NODE_TYPE_EMPTY;
}

/* Changes the parameters of the node if `exec` is NULL. Otherwise changes the
 * parameters of the node's copy in the executable graph `exec`. */
static CUresult change(CUgraphExec exec, CUgraphNode node,
                       CUgraphNodeParams *params)
{
  kiln__cpu_node_parts parts;
  CUresult rc;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(params != NULL &&
               kiln__cpu_live(node, KILN__HANDLE_GRAPH_NODE) &&
               node->type == params->type && can_change(params->type)));
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && exec == NULL)
    return CUDA_ERROR_NOT_SUPPORTED;
  rc = kiln__cpu_node_parts_make(&parts, NULL, params);
  if (rc == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_KERNEL)
    rc = kiln__cpu_launch_like(parts.shared->work, node->shared->work);
  if (rc == CUDA_SUCCESS) {
    lock_graphs();
    if (exec != NULL)
      rc = kiln__cpu_exec_change(exec, node, &parts);
    else
      kiln__cpu_node_parts_swap(node, &parts);
    unlock_graphs();
  }
  kiln__cpu_node_parts_drop(&parts);
  return rc;
}

CUresult kiln__cpu_graphNodeSetParams(CUgraphNode node,
                                      CUgraphNodeParams *params)
{
  return change(NULL, node, params);
}

CUresult kiln__cpu_graphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          CUgraphNodeParams *params)
{
  CU_TRY(kiln__cpu_ready_with(exec, KILN__HANDLE_GRAPH_EXEC));
  return change(exec, node, params);
}
