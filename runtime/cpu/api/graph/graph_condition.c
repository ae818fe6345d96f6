/* graph_condition.c -- implements conditional nodes: handles, and the graphs
 * that a node runs depending on the value of its handle.
 *
 * A handle is the address of a 4-byte range of internal memory. Kernels store
 * the value through cudaGraphSetConditional() (run/system_calls.c), and a
 * launch reads it when it reaches the node. A range lives as long as a graph,
 * an executable graph or a launch refers to its condition. A launch stores the
 * initial value before it runs the graph for which the handle was created.
 *
 * The bodies of a node run one after the other in the launch that contains the
 * node, so a loop costs no queue entries. */
#include "../context/api_context.h"
#include "graph_parts.h"

/* ---- Conditions ---------------------------------------------------------- */

kiln__cpu_condition *kiln__cpu_condition_hold(kiln__cpu_condition *condition)
{
  if (condition != NULL)
    atomic_fetch_add(&condition->refs, 1);
  return condition;
}

void kiln__cpu_condition_drop(kiln__cpu_condition *condition)
{
  if (condition == NULL || atomic_fetch_sub(&condition->refs, 1) != 1)
    return;
  if (condition->address != 0)
    kiln__cpu_memory_remove(machine()->memory, condition->address);
  kiln__free(&machine()->alloc, condition);
}

static CUresult condition_make(kiln__cpu_condition **out, CUcontext context,
                               uint32_t initial, bool assigns)
{
  kiln__cpu_condition *c = kiln__calloc(&machine()->alloc, 1, sizeof *c);
  kiln__cpu_range range = {.kind = KILN__RANGE_INTERNAL,
                           .name = "value of a conditional handle",
                           .device = context->device};

  CU_TRY(allocated(c));
  atomic_init(&c->refs, 1);
  atomic_init(&c->value, initial);
  c->initial = initial;
  c->assigns = assigns;
  c->context = context;
  range.host = (uint8_t *)&c->value;
  if (kiln__cpu_memory_add(machine()->memory, &range, sizeof c->value, 0) !=
      KILN_OK) {
    kiln__free(&machine()->alloc, c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  c->address = range.first;
  *out = c;
  return CUDA_SUCCESS;
}

static bool list_put(CUgraph graph, kiln__cpu_condition *condition)
{
  kiln__cpu_condition_list *l = kiln__calloc(&machine()->alloc, 1, sizeof *l);

  if (l == NULL)
    return false;
  l->condition = kiln__cpu_condition_hold(condition);
  l->next = graph->conditions;
  graph->conditions = l;
  return true;
}

bool kiln__cpu_conditions_copy(CUgraph to, CUgraph from)
{
  for (const kiln__cpu_condition_list *l = from->conditions; l != NULL;
       l = l->next) {
    if (!list_put(to, l->condition))
      return false;
  }
  return true;
}

void kiln__cpu_conditions_drop_all(CUgraph graph)
{
  while (graph->conditions != NULL) {
    kiln__cpu_condition_list *l = graph->conditions;

    graph->conditions = l->next;
    kiln__cpu_condition_drop(l->condition);
    kiln__free(&machine()->alloc, l);
  }
}

/* Returns the condition of a handle that belongs to the graph or to a graph
 * that contains it. Returns NULL if there is none. */
static kiln__cpu_condition *condition_of(CUgraph graph, uint64_t handle)
{
  for (; graph != NULL; graph = graph->parent) {
    for (kiln__cpu_condition_list *l = graph->conditions; l != NULL;
         l = l->next) {
      if (l->condition->address == handle)
        return l->condition;
    }
  }
  return NULL;
}

CUresult
kiln__cpu_graphConditionalHandleCreate(CUgraphConditionalHandle *handle,
                                       CUgraph graph, CUcontext context,
                                       unsigned int value, unsigned int flags)
{
  kiln__cpu_condition *c;
  CUresult rc;

  CU_TRY(kiln__cpu_ready_with(graph, KILN__HANDLE_GRAPH));
  CU_TRY(valid(handle != NULL &&
               (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) == 0));
  if (context == NULL)
    context = kiln__cpu_current_or_null();
  CU_TRY(kiln__cpu_known(context, KILN__HANDLE_CONTEXT));
  CU_TRY(condition_make(&c, context, value,
                        (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0));
  lock_graphs();
  rc = list_put(graph, c) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  unlock_graphs();
  if (rc == CUDA_SUCCESS)
    *handle = c->address;
  kiln__cpu_condition_drop(c); /* the graph holds the other reference */
  return rc;
}

/* ---- Bodies -------------------------------------------------------------- */

static kiln__cpu_branches *branches_new(kiln__cpu_condition *condition,
                                        CUgraphConditionalNodeType type,
                                        unsigned n)
{
  kiln__cpu_branches *b =
      kiln__calloc(&machine()->alloc, 1, sizeof *b + n * sizeof b->graphs[0]);

  if (b == NULL)
    return NULL;
  b->condition = kiln__cpu_condition_hold(condition);
  b->type = type;
  b->n = n;
  return b;
}

void kiln__cpu_branches_free(kiln__cpu_branches *branches)
{
  if (branches == NULL)
    return;
  for (unsigned i = 0; i < branches->n; i++)
    kiln__cpu_graph_free(branches->graphs[i]);
  kiln__cpu_condition_drop(branches->condition);
  kiln__free(&machine()->alloc, branches);
}

void kiln__cpu_branches_adopt(kiln__cpu_branches *branches, CUgraph parent)
{
  for (unsigned i = 0; branches != NULL && i < branches->n; i++)
    branches->graphs[i]->parent = parent;
}

kiln__cpu_branches *kiln__cpu_branches_copy(const kiln__cpu_branches *from,
                                            CUgraph parent, bool is_exec)
{
  kiln__cpu_branches *b = branches_new(from->condition, from->type, from->n);

  for (unsigned i = 0; b != NULL && i < from->n; i++) {
    b->graphs[i] = kiln__cpu_graph_copy(from->graphs[i], is_exec);
    if (b->graphs[i] == NULL) {
      kiln__cpu_branches_free(b);
      return NULL;
    }
  }
  kiln__cpu_branches_adopt(b, parent);
  return b;
}

static bool good_size(CUgraphConditionalNodeType type, unsigned n)
{
  enum { MOST = 1 << 16 }; /* a limit of the CPU device */

  switch (type) {
  case CU_GRAPH_COND_TYPE_IF:
    return n == 1 || n == 2;
  case CU_GRAPH_COND_TYPE_WHILE:
    return n == 1;
  case CU_GRAPH_COND_TYPE_SWITCH:
    return n >= 1 && n <= MOST;
  default:
    return false;
  }
}

/* Makes the empty bodies of a new node. The caller holds machine.graph_lock. */
static CUresult make_locked(kiln__cpu_branches **out, CUgraph graph,
                            const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
  kiln__cpu_condition *c = condition_of(graph, p->handle);
  kiln__cpu_branches *b;

  CU_TRY(valid(c != NULL && !c->used && good_size(p->type, p->size) &&
               (p->ctx == NULL || p->ctx == c->context)));
  b = branches_new(c, p->type, p->size);
  CU_TRY(allocated(b));
  for (unsigned i = 0; i < p->size; i++) {
    b->graphs[i] = kiln__cpu_graph_new(false);
    if (b->graphs[i] == NULL) {
      kiln__cpu_branches_free(b);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  c->used = true;
  *out = b;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_branches_make(kiln__cpu_branches **out, CUgraph graph,
                                 CUDA_CONDITIONAL_NODE_PARAMS *params)
{
  CUresult rc;

  if (graph == NULL)
    return CUDA_ERROR_NOT_SUPPORTED;
  lock_graphs();
  rc = make_locked(out, graph, params);
  unlock_graphs();
  if (rc == CUDA_SUCCESS)
    params->phGraph_out = (*out)->graphs;
  return rc;
}

static bool may_repeat(CUgraphNodeType type)
{
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
  case CU_GRAPH_NODE_TYPE_MEMCPY:
  case CU_GRAPH_NODE_TYPE_MEMSET:
  case CU_GRAPH_NODE_TYPE_EMPTY:
  case CU_GRAPH_NODE_TYPE_GRAPH:
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return true;
  default:
    return false;
  }
}

static CUresult check_body(CUgraph body)
{
  for (CUgraphNode n = body->first; n != NULL; n = n->next) {
    if (!may_repeat(n->type))
      return CUDA_ERROR_NOT_SUPPORTED;
    if (n->child != NULL)
      CU_TRY(check_body(n->child));
    CU_TRY(kiln__cpu_branches_check(n->branches));
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_branches_check(const kiln__cpu_branches *branches)
{
  for (unsigned i = 0; branches != NULL && i < branches->n; i++)
    CU_TRY(check_body(branches->graphs[i]));
  return CUDA_SUCCESS;
}

int kiln__cpu_branches_next(const kiln__cpu_condition *condition,
                            CUgraphConditionalNodeType type, unsigned n,
                            unsigned long long done)
{
  const uint32_t value = atomic_load(&condition->value);

  switch (type) {
  case CU_GRAPH_COND_TYPE_WHILE:
    return value != 0 ? 0 : -1;
  case CU_GRAPH_COND_TYPE_IF:
    if (done != 0)
      return -1;
    return value != 0 ? 0 : n == 2 ? 1 : -1;
  default:
    return done == 0 && value < n ? (int)value : -1;
  }
}
