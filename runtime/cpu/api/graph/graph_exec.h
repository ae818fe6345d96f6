/* graph_exec.h -- declares executable graphs, which are snapshots of graphs
 * that streams run. */
#ifndef KILN_CPU_GRAPH_EXEC_H
#define KILN_CPU_GRAPH_EXEC_H

#include "graph_parts.h"

struct CUgraphExec_st {
  CUgraph graph;      /* copy of the graph; its nodes have the same numbers */
  CUgraph source;     /* graph with memory nodes that it was made of, or NULL */
  CUgraphNode *order; /* nodes of `graph` in topological order */
  uint64_t flags;
  /* queue entry of the last launch; the next launch waits for it */
  kiln__cpu_mark *last;
};

/* Exchanges the parameters of the copy of `node` in the executable graph with
 * those in *parts. The caller holds machine.graph_lock. Returns CUDA_SUCCESS.
 * Returns CUDA_ERROR_INVALID_VALUE if the node belongs to another graph or its
 * copy has another type. */
CUresult kiln__cpu_exec_change(CUgraphExec exec, CUgraphNode node,
                               kiln__cpu_node_parts *parts);

#endif
