/* graph_exec.h -- executables: snapshots of graphs that streams can run. */
#ifndef KILN_CPU_GRAPH_EXEC_H
#define KILN_CPU_GRAPH_EXEC_H

#include "graph_parts.h"

struct CUgraphExec_st {
  CUgraph graph;      /* the snapshot; nodes keep their numbers */
  CUgraphNode *order; /* its nodes, each after what it depends on */
  uint64_t flags;
  kiln__cpu_mark *last; /* its last launch: launches of it do not overlap */
};

/* Exchange the parts of what `node` became; under machine.graph_lock.
 * CUDA_ERROR_INVALID_VALUE: it is of another graph. */
CUresult kiln__cpu_exec_change(CUgraphExec exec, CUgraphNode node,
                               kiln__cpu_node_parts *parts);

#endif
