/* sparse_product.cu -- a sparse matrix in compressed rows, one warp per row.
// finds: leaks: the program resets the device without freeing its arrays
 */
#include "program.cuh"

__global__ void multiply(int rows, const int *start, const int *column,
                         const double *value, const double *x, double *y)
{
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  double s = 0;
  for (int i = start[row] + lane; i < start[row + 1]; i += 32)
    s += value[i] * __ldg(&x[column[i]]);
  for (int d = 16; d > 0; d /= 2)
    s += __shfl_down_sync(~0u, s, d);
  if (lane == 0)
    y[row] = s;
}

int main()
{
  const int n = 150;
  std::vector<int> start(1), column;
  std::vector<double> value, x(n), want(n);
  for (int i = 0; i < n; i++)
    x[i] = i % 9;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j += 1 + (i * j) % 7) {
      column.push_back(j);
      value.push_back(i % 5 - j % 3);
      want[i] += value.back() * x[j];
    }
    start.push_back((int)column.size());
  }
  double *y;
  CALL(cudaMalloc(&y, n * sizeof(double)));
  multiply<<<(n * 32 + 127) / 128, 128>>>(n, to_device(start),
                                          to_device(column), to_device(value),
                                          to_device(x), y);
  CHECK(to_host(y, n) == want);
  CALL(cudaDeviceReset());
  return verdict();
}
