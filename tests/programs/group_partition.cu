/* group_partition.cu -- coalesced and labelled groups, tiles, scans of a group. */
#include "program.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__device__ int aggregated(int *counter)
{
  cg::coalesced_group g = cg::coalesced_threads();
  int before = 0;
  if (g.thread_rank() == 0)
    before = atomicAdd(counter, g.size());
  return g.shfl(before, 0) + g.thread_rank();
}

__global__ void odd(const int *x, int n, int *out, int *counter)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] % 2)
    out[aggregated(counter)] = x[i];
}

__global__ void tiles(int *out)
{
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  out[threadIdx.x] = cg::inclusive_scan(tile, (int)threadIdx.x % 8 + 1);
}

int main()
{
  const int n = 5000;
  std::vector<int> h(n);
  int want = 0, count = 0;
  for (int i = 0; i < n; i++) {
    h[i] = (i * 37) % 1001;
    if (h[i] % 2)
      want += h[i], count++;
  }
  int *x = to_device(h), *out, *counter;
  CALL(cudaMalloc(&out, n * sizeof(int)));
  CALL(cudaMalloc(&counter, sizeof(int)));
  CALL(cudaMemset(counter, 0, sizeof(int)));
  odd<<<(n + 127) / 128, 128>>>(x, n, out, counter);
  CHECK(to_host(counter, 1)[0] == count);
  const std::vector<int> got = to_host(out, count);
  int sum = 0;
  for (int v : got)
    sum += v;
  CHECK(sum == want);
  tiles<<<1, 64>>>(out);
  const std::vector<int> scan = to_host(out, 64);
  for (int i = 0; i < 64; i++)
    CHECK(scan[i] == (i % 8 + 1) * (i % 8 + 2) / 2);
  return verdict();
}
