/* processes.c -- a test program that uses the CUDA driver in several processes
 * or threads, or ends in an unusual way. Each job launches a kernel whose threads
 * all write one word, which is a race. Its argument selects the job:
 *
 *   forks    forks before cuInit; the child and the parent each launch the
 *            kernel twice; the child ends by _exit, as Python's os._exit
 *   runs     starts this program again by exec, in a child, for the job `once`
 *   once     launches the kernel once
 *   late     forks after cuInit; the child calls cuInit, which must fail
 *   killed   launches the kernel and dies of SIGKILL
 *   aborts   runs a kernel that writes out of bounds, then calls abort
 *   threads  launches the kernel from four threads
 *   signals  launches 200 kernels while a timer interrupts the program
 *   spawns   calls system(), which uses vfork, between two launches */
#include "cuda_driver.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char source[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry _Z4raceIjEvPT_(.param .u64 a)\n{\n"
    "\t.reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
    "\tld.param.u64 %rd1, [a];\n\tmov.u32 %r1, %tid.x;\n"
    "\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n";

static CUfunction function;
static CUcontext context;

static void start(void)
{
  CUmodule module;

  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoadData(&module, source));
  OK(cuModuleGetFunction(&function, module, "_Z4raceIjEvPT_"));
}

/* Launches the kernel on a word that is kept, so that nothing is leaked. */
static void launch(void)
{
  static CUdeviceptr word;
  void *args[] = {&word};

  if (word == 0)
    OK(cuMemAlloc_v2(&word, 4));
  OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
  OK(cuCtxSynchronize());
}

static int join_child(pid_t child)
{
  int status = 1;

  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static int forks(void)
{
  const pid_t child = fork();

  start();
  launch();
  launch();
  if (child == 0)
    _exit(0);
  return join_child(child);
}

static int once(void)
{
  start();
  launch();
  return 0;
}

static int runs(void)
{
  const pid_t child = fork();

  if (child == 0) {
    execl("/proc/self/exe", "processes", "once", (char *)NULL);
    _exit(1);
  }
  return join_child(child);
}

static int late(void)
{
  pid_t child;

  once();
  child = fork();
  if (child == 0)
    _exit(cuInit(0) == CUDA_SUCCESS);
  return join_child(child);
}

static int killed(void)
{
  once();
  return raise(SIGKILL);
}

static int aborts(void)
{
  CUdeviceptr nowhere = 0x123400;
  void *args[] = {&nowhere};

  start();
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
  (void)cuCtxSynchronize();
  abort();
}

static void *launch_in_thread(void *arg)
{
  OK(cuCtxSetCurrent(context));
  launch();
  return arg;
}

static int threads(void)
{
  pthread_t thread[4];

  once();
  for (int i = 0; i < 4; i++)
    pthread_create(&thread[i], NULL, launch_in_thread, NULL);
  for (int i = 0; i < 4; i++)
    pthread_join(thread[i], NULL);
  return 0;
}

static volatile sig_atomic_t ticks;

static void tick(int number)
{
  (void)number;
  ticks++;
}

static int signals(void)
{
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  const struct sigaction action = {.sa_handler = tick};

  start();
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 200 || ticks == 0; i++)
    launch();
  setitimer(ITIMER_REAL, &never, NULL);
  return 0;
}

static int spawns(void)
{
  once();
  if (system("true") != 0) /* NOLINT: nothing of the environment matters */
    return 1;
  launch();
  return 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } jobs[] = {{"forks", forks},     {"runs", runs},       {"once", once},
              {"late", late},       {"killed", killed},   {"aborts", aborts},
              {"threads", threads}, {"signals", signals}, {"spawns", spawns}};

  for (size_t i = 0; argc == 2 && i < sizeof jobs / sizeof jobs[0]; i++) {
    if (strcmp(argv[1], jobs[i].name) == 0)
      return jobs[i].run();
  }
  return 2;
}
