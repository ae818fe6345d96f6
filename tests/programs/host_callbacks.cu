/* host_callbacks.cu -- functions of the host in the order of a stream. */
#include "program.cuh"

#include <string>

__global__ void nothing()
{
}

struct log_entry {
  std::string *text;
  char c;
};

static void CUDART_CB append(void *p)
{
  log_entry *e = (log_entry *)p;
  *e->text += e->c;
}

static void CUDART_CB append_old(cudaStream_t, cudaError_t rc, void *p)
{
  log_entry *e = (log_entry *)p;
  *e->text += rc == cudaSuccess ? e->c : '!';
}

int main()
{
  std::string text;
  log_entry e[] = {{&text, 'a'}, {&text, 'b'}, {&text, 'c'}, {&text, 'd'}};
  cudaStream_t s;
  CALL(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0));
  CALL(cudaLaunchHostFunc(s, append, &e[0]));
  nothing<<<1, 1, 0, s>>>();
  CALL(cudaStreamAddCallback(s, append_old, &e[1], 0));
  CALL(cudaLaunchHostFunc(s, append, &e[2]));
  nothing<<<2, 32, 0, s>>>();
  CALL(cudaLaunchHostFunc(s, append, &e[3]));
  CALL(cudaStreamSynchronize(s));
  CHECK(text == "abcd");
  int least, greatest, priority;
  unsigned flags;
  CALL(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CALL(cudaStreamGetPriority(s, &priority));
  CALL(cudaStreamGetFlags(s, &flags));
  CHECK(least >= greatest && priority == 0 && flags == cudaStreamNonBlocking);
  CALL(cudaStreamDestroy(s));
  return verdict();
}
