// kiln run: --grid 2 --block 96 --arg i32[1024]=ramp --arg i32[1024]
// A pipeline of two tiles: warp 2 loads tiles, warps 0 and 1 add 1 and store them.
__device__ static void wait(unsigned bar, unsigned parity)
{
  asm volatile("{\n\t.reg .pred p;\n"
               "again:\n\tmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n\t"
               "@!p bra again;\n\t}" ::"r"(bar),
               "r"(parity)
               : "memory");
}

extern "C" __global__ void copies(const int *in, int *out)
{
  __shared__ alignas(128) int tile[2][64];
  __shared__ alignas(128) int result[64];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  const int tiles = 8;
  const unsigned r = (unsigned)__cvta_generic_to_shared(result);
  in += blockIdx.x * 512;
  out += blockIdx.x * 512;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; i++) {
      const unsigned f = (unsigned)__cvta_generic_to_shared(&full[i]);
      const unsigned e = (unsigned)__cvta_generic_to_shared(&empty[i]);
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(f));
      asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(e));
    }
  __syncthreads();
  for (int i = 0; i < tiles; i++) {
    const int s = i % 2;
    const unsigned f = (unsigned)__cvta_generic_to_shared(&full[s]);
    const unsigned e = (unsigned)__cvta_generic_to_shared(&empty[s]);
    const unsigned t = (unsigned)__cvta_generic_to_shared(tile[s]);
    if (threadIdx.x == 64) {
      if (i >= 2)
        wait(e, (i / 2 - 1) & 1);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(f));
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx"
                   "::bytes [%0], [%1], 256, [%2];" ::"r"(t),
                   "l"(in + 64 * i), "r"(f)
                   : "memory");
    } else if (threadIdx.x < 64) {
      wait(f, (i / 2) & 1);
      const int x = tile[s][threadIdx.x];
      __syncwarp();
      if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(e) : "memory");
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      asm volatile("bar.sync 1, 64;" ::: "memory");
      result[threadIdx.x] = x + 1;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("bar.sync 1, 64;" ::: "memory");
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], "
                     "256;\n\tcp.async.bulk.commit_group;" ::"l"(out + 64 * i),
                     "r"(r)
                     : "memory");
    }
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
