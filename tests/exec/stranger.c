/* stranger.c -- a test program that includes cuda.h, is linked to libcuda.so.1,
 * and contains nothing of Kiln. Its argument selects a test:
 *
 *   link        links two modules of PTX
 *   library     loads a library and uses its kernel and its variables
 *   reference   uses texture references of a module
 *   graph       builds one graph by hand and captures another graph
 *   buffer      passes parameters in a buffer; uses managed memory
 *   peer        copies between two devices
 *   mistakes    checks the error codes of wrong calls
 *
 * The program prints "right" if all checks pass. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) is(#call, __LINE__, call, CUDA_SUCCESS)
#define IS(call, want) is(#call, __LINE__, call, want)
#define CHECK(condition) check(#condition, __LINE__, condition)

#define HEAD ".version 4.0\n.target sm_30\n.address_size 64\n"

static int wrong;

static void is(const char *what, int line, CUresult got, CUresult want)
{
  if (got == want)
    return;
  printf("line %d: %s: %d, not %d\n", line, what, (int)got, (int)want);
  wrong++;
}

static void check(const char *what, int line, int holds)
{
  if (holds)
    return;
  printf("line %d: not so: %s\n", line, what);
  wrong++;
}

static CUfunction function(CUmodule module, const char *name)
{
  CUfunction f = NULL;

  OK(cuModuleGetFunction(&f, module, name));
  return f;
}

static void launch(CUfunction f, unsigned threads, CUstream s, void **args)
{
  OK(cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, s, args, NULL));
}

/* ---- Code ---------------------------------------------------------------- */

/* This module computes out[i] = times(i) + table[i % 4]. The function `times`
 * and the array `table` come from another module. */
static const char user[] =
    HEAD ".extern .func (.param .b32 r) times(.param .b32 x);\n"
         ".extern .global .align 4 .b32 table[4];\n"
         ".visible .entry uses(.param .u64 out)\n{\n"
         "\t.reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
         "\tld.param.u64 %rd1, [out];\n\tcvta.to.global.u64 %rd1, %rd1;\n"
         "\tmov.u32 %r1, %tid.x;\n"
         "\t{ .param .b32 x; .param .b32 r;\n\tst.param.b32 [x], %r1;\n"
         "\tcall.uni (r), times, (x);\n\tld.param.b32 %r2, [r]; }\n"
         "\tand.b32 %r3, %r1, 3;\n\tmul.wide.u32 %rd2, %r3, 4;\n"
         "\tmov.u64 %rd3, table;\n\tadd.s64 %rd3, %rd3, %rd2;\n"
         "\tld.global.u32 %r4, [%rd3];\n\tadd.u32 %r2, %r2, %r4;\n"
         "\tmul.wide.u32 %rd4, %r1, 4;\n\tadd.s64 %rd1, %rd1, %rd4;\n"
         "\tst.global.u32 [%rd1], %r2;\n\tret;\n}\n";

static const char maker[] =
    HEAD ".visible .global .align 4 .b32 table[4] = {10, 20, 30, 40};\n"
         ".visible .func (.param .b32 r) times(.param .b32 x)\n{\n"
         "\t.reg .b32 %r<3>;\n\tld.param.b32 %r1, [x];\n"
         "\tmul.lo.u32 %r2, %r1, %r1;\n\tst.param.b32 [r], %r2;\n\tret;\n}\n";

/* This kernel computes x[i] = x[i] * factor + by and adds 1 to a counter. */
static const char affine[] =
    HEAD ".visible .const .align 4 .u32 factor = 1;\n"
         ".visible .global .align 4 .u32 runs = 0;\n"
         ".visible .entry affine(.param .u64 x, .param .u32 by)\n{\n"
         "\t.reg .b32 %r<6>; .reg .b64 %rd<4>;\n"
         "\tld.param.u64 %rd1, [x];\n\tcvta.to.global.u64 %rd1, %rd1;\n"
         "\tld.param.u32 %r1, [by];\n\tmov.u32 %r2, %tid.x;\n"
         "\tmul.wide.u32 %rd2, %r2, 4;\n\tadd.s64 %rd1, %rd1, %rd2;\n"
         "\tld.global.u32 %r3, [%rd1];\n\tld.const.u32 %r4, [factor];\n"
         "\tmad.lo.u32 %r3, %r3, %r4, %r1;\n\tst.global.u32 [%rd1], %r3;\n"
         "\tred.global.add.u32 [runs], 1;\n\tret;\n}\n";

/* This kernel stores the texel at x, y in out[y * 4 + x]. */
static const char sampler[] =
    HEAD ".global .texref picture;\n"
         ".visible .entry sample(.param .u64 out)\n{\n"
         "\t.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<8>;\n"
         "\tld.param.u64 %rd1, [out];\n\tcvta.to.global.u64 %rd1, %rd1;\n"
         "\tmov.u32 %r1, %tid.x;\n\tand.b32 %r2, %r1, 3;\n"
         "\tshr.u32 %r3, %r1, 2;\n\tcvt.rn.f32.u32 %f1, %r2;\n"
         "\tcvt.rn.f32.u32 %f2, %r3;\n\tadd.f32 %f1, %f1, 0f3F000000;\n"
         "\tadd.f32 %f2, %f2, 0f3F000000;\n"
         "\ttex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [picture, {%f1, %f2}];\n"
         "\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.s64 %rd1, %rd1, %rd2;\n"
         "\tst.global.f32 [%rd1], %f3;\n\tret;\n}\n";

/* ---- Jobs ---------------------------------------------------------------- */

static void link_two(void)
{
  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  CUlinkState state;
  CUmodule module;
  CUdeviceptr out;
  void *image, *args[] = {&out};
  unsigned got[32];
  size_t size;

  OK(cuLinkCreate(2, options, values, &state));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)user, sizeof user, "user",
                   0, NULL, NULL));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)maker, sizeof maker,
                   "maker", 0, NULL, NULL));
  OK(cuLinkComplete(state, &image, &size));
  OK(cuModuleLoadData(&module, image));
  OK(cuLinkDestroy(state));
  OK(cuMemAlloc(&out, sizeof got));
  launch(function(module, "uses"), 32, NULL, args);
  OK(cuMemcpyDtoH(got, out, sizeof got));
  for (unsigned i = 0; i < 32; i++)
    CHECK(got[i] == i * i + 10 * (i % 4 + 1));
  OK(cuMemFree(out));
  OK(cuModuleUnload(module));
}

static void library(void)
{
#if CUDA_VERSION >= 12000
  unsigned x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, by = 5, runs;
  CUlibrary lib;
  CUkernel kernel;
  CUdeviceptr on, address;
  size_t size;
  void *args[] = {&on, &by};

  OK(cuLibraryLoadData(&lib, affine, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetKernel(&kernel, lib, "affine"));
  IS(cuLibraryGetKernel(&kernel, lib, "other"), CUDA_ERROR_NOT_FOUND);
  OK(cuLibraryGetKernel(&kernel, lib, "affine"));
  OK(cuMemAlloc(&on, sizeof x));
  OK(cuMemcpyHtoD(on, x, sizeof x));
  launch((CUfunction)kernel, 8, NULL, args);
  OK(cuMemcpyDtoH(x, on, sizeof x));
  for (unsigned i = 0; i < 8; i++)
    CHECK(x[i] == i + 6);
  OK(cuLibraryGetGlobal(&address, &size, lib, "runs"));
  OK(cuMemcpyDtoH(&runs, address, sizeof runs));
  CHECK(size == 4 && runs == 8);
  OK(cuMemFree(on));
  OK(cuLibraryUnload(lib));
#endif
}

static void reference(void)
{
  const CUDA_ARRAY_DESCRIPTOR shape = {4, 3, CU_AD_FORMAT_FLOAT, 1};
  CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcPitch = 16,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .WidthInBytes = 16,
                        .Height = 3};
  float in[12], got[12];
  CUmodule module;
  CUtexref ref;
  CUdeviceptr out;
  void *args[] = {&out};

  for (int i = 0; i < 12; i++)
    in[i] = 1.5f * (float)(i * i);
  copy.srcHost = in;
  OK(cuArrayCreate(&copy.dstArray, &shape));
  OK(cuMemcpy2D(&copy));
  OK(cuModuleLoadData(&module, sampler));
  OK(cuModuleGetTexRef(&ref, module, "picture"));
  OK(cuTexRefSetArray(ref, copy.dstArray, CU_TRSA_OVERRIDE_FORMAT));
  OK(cuTexRefSetAddressMode(ref, 0, CU_TR_ADDRESS_MODE_CLAMP));
  OK(cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_POINT));
  OK(cuMemAlloc(&out, sizeof got));
  launch(function(module, "sample"), 12, NULL, args);
  OK(cuMemcpyDtoH(got, out, sizeof got));
  CHECK(memcmp(got, in, sizeof in) == 0);
  OK(cuMemFree(out));
  OK(cuArrayDestroy(copy.dstArray));
  OK(cuModuleUnload(module));
}

static void CUDA_CB count(void *user_data)
{
  ++*(int *)user_data;
}

/* Creates a graph that fills x with 7 and runs the kernel `affine` twice, with
 * by = 1 and by = 2. */
static void by_hand(CUfunction f, CUdeviceptr x, CUstream s)
{
  unsigned by = 1;
  void *args[] = {&x, &by};
  CUDA_KERNEL_NODE_PARAMS params = {.func = f,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 32,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = args};
  const CUDA_MEMSET_NODE_PARAMS fill = {
      .dst = x, .value = 7, .elementSize = 4, .width = 32, .height = 1};
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode set, first, second;
  CUcontext context;
  unsigned got;

  OK(cuCtxGetCurrent(&context));
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, context));
  OK(cuGraphAddKernelNode(&first, graph, &set, 1, &params));
  by = 2;
  OK(cuGraphAddKernelNode(&second, graph, &first, 1, &params));
  OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cuGraphLaunch(exec, s));
  OK(cuStreamSynchronize(s));
  OK(cuMemcpyDtoH(&got, x + 4 * 31, 4));
  CHECK(got == 10);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

static void graph(void)
{
  unsigned in[32] = {5}, got[32], by = 3;
  int calls = 0;
  CUmodule module;
  CUdeviceptr x;
  CUstream s;
  CUgraph captured;
  CUgraphExec exec;
  void *args[] = {&x, &by};
  size_t nodes = 0;

  OK(cuModuleLoadData(&module, affine));
  OK(cuMemAlloc(&x, sizeof in));
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  by_hand(function(module, "affine"), x, s);
  OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemcpyHtoDAsync(x, in, sizeof in, s));
  launch(function(module, "affine"), 32, s, args);
  OK(cuMemcpyDtoHAsync(got, x, sizeof got, s));
  OK(cuLaunchHostFunc(s, count, &calls));
  OK(cuStreamEndCapture(s, &captured));
  by = 1000; /* too late */
  OK(cuGraphGetNodes(captured, NULL, &nodes));
  CHECK(nodes == 4 && calls == 0);
  OK(cuGraphInstantiateWithFlags(&exec, captured, 0));
  for (int i = 0; i < 3; i++)
    OK(cuGraphLaunch(exec, s));
  OK(cuStreamSynchronize(s));
  CHECK(calls == 3 && got[0] == 8 && got[31] == 3);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(captured));
  OK(cuStreamDestroy(s));
  OK(cuMemFree(x));
  OK(cuModuleUnload(module));
}

static void buffer(void)
{
  struct {
    CUdeviceptr x;
    unsigned by;
  } params = {0, 100};
  size_t size = 12, bytes;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &params,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  unsigned *x, three = 3;
  CUmodule module;
  CUdeviceptr factor, managed;

  OK(cuModuleLoadData(&module, affine));
  OK(cuModuleGetGlobal(&factor, &bytes, module, "factor"));
  CHECK(bytes == 4);
  OK(cuMemcpyHtoD(factor, &three, sizeof three));
  OK(cuMemAllocManaged(&managed, 32 * sizeof *x, CU_MEM_ATTACH_GLOBAL));
  memcpy(&x, &managed, sizeof x);
  params.x = managed;
  for (unsigned i = 0; i < 32; i++)
    x[i] = i;
  OK(cuLaunchKernel(function(module, "affine"), 1, 1, 1, 32, 1, 1, 0, NULL,
                    NULL, extra));
  OK(cuCtxSynchronize());
  for (unsigned i = 0; i < 32; i++)
    CHECK(x[i] == 3 * i + 100);
  OK(cuMemFree(managed));
  OK(cuModuleUnload(module));
}

static void peer(void)
{
  CUcontext here, there;
  CUdeviceptr a, b;
  unsigned got[4] = {0};
  int can = 0;

  OK(cuCtxGetCurrent(&here));
  OK(cuDeviceCanAccessPeer(&can, 0, 1));
  OK(cuMemAlloc(&a, sizeof got));
  OK(cuDevicePrimaryCtxRetain(&there, 1));
  OK(cuCtxSetCurrent(there));
  OK(cuMemAlloc(&b, sizeof got));
  OK(cuMemsetD32(b, 41, 4));
  OK(cuMemcpyPeer(a, here, b, there, sizeof got));
  OK(cuMemFree(b));
  OK(cuCtxSetCurrent(here));
  OK(cuMemcpyDtoH(got, a, sizeof got));
  CHECK(got[0] == 41 && got[3] == 41);
  if (can) {
    OK(cuCtxEnablePeerAccess(there, 0));
    IS(cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  }
  OK(cuMemFree(a));
  OK(cuDevicePrimaryCtxRelease(1));
}

static void mistakes(void)
{
  CUmodule module;
  CUdeviceptr x, y;
  CUevent event;
  CUfunction f;
  unsigned by = 0;
  char bytes[64];
  void *args[] = {&x, &by};

  IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  IS(cuMemAlloc(&x, 0), CUDA_ERROR_INVALID_VALUE);
  IS(cuMemFree(0x1234), CUDA_ERROR_INVALID_VALUE);
  IS(cuModuleLoadData(&module, HEAD ".visible .entry k() { nonsense; }"),
     CUDA_ERROR_INVALID_PTX);
  IS(cuModuleLoad(&module, "/nowhere/at/all"), CUDA_ERROR_FILE_NOT_FOUND);
  OK(cuEventCreate(&event, 0));
  OK(cuEventDestroy(event));
  IS(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
  OK(cuModuleLoadData(&module, affine));
  IS(cuModuleGetFunction(&f, module, "other"), CUDA_ERROR_NOT_FOUND);
  f = function(module, "affine");
  OK(cuMemAlloc(&x, 16));
  IS(cuMemcpyDtoH(bytes, x, 17), CUDA_ERROR_INVALID_VALUE);
  IS(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, args, NULL),
     CUDA_ERROR_INVALID_VALUE);
  IS(cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, args, NULL),
     CUDA_ERROR_INVALID_VALUE);
  /* The kernel writes 32 words, but the memory holds only 4 words. */
  launch(f, 32, NULL, args);
  IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  IS(cuMemAlloc(&y, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuDevicePrimaryCtxReset(0));
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run)(void);
  } jobs[] = {{"link", link_two},       {"library", library},
              {"reference", reference}, {"graph", graph},
              {"buffer", buffer},       {"peer", peer},
              {"mistakes", mistakes}};
  CUcontext context;

  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  for (size_t i = 0; argc == 2 && i < sizeof jobs / sizeof jobs[0]; i++) {
    if (strcmp(argv[1], jobs[i].name) == 0) {
      jobs[i].run();
      puts(wrong == 0 ? "right" : "wrong");
    }
  }
  return wrong != 0;
}
