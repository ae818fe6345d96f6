// kiln run: --grid 1 --block 64 --arg i32[128]
// The second tile overwrites the first one before the copy engine has read it.
extern "C" __global__ void tile_reused_early(int *out)
{
  __shared__ alignas(128) int tile[64];
  const unsigned t = (unsigned)__cvta_generic_to_shared(tile);
  for (int i = 0; i < 2; i++) {
    tile[threadIdx.x] = i; // BUG race
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], "
                   "256;\n\tcp.async.bulk.commit_group;" ::"l"(out + 64 * i),
                   "r"(t)
                   : "memory");
    __syncthreads();
  }
  asm volatile("cp.async.bulk.wait_group 0;");
}
