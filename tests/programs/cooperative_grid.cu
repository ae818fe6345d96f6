/* cooperative_grid.cu -- a sum with one synchronisation of the whole grid. */
#include "program.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void total(const int *x, int n, int *partial, int *out)
{
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  __shared__ int sums[32];
  int s = 0;
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size())
    s += x[i];
  s = cg::reduce(warp, s, cg::plus<int>());
  if (warp.thread_rank() == 0)
    sums[warp.meta_group_rank()] = s;
  block.sync();
  if (block.thread_rank() == 0) {
    s = 0;
    for (unsigned i = 0; i < warp.meta_group_size(); i++)
      s += sums[i];
    partial[blockIdx.x] = s;
  }
  grid.sync();
  if (grid.thread_rank() == 0) {
    s = 0;
    for (unsigned i = 0; i < gridDim.x; i++)
      s += partial[i];
    *out = s;
  }
}

int main()
{
  int n = 30000, blocks = 0, *partial, *out, possible = 0;
  std::vector<int> h(n);
  int want = 0;
  for (int i = 0; i < n; i++)
    want += h[i] = i % 13;
  int *x = to_device(h);
  CALL(cudaDeviceGetAttribute(&possible, cudaDevAttrCooperativeLaunch, 0));
  CHECK(possible);
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, total, 128, 0));
  CHECK(blocks > 0);
  CALL(cudaMalloc(&partial, 8 * sizeof(int)));
  CALL(cudaMalloc(&out, sizeof(int)));
  void *args[] = {&x, &n, &partial, &out};
  CALL(cudaLaunchCooperativeKernel((void *)total, 8, 128, args, 0, 0));
  CALL(cudaDeviceSynchronize());
  CHECK(to_host(out, 1)[0] == want);
  FAILS(cudaLaunchCooperativeKernel((void *)total, 1000000, 128, args, 0, 0),
        cudaErrorCooperativeLaunchTooLarge);
  return verdict();
}
