/* graph_parts.h -- what graphs own beside nodes: memory, user objects. */
#ifndef KILN_CPU_GRAPH_PARTS_H
#define KILN_CPU_GRAPH_PARTS_H

#include "graph.h"

/* Memory at a fixed address, of an alloc node; shared by copies of the node and
 * by the node that frees it. */
typedef struct kiln__graph_memory {
  atomic_uint refs;
  CUdeviceptr address;
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  atomic_bool allocated; /* after a launch with the alloc node, until freed */
} kiln__graph_memory;

CUresult kiln__graph_memory_new(kiln__graph_memory **out,
                                const CUDA_MEM_ALLOC_NODE_PARAMS *params);
kiln__graph_memory *kiln__graph_memory_hold(kiln__graph_memory *memory);
void kiln__graph_memory_drop(kiln__graph_memory *memory);

/* graph_object.c: the references to user objects that a graph holds. Under
 * machine.lock. */
bool kiln__held_copy(CUgraph to, CUgraph from); /* false: no memory */
void kiln__held_drop_all(CUgraph graph);

#endif
