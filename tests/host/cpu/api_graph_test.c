/* api_graph_test.c -- tests graphs of the CPU device's driver: execution order,
 * nodes, memory, updates and user objects. */
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

/* ---- Execution order ----------------------------------------------------- */

enum { MOST = 60 };

static CUgraphNode host_node(CUgraph g, const CUgraphNode *after, size_t n,
                             CUhostFn fn, void *user)
{
  const CUDA_HOST_NODE_PARAMS p = {.fn = fn, .userData = user};
  CUgraphNode node;

  ok(cu(graphAddHostNode)(&node, g, after, n, &p));
  return node;
}

/* Creates random acyclic graphs. Each launch of a graph must run every node
 * once, after all nodes on which it depends. */
START_TEST(random_graphs_run_in_order)
{
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
    /* The executable graph is a copy, so the graph may be destroyed. */
    ok(cu(graphDestroy)(g));
    for (int launch = 1; launch <= 3; launch++) {
      run_graph(x, s);
      for (int a = 0; a < n; a++) {
        ck_assert_int_eq(v[a].times, launch);
        for (int b = 0; b < n; b++)
          ck_assert(!edge[a][b] || v[a].at < v[b].at);
      }
    }
    ok(cu(graphExecDestroy)(x));
  }
}
END_TEST

START_TEST(a_cycle_is_no_graph_to_run)
{
  CUgraph g = make_graph(), child;
  CUgraphNode a, b, d, e;
  CUgraphExec x;
  CUgraphNode culprit;
  char log[16] = "x";
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

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
  CUgraph g = make_graph(), clone;
  CUgraphNode n[4], got[8], from[8], to[8];
  size_t count;
  CUgraphNodeType type;

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
  /* A node can still be appended after a node was destroyed. */
  ok(cu(graphAddEmptyNode)(&n[1], g, &n[3], 1));
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

/* ---- Effects of nodes ---------------------------------------------------- */

START_TEST(nodes_copy_fill_and_call)
{
  CUstream s = make_stream(1);
  CUdeviceptr p = make_memory(256), q = make_memory(256);
  uint32_t out[64] = {0};
  atomic_int n = 0;
  CUgraph g = make_graph();
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

  f.dst = p;
  ok(cu(graphAddMemsetNode)(&fill, g, NULL, 0, &f, context));
  k.srcDevice = p;
  k.dstDevice = q;
  ok(cu(graphAddMemcpyNode)(&copy, g, &fill, 1, &k, context));
  k = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                      .srcDevice = q,
                      .dstMemoryType = CU_MEMORYTYPE_HOST,
                      .dstHost = out,
                      .WidthInBytes = 256,
                      .Height = 1,
                      .Depth = 1};
  ok(cu(graphAddMemcpyNode)(&back, g, &copy, 1, &k, context));
  call = host_node(g, &back, 1, count_fn, &n);
  ok(cu(graphMemcpyNodeGetParams)(back, &got));
  ck_assert_ptr_eq(got.dstHost, out);
  ok(cu(graphMemsetNodeGetParams)(fill, &fg));
  ck_assert_uint_eq(fg.value, 7);
  ok(cu(graphHostNodeGetParams)(call, &hg));
  ck_assert_ptr_eq(hg.userData, &n);
  is(cu(graphMemsetNodeGetParams)(copy, &fg), CUDA_ERROR_INVALID_VALUE);
  x = instance(g);
  run_graph(x, s);
  ck_assert_uint_eq(out[0], 7);
  ck_assert_uint_eq(out[63], 7);
  ck_assert_int_eq(atomic_load(&n), 1);

  /* This change affects only the node of the graph, not the executable
   * graph. */
  f.value = 9;
  ok(cu(graphMemsetNodeSetParams)(fill, &f));
  run_graph(x, s);
  ck_assert_uint_eq(out[5], 7);
  f.value = 11; /* This change affects only the executable graph. */
  ok(cu(graphExecMemsetNodeSetParams)(x, fill, &f, context));
  run_graph(x, s);
  ck_assert_uint_eq(out[5], 11);
  ok(cu(graphMemsetNodeGetParams)(fill, &fg));
  ck_assert_uint_eq(fg.value, 9);
  ok(cu(graphNodeGetEnabled)(x, copy, &enabled));
  ck_assert_uint_eq(enabled, 1);
  ok(cu(memsetD8)(q, 0, 256));
  ok(cu(graphNodeSetEnabled)(x, copy, 0));
  run_graph(x, s);
  ck_assert_uint_eq(out[5], 0);
  is(cu(graphNodeSetEnabled)(x, call, 0), CUDA_ERROR_INVALID_VALUE);
  /* The last element to fill lies beyond the end of the memory. */
  f.dst = p + 4;
  is(cu(graphExecMemsetNodeSetParams)(x, fill, &f, context),
     CUDA_ERROR_INVALID_VALUE);
  is(cu(graphAddMemsetNode)(&fill, g, NULL, 0, &f, context),
     CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphExecDestroy)(x));
  is(cu(graphLaunch)(x, s), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphDestroy)(g));
}
END_TEST

START_TEST(child_graphs_are_copies)
{
  atomic_int a = 0, b = 0;
  CUgraph g = make_graph(), child = make_graph(), inside;
  CUgraphNode node, call;
  CUgraphExec x;
  const CUDA_HOST_NODE_PARAMS other = {.fn = count_fn, .userData = &b};

  host_node(child, NULL, 0, count_fn, &a);
  ok(cu(graphAddChildGraphNode)(&node, g, NULL, 0, child));
  /* The copy of the child graph does not contain this later node. */
  host_node(child, NULL, 0, count_fn, &a);
  ok(cu(graphDestroy)(child));
  ok(cu(graphChildGraphNodeGetGraph)(node, &inside));
  is(cu(graphDestroy)(inside), CUDA_ERROR_INVALID_VALUE);
  x = instance(g);
  run_graph(x, NULL);
  ck_assert_int_eq(atomic_load(&a), 1);
  call = NULL;
  ok(cu(graphGetNodes)(inside, &call, &(size_t){1}));
  ok(cu(graphExecHostNodeSetParams)(x, call, &other));
  run_graph(x, NULL);
  ck_assert_int_eq(atomic_load(&a), 1);
  ck_assert_int_eq(atomic_load(&b), 1);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g));
}
END_TEST

START_TEST(events_inside_graphs)
{
  CUstream s = make_stream(1), t = make_stream(1);
  CUevent gate_event = make_event(), done = make_event(), got;
  gate g = {0};
  atomic_int n = 0;
  CUgraph graph = make_graph();
  CUgraphNode wait, call, record;
  CUgraphExec x;

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
  CUstream s[4];
  gate g = {0};
  atomic_int n = 0;
  CUgraph graph = make_graph();
  CUgraphExec x;
  CUgraphNode node;

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
  /* The executable graph is destroyed while it runs. */
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(graph));
  atomic_store(&g.open, true);
  ok(cu(ctxSynchronize)());
  ck_assert_int_eq(atomic_load(&n), 4);
  ck_assert_int_eq(atomic_load(&most_inside), 1);
}
END_TEST

static uint64_t graph_bytes(CUgraphMem_attribute attribute)
{
  uint64_t bytes = 0;

  ok(cu(deviceGetGraphMemAttribute)(0, attribute, &bytes));
  return bytes;
}

/* Makes a graph that allocates memory and, if `frees`, frees it, twice in turn. */
static CUgraphExec allocating(size_t bytes, bool frees, CUdeviceptr *last)
{
  CUDA_MEM_ALLOC_NODE_PARAMS p = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
      .bytesize = bytes};
  CUgraph g = make_graph();
  CUgraphNode at = NULL;
  CUgraphExec x;

  for (int i = 0; i < (frees ? 2 : 1); i++) {
    ok(cu(graphAddMemAllocNode)(&at, g, i == 0 ? NULL : &at, (size_t)i, &p));
    if (frees)
      ok(cu(graphAddMemFreeNode)(&at, g, &at, 1, p.dptr));
  }
  *last = p.dptr;
  x = instance(g);
  ok(cu(graphDestroy)(g));
  return x;
}

/* The footprint grows as the CUDA Programming Guide describes it. */
START_TEST(graphs_keep_memory_until_a_trim)
{
  const CUgraphMem_attribute now = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
  const CUgraphMem_attribute high = CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  CUdeviceptr p;
  CUgraphExec small = allocating(400, true, &p), kept;
  CUgraphExec large = allocating(1000, true, &p);
  CUstream s = make_stream(1), t = make_stream(1);
  uint64_t zero = 0;

  ck_assert_uint_eq(graph_bytes(now), 0);
  run_graph(small, s);
  run_graph(small, s);
  ck_assert_uint_eq(graph_bytes(now), 400);
  run_graph(large, s); /* takes what the stream has */
  ck_assert_uint_eq(graph_bytes(now), 1000);
  run_graph(small, t); /* could run at the same time */
  ck_assert_uint_eq(graph_bytes(now), 1400);
  ok(cu(deviceGraphMemTrim)(0));
  ck_assert_uint_eq(graph_bytes(now), 0);
  ck_assert_uint_eq(graph_bytes(high), 1400);
  ok(cu(deviceSetGraphMemAttribute)(0, high, &zero));
  ck_assert_uint_eq(graph_bytes(high), 0);
  kept = allocating(300, false, &p);
  run_graph(kept, s);
  ok(cu(deviceGraphMemTrim)(0));
  ck_assert_uint_eq(graph_bytes(now), 300);
  ok(cu(memFree)(p));
  ck_assert_uint_eq(graph_bytes(now), 300);
  run_graph(small, t); /* takes the freed bytes */
  ck_assert_uint_eq(graph_bytes(now), 400);
  ok(cu(graphExecDestroy)(small));
  ok(cu(graphExecDestroy)(large));
  ok(cu(graphExecDestroy)(kept));
  ck_assert_uint_eq(graph_bytes(now), 400);
  ok(cu(deviceGraphMemTrim)(0));
  ck_assert_uint_eq(graph_bytes(now), 0);
}
END_TEST

START_TEST(memory_of_graphs)
{
  CUstream s = make_stream(1);
  CUDA_MEM_ALLOC_NODE_PARAMS p = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
      .bytesize = 400};
  CUDA_MEMSET_NODE_PARAMS f = {
      .value = 3, .elementSize = 1, .width = 400, .height = 1};
  CUgraph g = make_graph(), clone;
  CUgraphNode a, b, d;
  CUgraphExec x, y;
  uint8_t byte = 0;
  CUdeviceptr address;

  ok(cu(graphAddMemAllocNode)(&a, g, NULL, 0, &p));
  f.dst = p.dptr;
  ok(cu(graphAddMemsetNode)(&b, g, &a, 1, &f, context));
  x = instance(g);
  run_graph(x, s);
  ok(cu(memcpyDtoH)(&byte, p.dptr + 399, 1));
  ck_assert_uint_eq(byte, 3);
  /* A second launch fails because the graph's allocation has not been freed. */
  is(cu(graphLaunch)(x, s), CUDA_ERROR_INVALID_VALUE);
  ok(cu(memFreeAsync)(p.dptr, s));
  ok(cu(graphLaunch)(x, s));
  ok(cu(memFree)(p.dptr));
  ok(cu(graphAddMemFreeNode)(&d, g, &b, 1, p.dptr));
  ok(cu(graphMemFreeNodeGetParams)(d, &address));
  ck_assert_uint_eq(address, p.dptr);
  /* A graph with memory nodes has one executable graph at a time. */
  is(cu(graphInstantiateWithFlags)(&y, g, 0), CUDA_ERROR_NOT_SUPPORTED);
  ok(cu(graphExecDestroy)(x));
  y = instance(g);
  ok(cu(graphLaunch)(y, s));
  run_graph(y, s);
  is(cu(graphClone)(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
  is(cu(graphAddMemFreeNode)(&d, g, NULL, 0, 1234), CUDA_ERROR_INVALID_VALUE);
  ok(cu(graphExecDestroy)(y));
  ok(cu(graphDestroy)(g));
  ok(cu(deviceGraphMemTrim)(0));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  is(cu(memcpyDtoH)(&byte, p.dptr, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(an_executable_is_updated_from_a_graph)
{
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
  run_graph(x, NULL);
  ck_assert_int_eq(atomic_load(&n[0]), 0);
  ck_assert_int_eq(atomic_load(&n[1]), 1);
  ck_assert_int_eq(atomic_load(&n[3]), 1);
  is(cu(graphExecUpdate)(x, g[2], &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  ck_assert_ptr_nonnull(info.errorNode);
  /* The executable graph still works after its graph was destroyed. */
  ok(cu(graphDestroy)(g[1]));
  run_graph(x, NULL);
  ck_assert_int_eq(atomic_load(&n[1]), 2);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g[0]));
  ok(cu(graphDestroy)(g[2]));
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

/* Captures an operation that the test enqueues itself, runs the graph several
 * times, and checks that the operation is freed once. */
START_TEST(captured_work_is_freed_once)
{
  CUstream s = make_stream(1);
  kiln__cpu_work *w = calloc(1, sizeof *w + sizeof(atomic_int));
  CUgraph g, clone;
  CUgraphExec x, y;

  w->run = count_run;
  w->free = count_free;
  w->kind = KILN__WORK_KERNEL;
  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(kiln__cpu_enqueue(context, s, w));
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
}
END_TEST

/* ---- User objects -------------------------------------------------------- */

START_TEST(user_objects_live_as_long_as_graphs)
{
  atomic_int destroyed = 0;
  CUuserObject o;
  CUgraph g = make_graph(), clone;

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

/* ---- Wrong uses ---------------------------------------------------------- */

START_TEST(what_is_no_graph_is_refused)
{
  CUgraph g = make_graph(), h = make_graph();
  CUgraphNode a, b, twice[2];
  CUgraphExec x;
  size_t n;
  int type;
  char bytes[64] = {0};
  CUDA_HOST_NODE_PARAMS p = {.fn = count_fn};
  CUgraphNodeParams any = {.type = 99};
  const CUresult bad = CUDA_ERROR_INVALID_VALUE;

  is(cu(graphCreate)(&h, 1), bad);
  is(cu(graphCreate)(NULL, 0), bad);
  ok(cu(graphAddEmptyNode)(&a, g, NULL, 0));
  ok(cu(graphAddEmptyNode)(&b, h, NULL, 0));
  /* This node belongs to another graph. */
  is(cu(graphAddEmptyNode)(&b, h, &a, 1), bad);
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
  any.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
  is(cu(graphAddNode)(&b, g, NULL, NULL, 0, &any), CUDA_ERROR_NOT_SUPPORTED);
  is(cu(graphAddChildGraphNode)(&b, g, NULL, 0, (CUgraph)(void *)context), bad);
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
}
END_TEST

START_TEST(a_failing_node_ends_the_launch)
{
  CUstream s = make_stream(1);
  CUevent e = make_event();
  atomic_int n = 0;
  CUgraph g;
  CUgraphExec x;

  ok(cu(streamBeginCapture)(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  ok(kiln__cpu_enqueue(context, s,
                       failing_work(CUDA_ERROR_MISALIGNED_ADDRESS)));
  ok(cu(launchHostFunc)(s, count_fn, &n));
  ok(cu(eventRecordWithFlags)(e, s, CU_EVENT_RECORD_EXTERNAL));
  ok(cu(streamEndCapture)(s, &g));
  x = instance(g);
  ok(cu(graphLaunch)(x, s));
  is(cu(streamSynchronize)(s), CUDA_ERROR_MISALIGNED_ADDRESS);
  /* Waiting for the event must fail and must not hang. */
  is(cu(eventSynchronize)(e), CUDA_ERROR_MISALIGNED_ADDRESS);
  ck_assert_int_eq(atomic_load(&n), 0);
  ok(cu(graphExecDestroy)(x));
  ok(cu(graphDestroy)(g));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_graph");

  kiln_test_case(
      s, "graph", 120, setup, teardown,
      TESTS(random_graphs_run_in_order, a_cycle_is_no_graph_to_run,
            graphs_answer_questions, nodes_copy_fill_and_call,
            child_graphs_are_copies, events_inside_graphs,
            launches_of_one_executable_do_not_overlap, memory_of_graphs,
            graphs_keep_memory_until_a_trim,
            an_executable_is_updated_from_a_graph, captured_work_is_freed_once,
            user_objects_live_as_long_as_graphs, what_is_no_graph_is_refused,
            a_failing_node_ends_the_launch));
  return kiln_test_run(s);
}
