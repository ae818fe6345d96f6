/* graph_parts.h -- what graphs own beside nodes: memory, user objects. */
#ifndef KILN_CPU_GRAPH_PARTS_H
#define KILN_CPU_GRAPH_PARTS_H

#include "graph.h"

/* Memory at a fixed address, of an alloc node; shared by copies of the node and
 * by the node that frees it. */
typedef struct kiln__cpu_graph_memory {
  atomic_uint refs;
  CUdeviceptr address;
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  atomic_bool allocated; /* after a launch with the alloc node, until freed */
} kiln__cpu_graph_memory;

CUresult kiln__cpu_graph_memory_new(kiln__cpu_graph_memory **out,
                                    const CUDA_MEM_ALLOC_NODE_PARAMS *params);
kiln__cpu_graph_memory *
kiln__cpu_graph_memory_hold(kiln__cpu_graph_memory *memory);
void kiln__cpu_graph_memory_drop(kiln__cpu_graph_memory *memory);

/* graph_object.c: the references to user objects that a graph holds. Under
 * machine.graph_lock. */
bool kiln__cpu_held_copy(CUgraph to, CUgraph from); /* false: no memory */
void kiln__cpu_held_drop_all(CUgraph graph);

/* graph_node.c: what parameters of any kind mean. */
typedef struct kiln__cpu_node_parts {
  CUgraphNodeType type;
  CUcontext context;
  kiln__cpu_shared *shared;
  CUgraph child; /* a copy */
  CUevent event;
  kiln__cpu_graph_memory *memory;
} kiln__cpu_node_parts;
/* The calling thread holds machine.graph_lock in neither. On success the parts are
 * the caller's: put them into a node, or drop them. */
CUresult kiln__cpu_node_parts_make(kiln__cpu_node_parts *out,
                                   CUgraphNodeParams *params);
void kiln__cpu_node_parts_drop(kiln__cpu_node_parts *parts);
/* Exchange the node's for these; the caller drops what it gets back. */
void kiln__cpu_node_parts_swap(CUgraphNode node, kiln__cpu_node_parts *parts);

/* graph_capture.c: does a capture build this graph? Under machine.graph_lock. */
bool kiln__cpu_graph_in_capture(CUgraph graph);

#endif
