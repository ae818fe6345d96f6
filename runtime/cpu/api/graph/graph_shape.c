/* graph_shape.c -- implements the API functions for the structure of a graph.
 * They create, clone and destroy graphs, list nodes, add and remove edges, and
 * draw a graph. */
#include "graph_parts.h"

#include "../../../base/os.h"

/* ---- Creation and destruction -------------------------------------------- */

CUresult kiln__cpu_graphCreate(CUgraph *graph, unsigned int flags)
{
  CUgraph g;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(graph != NULL && flags == 0));
  g = kiln__cpu_graph_new(false);
  CU_TRY(allocated(g));
  *graph = g;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_graphDestroy(CUgraph graph)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kiln__cpu_ready_with(graph, KILN__HANDLE_GRAPH));
  lock_graphs();
  if (graph->parent != NULL || kiln__cpu_graph_in_capture(graph))
    rc = CUDA_ERROR_INVALID_VALUE;
  else
    kiln__cpu_graph_free(graph);
  unlock_graphs();
  return rc;
}

static bool has_memory(CUgraph graph)
{
  for (CUgraphNode n = graph->first; n != NULL; n = n->next) {
    if (n->memory != NULL || (n->child != NULL && has_memory(n->child)))
      return true;
  }
  return false;
}

CUresult kiln__cpu_graphClone(CUgraph *clone, CUgraph original)
{
  CUresult rc = CUDA_SUCCESS;
  CUgraph g = NULL;

  CU_TRY(kiln__cpu_ready_with(original, KILN__HANDLE_GRAPH));
  CU_TRY(valid(clone != NULL));
  lock_graphs();
  if (has_memory(original))
    /* A graph with alloc nodes cannot be cloned, since the addresses of alloc
     * nodes belong to one graph. */
    rc = CUDA_ERROR_NOT_SUPPORTED;
  else
    g = kiln__cpu_graph_copy(original, false);
  unlock_graphs();
  if (rc == CUDA_SUCCESS && g == NULL)
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  if (rc == CUDA_SUCCESS)
    *clone = g;
  return rc;
}

CUresult kiln__cpu_graphNodeFindInClone(CUgraphNode *node, CUgraphNode original,
                                        CUgraph clone)
{
  CU_TRY(kiln__cpu_ready_with(original, KILN__HANDLE_GRAPH_NODE));
  CU_TRY(kiln__cpu_ready_with(clone, KILN__HANDLE_GRAPH));
  CU_TRY(valid(node != NULL));
  lock_graphs();
  *node = clone->cloned_from == original->graph->id
              ? kiln__cpu_node_numbered(clone, original->number)
              : NULL;
  unlock_graphs();
  return valid(*node != NULL);
}

CUresult kiln__cpu_graphDestroyNode(CUgraphNode node)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kiln__cpu_ready_with(node, KILN__HANDLE_GRAPH_NODE));
  lock_graphs();
  if (kiln__cpu_graph_in_capture(node->graph))
    rc = CUDA_ERROR_INVALID_VALUE;
  else
    kiln__cpu_node_free(node);
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_graphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
  CU_TRY(kiln__cpu_ready_with(node, KILN__HANDLE_GRAPH_NODE));
  return CU_STORE(type, node->type);
}

/* ---- Lists --------------------------------------------------------------- */

/* The convention of all functions that list nodes or edges. If the caller
 * passes an array, *n is the size of the array. The function stores as many
 * items as fit, fills the rest with NULL, and sets *n to the number of stored
 * items. Without an array, it sets *n to the number of items. */

typedef struct list {
  /* arrays to fill; both are NULL if the items are only counted */
  CUgraphNode *from, *to;
  CUgraphEdgeData *edges;
  size_t n, capacity;
} list;

static list list_of(CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                    const size_t *n)
{
  return (list){.from = from,
                .to = to,
                .edges = edges,
                .capacity = from == NULL && to == NULL ? 0 : *n};
}

static void put(const list *l, size_t i, CUgraphNode from, CUgraphNode to)
{
  if (l->from != NULL)
    l->from[i] = from;
  if (l->to != NULL)
    l->to[i] = to;
}

static void append(list *l, CUgraphNode from, CUgraphNode to)
{
  if (l->n < l->capacity) {
    put(l, l->n, from, to);
    if (l->edges != NULL)
      l->edges[l->n] = (CUgraphEdgeData){0};
  }
  l->n++;
}

static void finish(const list *l, size_t *n)
{
  for (size_t i = l->n; i < l->capacity; i++)
    put(l, i, NULL, NULL);
  if ((l->from == NULL && l->to == NULL) || l->n < *n)
    *n = l->n;
}

static CUresult nodes(CUgraph graph, CUgraphNode *out, size_t *n, bool roots)
{
  list l;

  CU_TRY(kiln__cpu_ready_with(graph, KILN__HANDLE_GRAPH));
  CU_TRY(valid(n != NULL));
  l = list_of(out, NULL, NULL, n);
  lock_graphs();
  for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
    if (!roots || o->n_after == 0)
      append(&l, o, NULL);
  }
  unlock_graphs();
  finish(&l, n);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_graphGetNodes(CUgraph graph, CUgraphNode *out, size_t *n)
{
  return nodes(graph, out, n, false);
}

CUresult kiln__cpu_graphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *n)
{
  return nodes(graph, out, n, true);
}

/* Lists the edges of a graph. If `before` is not NULL, lists only the edges
 * that start there, and if `node` is not NULL, only those that end there. */
static CUresult list_edges(list l, CUgraph graph, CUgraphNode before,
                           CUgraphNode node, size_t *n)
{
  lock_graphs();
  for (CUgraphNode o = node != NULL ? node : graph->first; o != NULL;
       o = node != NULL ? NULL : o->next) {
    for (size_t i = 0; i < o->n_after; i++) {
      if (before == NULL || o->after[i] == before)
        append(&l, o->after[i], o);
    }
  }
  unlock_graphs();
  finish(&l, n);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_graphGetEdgesV2(CUgraph graph, CUgraphNode *from,
                                   CUgraphNode *to, CUgraphEdgeData *edges,
                                   size_t *n)
{
  CU_TRY(kiln__cpu_ready_with(graph, KILN__HANDLE_GRAPH));
  CU_TRY(valid(n != NULL && (from == NULL) == (to == NULL)));
  return list_edges(list_of(from, to, edges, n), graph, NULL, NULL, n);
}

CUresult kiln__cpu_graphNodeGetDependenciesV2(CUgraphNode node,
                                              CUgraphNode *after,
                                              CUgraphEdgeData *edges, size_t *n)
{
  CU_TRY(kiln__cpu_ready_with(node, KILN__HANDLE_GRAPH_NODE));
  CU_TRY(valid(n != NULL));
  return list_edges(list_of(after, NULL, edges, n), node->graph, NULL, node, n);
}

CUresult kiln__cpu_graphNodeGetDependentNodesV2(CUgraphNode node,
                                                CUgraphNode *after,
                                                CUgraphEdgeData *edges,
                                                size_t *n)
{
  CU_TRY(kiln__cpu_ready_with(node, KILN__HANDLE_GRAPH_NODE));
  CU_TRY(valid(n != NULL));
  return list_edges(list_of(NULL, after, edges, n), node->graph, node, NULL, n);
}

/* ---- Edges --------------------------------------------------------------- */

/* Checks all edges before the first edge is changed. If `exist` is true, every
 * edge has to exist; otherwise no edge may exist. */
static CUresult check_edges(CUgraph graph, const CUgraphNode *from,
                            const CUgraphNode *to, size_t n, bool exist)
{
  CUresult rc = kiln__cpu_ready_with(graph, KILN__HANDLE_GRAPH);

  if (rc == CUDA_SUCCESS && n > 0 && (from == NULL || to == NULL))
    rc = CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; rc == CUDA_SUCCESS && i < n; i++) {
    if (!kiln__cpu_live(from[i], KILN__HANDLE_GRAPH_NODE) ||
        !kiln__cpu_live(to[i], KILN__HANDLE_GRAPH_NODE) ||
        from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i] ||
        kiln__cpu_node_has_edge(to[i], from[i]) != exist)
      rc = CUDA_ERROR_INVALID_VALUE;
  }
  return rc;
}

/* Adds edges that do not exist yet, or removes edges that exist. */
static CUresult change_edges(CUgraph graph, const CUgraphNode *from,
                             const CUgraphNode *to, size_t n, bool remove)
{
  CUresult rc;

  lock_graphs();
  rc = check_edges(graph, from, to, n, remove);
  for (size_t i = 0; rc == CUDA_SUCCESS && i < n; i++) {
    if (remove)
      kiln__cpu_node_undepend(to[i], from[i]);
    else if (!kiln__cpu_node_depend(to[i], from[i]))
      rc = CUDA_ERROR_OUT_OF_MEMORY;
  }
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_graphAddDependencies(CUgraph graph, const CUgraphNode *from,
                                        const CUgraphNode *to, size_t n)
{
  return change_edges(graph, from, to, n, false);
}

CUresult kiln__cpu_graphRemoveDependencies(CUgraph graph,
                                           const CUgraphNode *from,
                                           const CUgraphNode *to, size_t n)
{
  return change_edges(graph, from, to, n, true);
}

/* ---- Drawing ------------------------------------------------------------- */

static const char *type_name(CUgraphNodeType type)
{
  static const char *const names[] = {
      "kernel",       "memcpy",          "memset",         "host",
      "graph",        "empty",           "wait for event", "record event",
      "signal",       "wait for signal", "alloc",          "free",
      "memory words", "conditional",
  };

  return type >= 0 && type < (int)(sizeof names / sizeof names[0]) ? names[type]
                                                                   : "node";
}

static void draw(kiln__buf *b, CUgraph graph)
{
  for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
    kiln__buf_format(b, "  g%llun%llu [label=\"%llu: %s\"];\n",
                     (unsigned long long)graph->id,
                     (unsigned long long)o->number,
                     (unsigned long long)o->number, type_name(o->type));
    for (size_t i = 0; i < o->n_after; i++)
      kiln__buf_format(
          b, "  g%llun%llu -> g%llun%llu;\n", (unsigned long long)graph->id,
          (unsigned long long)o->after[i]->number,
          (unsigned long long)graph->id, (unsigned long long)o->number);
    if (o->child != NULL)
      draw(b, o->child);
    for (unsigned i = 0; o->branches != NULL && i < o->branches->n; i++)
      draw(b, o->branches->graphs[i]);
  }
}

CUresult kiln__cpu_graphDebugDotPrint(CUgraph graph, const char *path,
                                      unsigned int flags)
{
  CUresult rc = CUDA_SUCCESS;
  kiln__buf b;

  (void)flags;
  CU_TRY(kiln__cpu_ready_with(graph, KILN__HANDLE_GRAPH));
  CU_TRY(valid(path != NULL));
  kiln__buf_init(&b, &machine()->alloc);
  kiln__buf_text(&b, "digraph kiln {\n");
  lock_graphs();
  draw(&b, graph);
  unlock_graphs();
  kiln__buf_text(&b, "}\n");
  if (b.failed)
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  else if (kiln__replace_file(path, b.data, b.size, 0644) != KILN_OK)
    rc = CUDA_ERROR_OPERATING_SYSTEM;
  kiln__buf_free(&b);
  return rc;
}
