/* graph_exec.h -- executable graphs: snapshots of graphs that streams run. */
#ifndef KILN_CPU_GRAPH_EXEC_H
#define KILN_CPU_GRAPH_EXEC_H

#include "graph_parts.h"

struct CUgraphExec_st {
  CUgraph graph;      /* the snapshot; its nodes keep their numbers */
  CUgraphNode *order; /* its nodes in topological order */
  uint64_t flags;
  kiln__cpu_mark *last; /* its last launch, which the next one waits for */
};

/* Exchanges the parts of the copy of `node` in the executable graph. The caller
 * holds machine.graph_lock. CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE: the node
 * belongs to another graph, or its copy has another type. */
CUresult kiln__cpu_exec_change(CUgraphExec exec, CUgraphNode node,
                               kiln__cpu_node_parts *parts);

#endif
