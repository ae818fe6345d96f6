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
  uint64_t number;          /* order of creation, in the graph and its clones */
  CUcontext context;        /* NULL: none needed */
  kiln__cpu_shared *shared; /* what it does; NULL: nothing, or a child */
  CUgraph child;
  CUevent event;                         /* record and wait nodes */
  struct kiln__cpu_graph_memory *memory; /* alloc and free nodes */
  bool enabled;
  CUgraphNode *after; /* the nodes that it depends on */
  size_t n_after, capacity;
  CUgraphNode next; /* in the graph, in order of creation */
  size_t mark;      /* scratch value of one walk, under the lock */
};

struct CUgraph_st {
  CUgraphNode first, last;
  size_t n;
  uint64_t id, cloned_from;
  uint64_t numbers;
  CUgraph parent;              /* of a child's graph: freed with its node */
  bool is_exec;                /* the snapshot in an executable: no handles */
  struct kiln__cpu_held *held; /* user objects */
};

kiln__cpu_shared *
kiln__cpu_share(kiln__cpu_work *work); /* takes it; NULL: no memory */
kiln__cpu_shared *kiln__cpu_share_hold(kiln__cpu_shared *shared);
void kiln__cpu_share_drop(kiln__cpu_shared *shared);

/* All under machine.graph_lock. */
CUgraph kiln__cpu_graph_new(bool is_exec);
void kiln__cpu_graph_free(CUgraph graph);
CUgraph kiln__cpu_graph_copy(CUgraph graph, bool is_exec); /* NULL: no memory */
/* A node after the given ones, of the same graph; NULL: no memory. */
CUgraphNode kiln__cpu_node_new(CUgraph graph, CUgraphNodeType type,
                               const CUgraphNode *after, size_t n);
void kiln__cpu_node_free(CUgraphNode node); /* and its edges */
bool kiln__cpu_node_depend(CUgraphNode node, CUgraphNode before);
bool kiln__cpu_node_undepend(CUgraphNode node,
                             CUgraphNode before); /* was there */
CUgraphNode kiln__cpu_node_numbered(CUgraph graph,
                                    uint64_t number); /* or NULL */
/* Is `node` one of `of`, or before one of them? */
bool kiln__cpu_node_reaches(CUgraph graph, CUgraphNode node,
                            const CUgraphNode *of, size_t n);
/* Nodes so that each comes after what it depends on; false: a cycle, or no
 * memory (*order NULL). *order is the caller's to kiln__free. */
bool kiln__cpu_graph_order(CUgraph graph, CUgraphNode **order);

/* ---- Works of each kind, made elsewhere -------------------------------------------- */

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

/* ---- Captures ----------------------------------------------------------------------- */

/* Work for a stream: if the stream captures it becomes a node (*taken) or is
 * refused; a capture elsewhere may forbid it too. The work is not freed. */
CUresult kiln__cpu_capture_work(CUstream stream, kiln__cpu_work *work,
                                bool wait, bool *taken);
/* A node of another kind, made by `stream`'s capture: *node NULL if it does not
 * capture. The lock is held on return if *node is not NULL. */
CUresult kiln__cpu_capture_node(CUstream stream, CUgraphNodeType type,
                                CUgraphNode *node);
void kiln__cpu_capture_node_done(void);
/* Does this stream capture? False for what is no stream. */
bool kiln__cpu_is_capturing(CUcontext context, CUstream handle);
/* Waiting for, or asking about, a stream or a context. */
CUresult kiln__cpu_capture_sync(CUstream stream);
CUresult kiln__cpu_capture_sync_context(CUcontext context);
/* Record and wait; *taken: it was part of a capture. */
CUresult kiln__cpu_capture_record(CUevent event, CUstream stream,
                                  unsigned flags, bool *taken);
CUresult kiln__cpu_capture_wait(CUstream stream, CUevent event, unsigned flags,
                                bool *taken);
/* A question about an event whose last record was captured. */
CUresult kiln__cpu_capture_event(CUevent event);
/* A stream is destroyed. */
void kiln__cpu_capture_forget(CUstream stream);

/* pool.c: memory that is cached above its threshold goes back when the program
 * waits. */
void kiln__cpu_pools_settle(CUcontext context);

#endif
