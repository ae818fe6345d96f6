// kiln run: --grid 1 --block 64 --arg i32[64]=ramp --arg i32[64]
// The block reads the tile while the bulk copy may still write it.
extern "C" __global__ void copy_not_waited(const int *in, int *out)
{
  __shared__ alignas(128) int tile[64];
  __shared__ alignas(8) unsigned long long bar;
  const unsigned t = (unsigned)__cvta_generic_to_shared(tile);
  const unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(b));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], 256, [%2];" ::"r"(t), "l"(in), "r"(b)
                 : "memory");
  }
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x]; // BUG race
}
