// kiln run: --grid 1 --block 64 --arg u32[16] --arg u32[64]=ramp
// The histogram has 16 bins, but the keys have values up to 63.
extern "C" __global__ void atomic_past_end(unsigned *bins, const unsigned *keys)
{
  atomicAdd(&bins[keys[threadIdx.x]], 1u); // BUG out of bounds
}
