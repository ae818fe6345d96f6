/* cases_error.c -- cases of error names, texts, the last error, and sticky errors. */
#include "cases.h"

CASE(names_and_texts)
{
  for (int i = 0; i < 1100; i++) {
    const char *name = cudaGetErrorName(i);

    if (strcmp(name, "unrecognized error code") != 0)
      printf("  %d %s: %s\n", i, name, cudaGetErrorString(i));
  }
}

CASE(name_of_success)
{
  V(0, strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess"));
  V(0, strcmp(cudaGetErrorString(cudaSuccess), "no error"));
}

CASE(name_of_no_code)
{
  V(0, strcmp(cudaGetErrorName(54321), "unrecognized error code"));
  V(0, strcmp(cudaGetErrorString(54321), "unrecognized error code"));
  V(0, strcmp(cudaGetErrorName(-1), "unrecognized error code"));
}

CASE(last_error_is_reset)
{
  BAD(cudaMalloc(NULL, 16));
  BAD(cudaPeekAtLastError());
  BAD(cudaPeekAtLastError());
  BAD(cudaGetLastError());
  OK(cudaGetLastError());
  OK(cudaPeekAtLastError());
}

CASE(last_error_survives_success)
{
  int d;

  BAD(cudaMalloc(NULL, 16));
  OK(cudaGetDevice(&d));
  BAD(cudaGetLastError());
}

CASE(last_error_is_the_latest)
{
  BAD(cudaMalloc(NULL, 16));
  T(cudaErrorInvalidDevice, cudaSetDevice(99));
  T(cudaErrorInvalidDevice, cudaGetLastError());
  OK(cudaGetLastError());
}

CASE(not_ready_is_no_last_error)
{
  cudaEvent_t e;
  float ms;

  OK(cudaEventCreate(&e));
  OK(cudaEventQuery(e));
  T(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, e, e));
  T(cudaErrorInvalidResourceHandle, cudaGetLastError());
  OK(cudaEventDestroy(e));
}

STICKY(illegal_address)
{
  int *p = (int *)8, *q;
  void *args[] = {&p};

  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  T(cudaErrorIllegalAddress, cudaGetLastError());
  T(ANY, cudaPeekAtLastError());
  T(cudaErrorIllegalAddress, cudaMalloc((void **)&q, 16));
  T(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  T(cudaErrorIllegalAddress, launch(&k_spin, 1, NULL, NULL));
}

STICKY(illegal_address_null)
{
  int *p = NULL;
  void *args[] = {&p};

  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorIllegalAddress, cudaStreamSynchronize(NULL));
  T(cudaErrorIllegalAddress, cudaStreamQuery(NULL));
}

STICKY(illegal_address_in_stream)
{
  int *p = NULL;
  void *args[] = {&p};
  cudaStream_t s;

  OK(cudaStreamCreate(&s));
  OK(launch(&k_store, 1, args, s));
  T(cudaErrorIllegalAddress, cudaStreamSynchronize(s));
  T(ANY, cudaStreamDestroy(s));
}

STICKY(illegal_address_seen_by_copy)
{
  int *p = NULL, *q, host = 0;
  void *args[] = {&p};

  OK(cudaMalloc((void **)&q, 16));
  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorIllegalAddress, cudaMemcpy(&host, q, 4, cudaMemcpyDeviceToHost));
  T(cudaErrorIllegalAddress, cudaFree(q));
}

STICKY(misaligned_address)
{
  char *q, *p;
  void *args[] = {&p};

  OK(cudaMalloc((void **)&q, 16));
  p = q + 1;
  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorMisalignedAddress, cudaDeviceSynchronize());
}

STICKY(trap)
{
  OK(launch(&k_trap, 1, NULL, NULL));
  T(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  T(cudaErrorLaunchFailure, cudaGetLastError());
}

STICKY(reset_after_error)
{
  int *p = NULL, *q, host = 0;
  void *args[] = {&p};

  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  T(ANY, cudaDeviceReset());
  T(ANY, cudaGetLastError());
  T(ANY, cudaGetLastError());
  T(ANY, cudaMalloc((void **)&q, 64));
  T(ANY, fill(q, 3, (dim3){1, 1, 1}, (dim3){4, 1, 1}, NULL));
  T(ANY, cudaMemcpy(&host, q, 4, cudaMemcpyDeviceToHost));
}

STICKY(device_functions_after_error)
{
  int *p = NULL, n = 0;
  void *args[] = {&p};

  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  OK(cudaGetDeviceCount(&n));
  OK(cudaGetDevice(&n));
  OK(cudaRuntimeGetVersion(&n));
  OK(cudaDriverGetVersion(&n));
  T(ANY, cudaSetDevice(0));
  T(ANY, cudaDeviceGetAttribute(&n, 16, 0));
}

STICKY(event_after_error)
{
  int *p = NULL;
  void *args[] = {&p};
  cudaEvent_t e;

  OK(cudaEventCreate(&e));
  OK(launch(&k_store, 1, args, NULL));
  T(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  T(ANY, cudaEventRecord(e, NULL));
  T(cudaErrorIllegalAddress, cudaEventSynchronize(e));
  T(cudaErrorIllegalAddress, cudaEventQuery(e));
}

STICKY(reset_frees_all)
{
  int *p;
  cudaStream_t s;

  OK(cudaMalloc((void **)&p, 1024));
  OK(cudaStreamCreate(&s));
  OK(cudaDeviceReset());
  OK(cudaMalloc((void **)&p, 1024));
  OK(fill(p, 1, (dim3){1, 1, 1}, (dim3){8, 1, 1}, NULL));
  OK(cudaDeviceSynchronize());
  OK(cudaDeviceReset());
  OK(cudaDeviceReset());
}
