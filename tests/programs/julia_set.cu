/* julia_set.cu -- iterates complex numbers of a class; loops that diverge. */
#include "program.cuh"

struct complex {
  double r, i;
  __host__ __device__ complex operator*(const complex &o) const
  {
    return {r * o.r - i * o.i, r * o.i + i * o.r};
  }
  __host__ __device__ complex operator+(const complex &o) const
  {
    return {r + o.r, i + o.i};
  }
};

__host__ __device__ int turns(int x, int y, int n)
{
  complex z = {3.0 * x / n - 1.5, 3.0 * y / n - 1.5};
  int k = 0;
  while (k < 100 && z.r * z.r + z.i * z.i < 4) {
    z = z * z + complex{-0.75, 0.125};
    k++;
  }
  return k;
}

__global__ void draw(int *out, int n)
{
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < n)
    out[y * n + x] = turns(x, y, n);
}

int main()
{
  const int n = 50;
  int *out;
  CALL(cudaMalloc(&out, n * n * sizeof(int)));
  draw<<<dim3(1, n), 64>>>(out, n);
  const std::vector<int> g = to_host(out, n * n);
  int same = 0;
  for (int i = 0; i < n * n; i++)
    same += g[i] == turns(i % n, i / n, n);
  CHECK(same >= n * n * 99 / 100); /* contraction may change a last turn */
  return verdict();
}
