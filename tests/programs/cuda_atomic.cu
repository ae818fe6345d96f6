/* cuda_atomic.cu -- cuda::atomic with scopes: a lock, and a message between blocks. */
#include "program.cuh"

#include <cuda/atomic>

__device__ int shared_count, data;
__device__ cuda::atomic<int, cuda::thread_scope_device> lock{0}, flag{0};

__global__ void locked(int turns)
{
  if (threadIdx.x == 0)
    for (int i = 0; i < turns; i++) {
      while (lock.exchange(1, cuda::memory_order_acquire))
        __nanosleep(20);
      shared_count++;
      lock.store(0, cuda::memory_order_release);
    }
}

__global__ void message(int *out)
{
  if (blockIdx.x == 0) {
    data = 77;
    flag.store(1, cuda::memory_order_release);
  } else {
    while (flag.load(cuda::memory_order_acquire) == 0)
      __nanosleep(20);
    *out = data;
  }
}

int main()
{
  int *out, count = 0;
  CALL(cudaMalloc(&out, sizeof(int)));
  locked<<<8, 32>>>(25);
  CALL(cudaMemcpyFromSymbol(&count, shared_count, sizeof count));
  CHECK(count == 200);
  message<<<2, 1>>>(out);
  CHECK(to_host(out, 1)[0] == 77);
  return verdict();
}
