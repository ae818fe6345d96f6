/* graph_exec.c -- implements executable graphs: instantiation, launch and
 * update.
 *
 * Instantiation copies the graph and computes a topological order. A launch
 * converts the current state of the copy into a list of steps, and enqueues the
 * list in the stream as one item of work. Later changes of the executable graph
 * therefore do not affect launches in flight.
 *
 * The steps run one after the other. The interpreter already uses all cores for
 * one kernel, so parallel branches would not run faster. */
#include "graph_exec.h"
#include "../context/api_context.h"
#include "../observe.h"

#include <string.h>

/* ---- Creation and destruction -------------------------------------------- */

static void exec_free(CUgraphExec exec)
{
  if (exec->source != NULL &&
      kiln__cpu_live(exec->source, KILN__HANDLE_GRAPH) &&
      exec->source->instance == exec)
    exec->source->instance = NULL;
  kiln__cpu_graph_free(exec->graph);
  kiln__free(&machine()->alloc, exec->order);
  kiln__cpu_mark_drop(exec->last);
  kiln__free(&machine()->alloc, exec);
}

/* Checks that neither the graph nor any of its child graphs has a cycle. */
static CUresult check_shape(CUgraph graph)
{
  CUgraphNode *order;
  const bool ok = kiln__cpu_graph_order(graph, &order);
  CUresult rc = ok              ? CUDA_SUCCESS
                : order == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                                : CUDA_ERROR_INVALID_VALUE;

  kiln__free(&machine()->alloc, order);
  for (CUgraphNode n = graph->first; n != NULL && rc == CUDA_SUCCESS;
       n = n->next) {
    if (n->child != NULL)
      rc = check_shape(n->child);
    if (n->branches != NULL && rc == CUDA_SUCCESS)
      rc = kiln__cpu_branches_check(n->branches);
    for (unsigned i = 0;
         n->branches != NULL && i < n->branches->n && rc == CUDA_SUCCESS; i++)
      rc = check_shape(n->branches->graphs[i]);
  }
  return rc;
}

static bool has_memory_nodes(CUgraph graph)
{
  for (CUgraphNode n = graph->first; n != NULL; n = n->next)
    if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return true;
  return false;
}

/* Returns the node that keeps a graph from being launched by kernels, or NULL. Such a graph
 * consists of kernels, copies and fills of one context. */
static CUgraphNode undeployable(CUgraph graph, CUcontext *context)
{
  for (CUgraphNode n = graph->first; n != NULL; n = n->next) {
    CUgraphNode inner = NULL;

    switch (n->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
      if (*context == NULL)
        *context = n->context;
      if (n->context != NULL && n->context != *context)
        inner = n;
      break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      inner = undeployable(n->child, context);
      break;
    default:
      inner = n;
    }
    if (inner != NULL)
      return inner;
  }
  return NULL;
}

/* Checks a graph that the program wants to launch from kernels. The host may launch it as
 * well. Modules whose kernels launch graphs are refused when they are loaded. */
static CUresult check_device_launch(CUgraph graph, uint64_t flags)
{
  CUcontext context = NULL;

  return valid((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0 &&
               graph->first != NULL && undeployable(graph, &context) == NULL);
}

static CUresult exec_make(CUgraphExec *out, CUgraph graph, uint64_t flags)
{
  CUgraphExec exec = kiln__calloc(&machine()->alloc, 1, sizeof *exec);
  CUresult rc = exec != NULL ? check_shape(graph) : CUDA_ERROR_OUT_OF_MEMORY;

  *out = NULL;
  if (rc == CUDA_SUCCESS && graph->instance != NULL)
    rc = CUDA_ERROR_NOT_SUPPORTED;
  if (rc != CUDA_SUCCESS) {
    kiln__free(&machine()->alloc, exec);
    return rc;
  }
  exec->flags = flags;
  exec->graph = kiln__cpu_graph_copy(graph, true);
  if (exec->graph == NULL ||
      !kiln__cpu_graph_order(exec->graph, &exec->order) ||
      !kiln__cpu_live_add(exec, KILN__HANDLE_GRAPH_EXEC)) {
    exec_free(exec);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (has_memory_nodes(graph)) {
    exec->source = graph;
    graph->instance = exec;
  }
  *out = exec;
  return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph,
                            unsigned long long flags)
{
  CUresult rc;
  CUgraphExec made;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(exec != NULL && kiln__cpu_live(graph, KILN__HANDLE_GRAPH) &&
               flags <= 15));
  lock_graphs();
  rc = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0
           ? check_device_launch(graph, flags)
           : CUDA_SUCCESS;
  if (rc == CUDA_SUCCESS)
    rc = exec_make(&made, graph, flags);
  unlock_graphs();
  if (rc == CUDA_SUCCESS)
    *exec = made;
  return rc;
}

/* Only cuGraphInstantiateWithParams has a stream for the upload. */
CUresult kiln__cpu_graphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                             unsigned long long flags)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0));
  return instantiate(exec, graph, flags);
}

CUresult kiln__cpu_graphInstantiate(CUgraphExec *exec, CUgraph graph,
                                    CUgraphNode *culprit, char *log,
                                    size_t size)
{
  if (culprit != NULL)
    *culprit = NULL;
  if (log != NULL && size > 0)
    log[0] = '\0';
  return kiln__cpu_graphInstantiateWithFlags(exec, graph, 0);
}

/* Stores why a graph cannot be launched by kernels. */
static void blame(CUDA_GRAPH_INSTANTIATE_PARAMS *params, CUgraph graph)
{
  CUcontext context = NULL;

  lock_graphs();
  params->hErrNode_out = undeployable(graph, &context);
  unlock_graphs();
  params->result_out = params->hErrNode_out != NULL
                           ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                           : CUDA_GRAPH_INSTANTIATE_ERROR;
}

CUresult
kiln__cpu_graphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                     CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
  CUresult rc;

  CU_TRY(valid(params != NULL));
  params->hErrNode_out = NULL;
  rc = instantiate(exec, graph, params->flags);
  params->result_out = rc == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                       : rc == CUDA_ERROR_INVALID_VALUE
                           ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                           : CUDA_GRAPH_INSTANTIATE_ERROR;
  if (rc == CUDA_ERROR_INVALID_VALUE &&
      (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 &&
      kiln__cpu_live(graph, KILN__HANDLE_GRAPH))
    blame(params, graph);
  return rc;
}

CUresult kiln__cpu_graphExecDestroy(CUgraphExec exec)
{
  CU_TRY(kiln__cpu_ready_with(exec, KILN__HANDLE_GRAPH_EXEC));
  lock_graphs();
  kiln__cpu_live_remove(exec);
  exec_free(exec);
  unlock_graphs();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_graphExecGetFlags(CUgraphExec exec, uint64_t *flags)
{
  CU_TRY(kiln__cpu_ready_with(exec, KILN__HANDLE_GRAPH_EXEC));
  return CU_STORE(flags, exec->flags);
}

/* ---- Launches ------------------------------------------------------------ */

typedef struct step step;

typedef struct steps {
  step *items;
  size_t n, capacity;
  kiln__cpu_graph_demand demand;
} steps;

/* The bodies of a conditional node as lists of steps. */
typedef struct choice {
  CUgraphConditionalNodeType type;
  unsigned n;
  steps bodies[]; /* n lists */
} choice;

struct step {
  kiln__cpu_shared *shared;
  /* queue entry of the event record that this step performs or waits for */
  kiln__cpu_mark *mark;
  bool record;
  /* memory of an alloc or free node; this step holds a reference */
  kiln__cpu_graph_memory *memory;
  /* condition that this step initialises, or reads if `choice` is set; this
   * step holds a reference */
  kiln__cpu_condition *condition;
  choice *choice; /* bodies of a conditional node, owned by this step */
};

typedef struct launch_work {
  kiln__cpu_work base;
  steps steps;
} launch_work;

/* Appends a step to the list of a launch. Returns false if there is no
 * memory. */
static bool put_step(steps *l, step s)
{
  if (!kiln__grow(&machine()->alloc, &l->items, l->n, &l->capacity, sizeof s))
    return false;
  l->items[l->n++] = s;
  return true;
}

static void step_drop(step *s);

static void steps_drop(steps *l)
{
  for (size_t i = 0; i < l->n; i++)
    step_drop(&l->items[i]);
  kiln__free(&machine()->alloc, l->items);
}

/* Releases the references that a step of a graph launch holds. An event record
 * that did not run counts as complete, so that no thread waits for the event
 * forever. */
static void step_drop(step *s)
{
  kiln__cpu_share_drop(s->shared);
  if (s->record)
    kiln__cpu_mark_reach(s->mark);
  kiln__cpu_mark_drop(s->mark);
  kiln__cpu_graph_memory_drop(s->memory);
  kiln__cpu_condition_drop(s->condition);
  for (unsigned i = 0; s->choice != NULL && i < s->choice->n; i++)
    steps_drop(&s->choice->bodies[i]);
  kiln__free(&machine()->alloc, s->choice);
}

static CUresult collect(steps *l, CUgraph graph, CUgraphNode *order,
                        uint64_t flags);

static CUresult collect_child(steps *l, CUgraph child, uint64_t flags)
{
  CUgraphNode *order;
  CUresult rc = kiln__cpu_graph_order(child, &order) ? CUDA_SUCCESS
                                                     : CUDA_ERROR_OUT_OF_MEMORY;

  if (rc == CUDA_SUCCESS)
    rc = collect(l, child, order, flags);
  kiln__free(&machine()->alloc, order);
  return rc;
}

/* Stores the bodies of a conditional node in *s. On failure the caller still
 * drops the step. */
static CUresult step_of_branches(const kiln__cpu_branches *b, step *s,
                                 uint64_t flags)
{
  CUresult rc = CUDA_SUCCESS;

  s->condition = kiln__cpu_condition_hold(b->condition);
  s->choice =
      kiln__calloc(&machine()->alloc, 1,
                   sizeof *s->choice + b->n * sizeof s->choice->bodies[0]);
  CU_TRY(allocated(s->choice));
  s->choice->type = b->type;
  s->choice->n = b->n;
  for (unsigned i = 0; i < b->n && rc == CUDA_SUCCESS; i++)
    rc = collect_child(&s->choice->bodies[i], b->graphs[i], flags);
  return rc;
}

/* Stores the operation of a graph node as a step. Returns
 * CUDA_ERROR_INVALID_VALUE if the memory of an alloc node is still in use and
 * the launch may not free this memory. */
static CUresult step_of(CUgraphNode node, kiln__cpu_graph_demand *demand,
                        step *s, uint64_t flags)
{
  const bool again =
      (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;

  switch (node->type) {
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    s->mark = kiln__cpu_mark_new();
    s->record = s->mark != NULL;
    return s->record ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    if (kiln__cpu_live(node->event, KILN__HANDLE_EVENT))
      s->mark = kiln__cpu_event_mark(node->event);
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    CU_TRY(valid(kiln__cpu_footprint_alloc(demand, node->memory, again)));
    s->memory = kiln__cpu_graph_memory_hold(node->memory);
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    kiln__cpu_footprint_free(demand, node->memory);
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return step_of_branches(node->branches, s, flags);
  default:
    s->shared = kiln__cpu_share_hold(node->shared);
    return CUDA_SUCCESS;
  }
}

/* Appends the steps that store the initial values of the graph's conditions. */
static CUresult collect_conditions(steps *l, CUgraph graph)
{
  for (kiln__cpu_condition_list *c = graph->conditions; c != NULL;
       c = c->next) {
    step s = {.condition = kiln__cpu_condition_hold(c->condition)};

    if (!put_step(l, s)) {
      step_drop(&s);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  return CUDA_SUCCESS;
}

static CUresult collect(steps *l, CUgraph graph, CUgraphNode *order,
                        uint64_t flags)
{
  CUresult rc = collect_conditions(l, graph);

  for (size_t i = 0; i < graph->n && rc == CUDA_SUCCESS; i++) {
    CUgraphNode node = order[i];
    step s = {0};

    if (!node->enabled)
      continue;
    if (node->child != NULL) {
      rc = collect_child(l, node->child, flags);
      continue;
    }
    rc = step_of(node, &l->demand, &s, flags);
    if (rc != CUDA_SUCCESS) {
      step_drop(&s);
    } else if (!put_step(l, s)) {
      step_drop(&s);
      rc = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (s.record && kiln__cpu_live(node->event, KILN__HANDLE_EVENT)) {
      kiln__cpu_event_put(node->event, kiln__cpu_mark_hold(s.mark));
    }
  }
  return rc;
}

static CUresult run_steps(const steps *l, CUstream stream, uint64_t call);

/* Runs the bodies of a conditional node as often as its condition demands. */
static CUresult run_choice(const step *s, CUstream stream, uint64_t call)
{
  const choice *c = s->choice;
  CUresult rc = CUDA_SUCCESS;

  for (unsigned long long done = 0; rc == CUDA_SUCCESS; done++) {
    const int body = kiln__cpu_branches_next(s->condition, c->type, c->n, done);

    if (body < 0)
      break;
    rc = run_steps(&c->bodies[body], stream, call);
    if (rc == CUDA_SUCCESS && atomic_load(&stream->context->dying))
      break;
  }
  return rc;
}

static CUresult run_step(const step *s, CUstream stream, uint64_t call)
{
  if (s->record)
    kiln__cpu_mark_reach(s->mark);
  else if (s->mark != NULL)
    kiln__cpu_mark_wait(s->mark);
  if (s->shared != NULL)
    return kiln__cpu_run_work(s->shared->work, stream, call, true);
  if (s->choice != NULL)
    return run_choice(s, stream, call);
  if (s->condition != NULL && s->condition->assigns)
    atomic_store(&s->condition->value, s->condition->initial);
  return CUDA_SUCCESS;
}

/* Runs the steps of a graph launch in order, and stops at the first step that
 * fails. */
static CUresult run_steps(const steps *l, CUstream stream, uint64_t call)
{
  CUresult rc = CUDA_SUCCESS;

  for (size_t i = 0; i < l->n && rc == CUDA_SUCCESS; i++) {
    rc = run_step(&l->items[i], stream, call);
    if (rc == CUDA_SUCCESS)
      rc = atomic_load(&stream->context->sticky);
  }
  return rc;
}

static CUresult run_launch(kiln__cpu_work *work, CUstream stream)
{
  const launch_work *l = (const launch_work *)(void *)work;

  return run_steps(&l->steps, stream, work->call);
}

static void free_launch(kiln__cpu_work *work)
{
  launch_work *l = (launch_work *)(void *)work;

  steps_drop(&l->steps);
  kiln__free(&machine()->alloc, l);
}

/* Makes the work of one launch from the current state of the executable
 * graph. */
static CUresult launch_make(CUgraphExec exec, CUstream stream,
                            kiln__cpu_work **out)
{
  launch_work *l = kiln__calloc(&machine()->alloc, 1, sizeof *l);
  CUresult rc;

  CU_TRY(allocated(l));
  l->base.run = run_launch;
  l->base.free = free_launch;
  l->base.kind = KILN__WORK_EMPTY;
  lock_graphs();
  l->steps.demand.launch = ++machine()->graph_launches;
  rc = collect(&l->steps, exec->graph, exec->order, exec->flags);
  kiln__cpu_footprint_launch(stream, &l->steps.demand);
  unlock_graphs();
  if (rc != CUDA_SUCCESS) {
    free_launch(&l->base);
    return rc;
  }
  *out = &l->base;
  return CUDA_SUCCESS;
}

/* Makes a child graph node in the capture. Called for a launch into a stream
 * that captures. */
static CUresult capture_launch(CUgraphExec exec, CUstream s, bool *taken)
{
  CUgraphNode node;
  CUresult rc = kiln__cpu_capture_node(s, CU_GRAPH_NODE_TYPE_GRAPH, &node);

  *taken = node != NULL;
  if (node == NULL)
    return rc;
  node->child = kiln__cpu_graph_copy(exec->graph, false);
  if (node->child != NULL)
    node->child->parent = node->graph;
  else
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  kiln__cpu_capture_node_done();
  return rc;
}

CUresult kiln__cpu_graphLaunch(CUgraphExec exec, CUstream stream)
{
  CUstream s;
  kiln__cpu_work *work = NULL;
  kiln__cpu_mark *mark, *before;
  bool taken = false;
  CUresult rc;

  CU_TRY(kiln__cpu_current_with(exec, KILN__HANDLE_GRAPH_EXEC));
  CU_TRY(kiln__cpu_current_stream(stream, &s));
  CU_TRY(capture_launch(exec, s, &taken));
  if (taken)
    return CUDA_SUCCESS;
  CU_TRY(launch_make(exec, s, &work));
  lock_graphs();
  before = exec->last;
  rc = kiln__cpu_queue_add(s, work, KILN__LATER, &before, 1, &mark);
  if (rc == CUDA_SUCCESS)
    exec->last = mark;
  unlock_graphs();
  if (rc == CUDA_SUCCESS)
    kiln__cpu_mark_drop(before);
  return rc;
}

CUresult kiln__cpu_graphUpload(CUgraphExec exec, CUstream stream)
{
  CUstream s;

  CU_TRY(kiln__cpu_current_with(exec, KILN__HANDLE_GRAPH_EXEC));
  return kiln__cpu_current_stream(stream, &s);
}

/* ---- Changes of an executable graph -------------------------------------- */

/* Returns the copy of the graph with this id, which may be a child graph at any
 * depth. Returns NULL if there is no copy. */
static CUgraph copy_of(CUgraph graph, uint64_t id)
{
  CUgraph found = graph->cloned_from == id ? graph : NULL;

  for (CUgraphNode n = graph->first; n != NULL && found == NULL; n = n->next) {
    if (n->child != NULL)
      found = copy_of(n->child, id);
    for (unsigned i = 0;
         n->branches != NULL && i < n->branches->n && found == NULL; i++)
      found = copy_of(n->branches->graphs[i], id);
  }
  return found;
}

static CUgraphNode node_in(CUgraphExec exec, CUgraphNode node)
{
  CUgraph graph = copy_of(exec->graph, node->graph->id);

  return graph != NULL ? kiln__cpu_node_numbered(graph, node->number) : NULL;
}

CUresult kiln__cpu_exec_change(CUgraphExec exec, CUgraphNode node,
                               kiln__cpu_node_parts *parts)
{
  CUgraphNode own = node_in(exec, node);

  CU_TRY(valid(own != NULL && own->type == parts->type));
  kiln__cpu_node_parts_swap(own, parts);
  return CUDA_SUCCESS;
}

static CUresult enabled_node(CUgraphExec exec, CUgraphNode node,
                             CUgraphNode *own)
{
  CU_TRY(kiln__cpu_ready_with(exec, KILN__HANDLE_GRAPH_EXEC));
  CU_TRY(kiln__cpu_known(node, KILN__HANDLE_GRAPH_NODE));
  *own = node_in(exec, node);
  return valid(*own != NULL && (*own)->type <= CU_GRAPH_NODE_TYPE_MEMSET);
}

CUresult kiln__cpu_graphNodeSetEnabled(CUgraphExec exec, CUgraphNode node,
                                       unsigned int enabled)
{
  CUgraphNode own;
  CUresult rc;

  lock_graphs();
  rc = enabled_node(exec, node, &own);
  if (rc == CUDA_SUCCESS)
    own->enabled = enabled != 0;
  unlock_graphs();
  return rc;
}

CUresult kiln__cpu_graphNodeGetEnabled(CUgraphExec exec, CUgraphNode node,
                                       unsigned int *enabled)
{
  CUgraphNode own;
  CUresult rc;

  CU_TRY(valid(enabled != NULL));
  lock_graphs();
  rc = enabled_node(exec, node, &own);
  if (rc == CUDA_SUCCESS)
    *enabled = own->enabled;
  unlock_graphs();
  return rc;
}

/* ---- Update from another graph with the same edges ----------------------- */

typedef struct difference {
  CUgraphExecUpdateResult result;
  CUgraphNode node; /* node of the new graph that differs from its partner */
} difference;

/* Returns whether the dependencies of two paired nodes are also pairs. An
 * update pairs each node of the new graph with a node of the executable graph.
 * Both nodes of a pair have the same number in `mark`. */
static bool same_edges(CUgraphNode a, CUgraphNode b)
{
  if (a->n_after != b->n_after)
    return false;
  for (size_t i = 0; i < a->n_after; i++) {
    size_t k = 0;

    while (k < b->n_after && b->after[k]->mark != a->after[i]->mark)
      k++;
    if (k == b->n_after)
      return false;
  }
  return true;
}

static difference compare(CUgraph old, CUgraph now);

/* Compares the child graphs, or the bodies, of two paired nodes. */
static difference compare_inner(CUgraphNode a, CUgraphNode b)
{
  difference d = {CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL};

  if (a->child != NULL)
    d = compare(a->child, b->child);
  if (a->branches != NULL &&
      (a->branches->type != b->branches->type ||
       a->branches->n != b->branches->n ||
       a->branches->condition->assigns != b->branches->condition->assigns))
    return (difference){CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, b};
  for (unsigned i = 0; a->branches != NULL && i < a->branches->n &&
                       d.result == CU_GRAPH_EXEC_UPDATE_SUCCESS;
       i++)
    d = compare(a->branches->graphs[i], b->branches->graphs[i]);
  return d;
}

/* Pairs the nodes of the new graph and of the executable graph in the order of
 * their creation. Returns the first difference that an update cannot apply. */
static difference compare(CUgraph old, CUgraph now)
{
  CUgraphNode a = old->first, b = now->first;
  size_t i = 0;

  if (old->n != now->n)
    return (difference){CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL};
  for (; a != NULL; a = a->next, b = b->next, i++)
    a->mark = b->mark = i;
  for (a = old->first, b = now->first; a != NULL; a = a->next, b = b->next) {
    if (a->type != b->type)
      return (difference){CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b};
    if (!same_edges(a, b))
      return (difference){CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b};
    if (a->memory != b->memory)
      return (difference){CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, b};
  }
  for (a = old->first, b = now->first; a != NULL; a = a->next, b = b->next) {
    const difference d = compare_inner(a, b);

    if (d.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return d;
  }
  return (difference){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL};
}

static bool update(CUgraph old, CUgraph now);

static bool update_branches(kiln__cpu_branches *a, const kiln__cpu_branches *b)
{
  kiln__cpu_condition *condition = a->condition;
  bool ok = true;

  a->condition = kiln__cpu_condition_hold(b->condition);
  kiln__cpu_condition_drop(condition);
  for (unsigned i = 0; i < a->n; i++)
    ok = update(a->graphs[i], b->graphs[i]) && ok;
  return ok;
}

/* Applies the work of the new graph to the executable graph, node by node. The
 * caller has checked with compare() that no difference forbids the update.
 * Returns false if there is no memory for the list of conditions. */
static bool update(CUgraph old, CUgraph now)
{
  CUgraphNode b = now->first;
  bool ok;

  kiln__cpu_conditions_drop_all(old);
  ok = kiln__cpu_conditions_copy(old, now);
  for (CUgraphNode a = old->first; a != NULL; a = a->next, b = b->next) {
    kiln__cpu_shared *shared = a->shared;

    a->shared = kiln__cpu_share_hold(b->shared);
    kiln__cpu_share_drop(shared);
    a->context = b->context;
    a->event = b->event;
    if (a->child != NULL)
      ok = update(a->child, b->child) && ok;
    if (a->branches != NULL)
      ok = update_branches(a->branches, b->branches) && ok;
  }
  return ok;
}

CUresult kiln__cpu_graphExecUpdate(CUgraphExec exec, CUgraph graph,
                                   CUgraphExecUpdateResultInfo *result)
{
  bool ok = true;
  difference d;

  CU_TRY(kiln__cpu_ready_with(exec, KILN__HANDLE_GRAPH_EXEC));
  CU_TRY(valid(result != NULL && kiln__cpu_live(graph, KILN__HANDLE_GRAPH)));
  lock_graphs();
  d = compare(exec->graph, graph);
  if (d.result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
    ok = update(exec->graph, graph);
  unlock_graphs();
  if (!ok)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *result =
      (CUgraphExecUpdateResultInfo){.result = d.result, .errorNode = d.node};
  return d.result == CU_GRAPH_EXEC_UPDATE_SUCCESS
             ? CUDA_SUCCESS
             : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult kiln__cpu_graphExecUpdateV1(CUgraphExec exec, CUgraph graph,
                                     CUgraphNode *culprit,
                                     CUgraphExecUpdateResult *result)
{
  CUgraphExecUpdateResultInfo info = {0};
  CUresult rc = kiln__cpu_graphExecUpdate(exec, graph, &info);

  if (culprit != NULL)
    *culprit = info.errorNode;
  if (result != NULL)
    *result = info.result;
  return rc;
}
