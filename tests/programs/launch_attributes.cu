/* launch_attributes.cu -- cudaLaunchKernelEx with a cooperative launch, a priority
 * and clusters.
// nvcc: -arch=compute_90
 */
#include "program.cuh"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void ranks(int *out)
{
  __shared__ int mine;
  cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x == 0)
    mine = blockIdx.x;
  c.sync();
  const int other = *c.map_shared_rank(&mine, c.block_rank() ^ 1);
  c.sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = other;
}

__global__ void plain(int *out, int v)
{
  cg::this_grid().sync();
  out[blockIdx.x] = v;
}

int main()
{
  int *out;
  CALL(cudaMalloc(&out, 8 * sizeof(int)));
  cudaLaunchConfig_t c = {};
  cudaLaunchAttribute a[2] = {};
  c.gridDim = dim3(8);
  c.blockDim = dim3(32);
  c.attrs = a;
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim.x = 2;
  a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
  c.numAttrs = 1;
  CALL(cudaLaunchKernelEx(&c, ranks, out));
  std::vector<int> g = to_host(out, 8);
  for (int i = 0; i < 8; i++)
    CHECK(g[i] == (i ^ 1));
  a[0].id = cudaLaunchAttributeCooperative;
  a[0].val.cooperative = 1;
  a[1].id = cudaLaunchAttributePriority;
  a[1].val.priority = 0;
  c.numAttrs = 2;
  CALL(cudaLaunchKernelEx(&c, plain, out, 7));
  for (int v : to_host(out, 8))
    CHECK(v == 7);
  return verdict();
}
