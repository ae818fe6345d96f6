/* api_graph_test.c -- graphs and stream capture of the CPU device's driver. */
#include "api_fixture.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t seed = 3;

static unsigned below(unsigned n)
{
  return (unsigned)(test_random(&seed) % n);
}

/* ---- Orders -------------------------------------------------------------- */

enum { MOST = 60 };

typedef struct visit {
  atomic_int *clock;
  int at, times;
} visit;

static void visit_fn(void *user)
{
  visit *v = user;

  v->at = atomic_fetch_add(v->clock, 1);
  v->times++;
}

static CUgraphNode host_node(CUgraph g, const CUgraphNode *after, size_t n,
                             CUhostFn fn, void *user)
{
  const CUDA_HOST_NODE_PARAMS p = {.fn = fn, .userData = user};
  CUgraphNode node;

  ok(cu(graphAddHostNode)(&node, g, after, n, &p));
  return node;
}

static CUgraphExec instance(CUgraph g)
{
  CUgraphExec x;

  ok(cu(graphInstantiateWithFlags)(&x, g, 0));
  return x;
}

/* Random graphs without cycles. Each launch runs every node once, after all nodes
 * that it depends on. */
START_TEST(random_graphs_run_in_order)
{
  CUcontext c = make_context();
  CUstream s = make_stream(0);

  for (int round = 0; round < 60; round++) {
    const int n = 1 + (int)below(MOST);
    bool edge[MOST][MOST] = {{false}};
    CUgraphNode node[MOST];
    visit v[MOST];
    int rank[MOST];
    atomic_int clock = 0;
    size_t n_edges = 0, counted;
    CUgraph g;
    CUgraphExec x;

    ok(cu(graphCreate)(&g, 0));
    for (int i = 0; i < n; i++) {
      rank[i] = i;
      v[i] = (visit){.clock = &clock};
      node[i] = host_node(g, NULL, 0, visit_fn, &v[i]);
    }
    for (int i = n - 1; i > 0; i--) {
      const int k = (int)below((unsigned)i + 1), t = rank[i];

      rank[i] = rank[k];
      rank[k] = t;
    }
    for (int i = 0; i < 3 * n; i++) {
      const int a = (int)below((unsigned)n), b = (int)below((unsigned)n);

      if (rank[a] < rank[b] && !edge[a][b]) {
        ok(cu(graphAddDependencies)(g, &node[a], &node[b], 1));
        is(cu(graphAddDependencies)(g, &node[a], &node[b], 1),
           CUDA_ERROR_INVALID_VALUE);
        edge[a][b] = true;
        n_edges++;
      }
    }
    ok(cu(graphGetEdges)(g, NULL, NULL, &counted));
    ck_assert_uint_eq(counted, n_edges);
    x = instance(g);
    ok(cu(graphDestroy)(g)); /* the executable graph is a copy */
    for (int launch = 1; launch <= 3; launch++) {
      ok(cu(graphLaunch)(x, s));
      ok(cu(streamSynchronize)(s));
      for (int a = 0; a < n; a++) {
        ck_assert_int_eq(v[a].times, launch);
        for (int b = 0; b < n; b++)
          ck_assert(!edge[a][b] || v[a].at < v[b].at);
      }
    }
    ok(cu(graphExecDestroy)(x));
  }
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(a_cycle_is_no_graph_to_run)
{
  CUgraph g, child;
  CUgraphNode a, b, d, e;
  CUgraphExec x;
  CUgraphNode culprit;
  char log[16] = "x";
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

  make_context();
  ok(cu(graphCreate)(&g, 0));
  ok(cu(graphAddEmptyNode)(&a, g, NULL, 0));
  ok(cu(graphAddEmptyNode)(&b, g, &a, 1));
  ok(cu(graphAddDependencies)(g, &b, &a, 1));
  is(cu(graphInstantiate)(&x, g, &culprit, log, sizeof log),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(graphInstantiateWithParams)(&x, g, &params), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  ok(cu(graphRemoveDependencies)(g, &b, &a, 1));
  is(cu(graphRemoveDependencies)(g, &b, &a, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphInstantiate)(&x, g, &culprit, log, sizeof log));
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphCreate)(&child, 0));
  ok(cu(graphAddEmptyNode)(&d, child, NULL, 0));
  ok(cu(graphAddEmptyNode)(&e, child, &d, 1));
  ok(cu(graphAddDependencies)(child, &e, &d, 1));
  ok(cu(graphAddChildGraphNode)(&a, g, &b, 1, child));
  is(cu(graphInstantiateWithFlags)(&x, g, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphDestroy)(child));
  ok(cu(graphDestroy)(g));
}
END_TEST

START_TEST(graphs_answer_questions)
{
  CUgraph g, clone;
  CUgraphNode n[4], got[8], from[8], to[8];
  size_t count;
  CUgraphNodeType type;

  make_context();
  ok(cu(graphCreate)(&g, 0));
  ok(cu(graphAddEmptyNode)(&n[0], g, NULL, 0));
  ok(cu(graphAddEmptyNode)(&n[1], g, &n[0], 1));
  ok(cu(graphAddEmptyNode)(&n[2], g, &n[0], 1));
  ok(cu(graphAddEmptyNode)(&n[3], g, &n[1], 2));
  ok(cu(graphGetNodes)(g, NULL, &count));
  ck_assert_uint_eq(count, 4);
  count = 8;
  ok(cu(graphGetNodes)(g, got, &count));
  ck_assert_uint_eq(count, 4);
  ck_assert_mem_eq(got, n, sizeof n);
  ck_assert_ptr_null(got[4]);
  count = 2;
  ok(cu(graphGetNodes)(g, got, &count));
  ck_assert_uint_eq(count, 2);
  ok(cu(graphGetRootNodes)(g, NULL, &count));
  ck_assert_uint_eq(count, 1);
  count = 8;
  ok(cu(graphGetEdges)(g, from, to, &count));
  ck_assert_uint_eq(count, 4);
  ok(cu(graphNodeGetDependencies)(n[3], NULL, &count));
  ck_assert_uint_eq(count, 2);
  count = 8;
  ok(cu(graphNodeGetDependentNodes)(n[0], got, &count));
  ck_assert_uint_eq(count, 2);
  ck_assert_ptr_eq(got[0], n[1]);
  ck_assert_ptr_eq(got[1], n[2]);
  ok(cu(graphNodeGetType)(n[0], &type));
  ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_EMPTY);

  ok(cu(graphClone)(&clone, g));
  ok(cu(graphNodeFindInClone)(&got[0], n[3], clone));
  ck_assert_ptr_ne(got[0], n[3]);
  count = 8;
  ok(cu(graphNodeGetDependencies)(got[0], from, &count));
  ck_assert_uint_eq(count, 2);
  is(cu(graphNodeFindInClone)(&got[0], got[0], clone),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphDestroyNode)(n[1]));
  is(cu(graphDestroyNode)(n[1]), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphNodeGetDependencies)(n[3], NULL, &count));
  ck_assert_uint_eq(count, 1);
  ok(cu(graphAddEmptyNode)(&n[1], g, &n[3], 1)); /* the list still has an end */
  ok(cu(graphGetNodes)(g, NULL, &count));
  ck_assert_uint_eq(count, 4);
  ok(cu(graphGetNodes)(clone, NULL, &count));
  ck_assert_uint_eq(count, 4);
  ok(cu(graphDestroy)(g));
  is(cu(graphDestroy)(g), CUDA_ERROR_INVALID_VALUE);
  is(cu(graphGetNodes)(g, NULL, &count), CUDA_ERROR_INVALID_VALUE);
  is(cu(graphNodeGetType)(n[0], &type), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphDestroy)(clone));
}
END_TEST

/* ---- What nodes do ------------------------------------------------------- */

START_TEST(nodes_copy_fill_and_call)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  CUdeviceptr p, q;
  uint32_t out[64] = {0};
  atomic_int n = 0;
  CUgraph g;
  CUgraphNode fill, copy, back, call;
  CUgraphExec x;
  CUDA_MEMSET_NODE_PARAMS f = {
      .value = 7, .elementSize = 4, .width = 64, .height = 1};
  CUDA_MEMCPY3D k = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                     .WidthInBytes = 256,
                     .Height = 1,
                     .Depth = 1};
  CUDA_MEMCPY3D got;
  CUDA_MEMSET_NODE_PARAMS fg;
  CUDA_HOST_NODE_PARAMS hg;
  unsigned enabled;

  ok(cu(memAlloc)(&p, 256));
  ok(cu(memAlloc)(&q, 256));
  ok(cu(graphCreate)(&g, 0));
  f.dst = p;
  ok(cu(graphAddMemsetNode)(&fill, g, NULL, 0, &f, c));
  k.srcDevice = p;
  k.dstDevice = q;
  ok(cu(graphAddMemcpyNode)(&copy, g, &fill, 1, &k, c));
  k = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                      .srcDevice = q,
                      .dstMemoryType = CU_MEMORYTYPE_HOST,
                      .dstHost = out,
                      .WidthInBytes = 256,
                      .Height = 1,
                      .Depth = 1};
  ok(cu(graphAddMemcpyNode)(&back, g, &copy, 1, &k, c));
  call = host_node(g, &back, 1, count_fn, &n);
  ok(cu(graphMemcpyNodeGetParams)(back, &got));
  ck_assert_ptr_eq(got.dstHost, out);
  ok(cu(graphMemsetNodeGetParams)(fill, &fg));
  ck_assert_uint_eq(fg.value, 7);
  ok(cu(graphHostNodeGetParams)(call, &hg));
  ck_assert_ptr_eq(hg.userData, &n);
  is(cu(graphMemsetNodeGetParams)(copy, &fg), CUDA_ERROR_INVALID_VALUE);
  x = instance(g);
  ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(out[0], 7);
  ck_assert_uint_eq(out[63], 7);
  ck_assert_int_eq(atomic_load(&n), 1);

  f.value = 9; /* changes the graph's node only */
  ok(cu(graphMemsetNodeSetParams)(fill, &f));
  ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(out[5], 7);
  f.value = 11; /* changes the executable graph only */
  ok(cu(graphExecMemsetNodeSetParams)(x, fill, &f, c));
  ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(out[5], 11);
  ok(cu(graphMemsetNodeGetParams)(fill, &fg));
  ck_assert_uint_eq(fg.value, 9);
  ok(cu(graphNodeGetEnabled)(x, copy, &enabled));
  ck_assert_uint_eq(enabled, 1);
  ok(cu(memsetD8)(q, 0, 256));
  ok(cu(graphNodeSetEnabled)(x, copy, 0));
  ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(out[5], 0);
  is(cu(graphNodeSetEnabled)(x, call, 0), CUDA_ERROR_INVALID_VALUE);
  f.dst = p + 4; /* beyond the end */
  is(cu(graphExecMemsetNodeSetParams)(x, fill, &f, c),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(graphAddMemsetNode)(&fill, g, NULL, 0, &f, c),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphExecDestroy)(x));
  is(cu(graphLaunch)(x, s), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphDestroy)(g));
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(child_graphs_are_copies)
{
  CUcontext c = make_context();
  atomic_int a = 0, b = 0;
  CUgraph g, child, inside;
  CUgraphNode node, call;
  CUgraphExec x;
  const CUDA_HOST_NODE_PARAMS other = {.fn = count_fn, .userData = &b};

  ok(cu(graphCreate)(&g, 0));
  ok(cu(graphCreate)(&child, 0));
  host_node(child, NULL, 0, count_fn, &a);
  ok(cu(graphAddChildGraphNode)(&node, g, NULL, 0, child));
  host_node(child, NULL, 0, count_fn, &a); /* after the copy was made */
  ok(cu(graphDestroy)(child));
  ok(cu(graphChildGraphNodeGetGraph)(node, &inside));
  is(cu(graphDestroy)(inside), CUDA_ERROR_INVALID_VALUE);
  x = instance(g);
  ok(cu(graphLaunch)(x, NULL));
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&a), 1);
  call = NULL;
  ok(cu(graphGetNodes)(inside, &call, &(size_t){1}));
  ok(cu(graphExecHostNodeSetParams)(x, call, &other));
  ok(cu(graphLaunch)(x, NULL));
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&a), 1);
  ck_assert_int_eq(atomic_load(&b), 1);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g));
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(events_inside_graphs)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1), t = make_stream(1);
  CUevent gate_event = make_event(), done = make_event(), got;
  gate g = {0};
  atomic_int n = 0;
  CUgraph graph;
  CUgraphNode wait, call, record;
  CUgraphExec x;

  ok(cu(graphCreate)(&graph, 0));
  ok(cu(graphAddEventWaitNode)(&wait, graph, NULL, 0, gate_event));
  call = host_node(graph, &wait, 1, count_fn, &n);
  ok(cu(graphAddEventRecordNode)(&record, graph, &call, 1, done));
  ok(cu(graphEventRecordNodeGetEvent)(record, &got));
  ck_assert_ptr_eq(got, done);
  is(cu(graphEventWaitNodeGetEvent)(record, &got), CUDA_ERROR_INVALID_VALUE);
  x = instance(graph);
  ok(cu(launchHostFunc)(t, gate_fn, &g));
  ok(cu(eventRecord)(gate_event, t));
  ok(cu(graphLaunch)(x, s));
  usleep(2000);
  ck_assert_int_eq(atomic_load(&n), 0);
  is(cu(eventQuery)(done), CUDA_ERROR_NOT_READY);
  atomic_store(&g.open, true);
  ok(cu(eventSynchronize)(done));
  ck_assert_int_eq(atomic_load(&n), 1);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(graph));
  ok(cu(ctxDestroy)(c));
}
END_TEST

static atomic_int inside, most_inside;

static void busy_fn(void *user)
{
  const int now = atomic_fetch_add(&inside, 1) + 1;

  (void)user;
  if (now > atomic_load(&most_inside))
    atomic_store(&most_inside, now);
  usleep(2000);
  atomic_fetch_sub(&inside, 1);
}

START_TEST(launches_of_one_executable_do_not_overlap)
{
  CUcontext c = make_context();
  CUstream s[4];
  gate g = {0};
  atomic_int n = 0;
  CUgraph graph;
  CUgraphExec x;
  CUgraphNode node;

  ok(cu(graphCreate)(&graph, 0));
  node = host_node(graph, NULL, 0, gate_fn, &g);
  node = host_node(graph, &node, 1, busy_fn, NULL);
  host_node(graph, &node, 1, count_fn, &n);
  x = instance(graph);
  for (int i = 0; i < 4; i++) {
    s[i] = make_stream(1);
    ok(cu(graphLaunch)(x, s[i]));
  }
  gate_wait(&g);
  is(cu(streamQuery)(s[3]), CUDA_ERROR_NOT_READY);
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(graphExecDestroy)(x)); /* while it runs */
  ok(cu(graphDestroy)(graph));
  atomic_store(&g.open, true);
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n), 4);
  ck_assert_int_eq(atomic_load(&most_inside), 1);
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(memory_of_graphs)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  CUDA_MEM_ALLOC_NODE_PARAMS p = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
      .bytesize = 400};
  CUDA_MEMSET_NODE_PARAMS f = {
      .value = 3, .elementSize = 1, .width = 400, .height = 1};
  CUgraph g, clone;
  CUgraphNode a, b, d;
  CUgraphExec x, y;
  uint8_t byte = 0;
  uint64_t used;
  CUdeviceptr address;

  ok(cu(graphCreate)(&g, 0));
  ok(cu(graphAddMemAllocNode)(&a, g, NULL, 0, &p));
  f.dst = p.dptr;
  ok(cu(graphAddMemsetNode)(&b, g, &a, 1, &f, c));
  ok(cu(deviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                    &used));
  ck_assert_uint_eq(used, 400);
  x = instance(g);
  ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
  ok(cu(memcpyDtoH)(&byte, p.dptr + 399, 1));
  ck_assert_uint_eq(byte, 3);
  is(cu(graphLaunch)(x, s), CUDA_ERROR_INVALID_VALUE); /* not freed yet */
  ok(cu(memFreeAsync)(p.dptr, s));
  ok(cu(graphLaunch)(x, s));
  ok(cu(memFree)(p.dptr));
  ok(cu(graphAddMemFreeNode)(&d, g, &b, 1, p.dptr));
  ok(cu(graphMemFreeNodeGetParams)(d, &address));
  ck_assert_uint_eq(address, p.dptr);
  y = instance(g);
  ok(cu(graphLaunch)(y, s));
  ok(cu(graphLaunch)(y, s));
  ok(cu(streamSynchronize)(s));
  is(cu(graphClone)(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
  is(cu(graphAddMemFreeNode)(&d, g, NULL, 0, 1234), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphExecDestroy)(y));
  ok(cu(graphDestroy)(g));
  ok(cu(deviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                    &used));
  ck_assert_uint_eq(used, 0);
  is(cu(memcpyDtoH)(&byte, p.dptr, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(an_executable_is_updated_from_a_graph)
{
  CUcontext c = make_context();
  atomic_int n[4] = {0};
  CUgraph g[3];
  CUgraphExec x;
  CUgraphExecUpdateResultInfo info;

  for (int i = 0; i < 3; i++) {
    CUgraphNode a;

    ok(cu(graphCreate)(&g[i], 0));
    a = host_node(g[i], NULL, 0, count_fn, &n[i]);
    host_node(g[i], i == 2 ? NULL : &a, i == 2 ? 0 : 1, count_fn, &n[3]);
  }
  x = instance(g[0]);
  ok(cu(graphExecUpdate)(x, g[1], &info));
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  ok(cu(graphLaunch)(x, NULL));
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n[0]), 0);
  ck_assert_int_eq(atomic_load(&n[1]), 1);
  ck_assert_int_eq(atomic_load(&n[3]), 1);
  is(cu(graphExecUpdate)(x, g[2], &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  ck_assert_ptr_nonnull(info.errorNode);
  ok(cu(graphDestroy)(g[1])); /* the executable graph keeps its work */
  ok(cu(graphLaunch)(x, NULL));
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n[1]), 2);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g[0]));
  ok(cu(graphDestroy)(g[2]));
  ok(cu(ctxDestroy)(c));
}
END_TEST

static CUresult count_run(kiln__cpu_work *work, CUstream s)
{
  (void)s;
  atomic_fetch_add((atomic_int *)(void *)(work + 1), 1);
  return CUDA_SUCCESS;
}

static atomic_int freed;

static void count_free(kiln__cpu_work *work)
{
  atomic_fetch_add(&freed, 1);
  free(work);
}

/* Work that other files enqueue is captured, run several times, freed once. */
START_TEST(captured_work_is_freed_once)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  kiln__cpu_work *w = calloc(1, sizeof *w + sizeof(atomic_int));
  CUgraph g, clone;
  CUgraphExec x, y;

  w->run = count_run;
  w->free = count_free;
  w->kind = KILN__WORK_KERNEL;
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(kiln__cpu_enqueue(c, s, w));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphClone)(&clone, g));
  x = instance(g);
  y = instance(clone);
  ok(cu(graphDestroy)(g));
  ok(cu(graphDestroy)(clone));
  for (int i = 0; i < 5; i++) {
    ok(cu(graphLaunch)(x, s));
    ok(cu(graphLaunch)(y, s));
  }
  ok(cu(streamSynchronize)(s));
  ck_assert_int_eq(atomic_load((atomic_int *)(void *)(w + 1)), 10);
  ok(cu(graphExecDestroy)(x));
  ck_assert_int_eq(atomic_load(&freed), 0);
  ok(cu(graphExecDestroy)(y));
  ck_assert_int_eq(atomic_load(&freed), 1);
  ok(cu(ctxDestroy)(c));
}
END_TEST

/* ---- User objects -------------------------------------------------------- */

START_TEST(user_objects_live_as_long_as_graphs)
{
  atomic_int destroyed = 0;
  CUuserObject o;
  CUgraph g, clone;

  make_context();
  ok(cu(graphCreate)(&g, 0));
  ok(cu(userObjectCreate)(&o, &destroyed, count_fn, 1,
                          CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  ok(cu(graphRetainUserObject)(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
  ok(cu(graphClone)(&clone, g));
  ok(cu(graphDestroy)(g));
  ck_assert_int_eq(atomic_load(&destroyed), 0);
  ok(cu(userObjectRetain)(o, 2));
  ok(cu(graphDestroy)(clone));
  ok(cu(userObjectRelease)(o, 1));
  ck_assert_int_eq(atomic_load(&destroyed), 0);
  ok(cu(userObjectRelease)(o, 1));
  ck_assert_int_eq(atomic_load(&destroyed), 1);
  is(cu(userObjectRelease)(o, 1), CUDA_ERROR_INVALID_VALUE);
  is(cu(userObjectCreate)(&o, NULL, count_fn, 0, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Capture ------------------------------------------------------------- */

static size_t nodes_of(CUgraph g)
{
  size_t n;

  ok(cu(graphGetNodes)(g, NULL, &n));
  return n;
}

/* Captures a random program of forks and joins, and records its order as lists.
 * The graph has to run in every order that the lists demand. */
START_TEST(random_captures_keep_the_order)
{
  enum { STREAMS = 4, OPS = 40 };
  CUcontext c = make_context();

  for (int round = 0; round < 40; round++) {
    CUstream s[STREAMS];
    bool before[OPS][OPS] = {{false}}, tail[STREAMS][OPS] = {{false}};
    bool mark[STREAMS][OPS] = {{false}}, in[STREAMS] = {true};
    CUevent e[STREAMS];
    visit v[OPS];
    atomic_int clock = 0;
    CUgraph g;
    CUgraphExec x;

    for (int i = 0; i < STREAMS; i++) {
      s[i] = make_stream(1);
      e[i] = make_event();
    }
    ok(cu(streamBeginCapture)(s[0], (int)below(3)));
    for (int i = 0; i < OPS; i++) {
      const int a = (int)below(STREAMS), b = (int)below(STREAMS);

      v[i] = (visit){.clock = &clock};
      if (in[a] && below(3) == 0) { /* b continues after a, too */
        ok(cu(eventRecord)(e[a], s[a]));
        memcpy(mark[a], tail[a], sizeof mark[a]);
        ok(cu(streamWaitEvent)(s[b], e[a], 0));
        for (int k = 0; k < OPS; k++)
          tail[b][k] = tail[b][k] || mark[a][k];
        in[b] = true;
      }
      if (!in[a])
        continue;
      ok(cu(launchHostFunc)(s[a], visit_fn, &v[i]));
      memcpy(before[i], tail[a], sizeof before[i]);
      tail[a][i] = true;
    }
    for (int i = 1; i < STREAMS; i++) {
      if (in[i]) {
        ok(cu(eventRecord)(e[i], s[i]));
        ok(cu(streamWaitEvent)(s[0], e[i], 0));
      }
    }
    ok(cu(streamEndCapture)(s[0], &g));
    ck_assert_int_eq(atomic_load(&clock), 0); /* nothing has run yet */
    x = instance(g);
    ok(cu(graphLaunch)(x, s[1]));
    ok(cu(streamSynchronize)(s[1]));
    for (int i = 0; i < OPS; i++) {
      for (int k = 0; k < OPS; k++)
        ck_assert(!before[i][k] || v[k].at < v[i].at);
    }
    ok(cu(graphExecDestroy)(x));
    ok(cu(graphDestroy)(g));
    for (int i = 0; i < STREAMS; i++) {
      ok(cu(streamDestroy)(s[i]));
      ok(cu(eventDestroy)(e[i]));
    }
  }
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(all_kinds_of_work_are_captured)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  CUdeviceptr p, q;
  CUevent e = make_event();
  uint32_t in[4] = {1, 2, 3, 4}, out[4] = {0};
  CUgraph g, inner;
  CUgraphExec x, y;
  CUgraphNode nodes[16];
  size_t n = 16;
  int kinds[14] = {0};
  atomic_int calls = 0;

  ok(cu(memAlloc)(&p, 64));
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamEndCapture)(s, &inner));
  y = instance(inner);
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(memAllocAsync)(&q, 64, s));
  ok(cu(memcpyHtoDAsync)(p, in, 16, s));
  ok(cu(memsetD32Async)(p + 4, 9, 1, s));
  ok(cu(memcpyDtoDAsync)(q, p, 16, s));
  ok(cu(memcpyDtoHAsync)(out, q, 16, s));
  ok(cu(memFreeAsync)(q, s));
  ok(cu(streamWriteValue32)(s, p + 32, 5, 0));
  ok(cu(eventRecordWithFlags)(e, s, CU_EVENT_RECORD_EXTERNAL));
  ok(cu(streamWaitEvent)(s, e, CU_EVENT_WAIT_EXTERNAL));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphGetNodes)(g, nodes, &n));
  for (size_t i = 0; i < n; i++) {
    int type;

    ok(cu(graphNodeGetType)(nodes[i], &type));
    kinds[type]++;
  }
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEMCPY], 3);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEMSET], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEM_ALLOC], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_MEM_FREE], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_EVENT_RECORD], 1);
  ck_assert_int_eq(kinds[CU_GRAPH_NODE_TYPE_WAIT_EVENT], 1);
  x = instance(g);
  in[0] = 100; /* read when the graph runs */
  for (int i = 0; i < 3; i++)
    ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
  ck_assert_uint_eq(out[0], 100);
  ck_assert_uint_eq(out[1], 9);
  ck_assert_uint_eq(out[3], 4);
  ok(cu(memcpyDtoH)(out, p + 32, 4));
  ck_assert_uint_eq(out[0], 5);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g));
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(graphLaunch)(y, s));
  ok(cu(streamEndCapture)(s, &g));
  n = 16;
  ok(cu(graphGetNodes)(g, nodes, &n));
  ck_assert_uint_eq(n, 1);
  ok(cu(graphNodeGetType)(nodes[0], &kinds[0]));
  ck_assert_int_eq(kinds[0], CU_GRAPH_NODE_TYPE_GRAPH);
  ok(cu(graphDestroy)(g));
  ok(cu(graphExecDestroy)(y));
  ok(cu(graphDestroy)(inner));
  ok(cu(ctxDestroy)(c));
}
END_TEST

static CUstreamCaptureStatus status_of(CUstream s)
{
  CUstreamCaptureStatus status;

  ok(cu(streamIsCapturing)(s, &status));
  return status;
}

/* The call fails and invalidates the capture. */
#define spoils(call, want)                                                     \
  do {                                                                         \
    ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));              \
    is(call, want);                                                            \
    ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);      \
    is(cu(launchHostFunc)(s, count_fn, &n),                                    \
       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);                                 \
    is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);    \
    ck_assert_ptr_null(g);                                                     \
    ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);             \
  } while (0)

static void nothing_cb(CUstream stream, CUresult status, void *user)
{
  (void)stream;
  (void)status;
  (void)user;
}

START_TEST(what_a_capture_forbids)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1), other = make_stream(1);
  CUevent e = make_event(), f = make_event();
  CUdeviceptr p, q;
  CUgraph g = NULL;
  atomic_int n = 0;
  char byte = 0;
  void *host;
  const CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

  ok(cu(memAlloc)(&p, 64));
  ok(cu(eventRecord)(f, other));
  spoils(cu(streamSynchronize)(s), no);
  spoils(cu(streamQuery)(s), no);
  spoils(cu(streamSynchronize)(other), no);
  spoils(cu(ctxSynchronize)(), no);
  spoils(cu(memAlloc)(&q, 4), no);
  spoils(cu(memFree)(p), no);
  spoils(cu(memHostAlloc)(&host, 4, 0), no);
  spoils(cu(memcpyHtoD)(p, &byte, 1), no);
  spoils(cu(memsetD8)(p, 1, 1), no);
  spoils(cu(eventQuery)(f), no);
  spoils(cu(eventSynchronize)(f), no);
  spoils(cu(streamAddCallback)(s, nothing_cb, NULL, 0), no);
  spoils(cu(streamWaitEvent)(s, f, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  spoils((cu(eventRecord)(e, s), cu(eventQuery)(e)), CUDA_ERROR_CAPTURED_EVENT);
  is(cu(eventSynchronize)(e), CUDA_ERROR_CAPTURED_EVENT);
  ok(cu(eventRecord)(e, other)); /* the new record was not captured */
  ok(cu(eventSynchronize)(e));
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_ILLEGAL_STATE);
  is(cu(streamBeginCapture)(NULL, 0), no);
  is(cu(streamBeginCapture)(s, 3), CUDA_ERROR_INVALID_VALUE);
  ok(cu(streamBeginCapture)(s, 0));
  is(cu(streamBeginCapture)(s, 0), CUDA_ERROR_ILLEGAL_STATE);
  ok(cu(streamEndCapture)(s, &g));
  ck_assert_uint_eq(nodes_of(g), 0);
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(graphDestroy)(g));
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(captures_and_the_legacy_stream)
{
  CUcontext c = make_context();
  CUstream s = make_stream(0), free_stream = make_stream(1);
  CUdeviceptr p;
  CUgraph g;
  atomic_int n = 0;
  CUevent e = make_event();
  const CUresult no = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

  ok(cu(memAlloc)(&p, 64));
  spoils(cu(memsetD8)(p, 1, 1), no);
  spoils(cu(launchHostFunc)(NULL, count_fn, &n), no);
  spoils(cu(streamSynchronize)(NULL), no);
  spoils(cu(eventRecord)(e, NULL), no);
  spoils((cu(eventRecord)(e, s), cu(streamWaitEvent)(NULL, e, 0)), no);
  s = free_stream; /* non-blocking streams do not affect the legacy stream */
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(cu(launchHostFunc)(NULL, count_fn, &n));
  ok(cu(memsetD8)(p, 1, 1));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n), 1);
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(forks_have_to_join)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1), t = make_stream(1), u = make_stream(1);
  CUevent e = make_event(), f = make_event();
  CUgraph g, h;
  atomic_int n = 0;

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(e, s));
  ok(cu(streamWaitEvent)(t, e, 0));
  ck_assert_int_eq(status_of(t), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ok(cu(launchHostFunc)(t, count_fn, &n));
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ck_assert_int_eq(status_of(t), CU_STREAM_CAPTURE_STATUS_NONE);

  ok(cu(streamBeginCapture)(s, 0)); /* a fork without work needs no join */
  ok(cu(launchHostFunc)(s, count_fn, &n));
  ok(cu(eventRecord)(e, s));
  ok(cu(streamWaitEvent)(t, e, 0));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(e, s));
  ok(cu(streamWaitEvent)(t, e, 0));
  is(cu(streamEndCapture)(t, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(streamBeginCapture)(u, 0));
  ok(cu(eventRecord)(e, s));
  is(cu(streamWaitEvent)(u, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  is(cu(streamEndCapture)(u, &h), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  ok(cu(streamBeginCapture)(s,
                            0)); /* event e is from a capture that has ended */
  ok(cu(eventRecord)(f, s));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));
  is(cu(streamWaitEvent)(t, f, 0), CUDA_ERROR_CAPTURED_EVENT);

  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(streamDestroy)(s)); /* ends its capture */
  ok(cu(streamSynchronize)(t));
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(ctxDestroy)(c));
}
END_TEST

/* A thread that makes an unsafe call while another one captures. */
typedef struct intruder {
  CUcontext context;
  CUstreamCaptureMode mode;
  CUresult rc, end;
  CUstream stream;
} intruder;

static void *intrude(void *arg)
{
  intruder *i = arg;
  CUdeviceptr p;
  CUgraph g;

  ok(cu(ctxSetCurrent)(i->context));
  ok(cu(threadExchangeStreamCaptureMode)(&i->mode));
  ck_assert_int_eq(i->mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  i->rc = cu(memAlloc)(&p, 16);
  if (i->rc == CUDA_SUCCESS) {
    ok(cu(memFree)(p));
  }
  i->end = cu(streamEndCapture)(i->stream, &g);
  if (i->end == CUDA_SUCCESS)
    ok(cu(graphDestroy)(g));
  return NULL;
}

/* `fork` joins the capture of `s` and records `event` after its work. */
static void fork_capture(CUstream s, CUstream fork, CUevent event,
                         CUdeviceptr p)
{
  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(eventRecord)(event, s));
  ok(cu(streamWaitEvent)(fork, event, 0));
  ok(cu(memsetD8Async)(p, 1, 4, fork));
  ok(cu(eventRecord)(event, fork));
}

/* The codes are those of an H200 with driver 580. */
START_TEST(a_forked_stream_may_be_destroyed_during_the_capture)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1), fork;
  CUgraph g;
  CUevent event = make_event();
  CUdeviceptr p;

  ok(cu(memAlloc)(&p, 4));
  for (int joined_late = 0; joined_late < 2; joined_late++) {
    fork = make_stream(1);
    fork_capture(s, fork, event, p);
    if (!joined_late)
      ok(cu(streamWaitEvent)(s, event, 0));
    ok(cu(streamDestroy)(fork));
    ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    if (joined_late)
      ok(cu(streamWaitEvent)(s, event, 0));
    ok(cu(streamEndCapture)(s, &g));
    ck_assert_uint_eq(nodes_of(g), 1);
    ok(cu(graphDestroy)(g));
  }
  fork = make_stream(1);
  fork_capture(s, fork, event, p);
  ok(cu(streamDestroy)(fork)); /* and nothing joins its work */
  is(cu(streamEndCapture)(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(modes_of_capture)
{
  static const struct {
    int capture, thread;
    CUresult alloc, end, own;
  } rows[] = {
      {0, 0, 900, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 901},
      {0, 1, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {0, 2, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {1, 0, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {1, 1, 0, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 0},
      {2, 0, 0, CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE},
      {2, 2, 0, CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE},
  };
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  CUdeviceptr p;
  CUgraph g;
  int mode = 7;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    intruder other = {.context = c, .mode = rows[i].thread, .stream = s};
    pthread_t thread;

    ok(cu(streamBeginCapture)(s, rows[i].capture));
    pthread_create(&thread, NULL, intrude, &other);
    pthread_join(thread, NULL);
    ck_assert_msg(other.rc == rows[i].alloc, "row %zu: alloc %d", i, other.rc);
    ck_assert_msg(other.end == rows[i].end, "row %zu: end %d", i, other.end);
    is(cu(streamEndCapture)(s, &g), rows[i].own);
    if (rows[i].own == CUDA_SUCCESS)
      ok(cu(graphDestroy)(g));
  }
  is(cu(threadExchangeStreamCaptureMode)(&mode), CUDA_ERROR_INVALID_VALUE);
  mode =
      CU_STREAM_CAPTURE_MODE_RELAXED; /* also for this thread's own captures */
  ok(cu(threadExchangeStreamCaptureMode)(&mode));
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cu(memAlloc)(&p, 16));
  ok(cu(streamEndCapture)(s, &g));
  ok(cu(graphDestroy)(g));
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(captures_show_themselves)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  CUgraph g, same, mine;
  const CUgraphNode *tips;
  CUgraphNode extra, root;
  size_t n;
  uint64_t id;
  int status;
  atomic_int calls = 0;

  ok(cu(streamGetCaptureInfoV2)(s, &status, &id, &g, &tips, &n));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
  ok(cu(streamBeginCapture)(s, 0));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamGetCaptureInfoV2)(s, &status, &id, &g, &tips, &n));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ck_assert_uint_eq(n, 1);
  ok(cu(graphAddEmptyNode)(&extra, g, tips, n));
  is(cu(graphDestroy)(g), CUDA_ERROR_INVALID_VALUE); /* not yet */
  ok(cu(streamUpdateCaptureDependencies)(s, &extra, 1,
                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamEndCapture)(s, &same));
  ck_assert_ptr_eq(g, same);
  ck_assert_uint_eq(nodes_of(g), 3);
  ok(cu(graphNodeGetDependentNodes)(extra, NULL, &n));
  ck_assert_uint_eq(n, 1);
  is(cu(streamUpdateCaptureDependencies)(s, &extra, 1, 0),
     CUDA_ERROR_ILLEGAL_STATE);

  ok(cu(graphCreate)(&mine, 0));
  ok(cu(graphAddEmptyNode)(&root, mine, NULL, 0));
  is(cu(streamBeginCaptureToGraph)(s, mine, &extra, NULL, 1, 0),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(streamBeginCaptureToGraph)(s, mine, &root, NULL, 1, 0));
  ok(cu(launchHostFunc)(s, count_fn, &calls));
  ok(cu(streamEndCapture)(s, &same));
  ck_assert_ptr_eq(same, mine);
  ok(cu(graphNodeGetDependentNodes)(root, NULL, &n));
  ck_assert_uint_eq(n, 1);
  ok(cu(graphDestroy)(g));
  ok(cu(graphDestroy)(mine));
  ok(cu(ctxDestroy)(c));
}
END_TEST

/* ---- Misuse -------------------------------------------------------------- */

START_TEST(what_is_no_graph_is_refused)
{
  CUcontext c = make_context();
  CUgraph g, h;
  CUgraphNode a, b, twice[2];
  CUgraphExec x;
  size_t n;
  int type;
  char bytes[64] = {0};
  CUDA_HOST_NODE_PARAMS p = {.fn = count_fn};
  CUgraphNodeParams any = {.type = 99};
  const CUresult bad = CUDA_ERROR_INVALID_VALUE;

  ok(cu(graphCreate)(&g, 0));
  ok(cu(graphCreate)(&h, 0));
  is(cu(graphCreate)(&h, 1), bad);
  is(cu(graphCreate)(NULL, 0), bad);
  ok(cu(graphAddEmptyNode)(&a, g, NULL, 0));
  ok(cu(graphAddEmptyNode)(&b, h, NULL, 0));
  is(cu(graphAddEmptyNode)(&b, h, &a, 1), bad); /* of another graph */
  is(cu(graphAddEmptyNode)(&b, h, NULL, 1), bad);
  is(cu(graphAddEmptyNode)(NULL, h, NULL, 0), bad);
  twice[0] = twice[1] = a;
  is(cu(graphAddEmptyNode)(&b, g, twice, 2), bad);
  is(cu(graphAddDependencies)(g, &a, &b, 1), bad);
  is(cu(graphAddDependencies)(g, &a, &a, 1), bad);
  p.fn = NULL;
  is(cu(graphAddHostNode)(&b, g, NULL, 0, &p), bad);
  is(cu(graphAddHostNode)(&b, g, NULL, 0, NULL), bad);
  is(cu(graphAddNode)(&b, g, NULL, NULL, 0, &any), bad);
  any.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  is(cu(graphAddNode)(&b, g, NULL, NULL, 0, &any), CUDA_ERROR_NOT_SUPPORTED);
  is(cu(graphAddChildGraphNode)(&b, g, NULL, 0, (CUgraph)(void *)c), bad);
  is(cu(graphInstantiateWithFlags)(&x, g, 16), bad);
  is(cu(graphInstantiateWithFlags)(NULL, g, 0), bad);
  is(cu(graphInstantiateWithFlags)(&x, (CUgraph)(void *)bytes, 0), bad);
  is(cu(graphLaunch)((CUgraphExec)(void *)g, NULL), bad);
  is(cu(graphExecDestroy)((CUgraphExec)(void *)bytes), bad);
  is(cu(graphExecDestroy)(NULL), bad);
  is(cu(graphDestroy)(NULL), bad);
  is(cu(graphDestroy)((CUgraph)(uintptr_t)0x77777777), bad);
  is(cu(graphNodeGetType)((CUgraphNode)(void *)g, &type), bad);
  is(cu(graphNodeGetType)(a, NULL), bad);
  is(cu(graphGetNodes)(g, NULL, NULL), bad);
  is(cu(graphGetEdges)(g, twice, NULL, &n), bad);
  is(cu(graphMemsetNodeSetParams)(a, NULL), bad);
  ok(cu(graphDestroy)(g));
  is(cu(graphDestroyNode)(a), bad);
  ok(cu(graphDestroy)(h));
  ok(cu(ctxDestroy)(c));
}
END_TEST

START_TEST(a_failing_node_ends_the_launch)
{
  CUcontext c = make_context();
  CUstream s = make_stream(1);
  CUevent e = make_event();
  atomic_int n = 0;
  CUgraph g;
  CUgraphExec x;

  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(kiln__cpu_enqueue(c, s, failing_work(CUDA_ERROR_MISALIGNED_ADDRESS)));
  ok(cu(launchHostFunc)(s, count_fn, &n));
  ok(cu(eventRecordWithFlags)(e, s, CU_EVENT_RECORD_EXTERNAL));
  ok(cu(streamEndCapture)(s, &g));
  x = instance(g);
  ok(cu(graphLaunch)(x, s));
  is(cu(streamSynchronize)(s), CUDA_ERROR_MISALIGNED_ADDRESS);
  is(cu(eventSynchronize)(e), CUDA_ERROR_MISALIGNED_ADDRESS); /* no hang */
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g));
  ok(cu(ctxDestroy)(c));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("cpu_api_graph");
  TCase *t = tcase_create("graph");

  tcase_set_timeout(t, 120);
  tcase_add_test(t, random_graphs_run_in_order);
  tcase_add_test(t, a_cycle_is_no_graph_to_run);
  tcase_add_test(t, graphs_answer_questions);
  tcase_add_test(t, nodes_copy_fill_and_call);
  tcase_add_test(t, child_graphs_are_copies);
  tcase_add_test(t, events_inside_graphs);
  tcase_add_test(t, launches_of_one_executable_do_not_overlap);
  tcase_add_test(t, memory_of_graphs);
  tcase_add_test(t, an_executable_is_updated_from_a_graph);
  tcase_add_test(t, captured_work_is_freed_once);
  tcase_add_test(t, user_objects_live_as_long_as_graphs);
  tcase_add_test(t, random_captures_keep_the_order);
  tcase_add_test(t, all_kinds_of_work_are_captured);
  tcase_add_test(t, what_a_capture_forbids);
  tcase_add_test(t, captures_and_the_legacy_stream);
  tcase_add_test(t, forks_have_to_join);
  tcase_add_test(t, a_forked_stream_may_be_destroyed_during_the_capture);
  tcase_add_test(t, modes_of_capture);
  tcase_add_test(t, captures_show_themselves);
  tcase_add_test(t, what_is_no_graph_is_refused);
  tcase_add_test(t, a_failing_node_ends_the_launch);
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(suite)
