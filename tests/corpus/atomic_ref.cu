// Atomic operations with the C++ class cuda::atomic_ref.
#include <cuda/atomic>

extern "C" __global__ void references(const int *in, int *out, int)
{
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(out[0]);
  cuda::atomic_ref<int, cuda::thread_scope_block> most(out[1 + blockIdx.x]);
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  int old = most.load(cuda::memory_order_relaxed);

  sum.fetch_add(v, cuda::memory_order_acq_rel);
  while (old < v && !most.compare_exchange_weak(old, v))
    ;
}
