/* driver.c -- a test program that is linked to libcuda.so.1. Its argument
 * selects what it does:
 *
 *   add     adds two vectors in two streams; prints "right" if they are correct
 *   bad     writes out of bounds; prints the error's name; exits with 7
 *   race    all threads of a block write one word; prints "done"
 *   print   runs a kernel that calls printf
 *   beyond  calls a function that the CPU device does not implement, twice
 *   tables  asks for a private table of the driver, and reports a function as
 *           missing, as a library on top of the driver does
 *   exit N  exits with N without using the driver */
#include "cuda_driver.h"

#include <dlfcn.h>

enum { N = 1000 };

static const char source[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 text[11] = {104, 101, 108, 108, 111, 32, 37, 100, "
    "10, 0};\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
    "\t.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
    "\tld.param.u64 %rd1, [a];\n\tld.param.u64 %rd2, [b];\n"
    "\tld.param.u32 %r1, [n];\n"
    "\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, %ntid.x;\n"
    "\tmov.u32 %r4, %tid.x;\n\tmad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "\tsetp.ge.u32 %p1, %r5, %r1;\n\t@%p1 bra done;\n"
    "\tmul.wide.u32 %rd3, %r5, 4;\n\tadd.s64 %rd4, %rd1, %rd3;\n"
    "\tadd.s64 %rd5, %rd2, %rd3;\n\tld.global.u32 %r6, [%rd4];\n"
    "\tld.global.u32 %r7, [%rd5];\n\tadd.u32 %r6, %r6, %r7;\n"
    "\tst.global.u32 [%rd4], %r6;\ndone:\n\tret;\n}\n"
    ".visible .entry _Z4raceIjEvPT_(.param .u64 a)\n{\n"
    "\t.reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
    "\tld.param.u64 %rd1, [a];\n\tmov.u32 %r1, %tid.x;\n"
    "\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n"
    ".visible .entry hello()\n{\n"
    "\t.local .align 8 .b8 args[8];\n"
    "\t.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
    "\tmov.u32 %r1, %ctaid.x;\n\tst.local.u32 [args], %r1;\n"
    "\tmov.u64 %rd1, args;\n\tcvta.local.u64 %rd2, %rd1;\n"
    "\tmov.u64 %rd3, text;\n\tcvta.global.u64 %rd3, %rd3;\n"
    "\t{ .param .b64 f; .param .b64 a; .param .b32 r;\n"
    "\tst.param.b64 [f], %rd3;\n\tst.param.b64 [a], %rd2;\n"
    "\tcall.uni (r), vprintf, (f, a);\n\tld.param.b32 %r2, [r]; }\n"
    "\tret;\n}\n";

static CUmodule module;

static CUfunction kernel(const char *name)
{
  CUfunction f;

  OK(cuModuleGetFunction(&f, module, name));
  return f;
}

static int add(void)
{
  static unsigned a[N], b[N];
  unsigned n = N, wrong = 0;
  CUdeviceptr on_a, on_b;
  CUstream s[2];
  CUevent copied;
  void *args[] = {&on_a, &on_b, &n};

  for (unsigned i = 0; i < N; i++) {
    a[i] = i;
    b[i] = 3 * i + 1;
  }
  OK(cuMemAlloc_v2(&on_a, sizeof a));
  OK(cuMemAlloc_v2(&on_b, sizeof b));
  OK(cuStreamCreateWithPriority(&s[0], CU_STREAM_NON_BLOCKING, 0));
  OK(cuStreamCreateWithPriority(&s[1], CU_STREAM_NON_BLOCKING, 0));
  OK(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
  OK(cuMemcpyHtoDAsync_v2(on_a, a, sizeof a, s[0]));
  OK(cuMemcpyHtoDAsync_v2(on_b, b, sizeof b, s[1]));
  OK(cuEventRecord(copied, s[1]));
  OK(cuStreamWaitEvent(s[0], copied, 0));
  OK(cuLaunchKernel(kernel("add"), (N + 127) / 128, 1, 1, 128, 1, 1, 0, s[0],
                    args, NULL));
  OK(cuMemcpyDtoHAsync_v2(a, on_a, sizeof a, s[0]));
  OK(cuStreamSynchronize(s[0]));
  for (unsigned i = 0; i < N; i++)
    wrong += a[i] != 4 * i + 1;
  puts(wrong == 0 ? "right" : "wrong");
  OK(cuMemFree_v2(on_a));
  OK(cuMemFree_v2(on_b));
  return wrong != 0;
}

static int bad(void)
{
  CUdeviceptr a = 0x123400, b = a;
  unsigned n = N;
  void *args[] = {&a, &b, &n};
  const char *name = "?";

  OK(cuLaunchKernel(kernel("add"), 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
  OK(cuGetErrorName(cuCtxSynchronize(), &name));
  puts(name);
  return 7;
}

static int race(void)
{
  CUdeviceptr a;
  void *args[] = {&a};

  OK(cuMemAlloc_v2(&a, 4));
  OK(cuLaunchKernel(kernel("_Z4raceIjEvPT_"), 1, 1, 1, 64, 1, 1, 0, NULL, args,
                    NULL));
  OK(cuCtxSynchronize());
  OK(cuMemFree_v2(a));
  puts("done");
  return 0;
}

static int print(void)
{
  OK(cuLaunchKernel(kernel("hello"), 3, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  OK(cuCtxSynchronize());
  return 0;
}

static int beyond(void)
{
  CUresult (*query)(void) = NULL;
  const char *name = "?";

  OK(cuGetProcAddress("cuDeviceGetDevResource", (void **)&query, 13000, 0));
  (void)query();
  OK(cuGetErrorName(query(), &name));
  puts(name);
  return 0;
}

static int tables(void)
{
  const CUuuid id = {{0x11, 0x22, 0x33, 0x44}};
  const void *table = &id;
  void (*note)(const char *name, const char *advice);

  if (cuGetExportTable(&table, &id) == CUDA_SUCCESS || table != NULL)
    return 1;
  *(void **)&note = dlsym(RTLD_DEFAULT, "kiln_cpu_note_missing");
  if (note == NULL)
    return 1;
  note("cudaSomething", "Call cudaOther instead");
  note("cudaSomething", "Call cudaOther instead");
  return 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } jobs[] = {{"add", add},     {"bad", bad},       {"race", race},
              {"print", print}, {"beyond", beyond}, {"tables", tables}};
  CUcontext context;
  int rc = 2;

  if (argc == 3 && strcmp(argv[1], "exit") == 0)
    return atoi(argv[2]);
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoadData(&module, source));
  for (size_t i = 0; argc == 2 && i < sizeof jobs / sizeof jobs[0]; i++) {
    if (strcmp(argv[1], jobs[i].name) == 0)
      rc = jobs[i].run();
  }
  return rc;
}
