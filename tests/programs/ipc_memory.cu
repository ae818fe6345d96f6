/* ipc_memory.cu -- a child process opens the parent's memory and event by handles. */
#include "program.cuh"

#include <sys/wait.h>
#include <unistd.h>

__global__ void twice(int *x)
{
  x[threadIdx.x] *= 2;
}

struct message {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

static int child(int in, int out)
{
  message m;
  int *x;
  cudaEvent_t e;
  if (read(in, &m, sizeof m) != sizeof m)
    return 1;
  CALL(cudaIpcOpenMemHandle((void **)&x, m.memory,
                            cudaIpcMemLazyEnablePeerAccess));
  CALL(cudaIpcOpenEventHandle(&e, m.event));
  CALL(cudaStreamWaitEvent(0, e));
  twice<<<1, 64>>>(x);
  CALL(cudaDeviceSynchronize());
  CALL(cudaIpcCloseMemHandle(x));
  return write(out, "x", 1) != 1;
}

int main()
{
  int to[2], from[2], status = 1;
  if (pipe(to) || pipe(from))
    return 1;
  const pid_t pid = fork();
  if (pid == 0)
    _exit(child(to[0], from[1]));
  message m;
  std::vector<int> h(64, 21);
  int *x = to_device(h);
  cudaEvent_t e;
  CALL(cudaEventCreateWithFlags(&e, cudaEventDisableTiming |
                                        cudaEventInterprocess));
  CALL(cudaEventRecord(e));
  CALL(cudaIpcGetMemHandle(&m.memory, x));
  CALL(cudaIpcGetEventHandle(&m.event, e));
  CHECK(write(to[1], &m, sizeof m) == sizeof m);
  char c;
  close(from[1]);
  CHECK(read(from[0], &c, 1) == 1);
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  for (int v : to_host(x, 64))
    CHECK(v == 42);
  return verdict();
}
