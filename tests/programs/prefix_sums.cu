/* prefix_sums.cu -- an exclusive prefix sum: Blelloch's tree in each block, and the
 * totals of the blocks in a second pass. */
#include "program.cuh"

const int BLOCK = 128;

__global__ void scan(int *x, int *totals, int n)
{
  __shared__ int t[2 * BLOCK];
  const int k = threadIdx.x, base = blockIdx.x * 2 * BLOCK;
  t[2 * k] = base + 2 * k < n ? x[base + 2 * k] : 0;
  t[2 * k + 1] = base + 2 * k + 1 < n ? x[base + 2 * k + 1] : 0;
  int offset = 1;
  for (int d = BLOCK; d > 0; d /= 2, offset *= 2) {
    __syncthreads();
    if (k < d)
      t[offset * (2 * k + 2) - 1] += t[offset * (2 * k + 1) - 1];
  }
  if (k == 0) {
    if (totals)
      totals[blockIdx.x] = t[2 * BLOCK - 1];
    t[2 * BLOCK - 1] = 0;
  }
  for (int d = 1; d < 2 * BLOCK; d *= 2) {
    offset /= 2;
    __syncthreads();
    if (k < d) {
      const int a = offset * (2 * k + 1) - 1, b = offset * (2 * k + 2) - 1;
      const int v = t[a];
      t[a] = t[b];
      t[b] += v;
    }
  }
  __syncthreads();
  if (base + 2 * k < n)
    x[base + 2 * k] = t[2 * k];
  if (base + 2 * k + 1 < n)
    x[base + 2 * k + 1] = t[2 * k + 1];
}

__global__ void add(int *x, const int *totals, int n)
{
  const int i = blockIdx.x * 2 * BLOCK + threadIdx.x;
  if (i < n)
    x[i] += totals[blockIdx.x];
  if (i + BLOCK < n)
    x[i + BLOCK] += totals[blockIdx.x];
}

int main()
{
  const int n = 12345, blocks = (n + 2 * BLOCK - 1) / (2 * BLOCK);
  std::vector<int> h(n);
  for (int i = 0; i < n; i++)
    h[i] = i % 11;
  int *x = to_device(h), *totals;
  CALL(cudaMalloc(&totals, blocks * sizeof(int)));
  scan<<<blocks, BLOCK>>>(x, totals, n);
  scan<<<1, BLOCK>>>(totals, nullptr, blocks);
  add<<<blocks, BLOCK>>>(x, totals, n);
  const std::vector<int> g = to_host(x, n);
  for (int i = 0, sum = 0; i < n; sum += h[i++])
    CHECK(g[i] == sum);
  return verdict();
}
