/* graph_parts.h -- declares the checked parameters of graph nodes, and the
 * memory and user objects that graphs own. */
#ifndef KILN_CPU_GRAPH_PARTS_H
#define KILN_CPU_GRAPH_PARTS_H

#include "graph.h"

/* The memory of a graph's alloc node. Its address is fixed when the node is
 * created. Copies of the alloc node and the corresponding free node share this
 * object. */
typedef struct kiln__cpu_graph_memory {
  atomic_uint refs;
  CUdeviceptr address;
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  /* true from the launch of the alloc node until the memory is freed */
  atomic_bool allocated;
} kiln__cpu_graph_memory;

CUresult kiln__cpu_graph_memory_new(kiln__cpu_graph_memory **out,
                                    const CUDA_MEM_ALLOC_NODE_PARAMS *params);
kiln__cpu_graph_memory *
kiln__cpu_graph_memory_hold(kiln__cpu_graph_memory *memory);
void kiln__cpu_graph_memory_drop(kiln__cpu_graph_memory *memory);

/* Functions on the references to user objects that a graph holds. Defined in
 * graph_object.c. The caller holds machine.graph_lock. */
/* The first function copies the references of a graph. It returns false if out
 * of memory. */
bool kiln__cpu_held_copy(CUgraph to, CUgraph from);
void kiln__cpu_held_drop_all(CUgraph graph);

/* The parameters of a node after they were checked and copied. Defined in
 * graph_node.c. */
typedef struct kiln__cpu_node_parts {
  CUgraphNodeType type;
  CUcontext context;
  kiln__cpu_shared *shared;
  CUgraph child; /* copy of the child graph that the program passed */
  CUevent event;
  kiln__cpu_graph_memory *memory;
} kiln__cpu_node_parts;
/* Checks and copies the parameters of a node of any type. On success the caller
 * owns the copies, and either swaps them into a node or frees them with
 * kiln__cpu_node_parts_drop(). The caller must not hold machine.graph_lock,
 * neither for this call nor for the free. Returns the result codes of
 * cuGraphAddNode. */
CUresult kiln__cpu_node_parts_make(kiln__cpu_node_parts *out,
                                   CUgraphNodeParams *params);
void kiln__cpu_node_parts_drop(kiln__cpu_node_parts *parts);
/* Exchanges the parameters of the node with those in *parts, so that the caller
 * can free the old parameters. The caller holds machine.graph_lock. */
void kiln__cpu_node_parts_swap(CUgraphNode node, kiln__cpu_node_parts *parts);

/* Returns whether a capture is building this graph. The caller holds
 * machine.graph_lock. Defined in graph_capture.c. */
bool kiln__cpu_graph_in_capture(CUgraph graph);

#endif
