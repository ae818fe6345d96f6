/* graph.h -- declares graphs as data, the work of graph nodes, and stream
 * captures.
 *
 * machine.graph_lock guards all of this state. The exception is the state that
 * an executable graph reads while it runs. */
#ifndef KILN_CPU_GRAPH_H
#define KILN_CPU_GRAPH_H

#include "../stream/streams.h"

/* Greatest stream priority. Priorities range from 0, the lowest, to this
 * value. */
enum { KILN__GREATEST_PRIORITY = -5 };

static inline void lock_graphs(void)
{
  pthread_mutex_lock(&machine()->graph_lock);
}

static inline void unlock_graphs(void)
{
  pthread_mutex_unlock(&machine()->graph_lock);
}

/* ---- Graphs -------------------------------------------------------------- */

/* The work of a graph node, which the node shares with its clones and with its
 * copies in executable graphs. Shared work never changes: setting a node's
 * parameters gives the node new work. */
typedef struct kiln__cpu_shared {
  atomic_uint refs;
  kiln__cpu_work *work;
} kiln__cpu_shared;

struct CUgraphNode_st {
  CUgraph graph;
  CUgraphNodeType type;
  /* number of the node in order of creation; copies of the node have the same
   * number */
  uint64_t number;
  CUcontext context; /* context of the node; NULL if the node needs none */
  /* work of the node; NULL for empty nodes and child-graph nodes */
  kiln__cpu_shared *shared;
  CUgraph child;
  /* event of an event-record or event-wait node */
  CUevent event;
  struct kiln__cpu_graph_memory *memory; /* memory of an alloc or free node */
  struct kiln__cpu_branches *branches;   /* bodies of a conditional node */
  struct kiln__cpu_hint *hints; /* attributes that a kernel node only stores */
  bool enabled;
  CUgraphNode *after; /* array of nodes that this node depends on */
  size_t n_after, capacity;
  CUgraphNode next; /* next node of the graph, in order of creation */
  size_t mark;      /* number that a graph traversal stores in the node */
};

struct CUgraph_st {
  CUgraphNode first, last;
  size_t n;
  uint64_t id, cloned_from;
  uint64_t numbers; /* number of the newest node */
  /* graph that contains this child graph as a node; the child graph is
   * destroyed with that node */
  CUgraph parent;
  /* true if the graph belongs to an executable graph; its nodes are then not
   * live handles */
  bool is_exec;
  /* the executable graph that was made of this graph, if it has memory nodes; a
   * second one cannot be made before this one is destroyed */
  CUgraphExec instance;
  struct kiln__cpu_held *held; /* user objects that the graph keeps alive */
  /* conditional handles that were created for this graph */
  struct kiln__cpu_condition_list *conditions;
};

/* Wraps `work` in a kiln__cpu_shared, which then owns the work and has one
 * reference. Returns NULL if there is no memory; then the caller still owns the
 * work. */
kiln__cpu_shared *kiln__cpu_share(kiln__cpu_work *work);
/* Functions on the reference count of shared work. The first function adds a
 * reference, the second releases one. Both accept NULL and then do nothing. The
 * work is freed with its last reference. */
kiln__cpu_shared *kiln__cpu_share_hold(kiln__cpu_shared *shared);
void kiln__cpu_share_drop(kiln__cpu_shared *shared);

/* Makes an empty graph. If `is_exec` is true, neither the graph nor its nodes
 * become live handles. Returns NULL if there is no memory. */
CUgraph kiln__cpu_graph_new(bool is_exec);
/* Frees the graph, its nodes and its child graphs. `graph` may be NULL. */
void kiln__cpu_graph_free(CUgraph graph);
/* Copies a graph. The copied nodes share the work of the original nodes and
 * keep their numbers. Child graphs are copied, too. Returns NULL if there is no
 * memory. */
CUgraph kiln__cpu_graph_copy(CUgraph graph, bool is_exec);
/* Adds a node that depends on the `n` nodes of `after`, which belong to the
 * same graph. Returns the node, or NULL if there is no memory. */
CUgraphNode kiln__cpu_node_new(CUgraph graph, CUgraphNodeType type,
                               const CUgraphNode *after, size_t n);
/* Frees the node, and the edges to and from the node. */
void kiln__cpu_node_free(CUgraphNode node);
/* Returns whether there is an edge from `before` to `node`. */
bool kiln__cpu_node_has_edge(CUgraphNode node, CUgraphNode before);
/* Adds an edge from `before` to `node`, unless this edge exists already.
 * Returns false if there is no memory. */
bool kiln__cpu_node_depend(CUgraphNode node, CUgraphNode before);
/* Removes the edge from `before` to `node`. Returns false if there was no such
 * edge. */
bool kiln__cpu_node_undepend(CUgraphNode node, CUgraphNode before);
/* Returns the graph's node with this number, or NULL if there is none. */
CUgraphNode kiln__cpu_node_numbered(CUgraph graph, uint64_t number);
/* Returns true if `node` is one of the `n` nodes of `of`, or if one of these
 * nodes depends on `node`. The dependency may be indirect. Returns false
 * otherwise, and if there is no memory. */
bool kiln__cpu_node_reaches(CUgraph graph, CUgraphNode node,
                            const CUgraphNode *of, size_t n);
/* Stores a topological order of the nodes in an array that the caller frees
 * with kiln__free(). Returns false if the graph has a cycle. Also returns
 * false, and sets *order to NULL, if there is no memory. */
bool kiln__cpu_graph_order(CUgraph graph, CUgraphNode **order);

/* ---- Work of graph nodes ------------------------------------------------- */

/* Each pair of functions converts between the parameters of a node and its
 * work. The first function makes work that holds a copy of the parameters. The
 * second function returns parameters that point into the work. The first
 * functions return CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_copy_work(CUcontext context, const CUDA_MEMCPY3D *params,
                             kiln__cpu_work **out);
const CUDA_MEMCPY3D *kiln__cpu_copy_params(const kiln__cpu_work *work);
CUresult kiln__cpu_fill_work(CUcontext context,
                             const CUDA_MEMSET_NODE_PARAMS *params,
                             kiln__cpu_work **out);
const CUDA_MEMSET_NODE_PARAMS *
kiln__cpu_fill_params(const kiln__cpu_work *work);
CUresult kiln__cpu_host_work(CUhostFn fn, void *user, kiln__cpu_work **out);
CUDA_HOST_NODE_PARAMS kiln__cpu_host_params(const kiln__cpu_work *work);
CUresult kiln__cpu_mem_ops_work(CUcontext context, unsigned n,
                                const CUstreamBatchMemOpParams *ops,
                                kiln__cpu_work **out);
CUstreamBatchMemOpParams *kiln__cpu_mem_ops_params(kiln__cpu_work *work,
                                                   unsigned *n);

/* ---- Captures ------------------------------------------------------------ */

/* The capture functions lock machine.graph_lock themselves. If a capture
 * forbids the call, they invalidate the capture and return one of the driver's
 * codes CUDA_ERROR_STREAM_CAPTURE_*. If no capture is active, each call costs
 * one atomic load. */

/* Offers work to the stream's capture. If the stream captures, the work becomes
 * a node of the captured graph, the node owns the work, and *taken is set to
 * true. On failure the caller still owns the work. `wait` specifies that the
 * call would wait for the work, which captures forbid. */
CUresult kiln__cpu_capture_work(CUstream stream, kiln__cpu_work *work,
                                bool wait, bool *taken);
/* Makes a node of another type in the graph that the stream captures. The
 * caller fills in the node. On success, machine.graph_lock is held until
 * kiln__cpu_capture_node_done(). On failure, or if the stream does not capture,
 * *node is NULL and the lock is not held. */
CUresult kiln__cpu_capture_node(CUstream stream, CUgraphNodeType type,
                                CUgraphNode *node);
void kiln__cpu_capture_node_done(void);
/* Returns whether the stream `handle` captures. Returns false if `handle` is
 * not a stream. */
bool kiln__cpu_is_capturing(CUcontext context, CUstream handle);
/* Check whether captures allow the program to wait for a stream or a context,
 * or to query a stream. They are called before the wait or the query. */
CUresult kiln__cpu_capture_sync(CUstream stream);
CUresult kiln__cpu_capture_sync_context(CUcontext context);
/* Add an event record, or a wait of a stream for an event, to a capture. They
 * are called before the operation. If the operation became part of a capture,
 * *taken is true and the caller has nothing left to do. */
CUresult kiln__cpu_capture_record(CUevent event, CUstream stream,
                                  unsigned flags, bool *taken);
CUresult kiln__cpu_capture_wait(CUstream stream, CUevent event, unsigned flags,
                                bool *taken);
/* Checks whether captures allow the program to query an event or to wait for
 * the event. Returns CUDA_ERROR_CAPTURED_EVENT if the event was last recorded
 * in a capture. */
CUresult kiln__cpu_capture_event(CUevent event);
/* Removes a stream that is being destroyed from its capture. A capture that the
 * stream began ends; a capture that the stream joined continues without the
 * stream. */
void kiln__cpu_capture_forget(CUstream stream);

/* Releases the cached memory of each memory pool above the pool's release
 * threshold. Called when the program waits for a stream or a context. Defined
 * in memory/memory_pool.c. */
void kiln__cpu_pools_settle(CUcontext context);

#endif
