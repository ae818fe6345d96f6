/* graphs_test.c -- tests graphs and captures of the runtime library: captured and
 * explicit nodes of all kinds, parameters that are read back, updates, conditional
 * bodies, and errors. */
#include "host_code.h"

static const char ptx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .global .align 4 .b8 words[16];\n"
    ".visible .entry add(.param .u64 to, .param .u32 n)\n{\n"
    "  .reg .u64 %a;\n  .reg .u32 %v, %n;\n"
    "  ld.param.u64 %a, [to];\n  ld.param.u32 %n, [n];\n"
    "  ld.global.u32 %v, [%a];\n  add.u32 %v, %v, %n;\n"
    "  st.global.u32 [%a], %v;\n  ret;\n}\n"
    ".visible .entry multiply(.param .u64 to, .param .u32 n)\n{\n"
    "  .reg .u64 %a;\n  .reg .u32 %v, %n;\n"
    "  ld.param.u64 %a, [to];\n  ld.param.u32 %n, [n];\n"
    "  ld.global.u32 %v, [%a];\n  mul.lo.u32 %v, %v, %n;\n"
    "  st.global.u32 [%a], %v;\n  ret;\n}\n";

static char add, multiply, words;
static fat_binary binary;
static void **image;
static const dim3 one = {1, 1, 1};
static unsigned *to;
static cudaStream_t s;

static void setup(void)
{
  void *p;

  fat_binary_make(&binary, ptx);
  image = __cudaRegisterFatBinary(&binary);
  register_kernel(image, &add, "add");
  register_kernel(image, &multiply, "multiply");
  __cudaRegisterVar(image, &words, NULL, "words", 0, 16, 0, 0);
  must(cudaMalloc(&p, 64));
  must(cudaMemset(p, 0, 64));
  to = p;
  must(cudaStreamCreate(&s));
}

static void teardown(void)
{
  must(cudaStreamDestroy(s));
  must(cudaFree(to));
  __cudaUnregisterFatBinary(image);
  free(binary.data);
}

static unsigned word(void)
{
  unsigned value;

  must(cudaMemcpy(&value, to, 4, cudaMemcpyDeviceToHost));
  return value;
}

static void launch(const void *kernel, unsigned n, cudaStream_t stream)
{
  must(cudaLaunchKernel(kernel, one, one, (void *[]){&to, &n}, 0, stream));
}

static cudaGraphExec_t instance(cudaGraph_t g)
{
  cudaGraphExec_t x;

  must(cudaGraphInstantiateWithFlags(&x, g, 0));
  return x;
}

static void run(cudaGraphExec_t x)
{
  must(cudaGraphLaunch(x, s));
  must(cudaStreamSynchronize(s));
}

static cudaError_t update(cudaGraphExec_t x, cudaGraph_t g)
{
#if KILN__RT_MAJOR == 11
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t culprit;

  return cudaGraphExecUpdate(x, g, &culprit, &result);
#else
  cudaGraphExecUpdateResultInfo info;

  return cudaGraphExecUpdate(x, g, &info);
#endif
}

START_TEST(a_captured_fork_is_joined)
{
  cudaStreamCaptureStatus status;
  cudaStream_t other;
  cudaGraphNode_t nodes[3];
  cudaGraphExec_t x;
  cudaEvent_t e;
  cudaGraph_t g;
  size_t n;

  must(cudaStreamCreate(&other));
  must(cudaEventCreate(&e));
  must(cudaStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch(&add, 3, s);
  must(cudaEventRecord(e, s));
  must(cudaStreamWaitEvent(other, e, 0));
  launch(&add, 4, other);
  must(cudaEventRecord(e, other));
  must(cudaStreamWaitEvent(s, e, 0));
  launch(&multiply, 2, s);
  must(cudaStreamIsCapturing(other, &status));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  must(cudaStreamEndCapture(s, &g));
  must(cudaGraphGetNodes(g, NULL, &n));
  ck_assert_uint_eq(n, 3);
  must(cudaGraphGetNodes(g, nodes, &n));
  x = instance(g);
  run(x);
  run(x);
  ck_assert_uint_eq(word(), 42);
  must(cudaGraphExecDestroy(x));
  must(cudaGraphDestroy(g));
  must(cudaEventDestroy(e));
  must(cudaStreamDestroy(other));
}
END_TEST

static void count(void *user)
{
  ++*(int *)user;
}

/* A fill, a kernel, copies and a host function, one after the other. */
START_TEST(explicit_nodes_run_and_are_read_back)
{
  cudaMemsetParams fill = {
      .dst = to, .value = 5, .elementSize = 4, .width = 16, .height = 1};
  unsigned factor = 6, result[16] = {0}, copied[4] = {0};
  void *arguments[] = {&to, &factor};
  cudaKernelNodeParams kernel = {.func = &multiply,
                                 .gridDim = one,
                                 .blockDim = one,
                                 .kernelParams = arguments};
  int calls = 0;
  const cudaHostNodeParams host = {count, &calls};
  cudaMemcpy3DParms copy;
  cudaGraphNode_t node[5], found;
  cudaGraph_t g, clone;
  cudaGraphExec_t x;

  must(cudaGraphCreate(&g, 0));
  must(cudaGraphAddMemsetNode(&node[0], g, NULL, 0, &fill));
  must(cudaGraphAddKernelNode(&node[1], g, &node[0], 1, &kernel));
  must(cudaGraphAddMemcpyNode1D(&node[2], g, &node[1], 1, result, to, 64,
                                cudaMemcpyDeviceToHost));
  must(cudaGraphAddHostNode(&node[3], g, &node[2], 1, &host));
  must(cudaGraphAddMemcpyNodeToSymbol(&node[4], g, &node[2], 1, &words, result,
                                      8, 4, cudaMemcpyHostToDevice));
  must(cudaGraphMemsetNodeGetParams(node[0], &fill));
  ck_assert(fill.dst == to && fill.value == 5 && fill.width == 16);
  memset(&kernel, 0, sizeof kernel);
  must(cudaGraphKernelNodeGetParams(node[1], &kernel));
  ck_assert(kernel.func == &multiply && kernel.blockDim.x == 1 &&
            *(unsigned *)kernel.kernelParams[1] == 6);
  must(cudaGraphMemcpyNodeGetParams(node[2], &copy));
  ck_assert(copy.srcPtr.ptr == to && copy.dstPtr.ptr == result &&
            copy.extent.width == 64 && copy.kind == cudaMemcpyDeviceToHost);
  must(cudaGraphClone(&clone, g));
  must(cudaGraphNodeFindInClone(&found, node[1], clone));
  x = instance(clone);
  run(x);
  ck_assert(result[0] == 30 && result[15] == 5 && calls == 1);
  must(cudaMemcpyFromSymbol(copied, &words, 16, 0, cudaMemcpyDeviceToHost));
  ck_assert(copied[0] == 0 && copied[1] == 30 && copied[2] == 5);
  /* An update takes over the new factor. */
  factor = 8;
  kernel.kernelParams = arguments;
  must(cudaGraphKernelNodeSetParams(node[1], &kernel));
  must(update(x, g));
  run(x);
  ck_assert(result[0] == 40 && calls == 2);
  factor = 9;
  must(cudaGraphExecKernelNodeSetParams(x, found, &kernel));
  run(x);
  ck_assert_uint_eq(result[0], 45);
  kernel.func = &calls;
#if KILN__RT_MAJOR >= 12
  fails(cudaGraphExecKernelNodeSetParams(x, found, &kernel),
        cudaErrorInvalidResourceHandle);
#else
  fails(cudaGraphExecKernelNodeSetParams(x, found, &kernel),
        cudaErrorInvalidDeviceFunction);
#endif
  fails(cudaGraphAddMemcpyNodeToSymbol(&node[4], g, NULL, 0, &words, result, 8,
                                       12, cudaMemcpyHostToDevice),
        cudaErrorInvalidValue);
  must(cudaGraphExecDestroy(x));
  must(cudaGraphDestroy(clone));
  must(cudaGraphDestroy(g));
}
END_TEST

START_TEST(kernel_nodes_have_attributes)
{
  unsigned n = 1;
  void *arguments[] = {&to, &n};
  const cudaKernelNodeParams kernel = {
      .func = &add, .gridDim = one, .blockDim = one, .kernelParams = arguments};
  cudaLaunchAttributeValue v = {.priority = -2};
  cudaGraphNode_t a, b;
  cudaGraph_t g;

  must(cudaGraphCreate(&g, 0));
  must(cudaGraphAddKernelNode(&a, g, NULL, 0, &kernel));
  must(cudaGraphAddKernelNode(&b, g, NULL, 0, &kernel));
  must(cudaGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  must(cudaGraphKernelNodeCopyAttributes(b, a));
  v.priority = 9;
  must(cudaGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  ck_assert_int_eq(v.priority, -2);
  must(cudaGraphDestroy(g));
}
END_TEST

START_TEST(memory_of_graphs_is_allocated_and_freed)
{
  cudaMemAllocNodeParams p = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
      .bytesize = 64};
  cudaMemsetParams fill = {
      .value = 5, .elementSize = 4, .width = 16, .height = 1};
  unsigned result[16] = {0};
  cudaGraphNode_t a, b, c, d;
  cudaGraph_t g;
  cudaGraphExec_t x;
  void *freed = NULL;

  must(cudaGraphCreate(&g, 0));
  must(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &p));
  fill.dst = (void *)(uintptr_t)p.dptr;
  must(cudaGraphAddMemsetNode(&b, g, &a, 1, &fill));
  must(cudaGraphAddMemcpyNode1D(&c, g, &b, 1, result, fill.dst, 64,
                                cudaMemcpyDefault));
  must(cudaGraphAddMemFreeNode(&d, g, &c, 1, fill.dst));
  must(cudaGraphMemFreeNodeGetParams(d, &freed));
  ck_assert_ptr_eq(freed, fill.dst);
  x = instance(g);
  run(x);
  run(x);
  ck_assert_uint_eq(result[15], 5);
  must(cudaGraphExecDestroy(x));
  must(cudaGraphDestroy(g));
}
END_TEST

START_TEST(child_graphs_and_user_objects_are_owned)
{
  int gone = 0;
  cudaGraph_t g, child, inside;
  cudaGraphNode_t node, after;
  cudaUserObject_t object;
  cudaGraphExec_t x;

  must(cudaStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch(&add, 7, s);
  must(cudaStreamEndCapture(s, &child));
  must(cudaGraphCreate(&g, 0));
  must(cudaGraphAddChildGraphNode(&node, g, NULL, 0, child));
  must(cudaGraphAddEmptyNode(&after, g, &node, 1));
  must(cudaGraphChildGraphNodeGetGraph(node, &inside));
  ck_assert_ptr_ne(inside, child);
  must(cudaUserObjectCreate(&object, &gone, count, 1,
                            CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  must(cudaGraphRetainUserObject(g, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  x = instance(g);
  must(cudaGraphDestroy(child));
  must(cudaGraphDestroy(g));
  run(x);
  ck_assert_uint_eq(word(), 7);
  ck_assert_int_eq(gone, 0);
  must(cudaGraphExecDestroy(x));
  ck_assert_int_eq(gone, 1);
}
END_TEST

START_TEST(misuse_is_reported)
{
  cudaGraph_t g;

  fails(cudaGraphLaunch(NULL, s), cudaErrorInvalidValue);
  fails(cudaStreamEndCapture(s, &g), cudaErrorIllegalState);
  must(cudaStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  fails(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
  fails(cudaStreamEndCapture(s, &g), cudaErrorStreamCaptureInvalidated);
}
END_TEST

#if KILN__RT_MAJOR >= 12

/* An `if` node: its body is captured, and runs because the handle is 1. */
START_TEST(a_condition_chooses_a_captured_body)
{
  cudaGraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  cudaGraph_t g, body;
  cudaGraphNode_t node;
  cudaGraphExec_t x;

  must(cudaGraphCreate(&g, 0));
  p.conditional.size = 1;
  must(cudaGraphConditionalHandleCreate(&p.conditional.handle, g, 1,
                                        CU_GRAPH_COND_ASSIGN_DEFAULT));
#if KILN__RT_MAJOR == 12
  must(cudaGraphAddNode(&node, g, NULL, 0, &p));
#else
  must(cudaGraphAddNode(&node, g, NULL, NULL, 0, &p));
#endif
  body = p.conditional.phGraph_out[0];
  must(cudaStreamBeginCaptureToGraph(s, body, NULL, NULL, 0,
                                     CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch(&add, 4, s);
  must(cudaStreamEndCapture(s, &body));
  x = instance(g);
  run(x);
  run(x);
  ck_assert_uint_eq(word(), 8);
  must(cudaGraphExecDestroy(x));
  must(cudaGraphDestroy(g));
}
END_TEST

#endif

int main(void)
{
  Suite *suite = suite_create("cudart_graphs");
  TCase *t = tcase_create("graphs");
  SRunner *runner;
  int failed;

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_captured_fork_is_joined);
  tcase_add_test(t, explicit_nodes_run_and_are_read_back);
  tcase_add_test(t, kernel_nodes_have_attributes);
  tcase_add_test(t, memory_of_graphs_is_allocated_and_freed);
  tcase_add_test(t, child_graphs_and_user_objects_are_owned);
  tcase_add_test(t, misuse_is_reported);
#if KILN__RT_MAJOR >= 12
  tcase_add_test(t, a_condition_chooses_a_captured_body);
#endif
  suite_add_tcase(suite, t);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
