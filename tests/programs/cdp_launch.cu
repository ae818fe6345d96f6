/* cdp_launch.cu -- kernels launch kernels: a recursion, and a fan-out in streams.
// nvcc: -rdc=true -arch=compute_75 -lcudadevrt
 */
#include "program.cuh"

__global__ void leaf(int *out, int at)
{
  atomicAdd(&out[at], (int)threadIdx.x);
}

__global__ void recurse(int *depth, int left)
{
  atomicAdd(depth, 1);
  if (left > 0 && threadIdx.x == 0)
    recurse<<<1, 1>>>(depth, left - 1);
}

__global__ void parent(int *out)
{
  if (threadIdx.x < 4) {
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    leaf<<<2, 32, 0, s>>>(out, threadIdx.x);
    cudaStreamDestroy(s);
  }
}

int main()
{
  int *x;
  CALL(cudaMalloc(&x, 5 * sizeof(int)));
  CALL(cudaMemset(x, 0, 5 * sizeof(int)));
  parent<<<1, 32>>>(x);
  recurse<<<1, 1>>>(x + 4, 6);
  CALL(cudaDeviceSynchronize());
  const std::vector<int> g = to_host(x, 5);
  for (int i = 0; i < 4; i++)
    CHECK(g[i] == 2 * 31 * 16);
  CHECK(g[4] == 7);
  return verdict();
}
