/* threads_streams.cu -- host threads, each with the default stream of its own.
// nvcc: --default-stream per-thread -Xcompiler -pthread
 */
#include "program.cuh"

#include <thread>

__global__ void polynomial(double *x, int n, int k)
{
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n;
       i += blockDim.x * gridDim.x)
    x[i] = k * sqrt(x[i]) + 1;
}

static void work(int k, int *bad)
{
  const int n = 2000;
  std::vector<double> h(n);
  for (int i = 0; i < n; i++)
    h[i] = (double)i * i;
  double *x;
  CALL(cudaMalloc(&x, n * sizeof(double)));
  CALL(cudaMemcpyAsync(x, h.data(), n * sizeof(double), cudaMemcpyHostToDevice,
                       0));
  polynomial<<<2, 64>>>(x, n, k);
  CALL(cudaMemcpyAsync(h.data(), x, n * sizeof(double), cudaMemcpyDeviceToHost,
                       0));
  CALL(cudaStreamSynchronize(0));
  for (int i = 0; i < n; i++)
    *bad += h[i] != (double)k * i + 1;
  CALL(cudaFree(x));
}

int main()
{
  std::vector<std::thread> t;
  int bad[6] = {};
  for (int k = 0; k < 6; k++)
    t.emplace_back(work, k, &bad[k]);
  for (auto &one : t)
    one.join();
  for (int b : bad)
    CHECK(b == 0);
  return verdict();
}
