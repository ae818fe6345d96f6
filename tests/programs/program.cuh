/* program.cuh -- shared by the programs of this folder: checks of calls and results.
 * A program prints "right" and exits with 0, or prints what is wrong and exits
 * with 1. */
#ifndef PROGRAM_CUH
#define PROGRAM_CUH

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static int wrong;

#define CALL(call)                                                             \
  do {                                                                         \
    const cudaError_t rc_ = (call);                                            \
    if (rc_ != cudaSuccess) {                                                  \
      std::printf("line %d: %s: %s (%s)\n", __LINE__, #call,                   \
                  cudaGetErrorName(rc_), cudaGetErrorString(rc_));             \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

#define FAILS(call, code)                                                      \
  do {                                                                         \
    const cudaError_t rc_ = (call);                                            \
    if (rc_ != (code)) {                                                       \
      std::printf("line %d: %s: %s, not %s\n", __LINE__, #call,                \
                  cudaGetErrorName(rc_), #code);                               \
      wrong++;                                                                 \
    }                                                                          \
  } while (0)

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::printf("line %d: not true: %s\n", __LINE__, #condition);            \
      wrong++;                                                                 \
    }                                                                          \
  } while (0)

/* Ends a program. */
static inline int verdict(void)
{
  std::puts(wrong ? "wrong" : "right");
  return wrong != 0;
}

/* A device array with the elements of a vector. */
template <class T> T *to_device(const std::vector<T> &v)
{
  T *d = nullptr;
  CALL(cudaMalloc(&d, v.size() * sizeof(T)));
  CALL(cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  return d;
}

template <class T> std::vector<T> to_host(const T *d, size_t n)
{
  std::vector<T> v(n);
  CALL(cudaMemcpy(v.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
  return v;
}

#endif
