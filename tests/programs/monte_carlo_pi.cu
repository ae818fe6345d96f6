/* monte_carlo_pi.cu -- estimates pi by a generator per thread and a block sum. */
#include "program.cuh"

__global__ void inside(unsigned long long *hits, int per_thread)
{
  __shared__ unsigned block;
  unsigned s = 747796405u * (blockIdx.x * blockDim.x + threadIdx.x + 1), n = 0;
  if (threadIdx.x == 0)
    block = 0;
  __syncthreads();
  for (int i = 0; i < per_thread; i++) {
    s = s * 1664525u + 1013904223u;
    const float x = (s >> 8) / 16777216.0f;
    s = s * 1664525u + 1013904223u;
    const float y = (s >> 8) / 16777216.0f;
    n += x * x + y * y <= 1;
  }
  atomicAdd(&block, n);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(hits, (unsigned long long)block);
}

int main()
{
  unsigned long long *hits;
  CALL(cudaMalloc(&hits, sizeof *hits));
  CALL(cudaMemset(hits, 0, sizeof *hits));
  inside<<<8, 128>>>(hits, 200);
  const double pi = 4.0 * to_host(hits, 1)[0] / (8 * 128 * 200);
  CHECK(std::fabs(pi - 3.14159265) < 0.03);
  return verdict();
}
