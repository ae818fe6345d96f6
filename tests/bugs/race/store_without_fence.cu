// kiln run: --grid 1 --block 64 --arg i32[64]
// The copy engine may not see what the threads wrote.
extern "C" __global__ void store_without_fence(int *out)
{
  __shared__ alignas(128) int tile[64];
  const unsigned t = (unsigned)__cvta_generic_to_shared(tile);
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(t) : "memory"); // BUG missing proxy fence
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
  }
}
