// The cooperative groups of the CUDA toolkit. All blocks must be resident.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void groups(const int *in, int *out, int n)
{
  cg::grid_group grid = cg::this_grid();
  cg::thread_block_tile<16> tile =
      cg::tiled_partition<16>(cg::this_thread_block());
  int v = 0;

  for (unsigned i = grid.thread_rank(); i < (unsigned)n; i += grid.size())
    v += in[i];
  for (int d = 8; d > 0; d /= 2)
    v += tile.shfl_xor(v, d);
  if (tile.thread_rank() == 0)
    atomicAdd(&out[0], v);
  grid.sync();
  out[1 + grid.thread_rank()] = out[0] + (int)tile.size();
}
