/* api_condition_test.c -- tests conditional nodes of graphs: if, while and switch
 * nodes whose conditions kernels set, nested bodies, updates and errors. */
#include "api_module_fixture.h"

/* Kernels: `count_down` decrements a word and sets the condition to the result;
 * `put` sets the condition to a value; `add` adds to a word. */
static const char ptx[] = HEAD
    ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
    ".visible .entry count_down(.param .u64 h, .param .u64 p)\n"
    "{\n"
    "\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<3>;\n"
    "\tld.param.u64 %rd1, [h];\n\tld.param.u64 %rd2, [p];\n"
    "\tld.global.u32 %r1, [%rd2];\n\tsub.u32 %r1, %r1, 1;\n"
    "\tst.global.u32 [%rd2], %r1;\n"
    "\t{\n\t.param .b64 a;\n\tst.param.b64 [a], %rd1;\n"
    "\t.param .b32 b;\n\tst.param.b32 [b], %r1;\n"
    "\tcall.uni cudaGraphSetConditional, (a, b);\n\t}\n\tret;\n}\n"
    ".visible .entry put(.param .u64 h, .param .u32 v)\n"
    "{\n"
    "\t.reg .b32 %r<2>;\n\t.reg .b64 %rd<2>;\n"
    "\tld.param.u64 %rd1, [h];\n\tld.param.u32 %r1, [v];\n"
    "\t{\n\t.param .b64 a;\n\tst.param.b64 [a], %rd1;\n"
    "\t.param .b32 b;\n\tst.param.b32 [b], %r1;\n"
    "\tcall.uni cudaGraphSetConditional, (a, b);\n\t}\n\tret;\n}\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n"
    "{\n"
    "\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<2>;\n"
    "\tld.param.u64 %rd1, [p];\n\tld.param.u32 %r1, [v];\n"
    "\tld.global.u32 %r2, [%rd1];\n\tadd.u32 %r2, %r2, %r1;\n"
    "\tst.global.u32 [%rd1], %r2;\n\tret;\n}\n";

static CUfunction count_down, put, add;
static CUdeviceptr words;
static CUmodule module;

static void begin(void)
{
  setup();
  module = load(ptx);
  count_down = function(module, "count_down");
  put = function(module, "put");
  add = function(module, "add");
  words = memory_of(64);
}

static uint32_t word(int i)
{
  uint32_t value;

  ok(cu(memcpyDtoH)(&value, words + 4 * (unsigned)i, 4));
  return value;
}

static void set_word(int i, uint32_t value)
{
  ok(cu(memsetD32)(words + 4 * (unsigned)i, value, 1));
}

static CUgraphNode kernel(CUgraph g, CUgraphNode after, CUfunction f,
                          uint64_t first, uint64_t second)
{
  void *args[] = {&first, &second};
  const CUDA_KERNEL_NODE_PARAMS p = {.func = f,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = args};
  CUgraphNode node;

  ok(cu(graphAddKernelNode)(&node, g, &after, after != NULL, &p));
  return node;
}

static CUgraphConditionalHandle handle_of(CUgraph g, unsigned value,
                                          unsigned flags)
{
  CUgraphConditionalHandle h = 0;

  ok(cu(graphConditionalHandleCreate)(&h, g, context, value, flags));
  return h;
}

static CUgraph *choose(CUgraph g, CUgraphNode after, CUgraphConditionalHandle h,
                       CUgraphConditionalNodeType type, unsigned n)
{
  CUgraphNodeParams p = {
      .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
      .conditional = {.handle = h, .type = type, .size = n, .ctx = context}};
  CUgraphNode node;

  ok(cu(graphAddNode)(&node, g, &after, NULL, after != NULL, &p));
  ck_assert_ptr_nonnull(p.conditional.phGraph_out);
  return p.conditional.phGraph_out;
}

START_TEST(a_while_node_repeats_its_body)
{
  CUstream s = make_stream(1);
  CUgraphConditionalHandle h;
  CUgraphExec x;
  CUgraph g, body;

  ok(cu(graphCreate)(&g, 0));
  h = handle_of(g, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  body = choose(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
  kernel(body, kernel(body, NULL, add, words + 4, 3), count_down, h, words);
  x = instance(g);
  for (unsigned launch = 1; launch <= 3; launch++) {
    set_word(0, 5 * launch);
    set_word(1, 0);
    run_graph(x, s);
    ck_assert_uint_eq(word(0), 0);
    ck_assert_uint_eq(word(1), 15 * launch);
  }
  ok(cu(graphDestroy)(g));
  set_word(0, 2);
  set_word(1, 0);
  run_graph(x, s); /* the executable graph keeps the handle alive */
  ck_assert_uint_eq(word(1), 6);
  ok(cu(graphExecDestroy)(x));
}
END_TEST

/* A kernel chooses a body; every value beyond the last body chooses none. */
START_TEST(switch_and_if_nodes_choose_a_body)
{
  CUstream s = make_stream(1);
  CUgraphConditionalHandle h[2];
  CUgraphNode first, second;
  CUgraph g, *bodies, *either;
  CUgraphExec x;

  for (unsigned value = 0; value < 5; value++) {
    ok(cu(graphCreate)(&g, 0));
    h[0] = handle_of(g, 7, 0);
    h[1] = handle_of(g, 0, 0);
    first = kernel(g, NULL, put, h[0], value);
    second = kernel(g, first, put, h[1], value & 1);
    bodies = choose(g, second, h[0], CU_GRAPH_COND_TYPE_SWITCH, 3);
    for (unsigned i = 0; i < 3; i++)
      kernel(bodies[i], NULL, add, words, 10 + i);
    either = choose(g, second, h[1], CU_GRAPH_COND_TYPE_IF, 2);
    kernel(either[0], NULL, add, words + 4, 100);
    kernel(either[1], NULL, add, words + 4, 200);
    set_word(0, 0);
    set_word(1, 0);
    x = instance(g);
    run_graph(x, s);
    ck_assert_uint_eq(word(0), value < 3 ? 10 + value : 0);
    ck_assert_uint_eq(word(1), (value & 1) != 0 ? 100 : 200);
    ok(cu(graphExecDestroy)(x));
    ok(cu(graphDestroy)(g));
  }
}
END_TEST

/* The handle of an inner loop belongs to the body that contains the loop, so it
 * starts anew in each round of the outer loop. A clone and an update run the same
 * rounds. */
START_TEST(loops_nest_and_are_updated)
{
  CUstream s = make_stream(1);
  CUgraphExecUpdateResultInfo info;
  CUgraph g, other, outer, inner;
  CUgraphExec x = NULL;

  for (int round = 0; round < 2; round++) {
    CUgraphConditionalHandle h, k;
    CUgraphNode reset;

    ok(cu(graphCreate)(&g, 0));
    h = handle_of(g, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    outer = choose(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
    k = handle_of(outer, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    reset = kernel(outer, kernel(outer, NULL, count_down, h, words), add,
                   words + 4, 4);
    inner = choose(outer, reset, k, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
    kernel(inner, kernel(inner, NULL, add, words + 8, 1 + (unsigned)round),
           count_down, k, words + 4);
    if (round == 0)
      x = instance(g);
    else
      ok(cu(graphExecUpdate)(x, g, &info));
    set_word(0, 3);
    set_word(1, 0);
    set_word(2, 0);
    ok(cu(graphClone)(&other, g));
    ok(cu(graphDestroy)(g));
    run_graph(x, s);
    ck_assert_uint_eq(word(2), 12 * (1 + (unsigned)round));
    ok(cu(graphDestroy)(other));
  }
  ok(cu(graphExecDestroy)(x));
}
END_TEST

START_TEST(what_is_no_condition_is_refused)
{
  CUgraphNodeParams p = {
      .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
      .conditional = {.type = CU_GRAPH_COND_TYPE_WHILE, .size = 2}};
  const CUresult bad = CUDA_ERROR_INVALID_VALUE;
  const CUDA_HOST_NODE_PARAMS host = {.fn = count_fn};
  CUgraphConditionalHandle h;
  CUgraphNode node;
  CUgraphExec x;
  CUgraph g, body;

  ok(cu(graphCreate)(&g, 0));
  is(cu(graphConditionalHandleCreate)(NULL, g, context, 0, 0), bad);
  is(cu(graphConditionalHandleCreate)(&h, g, context, 0, 2), bad);
  is(cu(graphConditionalHandleCreate)(&h, NULL, context, 0, 0), bad);
  is(cu(graphAddNode)(&node, g, NULL, NULL, 0, &p), bad); /* no handle */
  p.conditional.handle = h = handle_of(g, 0, 0);
  is(cu(graphAddNode)(&node, g, NULL, NULL, 0, &p), bad); /* two bodies */
  body = choose(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
  p.conditional.size = 1;
  is(cu(graphAddNode)(&node, g, NULL, NULL, 0, &p), bad); /* handle in use */
  is(cu(graphDestroy)(body), bad);
  ok(cu(graphAddHostNode)(&node, body, NULL, 0, &host));
  is(cu(graphInstantiateWithFlags)(&x, g, 0), CUDA_ERROR_NOT_SUPPORTED);
  ok(cu(graphDestroy)(g));
}
END_TEST

START_TEST(a_kernel_with_an_invented_handle_fails)
{
  uint64_t h = words; /* memory, but no handle */
  uint32_t value = 1;
  void *args[] = {&h, &value};

  ok(launch(put, 1, 1, args));
  is(cu(ctxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_condition");

  kiln_test_case(
      s, "condition", 120, begin, teardown,
      TESTS(a_while_node_repeats_its_body, switch_and_if_nodes_choose_a_body,
            loops_nest_and_are_updated, what_is_no_condition_is_refused,
            a_kernel_with_an_invented_handle_fails));
  return kiln_test_run(s);
}
