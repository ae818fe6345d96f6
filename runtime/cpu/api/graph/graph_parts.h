/* graph_parts.h -- what nodes are made of, and what graphs own beside nodes:
 * memory and user objects. */
#ifndef KILN_CPU_GRAPH_PARTS_H
#define KILN_CPU_GRAPH_PARTS_H

#include "graph.h"

/* The memory of an alloc node. It has one address from the creation of the node
 * on, which copies of the node and the node that frees it share. */
typedef struct kiln__cpu_graph_memory {
  atomic_uint refs;
  CUdeviceptr address;
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  atomic_bool allocated; /* from a launch of the alloc node until it is freed */
} kiln__cpu_graph_memory;

CUresult kiln__cpu_graph_memory_new(kiln__cpu_graph_memory **out,
                                    const CUDA_MEM_ALLOC_NODE_PARAMS *params);
kiln__cpu_graph_memory *
kiln__cpu_graph_memory_hold(kiln__cpu_graph_memory *memory);
void kiln__cpu_graph_memory_drop(kiln__cpu_graph_memory *memory);

/* graph_object.c: the references to user objects that a graph holds. The caller
 * holds machine.graph_lock. */
bool kiln__cpu_held_copy(CUgraph to, CUgraph from); /* false: no memory */
void kiln__cpu_held_drop_all(CUgraph graph);

/* graph_node.c: the checked and copied form of a node's parameters. */
typedef struct kiln__cpu_node_parts {
  CUgraphNodeType type;
  CUcontext context;
  kiln__cpu_shared *shared;
  CUgraph child; /* a copy */
  CUevent event;
  kiln__cpu_graph_memory *memory;
} kiln__cpu_node_parts;
/* Checks and copies parameters of any kind. On success the caller owns the
 * parts: it swaps them into a node or drops them. The caller must not hold
 * machine.graph_lock, here nor for the drop. Codes as of cuGraphAddNode. */
CUresult kiln__cpu_node_parts_make(kiln__cpu_node_parts *out,
                                   CUgraphNodeParams *params);
void kiln__cpu_node_parts_drop(kiln__cpu_node_parts *parts);
/* Exchanges the node's parts for these, so that the caller drops the old ones.
 * The caller holds machine.graph_lock. */
void kiln__cpu_node_parts_swap(CUgraphNode node, kiln__cpu_node_parts *parts);

/* graph_capture.c: does a capture build this graph? The caller holds
 * machine.graph_lock. */
bool kiln__cpu_graph_in_capture(CUgraph graph);

#endif
