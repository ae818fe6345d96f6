/* activities.c -- a test program for `kiln profile`, linked to libcuda.so.1. Its
 * argument selects what it does. Every mode copies 4,096 bytes to the device
 * first, and every launch runs the kernel `step` on one word.
 *
 *   streams     three launches and one copy in each of five streams
 *   graph       captures two launches, a fill and a copy, and launches the graph
 *               four times
 *   crash       launches three times, then accesses a null pointer
 *   exit        launches three times, then ends by _exit()
 *   kill        launches three times, then ends by SIGKILL
 *   many N      launches N times
 *   child       launches twice, and runs `streams` in a child process */
#include "exec/cuda_driver.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char source[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry _Z4stepIfEvPT_(.param .u64 a)\n{\n"
    "\t.reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
    "\tld.param.u64 %rd1, [a];\n\tld.global.u32 %r1, [%rd1];\n"
    "\tadd.u32 %r1, %r1, 1;\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n";

enum { N = 1024, STREAMS = 5 };

static CUfunction step;
static CUdeviceptr data;
static unsigned host[N];

static void launch(CUstream stream)
{
  void *args[] = {&data};

  OK(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
}

static int streams(void)
{
  CUstream s[STREAMS];

  for (int i = 0; i < STREAMS; i++)
    OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < STREAMS; i++)
      launch(s[i]);
  }
  for (int i = 0; i < STREAMS; i++) {
    OK(cuMemcpyDtoHAsync_v2(host, data, sizeof host, s[i]));
    OK(cuStreamSynchronize(s[i]));
    OK(cuStreamDestroy_v2(s[i]));
  }
  return 0;
}

static int graph(void)
{
  CUstream s;
  CUgraph captured;
  CUgraphExec exec;

  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemsetD8Async(data, 0, 256, s));
  launch(s);
  launch(s);
  OK(cuMemcpyDtoHAsync_v2(host, data, 128, s));
  OK(cuStreamEndCapture(s, &captured));
  OK(cuGraphInstantiateWithFlags(&exec, captured, 0));
  for (int i = 0; i < 4; i++)
    OK(cuGraphLaunch(exec, s));
  OK(cuStreamSynchronize(s));
  return 0;
}

static void three(void)
{
  for (int i = 0; i < 3; i++)
    launch(NULL);
  OK(cuCtxSynchronize());
}

static int crash(void)
{
  volatile int *nowhere = NULL;

  three();
  return *nowhere;
}

static int leave(void)
{
  three();
  _exit(9);
}

static int end(void)
{
  three();
  return raise(SIGKILL);
}

static int many(int n)
{
  for (int i = 0; i < n; i++)
    launch(NULL);
  OK(cuCtxSynchronize());
  return 0;
}

static int child(char *self)
{
  char *argv[] = {self, "streams", NULL};
  int status = 1;
  pid_t pid;

  many(2);
  pid = fork();
  if (pid == 0) {
    execv("/proc/self/exe", argv);
    _exit(1);
  }
  (void)waitpid(pid, &status, 0);
  return status != 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } modes[] = {{"streams", streams},
               {"graph", graph},
               {"crash", crash},
               {"exit", leave},
               {"kill", end}};
  CUcontext context;
  CUmodule module;

  if (argc < 2)
    return 2;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoadData(&module, source));
  OK(cuModuleGetFunction(&step, module, "_Z4stepIfEvPT_"));
  OK(cuMemAlloc_v2(&data, sizeof host));
  OK(cuMemcpyHtoD_v2(data, host, sizeof host));
  if (strcmp(argv[1], "many") == 0 && argc == 3)
    return many(atoi(argv[2]));
  if (strcmp(argv[1], "child") == 0)
    return child(argv[0]);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    if (strcmp(argv[1], modes[i].name) == 0)
      return modes[i].run();
  }
  return 2;
}
