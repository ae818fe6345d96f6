// kiln run: --grid 1 --block 64 --arg i32[64]
// The mbarrier expects one arrival per warp, but every thread arrives.
extern "C" __global__ void too_many_arrivals(int *out)
{
  __shared__ alignas(8) unsigned long long bar;
  const unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(b));
  __syncthreads();
  if (threadIdx.x < 32)
    asm volatile("mbarrier.arrive.noComplete.shared.b64 _, [%0], 4;" ::"r"(b)); // BUG mbarrier overflow
  out[threadIdx.x] = threadIdx.x;
}
