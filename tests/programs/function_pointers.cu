/* function_pointers.cu -- a table of device functions, and a kernel's argument that
 * is a device function.
// nvcc: -rdc=true
 */
#include "program.cuh"

typedef float (*binary)(float, float);

__device__ float add(float a, float b)
{
  return a + b;
}

__device__ float multiply(float a, float b)
{
  return a * b;
}

__device__ binary table[2] = {add, multiply};
__device__ binary chosen = multiply;

__global__ void apply(float *out, const float *in, int n, binary f)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = f(in[i], 3) + table[i % 2](in[i], 2);
}

int main()
{
  const int n = 200;
  std::vector<float> h(n);
  for (int i = 0; i < n; i++)
    h[i] = i;
  float *x = to_device(h), *y;
  binary f;
  CALL(cudaMalloc(&y, n * sizeof(float)));
  CALL(cudaMemcpyFromSymbol(&f, chosen, sizeof f));
  apply<<<2, 128>>>(y, x, n, f);
  const std::vector<float> g = to_host(y, n);
  for (int i = 0; i < n; i++)
    CHECK(g[i] == i * 3 + (i % 2 ? i * 2 : i + 2));
  return verdict();
}
