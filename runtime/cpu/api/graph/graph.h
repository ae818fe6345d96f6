/* graph.h -- graphs as data, the work of their nodes, and stream captures.
 *
 * machine.graph_lock guards all of it, except what an executable graph reads
 * while it runs. */
#ifndef KILN_CPU_GRAPH_H
#define KILN_CPU_GRAPH_H

#include "../stream/streams.h"

/* The range of stream priorities is 0, the least, to this. */
enum { KILN__GREATEST_PRIORITY = -5 };

static inline void lock_graphs(void)
{
  pthread_mutex_lock(&machine()->graph_lock);
}

static inline void unlock_graphs(void)
{
  pthread_mutex_unlock(&machine()->graph_lock);
}

/* ---- Graphs -------------------------------------------------------------------- */

/* Work that a node, its clones and its copies in executable graphs share. Work
 * never changes: setting a node's parameters gives the node other work. */
typedef struct kiln__cpu_shared {
  atomic_uint refs;
  kiln__cpu_work *work;
} kiln__cpu_shared;

struct CUgraphNode_st {
  CUgraph graph;
  CUgraphNodeType type;
  uint64_t number;          /* order of creation; copies keep it */
  CUcontext context;        /* NULL: the node needs none */
  kiln__cpu_shared *shared; /* NULL: it does nothing, or has a child graph */
  CUgraph child;
  CUevent event;                         /* record and wait nodes */
  struct kiln__cpu_graph_memory *memory; /* alloc and free nodes */
  bool enabled;
  CUgraphNode *after; /* the nodes that it depends on */
  size_t n_after, capacity;
  CUgraphNode next; /* in the graph, in order of creation */
  size_t mark;      /* scratch value of one walk */
};

struct CUgraph_st {
  CUgraphNode first, last;
  size_t n;
  uint64_t id, cloned_from;
  uint64_t numbers;            /* the last node number given */
  CUgraph parent;              /* of a child graph, which ends with its node */
  bool is_exec;                /* inside an executable graph: no handles */
  struct kiln__cpu_held *held; /* user objects that it keeps alive */
};

/* Wraps work for sharing, with one reference, and owns it. NULL: no memory; the
 * work is still the caller's then. */
kiln__cpu_shared *kiln__cpu_share(kiln__cpu_work *work);
/* Adds or drops a reference; NULL does nothing. The last drop frees the work. */
kiln__cpu_shared *kiln__cpu_share_hold(kiln__cpu_shared *shared);
void kiln__cpu_share_drop(kiln__cpu_shared *shared);

/* An empty graph. With `is_exec` neither it nor its nodes are live handles.
 * NULL: no memory. */
CUgraph kiln__cpu_graph_new(bool is_exec);
/* Frees the graph, its nodes and its child graphs; NULL does nothing. */
void kiln__cpu_graph_free(CUgraph graph);
/* A copy whose nodes share the work and keep the numbers; child graphs are
 * copied, too. NULL: no memory. */
CUgraph kiln__cpu_graph_copy(CUgraph graph, bool is_exec);
/* A new node that depends on the `n` nodes of `after`, which belong to the same
 * graph. NULL: no memory. */
CUgraphNode kiln__cpu_node_new(CUgraph graph, CUgraphNodeType type,
                               const CUgraphNode *after, size_t n);
/* Frees the node and the edges from and to it. */
void kiln__cpu_node_free(CUgraphNode node);
/* Adds an edge from `before` to `node`, unless it exists. False: no memory. */
bool kiln__cpu_node_depend(CUgraphNode node, CUgraphNode before);
/* Removes that edge; false if there was none. */
bool kiln__cpu_node_undepend(CUgraphNode node, CUgraphNode before);
/* The node of that number; NULL: there is none. */
CUgraphNode kiln__cpu_node_numbered(CUgraph graph, uint64_t number);
/* Is `node` one of the `n` nodes of `of`, or does one of them depend on it,
 * directly or through others? False also if there is no memory. */
bool kiln__cpu_node_reaches(CUgraph graph, CUgraphNode node,
                            const CUgraphNode *of, size_t n);
/* Stores a topological order of the nodes, for the caller to kiln__free().
 * False: the graph has a cycle, or with *order NULL, there is no memory. */
bool kiln__cpu_graph_order(CUgraph graph, CUgraphNode **order);

/* ---- Work of nodes ----------------------------------------------------------------- */

/* Each pair makes work from the parameters of a node, and gives them back. The
 * work copies the parameters; what the second function returns points into the
 * work. CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY. */
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

/* ---- Captures --------------------------------------------------------------------- */

/* These take machine.graph_lock themselves. Their codes are those with which the
 * driver reports what a capture forbids, CUDA_ERROR_STREAM_CAPTURE_*; then they
 * invalidate the capture. Without a capture they cost one atomic load. */

/* Offers work to the stream's capture. If the stream captures, the work becomes
 * a node, which owns it, and *taken is true. On failure the caller still owns
 * the work. `wait`: the call would wait for the work, which captures forbid. */
CUresult kiln__cpu_capture_work(CUstream stream, kiln__cpu_work *work,
                                bool wait, bool *taken);
/* Makes a node of another kind in the stream's capture, for the caller to fill;
 * the lock is then held until kiln__cpu_capture_node_done(). *node is NULL, and
 * the lock is not held, on failure or if the stream does not capture. */
CUresult kiln__cpu_capture_node(CUstream stream, CUgraphNodeType type,
                                CUgraphNode *node);
void kiln__cpu_capture_node_done(void);
/* Does this stream capture? False for what is no stream. */
bool kiln__cpu_is_capturing(CUcontext context, CUstream handle);
/* Called before the program waits for a stream or a context, or queries it. */
CUresult kiln__cpu_capture_sync(CUstream stream);
CUresult kiln__cpu_capture_sync_context(CUcontext context);
/* Called before an event is recorded, or waited for by a stream. *taken is true
 * if that became part of a capture and nothing is left to do. */
CUresult kiln__cpu_capture_record(CUevent event, CUstream stream,
                                  unsigned flags, bool *taken);
CUresult kiln__cpu_capture_wait(CUstream stream, CUevent event, unsigned flags,
                                bool *taken);
/* Called before the program queries an event or waits for it:
 * CUDA_ERROR_CAPTURED_EVENT if its last record was captured. */
CUresult kiln__cpu_capture_event(CUevent event);
/* Called when a stream is destroyed. The capture that it began ends; a capture
 * that it joined continues without it. */
void kiln__cpu_capture_forget(CUstream stream);

/* Gives cached memory above each pool's release threshold back. Called when the
 * program waits for a stream or a context; memory/memory_pool.c. */
void kiln__cpu_pools_settle(CUcontext context);

#endif
