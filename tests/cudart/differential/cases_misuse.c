/* cases_misuse.c -- cases of calls with handles that were destroyed, in the wrong order,
 * and of combinations that programs use by mistake. */
#include "cases.h"

static cudaStream_t stream(void)
{
  cudaStream_t s = NULL;

  OK(cudaStreamCreate(&s));
  return s;
}

CASE(misuse_free_in_use)
{
  int *p;

  OK(cudaMalloc((void **)&p, 4096));
  OK(fill(p, 1, (dim3){8, 1, 1}, (dim3){128, 1, 1}, NULL));
  OK(cudaFree(p));
  OK(cudaDeviceSynchronize());
}
CASE(misuse_destroy_stream_in_use)
{
  int *p;
  cudaStream_t s = stream();

  OK(cudaMalloc((void **)&p, 4096));
  OK(fill(p, 1, (dim3){8, 1, 1}, (dim3){128, 1, 1}, s));
  OK(cudaStreamDestroy(s));
  OK(cudaDeviceSynchronize());
  OK(cudaFree(p));
}
CASE(misuse_destroy_event_in_use)
{
  cudaStream_t s = stream();
  cudaEvent_t e;

  OK(cudaEventCreate(&e));
  OK(launch(&k_spin, 1, NULL, s));
  OK(cudaEventRecord(e, s));
  OK(cudaEventDestroy(e));
  OK(cudaStreamSynchronize(s));
  OK(cudaStreamDestroy(s));
}
CASE(misuse_swapped_arguments)
{
  int *p, host[4] = {0};

  OK(cudaMalloc((void **)&p, 16));
  BAD(cudaMemcpy(host, host, 16, cudaMemcpyDeviceToDevice));
  BAD(cudaMemset(p, 16, (size_t)1 << 45));
  OK(cudaFree(p));
}
CASE(misuse_free_after_reset_of_error)
{
  int *p;

  OK(cudaMalloc((void **)&p, 16));
  T(cudaErrorInvalidDevice, cudaSetDevice(50));
  OK(cudaFree(p));
  T(cudaErrorInvalidDevice, cudaGetLastError());
}
CASE(misuse_register_mapped_twice)
{
  char *p = aligned_alloc(4096, 16384);

  OK(cudaHostRegister(p, 8192, 2));
  T(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(p + 4096, 8192, 2));
  OK(cudaHostRegister(p + 8192, 8192, 2));
  OK(cudaHostUnregister(p));
  OK(cudaHostUnregister(p + 8192));
  free(p);
}
CASE(misuse_unregister_interior)
{
  char *p = aligned_alloc(4096, 8192);

  OK(cudaHostRegister(p, 8192, 0));
  T(ANY, cudaHostUnregister(p + 4096));
  T(ANY, cudaHostUnregister(p));
  free(p);
}
CASE(misuse_free_registered)
{
  char *p = aligned_alloc(4096, 8192);

  OK(cudaHostRegister(p, 8192, 0));
  T(ANY, cudaFreeHost(p));
  T(ANY, cudaHostUnregister(p));
}
CASE(misuse_symbol_value_as_pointer)
{
  int x[4];

  T(ANY, cudaMemcpy(x, &v_const, 16, cudaMemcpyDeviceToHost));
  T(cudaErrorInvalidSymbol, cudaMemcpyFromSymbol(x, x, 16, 0, 2));
}
CASE(misuse_pitch_as_width)
{
  char *p, x[1024] = {0};
  size_t pitch;

  OK(cudaMallocPitch((void **)&p, &pitch, 100, 4));
  T(cudaErrorInvalidPitchValue,
    cudaMemcpy2D(p, pitch, x, 100, pitch, 4, cudaMemcpyHostToDevice));
  OK(cudaFree(p));
}
CASE(misuse_2d_past_the_end)
{
  char *p, x[64] = {0};

  OK(cudaMalloc((void **)&p, 32));
  T(ANY, cudaMemset2D(p, 1 << 20, 0, 16, 1 << 10));
  T(ANY, cudaMemcpy2D(x, 16, p, 1 << 20, 16, 4, cudaMemcpyDeviceToHost));
  OK(cudaFree(p));
}
CASE(misuse_pitch_too_large)
{
  char *p, x[64] = {0};

  OK(cudaMalloc((void **)&p, 64));
  T(ANY, cudaMemcpy2D(p, SIZE_MAX / 2, x, 16, 16, 1, cudaMemcpyHostToDevice));
  OK(cudaFree(p));
}
CASE(misuse_instantiate_twice)
{
  cudaGraph_t g;
  cudaGraphExec_t a, b;

  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphInstantiate(&a, g, 0));
  OK(cudaGraphInstantiate(&b, g, 0));
  OK(cudaGraphExecDestroy(a));
  OK(cudaGraphExecDestroy(b));
  OK(cudaGraphDestroy(g));
}
CASE(misuse_change_graph_after_instantiation)
{
  cudaGraph_t g;
  cudaGraphNode_t n;
  cudaGraphExec_t x;

  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphAddEmptyNode(&n, g, NULL, 0));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaDeviceSynchronize());
  OK(cudaGraphExecDestroy(x));
  OK(cudaGraphDestroy(g));
}
CASE(misuse_destroy_exec_in_use)
{
  cudaGraph_t g;
  cudaGraphNode_t n;
  cudaGraphExec_t x;

  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphAddEmptyNode(&n, g, NULL, 0));
  OK(cudaGraphInstantiate(&x, g, 0));
  OK(cudaGraphLaunch(x, NULL));
  OK(cudaGraphExecDestroy(x));
  OK(cudaDeviceSynchronize());
  OK(cudaGraphDestroy(g));
}
CASE(misuse_node_of_destroyed_copy)
{
  cudaGraph_t g, c;
  cudaGraphNode_t n, m;

  OK(cudaGraphCreate(&g, 0));
  OK(cudaGraphAddEmptyNode(&n, g, NULL, 0));
  OK(cudaGraphClone(&c, g));
  OK(cudaGraphDestroyNode(n));
  OK(cudaGraphAddEmptyNode(&m, c, NULL, 0));
  OK(cudaGraphDestroy(c));
  OK(cudaGraphDestroy(g));
}
CASE(misuse_launch_in_relaxed_capture)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 2));
  T(cudaErrorStreamCaptureImplicit, launch(&k_spin, 1, NULL, NULL));
  T(ANY, cudaStreamEndCapture(s, &g));
  OK(cudaStreamDestroy(s));
}
CASE(misuse_launch_beside_capture)
{
  cudaStream_t s = stream(), t = NULL;
  cudaGraph_t g = NULL;

  OK(cudaStreamCreateWithFlags(&t, 1));
  OK(cudaStreamBeginCapture(s, 0));
  OK(launch(&k_spin, 1, NULL, t));
  OK(cudaStreamEndCapture(s, &g));
  OK(cudaGraphDestroy(g));
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
}
CASE(misuse_free_in_capture)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;
  void *p;

  OK(cudaMalloc(&p, 64));
  OK(cudaStreamBeginCapture(s, 0));
  T(ANY, cudaFree(p));
  T(ANY, cudaStreamEndCapture(s, &g));
  T(ANY, cudaFree(p));
  OK(cudaStreamDestroy(s));
}
CASE(misuse_device_synchronise_in_capture)
{
  cudaStream_t s = stream();
  cudaGraph_t g = NULL;

  OK(cudaStreamBeginCapture(s, 0));
  T(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  T(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
  OK(cudaStreamDestroy(s));
}
CASE(misuse_destroy_capturing_stream)
{
  cudaStream_t s = stream();

  OK(cudaStreamBeginCapture(s, 2));
  T(ANY, cudaStreamDestroy(s));
}
CASE(misuse_shared_overflow)
{
  /* NVIDIA's libraries use the lower 32 bits. */
  OK(cudaLaunchKernel(&k_spin, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL,
                      (size_t)1 << 40, NULL));
  OK(cudaDeviceSynchronize());
}
CASE(misuse_default_stream_after_work)
{
  int *p, host = 0;
  cudaStream_t s = stream();

  OK(cudaMalloc((void **)&p, 4));
  OK(fill(p, 1, (dim3){1, 1, 1}, (dim3){1, 1, 1}, s));
  OK(fill(p, 2, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL));
  OK(fill(p, 3, (dim3){1, 1, 1}, (dim3){1, 1, 1}, s));
  OK(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
  V(3, host);
  OK(cudaFree(p));
  OK(cudaStreamDestroy(s));
}
CASE(misuse_pointer_after_free)
{
  pointer_attributes a;
  void *p;

  OK(cudaMalloc(&p, 64));
  OK(cudaFree(p));
  OK(cudaPointerGetAttributes(&a, p));
  V(0, a.type);
}
CASE(misuse_advise_host_memory)
{
  static char x[4096];

  T(ANY, cudaMemAdvise(x, sizeof x, 1, (cudaMemLocation){1, 0}));
  T(ANY, cudaMemPrefetchAsync(x, sizeof x, (cudaMemLocation){1, 0}, 0, NULL));
}
CASE(misuse_ipc_of_pool_memory)
{
  cudaIpcMemHandle_t h;
  void *p;

  OK(cudaMallocAsync(&p, 64, NULL));
  OK(cudaStreamSynchronize(NULL));
  BAD(cudaIpcGetMemHandle(&h, p));
  OK(cudaFree(p));
}
CASE(misuse_ipc_event_with_timing)
{
  cudaEvent_t e;

  BAD(cudaEventCreateWithFlags(&e, 4));
}
CASE(misuse_limit_beyond_memory)
{
  T(ANY, cudaDeviceSetLimit(0, (size_t)1 << 40));
  T(ANY, cudaDeviceSetLimit(1, 0));
}
CASE(misuse_flags_after_start)
{
  OK(cudaFree(NULL));
  OK(cudaSetDeviceFlags(1));
  OK(cudaSetDeviceFlags(0));
}
CASE(misuse_peer_of_no_device)
{
  T(cudaErrorInvalidDevice, cudaMemcpyPeer(NULL, 60, NULL, 61, 4));
  T(cudaErrorInvalidDevice, cudaDeviceDisablePeerAccess(60));
}
