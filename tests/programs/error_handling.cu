/* error_handling.cu -- errors of calls, of launches, and of a kernel (sticky).
// finds: stores to address 0 and a wrong launch, which the program makes on purpose
 */
#include "program.cuh"

/* The library of CUDA 13 returns another error than those before. */
#if CUDART_VERSION >= 13000
#define WRONG_SHAPE cudaErrorInvalidValue
#else
#define WRONG_SHAPE cudaErrorInvalidConfiguration
#endif

__global__ void store(int *p)
{
  p[threadIdx.x] = 1;
}

int main()
{
  int *p = nullptr;
  FAILS(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
  FAILS(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  FAILS(cudaGetLastError(), cudaErrorMemoryAllocation);
  FAILS(cudaGetLastError(), cudaSuccess);
  CALL(cudaMalloc(&p, 128));
  store<<<1, 2048>>>(p);
  FAILS(cudaGetLastError(), WRONG_SHAPE);
  store<<<0, 32>>>(p);
  FAILS(cudaGetLastError(), WRONG_SHAPE);
  FAILS(cudaMemcpy(p, &p, 8, (cudaMemcpyKind)77),
        cudaErrorInvalidMemcpyDirection);
  FAILS(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
  FAILS(cudaFree((char *)p + 4), cudaErrorInvalidValue);
  cudaGetLastError();
  store<<<1, 32>>>(p);
  CALL(cudaDeviceSynchronize());
  CHECK(to_host(p, 32)[31] == 1);
  CHECK(!std::strcmp(cudaGetErrorName(cudaErrorInvalidValue),
                     "cudaErrorInvalidValue"));
  CHECK(!std::strcmp(cudaGetErrorString(cudaErrorInvalidValue),
                     "invalid argument"));
  CHECK(!std::strcmp(cudaGetErrorName((cudaError_t)12345),
                     "unrecognized error code"));
  store<<<1, 32>>>(nullptr);
  FAILS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  FAILS(cudaMalloc(&p, 16), cudaErrorIllegalAddress);
  FAILS(cudaGetLastError(), cudaErrorIllegalAddress);
  /* A reset does not repair the process: drivers give it no new context. */
  CALL(cudaDeviceReset());
  FAILS(cudaMalloc(&p, 128), cudaErrorDevicesUnavailable);
  return verdict();
}
