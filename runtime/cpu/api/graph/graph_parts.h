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
  uint64_t launch; /* number of the launch that allocated the memory */
} kiln__cpu_graph_memory;

/* ---- Bytes that graphs use; defined in graph_footprint.c ----------------- */

/* What a launch allocates and frees. The caller sets `launch` to the number of the
 * launch and all other members to 0. */
typedef struct kiln__cpu_graph_demand {
  uint64_t launch;
  uint64_t live, peak; /* allocated now, and at most */
  uint64_t foreign;    /* freed memory of other launches */
} kiln__cpu_graph_demand;

/* Counts an alloc node. Returns false if its memory is still allocated, unless
 * `again` allows a launch to free it. The caller holds machine.graph_lock. */
bool kiln__cpu_footprint_alloc(kiln__cpu_graph_demand *demand,
                               kiln__cpu_graph_memory *memory, bool again);
/* Counts a free node, whose memory may be NULL. The caller holds
 * machine.graph_lock. */
void kiln__cpu_footprint_free(kiln__cpu_graph_demand *demand,
                              kiln__cpu_graph_memory *memory);
/* Counts the launch itself, after all its nodes. */
void kiln__cpu_footprint_launch(CUstream stream,
                                const kiln__cpu_graph_demand *demand);
/* Counts a free outside of graphs. */
void kiln__cpu_footprint_freed(kiln__cpu_graph_memory *memory);

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

/* ---- Conditional nodes --------------------------------------------------- */

/* The value behind a conditional handle. The handle is the address of this
 * struct, and of an address range over `value` that kernels write through
 * cudaGraphSetConditional(). Copies of a graph share the value. */
typedef struct kiln__cpu_condition {
  _Atomic uint32_t value;
  atomic_uint refs;
  uint64_t address;  /* handle, which is a device address of `value` */
  uint32_t initial;  /* value at the start of each launch of the graph */
  bool assigns;      /* true if launches store `initial` */
  bool used;         /* true if a node has this condition */
  CUcontext context; /* context of the handle */
} kiln__cpu_condition;

typedef struct kiln__cpu_condition_list {
  kiln__cpu_condition *condition;
  struct kiln__cpu_condition_list *next;
} kiln__cpu_condition_list;

/* The bodies of a conditional node, which the node owns. */
typedef struct kiln__cpu_branches {
  kiln__cpu_condition *condition;
  CUgraphConditionalNodeType type;
  unsigned n;
  CUgraph graphs[]; /* n graphs */
} kiln__cpu_branches;

/* These functions are defined in graph_condition.c. Unless stated otherwise,
 * the caller holds machine.graph_lock.
 *
 * The first function checks the parameters of a conditional node, makes its
 * empty body graphs and stores their array in params->phGraph_out. Without
 * `graph`, which is the graph that will contain the node, it returns
 * CUDA_ERROR_NOT_SUPPORTED. It locks machine.graph_lock itself. */
CUresult kiln__cpu_branches_make(kiln__cpu_branches **out, CUgraph graph,
                                 CUDA_CONDITIONAL_NODE_PARAMS *params);
/* Copies the bodies. Returns NULL if there is no memory. */
kiln__cpu_branches *kiln__cpu_branches_copy(const kiln__cpu_branches *from,
                                            CUgraph parent, bool is_exec);
/* Frees the bodies. `branches` may be NULL. */
void kiln__cpu_branches_free(kiln__cpu_branches *branches);
/* Makes `parent` the graph that contains the bodies. */
void kiln__cpu_branches_adopt(kiln__cpu_branches *branches, CUgraph parent);
/* Checks that the bodies contain only types of nodes that may run more than
 * once. Returns CUDA_SUCCESS or CUDA_ERROR_NOT_SUPPORTED. */
CUresult kiln__cpu_branches_check(const kiln__cpu_branches *branches);
/* Returns the body that runs next, given the number of bodies that have run
 * already. Returns -1 after the last one. Needs no lock. */
int kiln__cpu_branches_next(const kiln__cpu_condition *condition,
                            CUgraphConditionalNodeType type, unsigned n,
                            unsigned long long done);
/* Functions on the reference count of a condition, which may be NULL. They need
 * no lock. */
kiln__cpu_condition *kiln__cpu_condition_hold(kiln__cpu_condition *condition);
void kiln__cpu_condition_drop(kiln__cpu_condition *condition);
/* Copy and free the list of a graph's conditions. The first function returns
 * false if there is no memory. */
bool kiln__cpu_conditions_copy(CUgraph to, CUgraph from);
void kiln__cpu_conditions_drop_all(CUgraph graph);

/* ---- Attributes of kernel nodes ------------------------------------------ */

/* An attribute that has no effect on the CPU device, such as the priority. */
typedef struct kiln__cpu_hint {
  CUlaunchAttribute attribute;
  struct kiln__cpu_hint *next;
} kiln__cpu_hint;

/* These functions are defined in graph_attributes.c. The caller holds
 * machine.graph_lock. The first function copies the hints of a node and returns
 * false if there is no memory. The third makes a new launch cooperative, and
 * gives it the cluster dimensions, as the other launch. */
bool kiln__cpu_hints_copy(CUgraphNode to, const struct CUgraphNode_st *from);
void kiln__cpu_hints_drop(CUgraphNode node);
CUresult kiln__cpu_launch_like(kiln__cpu_work *work,
                               const kiln__cpu_work *other);

/* The parameters of a node after they were checked and copied. Defined in
 * graph_node.c. */
typedef struct kiln__cpu_node_parts {
  CUgraphNodeType type;
  CUcontext context;
  kiln__cpu_shared *shared;
  CUgraph child; /* copy of the child graph that the program passed */
  CUevent event;
  kiln__cpu_graph_memory *memory;
  kiln__cpu_branches *branches;
} kiln__cpu_node_parts;
/* Checks and copies the parameters of a node of any type. `graph` is the graph
 * that gets a new node, or NULL if a node is changed. On success the caller
 * owns the copies, and either swaps them into a node or frees them with
 * kiln__cpu_node_parts_drop(). The caller must not hold machine.graph_lock,
 * neither for this call nor for the free. Returns the result codes of
 * cuGraphAddNode. */
CUresult kiln__cpu_node_parts_make(kiln__cpu_node_parts *out, CUgraph graph,
                                   CUgraphNodeParams *params);
void kiln__cpu_node_parts_drop(kiln__cpu_node_parts *parts);
/* Exchanges the parameters of the node with those in *parts, so that the caller
 * can free the old parameters. The caller holds machine.graph_lock. */
void kiln__cpu_node_parts_swap(CUgraphNode node, kiln__cpu_node_parts *parts);

/* Returns whether a capture is building this graph. The caller holds
 * machine.graph_lock. Defined in graph_capture.c. */
bool kiln__cpu_graph_in_capture(CUgraph graph);

#endif
