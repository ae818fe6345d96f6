/* graph.c -- implements graphs as data: nodes, edges, copies and topological
 * orders.
 *
 * A graph is a list of nodes in the order of their creation. Each node has an
 * array of the nodes that it depends on. Nothing in this file runs a node. The
 * caller holds machine.graph_lock during every call. A graph traversal may
 * therefore store a number in node->mark. */
#include "graph.h"
#include "graph_parts.h"

#include <string.h>

/* ---- Shared work --------------------------------------------------------- */

kiln__cpu_shared *kiln__cpu_share(kiln__cpu_work *work)
{
  kiln__cpu_shared *s = kiln__calloc(&machine()->alloc, 1, sizeof *s);

  if (s != NULL) {
    atomic_init(&s->refs, 1);
    s->work = work;
  }
  return s;
}

kiln__cpu_shared *kiln__cpu_share_hold(kiln__cpu_shared *shared)
{
  if (shared != NULL)
    atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void kiln__cpu_share_drop(kiln__cpu_shared *shared)
{
  if (shared == NULL || atomic_fetch_sub(&shared->refs, 1) != 1)
    return;
  if (shared->work->free != NULL)
    shared->work->free(shared->work);
  kiln__free(&machine()->alloc, shared);
}

/* ---- Graphs and nodes ---------------------------------------------------- */

CUgraph kiln__cpu_graph_new(bool is_exec)
{
  CUgraph g = kiln__calloc(&machine()->alloc, 1, sizeof *g);

  if (g == NULL)
    return NULL;
  g->is_exec = is_exec;
  g->id = kiln__cpu_next_id();
  if (!is_exec && !kiln__cpu_live_add(g, KILN__HANDLE_GRAPH)) {
    kiln__free(&machine()->alloc, g);
    return NULL;
  }
  return g;
}

static void release(CUgraphNode node)
{
  if (!node->graph->is_exec)
    kiln__cpu_live_remove(node);
  kiln__cpu_share_drop(node->shared);
  kiln__cpu_graph_memory_drop(node->memory);
  if (node->child != NULL)
    kiln__cpu_graph_free(node->child);
  kiln__cpu_branches_free(node->branches);
  kiln__cpu_hints_drop(node);
  kiln__free(&machine()->alloc, node->after);
  kiln__free(&machine()->alloc, node);
}

void kiln__cpu_graph_free(CUgraph graph)
{
  if (graph == NULL)
    return;
  while (graph->first != NULL) {
    CUgraphNode node = graph->first;

    graph->first = node->next;
    release(node);
  }
  if (!graph->is_exec)
    kiln__cpu_live_remove(graph);
  kiln__cpu_held_drop_all(graph);
  kiln__cpu_conditions_drop_all(graph);
  kiln__free(&machine()->alloc, graph);
}

bool kiln__cpu_node_has_edge(CUgraphNode node, CUgraphNode before)
{
  for (size_t i = 0; i < node->n_after; i++) {
    if (node->after[i] == before)
      return true;
  }
  return false;
}

bool kiln__cpu_node_depend(CUgraphNode node, CUgraphNode before)
{
  if (kiln__cpu_node_has_edge(node, before))
    return true;
  if (!kiln__grow(&machine()->alloc, &node->after, node->n_after,
                  &node->capacity, sizeof(CUgraphNode)))
    return false;
  node->after[node->n_after++] = before;
  return true;
}

static void append(CUgraph graph, CUgraphNode node)
{
  node->graph = graph;
  if (graph->last == NULL)
    graph->first = node;
  else
    graph->last->next = node;
  graph->last = node;
  graph->n++;
}

CUgraphNode kiln__cpu_node_new(CUgraph graph, CUgraphNodeType type,
                               const CUgraphNode *after, size_t n)
{
  CUgraphNode node = kiln__calloc(&machine()->alloc, 1, sizeof *node);

  if (node == NULL)
    return NULL;
  node->graph = graph;
  node->type = type;
  node->enabled = true;
  for (size_t i = 0; i < n; i++) {
    if (!kiln__cpu_node_depend(node, after[i]))
      goto failed;
  }
  if (!graph->is_exec && !kiln__cpu_live_add(node, KILN__HANDLE_GRAPH_NODE))
    goto failed;
  node->number = ++graph->numbers;
  append(graph, node);
  return node;

failed:
  kiln__free(&machine()->alloc, node->after);
  kiln__free(&machine()->alloc, node);
  return NULL;
}

static void forget_edge(CUgraphNode node, CUgraphNode before)
{
  size_t k = 0;

  for (size_t i = 0; i < node->n_after; i++) {
    if (node->after[i] != before)
      node->after[k++] = node->after[i];
  }
  node->n_after = k;
}

bool kiln__cpu_node_undepend(CUgraphNode node, CUgraphNode before)
{
  const size_t n = node->n_after;

  forget_edge(node, before);
  return node->n_after < n;
}

void kiln__cpu_node_free(CUgraphNode node)
{
  CUgraph graph = node->graph;
  CUgraphNode *at = &graph->first;
  CUgraphNode previous = NULL;

  for (CUgraphNode o = graph->first; o != NULL; o = o->next)
    forget_edge(o, node);
  while (*at != NULL && *at != node) {
    previous = *at;
    at = &(*at)->next;
  }
  *at = node->next;
  if (graph->last == node)
    graph->last = previous;
  graph->n--;
  release(node);
}

CUgraphNode kiln__cpu_node_numbered(CUgraph graph, uint64_t number)
{
  CUgraphNode node = graph->first;

  while (node != NULL && node->number != number)
    node = node->next;
  return node;
}

/* ---- Copies -------------------------------------------------------------- */

/* Copies a node, without its edges, into the graph `to`. Returns NULL if there
 * is no memory. */
static CUgraphNode copy_node(CUgraph to, const struct CUgraphNode_st *from)
{
  CUgraphNode node = kiln__cpu_node_new(to, from->type, NULL, 0);

  if (node == NULL)
    return NULL;
  node->number = from->number;
  node->context = from->context;
  node->shared = kiln__cpu_share_hold(from->shared);
  node->event = from->event;
  node->memory = kiln__cpu_graph_memory_hold(from->memory);
  node->enabled = from->enabled;
  if (!kiln__cpu_hints_copy(node, from))
    return NULL;
  if (from->child != NULL) {
    node->child = kiln__cpu_graph_copy(from->child, to->is_exec);
    if (node->child == NULL)
      return NULL;
    node->child->parent = to;
  }
  if (from->branches != NULL) {
    node->branches = kiln__cpu_branches_copy(from->branches, to, to->is_exec);
    if (node->branches == NULL)
      return NULL;
  }
  return node;
}

CUgraph kiln__cpu_graph_copy(CUgraph graph, bool is_exec)
{
  CUgraph copy = kiln__cpu_graph_new(is_exec);
  CUgraphNode *by_mark = NULL;
  CUgraphNode at;
  size_t n = 0;

  if (copy == NULL)
    return NULL;
  by_mark = kiln__calloc(&machine()->alloc, graph->n + 1, sizeof(CUgraphNode));
  if (by_mark == NULL)
    goto failed;
  for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
    o->mark = n;
    by_mark[n] = copy_node(copy, o);
    if (by_mark[n++] == NULL)
      goto failed;
  }
  at = copy->first;
  for (CUgraphNode o = graph->first; o != NULL; o = o->next, at = at->next) {
    for (size_t i = 0; i < o->n_after; i++) {
      if (!kiln__cpu_node_depend(at, by_mark[o->after[i]->mark]))
        goto failed;
    }
  }
  if (!kiln__cpu_held_copy(copy, graph) ||
      !kiln__cpu_conditions_copy(copy, graph))
    goto failed;
  copy->numbers = graph->numbers;
  copy->cloned_from = graph->id;
  kiln__free(&machine()->alloc, by_mark);
  return copy;

failed:
  kiln__free(&machine()->alloc, by_mark);
  kiln__cpu_graph_free(copy);
  return NULL;
}

/* ---- Traversal ----------------------------------------------------------- */

bool kiln__cpu_node_reaches(CUgraph graph, CUgraphNode node,
                            const CUgraphNode *of, size_t n)
{
  CUgraphNode *stack =
      kiln__calloc(&machine()->alloc, graph->n + 1, sizeof(CUgraphNode));
  size_t top = 0;
  bool found = false;

  if (stack == NULL)
    return false;
  for (CUgraphNode o = graph->first; o != NULL; o = o->next)
    o->mark = 0;
  for (size_t i = 0; i < n; i++) {
    if (of[i]->mark == 0) {
      of[i]->mark = 1;
      stack[top++] = of[i];
    }
  }
  while (top > 0 && !found) {
    CUgraphNode o = stack[--top];

    found = o == node;
    for (size_t i = 0; i < o->n_after; i++) {
      if (o->after[i]->mark == 0) {
        o->after[i]->mark = 1;
        stack[top++] = o->after[i];
      }
    }
  }
  kiln__free(&machine()->alloc, stack);
  return found;
}

/* The dependents of every node, as slices of one array. The dependents of the
 * node with number k are dependents[first[k]] up to, but not including,
 * dependents[first[k + 1]]. `unmet` counts, per node, the dependencies that the
 * topological order does not contain yet. */
typedef struct slices {
  CUgraphNode *dependents;
  size_t *first; /* n + 1 offsets into `dependents` */
  size_t *unmet;
} slices;

/* Computes the dependents of every node by a counting sort of the edges. The
 * sort key is the node at which an edge starts. */
static bool slices_make(slices *s, CUgraph graph)
{
  size_t n_edges = 0, n = 0;

  for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
    o->mark = n++;
    n_edges += o->n_after;
  }
  s->dependents =
      kiln__calloc(&machine()->alloc, n_edges + 1, sizeof(CUgraphNode));
  s->first = kiln__calloc(&machine()->alloc, n + 2, sizeof *s->first);
  s->unmet = kiln__calloc(&machine()->alloc, n + 1, sizeof *s->unmet);
  if (s->dependents == NULL || s->first == NULL || s->unmet == NULL)
    return false;
  for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
    s->unmet[o->mark] = o->n_after;
    for (size_t i = 0; i < o->n_after; i++)
      s->first[o->after[i]->mark + 2]++;
  }
  for (size_t i = 2; i < n + 2; i++)
    s->first[i] += s->first[i - 1];
  for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
    for (size_t i = 0; i < o->n_after; i++)
      s->dependents[s->first[o->after[i]->mark + 1]++] = o;
  }
  return true;
}

/* Computes a topological order with Kahn's algorithm: repeatedly takes a node
 * without unmet dependencies until no such node is left. Nodes that remain
 * depend on a cycle. The cost is linear in the number of nodes and edges. */
bool kiln__cpu_graph_order(CUgraph graph, CUgraphNode **order)
{
  slices s = {0};
  CUgraphNode *list =
      kiln__calloc(&machine()->alloc, graph->n + 1, sizeof(CUgraphNode));
  size_t n = 0;
  bool ok = list != NULL && slices_make(&s, graph);

  *order = NULL;
  if (ok) {
    for (CUgraphNode o = graph->first; o != NULL; o = o->next) {
      if (o->n_after == 0)
        list[n++] = o;
    }
    for (size_t i = 0; i < n; i++) {
      const size_t at = list[i]->mark;

      for (size_t k = s.first[at]; k < s.first[at + 1]; k++) {
        if (--s.unmet[s.dependents[k]->mark] == 0)
          list[n++] = s.dependents[k];
      }
    }
    *order = list;
    ok = n == graph->n;
  } else {
    kiln__free(&machine()->alloc, list);
  }
  kiln__free(&machine()->alloc, s.dependents);
  kiln__free(&machine()->alloc, s.first);
  kiln__free(&machine()->alloc, s.unmet);
  return ok;
}
