// kiln run: --grid 1 --block 32 --arg i32[64]=none --arg i32[32]
// The load uses the second half of each pair, but only the first was written.
extern "C" __global__ void used_half(int2 *pairs, int *out)
{
  const int i = threadIdx.x;
  int unused, value;
  pairs[i].x = i;
  asm volatile(".pragma \"used_bytes_mask 240\";\n\tld.global.v2.s32 {%0, %1}, [%2];" : "=r"(unused), "=r"(value) : "l"(__cvta_generic_to_global(pairs + i)) : "memory"); // BUG uninitialised read
  out[i] = value;
}
