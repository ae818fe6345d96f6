/* cases_graph.c -- cases of graphs: nodes, edges, instantiation, updates. */
#include "cases.h"

static void count(void *p)
{
  ++*(int *)p;
}

static cudaGraph_t graph(void)
{
  cudaGraph_t g = NULL;

  OK(cudaGraphCreate(&g, 0));
  return g;
}

/* Adds an empty node after another, or after none. */
static cudaGraphNode_t empty(cudaGraph_t g, cudaGraphNode_t after)
{
  cudaGraphNode_t n = NULL;

  OK(cudaGraphAddEmptyNode(&n, g, &after, after != NULL));
  return n;
}

static cudaKernelNodeParams spinner(void)
{
  cudaKernelNodeParams k;

  memset(&k, 0, sizeof k);
  k.func = &k_spin;
  k.gridDim = k.blockDim = (dim3){1, 1, 1};
  return k;
}

CASE(graph_life)
{
  cudaGraph_t g = graph();
  size_t n = 9;

  OK(cudaGraphGetNodes(g, NULL, &n));
  V(0, n);
  OK(cudaGraphDestroy(g));
}
CASE(graph_bad)
{
  cudaGraph_t g;

  BAD(cudaGraphCreate(NULL, 0));
  BAD(cudaGraphCreate(&g, 5));
  BAD(cudaGraphDestroy(NULL));
}
CASE(graph_edges)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t a = empty(g, NULL), b = empty(g, a), c = empty(g, b);
  size_t n = 0;

  OK(cudaGraphGetEdges(g, NULL, NULL, NULL, &n));
  V(2, n);
  OK(cudaGraphGetRootNodes(g, NULL, &n));
  V(1, n);
  OK(cudaGraphAddDependencies(g, &a, &c, NULL, 1));
  OK(cudaGraphGetEdges(g, NULL, NULL, NULL, &n));
  V(3, n);
  BAD(cudaGraphAddDependencies(g, &a, &c, NULL, 1));
  OK(cudaGraphRemoveDependencies(g, &a, &c, NULL, 1));
  BAD(cudaGraphRemoveDependencies(g, &a, &c, NULL, 1));
  BAD(cudaGraphAddDependencies(g, &a, &a, NULL, 1));
  OK(cudaGraphDestroy(g));
}
CASE(graph_cycle)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t a = empty(g, NULL), b = empty(g, a);
  cudaGraphExec_t x;

  T(ANY, cudaGraphAddDependencies(g, &b, &a, NULL, 1));
  T(ANY, cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphDestroy(g));
}
CASE(graph_node_types)
{
  cudaGraph_t g = graph(), child = graph();
  cudaGraphNode_t n;
  cudaGraphNodeType t = -1;
  cudaKernelNodeParams k = spinner();
  int calls = 0;
  cudaHostNodeParams h = {count, &calls};

  OK(cudaGraphAddEmptyNode(&n, g, NULL, 0));
  OK(cudaGraphNodeGetType(n, &t));
  V(5, t);
  OK(cudaGraphAddKernelNode(&n, g, NULL, 0, &k));
  OK(cudaGraphNodeGetType(n, &t));
  V(0, t);
  OK(cudaGraphAddHostNode(&n, g, NULL, 0, &h));
  OK(cudaGraphNodeGetType(n, &t));
  V(3, t);
  OK(cudaGraphAddChildGraphNode(&n, g, NULL, 0, child));
  OK(cudaGraphNodeGetType(n, &t));
  V(4, t);
  OK(cudaGraphDestroy(child));
  OK(cudaGraphDestroy(g));
}
CASE(graph_node_bad)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n;
  cudaKernelNodeParams k = spinner();

  BAD(cudaGraphAddEmptyNode(NULL, g, NULL, 0));
  BAD(cudaGraphAddEmptyNode(&n, g, NULL, 2));
  BAD(cudaGraphAddKernelNode(&n, g, NULL, 0, NULL));
  k.func = &n;
  T(cudaErrorInvalidResourceHandle, cudaGraphAddKernelNode(&n, g, NULL, 0, &k));
  k = spinner();
  k.gridDim.x = 0;
  T(ANY, cudaGraphAddKernelNode(&n, g, NULL, 0, &k));
  OK(cudaGraphDestroy(g));
}
CASE(graph_dependency_of_other_graph)
{
  cudaGraph_t g = graph(), h = graph();
  cudaGraphNode_t a = empty(g, NULL), b;

  BAD(cudaGraphAddEmptyNode(&b, h, &a, 1));
  OK(cudaGraphDestroy(g));
  OK(cudaGraphDestroy(h));
}
CASE(graph_destroy_node)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t a = empty(g, NULL), b = empty(g, a);
  size_t n = 9;

  OK(cudaGraphDestroyNode(a));
  OK(cudaGraphGetNodes(g, NULL, &n));
  V(1, n);
  OK(cudaGraphNodeGetDependencies(b, NULL, NULL, &n));
  V(0, n);
  OK(cudaGraphDestroy(g));
}
CASE(graph_dependents)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t a = empty(g, NULL), list[4];
  size_t n = 4;

  empty(g, a);
  empty(g, a);
  OK(cudaGraphNodeGetDependentNodes(a, list, NULL, &n));
  V(2, n);
  n = 1;
  OK(cudaGraphNodeGetDependentNodes(a, list, NULL, &n));
  V(1, n);
  OK(cudaGraphDestroy(g));
}
CASE(graph_instantiate)
{
  cudaGraph_t g = graph();
  cudaGraphExec_t x = NULL;
  unsigned long long f = 9;

  empty(g, NULL);
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphExecGetFlags(x, &f));
  V(0, f);
  OK(cudaGraphUpload(x, NULL));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaStreamSynchronize(NULL));
  OK(cudaGraphExecDestroy(x));
  BAD(cudaGraphInstantiate(NULL, g, 0));
  BAD(cudaGraphInstantiate(&x, g, 0x100));
  OK(cudaGraphDestroy(g));
}
CASE(graph_launch_null)
{
  BAD(cudaGraphLaunch(NULL, NULL));
  BAD(cudaGraphExecDestroy(NULL));
}
CASE(graph_outlived_by_exec)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n;
  cudaGraphExec_t x;
  int calls = 0;
  cudaHostNodeParams h = {count, &calls};

  OK(cudaGraphAddHostNode(&n, g, NULL, 0, &h));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphDestroy(g));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaStreamSynchronize(NULL));
  V(2, calls);
  OK(cudaGraphExecDestroy(x));
}
CASE(graph_clone)
{
  cudaGraph_t g = graph(), c = NULL;
  cudaGraphNode_t a = empty(g, NULL), found = NULL;
  size_t n = 0;

  OK(cudaGraphClone(&c, g));
  OK(cudaGraphGetNodes(c, NULL, &n));
  V(1, n);
  OK(cudaGraphNodeFindInClone(&found, a, c));
  V(1, found != NULL && found != a);
  T(ANY, cudaGraphNodeFindInClone(&found, found, g));
  OK(cudaGraphDestroy(c));
  OK(cudaGraphDestroy(g));
}
CASE(graph_kernel_parameters)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n;
  cudaKernelNodeParams k = spinner(), seen;

  k.gridDim = (dim3){3, 1, 1};
  OK(cudaGraphAddKernelNode(&n, g, NULL, 0, &k));
  OK(cudaGraphKernelNodeGetParams(n, &seen));
  V(3, seen.gridDim.x);
  k.gridDim.x = 5;
  OK(cudaGraphKernelNodeSetParams(n, &k));
  OK(cudaGraphKernelNodeGetParams(n, &seen));
  V(5, seen.gridDim.x);
  OK(cudaGraphDestroy(g));
}
CASE(graph_parameters_of_other_type)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n = empty(g, NULL);
  cudaKernelNodeParams k;
  cudaHostNodeParams h;

  BAD(cudaGraphKernelNodeGetParams(n, &k));
  BAD(cudaGraphHostNodeGetParams(n, &h));
  OK(cudaGraphDestroy(g));
}
CASE(graph_copy_nodes)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t up, down;
  cudaGraphExec_t x;
  int *p, in = 31, out = 0;

  OK(cudaMalloc((void **)&p, 4));
  OK(cudaGraphAddMemcpyNode1D(&up, g, NULL, 0, p, &in, 4,
                              cudaMemcpyHostToDevice));
  OK(cudaGraphAddMemcpyNode1D(&down, g, &up, 1, &out, p, 4,
                              cudaMemcpyDeviceToHost));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaStreamSynchronize(NULL));
  V(31, out);
  OK(cudaGraphExecMemcpyNodeSetParams1D(x, up, p, &out, 4,
                                        cudaMemcpyHostToDevice));
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
  OK(cudaFree(p));
}
CASE(graph_memset_node)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n;
  cudaGraphExec_t x;
  cudaMemsetParams m;
  short *p, out[4] = {0};

  OK(cudaMalloc((void **)&p, 8));
  memset(&m, 0, sizeof m);
  m.dst = p;
  m.value = 0x1234;
  m.elementSize = 2;
  m.width = 4;
  m.height = 1;
  OK(cudaGraphAddMemsetNode(&n, g, NULL, 0, &m));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaMemcpy(out, p, 8, cudaMemcpyDeviceToHost));
  V(0x1234, out[3]);
  m.elementSize = 3;
  BAD(cudaGraphAddMemsetNode(&n, g, NULL, 0, &m));
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
  OK(cudaFree(p));
}
CASE(graph_disable_node)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n;
  cudaGraphExec_t x;
  cudaKernelNodeParams k = spinner();
  unsigned on = 9;

  OK(cudaGraphAddKernelNode(&n, g, NULL, 0, &k));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphNodeGetEnabled(x, n, &on));
  V(1, on);
  OK(cudaGraphNodeSetEnabled(x, n, 0));
  OK(cudaGraphNodeGetEnabled(x, n, &on));
  V(0, on);
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaStreamSynchronize(NULL));
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
}
CASE(graph_update)
{
  cudaGraph_t g = graph(), h = graph(), i = graph();
  cudaGraphNode_t n;
  cudaGraphExec_t x;
  cudaKernelNodeParams k = spinner();
  cudaGraphExecUpdateResultInfo info;

  memset(&info, 0, sizeof info);
  OK(cudaGraphAddKernelNode(&n, g, NULL, 0, &k));
  OK(cudaGraphInstantiate(&x, g, 0));
  k.gridDim.x = 2;
  OK(cudaGraphAddKernelNode(&n, h, NULL, 0, &k));
  OK(cudaGraphExecUpdate(x, h, &info));
  V(0, info.result);
  empty(i, NULL);
  T(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(x, i, &info));
  printf("  result %d\n", info.result);
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
  OK(cudaGraphDestroy(h));
  OK(cudaGraphDestroy(i));
}
CASE(graph_event_nodes)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t n;
  cudaEvent_t e, seen = NULL;

  OK(cudaEventCreate(&e));
  OK(cudaGraphAddEventRecordNode(&n, g, NULL, 0, e));
  OK(cudaGraphEventRecordNodeGetEvent(n, &seen));
  V(1, seen == e);
  OK(cudaGraphAddEventWaitNode(&n, g, NULL, 0, e));
  OK(cudaGraphEventWaitNodeGetEvent(n, &seen));
  V(1, seen == e);
  BAD(cudaGraphEventRecordNodeGetEvent(n, &seen));
  OK(cudaGraphDestroy(g));
  OK(cudaEventDestroy(e));
}
CASE(graph_user_object)
{
  cudaGraph_t g = graph();
  cudaUserObject_t o;
  int calls = 0;

  OK(cudaUserObjectCreate(&o, &calls, count, 1, 1));
  OK(cudaGraphRetainUserObject(g, o, 1, 1));
  V(0, calls);
  BAD(cudaUserObjectCreate(NULL, &calls, count, 1, 1));
  BAD(cudaUserObjectCreate(&o, &calls, NULL, 1, 1));
  BAD(cudaUserObjectCreate(&o, &calls, count, 0, 1));
  BAD(cudaUserObjectCreate(&o, &calls, count, 1, 0));
  OK(cudaGraphDestroy(g));
}
CASE(graph_conditional)
{
  cudaGraph_t g = graph();
  cudaGraphConditionalHandle h = 0;

  OK(cudaGraphConditionalHandleCreate(&h, g, 1, 1));
  OK(cudaGraphConditionalHandleCreate(&h, g, 0, 0));
  BAD(cudaGraphConditionalHandleCreate(NULL, g, 0, 0));
  T(ANY, cudaGraphConditionalHandleCreate(&h, g, 0, 8));
  OK(cudaGraphDestroy(g));
}
CASE(graph_memory_nodes)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t a, b;
  cudaGraphExec_t x, y;
  cudaMemAllocNodeParams m;

  memset(&m, 0, sizeof m);
  m.poolProps.allocType = 1;
  m.poolProps.location.type = 1;
  m.bytesize = 256;
  OK(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &m));
  V(1, m.dptr != 0);
  OK(cudaGraphAddMemFreeNode(&b, g, &a, 1, (void *)m.dptr));
  OK(cudaGraphInstantiate(&x, g, 0));
  T(ANY, cudaGraphInstantiate(&y, g, 0));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaStreamSynchronize(NULL));
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
}
CASE(graph_print)
{
  cudaGraph_t g = graph();

  empty(g, NULL);
  T(ANY, cudaGraphDebugDotPrint(g, "/nowhere/x.dot", 0));
  OK(cudaGraphDestroy(g));
}
CASE(graph_attributes)
{
  cudaGraph_t g = graph();
  cudaGraphNode_t a, b;
  cudaKernelNodeParams k = spinner();
  cudaLaunchAttributeValue v;

  memset(&v, 0, sizeof v);
  OK(cudaGraphAddKernelNode(&a, g, NULL, 0, &k));
  OK(cudaGraphAddKernelNode(&b, g, NULL, 0, &k));
  OK(cudaGraphKernelNodeSetAttribute(a, 2, &v));
  OK(cudaGraphKernelNodeCopyAttributes(b, a));
  OK(cudaGraphKernelNodeGetAttribute(b, 2, &v));
  V(0, v.cooperative);
  v.cooperative = 1;
  T(ANY, cudaGraphKernelNodeSetAttribute(a, 2, &v));
  BAD(cudaGraphKernelNodeGetAttribute(b, 99, &v));
  OK(cudaGraphDestroy(g));
}
