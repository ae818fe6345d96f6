/* graph_exec.h -- declares executable graphs, which are snapshots of graphs
 * that streams run. */
#ifndef KILN_CPU_GRAPH_EXEC_H
#define KILN_CPU_GRAPH_EXEC_H

#include "graph_parts.h"

struct CUgraphExec_st {
  CUgraph graph;      /* snapshot of the graph; its nodes keep their numbers */
  CUgraphNode *order; /* nodes of `graph` in topological order */
  uint64_t flags;
  /* mark of the last launch; the next launch waits for this mark */
  kiln__cpu_mark *last;
};

/* Exchanges the parts of the copy of `node` in the executable graph. The caller
 * holds machine.graph_lock. Returns CUDA_SUCCESS. Returns
 * CUDA_ERROR_INVALID_VALUE if the node belongs to another graph or its copy has
 * another type. */
CUresult kiln__cpu_exec_change(CUgraphExec exec, CUgraphNode node,
                               kiln__cpu_node_parts *parts);

#endif
