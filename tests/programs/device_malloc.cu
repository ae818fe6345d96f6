/* device_malloc.cu -- malloc, memset, new and free in kernels. */
#include "program.cuh"

struct point {
  int x, y;
  __device__ point(int a, int b) : x(a), y(b)
  {
  }
  __device__ virtual int sum() const
  {
    return x + y;
  }
};

struct far : point {
  __device__ far(int a) : point(a, a)
  {
  }
  __device__ int sum() const override
  {
    return 100 * x;
  }
};

__device__ int *kept[64];

__global__ void keep()
{
  int *p = (int *)malloc(16 * sizeof(int));
  for (int i = 0; i < 16; i++)
    p[i] = threadIdx.x * i;
  kept[threadIdx.x] = p;
}

__global__ void collect(int *out)
{
  int s = 0;
  for (int i = 0; i < 16; i++)
    s += kept[threadIdx.x][i];
  free(kept[threadIdx.x]);
  point *p = threadIdx.x % 2 ? new far(s) : new point(s, 1);
  out[threadIdx.x] = p->sum();
  delete p;
}

int main()
{
  int *out;
  CALL(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  CALL(cudaMalloc(&out, 64 * sizeof(int)));
  keep<<<1, 64>>>();
  collect<<<1, 64>>>(out);
  const std::vector<int> g = to_host(out, 64);
  for (int i = 0; i < 64; i++)
    CHECK(g[i] == (i % 2 ? 100 * 120 * i : 120 * i + 1));
  return verdict();
}
